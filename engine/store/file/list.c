/*
 * list.c: lists logs, and reads what their files tell of them.
 *
 * It reads folders and opens no log. Torn pieces, unnamed files and foreign files are not
 * logs.
 */
#include "store/file/file.h"

#include <errno.h>
#include <string.h>

#include "store/wait.h"

/* ------------------------------------------------------------------ folders */

typedef struct walk {
    file_store *fs;
    int agents;
    int (*visit)(void *arg, file_folder *folder);
    void *arg;
    sessile_status status;
    sessile_error *err;
} walk;

static int walk_name(void *arg, const char *name)
{
    walk *w = arg;
    file_folder *folder;
    os_stat_info st;
    const os_table *os = w->fs->os;
    char shown[STORE_MISNAMED_SIZE];
    int there = os->stat_at(os->ud, w->agents, name, &st) == 0;
    if (there && !st.is_dir && !st.is_symlink)
        return 0; /* a stray file is nobody's folder; a link is refused below */
    if (store_name_check(name, NULL)) {
        if (!there || !st.is_dir)
            return 0;
        store_misnamed(st.inode, name, shown);
        name = shown;
    }
    w->status = file_folder_get(w->fs, name, 0, &folder, w->err);
    return w->status || w->visit(w->arg, folder);
}

sessile_status file_folders_each(file_store *fs,
                                 int (*visit)(void *arg, file_folder *folder), void *arg,
                                 sessile_error *err)
{
    walk w = {fs, -1, visit, arg, SESSILE_OK, err};
    sessile_status status = file_agents(fs, 0, &w.agents, err);
    if (status)
        return status;
    if (fs->os->list(fs->os->ud, w.agents, walk_name, &w) < 0)
        return fail_errno(err, errno, "cannot list %s", fs->root);
    return w.status;
}

/* ------------------------------------------------------------------ logs */

int file_look(const file_store *fs, const file_folder *folder, const char *log,
              sessile_backend_stat *out)
{
    os_stat_info st;
    if (fs->os->stat_at(fs->os->ud, folder->fd, log, &st) != 0)
        return -1;
    out->bytes = st.size;
    out->mtime_ns = st.mtime_ns;
    out->inode = st.inode;
    out->changed_ns = st.ctime_ns;
    return 0;
}

/* By its name, and touching nothing of a handle that other threads may use. */
sessile_status file_ends(void *self, sessile_backend_log *const *logs, size_t n,
                         uint64_t *bytes, sessile_error *err)
{
    const os_table *os = ((const file_store *)self)->os;
    (void)err; /* what cannot be looked at says so when it is read */
    for (size_t i = 0; i < n; i++) {
        const file_folder *folder;
        const char *name;
        file_store *fs;
        os_stat_info st;
        file_inode was = file_log_inode(logs[i]);
        (void)file_log_cache(logs[i], &fs, &folder, &name);
        int there = os->stat_at(os->ud, folder->fd, name, &st) == 0 &&
                    st.device == was.device && st.inode == was.inode;
        bytes[i] = there ? st.size : SESSILE_LOG_GONE;
    }
    return SESSILE_OK;
}

typedef struct listing {
    file_store *fs;
    const file_folder *folder;
    int (*visit)(void *arg, const char *folder, const char *name);
    int (*visit_stat)(void *arg, const char *folder, const char *name,
                      const sessile_backend_stat *stat); /* or NULL */
    int (*visit_other)(void *arg, const char *folder, const char *file,
                       uint64_t bytes); /* or NULL: then logs are not wanted */
    void *arg;
    int stopped; /* visit has had enough */
    sessile_status status;
    sessile_error *err;
} listing;

static int give_log(listing *l, const char *file, const char *name)
{
    sessile_backend_stat st;
    if (!l->visit_stat)
        return l->visit(l->arg, l->folder->name, name);
    if (file_look(l->fs, l->folder, file, &st) == 0)
        return l->visit_stat(l->arg, l->folder->name, name, &st);
    return errno == ENOENT ? 0 : l->visit_stat(l->arg, l->folder->name, name, NULL);
}

static int give_other(listing *l, const char *file)
{
    os_stat_info st;
    const os_table *os = l->fs->os;
    if (os->stat_at(os->ud, l->folder->fd, file, &st) == 0)
        l->stopped = l->visit_other(l->arg, l->folder->name, file, st.size) != 0;
    return l->stopped;
}

/* How many bits the suffix of a log has otherwise; 0: it is FILE_SUFFIX. */
static int suffix_bits(const char *file, size_t size)
{
    size_t suffix = strlen(FILE_SUFFIX);
    int bits = 0;
    if (size <= suffix || size >= FILE_NAME_SIZE)
        return 8;
    for (size_t i = 0; i < suffix; i++)
        bits += __builtin_popcount((unsigned char)(file[size - suffix + i]) ^
                                   (unsigned char)FILE_SUFFIX[i]);
    return bits;
}

/* One name in an agent's folder. Pieces set aside and temporary names are not logs. A
 * suffix with one flipped bit is a damaged name of a log, as is a dot before it. */
static int list_log(void *arg, const char *file)
{
    listing *l = arg;
    char name[FILE_NAME_SIZE];
    size_t size = strlen(file), suffix = strlen(FILE_SUFFIX);
    int bits = suffix_bits(file, size);
    if (bits > 1 ||
        (file[0] == '.' && (bits || strncmp(file, FILE_TEMPORARY_PREFIX,
                                            strlen(FILE_TEMPORARY_PREFIX)) == 0)))
        return l->visit_other ? give_other(l, file) : 0;
    if (l->visit_other)
        return 0;
    memcpy(name, file, size - suffix);
    name[size - suffix] = '\0';
    if (bits || store_name_check(name, NULL)) {
        os_stat_info st;
        if (l->fs->os->stat_at(l->fs->os->ud, l->folder->fd, file, &st) != 0)
            return 0; /* removed meanwhile */
        store_misnamed(st.inode, file, name);
    }
    l->stopped = give_log(l, file, name) != 0;
    return l->stopped;
}

static int list_folder(void *arg, file_folder *folder)
{
    listing *l = arg;
    const os_table *os = l->fs->os;
    l->folder = folder;
    if (os->list(os->ud, folder->fd, list_log, l) < 0) {
        l->status = fail_errno(l->err, errno, "cannot list the folder %s in %s",
                               folder->name, l->fs->root);
    }
    return l->stopped || l->status;
}

static sessile_status list_logs(listing *l, const char *name)
{
    file_folder *folder;
    sessile_status status;
    if (name) {
        status = file_folder_get(l->fs, name, 0, &folder, l->err);
        if (!status)
            list_folder(l, folder);
    } else {
        status = file_folders_each(l->fs, list_folder, l, l->err);
    }
    if (status == SESSILE_NOTFOUND) {
        error_clear(l->err); /* nothing was ever written there */
        return SESSILE_OK;
    }
    return status ? status : l->status;
}

sessile_status file_list(void *self, const char *folder,
                         int (*visit)(void *arg, const char *folder, const char *name),
                         void *arg, sessile_error *err)
{
    listing l = {self, NULL, visit, NULL, NULL, arg, 0, SESSILE_OK, err};
    return list_logs(&l, folder);
}

sessile_status file_list_stat(void *self, const char *folder,
                              int (*visit)(void *arg, const char *folder,
                                           const char *name,
                                           const sessile_backend_stat *stat),
                              void *arg, sessile_error *err)
{
    listing l = {self, NULL, NULL, visit, NULL, arg, 0, SESSILE_OK, err};
    return list_logs(&l, folder);
}

sessile_status file_list_others(void *self, const char *folder,
                                int (*visit)(void *arg, const char *folder,
                                             const char *file, uint64_t bytes),
                                void *arg, sessile_error *err)
{
    listing l = {self, NULL, NULL, NULL, visit, arg, 0, SESSILE_OK, err};
    return list_logs(&l, folder);
}

static int found_one(void *arg, const char *folder, const char *name)
{
    (void)folder;
    (void)name;
    *(int *)arg = 1;
    return 1;
}

sessile_status file_has_logs(void *self, int *found, sessile_error *err)
{
    *found = 0;
    return file_list(self, NULL, found_one, found, err);
}

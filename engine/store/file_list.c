/*
 * file_list.c: which logs there are.
 *
 * Reads folders, opens no log. It must never take for a log what is none: pieces set
 * aside, files not yet named, strangers' names.
 */
#include "store/file.h"

#include <errno.h>
#include <string.h>

#include "store/wait.h"

typedef struct listing {
    file_store *fs;
    int agents;
    const char *folder;
    int (*visit)(void *arg, const char *folder, const char *name);
    void *arg;
    int stopped; /* visit has had enough */
    sessile_status status;
    sessile_error *err;
} listing;

/* One name in an agent's folder. Pieces set aside and temporary names are not logs. */
static int list_log(void *arg, const char *file)
{
    listing *l = arg;
    char name[FILE_NAME_SIZE];
    size_t size = strlen(file), suffix = strlen(FILE_SUFFIX);
    if (size <= suffix || size >= sizeof(name) ||
        strcmp(file + size - suffix, FILE_SUFFIX) != 0) {
        return 0;
    }
    memcpy(name, file, size - suffix);
    name[size - suffix] = '\0';
    l->stopped = store_name_ok(name) && l->visit(l->arg, l->folder, name) != 0;
    return l->stopped;
}

static int list_folder(void *arg, const char *name)
{
    listing *l = arg;
    file_folder *folder;
    os_stat_info st;
    const os_table *os = l->fs->os;
    if (!store_name_ok(name)) {
        return 0;
    }
    if (os->stat_at(os->ud, l->agents, name, &st) == 0 && !st.is_dir && !st.is_symlink) {
        return 0; /* a stray file is nobody's folder; a link is refused below */
    }
    l->status = file_folder_get(l->fs, name, 0, &folder, l->err);
    if (l->status != SESSILE_OK) {
        return 1;
    }
    l->folder = folder->name;
    if (os->list(os->ud, folder->fd, list_log, l) < 0) {
        l->status = fail_errno(l->err, errno, "cannot list the folder %s in %s", name,
                               l->fs->root);
    }
    return l->stopped || l->status != SESSILE_OK;
}

sessile_status file_list(void *self, const char *folder,
                         int (*visit)(void *arg, const char *folder, const char *name),
                         void *arg, sessile_error *err)
{
    file_store *fs = self;
    listing l = {fs, -1, NULL, visit, arg, 0, SESSILE_OK, err};
    sessile_status status = file_agents(fs, 0, &l.agents, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        return SESSILE_OK;
    }
    if (status != SESSILE_OK) {
        return status;
    }
    if (folder != NULL) {
        status = file_name_check(folder, err);
        if (status != SESSILE_OK) {
            return status;
        }
        list_folder(&l, folder);
        if (l.status == SESSILE_NOTFOUND) {
            error_clear(err);
            l.status = SESSILE_OK;
        }
    } else if (fs->os->list(fs->os->ud, l.agents, list_folder, &l) < 0) {
        return fail_errno(err, errno, "cannot list %s", fs->root);
    }
    return l.status;
}

static int found_one(void *arg, const char *folder, const char *name)
{
    (void)folder;
    (void)name;
    *(int *)arg = 1;
    return 1;
}

int file_has_logs(void *self)
{
    int found = 0;
    /* what cannot be looked at is taken for logs: no second keyring is made beside them
     */
    return file_list(self, NULL, found_one, &found, NULL) != SESSILE_OK || found;
}

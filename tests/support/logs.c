/*
 * logs.c: stores, keyrings and logs for the tests of the lower floors, and a table of
 * system calls that fails on purpose.
 *
 * Must never hide a failure: what is not the point of a test ends it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "support/logs.h"
#include "vault/guarded.h"
#include "store/file/open.h"
#include "store/ram.h"

/* ------------------------------------------------------------------ system calls */

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER; /* threads share a table */

/* 1 when this call is to fail. */
static int hit_counted(faults *f, fault_call kind)
{
    unsigned long n = f->kind == CALL_KINDS ? f->all : f->counts[kind];
    int mine = f->kind == CALL_KINDS || f->kind == kind;
    f->counts[kind]++;
    f->all++;
    if (!mine || (f->error == 0 && !f->half) || n < f->at || n > f->at + f->more)
        return 0;
    f->hits++;
    return 1;
}

static int hit(faults *f, fault_call kind)
{
    pthread_mutex_lock(&counting);
    int fails = hit_counted(f, kind);
    pthread_mutex_unlock(&counting);
    if (fails)
        errno = f->error;
    return fails;
}

static int f_open(void *ud, int dir, const char *path, int flags)
{
    return hit(ud, CALL_OPEN) ? -1 : os_posix.open_at(NULL, dir, path, flags);
}
static int f_close(void *ud, int fd)
{
    (void)ud;
    return os_posix.close(NULL, fd);
}
static int64_t f_pread(void *ud, int fd, void *out, size_t size, uint64_t offset)
{
    return hit(ud, CALL_READ) ? -1 : os_posix.pread(NULL, fd, out, size, offset);
}
static int64_t f_pwrite(void *ud, int fd, const void *data, size_t size, uint64_t offset)
{
    faults *f = ud;
    int fails = hit(f, CALL_WRITE);
    if (fails && f->half && f->hits == 1)
        return os_posix.pwrite(NULL, fd, data, (size + 1) / 2, offset);
    if (fails && f->error != 0)
        return -1;
    return os_posix.pwrite(NULL, fd, data, size, offset);
}
static int f_truncate(void *ud, int fd, uint64_t size)
{
    return hit(ud, CALL_TRUNCATE) ? -1 : os_posix.truncate(NULL, fd, size);
}
static int f_sync_data(void *ud, int fd)
{
    const faults *f = ud;
    if (hit(ud, CALL_SYNC_DATA))
        return -1;
    if (f->during_sync)
        f->during_sync(f->during_arg);
    return f->lazy ? 0 : os_posix.sync_data(NULL, fd);
}
static int f_sync_all(void *ud, int fd)
{
    const faults *f = ud;
    if (hit(ud, CALL_SYNC_ALL))
        return -1;
    return f->lazy ? 0 : os_posix.sync_all(NULL, fd);
}
static int f_stat_fd(void *ud, int fd, os_stat_info *out)
{
    return hit(ud, CALL_STAT_FD) ? -1 : os_posix.stat_fd(NULL, fd, out);
}
static int f_stat_at(void *ud, int dir, const char *name, os_stat_info *out)
{
    return hit(ud, CALL_STAT_AT) ? -1 : os_posix.stat_at(NULL, dir, name, out);
}
static int f_lock(void *ud, int fd, int mode)
{
    return hit(ud, CALL_LOCK) ? -1 : os_posix.lock(NULL, fd, mode);
}
static int f_mkdir(void *ud, int dir, const char *path)
{
    return hit(ud, CALL_MKDIR) ? -1 : os_posix.mkdir_at(NULL, dir, path);
}
static int f_rename(void *ud, int dir, const char *from, const char *to)
{
    return hit(ud, CALL_RENAME) ? -1 : os_posix.rename_new(NULL, dir, from, to);
}
static int f_unlink(void *ud, int dir, const char *name)
{
    return hit(ud, CALL_UNLINK) ? -1 : os_posix.unlink_at(NULL, dir, name);
}
static int f_list(void *ud, int dir, int (*visit)(void *, const char *), void *arg)
{
    return hit(ud, CALL_LIST) ? -1 : os_posix.list(NULL, dir, visit, arg);
}

void faults_init(faults *f)
{
    memset(f, 0, sizeof *f);
    f->table = os_posix;
    f->table.ud = f;
    f->table.open_at = f_open;
    f->table.close = f_close;
    f->table.pread = f_pread;
    f->table.pwrite = f_pwrite;
    f->table.truncate = f_truncate;
    f->table.sync_data = f_sync_data;
    f->table.sync_all = f_sync_all;
    f->table.stat_fd = f_stat_fd;
    f->table.stat_at = f_stat_at;
    f->table.lock = f_lock;
    f->table.mkdir_at = f_mkdir;
    f->table.rename_new = f_rename;
    f->table.unlink_at = f_unlink;
    f->table.list = f_list;
}

void faults_set(faults *f, fault_call kind, unsigned long at, int error)
{
    faults_none(f);
    f->kind = kind;
    f->at = at;
    f->error = error;
}

void faults_none(faults *f)
{
    memset(f->counts, 0, sizeof f->counts);
    f->all = f->hits = f->more = 0;
    f->error = f->half = 0;
}

void gate_wait(void *arg)
{
    gate *g = arg;
    atomic_fetch_add(&g->entered, 1);
    while (!atomic_load(&g->open))
        usleep(200);
}

/* ------------------------------------------------------------------ memory */

static void *metered(void *ud, void *ptr, size_t osize, size_t nsize)
{
    meter *m = ud;
    void *grown;
    if (nsize == 0) {
        m->live -= osize;
        free(ptr);
        return NULL;
    }
    if (++m->calls == m->fail_at)
        return NULL;
    grown = realloc(ptr, nsize);
    if (grown) {
        m->live += nsize - osize;
        m->peak = m->live > m->peak ? m->live : m->peak;
    }
    return grown;
}

allocator meter_allocator(meter *m)
{
    allocator a = {metered, m};
    return a;
}

/* ------------------------------------------------------------------ files */

void scratch_make(char folder[256])
{
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, 256, "%s/sessile-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void scratch_remove(const char *folder)
{
    assert_int_equal(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

char *file_read_all(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    char *data;
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    data = malloc((size_t)st.st_size + 1);
    assert_non_null(data);
    assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
    data[st.st_size] = 0;
    *size = (size_t)st.st_size;
    close(fd);
    return data;
}

void file_write_all(const char *path, const void *data, size_t size)
{
    /* Not O_TRUNC: ext4 takes a truncated and written file for one that is being
     * replaced, and flushes it when it is closed. */
    struct stat st;
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    assert_int_equal(fstat(fd, &st), 0);
    if ((size_t)st.st_size != size)
        assert_int_equal(ftruncate(fd, (off_t)size), 0);
    assert_int_equal(close(fd), 0);
}

void kit_path(const kit *k, const char *name, char out[600])
{
    snprintf(out, 600, "%s/agents/main/%s.jsonl", k->root, name);
}

uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* ------------------------------------------------------------------ stores */

const char *const kit_names[KIT_MODES] = {"plain file", "sealed file, AES",
                                          "sealed file, XChaCha20", "ram"};

int kit_possible(kit_mode mode)
{
    assert_int_equal(base_init(), 0);
    return mode != KIT_AES || suite_here(SUITE_AES_256_GCM);
}

static void attach(kit *k)
{
    sessile_error err = {0};
    sessile_status status;
    if (k->mode == KIT_RAM) {
        assert_int_equal(store_ram_open(&k->st, &k->os.table, &k->alloc, &err), 0);
        assert_int_equal(keyring_volatile(&k->keys, &k->alloc, &err), 0);
        return;
    }
    status = store_file_open(&k->st, k->root, &k->os.table, &k->alloc, &err);
    if (!status)
        status = keyring_open(
            &k->keys, k->st.table, k->st.self,
            k->mode == KIT_PLAIN ? SESSILE_KEY_PLAIN : SESSILE_KEY_SECRET, KIT_SECRET,
            suite_name(k->mode == KIT_AES ? SUITE_AES_256_GCM : SUITE_XCHACHA20_POLY1305),
            &k->os.table, &k->alloc, &err);
    if (status)
        print_error("status %d: %s\n", (int)status, err.message);
    assert_int_equal(status, SESSILE_OK);
}

void kit_open(kit *k, kit_mode mode)
{
    memset(k, 0, sizeof *k);
    assert_int_equal(base_init(), 0);
    k->mode = mode;
    faults_init(&k->os);
    k->alloc = meter_allocator(&k->memory);
    scratch_make(k->folder);
    snprintf(k->root, sizeof k->root, "%s/store", k->folder);
    attach(k);
}

void kit_again_close(kit *k)
{
    faults_none(&k->os);
    keyring_free(k->keys);
    store_close(&k->st);
    assert_int_equal(k->memory.live, 0);
}

void kit_close(kit *k)
{
    kit_again_close(k);
    scratch_remove(k->folder);
}

void kit_again(kit *other, const kit *k)
{
    memset(other, 0, sizeof *other);
    other->mode = k->mode;
    faults_init(&other->os);
    other->alloc = meter_allocator(&other->memory);
    memcpy(other->folder, k->folder, sizeof k->folder);
    memcpy(other->root, k->root, sizeof k->root);
    attach(other);
}

/* ------------------------------------------------------------------ logs */

sessile_status see(void *seen_, sessile_id id, const char *text, size_t size,
                   sessile_error *err)
{
    seen *s = seen_;
    (void)err;
    assert_int_equal(id, s->count);
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 16;
        s->texts = realloc(s->texts, s->capacity * sizeof *s->texts);
        s->sizes = realloc(s->sizes, s->capacity * sizeof *s->sizes);
        assert_true(s->texts && s->sizes);
    }
    s->texts[s->count] = malloc(size + 1);
    assert_non_null(s->texts[s->count]);
    memcpy(s->texts[s->count], text, size);
    s->texts[s->count][size] = 0;
    s->sizes[s->count++] = size;
    return SESSILE_OK;
}

static sessile_status say_lost(void *seen_, const log_flaw *lost, sessile_id id, buf *out,
                               sessile_error *err)
{
    (void)seen_;
    (void)err;
    assert_true(lost->first <= id && id <= lost->last);
    buf_printf(out, "lost %08x", (unsigned)id);
    return SESSILE_OK;
}

void kit_read_past(log_t *log, seen *s)
{
    sessile_error err = {0};
    assert_int_equal(log_read_damaged(log, see, say_lost, s, &err), SESSILE_OK);
    assert_int_equal(s->count, log_count(log));
}

void seen_free(seen *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->texts[i]);
    free(s->texts);
    free(s->sizes);
    memset(s, 0, sizeof *s);
}

char *entry_text(sessile_id id, const char *content, size_t padding)
{
    size_t room = strlen(content) + padding + 200;
    char *text = malloc(room), *fill = malloc(padding + 1);
    assert_true(text && fill);
    memset(fill, 'p', padding);
    fill[padding] = 0;
    snprintf(
        text, room,
        "{\"id\":\"%08x\",\"parent_id\":%s,\"timestamp\":\"2026-11-21T20:12:03.123Z\","
        "\"type\":\"%s\",\"data\":{\"content\":\"%s%s\"}}",
        (unsigned)id, id == 0 ? "null" : "\"00000000\"", id == 0 ? "session" : "message",
        content, fill);
    free(fill);
    return text;
}

void kit_create(kit *k, const char *name)
{
    sessile_error err = {0};
    char *header = entry_text(0, name, 0);
    sessile_status status = log_create(&k->st, k->keys, "main", name, header,
                                       strlen(header), -1, &k->alloc, &err);
    if (status)
        print_error("status %d: %s\n", (int)status, err.message);
    assert_int_equal(status, SESSILE_OK);
    free(header);
}

sessile_status kit_try(kit *k, const char *name, log_t **out, seen *s, uint64_t *torn,
                       sessile_error *err)
{
    return log_open(out, &k->st, k->keys, "main", name, 128, 2000, s ? see : NULL, s,
                    torn, &k->alloc, err);
}

log_t *kit_resume(kit *k, const char *name, seen *s)
{
    sessile_error err = {0};
    uint64_t torn;
    log_t *log;
    sessile_status status = kit_try(k, name, &log, s, &torn, &err);
    if (status)
        print_error("status %d: %s\n", (int)status, err.message);
    assert_int_equal(status, SESSILE_OK);
    assert_int_equal(torn, 0);
    return log;
}

log_t *kit_begin(kit *k, kit_mode mode, char *path)
{
    kit_open(k, mode);
    kit_create(k, "log");
    if (path)
        kit_path(k, "log", path);
    return kit_resume(k, "log", NULL);
}

sessile_status try_write(log_t *log, size_t count, const char *content, size_t padding,
                         sessile_error *err)
{
    sessile_slice texts[64] = {{NULL, 0}};
    size_t i;
    assert_true(count <= 64);
    sessile_status status = log_begin(log, NULL, NULL, err);
    if (status)
        return status;
    for (i = 0; i < count; i++) {
        char *text = entry_text(log_count(log) + (sessile_id)i, content, padding);
        texts[i] = (sessile_slice){text, strlen(text)};
    }
    status = log_append(log, texts, count, 0, err);
    log_end(log);
    for (i = 0; i < count; i++)
        free((char *)(uintptr_t)texts[i].data);
    return status;
}

void do_write(log_t *log, size_t count, const char *content, size_t padding)
{
    sessile_error err = {0};
    sessile_status status = try_write(log, count, content, padding, &err);
    if (status)
        print_error("status %d: %s\n", (int)status, err.message);
    assert_int_equal(status, SESSILE_OK);
}

void do_sync(log_t *log)
{
    sessile_error err = {0};
    assert_int_equal(log_sync(log, log_count(log), &err), SESSILE_OK);
}

int base_set_up(void **state)
{
    (void)state;
    return base_init();
}

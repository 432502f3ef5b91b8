/*
 * test_shared.c: what the handles of one log have in common: their syncs, what a failed
 * one means to each of them, and who may clear away what a crash has left.
 *
 * Threads only count what went wrong; assertions are for the thread that joins them.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/logs.h"
#include "support/sessions.h"
#include "store/file/file.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------ shared syncs */

typedef struct syncer {
    pthread_t thread;
    log_t *log;
    sessile_status status;
    sessile_error err;
} syncer;

static void *sync_one(void *arg)
{
    syncer *s = arg;
    s->status = log_sync(s->log, log_count(s->log), &s->err);
    return NULL;
}

static void syncer_start(syncer *s, log_t *log)
{
    *s = (syncer){.log = log};
    assert_int_equal(pthread_create(&s->thread, NULL, sync_one, s), 0);
}

/* Until that many handles of the log sync or wait for a sync. */
static void await_waiting(const kit *k, size_t count)
{
    file_shared *shared = ((file_store *)k->st.self)->shared;
    for (size_t found = 0; found < count; usleep(200)) {
        pthread_mutex_lock(&shared->mutex);
        found = file_shared_waiting(shared);
        pthread_mutex_unlock(&shared->mutex);
    }
}

enum { HANDLES = 4 };

/* Four handles with a write each; the first is in the middle of its sync. */
static void four_handles(kit *k, gate *g, log_t *logs[HANDLES], syncer s[HANDLES])
{
    kit_open(k, KIT_PLAIN);
    kit_create(k, "log");
    for (int i = 0; i < HANDLES; i++) {
        logs[i] = kit_resume(k, "log", NULL);
        do_write(logs[i], 1, "settled", 0);
        do_sync(logs[i]);
    }
    for (int i = 0; i < HANDLES; i++)
        do_write(logs[i], 1, "wants a sync", 0);
    faults_none(&k->os);
    atomic_init(&g->entered, 0);
    atomic_init(&g->open, 0);
    k->os.during_arg = g;
    k->os.during_sync = gate_wait;
    syncer_start(&s[0], logs[0]);
    while (!atomic_load(&g->entered))
        usleep(200);
    for (int i = 1; i < HANDLES; i++)
        syncer_start(&s[i], logs[i]);
    await_waiting(k, HANDLES);
}

static void four_end(kit *k, log_t *logs[HANDLES])
{
    k->os.during_sync = NULL;
    for (int i = 0; i < HANDLES; i++)
        log_close(logs[i]);
    kit_close(k);
}

static void handles_that_wait_together_pay_for_one_sync(void **state)
{
    kit k;
    gate g;
    log_t *logs[HANDLES];
    syncer s[HANDLES];
    (void)state;
    four_handles(&k, &g, logs, s);
    atomic_store(&g.open, 1);
    for (int i = 0; i < HANDLES; i++) {
        pthread_join(s[i].thread, NULL);
        assert_int_equal(s[i].status, SESSILE_OK);
    }
    /* one that began too early for three of them, and one for the three */
    assert_int_equal(k.os.counts[CALL_SYNC_DATA], 2);
    four_end(&k, logs);
}

static void sync_that_fails_fails_for_all_who_shared_it(void **state)
{
    kit k;
    gate g;
    log_t *logs[HANDLES];
    syncer s[HANDLES];
    (void)state;
    four_handles(&k, &g, logs, s);
    faults_set(&k.os, CALL_SYNC_DATA, 0, EIO);
    atomic_store(&g.open, 1);
    for (int i = 0; i < HANDLES; i++)
        pthread_join(s[i].thread, NULL);
    for (int i = 1; i < HANDLES; i++) {
        sessile_error err = {0};
        assert_int_equal(s[i].status, SESSILE_IO);
        /* and none of them writes any more, nor one that is opened later */
        assert_int_equal(try_write(logs[i], 1, "x", 0, &err), SESSILE_IO);
    }
    assert_int_equal(k.os.hits, 1); /* nor was it tried again */
    assert_int_equal(k.os.counts[CALL_SYNC_DATA], 1);
    sessile_error err = {0};
    log_t *late = kit_resume(&k, "log", NULL);
    assert_int_equal(try_write(late, 1, "x", 0, &err), SESSILE_IO);
    log_close(late);
    four_end(&k, logs);
}

/* Descriptors of the log, in the order of opening, and the one that was synced last. */
static struct {
    const os_table *faults;
    int opened[16], count, synced;
} seen_fds;

static int open_seen(void *ud, int dir, const char *path, int flags)
{
    int fd = seen_fds.faults->open_at(ud, dir, path, flags);
    if (strcmp(path, "log.jsonl") == 0 && seen_fds.count < 16)
        seen_fds.opened[seen_fds.count++] = fd;
    return fd;
}

static int sync_seen(void *ud, int fd)
{
    seen_fds.synced = fd;
    return seen_fds.faults->sync_data(ud, fd);
}

/* Only that descriptor hears of every failure that any of those who wait would. */
static void descriptor_that_was_open_longest_is_the_one_synced(void **state)
{
    kit k;
    gate g;
    os_table faults;
    log_t *logs[HANDLES];
    syncer s[HANDLES];
    (void)state;
    kit_open(&k, KIT_PLAIN);
    kit_create(&k, "log");
    faults = k.os.table;
    seen_fds.faults = &faults;
    seen_fds.count = 0;
    k.os.table.open_at = open_seen;
    k.os.table.sync_data = sync_seen;
    for (int i = 0; i < HANDLES; i++) {
        logs[i] = kit_resume(&k, "log", NULL);
        do_write(logs[i], 1, "settled", 0);
        do_sync(logs[i]);
    }
    for (int i = 0; i < HANDLES; i++)
        do_write(logs[i], 1, "wants a sync", 0);
    atomic_init(&g.entered, 0);
    atomic_init(&g.open, 0);
    k.os.during_arg = &g;
    k.os.during_sync = gate_wait;
    /* the second is syncing; of those who wait for the next one it is the first */
    syncer_start(&s[1], logs[1]);
    while (!atomic_load(&g.entered))
        usleep(200);
    assert_int_equal(seen_fds.synced, seen_fds.opened[1]);
    syncer_start(&s[3], logs[3]);
    syncer_start(&s[0], logs[0]);
    syncer_start(&s[2], logs[2]);
    await_waiting(&k, HANDLES);
    atomic_store(&g.open, 1);
    for (int i = 0; i < HANDLES; i++) {
        pthread_join(s[i].thread, NULL);
        assert_int_equal(s[i].status, SESSILE_OK);
    }
    assert_int_equal(seen_fds.synced, seen_fds.opened[0]);
    four_end(&k, logs);
}

/* ------------------------------------------------------------------ poison */

/* Entries that no line proves durable: written by a handle that was never synced. */
static void unproven(kit *k, const char *name)
{
    kit other;
    kit_create(k, name);
    kit_again(&other, k);
    log_t *log = kit_resume(&other, name, NULL);
    do_write(log, 2, "unproven", 0);
    log_close(log);
    kit_again_close(&other);
}

/* A store handle opened again writes what is not proved once more, syncs it, and goes on.
 */
static void assert_new_store_goes_on(const kit *k, const char *name, sessile_id count)
{
    kit fresh;
    sessile_error err = {0};
    seen all = {0};
    kit_again(&fresh, k);
    log_t *log = kit_resume(&fresh, name, &all);
    assert_int_equal(all.count, count);
    faults_none(&fresh.os);
    assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_OK);
    assert_true(fresh.os.counts[CALL_WRITE] >= 1);
    assert_int_equal(fresh.os.counts[CALL_SYNC_DATA], 1);
    log_end(log);
    do_write(log, 1, "goes on", 0);
    do_sync(log);
    assert_int_equal(log_count(log), count + 1);
    log_close(log);
    seen_free(&all);
    kit_again_close(&fresh);
}

static void sync_that_fails_while_settling_poisons(void **state)
{
    kit k;
    sessile_error err = {0};
    seen all = {0};
    (void)state;
    kit_open(&k, KIT_XCHACHA);
    unproven(&k, "log");
    log_t *log = kit_resume(&k, "log", NULL), *beside = kit_resume(&k, "log", NULL);
    faults_set(&k.os, CALL_SYNC_DATA, 0, EIO);
    assert_int_equal(try_write(log, 1, "x", 0, &err), SESSILE_IO);
    assert_int_equal(k.os.hits, 1);
    faults_none(&k.os);
    assert_int_equal(try_write(log, 1, "x", 0, &err), SESSILE_IO);
    assert_int_equal(try_write(beside, 1, "x", 0, &err), SESSILE_IO);
    assert_says(&err, "open it again and look");
    assert_int_equal(k.os.counts[CALL_SYNC_DATA], 0); /* none is tried again */
    /* it is read all the same */
    assert_int_equal(log_refresh(beside, NULL, NULL, &err), SESSILE_OK);
    assert_int_equal(log_read_range(beside, 0, 2, see, &all, &err), SESSILE_OK);
    assert_int_equal(all.count, 3);
    assert_new_store_goes_on(&k, "log", 3);
    seen_free(&all);
    log_close(log);
    log_close(beside);
    kit_close(&k);
}

/* The append wrote; its sync fails. Another log of the store is not concerned. */
static void sync_that_fails_after_an_append_poisons_that_log_alone(void **state)
{
    kit k;
    sessile_error err = {0};
    (void)state;
    kit_open(&k, KIT_XCHACHA);
    kit_create(&k, "log");
    kit_create(&k, "other");
    log_t *log = kit_resume(&k, "log", NULL), *other = kit_resume(&k, "other", NULL);
    do_write(log, 1, "a", 0);
    faults_set(&k.os, CALL_SYNC_DATA, 0, ENOSPC);
    assert_int_equal(log_sync(log, 2, &err), SESSILE_IO);
    faults_none(&k.os);
    assert_int_equal(log_sync(log, 2, &err), SESSILE_IO);
    assert_int_equal(k.os.counts[CALL_SYNC_DATA], 0);
    do_write(other, 1, "b", 0);
    do_sync(other);
    /* also when every handle of it was closed in between */
    log_close(log);
    log = kit_resume(&k, "log", NULL);
    assert_int_equal(try_write(log, 1, "x", 0, &err), SESSILE_IO);
    assert_new_store_goes_on(&k, "log", 2);
    log_close(log);
    log_close(other);
    kit_close(&k);
}

/* Wherever setting a torn end aside fails: its bytes are in the log or in a piece. */
static void sync_that_fails_while_setting_aside_loses_no_byte(void **state)
{
    static const char torn[] = "{\"id\":\"00000001\",\"torn";
    (void)state;
    for (unsigned long at = 0;; at++) {
        kit k;
        char path[600], piece[700];
        sessile_error err = {0};
        struct stat st, log_st;
        kit_open(&k, KIT_PLAIN);
        kit_create(&k, "log");
        log_t *log = kit_resume(&k, "log", NULL);
        kit_path(&k, "log", path);
        assert_int_equal(stat(path, &log_st), 0);
        FILE *file = fopen(path, "ab");
        assert_non_null(file);
        fputs(torn, file);
        fclose(file);
        faults_set(&k.os, CALL_SYNC_ALL, at, EIO);
        sessile_status status = try_write(log, 1, "a", 0, &err);
        int hit = k.os.hits > 0;
        faults_none(&k.os);
        assert_int_equal(status, hit ? SESSILE_IO : SESSILE_OK);
        snprintf(piece, sizeof piece, "%.*s.torn-%lld", (int)(strlen(path) - 6), path,
                 (long long)log_st.st_size);
        int in_piece = stat(piece, &st) == 0 && (size_t)st.st_size == strlen(torn);
        assert_int_equal(stat(path, &st), 0);
        int in_log = (size_t)(st.st_size - log_st.st_size) == strlen(torn);
        assert_true(in_piece || in_log);
        if (hit && !in_log) /* cut, and the cut may not last */
            assert_int_equal(try_write(log, 1, "x", 0, &err), SESSILE_IO);
        assert_int_equal(log_torn(log), hit ? 0 : strlen(torn));
        log_close(log);
        kit_close(&k);
        if (!hit)
            break;
        assert_true(at < 20);
    }
}

static void close_that_cannot_sync_says_so_and_poisons(void **state)
{
    place_files_only();
    const os_table *real = os_current;
    sessile_error err;
    sessile_id id;
    faults os;
    place p;
    (void)state;
    faults_init(&os);
    os_current = &os.table;
    place_open(&p, STORE_PLAIN); /* its durability is none */
    os_current = real;
    sessile_session *s = session_made(p.store, "s"), *beside;
    say(s, "user", "one");
    beside = session_resumed(p.store, "s");
    say(s, "user", "two");
    faults_set(&os, CALL_SYNC_DATA, 0, EIO);
    assert_int_equal(sessile_session_close(s, &err), SESSILE_IO);
    assert_says(&err, "s.jsonl");
    faults_none(&os);
    assert_int_equal(try_say(beside, "{\"role\":\"user\",\"content\":\"x\"}", &id, &err),
                     SESSILE_IO);
    char *keys = context_keys(beside, SESSILE_NO_ID);
    assert_string_equal(keys, "00000001 00000002");
    free(keys);
    assert_int_equal(sessile_session_close(beside, &err), SESSILE_IO);

    sessile_store *again = place_again(&p);
    beside = session_resumed(again, "s");
    assert_int_equal(say(beside, "user", "three"), 3);
    session_closed(beside);
    place_again_close(&p, again);
    place_close(&p);
}

/* ------------------------------------------------------------------ leftovers */

typedef struct swept {
    int count, remove;
    char folder[64], file[64];
    uint64_t bytes;
} swept;

static int note(void *arg, const char *folder, const char *file, uint64_t bytes)
{
    swept *s = arg;
    s->count++;
    s->bytes = bytes;
    snprintf(s->folder, sizeof s->folder, "%s", folder ? folder : "");
    snprintf(s->file, sizeof s->file, "%s", file);
    return s->remove;
}

static int sweep(const kit *k, int remove, swept *out)
{
    sessile_error err = {0};
    *out = (swept){.remove = remove};
    assert_int_equal(k->st.table->sweep(k->st.self, note, out, &err), SESSILE_OK);
    return out->count;
}

/* A file in the folder of the agent (or in ROOT), that many minutes old. */
static void leave(const kit *k, const char *folder, const char *name, int minutes)
{
    char path[700];
    struct timespec times[2];
    snprintf(path, sizeof path, "%s/%s%s", k->root, folder, name);
    file_write_all(path, "left", 4);
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= 60 * minutes;
    times[1] = times[0];
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int is_there(const kit *k, const char *path)
{
    char whole[700];
    struct stat st;
    snprintf(whole, sizeof whole, "%s/%s", k->root, path);
    return stat(whole, &st) == 0;
}

static void leftovers_of_a_crash_are_found_and_removed(void **state)
{
    kit k;
    swept s;
    (void)state;
    kit_open(&k, KIT_PLAIN);
    assert_int_equal(sweep(&k, 1, &s), 0); /* no store yet */
    kit_create(&k, "log");
    assert_int_equal(sweep(&k, 1, &s), 0);
    leave(&k, "agents/main/", ".new-0123456789abcdef", 120);
    assert_int_equal(sweep(&k, 0, &s), 1);
    assert_string_equal(s.folder, "main");
    assert_string_equal(s.file, ".new-0123456789abcdef");
    assert_int_equal(s.bytes, 4);
    assert_true(is_there(&k, "agents/main/.new-0123456789abcdef"));
    assert_int_equal(sweep(&k, 1, &s), 1);
    assert_false(is_there(&k, "agents/main/.new-0123456789abcdef"));
    leave(&k, "", ".new-0123456789abcdef", 120);
    assert_int_equal(sweep(&k, 1, &s), 1);
    assert_string_equal(s.folder, "");
    assert_false(is_there(&k, ".new-0123456789abcdef"));
    log_close(kit_resume(&k, "log", NULL)); /* what has a name stays */
    kit_close(&k);
}

static void what_may_be_in_use_is_no_leftover(void **state)
{
    kit k;
    swept s;
    sessile_error err = {0};
    sessile_backend_draft *draft;
    char path[700];
    (void)state;
    kit_open(&k, KIT_PLAIN);
    kit_create(&k, "log");
    /* young: whoever makes it may not have come to its lock yet */
    leave(&k, "agents/main/", ".new-0123456789abcdef", 10);
    /* not ours, by its name */
    leave(&k, "agents/main/", ".new-0123456789abcde", 120);
    leave(&k, "agents/main/", ".new-0123456789abcdeF", 120);
    leave(&k, "agents/main/", "old.torn-12", 120);
    assert_int_equal(sweep(&k, 1, &s), 0);

    /* old, and still being written */
    assert_int_equal(k.st.table->draft_new(k.st.self, "main", "log", &draft, &err),
                     SESSILE_OK);
    assert_int_equal(k.st.table->draft_write(draft, "half", 4, &err), SESSILE_OK);
    /* the one beside ours of before */
    snprintf(path, sizeof path,
             "cd '%s/agents/main' && mv .new-0123456789abcdef k && "
             "touch -d '2 hours ago' .new-????????????????",
             k.root);
    assert_int_equal(system(path), 0);
    assert_int_equal(sweep(&k, 1, &s), 0);
    k.st.table->draft_drop(draft);
    kit_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_that_wait_together_pay_for_one_sync),
        cmocka_unit_test(sync_that_fails_fails_for_all_who_shared_it),
        cmocka_unit_test(descriptor_that_was_open_longest_is_the_one_synced),
        cmocka_unit_test(sync_that_fails_while_settling_poisons),
        cmocka_unit_test(sync_that_fails_after_an_append_poisons_that_log_alone),
        cmocka_unit_test(sync_that_fails_while_setting_aside_loses_no_byte),
        cmocka_unit_test(close_that_cannot_sync_says_so_and_poisons),
        cmocka_unit_test(leftovers_of_a_crash_are_found_and_removed),
        cmocka_unit_test(what_may_be_in_use_is_no_leftover),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

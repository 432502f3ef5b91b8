/*
 * test_writers_stopped.c: writers that are stopped half way and wake up, file systems of
 * a network, and many threads on one session.
 *
 * Threads only count what went wrong; assertions are for the thread that joins them. No
 * test measures time.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/logs.h"
#include "support/sessions.h"
#include "run/begin.h"
#include "operations/append.h"
#include "operations/messages.h"
#include "session/write.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support/children.h"

static const char hello[] = "{\"role\":\"user\",\"content\":\"hello\"}";

static sessile_slice text_of(const char *text)
{
    return (sessile_slice){text, strlen(text)};
}

/* ------------------------------------------------------------------ stopped writers */

/* Looks at the session, is stopped, and writes when it wakes up. */
static void look_stop_and_write(void *arg, int in, int out)
{
    place *p = arg;
    sessile_store *st = place_again(p);
    sessile_session *s = session_resumed(st, "s");
    sessile_run_options options;
    sessile_outcome outcome;
    sessile_error err;
    sessile_id id;
    sessile_run_options_init(&options);
    child_tell(out, 'r');
    raise(SIGSTOP);
    child_tell(out, turn_of_hello(s, &options, &outcome, &err) == SESSILE_CONFLICT ? 'c'
                                                                                   : 'x');
    /* a bare message goes to the head, which descends from what it saw */
    child_tell(out, !session_append_message(s->core, text_of(hello), &id, &err) &&
                            id == 5 && s->core->tree.nodes[id].parent == 4
                        ? 'a'
                        : 'x');
    child_hear(in);
    session_closed(s);
    place_again_close(p, st);
}

static void stopped_writer_that_wakes_up_is_refused_or_reads_on(void **state)
{
    place_files_only();
    place *p = *state;
    sessile_session *s = session_made(p->store, "s");
    sessile_run_options options;
    sessile_outcome out;
    sessile_error err;
    int status;

    sessile_run_options_init(&options);
    child c = child_start(look_stop_and_write, p);
    assert_int_equal(child_hear(c.from), 'r');
    assert_int_equal(waitpid(c.pid, &status, WUNTRACED), c.pid);
    assert_true(WIFSTOPPED(status));
    for (int i = 0; i < 2; i++)
        assert_int_equal(turn_of_hello(s, &options, &out, &err), SESSILE_OK);
    assert_int_equal(kill(c.pid, SIGCONT), 0);
    assert_int_equal(child_hear(c.from), 'c');
    assert_int_equal(child_hear(c.from), 'a');
    child_end(&c);
    char *keys = context_keys(s, SESSILE_NO_ID);
    assert_string_equal(keys, "00000001 00000003 00000005");
    free(keys);
    session_closed(s);
}

/* Its every write is made in two halves, and it is stopped between them. */
static int64_t stop_and_write(void *ud, int fd, const void *data, size_t size,
                              uint64_t offset)
{
    (void)ud;
    int64_t n = os_posix.pwrite(NULL, fd, data, size / 2, offset);
    raise(SIGSTOP);
    return n;
}

static void stop_half_way(void *arg, int in, int out)
{
    const os_table *real = os_current;
    place *p = arg;
    os_table table = os_posix;
    sessile_error err;
    sessile_id id;
    os_current = &table;
    sessile_store *st = place_again(p);
    sessile_session *s = session_resumed(st, "s");
    table.pwrite = stop_and_write;
    child_tell(out, 'r');
    sessile_status status = session_append_message(s->core, text_of(hello), &id, &err);
    table.pwrite = os_posix.pwrite;
    child_tell(out, !status && id == 1 ? 'a' : 'x');
    child_hear(in);
    session_closed(s);
    place_again_close(p, st);
    os_current = real;
}

static void writer_stopped_half_way_is_never_written_into(void **state)
{
    place_files_only();
    place *p = *state;
    sessile_session *s = session_made(p->store, "s");
    sessile_error err;
    sessile_id id;
    int status, stops = 0;

    atomic_store(&s->core->waiting.timeout_ms, 0);
    child c = child_start(stop_half_way, p);
    assert_int_equal(child_hear(c.from), 'r');
    for (;;) {
        assert_int_equal(waitpid(c.pid, &status, WUNTRACED | WCONTINUED), c.pid);
        if (WIFCONTINUED(status))
            continue;
        assert_true(WIFSTOPPED(status));
        stops++;
        /* with half a line on the disk: nothing is cut, nothing is written into it */
        assert_int_equal(session_append_message(s->core, text_of(hello), &id, &err),
                         SESSILE_BUSY);
        assert_says(&err, "is stopped");
        char *keys = context_keys(s, SESSILE_NO_ID);
        assert_string_equal(keys, "");
        free(keys);
        if (stops == 3)
            break;
        assert_int_equal(kill(c.pid, SIGCONT), 0);
    }
    /* killed there, it leaves a torn end that the next writer sets aside and reports */
    assert_int_equal(sessile_session_torn(s), 0);
    assert_int_equal(kill(c.pid, SIGKILL), 0);
    assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
    close(c.to);
    close(c.from);
    assert_int_equal(session_append_message(s->core, text_of(hello), &id, &err),
                     SESSILE_OK);
    assert_int_equal(id, 1);
    assert_true(sessile_session_torn(s) > 0);
    session_closed(s);
}

/* ------------------------------------------------------------------ the fence */

/* A backend that has no locks, and whose log grows between our look and our append. */
static sessile_backend fenced;
static const sessile_backend *fenced_real;
static int fenced_times; /* how often an append comes too late; -1: always */
static void (*fenced_between)(void);

static sessile_status late_append(sessile_backend_log *log, sessile_log_end *end,
                                  const void *data, size_t size, uint64_t count,
                                  const unsigned char tag[16], int *poisoned,
                                  sessile_error *err)
{
    *poisoned = 0;
    if (fenced_times) {
        fenced_times -= fenced_times > 0;
        if (fenced_between)
            fenced_between();
        else
            return *err = (sessile_error){.code = SESSILE_CONFLICT,
                                          .message = "it has grown"},
                   err->code;
    }
    return fenced_real->append(log, end, data, size, count, tag, poisoned, err);
}

static sessile_session *fenced_open(place *p, const char *id)
{
    fenced_real = p->store->core->backend.table;
    fenced = *fenced_real;
    fenced.append = late_append;
    fenced.capabilities &= ~(unsigned)(SESSILE_BACKEND_LOCKS | SESSILE_BACKEND_CUTS);
    p->store->core->backend.table = &fenced;
    sessile_session *s = session_resumed(p->store, id);
    p->store->core->backend.table = fenced_real;
    return s;
}

static sessile_session *fenced_other;
static void other_writes(void)
{
    sessile_error err;
    sessile_id id;
    if (session_append_message(fenced_other->core, text_of(hello), &id, &err))
        fenced_times = -2;
}

static void log_that_grew_before_the_append_is_read_and_written_on(void **state)
{
    place_files_only();
    place *p = *state;
    sessile_error err;
    sessile_id id;

    fenced_other = session_made(p->store, "s");
    sessile_session *s = fenced_open(p, "s");
    /* truly: another handle writes between our look and our append, three times over */
    fenced_times = 3;
    fenced_between = other_writes;
    assert_int_equal(session_append_message(s->core, text_of(hello), &id, &err),
                     SESSILE_OK);
    assert_int_equal(fenced_times, 0);
    assert_int_equal(id, 4);
    assert_int_equal(s->core->tree.nodes[4].parent, 3);
    char *keys = context_keys(fenced_other, SESSILE_NO_ID);
    assert_string_equal(keys, "00000001 00000002 00000003 00000004");
    free(keys);

    /* a turn is thought on a base: what came between is its conflict, told as such */
    sessile_run_options options;
    sessile_outcome out;
    sessile_run_options_init(&options);
    fenced_times = 1;
    assert_int_equal(turn_of_hello(s, &options, &out, &err), SESSILE_CONFLICT);
    assert_says(&err, "the conversation moved on");
    options.on_conflict = SESSILE_ON_CONFLICT_APPEND;
    fenced_times = 1;
    assert_int_equal(turn_of_hello(s, &options, &out, &err), SESSILE_OK);
    assert_int_equal(s->core->tree.nodes[out.first].parent, out.first - 1);

    /* one that never comes in time ends, and nothing of it stays */
    sessile_id before = log_count(s->core->log);
    fenced_times = -1;
    fenced_between = NULL;
    assert_int_equal(session_append_message(s->core, text_of(hello), &id, &err),
                     SESSILE_CONFLICT);
    assert_int_equal(log_count(s->core->log), before);
    assert_int_equal(s->core->tree.node_count, before);
    fenced_times = 0;
    assert_int_equal(session_append_message(s->core, text_of(hello), &id, &err),
                     SESSILE_OK);
    assert_int_equal(id, before);
    session_closed(s);
    session_closed(fenced_other);
}

/* ------------------------------------------------------------------ network */

static int network_asked;
static int on_nfs(void *ud, int fd, char *name, size_t size)
{
    (void)ud, (void)fd;
    network_asked++;
    snprintf(name, size, "NFS");
    return 1;
}

static sessile_status open_with(sessile_store **out, const os_table *os, const char *path,
                                int allow, sessile_error *err)
{
    const os_table *real = os_current;
    sessile_store_options options;
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_PLAIN;
    options.allow_network = allow;
    os_current = os;
    sessile_status status = sessile_open(out, path, &options, err);
    os_current = real;
    return status;
}

static void network_file_systems_are_read_and_not_written(void **state)
{
    place_files_only();
    place *p = *state;
    os_table table = os_posix;
    sessile_session_options named = {.id = text_of("s")}, fresh = {.id = text_of("t")};
    sessile_session *s = session_made(p->store, "s");
    sessile_store *st;
    sessile_error err;
    sessile_id id;
    char path[600];

    table.network = on_nfs;
    say(s, "user", "from a local disk");
    session_closed(s);
    /* a torn end, so that opening has something to mend */
    snprintf(path, sizeof path, "%s/agents/main/s.jsonl", p->folder);
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    fputs("{\"id\":\"0000", file);
    fclose(file);

    assert_int_equal(open_with(&st, &table, p->folder, 0, &err), SESSILE_OK);
    assert_int_equal(sessile_resume(&s, st, &named, &err), SESSILE_OK);
    char *keys = context_keys(s, SESSILE_NO_ID);
    assert_string_equal(keys, "00000001");
    free(keys);
    assert_int_equal(sessile_session_torn(s), 0);
    assert_int_equal(sessile_append(s, text_of(hello), &id, &err), SESSILE_UNSUPPORTED);
    assert_says(&err, p->folder);
    assert_says(&err, "/agents/main is on a network file system (NFS)");
    assert_says(&err, "allow_network");
    assert_int_equal(sessile_session_close(s, &err), SESSILE_OK);
    assert_int_equal(sessile_create(&s, st, &fresh, &err), SESSILE_UNSUPPORTED);
    sessile_store_close(st);

    /* allowed: all of it; and it is asked once a folder, not once an append */
    assert_int_equal(open_with(&st, &table, p->folder, 1, &err), SESSILE_OK);
    assert_int_equal(sessile_resume(&s, st, &named, &err), SESSILE_OK);
    assert_true(sessile_session_torn(s) > 0);
    network_asked = 0;
    for (int i = 0; i < 5; i++)
        assert_int_equal(sessile_append(s, text_of(hello), &id, &err), SESSILE_OK);
    assert_int_equal(network_asked, 0);
    assert_int_equal(sessile_session_close(s, &err), SESSILE_OK);
    sessile_store_close(st);

    /* nor is a store begun there */
    snprintf(path, sizeof path, "%s/new", p->folder);
    assert_int_equal(open_with(&st, &table, path, 0, &err), SESSILE_UNSUPPORTED);
    assert_says(&err, "/new is on a network file system (NFS)");
    assert_int_equal(open_with(&st, &table, path, 1, &err), SESSILE_OK);
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ crowds */

enum { CROWD = 16, EACH = 12 };

typedef struct member {
    pthread_t thread;
    sessile_session *s;
    atomic_int *stop;
    int wrong, cancelled, written;
} member;

static void *write_some(void *arg)
{
    member *m = arg;
    for (int i = 0; i < EACH; i++) {
        sessile_error err;
        sessile_id id;
        sessile_status status =
            session_append_message(m->s->core, text_of(hello), &id, &err);
        int there =
            !status || (status == SESSILE_CANCELLED && strstr(err.message, "is written"));
        m->written += there;
        m->cancelled += status == SESSILE_CANCELLED;
        m->wrong += status && status != SESSILE_CANCELLED;
    }
    return NULL;
}

static void *read_some(void *arg)
{
    member *m = arg;
    size_t before = 0;
    do {
        sessile_message *rows;
        sessile_error err;
        size_t count;
        sessile_status status = session_messages(m->s->core, NULL, &rows, &count, &err);
        if (!status) {
            m->wrong += count < before;
            before = count;
            sessile_free(rows);
        } else {
            m->wrong += status != SESSILE_CANCELLED;
        }
    } while (!atomic_load(m->stop));
    return NULL;
}

static void *interrupt_all(void *arg)
{
    member *m = arg;
    while (!atomic_load(m->stop)) {
        sessile_interrupt(m->s);
        sched_yield();
    }
    return NULL;
}

/* How many of the session's messages there are to a handle that opens it now. */
static size_t count_messages(const place *p)
{
    sessile_store *st = place_again(p);
    sessile_session *s = session_resumed(st, "s");
    size_t n = log_count(s->core->log) - 1;
    session_closed(s);
    place_again_close(p, st);
    return n;
}

static void crowd(place *p, int handles, int readers, int storm)
{
    sessile_session *s[CROWD];
    member writers[CROWD], others[CROWD + 1];
    atomic_int stop;
    int written = 0, other_count = readers;

    atomic_init(&stop, 0);
    session_closed(session_made(p->store, "s"));
    p->store->core->durability = SESSILE_SYNC;
    for (int i = 0; i < handles; i++)
        s[i] = session_that_waits(p, "s", 1, 60000);
    for (int i = 0; i < readers; i++) {
        others[i] = (member){.s = s[i % handles], .stop = &stop};
        assert_int_equal(pthread_create(&others[i].thread, NULL, read_some, &others[i]),
                         0);
    }
    if (storm) {
        others[other_count] = (member){.s = s[0], .stop = &stop};
        assert_int_equal(pthread_create(&others[other_count].thread, NULL, interrupt_all,
                                        &others[other_count]),
                         0);
        other_count++;
    }
    for (int i = 0; i < CROWD - readers; i++) {
        writers[i] = (member){.s = s[i % handles]};
        assert_int_equal(
            pthread_create(&writers[i].thread, NULL, write_some, &writers[i]), 0);
    }
    for (int i = 0; i < CROWD - readers; i++) {
        pthread_join(writers[i].thread, NULL);
        assert_int_equal(writers[i].wrong, 0);
        assert_true(storm || writers[i].written == EACH);
        assert_true(storm || writers[i].cancelled == 0);
        written += writers[i].written;
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < other_count; i++) {
        pthread_join(others[i].thread, NULL);
        assert_int_equal(others[i].wrong, 0);
    }
    for (int i = 0; i < handles; i++)
        session_closed(s[i]);
    if (p->kind != STORE_RAM)
        assert_int_equal(count_messages(p), written);
}

static void sixteen_threads_write_to_one_handle(void **state)
{
    crowd(*state, 1, 0, 0);
}

static void sixteen_threads_write_to_sixteen_handles(void **state)
{
    crowd(*state, CROWD, 0, 0);
}

static void eight_read_while_eight_write(void **state)
{
    crowd(*state, 1, 8, 0);
}

static void storm_of_interrupts_loses_and_doubles_nothing(void **state)
{
    crowd(*state, 1, 2, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_DISK(stopped_writer_that_wakes_up_is_refused_or_reads_on),
        ON_DISK(writer_stopped_half_way_is_never_written_into),
        EACH_STORE(log_that_grew_before_the_append_is_read_and_written_on),
        ON_DISK(network_file_systems_are_read_and_not_written),
        EACH_STORE(sixteen_threads_write_to_one_handle),
        EACH_STORE(sixteen_threads_write_to_sixteen_handles),
        EACH_STORE(eight_read_while_eight_write),
        EACH_STORE(storm_of_interrupts_loses_and_doubles_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

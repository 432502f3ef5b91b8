/*
 * test_writers.c: several writers on one session: who waits for whom, how long, what ends
 * the wait, and what is said when it was in vain.
 *
 * Threads only count what went wrong; assertions are for the thread that joins them. No
 * test measures time: what must not wait for ever is given a wait without end, so that a
 * test which fails hangs.
 */
#include "support/logs.h"
#include "support/sessions.h"
#include "run/begin.h"
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

static const char hello[] = "{\"role\":\"user\",\"content\":\"hello\"}";

static sessile_slice text_of(const char *text)
{
    return (sessile_slice){text, strlen(text)};
}

static void assert_says(const sessile_error *err, const char *part)
{
    if (!strstr(err->message, part))
        fail_msg("\"%s\" is not in \"%s\"", part, err->message);
}

/* ------------------------------------------------------------------ other processes */

/* A child that goes step by step: it says a byte and waits for one. */
typedef struct child {
    pid_t pid;
    int to, from;
} child;

static child child_start(void (*work)(void *arg, int in, int out), void *arg)
{
    int down[2], up[2];
    child c;
    assert_int_equal(pipe(down) | pipe(up), 0);
    c.pid = fork();
    assert_true(c.pid >= 0);
    if (c.pid == 0) {
        close(down[1]);
        close(up[0]);
        work(arg, down[0], up[1]);
        _exit(0);
    }
    close(down[0]);
    close(up[1]);
    c.to = down[1];
    c.from = up[0];
    return c;
}

static char hear(int fd)
{
    char byte = 0;
    return read(fd, &byte, 1) == 1 ? byte : 0;
}

static void tell(int fd, char byte)
{
    if (write(fd, &byte, 1) != 1)
        _exit(3);
}

static void child_end(child *c)
{
    int status;
    tell(c->to, 'q');
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(c->to);
    close(c->from);
}

/* ------------------------------------------------------------------ BUSY */

/* Opens the log as another process would, and holds its lock until told. */
static void hold_the_lock(void *arg, int in, int out)
{
    kit other;
    sessile_error err;
    kit_again(&other, arg);
    log_t *log = kit_resume(&other, "log", NULL);
    tell(out, !log_begin(log, NULL, NULL, &err) ? 'y' : 'n');
    hear(in);
    log_end(log);
    log_close(log);
    kit_again_close(&other);
}

static void BUSY_names_the_process_that_holds_the_lock(void **state)
{
    place_files_only();
    kit k;
    sessile_error err = {0};
    char pid[64];
    (void)state;
    kit_open(&k, KIT_PLAIN);
    kit_create(&k, "log");
    log_t *log = kit_resume(&k, "log", NULL);
    child c = child_start(hold_the_lock, &k);
    assert_int_equal(hear(c.from), 'y');
    log_set_timeout(log, 0);
    assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_BUSY);
    snprintf(pid, sizeof pid, "process %d (test_writers)", (int)c.pid);
    assert_says(&err, pid);
    assert_says(&err, "log.jsonl");
    assert_says(&err, "wait longer, or try again when it is done");

    /* one that was stopped will not let go by itself */
    int status;
    assert_int_equal(kill(c.pid, SIGSTOP), 0);
    assert_int_equal(waitpid(c.pid, &status, WUNTRACED), c.pid);
    assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_BUSY);
    assert_says(&err, pid);
    snprintf(pid, sizeof pid, "is stopped: continue it (kill -CONT %d)", (int)c.pid);
    assert_says(&err, pid);
    assert_int_equal(kill(c.pid, SIGCONT), 0);

    child_end(&c);
    assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_OK);
    log_end(log);
    log_close(log);
    kit_close(&k);
}

static int nobody_seen(void *ud, int fd, os_holder *out)
{
    (void)ud, (void)fd, (void)out;
    errno = ESRCH;
    return -1;
}

static int not_told(void *ud, int fd, os_holder *out)
{
    (void)ud, (void)fd, (void)out;
    errno = ENOSYS;
    return -1;
}

static int looks;
static int look_counted(void *ud, int fd, os_holder *out)
{
    looks++;
    return os_posix.lock_holder(ud, fd, out);
}

static void BUSY_names_another_handle_of_this_process(void **state)
{
    place_files_only();
    kit k;
    sessile_error err = {0};
    (void)state;
    kit_open(&k, KIT_PLAIN);
    kit_create(&k, "log");
    log_t *a = kit_resume(&k, "log", NULL), *b = kit_resume(&k, "log", NULL);
    assert_int_equal(log_begin(a, NULL, NULL, &err), SESSILE_OK);
    log_set_timeout(b, 0);
    assert_int_equal(log_begin(b, NULL, NULL, &err), SESSILE_BUSY);
    assert_says(&err, "another handle of this process holds log.jsonl: wait longer");

    /* and the call fails with BUSY alone, whatever can be told */
    k.os.table.lock_holder = nobody_seen;
    assert_int_equal(log_begin(b, NULL, NULL, &err), SESSILE_BUSY);
    assert_says(&err, "cannot be seen from here or has just let go: wait longer");
    k.os.table.lock_holder = not_told;
    assert_int_equal(log_begin(b, NULL, NULL, &err), SESSILE_BUSY);
    assert_says(&err, "without /proc it cannot be told who: wait longer");
    k.os.table.lock_holder = NULL;
    assert_int_equal(log_begin(b, NULL, NULL, &err), SESSILE_BUSY);
    assert_says(&err, "without /proc");

    /* asked only when BUSY is what the caller hears: not by a read that meets a writer */
    k.os.table.lock_holder = look_counted;
    looks = 0;
    char path[600];
    kit_path(&k, "log", path);
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    fputs("{\"id\":\"00000001\"", file);
    fclose(file);
    assert_int_equal(log_refresh(b, NULL, NULL, &err), SESSILE_OK);
    assert_int_equal(looks, 0);
    assert_int_equal(log_begin(b, NULL, NULL, &err), SESSILE_BUSY);
    assert_int_equal(looks, 1);
    log_end(a);
    log_close(a);
    log_close(b);
    kit_close(&k);
}

/* ------------------------------------------------------------------ how long */

static sessile_session *opened(place *p, const char *id, int has_timeout, int timeout_ms)
{
    sessile_session_options options = {
        .id = text_of(id), .has_timeout = has_timeout, .timeout_ms = timeout_ms};
    sessile_session *s;
    sessile_error err;
    if (session_open(&s, p->store, &options, &err))
        fail_msg("%s", err.message);
    return s;
}

static void each_handle_and_run_waits_as_long_as_it_was_told(void **state)
{
    place_files_only();
    place *p = *state;
    sessile_session *holder = session_made(p->store, "s"), *s;
    sessile_run_options options = {0};
    sessile_slice message = text_of(hello);
    sessile_error err;
    sessile_run *run;
    sessile_id id;

    p->store->timeout_ms = -1; /* whoever takes this one hangs */
    assert_int_equal(log_begin(holder->log, NULL, NULL, &err), SESSILE_OK);
    s = opened(p, "s", 1, 0);
    assert_int_equal(session_append_message(s, message, &id, &err), SESSILE_BUSY);
    assert_says(&err, "session \"s\": ");
    session_closed(s);

    s = opened(p, "s", 0, 0);
    assert_int_equal(sessile_session_set_timeout(s, 20, &err), SESSILE_OK);
    assert_int_equal(session_append_message(s, message, &id, &err), SESSILE_BUSY);
    assert_int_equal(sessile_session_set_timeout(s, -2, &err), SESSILE_INVALID);
    assert_int_equal(sessile_session_set_timeout(s, -1, &err), SESSILE_OK);
    options.has_timeout = 1;
    options.timeout_ms = 10;
    assert_int_equal(sessile_turn_begin(&run, s, &message, 1, &options, &err),
                     SESSILE_BUSY);
    options.timeout_ms = -2;
    assert_int_equal(sessile_turn_begin(&run, s, &message, 1, &options, &err),
                     SESSILE_INVALID);
    log_end(holder->log);
    assert_int_equal(session_append_message(s, message, &id, &err), SESSILE_OK);
    session_closed(s);
    session_closed(holder);
}

static void thread_that_keeps_the_handle_is_waited_for_as_long(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "s");
    sessile_error err;
    sessile_id id;

    /* held by this very thread: there is no other way to hold it for long */
    assert_int_equal(session_lock(s, &err), SESSILE_OK);
    atomic_store(&s->waiting.timeout_ms, 0);
    assert_int_equal(session_append_message(s, text_of(hello), &id, &err), SESSILE_BUSY);
    assert_says(&err, "another thread is using this handle");
    session_unlock(s);
    assert_int_equal(session_append_message(s, text_of(hello), &id, &err), SESSILE_OK);
    session_closed(s);
}

/* ------------------------------------------------------------------ interrupt */

typedef struct waiter {
    pthread_t thread;
    sessile_session *s;
    sessile_status status;
    sessile_error err;
    sessile_id id;
    atomic_int began, done;
} waiter;

static void *append_one(void *arg)
{
    waiter *w = arg;
    atomic_store(&w->began, 1);
    w->status = session_append_message(w->s, text_of(hello), &w->id, &w->err);
    atomic_store(&w->done, 1);
    return NULL;
}

static void waiter_start(waiter *w, sessile_session *s)
{
    *w = (waiter){.s = s};
    assert_int_equal(pthread_create(&w->thread, NULL, append_one, w), 0);
}

/* Interrupts until the waiter has come back: the first may come before its call. */
static void interrupt_until_done(waiter *w)
{
    while (!atomic_load(&w->done)) {
        sessile_interrupt(w->s);
        usleep(1000);
    }
    pthread_join(w->thread, NULL);
}

static void interrupt_ends_the_wait_for_another_writer(void **state)
{
    place_files_only();
    place *p = *state;
    sessile_session *holder = session_made(p->store, "s");
    sessile_session *s = opened(p, "s", 1, -1);
    sessile_error err;
    sessile_id id;
    waiter w;

    assert_int_equal(log_begin(holder->log, NULL, NULL, &err), SESSILE_OK);
    waiter_start(&w, s);
    interrupt_until_done(&w);
    /* what begins later is not concerned: it waits as it was told */
    assert_int_equal(sessile_session_set_timeout(s, 20, &err), SESSILE_OK);
    assert_int_equal(session_append_message(s, text_of(hello), &id, &err), SESSILE_BUSY);
    log_end(holder->log);
    assert_int_equal(w.status, SESSILE_CANCELLED);
    assert_says(&w.err, "nothing was written");
    assert_int_equal(log_count(s->log), 1);
    assert_int_equal(session_append_message(s, text_of(hello), &id, &err), SESSILE_OK);
    assert_int_equal(id, 1);
    session_closed(s);
    session_closed(holder);
}

static void interrupt_ends_the_wait_for_a_turn_in_the_handle(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "s");
    sessile_error err;
    waiter w;

    atomic_store(&s->waiting.timeout_ms, -1);
    assert_int_equal(session_lock(s, &err), SESSILE_OK);
    waiter_start(&w, s);
    interrupt_until_done(&w);
    session_unlock(s);
    assert_int_equal(w.status, SESSILE_CANCELLED);
    assert_says(&w.err, "nothing was done");
    assert_int_equal(log_count(s->log), 1);
    session_closed(s);
}

static sessile_session *signalled;
static void on_signal(int number)
{
    (void)number;
    sessile_interrupt(signalled);
}

static void interrupt_may_come_from_a_signal_handler(void **state)
{
    place_files_only();
    place *p = *state;
    sessile_session *holder = session_made(p->store, "s");
    struct sigaction action = {.sa_handler = on_signal}, before;
    sessile_error err;
    waiter w;

    signalled = opened(p, "s", 1, -1);
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    assert_int_equal(log_begin(holder->log, NULL, NULL, &err), SESSILE_OK);
    waiter_start(&w, signalled);
    while (!atomic_load(&w.done)) {
        pthread_kill(w.thread, SIGUSR1); /* handled by the thread that waits */
        usleep(1000);
    }
    pthread_join(w.thread, NULL);
    sigaction(SIGUSR1, &before, NULL);
    log_end(holder->log);
    assert_int_equal(w.status, SESSILE_CANCELLED);
    session_closed(signalled);
    session_closed(holder);
}

/* A store whose sync of data can be held up. */
typedef struct gate {
    atomic_int entered, open;
} gate;

static void wait_at_gate(void *arg)
{
    gate *g = arg;
    atomic_fetch_add(&g->entered, 1);
    while (!atomic_load(&g->open))
        usleep(500);
}

static void interrupt_ends_the_wait_for_anothers_sync_alone(void **state)
{
    place_files_only();
    const os_table *real = os_current;
    faults os;
    gate g;
    place p;
    waiter leader, follower;
    (void)state;

    faults_init(&os);
    os_current = &os.table;
    place_open(&p, STORE_PLAIN);
    os_current = real;
    sessile_session *s = session_made(p.store, "s");
    say(s, "user", "settled");
    p.store->durability = SESSILE_SYNC;
    atomic_init(&g.entered, 0);
    atomic_init(&g.open, 0);
    os.during_arg = &g;
    os.during_sync = wait_at_gate;

    waiter_start(&leader, s);
    while (!atomic_load(&g.entered))
        usleep(500);
    waiter_start(&follower, s);
    interrupt_until_done(&follower);
    assert_int_equal(follower.status, SESSILE_CANCELLED);
    assert_says(&follower.err, "it is written and not known to be safe");
    assert_false(atomic_load(&leader.done));
    atomic_store(&g.open, 1);
    pthread_join(leader.thread, NULL);
    assert_int_equal(leader.status, SESSILE_OK);

    sessile_store *again = place_again(&p);
    sessile_session *b = session_resumed(again, "s");
    assert_int_equal(log_count(b->log), 4);
    session_closed(b);
    place_again_close(&p, again);
    session_closed(s);
    place_close(&p);
}

/* ------------------------------------------------------------------ a moved base */

static sessile_status turn(sessile_session *s, const sessile_run_options *options,
                           sessile_outcome *out, sessile_error *err)
{
    sessile_slice message = text_of(hello);
    sessile_need need;
    sessile_run *run;
    sessile_status status = sessile_turn_begin(&run, s, &message, 1, options, err);
    if (!status)
        status = sessile_run_step(run, &need, err);
    if (!status)
        status = sessile_run_outcome(run, out, err);
    sessile_run_free(run);
    return status;
}

static void turn_on_a_moved_base_is_CONFLICT_unless_told_where_it_goes(void **state)
{
    place *p = *state;
    sessile_session *a = session_made(p->store, "s"), *b = session_resumed(p->store, "s");
    sessile_run_options options;
    sessile_outcome out;
    sessile_error err;
    sessile_id head;

    sessile_run_options_init(&options);
    assert_int_equal(turn(a, &options, &out, &err), SESSILE_OK);
    assert_int_equal(turn(b, &options, &out, &err), SESSILE_CONFLICT);
    assert_says(&err, "read it again");
    assert_int_equal(log_count(b->log), 3);
    options.on_conflict = (sessile_on_conflict)7;
    assert_int_equal(turn(b, &options, &out, &err), SESSILE_INVALID);
    assert_int_equal(log_count(b->log), 3);

    options.on_conflict = SESSILE_ON_CONFLICT_APPEND;
    assert_int_equal(turn(b, &options, &out, &err), SESSILE_OK);
    assert_int_equal(out.first, 3);
    assert_int_equal(b->tree.nodes[out.first].parent, 2); /* the head as it was */
    assert_int_equal(sessile_head(a, &head, &err), SESSILE_OK);
    assert_int_equal(head, out.last);
    /* a base named in the call is accepted in the same way */
    options.has_base = 1;
    options.base = 2;
    assert_int_equal(turn(a, &options, &out, &err), SESSILE_OK);
    assert_int_equal(a->tree.nodes[out.first].parent, head);
    options.on_conflict = SESSILE_ON_CONFLICT_FAIL;
    assert_int_equal(turn(a, &options, &out, &err), SESSILE_CONFLICT);
    /* or written beside what came between */
    assert_int_equal(sessile_head(a, &head, &err), SESSILE_OK);
    options.on_conflict = SESSILE_ON_CONFLICT_BRANCH;
    assert_int_equal(turn(a, &options, &out, &err), SESSILE_OK);
    assert_int_equal(a->tree.nodes[out.first].parent, 2);
    assert_int_equal(out.head, out.last);
    assert_int_equal(a->tree.head, head);
    assert_int_equal(a->tree.base, out.head);
    options.base = (sessile_id)log_count(a->log) - 1; /* a fact */
    assert_int_equal(turn(a, &options, &out, &err), SESSILE_NOTFOUND);
    session_closed(a);
    session_closed(b);
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
    tell(out, 'r');
    raise(SIGSTOP);
    tell(out, turn(s, &options, &outcome, &err) == SESSILE_CONFLICT ? 'c' : 'x');
    /* a bare message goes to the head, which descends from what it saw */
    tell(out, !session_append_message(s, text_of(hello), &id, &err) && id == 5 &&
                      s->tree.nodes[id].parent == 4
                  ? 'a'
                  : 'x');
    hear(in);
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
    assert_int_equal(hear(c.from), 'r');
    assert_int_equal(waitpid(c.pid, &status, WUNTRACED), c.pid);
    assert_true(WIFSTOPPED(status));
    for (int i = 0; i < 2; i++)
        assert_int_equal(turn(s, &options, &out, &err), SESSILE_OK);
    assert_int_equal(kill(c.pid, SIGCONT), 0);
    assert_int_equal(hear(c.from), 'c');
    assert_int_equal(hear(c.from), 'a');
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
    tell(out, 'r');
    sessile_status status = session_append_message(s, text_of(hello), &id, &err);
    table.pwrite = os_posix.pwrite;
    tell(out, !status && id == 1 ? 'a' : 'x');
    hear(in);
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

    atomic_store(&s->waiting.timeout_ms, 0);
    child c = child_start(stop_half_way, p);
    assert_int_equal(hear(c.from), 'r');
    for (;;) {
        assert_int_equal(waitpid(c.pid, &status, WUNTRACED | WCONTINUED), c.pid);
        if (WIFCONTINUED(status))
            continue;
        assert_true(WIFSTOPPED(status));
        stops++;
        /* with half a line on the disk: nothing is cut, nothing is written into it */
        assert_int_equal(session_append_message(s, text_of(hello), &id, &err),
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
    assert_int_equal(session_append_message(s, text_of(hello), &id, &err), SESSILE_OK);
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
            return *err = (sessile_error){SESSILE_CONFLICT, "it has grown"}, err->code;
    }
    return fenced_real->append(log, end, data, size, count, tag, poisoned, err);
}

static sessile_session *fenced_open(place *p, const char *id)
{
    fenced_real = p->store->backend.table;
    fenced = *fenced_real;
    fenced.append = late_append;
    fenced.capabilities &= ~(unsigned)(SESSILE_BACKEND_LOCKS | SESSILE_BACKEND_CUTS);
    p->store->backend.table = &fenced;
    sessile_session *s = session_resumed(p->store, id);
    p->store->backend.table = fenced_real;
    return s;
}

static sessile_session *fenced_other;
static void other_writes(void)
{
    sessile_error err;
    sessile_id id;
    if (session_append_message(fenced_other, text_of(hello), &id, &err))
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
    assert_int_equal(session_append_message(s, text_of(hello), &id, &err), SESSILE_OK);
    assert_int_equal(fenced_times, 0);
    assert_int_equal(id, 4);
    assert_int_equal(s->tree.nodes[4].parent, 3);
    char *keys = context_keys(fenced_other, SESSILE_NO_ID);
    assert_string_equal(keys, "00000001 00000002 00000003 00000004");
    free(keys);

    /* a turn is thought on a base: what came between is its conflict, told as such */
    sessile_run_options options;
    sessile_outcome out;
    sessile_run_options_init(&options);
    fenced_times = 1;
    assert_int_equal(turn(s, &options, &out, &err), SESSILE_CONFLICT);
    assert_says(&err, "the conversation moved on");
    options.on_conflict = SESSILE_ON_CONFLICT_APPEND;
    fenced_times = 1;
    assert_int_equal(turn(s, &options, &out, &err), SESSILE_OK);
    assert_int_equal(s->tree.nodes[out.first].parent, out.first - 1);

    /* one that never comes in time ends, and nothing of it stays */
    sessile_id before = log_count(s->log);
    fenced_times = -1;
    fenced_between = NULL;
    assert_int_equal(session_append_message(s, text_of(hello), &id, &err),
                     SESSILE_CONFLICT);
    assert_int_equal(log_count(s->log), before);
    assert_int_equal(s->tree.node_count, before);
    fenced_times = 0;
    assert_int_equal(session_append_message(s, text_of(hello), &id, &err), SESSILE_OK);
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
        sessile_status status = session_append_message(m->s, text_of(hello), &id, &err);
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
        sessile_status status = session_messages(m->s, NULL, &rows, &count, &err);
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
    size_t n = log_count(s->log) - 1;
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
    p->store->durability = SESSILE_SYNC;
    for (int i = 0; i < handles; i++)
        s[i] = opened(p, "s", 1, 60000);
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

#define EACH_STORE(test)                                                         \
    cmocka_unit_test_setup_teardown(test, place_set_up_sealed, place_tear_down), \
        cmocka_unit_test_setup_teardown(test, place_set_up_ram, place_tear_down)
#define ON_DISK(test) \
    cmocka_unit_test_setup_teardown(test, place_set_up_plain, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(BUSY_names_the_process_that_holds_the_lock),
        cmocka_unit_test(BUSY_names_another_handle_of_this_process),
        EACH_STORE(each_handle_and_run_waits_as_long_as_it_was_told),
        EACH_STORE(thread_that_keeps_the_handle_is_waited_for_as_long),
        EACH_STORE(interrupt_ends_the_wait_for_another_writer),
        EACH_STORE(interrupt_ends_the_wait_for_a_turn_in_the_handle),
        ON_DISK(interrupt_may_come_from_a_signal_handler),
        cmocka_unit_test(interrupt_ends_the_wait_for_anothers_sync_alone),
        EACH_STORE(turn_on_a_moved_base_is_CONFLICT_unless_told_where_it_goes),
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

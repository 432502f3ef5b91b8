/*
 * test_writers.c: several writers on one session: who waits for whom, how long, what ends
 * the wait, and what is said when it was in vain.
 *
 * Threads only count what went wrong; assertions are for the thread that joins them. No
 * test measures time: what must not wait for ever is given a wait without end, so that a
 * test which fails hangs.
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

/* ------------------------------------------------------------------ BUSY */

/* Opens the log as another process would, and holds its lock until told. */
static void hold_the_lock(void *arg, int in, int out)
{
    kit other;
    sessile_error err;
    kit_again(&other, arg);
    log_t *log = kit_resume(&other, "log", NULL);
    child_tell(out, !log_begin(log, NULL, NULL, &err) ? 'y' : 'n');
    child_hear(in);
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
    assert_int_equal(child_hear(c.from), 'y');
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
    assert_says(&err, "without /proc it is unknown who: wait longer");
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

    p->store->core->config.timeout_ms = -1; /* whoever takes this one hangs */
    assert_int_equal(log_begin(holder->core->log, NULL, NULL, &err), SESSILE_OK);
    s = session_that_waits(p, "s", 1, 0);
    assert_int_equal(session_append_message(s->core, message, &id, &err), SESSILE_BUSY);
    assert_says(&err, "session \"s\": ");
    session_closed(s);

    s = session_that_waits(p, "s", 0, 0);
    assert_int_equal(sessile_session_set_timeout(s, 20, &err), SESSILE_OK);
    assert_int_equal(session_append_message(s->core, message, &id, &err), SESSILE_BUSY);
    assert_int_equal(sessile_session_set_timeout(s, -2, &err), SESSILE_INVALID);
    assert_int_equal(sessile_session_set_timeout(s, -1, &err), SESSILE_OK);
    options.config.has_timeout = 1;
    options.config.timeout_ms = 10;
    assert_int_equal(sessile_turn_begin(&run, s, &message, 1, &options, &err),
                     SESSILE_BUSY);
    options.config.has_timeout = 1;
    options.config.timeout_ms = -2;
    assert_int_equal(sessile_turn_begin(&run, s, &message, 1, &options, &err),
                     SESSILE_INVALID);
    log_end(holder->core->log);
    assert_int_equal(session_append_message(s->core, message, &id, &err), SESSILE_OK);
    session_closed(s);
    session_closed(holder);
}

static void thread_that_keeps_the_handle_is_waited_for_as_long(void **state)
{
    sessile_session *s = session_in(state, "s");
    sessile_error err;
    sessile_id id;

    /* held by this very thread: there is no other way to hold it for long */
    assert_int_equal(session_lock(s->core, &err), SESSILE_OK);
    atomic_store(&s->core->waiting.timeout_ms, 0);
    assert_int_equal(session_append_message(s->core, text_of(hello), &id, &err),
                     SESSILE_BUSY);
    assert_says(&err, "another thread is using this handle");
    session_unlock(s->core);
    assert_int_equal(session_append_message(s->core, text_of(hello), &id, &err),
                     SESSILE_OK);
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
    w->status = session_append_message(w->s->core, text_of(hello), &w->id, &w->err);
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
    sessile_session *s = session_that_waits(p, "s", 1, -1);
    sessile_error err;
    sessile_id id;
    waiter w;

    assert_int_equal(log_begin(holder->core->log, NULL, NULL, &err), SESSILE_OK);
    waiter_start(&w, s);
    interrupt_until_done(&w);
    /* what begins later is not concerned: it waits as it was told */
    assert_int_equal(sessile_session_set_timeout(s, 20, &err), SESSILE_OK);
    assert_int_equal(session_append_message(s->core, text_of(hello), &id, &err),
                     SESSILE_BUSY);
    log_end(holder->core->log);
    assert_int_equal(w.status, SESSILE_CANCELLED);
    assert_says(&w.err, "nothing was written");
    assert_int_equal(log_count(s->core->log), 1);
    assert_int_equal(session_append_message(s->core, text_of(hello), &id, &err),
                     SESSILE_OK);
    assert_int_equal(id, 1);
    session_closed(s);
    session_closed(holder);
}

static void interrupt_ends_the_wait_for_a_turn_in_the_handle(void **state)
{
    sessile_session *s = session_in(state, "s");
    sessile_error err;
    waiter w;

    atomic_store(&s->core->waiting.timeout_ms, -1);
    assert_int_equal(session_lock(s->core, &err), SESSILE_OK);
    waiter_start(&w, s);
    interrupt_until_done(&w);
    session_unlock(s->core);
    assert_int_equal(w.status, SESSILE_CANCELLED);
    assert_says(&w.err, "nothing was done");
    assert_int_equal(log_count(s->core->log), 1);
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

    signalled = session_that_waits(p, "s", 1, -1);
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    assert_int_equal(log_begin(holder->core->log, NULL, NULL, &err), SESSILE_OK);
    waiter_start(&w, signalled);
    while (!atomic_load(&w.done)) {
        pthread_kill(w.thread, SIGUSR1); /* handled by the thread that waits */
        usleep(1000);
    }
    pthread_join(w.thread, NULL);
    sigaction(SIGUSR1, &before, NULL);
    log_end(holder->core->log);
    assert_int_equal(w.status, SESSILE_CANCELLED);
    session_closed(signalled);
    session_closed(holder);
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
    p.store->core->durability = SESSILE_SYNC;
    atomic_init(&g.entered, 0);
    atomic_init(&g.open, 0);
    os.during_arg = &g;
    os.during_sync = gate_wait;

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
    assert_int_equal(log_count(b->core->log), 4);
    session_closed(b);
    place_again_close(&p, again);
    session_closed(s);
    place_close(&p);
}

/* ------------------------------------------------------------------ a moved base */

static void turn_on_a_moved_base_is_CONFLICT_unless_told_where_it_goes(void **state)
{
    place *p = *state;
    sessile_session *a = session_made(p->store, "s"), *b = session_resumed(p->store, "s");
    sessile_run_options options;
    sessile_outcome out;
    sessile_error err;
    sessile_id head;

    sessile_run_options_init(&options);
    assert_int_equal(turn_of_hello(a, &options, &out, &err), SESSILE_OK);
    assert_int_equal(turn_of_hello(b, &options, &out, &err), SESSILE_CONFLICT);
    assert_says(&err, "read it again");
    assert_int_equal(log_count(b->core->log), 3);
    options.on_conflict = (sessile_on_conflict)7;
    assert_int_equal(turn_of_hello(b, &options, &out, &err), SESSILE_INVALID);
    assert_int_equal(log_count(b->core->log), 3);

    options.on_conflict = SESSILE_ON_CONFLICT_APPEND;
    assert_int_equal(turn_of_hello(b, &options, &out, &err), SESSILE_OK);
    assert_int_equal(out.first, 3);
    assert_int_equal(b->core->tree.nodes[out.first].parent, 2); /* the head as it was */
    assert_int_equal(sessile_head(a, &head, &err), SESSILE_OK);
    assert_int_equal(head, out.last);
    /* a base named in the call is accepted in the same way */
    options.has_base = 1;
    options.base = 2;
    assert_int_equal(turn_of_hello(a, &options, &out, &err), SESSILE_OK);
    assert_int_equal(a->core->tree.nodes[out.first].parent, head);
    options.on_conflict = SESSILE_ON_CONFLICT_FAIL;
    assert_int_equal(turn_of_hello(a, &options, &out, &err), SESSILE_CONFLICT);
    /* or written beside what came between */
    assert_int_equal(sessile_head(a, &head, &err), SESSILE_OK);
    options.on_conflict = SESSILE_ON_CONFLICT_BRANCH;
    assert_int_equal(turn_of_hello(a, &options, &out, &err), SESSILE_OK);
    assert_int_equal(a->core->tree.nodes[out.first].parent, 2);
    assert_int_equal(out.head, out.last);
    assert_int_equal(a->core->tree.head, head);
    assert_int_equal(a->core->tree.base, out.head);
    options.base = (sessile_id)log_count(a->core->log) - 1; /* a fact */
    assert_int_equal(turn_of_hello(a, &options, &out, &err), SESSILE_NOTFOUND);
    session_closed(a);
    session_closed(b);
}

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_killed.c: nodes that are killed and stopped while they write, and a server that is
 * killed under all of them.
 *
 * Owns, over each database, what `../kill` owns over files: what a node was told is there
 * is there, once, whoever dies. Writers are processes of two threads that append and take
 * turns in one shared session. Their parent stops them past the others' writes, lets them
 * go on, kills them, and starts the dead again; the server it ends at once, by kill and
 * in order, and starts it. A writer whose call ended in IO does not know: an append it
 * leaves at that; a turn it looks for and, when it is not there, takes again, with the
 * head it looked at as its base, so that at the end each such turn is there exactly once.
 *
 * Must never depend on how fast anything is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "nodes/database.h"
#include "support/ledger.h"
#include "support/logs.h"

enum { PROCESSES = 4, THREADS = 2, WRITERS = PROCESSES * THREADS };
static const char SESSION[] = "shared";

/* ------------------------------------------------------------------ a writer */

/* Written with one write(2), smaller than PIPE_BUF: whole or not at all. */
typedef struct report {
    uint16_t writer, outcome; /* outcome 0: broken, and text says why */
    uint32_t number, seq;     /* of the writer in the ledger: another one for each life */
    uint32_t conflict, again; /* refused for a conflict; turns taken again */
    char text[300];
} report;

typedef struct worker {
    const database *d;
    size_t writer;
    uint32_t number;
    uint64_t seed;
    int report_fd;
    sessile_store *store;
    sessile_session *session;
} worker;

static void tell(const worker *w, unsigned seq, ledger_outcome outcome, int conflict,
                 unsigned again, const char *text)
{
    report r;
    memset(&r, 0, sizeof r);
    r.writer = (uint16_t)w->writer;
    r.outcome = (uint16_t)outcome;
    r.number = w->number;
    r.seq = seq;
    r.conflict = (uint32_t)conflict;
    r.again = again;
    if (text)
        snprintf(r.text, sizeof r.text, "%s", text);
    if (write(w->report_fd, &r, sizeof r) != (ssize_t)sizeof r)
        _exit(4);
    if (outcome == LEDGER_NONE)
        _exit(3);
}

static void broken(const worker *w, unsigned seq, const char *where,
                   sessile_status status, const sessile_error *err)
{
    char text[700];
    snprintf(text, sizeof text, "%s: %s: %s", where, sessile_status_name(status),
             err->message);
    tell(w, seq, LEDGER_NONE, 0, 0, text);
}

/* A server that is away or starting, a writer that is stopped: worth another try. */
static int passing(sessile_status status)
{
    return status == SESSILE_IO || status == SESSILE_BUSY;
}

static void rest(void)
{
    struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
}

static void open_session(worker *w, unsigned seq)
{
    sessile_session_options o;
    sessile_error err = {0};
    sessile_status status;
    sessile_session_options_init(&o);
    o.id = sessile_text(SESSION);
    (void)sessile_session_close(w->session, NULL);
    w->session = NULL;
    while ((status = sessile_resume(&w->session, w->store, &o, &err))) {
        if (!passing(status))
            broken(w, seq, "resume", status, &err);
        rest();
    }
}

static sessile_status take_turn(worker *w, const char *json, sessile_error *err)
{
    sessile_run *run;
    sessile_need need;
    sessile_slice message = sessile_text(json);
    sessile_status status = sessile_turn_begin(&run, w->session, &message, 1, NULL, err);
    if (status)
        return status;
    status = sessile_run_step(run, &need, err);
    sessile_run_free(run);
    return status;
}

/* Looks whether the message is among the newest: 1, 0; -1: cannot be told now. The
 * handle's base is then what was looked at. */
static int look_for(worker *w, unsigned seq, const char *content)
{
    sessile_messages_options o;
    sessile_message *list;
    size_t count;
    sessile_error err = {0};
    int there = 0;
    sessile_messages_options_init(&o);
    o.last = 4096;
    sessile_status status = sessile_messages(w->session, &o, &list, &count, &err);
    if (status) {
        if (!passing(status))
            broken(w, seq, "messages", status, &err);
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        there |= strstr(list[i].json.data, content) != NULL;
    sessile_free(list);
    return there;
}

/* A turn that is there exactly once in the end. Returns how often it was taken again. */
static unsigned insist(worker *w, unsigned seq, const char *json, const char *content)
{
    unsigned again = 0;
    for (;;) {
        sessile_error err = {0};
        int there;
        do {
            open_session(w, seq);
            there = look_for(w, seq, content);
        } while (there < 0);
        if (there)
            return again;
        again++;
        sessile_status status = take_turn(w, json, &err);
        if (!status)
            return again;
        if (!passing(status) && status != SESSILE_CONFLICT)
            broken(w, seq, "a turn taken again", status, &err);
    }
}

static void *work(void *arg)
{
    worker *w = arg;
    char *json = malloc(12000);
    open_session(w, 0);
    for (unsigned seq = 0;; seq++) {
        char content[64];
        sessile_error err = {0};
        sessile_id id;
        ledger_text(content, w->number, seq);
        size_t padding = random_next(&w->seed) % (seq % 16 ? 300 : 9000);
        int n = sprintf(json, "{\"role\":\"user\",\"content\":\"%s", content);
        memset(json + n, 'x', padding);
        strcpy(json + (size_t)n + padding, "\"}");
        int is_turn = random_next(&w->seed) % 2 != 0;
        sessile_status status =
            is_turn ? take_turn(w, json, &err)
                    : sessile_append(w->session, sessile_text(json), &id, &err);
        if (!status) {
            tell(w, seq, LEDGER_ACKNOWLEDGED, 0, 0, NULL);
        } else if (status == SESSILE_BUSY || status == SESSILE_CONFLICT) {
            tell(w, seq, LEDGER_REFUSED, status == SESSILE_CONFLICT, 0, NULL);
            while (sessile_head(w->session, &id, &err) == SESSILE_IO)
                open_session(w, seq + 1);
        } else if (status == SESSILE_IO && is_turn) {
            tell(w, seq, LEDGER_ACKNOWLEDGED, 0, 1 + insist(w, seq, json, content), NULL);
        } else if (status == SESSILE_IO) {
            open_session(w, seq);
            tell(w, seq, LEDGER_UNKNOWN, 0, 0, NULL);
        } else {
            broken(w, seq, is_turn ? "turn" : "append", status, &err);
        }
    }
    return NULL;
}

static void process(const database *d, size_t slot, const uint32_t lives[THREADS],
                    uint64_t seed, int report_fd)
{
    worker workers[THREADS];
    pthread_t threads[THREADS];
    sessile_store *store;
    sessile_error err = {0};
    sessile_status status;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    memset(workers, 0, sizeof workers);
    for (size_t t = 0; t < THREADS; t++)
        workers[t] = (worker){
            d, slot * THREADS + t, lives[t], random_next(&seed), report_fd, NULL, NULL};
    while ((status = database_open(d, NULL, &store, &err))) {
        if (!passing(status))
            broken(&workers[0], 0, "open", status, &err);
        rest();
    }
    for (size_t t = 0; t < THREADS; t++)
        workers[t].store = store;
    for (size_t t = 1; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, work, &workers[t]) != 0)
            _exit(5);
    work(&workers[0]);
}

/* ------------------------------------------------------------------ the parent */

typedef struct round {
    database *d;
    ledger *book;
    pid_t pids[PROCESSES];
    int stopped[PROCESSES];
    int pipe[2];
    uint64_t seed;
    unsigned long kills, server_kills, conflicts, busy, again, reports;
} kill_round;

static void take_reports(kill_round *r)
{
    report some[32];
    ssize_t got;
    while ((got = read(r->pipe[0], some, sizeof some)) > 0) {
        assert_int_equal(got % (ssize_t)sizeof *some, 0);
        for (size_t i = 0; i < (size_t)got / sizeof *some; i++) {
            const report *p = &some[i];
            if (p->outcome == LEDGER_NONE)
                print_error("seed %llu: writer %u: %s\n", (unsigned long long)r->seed,
                            p->writer, p->text);
            assert_int_not_equal(p->outcome, LEDGER_NONE);
            ledger_note(r->book, p->number, p->seq, (ledger_outcome)p->outcome,
                        SESSILE_NO_ID);
            r->conflicts += p->outcome == LEDGER_REFUSED && p->conflict;
            r->busy += p->outcome == LEDGER_REFUSED && !p->conflict;
            r->again += p->again;
            r->reports++;
        }
    }
    assert_true(got == 0 || errno == EAGAIN);
}

static void start(kill_round *r, size_t slot)
{
    uint32_t lives[THREADS];
    uint64_t seed = random_next(&r->seed);
    for (size_t t = 0; t < THREADS; t++)
        lives[t] = ledger_writer(r->book);
    r->stopped[slot] = 0;
    r->pids[slot] = fork();
    assert_true(r->pids[slot] >= 0);
    if (r->pids[slot] == 0) {
        close(r->pipe[0]);
        process(r->d, slot, lives, seed, r->pipe[1]);
    }
}

static void end(kill_round *r, size_t slot)
{
    int status;
    if (r->pids[slot] <= 0)
        return;
    kill(r->pids[slot], SIGKILL);
    assert_int_equal(waitpid(r->pids[slot], &status, 0), r->pids[slot]);
    r->pids[slot] = 0;
    take_reports(r);
    if (!WIFSIGNALED(status))
        print_error("seed %llu: process %zu ended by itself: %x\n",
                    (unsigned long long)r->seed, slot, (unsigned)status);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    r->kills++;
}

static void end_server(kill_round *r)
{
    static const char *const ways[] = {"kill", "crash", "kill", "stop"};
    assert_int_equal(postgres_do(r->d->own, ways[random_next(&r->seed) % 4]), 0);
    r->server_kills++;
    assert_int_equal(postgres_do(r->d->own, "again"), 0);
}

/* Lets the writers report this many more calls. */
static void let_work(kill_round *r, unsigned long reports)
{
    unsigned long until = r->reports + reports;
    while (r->reports < until) {
        struct pollfd wait = {r->pipe[0], POLLIN, 0};
        int all_stopped = 1;
        (void)poll(&wait, 1, 100);
        take_reports(r);
        for (size_t slot = 0; slot < PROCESSES; slot++)
            all_stopped &= r->stopped[slot];
        /* who is stopped may hold what the others wait for */
        if (all_stopped || wait.revents == 0)
            for (size_t slot = 0; slot < PROCESSES; slot++)
                if (r->stopped[slot]) {
                    kill(r->pids[slot], SIGCONT);
                    r->stopped[slot] = 0;
                }
    }
}

static void harass(kill_round *r, unsigned long kills, unsigned long server_kills)
{
    while (r->kills < kills || (r->d->own && r->server_kills < server_kills)) {
        struct timespec pause = {0, (long)(random_next(&r->seed) % 12) * 1000000};
        size_t slot = random_next(&r->seed) % PROCESSES;
        uint64_t dice = random_next(&r->seed) % 100;
        nanosleep(&pause, NULL);
        take_reports(r);
        if (r->d->own && r->server_kills < server_kills &&
            dice < 100 * server_kills / (kills + server_kills)) {
            end_server(r);
            let_work(r, 2 * WRITERS);
        } else if (dice < 60) {
            end(r, slot);
            start(r, slot);
            let_work(r, random_next(&r->seed) % (2 * WRITERS));
        } else {
            kill(r->pids[slot], r->stopped[slot] ? SIGCONT : SIGSTOP);
            r->stopped[slot] = !r->stopped[slot];
            let_work(r, random_next(&r->seed) % WRITERS);
        }
    }
    for (size_t slot = 0; slot < PROCESSES; slot++)
        end(r, slot);
    r->kills -= PROCESSES; /* those of the end prove nothing more */
}

static void compare(kill_round *r, ledger_sum *sum)
{
    sessile_session_options o;
    sessile_store *store;
    sessile_session *s;
    sessile_id id;
    sessile_error err = {0};
    sessile_session_options_init(&o);
    o.id = sessile_text(SESSION);
    assert_int_equal(database_open(r->d, NULL, &store, &err), SESSILE_OK);
    sessile_status status = sessile_resume(&s, store, &o, &err);
    if (status)
        print_error("seed %llu: %s\n", (unsigned long long)r->seed, err.message);
    assert_int_equal(status, SESSILE_OK);
    assert_int_equal(sessile_session_damage(s, NULL, NULL), SESSILE_OK);
    *sum = ledger_compare(r->book, s);
    ledger_check_clean(store, SESSION);
    /* no lock and no transaction is left that this would wait for */
    assert_int_equal(
        sessile_append(s, sessile_text("{\"role\":\"user\",\"content\":\"end\"}"), &id,
                       &err),
        SESSILE_OK);
    assert_int_equal(sessile_session_close(s, &err), SESSILE_OK);
    sessile_store_close(store);
}

static int set_up(void **state)
{
    const char *why = "", *kind = *state;
    kill_round *r = calloc(1, sizeof *r);
    sessile_session_options o;
    sessile_store *store;
    sessile_session *s;
    *state = r;
    r->pipe[0] = r->pipe[1] = -1;
    r->d = database_new(kind, 1, 1, &why);
    if (!r->d) {
        print_message("# %s\n", why);
        return 0;
    }
    r->book = ledger_new();
    r->seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    sessile_session_options_init(&o);
    o.id = sessile_text(SESSION);
    return pipe2(r->pipe, O_CLOEXEC) || fcntl(r->pipe[0], F_SETFL, O_NONBLOCK) ||
           database_open(r->d, NULL, &store, NULL) ||
           sessile_create(&s, store, &o, NULL) || sessile_session_close(s, NULL) ||
           (sessile_store_close(store), 0);
}

static int tear_down(void **state)
{
    kill_round *r = *state;
    for (size_t slot = 0; slot < PROCESSES; slot++)
        if (r->pids[slot] > 0) {
            kill(r->pids[slot], SIGKILL);
            waitpid(r->pids[slot], NULL, 0);
        }
    close(r->pipe[0]);
    close(r->pipe[1]);
    ledger_free(r->book);
    database_free(r->d);
    free(r);
    return 0;
}

static void killed_nodes_lose_and_repeat_nothing(void **state)
{
    kill_round *r = *state;
    ledger_sum sum;
    if (!r->d)
        skip();
    int soak = getenv("SESSILE_SOAK") != NULL;
    print_message("seed %llu\n", (unsigned long long)r->seed);
    for (size_t slot = 0; slot < PROCESSES; slot++)
        start(r, slot);
    harass(r, soak ? 2000 : 60, soak ? 200 : 8);
    compare(r, &sum);
    const char *on = r->d->kind;
    printf("# figure: nodes killed over %s = %lu\n", on, r->kills);
    if (r->d->own)
        printf("# figure: times the server was ended under load = %lu\n",
               r->server_kills);
    printf("# figure: rows that survived, over %s = %lu\n", on, sum.there);
    printf("# figure: acknowledged by nodes, over %s = %lu\n", on, sum.acknowledged);
    printf("# figure: conflicts of nodes, over %s = %lu\n", on, r->conflicts);
    printf("# figure: waits given up by nodes, over %s = %lu\n", on, r->busy);
    printf("# figure: turns looked for or taken again, over %s = %lu\n", on, r->again);
    printf(
        "# figure: answers that never came, over %s = %lu, written all the same = %lu\n",
        on, sum.unknown, sum.unsaid);
    printf("# figure: losses of nodes, over %s = %lu\n", on, sum.lost);
    printf("# figure: duplicates of nodes, over %s = %lu\n", on, sum.twice);
    ledger_check_sum(&sum);
    assert_true(sum.acknowledged > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_nodes_lose_and_repeat_nothing),
    };
    return database_run("killed nodes", tests, 1, set_up, tear_down, argc, argv);
}

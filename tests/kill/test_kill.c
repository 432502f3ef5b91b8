/*
 * test_kill.c: processes that share sessions and are stopped and killed at any moment.
 *
 * Owns promises 1, 2 and 8 as far as kill -9 goes: eight processes of four threads append
 * to shared sessions of one sealed store on a real file system. Their parent stops them,
 * lets them go on, kills them, and starts the dead again; half of them also carry a fuse:
 * after some number of system calls they kill themselves, before a call, behind it, or in
 * the middle of a write. Each call that returned is reported through a pipe that the
 * parent holds, and only then; what is in the logs at the end is compared with the
 * reports.
 *
 * Must never depend on how fast anything is: there are more or fewer appends, the rules
 * stay.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "base/text.h"
#include "support/logs.h"

enum { PROCESSES = 8, THREADS = 4, SESSIONS = 3, PARTS_MOST = 4, KILLS_A_ROUND = 160 };

/* ------------------------------------------------------------------ reports */

typedef enum report_kind { ACKNOWLEDGED = 1, REFUSED, CREATED, BROKEN } report_kind;

/* Written with one write(2), smaller than PIPE_BUF: whole or not at all. */
typedef struct report {
    uint8_t kind, slot, thread, conflict;
    uint32_t life, seq;
    char text[160]; /* BROKEN: what happened */
} report;

/* ------------------------------------------------------------------ a process */

static int report_fd;
static os_table deadly;
static atomic_long fuse; /* calls until death; not positive: none is carried */
static int fuse_cut;     /* of 256: how much of a write still goes */

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* 1: the fuse ends at this call. */
static int burnt(void)
{
    return atomic_load(&fuse) > 0 && atomic_fetch_sub(&fuse, 1) == 1;
}

#define CALL(type, expression)       \
    do {                             \
        int last_ = burnt();         \
        if (last_ && fuse_cut < 128) \
            die();                   \
        type result_ = (expression); \
        if (last_)                   \
            die();                   \
        return result_;              \
    } while (0)

static int64_t k_pwrite(void *ud, int fd, const void *data, size_t size, uint64_t offset)
{
    (void)ud;
    if (burnt()) {
        size_t part = size * (size_t)fuse_cut / 256;
        if (part > 0)
            (void)os_posix.pwrite(NULL, fd, data, part, offset);
        die();
    }
    return os_posix.pwrite(NULL, fd, data, size, offset);
}
static int k_open(void *ud, int dir, const char *path, int flags)
{
    (void)ud;
    CALL(int, os_posix.open_at(NULL, dir, path, flags));
}
static int k_truncate(void *ud, int fd, uint64_t size)
{
    (void)ud;
    CALL(int, os_posix.truncate(NULL, fd, size));
}
static int k_sync_data(void *ud, int fd)
{
    (void)ud;
    CALL(int, os_posix.sync_data(NULL, fd));
}
static int k_sync_all(void *ud, int fd)
{
    (void)ud;
    CALL(int, os_posix.sync_all(NULL, fd));
}
static int k_lock(void *ud, int fd, int mode)
{
    (void)ud;
    CALL(int, os_posix.lock(NULL, fd, mode));
}
static int k_rename_new(void *ud, int dir, const char *from, const char *to)
{
    (void)ud;
    CALL(int, os_posix.rename_new(NULL, dir, from, to));
}
static int k_rename_over(void *ud, int dir, const char *from, const char *to)
{
    (void)ud;
    CALL(int, os_posix.rename_over(NULL, dir, from, to));
}

static void carry_fuse(uint64_t *seed)
{
    deadly = os_posix;
    deadly.open_at = k_open;
    deadly.pwrite = k_pwrite;
    deadly.truncate = k_truncate;
    deadly.sync_data = k_sync_data;
    deadly.sync_all = k_sync_all;
    deadly.lock = k_lock;
    deadly.rename_new = k_rename_new;
    deadly.rename_over = k_rename_over;
    os_current = &deadly;
    fuse_cut = (int)(random_next(seed) % 256);
    /* short ones end in opening and recovering, long ones in appends */
    static const long lengths[] = {0, 60, 120, 300, 1000};
    long most = lengths[random_next(seed) % 5];
    atomic_store(&fuse, most ? 1 + (long)(random_next(seed) % (uint64_t)most) : 0);
}

typedef struct worker {
    unsigned slot, thread;
    uint32_t life;
    uint64_t seed;
    sessile_store *store;
    sessile_session **sessions; /* threads 0 and 1 share theirs */
} worker;

static void tell(const worker *w, report_kind kind, uint32_t seq, sessile_status status,
                 const char *text)
{
    report r;
    memset(&r, 0, sizeof r);
    r.kind = (uint8_t)kind;
    r.slot = (uint8_t)w->slot;
    r.thread = (uint8_t)w->thread;
    r.life = w->life;
    r.seq = seq;
    r.conflict = status == SESSILE_CONFLICT;
    if (kind == BROKEN)
        snprintf(r.text, sizeof r.text, "%s: %s", sessile_status_name(status), text);
    if (write(report_fd, &r, sizeof r) != (ssize_t)sizeof r)
        _exit(4);
    if (kind == BROKEN)
        _exit(3);
}

/* What part `part` of `of` says; it names itself, so that nothing can be made up. */
static void message_text(const worker *w, uint32_t seq, unsigned part, unsigned of,
                         size_t padding, char *out, size_t room)
{
    int n = snprintf(out, room, "{\"role\":\"user\",\"content\":\"k.%u.%u.%u.%u.%u.%u.",
                     w->slot, w->life, w->thread, seq, part, of);
    memset(out + n, 'x', padding);
    memcpy(out + n + padding, "\"}", 3);
}

enum { LONGEST = 24 << 10 };

static sessile_status do_append(worker *w, sessile_session *s, uint32_t seq,
                                size_t padding, char *text, sessile_error *err)
{
    sessile_id id;
    message_text(w, seq, 1, 0, padding, text, LONGEST);
    return sessile_append(s, sessile_text(text), &id, err);
}

static sessile_status do_turn(worker *w, sessile_session *s, uint32_t seq, char *text,
                              sessile_error *err)
{
    sessile_slice messages[PARTS_MOST];
    unsigned of = 1 + (unsigned)(random_next(&w->seed) % PARTS_MOST);
    sessile_run *run;
    sessile_need need;
    for (unsigned i = 0; i < of; i++) {
        char *at = text + (size_t)i * 1024;
        message_text(w, seq, i + 1, of, random_next(&w->seed) % 600, at, 1024);
        messages[i] = sessile_text(at);
    }
    sessile_status status = sessile_turn_begin(&run, s, messages, of, NULL, err);
    if (status)
        return status;
    status = sessile_run_step(run, &need, err);
    sessile_run_free(run);
    if (status == SESSILE_BUSY || status == SESSILE_CONFLICT)
        tell(w, BROKEN, seq, status, "a turn that began was refused later");
    return status;
}

static void *work(void *arg)
{
    worker *w = arg;
    char *text = malloc(LONGEST);
    for (uint32_t seq = 0;; seq++) {
        sessile_error err = {SESSILE_OK, ""};
        uint64_t dice = random_next(&w->seed) % 100;
        sessile_session *s = w->sessions[random_next(&w->seed) % SESSIONS];
        sessile_status status;
        if (dice < 4) {
            sessile_session_options o;
            sessile_session *made;
            char id[80];
            sessile_session_options_init(&o);
            snprintf(id, sizeof id, "c-%u-%u-%u-%u", w->slot, w->life, w->thread, seq);
            o.id = sessile_text(id);
            status = sessile_create(&made, w->store, &o, &err);
            if (!status) {
                sessile_session_close(made, NULL);
                tell(w, CREATED, seq, status, "");
                continue;
            }
        } else if (dice < 45) {
            status = do_turn(w, s, seq, text, &err);
        } else {
            size_t most = dice < 48 ? LONGEST - 200 : 500;
            status = do_append(w, s, seq, random_next(&w->seed) % most, text, &err);
            if (status == SESSILE_CONFLICT)
                tell(w, BROKEN, seq, status, err.message);
        }
        if (!status) {
            tell(w, ACKNOWLEDGED, seq, status, "");
        } else if (status == SESSILE_BUSY || status == SESSILE_CONFLICT) {
            sessile_id head;
            tell(w, REFUSED, seq, status, "");
            (void)sessile_head(s, &head, NULL); /* looks again */
        } else {
            tell(w, BROKEN, seq, status, err.message);
        }
    }
    return NULL;
}

static void store_options(sessile_store_options *o, int timeout_ms)
{
    sessile_store_options_init(o);
    o->key_source = SESSILE_KEY_SECRET;
    o->key = KIT_SECRET;
    o->config.has_timeout = 1;
    o->config.timeout_ms = timeout_ms;
}

static const char *session_name(unsigned i)
{
    static const char *const names[SESSIONS] = {"one", "Two \xff", "three"};
    return names[i];
}

/* Opening may meet a stopped writer: then once more. */
static sessile_session *resume(const worker *w, unsigned i)
{
    sessile_session_options o;
    sessile_session *s;
    sessile_error err = {SESSILE_OK, ""};
    sessile_status status;
    sessile_session_options_init(&o);
    o.id = sessile_text(session_name(i));
    do {
        status = sessile_resume(&s, w->store, &o, &err);
    } while (status == SESSILE_BUSY);
    if (status)
        tell(w, BROKEN, 0, status, err.message);
    return s;
}

static void process(const char *root, unsigned slot, uint32_t life, uint64_t seed)
{
    worker workers[THREADS];
    pthread_t threads[THREADS];
    sessile_session *sessions[THREADS][SESSIONS];
    sessile_store_options o;
    sessile_store *store = NULL;
    sessile_error err = {SESSILE_OK, ""};
    const worker first = {.slot = slot, .life = life};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    carry_fuse(&seed);
    store_options(&o, 300);
    sessile_status status = sessile_open(&store, root, &o, &err);
    if (status)
        tell(&first, BROKEN, 0, status, err.message);
    for (unsigned t = 0; t < THREADS; t++) {
        workers[t] = (worker){slot, t, life, random_next(&seed), store, sessions[t]};
        if (t == 1)
            workers[t].sessions = sessions[0];
        for (unsigned i = 0; t != 1 && i < SESSIONS; i++)
            sessions[t][i] = resume(&workers[t], i);
    }
    for (unsigned t = 1; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, work, &workers[t]) != 0)
            _exit(5);
    work(&workers[0]);
}

/* ------------------------------------------------------------------ the parent */

/* What one thread of one life said: the outcome of each of its calls, in order. */
typedef struct record {
    uint8_t outcome; /* report_kind; 0: not reported */
    uint8_t found, parts;
} record;
typedef struct history {
    record *calls; /* one more than were reported: the call that was cut short */
    size_t count, capacity;
    int64_t last[SESSIONS]; /* newest call found in a session, to compare the order */
} history;

typedef struct child {
    pid_t pid;
    int stopped;
    history (*lives)[THREADS];
    uint32_t life_count;
} child;

typedef struct round {
    char folder[256], root[300];
    child children[PROCESSES];
    int pipe[2];
    uint64_t seed;
    unsigned long kills, fuses, conflicts, busy, acknowledged, lost, twice, turns,
        created;
} kill_round;

static void broken(const kill_round *r, const char *why)
{
    print_error("seed %llu: %s\n", (unsigned long long)r->seed, why);
}

static record *call_of(history *h, size_t seq)
{
    while (h->capacity <= seq) {
        size_t more = h->capacity ? 2 * h->capacity : 64;
        h->calls = realloc(h->calls, more * sizeof *h->calls);
        assert_non_null(h->calls);
        memset(h->calls + h->capacity, 0, (more - h->capacity) * sizeof *h->calls);
        h->capacity = more;
    }
    return &h->calls[seq];
}

static void take_report(kill_round *r, const report *p)
{
    if (p->kind == BROKEN) {
        broken(r, p->text);
        assert_int_not_equal(p->kind, BROKEN);
    }
    assert_true(p->slot < PROCESSES && p->thread < THREADS &&
                p->life < r->children[p->slot].life_count);
    history *h = &r->children[p->slot].lives[p->life][p->thread];
    assert_int_equal(h->count, p->seq);
    call_of(h, p->seq)->outcome = p->kind;
    h->count++;
    r->acknowledged += p->kind == ACKNOWLEDGED;
    r->created += p->kind == CREATED;
    r->conflicts += p->kind == REFUSED && p->conflict;
    r->busy += p->kind == REFUSED && !p->conflict;
}

static void take_reports(kill_round *r)
{
    report some[64];
    ssize_t got;
    while ((got = read(r->pipe[0], some, sizeof some)) > 0) {
        assert_int_equal(got % (ssize_t)sizeof *some, 0);
        for (size_t i = 0; i < (size_t)got / sizeof *some; i++)
            take_report(r, &some[i]);
    }
    assert_true(got == 0 || errno == EAGAIN);
}

static void start(kill_round *r, unsigned slot)
{
    child *c = &r->children[slot];
    uint64_t seed = random_next(&r->seed);
    uint32_t life = c->life_count++;
    c->lives = realloc(c->lives, c->life_count * sizeof *c->lives);
    assert_non_null(c->lives);
    memset(c->lives[life], 0, sizeof c->lives[life]);
    c->stopped = 0;
    c->pid = fork();
    assert_true(c->pid >= 0);
    if (c->pid == 0) {
        close(r->pipe[0]);
        report_fd = r->pipe[1];
        process(r->root, slot, life, seed);
        _exit(6);
    }
}

/* Takes note of who is dead. 1: somebody was. */
static int reap(kill_round *r, unsigned slot, int flags)
{
    child *c = &r->children[slot];
    int status;
    if (c->pid == 0 || waitpid(c->pid, &status, flags) != c->pid)
        return 0;
    c->pid = 0;
    take_reports(r);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        print_error("seed %llu: process %u ended by itself: %x\n",
                    (unsigned long long)r->seed, slot, (unsigned)status);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGKILL);
    }
    r->kills++;
    return 1;
}

static void harass(kill_round *r)
{
    unsigned long by_hand = 0;
    while (r->kills < KILLS_A_ROUND) {
        struct pollfd wait = {r->pipe[0], POLLIN, 0};
        struct timespec pause = {0, (long)(random_next(&r->seed) % 25) * 1000000};
        nanosleep(&pause, NULL);
        (void)poll(&wait, 1, 0);
        take_reports(r);
        child *c = &r->children[random_next(&r->seed) % PROCESSES];
        unsigned dice = (unsigned)(random_next(&r->seed) % 10);
        if (c->pid != 0 && dice < 3) {
            kill(c->pid, SIGSTOP);
            c->stopped = 1;
        } else if (c->pid != 0 && (dice < 6 || c->stopped)) {
            kill(c->pid, c->stopped && dice < 8 ? SIGCONT : SIGKILL);
            by_hand += !(c->stopped && dice < 8);
            c->stopped = 0;
        }
        for (unsigned slot = 0; slot < PROCESSES; slot++)
            if (reap(r, slot, WNOHANG))
                start(r, slot);
    }
    for (unsigned slot = 0; slot < PROCESSES; slot++)
        if (r->children[slot].pid != 0)
            kill(r->children[slot].pid, SIGKILL);
    by_hand += PROCESSES;
    for (unsigned slot = 0; slot < PROCESSES; slot++)
        reap(r, slot, 0);
    r->fuses = r->kills > by_hand ? r->kills - by_hand : 0;
    take_reports(r);
}

/* ------------------------------------------------------------------ what is there */

/* One message of the log. Its turn's parts follow each other: `open` of them are still to
 * come, and then a turn entry. */
typedef struct expected {
    unsigned slot, thread, part, of;
    uint32_t life, seq;
} expected;

static void found(kill_round *r, unsigned session, const char *json, expected *turn)
{
    expected e;
    const char *at = strstr(json, "\"content\":\"k.");
    assert_non_null(at);
    assert_int_equal(sscanf(at + 13, "%u.%u.%u.%u.%u.%u.", &e.slot, &e.life, &e.thread,
                            &e.seq, &e.part, &e.of),
                     6);
    assert_true(e.slot < PROCESSES && e.thread < THREADS &&
                e.life < r->children[e.slot].life_count);
    history *h = &r->children[e.slot].lives[e.life][e.thread];
    assert_true(e.seq <= h->count); /* else nobody ever sent it */
    record *call = call_of(h, e.seq);
    if (call->outcome == REFUSED)
        broken(r, json);
    assert_true(call->outcome == ACKNOWLEDGED || e.seq == h->count);
    if (turn->of != 0) { /* inside a turn only its own next part may stand */
        assert_true(e.slot == turn->slot && e.thread == turn->thread &&
                    e.life == turn->life && e.seq == turn->seq && e.of == turn->of);
        assert_int_equal(e.part, turn->part + 1);
        *turn = e;
        return;
    }
    assert_int_equal(e.part, 1);
    if (call->found++ > 0) {
        broken(r, json);
        r->twice++;
    }
    assert_true((int64_t)e.seq > h->last[session] - 1);
    h->last[session] = (int64_t)e.seq + 1;
    if (e.of > 0)
        *turn = e;
}

static void check_session(kill_round *r, sessile_store *store, unsigned i)
{
    sessile_session_options o;
    sessile_session *s;
    sessile_entries *all;
    sessile_error err = {SESSILE_OK, ""};
    expected turn = {0};
    const char *json;
    size_t size;
    sessile_id id, next = 0;
    sessile_session_options_init(&o);
    o.id = sessile_text(session_name(i));
    sessile_status status = sessile_resume(&s, store, &o, &err);
    if (status)
        broken(r, err.message);
    assert_int_equal(status, SESSILE_OK);
    assert_int_equal(sessile_entries_open(&all, s, &err), SESSILE_OK);
    for (;;) {
        assert_int_equal(sessile_entries_next(all, &id, &json, &size, &err), SESSILE_OK);
        if (size == 0)
            break;
        assert_int_equal(id, next++);
        if (strstr(json, "\"type\":\"message\"")) {
            found(r, i, json, &turn);
        } else if (strstr(json, "\"type\":\"turn\"")) {
            assert_true(turn.of > 0 && turn.part == turn.of);
            turn.of = 0;
            r->turns++;
        } else {
            assert_int_equal(id, 0);
        }
    }
    assert_int_equal(turn.of, 0); /* no half of a turn at the end */
    sessile_entries_close(all);
    /* no lock is left: the store waits for none */
    assert_int_equal(
        sessile_append(s, sessile_text("{\"role\":\"user\",\"content\":\"after\"}"), &id,
                       &err),
        SESSILE_OK);
    assert_int_equal(sessile_session_close(s, &err), SESSILE_OK);
}

static void check_created(kill_round *r, sessile_store *store)
{
    sessile_listed *rows;
    size_t count;
    unsigned long named = 0;
    sessile_error err;
    assert_int_equal(sessile_list(store, NULL, &rows, &count, &err), SESSILE_OK);
    for (size_t i = 0; i < count; i++) {
        unsigned slot, thread;
        uint32_t life, seq;
        if (rows[i].status)
            broken(r, rows[i].message);
        assert_int_equal(rows[i].status, SESSILE_OK);
        char id[100];
        snprintf(id, sizeof id, "%.*s", (int)rows[i].id.size, rows[i].id.data);
        if (sscanf(id, "c-%u-%u-%u-%u", &slot, &life, &thread, &seq) != 4)
            continue;
        assert_true(slot < PROCESSES && thread < THREADS &&
                    life < r->children[slot].life_count);
        history *h = &r->children[slot].lives[life][thread];
        assert_true(seq <= h->count);
        named += call_of(h, seq)->outcome == CREATED;
    }
    assert_int_equal(named, r->created);
    sessile_free(rows);
}

static void check_calls(kill_round *r)
{
    for (unsigned slot = 0; slot < PROCESSES; slot++)
        for (uint32_t life = 0; life < r->children[slot].life_count; life++)
            for (unsigned t = 0; t < THREADS; t++) {
                history *h = &r->children[slot].lives[life][t];
                for (size_t i = 0; i < h->count; i++)
                    r->lost += h->calls[i].outcome == ACKNOWLEDGED && !h->calls[i].found;
            }
    if (r->lost + r->twice > 0)
        print_error("seed %llu: %lu lost, %lu twice\n", (unsigned long long)r->seed,
                    r->lost, r->twice);
}

static unsigned long count_pieces(const kill_round *r)
{
    char path[400];
    unsigned long count = 0;
    snprintf(path, sizeof path, "%s/agents/main", r->root);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder));)
        count += strstr(e->d_name, ".torn-") != NULL;
    closedir(folder);
    return count;
}

static void round_free(kill_round *r)
{
    for (unsigned slot = 0; slot < PROCESSES; slot++) {
        child *c = &r->children[slot];
        for (uint32_t life = 0; life < c->life_count; life++)
            for (unsigned t = 0; t < THREADS; t++)
                free(c->lives[life][t].calls);
        free(c->lives);
    }
    close(r->pipe[0]);
    close(r->pipe[1]);
    scratch_remove(r->folder);
}

static int tear_down(void **state)
{
    /* also after a failed check: nobody stays behind */
    kill_round *r = *state;
    for (unsigned slot = 0; slot < PROCESSES; slot++)
        if (r->children[slot].pid > 0) {
            kill(r->children[slot].pid, SIGKILL);
            waitpid(r->children[slot].pid, NULL, 0);
        }
    free(r);
    return 0;
}

static int set_up(void **state)
{
    *state = calloc(1, sizeof(kill_round));
    return *state == NULL;
}

static void killed_writers_lose_and_repeat_nothing(void **state)
{
    kill_round *r = *state;
    unsigned long rounds = getenv("SESSILE_SOAK") ? 10000 / KILLS_A_ROUND + 1 : 1;
    unsigned long kills = 0, fuses = 0, acknowledged = 0, conflicts = 0, busy = 0,
                  turns = 0, created = 0, torn = 0;
    uint64_t seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    for (unsigned long n = 0; n < rounds; n++) {
        sessile_store_options o;
        sessile_store *store;
        sessile_error err = {SESSILE_OK, ""};
        memset(r, 0, sizeof *r);
        r->seed = random_next(&seed);
        print_message("seed %llu\n", (unsigned long long)r->seed);
        scratch_make(r->folder);
        snprintf(r->root, sizeof r->root, "%s/store", r->folder);
        assert_int_equal(pipe2(r->pipe, O_CLOEXEC), 0);
        assert_int_equal(fcntl(r->pipe[0], F_SETFL, O_NONBLOCK), 0);
        store_options(&o, 0);
        assert_int_equal(sessile_open(&store, r->root, &o, &err), SESSILE_OK);
        for (unsigned i = 0; i < SESSIONS; i++) {
            sessile_session_options so;
            sessile_session *s;
            sessile_session_options_init(&so);
            so.id = sessile_text(session_name(i));
            assert_int_equal(sessile_create(&s, store, &so, &err), SESSILE_OK);
            assert_int_equal(sessile_session_close(s, &err), SESSILE_OK);
        }
        sessile_store_close(store);

        for (unsigned slot = 0; slot < PROCESSES; slot++)
            start(r, slot);
        harass(r);

        assert_int_equal(sessile_open(&store, r->root, &o, &err), SESSILE_OK);
        for (unsigned i = 0; i < SESSIONS; i++)
            check_session(r, store, i);
        check_created(r, store);
        check_calls(r);
        assert_int_equal(r->lost, 0);
        assert_int_equal(r->twice, 0);
        assert_true(r->acknowledged > 0 && r->turns > 0);
        sessile_store_close(store);
        kills += r->kills, fuses += r->fuses, acknowledged += r->acknowledged;
        conflicts += r->conflicts, busy += r->busy, turns += r->turns;
        created += r->created, torn += count_pieces(r);
        round_free(r);
    }
    printf("# figure: kills = %lu\n", kills);
    printf("# figure: kills in the middle of a system call = %lu\n", fuses);
    printf("# figure: acknowledged under kills = %lu\n", acknowledged);
    printf("# figure: acknowledged and lost under kills = 0\n");
    printf("# figure: written twice under kills = 0\n");
    printf("# figure: turns under kills = %lu\n", turns);
    printf("# figure: sessions created under kills = %lu\n", created);
    printf("# figure: conflicts under kills = %lu\n", conflicts);
    printf("# figure: busy under kills = %lu\n", busy);
    printf("# figure: torn tails set aside under kills = %lu\n", torn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_writers_lose_and_repeat_nothing, set_up,
                                        tear_down),
    };
    assert_int_equal(base_init(), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

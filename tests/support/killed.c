/*
 * killed.c: fuses, reports, and the parent that kills.
 *
 * Must never depend on how fast anything is: there are more or fewer calls, the rules
 * stay.
 */
#include "support/killed.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "base/text.h"
#include "support/logs.h"

/* ------------------------------------------------------------------ fuses */

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

/* ------------------------------------------------------------------ reports */

/* Written with one write(2), smaller than PIPE_BUF: whole or not at all. */
typedef struct report {
    uint8_t kind, slot, thread, conflict;
    uint32_t life, seq;
    char text[160]; /* BROKEN: what happened */
} report;

static int report_fd;

void killed_tell(const killed_thread *t, report_kind kind, uint32_t seq,
                 sessile_status status, const char *text)
{
    report r;
    memset(&r, 0, sizeof r);
    r.kind = (uint8_t)kind;
    r.slot = (uint8_t)t->slot;
    r.thread = (uint8_t)t->thread;
    r.life = t->life;
    r.seq = seq;
    r.conflict = status == SESSILE_CONFLICT;
    if (kind == BROKEN)
        snprintf(r.text, sizeof r.text, "%s: %s", sessile_status_name(status), text);
    if (write(report_fd, &r, sizeof r) != (ssize_t)sizeof r)
        _exit(4);
    if (kind == BROKEN)
        _exit(3);
}

/* ------------------------------------------------------------------ the parent */

void killed_broken(const killed_round *r, const char *why)
{
    print_error("seed %llu: %s\n", (unsigned long long)r->seed, why);
}

static killed_call *call_of(killed_history *h, size_t seq)
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

static void take_report(killed_round *r, const report *p)
{
    if (p->kind == BROKEN) {
        killed_broken(r, p->text);
        assert_int_not_equal(p->kind, BROKEN);
    }
    assert_true(p->slot < PROCESSES && p->thread < THREADS &&
                p->life < r->children[p->slot].life_count);
    killed_history *h = &r->children[p->slot].lives[p->life][p->thread];
    assert_int_equal(h->count, p->seq);
    call_of(h, p->seq)->outcome = p->kind;
    h->count++;
    r->acknowledged += p->kind == ACKNOWLEDGED;
    r->created += p->kind == CREATED;
    r->conflicts += p->kind == REFUSED && p->conflict;
    r->busy += p->kind == REFUSED && !p->conflict;
}

static void take_reports(killed_round *r)
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

static void start(killed_round *r, unsigned slot)
{
    killed_child *c = &r->children[slot];
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
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        carry_fuse(&seed);
        r->process(r->root, slot, life, seed);
        _exit(6);
    }
}

/* Takes note of who is dead. 1: somebody was. */
static int reap(killed_round *r, unsigned slot, int flags)
{
    killed_child *c = &r->children[slot];
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

static void harass(killed_round *r, unsigned long kills)
{
    unsigned long by_hand = 0;
    while (r->kills < kills) {
        struct pollfd wait = {r->pipe[0], POLLIN, 0};
        struct timespec pause = {0, (long)(random_next(&r->seed) % 25) * 1000000};
        nanosleep(&pause, NULL);
        (void)poll(&wait, 1, 0);
        take_reports(r);
        killed_child *c = &r->children[random_next(&r->seed) % PROCESSES];
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

/* ------------------------------------------------------------------ a round */

void killed_begin(killed_round *r, uint64_t seed,
                  void (*process)(const char *root, unsigned slot, uint32_t life,
                                  uint64_t seed))
{
    memset(r, 0, sizeof *r);
    r->seed = seed;
    r->process = process;
    print_message("seed %llu\n", (unsigned long long)r->seed);
    scratch_make(r->folder);
    snprintf(r->root, sizeof r->root, "%s/store", r->folder);
    assert_int_equal(pipe2(r->pipe, O_CLOEXEC), 0);
    assert_int_equal(fcntl(r->pipe[0], F_SETFL, O_NONBLOCK), 0);
}

void killed_run(killed_round *r, unsigned long kills)
{
    for (unsigned slot = 0; slot < PROCESSES; slot++)
        start(r, slot);
    harass(r, kills);
}

/* Frees what the round holds; a second call does nothing. */
static void free_round(killed_round *r)
{
    for (unsigned slot = 0; slot < PROCESSES; slot++) {
        killed_child *c = &r->children[slot];
        for (uint32_t life = 0; life < c->life_count; life++)
            for (unsigned t = 0; t < THREADS; t++)
                free(c->lives[life][t].calls);
        free(c->lives);
        c->lives = NULL;
        c->life_count = 0;
    }
}

void killed_stop(killed_round *r)
{
    for (unsigned slot = 0; slot < PROCESSES; slot++)
        if (r->children[slot].pid > 0) {
            kill(r->children[slot].pid, SIGKILL);
            waitpid(r->children[slot].pid, NULL, 0);
        }
    free_round(r);
}

void killed_end(killed_round *r)
{
    free_round(r);
    close(r->pipe[0]);
    close(r->pipe[1]);
    scratch_remove(r->folder);
}

/* ------------------------------------------------------------------ what is there */

killed_call *killed_made(killed_round *r, unsigned slot, uint32_t life, unsigned thread,
                         uint32_t seq, killed_history **history)
{
    assert_true(slot < PROCESSES && thread < THREADS &&
                life < r->children[slot].life_count);
    killed_history *h = &r->children[slot].lives[life][thread];
    assert_true(seq <= h->count); /* else nobody ever sent it */
    if (history)
        *history = h;
    return call_of(h, seq);
}

unsigned long killed_lost(const killed_round *r)
{
    unsigned long lost = 0;
    for (unsigned slot = 0; slot < PROCESSES; slot++)
        for (uint32_t life = 0; life < r->children[slot].life_count; life++)
            for (unsigned t = 0; t < THREADS; t++) {
                const killed_history *h = &r->children[slot].lives[life][t];
                for (size_t i = 0; i < h->count; i++)
                    lost += h->calls[i].outcome == ACKNOWLEDGED && !h->calls[i].found;
            }
    return lost;
}

unsigned long killed_files(const char *path,
                           int (*each)(const char *folder, const char *name))
{
    unsigned long sum = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder));)
        sum += (unsigned long)each(path, e->d_name);
    closedir(folder);
    return sum;
}

static int is_piece(const char *folder, const char *name)
{
    (void)folder;
    return strstr(name, ".torn-") != NULL;
}

unsigned long killed_pieces(const killed_round *r, const char *of)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", r->root, of);
    return killed_files(path, is_piece);
}

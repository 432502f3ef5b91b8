/* limits.c: see limits.h. */
#include "support/limits.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

/* ------------------------------------------------------------------ times */

void limit_calls_add(limit_calls *c, int64_t before_us, int64_t after_us)
{
    if (c->count == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 64;
        c->at = realloc(c->at, c->capacity * sizeof *c->at);
    }
    c->at[c->count++] = (limit_call){before_us, after_us};
}

void limit_calls_free(limit_calls *c)
{
    free(c->at);
    memset(c, 0, sizeof *c);
}

static int by_before(const void *a, const void *b)
{
    const limit_call *x = a, *y = b;
    return (x->before_us > y->before_us) - (x->before_us < y->before_us);
}

void limit_calls_judge(limit_calls *c, limit_rate rate)
{
    if (c->count == 0)
        return;
    qsort(c->at, c->count, sizeof *c->at, by_before);
    for (size_t i = 0; i < c->count; i++) {
        /* those that began no earlier, and ended no more than a period after this began
         */
        int64_t from = c->at[i].before_us;
        size_t within = 0;
        for (size_t k = i;
             k < c->count && c->at[k].before_us - from <= (int64_t)rate.period_ms * 1000;
             k++)
            within += c->at[k].after_us - from <= (int64_t)rate.period_ms * 1000;
        if (within > rate.count)
            fail_msg("%zu calls within %u ms, and %u are allowed", within,
                     (unsigned)rate.period_ms, (unsigned)rate.count);
    }
}

/* ------------------------------------------------------------------ limiters */

store_core *limit_store(const char *url)
{
    sessile_store_options options;
    sessile_error err = {0};
    store_core *store;
    memset(&options, 0, sizeof options);
    options.key_source = SESSILE_KEY_PLAIN;
    must(store_handle_open(&store, url, &options, &err), &err);
    return store;
}

limit_rate limit_rate_of(const char *rate)
{
    sessile_error err = {0};
    limit_rate out;
    must(limit_rate_parse(&out, (sessile_slice){rate, strlen(rate)}, &err), &err);
    return out;
}

limiter *limit_opened(const store_core *store, const char *rate, const char *shared,
                      int deny)
{
    limit_options options;
    sessile_error err = {0};
    limiter *l;
    limit_options_init(&options);
    options.rates[LIMIT_SEARCHES] = limit_rate_of(rate);
    options.shared = shared;
    options.deny = deny;
    must(limiter_open(&l, store, &options, &err), &err);
    return l;
}

uint64_t limit_somebody(const limiter *l, const char *name)
{
    sessile_slice part = {name, strlen(name)};
    return limiter_who(l, &part, 1);
}

int limit_let(limiter *l, uint64_t who, int64_t *retry_ms)
{
    sessile_error err = {0};
    sessile_status status = limit_take(l, LIMIT_SEARCHES, who, NULL, &err);
    if (retry_ms)
        *retry_ms = err.retry_ms;
    if (status == SESSILE_OK) {
        assert_int_equal(err.retry_ms, 0);
        return 1;
    }
    assert_refused(status, SESSILE_LIMIT, &err, "searches");
    return 0;
}

/* ------------------------------------------------------------------ clocks */

static uint64_t clock_of(void *ud)
{
    return ((limit_clock *)ud)->us;
}

static uint64_t boot_of(void *ud)
{
    return ((limit_clock *)ud)->boot;
}

void limit_clock_init(limit_clock *c)
{
    c->table = os_posix; /* whose functions ignore ud */
    c->table.ud = c;
    c->table.clock_us = clock_of;
    c->table.boot = boot_of;
    c->us = UINT64_C(123456789012);
    c->boot = 1;
}

int64_t limit_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ------------------------------------------------------------------ processes */

static pid_t start(const char *url, const char *rate, const char *shared, int deny,
                   int to)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    store_core *store = limit_store(url);
    limiter *l = limit_opened(store, rate, shared, deny);
    uint64_t who = limit_somebody(l, "ann");
    for (;;) {
        int64_t before = limit_now_us();
        if (limit_take(l, LIMIT_SEARCHES, who, NULL, NULL) == SESSILE_OK) {
            limit_call call = {before, limit_now_us()};
            if (write(to, &call, sizeof call) != sizeof call)
                _exit(1);
        }
        usleep(200);
    }
}

static size_t calls_in(int pipe)
{
    int bytes = 0;
    assert_int_equal(ioctl(pipe, FIONREAD, &bytes), 0);
    return (size_t)bytes / sizeof(limit_call);
}

void limit_processes(const char *url, const char *rate, const char *shared, int count,
                     size_t least, int ms, limit_calls *out, void (*meanwhile)(void *arg),
                     void *arg)
{
    pid_t pids[32];
    int ends[2];
    limit_call call;
    int64_t until = limit_now_us() + (int64_t)ms * 1000;
    assert_true(count <= 32);
    /* a server that `meanwhile` starts must not keep it open */
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    /* A server that nobody stops and that is slow once is asked again: without this,
     * what it did not answer in time would be counted in the processes alone. */
    const int deny = shared && !meanwhile;
    for (int i = 0; i < count; i++)
        pids[i] = start(url, rate, shared, deny, ends[1]);
    for (unsigned turn = 1; limit_now_us() < until || calls_in(ends[0]) < least; turn++) {
        usleep(50000);
        int i = (int)(turn * 7u % (unsigned)count);
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
        if (meanwhile)
            meanwhile(arg);
        pids[i] = start(url, rate, shared, deny, ends[1]);
    }
    for (int i = 0; i < count; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    close(ends[1]);
    while (read(ends[0], &call, sizeof call) == sizeof call)
        limit_calls_add(out, call.before_us, call.after_us);
    close(ends[0]);
}

/*
 * limit.c: a call that is counted by a rate limit: in the handle, in the file of a
 * folder, in Redis. Each sample is the mean of many calls of many callers, none of them
 * refused.
 */
#include "bench/measure.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limit/limit.h"

enum { CALLERS = 1000, RECORD_SIZE = 128 };

static limiter *open_limiter(store_core **store, const char *name, const char *shared)
{
    char url[4400];
    sessile_store_options options;
    limit_options limits;
    sessile_error err;
    limiter *l;
    memset(&options, 0, sizeof options);
    options.key_source = SESSILE_KEY_PLAIN;
    snprintf(url, sizeof url, "%s/%s", bench_folder, name ? name : "");
    must(store_handle_open(store, name ? url : "ram:", &options, &err), &err);
    limit_options_init(&limits);
    limits.rates[LIMIT_SEARCHES] = (limit_rate){LIMIT_COUNT_MOST, 1000};
    limits.shared = shared;
    must(limiter_open(&l, *store, &limits, &err), &err);
    return l;
}

/* The time of one of n calls. */
static double timed_calls(limiter *l, const uint64_t who[CALLERS], int n)
{
    static unsigned next;
    sessile_error err;
    double t = now_us();
    for (int i = 0; i < n; i++)
        must(limit_take(l, LIMIT_SEARCHES, who[next++ % CALLERS], NULL, &err), &err);
    return (now_us() - t) / n;
}

static double timed_records(int fd, int n)
{
    char record[RECORD_SIZE] = {1};
    double t = now_us();
    for (int i = 0; i < n; i++) {
        off_t at = (i * 977) % 65536 * RECORD_SIZE;
        struct flock lock = {.l_type = F_WRLCK, .l_start = at, .l_len = RECORD_SIZE};
        if (fcntl(fd, F_OFD_SETLK, &lock) != 0 ||
            pread(fd, record, sizeof record, at) < 0 ||
            pwrite(fd, record, sizeof record, at) != sizeof record)
            broken("a record");
        lock.l_type = F_UNLCK;
        if (fcntl(fd, F_OFD_SETLK, &lock) != 0)
            broken("a lock");
    }
    return (now_us() - t) / n;
}

/* Two PINGs, one after the other. */
static double timed_pings(int fd, int n)
{
    char answer[64];
    double t = now_us();
    for (int i = 0; i < 2 * n; i++)
        if (write(fd, "PING\r\n", 6) != 6 || read(fd, answer, sizeof answer) != 7)
            broken("PING");
    return (now_us() - t) / n;
}

typedef double floor_of(int fd, int n);

static void bench_place(const char *label, const char *name, const char *shared,
                        floor_of *floor, int fd, const char *floor_is, double wanted,
                        int calls)
{
    static samples ours, bare;
    uint64_t who[CALLERS];
    store_core *store;
    limiter *l = open_limiter(&store, name, shared);
    sessile_error why;
    for (int i = 0; i < CALLERS; i++) {
        char text[16];
        sessile_slice part = {text, (size_t)snprintf(text, sizeof text, "user %d", i)};
        who[i] = limiter_who(l, &part, 1);
    }
    timed_calls(l, who, 2 * CALLERS);
    for (int i = 0; i < (int)rounds(300); i++) {
        double f = floor && i & 1 ? floor(fd, calls) : 0;
        sample(&ours, timed_calls(l, who, calls));
        if (floor)
            sample(&bare, i & 1 ? f : floor(fd, calls));
    }
    if (limiter_lost(l, &why))
        broken(why.message);
    if (!floor)
        note("%s: %.0f ns; at most 100 are asked for", label, 1000 * median(&ours));
    row_print(&(row){label, &ours, floor ? &bare : NULL, NULL, floor_is, wanted, 0});
    limiter_close(l);
    store_handle_close(store);
}

/* ------------------------------------------------------------------ Redis */

static pid_t start_redis(const char *path)
{
    pid_t pid = fork();
    if (pid == 0) {
        int out = open("/dev/null", O_WRONLY);
        dup2(out, 1);
        dup2(out, 2);
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path,
               "--save", "", "--dir", bench_folder, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static int connect_redis(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, path, strnlen(path, sizeof at.sun_path - 1));
    for (int i = 0; i < 300; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
            return fd;
        close(fd);
        usleep(10000);
    }
    return -1;
}

static void bench_redis(void)
{
    char folder[] = "/tmp/bench-redis.XXXXXX", path[64], url[80];
    if (!mkdtemp(folder))
        broken(folder);
    snprintf(path, sizeof path, "%s/s", folder);
    snprintf(url, sizeof url, "redis://%s", path);
    pid_t pid = start_redis(path);
    int fd = connect_redis(path);
    if (fd < 0)
        note("no row of Redis: there is no redis-server");
    else
        bench_place("a limited call, Redis", NULL, url, timed_pings, fd,
                    "two PINGs, one after the other", 2, 50);
    if (fd >= 0)
        close(fd);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    unlink(path);
    rmdir(folder);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    int fd = floor_open("records");
    if (ftruncate(fd, 65536 * RECORD_SIZE) != 0)
        broken("records");
    bench_place("a limited call, in memory", NULL, NULL, NULL, -1, "", 0, 10000);
    bench_place("a limited call, folder", "limited", NULL, timed_records, fd,
                "lock, pread, pwrite, unlock of 128 bytes", 1.5, 1000);
    close(fd);
    bench_redis();
    return bench_end();
}

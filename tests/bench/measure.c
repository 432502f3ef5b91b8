/*
 * measure.c: the clock, the table, and what is measured.
 */
#include "bench/measure.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

char bench_folder[4000];

double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

_Noreturn void broken(const char *what)
{
    perror(what);
    exit(1);
}

void must(sessile_status status, const sessile_error *err)
{
    if (!status)
        return;
    fprintf(stderr, "bench: %s: %s\n", sessile_status_name(status), err->message);
    exit(1);
}

/* ---------------------------------------------------------------------- the run */

int bench_short(void)
{
    const char *text = getenv("BENCH_SHORT");
    return text && *text && *text != '0';
}

size_t rounds(size_t n)
{
    return !bench_short() ? n : n > 100 ? n / 20 : 5;
}

void bench_make_folder(int argc, char **argv)
{
    const char *base = argc > 1 ? argv[1] : getenv("TMPDIR");
    char whole[PATH_MAX];
    snprintf(bench_folder, sizeof bench_folder, "%s/sessile-bench.XXXXXX",
             base ? base : ".");
    if (!mkdtemp(bench_folder) || !realpath(bench_folder, whole) ||
        strlen(whole) >= sizeof bench_folder)
        broken(bench_folder);
    memcpy(bench_folder, whole, strlen(whole) + 1);
}

void bench_begin(int argc, char **argv)
{
    bench_make_folder(argc, argv);
    printf("%-40s %5s %9s %9s %9s %9s %7s %7s %7s %9s %7s %8s  %s\n", "operation", "n",
           "ours us", "p95", "floor us", "p95", "ratio", "p95", "reach", "SQLite",
           "of ours", "asked ms", "floor is");
}

int bench_end(void)
{
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s'", bench_folder);
    return system(command) ? 1 : 0;
}

int bench_certificate(char *cert, char *key, size_t size)
{
    char command[16000];
    snprintf(cert, size, "%s/bench.pem", bench_folder);
    snprintf(key, size, "%s/bench.key", bench_folder);
    snprintf(
        command, sizeof command,
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -sha256 "
        "-keyout '%s' -out '%s' -days 2 -subj /CN=bench -addext "
        "subjectAltName=IP:127.0.0.1 2>/dev/null && chmod 600 '%s'",
        key, cert, key);
    return system(command) == 0;
}

/* ---------------------------------------------------------------------- samples, rows */

void sample(samples *s, double us)
{
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 64;
        s->at = realloc(s->at, s->capacity * sizeof *s->at);
        if (!s->at)
            broken("samples");
    }
    s->at[s->count++] = us;
}

void sample_round(samples *ours, double our_us, samples *floor, double floor_us,
                  samples *peer, double peer_us)
{
    sample(ours, our_us);
    sample(floor, floor_us);
    if (peer)
        sample(peer, peer_us);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double at_share(const samples *s, double share)
{
    if (!s || !s->count)
        return NAN;
    qsort(s->at, s->count, sizeof *s->at, by_value);
    return s->at[(size_t)(share * (double)(s->count - 1))];
}

double median(const samples *s)
{
    return at_share(s, 0.5);
}

double p95(const samples *s)
{
    return at_share(s, 0.95);
}

void cell_print(int width, int decimals, double value, const char *unit)
{
    char text[64] = "";
    if (!isnan(value) && value > 0)
        snprintf(text, sizeof text, "%.*f%s", decimals, value, unit);
    printf(" %*s", width, text);
}

void row_print(const row *r)
{
    double o50 = median(r->ours), o95 = p95(r->ours);
    double f50 = median(r->floor), f95 = p95(r->floor), s50 = median(r->peer);
    const samples *all[] = {r->ours, r->floor, r->peer};
    printf("%-40s %5zu", r->name, r->ours->count);
    cell_print(9, 1, o50, "");
    cell_print(9, 1, o95, "");
    cell_print(9, 1, f50, "");
    cell_print(9, 1, f95, "");
    cell_print(7, 2, o50 / f50, "x");
    cell_print(7, 2, o95 / f95, "x");
    cell_print(7, 2, r->wanted, "x");
    cell_print(9, 1, s50, "");
    cell_print(7, 2, s50 / o50, "x");
    cell_print(8, 0, r->target_ms, "");
    printf("  %s\n", r->floor ? r->floor_is : "");
    fflush(stdout);
    for (size_t i = 0; i < 3; i++)
        if (all[i])
            ((samples *)(size_t)all[i])->count = 0;
}

void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

/* ---------------------------------------------------------------------- ours */

sessile_slice message_text(char *out, int i)
{
    size_t cap = 2 * MESSAGE;
    int n = snprintf(out, cap, "{\"role\":\"%s\",\"content\":\"%d ",
                     i % 2 ? "assistant" : "user", i);
    while (n < MESSAGE - 10)
        n += snprintf(out + n, cap - (size_t)n, "word%d ", (i * 31 + n) % 977);
    while (n < MESSAGE - 2)
        out[n++] = 'x';
    out[n++] = '"';
    out[n++] = '}';
    return (sessile_slice){out, (size_t)n};
}

sessile_store *open_store(const char *name, sessile_key_source key,
                          sessile_durability durability, sessile_alloc alloc,
                          void *alloc_ud)
{
    sessile_store_options o;
    sessile_error err;
    sessile_store *store;
    char path[4200];
    sessile_store_options_init(&o);
    o.key_source = key;
    o.key = "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    o.durability = durability;
    o.policy_path = "policies";
    o.alloc = alloc;
    o.alloc_ud = alloc_ud;
    snprintf(path, sizeof path, "%s/%s", bench_folder, name);
    must(sessile_open(&store, path, &o, &err), &err);
    return store;
}

sessile_session *open_session(sessile_store *store, const char *id)
{
    sessile_session_options o;
    sessile_error err;
    sessile_session *s;
    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    must(sessile_session_open(&s, store, &o, &err), &err);
    return s;
}

void close_session(sessile_session *s)
{
    sessile_error err;
    must(sessile_session_close(s, &err), &err);
}

void fill_session(sessile_session *s, size_t count)
{
    char text[2 * MESSAGE];
    sessile_error err;
    for (size_t i = 0; i < count; i++)
        must(sessile_append(s, message_text(text, (int)i), NULL, &err), &err);
}

void make_filled_session(sessile_store *store, const char *id, size_t count)
{
    sessile_session *s = open_session(store, id);
    fill_session(s, count);
    close_session(s);
}

void make_short_session(sessile_store *store, size_t count)
{
    static const char question[] = "{\"role\":\"user\",\"content\":\"what is this?\"}";
    sessile_session_options o;
    sessile_session *s;
    sessile_error err;
    sessile_session_options_init(&o);
    o.title = sessile_text("A question of some length");
    must(sessile_create(&s, store, &o, &err), &err);
    for (size_t n = 0; n < count; n++)
        must(sessile_append(s, sessile_text(question), NULL, &err), &err);
    close_session(s);
}

void use_policy(sessile_store *store, const char *name, const char *options)
{
    sessile_policy *loaded;
    sessile_policy_step step = {name, options, 0};
    sessile_error err;
    must(sessile_policy_load(&loaded, store, &step, 1, &err), &err);
    sessile_store_set_policy(store, loaded);
    sessile_policy_free(loaded);
}

double timed_list(sessile_store *store, uint64_t limit, size_t all)
{
    sessile_list_options o;
    sessile_listed *rows;
    sessile_error err;
    size_t count;
    sessile_list_options_init(&o);
    o.limit = limit;
    double t = now_us();
    must(sessile_list_with(store, &o, &rows, &count, &err), &err);
    t = now_us() - t;
    sessile_free(rows);
    if (count != (limit ? limit : all))
        broken("a list is not whole");
    return t;
}

double timed_threads(void *(*run)(void *arg), void *args, size_t size_of_one,
                     size_t count)
{
    pthread_t threads[64];
    if (count > sizeof threads / sizeof *threads)
        broken("too many threads");
    double t = now_us();
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run, (char *)args + i * size_of_one))
            broken("thread");
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return now_us() - t;
}

void log_path(char out[4400], const char *store, const char *id)
{
    snprintf(out, 4400, "%s/%s/agents/main/%s.jsonl", bench_folder, store, id);
}

off_t bench_file_size(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : st.st_size;
}

/* ---------------------------------------------------------------------- the bare write
 */

int floor_open(const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", bench_folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        broken(path);
    return fd;
}

double floor_write(int fd, off_t *end, const void *data, size_t size, int synced)
{
    double t = now_us();
    ssize_t n = pwrite(fd, data, size, *end);
    int bad = n != (ssize_t)size || (synced && fdatasync(fd));
    t = now_us() - t;
    if (bad)
        broken("floor");
    *end += (off_t)size;
    return t;
}

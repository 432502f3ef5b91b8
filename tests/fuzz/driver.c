/*
 * driver.c: runs a fuzzer where there is no libFuzzer, as a test.
 *
 *   fuzz/NAME                 the seeds of tests/fuzz/corpus/NAME and those made at run
 *                             time, then mutations of them: TAP
 *   fuzz/NAME FILE...         those inputs only: how a finding is run again
 *   fuzz/NAME --seeds FOLDER  writes all seeds there; --words FILE writes the dictionary
 *
 * Environment: SESSILE_ROOT (where tests/ is; default here); FUZZ_SEED and FUZZ_RUNS, to
 * repeat a run or to make it longer; SESSILE_SOAK=1: ten million mutations, or as many as
 * SOAK_MINUTES allows.
 *
 * Mutations know nothing of coverage: they find what is near the seeds. They depend on
 * the seed alone, which is printed; an input that breaks the fuzzer is written to a file.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/fuzz.h"

#define RUNS_OF_A_SOAK 10000000ull
#define SEEDS_MOST     4096

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

static input seeds[SEEDS_MOST];
static size_t seed_count, file_count;
static const uint8_t *now_data; /* what is being run, for keep_input() */
static size_t now_size;
static uint64_t state;

/* ---------------------------------------------------------------------- findings */

/* Called where anything may be broken already: system calls only. */
static void keep_input(void)
{
    static char path[256];
    const char *said = "the input is kept in ";
    snprintf(path, sizeof path, "/tmp/sessile-fuzz-%s-%ld", fuzz_this.name,
             (long)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || !now_data)
        return;
    if (write(fd, now_data, now_size) == (ssize_t)now_size &&
        write(STDERR_FILENO, said, strlen(said)) > 0 &&
        write(STDERR_FILENO, path, strlen(path)) > 0)
        (void)!write(STDERR_FILENO, "\n", 1);
    close(fd);
}

static void on_signal(int number)
{
    keep_input();
    signal(number, SIG_DFL);
    raise(number);
}

/* The sanitizers end a process by themselves and say so here first. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
#define SANITIZED (__sanitizer_set_death_callback != NULL)

static void run(const uint8_t *data, size_t size)
{
    now_data = data;
    now_size = size;
    LLVMFuzzerTestOneInput(data, size);
    now_data = NULL;
}

/* ---------------------------------------------------------------------- seeds */

static void take_seed(void *arg, const void *data, size_t size)
{
    (void)arg;
    if (seed_count < SEEDS_MOST && size <= fuzz_this.longest)
        seeds[seed_count++] = (input){fuzz_copy(data, size), size};
}

static int read_file(const char *path, input *out)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return -1;
    size_t room = 1 << 16;
    out->data = fuzz_copy("", 0);
    out->size = 0;
    for (;;) {
        uint8_t *more = realloc(out->data, out->size + room);
        FUZZ_CHECK(more != NULL);
        out->data = more;
        size_t got = fread(out->data + out->size, 1, room, f);
        out->size += got;
        if (got < room)
            break;
    }
    fclose(f);
    return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* In the order of their names: the mutations depend on it. */
static void read_corpus(void)
{
    const char *root = getenv("SESSILE_ROOT");
    char folder[2048], path[4096];
    struct dirent **names;
    snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/%s", root ? root : ".",
             fuzz_this.name);
    int n = scandir(folder, &names, NULL, by_name);
    for (int i = 0; i < n; i++) {
        input seed;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        if (names[i]->d_name[0] != '.' && read_file(path, &seed) == 0) {
            take_seed(NULL, seed.data, seed.size);
            free(seed.data);
        }
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    file_count = seed_count;
    fuzz_seeds(take_seed, NULL);
}

/* ---------------------------------------------------------------------- mutations */

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * UINT64_C(0x2545f4914f6cdd1d) >> 11;
}

static size_t below(size_t n)
{
    return n > 0 ? (size_t)(next() % n) : 0;
}

/* Makes room for `more` bytes at `at`; 0 when there is none. */
static size_t widen(uint8_t *data, size_t *size, size_t at, size_t more)
{
    if (more > fuzz_this.longest - *size)
        more = fuzz_this.longest - *size;
    memmove(data + at + more, data + at, *size - at);
    *size += more;
    return more;
}

static void put(uint8_t *data, size_t *size, const void *from, size_t count)
{
    static uint8_t held[1 << 12];
    count = count < sizeof held ? count : sizeof held;
    memcpy(held, from, count); /* it may lie in what moves */
    size_t at = below(*size + 1);
    count = widen(data, size, at, count);
    memcpy(data + at, held, count);
}

static void mutate(uint8_t *data, size_t *size)
{
    static const uint8_t edges[] = {0,   1,   9,   10,  31,   32,   34,  47,  48,
                                    57,  58,  92,  123, 125,  127,  128, 191, 192,
                                    194, 224, 237, 240, 0xf4, 0xfe, 0xff};
    size_t words = 0, at = below(*size), count;
    while (fuzz_this.words && fuzz_this.words[words])
        words++;
    switch (below(10)) {
    case 0: /* a bit */
        if (*size > 0)
            data[at] ^= (uint8_t)(1u << below(8));
        break;
    case 1: /* a byte */
        if (*size > 0)
            data[at] = (uint8_t)next();
        break;
    case 2: /* a byte that means something */
        if (*size > 0)
            data[at] = edges[below(sizeof edges)];
        break;
    case 3: { /* bytes more */
        uint8_t some[8];
        for (size_t i = 0; i < sizeof some; i++)
            some[i] = (uint8_t)next();
        put(data, size, some, 1 + below(sizeof some));
        break;
    }
    case 4: /* bytes less */
        if (*size > 0) {
            size_t most = below(4) ? 8 : *size - at;
            count = 1 + below(most < *size - at ? most : *size - at);
            memmove(data + at, data + at + count, *size - at - count);
            *size -= count;
        }
        break;
    case 5: /* a piece of itself once more */
        if (*size > 0)
            put(data, size, data + at, 1 + below(*size - at < 64 ? *size - at : 64));
        break;
    case 6: { /* a piece of another */
        const input *other = &seeds[below(seed_count)];
        if (other->size > 0) {
            size_t from = below(other->size);
            put(data, size, other->data + from, 1 + below(other->size - from));
        }
        break;
    }
    case 7: /* a word */
        if (words > 0) {
            const char *word = fuzz_this.words[below(words)];
            put(data, size, word, strlen(word));
        }
        break;
    case 8: /* another digit */
        for (count = 0; count < *size; count++) {
            uint8_t *c = &data[(at + count) % *size];
            if (*c >= '0' && *c <= '9') {
                *c = (uint8_t)('0' + below(10));
                break;
            }
        }
        break;
    default: /* two bytes change places */
        if (*size > 1) {
            size_t other = below(*size);
            uint8_t held = data[at];
            data[at] = data[other];
            data[other] = held;
        }
    }
}

/* ---------------------------------------------------------------------- running */

static unsigned long long number(const char *name, unsigned long long otherwise)
{
    const char *text = getenv(name);
    return text && *text != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

static int run_all(void)
{
    int soak = number("SESSILE_SOAK", 0) != 0;
    unsigned long long runs = number("FUZZ_RUNS", soak ? RUNS_OF_A_SOAK : fuzz_this.runs);
    unsigned long long minutes = number("SOAK_MINUTES", 0), done;
    uint64_t seed = number("FUZZ_SEED", UINT64_C(0x5e551e)) | UINT64_C(1) << 63;
    uint8_t *data = malloc(fuzz_this.longest + 1);
    time_t began = time(NULL);
    FUZZ_CHECK(data != NULL);
    printf("1..2\n");
    for (size_t i = 0; i < seed_count; i++) {
        uint8_t *copy = fuzz_copy(seeds[i].data, seeds[i].size);
        run(copy, seeds[i].size);
        free(copy);
    }
    printf("%sok 1 - %zu seeds of the corpus, %zu made now\n",
           seed_count > 0 ? "" : "not ", file_count, seed_count - file_count);
    printf("# FUZZ_SEED=0x%llx\n", (unsigned long long)seed);
    fflush(stdout);
    if (seed_count == 0)
        return 1;
    state = seed;
    for (done = 0; done < runs; done++) {
        const input *from = &seeds[below(seed_count)];
        size_t size = from->size;
        memcpy(data, from->data, size);
        for (size_t n = 1 + below(6); n > 0; n--)
            mutate(data, &size);
        uint8_t *exact = fuzz_copy(data, size);
        run(exact, size);
        free(exact);
        if (soak && minutes > 0 && done % 1024 == 0 &&
            (unsigned long long)(time(NULL) - began) >= 60 * minutes)
            break;
    }
    printf("ok 2 - %llu mutations\n", done);
    printf("# figure: fuzz %s, executions = %llu\n", fuzz_this.name,
           done + (unsigned long long)seed_count);
    free(data);
    return 0;
}

/* ---------------------------------------------------------------------- for libFuzzer */

static int write_seeds(const char *folder)
{
    char path[4096];
    for (size_t i = 0; i < seed_count; i++) {
        snprintf(path, sizeof path, "%s/seed-%04zu", folder, i);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(seeds[i].data, 1, seeds[i].size, f) != seeds[i].size ||
            fclose(f) != 0) {
            perror(path);
            return 1;
        }
    }
    return 0;
}

static int write_words(const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        return 1;
    }
    for (size_t i = 0; fuzz_this.words && fuzz_this.words[i]; i++) {
        fputc('"', f);
        for (const char *c = fuzz_this.words[i]; *c != '\0'; c++)
            fprintf(f, "\\x%02x", (unsigned char)*c);
        fputs("\"\n", f);
    }
    return fclose(f) != 0;
}

int main(int argc, char **argv)
{
    static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        if (!SANITIZED || deadly[i] == SIGABRT)
            signal(deadly[i], on_signal);
    if (SANITIZED)
        __sanitizer_set_death_callback(keep_input);
    if (argc == 3 && strcmp(argv[1], "--words") == 0)
        return write_words(argv[2]);
    if (argc < 2 || strcmp(argv[1], "--seeds") == 0) {
        read_corpus();
        int status = argc == 3 ? write_seeds(argv[2]) : run_all();
        for (size_t i = 0; i < seed_count; i++)
            free(seeds[i].data);
        return status;
    }
    for (int i = 1; i < argc; i++) {
        input one;
        if (read_file(argv[i], &one) != 0) {
            perror(argv[i]);
            return 1;
        }
        uint8_t *exact = fuzz_copy(one.data, one.size);
        run(exact, one.size);
        free(exact);
        free(one.data);
        printf("%s: nothing is wrong\n", argv[i]);
    }
    return 0;
}

/*
 * test_crash.c: the power goes, or the process is killed, at every moment.
 *
 * Owns promises 1 and 2. Each scenario (support/scenarios.c) is played on a simulated
 * disk. Before each call that changes something, and at the end, everything that a power
 * cut could leave of the unsynced changes is made into a disk of its own: every subset
 * when there are at most four, a sample when there are more, writes torn at sectors; and
 * the disk that a killed process leaves. Each is opened with fresh handles and compared
 * with what hosts had been told:
 *   - what was acknowledged is there, its exact bytes in their order;
 *   - what was not is there whole or not at all, and nothing is there out of order;
 *   - opening refuses nothing and calls nothing damaged;
 *   - a memory's lists and searches say what its entries say;
 *   - no byte that recovery cut is missing from the pieces it set aside;
 *   - one more append works and is there after the store is opened again.
 * That look is itself a scenario: the power goes at each of its moments too (a sample of
 * them), and once more at the moments of that.
 *
 *   test_crash [short|long] [NAME…]   scenarios by name; long is SESSILE_SOAK=1
 *   CRASH_SEED=n                      another sample
 *   CRASH_AT=…                        one single path, as a failure prints it
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/ground.h"

enum { DEPTH = 3, PENDING_MOST = 64, ALL_SUBSETS = 4 };

/* How much is tried. */
typedef struct amount {
    int torn;             /* torn variants of each write, at the first level */
    int samples;          /* of what has more than ALL_SUBSETS pending changes */
    int deeper;           /* samples at a moment of a recovery */
    unsigned odds[DEPTH]; /* by level: one in this many looks is itself interrupted */
} amount;
static const amount amount_short = {1, 2, 1, {60, 0, 0}};
static const amount amount_test = {2, 4, 1, {40, 60, 0}};
static const amount amount_long = {16, 60, 3, {6, 16, 0}};

/* A moment, and what became of the disk there. */
typedef struct moment {
    uint64_t boundary;
    char fates[PENDING_MOST + 1]; /* letters of simfs, or "K": killed */
    uint64_t seed;
    const simfs *fs; /* before it */
} moment;

/* What a look must find, and the disk on which it is done. */
typedef struct level {
    int depth; /* 0: the scenario itself */
    simfs *fs;
    ground_log *logs; /* as of now; texts: what may be there */
    /* what the disk held when this level began, if a power cut made it */
    char *raw[GROUND_LOGS];
    size_t raw_size[GROUND_LOGS];
    int quiet;
} level;

static struct {
    const amount *amount;
    uint64_t seed, random;
    const scenario *scenario;
    int sealed;
    moment path[DEPTH + 1];
    moment only[DEPTH + 1]; /* of CRASH_AT */
    int only_count;
    char only_name[64];
    int only_sealed;
    uint64_t states, boundaries, kills, nested, recoveries, cut_pieces;
} all;

static uint64_t chance(void)
{
    uint64_t x = all.random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* ---------------------------------------------------------------------- failures */

static void broken(int depth, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void broken(int depth, const char *format, ...)
{
    char why[1024], what[300];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    print_error("%s, %s: %s\n", all.scenario->name, all.sealed ? "sealed" : "plain", why);
    for (int d = 0; d < depth; d++) {
        const moment *m = &all.path[d];
        print_error("%s before change %" PRIu64 " of %s:\n",
                    m->fates[0] == 'K' ? "killed" : "power cut", m->boundary,
                    d == 0 ? "the scenario" : "the look at what was left");
        for (size_t i = 0; i < simfs_pending(m->fs) && i < PENDING_MOST; i++) {
            simfs_describe(m->fs, i, what, sizeof what);
            print_error("    %c %s\n", m->fates[0] == 'K' ? '.' : m->fates[i], what);
        }
    }
    print_error("seed %" PRIu64 "; this one alone: CRASH_AT='%s,%s", all.seed,
                all.scenario->name, all.sealed ? "sealed" : "plain");
    for (int d = 0; d < depth; d++)
        print_error(",%" PRIu64 ":%s:%" PRIu64, all.path[d].boundary, all.path[d].fates,
                    all.path[d].seed);
    print_error("' build/tests/crash/test_crash\n"
                "(- lost, + there, t torn, d data without size, z size without data, "
                "h head, e end of a write)\n");
    fail_msg("%s", why);
}

/* ---------------------------------------------------------------------- pieces */

typedef struct search {
    const simfs *fs;
    const char *id, *folder, *raw;
    size_t size, from; /* every byte from `from` on is wanted */
    int found;
} search;

static void look_for_piece(void *arg, const char *name)
{
    search *s = arg;
    size_t id_size = strlen(s->id);
    char path[300];
    unsigned long long offset;
    if (strncmp(name, s->id, id_size) != 0 ||
        sscanf(name + id_size, ".torn-%llu", &offset) != 1 || offset > s->from)
        return;
    size_t size;
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    char *piece = simfs_read(s->fs, path, &size);
    s->found |=
        piece && size == s->size - offset && memcmp(piece, s->raw + offset, size) == 0;
    free(piece);
}

/* No byte of what the log once held may be gone: it is there, or in a piece. */
static void check_pieces(const level *l, const simfs *fs, int i)
{
    char path[128];
    size_t size, same = 0;
    if (!l->raw[i])
        return;
    ground_path(l->logs[i].id, path);
    char *now = simfs_read(fs, path, &size);
    while (now && same < size && same < l->raw_size[i] && now[same] == l->raw[i][same])
        same++;
    free(now);
    if (same == l->raw_size[i])
        return;
    *strrchr(path, '/') = 0;
    search s = {fs, l->logs[i].id, path, l->raw[i], l->raw_size[i], same, 0};
    simfs_names(fs, path, look_for_piece, &s);
    if (!s.found)
        broken(l->depth, "%zu bytes of %s from %zu on were cut and not set aside",
               s.size - same, s.id, same);
    all.cut_pieces++;
}

/* ---------------------------------------------------------------------- looking */

static void explore(level *l, uint64_t number);

static void watch(void *arg, simfs *fs, uint64_t number)
{
    level *l = arg;
    (void)fs;
    if (!l->quiet)
        explore(l, number);
}

static const char after[] = "after the crash, as is common";

/* The entries of a log against what may be there. */
static void compare(const level *l, const ground_log *want, char **texts, size_t count)
{
    char why[1024];
    if (ground_differs(want, texts, count, why, sizeof why))
        broken(l->depth, "%s", why);
    for (size_t i = 1; i < count; i++)
        if (!want->texts[i] && !strstr(texts[i], "after the crash"))
            broken(l->depth, "entry %zu of %s is\n%s\nand was\n%s", i, want->id, texts[i],
                   after);
}

/* 0: it is not there. */
static int open_at(const level *l, ground_view *v, sessile_store *st,
                   const ground_log *want, int create, sessile_error *err)
{
    sessile_status status = ground_view_open(v, st, want, create, err);
    /* a secret that was being overwritten is not what was written, nor a secret */
    if (want->forgetting && (status == SESSILE_SEALED || status == SESSILE_DAMAGED))
        return 0;
    if (!status && want->forgetting == 2)
        broken(l->depth, "%s of a forgotten user can be read", want->id);
    if (status && (create || status != SESSILE_NOTFOUND))
        broken(l->depth, "%s: %s: %s", want->id, sessile_status_name(status),
               err->message);
    return !status;
}

/* One log: what is there, then one more append. want: what may be there, now. */
static void look_at_log(level *l, sessile_store *st, ground_log *want)
{
    sessile_error err;
    sessile_id id = 0;
    char **texts = NULL;
    size_t count = 0, k = 0;
    ground_view v;
    int here = open_at(l, &v, st, want, 0, &err);
    if (!here && want->forgetting && err.code != SESSILE_NOTFOUND) {
        /* it may come back: nobody was told that it would not */
        return;
    }
    if (!here && want->created)
        broken(l->depth, "%s is gone: %s", want->id, err.message);
    if (here) {
        if (ground_entries(&v, &texts, &count, &err))
            broken(l->depth, "%s: %s", want->id, err.message);
        compare(l, want, texts, count);
        if (ground_view_ask(&v, &err) || ground_view_damage(&v, &err))
            broken(l->depth, "%s: %s", want->id, err.message);
        all.recoveries += ground_view_torn(&v) > 0;
    }
    /* From now on it may have what was seen, and one entry more. */
    char **was = want->texts;
    size_t was_count = want->count;
    want->texts = calloc(count + 3, sizeof *texts);
    assert_non_null(want->texts);
    for (size_t i = 0; i < count; i++)
        want->texts[i] = texts[i];
    want->count = here ? count + 1 : 2;
    free(texts);
    for (size_t i = 0; i < want->whole_count; i++)
        if (want->wholes[i].first < count)
            want->wholes[k++] = want->wholes[i];
    want->whole_count = k;
    ground_texts_free(was, was_count);

    if (!here) {
        open_at(l, &v, st, want, 1, &err);
        want->acknowledged = 1;
    }
    sessile_status status = ground_view_add(&v, after, &id, &err);
    if (status)
        broken(l->depth, "no append to %s: %s: %s", want->id, sessile_status_name(status),
               err.message);
    want->created = 1;
    want->acknowledged = (size_t)id + 1;
    if (want->acknowledged != want->count)
        broken(l->depth, "the append to %s is entry %zu of %zu", want->id, (size_t)id,
               want->count);
    if (ground_view_close(&v, &err))
        broken(l->depth, "%s: %s", want->id, err.message);
}

static void look_again(level *l, sessile_store *st, ground_log *want)
{
    sessile_error err;
    char **texts = NULL;
    size_t count = 0;
    ground_view v;
    int here = open_at(l, &v, st, want, 0, &err);
    if (!here && want->forgetting)
        return;
    if (!here || ground_entries(&v, &texts, &count, &err))
        broken(l->depth, "%s cannot be read again: %s", want->id, err.message);
    compare(l, want, texts, count);
    if (ground_view_torn(&v))
        broken(l->depth, "%s was torn again", want->id);
    ground_texts_free(texts, count);
    (void)ground_view_close(&v, NULL);
}

/* Lists open nothing for writing and refuse nothing; in the end they say what is there.
 */
static void look_at_list(const level *l, sessile_store *st, int last)
{
    sessile_listed *rows;
    sessile_error err;
    size_t count;
    if (sessile_list(st, NULL, &rows, &count, &err))
        broken(l->depth, "no list: %s", err.message);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].status && l->logs[0].id && !all.scenario->sealed)
            broken(l->depth, "the list has %s for %s: %s",
                   sessile_status_name(rows[i].status), rows[i].id.data, rows[i].message);
        for (int k = 0; last && k < GROUND_LOGS; k++)
            if (l->logs[k].id && strcmp(l->logs[k].id, rows[i].id.data) == 0 &&
                rows[i].entries != l->logs[k].count)
                broken(l->depth, "the list has %" PRIu64 " entries for %s, it has %zu",
                       rows[i].entries, l->logs[k].id, l->logs[k].count);
    }
    sessile_free(rows);
}

static char **texts_copy(char **texts, size_t count)
{
    char **copy = calloc(count + 1, sizeof *copy);
    assert_non_null(copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = texts[i] ? strdup(texts[i]) : NULL;
    return copy;
}

/* A fresh process looks at the disk. above: whose moment it is; cut: by power. */
static void look(simfs *fs, const level *above, int cut, int nest)
{
    ground_log logs[GROUND_LOGS];
    level l = {.depth = above->depth + 1, .fs = fs, .logs = logs, .quiet = !nest};
    sessile_store *st;
    sessile_error err;
    char path[128];
    memcpy(logs, above->logs, sizeof logs);
    for (int i = 0; i < GROUND_LOGS; i++) {
        if (!logs[i].id)
            continue;
        logs[i].texts = texts_copy(logs[i].texts, logs[i].count);
        if (cut)
            check_pieces(above, fs, i);
        ground_path(logs[i].id, path);
        l.raw[i] = simfs_read(fs, path, &l.raw_size[i]);
    }
    if (nest) {
        all.nested++;
        simfs_watch(fs, watch, &l);
    }
    for (int round = 0; round < 2; round++) {
        if (ground_store_on(&st, simfs_table(fs), all.sealed, 0, &err))
            broken(l.depth, "the store does not open: %s", err.message);
        if (round || all.scenario->lists)
            look_at_list(&l, st, round);
        for (int i = 0; i < GROUND_LOGS; i++)
            if (logs[i].id)
                (round ? look_again : look_at_log)(&l, st, &logs[i]);
        sessile_store_close(st);
    }
    if (nest)
        watch(&l, fs, simfs_changes(fs));
    simfs_watch(fs, NULL, NULL);
    for (int i = 0; i < GROUND_LOGS; i++) {
        check_pieces(&l, fs, i);
        free(l.raw[i]);
        if (logs[i].id)
            ground_texts_free(logs[i].texts, logs[i].count);
    }
    if (simfs_descriptors(fs) || simfs_locks(fs))
        broken(l.depth, "%zu descriptors are open, %zu locks held", simfs_descriptors(fs),
               simfs_locks(fs));
}

/* ---------------------------------------------------------------------- moments */

static void try_one(level *l, uint64_t number, const char *letters, uint64_t seed)
{
    moment *m = &all.path[l->depth];
    unsigned char fates[PENDING_MOST];
    int cut = letters[0] != 'K', depth = l->depth + 1;
    m->boundary = number;
    m->seed = seed;
    m->fs = l->fs;
    snprintf(m->fates, sizeof m->fates, "%s", letters);
    for (size_t i = 0; cut && letters[i]; i++)
        fates[i] = (unsigned char)(strchr(simfs_letters, letters[i]) - simfs_letters);
    unsigned odds = depth < DEPTH ? all.amount->odds[l->depth] : 0;
    int nest = all.only_count ? depth < all.only_count : odds && chance() % odds == 0;
    simfs *fs = cut ? simfs_crash(l->fs, fates, seed) : simfs_kill(l->fs);
    all.states++;
    all.kills += !cut;
    /* a killed process has lost nothing yet: it is the cut that follows which tells */
    nest |= !all.only_count && !cut && odds;
    /* what was not durable when this level began can be cut without a piece */
    level above = *l;
    if (l->depth > 0 && all.path[l->depth - 1].fates[0] == 'K')
        memset(above.raw, 0, sizeof above.raw);
    look(fs, &above, cut, nest);
    simfs_free(fs);
}

/* Random fates; torn writes where torn says so. */
static void random_fates(const level *l, size_t pending, int torn, char *out)
{
    for (size_t i = 0; i < pending; i++) {
        size_t fates = torn && simfs_is_write(l->fs, i) ? SIMFS_FATES : 2;
        out[i] = simfs_letters[chance() % fates];
    }
    out[pending] = 0;
}

static void all_subsets(level *l, uint64_t number, size_t pending)
{
    char letters[PENDING_MOST + 1] = "";
    for (unsigned mask = 0; mask < 1u << pending; mask++) {
        for (size_t i = 0; i < pending; i++)
            letters[i] = simfs_letters[mask >> i & 1];
        try_one(l, number, letters, mask);
    }
    for (size_t i = 0; i < pending; i++)
        for (int n = 0; simfs_is_write(l->fs, i) && n < all.amount->torn; n++) {
            random_fates(l, pending, 0, letters);
            letters[i] = simfs_letters[2 + n % (SIMFS_FATES - 2)];
            try_one(l, number, letters, chance());
        }
}

static void some_subsets(level *l, uint64_t number, size_t pending)
{
    char letters[PENDING_MOST + 1] = "";
    for (unsigned kept = 0; kept < 2; kept++) {
        memset(letters, simfs_letters[kept], pending);
        try_one(l, number, letters, 0);
        for (size_t i = 0; i < pending; i++) { /* this one alone is there, or lost */
            letters[i] = simfs_letters[!kept];
            try_one(l, number, letters, 0);
            letters[i] = simfs_letters[kept];
        }
    }
    for (int n = 0; n < all.amount->samples; n++) {
        random_fates(l, pending, n % 2, letters);
        try_one(l, number, letters, chance());
    }
}

static void explore(level *l, uint64_t number)
{
    size_t pending = simfs_pending(l->fs);
    char letters[PENDING_MOST + 1] = "";
    if (all.only_count) {
        const moment *m = &all.only[l->depth];
        if (m->boundary == number)
            try_one(l, number, m->fates, m->seed);
        return;
    }
    if (pending > PENDING_MOST)
        broken(l->depth, "%zu changes are pending", pending);
    all.boundaries++;
    if (l->depth > 0) {
        memset(letters, '-', pending);
        try_one(l, number, letters, 0);
        for (int n = 0; n < all.amount->deeper; n++) {
            random_fates(l, pending, 1, letters);
            try_one(l, number, letters, chance());
        }
        return;
    }
    try_one(l, number, "K", 0);
    if (pending <= ALL_SUBSETS)
        all_subsets(l, number, pending);
    else
        some_subsets(l, number, pending);
}

/* ---------------------------------------------------------------------- scenarios */

static void prepare(ground *g, int sealed)
{
    const scenario *s = all.scenario;
    simfs *fs = simfs_new();
    ground_open(g, s, sealed, simfs_table(fs), fs);
}

static void a_power_cut_loses_nothing_acknowledged(void **state)
{
    const char *name = *state;
    ground truth, g;
    all.sealed = name[0] == 's';
    for (size_t i = 0; i < scenario_count; i++)
        if (strcmp(scenarios[i].name, name + 2) == 0)
            all.scenario = &scenarios[i];
    all.random = all.seed;
    const amount *given = all.amount;
    if (all.scenario->large && given == &amount_test)
        all.amount = &amount_short;

    prepare(&truth, all.sealed);
    if (all.scenario->play(&truth))
        fail_msg("%s fails without any trouble: %s", name + 2, truth.err.message);
    ground_drop_handles(&truth);
    assert_false(truth.refused);
    ground_learn(&truth);

    prepare(&g, all.sealed);
    level l = {.depth = 0, .fs = g.fs, .logs = g.logs};
    for (int i = 0; i < GROUND_LOGS; i++) { /* what there may be, from the beginning on */
        ground_log *to = &g.logs[i], *from = &truth.logs[i];
        to->id = from->id;
        to->texts = texts_copy(from->texts, from->count);
        to->count = from->count;
        memcpy(to->wholes, from->wholes, sizeof to->wholes);
        to->whole_count = from->whole_count;
    }
    simfs_watch(g.fs, watch, &l);
    if (all.scenario->play(&g))
        fail_msg("%s fails when it is watched: %s", name + 2, g.err.message);
    watch(&l, g.fs, simfs_changes(g.fs));
    simfs_watch(g.fs, NULL, NULL);
    simfs *fs = g.fs, *truth_fs = truth.fs;
    ground_close(&g);
    ground_close(&truth);
    simfs_free(fs);
    simfs_free(truth_fs);
    all.amount = given;
}

/* "NAME,MODE,BOUNDARY:FATES:SEED,…" */
static void parse_only(const char *text)
{
    char mode[16];
    int used;
    if (sscanf(text, "%63[^,],%15[^,]%n", all.only_name, mode, &used) != 2)
        return;
    all.only_sealed = strcmp(mode, "sealed") == 0;
    for (text += used; *text == ',' && all.only_count <= DEPTH; text += used) {
        moment *m = &all.only[all.only_count];
        char *end;
        m->boundary = strtoull(text + 1, &end, 10);
        size_t size = strcspn(end + 1, ":");
        if (*end != ':' || size > PENDING_MOST)
            return;
        memcpy(m->fates, end + 1, size);
        const char *seed = end + 1 + size;
        m->seed = strtoull(seed + (*seed == ':'), &end, 10);
        used = (int)(end - text);
        all.only_count++;
    }
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[64];
    static char names[64][64];
    const char *soak = getenv("SESSILE_SOAK"), *seed = getenv("CRASH_SEED");
    const char *only = getenv("CRASH_AT");
    size_t count = 0;
    int first = 1;
    all.amount = soak && strcmp(soak, "1") == 0 ? &amount_long : &amount_test;
    all.seed = seed ? strtoull(seed, NULL, 10) : 1;
    if (argc > 1 && (strcmp(argv[1], "short") == 0 || strcmp(argv[1], "long") == 0)) {
        all.amount = argv[1][0] == 's' ? &amount_short : &amount_long;
        first = 2;
    }
    if (only)
        parse_only(only);
    for (size_t i = 0; i < scenario_count; i++)
        for (int sealed = 0; sealed < 2; sealed++) {
            int wanted = argc <= first;
            for (int k = first; k < argc; k++)
                wanted |= strcmp(argv[k], scenarios[i].name) == 0;
            if (all.only_count)
                wanted = strcmp(all.only_name, scenarios[i].name) == 0 &&
                         sealed == all.only_sealed;
            if (!wanted || (scenarios[i].sealed && !sealed))
                continue;
            snprintf(names[count], sizeof *names, "%c %s", sealed ? 's' : 'p',
                     scenarios[i].name);
            tests[count] =
                (struct CMUnitTest){names[count], a_power_cut_loses_nothing_acknowledged,
                                    NULL, NULL, names[count]};
            count++;
        }
    int failed = _cmocka_run_group_tests("crash", tests, count, NULL, NULL);
    printf("# seed = %" PRIu64 "\n", all.seed);
    printf("# figure: crash states tried = %" PRIu64 "\n", all.states);
    printf("# figure: crash boundaries = %" PRIu64 "\n", all.boundaries);
    printf("# figure: torn ends recovered = %" PRIu64 "\n", all.recoveries);
    printf("# figure: recoveries interrupted = %" PRIu64 "\n", all.nested);
    printf("# figure: processes killed in simulation = %" PRIu64 "\n", all.kills);
    return failed;
}

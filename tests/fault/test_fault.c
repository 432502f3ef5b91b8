/*
 * test_fault.c: every system call fails once, in every way it can.
 *
 * Owns promises 5 and 6. Each scenario (support/scenarios.c) is played on a simulated
 * disk behind a table that fails (support/faulty.h), once for each call and each error
 * that the call can answer with; without SESSILE_SOAK=1 for a third of these. Then:
 *   - the status is the one for that error, and its sentence names the thing;
 *   - no lock is held, no descriptor is lost;
 *   - what was acknowledged is there, and what failed is there whole or not at all;
 *   - the same handle works on, or says that it must be opened again, and reads;
 *   - what is acknowledged after it outlives a power cut that takes all it may take.
 * A sync that fails (promise 6) is never tried again, by any handle of the store.
 *
 *   test_fault [NAME…]    scenarios by name
 *   FAULT_AT='append,sealed,ENOSPC write,12'   one alone, as a failure prints it
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/faulty.h"
#include "support/ground.h"

#define BIT(kind) FAULTY_BIT(FAULTY_##kind)
#define OPENS     (BIT(OPEN) | BIT(CREATE))
#define NAMES     (BIT(MKDIR) | BIT(RENAME_NEW) | BIT(RENAME_OVER) | BIT(LINK) | BIT(UNLINK))
#define GROWS                                                                     \
    (BIT(CREATE) | BIT(WRITE) | BIT(MKDIR) | BIT(RENAME_NEW) | BIT(RENAME_OVER) | \
     BIT(LINK))

/* A way to fail, and what a host must hear of it. */
typedef struct way {
    const char *name;
    unsigned kinds;
    int error;
    faulty_how how;
    sessile_status status; /* OK: nothing may fail */
    int for_ever;
} way;

static const way ways[] = {
    {"EIO", FAULTY_ALL, EIO, FAULTY_REFUSED, SESSILE_IO, 0},
    {"EIO after it was made", FAULTY_ALL & ~BIT(LOCK), EIO, FAULTY_LIED, SESSILE_IO, 0},
    {"ENOSPC", GROWS | FAULTY_SYNCS, ENOSPC, FAULTY_REFUSED, SESSILE_FULL, 0},
    {"ENOSPC in the middle", BIT(WRITE), ENOSPC, FAULTY_TORN, SESSILE_FULL, 0},
    {"ENOSPC for ever", GROWS, ENOSPC, FAULTY_REFUSED, SESSILE_FULL, 1},
    {"EDQUOT", GROWS | FAULTY_SYNCS, EDQUOT, FAULTY_REFUSED, SESSILE_FULL, 0},
    {"EINTR", OPENS | BIT(READ) | BIT(WRITE) | BIT(LOCK) | BIT(TRUNCATE), EINTR,
     FAULTY_REFUSED, SESSILE_IO, 0},
    {"EINTR of what is continued", BIT(READ) | BIT(WRITE) | BIT(LOCK), EINTR,
     FAULTY_REFUSED, SESSILE_OK, 0},
    {"EMFILE", OPENS | BIT(LIST), EMFILE, FAULTY_REFUSED, SESSILE_IO, 0},
    {"EACCES", OPENS | NAMES | BIT(STAT_AT) | BIT(LIST), EACCES, FAULTY_REFUSED,
     SESSILE_DENIED, 0},
    {"EROFS", GROWS | BIT(UNLINK) | BIT(TRUNCATE), EROFS, FAULTY_REFUSED, SESSILE_DENIED,
     0},
    {"ENOLCK", BIT(LOCK), ENOLCK, FAULTY_REFUSED, SESSILE_IO, 0},
    {"short", BIT(READ) | BIT(WRITE), 0, FAULTY_SHORT, SESSILE_OK, 0},
    {"short for ever", BIT(READ) | BIT(WRITE), 0, FAULTY_SHORT, SESSILE_OK, 1},
    {"killed", FAULTY_CHANGING, EIO, FAULTY_REFUSED, SESSILE_IO, 1},
};
enum { WAYS = sizeof ways / sizeof *ways };

static struct {
    const scenario *scenario;
    int sealed;
    const way *way;
    uint64_t at;
    faulty faults;
    ground truth;
    uint64_t injected, syncs;
    char only_scenario[64], only_mode[16], only_way[64];
    uint64_t only_at;
    int only;
} all;

static void broken(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void broken(const char *format, ...)
{
    char why[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    print_error(
        "%s\nthis one alone: FAULT_AT='%s,%s,%s,%" PRIu64
        "' build/tests/fault/test_fault (the call was a %s)\n",
        why, all.scenario->name, all.sealed ? "sealed" : "plain", all.way->name, all.at,
        all.faults.struck < FAULTY_KINDS ? faulty_names[all.faults.struck] : "sync");
    fail_msg("%s", why);
}

/* ---------------------------------------------------------------------- what was said */

/* A host must be able to tell from the sentence what it is about. */
static int names_the_thing(const char *message)
{
    static const char *const things[] = {"\"s\"",      "\"t\"",  "s.jsonl",    "t.jsonl",
                                         "main/s",     "main/t", "keyring",    "user-",
                                         "forgotten-", "agents", "/data",      "cutting",
                                         "store",      "main",   "control log"};
    for (size_t i = 0; i < sizeof things / sizeof *things; i++)
        if (strstr(message, things[i]))
            return 1;
    return 0;
}

static void check_words(sessile_status status, const sessile_error *err,
                        faulty_kind struck)
{
    int sync = struck == FAULTY_SYNC_DATA || struck == FAULTY_SYNC_ALL;
    /* after a failed sync the outcome is not known, whatever the cause */
    int right = status == all.way->status || (sync && status == SESSILE_IO);
    if (!right)
        broken("the answer is %s: %s", sessile_status_name(status), err->message);
    if (err->code != status)
        broken("the answer is %s, its error says %s", sessile_status_name(status),
               sessile_status_name(err->code));
    if (!names_the_thing(err->message))
        broken("what is it about? %s", err->message);
}

/* ---------------------------------------------------------------------- what is there */

/* Compares a session with the truth up to `count` entries (SIZE_MAX: all there are), on
 * fresh handles. Returns how many there are. */
static size_t look(simfs *fs, const ground *g, int i, int exact, int torn_allowed)
{
    const ground_log *told = &g->logs[i];
    ground_log want = all.truth.logs[i];
    ground_view v;
    sessile_store *st;
    sessile_error err;
    char **texts, why[1024];
    size_t count = 0;
    if (ground_store_on(&st, simfs_table(fs), all.sealed, 0, &err))
        broken("the store does not open again: %s", err.message);
    want.erasing = told->erasing;
    sessile_status status = ground_view_open(&v, st, &want, 0, &err);
    if (told->forgetting == 2 && status != SESSILE_SEALED)
        broken("%s of a forgotten user can be read", want.id);
    if (told->forgetting && (status == SESSILE_SEALED || status == SESSILE_DAMAGED)) {
        sessile_store_close(st);
        return 0;
    }
    if (status && (status != SESSILE_NOTFOUND || told->created))
        broken("%s does not open again: %s", want.id, err.message);
    if (!status) {
        if (ground_entries(&v, &texts, &count, &err) || ground_view_ask(&v, &err))
            broken("%s cannot be read: %s", want.id, err.message);
        want.acknowledged = told->acknowledged;
        size_t compared = count;
        if (exact && count > 0 && count == told->acknowledged)
            compared = want.acknowledged =
                count - 1;                       /* the last is the one tried again */
        if (g->refused && compared > g->refused) /* what follows was not to be foreseen */
            compared = want.acknowledged = g->refused;
        if (ground_differs(&want, texts, compared, why, sizeof why))
            broken("%s", why);
        if (ground_view_torn(&v) && !torn_allowed &&
            strncmp(all.scenario->name, "torn", 4) != 0)
            broken("%s was left torn", want.id);
        ground_texts_free(texts, count);
        (void)ground_view_close(&v, NULL);
    }
    sessile_store_close(st);
    return count;
}

/* Of what handle h has open, if anything. */
static void reads_work(const ground *g, int h)
{
    ground_view v = ground_view_of(g, h);
    sessile_error err;
    char **texts;
    size_t count;
    if (!ground_view_is_open(&v))
        return;
    if (ground_view_ask(&v, &err))
        broken("no answers after it: %s", err.message);
    if (ground_entries(&v, &texts, &count, &err))
        broken("no entries after it: %s", err.message);
    ground_texts_free(texts, count);
}

static sessile_status write_again(ground *g, int h, size_t size)
{
    return all.scenario->memory ? ground_remember(g, h, 1, size, 0)
                                : ground_say(g, h, size);
}

/* The host tries again with what it has. *made: the session had to be made again. */
static sessile_status again(ground *g, int *made)
{
    sessile_status status = SESSILE_OK;
    *made = 0;
    for (int h = 0; h < GROUND_HANDLES; h++) {
        sessile_run_free(g->runs[h]);
        g->runs[h] = NULL;
    }
    if (!g->stores[0])
        status = ground_store(g, 0);
    if (!status && all.scenario->memory && !g->memories[0]) {
        *made = !g->logs[0].created;
        status = ground_memory(g, 0, NULL);
    } else if (!status && !all.scenario->memory && !g->sessions[0]) {
        status = ground_resume(g, 0, "s");
        if (status == SESSILE_NOTFOUND) {
            *made = 1;
            status = ground_create(g, 0, "s");
        }
    }
    return status ? status : write_again(g, 0, 20);
}

static void all_is_given_back(ground *g)
{
    if (all.faults.locks || simfs_locks(g->fs))
        broken("a lock is held");
    ground_drop_handles(g);
    if (all.faults.descriptors || simfs_descriptors(g->fs))
        broken("%zu descriptors are open", simfs_descriptors(g->fs));
}

/* Power goes with all that is not durable. */
static void cut_and_look(ground *g, const int *remade)
{
    unsigned char dispositions[256] = {0};
    if (simfs_pending(g->fs) > sizeof dispositions)
        broken("%zu changes are pending", simfs_pending(g->fs));
    simfs *after = simfs_crash(g->fs, dispositions, 1);
    for (int i = 0; i < GROUND_LOGS; i++)
        if (all.truth.logs[i].id && !remade[i])
            look(after, g, i, g->open[0] == &g->logs[i], 1);
    simfs_free(after);
}

/* ---------------------------------------------------------------------- one fault */

static void prepare(ground *g)
{
    simfs *fs = simfs_new();
    faulty_deinit(&all.faults);
    faulty_init(&all.faults, simfs_table(fs));
    ground_open(g, all.scenario, all.sealed, &all.faults.table, fs);
}

static void after_it(ground *g, sessile_status status)
{
    const way *w = all.way;
    faulty_kind struck = all.faults.struck;
    int remade[GROUND_LOGS] = {0};
    int mute = struck == FAULTY_TRUNCATE || struck == FAULTY_SYNC_DATA ||
               struck == FAULTY_SYNC_ALL || w->for_ever;
    if (status)
        check_words(status, &g->err, struck);
    if (all.faults.locks)
        broken("a lock is held after it");
    if (w->for_ever)
        reads_work(g, 0); /* the disk is still full */
    if (all.at % 2)
        for (int i = 0; i < GROUND_LOGS; i++)
            if (all.truth.logs[i].id)
                look(g->fs, g, i, 0, mute);
    faulty_none(&all.faults);
    /* The same handles go on, or say why not. */
    status = again(g, &remade[0]);
    /* a sync may have failed, or the file could be opened for reading only */
    int said = (status == SESSILE_IO && mute) ||
               ((status == SESSILE_DENIED || status == SESSILE_NOTFOUND) &&
                strstr(g->err.message, "open it again"));
    if (status && !said)
        broken("after it: %s: %s", sessile_status_name(status), g->err.message);
    if (status)
        reads_work(g, 0);
    if (g->mindless && g->sessions[0] && ground_close_session(g, 0) && !mute)
        broken("the session does not close: %s", g->err.message);
    all_is_given_back(g);
    if (status) {
        status = again(g, &remade[0]);
        if (status)
            broken("opened again: %s: %s", sessile_status_name(status), g->err.message);
        if (g->mindless && ground_close_session(g, 0))
            broken("the session does not close: %s", g->err.message);
        all_is_given_back(g);
    }
    for (int i = 0; i < GROUND_LOGS; i++)
        if (all.truth.logs[i].id && !remade[i])
            look(g->fs, g, i, g->open[0] == &g->logs[i], mute);
    cut_and_look(g, remade);
}

/* 0 when the scenario has no such call any more. */
static int fail_once(uint64_t at)
{
    const way *w = all.way;
    ground g;
    all.at = at;
    prepare(&g);
    faulty_plan(&all.faults, w->kinds, at, w->for_ever ? UINT64_MAX : 1, w->how,
                w->error);
    sessile_status status = all.scenario->play(&g);
    int hit = all.faults.hits > 0;
    if (hit) {
        all.injected++;
        if (!w->status && status)
            broken("a short call is no failure: %s", g.err.message);
        after_it(&g, status);
    }
    simfs *fs = g.fs;
    ground_close(&g);
    simfs_free(fs);
    return hit;
}

static const way failed_sync = {"failed sync",  FAULTY_SYNCS, EIO,
                                FAULTY_REFUSED, SESSILE_IO,   0};

/* Promise 6: the sync number at of a file fails as a disk's does, its pages marked clean.
 */
static int fail_sync(uint64_t at)
{
    ground g;
    int remade[GROUND_LOGS] = {0};
    all.way = &failed_sync;
    all.at = at;
    prepare(&g);
    faulty_none(&all.faults);
    simfs_fail_sync(g.fs, at);
    sessile_status status = all.scenario->play(&g);
    int hit = simfs_syncs_failed(g.fs) > 0;
    if (hit) {
        all.injected++;
        all.syncs++;
        /* a log that could not be resealed is rewritten once more */
        if (status != SESSILE_IO && (status || !all.scenario->sealed))
            broken("the answer is %s: %s", sessile_status_name(status), g.err.message);
        if (status)
            check_words(status, &g.err, FAULTY_SYNC_DATA);
        int h = g.last, memory = g.memories[h] != NULL;
        int log = status && (g.sessions[h] || memory) && g.writing;
        faulty_none(&all.faults);
        for (int i = 0; i < GROUND_HANDLES; i++) {
            sessile_run_free(g.runs[i]);
            g.runs[i] = NULL;
        }
        size_t told = log ? g.open[h]->acknowledged : 0;
        /* again and again, on the same handle and on a new one of the same store */
        for (int n = 0; log && n < 3; n++) {
            if (n == 2) {
                (void)sessile_session_close(g.sessions[h], NULL);
                g.sessions[h] = NULL;
                (void)ground_close_memory(&g, h);
                if (memory ? ground_memory(&g, h, NULL)
                           : ground_resume(&g, h, g.open[h]->id))
                    broken("a poisoned log is not opened for reading: %s", g.err.message);
            }
            if (write_again(&g, h, 10) != SESSILE_IO)
                broken("something was written after a failed sync");
            if (all.faults.counts[FAULTY_SYNC_DATA] || g.open[h]->acknowledged != told)
                broken("the sync was tried again");
            reads_work(&g, h);
        }
        all_is_given_back(&g);
        status = again(&g, &remade[0]);
        if (!status && g.mindless)
            status = ground_close_session(&g, 0);
        if (status)
            broken("opened again: %s: %s", sessile_status_name(status), g.err.message);
        all_is_given_back(&g);
        cut_and_look(&g, remade);
    }
    simfs *fs = g.fs;
    ground_close(&g);
    simfs_free(fs);
    return hit;
}

/* ---------------------------------------------------------------------- tests */

static void learn(const char *name)
{
    all.sealed = name[0] == 's';
    for (size_t i = 0; i < scenario_count; i++)
        if (strcmp(scenarios[i].name, name + 2) == 0)
            all.scenario = &scenarios[i];
    prepare(&all.truth);
    faulty_none(&all.faults);
    if (all.scenario->play(&all.truth))
        fail_msg("%s fails without any trouble: %s", name + 2, all.truth.err.message);
    ground_drop_handles(&all.truth);
    assert_false(all.truth.refused);
    ground_learn(&all.truth);
}

static void forget(void)
{
    simfs *fs = all.truth.fs;
    ground_close(&all.truth);
    simfs_free(fs);
}

/* One call in EVERY, each way beginning with another; SESSILE_SOAK=1: all. */
enum { EVERY = 3 };

static void every_call_may_fail(void **state)
{
    learn(*state);
    for (int i = 0; i < WAYS; i++) {
        all.way = &ways[i];
        if (all.only) {
            if (strcmp(ways[i].name, all.only_way) == 0)
                fail_once(all.only_at);
            continue;
        }
        for (uint64_t at = getenv("SESSILE_SOAK") ? 0 : (uint64_t)i % EVERY;
             fail_once(at);)
            at += getenv("SESSILE_SOAK") ? 1 : EVERY;
    }
    forget();
}

static void a_failed_sync_poisons(void **state)
{
    uint64_t at = 0;
    learn(*state);
    if (all.only && strcmp(all.only_way, failed_sync.name) == 0)
        fail_sync(all.only_at);
    while (!all.only && fail_sync(at))
        at++;
    if (!all.only)
        assert_true(at > 0);
    forget();
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[2 * 64]; /* two for each name */
    static char names[64][64];
    const char *only = getenv("FAULT_AT");
    size_t count = 0;
    all.only = only && sscanf(only, "%63[^,],%15[^,],%63[^,],%" SCNu64, all.only_scenario,
                              all.only_mode, all.only_way, &all.only_at) == 4;
    faulty_init(&all.faults, &os_posix);
    for (size_t i = 0; i < scenario_count; i++)
        for (int sealed = 0; sealed < 2; sealed++) {
            int wanted = argc < 2;
            for (int k = 1; k < argc; k++)
                wanted |= strcmp(argv[k], scenarios[i].name) == 0;
            if (all.only)
                wanted = strcmp(all.only_scenario, scenarios[i].name) == 0 &&
                         strcmp(all.only_mode, sealed ? "sealed" : "plain") == 0;
            if (!wanted || scenarios[i].fails || (scenarios[i].sealed && !sealed))
                continue;
            assert_true(count < sizeof names / sizeof *names);
            snprintf(names[count], sizeof *names, "%c %s", sealed ? 's' : 'p',
                     scenarios[i].name);
            tests[2 * count] = (struct CMUnitTest){names[count], every_call_may_fail,
                                                   NULL, NULL, names[count]};
            tests[2 * count + 1] = (struct CMUnitTest){
                names[count], a_failed_sync_poisons, NULL, NULL, names[count]};
            count++;
        }
    int failed = _cmocka_run_group_tests("fault", tests, 2 * count, NULL, NULL);
    faulty_deinit(&all.faults);
    printf("# figure: faults injected = %" PRIu64 "\n", all.injected);
    printf("# figure: syncs failed = %" PRIu64 "\n", all.syncs);
    return failed;
}

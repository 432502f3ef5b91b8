/*
 * test_kill_memory.c: processes that share a memory and are stopped and killed.
 *
 * As test_kill.c, with a memory as the load: eight processes of four threads write
 * entries, several in one commit, delete some of their own in the same commit, raise what
 * stands under a key by compare-and-set, and now and then erase an entry, which replaces
 * the log under all the others. What is in the log in the end is compared with what they
 * reported:
 *   - every acknowledged commit is there once and whole, nothing refused is there;
 *   - the commits of each thread are in the order of its calls;
 *   - of each key, every entry names the one before it in `was`: one winner for each;
 *   - lists and searches show what the entries say, opened with the index and without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "sessile_memory.h"
#include "support/killed.h"
#include "support/logs.h"

enum { KEYS = 3, PARTS_MOST = 4, LONGEST = 24 << 10, KILLS_A_ROUND = 120, OWN = 16 };

/* ------------------------------------------------------------------ a process */

typedef struct worker {
    killed_thread is;
    sessile_memory *memory; /* threads 0 and 1 share theirs */
    sessile_id own[OWN];    /* acknowledged entries of this thread that are live */
    size_t own_count;
    char *text;
} worker;

static void store_options(sessile_store_options *o, int timeout_ms)
{
    sessile_store_options_init(o);
    o->key_source = SESSILE_KEY_SECRET;
    o->key = KIT_SECRET;
    o->config.has_timeout = 1;
    o->config.timeout_ms = timeout_ms;
}

static sessile_status open_memory(sessile_memory **out, sessile_store *store,
                                  sessile_error *err)
{
    sessile_memory_options o;
    sessile_memory_options_init(&o);
    o.agent = sessile_text("coder");
    o.user = sessile_text("ann");
    o.consent = sessile_text("yes");
    return sessile_memory_open(out, store, &o, err);
}

/* What part `part` of `of` says; it names itself, so that nothing can be made up. */
static void name_part(const worker *w, uint32_t seq, unsigned part, unsigned of,
                      size_t padding, char *out, size_t room)
{
    int n = snprintf(out, room, "k.%u.%u.%u.%u.%u.%u. common ", w->is.slot, w->is.life,
                     w->is.thread, seq, part, of);
    memset(out + n, 'x', padding);
    out[(size_t)n + padding] = 0;
}

/* Entries, and the end of an own one, in one commit. */
static sessile_status do_change(worker *w, uint32_t seq, sessile_error *err)
{
    sessile_memory_write_entry entries[PARTS_MOST];
    sessile_memory_change change = {.entries = entries,
                                    .count = random_next(&w->is.seed) % PARTS_MOST};
    sessile_id ids[PARTS_MOST];
    char reason[100];
    size_t end = 0;

    if (w->own_count && random_next(&w->is.seed) % 2) {
        end = random_next(&w->is.seed) % w->own_count;
        change.ends = &w->own[end];
        change.end_count = 1;
    }
    change.count += !change.count && !change.end_count;
    unsigned of = (unsigned)(change.count + change.end_count);
    for (size_t i = 0; i < change.count; i++) {
        size_t most = random_next(&w->is.seed) % 50 ? 500 : LONGEST / PARTS_MOST - 200;
        char *at = w->text + i * (LONGEST / PARTS_MOST);
        name_part(w, seq, (unsigned)i + 1, of, random_next(&w->is.seed) % most, at,
                  LONGEST / PARTS_MOST);
        sessile_memory_write_init(&entries[i]);
        entries[i].value = sessile_text(at);
    }
    name_part(w, seq, of, of, 0, reason, sizeof reason);
    change.reason = sessile_text(reason);
    sessile_status status = sessile_memory_apply(w->memory, &change, ids, err);
    if (status)
        return status;
    if (change.end_count)
        w->own[end] = w->own[--w->own_count];
    for (size_t i = 0; i < change.count && w->own_count < OWN; i++)
        w->own[w->own_count++] = ids[i];
    return SESSILE_OK;
}

/* Takes the place of what stands under a key, if nobody was faster. */
static sessile_status do_compare_and_set(worker *w, uint32_t seq, sessile_error *err)
{
    sessile_memory_write_entry e;
    sessile_memory_row *row;
    char key[12], value[100], was[40];

    snprintf(key, sizeof key, "number%u", (unsigned)(random_next(&w->is.seed) % KEYS));
    sessile_status status = sessile_memory_read(w->memory, sessile_text(key), &row, err);
    if (status && status != SESSILE_NOTFOUND)
        return status;
    sessile_memory_write_init(&e);
    e.has_was = 1;
    e.was = status ? SESSILE_NO_ID : row->id;
    sessile_free(status ? NULL : row);
    snprintf(was, sizeof was, "{\"was\":\"%08" PRIx32 "\"}", e.was);
    name_part(w, seq, 1, 1, 0, value, sizeof value);
    e.key = sessile_text(key);
    e.value = sessile_text(value);
    e.metadata = sessile_text(was);
    return sessile_memory_write(w->memory, &e, 1, NULL, err);
}

/* Writes an entry that nobody counts, and erases it. */
static sessile_status do_erase(worker *w, sessile_error *err)
{
    sessile_memory_write_entry e;
    sessile_id id;
    sessile_memory_erase_options o = {.ids = &id, .id_count = 1};
    sessile_memory_write_init(&e);
    e.value = sessile_text("passing");
    sessile_status status = sessile_memory_write(w->memory, &e, 1, &id, err);
    return status ? status : sessile_memory_erase(w->memory, &o, NULL, err);
}

static void *work(void *arg)
{
    worker *w = arg;
    for (uint32_t seq = 0;; seq++) {
        sessile_error err = {0};
        uint64_t dice = random_next(&w->is.seed) % 200;
        sessile_status status;
        report_kind done = ACKNOWLEDGED;
        if (dice < 2) {
            status = do_erase(w, &err);
            done = CREATED;
        } else if (dice < 80) {
            status = do_compare_and_set(w, seq, &err);
        } else {
            status = do_change(w, seq, &err);
            if (status == SESSILE_CONFLICT)
                killed_tell(&w->is, BROKEN, seq, status, err.message);
        }
        if (!status)
            killed_tell(&w->is, done, seq, status, "");
        else if (status == SESSILE_BUSY || status == SESSILE_CONFLICT)
            killed_tell(&w->is, REFUSED, seq, status, "");
        else
            killed_tell(&w->is, BROKEN, seq, status, err.message);
    }
    return NULL;
}

static void process(const char *root, unsigned slot, uint32_t life, uint64_t seed)
{
    worker workers[THREADS];
    pthread_t threads[THREADS];
    sessile_store_options o;
    sessile_store *store = NULL;
    sessile_error err = {0};
    sessile_status status;

    memset(workers, 0, sizeof workers);
    store_options(&o, 300);
    status = sessile_open(&store, root, &o, &err);
    for (unsigned t = 0; t < THREADS; t++) {
        worker *w = &workers[t];
        w->is = (killed_thread){slot, t, life, random_next(&seed)};
        w->text = malloc(LONGEST);
        if (t == 1)
            w->memory = workers[0].memory;
        else if (!status) /* opening may meet a stopped writer: then once more */
            while ((status = open_memory(&w->memory, store, &err)) == SESSILE_BUSY)
                ;
    }
    if (status)
        killed_tell(&workers[0].is, BROKEN, 0, status, err.message);
    for (unsigned t = 1; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, work, &workers[t]) != 0)
            _exit(5);
    work(&workers[0]);
}

/* ------------------------------------------------------------------ what is there */

typedef struct kill_round {
    killed_round k;
    unsigned long twice, commits, wins;
    sessile_id holders[KEYS];
    unsigned char *live; /* what the entries say, a byte for each */
    size_t count;
} kill_round;

/* A part of a commit; the others must follow it. */
typedef struct expected {
    unsigned slot, thread, part, of;
    uint32_t life, seq;
} expected;

static void found(kill_round *r, const char *json, expected *open)
{
    expected e;
    killed_history *h;
    const char *at = strstr(json, "\"k.");
    assert_non_null(at);
    assert_int_equal(sscanf(at + 3, "%u.%u.%u.%u.%u.%u.", &e.slot, &e.life, &e.thread,
                            &e.seq, &e.part, &e.of),
                     6);
    killed_call *call = killed_made(&r->k, e.slot, e.life, e.thread, e.seq, &h);
    if (call->outcome == REFUSED)
        killed_broken(&r->k, json);
    assert_true(call->outcome == ACKNOWLEDGED || e.seq == h->count);
    if (open->part < open->of) { /* only its own next part may stand here */
        assert_true(e.slot == open->slot && e.thread == open->thread &&
                    e.life == open->life && e.seq == open->seq && e.of == open->of);
        assert_int_equal(e.part, open->part + 1);
        *open = e;
        return;
    }
    assert_int_equal(e.part, 1);
    if (call->found++ > 0) {
        killed_broken(&r->k, json);
        r->twice++;
    }
    assert_true((int64_t)e.seq > h->last[0] - 1);
    h->last[0] = (int64_t)e.seq + 1;
    r->commits++;
    *open = e;
}

static sessile_id id_behind(const char *json, const char *mark)
{
    const char *at = strstr(json, mark);
    assert_non_null(at);
    return (sessile_id)strtoul(at + strlen(mark), NULL, 16);
}

/* An entry under a key: it took the place of the one that it expected. */
static void check_winner(kill_round *r, const char *json, sessile_id id)
{
    const char *key = strstr(json, "\"key\":\"number");
    if (!key)
        return;
    sessile_id *holder = &r->holders[key[13] - '0'];
    if (id_behind(json, "\"was\":\"") != *holder)
        killed_broken(&r->k, json);
    assert_int_equal(id_behind(json, "\"was\":\""), *holder);
    if (*holder != SESSILE_NO_ID)
        r->live[*holder] = 0;
    *holder = id;
    r->wins++;
}

static void check_entries(kill_round *r, sessile_memory *m)
{
    sessile_memory_stats stats;
    sessile_error err = {0};
    expected open = {0};

    assert_int_equal(sessile_memory_get_stats(m, &stats, &err), SESSILE_OK);
    r->count = stats.log_entries;
    r->live = calloc(r->count + 1, 1);
    for (int i = 0; i < KEYS; i++)
        r->holders[i] = SESSILE_NO_ID;
    for (sessile_id id = 0; id < r->count; id++) {
        char *json;
        size_t size;
        assert_int_equal(sessile_memory_entry(m, id, &json, &size, &err), SESSILE_OK);
        if (strstr(json, "\"type\":\"verdict\"")) {
            found(r, json, &open);
            r->live[id_behind(json, "\"of\":[\"")] = 0;
        } else if (strstr(json, "\"value\":\"k.")) {
            found(r, json, &open);
            check_winner(r, json, id);
            r->live[id] = 1;
        } else if (strstr(json, "\"value\":\"passing\"")) {
            r->live[id] = 1;
        } else { /* the header and the consent; what was erased */
            assert_true(id < 2 || strstr(json, "\"erased\":true"));
        }
        sessile_free(json);
    }
    assert_int_equal(open.part, open.of); /* no half of a commit at the end */
}

static void compare_rows(const kill_round *r, const sessile_memory_row *rows,
                         size_t count, int passing)
{
    size_t expected = 0;
    for (size_t i = 0; i < r->count; i++)
        expected += r->live[i];
    if (passing)
        assert_int_equal(count, expected);
    else
        assert_true(count <= expected);
    for (size_t i = 0; i < count; i++)
        assert_true(rows[i].id < r->count && r->live[rows[i].id]);
}

/* Lists and searches show what the entries say. */
static void check_answers(const kill_round *r, sessile_memory *m)
{
    sessile_memory_search_options o;
    sessile_memory_row *rows;
    sessile_error err = {0};
    size_t count, hits, passing;

    assert_int_equal(sessile_memory_list(m, NULL, &rows, &count, &err), SESSILE_OK);
    compare_rows(r, rows, count, 1);
    sessile_free(rows);
    sessile_memory_search_init(&o);
    o.limit = r->count;
    assert_int_equal(
        sessile_memory_search(m, sessile_text("common"), &o, &rows, &hits, &err),
        SESSILE_OK);
    compare_rows(r, rows, hits, 0);
    sessile_free(rows);
    assert_int_equal(
        sessile_memory_search(m, sessile_text("passing"), &o, &rows, &passing, &err),
        SESSILE_OK);
    compare_rows(r, rows, passing, 0);
    sessile_free(rows);
    assert_int_equal(hits + passing, count);
}

static void check_memory(kill_round *r, int last)
{
    sessile_memory_write_entry e;
    sessile_store_options o;
    sessile_store *store;
    sessile_memory *m;
    sessile_error err = {0};

    store_options(&o, 0); /* no lock is left: it waits for none */
    assert_int_equal(sessile_open(&store, r->k.root, &o, &err), SESSILE_OK);
    sessile_status status = open_memory(&m, store, &err);
    if (status)
        killed_broken(&r->k, err.message);
    assert_int_equal(status, SESSILE_OK);
    if (!r->live)
        check_entries(r, m);
    check_answers(r, m);
    sessile_memory_write_init(&e);
    e.value = sessile_text("after");
    if (last)
        assert_int_equal(sessile_memory_write(m, &e, 1, NULL, &err), SESSILE_OK);
    sessile_memory_close(m);
    sessile_store_close(store);
}

static int remove_index(const char *folder, const char *name)
{
    char path[700];
    size_t size = strlen(name);
    if (size < 4 || strcmp(name + size - 4, ".idx") != 0)
        return 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return unlink(path) == 0;
}

static int tear_down(void **state)
{
    killed_stop(*state); /* the round is its first member */
    free(((kill_round *)*state)->live);
    free(*state);
    return 0;
}

static int set_up(void **state)
{
    *state = calloc(1, sizeof(kill_round));
    return *state == NULL;
}

static void killed_writers_of_a_memory_lose_nothing(void **state)
{
    kill_round *r = *state;
    killed_round *k = &r->k;
    unsigned long rounds = getenv("SESSILE_SOAK") ? 5000 / KILLS_A_ROUND + 1 : 1;
    unsigned long kills = 0, acknowledged = 0, conflicts = 0, wins = 0, erased = 0,
                  torn = 0;
    uint64_t seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    for (unsigned long n = 0; n < rounds; n++) {
        char folder[400];
        free(r->live);
        memset(r, 0, sizeof *r);
        killed_begin(k, random_next(&seed), process);
        killed_run(k, KILLS_A_ROUND);

        snprintf(folder, sizeof folder, "%s/agents/coder.memory", k->root);
        check_memory(r, 0);
        assert_int_equal(killed_files(folder, remove_index), 1);
        check_memory(r, 1); /* made from the lines again */
        assert_int_equal(killed_lost(k), 0);
        assert_int_equal(r->twice, 0);
        assert_true(k->acknowledged > 0 && r->wins > 0);
        kills += k->kills, acknowledged += k->acknowledged, conflicts += k->conflicts;
        wins += r->wins, erased += k->created;
        torn += killed_pieces(k, "agents/coder.memory");
        killed_end(k);
    }
    printf("# figure: kills of writers of a memory = %lu\n", kills);
    printf("# figure: commits to a memory acknowledged under kills = %lu\n",
           acknowledged);
    printf("# figure: commits to a memory lost under kills = 0\n");
    printf("# figure: compare-and-set won under kills = %lu\n", wins);
    printf("# figure: compare-and-set lost to another under kills = %lu\n", conflicts);
    printf("# figure: memories erased from under kills = %lu\n", erased);
    printf("# figure: torn tails of a memory set aside under kills = %lu\n", torn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_writers_of_a_memory_lose_nothing, set_up,
                                        tear_down),
    };
    assert_int_equal(base_init(), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

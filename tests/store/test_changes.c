/*
 * test_changes.c: logs that are sealed again, salvaged and removed while others write to
 * them, over every store in stores.c.
 *
 * What was acknowledged is there once, whoever was faster: where a store has locks since
 * others wait, where it has none since the slower one is refused.
 */
#include "store/backend.h"

#include "base/os.h"
#include "store/fenced.h"
#include "support/keyed.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/host.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sessile_status say_number(sessile_session *s, int who, unsigned n,
                                 sessile_error *err)
{
    char text[40];

    snprintf(text, sizeof text, "<%d.%u>", who, n);
    return try_say(s, text, NULL, err);
}

static sessile_status delete_hard(sessile_store *st, const char *id, sessile_error *err)
{
    sessile_session_options o = named(id);
    sessile_delete_options options;
    sessile_deleted gone;

    memset(&options, 0, sizeof options);
    return sessile_delete(st, &o, &options, &gone, err);
}

/* Runs a check; returns how many findings there were that are no notes. */
static size_t check(sessile_store *st, int salvage, uint64_t *salvaged, char *what,
                    size_t size)
{
    sessile_checked step;
    sessile_check *c;
    sessile_error err;
    size_t wrong = 0;

    must(sessile_check_open(&c, st, NULL, salvage, &err), &err);
    for (;;) {
        must(sessile_check_next(c, &step, &err), &err);
        if (!step.file)
            break;
        if (salvaged)
            *salvaged += step.salvaged != 0;
        for (size_t i = 0; i < step.count; i++)
            if (step.findings[i].severity != SESSILE_NOTE) {
                wrong++;
                snprintf(what, size, "%s: %s", step.file, step.findings[i].what);
            }
    }
    sessile_check_close(c);
    return wrong;
}

/* ------------------------------------------------------------------ writers */

enum { MOST = 20000 };

typedef struct writer {
    const site *g;
    int number;
    int reopens;       /* reopens the session when it is gone */
    atomic_uint said;  /* numbers that were tried; the test looks while it writes */
    char *there;       /* 1: acknowledged */
    atomic_ulong gone; /* how often its session was removed under it */
    pthread_t thread;
    char trouble[600];
} writer;

static atomic_int stop;
static atomic_uint allowed; /* how many messages each writer may say until stop */

static void begin(unsigned most)
{
    atomic_store(&stop, 0);
    atomic_store(&allowed, most);
}

static void *write_on(void *arg)
{
    enum { AFTER = 5 };
    writer *w = arg;
    sessile_store *st = site_store(w->g);
    sessile_session *s = session_of(st, "one");
    sessile_error err;
    int left = AFTER;

    while (left > 0 && w->said < MOST && !w->trouble[0]) {
        if (w->said >= atomic_load(&allowed) && !atomic_load(&stop)) {
            usleep(1000);
            continue;
        }
        sessile_status status = say_number(s, w->number, w->said, &err);
        if (atomic_load(&stop))
            left--;
        else
            usleep(2000);
        w->there[w->said++] = status == SESSILE_OK;
        if (w->reopens && status == SESSILE_NOTFOUND) {
            sessile_session_options o = named("one");
            w->gone++;
            sessile_session_close(s, NULL);
            do /* it may be removed again before it is open */
                status = sessile_session_open(&s, st, &o, &err);
            while (status == SESSILE_NOTFOUND);
            must(status, &err);
        } else if (status) {
            snprintf(w->trouble, sizeof w->trouble, "append: %s", err.message);
        }
    }
    sessile_session_close(s, NULL);
    sessile_store_close(st);
    return NULL;
}

static void *read_on(void *arg)
{
    writer *w = arg;
    sessile_store *st = site_store(w->g);
    sessile_session *s = session_of(st, "one");
    sessile_error err;
    size_t before = 0;

    while (!atomic_load(&stop) && !w->trouble[0]) {
        sessile_message *rows;
        size_t count;
        if (sessile_messages(s, NULL, &rows, &count, &err)) {
            snprintf(w->trouble, sizeof w->trouble, "messages: %s", err.message);
            break;
        }
        sessile_free(rows);
        if (count < before)
            snprintf(w->trouble, sizeof w->trouble, "%zu messages were %zu", count,
                     before);
        before = count;
        w->said++;
    }
    sessile_session_close(s, NULL);
    sessile_store_close(st);
    return NULL;
}

static void start(writer *w, const site *g, int number, int reopens)
{
    memset(w, 0, sizeof *w);
    w->g = g;
    w->number = number;
    w->reopens = reopens;
    w->there = calloc(MOST, 1);
    assert_non_null(w->there);
    assert_int_equal(pthread_create(&w->thread, NULL, number < 0 ? read_on : write_on, w),
                     0);
}

static void ended(writer *w)
{
    pthread_join(w->thread, NULL);
    if (w->trouble[0])
        fail_msg("%d: %s", w->number, w->trouble);
}

/* Every message of a writer that is there was acknowledged, and stands in its order; of
 * those from `first` on all are there. Returns how many. */
static unsigned long compare(const char *text, const writer *w, unsigned first)
{
    char begins[20];
    unsigned long found = 0;
    unsigned next = 0;
    size_t size = (size_t)snprintf(begins, sizeof begins, "<%d.", w->number);

    for (const char *at = strstr(text, begins); at; at = strstr(at + 1, begins)) {
        unsigned n = (unsigned)strtoul(at + size, NULL, 10);
        if (n < next)
            fail_msg("<%d.%u> is there twice, or too late", w->number, n);
        for (unsigned i = next > first ? next : first; i < n; i++)
            if (w->there[i])
                fail_msg("<%d.%u> was acknowledged and is gone", w->number, i);
        if (n >= w->said || !w->there[n])
            fail_msg("<%d.%u> was refused and is there", w->number, n);
        next = n + 1;
        found++;
    }
    for (unsigned i = next > first ? next : first; i < w->said; i++)
        if (w->there[i])
            fail_msg("<%d.%u> was acknowledged and is gone", w->number, i);
    return found;
}

/* Makes the session "one", and starts these writers; each may write `most` messages. */
static sessile_store *start_all(const site *g, writer *writers, int count, int reopens,
                                unsigned most)
{
    sessile_store *st = site_store(g);

    sessile_session_close(session_of(st, "one"), NULL);
    begin(most);
    for (int i = 0; i < count; i++)
        start(&writers[i], g, i, reopens);
    return st;
}

/* ------------------------------------------------------------------ cases */

static void writers_and_readers_go_on_while_a_log_is_resealed(void **state)
{
    /* The slower the machine, the more is written during a round and the longer the round
     * takes: EACH ends that. */
    enum { WRITERS = 2, ROUNDS = 12, EACH = 200 };
    const site *g = *state;
    writer writers[WRITERS], reader;
    unsigned long resealed = 0, busy = 0, said = 0;
    sessile_reseal_state last;
    sessile_error err;
    char *text;

    sessile_store *st = start_all(g, writers, WRITERS, 0, EACH);
    start(&reader, g, -1, 0);
    for (int i = 0; i < ROUNDS; i++) {
        atomic_store(&allowed, (unsigned)(i + 1) * EACH);
        usleep(10000);
        must(sessile_keys_rotate(st, NULL, NULL, &err), &err);
        must(keyed_reseal(st, NULL, &last, &err), &err);
        resealed += last.resealed;
        busy += last.failed;
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < WRITERS; i++)
        ended(&writers[i]);
    ended(&reader);
    /* who was given up, since it was written to all the time, is not any more */
    must(sessile_keys_rotate(st, NULL, NULL, &err), &err);
    must(keyed_reseal(st, NULL, &last, &err), &err);
    assert_int_equal(last.failed, 0);
    assert_int_equal(last.resealed, 1);
    must(keyed_read(st, "one", "", &text, &err), &err);
    for (int i = 0; i < WRITERS; i++) {
        said += compare(text, &writers[i], 0);
        free(writers[i].there);
    }
    free(reader.there);
    free(text);
    sessile_store_close(st);
    printf("# figure: %s, appended while sealed again %lu times (%lu given up) = %lu\n",
           g->kind->name, resealed, busy, said);
}

/* The table of a site, whose next blob_get comes after all logs were sealed again. */
static const sessile_backend *beneath;
static sessile_store *sealing; /* by this store; NULL: no more */

static sessile_status blob_get_late(void *self, const char *name, char **data,
                                    size_t *size, sessile_error *err)
{
    sessile_store *by = sealing;
    sessile_reseal_state last;
    sessile_error why;

    sealing = NULL;
    if (by) {
        must(sessile_keys_rotate(by, NULL, NULL, &why), &why);
        must(keyed_reseal(by, NULL, &last, &why), &why);
        assert_int_equal(last.resealed, 1);
        assert_int_equal(last.dropped, 1);
    }
    return beneath->blob_get(self, name, data, size, err);
}

/* Its first line names a key that the store's handle has never seen, and that is dropped
 * before the handle reads the keyring again. */
static void a_log_that_is_sealed_again_while_it_is_opened_opens(void **state)
{
    const site *g = *state;
    sessile_store_options options;
    sessile_session_options o = named("one");
    sessile_reseal_state last;
    sessile_session *s = NULL;
    sessile_backend table;
    sessile_store *st;
    sessile_error err;
    void *self;
    char *text;

    sessile_store *other = site_store(g);
    sessile_session_close(session_of(other, "one"), NULL);
    site_options(g, &options);
    must(g->kind->backend(g->place, &beneath, &self, &err), &err);
    table = *beneath;
    table.blob_get = blob_get_late;
    must(sessile_open_with(&st, &table, self, &options, &err), &err);
    must(sessile_keys_rotate(other, NULL, NULL, &err), &err);
    must(keyed_reseal(other, NULL, &last, &err), &err);
    sealing = other;
    sessile_status status = sessile_session_open(&s, st, &o, &err);
    assert_null(sealing);
    must(status, &err);
    must(say_number(s, 0, 0, &err), &err);
    sessile_session_close(s, NULL);
    must(keyed_read(other, "one", "", &text, &err), &err);
    assert_non_null(strstr(text, "<0.0>"));
    free(text);
    sessile_store_close(st);
    sessile_store_close(other);
}

static sessile_store *removing; /* by this store, before the next size; NULL: no more */

static sessile_status size_late(sessile_backend_log *log, uint64_t *bytes,
                                int64_t *mtime_ms, sessile_error *err)
{
    sessile_store *by = removing;
    sessile_error why;

    removing = NULL;
    if (by)
        must(delete_hard(by, "one", &why), &why);
    sessile_status status = beneath->size(log, bytes, mtime_ms, err);
    if (by && !(beneath->capabilities & SESSILE_BACKEND_LOCKS))
        *bytes = 0; /* as a store may say of a log that is gone */
    return status;
}

static void a_session_that_is_removed_while_it_is_opened_is_not_there(void **state)
{
    const site *g = *state;
    sessile_store_options options;
    sessile_session_options o = named("one");
    sessile_session *s = NULL;
    sessile_backend table;
    sessile_store *st;
    sessile_error err;
    void *self;

    sessile_store *other = site_store(g);
    sessile_session_close(session_of(other, "one"), NULL);
    site_options(g, &options);
    must(g->kind->backend(g->place, &beneath, &self, &err), &err);
    table = *beneath;
    table.size = size_late;
    table.opened = NULL; /* what an opening saw is not asked for again */
    must(sessile_open_with(&st, &table, self, &options, &err), &err);
    removing = other;
    refused(sessile_resume(&s, st, &o, &err), SESSILE_NOTFOUND, &err);
    assert_null(removing);
    sessile_store_close(st);
    sessile_store_close(other);
}

/* On a busy machine all rounds may be over before a writer has its session open. */
static int noticed(const writer *writers, int count)
{
    for (int i = 0; i < count; i++)
        if (atomic_load(&writers[i].gone) > 0)
            return 1;
    return 0;
}

static void writers_double_nothing_while_the_session_is_removed(void **state)
{
    enum { WRITERS = 2, ROUNDS = 20, MOST_ROUNDS = 1000 };
    const site *g = *state;
    writer writers[WRITERS];
    unsigned long gone = 0, removed = 0;
    sessile_error err;
    char *text;

    sessile_store *st = start_all(g, writers, WRITERS, 1, MOST);
    for (int i = 0; i < ROUNDS || (!noticed(writers, WRITERS) && i < MOST_ROUNDS); i++) {
        usleep(5000);
        sessile_status status = delete_hard(st, "one", &err);
        if (status && status != SESSILE_NOTFOUND && status != SESSILE_BUSY)
            fail_msg("delete: %s", err.message);
        removed += !status;
    }
    unsigned first[WRITERS];
    for (int i = 0; i < WRITERS; i++) /* what is tried from here on stays */
        first[i] = atomic_load(&writers[i].said) + 2;
    atomic_store(&stop, 1);
    for (int i = 0; i < WRITERS; i++) {
        ended(&writers[i]);
        gone += writers[i].gone;
    }
    assert_true(removed > 0);
    assert_true(gone > 0);
    must(keyed_read(st, "one", "", &text, &err), &err);
    for (int i = 0; i < WRITERS; i++) {
        compare(text, &writers[i], first[i]);
        free(writers[i].there);
    }
    free(text);
    sessile_store_close(st);
    printf("# figure: %s, sessions removed under writers = %lu\n", g->kind->name,
           removed);
}

static void a_handle_of_a_removed_session_says_so(void **state)
{
    const site *g = *state;
    sessile_error err;

    sessile_store *st = site_store(g), *other = site_store(g);
    sessile_session *s = session_of(st, "one");

    must(say_number(s, 0, 0, &err), &err);
    must(delete_hard(other, "one", &err), &err);
    refused(say_number(s, 0, 1, &err), SESSILE_NOTFOUND, &err);
    assert_non_null(strstr(err.message, "session \"one\""));
    assert_non_null(strstr(err.message, "removed"));
    sessile_session *again = session_of(other, "one");
    refused(say_number(s, 0, 2, &err), SESSILE_NOTFOUND, &err);
    assert_non_null(strstr(err.message, "another one was made under its name"));
    must(say_number(again, 0, 3, &err), &err);
    sessile_session_close(again, NULL);
    sessile_session_close(s, NULL);
    sessile_store_close(other);
    sessile_store_close(st);
}

static int64_t stopped_clock(void *ud)
{
    (void)ud;
    return INT64_C(1800000000000);
}

/* A store for which it is always the same millisecond. */
static sessile_store *store_in_one_millisecond(const site *g)
{
    static os_table stopped;
    const os_table *was = os_current;

    stopped = *was;
    stopped.now_ms = stopped_clock;
    os_current = &stopped;
    sessile_store *st = site_store(g);
    os_current = was;
    return st;
}

static void a_session_made_again_in_the_same_millisecond_is_another_one(void **state)
{
    const site *g = *state;
    sessile_store *st = store_in_one_millisecond(g), *other = store_in_one_millisecond(g);
    sessile_error err;
    sessile_message *rows;
    size_t count;

    for (unsigned before = 0; before < 3; before++) { /* as long as it, shorter, longer */
        sessile_session *s = session_of(st, "one");
        for (unsigned n = 0; n < before; n++)
            must(say_number(s, 0, n, &err), &err);
        must(delete_hard(other, "one", &err), &err);
        sessile_session *again = session_of(other, "one");
        if (before == 1)
            must(say_number(again, 1, 0, &err), &err);
        must(sessile_messages(again, NULL, &rows, &count, &err), &err);
        sessile_free(rows);
        const size_t there = count;
        refused(say_number(s, 0, before, &err), SESSILE_NOTFOUND, &err);
        assert_non_null(strstr(err.message, "another one was made under its name"));
        refused(sessile_messages(s, NULL, &rows, &count, &err), SESSILE_NOTFOUND, &err);
        must(sessile_messages(again, NULL, &rows, &count, &err), &err);
        sessile_free(rows);
        assert_int_equal(count, there);
        must(say_number(again, 1, 1, &err), &err);
        sessile_session_close(again, NULL);
        sessile_session_close(s, NULL);
        must(delete_hard(other, "one", &err), &err);
    }
    sessile_store_close(other);
    sessile_store_close(st);
}

static void what_many_handles_add_to_the_index_is_right(void **state)
{
    enum { WRITERS = 3, EACH = 300 };
    const site *g = *state;
    writer writers[WRITERS];
    char what[400] = "", *text;
    sessile_error err;
    uint64_t bytes = 0;
    char folder[200] = "", name[200] = "";

    sessile_store *st = start_all(g, writers, WRITERS, 0, MOST);
    for (int i = 0; i < WRITERS; i++)
        while (atomic_load(&writers[i].said) < EACH && !writers[i].trouble[0])
            usleep(1000);
    atomic_store(&stop, 1);
    for (int i = 0; i < WRITERS; i++)
        ended(&writers[i]);
    must(keyed_read(st, "one", "", &text, &err), &err);
    for (int i = 0; i < WRITERS; i++) {
        compare(text, &writers[i], 0);
        free(writers[i].there);
    }
    free(text);
    if (check(st, 0, NULL, what, sizeof what))
        fail_msg("%s", what);
    sessile_store_close(st);

    opened o = open_site(g);
    shown logs = {"", 1};
    must(o.table->list(o.self, NULL, show, &logs, &o.err), &o.err);
    assert_int_equal(sscanf(logs.text, "%199[^/]/%199s", folder, name), 2);
    sessile_backend_log *log = log_in(&o, folder, name);
    must(o.table->cache_size(log, &bytes, &o.err), &o.err);
    assert_true(bytes > 0);
    o.table->close(log);
    done(&o);
}

/* The only log of a store, with one byte changed in the middle of it. */
static void spoil(const site *g)
{
    opened o = open_site(g);
    shown logs = {"", 1};
    char folder[200] = "", name[200] = "", *bytes;
    size_t size;

    must(o.table->list(o.self, NULL, show, &logs, &o.err), &o.err);
    assert_int_equal(sscanf(logs.text, "%199[^/]/%199s", folder, name), 2);
    sessile_backend_log *log = log_in(&o, folder, name);
    bytes = all(&o, log, 4096, &size);
    must(removed(&o, log), &o.err);
    o.table->close(log);
    bytes[size / 2] = bytes[size / 2] == 'x' ? 'y' : 'x';
    must(o.table->create(o.self, folder, name, bytes, size, &o.err), &o.err);
    free(bytes);
    done(&o);
}

static void *salvage(void *arg)
{
    writer *w = arg;
    sessile_store *st = site_store(w->g);
    uint64_t salvaged = 0;
    char what[400];

    check(st, 1, &salvaged, what, sizeof what);
    w->said = (unsigned)salvaged;
    sessile_store_close(st);
    return NULL;
}

static void a_damaged_log_is_salvaged_once_and_goes_on(void **state)
{
    enum { SALVAGERS = 3, SAID = 40 };
    const site *g = *state;
    writer by[SALVAGERS];
    sessile_store_options options;
    sessile_error err;
    unsigned salvaged = 0, there = 0;
    char what[400] = "", *text;

    site_options(g, &options);
    sessile_store *st = site_store(g);
    sessile_session *s = session_of(st, "one");
    for (unsigned n = 0; n < SAID; n++) {
        must(say_number(s, 0, n, &err), &err);
        must(sessile_session_sync(s, &err), &err); /* each is a proof of the others */
    }
    sessile_session_close(s, NULL);
    spoil(g);
    s = session_of(st, "one");
    refused(say_number(s, 0, SAID, &err), SESSILE_DAMAGED, &err);
    sessile_session_close(s, NULL);
    for (int i = 0; i < SALVAGERS; i++) {
        memset(&by[i], 0, sizeof by[i]);
        by[i].g = g;
        assert_int_equal(pthread_create(&by[i].thread, NULL, salvage, &by[i]), 0);
    }
    for (int i = 0; i < SALVAGERS; i++) {
        pthread_join(by[i].thread, NULL);
        salvaged += by[i].said;
    }
    assert_int_equal(salvaged, 1);
    s = session_of(st, "one");
    must(say_number(s, 0, SAID, &err), &err);
    sessile_session_close(s, NULL);
    if (check(st, 0, NULL, what, sizeof what) && !strstr(what, "lost"))
        fail_msg("%s", what);
    must(keyed_read(st, "one", "", &text, &err), &err);
    for (unsigned n = 0; n <= SAID; n++) {
        char word[30];
        snprintf(word, sizeof word, "<0.%u>", n);
        there += strstr(text, word) != NULL;
    }
    assert_int_equal(there, SAID); /* one was damaged, one came later */
    free(text);
    sessile_store_close(st);
}

static void the_time_that_a_call_may_take_reaches_the_store(void **state)
{
    const site *g = *state;
    sessile_error err;

    sessile_store *st = site_store(g);
    sessile_session *s = session_of(st, "one");

    must(say_number(s, 0, 0, &err), &err);
    assert_in_range(fenced_timeout(g->place), 50000, 60000); /* the store's */
    must(sessile_session_set_timeout(s, 1234, &err), &err);
    must(say_number(s, 0, 1, &err), &err);
    assert_in_range(fenced_timeout(g->place), 1, 1234);
    closed_all(s, st);
}
static const struct CMUnitTest cases[] = {
    CASE_IF(a_handle_of_a_removed_session_says_so, NEEDS_REMOVE | NEEDS_RESTARTS),
    CASE_IF(a_session_made_again_in_the_same_millisecond_is_another_one,
            NEEDS_REMOVE | NEEDS_RESTARTS),
    CASE_IF(writers_and_readers_go_on_while_a_log_is_resealed,
            NEEDS_SEALED | SESSILE_BACKEND_REPLACES | NEEDS_BLOB_REPLACE |
                NEEDS_RESTARTS),
    CASE_IF(a_log_that_is_sealed_again_while_it_is_opened_opens,
            NEEDS_SEALED | SESSILE_BACKEND_REPLACES | NEEDS_BLOB_REPLACE |
                NEEDS_RESTARTS),
    CASE_IF(a_session_that_is_removed_while_it_is_opened_is_not_there,
            NEEDS_REMOVE | NEEDS_RESTARTS),
    CASE_IF(writers_double_nothing_while_the_session_is_removed,
            NEEDS_REMOVE | NEEDS_RESTARTS),
    CASE_IF(what_many_handles_add_to_the_index_is_right,
            SESSILE_BACKEND_CACHES | NEEDS_RESTARTS),
    CASE_IF(a_damaged_log_is_salvaged_once_and_goes_on,
            SESSILE_BACKEND_REPLACES | NEEDS_REMOVE | NEEDS_RESTARTS),
    CASE_IF(the_time_that_a_call_may_take_reaches_the_store, NEEDS_FENCED),
};

int main(int argc, char **argv)
{
    return suite_run("changes", cases, sizeof cases / sizeof *cases, 0, argc, argv);
}

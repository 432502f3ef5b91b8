/*
 * test_hosted.c: a store that a host brings is contained: what its table lacks is named,
 * what it answers is believed as far as it can be, and its self is freed once.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include "sessile_store.h"
#include "store/ram.h"

#include <cmocka.h> /* after the engine's: its fail() is a macro */

/* A volatile store of the engine's, with one function that lies. */
static store under;
static sessile_backend lying;
static int freed;

static void count_free(void *self)
{
    freed++;
    under.table->free(self);
}

static void lie_set_up(void)
{
    sessile_error err;

    assert_int_equal(store_ram_open(&under, os_current, &allocator_default, &err),
                     SESSILE_OK);
    lying = *under.table;
    lying.free = count_free;
    freed = 0;
}

static sessile_status open_lying(sessile_store **st, sessile_error *err)
{
    sessile_store_options options;

    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_PLAIN;
    options.config.has_timeout = 1;
    options.config.timeout_ms = 0;
    return sessile_open_with(st, &lying, under.self, &options, err);
}

#define assert_says(err, part)                                            \
    do {                                                                  \
        if (!strstr((err)->message, part))                                \
            fail_msg("\"%s\" does not say \"%s\"", (err)->message, part); \
    } while (0)

/* ------------------------------------------------------------------ the table */

static sessile_status never_called(sessile_backend_log *log, uint64_t offset,
                                   sessile_error *err)
{
    (void)log;
    (void)offset;
    (void)err;
    return SESSILE_IO;
}

static sessile_status never_drafts(void *self, const char *folder, const char *name,
                                   sessile_backend_draft **out, sessile_error *err)
{
    (void)self;
    (void)folder;
    (void)name;
    (void)out;
    (void)err;
    return SESSILE_IO;
}

static sessile_status never_writes(sessile_backend_draft *draft, const void *data,
                                   size_t size, sessile_error *err)
{
    (void)draft;
    (void)data;
    (void)size;
    (void)err;
    return SESSILE_IO;
}

static sessile_status never_replaces(sessile_backend_draft *draft,
                                     sessile_backend_log *old, int keep, char *kept,
                                     size_t kept_size, sessile_error *err)
{
    (void)draft;
    (void)old;
    (void)keep;
    (void)kept;
    (void)kept_size;
    (void)err;
    return SESSILE_IO;
}

static void never_drops(sessile_backend_draft *draft)
{
    (void)draft;
}

static int never_replaced(sessile_backend_log *log)
{
    (void)log;
    return 0;
}

static sessile_status no_cache(sessile_backend_log *log, uint64_t *bytes,
                               sessile_error *err)
{
    (void)log;
    (void)err;
    *bytes = 0;
    return SESSILE_OK;
}

static sessile_status never_reads(sessile_backend_log *log, uint64_t offset, void *out,
                                  size_t size, size_t *got, sessile_error *err)
{
    (void)log;
    (void)offset;
    (void)out;
    (void)size;
    (void)err;
    *got = 0;
    return SESSILE_IO;
}

static sessile_status never_caches(sessile_backend_log *log, uint64_t offset,
                                   const void *data, size_t size, sessile_error *err)
{
    (void)log;
    (void)offset;
    (void)data;
    (void)size;
    (void)err;
    return SESSILE_IO;
}

/* The table opens as expected: with this word in the error, unless it is NULL. */
static void opens_as(sessile_status expected, const char *word)
{
    sessile_store *st = (sessile_store *)1;
    sessile_error err;

    assert_int_equal(open_lying(&st, &err), expected);
    if (expected)
        assert_null(st);
    if (word)
        assert_says(&err, word);
    sessile_store_close(st);
    assert_int_equal(freed, 1);
}

static void lie_with_drafts(unsigned capabilities, int (*replaced)(sessile_backend_log *))
{
    lie_set_up();
    lying.capabilities = capabilities;
    lying.draft_new = never_drafts;
    lying.draft_write = never_writes;
    lying.draft_replace = never_replaces;
    lying.draft_drop = never_drops;
    lying.replaced = replaced;
}

static void what_a_table_lacks_is_named(void **state)
{
    (void)state;
#define LACKS(member, with)       \
    lie_set_up();                 \
    lying.capabilities |= (with); \
    lying.member = NULL;          \
    opens_as(SESSILE_INVALID, #member)
    LACKS(create, 0);
    LACKS(open, 0);
    LACKS(close, 0);
    LACKS(size, 0);
    LACKS(read, 0);
    LACKS(append, 0);
    LACKS(sync, 0);
    LACKS(list, 0);
    LACKS(lock, SESSILE_BACKEND_LOCKS);
    LACKS(unlock, SESSILE_BACKEND_LOCKS);
    LACKS(blob_get, SESSILE_BACKEND_SEALS);
    LACKS(blob_put_new, SESSILE_BACKEND_SEALS);
    LACKS(set_aside, SESSILE_BACKEND_CUTS);
    LACKS(cache_read, SESSILE_BACKEND_CACHES);
    LACKS(draft_replace, SESSILE_BACKEND_REPLACES);
    LACKS(list_stat, SESSILE_BACKEND_LIST_CACHE);
    lie_set_up();
    lying.version = SESSILE_BACKEND_VERSION + 1;
    opens_as(SESSILE_UNSUPPORTED, "version 2, and this library knows version 1");
    lie_set_up();
    lying.version = 0;
    opens_as(SESSILE_UNSUPPORTED, NULL);
    lie_set_up(); /* what needs locks is refused without them */
    lying.capabilities = SESSILE_BACKEND_CUTS;
    lying.set_aside = never_called;
    opens_as(SESSILE_INVALID, "LOCKS");
    /* what replaces logs without locks says when one was replaced */
    lie_with_drafts(SESSILE_BACKEND_REPLACES, NULL);
    opens_as(SESSILE_INVALID, "replaced");
    lie_with_drafts(SESSILE_BACKEND_REPLACES | SESSILE_BACKEND_CACHES, never_replaced);
    lying.cache_size = no_cache;
    lying.cache_read = never_reads;
    lying.cache_write = never_caches;
    opens_as(SESSILE_OK, NULL);
}

static void self_is_freed_once_whatever_happens(void **state)
{
    sessile_store_options options;
    sessile_store *st;
    sessile_error err;

    (void)state;
    lie_set_up();
    assert_int_equal(sessile_open_with(NULL, &lying, under.self, NULL, &err),
                     SESSILE_INVALID);
    assert_int_equal(freed, 1);
    lie_set_up();
    sessile_store_options_init(&options);
    options.config.has_timeout = 1;
    options.config.timeout_ms = -2;
    assert_int_equal(sessile_open_with(&st, &lying, under.self, &options, &err),
                     SESSILE_INVALID);
    assert_int_equal(freed, 1);
    assert_int_equal(sessile_open_with(&st, NULL, NULL, NULL, &err), SESSILE_INVALID);
    lie_set_up();
    assert_int_equal(open_lying(&st, &err), SESSILE_OK);
    assert_int_equal(freed, 0);
    sessile_store_close(st);
    assert_int_equal(freed, 1);
    lie_set_up(); /* a self that stays the host's */
    lying.free = NULL;
    assert_int_equal(open_lying(&st, &err), SESSILE_OK);
    sessile_store_close(st);
    under.table->free(under.self);
}

/* ------------------------------------------------------------------ answers */

static int lie; /* which */
enum { NO_STATUS = 1, SILENT, NO_END, SIZE, READ, NOTHING, NAMES, TALK, TRUE_END };

static sessile_status lying_open(void *self, const char *folder, const char *name,
                                 sessile_backend_log **out, sessile_error *err)
{
    if (lie == NO_STATUS)
        return (sessile_status)77;
    if (lie == SILENT)
        return SESSILE_DENIED;
    if (lie == NOTHING)
        return SESSILE_OK;
    if (lie == NO_END) {
        err->code = SESSILE_BUSY; /* another one than it returns, and no NUL */
        memset(err->message, 'x', sizeof err->message);
        return SESSILE_IO;
    }
    return under.table->open(self, folder, name, out, err);
}

static sessile_status lying_size(sessile_backend_log *log, uint64_t *bytes,
                                 int64_t *mtime_ms, sessile_error *err)
{
    sessile_status status = under.table->size(log, bytes, mtime_ms, err);
    if (lie == SIZE)
        *bytes = UINT64_MAX - 5;
    return status;
}

static sessile_status lying_read(sessile_backend_log *log, uint64_t index,
                                 uint64_t offset, void *out, size_t size, size_t *got,
                                 sessile_error *err)
{
    sessile_status status = under.table->read(log, index, offset, out, size, got, err);
    if (lie == READ)
        *got = size + 1;
    return status;
}

static sessile_status lying_append(sessile_backend_log *log, sessile_log_end *end,
                                   const void *data, size_t size, uint64_t count,
                                   const unsigned char new_tag[16], int *poisoned,
                                   sessile_error *err)
{
    sessile_status status =
        under.table->append(log, end, data, size, count, new_tag, poisoned, err);
    if (lie == TRUE_END) { /* says nothing true of the end, nor of poison */
        memset(end, 0xee, sizeof *end);
        *poisoned = 7;
    }
    return status;
}

static sessile_status lying_list(void *self, const char *folder,
                                 int (*visit)(void *arg, const char *folder,
                                              const char *name),
                                 void *arg, sessile_error *err)
{
    if (lie == NAMES) {
        static char longest[4000];
        memset(longest, 'a', sizeof longest - 1);
        (void)visit(arg, "main", NULL);
        (void)visit(arg, NULL, "a");
        (void)visit(arg, "main", "../../etc/passwd");
        (void)visit(arg, "main", "");
        (void)visit(arg, "main", longest);
    }
    return under.table->list(self, folder, visit, arg, err);
}

static sessile_store *lying_store(void)
{
    sessile_store *st;
    sessile_error err;

    lie_set_up();
    lie = 0;
    lying.open = lying_open;
    lying.size = lying_size;
    lying.read = lying_read;
    lying.append = lying_append;
    lying.list = lying_list;
    assert_int_equal(open_lying(&st, &err), SESSILE_OK);
    return st;
}

static sessile_session_options one(void)
{
    sessile_session_options o;

    sessile_session_options_init(&o);
    o.id = sessile_text("one");
    return o;
}

static void answers_without_sense_are_IO(void **state)
{
    static const struct {
        int lie;
        sessile_status status;
        const char *says;
    } cases[] = {
        {NO_STATUS, SESSILE_IO, "77"},
        {SILENT, SESSILE_DENIED, "answered open with DENIED and said no more"},
        {NO_END, SESSILE_IO, "xxx"},
        {NOTHING, SESSILE_IO, "gave none"},
        {SIZE, SESSILE_IO, "more bytes than there are"},
        {READ, SESSILE_IO, "more bytes than it was asked for"},
    };
    sessile_store *st = lying_store();
    sessile_session_options o = one();
    sessile_session *s;
    sessile_error err;
    sessile_id id;

    (void)state;
    assert_int_equal(sessile_create(&s, st, &o, &err), SESSILE_OK);
    sessile_session_close(s, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lie = cases[i].lie;
        assert_int_equal(sessile_resume(&s, st, &o, &err), cases[i].status);
        assert_null(s);
        assert_int_equal(err.code, cases[i].status);
        assert_says(&err, cases[i].says);
        lie = 0;
        assert_int_equal(sessile_resume(&s, st, &o, &err), SESSILE_OK);
        sessile_session_close(s, NULL);
    }
    /* an end that is not believed: two appends go where they should */
    lie = TRUE_END;
    assert_int_equal(sessile_resume(&s, st, &o, &err), SESSILE_OK);
    for (sessile_id n = 1; n <= 2; n++) {
        assert_int_equal(sessile_append(s,
                                        sessile_text("{\"role\":\"user\",\"content\":1}"),
                                        &id, &err),
                         SESSILE_INVALID);
        assert_int_equal(
            sessile_append(s, sessile_text("{\"role\":\"user\",\"content\":\"x\"}"), &id,
                           &err),
            SESSILE_OK);
        assert_int_equal(id, n);
    }
    sessile_session_close(s, NULL);
    sessile_store_close(st);
}

static void names_that_the_engine_never_made_are_left_out(void **state)
{
    sessile_store *st = lying_store();
    sessile_session_options o = one();
    sessile_session *s;
    sessile_listed *rows;
    sessile_error err;
    size_t count;

    (void)state;
    assert_int_equal(sessile_create(&s, st, &o, &err), SESSILE_OK);
    sessile_session_close(s, NULL);
    lie = NAMES;
    assert_int_equal(sessile_list(st, NULL, &rows, &count, &err), SESSILE_OK);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].status, SESSILE_OK);
    sessile_free(rows);
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ blobs */

static int short_blob;

static sessile_status lying_blob_get(void *self, const char *name, char **out,
                                     size_t *size, sessile_error *err)
{
    sessile_status status = under.table->blob_get(self, name, out, size, err);
    if (!status && short_blob == 1)
        *size += 1000;
    if (!status && short_blob == 2)
        *size = SIZE_MAX;
    if (!status && short_blob == 3) {
        sessile_free(*out);
        *out = NULL;
    }
    return status;
}

static void a_blob_is_as_long_as_it_is(void **state)
{
    sessile_store_options options;
    sessile_store *st;
    sessile_error err;

    (void)state;
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_SECRET;
    options.key = "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    lie_set_up();
    lying.capabilities = SESSILE_BACKEND_SEALS;
    lying.blob_get = lying_blob_get;
    lying.free = NULL;
    short_blob = 0;
    assert_int_equal(sessile_open_with(&st, &lying, under.self, &options, &err),
                     SESSILE_OK);
    assert_int_equal(sessile_store_sealed(st), 1);
    sessile_store_close(st);
    for (short_blob = 1; short_blob <= 3; short_blob++) {
        assert_int_equal(sessile_open_with(&st, &lying, under.self, &options, &err),
                         SESSILE_IO);
        assert_says(&err, "a blob ");
    }
    short_blob = 0;
    assert_int_equal(sessile_open_with(&st, &lying, under.self, &options, &err),
                     SESSILE_OK);
    sessile_store_close(st);
    under.table->free(under.self);
}

/* ------------------------------------------------------------------ without locks */

static int always; /* every append is too late, although nobody wrote */

static sessile_status late_append(sessile_backend_log *log, sessile_log_end *end,
                                  const void *data, size_t size, uint64_t count,
                                  const unsigned char new_tag[16], int *poisoned,
                                  sessile_error *err)
{
    if (always) {
        always++;
        err->code = SESSILE_CONFLICT;
        strcpy(err->message, "it has grown, says the store");
        return SESSILE_CONFLICT;
    }
    return under.table->append(log, end, data, size, count, new_tag, poisoned, err);
}

static void a_store_that_is_always_too_late_is_given_up(void **state)
{
    sessile_session_options o = one();
    sessile_session *s;
    sessile_store *st;
    sessile_error err;
    sessile_id id;

    (void)state;
    lie_set_up();
    lying.capabilities = 0;
    lying.append = late_append;
    always = 0;
    assert_int_equal(open_lying(&st, &err), SESSILE_OK);
    assert_int_equal(sessile_create(&s, st, &o, &err), SESSILE_OK);
    assert_int_equal(sessile_session_set_timeout(s, -1, &err), SESSILE_OK);
    always = 1;
    assert_int_equal(sessile_append(s,
                                    sessile_text("{\"role\":\"user\",\"content\":\"x\"}"),
                                    &id, &err),
                     SESSILE_CONFLICT);
    assert_says(&err, "open the session again");
    assert_in_range(always, 3, 100);
    always = 0;
    assert_int_equal(sessile_append(s,
                                    sessile_text("{\"role\":\"user\",\"content\":\"x\"}"),
                                    &id, &err),
                     SESSILE_OK);
    assert_int_equal(id, 1);
    sessile_session_close(s, NULL);
    sessile_store_close(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_table_lacks_is_named),
        cmocka_unit_test(self_is_freed_once_whatever_happens),
        cmocka_unit_test(answers_without_sense_are_IO),
        cmocka_unit_test(names_that_the_engine_never_made_are_left_out),
        cmocka_unit_test(a_blob_is_as_long_as_it_is),
        cmocka_unit_test(a_store_that_is_always_too_late_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_records.c: sessions over records that the host keeps: what goes out comes in
 * again, and what was changed on the way is seen as on a disk.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sessile.h"
#include "support/check.h"

#include <cmocka.h>

#define KEY   "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define OTHER "hex:ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff"

enum { MOST = 1000 };

/* What a host keeps of a session. */
typedef struct kept {
    char *text[MOST];
    size_t size[MOST], count;
} kept;

static sessile_store *store_of(const char *key)
{
    sessile_store_options o;
    sessile_store *st;
    sessile_error err;

    sessile_store_options_init(&o);
    o.key_source = key ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
    o.key = key;
    must(sessile_open_records(&st, &o, &err), &err);
    assert_int_equal(sessile_store_sealed(st), key != NULL);
    return st;
}

static sessile_status over(sessile_session **s, sessile_store *st, const char *id,
                           const kept *k, sessile_error *err)
{
    sessile_session_options o;
    sessile_slice rows[MOST];

    for (size_t i = 0; i < k->count; i++)
        rows[i] = (sessile_slice){k->text[i], k->size[i]};
    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    return sessile_records_open(s, st, &o, rows, k->count, err);
}

/* Keeps what the session has more. */
static void keep(kept *k, sessile_session *s)
{
    sessile_slice *rows;
    sessile_error err;
    size_t count;

    must(sessile_records_read(s, k->count, &rows, &count, &err), &err);
    for (size_t i = 0; i < count; i++, k->count++) {
        k->text[k->count] = malloc(rows[i].size + 1);
        memcpy(k->text[k->count], rows[i].data, rows[i].size + 1);
        assert_int_equal(k->text[k->count][rows[i].size], 0);
        k->size[k->count] = rows[i].size;
    }
    sessile_free(rows);
}

static void kept_free(kept *k)
{
    for (size_t i = 0; i < k->count; i++)
        free(k->text[i]);
    k->count = 0;
}

static void say(sessile_session *s, const char *text)
{
    char json[100];
    sessile_error err;
    sessile_id id;

    snprintf(json, sizeof json, "{\"role\":\"user\",\"content\":\"%s\"}", text);
    must(sessile_append(s, sessile_text(json), &id, &err), &err);
}

static void take_turn(sessile_session *s)
{
    sessile_slice list[2] = {sessile_text("{\"role\":\"user\",\"content\":\"q\"}"),
                             sessile_text("{\"role\":\"assistant\",\"content\":\"a\"}")};
    sessile_error err;
    sessile_need need;
    sessile_run *run;

    must(sessile_turn_begin(&run, s, list, 2, NULL, &err), &err);
    must(sessile_run_step(run, &need, &err), &err);
    sessile_run_free(run);
}

static size_t messages(sessile_session *s)
{
    sessile_message *rows;
    sessile_error err;
    size_t count;

    must(sessile_messages(s, NULL, &rows, &count, &err), &err);
    sessile_free(rows);
    return count;
}

/* Seven records: header, "one", "two", a turn of three, "last". */
static void seven(kept *k, sessile_store *st)
{
    sessile_session *s;
    sessile_error err;

    k->count = 0;
    must(over(&s, st, "s", k, &err), &err);
    keep(k, s);
    assert_int_equal(k->count, 1);
    say(s, "one");
    say(s, "two");
    take_turn(s);
    keep(k, s);
    say(s, "last");
    keep(k, s);
    assert_int_equal(k->count, 7);
    must(sessile_session_close(s, &err), &err);
}

static const char *const keys[] = {NULL, KEY};

/* ------------------------------------------------------------------ in and out */

static void records_go_out_and_come_in(void **state)
{
    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        sessile_store *st = store_of(keys[sealed]);
        sessile_session *s;
        sessile_slice *rows;
        sessile_error err;
        size_t count;
        kept k;

        seven(&k, st);
        for (size_t i = 0; i < k.count; i++) {
            assert_non_null(strstr(k.text[i], "{\"id\":\"0000000"));
            if (sealed)
                assert_null(strstr(k.text[i], "content"));
        }
        if (sealed)
            assert_non_null(strstr(k.text[0], ",\"epoch\":0,\"key\":"));
        sessile_store_close(st); /* another process, as it were */
        st = store_of(keys[sealed]);
        must(over(&s, st, "s", &k, &err), &err);
        assert_int_equal(messages(s), 5);
        must(sessile_records_read(s, 7, &rows, &count, &err), &err);
        assert_null(rows);
        assert_int_equal(count, 0);
        assert_int_equal(sessile_records_read(s, 8, &rows, &count, &err),
                         SESSILE_INVALID);
        say(s, "more");
        keep(&k, s);
        assert_int_equal(k.count, 8);
        must(sessile_session_close(s, &err), &err);
        must(over(&s, st, "s", &k, &err), &err);
        assert_int_equal(messages(s), 6);
        must(sessile_session_close(s, &err), &err);
        kept_free(&k);
        sessile_store_close(st);
    }
}

static void each_handle_has_a_log_of_its_own(void **state)
{
    sessile_store *st = store_of(NULL);
    sessile_session *a, *b;
    sessile_listed *rows;
    sessile_error err;
    size_t count;
    kept k;

    (void)state;
    seven(&k, st);
    must(over(&a, st, "s", &k, &err), &err);
    must(over(&b, st, "s", &k, &err), &err);
    say(a, "by a");
    assert_int_equal(messages(a), 6);
    assert_int_equal(messages(b), 5);
    must(sessile_list(st, NULL, &rows, &count, &err), &err);
    assert_int_equal(count, 0);
    sessile_free(rows);
    must(sessile_session_close(a, &err), &err);
    say(b, "by b");
    assert_int_equal(messages(b), 6);
    must(sessile_session_close(b, &err), &err);
    kept_free(&k);
    sessile_store_close(st);
}

static size_t live;

static void *count_alloc(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)ud;
    live += nsize - (ptr ? osize : 0);
    if (!nsize) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, nsize);
}

static void a_closed_session_leaves_nothing_behind(void **state)
{
    sessile_store_options o;
    sessile_store *st;
    sessile_session *s;
    sessile_error err;
    kept k = {.count = 0}, none = {.count = 0};

    (void)state;
    sessile_store_options_init(&o);
    o.alloc = count_alloc;
    must(sessile_open_records(&st, &o, &err), &err);
    seven(&k, st);
    size_t before = live;
    for (int i = 0; i < 20; i++) {
        must(over(&s, st, "s", i % 2 ? &k : &none, &err), &err);
        say(s, "more");
        must(sessile_session_close(s, &err), &err);
        assert_int_equal(over(&s, st, "other", &k, &err), SESSILE_DAMAGED);
    }
    assert_int_equal(live, before);
    kept_free(&k);
    sessile_store_close(st);
    assert_int_equal(live, 0);
}

static void a_new_session_without_an_id_gets_one(void **state)
{
    sessile_store *st = store_of(NULL);
    sessile_session *s, *again;
    sessile_error err;
    char id[64];
    kept k = {.count = 0};

    (void)state;
    must(over(&s, st, "", &k, &err), &err);
    assert_int_equal(sessile_session_id(s).size, 36);
    snprintf(id, sizeof id, "%.36s", sessile_session_id(s).data);
    keep(&k, s);
    must(over(&again, st, id, &k, &err), &err);
    must(sessile_session_close(again, &err), &err);
    assert_int_equal(over(&again, st, "", &k, &err), SESSILE_INVALID);
    must(sessile_session_close(s, &err), &err);
    kept_free(&k);
    sessile_store_close(st);
}

/* More than fit into one piece, out of a store that is not over records. */
static void records_of_any_store_go_out(void **state)
{
    sessile_store *st = store_of(NULL), *ram;
    sessile_store_options o;
    sessile_session_options so;
    sessile_session *s;
    sessile_error err;
    kept k = {.count = 0};

    (void)state;
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_PLAIN;
    must(sessile_open(&ram, "ram:", &o, &err), &err);
    sessile_session_options_init(&so);
    so.id = sessile_text("s");
    must(sessile_create(&s, ram, &so, &err), &err);
    for (int i = 0; i < 600; i++)
        say(s, "hello");
    keep(&k, s);
    assert_int_equal(k.count, 601);
    must(sessile_session_close(s, &err), &err);
    assert_int_equal(over(&s, ram, "s", &k, &err), SESSILE_UNSUPPORTED);
    must(over(&s, st, "s", &k, &err), &err);
    assert_int_equal(messages(s), 600);
    must(sessile_session_close(s, &err), &err);
    kept_free(&k);
    sessile_store_close(ram);
    sessile_store_close(st);
}

/* Forks and copies are handles' own as well, and can be forked again. */
static void forks_have_records_of_their_own(void **state)
{
    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        sessile_store_options o;
        sessile_session_options so;
        sessile_store *st;
        sessile_session *s, *fork, *second, *copy;
        sessile_check *check;
        sessile_error err;
        kept k, f = {.count = 0}, c = {.count = 0};

        sessile_store_options_init(&o);
        o.alloc = count_alloc;
        o.key_source = sealed ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
        o.key = KEY;
        must(sessile_open_records(&st, &o, &err), &err);
        seven(&k, st);
        size_t before = live;
        must(over(&s, st, "s", &k, &err), &err);
        sessile_session_options_init(&so);
        so.id = sessile_text("fork");
        for (int i = 0; i < 3; i++) { /* the name is free as soon as it is made */
            must(sessile_fork(&fork, s, 2, &so, &err), &err);
            assert_int_equal(messages(fork), 2);
            must(sessile_fork(&second, fork, 1, &so, &err), &err);
            assert_int_equal(messages(second), 1);
            must(sessile_session_close(second, &err), &err);
            if (i < 2)
                must(sessile_session_close(fork, &err), &err);
        }
        keep(&f, fork);
        must(sessile_put(&copy, st, fork, NULL, &err), &err);
        keep(&c, copy);
        must(sessile_session_close(copy, &err), &err);
        must(sessile_session_close(fork, &err), &err);
        must(sessile_session_close(s, &err), &err);
        assert_int_equal(live, before);
        must(over(&fork, st, "fork", &f, &err), &err);
        assert_int_equal(messages(fork), 2);
        must(over(&copy, st, "fork", &c, &err), &err);
        assert_int_equal(messages(copy), 2);
        must(sessile_session_close(fork, &err), &err);
        must(sessile_session_close(copy, &err), &err);
        assert_int_equal(sessile_check_open(&check, st, NULL, 0, &err),
                         SESSILE_UNSUPPORTED);
        kept_free(&k);
        kept_free(&f);
        kept_free(&c);
        sessile_store_close(st);
        assert_int_equal(live, 0);
    }
}

/* ---------------------------------------------------------- changed on the way */

/* Opens what is left; when it opens to be read and not written, that is its damage. */
static sessile_status opens(sessile_store *st, const kept *k, sessile_error *err)
{
    sessile_session *s;
    sessile_status status = over(&s, st, "s", k, err);

    if (!status) {
        status = sessile_session_damage(s, NULL, err);
        if (status) {
            sessile_error refused;
            sessile_id id;
            sessile_slice *rows;
            size_t count;
            assert_int_equal(
                sessile_append(s, sessile_text("{\"role\":\"user\",\"content\":\"x\"}"),
                               &id, &refused),
                status);
            assert_int_equal(sessile_records_read(s, 0, &rows, &count, &refused), status);
        }
        sessile_session_close(s, NULL);
    } else {
        assert_null(s);
    }
    return status;
}

/* A test of seven records, kept from a plain store and from a sealed one. */
typedef struct kept_test {
    void (*run)(sessile_store *st, kept *k);
} kept_test;

static void plain_and_sealed(void **state)
{
    const kept_test *t = *state;
    for (int sealed = 0; sealed < 2; sealed++) {
        sessile_store *st = store_of(keys[sealed]);
        kept k;

        seven(&k, st);
        t->run(st, &k);
        kept_free(&k);
        sessile_store_close(st);
    }
}

static void cut_where_a_write_ends_is_shorter_and_elsewhere_damaged(sessile_store *st,
                                                                    kept *k)
{
    sessile_error err;
    for (size_t count = 1; count <= 7; count++) {
        kept part = *k;
        part.count = count;
        sessile_status status = opens(st, &part, &err);
        if (count == 4 || count == 5) { /* in the middle of the turn */
            assert_int_equal(status, SESSILE_DAMAGED);
            assert_non_null(strstr(err.message, "the first 3 are whole writes"));
        } else {
            must(status, &err);
        }
    }
}

static void swapped_dropped_doubled_and_changed_records_are_seen(sessile_store *st,
                                                                 kept *k)
{
    sessile_error err;
    for (size_t i = 0; i < 7; i++) {
        kept other = *k;
        if (i < 6) { /* swapped with the next one */
            other.text[i] = k->text[i + 1];
            other.size[i] = k->size[i + 1];
            other.text[i + 1] = k->text[i];
            other.size[i + 1] = k->size[i];
            assert_int_equal(opens(st, &other, &err), SESSILE_DAMAGED);
        }
        other = *k; /* dropped */
        memmove(other.text + i, other.text + i + 1, (6 - i) * sizeof *other.text);
        memmove(other.size + i, other.size + i + 1, (6 - i) * sizeof *other.size);
        other.count = 6;
        if (i < 6)
            assert_int_equal(opens(st, &other, &err), SESSILE_DAMAGED);
        other = *k; /* doubled */
        other.text[7] = k->text[i];
        other.size[7] = k->size[i];
        other.count = 8;
        assert_int_equal(opens(st, &other, &err), SESSILE_DAMAGED);
        for (size_t at = 0; at < k->size[i]; at += 7) { /* changed */
            char was = k->text[i][at];
            k->text[i][at] = was == 'x' ? 'y' : 'x';
            sessile_status status = opens(st, k, &err);
            if (status != SESSILE_DAMAGED && status != SESSILE_SEALED &&
                status != SESSILE_UNSUPPORTED)
                fail_msg("record %zu, byte %zu: %s", i, at, sessile_status_name(status));
            k->text[i][at] = was;
        }
        for (size_t size = 0; size < k->size[i]; size += 11) { /* cut */
            size_t was = k->size[i];
            k->size[i] = size;
            sessile_status status = opens(st, k, &err);
            if (status != SESSILE_DAMAGED && status != SESSILE_SEALED)
                fail_msg("record %zu, %zu bytes: %s", i, size,
                         sessile_status_name(status));
            k->size[i] = was;
        }
    }
    must(opens(st, k, &err), &err);
}

static void garbage_is_DAMAGED(void **state)
{
    static const char *const garbage[] = {
        "", "x", "{}", "null", "{\"id\":\"00000000\"}", "two\nlines", "\xff\xfe"};
    sessile_store *st;
    sessile_error err;

    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        st = store_of(keys[sealed]);
        for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
            kept k = {{(char *)garbage[i]}, {strlen(garbage[i])}, 1};
            sessile_status status = opens(st, &k, &err);
            if (status != SESSILE_DAMAGED && status != SESSILE_SEALED)
                fail_msg("\"%s\": %s", garbage[i], sessile_status_name(status));
            assert_true(err.message[0] != 0);
        }
        sessile_store_close(st);
    }
}

/* ------------------------------------------------------------------ keys */

static void records_open_under_their_key_alone(void **state)
{
    static const struct {
        const char *made, *opened;
    } cases[] = {{KEY, OTHER}, {KEY, NULL}, {NULL, KEY}};
    sessile_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sessile_store *st = store_of(cases[i].made);
        kept k;
        seven(&k, st);
        sessile_store_close(st);
        st = store_of(cases[i].opened);
        assert_int_equal(opens(st, &k, &err), SESSILE_SEALED);
        kept_free(&k);
        sessile_store_close(st);
    }
}

static void what_is_no_key_is_INVALID(void **state)
{
    static const struct {
        sessile_key_source source;
        const char *key;
    } cases[] = {{SESSILE_KEY_SECRET, "a passphrase of some length"},
                 {SESSILE_KEY_ENV, "HOME"},
                 {SESSILE_KEY_FILE, "/dev/null"}};
    sessile_store_options o;
    sessile_store *st;
    sessile_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sessile_store_options_init(&o);
        o.key_source = cases[i].source;
        o.key = cases[i].key;
        assert_int_equal(sessile_open_records(&st, &o, &err), SESSILE_INVALID);
        assert_null(st);
    }
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_SECRET;
    o.key = KEY;
    o.suite = "rot13";
    assert_int_equal(sessile_open_records(&st, &o, &err), SESSILE_UNSUPPORTED);
    must(sessile_open_records(&st, NULL, &err),
         &err); /* plain, and no key file is made */
    assert_int_equal(sessile_store_sealed(st), 0);
    sessile_store_close(st);
}

/* A user has no secret of their own here: there is no place to keep it. */
static void sessions_of_users_are_sealed_with_the_key_itself(void **state)
{
    sessile_store *st = store_of(KEY);
    sessile_session_options o;
    sessile_session *s;
    sessile_slice *rows;
    sessile_error err;
    size_t count;

    (void)state;
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    o.user = sessile_text("u");
    must(sessile_records_open(&s, st, &o, NULL, 0, &err), &err);
    must(sessile_records_read(s, 0, &rows, &count, &err), &err);
    assert_null(strstr(rows[0].data, "\"user\""));
    must(sessile_session_close(s, &err), &err);
    must(sessile_records_open(&s, st, &o, rows, count, &err), &err);
    must(sessile_session_close(s, &err), &err);
    o.user = sessile_text("v"); /* another user's: not theirs by any id */
    assert_int_equal(sessile_records_open(&s, st, &o, rows, count, &err),
                     SESSILE_DAMAGED);
    sessile_free(rows);
    sessile_store_close(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_go_out_and_come_in),
        cmocka_unit_test(each_handle_has_a_log_of_its_own),
        cmocka_unit_test(a_closed_session_leaves_nothing_behind),
        cmocka_unit_test(a_new_session_without_an_id_gets_one),
        cmocka_unit_test(records_of_any_store_go_out),
        cmocka_unit_test(forks_have_records_of_their_own),
        {"cut_where_a_write_ends_is_shorter_and_elsewhere_damaged", plain_and_sealed,
         NULL, NULL,
         &(kept_test){cut_where_a_write_ends_is_shorter_and_elsewhere_damaged}},
        {"swapped_dropped_doubled_and_changed_records_are_seen", plain_and_sealed, NULL,
         NULL, &(kept_test){swapped_dropped_doubled_and_changed_records_are_seen}},
        cmocka_unit_test(garbage_is_DAMAGED),
        cmocka_unit_test(records_open_under_their_key_alone),
        cmocka_unit_test(what_is_no_key_is_INVALID),
        cmocka_unit_test(sessions_of_users_are_sealed_with_the_key_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_door.c: the table of a store by its URL, without a key or a session above it, as a
 * service uses that stores what it cannot read.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/open.h"
#include "support/check.h"
#include "support/postgres.h"
#include "support/sessions.h"

#include <cmocka.h>

/* A log's bytes, through the table alone: free(). */
static char *bytes_of(const store *st, sessile_backend_log *log, size_t *size)
{
    sessile_error err;
    uint64_t bytes;
    int64_t mtime_ms;
    size_t got;
    must(st->table->size(log, &bytes, &mtime_ms, &err), &err);
    char *out = calloc(bytes + 1, 1);
    assert_non_null(out);
    must(st->table->read(log, 0, 0, out, bytes, &got, &err), &err);
    assert_int_equal(got, bytes);
    *size = got;
    return out;
}

static sessile_backend_log *log_of(const store *st, const char *folder, const char *name)
{
    sessile_backend_log *log;
    sessile_error err;
    must(st->table->open(st->self, folder, name, &log, &err), &err);
    return log;
}

static void is(const store *st, const char *expected)
{
    size_t size;
    sessile_backend_log *log = log_of(st, "folder", "log");
    char *bytes = bytes_of(st, log, &size);
    assert_string_equal(bytes, expected);
    free(bytes);
    st->table->close(log);
}

static sessile_status append(const store *st, sessile_backend_log *log,
                             sessile_log_end *end, const char *record, char tag,
                             sessile_error *err)
{
    const int locks = (st->table->capabilities & SESSILE_BACKEND_LOCKS) != 0;
    unsigned char new_tag[16] = {(unsigned char)tag};
    int replaced = 0, poisoned;
    if (locks)
        must(st->table->lock(log, SESSILE_LOCK_EXCLUSIVE, 1000, &replaced, err), err);
    assert_int_equal(replaced, 0);
    sessile_status status =
        st->table->append(log, end, record, strlen(record), 1, new_tag, &poisoned, err);
    if (locks)
        st->table->unlock(log);
    return status;
}

typedef struct seen {
    char names[400];
} seen;

static int see(void *arg, const char *folder, const char *name)
{
    seen *s = arg;
    size_t at = strlen(s->names);
    snprintf(s->names + at, sizeof s->names - at, "%s/%s ", folder, name);
    return 0;
}

/* Two clients of a service, each with a store handle of its own. */
static void serves(const char *url)
{
    store a, b;
    sessile_error err;
    sessile_log_end end = {1, 6, {0}}, old = end;
    seen all = {""};

    must(store_backend_open(&a, url, NULL, &err), &err);
    must(store_backend_open(&b, url, NULL, &err), &err);
    must(a.table->create(a.self, "folder", "log", "first\n", 6, &err), &err);
    assert_refused(b.table->create(b.self, "folder", "log", "other\n", 6, &err),
                   SESSILE_EXISTS, &err, "log");
    is(&b, "first\n");

    sessile_backend_log *mine = log_of(&a, "folder", "log");
    sessile_backend_log *theirs = log_of(&b, "folder", "log");
    must(append(&a, mine, &end, "second\n", 'a', &err), &err);
    assert_int_equal(end.count, 2);
    assert_int_equal(end.bytes, 13);
    assert_refused(append(&b, theirs, &old, "lost\n", 'b', &err), SESSILE_CONFLICT, &err,
                   "");
    must(append(&b, theirs, &end, "third\n", 'b', &err), &err);
    must(b.table->sync(theirs, &err), &err);
    a.table->close(mine);
    b.table->close(theirs);
    is(&a, "first\nsecond\nthird\n");
    must(b.table->list(b.self, NULL, see, &all, &err), &err);
    assert_string_equal(all.names, "folder/log ");
    store_close(&b);
    store_close(&a);
    assert_null(a.table);
}

static void a_folder(void **state)
{
    char *folder = folder_make();
    char url[600];
    (void)state;
    snprintf(url, sizeof url, "file:%s/store", folder);
    serves(url);
    folder_remove(folder);
}

static void a_sqlite_database(void **state)
{
    char *folder = folder_make();
    char url[600];
    (void)state;
    snprintf(url, sizeof url, "sqlite:%s/store.db", folder);
    serves(url);
    folder_remove(folder);
}

static void a_postgres_database(void **state)
{
    const char *why;
    const postgres_server *server = postgres_shared(&why);
    (void)state;
    if (!server) {
        print_message("# %s\n", why);
        skip();
    }
    char *url = postgres_place(server->url);
    serves(url);
    postgres_drop(url);
}

/* Sessions that somebody else sealed: found, read as bytes and added to nowhere. */
static void what_is_sealed_stays_sealed(void **state)
{
    static const char secret[] = "the walnuts are under the stairs";
    char message[100], *folder = folder_make(), *bytes, *at;
    sessile_store_options o;
    sessile_store *sealed;
    sessile_session *s;
    sessile_error err;
    seen all = {""};
    size_t size;
    store st;

    (void)state;
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_SECRET;
    o.key = "a passphrase of some length";
    must(sessile_open(&sealed, folder, &o, &err), &err);
    s = session_made(sealed, "s");
    snprintf(message, sizeof message, "{\"role\":\"user\",\"content\":\"%s\"}", secret);
    say_json(s, message);
    session_closed(s);
    sessile_store_close(sealed);

    must(store_backend_open(&st, folder, NULL, &err), &err);
    must(st.table->list(st.self, NULL, see, &all, &err), &err);
    at = strchr(all.names, '/');
    assert_non_null(at);
    *at = '\0';
    *strchr(at + 1, ' ') = '\0';
    sessile_backend_log *log = log_of(&st, all.names, at + 1);
    bytes = bytes_of(&st, log, &size);
    assert_true(size > sizeof secret);
    assert_null(strstr(bytes, "walnut"));
    assert_null(strstr(bytes, "role"));
    free(bytes);
    st.table->close(log);
    store_close(&st);
    folder_remove(folder);
}

static void *refuse(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)osize;
    if (nsize == 0) {
        free(ptr);
        return NULL;
    }
    ++*(int *)ud;
    return NULL;
}

static void options_are_heard(void **state)
{
    char *folder = folder_make();
    sessile_store_options o;
    sessile_error err;
    int asked = 0;
    store st;

    (void)state;
    sessile_store_options_init(&o);
    o.config.has_timeout = 1;
    o.config.timeout_ms = -2;
    assert_refused(store_backend_open(&st, folder, &o, &err), SESSILE_INVALID, &err,
                   "timeout_ms is -2");
    assert_null(st.table);
    o.config.timeout_ms = 0;
    o.alloc = refuse;
    o.alloc_ud = &asked;
    assert_refused(store_backend_open(&st, folder, &o, &err), SESSILE_NOMEM, &err, "");
    assert_int_equal(asked, 1);
    assert_refused(store_backend_open(&st, "", NULL, &err), SESSILE_INVALID, &err, "url");
    assert_refused(store_backend_open(&st, "gopher:x", NULL, &err), SESSILE_UNSUPPORTED,
                   &err, "gopher");
    folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder),
        cmocka_unit_test(a_sqlite_database),
        cmocka_unit_test(a_postgres_database),
        cmocka_unit_test(what_is_sealed_stays_sealed),
        cmocka_unit_test(options_are_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_audit_store.c: the audit in its store: lists do not show it, checks read it, keys
 * rotate under it, a copy begins lanes of its own, and a forgotten user's name is gone.
 */
#include "support/audits.h"
#include "support/check.h"
#include "support/keyed.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/entry.h"

static char root[SEAL_HEX];

typedef struct files {
    char *folder, path[600];
    sessile_store *store;
} files;

static void say_as(audit_log *a, const char *operation, const char *user,
                   char id[AUDIT_ID])
{
    audit_event e = event_of(operation, user);
    sessile_error err;

    must(audit_write(a, AUDIT_WRITE, &e, id, &err), &err);
}

static int set_up(void **state)
{
    files *f = calloc(1, sizeof *f);
    sessile_error err;
    audit_log *a;

    f->folder = folder_make();
    snprintf(f->path, sizeof f->path, "%s/store", f->folder);
    f->store = keyed_open(f->path, KEYED_OLD);
    keyed_fill(f->store);
    a = audit_opened(f->store->core);
    must(audit_root(a, root, &err), &err);
    say_as(a, "turn", KEYED_USER, NULL);
    must(audit_seal(a, &err), &err);
    say_as(a, "turn", KEYED_USER, NULL);
    audit_closed(a);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    files *f = *state;

    sessile_store_close(f->store);
    folder_remove(f->folder);
    free(f);
    return 0;
}

static void lists_do_not_show_it(void **state)
{
    files *f = *state;
    sessile_listed *rows;
    sessile_error err;
    size_t count;

    for (int i = 0; i < 2; i++) { /* without the list cache, and with it */
        must(sessile_list(f->store, NULL, &rows, &count, &err), &err);
        assert_int_equal(count, keyed_count);
        sessile_free(rows);
    }
}

/* Checks the whole store: the findings that are more than notes. */
static size_t checked(sessile_store *st, size_t *logs)
{
    sessile_check *c;
    sessile_checked found;
    sessile_error err;
    size_t bad = 0;

    *logs = 0;
    must(sessile_check_open(&c, st, NULL, 0, &err), &err);
    do {
        must(sessile_check_next(c, &found, &err), &err);
        *logs += found.file && strstr(found.file, AUDIT_FOLDER);
        for (size_t i = 0; i < found.count; i++) {
            if (found.findings[i].severity != SESSILE_NOTE)
                print_message("%s: %s\n", found.findings[i].file, found.findings[i].what);
            bad += found.findings[i].severity != SESSILE_NOTE;
        }
    } while (found.file);
    sessile_check_close(c);
    return bad;
}

static void a_check_reads_it(void **state)
{
    files *f = *state;
    size_t logs;

    assert_int_equal(checked(f->store, &logs), 0);
    assert_int_equal(logs, 1);
}

static void it_goes_on_when_keys_rotate(void **state)
{
    files *f = *state;
    sessile_reseal_state done;
    sessile_error err;
    audit_log *a = audit_opened(f->store->core);
    sessile_audit_report v;

    say_as(a, "turn", NULL, NULL); /* it has the lane open */
    must(sessile_keys_rotate(f->store, NULL, NULL, &err), &err);
    must(keyed_reseal(f->store, NULL, &done, &err), &err);
    assert_int_equal(done.failed, 0);
    assert_int_equal(done.dropped, 1);
    assert_holds(f->store->core, root);
    say_as(a, "turn", NULL, NULL);
    must(audit_seal(a, &err), &err);
    audit_closed(a);
    sessile_store_close(f->store); /* and for a process that knows the new key only */
    f->store = keyed_open(f->path, KEYED_OLD);
    a = audit_opened(f->store->core);
    say_as(a, "turn", NULL, NULL);
    must(audit_seal(a, &err), &err);
    audit_closed(a);
    v = verdict_of(f->store->core, root);
    assert_true(v.holds);
    assert_int_equal(v.seals, 3);
    assert_int_equal(v.lanes, 1);
}

static void a_copy_verifies_and_begins_lanes_of_its_own(void **state)
{
    files *f = *state;
    sessile_audit_verify_options copy = {.is_copy = 1};
    char to[700], again[SEAL_HEX], id[AUDIT_ID];
    sessile_place from = {0}, there = {0};
    sessile_migrate_state step;
    sessile_migration *m;
    sessile_store *other;
    sessile_error err;
    sessile_audit_report v;
    audit_log *a;
    sessile_status status;

    snprintf(to, sizeof to, "%s/copy", f->folder);
    other = keyed_open(to, KEYED_NEW); /* its own keys: names and lines are other ones */
    from.store = f->store;
    there.store = other;
    must(sessile_migrate_begin(&m, &from, &there, NULL, &err), &err);
    do
        status = sessile_migrate_step(m, &step, &err);
    while (status == SESSILE_NEEDS);
    must(status, &err);
    assert_int_equal(step.failed + step.damaged + step.conflicts, 0);
    sessile_migrate_free(m);
    must(audit_verify(other->core, root, &copy, &v, &err), &err);
    assert_true(v.holds);
    assert_found_out(other->core, root, "seed is gone"); /* unless it is said to be one */
    a = audit_opened(other->core);
    say_as(a, "turn", NULL, id);
    assert_string_equal(id, "01-000/00000001");
    must(audit_root(a, again, &err), &err);
    assert_string_not_equal(again, root);
    must(audit_seal(a, &err), &err);
    audit_closed(a);
    must(audit_verify(other->core, root, &copy, &v, &err), &err);
    assert_true(v.holds && v.other_lanes == 1 && v.lanes == 1);
    assert_holds(other->core, again);
    sessile_store_close(other);
}

/* Opens the name in the first `who` entry. */
static sessile_status open_name(files *f, buf *out, sessile_error *err)
{
    sessile_status status = SESSILE_NOTFOUND;
    stolen s;

    steal(f->store->core, "00-000", &s);
    for (size_t i = 0; i < s.count && status == SESSILE_NOTFOUND; i++) {
        entry e;
        const char *user, *secret, *name;
        char pseudonym[PSEUDONYM_SIZE], blob[NAME_SIZE];
        size_t user_size, secret_size, name_size;
        assert_null(strstr(s.texts[i], "canary"));
        must(entry_read(&e, s.texts[i], strlen(s.texts[i]), err), err);
        if (e.type != ENTRY_WHO)
            continue;
        assert_true(json_plain(json_get(e.data, "user"), &user, &user_size) &&
                    json_plain(json_get(e.data, "secret"), &secret, &secret_size) &&
                    json_plain(json_get(e.data, "name"), &name, &name_size));
        snprintf(pseudonym, sizeof pseudonym, "%.*s", (int)user_size, user);
        snprintf(blob, sizeof blob, "%.*s", (int)secret_size, secret);
        status = pseudonym_open(f->store->core->keys, pseudonym, blob,
                                (sessile_slice){name, name_size}, out, err);
    }
    stolen_free(&s);
    return status;
}

static void a_forgotten_users_name_is_gone_and_the_hashes_hold(void **state)
{
    files *f = *state;
    sessile_error err;
    uint64_t sessions;
    buf name;

    buf_init(&name, &allocator_default);
    must(open_name(f, &name, &err), &err);
    assert_int_equal(name.size, strlen(KEYED_USER));
    assert_memory_equal(name.data, KEYED_USER, name.size);
    must(sessile_forget(f->store, sessile_text(KEYED_USER), &sessions, &err), &err);
    buf_clear(&name);
    assert_int_equal(open_name(f, &name, &err), SESSILE_SEALED);
    assert_int_equal(name.size, 0);
    assert_holds(f->store->core, root);
    assert_int_equal(keyed_files_with(f->path, "user-canary"), 0);
    buf_deinit(&name);
}

/* No text of a host begins another member, or another line. */
static void what_a_host_says_stays_a_string(void **state)
{
    files *f = *state;
    audit_log *a = audit_opened(f->store->core);
    audit_event e = event_of("turn", NULL);
    char id[AUDIT_ID];
    sessile_error err;
    stolen s;
    entry read;

    e.from.request = sessile_text("x\",\"outcome\":\"success\n{\"id\":\"00000001\"}\xff");
    e.outcome.is = AUDIT_FAILURE;
    must(audit_write(a, AUDIT_WRITE, &e, id, &err), &err);
    audit_closed(a);
    steal(f->store->core, "00-000", &s);
    must(entry_read(&read, s.texts[s.count - 1], strlen(s.texts[s.count - 1]), &err),
         &err);
    assert_true(json_is(json_get(read.data, "outcome"), "failure"));
    assert_true(json_is(json_get(read.data, "request"),
                        "x\",\"outcome\":\"success\n{\"id\":\"00000001\"}\xef\xbf\xbd"));
    stolen_free(&s);
}

static void a_proof_holds_by_itself(void **state)
{
    files *f = *state;
    audit_log *a = audit_opened(f->store->core);
    char ids[7][AUDIT_ID], key[SEAL_HEX];
    sessile_error err;
    buf proof, event;

    buf_init(&proof, &allocator_default);
    buf_init(&event, &allocator_default);
    for (int i = 0; i < 7; i++)
        say_as(a, i % 2 ? "turn" : "create", NULL, ids[i]);
    assert_refused(audit_prove(f->store->core, ids[0], &proof, &err), SESSILE_SUSPENDED,
                   &err, "seal the audit first");
    must(audit_seal(a, &err), &err);
    audit_closed(a);
    for (int i = 0; i < 7; i++) {
        buf_clear(&proof);
        buf_clear(&event);
        must(audit_prove(f->store->core, ids[i], &proof, &err), &err);
        must(audit_check_proof(proof.data, proof.size, key, &event, &allocator_default,
                               &err),
             &err);
        assert_non_null(strstr(event.data, i % 2 ? "\"turn\"" : "\"create\""));
        assert_memory_equal(strstr(event.data, ids[i] + 7), ids[i] + 7, 8);
        assert_string_equal(key, root);
    }
    for (size_t at = 0; at < proof.size;
         at++) { /* the last one, with each byte changed */
        proof.data[at] ^= 1;
        buf_clear(&event);
        char was[SEAL_HEX];
        memcpy(was, key, sizeof was);
        sessile_status status = audit_check_proof(proof.data, proof.size, key, &event,
                                                  &allocator_default, &err);
        if (!status)
            fail_msg("byte %zu: %.40s", at, proof.data + at);
        memcpy(key, was, sizeof key);
        proof.data[at] ^= 1;
    }
    assert_refused(audit_prove(f->store->core, "00-000/00000fff", &proof, &err),
                   SESSILE_NOTFOUND, &err, "no event");
    buf_deinit(&proof);
    buf_deinit(&event);
}

int main(void)
{
#define IN_FILES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_FILES(lists_do_not_show_it),
        IN_FILES(a_check_reads_it),
        IN_FILES(it_goes_on_when_keys_rotate),
        IN_FILES(a_copy_verifies_and_begins_lanes_of_its_own),
        IN_FILES(a_forgotten_users_name_is_gone_and_the_hashes_hold),
        IN_FILES(what_a_host_says_stays_a_string),
        IN_FILES(a_proof_holds_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

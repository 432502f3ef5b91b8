/*
 * test_prove.c: a proof of an event leads to the root key, from any lane and any log, and
 * whatever is left out of it or put into it, it never leads there for something else.
 */
#include "support/audits.h"
#include "base/text.h"
#include "codec/json.h"
#include "support/check.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char root[SEAL_HEX];
static buf proof, event;

static int set_up(void **state)
{
    buf_init(&proof, &allocator_default);
    buf_init(&event, &allocator_default);
    return place_set_up_sealed(state);
}

static int tear_down(void **state)
{
    buf_deinit(&proof);
    buf_deinit(&event);
    return place_tear_down(state);
}

static store_core *core_of(void **state)
{
    place *p = *state;
    return p->store->core;
}

static void write_one(audit_log *a, const char *operation, char id[AUDIT_ID])
{
    audit_event e = event_of(operation, NULL);
    sessile_error err;

    must(audit_write(a, AUDIT_WRITE, &e, id, &err), &err);
}

static sessile_status check(char key[SEAL_HEX], sessile_error *err)
{
    buf_clear(&event);
    return audit_check_proof(proof.data, proof.size, key, &event, &allocator_default,
                             err);
}

static void prove(store_core *st, const char *id)
{
    sessile_error err;

    buf_clear(&proof);
    must(audit_prove(st, id, &proof, &err), &err);
}

/* The proof of that event leads to that key. */
static void assert_leads_to(store_core *st, const char *id, const char *key)
{
    char found[SEAL_HEX];
    sessile_error err;

    prove(st, id);
    must(check(found, &err), &err);
    assert_string_equal(found, key);
}

static void assert_proves_nothing(const char *why)
{
    char key[SEAL_HEX];
    sessile_error err;

    assert_refused(check(key, &err), SESSILE_DAMAGED, &err, why);
}

/* Puts `to` in the place of the first `from` in the proof. */
static void change(const char *from, const char *to)
{
    char *at, *text;

    buf_putc(&proof, 0);
    at = strstr(proof.data, from);
    assert_non_null(at);
    text = strdup(at + strlen(from));
    proof.size = (size_t)(at - proof.data);
    buf_puts(&proof, to);
    buf_puts(&proof, text);
    free(text);
}

/* Drops what begins with `from`, up to the first `to` behind it, which stays. */
static void cut(const char *from, const char *to)
{
    char *at, *end, *text;

    buf_putc(&proof, 0);
    at = strstr(proof.data, from);
    assert_non_null(at);
    end = strstr(at + strlen(from), to);
    assert_non_null(end);
    text = strdup(end);
    proof.size = (size_t)(at - proof.data);
    buf_puts(&proof, text);
    free(text);
}

/* ------------------------------------------------------------------ one lane */

enum { PARTS = 5 };

/* Several logs of one lane, several seals in each. ids: of the last event of each. */
static void fill_parts(store_core *st, char ids[PARTS][AUDIT_ID])
{
    audit_options options = {.part_bytes = 2500};
    sessile_error err;
    audit_log *a;

    must(audit_open(&a, st, &options, &err), &err);
    must(audit_root(a, root, &err), &err);
    for (int i = 0; i < PARTS; i++)
        for (int k = 0; k < 6; k++) {
            write_one(a, k % 2 ? "turn" : "create", ids[i]);
            must(audit_seal(a, &err), &err);
        }
    audit_closed(a);
}

static void every_log_of_a_lane_leads_to_the_root_key(void **state)
{
    store_core *st = core_of(state);
    char ids[PARTS][AUDIT_ID];

    fill_parts(st, ids);
    assert_memory_not_equal(ids[PARTS - 1], "00-000", 6);
    for (int i = 0; i < PARTS; i++)
        assert_leads_to(st, ids[i], root);
}

static void a_chain_with_a_gap_proves_nothing(void **state)
{
    store_core *st = core_of(state);
    char ids[PARTS][AUDIT_ID];

    fill_parts(st, ids);
    prove(st, ids[2]);
    cut("\\\"epoch\\\":3,", "\\\"epoch\\\":4,"); /* a seal in the middle */
    assert_proves_nothing("chain");
    prove(st, ids[2]);
    change("\"chain\":[", "\"other\":[");
    assert_proves_nothing("signed");
    /* the chain of another event, which ends elsewhere */
    prove(st, ids[2]);
    change("\\\"epoch\\\":3,", "\\\"epoch\\\":2,");
    assert_proves_nothing("chain");
}

/* An attacker's key in the place of the one that the first seal names, and with it an
 * event that never was: all that fails is the signature of the first seal. */
static void what_the_root_key_did_not_sign_proves_nothing(void **state)
{
    static const unsigned char seed[SIGN_SEED] = {1};
    static const char lie[] =
        "{\"id\":\"00000003\",\"parent_id\":\"00000000\",\"timestamp\":"
        "\"2026-01-02T03:04:05.678Z\",\"type\":\"event\",\"source\":\"host\","
        "\"data\":{\"operation\":\"erase\"}}";
    store_core *st = core_of(state);
    char ids[PARTS][AUDIT_ID], hex[SEAL_HEX];
    unsigned char key[SIGN_PUBLIC];
    sessile_error err;
    size_t at = 0;
    seal_chain c;
    stolen s;
    buf own;

    fill_parts(st, ids);
    steal(st, "00-000", &s);
    while (!strstr(s.texts[at], "\"type\":\"seal\""))
        at++;
    sign_public(seed, key);
    hex_encode(hex, key, sizeof key);
    for (int changed = 0; changed < 2; changed++) {
        if (changed)
            memcpy(strstr(s.texts[at], "\"next\":\"") + 8, hex, 64);
        seal_chain_init(&c, 0, &allocator_default);
        c.epoch = 1;
        c.first = 3;
        hash256(c.before, s.texts[at], strlen(s.texts[at]), NULL, 0);
        must(seal_chain_add(&c, lie, sizeof lie - 1, &err), &err);
        buf_init(&own, &allocator_default);
        seal_put(&own, &c, 4, 1000, seed, key);
        buf_clear(&proof);
        buf_puts(&proof, "{\"event\":");
        json_put_cstring(&proof, lie);
        buf_puts(&proof, ",\"seal\":");
        json_put_string(&proof, own.data, own.size);
        buf_printf(&proof, ",\"hashes\":[],\"key\":\"%s\",\"chain\":[", root);
        json_put_cstring(&proof, s.texts[at]);
        buf_puts(&proof, "]}");
        assert_proves_nothing(changed ? "chain" : "signed");
        buf_deinit(&own);
        seal_chain_deinit(&c);
    }
    stolen_free(&s);
}

/* What the retention removed does not come back: the proof says less, and says so. */
static void without_its_beginning_a_chain_leads_to_another_key(void **state)
{
    store_core *st = core_of(state);
    char ids[PARTS][AUDIT_ID], key[SEAL_HEX];
    sessile_error err;

    fill_parts(st, ids);
    log_gone(st, "00-000");
    prove(st, ids[PARTS - 1]);
    must(check(key, &err), &err);
    assert_string_not_equal(key, root);
}

/* ------------------------------------------------------------------ other lanes */

/* Has lane 0's lock for a while. */
static void *hold(void *arg)
{
    lane *l = arg;

    os_posix.sleep_ms(NULL, 300);
    lane_end(l);
    return NULL;
}

/* An event in lane 1, which is made since lane 0 is in use; both are sealed. */
static void write_beside(store_core *st, char id[AUDIT_ID])
{
    audit_log *a = audit_opened(st);
    sessile_error err;
    pthread_t thread;
    lane *l;

    must(audit_root(a, root, &err), &err);
    write_one(a, "create", id);
    must(audit_seal(a, &err), &err);
    must(lane_open(&l, st, 0, LANE_BYTES, &err), &err);
    must(lane_begin(l, 0, &err), &err);
    assert_int_equal(pthread_create(&thread, NULL, hold, l), 0);
    write_one(a, "turn", id);
    pthread_join(thread, NULL);
    lane_close(l);
    must(audit_seal(a, &err), &err);
    write_one(a, "delete", id);
    must(audit_seal(a, &err), &err);
    audit_closed(a);
    assert_memory_equal(id, "01-000", 6);
}

static void another_lane_leads_to_the_root_key(void **state)
{
    place_files_only(); /* it is about a lock */
    store_core *st = core_of(state);
    char id[AUDIT_ID], key[SEAL_HEX];
    sessile_error err;

    write_beside(st, id);
    assert_leads_to(st, id, root);
    assert_non_null(strstr(event.data, "\"delete\""));
    /* without the proof of its lane it rests on the first key of that lane */
    prove(st, id);
    change("\"lane\":{", "\"left\":{");
    must(check(key, &err), &err);
    assert_string_not_equal(key, root);
}

/* Whoever has a lane of their own has its keys, but no entry of the root that names it.
 */
static void the_proof_of_another_lane_vouches_for_none(void **state)
{
    place_files_only();
    store_core *st = core_of(state);
    char id[AUDIT_ID];
    buf other;

    write_beside(st, id);
    /* an event of the root lane where the entry that names the lane should be */
    prove(st, "00-000/00000001");
    buf_init(&other, &allocator_default);
    buf_puts(&other, "\"lane\":");
    buf_put(&other, proof.data, proof.size);
    buf_puts(&other, ",\"left\":");
    buf_putc(&other, 0);
    prove(st, id);
    change("\"lane\":{", "\"lane\" :{"); /* white space changes nothing */
    {
        char key[SEAL_HEX];
        sessile_error err;
        must(check(key, &err), &err);
        assert_string_equal(key, root);
    }
    change("\"lane\" :", other.data);
    assert_proves_nothing("first key of its lane");
    buf_deinit(&other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_log_of_a_lane_leads_to_the_root_key),
        TEST(a_chain_with_a_gap_proves_nothing),
        TEST(what_the_root_key_did_not_sign_proves_nothing),
        TEST(without_its_beginning_a_chain_leads_to_another_key),
        TEST(another_lane_leads_to_the_root_key),
        TEST(the_proof_of_another_lane_vouches_for_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

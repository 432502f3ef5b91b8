/*
 * test_audit.c: events are written, sealed and verified; whoever has every key of the
 * moment, the store's and the seed, cannot change what was sealed unseen.
 *
 * Own guard: the events are counted, and all are the test's own.
 */
#include "support/audits.h"
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

#include "base/text.h"
#include "codec/entry.h"

enum { EVENTS = 4, SEALS = 3 };
static char root[SEAL_HEX];

static store_core *core_of(void **state)
{
    place *p = *state;
    return p->store->core;
}

/* SEALS epochs of EVENTS events each, and two events that are not sealed. */
static store_core *filled(void **state)
{
    store_core *st = core_of(state);
    audit_log *a = audit_opened(st);
    sessile_error err;

    must(audit_root(a, root, &err), &err);
    for (int i = 0; i < SEALS; i++) {
        for (int k = 0; k < EVENTS; k++)
            audit_say(a, k % 2 ? "turn" : "create");
        must(audit_seal(a, &err), &err);
    }
    audit_say(a, "late");
    audit_say(a, "later");
    audit_closed(a);
    return st;
}

static void replace_in(char **text, const char *from, const char *to)
{
    char *at = strstr(*text, from), *out;

    assert_non_null(at);
    out = calloc(1, strlen(*text) + strlen(to) + 1);
    memcpy(out, *text, (size_t)(at - *text));
    strcat(out, to);
    strcat(out, at + strlen(from));
    free(*text);
    *text = out;
}

static void drop(stolen *s, size_t at)
{
    free(s->texts[at]);
    memmove(s->texts + at, s->texts + at + 1, (s->count - at - 1) * sizeof *s->texts);
    s->count--;
}

static void cut(stolen *s, size_t count)
{
    while (s->count > count)
        free(s->texts[--s->count]);
}

static void put(stolen *s, size_t at, const char *text)
{
    memmove(s->texts + at + 1, s->texts + at, (s->count - at) * sizeof *s->texts);
    s->texts[at] = strdup(text);
    s->count++;
}

/* Where things are: 0 the header, 1 to 4 events, 5 a seal, 6 to 9, 10 a seal, … */
enum {
    FIRST_SEAL = EVENTS + 1,
    SECOND_SEAL = 2 * FIRST_SEAL,
    LAST_SEAL = 3 * FIRST_SEAL
};

/* ------------------------------------------------------------------ as it should be */

static void what_is_sealed_verifies(void **state)
{
    store_core *st = filled(state);
    sessile_audit_report v = verdict_of(st, root);

    assert_true(v.holds);
    assert_int_equal(v.lanes, 1);
    assert_int_equal(v.seals, SEALS);
    assert_int_equal(v.events, SEALS * EVENTS);
    assert_int_equal(v.unsealed, 2);
    assert_true(v.sealed_ms > 0 && v.unsealed_ms > 0);
}

static void an_audit_goes_on_after_it_was_closed(void **state)
{
    store_core *st = filled(state);
    audit_log *a = audit_opened(st);
    char again[SEAL_HEX];
    sessile_error err;

    must(audit_root(a, again, &err), &err);
    assert_string_equal(again, root);
    audit_say(a, "turn");
    must(audit_seal(a, &err), &err);
    audit_closed(a);
    assert_int_equal(verdict_of(st, root).events, SEALS * EVENTS + 3);
    assert_holds(st, root);
}

static void reads_are_counted_and_written_with_the_next_event(void **state)
{
    store_core *st = core_of(state);
    audit_log *a = audit_opened(st);
    audit_event e = event_of("read", NULL);
    char id[AUDIT_ID];
    sessile_error err;
    stolen s;

    for (int i = 0; i < 5; i++)
        must(audit_write(a, AUDIT_READ, &e, id, &err), &err);
    assert_string_equal(id, "");
    e = event_of("append", NULL);
    must(audit_write(a, AUDIT_WRITE, &e, id, &err), &err);
    assert_string_equal(id, "00-000/00000002");
    audit_closed(a);
    steal(st, "00-000", &s);
    assert_int_equal(s.count, 3);
    assert_non_null(strstr(s.texts[1], "\"operation\":\"read\""));
    assert_non_null(strstr(s.texts[1], "\"count\":5"));
    assert_null(strstr(s.texts[2], "count"));
    stolen_free(&s);
}

static void equal_failures_become_one_event(void **state)
{
    store_core *st = core_of(state);
    audit_log *a = audit_opened(st);
    audit_event e = event_of("resume", NULL);
    sessile_error err;
    stolen s;

    e.outcome.is = AUDIT_FAILURE;
    e.outcome.status = SESSILE_DENIED;
    for (int i = 0; i < 100; i++)
        must(audit_write(a, AUDIT_WRITE, &e, NULL, &err), &err);
    audit_closed(a);
    steal(st, "00-000", &s);
    assert_int_equal(s.count, 1 + 60 + 1);
    assert_non_null(strstr(s.texts[61], "\"count\":40"));
    assert_non_null(strstr(s.texts[61], "\"code\":\"DENIED\""));
    stolen_free(&s);
}

/* Has lane 0's lock for a while. */
static void *hold(void *arg)
{
    lane *l = arg;
    os_posix.sleep_ms(NULL, 300);
    lane_end(l);
    return NULL;
}

static void a_lane_that_is_taken_is_not_waited_for(void **state)
{
    place_files_only(); /* it is about a lock */
    store_core *st = filled(state);
    sessile_error err;
    audit_log *a = audit_opened(st);
    pthread_t thread;
    audit_event e = event_of("turn", NULL);
    char id[AUDIT_ID];
    stolen first, second;
    sessile_audit_report v;
    lane *l;

    must(lane_open(&l, st, 0, LANE_BYTES, &err), &err);
    must(lane_begin(l, 0, &err), &err);
    assert_int_equal(pthread_create(&thread, NULL, hold, l), 0);
    /* another lane is made; only to be named does it wait for the first */
    must(audit_write(a, AUDIT_WRITE, &e, id, &err), &err);
    pthread_join(thread, NULL);
    assert_string_equal(id, "01-000/00000001");
    must(audit_seal(a, &err), &err);
    /* from now on there is no waiting at all */
    must(lane_begin(l, 0, &err), &err);
    must(audit_write(a, AUDIT_WRITE, &e, id, &err), &err);
    assert_string_equal(id, "01-000/00000003");
    lane_end(l);
    lane_close(l);
    must(audit_seal(a, &err), &err);
    audit_closed(a);
    v = verdict_of(st, root);
    assert_true(v.holds);
    assert_int_equal(v.lanes, 2);
    assert_int_equal(v.unsealed, 0);
    /* the seal of one lane in the other, and no lane at all */
    steal(st, "00-000", &first);
    steal(st, "01-000", &second);
    put(&first, first.count, second.texts[second.count - 1]);
    forge(st, &first, 1);
    assert_found_out(st, root, "another lane");
    drop(&first, first.count - 1);
    forge(st, &first, 0);
    assert_holds(st, root);
    stolen_free(&first);
    stolen_free(&second);
    log_gone(st, "01-000");
    assert_found_out(st, root, "its log was removed");
}

static void another_lanes_seal_is_found_out(void **state)
{
    store_core *st = core_of(state);
    sessile_error err;
    lane_head head;
    stolen a, b;
    audit_log *log;
    lane *l;

    filled(state);
    steal(st, "00-000", &a);
    must(lane_head_read(&head, a.texts[0], strlen(a.texts[0]), &st->alloc, &err), &err);
    must(lane_make(st, 1, &head, &err), &err);
    must(lane_open(&l, st, 1, LANE_BYTES, &err), &err);
    lane_close(l);
    log = audit_opened(st); /* nobody named it: it is named before it is used */
    audit_say(log, "turn");
    audit_closed(log);
    stolen_free(&a);
    steal(st, "00-000", &a);
    steal(st, "01-000", &b);
    put(&b, b.count, a.texts[FIRST_SEAL]);
    forge(st, &b, 1);
    assert_found_out(st, root, "root never named it");
    stolen_free(&a);
    stolen_free(&b);
}

static void a_full_log_is_followed_by_another(void **state)
{
    store_core *st = core_of(state);
    audit_options options = {.part_bytes = 2000};
    sessile_error err;
    audit_log *a;

    for (int i = 0; i < 6; i++) {
        must(audit_open(&a, st, &options, &err), &err);
        must(audit_root(a, root, &err), &err);
        for (int k = 0; k < 5; k++)
            audit_say(a, "turn");
        must(audit_seal(a, &err), &err);
        audit_closed(a);
    }
    sessile_audit_report v = verdict_of(st, root);
    assert_true(v.holds);
    assert_int_equal(v.events, 30);
    stolen s;
    steal(st, "00-002", &s);
    stolen_free(&s);
    log_gone(st, "00-001");
    assert_found_out(st, root, "seed"); /* what follows a gap is not read */
}

/* ------------------------------------------------------------------ attacks */

static void each_attack_is_found_out(void **state)
{
    store_core *st = filled(state);
    stolen s;
    char *swap;
    static const char changed[] = "changed, added, removed or moved";

#define ATTACK(what, part)                \
    do {                                  \
        steal(st, "00-000", &s);          \
        stolen was;                       \
        steal(st, "00-000", &was);        \
        what;                             \
        forge(st, &s, 1);                 \
        assert_found_out(st, root, part); \
        forge(st, &was, 0);               \
        assert_holds(st, root);           \
        stolen_free(&s);                  \
        stolen_free(&was);                \
    } while (0)

    ATTACK(replace_in(&s.texts[2], "turn", "list"), changed);
    ATTACK(replace_in(&s.texts[7], "success", "failure"), changed);
    ATTACK(drop(&s, 3), "does not seal the entries");
    ATTACK((swap = s.texts[1], s.texts[1] = s.texts[2], s.texts[2] = swap), changed);
    ATTACK(put(&s, 3, s.texts[2]), "does not seal the entries");
    ATTACK((drop(&s, 7), put(&s, 8, s.texts[6])), changed);
    ATTACK(cut(&s, s.count - 4), "seals were cut off");
    ATTACK(cut(&s, FIRST_SEAL + 1), "seals were cut off");
    ATTACK(cut(&s, SECOND_SEAL + 2), "seals were cut off");
    ATTACK(drop(&s, LAST_SEAL), "seals were cut off");
    ATTACK(drop(&s, SECOND_SEAL), "");
    ATTACK(drop(&s, FIRST_SEAL), "");
    ATTACK(put(&s, SECOND_SEAL + 1, s.texts[SECOND_SEAL]), "");
    ATTACK(put(&s, s.count, s.texts[FIRST_SEAL]), "");
#undef ATTACK
}

/* The seed of the moment signs nothing that came before it. */
static void an_old_epoch_cannot_be_signed_again(void **state)
{
    store_core *st = filled(state);
    unsigned char *seed = seed_new(), next[SIGN_PUBLIC];
    seal_chain chain;
    sessile_error err;
    char *blob;
    size_t size;
    stolen s;
    lane *l;
    buf text;

    steal(st, "00-000", &s);
    must(lane_open(&l, st, 0, LANE_BYTES, &err), &err);
    must(lane_seed_get(l, seed, &blob, &size, &err), &err);
    host_free(blob);
    /* the first epoch again, with one event less */
    drop(&s, 2);
    seal_chain_init(&chain, 0, &st->alloc);
    for (size_t i = 0; i < EVENTS; i++)
        must(seal_chain_add(&chain, s.texts[i], strlen(s.texts[i]), &err), &err);
    sign_public(seed, next);
    buf_init(&text, &st->alloc);
    seal_put(&text, &chain, EVENTS, 1000, seed, next);
    free(s.texts[EVENTS]);
    s.texts[EVENTS] = strdup(text.data);
    cut(&s, EVENTS + 1);
    lane_close(l);
    forge(st, &s, 1);
    assert_found_out(st, root, "");
    buf_deinit(&text);
    seal_chain_deinit(&chain);
    seed_free(seed);
    stolen_free(&s);
}

/* Every bit of every entry up to the last seal. */
static void each_bit_is_found_out(void **state)
{
    store_core *st = filled(state);
    size_t tried = 0;
    stolen s;

    steal(st, "00-000", &s);
    for (size_t i = 0; i <= LAST_SEAL; i++) {
        seal_chain chain;
        for (size_t at = 0; s.texts[i][at]; at++) {
            for (int bit = 0; bit < 8; bit++, tried++) {
                sessile_error err;
                sessile_status status = SESSILE_OK;
                lane_head h;
                s.texts[i][at] ^= (char)(1 << bit);
                seal_chain_init(&chain, 0, &allocator_default);
                if (lane_head_read(&h, s.texts[0], strlen(s.texts[0]), &allocator_default,
                                   &err))
                    status = SESSILE_DAMAGED;
                memcpy(chain.key, h.key, sizeof h.key);
                char hex[SEAL_HEX];
                hex_encode(hex, h.key, sizeof h.key);
                if (strcmp(hex, root))
                    status = SESSILE_DAMAGED;
                for (size_t k = 0; !status && k <= LAST_SEAL; k++) {
                    size_t size = strlen(s.texts[k]);
                    status = seal_is_type(s.texts[k], size, "seal")
                                 ? seal_chain_follow(&chain, s.texts[k], size, 1, &err)
                                 : seal_chain_add(&chain, s.texts[k], size, &err);
                }
                s.texts[i][at] ^= (char)(1 << bit);
                if (!status && chain.epoch == SEALS)
                    fail_msg("bit %d of byte %zu of entry %zu", bit, at, i);
                seal_chain_deinit(&chain);
            }
        }
    }
    stolen_free(&s);
    print_message("# figure: bits of an audit = %zu\n", tried);
}

static void an_anchor_finds_a_cut_in_a_copy(void **state)
{
    store_core *st = filled(state);
    sessile_audit_verify_options copy = {.is_copy = 1};
    sessile_audit_anchor heads[4];
    sessile_audit_report v;
    sessile_error err;
    size_t count;
    stolen s, was;

    must(audit_heads(st, root, 0, heads, 4, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_int_equal(heads[0].epoch, SEALS - 1);
    steal(st, "00-000", &s);
    was = s;
    s.count = SECOND_SEAL + 1;
    forge(st, &s, 1);
    must(audit_verify(st, root, &copy, &v, &err), &err);
    assert_true(v.holds); /* a tail that is cut at a seal is seen by nobody */
    copy.anchors = heads;
    copy.anchor_count = count;
    must(audit_verify(st, root, &copy, &v, &err), &err);
    assert_false(v.holds);
    assert_non_null(strstr(v.why, "anchors"));
    forge(st, &was, 0);
    must(audit_verify(st, root, &copy, &v, &err), &err);
    assert_true(v.holds);
    stolen_free(&was);
}

static void another_key_verifies_nothing(void **state)
{
    store_core *st = filled(state);
    char other[SEAL_HEX];
    sessile_audit_report v;
    sessile_error err;

    memcpy(other, root, sizeof other);
    other[5] = other[5] == '0' ? '1' : '0';
    assert_found_out(st, other, "none begins with this key");
    assert_refused(audit_verify(st, "abc", NULL, &v, &err), SESSILE_INVALID, &err,
                   "64 hex digits");
}

int main(void)
{
#define EACH(test)                                                               \
    cmocka_unit_test_setup_teardown(test, place_set_up_sealed, place_tear_down), \
        cmocka_unit_test_setup_teardown(test, place_set_up_plain, place_tear_down)
    const struct CMUnitTest tests[] = {
        EACH(what_is_sealed_verifies),
        EACH(an_audit_goes_on_after_it_was_closed),
        EACH(reads_are_counted_and_written_with_the_next_event),
        EACH(equal_failures_become_one_event),
        EACH(another_lanes_seal_is_found_out),
        cmocka_unit_test_setup_teardown(a_lane_that_is_taken_is_not_waited_for,
                                        place_set_up_sealed, place_tear_down),
        EACH(a_full_log_is_followed_by_another),
        EACH(each_attack_is_found_out),
        EACH(an_old_epoch_cannot_be_signed_again),
        EACH(an_anchor_finds_a_cut_in_a_copy),
        EACH(another_key_verifies_nothing),
        cmocka_unit_test_setup_teardown(each_bit_is_found_out, place_set_up_plain,
                                        place_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

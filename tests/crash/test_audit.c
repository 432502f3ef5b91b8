/*
 * test_audit.c: the power goes, or the process is killed, while an audit is written and
 * sealed.
 *
 * Before each call that changes something, what a power cut could leave is made into a
 * disk of its own: nothing of the unsynced changes, all of them, and samples of subsets
 * with torn writes; and what a killed process leaves. On each of them
 *   - the audit verifies with the key that was told, once it was told;
 *   - what was acknowledged as sealed, or as synced, is there;
 *   - after a kill, every acknowledged event is there;
 *   - one more event and one more seal are written, and it verifies again.
 *
 *   CRASH_SEED=n   another sample
 */
#include "audit/retain.h"
#include "support/audits.h"
#include "support/check.h"
#include "support/ground.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PENDING_MOST = 64, SMALL = 2500 /* bytes of a log */ };

static struct {
    uint64_t random, states;
    int sealed; /* the store is */
    int samples;
    char root[SEAL_HEX];       /* "": not told yet */
    uint64_t written, durable; /* events that were acknowledged; that are synced */
    int retains; /* old logs are removed: of the events only the newest stay */
} all;

static uint64_t chance(void)
{
    uint64_t x = all.random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void expect(sessile_status status, const sessile_error *err, uint64_t number,
                   const char *what)
{
    if (status)
        fail_msg("before change %" PRIu64 ", %s: %s %s", number, what,
                 sessile_status_name(status), err->message);
}

static void verify(store_core *st, const char *root, uint64_t least, uint64_t number)
{
    sessile_audit_report v;
    sessile_error err;

    expect(audit_verify(st, root, NULL, &v, &err), &err, number, "verify");
    if (!v.holds)
        fail_msg("before change %" PRIu64 ": %s %s", number, v.where, v.why);
    if (!all.retains && v.events + v.unsealed < least)
        fail_msg("before change %" PRIu64 ": %" PRIu64 " events of %" PRIu64, number,
                 v.events + v.unsealed, least);
}

/* Every log that may go. */
static uint64_t retain_all(store_core *st, uint64_t number)
{
    audit_options small = {.part_bytes = SMALL};
    audit_retention o = {.before_ms = INT64_MAX};
    audit_retained out;
    audit_log *a;
    sessile_error err;

    expect(audit_open(&a, st, &small, &err), &err, number, "audit");
    expect(audit_retain(a, st, &o, &out, &err), &err, number, "retain");
    expect(audit_close(a, &err), &err, number, "close");
    return out.removed;
}

/* fs: what was left. */
static void look_at(simfs *fs, uint64_t least, uint64_t number)
{
    sessile_store *store;
    sessile_error err;
    char root[SEAL_HEX];
    audit_event e = event_of("after", NULL);
    audit_options small = {.part_bytes = SMALL}; /* all who write must agree */
    audit_log *a;

    all.states++;
    expect(ground_store_on(&store, simfs_table(fs), all.sealed, 0, &err), &err, number,
           "open");
    if (all.root[0])
        verify(store->core, all.root, least, number);
    expect(audit_open(&a, store->core, all.retains ? &small : NULL, &err), &err, number,
           "audit");
    expect(audit_root(a, root, &err), &err, number, "root");
    if (all.root[0])
        assert_string_equal(root, all.root);
    expect(audit_write(a, AUDIT_WRITE, &e, NULL, &err), &err, number, "write");
    expect(audit_seal(a, &err), &err, number, "seal");
    expect(audit_close(a, &err), &err, number, "close");
    verify(store->core, root, least + 1, number);
    if (all.retains) { /* it is interrupted, and called again */
        retain_all(store->core, number);
        verify(store->core, root, 0, number);
    }
    sessile_store_close(store);
    simfs_free(fs);
}

static void watch(void *arg, simfs *fs, uint64_t number)
{
    unsigned char fates[PENDING_MOST];
    size_t pending = simfs_pending(fs);

    (void)arg;
    assert_true(pending <= PENDING_MOST);
    look_at(simfs_kill(fs), all.written, number);
    for (int i = 0; i < 2 + all.samples; i++) {
        for (size_t k = 0; k < pending; k++)
            fates[k] = i == 0   ? SIMFS_LOST
                       : i == 1 ? SIMFS_WHOLE
                                : (unsigned char)(chance() % SIMFS_FATES);
        look_at(simfs_crash(fs, fates, chance()), all.durable, number);
    }
}

static void say(audit_log *a, audit_class class)
{
    audit_event e = event_of("turn", "ann");
    sessile_error err;

    must(audit_write(a, class, &e, NULL, &err), &err);
    all.written += class != AUDIT_READ;
    if (class == AUDIT_SYNCED)
        all.durable = all.written;
}

static void seal_it(audit_log *a)
{
    sessile_error err;

    must(audit_seal(a, &err), &err);
    all.durable = all.written;
}

/* From nothing: two seals, a synced event, a lane more, logs that are full. */
static void play(int sealed)
{
    simfs *fs = simfs_new();
    audit_options small = {.part_bytes = SMALL};
    sessile_store *store;
    sessile_error err;
    audit_log *a, *b;
    lane_head head;
    stolen s;

    all.sealed = sealed;
    all.root[0] = 0;
    all.written = all.durable = 0;
    must(ground_store_on(&store, simfs_table(fs), sealed, 0, &err), &err);
    simfs_settle(fs);
    simfs_watch(fs, watch, NULL);
    must(audit_open(&a, store->core, &small, &err), &err);
    say(a, AUDIT_WRITE);
    must(audit_root(a, all.root, &err), &err);
    say(a, AUDIT_READ);
    say(a, AUDIT_WRITE);
    all.written++; /* the count of the read */
    seal_it(a);
    say(a, AUDIT_SYNCED);
    say(a, AUDIT_WRITE);
    seal_it(a);
    say(a, AUDIT_WRITE);
    seal_it(a);
    say(a, AUDIT_WRITE); /* in another log */
    seal_it(a);
    /* a second lane, as a process makes it that finds the first one taken */
    simfs_watch(fs, NULL, NULL);
    steal(store->core, "00-000", &s);
    must(lane_head_read(&head, s.texts[0], strlen(s.texts[0]), &allocator_default, &err),
         &err);
    stolen_free(&s);
    simfs_watch(fs, watch, NULL);
    must(lane_make(store->core, 1, &head, &err), &err);
    must(audit_open(&b, store->core, &small, &err), &err);
    say(b, AUDIT_WRITE);
    seal_it(b);
    must(audit_close(b, &err), &err);
    must(audit_close(a, &err), &err);
    simfs_watch(fs, NULL, NULL);
    sessile_store_close(store);
    simfs_free(fs);
}

/* What the retention leaves is whole at every moment, and what it has removed was said to
 * be: with the root key alone. */
static void a_retention_survives_a_cut_at_every_moment(void **state)
{
    simfs *fs = simfs_new();
    audit_options small = {.part_bytes = SMALL};
    sessile_store *store;
    sessile_error err;
    audit_log *a;

    (void)state;
    all.sealed = 1;
    all.root[0] = 0;
    all.retains = 1;
    all.states = 0;
    must(ground_store_on(&store, simfs_table(fs), 1, 0, &err), &err);
    must(audit_open(&a, store->core, &small, &err), &err);
    must(audit_root(a, all.root, &err), &err);
    for (int i = 0; i < 9; i++) { /* several logs */
        say(a, AUDIT_WRITE);
        seal_it(a);
    }
    must(audit_close(a, &err), &err);
    simfs_settle(fs);
    simfs_watch(fs, watch, NULL);
    assert_true(retain_all(store->core, 0) >= 2);
    simfs_watch(fs, NULL, NULL);
    verify(store->core, all.root, 0, 0);
    sessile_store_close(store);
    simfs_free(fs);
    all.retains = 0;
    print_message("# figure: states after a cut of a retention of an audit = %" PRIu64
                  "\n",
                  all.states);
}

static void an_audit_survives_a_cut_at_every_moment(void **state)
{
    (void)state;
    for (int sealed = 0; sealed < 2; sealed++)
        play(sealed);
    print_message("# figure: states after a cut of an audit = %" PRIu64 "\n", all.states);
}

int main(void)
{
    const char *seed = getenv("CRASH_SEED"), *soak = getenv("SESSILE_SOAK");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_audit_survives_a_cut_at_every_moment),
        cmocka_unit_test(a_retention_survives_a_cut_at_every_moment),
    };

    all.random = seed ? strtoull(seed, NULL, 10) : 1;
    all.samples = soak ? 60 : 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

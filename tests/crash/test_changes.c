/*
 * test_changes.c: the power goes, or the process is killed, between the changes of a
 * session and their events.
 *
 * Before each call that changes something, on every disk that could be left:
 *   - after a kill, each acknowledged entry has its event;
 *   - an entry without one is named by a deep verification, and no other is, once the
 * guard is set again and the session is written on.
 *
 *   CRASH_SEED=n   another sample
 */
#include "support/audits.h"
#include "support/check.h"
#include "support/events.h"
#include "support/ground.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/verification.h"
#include "audit/retain.h"
#include "base/text.h"
#include "guard/guard.h"

enum { PENDING_MOST = 64, ENTRIES_MOST = 64 };

static struct {
    uint64_t random, states, named;
    int samples;
    sessile_id acknowledged; /* entries below it are */
} all;

static uint64_t chance(void)
{
    uint64_t x = all.random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static sessile_store *guarded(simfs *fs, sessile_store **view)
{
    const char *editor = "editor";
    sessile_store *store;
    sessile_guard_options go;
    sessile_credential c;
    sessile_error err;

    must(ground_store_on(&store, simfs_table(fs), 1, 0, &err), &err);
    sessile_guard_options_init(&go);
    go.audit.on = 1;
    must(sessile_store_guard(store, &go, &err), &err);
    sessile_credential_init(&c);
    c.user = sessile_text("ann");
    c.roles = &editor;
    c.role_count = 1;
    must(sessile_store_as(view, store, &c, &err), &err);
    return store;
}

static sessile_status say_hello(sessile_session *s, sessile_id *id)
{
    sessile_error err;

    return sessile_append(s, sessile_text("{\"role\":\"user\",\"content\":\"hello\"}"),
                          id, &err);
}

/* Which entries of the session events name, found without the code that compares. */
static void read_named(store_core *st, unsigned char *named)
{
    events e;

    memset(named, 0, ENTRIES_MOST);
    events_read(&e, NULL, st);
    for (size_t i = 0; i < e.count; i++) {
        const char *at = strstr(e.texts[i], "\"wrote\":[\"");
        unsigned first, last;
        if (!at)
            continue;
        int got = sscanf(at + 10, "%8x-%8x", &first, &last);
        assert_true(got >= 1);
        for (unsigned k = first; k <= (got == 2 ? last : first); k++) {
            assert_true(k < ENTRIES_MOST);
            named[k] = 1;
        }
    }
    events_free(&e);
}

static void assert_compared(store_core *st, sessile_id count, const unsigned char *named,
                            uint64_t number)
{
    sessile_audit_verify_options o = {.deep = 1};
    sessile_audit_report r = {.holds = 0};
    audit_verification_core *v;
    char root[SEAL_HEX];
    uint64_t without = 0, shown = 0;
    sessile_status status;
    sessile_error err;

    must(audit_root_find(st, root, &err), &err);
    must(verification_begin(&v, st, root, &o, st, &err), &err);
    do
        status = verification_step(v, &r, &err);
    while (status == SESSILE_NEEDS);
    must(status, &err);
    verification_free(v);
    assert_true(r.holds);
    assert_int_equal(r.unread, 0);
    assert_int_equal(r.changes + r.outside, count);
    for (sessile_id i = (sessile_id)r.outside; i < count; i++) {
        if (named[i])
            continue;
        if (shown < r.lost_count && (r.lost[shown].is_event || r.lost[shown].entry != i))
            fail_msg("before change %" PRIu64 ": entry %u is not named", number,
                     (unsigned)i);
        shown++;
        without++;
    }
    assert_int_equal(r.without_event, without);
    assert_int_equal(r.without_change, 0);
    all.named += without;
}

static void look_at(simfs *fs, int killed, uint64_t number)
{
    unsigned char told[ENTRIES_MOST];
    sessile_session_options o = named("s");
    sessile_store *view, *store = guarded(fs, &view);
    sessile_session *s;
    sessile_error err;
    sessile_id id;

    all.states++;
    read_named(store->core, told);
    for (sessile_id i = 0; killed && i < all.acknowledged; i++)
        if (!told[i])
            fail_msg("before change %" PRIu64
                     ": entry %u was acknowledged and has no event",
                     number, (unsigned)i);
    must(sessile_session_open(&s, view, &o, &err), &err);
    must(say_hello(s, &id), &err);
    must(sessile_session_close(s, &err), &err);
    must(audit_flush(store->who->guard->audit, &err), &err);
    read_named(store->core, told);
    assert_compared(store->core, id + 1, told, number);
    sessile_store_close(view);
    sessile_store_close(store);
    simfs_free(fs);
}

static void watch(void *arg, simfs *fs, uint64_t number)
{
    unsigned char fates[PENDING_MOST];
    size_t pending = simfs_pending(fs);

    (void)arg;
    assert_true(pending <= PENDING_MOST);
    look_at(simfs_kill(fs), 1, number);
    for (int i = 0; i < 2 + all.samples; i++) {
        for (size_t k = 0; k < pending; k++)
            fates[k] = i == 0   ? SIMFS_LOST
                       : i == 1 ? SIMFS_WHOLE
                                : (unsigned char)(chance() % SIMFS_FATES);
        look_at(simfs_crash(fs, fates, chance()), 0, number);
    }
}

static void every_change_has_its_event_or_is_named(void **state)
{
    simfs *fs = simfs_new();
    sessile_session_options o = named("s");
    sessile_store *view, *store = guarded(fs, &view);
    sessile_session *s;
    sessile_error err;
    sessile_id id;

    (void)state;
    simfs_settle(fs);
    simfs_watch(fs, watch, NULL);
    must(sessile_session_open(&s, view, &o, &err), &err);
    all.acknowledged = 1;
    for (int i = 0; i < 4; i++) {
        must(say_hello(s, &id), &err);
        all.acknowledged = id + 1;
        if (i == 1)
            must(audit_seal(store->who->guard->audit, &err), &err);
    }
    must(sessile_set_title(s, sessile_text("a title"), &err), &err);
    all.acknowledged++;
    must(sessile_label(s, id, sessile_text("here"), &err), &err);
    all.acknowledged++;
    must(sessile_session_close(s, &err), &err);
    simfs_watch(fs, NULL, NULL);
    sessile_store_close(view);
    sessile_store_close(store);
    simfs_free(fs);
    assert_true(all.named > 0);
    print_message("# figure: states after a cut of a session and its audit = %" PRIu64
                  "\n",
                  all.states);
    print_message("# figure: changes without an event, each of them named = %" PRIu64
                  "\n",
                  all.named);
}

int main(void)
{
    const char *seed = getenv("CRASH_SEED"), *soak = getenv("SESSILE_SOAK");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_has_its_event_or_is_named),
    };

    all.random = seed ? strtoull(seed, NULL, 10) : 1;
    all.samples = soak ? 60 : 3;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

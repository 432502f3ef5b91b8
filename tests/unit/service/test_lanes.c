/*
 * test_lanes.c: the jobs of one call run one after the other, whatever the bytes are that
 * it begins with.
 *
 * A Run is begun on one of two workers, and each of its needs is answered while the
 * worker is still sending it: what the answer makes has to wait for that worker, though
 * the other one is free.
 */
#include "direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/runs.h"
#include "support/runs.h"

enum { WORKERS = 2, QUESTIONS = 3 };

/* Asks for a summary three times. */
static const char asker[] =
    "return { name = 'asker', version = 1,\n"
    "  summarize = function(state, ctx)\n"
    "    for i = 1, 3 do\n"
    "      ctx.model { messages = {{ role = 'user', content = 'more' }} }\n"
    "    end\n"
    "    state:insert(1, { content = 'all' }, { covers = { 1, #state.messages - 2 } })\n"
    "  end }\n";

static int make_policies(void **state)
{
    char path[200];
    if (make_folder(state))
        return -1;
    snprintf(path, sizeof path, "%s/asker.lua", runs_folder);
    FILE *f = fopen(path, "w");
    if (!f)
        return -1;
    fputs(asker, f);
    return fclose(f);
}

static int open_all(void **state)
{
    service *s = &direct.service;
    if (direct_open(state))
        return -1;
    s->settings.services = SERVICE_SESSIONS;
    return pool_open(&s->pool, WORKERS, 100, &allocator_default, NULL) ||
           pool_start(s->pool, NULL) || runs_open(&s->runs, s, NULL);
}

static int close_all(void **state)
{
    pool_close(direct.service.pool);
    runs_close(direct.service.runs);
    return direct_close(state);
}

/* ---------------------------------------------------------------------- answers */

static struct {
    atomic_int inside; /* workers that are sending */
    atomic_int questions;
} seen;

/* Runs on a worker, as the loop would meanwhile. */
static void answer_at_once(rpc_call *rpc)
{
    static const char answer[] = "\x32\x05\x0a\x03yes"; /* reply, with a text */
    if (atomic_fetch_add(&seen.inside, 1) > 0) {
        fprintf(stderr, "two workers run jobs of one call\n");
        abort();
    }
    if (atomic_fetch_add(&seen.questions, 1) < QUESTIONS) {
        call_service.message(&direct.service, rpc, answer, sizeof answer - 1);
        usleep(200000); /* long enough for the other worker to begin */
    }
    atomic_fetch_sub(&seen.inside, 1);
}

/* What a Run begins with: a compaction by the policy that asks. */
static size_t put_beginning(unsigned char *out, Sessile__V1__Session *session)
{
    Sessile__V1__RunRequest r = SESSILE__V1__RUN_REQUEST__INIT;
    Sessile__V1__CompactRequest compact = SESSILE__V1__COMPACT_REQUEST__INIT;
    Sessile__V1__RunConfig config = SESSILE__V1__RUN_CONFIG__INIT;
    Sessile__V1__Policy policy = SESSILE__V1__POLICY__INIT, *policies[] = {&policy};
    policy.name = "asker";
    config.policies = policies;
    config.n_policies = 1;
    compact.session = session;
    compact.config = &config;
    r.what_case = SESSILE__V1__RUN_REQUEST__WHAT_COMPACT;
    r.compact = &compact;
    return sessile__v1__run_request__pack(&r, out);
}

static void run_beginning_with(const char *first, size_t size)
{
    unsigned char bytes[256];
    memset(&seen, 0, sizeof seen);
    memcpy(bytes, first, size);
    size += put_beginning(bytes + size, session_with("s", 6));
    direct.rpc.asked.path = "/sessile.v1.SessionService/Run";
    direct.rpc.sending = answer_at_once;
    call_service.begun(&direct.service, &direct.rpc);
    call_service.message(&direct.service, &direct.rpc, bytes, size);
    while (pool_jobs(direct.service.pool) > 0)
        usleep(1000);
    assert_int_equal(direct.rpc.got.finished, 1);
    assert_int_equal(direct.rpc.got.code, RPC_OK);
    assert_int_equal(direct.rpc.got.count, QUESTIONS + 1);
    const Sessile__V1__RunEvent *last = call_got("Run", QUESTIONS);
    assert_int_equal(last->what_case, SESSILE__V1__RUN_EVENT__WHAT_OUTCOME);
    assert_string_equal(last->outcome->verdict, "applied");
    call_service.gone(&direct.service, &direct.rpc, RPC_GONE_FINISHED);
}

static void test_the_jobs_of_a_run_follow_each_other(void **state)
{
    (void)state;
    run_beginning_with("", 0);
}

/* park, which what follows replaces */
static void test_so_they_do_behind_an_empty_field(void **state)
{
    (void)state;
    run_beginning_with("\x3a\x00", 2);
}

/* a field 15 that nobody knows */
static void test_so_they_do_behind_a_field_that_is_not_known(void **state)
{
    (void)state;
    run_beginning_with("\x7a\x02\x0a\x00", 4);
}

int main(void)
{
#define OPENED(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)
    const struct CMUnitTest tests[] = {
        OPENED(test_the_jobs_of_a_run_follow_each_other),
        OPENED(test_so_they_do_behind_an_empty_field),
        OPENED(test_so_they_do_behind_a_field_that_is_not_known),
    };
    return cmocka_run_group_tests(tests, make_policies, remove_folder);
}

/*
 * test_shares.c: no user takes what all users share: open runs, watched sessions.
 */
#include "users.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/runs.h"

enum { RUNS = 250, WATCHES = 25000 };

static const char asker[] =
    "return { name = 'asker', version = 1,\n"
    "  summarize = function(state, ctx)\n"
    "    ctx.model { messages = {{ role = 'user', content = 'well?' }} }\n"
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

/* ---------------------------------------------------------------------- runs */

static void begin_run(users *u, stream *st, const char *id)
{
    Sessile__V1__Policy policy = SESSILE__V1__POLICY__INIT;
    Sessile__V1__Policy *policies[1] = {&policy};
    Sessile__V1__RunConfig config = SESSILE__V1__RUN_CONFIG__INIT;
    Sessile__V1__CompactRequest plan = SESSILE__V1__COMPACT_REQUEST__INIT;
    Sessile__V1__RunRequest r = SESSILE__V1__RUN_REQUEST__INIT;
    policy.name = (char *)"asker";
    config.policies = policies;
    config.n_policies = 1;
    plan.session = names_of(id);
    plan.config = &config;
    r.what_case = SESSILE__V1__RUN_REQUEST__WHAT_PLAN;
    r.plan = &plan;
    stream_begin(&u->s, st, "Run", &r);
}

static void a_user_has_a_quarter_of_the_open_runs(void **state)
{
    static stream runs[RUNS];
    stream more;
    users u;
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    (void)state;
    users_open(&u);
    append_by(&u.s, "s", "a message");
    for (int i = 0; i < RUNS; i++) {
        begin_run(&u, &runs[i], "s");
        assert_true(stream_wait(&runs[i], 1)); /* it waits for its answer */
    }
    begin_run(&u, &more, "s");
    stream_wait_end(&more);
    assert_int_equal(more.code, RPC_RESOURCE_EXHAUSTED);
    assert_string_equal(more.status, "ELIMIT");
    assert_non_null(strstr(more.message, "at most 250 open runs for one user"));
    stream_done(&more);

    users_call_as(&u, BOB);
    r.session = names_of("his");
    serve_ok(&u.s, "CreateSession", &r);
    append_by(&u.s, "his", "a message");
    begin_run(&u, &more, "his");
    assert_true(stream_wait(&more, 1));
    stream_done(&more);

    users_call_as(&u, ANN);
    for (int i = 0; i < RUNS; i++)
        stream_done(&runs[i]);
    int came = 0;
    for (int tries = 0; tries < 1000 && !came; tries++) { /* once the server has heard */
        begin_run(&u, &more, "s");
        came = stream_wait(&more, 1);
        stream_done(&more);
    }
    assert_true(came);
    users_close(&u);
}

/* ---------------------------------------------------------------------- watches */

/* Watches sessions, of which the first is there. */
static void begin_watches(users *u, stream *st, size_t count)
{
    Sessile__V1__EventsRequest r = SESSILE__V1__EVENTS_REQUEST__INIT;
    Sessile__V1__Cursor *cursors = calloc(count, sizeof *cursors);
    Sessile__V1__Cursor **rows = calloc(count, sizeof *rows);
    Sessile__V1__Session *names = calloc(count, sizeof *names);
    char(*ids)[16] = calloc(count, sizeof *ids);
    assert_true(cursors && rows && names && ids);
    for (size_t i = 0; i < count; i++) {
        sessile__v1__session__init(&names[i]);
        sessile__v1__cursor__init(&cursors[i]);
        snprintf(ids[i], sizeof ids[i], i ? "s-%zu" : "s", i);
        names[i].id = ids[i];
        cursors[i].session = &names[i];
        rows[i] = &cursors[i];
    }
    r.cursors = rows;
    r.n_cursors = count;
    stream_begin(&u->s, st, "StreamSessionEvents", &r);
    free(ids);
    free(names);
    free(rows);
    free(cursors);
}

static void a_user_has_a_quarter_of_the_watched_sessions(void **state)
{
    stream first, more, his;
    users u;
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    (void)state;
    users_open(&u);
    begin_watches(&u, &first, WATCHES);
    assert_true(stream_wait(&first, 1));
    begin_watches(&u, &more, 1);
    stream_wait_end(&more);
    assert_int_equal(more.code, RPC_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(more.message, "25000 watched sessions for one user"));
    stream_done(&more);
    users_call_as(&u, BOB);
    r.session = names_of("s");
    serve_ok(&u.s, "CreateSession", &r);
    begin_watches(&u, &his, 1);
    assert_true(stream_wait(&his, 1));
    stream_done(&his);
    stream_done(&first);
    users_close(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_has_a_quarter_of_the_open_runs),
        cmocka_unit_test(a_user_has_a_quarter_of_the_watched_sessions),
    };
    return cmocka_run_group_tests(tests, make_policies, remove_folder);
}

/*
 * test_nodes_served.c: three services over one PostgreSQL database: calls run at the
 * owner of their session, wherever they arrive; what becomes of them when the owner is
 * not heard; credentials and trailers of a call that was passed on; streams.
 *
 * Own stores: each is a schema of a PostgreSQL server.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "unit/rpc/certificates.h"
#include "unit/service/trio.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

/* ---------------------------------------------------------------------- at the owner */

static void calls_run_at_the_owner_wherever_they_arrive(void **state)
{
    enum { SESSIONS = 30, CALLS = 6 };
    trio t;
    char ids[SESSIONS][32];
    int owners[SESSIONS], owned[TRIO] = {0}, elsewhere = 0;
    uint64_t relayed = 0, before = 0;
    (void)state;
    trio_open(&t, NULL, NULL, 0);
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(ids[i], sizeof ids[i], "s%d", i);
        owners[i] = trio_settled(&t, ids[i], -1);
        owned[owners[i]]++;
    }
    for (int i = 0; i < TRIO; i++)
        before += trio_figures(&t, i).relayed;
    for (int call = 0; call < CALLS; call++)
        for (int i = 0; i < SESSIONS; i++) {
            reply r = {0};
            int at = (call + i) % TRIO;
            assert_int_equal(trio_append(&t, at, ids[i], "hello", &r), RPC_OK);
            elsewhere += at == owners[i]
                             ? *r.owner != '\0'
                             : strcmp(r.owner, trio_address(&t, owners[i])) != 0;
        }
    assert_in_range(elsewhere, 0, SESSIONS * CALLS / 20); /* > 95 % at the owner */
    for (int i = 0; i < TRIO; i++) {
        assert_true(owned[i] > 0);
        relayed += trio_figures(&t, i).relayed;
    }
    /* two of three arrive at another node, and the owners count them as passed on */
    assert_in_range(relayed - before, SESSIONS * CALLS / 2, SESSIONS * CALLS);
    for (int i = 0; i < TRIO; i++)
        assert_true(trio_figures(&t, i).forwarded > 0);
    trio_close(&t);
}

static void names_count_and_not_the_bytes_of_a_request(void **state)
{
    trio t;
    Sessile__V1__Session names = SESSILE__V1__SESSION__INIT;
    Sessile__V1__Raw raw = SESSILE__V1__RAW__INIT;
    Sessile__V1__SessionRequest request = SESSILE__V1__SESSION_REQUEST__INIT;
    reply r = {0};
    (void)state;
    trio_open(&t, NULL, NULL, 0);
    int owner = trio_settled(&t, "bug-42", -1);
    int other = (owner + 1) % TRIO;
    request.session = &names;
    names.id = "bug-42";
    names.agent = "main"; /* as the stores call it when it is left out */
    trio_call(&t, other, "ResumeSession", &request.base, 0, &r);
    assert_int_equal(r.code, RPC_OK);
    assert_string_equal(r.owner, trio_address(&t, owner));
    reply_free(&r);
    names = (Sessile__V1__Session)SESSILE__V1__SESSION__INIT;
    names.raw = &raw;
    raw.id = (ProtobufCBinaryData){6, (uint8_t *)"bug-42"};
    trio_call(&t, other, "ResumeSession", &request.base, 0, &r);
    assert_int_equal(r.code, RPC_OK);
    assert_string_equal(r.owner, trio_address(&t, owner));
    reply_free(&r);
    trio_close(&t);
}

static void without_affinity_calls_run_where_they_arrive(void **state)
{
    service_settings settings = {.nodes = {.no_affinity = 1}};
    trio t;
    (void)state;
    trio_open(&t, NULL, &settings, 0);
    for (int n = 0; n < 12; n++) {
        char id[32];
        reply r = {0};
        snprintf(id, sizeof id, "s%d", n / 3);
        for (int i = 0; i < TRIO; i++) {
            Sessile__V1__Session names = SESSILE__V1__SESSION__INIT;
            Sessile__V1__CreateRequest request = SESSILE__V1__CREATE_REQUEST__INIT;
            names.id = id;
            request.session = &names;
            request.open = 1;
            trio_call(&t, i, "CreateSession", &request.base, 0, &r);
            assert_int_equal(r.code, RPC_OK);
            assert_string_equal(r.owner, "");
            reply_free(&r);
            assert_int_equal(trio_append(&t, i, id, "hello", &r), RPC_OK);
            assert_string_equal(r.owner, "");
        }
    }
    for (int i = 0; i < TRIO; i++)
        assert_int_equal(trio_figures(&t, i).relayed + trio_figures(&t, i).forwarded, 0);
    trio_close(&t);
}

/* ---------------------------------------------------------------------- answers */

static void errors_of_the_owner_come_back_with_their_trailers(void **state)
{
    trio t;
    Sessile__V1__Session names = SESSILE__V1__SESSION__INIT;
    Sessile__V1__CreateRequest request = SESSILE__V1__CREATE_REQUEST__INIT;
    reply r = {0};
    (void)state;
    trio_open(&t, NULL, NULL, 0);
    int owner = trio_settled(&t, "there", -1);
    names.id = "there";
    request.session = &names;
    trio_call(&t, (owner + 1) % TRIO, "CreateSession", &request.base, 0, &r);
    assert_int_equal(r.code, RPC_ALREADY_EXISTS);
    assert_string_equal(r.status, "EEXISTS");
    assert_string_equal(r.owner, trio_address(&t, owner));
    assert_non_null(strstr(r.message, "there"));
    trio_close(&t);
}

static void credentials_are_the_client_s_at_the_owner_too(void **state)
{
    trio t;
    Sessile__V1__Session names = SESSILE__V1__SESSION__INIT;
    Sessile__V1__SessionRequest request = SESSILE__V1__SESSION_REQUEST__INIT;
    reply r = {0};
    (void)state;
    trio_open(&t, NULL, NULL, 1);
    /* Without a user in its name the session is ann's own. */
    int owner = trio_settled(&t, "mine", -1), other = (owner + 1) % TRIO;
    names.id = "mine";
    request.session = &names;
    trio_call(&t, other, "ResumeSession", &request.base, 0, &r);
    assert_int_equal(r.code, RPC_OK);
    assert_string_equal(r.owner, trio_address(&t, owner));
    Sessile__V1__SessionInfo *info =
        sessile__v1__session_info__unpack(NULL, r.first_size, (uint8_t *)r.first);
    assert_non_null(info);
    assert_string_equal(info->session->user, "ann");
    sessile__v1__session_info__free_unpacked(info, NULL);
    reply_free(&r);
    /* Her name makes no difference; another one's is not hers to see, there as here. */
    names.user = "ann";
    trio_call(&t, other, "ResumeSession", &request.base, 0, &r);
    assert_int_equal(r.code, RPC_OK);
    assert_string_equal(r.owner, trio_address(&t, owner));
    reply_free(&r);
    names.user = "bob";
    for (int i = 0; i < TRIO; i++) {
        trio_call(&t, i, "ResumeSession", &request.base, 0, &r);
        assert_int_equal(r.code, RPC_PERMISSION_DENIED);
    }
    /* Who has no credential, or a wrong one, is refused where he asks. */
    uint64_t relayed = trio_figures(&t, other).relayed;
    names.user = "ann";
    trio_call_as(&t, other, "ResumeSession", &request.base, "", 0, &r);
    assert_int_equal(r.code, RPC_UNAUTHENTICATED);
    for (int i = 0; i < 20; i++) {
        trio_call_as(&t, other, "ResumeSession", &request.base, "sesk_x_y_z", 0, &r);
        assert_true(r.code == RPC_UNAUTHENTICATED || r.code == RPC_RESOURCE_EXHAUSTED);
        assert_string_equal(r.owner, "");
    }
    assert_int_equal(trio_figures(&t, other).relayed, relayed);
    trio_close(&t);
}

static void a_stream_is_passed_back_whole_to_a_slow_reader(void **state)
{
    enum { LINES = 24, LINE = 400000 };
    trio t;
    Sessile__V1__Session names = SESSILE__V1__SESSION__INIT;
    Sessile__V1__MessagesRequest request = SESSILE__V1__MESSAGES_REQUEST__INIT;
    reply direct = {0}, passed = {0}, r = {0};
    char *text = malloc(LINE + 1);
    (void)state;
    trio_open(&t, NULL, NULL, 0);
    int owner = trio_settled(&t, "long", -1);
    for (int i = 0; i < LINES; i++) {
        memset(text, 'a' + i, LINE);
        text[LINE] = '\0';
        assert_int_equal(trio_append(&t, owner, "long", text, &r), RPC_OK);
    }
    free(text);
    names.id = "long";
    request.session = &names;
    trio_call(&t, owner, "GetMessages", &request.base, 0, &direct);
    assert_int_equal(direct.code, RPC_OK);
    assert_true(direct.messages > 3);
    passed.pause_ms = 100;
    trio_call(&t, (owner + 1) % TRIO, "GetMessages", &request.base, 0, &passed);
    assert_int_equal(passed.code, RPC_OK);
    assert_string_equal(passed.owner, trio_address(&t, owner));
    assert_int_equal(passed.messages, direct.messages);
    assert_int_equal(passed.bytes, direct.bytes);
    assert_true(passed.hash == direct.hash);
    reply_free(&direct);
    reply_free(&passed);
    trio_close(&t);
}

static void a_client_that_gives_up_ends_what_was_passed_on(void **state)
{
    trio t;
    Sessile__V1__Session names = SESSILE__V1__SESSION__INIT;
    Sessile__V1__SessionRequest request = SESSILE__V1__SESSION_REQUEST__INIT;
    reply r = {0};
    (void)state;
    trio_open(&t, NULL, NULL, 0);
    int owner = trio_settled(&t, "x", -1), other = (owner + 1) % TRIO;
    names.id = "x";
    request.session = &names;
    for (int i = 0; i < 20; i++) {
        memset(&r, 0, sizeof r);
        rpc_request *one = trio_begin(&t, other, "ResumeSession", &request.base, &r);
        trio_turn(&t, i % 4);
        if (!r.ended)
            rpc_request_cancel(one);
        reply_free(&r);
    }
    assert_int_equal(trio_owner(&t, other, "x"), owner); /* and all goes on */
    trio_close(&t);
}

/* ---------------------------------------------------------------------- TLS */

static void nodes_reach_each_other_with_tls(void **state)
{
    certificates c;
    service_settings settings = {.listen = {NULL}};
    trio t;
    (void)state;
    certificates_make(&c);
    settings.nodes.ca = c.ca;
    settings.listen.cert = c.server;
    settings.listen.key = c.server_key;
    trio_open_trusting(&t, c.ca, &settings);
    int owner = trio_settled(&t, "x", -1);
    assert_int_equal(trio_owner(&t, (owner + 1) % TRIO, "x"), owner);
    assert_true(trio_figures(&t, (owner + 1) % TRIO).relayed > 0);
    trio_close(&t);
    certificates_remove(&c);
}

/* Of another authority: who says that it is a node is not given what clients said. */
static void a_node_with_a_wrong_certificate_is_given_nothing(void **state)
{
    certificates c;
    service_settings settings = {.listen = {NULL}};
    trio t;
    (void)state;
    certificates_make(&c);
    settings.listen.cert = c.server;
    settings.listen.key = c.server_key;
    settings.nodes.ca = c.other_ca;
    trio_open_trusting(&t, c.ca, &settings);
    trio_turn(&t, 1500);
    for (int i = 0; i < 8; i++) {
        char id[8];
        snprintf(id, sizeof id, "s%d", i);
        trio_make(&t, 0, id);
        for (int k = 0; k < TRIO; k++)
            assert_int_equal(trio_owner(&t, k, id), k);
    }
    for (int i = 0; i < TRIO; i++)
        assert_int_equal(trio_figures(&t, i).relayed, 0);
    trio_close(&t);
    certificates_remove(&c);
}

static atomic_int renewed;

static int is_renewed(void *arg)
{
    (void)arg;
    return atomic_load(&renewed);
}

static void copy_file(const char *from, const char *to)
{
    char command[300];
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

static void certificates_that_are_read_again_are_those_of_nodes_too(void **state)
{
    certificates c;
    service_settings settings = {.reload = is_renewed};
    char trusted[100];
    trio t;
    (void)state;
    certificates_make(&c);
    snprintf(trusted, sizeof trusted, "%s/trusted.pem", c.folder);
    copy_file(c.other_ca, trusted);
    settings.listen.cert = c.server;
    settings.listen.key = c.server_key;
    settings.nodes.ca = trusted;
    trio_open_trusting(&t, c.ca, &settings);
    trio_turn(&t, 1000);
    trio_make(&t, 0, "x");
    for (int k = 0; k < TRIO; k++)
        assert_int_equal(trio_owner(&t, k, "x"), k);
    copy_file(c.ca, trusted);
    atomic_store(&renewed, 1);
    trio_settled(&t, "x", -1); /* they hear each other */
    trio_close(&t);
    certificates_remove(&c);
}

/* ---------------------------------------------------------------------- owners lost */

static void an_owner_that_is_not_heard_is_done_without(void **state)
{
    trio t;
    char id[32];
    reply r = {0};
    (void)state;
    trio_open(&t, NULL, NULL, 0);
    trio_session_of(&t, 2, id);
    assert_int_equal(trio_append(&t, 0, id, "one", &r), RPC_OK);
    trio_deafen(&t, 2);
    for (int i = 0; i < 2; i++) {
        while (trio_owner(&t, i, id) == 2) /* what it had begun to read, it answers */
            trio_turn(&t, 20);
        assert_int_equal(trio_append(&t, i, id, "two", &r), RPC_OK);
        assert_string_not_equal(r.owner, trio_address(&t, 2));
    }
    int owner = trio_settled(&t, id, 2); /* the two that hear each other agree */
    assert_true(owner != 2);
    trio_close(&t);
}

/* The call is on its way to the owner, which answers no more. */
static void a_call_whose_owner_is_lost_is_run_here_if_nothing_is_done_twice(void **state)
{
    trio t;
    Sessile__V1__Session names = SESSILE__V1__SESSION__INIT;
    Sessile__V1__SessionRequest resume = SESSILE__V1__SESSION_REQUEST__INIT;
    Sessile__V1__TurnRequest turn = SESSILE__V1__TURN_REQUEST__INIT;
    Sessile__V1__Base follows = SESSILE__V1__BASE__INIT;
    Sessile__V1__Json json = SESSILE__V1__JSON__INIT, *messages = &json;
    Sessile__V1__Json append_json = SESSILE__V1__JSON__INIT;
    Sessile__V1__AppendRequest append = SESSILE__V1__APPEND_REQUEST__INIT;
    reply read = {0}, once = {0}, write = {0};
    char id[32];
    (void)state;
    trio_open(&t, NULL, NULL, 0);
    trio_session_of(&t, 2, id);
    names.id = id;
    resume.session = turn.session = append.session = &names;
    json.text = append_json.text = "{\"role\":\"user\",\"content\":\"hello\"}";
    append.message = &append_json;
    turn.messages = &messages;
    turn.n_messages = 1;
    turn.follows = &follows;
    follows.once = "a name of this turn";
    trio_deafen(&t, 2);
    trio_begin(&t, 0, "ResumeSession", &resume.base, &read);
    trio_begin(&t, 0, "Turn", &turn.base, &once);
    trio_begin(&t, 0, "AppendMessage", &append.base, &write);
    for (int i = 0; i < 1000 && !(read.ended && once.ended && write.ended); i++)
        trio_turn(&t, 20);
    assert_int_equal(read.code, RPC_OK);
    assert_string_equal(read.owner, "");
    assert_int_equal(once.code, RPC_OK);
    assert_string_equal(once.owner, "");
    if (trio_figures(&t, 0).fallback > 0) {
        assert_int_equal(trio_figures(&t, 0).fallback, 2);
        assert_int_equal(write.code, RPC_UNKNOWN);
        assert_non_null(strstr(write.message, "may have been done"));
    } else { /* a machine so slow that it was not heard before: nothing was passed on */
        assert_int_equal(write.code, RPC_OK);
    }
    reply_free(&read);
    reply_free(&once);
    /* said once more, at another node: it was written once */
    memset(&once, 0, sizeof once);
    trio_call(&t, 1, "Turn", &turn.base, 0, &once);
    assert_int_equal(once.code, RPC_OK);
    Sessile__V1__Outcome *outcome =
        sessile__v1__outcome__unpack(NULL, once.first_size, (uint8_t *)once.first);
    assert_non_null(outcome);
    assert_int_equal(outcome->again, 1);
    sessile__v1__outcome__free_unpacked(outcome, NULL);
    reply_free(&once);
    trio_close(&t);
}

static void a_node_that_ends_is_left_alone_at_once(void **state)
{
    trio t;
    char id[32];
    reply r = {0};
    (void)state;
    trio_open(&t, NULL, NULL, 0);
    trio_session_of(&t, 2, id);
    service_stop(t.nodes[2].service);
    for (int i = 0; i < 40; i++) { /* while it drains, and after: no call fails */
        if (trio_append(&t, i % 2, id, "hello", &r) != RPC_OK)
            fail_msg("call %d: %d %s", i, r.code, r.message);
        trio_turn(&t, 50);
    }
    assert_true(trio_settled(&t, id, 2) != 2);
    trio_stop(&t, 2);
    trio_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_run_at_the_owner_wherever_they_arrive),
        cmocka_unit_test(names_count_and_not_the_bytes_of_a_request),
        cmocka_unit_test(without_affinity_calls_run_where_they_arrive),
        cmocka_unit_test(errors_of_the_owner_come_back_with_their_trailers),
        cmocka_unit_test(credentials_are_the_client_s_at_the_owner_too),
        cmocka_unit_test(a_stream_is_passed_back_whole_to_a_slow_reader),
        cmocka_unit_test(a_client_that_gives_up_ends_what_was_passed_on),
        cmocka_unit_test(nodes_reach_each_other_with_tls),
        cmocka_unit_test(a_node_with_a_wrong_certificate_is_given_nothing),
        cmocka_unit_test(certificates_that_are_read_again_are_those_of_nodes_too),
        cmocka_unit_test(an_owner_that_is_not_heard_is_done_without),
        cmocka_unit_test(a_call_whose_owner_is_lost_is_run_here_if_nothing_is_done_twice),
        cmocka_unit_test(a_node_that_ends_is_left_alone_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

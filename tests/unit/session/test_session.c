/*
 * test_session.c: a session handle: written, read back, what it sums up.
 *
 * Every test runs over a volatile, a sealed and a plain store, because two handles of one
 * session must see each other's commits on each.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/sessions.h"
#include "base/text.h"
#include "session/fold.h"
#include "operations/messages.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The ids of a list of rows, as "00000001 00000002". */
static char *listed(sessile_session *s, const sessile_messages_options *options)
{
    sessile_message *rows;
    sessile_error err;
    size_t count;
    char *out;

    if (session_messages(s->core, options, &rows, &count, &err))
        fail_msg("%s", err.message);
    out = calloc(1, count * 9 + 1);
    assert_non_null(out);
    for (size_t i = 0; i < count; i++)
        sprintf(out + strlen(out), "%s%08" PRIx32, i ? " " : "", rows[i].key.entry);
    sessile_free(rows);
    return out;
}

static void assert_listed(sessile_session *s, const sessile_messages_options *options,
                          const char *expected)
{
    char *got = listed(s, options);

    assert_string_equal(got, expected);
    free(got);
}

static void assert_context(sessile_session *s, sessile_id leaf, const char *expected)
{
    char *got = context_keys(s, leaf);

    assert_string_equal(got, expected);
    free(got);
}

static const sessile_messages_options everything = {.from = SESSILE_NO_ID,
                                                    .at = SESSILE_NO_ID};

/* ------------------------------------------------------------------ written and read */

static void messages_come_back_token_for_token(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "text");
    sessile_message *rows;
    sessile_error err;
    size_t count;

    say_json(s, "{ \"role\" : \"user\", \"content\":\"a\\u0041\\ud800\", \"n\":1e2, "
                "\"x\":9007199254740993 }");
    assert_int_equal(session_messages(s->core, NULL, &rows, &count, &err), SESSILE_OK);
    assert_int_equal(count, 1);
    assert_string_equal(rows[0].json.data,
                        "{\"role\":\"user\",\"content\":\"a\\u0041\\ud800"
                        "\",\"n\":1e2,\"x\":9007199254740993}");
    assert_int_equal(rows[0].json.size, strlen(rows[0].json.data));
    assert_int_equal(rows[0].role, SESSILE_USER);
    assert_true(rows[0].tokens > 0);
    assert_true(rows[0].time_ms >= s->core->header.created_ms);
    sessile_free(rows);
    session_closed(s);
}

static void author_and_source_are_written_beside_the_message(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "author");
    sessile_id id =
        say_json(s, "{\"role\":\"tool\",\"content\":\"x\",\"author\":\"gr\\u0065p\"}");
    sessile_error err;
    buf text;
    entry e;

    buf_init(&text, &p->store->core->alloc);
    assert_int_equal(log_read(s->core->log, id, &text, &err), SESSILE_OK);
    assert_int_equal(entry_read(&e, text.data, text.size, &err), SESSILE_OK);
    assert_true(json_is(e.author, "grep"));
    assert_int_equal(e.source, SOURCE_TOOL);
    assert_true(e.tokens > 0);
    assert_true(json_is(e.token_source, "estimate"));
    buf_deinit(&text);
    session_closed(s);
}

static void two_handles_see_each_others_commits(void **state)
{
    place *p = *state;
    sessile_store *again = place_again(p);
    sessile_session *a = session_made(p->store, "shared"),
                    *b = session_resumed(again, "shared");

    say(a, "user", "one");
    assert_listed(b, NULL, "00000001");
    say(b, "assistant", "two");
    assert_context(a, SESSILE_NO_ID, "00000001 00000002");
    say(a, "user", "three");
    refresh(b);
    assert_int_equal(b->core->tree.head, 3);
    session_closed(a);
    session_closed(b);
    place_again_close(p, again);
}

static void reopening_gives_the_same_session(void **state)
{
    place *p = *state;
    static const char *const turn[] = {"{\"role\":\"user\",\"content\":\"q\"}",
                                       "{\"role\":\"assistant\",\"content\":\"a\","
                                       "\"usage\":{\"input\":3,\"output\":4}}"};
    sessile_session *a = session_made(p->store, "again"), *b;
    sessile_store *again;
    size_t size;

    say(a, "system", "be kind");
    say_turn(a, turn, 2, ",\"usage\":{\"input\":10,\"output\":20}");
    put_entry(a, "metadata", 0, "{\"title\":\"named\"}");
    put_entry(
        a, "compaction", SESSILE_NO_ID,
        "{\"context\":[\"00000001\",\"00000006.1\"],\"upto\":\"00000004\",\"inserted\":["
        "{\"n\":"
        "1,\"turn\":1,\"tokens\":[7,\"estimate\"],\"message\":{\"role\":\"user\","
        "\"content\":\"sum\",\"metadata\":{\"kind\":\"summary\"}}}],"
        "\"vars\":{\"p\":{\"x\":1}}}");
    say(a, "user", "more");
    move_head(a, 6);
    say(a, "user", "other");

    again = place_again(p);
    b = session_resumed(again, "again");
    assert_int_equal(b->core->tree.node_count, a->core->tree.node_count);
    size = a->core->tree.node_count * sizeof *a->core->tree.nodes;
    assert_memory_equal(a->core->tree.nodes, b->core->tree.nodes, size);
    assert_int_equal(b->core->tree.link_count, a->core->tree.link_count);
    assert_int_equal(b->core->tree.head, a->core->tree.head);
    assert_int_equal(b->core->tree.base, b->core->tree.head);
    assert_int_equal(b->core->fold.written_ms, a->core->fold.written_ms);
    assert_int_equal(b->core->fold.said_ms, a->core->fold.said_ms);
    assert_int_equal(b->core->header.created_ms, a->core->header.created_ms);
    assert_string_equal(b->core->fold.title, a->core->fold.title);
    assert_memory_equal(&b->core->fold.usage, &a->core->fold.usage,
                        sizeof a->core->fold.usage);
    assert_context(a, SESSILE_NO_ID, "00000001 00000006.1 00000009");
    assert_context(b, SESSILE_NO_ID, "00000001 00000006.1 00000009");
    session_closed(a);
    session_closed(b);
    place_again_close(p, again);
}

static void a_failed_build_writes_nothing(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "refused");
    sessile_error err;
    sessile_id id;
    size_t links;

    say(s, "user", "one");
    links = s->core->tree.link_count;
    /* a message, then what is no entry of the tree: found before anything is written */
    assert_refused(
        try_entry(s, "message", 9, "{\"role\":\"user\",\"content\":\"x\"}", &id, &err),
        SESSILE_DAMAGED, &err, "00000002");
    assert_refused(
        try_entry(s, "message", SESSILE_NO_ID, "{\"content\":\"x\"}", &id, &err),
        SESSILE_DAMAGED, &err, "00000002");
    assert_refused(try_entry(s, "head", 0, "{\"head\":\"00000009\"}", &id, &err),
                   SESSILE_DAMAGED, &err, "00000002");
    assert_refused(
        try_entry(s, "turn", 1, "{\"first\":\"00000001\",\"count\":2}", &id, &err),
        SESSILE_DAMAGED, &err, "00000002");
    assert_int_equal(s->core->tree.head, 1);
    assert_int_equal(s->core->tree.node_count, 2);
    assert_int_equal(s->core->tree.link_count, links);
    assert_int_equal(log_count(s->core->log), 2);
    assert_int_equal(say(s, "user", "two"), 2);
    assert_context(s, SESSILE_NO_ID, "00000001 00000002");
    session_closed(s);
}

static sessile_status half_a_turn(void *arg, session_core *s, batch *b,
                                  sessile_error *err)
{
    static const char text[] =
        "{\"role\":\"user\",\"content\":\"x\",\"usage\":{\"input\":5},"
        "\"tool_calls\":[{\"id\":\"c\",\"name\":\"n\",\"arguments\":\"\"}]}";
    static const char title[] = "{\"title\":\"lost\"}", bad[] = "{\"head\":\"ffffffff\"}";
    entry_fields fields = {.parent = 0,
                           .type = ENTRY_METADATA,
                           .data = title,
                           .data_size = sizeof title - 1,
                           .tokens = -1};
    message m;

    (void)arg;
    if (message_read(&m, text, sizeof text - 1, NULL, NULL, NULL, b->alloc, err))
        return err->code;
    batch_message(b, s->tree.head, text, sizeof text - 1, &m,
                  (token_count){5, TOKENS_ESTIMATE});
    batch_add(b, &fields);
    fields.type = ENTRY_HEAD;
    fields.data = bad;
    fields.data_size = sizeof bad - 1;
    batch_add(b, &fields);
    return SESSILE_OK;
}

static void a_refused_batch_leaves_the_fold_as_it_was(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "rewound");
    sessile_error err;
    sessile_id count = 77;

    put_entry(s, "metadata", 0, "{\"title\":\"kept\"}");
    say(s, "system", "one");
    assert_context(s, SESSILE_NO_ID, "00000002");
    session_wait wait = session_wait_begin(s->core, 0, 0);
    assert_int_equal(session_write(s->core, half_a_turn, NULL,
                                   &(session_writing){.wait = &wait, .count = &count},
                                   &err),
                     SESSILE_DAMAGED);
    assert_int_equal(count, 0);
    assert_string_equal(s->core->fold.title, "kept");
    assert_int_equal(s->core->fold.usage.input, 0);
    assert_int_equal(s->core->tree.link_count, 0);
    assert_int_equal(s->core->tree.head, 2);
    assert_int_equal(s->core->tree.base, 2);
    assert_int_equal(s->core->tree.node_count, 3);
    /* no look at the context in between: that would rebuild it */
    assert_int_equal(say(s, "user", "two"), 3);
    assert_context(s, SESSILE_NO_ID, "00000002 00000003");
    session_closed(s);
}

static void a_log_that_is_full_refuses_and_stays(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "full");
    sessile_error err;
    sessile_id id;

    p->store->core->limits.session = log_bytes(s->core->log) + 700;
    say(s, "user", "fits");
    assert_refused(
        try_say(s,
                "{\"role\":\"user\",\"content\":\"0123456789012345678901234567890"
                "1234567890123456789012345678901234567890123456789012345678901"
                "1234567890123456789012345678901234567890123456789012345678901"
                "1234567890123456789012345678901234567890123456789012345678901"
                "1234567890123456789012345678901234567890123456789012345678901"
                "1234567890123456789012345678901234567890123456789012345678901"
                "1234567890123456789012345678901234567890123456789012345678901"
                "1234567890123456789012345678901234567890123456789012345678901"
                "1234567890123456789012345678901234567890123456789012345678901"
                "0\"}",
                &id, &err),
        SESSILE_LIMIT, &err, "[session]");
    assert_int_equal(s->core->tree.head, 1);
    p->store->core->limits.session = UINT64_C(1) << 30;
    p->store->core->limits.message = 20;
    assert_refused(try_say(s, "{\"role\":\"user\",\"content\":\"too long\"}", &id, &err),
                   SESSILE_LIMIT, &err, "[message]");
    assert_int_equal(s->core->tree.head, 1);
    assert_listed(s, NULL, "00000001");
    session_closed(s);
}

static void a_base_that_was_left_is_conflict(void **state)
{
    place *p = *state;
    sessile_store *again = place_again(p);
    sessile_session *a = session_made(p->store, "base"), *b;
    sessile_error err;
    sessile_id id;

    say(a, "user", "one");
    b = session_resumed(again, "base");
    move_head(a, 0);
    say(a, "user", "elsewhere");
    assert_refused(try_say(b, "{\"role\":\"user\",\"content\":\"x\"}", &id, &err),
                   SESSILE_CONFLICT, &err, "moved on from 00000001 to 00000003");
    assert_listed(b, NULL, "00000003"); /* looked again */
    assert_int_equal(try_say(b, "{\"role\":\"user\",\"content\":\"x\"}", &id, &err),
                     SESSILE_OK);
    session_closed(a);
    session_closed(b);
    place_again_close(p, again);
}

static void a_strict_base_passes_over_compactions_only(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "strict");
    sessile_error err;

    say(s, "user", "one");
    put_entry(s, "compaction", SESSILE_NO_ID, "{\"context\":[],\"upto\":\"00000001\"}");
    put_entry(s, "compaction", SESSILE_NO_ID, "{\"vars\":{}}");
    put_entry(s, "custom", SESSILE_NO_ID, "{}");
    assert_int_equal(session_check_base_locked(s->core, 1, 1, &err), SESSILE_OK);
    assert_int_equal(session_check_base_locked(s->core, 2, 1, &err), SESSILE_OK);
    assert_int_equal(session_check_base_locked(s->core, 3, 1, &err), SESSILE_OK);
    assert_int_equal(session_check_base_locked(s->core, 0, 1, &err), SESSILE_CONFLICT);
    assert_int_equal(session_check_base_locked(s->core, 0, 0, &err), SESSILE_OK);
    assert_int_equal(session_check_base_locked(s->core, 4, 0, &err), SESSILE_CONFLICT);
    assert_int_equal(session_check_base_locked(s->core, SESSILE_NO_ID, 0, &err),
                     SESSILE_CONFLICT);
    say(s, "user", "two");
    assert_int_equal(session_check_base_locked(s->core, 3, 1, &err), SESSILE_CONFLICT);
    assert_int_equal(session_check_base_locked(s->core, 3, 0, &err), SESSILE_OK);
    session_closed(s);
}

static void facts_of_others_do_not_move_the_base(void **state)
{
    place *p = *state;
    sessile_store *again = place_again(p);
    sessile_session *a = session_made(p->store, "facts"), *b;

    say(a, "user", "one");
    b = session_resumed(again, "facts");
    say(a, "user", "two");
    put_entry(b, "label", 1, "{\"names\":[\"x\"]}");
    assert_int_equal(b->core->tree.head, 2);
    assert_int_equal(b->core->tree.base, 1);
    session_closed(a);
    session_closed(b);
    place_again_close(p, again);
}

static void unknown_types_are_carried_as_facts(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "later");

    say(s, "user", "one");
    put_entry(s, "hologram", SESSILE_NO_ID, "{\"whatever\":[1,{}]}");
    assert_int_equal(s->core->tree.head, 1);
    say(s, "user", "two");
    assert_listed(s, NULL, "00000001 00000003");
    session_closed(s);
}

static void a_forked_handle_says_so(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "forked");
    sessile_message *rows;
    sessile_error err;
    sessile_id id;
    size_t count;
    int status;
    pid_t child = fork();

    if (child == 0) {
        int wrong =
            try_say(s, "{\"role\":\"user\"}", &id, &err) != SESSILE_FORKED ||
            session_messages(s->core, NULL, &rows, &count, &err) != SESSILE_FORKED;
        _exit(wrong);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    session_closed(s);
}

/* ------------------------------------------------------------------ totals */

static void a_turn_is_one_event_in_place_of_its_messages(void **state)
{
    place *p = *state;
    static const char *const turn[] = {"{\"role\":\"user\",\"content\":\"q\"}",
                                       "{\"role\":\"assistant\",\"content\":\"a\"}"};
    sessile_session *s = session_made(p->store, "events");

    say(s, "user", "alone");
    assert_int_equal(s->core->tree.nodes[s->core->tree.head].events, 1);
    say_turn(s, turn, 2, "");
    assert_int_equal(s->core->tree.nodes[s->core->tree.head].events, 2);
    assert_int_equal(s->core->tree.nodes[s->core->tree.head].messages, 3);
    put_entry(s, "compaction", SESSILE_NO_ID, "{\"vars\":{}}");
    assert_int_equal(s->core->tree.nodes[s->core->tree.head].events, 3);
    put_entry(s, "custom", SESSILE_NO_ID, "{}");
    assert_int_equal(s->core->tree.nodes[s->core->tree.head].events, 3);
    move_head(s, 1);
    assert_int_equal(s->core->tree.nodes[s->core->tree.head].events, 1);
    session_closed(s);
}

static void usage_is_of_the_turn_else_of_its_messages(void **state)
{
    place *p = *state;
    static const char *const turn[] = {"{\"role\":\"user\",\"content\":\"q\"}",
                                       "{\"role\":\"assistant\",\"content\":\"a\","
                                       "\"usage\":{\"input\":100,\"output\":10}}"};
    sessile_session *s = session_made(p->store, "usage");

    say_json(s,
             "{\"role\":\"assistant\",\"content\":\"x\",\"usage\":{\"input_tokens\":1}}");
    say_turn(s, turn, 2,
             ",\"usage\":{\"input\":1000,\"output\":2000,\"cache_read\":3000,"
             "\"cache_write\":4000}");
    assert_int_equal(s->core->fold.usage.input, 1001);
    assert_int_equal(s->core->fold.usage.output, 2000);
    assert_int_equal(s->core->fold.usage.cache_read, 3000);
    assert_int_equal(s->core->fold.usage.cache_write, 4000);
    say_turn(s, turn, 2, "");
    assert_int_equal(s->core->fold.usage.input, 1101);
    assert_int_equal(s->core->fold.usage.output, 2010);
    move_head(s, 0); /* of the whole log, whatever the branch */
    assert_int_equal(s->core->fold.usage.input, 1101);
    say_json(
        s, "{\"role\":\"assistant\",\"content\":\"x\",\"usage\":{\"input\":-5,\"output\":"
           "9223372036854775807}}");
    assert_int_equal(s->core->fold.usage.input, 1101);
    assert_int_equal(s->core->fold.usage.output,
                     2010 + (INT64_C(1) << 40)); /* what nobody can mean */
    session_closed(s);
}

static void the_newest_title_holds_for_every_branch(void **state)
{
    place *p = *state;
    sessile_store *again = place_again(p);
    sessile_session *s = session_made(p->store, "title"), *b;

    say(s, "user", "one");
    put_entry(s, "metadata", 1, "{\"title\":\"first\"}");
    put_entry(s, "metadata", 0, "{\"model\":\"m\"}");
    assert_string_equal(s->core->fold.title, "first");
    put_entry(s, "metadata", 0, "{\"title\":\"\\u0041\\n\"}");
    move_head(s, 0);
    assert_string_equal(s->core->fold.title, "A\n");
    assert_int_equal(s->core->fold.title_size, 2);
    b = session_resumed(again, "title");
    assert_string_equal(b->core->fold.title, "A\n");
    session_closed(s);
    session_closed(b);
    place_again_close(p, again);
}

static sessile_tokens tokens_now(sessile_session *s)
{
    sessile_tokens t;
    sessile_error err;

    if (session_tokens_locked(s->core, &t, &err))
        fail_msg("%s", err.message);
    assert_true(t.low <= t.tokens && t.tokens <= t.high);
    return t;
}

static void tokens_follow_usage_until_a_compaction(void **state)
{
    place *p = *state;
    static const char *const turn[] = {"{\"role\":\"user\",\"content\":\"question\"}",
                                       "{\"role\":\"assistant\",\"content\":\"answer\"}"};
    sessile_session *s = session_made(p->store, "tokens");
    sessile_tokens t;
    sessile_id id, used;

    t = tokens_now(s);
    assert_int_equal(t.tokens, 0);
    assert_string_equal(t.source, "estimate");
    id = say(s, "user", "some words");
    t = tokens_now(s);
    assert_int_equal(t.tokens, s->core->tree.nodes[id].tokens);
    assert_string_equal(t.source, "estimate");

    used =
        say_turn(s, turn, 2, ",\"usage\":{\"input\":500,\"output\":60,\"cache_read\":7}");
    t = tokens_now(s);
    assert_string_equal(t.source, "usage");
    assert_int_equal(t.tokens, 567);
    assert_int_equal(t.low, 567);
    assert_int_equal(t.high, 567);
    say_turn(s, turn, 2, ""); /* reports nothing: the older one holds */
    id = say(s, "user", "after it");
    t = tokens_now(s);
    assert_string_equal(t.source, "usage");
    assert_int_equal(t.tokens, 567 + s->core->tree.nodes[id].tokens +
                                   s->core->tree.nodes[id - 2].tokens +
                                   s->core->tree.nodes[id - 3].tokens);

    put_entry(s, "compaction", SESSILE_NO_ID, "{\"vars\":{}}"); /* leaves the context */
    assert_string_equal(tokens_now(s).source, "usage");
    put_entry(s, "compaction", SESSILE_NO_ID,
              "{\"context\":[\"00000001\"],\"upto\":\"00000001\"}");
    t = tokens_now(s);
    assert_string_equal(t.source, "estimate");
    move_head(s, used); /* another branch has its own */
    assert_int_equal(tokens_now(s).tokens, 567);
    move_head(s, 0);
    assert_int_equal(tokens_now(s).tokens, 0);
    say_turn(s, turn, 2, ",\"usage\":{\"input\":9}");
    assert_int_equal(tokens_now(s).tokens, 9);
    move_head(s, used); /* what is kept is the other turn's: read again */
    assert_int_equal(tokens_now(s).tokens, 567);
    session_closed(s);
}

/* ------------------------------------------------------------------ messages() */

static void messages_can_be_asked_for_by_place_role_and_number(void **state)
{
    place *p = *state;
    static const char *const turn[] = {"{\"role\":\"user\",\"content\":\"q\"}",
                                       "{\"role\":\"assistant\",\"content\":\"a\"}"};
    sessile_session *s = session_made(p->store, "options");
    sessile_messages_options o = everything;

    say_turn(s, turn, 2, ""); /* 1 2, turn 3 */
    say_turn(s, turn, 2, ""); /* 4 5, turn 6 */
    say(s, "user", "last");   /* 7 */
    assert_listed(s, &o, "00000001 00000002 00000004 00000005 00000007");
    o.from = 4;
    assert_listed(s, &o, "00000004 00000005 00000007");
    o.from = 3; /* a turn entry is on the path: what comes after it */
    assert_listed(s, &o, "00000004 00000005 00000007");
    o.limit = 2;
    assert_listed(s, &o, "00000004 00000005");
    o = everything;
    o.last = 2;
    assert_listed(s, &o, "00000005 00000007");
    o.limit = 1;
    assert_listed(s, &o, "00000005");
    o = everything;
    o.role = SESSILE_ASSISTANT;
    assert_listed(s, &o, "00000002 00000005");
    o.last = 1;
    assert_listed(s, &o, "00000005");
    o = everything;
    o.at = 3;
    assert_listed(s, &o, "00000001 00000002");
    o.at = 0;
    assert_listed(s, &o, "");
    session_closed(s);
}

static void an_unknown_from_names_the_nearest(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "nearest");
    sessile_messages_options o = everything;
    sessile_message *rows = (sessile_message *)s;
    sessile_error err;
    size_t count = 3;

    say(s, "user", "1");
    say(s, "user", "2");
    move_head(s, 1);
    say(s, "user", "4");
    o.from = 2;
    assert_refused(session_messages(s->core, &o, &rows, &count, &err), SESSILE_NOTFOUND,
                   &err, "00000001 and 00000004");
    assert_null(rows);
    assert_int_equal(count, 0);
    o.from = 99;
    assert_refused(session_messages(s->core, &o, &rows, &count, &err), SESSILE_NOTFOUND,
                   &err, "00000004");
    o = everything;
    o.at = 3; /* the head fact */
    assert_refused(session_messages(s->core, &o, &rows, &count, &err), SESSILE_NOTFOUND,
                   &err, "head");
    o.at = 99;
    assert_refused(session_messages(s->core, &o, &rows, &count, &err), SESSILE_NOTFOUND,
                   &err, "00000004");
    session_closed(s);
}

static void looking_at_another_leaf_does_not_move_the_base(void **state)
{
    place *p = *state;
    sessile_store *again = place_again(p);
    sessile_session *a = session_made(p->store, "look"), *b;
    sessile_messages_options o = everything;

    say(a, "user", "1");
    b = session_resumed(again, "look");
    say(a, "user", "2");
    o.at = 1;
    assert_listed(b, &o, "00000001");
    assert_int_equal(b->core->tree.base, 1);
    assert_listed(b, NULL, "00000001 00000002");
    assert_int_equal(b->core->tree.base, 2);
    session_closed(a);
    session_closed(b);
    place_again_close(p, again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(messages_come_back_token_for_token),
        OVER(author_and_source_are_written_beside_the_message),
        OVER(two_handles_see_each_others_commits),
        OVER(reopening_gives_the_same_session),
        OVER(a_failed_build_writes_nothing),
        OVER(a_refused_batch_leaves_the_fold_as_it_was),
        OVER(a_log_that_is_full_refuses_and_stays),
        OVER(a_base_that_was_left_is_conflict),
        OVER(a_strict_base_passes_over_compactions_only),
        OVER(facts_of_others_do_not_move_the_base),
        OVER(unknown_types_are_carried_as_facts),
        OVER(a_forked_handle_says_so),
        OVER(a_turn_is_one_event_in_place_of_its_messages),
        OVER(usage_is_of_the_turn_else_of_its_messages),
        OVER(the_newest_title_holds_for_every_branch),
        OVER(tokens_follow_usage_until_a_compaction),
        OVER(messages_can_be_asked_for_by_place_role_and_number),
        OVER(an_unknown_from_names_the_nearest),
        OVER(looking_at_another_leaf_does_not_move_the_base),
    };
    int failed = 0;

    failed += run_over_kinds("session", STORE_RAM, tests, sizeof tests / sizeof *tests);
    return failed != 0;
}

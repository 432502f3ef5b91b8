/*
 * fuzz_compaction.c: whatever compaction entries say, what is made of them holds.
 *
 * An input is lines of JSON, each the data of a compaction behind the one before, on a
 * session of a few messages and a call. Holds: every message is explained or the log is
 * DAMAGED; what is said to be in the context is there; a compaction that is taken back
 * leaves a context that can be read, in the order of the log, and takes nothing else out
 * than what it says.
 */
#include "guard/enter.h"
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/write.h"

static const char *const words[] = {"\"context\":[",
                                    "\"upto\":\"00000005\"",
                                    "\"inserted\":[{\"n\":1,",
                                    "\"message\":{\"role\":\"user\",\"content\":\"x\"}",
                                    "\"covers\":[\"00000002-00000003\"]",
                                    "\"replaces\":[\"00000001\"]",
                                    "\"uncompacts\":\"00000006\"",
                                    "\"00000001\"",
                                    "\"00000002-00000005\"",
                                    "\"00000006.1\"",
                                    "\"00000007.2\"",
                                    "\"00000009\"",
                                    "00000000",
                                    "ffffffff",
                                    "]",
                                    "}",
                                    ",",
                                    "\n",
                                    NULL};

const fuzz_about fuzz_this = {"compaction", 4000, 1 << 11, words};

enum { MESSAGES = 5, LINES = 12 };

typedef struct adding {
    const buf *data;
    sessile_id parent;
} adding;

static sessile_status build(void *arg, session_core *s, batch *b, sessile_error *err)
{
    const adding *a = arg;
    entry_fields f = {.parent = s->tree.head,
                      .type = ENTRY_COMPACTION,
                      .source = SOURCE_POLICY,
                      .data = a->data->data,
                      .data_size = a->data->size,
                      .tokens = -1};

    (void)err;
    batch_add(b, &f);
    return SESSILE_OK;
}

static void add_lines(sessile_session *s, const char *text, size_t size)
{
    buf data;

    buf_init(&data, &allocator_default);
    for (int i = 0; i < LINES && size; i++) {
        const char *end = memchr(text, '\n', size);
        size_t length = end ? (size_t)(end - text) : size;
        adding a = {&data, 0};
        buf_clear(&data);
        if (!json_check(&data, text, length, 64, NULL) &&
            json_of(data.data, data.size).type == JSON_OBJECT)
            (void)session_write(s->core, build, &a, NULL, NULL);
        length += end != NULL;
        text += length;
        size -= length;
    }
    buf_deinit(&data);
}

static int same(sessile_key a, sessile_key b)
{
    return a.entry == b.entry && a.n == b.n;
}

/* DAMAGED, or a list; *rows is the caller's. */
static int read_context(sessile_session *s, sessile_message **rows, size_t *count)
{
    sessile_error err;
    sessile_status status = sessile_context(s, SESSILE_NO_ID, rows, count, NULL, &err);

    FUZZ_CHECK(status == SESSILE_OK || status == SESSILE_DAMAGED);
    return status == SESSILE_OK;
}

static void check_why(sessile_session *s, sessile_key key)
{
    sessile_explanation *why;
    sessile_message *rows;
    sessile_error err;
    size_t count;
    int there = 0;
    sessile_status status = sessile_why(s, key, &why, &err);

    FUZZ_CHECK(status == SESSILE_OK || status == SESSILE_DAMAGED ||
               status == SESSILE_NOTFOUND);
    if (status)
        return;
    FUZZ_CHECK(why->step_count > 0 && same(why->key, key));
    FUZZ_CHECK(!why->in_context || same(why->shown, key));
    for (size_t i = 1; i < why->step_count; i++)
        FUZZ_CHECK(why->steps[i].at >= why->steps[i - 1].at ||
                   why->steps[i].kind == SESSILE_WHY_ELSEWHERE);
    if (read_context(s, &rows, &count)) {
        for (size_t i = 0; i < count; i++)
            there |= same(rows[i].key, why->shown);
        FUZZ_CHECK(why->shown.entry == SESSILE_NO_ID || there);
        sessile_free(rows);
    }
    sessile_free(why);
}

static void check_uncompact(sessile_session *s, sessile_id id)
{
    sessile_uncompacted *would, *done;
    sessile_message *rows;
    sessile_error err;
    sessile_id last = 0, head = s->core->tree.head;
    size_t count;
    sessile_status status = sessile_uncompact(s, id, 1, &would, &err);

    FUZZ_CHECK(status == SESSILE_OK || status == SESSILE_DAMAGED ||
               status == SESSILE_NOTFOUND || status == SESSILE_INVALID);
    FUZZ_CHECK(s->core->tree.head == head);
    if (status)
        return;
    FUZZ_CHECK(sessile_uncompact(s, id, 0, &done, &err) == SESSILE_OK);
    FUZZ_CHECK(done->restored_count == would->restored_count &&
               done->removed_count == would->removed_count &&
               done->tokens_after == would->tokens_after);
    FUZZ_CHECK(read_context(s, &rows, &count));
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < done->removed_count; k++)
            FUZZ_CHECK(!same(rows[i].key, done->removed[k]));
        /* late answers are shown out of order: there is none here */
        if (rows[i].key.n == 0 && rows[i].key.entry != SESSILE_NO_ID) {
            FUZZ_CHECK(rows[i].key.entry > last);
            last = rows[i].key.entry;
        }
    }
    sessile_free(rows);
    sessile_free(would);
    sessile_free(done);
}

static sessile_session *make(sessile_store *store)
{
    static const char *const said[MESSAGES] = {
        "{\"role\":\"system\",\"content\":\"be kind\"}",
        "{\"role\":\"user\",\"content\":\"a\"}",
        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"c\",\"name\":"
        "\"f\",\"arguments\":\"{}\"}]}",
        "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"b\"}",
        "{\"role\":\"user\",\"content\":\"d\"}"};
    sessile_session_options o;
    sessile_session *s;

    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    FUZZ_CHECK(sessile_create(&s, store, &o, NULL) == SESSILE_OK);
    for (int i = 0; i < MESSAGES; i++)
        FUZZ_CHECK(sessile_append(s, sessile_text(said[i]), NULL, NULL) == SESSILE_OK);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sessile_compaction *log;
    sessile_store *store = fixed_ram_store();
    sessile_session *s;
    sessile_error err;
    sessile_id end;
    size_t count;

    s = make(store);
    add_lines(s, (const char *)data, size);
    end = (sessile_id)s->core->tree.node_count;
    sessile_status status = sessile_compactions(s, &log, &count, &err);
    FUZZ_CHECK(status == SESSILE_OK || status == SESSILE_DAMAGED);
    sessile_free(log);
    for (sessile_id id = 0; id < end; id++)
        for (uint32_t n = 0; n < 3; n++)
            check_why(s, (sessile_key){id, n});
    check_uncompact(s, SESSILE_NO_ID);
    for (sessile_id id = end; id-- > MESSAGES;)
        check_uncompact(s, id);
    end = (sessile_id)s->core->tree.node_count; /* each that succeeds makes another */
    for (sessile_id id = MESSAGES; id < end; id++)
        check_uncompact(s, id);
    FUZZ_CHECK(sessile_session_close(s, NULL) == SESSILE_OK);
    sessile_store_close(store);
    return 0;
}

#define PUT(n, what)                                                   \
    "{\"n\":" #n ",\"turn\":1,\"tokens\":[3,\"estimate\"]," what       \
    "\"message\":{\"role\":\"user\",\"content\":\"sum\",\"metadata\":" \
    "{\"kind\":\"summary\"}}}"

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const texts[] = {
        "{\"context\":[\"00000001\",\"00000006.1\",\"00000005\"],\"upto\":\"00000005\","
        "\"inserted\":[" PUT(
            1, "\"covers\":[\"00000002-00000004\"],") "]}\n"
                                                      "{\"context\":[\"00000001\","
                                                      "\"00000002-00000005\"],\"upto\":"
                                                      "\"00000006\","
                                                      "\"policy\":[],\"uncompacts\":"
                                                      "\"00000006\"}\n"
                                                      "{\"context\":[\"00000001\","
                                                      "\"00000006.1\",\"00000005\"],"
                                                      "\"upto\":\"00000007\","
                                                      "\"uncompacts\":\"00000007\"}",
        "{\"context\":[\"00000001-00000002\",\"00000005\"],\"upto\":\"00000005\"}\n"
        "{\"context\":[\"00000001\",\"00000007.1\",\"00000007.2\"],\"upto\":\"00000006\","
        "\"inserted\":[" PUT(1, "\"replaces\":[\"00000002\"],") "," PUT(
            2, "\"covers\":[\"00000005\"],") "]}\n{\"vars\":{}}",
        "{\"context\":[],\"upto\":\"00000000\"}\n{\"context\":[\"00000003\"],\"upto\":"
        "\"00000002\",\"uncompacts\":\"00000006\"}"};

    fuzz_give_all(take, arg, texts, sizeof texts / sizeof *texts);
}

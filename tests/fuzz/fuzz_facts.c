/*
 * fuzz_facts.c: whatever facts say, what is made of them holds.
 *
 * An input is lines: a letter for the type of an entry, a digit for its parent (another
 * sign: the head), and JSON, its data. They are put behind a few messages. Holds: what is
 * in force can be listed, or the log is DAMAGED; a pending run is answered and comes to
 * an end, or is refused in words; a suspension can be ended; and after all that the
 * conversation can be read and gone on with.
 */
#include "guard/enter.h"
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "session/write.h"

#define PATH "policies/summarize.lua"
#define STEP(path)                                                     \
    "{\"name\":\"summarize\",\"version\":1,\"hash\":\"\",\"options\":" \
    "{\"preserve_recent\":2},\"path\":\"" path "\"}"
#define GIVEN "\"now\":1,\"window\":1000,\"reserve\":0,\"reason\":\"manual\""
#define HEX   "8c5ac579afc724137ab6f49781a6212de77625fadec77013555deccc2d10a815"
#define ASKS  "\"asks\":{\"policy\":\"summarize\",\"hash\":\"" HEX "\",\"request\":{}}"
/* What a pending run has; a member of the same name in front of it is found first. */
#define PENDING_RUN                                                \
    "\"kind\":\"compact\",\"saw\":\"00000005\",\"policy\":[" STEP( \
        PATH) "]," GIVEN ",\"answers\":[]," ASKS

static const char *const words[] = {"\nph{",
                                    "\nl1{\"label\":\"pinned\"}",
                                    "\nmh{\"settings\":{",
                                    "\nch{",
                                    "\nmh{\"metadata\":{",
                                    "\nth{\"withdraws\":\"00000006\"}",
                                    "\nsh{",
                                    "\nTh{\"first\":\"00000001\",\"count\":2}",
                                    "\"off\":true",
                                    "\"mod\\u0065l\":1",
                                    "\"label\":\"\\u0000\"",
                                    "\"state\":[]",
                                    "00000000",
                                    "ffffffff",
                                    NULL};

/* A line that is no JSON picks from these instead, a byte each. */
static const char *const members[] = {
    "\"off\":true",
    "\"pending_run\":\"00000006\"",
    "\"kind\":\"turn\"",
    "\"kind\":\"compact\"",
    "\"saw\":\"00000005\"",
    "\"saw\":\"00000007\"",
    "\"saw\":\"00000000\"",
    "\"first\":\"00000004\"",
    "\"first\":\"00000006\"",
    "\"now\":9223372036854775807",
    "\"window\":9223372036854775807",
    "\"window\":1",
    "\"reserve\":9223372036854775807",
    "\"reason\":\"overflow\"",
    "\"reason\":\"\"",
    "\"fired\":\"overflow\"",
    "\"fired\":\"threshold\"",
    "\"overflowed\":true",
    "\"event\":\"\\ud800\"",
    "\"instructions\":\"x\"",
    "\"fallback_of\":{\"policy\":\"x\",\"law\":11}",
    "\"fallback_of\":{\"policy\":1,\"message\":\"x\"}",
    "\"answers\":[{\"request\":\"" HEX "\",\"text\":\"x\"}]",
    "\"answers\":[{\"request\":\"\",\"text\":\"x\"}]",
    "\"answers\":1",
    "\"policy\":[" STEP("/dev/zero") "]",
    "\"policy\":[" STEP("policies") "]",
    "\"policy\":[" STEP("../x\\u0000y") "]",
    "\"policy\":[" STEP(PATH) "," STEP(PATH) "]",
    "\"policy\":[]",
    "\"asks\":{\"policy\":1,\"hash\":\"" HEX "\",\"request\":[]}",
    "\"asks\":[]",
    "\"label\":\"a\"",
    "\"label\":\"pinned\"",
    "\"settings\":{\"model\":null,\"\":1}",
    "\"metadata\":{\"mod\\u0065l\":1}",
    "\"settings.model\":1",
    "\"name\":\"c\"",
    "\"head\":\"00000005\"",
    "\"head\":\"00000009\"",
    "\"withdraws\":\"00000006\"",
    "\"reason\":[]",
    "\"state\":\"x\"",
};

const fuzz_about fuzz_this = {"facts", 800, 1 << 12, words};

enum { MESSAGES = 5, LINES = 12, STEPS = 6 };

typedef struct adding {
    const buf *data;
    char type, parent;
} adding;

static entry_type type_of(char letter)
{
    switch (letter) {
    case 'p':
        return ENTRY_PENDING_RUN;
    case 'l':
        return ENTRY_LABEL;
    case 'm':
        return ENTRY_METADATA;
    case 'c':
        return ENTRY_CHECKPOINT;
    case 's':
        return ENTRY_SUSPEND;
    case 't':
        return ENTRY_TOMBSTONE;
    case 'T':
        return ENTRY_TURN;
    default:
        return ENTRY_CUSTOM;
    }
}

static sessile_status build(void *arg, session_core *s, batch *b, sessile_error *err)
{
    const adding *a = arg;
    unsigned parent = (unsigned)(a->parent - '0');
    entry_fields f = {.parent = parent < s->tree.node_count && parent <= MESSAGES
                                    ? parent
                                    : s->tree.head,
                      .type = type_of(a->type),
                      .source = SOURCE_POLICY,
                      .data = a->data->data,
                      .data_size = a->data->size,
                      .tokens = -1};

    (void)err;
    if (f.type == ENTRY_TURN)
        f.parent = s->tree.head;
    batch_add(b, &f);
    return SESSILE_OK;
}

static int is_object(buf *out, const char *text, size_t size)
{
    buf_clear(out);
    return !json_check(out, text, size, 64, NULL) &&
           json_of(out->data, out->size).type == JSON_OBJECT;
}

/* An object of the members that the bytes say; of a pending run in front of what it has.
 */
static void pick(buf *out, char type, const char *text, size_t size)
{
    buf_clear(out);
    buf_putc(out, '{');
    for (size_t i = 0; i < size && i < 8; i++) {
        buf_puts(out,
                 members[(unsigned char)text[i] % (sizeof members / sizeof *members)]);
        buf_putc(out, ',');
    }
    buf_puts(out, type == 'p' ? PENDING_RUN "}" : "\"x\":1}");
}

static void add_lines(sessile_session *s, const char *text, size_t size)
{
    buf data;

    buf_init(&data, &allocator_default);
    for (int i = 0; i < LINES && size; i++) {
        const char *end = memchr(text, '\n', size);
        size_t length = end ? (size_t)(end - text) : size;
        adding a = {&data, text[0], length > 1 ? text[1] : 0};
        if (length > 2) {
            if (!is_object(&data, text + 2, length - 2))
                pick(&data, text[0], text + 2, length - 2);
            (void)session_write(s->core, build, &a, NULL, NULL);
        }
        length += end != NULL;
        text += length;
        size -= length;
    }
    buf_deinit(&data);
}

static void check_lists(sessile_session *s)
{
    sessile_checkpoint_row *checkpoints;
    sessile_label_row *labels;
    sessile_suspension *suspension;
    sessile_error err;
    size_t count, size;
    buf again;
    char *text;

    FUZZ_CHECK(sessile_labels(s, &labels, &count, &err) == SESSILE_OK);
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(labels[i].entry < s->core->tree.node_count &&
                   labels[i].fact < s->core->tree.node_count);
    sessile_free(labels);
    buf_init(&again, &allocator_default);
    FUZZ_CHECK(sessile_settings(s, &text, &size, &err) == SESSILE_OK);
    FUZZ_CHECK(json_check(&again, text, size, 64, &err) == SESSILE_OK);
    sessile_free(text);
    buf_clear(&again);
    FUZZ_CHECK(sessile_metadata(s, &text, &size, &err) == SESSILE_OK);
    FUZZ_CHECK(json_check(&again, text, size, 64, &err) == SESSILE_OK);
    sessile_free(text);
    buf_deinit(&again);
    FUZZ_CHECK(sessile_checkpoints(s, NULL, &checkpoints, &count, &err) == SESSILE_OK);
    sessile_free(checkpoints);
    FUZZ_CHECK(sessile_suspended(s, &suspension, &err) == SESSILE_OK);
    sessile_free(suspension);
}

static void finish(sessile_run *run)
{
    sessile_answer answer = {.status = SESSILE_OK, .text = {"in short", 8}};
    sessile_outcome outcome;
    sessile_need need;
    sessile_error err;
    sessile_status status = SESSILE_NEEDS;

    for (int i = 0; i < STEPS && status == SESSILE_NEEDS; i++) {
        status = sessile_run_step(run, &need, &err);
        if (status == SESSILE_NEEDS) {
            FUZZ_CHECK(need.kind == SESSILE_NEED_MODEL);
            FUZZ_CHECK(sessile_run_reply(run, &answer, &err) == SESSILE_OK);
        }
    }
    if (!status)
        FUZZ_CHECK(sessile_run_outcome(run, &outcome, &err) == SESSILE_OK);
    sessile_run_free(run);
}

static void check_pending(sessile_session *s)
{
    sessile_answer answer = {.status = SESSILE_OK, .text = {"in short", 8}};
    sessile_pending_run *pending_runs;
    sessile_error err;
    sessile_run *run;
    size_t count;

    FUZZ_CHECK(sessile_pending_runs(s, &pending_runs, &count, &err) == SESSILE_OK);
    for (size_t i = 0; i < count; i++) {
        sessile_status status =
            sessile_answer_begin(&run, s, pending_runs[i].entry, &answer, NULL, &err);
        FUZZ_CHECK(err.code == status);
        FUZZ_CHECK(!status || err.message[0]);
        if (!status)
            finish(run);
    }
    sessile_free(pending_runs);
}

static sessile_session *make(sessile_store *store)
{
    sessile_session_options o;
    sessile_session *s;
    char text[800];

    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    o.metadata = sessile_text("{\"model\":\"a\"}");
    FUZZ_CHECK(sessile_create(&s, store, &o, NULL) == SESSILE_OK);
    for (int i = 0; i < MESSAGES; i++) {
        snprintf(text, sizeof text, "{\"role\":\"%s\",\"content\":\"%0700d\"}",
                 i & 1 ? "assistant" : "user", i);
        FUZZ_CHECK(sessile_append(s, sessile_text(text), NULL, NULL) == SESSILE_OK);
    }
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sessile_slice more = sessile_text("{\"role\":\"user\",\"content\":\"more\"}");
    sessile_message *rows;
    sessile_store *store = fixed_ram_store();
    sessile_session *s;
    sessile_error err;
    sessile_status status;
    size_t count;

    s = make(store);
    add_lines(s, (const char *)data, size);
    check_lists(s);
    check_pending(s);
    status = sessile_cancel(s, sessile_text(""), &err);
    FUZZ_CHECK(status == SESSILE_OK || status == SESSILE_NOTFOUND);
    check_lists(s);
    FUZZ_CHECK(sessile_append(s, more, NULL, &err) == SESSILE_OK);
    FUZZ_CHECK(sessile_context(s, SESSILE_NO_ID, &rows, &count, NULL, &err) ==
               SESSILE_OK);
    FUZZ_CHECK(count > 0);
    sessile_free(rows);
    FUZZ_CHECK(sessile_session_close(s, NULL) == SESSILE_OK);
    sessile_store_close(store);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const texts[] = {
        "ph{\"saw\":\"00000000\"," PENDING_RUN "}",
        "ph{\"kind\":\"compact\",\"saw\":\"00000005\",\"policy\":[" STEP(
            PATH) "]," GIVEN ",\"answers\":[{\"request\":\"" HEX
                  "\",\"text\":\"x\"}]," ASKS "}\nl1{\"label\":\"pinned\"}",
        "Th{\"first\":\"00000001\",\"count\":5}\nph{\"kind\":\"turn\",\"saw\":"
        "\"00000006\",\"first\":\"00000004\",\"policy\":[" STEP(
            PATH) "],\"fired\":\"overflow\",\"overflowed\":true,\"event\":\"e\","
                  "\"fallback_of\":{\"policy\":\"p\",\"law\":2,\"message\":\"m\"}," GIVEN
                  ",\"answers\":[{\"request\":\"" HEX "\",\"failed\":\"x\"}]," ASKS
                  "}\nph{\"off\":true,\"pending_run\":\"00000007\"}",
        "sh{\"reason\":\"x\",\"state\":[1]}\nsh{\"off\":true}\nl2{\"label\":\"a\"}\n"
        "l2{\"label\":\"a\",\"off\":true}\nmh{\"settings\":{\"model\":1,\"\":2,"
        "\"mod\\u0065l\":3}}\nmh{\"metadata\":{\"model\":null}}\n"
        "ch{\"name\":\"c\",\"head\":\"00000005\"}\nth{\"withdraws\":\"0000000c\"}"};

    fuzz_give_all(take, arg, texts, sizeof texts / sizeof *texts);
}

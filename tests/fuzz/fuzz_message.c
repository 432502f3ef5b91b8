/*
 * fuzz_message.c: message_read over checked text, and what reads a message beside it.
 *
 * Holds: a message that is taken has a role; spans lie in the text; each link of a call
 * can be found again by its id; counting tokens never goes below zero; reading with links
 * and without them says the same; what a search finds stands where it says.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "codec/find.h"
#include "codec/message.h"
#include "tokens/tokens.h"

static const char *const words[] = {"\"role\":\"user\"",
                                    "\"role\":\"assistant\"",
                                    "\"role\":\"tool\"",
                                    "\"content\":[]",
                                    "\"content\":null",
                                    "\"tool_calls\":[{\"id\":\"a\"}]",
                                    "\"tool_call_id\":\"a\"",
                                    "{\"type\":\"tool_use\",\"id\":\"a\"}",
                                    "{\"type\":\"tool_result\",\"tool_use_id\":\"a\"}",
                                    "{\"type\":\"text\",\"text\":\"x\"}",
                                    "\"output\":\"o\"",
                                    "\"is_error\":true",
                                    "\"metadata\":{\"kind\":\"summary\"}",
                                    "\"usage\":{\"input_tokens\":1}",
                                    "\"name\":\"n\"",
                                    "\\u0061",
                                    ",",
                                    "{",
                                    "}",
                                    "[",
                                    "]",
                                    NULL};

const fuzz_about fuzz_this = {"message", 400000, 1 << 13, words};

static void inside(json part, const buf *text)
{
    FUZZ_CHECK(part.type == JSON_NONE ||
               (part.at >= text->data && part.at + part.size <= text->data + text->size));
}

static void look(const buf *text)
{
    message m, without;
    message_link *links = NULL;
    size_t count = 0, capacity = 0;
    sessile_usage usage;
    sessile_error err = {0};
    sessile_status status = message_read(&m, text->data, text->size, &links, &count,
                                         &capacity, &allocator_default, &err);
    FUZZ_CHECK(message_read(&without, text->data, text->size, NULL, NULL, NULL,
                            &allocator_default, NULL) == status);
    if (status) {
        FUZZ_CHECK(status == SESSILE_INVALID);
        FUZZ_CHECK(utf8_valid(err.message, strlen(err.message)));
    } else {
        FUZZ_CHECK(m.role != SESSILE_ROLE_NONE && m.role == without.role &&
                   m.flags == without.flags);
        const json parts[] = {m.root,  m.content,  m.tool_calls, m.tool_call_id,
                              m.usage, m.metadata, m.author};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            inside(parts[i], text);
        for (size_t i = 0; i < count; i++) {
            buf id, plain;
            buf_init(&id, &allocator_default);
            buf_init(&plain, &allocator_default);
            if (!links[i].is_result) {
                FUZZ_CHECK(message_call_id(text->data, text->size, links[i].id, &id));
                json name = json_of(id.data, id.size);
                FUZZ_CHECK(name.type == JSON_STRING && json_string(&plain, name) == 0);
                FUZZ_CHECK(hash64_lasting(plain.data ? plain.data : "", plain.size) ==
                           links[i].id);
            }
            buf_deinit(&id);
            buf_deinit(&plain);
        }
        FUZZ_CHECK(tokens_of_message(&m) >= 0);
        if (m.usage.type == JSON_OBJECT)
            (void)usage_read(m.usage, &usage);
    }
    mem_free(&allocator_default, links, capacity * sizeof *links);
}

static void seek(const buf *text, const char *what, int exact)
{
    find_query q;
    find_place place;
    size_t size = strlen(what), at;
    buf said;

    FUZZ_CHECK(find_init(&q, (sessile_slice){what, size}, exact, &allocator_default) ==
               0);
    buf_init(&said, &allocator_default);
    if (find_in_message(&q, json_of(text->data, text->size), &place)) {
        inside(place.value, text);
        if (place.value.type == JSON_STRING)
            FUZZ_CHECK(json_string(&said, place.value) == 0);
        else
            buf_put(&said, place.value.at, place.value.size);
        said.size = find_strip(said.data, said.size);
        FUZZ_CHECK(place.field && place.at <= said.size && size <= said.size - place.at);
        FUZZ_CHECK((exact ? strncmp : strncasecmp)(said.data + place.at, what, size) ==
                   0);
        FUZZ_CHECK(find_in_text(&q, said.data, said.size, &at) && at == place.at);
        find_part part = find_around(said.data, said.size, place.at, size, 5, 7);
        FUZZ_CHECK(part.from <= place.at && place.at - part.from <= 5);
        FUZZ_CHECK(part.to >= place.at + size && part.to <= said.size &&
                   part.to - place.at - size <= 7);
        FUZZ_CHECK(utf8_valid(said.data + part.from, part.to - part.from));
    }
    buf_deinit(&said);
    find_deinit(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    buf checked, exact;
    buf_init(&checked, &allocator_default);
    if (!json_check(&checked, (const char *)data, size, 64, NULL)) {
        exact = checked;
        exact.data = fuzz_copy(checked.data, checked.size);
        look(&exact);
        seek(&exact, "a", 0);
        seek(&exact, "x", 1);
        seek(&exact, "1", 1);
        seek(&exact, "\xc3\xa9", 0);
        free(exact.data);
    }
    FUZZ_CHECK(tokens_of_text((const char *)data, size) >= 0);
    buf_deinit(&checked);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const texts[] = {
        "{\"role\":\"user\",\"content\":\"why is it slow?\"}",
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"so\"},{"
        "\"type\":"
        "\"tool_use\",\"id\":\"call_1\",\"name\":\"ls\",\"input\":{}}],\"usage\":{"
        "\"input\":1}}",
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
        "\"call_1\","
        "\"content\":\"x\",\"is_error\":true}]}",
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"\\u0061b\","
        "\"type\":"
        "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"},\"output\":"
        "\"y\"}]}",
        "{\"role\":\"tool\",\"tool_call_id\":\"ab\",\"content\":\"z\",\"name\":\"f\"}",
        "{\"role\":\"user\",\"content\":\"sum\",\"metadata\":{\"kind\":\"summary\"},"
        "\"author\":\"a\"}"};
    fuzz_give_all(take, arg, texts, sizeof texts / sizeof *texts);
}

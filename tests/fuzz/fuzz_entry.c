/*
 * fuzz_entry.c: entry_read over checked text.
 *
 * Holds: what is read has a valid id, parent and time and an object as data; written
 * again from its fields it reads as the same entry. Of what is refused nothing is shown.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "codec/entry.h"

#define HEAD                                           \
    "{\"id\":\"0000002a\",\"parent_id\":\"00000029\"," \
    "\"timestamp\":\"2026-11-21T20:12:03.123Z\",\"type\":"

static const char *const words[] = {"\"id\":\"0000002a\"",
                                    "\"parent_id\":null",
                                    "\"timestamp\":\"1970-01-01T00:00:00Z\"",
                                    "\"type\":\"message\"",
                                    "\"source\":\"user\"",
                                    "\"author\":\"a\"",
                                    "\"user\":\"u\"",
                                    "\"data\":{}",
                                    "\"tokens\":[1,\"estimate\"]",
                                    "ffffffff",
                                    "9999-12-31T23:59:59.999Z",
                                    "+23:59",
                                    ",",
                                    "{",
                                    "}",
                                    NULL};

const fuzz_about fuzz_this = {"entry", 900000, 1 << 13, words};

static int same(json a, json b)
{
    return a.type == b.type && a.size == b.size &&
           (a.size == 0 || memcmp(a.at, b.at, a.size) == 0);
}

/* A JSON string of the entry, as entry_put() takes it: with a NUL. */
static const char *quoted(buf *out, json value)
{
    if (value.type == JSON_NONE)
        return NULL;
    buf_put(out, value.at, value.size);
    return out->data;
}

static void written_again(const entry *e)
{
    buf text, author, user, source;
    entry back;
    const char *plain;
    size_t plain_size;
    buf_init(&text, &allocator_default);
    buf_init(&author, &allocator_default);
    buf_init(&user, &allocator_default);
    buf_init(&source, &allocator_default);
    entry_fields fields = {.id = e->id,
                           .parent = e->parent,
                           .time_ms = e->time_ms,
                           .type = e->type,
                           .source = e->source,
                           .author_json = quoted(&author, e->author),
                           .user_json = quoted(&user, e->user),
                           .data = e->data.at,
                           .data_size = e->data.size,
                           .tokens = e->tokens};
    if (e->token_source.type == JSON_STRING &&
        json_plain(e->token_source, &plain, &plain_size)) {
        buf_put(&source, plain, plain_size);
        fields.token_source = source.data ? source.data : "";
    }
    entry_put(&text, &fields);
    FUZZ_CHECK(!text.failed);
    FUZZ_CHECK(entry_read(&back, text.data, text.size, NULL) == SESSILE_OK);
    FUZZ_CHECK(back.id == e->id && back.parent == e->parent && back.type == e->type &&
               back.time_ms == e->time_ms && back.source == e->source &&
               back.tokens == e->tokens);
    FUZZ_CHECK(same(back.author, e->author) && same(back.user, e->user) &&
               same(back.data, e->data));
    if (fields.token_source && e->tokens >= 0)
        FUZZ_CHECK(same(back.token_source, e->token_source));
    buf_deinit(&text);
    buf_deinit(&author);
    buf_deinit(&user);
    buf_deinit(&source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    buf checked;
    entry e;
    sessile_error err = {0};
    buf_init(&checked, &allocator_default);
    if (!json_check(&checked, (const char *)data, size, 64, NULL)) {
        char *exact = fuzz_copy(checked.data, checked.size);
        sessile_status status = entry_read(&e, exact, checked.size, &err);
        if (!status) {
            FUZZ_CHECK(e.data.type == JSON_OBJECT && e.id != SESSILE_NO_ID);
            FUZZ_CHECK(e.tokens >= -1 && e.time_ms >= 0);
            FUZZ_CHECK(entry_on_path(e.type) == 0 || entry_on_path(e.type) == 1);
            written_again(&e);
        } else {
            FUZZ_CHECK(status == SESSILE_DAMAGED && e.id == SESSILE_NO_ID &&
                       e.data.type == JSON_NONE);
            FUZZ_CHECK(utf8_valid(err.message, strlen(err.message)));
        }
        free(exact);
    }
    buf_deinit(&checked);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const texts[] = {
        HEAD "\"message\",\"source\":\"user\",\"author\":\"coder\",\"data\":"
             "{\"role\":\"user\",\"content\":\"hi\"},\"tokens\":[12,\"estimate\"]}",
        HEAD "\"turn\",\"data\":{\"first\":\"00000001\",\"count\":2}}",
        HEAD "\"head\",\"user\":\"u\\u00e9\",\"data\":{\"head\":\"00000000\"},\"x\":[1]}",
        HEAD "\"of another version\",\"data\":{}}",
        "{\"id\":\"00000000\",\"parent_id\":null,\"timestamp\":"
        "\"2026-01-02T03:04:05+01:30\",\"type\":\"session\",\"data\":{}}"};
    fuzz_give_all(take, arg, texts, sizeof texts / sizeof *texts);
    take(arg, fixed_header_entry, strlen(fixed_header_entry));
}

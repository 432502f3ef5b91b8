/*
 * fuzz_header.c: a session's header: what its entry says, and how its key is wrapped.
 *
 * The first byte chooses: 0 the rest is the entry's text; 1 it is the line of a sealed
 * header up to ,"commit"; 2 it is three names (each begins with its size) for a header of
 * our own.
 *
 * Holds: names of any bytes come back as they were; a key opens only out of the one line
 * that it was wrapped into.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "session/header.h"

static const char *const words[] = {"\"session\":\"a\"",
                                    "\"agent\":\"main\"",
                                    "\"user\":\"\"",
                                    "{\"b64\":\"AA==\"}",
                                    "\"title\":\"t\"",
                                    "\"created\":\"2026-01-02T03:04:05.678Z\"",
                                    ",\"suite\":\"",
                                    "aes-256-gcm",
                                    "xchacha20-poly1305",
                                    ",\"epoch\":1",
                                    ",\"user\":\"u\"",
                                    ",\"key\":\"",
                                    ",\"commitment\":\"",
                                    ",\"nonce\":\"0123456789abcdef\"",
                                    NULL};

const fuzz_about fuzz_this = {"header", 400000, 1 << 12, words};

static int same(const buf *b, sessile_slice s)
{
    return b->size == s.size && (s.size == 0 || memcmp(b->data, s.data, s.size) == 0);
}

static sessile_link link_of(const header_link *l)
{
    sessile_link link = {{l->id.data, l->id.size},
                         {l->agent.data, l->agent.size},
                         {l->user.data, l->user.size},
                         l->entry,
                         ""};
    memcpy(link.tag, l->tag, sizeof link.tag);
    return link;
}

static int same_link(const header_link *a, const header_link *b)
{
    sessile_link l = link_of(b);
    return a->entry == b->entry &&
           (a->entry == SESSILE_NO_ID ||
            (same(&a->id, l.id) && same(&a->agent, l.agent) && same(&a->user, l.user) &&
             strcmp(a->tag, b->tag) == 0));
}

/* Under another name a header says the same of everything else. */
static void renamed(const char *text, size_t size, const header *h)
{
    const session_names names = {{"b", 1}, {"\xff", 1}, {"", 0}, h->kind};
    buf out;
    entry e;
    header now;
    buf_init(&out, &allocator_default);
    header_init(&now, &allocator_default);
    FUZZ_CHECK(header_rename(&out, text, size, &names, NULL) == SESSILE_OK);
    FUZZ_CHECK(entry_read(&e, out.data, out.size, NULL) == SESSILE_OK);
    FUZZ_CHECK(header_read(&now, &e, NULL) == SESSILE_OK);
    FUZZ_CHECK(same(&now.id, names.id) && same(&now.agent, names.agent) &&
               now.user.size == 0 && now.created_ms == h->created_ms);
    FUZZ_CHECK(same(&now.title, (sessile_slice){h->title.data, h->title.size}));
    FUZZ_CHECK(same_link(&now.origin, &h->origin) && same_link(&now.parent, &h->parent));
    header_deinit(&now);
    buf_deinit(&out);
}

static void of_an_entry(const char *data, size_t size)
{
    sessile_error err = {0};
    buf checked;
    entry e;
    header h, again;
    buf_init(&checked, &allocator_default);
    if (!json_check(&checked, data, size, 64, NULL) &&
        !entry_read(&e, checked.data, checked.size, NULL)) {
        header_init(&h, &allocator_default);
        sessile_status status = header_read(&h, &e, &err);
        FUZZ_CHECK(status == SESSILE_OK || status == SESSILE_DAMAGED);
        if (!status) {
            session_names names = {{h.id.data, h.id.size},
                                   {h.agent.data, h.agent.size},
                                   {h.user.data, h.user.size},
                                   h.kind};
            buf text;
            buf_init(&text, &allocator_default);
            header_init(&again, &allocator_default);
            sessile_link origin = link_of(&h.origin), parent = link_of(&h.parent);
            header_fields fields = {
                .title = {h.title.data, h.title.size},
                .language = {h.language.data, h.language.size},
                .origin = h.origin.entry != SESSILE_NO_ID ? &origin : NULL,
                .parent = h.parent.entry != SESSILE_NO_ID ? &parent : NULL,
                .now_ms = h.created_ms};
            header_put(&text, &names, &fields);
            FUZZ_CHECK(!text.failed);
            FUZZ_CHECK(entry_read(&e, text.data, text.size, NULL) == SESSILE_OK);
            FUZZ_CHECK(header_read(&again, &e, NULL) == SESSILE_OK);
            FUZZ_CHECK(same(&again.id, names.id) && same(&again.agent, names.agent) &&
                       same(&again.user, names.user));
            FUZZ_CHECK(again.created_ms == h.created_ms);
            FUZZ_CHECK(same_link(&again.origin, &h.origin));
            FUZZ_CHECK(same_link(&again.parent, &h.parent));
            renamed(text.data, text.size, &again);
            header_deinit(&again);
            buf_deinit(&text);
        }
        header_deinit(&h);
    }
    buf_deinit(&checked);
}

static void of_a_line(const char *data, size_t size)
{
    sessile_error err = {0};
    size_t right = (size_t)(strstr(fixed_header, ",\"commit\"") - fixed_header);
    char *text = fuzz_copy(data, size);
    logkey k;
    sessile_status status = logkey_open(&k, fixed_keyring(1), text, size, &err);
    FUZZ_CHECK(status == err.code);
    if (!status) {
        FUZZ_CHECK(size == right && memcmp(text, fixed_header, right) == 0);
    } else {
        FUZZ_CHECK(k.key == NULL && k.suite == SUITE_NONE);
        FUZZ_CHECK(status == SESSILE_DAMAGED || status == SESSILE_SEALED ||
                   status == SESSILE_UNSUPPORTED);
        FUZZ_CHECK(utf8_valid(err.message, strlen(err.message)));
    }
    logkey_deinit(&k);
    free(text);
}

static void of_names(const uint8_t *data, size_t size)
{
    session_names names = {.kind = NAMES_SESSION};
    sessile_slice *parts[] = {&names.id, &names.agent, &names.user};
    for (size_t i = 0; i < 3; i++) {
        size_t n = size > 0 ? data[0] : 0;
        data += size > 0;
        size -= size > 0;
        n = n < size ? n : size;
        *parts[i] = (sessile_slice){(const char *)data, n};
        data += n;
        size -= n;
    }
    buf text, checked;
    entry e;
    header h;
    buf_init(&text, &allocator_default);
    buf_init(&checked, &allocator_default);
    header_init(&h, &allocator_default);
    sessile_link link = {names.id, names.agent, names.user, 7, "00ff"};
    header_fields fields = {
        .title = {"t", 1}, .origin = &link, .parent = &link, .now_ms = 1};
    header_put(&text, &names, &fields);
    FUZZ_CHECK(json_check(&checked, text.data, text.size, 64, NULL) == SESSILE_OK);
    FUZZ_CHECK(checked.size == text.size);
    FUZZ_CHECK(entry_read(&e, checked.data, checked.size, NULL) == SESSILE_OK);
    FUZZ_CHECK(header_read(&h, &e, NULL) == SESSILE_OK);
    FUZZ_CHECK(same(&h.id, names.id) && same(&h.agent, names.agent) &&
               same(&h.user, names.user));
    FUZZ_CHECK(h.origin.entry == 7 && same(&h.origin.id, names.id) &&
               same(&h.origin.agent, names.agent) && same(&h.origin.user, names.user));
    FUZZ_CHECK(same_link(&h.origin, &h.parent) && strcmp(h.origin.tag, "00ff") == 0);
    header_deinit(&h);
    buf_deinit(&text);
    buf_deinit(&checked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] % 3 == 0)
        of_an_entry((const char *)data + 1, size - 1);
    else if (data[0] % 3 == 1)
        of_a_line((const char *)data + 1, size - 1);
    else
        of_names(data + 1, size - 1);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char bytes[] =
        "{\"id\":\"00000000\",\"parent_id\":null,\"timestamp\":\"2026-01-02T03:04:05."
        "678Z\","
        "\"type\":\"session\",\"data\":{\"session\":{\"b64\":\"AP8=\"},\"agent\":\"a\","
        "\"user\":\"u\",\"title\":\"\\u00e9\"}}";
    static const char names[] = "\3abc\2\xff\x00\1u";
    fuzz_give(take, arg, 0, fixed_header_entry, strlen(fixed_header_entry));
    fuzz_give(take, arg, 0, bytes, strlen(bytes));
    fuzz_give(take, arg, 1, fixed_header,
              (size_t)(strstr(fixed_header, ",\"commit\"") - fixed_header));
    fuzz_give(take, arg, 2, names, sizeof names - 1);
}

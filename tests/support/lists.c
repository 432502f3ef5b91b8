/* lists.c: contexts written in a line. */
#include "support/lists.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tokens/tokens.h"

/* ------------------------------------------------------------------ words */

enum { JSON_SIZE = 4096 };

static void put_calls(char *out, size_t size, const char *ids, const char *output)
{
    size_t at = strlen(out);
    char id[64];
    const char *next;
    int any = 0;

    for (; *ids && *ids != '/'; ids = next) {
        size_t length = strcspn(ids, ",/");
        snprintf(id, sizeof id, "%.*s", (int)length, ids);
        at += (size_t)snprintf(out + at, size - at,
                               "%s{\"id\":\"%s\",\"name\":\"f\",\"arguments\":\"{}\"%s}",
                               any ? "," : "", id, output);
        any = 1;
        next = ids + length + (ids[length] == ',');
    }
}

static void put_blocks(char *out, size_t size, const char *ids, int results, int any)
{
    size_t at = strlen(out);
    const char *next;

    for (; *ids && *ids != '/'; ids = next) {
        size_t length = strcspn(ids, ",/");
        if (results)
            at += (size_t)snprintf(out + at, size - at,
                                   "%s{\"type\":\"tool_result\","
                                   "\"tool_use_id\":\"%.*s\",\"content\":\"done\"}",
                                   any ? "," : "", (int)length, ids);
        else
            at += (size_t)snprintf(out + at, size - at,
                                   "%s{\"type\":\"tool_use\","
                                   "\"id\":\"%.*s\",\"name\":\"f\",\"input\":{}}",
                                   any ? "," : "", (int)length, ids);
        any = 1;
        next = ids + length + (ids[length] == ',');
    }
}

static void put_text(char *out, const char *text)
{
    strcat(out, text);
}

char *word_json(const char *word, int number)
{
    char *out = calloc(1, JSON_SIZE), ids[256];
    const char *colon = strchr(word, ':');

    assert_non_null(out);
    snprintf(ids, sizeof ids, "%.*s", (int)strcspn(colon ? colon + 1 : "", "*"),
             colon ? colon + 1 : "");
    switch (*word) {
    case 's':
    case 'd':
    case 'u':
        snprintf(out, JSON_SIZE, "{\"role\":\"%s\",\"content\":\"message %d\"}",
                 *word == 's'   ? "system"
                 : *word == 'd' ? "developer"
                                : "user",
                 number);
        break;
    case 'n':
        snprintf(out, JSON_SIZE,
                 "{\"role\":\"user\",\"content\":\"message %d\","
                 "\"metadata\":{\"kind\":\"note\"}}",
                 number);
        break;
    case 'a':
    case 'o':
        snprintf(out, JSON_SIZE, "{\"role\":\"assistant\",\"content\":\"message %d\"",
                 number);
        if (*ids) {
            put_text(out, ",\"tool_calls\":[");
            put_calls(out, JSON_SIZE, ids, *word == 'o' ? ",\"output\":\"out\"" : "");
            put_text(out, "]");
        }
        put_text(out, "}");
        break;
    case 'p':
        put_text(out, "{\"role\":\"tool\",\"tool_calls\":[");
        put_calls(out, JSON_SIZE, ids, ",\"output\":\"out\"");
        put_text(out, "]}");
        break;
    case 'b':
        put_text(out, "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\","
                      "\"text\":\"thinking\"}");
        put_blocks(out, JSON_SIZE, ids, 0, 1);
        put_text(out, "]}");
        break;
    case 'r':
        snprintf(out, JSON_SIZE,
                 "{\"role\":\"tool\",\"tool_call_id\":\"%s\","
                 "\"content\":\"result %d\"}",
                 ids, number);
        break;
    case 'm':
    case 't':
        put_text(out, "{\"role\":\"user\",\"content\":[");
        put_blocks(out, JSON_SIZE, ids, 1, 0);
        put_text(out,
                 *word == 't' ? ",{\"type\":\"text\",\"text\":\"and go on\"}]}" : "]}");
        break;
    case 'x':
        put_text(out, "{\"role\":\"assistant\",\"content\":[");
        put_blocks(out, JSON_SIZE, ids, 0, 0);
        put_blocks(out, JSON_SIZE, strchr(ids, '/') + 1, 1, 1);
        put_text(out, "]}");
        break;
    default:
        fail_msg("no such word: %s", word);
    }
    return out;
}

/* ------------------------------------------------------------------ lists */

void list_make(list *l, const char *line)
{
    const allocator *a = &allocator_default;
    char *copy = strdup(line), *save = NULL, *word;
    uint32_t turn = 0;

    memset(l, 0, sizeof *l);
    context_init(&l->c, a);
    for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        size_t i = l->c.count, link_count = 0, capacity = 0;
        message_link *links = NULL;
        sessile_error err;
        item it;
        message m;
        char *text = word_json(word, (int)i + 1);

        if (message_read(&m, text, strlen(text), &links, &link_count, &capacity, a, &err))
            fail_msg("%s: %s", text, err.message);
        memset(&it, 0, sizeof it);
        turn += (m.flags & MESSAGE_STARTS_TURN) != 0;
        it.key.entry = (sessile_id)i + 1;
        it.tokens = (uint32_t)tokens_of_message(&m);
        it.turn = turn;
        it.role = (uint8_t)m.role;
        it.flags = (uint8_t)m.flags;
        if (strchr(word, '*'))
            it.flags |= ITEM_PINNED;
        it.link_count = (uint32_t)link_count;
        assert_int_equal(context_push_opening(&l->c, &it, links), 0);
        mem_free(a, links, capacity * sizeof *links);
        l->texts = realloc(l->texts, (i + 1) * sizeof *l->texts);
        l->texts[i] = text;
    }
    free(copy);
    l->c.upto = (sessile_id)l->c.count;
}

void list_free(list *l)
{
    size_t i;
    for (i = 0; i < l->c.count; i++)
        free(l->texts[i]);
    free(l->texts);
    context_deinit(&l->c);
}

sessile_status list_read(void *arg, sessile_key key, buf *out, sessile_error *err)
{
    list *l = arg;

    l->reads++;
    if (l->fail_at && key.entry == l->fail_at) {
        if (err) {
            err->code = SESSILE_IO;
            snprintf(err->message, sizeof err->message, "reading fails here");
        }
        return SESSILE_IO;
    }
    assert_int_equal(key.n, 0);
    assert_in_range(key.entry, 1, l->c.count);
    buf_puts(out, l->texts[key.entry - 1]);
    return SESSILE_OK;
}

sessile_state *list_state_with(list *l, uint32_t floor, int64_t window, int64_t reserve)
{
    sessile_state *s;
    sessile_error err;
    state_setup setup;

    memset(&setup, 0, sizeof setup);
    setup.context = &l->c;
    setup.previous = l->c.count;
    setup.window = window;
    setup.reserve = reserve;
    setup.floor = floor;
    setup.result_limit = 1 << 20;
    setup.vars_limit = 16 << 10;
    setup.depth = 128;
    setup.read = list_read;
    setup.read_arg = l;
    setup.alloc = &allocator_default;
    assert_int_equal(state_new(&s, &setup, &err), SESSILE_OK);
    assert_int_equal(state_hook_begin(s, NULL, 0, &err), SESSILE_OK);
    return s;
}

sessile_state *list_state(list *l)
{
    return list_state_with(l, 2, 0, 0);
}

const char *list_keys(const context *c)
{
    static char out[65536];
    size_t at = 0, i;

    out[0] = 0;
    for (i = 0; i < c->count; i++) {
        sessile_key key = c->items[i].key;
        int own = key.entry == SESSILE_NO_ID;
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%s%u", i ? " " : "",
                               own ? "+" : "", own ? key.n : key.entry);
    }
    return out;
}

/* ------------------------------------------------------------------ inserted */

static sessile_key *keys_made(const uint32_t *from, size_t count)
{
    sessile_key *out = count ? mem_zalloc(&allocator_default, count * sizeof *out) : NULL;
    size_t i;
    for (i = 0; i < count; i++)
        out[i].entry = from[i];
    return out;
}

inserted_message put_make(uint32_t n, const char *text, const uint32_t *covers,
                          size_t cover_count, const uint32_t *replaces,
                          size_t replace_count)
{
    const allocator *a = &allocator_default;
    size_t link_count = 0, capacity = 0;
    message_link *links = NULL;
    sessile_error err;
    message m;
    inserted_message w;

    if (message_read(&m, text, strlen(text), &links, &link_count, &capacity, a, &err))
        fail_msg("%s: %s", text, err.message);
    memset(&w, 0, sizeof w);
    w.json = strdup(text);
    w.size = strlen(text);
    w.columns.key.entry = SESSILE_NO_ID;
    w.columns.key.n = n;
    w.columns.tokens = (uint32_t)tokens_of_message(&m);
    w.columns.role = (uint8_t)m.role;
    w.columns.flags = (uint8_t)m.flags;
    w.columns.link_count = (uint32_t)link_count;
    w.links = links;
    w.covers = keys_made(covers, cover_count);
    w.cover_count = cover_count;
    w.replaces = keys_made(replaces, replace_count);
    w.replace_count = replace_count;
    return w;
}

void put_free(inserted_message *w)
{
    free(w->json);
    free(w->links);
    free(w->covers);
    free(w->replaces);
    memset(w, 0, sizeof *w);
}

/* ------------------------------------------------------------------ random lists */

static uint64_t seed, state;

void random_start(void)
{
    const char *given = getenv("SEED");
    seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 1000003u;
    state = seed;
}

uint64_t random_seed(void)
{
    return seed;
}

/* Knuth's 64-bit linear congruence; its high bits. */
uint32_t random_below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(((state >> 33) * n) >> 31);
}

static void add_word(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_word(char *out, size_t size, const char *format, ...)
{
    size_t at = strlen(out);
    va_list args;
    va_start(args, format);
    if (at + 32 < size) {
        if (at)
            out[at++] = ' ';
        vsnprintf(out + at, size - at, format, args);
    }
    va_end(args);
}

static char random_id(void)
{
    return (char)('x' + random_below(3) - (random_below(8) == 0 ? 20 : 0));
}

/* Calls and what becomes of them: answered in time, in part, late, twice, never. */
static void add_calls(char *out, size_t size)
{
    char a = random_id(), b = random_id();
    switch (random_below(9)) {
    case 0:
    case 1:
        add_word(out, size, "a:%c r:%c", a, a);
        break;
    case 2:
        add_word(out, size, "a:%c,%c r:%c r:%c", a, b, a, b);
        break;
    case 3:
        add_word(out, size, "b:%c,%c m:%c,%c", a, b, b, a);
        break;
    case 4:
        add_word(out, size, "a:%c,%c r:%c", a, b, b);
        break;
    case 5:
        add_word(out, size, "b:%c", a);
        break;
    case 6:
        add_word(out, size, "a:%c p:%c", a, a);
        break;
    case 7:
        add_word(out, size, "a:%c t:%c", a, a);
        break;
    default:
        add_word(out, size, "x:%c/%c", a, b);
        break;
    }
}

void random_line(char *out, size_t size, unsigned n)
{
    unsigned i;

    out[0] = 0;
    if (random_below(2))
        add_word(out, size, "s");
    for (i = 0; i < n; i++) {
        switch (random_below(12)) {
        case 0:
        case 1:
            add_word(out, size, "u");
            break;
        case 2:
            add_word(out, size, "a");
            break;
        case 3:
            add_word(out, size, random_below(2) ? "n" : "a*");
            break;
        case 4:
            add_word(out, size, "r:%c", random_id());
            break;
        case 5:
            add_word(out, size, "m:%c,%c", random_id(), random_id());
            break;
        case 6:
            add_word(out, size, "o:%c", random_id());
            break;
        case 7:
            add_word(out, size, random_below(4) ? "u" : "u*");
            break;
        default:
            add_calls(out, size);
            break;
        }
    }
    if (!out[0])
        add_word(out, size, "u");
}

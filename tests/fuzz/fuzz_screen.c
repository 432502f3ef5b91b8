/*
 * fuzz_screen.c: expressions and texts, what is removed from texts and from JSON, and
 * schemas.
 *
 * The first byte chooses. The rest has two parts with a zero byte between them: an
 * expression and a text, or a schema and a JSON text.
 *
 * Holds: with and without the filter an expression matches the same places, which lie in
 * the text, in order, between characters. What is removed is what was matched, and the
 * rest stays byte for byte. JSON stays JSON. A schema is refused with a reason or opened,
 * and answers; no message has a word of the text.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "codec/json.h"
#include "screen/pattern.h"
#include "screen/schema.h"
#include "screen/view.h"

static const char *const words[] = {"(",
                                    ")",
                                    "|",
                                    "[a-z]",
                                    "{2,3}",
                                    "(?i)",
                                    "(?=",
                                    "\\b",
                                    "\\K",
                                    "\\w+",
                                    "\\p{L}",
                                    "abc",
                                    "\\u0061",
                                    "\\\"",
                                    "\"a\":",
                                    "[removed: r]",
                                    "{\"",
                                    "\"}",
                                    "\\n",
                                    "\xc5\xbf",
                                    "\xe2\x84\xaa",
                                    "\xc3\xa4",
                                    "{\"type\":",
                                    "\"pattern\":\"",
                                    "\"$ref\":\"#\"",
                                    "\"properties\":{",
                                    "\"items\":",
                                    "\"allOf\":[",
                                    "\"uniqueItems\":true",
                                    "\"format\":\"date\"",
                                    NULL};

const fuzz_about fuzz_this = {"screen", 4000, 1 << 11, words};

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const struct {
        int how;
        const char *text;
        size_t size;
    } seeds[] = {
#define SEED(how, first, second) {how, first "\0" second, sizeof(first "\0" second) - 1}
        SEED(0, "ignore.{0,20}(rules|orders)", "Please IGNORE all the rules."),
        SEED(0, "key = \\K\\w+", "key = abc, key = def"),
        SEED(0, "\\bk\xc3\xa4s(?=e)", "K\xc3\x84SE"),
        SEED(0, "x*", "axxb"),
        SEED(1, "a.c", "{\"k\":\"a\\u0062c\",\"n\":[1,\"abc\"]}"),
        SEED(1, "one.*two", "[\"x one\",\"two y\"]"),
        SEED(1, "\\d+", "[12,\"a 12\"]"),
        SEED(2, "{\"type\":\"object\",\"properties\":{\"a\":{\"pattern\":\"^b+$\"}}}",
             "{\"a\":\"bb\"}"),
        SEED(2, "{\"allOf\":[{\"$ref\":\"#\"}]}", "1"),
        SEED(2, "{\"uniqueItems\":true,\"items\":{\"format\":\"date\"}}",
             "[\"2026-01-01\",\"x\"]"),
#undef SEED
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        fuzz_give(take, arg, seeds[i].how, seeds[i].text, seeds[i].size);
}

/* ------------------------------------------------------------------ matching */

static void check_places(const pattern_hits *hits, sessile_slice text)
{
    size_t end = 0;
    for (size_t i = 0; i < hits->count; i++) {
        const pattern_hit *h = &hits->list[i];
        FUZZ_CHECK(h->pattern == 0 && h->from < h->to && h->to <= text.size);
        FUZZ_CHECK(h->from >= end);
        FUZZ_CHECK(((unsigned char)text.data[h->from] & 0xc0) != 0x80);
        FUZZ_CHECK(h->to == text.size ||
                   ((unsigned char)text.data[h->to] & 0xc0) != 0x80);
        end = h->to;
    }
    FUZZ_CHECK(!hits->count || hits->matched);
}

/* The same places with and without the filter; hits: with it. */
static int match_both(pattern_set *set, sessile_slice text, pattern_hits *hits)
{
    pattern_hits all;
    sessile_error err;
    sessile_status with, without;

    pattern_hits_init(&all, &allocator_default);
    with = pattern_set_match(set, text, 1, os_current, hits, &err);
    without = pattern_set_match(set, text, 0, os_current, &all, &err);
    if (!without) { /* without the filter it may try too much; then nothing is known */
        FUZZ_CHECK(!with && hits->count == all.count && hits->matched == all.matched);
        for (size_t i = 0; i < all.count; i++)
            FUZZ_CHECK(hits->list[i].from == all.list[i].from &&
                       hits->list[i].to == all.list[i].to);
    }
    if (!with)
        check_places(hits, text);
    pattern_hits_deinit(&all);
    return with == SESSILE_OK;
}

/* What view_remove() should make of a text that is no JSON. */
static void check_removed(const pattern_hits *hits, sessile_slice text, const buf *left)
{
    buf expected;
    size_t at = 0;

    buf_init(&expected, &allocator_default);
    for (size_t i = 0; i < hits->count; i++) {
        const pattern_hit *h = &hits->list[i];
        buf_put(&expected, text.data + at, h->from - at);
        at = h->to;
        /* places that meet are one */
        if (i + 1 == hits->count || hits->list[i + 1].from != h->to)
            buf_puts(&expected, "[removed: r]");
    }
    buf_put(&expected, text.data + at, text.size - at);
    FUZZ_CHECK(expected.size == left->size &&
               (!left->size || !memcmp(expected.data, left->data, left->size)));
    buf_deinit(&expected);
}

static void remove_from(pattern_set *set, sessile_slice raw, int is_json)
{
    pattern_hits hits;
    view_spans spans;
    sessile_error err;
    size_t removed, i;
    int outside;
    buf left, checked;
    view v;

    FUZZ_CHECK(!view_make(&v, raw, is_json, &allocator_default, &err));
    pattern_hits_init(&hits, &allocator_default);
    view_spans_init(&spans, &allocator_default);
    buf_init(&left, &allocator_default);
    buf_init(&checked, &allocator_default);
    if (match_both(set, v.text, &hits)) {
        for (i = 0; i < hits.count; i++)
            FUZZ_CHECK(!view_spans_add(&spans, hits.list[i].from, hits.list[i].to, &err));
        FUZZ_CHECK(!view_remove(&v, &spans, "r", &left, &removed, &outside, &err));
        if (!is_json)
            check_removed(&hits, raw, &left);
        else
            FUZZ_CHECK(!json_check(&checked, left.data, left.size, 1008, &err));
        FUZZ_CHECK(hits.count || left.size == raw.size);
    }
    buf_deinit(&checked);
    buf_deinit(&left);
    view_spans_deinit(&spans);
    pattern_hits_deinit(&hits);
    view_deinit(&v);
}

static void fuzz_pattern(sessile_slice expression, sessile_slice text, int is_json)
{
    pattern_set *set;
    sessile_error err;
    buf checked;

    buf_init(&checked, &allocator_default);
    FUZZ_CHECK(!pattern_set_new(&set, &allocator_default, &err));
    if (!pattern_set_add(set, "p", expression, &err)) {
        pattern_set_ready(set);
        if (!is_json && utf8_valid(text.data, text.size))
            remove_from(set, text, 0);
        else if (is_json && !json_check(&checked, text.data, text.size, 128, &err))
            remove_from(set, text, 1);
    } else {
        FUZZ_CHECK(utf8_valid(err.message, strlen(err.message)));
    }
    pattern_set_free(set);
    buf_deinit(&checked);
}

/* ------------------------------------------------------------------ schemas */

static void fuzz_schema(sessile_slice text, sessile_slice value)
{
    const char *build = getenv("BUILD");
    char path[4200];
    schema_fault fault;
    sessile_error err;
    schema *s;

    snprintf(path, sizeof path, "%s/libexec/schema.so", build ? build : "build");
    if (schema_open(&s, text, path, &allocator_default, &err)) {
        FUZZ_CHECK(err.message[0]);
        return; /* wrong, or schema.so was not built */
    }
    if (!schema_check(s, value, &fault, &err) && fault.broken)
        FUZZ_CHECK(utf8_valid(fault.pointer, strlen(fault.pointer)));
    schema_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy;
    const char *zero;
    sessile_slice first, second;

    if (size < 2)
        return 0;
    copy = fuzz_copy(data + 1, size - 1);
    zero = memchr(copy, 0, size - 1);
    first = (sessile_slice){copy, zero ? (size_t)(zero - copy) : size - 1};
    second = (sessile_slice){zero ? zero + 1 : copy, zero ? size - 2 - first.size : 0};
    if (data[0] % 3 == 2)
        fuzz_schema(first, second);
    else
        fuzz_pattern(first, second, data[0] % 3);
    free(copy);
    return 0;
}

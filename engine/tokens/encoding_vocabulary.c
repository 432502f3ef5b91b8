/*
 * encoding_vocabulary.c: fills vocabularies, and recognizes published ones.
 *
 * Owns what a published name says beyond the tokens: the pattern and the special
 * tokens. Must never read a file.
 */
#include "tokens/encoding_vocabulary.h"

#include <string.h>

#include "base/text.h"
#include "tokens/pretoken.h"

void vocabulary_init(vocabulary *v, const allocator *a)
{
    memset(v, 0, sizeof *v);
    v->alloc = a;
    v->pattern = PRETOKEN_NONE;
    buf_init(&v->cuts, a);
    buf_init(&v->text, a);
}

void vocabulary_deinit(vocabulary *v)
{
    buf_deinit(&v->cuts);
    buf_deinit(&v->text);
    mem_free(v->alloc, v->tokens, v->capacity * sizeof *v->tokens);
    mem_free(v->alloc, v->added, v->added_capacity * sizeof *v->added);
    mem_free(v->alloc, v->merges, v->merge_capacity * sizeof *v->merges);
    v->tokens = v->added = NULL;
    v->merges = NULL;
}

static sessile_status put_token(vocabulary *v, vocabulary_token **list, size_t *count,
                                size_t *capacity, vocabulary_token token,
                                const void *bytes, sessile_error *err)
{
    if (*count >= VOCABULARY_MAX)
        return fail(err, SESSILE_LIMIT, "a vocabulary has at most %u tokens",
                    VOCABULARY_MAX);
    if (token.size > VOCABULARY_TEXT_MAX - v->text.size)
        return fail(err, SESSILE_LIMIT,
                    "the tokens of a vocabulary have at most %u bytes",
                    VOCABULARY_TEXT_MAX);
    token.offset = (uint32_t)v->text.size;
    buf_put(&v->text, bytes, token.size);
    if (v->text.failed ||
        mem_grow(v->alloc, (void **)list, capacity, *count + 1, sizeof(vocabulary_token)))
        return fail_nomem(err);
    (*list)[(*count)++] = token;
    return SESSILE_OK;
}

sessile_status vocabulary_add(vocabulary *v, uint32_t id, const void *bytes, size_t size,
                              sessile_error *err)
{
    vocabulary_token token = {.id = id, .size = (uint32_t)size};
    if (size == 0 || size > VOCABULARY_TEXT_MAX)
        return fail(err, SESSILE_INVALID, "token %u has %zu bytes", id, size);
    return put_token(v, &v->tokens, &v->count, &v->capacity, token, bytes, err);
}

sessile_status vocabulary_add_special(vocabulary *v, uint32_t id, uint32_t flags,
                                      const void *bytes, size_t size, sessile_error *err)
{
    vocabulary_token token = {.id = id, .size = (uint32_t)size, .flags = flags};
    if (size == 0 || size > VOCABULARY_TEXT_MAX)
        return fail(err, SESSILE_INVALID, "token %u has %zu bytes", id, size);
    return put_token(v, &v->added, &v->added_count, &v->added_capacity, token, bytes,
                     err);
}

sessile_status vocabulary_add_merge(vocabulary *v, uint32_t left, uint32_t right,
                                    uint32_t made, sessile_error *err)
{
    if (v->merge_count >= VOCABULARY_MAX)
        return fail(err, SESSILE_LIMIT, "a vocabulary has at most %u merges",
                    VOCABULARY_MAX);
    if (mem_grow(v->alloc, (void **)&v->merges, &v->merge_capacity, v->merge_count + 1,
                 sizeof *v->merges))
        return fail_nomem(err);
    v->merges[v->merge_count++] = (vocabulary_merge){left, right, made};
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ known ones */

typedef struct special {
    uint32_t id;
    const char *text;
} special;

typedef struct known {
    const char *name;
    unsigned pattern;
    uint32_t tokens; /* without special ones */
    uint32_t probe;  /* a token that tells it from others of that size … */
    const char *probe_text;
    special specials[6];
} known;

static const known encodings[] = {
    {"cl100k_base",
     PRETOKEN_CL100K,
     100256,
     100255,
     " Conveyor",
     {{100257, "<|endoftext|>"},
      {100258, "<|fim_prefix|>"},
      {100259, "<|fim_middle|>"},
      {100260, "<|fim_suffix|>"},
      {100276, "<|endofprompt|>"}}},
    {"o200k_base",
     PRETOKEN_O200K,
     199998,
     199997,
     " cocos",
     {{199999, "<|endoftext|>"}, {200018, "<|endofprompt|>"}}},
    {"r50k_base", PRETOKEN_GPT2, 50256, 50255, " gazed", {{50256, "<|endoftext|>"}}},
    {"p50k_base", PRETOKEN_GPT2, 50280, 50255, " gazed", {{50256, "<|endoftext|>"}}},
};
#define KNOWN (sizeof encodings / sizeof *encodings)

int vocabulary_known(vocabulary *v, const char *name)
{
    size_t i, j;
    for (i = 0; i < KNOWN && strcmp(encodings[i].name, name) != 0; i++)
        continue;
    if (i == KNOWN)
        return -1;
    v->pattern = encodings[i].pattern;
    for (j = 0; encodings[i].specials[j].text; j++) {
        const special *s = &encodings[i].specials[j];
        if (vocabulary_add_special(v, s->id, ADDED_SPECIAL, s->text, strlen(s->text),
                                   NULL))
            v->text.failed = 1;
    }
    return 0;
}

const char *vocabulary_recognise(const vocabulary *v)
{
    size_t i, j;
    for (i = 0; i < KNOWN; i++) {
        const known *k = &encodings[i];
        if (v->count != k->tokens)
            continue;
        for (j = 0; j < v->count; j++) {
            const vocabulary_token *t = &v->tokens[j];
            if (t->id == k->probe && t->size == strlen(k->probe_text) &&
                !memcmp(v->text.data + t->offset, k->probe_text, t->size))
                return k->name;
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------ rank files */

sessile_status vocabulary_read_packed(vocabulary *v, const void *data, size_t size,
                                      sessile_error *err)
{
    const unsigned char *at = data, *end = at + size;
    sessile_status status;

    while (at < end) {
        size_t length = *at++;
        if (length == 0 || length > (size_t)(end - at))
            return fail(err, SESSILE_INVALID, "token %zu is cut short", v->count);
        status = vocabulary_add(v, (uint32_t)v->count, at, length, err);
        if (status)
            return status;
        at += length;
    }
    v->flags |= VOCABULARY_WHOLE;
    return SESSILE_OK;
}

/* A decimal number of at most 32 bits that fills the whole span: 0, or -1. */
static int number(const char *at, size_t size, uint32_t *out)
{
    uint64_t n = 0;
    size_t i;
    if (size == 0 || size > 10)
        return -1;
    for (i = 0; i < size; i++) {
        if (at[i] < '0' || at[i] > '9')
            return -1;
        n = n * 10 + (uint64_t)(at[i] - '0');
    }
    *out = (uint32_t)n;
    return n > UINT32_MAX ? -1 : 0;
}

static sessile_status tiktoken_line(vocabulary *v, const char *at, size_t size,
                                    size_t line, sessile_error *err)
{
    unsigned char bytes[VOCABULARY_TOKEN_MAX + 8]; /* room for a quad more */
    const char *space = memchr(at, ' ', size);
    int64_t length = -1;
    uint32_t id;

    if (space && (size_t)(space - at) <= (VOCABULARY_TOKEN_MAX + 2) / 3 * 4)
        length = base64_decode(bytes, at, (size_t)(space - at));
    if (length <= 0 || length > VOCABULARY_TOKEN_MAX ||
        number(space + 1, size - (size_t)(space + 1 - at), &id))
        return fail(err, SESSILE_INVALID,
                    "line %zu is not a token in base64 (of at most %d bytes), a space, "
                    "and its rank",
                    line, VOCABULARY_TOKEN_MAX);
    return vocabulary_add(v, id, bytes, (size_t)length, err);
}

sessile_status vocabulary_read_tiktoken(vocabulary *v, const char *data, size_t size,
                                        sessile_error *err)
{
    const char *at = data, *end = data + size;
    size_t line = 0;
    sessile_status status;

    while (at < end) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((next ? next : end) - at);
        line++;
        if (length > 0 && at[length - 1] == '\r')
            length--;
        status = length ? tiktoken_line(v, at, length, line, err) : SESSILE_OK;
        if (status)
            return status;
        at = next ? next + 1 : end;
    }
    if (v->count == 0)
        return fail(err, SESSILE_INVALID, "there is no token in it");
    v->flags |= VOCABULARY_WHOLE;
    return SESSILE_OK;
}

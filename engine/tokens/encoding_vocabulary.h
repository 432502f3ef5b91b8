/*
 * encoding_vocabulary.h: an encoding as files describe it, before it becomes an image.
 *
 * One of the readers below fills it. Tokens may come in any order.
 */
#ifndef TOKENS_ENCODING_VOCABULARY_H
#define TOKENS_ENCODING_VOCABULARY_H

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* Flags of a vocabulary, and of its image. */
enum {
    /* A piece that is a token is that token, even if merges would not produce it. */
    VOCABULARY_WHOLE = 1,
    /* A text that does not begin with a space gets one. */
    VOCABULARY_SPACE = 2,
    VOCABULARY_FLAGS = 3
};
/* Flags of an added token. */
enum {
    ADDED_SPECIAL = 1, /* ordinary text when counting; known when decoding */
    ADDED_FOUND = 2,   /* found in a text before it is split */
    ADDED_FLAGS = 3
};

/* The most tokens, and the most merges, that there may be. */
#define VOCABULARY_MAX ((UINT32_C(1) << 21) - 1)
/* The most bytes of all tokens, and of all else. */
#define VOCABULARY_TEXT_MAX (UINT32_C(1) << 28)
/* The longest token of a vocabulary that lists no merges: they are searched for. */
#define VOCABULARY_TOKEN_MAX 256

typedef struct vocabulary_token {
    uint32_t id, offset, size; /* of its bytes in text */
    uint32_t flags;            /* of an added one */
} vocabulary_token;

typedef struct vocabulary_merge {
    uint32_t left, right, made; /* ids */
} vocabulary_merge;

typedef struct vocabulary {
    const allocator *alloc;
    char name[64];
    uint32_t flags;
    uint32_t pattern; /* PRETOKEN_…; PRETOKEN_KINDS: what is in `cuts` */
    buf cuts;
    buf text;
    vocabulary_token *tokens;
    size_t count, capacity;
    vocabulary_token *added;
    size_t added_count, added_capacity;
    /* In the order of their ranks. If they are not listed, two tokens merge into the
     * token that has the bytes of both, with the lowest id. */
    int listed;
    vocabulary_merge *merges;
    size_t merge_count, merge_capacity;
} vocabulary;

void vocabulary_init(vocabulary *v, const allocator *a);
void vocabulary_deinit(vocabulary *v);
/* Appends a token, or an added one. LIMIT, NOMEM. */
sessile_status vocabulary_add(vocabulary *v, uint32_t id, const void *bytes, size_t size,
                              sessile_error *err);
sessile_status vocabulary_add_special(vocabulary *v, uint32_t id, uint32_t flags,
                                      const void *bytes, size_t size, sessile_error *err);
sessile_status vocabulary_add_merge(vocabulary *v, uint32_t left, uint32_t right,
                                    uint32_t made, sessile_error *err);
/* Sets the pattern and special tokens of an encoding by its name: 0; -1: unknown. Does
 * not replace what is set. A failed allocation shows in v->text. */
int vocabulary_known(vocabulary *v, const char *name);
/* Recognizes a published vocabulary by its size and some of its tokens; NULL: none. */
const char *vocabulary_recognise(const vocabulary *v);

/* Tokens in the order of their ids from 0, each as one byte of size and its bytes.
 * INVALID. */
sessile_status vocabulary_read_packed(vocabulary *v, const void *data, size_t size,
                                      sessile_error *err);
/* A `.tiktoken` file: lines of base64, a space, the id. INVALID names the line. */
sessile_status vocabulary_read_tiktoken(vocabulary *v, const char *data, size_t size,
                                        sessile_error *err);
/* A `tokenizer.json`. INVALID; UNSUPPORTED names the part of another kind. */
sessile_status vocabulary_read_json(vocabulary *v, const char *data, size_t size,
                                    sessile_error *err);

#endif

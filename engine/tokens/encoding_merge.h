/* encoding_merge.h: merges the bytes of one piece into tokens. */
#ifndef TOKENS_ENCODING_MERGE_H
#define TOKENS_ENCODING_MERGE_H

#include "tokens/encoding_image.h"

/* Pieces up to this size are merged without heap memory. */
#define MERGE_SMALL 96

/* Merges size bytes (1 to MERGE_SMALL) into tokens and returns how many. */
size_t merge_small(const image *i, const unsigned char *text, size_t size,
                   uint32_t tokens[MERGE_SMALL]);

/* Memory for larger pieces, reused from one to the next. */
typedef struct merge_room {
    const allocator *alloc;
    void *memory;
    size_t capacity; /* bytes at memory */
} merge_room;

/* The same for pieces of any size below 2^32; *tokens points into the room. 0, or -1: no
 * memory. Takes time in proportion to size * log(size) at most. */
int merge_large(const image *i, const unsigned char *text, size_t size, merge_room *room,
                uint32_t **tokens, size_t *count);

#endif

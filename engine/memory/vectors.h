/*
 * vectors.h: embeddings, and how near entries are to a question.
 *
 * A vector is kept as one byte for each dimension and a scale, so that
 * cos(a, b) = a.scale * b.scale * sum(a[i] * b[i]). The sum is of integers, and the same
 * on every processor. Not thread-safe.
 */
#ifndef MEMORY_VECTORS_H
#define MEMORY_VECTORS_H

#include <math.h>
#include <stdint.h>

#include "base/alloc.h"

#define VECTOR_DIMS_MAX 4096

/* Of a unit vector v: values[i] is about v[i] / scale, from -127 to 127. */
typedef enum vector_fault { VECTOR_GOOD, VECTOR_NOT_FINITE, VECTOR_ZERO } vector_fault;
/* Normalises and quantises. values has room for dims. */
vector_fault vector_quantise(const float *from, size_t dims, int8_t *values,
                             float *scale);
/* Whether values can be a vector's: none is -128, whose products would not fit. */
int vector_good(const int8_t *values, size_t dims);
/* The scale of good values: 0 when all are 0. */
float vector_scale(const int8_t *values, size_t dims);

/* The sum of products of `size` values, a multiple of 32; none of them is -128. The
 * fastest way that this processor has, and plain C. */
int32_t vector_dot(const int8_t *a, const int8_t *b, size_t size);
int32_t vector_dot_plain(const int8_t *a, const int8_t *b, size_t size);

/* The vectors of one model. Rows are padded with zeros to a multiple of 32. They are in
 * pieces of per_piece rows each, which do not move while others are added. */
typedef struct vectors {
    const allocator *alloc;
    size_t dims, stride, per_piece;
    int8_t **pieces;
    size_t piece_count, piece_capacity;
    float *scales;
    size_t scale_capacity;
    uint32_t *entries; /* of each row */
    size_t entry_capacity;
    uint32_t *row_of; /* of each entry: its row, or UINT32_MAX */
    size_t row_of_count, row_of_capacity;
    size_t count;
} vectors;

void vectors_init(vectors *v, size_t dims, const allocator *a);
void vectors_deinit(vectors *v);
/* Sets the vector of an entry; a newer one replaces it. 0, or -1: no memory. */
int vectors_put(vectors *v, uint32_t entry, const int8_t *values, float scale);
/* Of an entry: v->stride values, which stay where they are; NULL: it has none. */
const int8_t *vectors_get(const vectors *v, uint32_t entry, float *scale);

/* What stands for "no vector": below every cosine and every outside score. */
#define VECTOR_NONE (-INFINITY)
/* The cosine of each of `count` entries to a question of v->stride values (padded with
 * zeros), VECTOR_NONE where an entry has no vector. */
void vectors_score(const vectors *v, const int8_t *question, float scale, float *cosines,
                   size_t count);

size_t vectors_bytes(const vectors *v);

#endif

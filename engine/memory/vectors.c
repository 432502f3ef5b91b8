/*
 * vectors.c: embeddings as bytes, all of them scanned.
 *
 * A scan of 100,000 vectors of 384 dimensions takes about 2 ms, as long as reading their
 * bytes from memory once. A graph of neighbours would be faster from some 200,000 on, but
 * it finds most neighbours, not all; it makes additions slow; and it would have to be
 * sealed.
 *
 * The scale of a row is 1 / length of its values, so that rounding does not make a vector
 * longer than another: cosines stay within -1 and 1.
 */
#include "memory/vectors.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_AVX2 1
#include <immintrin.h>
#endif

enum { PIECE = 64 << 10 }; /* bytes of rows that are allocated together */

/* ------------------------------------------------------------------ bytes of a vector */

vector_fault vector_quantise(const float *from, size_t dims, int8_t *values, float *scale)
{
    double largest = 0;

    *scale = 0;
    for (size_t i = 0; i < dims; i++) {
        if (!isfinite(from[i]))
            return VECTOR_NOT_FINITE;
        if (fabs((double)from[i]) > largest)
            largest = fabs((double)from[i]);
    }
    if (largest == 0)
        return VECTOR_ZERO;
    for (size_t i = 0; i < dims; i++)
        values[i] = (int8_t)lround((double)from[i] / largest * 127);
    *scale = vector_scale(values, dims);
    return VECTOR_GOOD;
}

int vector_good(const int8_t *values, size_t dims)
{
    return !memchr(values, (unsigned char)INT8_MIN, dims);
}

float vector_scale(const int8_t *values, size_t dims)
{
    size_t most = dims / 32 * 32; /* what vector_dot() takes */
    int64_t sum = (int64_t)vector_dot(values, values, most) +
                  vector_dot_plain(values + most, values + most, dims - most);
    return sum ? (float)(1 / sqrt((double)sum)) : 0;
}

/* ------------------------------------------------------------------ products */

int32_t vector_dot_plain(const int8_t *a, const int8_t *b, size_t size)
{
    int32_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += (int32_t)a[i] * b[i];
    return sum;
}

#ifdef HAS_AVX2
/* maddubs multiplies bytes without sign by bytes with one: |a| by b with the sign of a.
 * Two products are at most 2 * 127 * 127, which 16 bits hold. */
__attribute__((target("avx2"))) static int32_t dot_avx2(const int8_t *a, const int8_t *b,
                                                        size_t size)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum = _mm256_setzero_si256();
    __m128i half;

    for (size_t i = 0; i < size; i += 32) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(a + i));
        __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)(b + i));
        __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(x), _mm256_sign_epi8(y, x));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
    }
    half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
    return _mm_cvtsi128_si32(half);
}
#endif

typedef int32_t (*dot_function)(const int8_t *a, const int8_t *b, size_t size);

static dot_function best_dot(void)
{
#ifdef HAS_AVX2
    if (__builtin_cpu_supports("avx2"))
        return dot_avx2;
#endif
    return vector_dot_plain;
}

int32_t vector_dot(const int8_t *a, const int8_t *b, size_t size)
{
    return best_dot()(a, b, size);
}

/* ------------------------------------------------------------------ the set */

void vectors_init(vectors *v, size_t dims, const allocator *a)
{
    memset(v, 0, sizeof *v);
    v->alloc = a;
    v->dims = dims;
    v->stride = (dims + 31) / 32 * 32;
    v->per_piece = v->stride ? PIECE / v->stride : 1;
}

void vectors_deinit(vectors *v)
{
    const allocator *a = v->alloc;
    size_t size = v->per_piece * v->stride;
    for (size_t i = 0; i < v->piece_count; i++) {
        wipe(v->pieces[i], size);
        mem_free(a, v->pieces[i], size);
    }
    mem_free(a, v->pieces, v->piece_capacity * sizeof *v->pieces);
    mem_free(a, v->scales, v->scale_capacity * sizeof *v->scales);
    mem_free(a, v->entries, v->entry_capacity * sizeof *v->entries);
    mem_free(a, v->row_of, v->row_of_capacity * sizeof *v->row_of);
    vectors_init(v, v->dims, a);
}

static uint32_t find_row(const vectors *v, uint32_t entry)
{
    return entry < v->row_of_count ? v->row_of[entry] : UINT32_MAX;
}

static int8_t *row_at(const vectors *v, size_t row)
{
    return v->pieces[row / v->per_piece] + row % v->per_piece * v->stride;
}

/* Memory for one more row. */
static int reserve_row(vectors *v, uint32_t entry)
{
    if (v->count == v->piece_count * v->per_piece) {
        if (mem_grow(v->alloc, (void **)&v->pieces, &v->piece_capacity,
                     v->piece_count + 1, sizeof *v->pieces) ||
            !(v->pieces[v->piece_count] = mem_alloc(v->alloc, v->per_piece * v->stride)))
            return -1;
        v->piece_count++;
    }
    if (mem_grow(v->alloc, (void **)&v->scales, &v->scale_capacity, v->count + 1,
                 sizeof *v->scales) ||
        mem_grow(v->alloc, (void **)&v->entries, &v->entry_capacity, v->count + 1,
                 sizeof *v->entries) ||
        mem_grow(v->alloc, (void **)&v->row_of, &v->row_of_capacity, (size_t)entry + 1,
                 sizeof *v->row_of))
        return -1;
    while (v->row_of_count <= entry)
        v->row_of[v->row_of_count++] = UINT32_MAX;
    return 0;
}

int vectors_put(vectors *v, uint32_t entry, const int8_t *values, float scale)
{
    size_t row = find_row(v, entry);
    int8_t *at;

    if (row == UINT32_MAX) {
        if (reserve_row(v, entry))
            return -1;
        row = v->count++;
        v->row_of[entry] = (uint32_t)row;
        v->entries[row] = entry;
    }
    at = row_at(v, row);
    memcpy(at, values, v->dims);
    memset(at + v->dims, 0, v->stride - v->dims);
    v->scales[row] = scale;
    return 0;
}

const int8_t *vectors_get(const vectors *v, uint32_t entry, float *scale)
{
    uint32_t row = find_row(v, entry);
    if (row == UINT32_MAX)
        return NULL;
    *scale = v->scales[row];
    return row_at(v, row);
}

void vectors_score(const vectors *v, const int8_t *question, float scale, float *cosines,
                   size_t count)
{
    dot_function dot = best_dot();

    for (size_t i = 0; i < count; i++)
        cosines[i] = VECTOR_NONE;
    for (size_t i = 0; i < v->count;) {
        const int8_t *row = row_at(v, i);
        size_t end = i + v->per_piece < v->count ? i + v->per_piece : v->count;
        for (; i < end; i++, row += v->stride)
            if (v->entries[i] < count)
                cosines[v->entries[i]] =
                    (float)dot(row, question, v->stride) * (scale * v->scales[i]);
    }
}

size_t vectors_bytes(const vectors *v)
{
    return sizeof *v + v->piece_count * v->per_piece * v->stride +
           v->piece_capacity * sizeof *v->pieces + v->scale_capacity * sizeof *v->scales +
           v->entry_capacity * sizeof *v->entries +
           v->row_of_capacity * sizeof *v->row_of;
}

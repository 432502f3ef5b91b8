/*
 * postings.c: an inverted index in memory.
 *
 * The problem: rate all entries for a question within a fraction of a millisecond, at
 * about 30 bytes an entry, while entries begin and end to live at any time.
 *
 * The choice: lists only grow. An entry that does not live any more stays in its lists,
 * and whoever asks skips it. Only the number of live entries of a term is needed for its
 * weight; it is counted along the list when somebody asks for the term after something
 * changed. So ending an entry costs nothing, and needs none of its text.
 *
 * Rejected: taking an entry out of its lists (its text must be read and cut again); a
 * list of the terms of each entry (twice the memory).
 */
#include "memory/postings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"

#define K          0.9
#define B          0.4
#define HALF       0.5 /* the weight of FIELD_ALSO */
#define LENGTH_MAX 65535

void postings_init(postings *p, const allocator *a)
{
    memset(p, 0, sizeof *p);
    p->alloc = a;
    for (int f = 0; f < FIELDS; f++)
        map_init(&p->fields[f].terms, a);
}

void postings_deinit(postings *p)
{
    const allocator *a = p->alloc;
    for (int f = 0; f < FIELDS; f++) {
        posting_field *field = &p->fields[f];
        for (size_t i = 0; i < field->count; i++)
            if (field->lists[i].capacity)
                mem_free(a, field->lists[i].bytes.far, field->lists[i].capacity);
        mem_free(a, field->lists, field->capacity * sizeof *field->lists);
        mem_free(a, field->lengths, field->length_capacity * sizeof *field->lengths);
        map_deinit(&field->terms);
    }
    mem_free(a, p->live, p->live_capacity * sizeof *p->live);
    mem_free(a, p->marked, p->marked_capacity * sizeof *p->marked);
    mem_free(a, p->ratings, p->rating_capacity * sizeof *p->ratings);
    postings_init(p, a);
}

/* ------------------------------------------------------------------ lists */

static const unsigned char *list_bytes(const posting_list *list)
{
    return list->capacity ? list->bytes.far : list->bytes.near;
}

static int list_reserve(const allocator *a, posting_list *list, size_t more)
{
    size_t need = list->size + more, capacity = list->capacity;
    unsigned char *far;

    if (need <= (capacity ? capacity : sizeof list->bytes.near))
        return 0;
    capacity = capacity ? capacity + capacity / 2 : 2 * sizeof list->bytes.near;
    if (capacity < need)
        capacity = need;
    if (capacity > UINT32_MAX)
        return -1;
    far =
        mem_realloc(a, list->capacity ? list->bytes.far : NULL, list->capacity, capacity);
    if (!far)
        return -1;
    if (!list->capacity)
        memcpy(far, list->bytes.near, list->size);
    list->bytes.far = far;
    list->capacity = (uint32_t)capacity;
    return 0;
}

static size_t put_number(unsigned char *out, uint64_t n)
{
    size_t size = 0;
    while (n >= 0x80) {
        out[size++] = (unsigned char)(n | 0x80);
        n >>= 7;
    }
    out[size++] = (unsigned char)n;
    return size;
}

static inline uint64_t get_number(const unsigned char **at)
{
    uint64_t n = **at & 0x7f;
    for (unsigned shift = 7; *(*at)++ & 0x80; shift += 7)
        n |= (uint64_t)(**at & 0x7f) << shift;
    return n;
}

/* Most counts are 1, which costs one bit beside the distance. */
static int list_put(const allocator *a, posting_list *list, uint32_t entry,
                    uint32_t times)
{
    unsigned char bytes[16];
    size_t size = put_number(bytes, (uint64_t)(entry - list->next) << 1 | (times > 1));
    if (times > 1)
        size += put_number(bytes + size, times);
    if (list_reserve(a, list, size))
        return -1;
    memcpy((list->capacity ? list->bytes.far : list->bytes.near) + list->size, bytes,
           size);
    list->size += (uint32_t)size;
    list->next = entry + 1;
    return 0;
}

typedef struct list_walk {
    const unsigned char *at, *end;
    uint32_t entry, times;
    uint32_t next;
} list_walk;

static list_walk list_begin(const posting_list *list)
{
    const unsigned char *at = list_bytes(list);
    return (list_walk){.at = at, .end = at + list->size};
}

static inline int list_next(list_walk *k)
{
    uint64_t n;
    if (k->at == k->end)
        return 0;
    n = get_number(&k->at);
    k->entry = k->next + (uint32_t)(n >> 1);
    k->times = n & 1 ? (uint32_t)get_number(&k->at) : 1;
    k->next = k->entry + 1;
    return 1;
}

/* ------------------------------------------------------------------ adding */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static posting_list *find_list(const posting_field *field, uint64_t term)
{
    uint32_t index;
    return map_get(&field->terms, term, &index) ? &field->lists[index] : NULL;
}

static posting_list *make_list(postings *p, posting_field *field, uint64_t term)
{
    posting_list *list = find_list(field, term);
    if (list)
        return list;
    if (mem_grow(p->alloc, (void **)&field->lists, &field->capacity, field->count + 1,
                 sizeof *field->lists) ||
        map_put(&field->terms, term, (uint32_t)field->count))
        return NULL;
    list = &field->lists[field->count++];
    memset(list, 0, sizeof *list);
    list->counted = p->changes;
    return list;
}

/* Before an entry is put into a list. */
static void mark_list(postings *p, int f, uint64_t term, const posting_list *list)
{
    if (p->marking <= 0 || list->next > p->mark)
        return;
    if (mem_grow(p->alloc, (void **)&p->marked, &p->marked_capacity, p->marked_count + 1,
                 sizeof *p->marked)) {
        p->marking = -1;
        return;
    }
    p->marked[p->marked_count++] =
        (posting_mark){.term = term,
                       .list = (uint32_t)(list - p->fields[f].lists),
                       .size = list->size,
                       .next = list->next,
                       .field = f};
}

static int add_field(postings *p, int f, posting_terms terms, int live)
{
    posting_field *field = &p->fields[f];
    size_t i, same;

    if (mem_grow(p->alloc, (void **)&field->lengths, &field->length_capacity,
                 (size_t)p->count + 1, sizeof *field->lengths))
        return -1;
    if (terms.count)
        qsort(terms.at, terms.count, sizeof *terms.at, by_value);
    for (i = 0; i < terms.count; i += same) {
        posting_list *list = make_list(p, field, terms.at[i]);
        for (same = 1; i + same < terms.count && terms.at[i + same] == terms.at[i];)
            same++;
        if (!list)
            return -1;
        mark_list(p, f, terms.at[i], list);
        if (list_put(p->alloc, list, p->count, (uint32_t)same))
            return -1;
        list->live += live != 0; /* means something while it is counted */
    }
    field->lengths[p->count] =
        (uint16_t)(terms.count < LENGTH_MAX ? terms.count : LENGTH_MAX);
    return 0;
}

static void count_live(postings *p, uint32_t entry, int live)
{
    uint64_t bit = UINT64_C(1) << entry % 64;
    for (int f = 0; f < FIELDS; f++) {
        posting_field *field = &p->fields[f];
        uint16_t length = field->lengths[entry];
        field->live_length += live ? length : -(uint64_t)length;
        field->live_filled += live ? length > 0 : -(uint32_t)(length > 0);
    }
    p->live_count += live ? 1 : -(uint32_t)1;
    p->live[entry / 64] = live ? p->live[entry / 64] | bit : p->live[entry / 64] & ~bit;
}

int postings_add(postings *p, const posting_terms terms[FIELDS], int live)
{
    size_t words = p->live_capacity;

    if (p->failed || p->count == UINT32_MAX)
        return -1;
    p->failed = 1;
    if (mem_grow(p->alloc, (void **)&p->live, &p->live_capacity, p->count / 64 + 1,
                 sizeof *p->live))
        return -1;
    memset(p->live + words, 0, (p->live_capacity - words) * sizeof *p->live);
    for (int f = 0; f < FIELDS; f++)
        if (add_field(p, f, terms[f], live))
            return -1;
    if (live)
        count_live(p, p->count, 1);
    p->count++;
    p->failed = 0;
    return 0;
}

void postings_set_live(postings *p, uint32_t entry, int live)
{
    if (postings_is_live(p, entry) == (live != 0))
        return;
    count_live(p, entry, live);
    p->changes++;
}

/* ------------------------------------------------------------------ packed */

/* For each term: its bare hash (8 bytes), the size of a list, and the list, in which the
 * first distance is from the first of the packed entries. */

void postings_mark(postings *p)
{
    p->marked_count = 0;
    p->mark = p->count;
    p->marking = 1;
}

int postings_pack(const postings *p, int field, buf *out)
{
    for (size_t i = 0; i < p->marked_count && p->marking > 0; i++) {
        const posting_mark *m = &p->marked[i];
        const posting_list *list = &p->fields[m->field].lists[m->list];
        const unsigned char *at = list_bytes(list) + m->size;
        const unsigned char *end = list_bytes(list) + list->size;
        unsigned char first[16], size[16];
        size_t first_size;
        uint64_t n;
        if (m->field != field)
            continue;
        n = get_number(&at);
        first_size = put_number(
            first, (uint64_t)(m->next + (uint32_t)(n >> 1) - p->mark) << 1 | (n & 1));
        wire_put_u64(out, hash64_bare(m->term));
        buf_put(out, size, put_number(size, first_size + (size_t)(end - at)));
        buf_put(out, first, first_size);
        buf_put(out, at, (size_t)(end - at));
    }
    return p->marking > 0 && !out->failed ? 0 : -1;
}

int postings_extend(postings *p, uint16_t lengths[][FIELDS], size_t count)
{
    size_t words = p->live_capacity, all = p->count + count;

    if (p->failed || all > UINT32_MAX)
        return -1;
    if (mem_grow(p->alloc, (void **)&p->live, &p->live_capacity, all / 64 + 1,
                 sizeof *p->live))
        return -1;
    memset(p->live + words, 0, (p->live_capacity - words) * sizeof *p->live);
    for (int f = 0; f < FIELDS; f++) {
        posting_field *field = &p->fields[f];
        if (mem_grow(p->alloc, (void **)&field->lengths, &field->length_capacity, all,
                     sizeof *field->lengths))
            return -1;
        for (size_t i = 0; i < count; i++)
            field->lengths[p->count + i] = lengths[i][f];
    }
    p->count = (uint32_t)all;
    return 0;
}

/* As get_number(), of bytes that may be anything: 0, or -1. */
static int read_number(const unsigned char **at, const unsigned char *end, uint64_t *n)
{
    *n = 0;
    for (unsigned shift = 0; *at < end && shift < 35; shift += 7) {
        unsigned char byte = *(*at)++;
        *n |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return 0;
    }
    return -1;
}

/* Appends a packed list of entries from `first` to the one before p->count. */
static int unpack_list(postings *p, posting_list *list, uint32_t first,
                       const unsigned char *at, const unsigned char *end)
{
    unsigned char head[16];
    const unsigned char *rest;
    uint64_t n, times, next = first;
    size_t size;

    if (list->next > first || read_number(&at, end, &n))
        return 1;
    size = put_number(head, (first - list->next + (n >> 1)) << 1 | (n & 1));
    for (rest = at;;) {
        next += (n >> 1) + 1;
        if (next > p->count ||
            (n & 1 && (read_number(&at, end, &times) || times < 2 || times > UINT32_MAX)))
            return 1;
        if (at == end)
            break;
        if (read_number(&at, end, &n))
            return 1;
    }
    if (list_reserve(p->alloc, list, size + (size_t)(end - rest)))
        return -1;
    at = list_bytes(list);
    memcpy((unsigned char *)(uintptr_t)at + list->size, head, size);
    memcpy((unsigned char *)(uintptr_t)at + list->size + size, rest,
           (size_t)(end - rest));
    list->size += (uint32_t)(size + (size_t)(end - rest));
    list->next = (uint32_t)next;
    return 0;
}

/* Finds the packed lists, into p->marked: the term, and where its list is. */
static int find_packed(postings *p, const unsigned char *data, size_t size)
{
    const unsigned char *at = data, *end = at + size;

    for (p->marked_count = 0; at < end; p->marked_count++) {
        posting_mark *m;
        uint64_t bytes;
        wire w;
        wire_init(&w, at, (size_t)(end - at));
        if (mem_grow(p->alloc, (void **)&p->marked, &p->marked_capacity,
                     p->marked_count + 1, sizeof *p->marked))
            return -1;
        m = &p->marked[p->marked_count];
        m->term = hash64_veil(wire_u64(&w));
        at = w.at;
        if (w.bad || read_number(&at, end, &bytes) || bytes > (size_t)(end - at))
            return 1;
        m->next = (uint32_t)(at - data);
        m->size = (uint32_t)bytes;
        at += bytes;
    }
    return 0;
}

/* Each term takes four steps, and each step waits for memory: the map, the list, its
 * bytes. So the steps of a term are taken AHEAD terms apart, and its memory is fetched
 * meanwhile. */
int postings_unpack(postings *p, int field, uint32_t count, const void *data, size_t size)
{
    static const size_t AHEAD = 8;
    posting_field *in = &p->fields[field];
    const unsigned char *from = data;
    int result = size > UINT32_MAX ? 1 : find_packed(p, data, size);
    size_t n = p->marked_count;

    p->marking = 0;
    for (size_t i = 0; !result && i < n + 3 * AHEAD; i++) {
        posting_list *list;
        posting_mark *m;
        if (i < n)
            map_prefetch(&in->terms, p->marked[i].term);
        if (i >= AHEAD && i - AHEAD < n) {
            m = &p->marked[i - AHEAD];
            list = make_list(p, in, m->term);
            if (!list)
                return -1;
            m->list = (uint32_t)(list - in->lists);
            __builtin_prefetch(list, 1);
            __builtin_prefetch(list + 1, 1); /* it may lie in two lines */
        }
        if (i >= 2 * AHEAD && i - 2 * AHEAD < n) {
            list = &in->lists[p->marked[i - 2 * AHEAD].list];
            if (list->capacity)
                __builtin_prefetch(list->bytes.far + list->size, 1);
        }
        if (i >= 3 * AHEAD) {
            m = &p->marked[i - 3 * AHEAD];
            result = unpack_list(p, &in->lists[m->list], p->count - count, from + m->next,
                                 from + m->next + m->size);
        }
    }
    return result;
}

/* ------------------------------------------------------------------ rating */

/* Live entries that have the term. */
static uint32_t count_with(postings *p, posting_list *list)
{
    if (list && list->counted != p->changes) {
        list_walk k = list_begin(list);
        list->live = 0;
        while (list_next(&k))
            list->live += (uint32_t)postings_is_live(p, k.entry);
        list->counted = p->changes;
    }
    return list ? list->live : 0;
}

static double weight_of(double all, double with)
{
    return log1p((all - with + 0.5) / (with + 0.5));
}

/* 0.9 (0.6 + 0.4 len / avg) as base + slope * len. */
static void length_norm(double length, double filled, float *base, float *slope)
{
    double mean = filled > 0 ? length / filled : 1;
    *base = (float)(K * (1 - B));
    *slope = (float)(K * B / mean);
}

void postings_count(postings *p, const uint64_t *terms, size_t count,
                    postings_counts *sum)
{
    for (int f = 0; f < FIELDS; f++) {
        posting_field *field = &p->fields[f];
        sum->filled[f] += field->live_filled;
        sum->length[f] += (double)field->live_length;
        for (size_t i = 0; i < count; i++)
            sum->with[f][i] += count_with(p, find_list(field, terms[i]));
    }
}

double postings_score(postings *p, const uint64_t *terms, size_t count,
                      const postings_counts *of, float *scores)
{
    double whole = 0;

    memset(scores, 0, p->count * sizeof *scores);
    for (int f = 0; f < FIELDS; f++) {
        posting_field *field = &p->fields[f];
        const uint16_t *lengths = field->lengths;
        double filled = of ? of->filled[f] : field->live_filled;
        float base, slope;
        length_norm(of ? of->length[f] : (double)field->live_length, filled, &base,
                    &slope);
        for (size_t i = 0; i < count; i++) {
            posting_list *list = find_list(field, terms[i]);
            double with = of ? of->with[f][i] : count_with(p, list);
            double w = (K + 1) * weight_of(filled, with);
            float weight = (float)(f == FIELD_MAIN ? w : w * HALF);
            /* A word that no entry has counts as one that a single entry has: in a small
             * memory it would otherwise outweigh all others of the question. */
            if (f == FIELD_MAIN)
                whole += with > 0 ? w : (K + 1) * weight_of(fmax(filled, 1), 1);
            if (!list)
                continue;
            for (list_walk k = list_begin(list); list_next(&k);) {
                float times = (float)k.times;
                scores[k.entry] +=
                    weight * times / (times + base + slope * (float)lengths[k.entry]);
            }
        }
    }
    return whole;
}

float *postings_ratings(postings *p, size_t each)
{
    size_t need = p->count * each, room = need + need / 8;
    if (need <= p->rating_capacity)
        return p->ratings;
    mem_free(p->alloc, p->ratings, p->rating_capacity * sizeof *p->ratings);
    p->ratings = mem_alloc(p->alloc, room * sizeof *p->ratings);
    p->rating_capacity = p->ratings ? room : 0;
    return p->ratings;
}

double postings_explain(postings *p, int field, uint64_t term, uint32_t entry)
{
    posting_field *in = &p->fields[field];
    posting_list *list = find_list(in, term);
    double weight = (field == FIELD_MAIN ? 1 : HALF) * (K + 1);
    float base, slope;

    if (!list)
        return 0;
    length_norm((double)in->live_length, in->live_filled, &base, &slope);
    for (list_walk k = list_begin(list); list_next(&k) && k.entry <= entry;)
        if (k.entry == entry)
            return weight * weight_of(in->live_filled, count_with(p, list)) * k.times /
                   (k.times + base + slope * (float)in->lengths[entry]);
    return 0;
}

size_t postings_bytes(const postings *p)
{
    size_t sum = sizeof *p + p->live_capacity * sizeof *p->live +
                 p->marked_capacity * sizeof *p->marked +
                 p->rating_capacity * sizeof *p->ratings;
    for (int f = 0; f < FIELDS; f++) {
        const posting_field *field = &p->fields[f];
        sum += field->capacity * sizeof *field->lists +
               field->length_capacity * sizeof *field->lengths + map_bytes(&field->terms);
        for (size_t i = 0; i < field->count; i++)
            sum += field->lists[i].capacity;
    }
    return sum;
}

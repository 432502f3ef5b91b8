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

#include <stdlib.h>
#include <string.h>

#include "memory/posting_lists.h"

/* Longer texts count as this long. */
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

int posting_list_reserve(const allocator *a, posting_list *list, size_t more)
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

size_t posting_put_number(unsigned char *out, uint64_t n)
{
    size_t size = 0;
    while (n >= 0x80) {
        out[size++] = (unsigned char)(n | 0x80);
        n >>= 7;
    }
    out[size++] = (unsigned char)n;
    return size;
}

/* Most counts are 1, which costs one bit beside the distance. */
static int put_entry(const allocator *a, posting_list *list, uint32_t entry,
                     uint32_t times)
{
    unsigned char bytes[POSTING_ENTRY_MAX];
    size_t size =
        posting_put_number(bytes, (uint64_t)(entry - list->next) << 1 | (times > 1));
    if (times > 1)
        size += posting_put_number(bytes + size, times);
    if (posting_list_reserve(a, list, size))
        return -1;
    memcpy(posting_list_end(list), bytes, size);
    list->size += (uint32_t)size;
    list->next = entry + 1;
    return 0;
}

/* ------------------------------------------------------------------ adding */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

posting_list *posting_list_find(const posting_field *field, uint64_t term)
{
    uint32_t index;
    return map_get(&field->terms, term, &index) ? &field->lists[index] : NULL;
}

posting_list *posting_list_make(postings *p, posting_field *field, uint64_t term)
{
    posting_list *list = posting_list_find(field, term);
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
        posting_list *list = posting_list_make(p, field, terms.at[i]);
        for (same = 1; i + same < terms.count && terms.at[i + same] == terms.at[i];)
            same++;
        if (!list)
            return -1;
        mark_list(p, f, terms.at[i], list);
        if (put_entry(p->alloc, list, p->count, (uint32_t)same))
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

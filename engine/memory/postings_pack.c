/*
 * postings_pack.c: postings as bytes of an index block, and back.
 *
 * A block of the index has, for each term of its entries, a packed list: the bare hash of
 * the term (8 bytes), the size of the list, and the list (posting_lists.h), whose first
 * distance is from the block's first entry.
 *
 * postings_mark() remembers where each list ends before the block's first entry, so that
 * packing copies what was added since. Anybody can write the block of a plain log, so
 * unpacking checks every number before it uses it.
 */
#include <string.h>

#include "base/wire.h"
#include "memory/posting_lists.h"

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
        const unsigned char *at = posting_list_bytes(list) + m->size;
        const unsigned char *end = posting_list_bytes(list) + list->size;
        unsigned char first[POSTING_ENTRY_MAX], size[POSTING_ENTRY_MAX];
        size_t first_size;
        uint64_t n;
        if (m->field != field)
            continue;
        n = posting_get_number(&at);
        first_size = posting_put_number(
            first, (uint64_t)(m->next + (uint32_t)(n >> 1) - p->mark) << 1 | (n & 1));
        wire_put_u64(out, hash64_bare(m->term));
        buf_put(out, size, posting_put_number(size, first_size + (size_t)(end - at)));
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

/* As posting_get_number(), of bytes that may be anything: 0, or -1. */
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
    unsigned char head[POSTING_ENTRY_MAX];
    const unsigned char *rest;
    uint64_t n, times, next = first;
    size_t size;

    if (list->next > first || read_number(&at, end, &n))
        return 1;
    size = posting_put_number(head, (first - list->next + (n >> 1)) << 1 | (n & 1));
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
    if (posting_list_reserve(p->alloc, list, size + (size_t)(end - rest)))
        return -1;
    memcpy(posting_list_end(list), head, size);
    memcpy(posting_list_end(list) + size, rest, (size_t)(end - rest));
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
            list = posting_list_make(p, in, m->term);
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

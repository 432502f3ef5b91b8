/*
 * stream.c: bytes that wait to be sent on a stream.
 *
 * A message is copied once, when it is given, into a chunk that has its frame already; it
 * may be given by any thread, and goes from list to list without being touched.
 */
#include "rpc/stream.h"

#include <string.h>

chunk *chunk_new(const allocator *a, const void *data, size_t size, int framed)
{
    size_t head = framed ? FRAME_HEAD : 0;
    chunk *one;

    if (size > UINT32_MAX - FRAME_HEAD - sizeof *one)
        return NULL;
    one = mem_alloc(a, sizeof *one + head + size);
    if (!one)
        return NULL;
    one->next = NULL;
    one->size = head + size;
    one->sent = 0;
    if (framed)
        frame_head(one->data, size);
    if (size)
        memcpy(one->data + head, data, size);
    return one;
}

void chunks_put(chunks *list, chunk *one)
{
    if (list->last)
        list->last->next = one;
    else
        list->first = one;
    list->last = one;
}

void chunks_move(chunks *list, chunks *from)
{
    if (!from->first)
        return;
    chunks_put(list, from->first);
    list->last = from->last;
    from->first = from->last = NULL;
}

void chunks_drop(chunks *list, const allocator *a)
{
    chunk *one = list->first;
    list->first = one->next;
    if (!list->first)
        list->last = NULL;
    mem_free(a, one, sizeof *one + one->size);
}

size_t chunks_take(chunks *list, void *out, size_t size, const allocator *a)
{
    unsigned char *to = out;
    size_t taken = 0;

    while (list->first && taken < size) {
        chunk *one = list->first;
        size_t n = one->size - one->sent;
        if (n > size - taken)
            n = size - taken;
        memcpy(to + taken, one->data + one->sent, n);
        one->sent += n;
        taken += n;
        if (one->sent == one->size)
            chunks_drop(list, a);
    }
    return taken;
}

size_t chunks_free(chunks *list, const allocator *a)
{
    size_t size = 0;
    while (list->first) {
        size += list->first->size - list->first->sent;
        chunks_drop(list, a);
    }
    return size;
}

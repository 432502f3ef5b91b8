/*
 * context.c: the list of a context.
 *
 * Owns the arrays of items and links. Must never read a message's text, and must never
 * leave a list half changed: what fails leaves the context as it was.
 */
#include "context/context.h"

#include <string.h>

void context_init(context *c, const allocator *a)
{
    memset(c, 0, sizeof *c);
    c->alloc = a;
}

void context_deinit(context *c)
{
    const allocator *a = c->alloc;
    mem_free(a, c->items, c->capacity * sizeof *c->items);
    mem_free(a, c->links, c->link_capacity * sizeof *c->links);
    context_init(c, a);
}

void context_clear(context *c)
{
    c->count = 0;
    c->link_count = 0;
    c->upto = 0;
    c->lost = 0;
}

int context_copy(context *out, const context *from)
{
    if (out == from)
        return 0;
    if (mem_grow(out->alloc, (void **)&out->items, &out->capacity, from->count,
                 sizeof *out->items) ||
        mem_grow(out->alloc, (void **)&out->links, &out->link_capacity, from->link_count,
                 sizeof *out->links))
        return -1;
    if (from->count)
        memcpy(out->items, from->items, from->count * sizeof *out->items);
    if (from->link_count)
        memcpy(out->links, from->links, from->link_count * sizeof *out->links);
    out->count = from->count;
    out->link_count = from->link_count;
    out->upto = from->upto;
    out->lost = from->lost;
    return 0;
}

int context_reserve(context *c, size_t more)
{
    item *grown;
    if (more <= c->capacity - c->count)
        return 0;
    if (more > PTRDIFF_MAX / sizeof *grown - c->count)
        return -1;
    grown = mem_realloc(c->alloc, c->items, c->capacity * sizeof *grown,
                        (c->count + more) * sizeof *grown);
    if (!grown)
        return -1;
    c->items = grown;
    c->capacity = c->count + more;
    return 0;
}

int context_push(context *c, const item *it, const message_link *links)
{
    item *pushed;

    /* Items and links are numbered in 32 bits, UINT32_MAX meaning none. */
    if (c->count >= UINT32_MAX - 1 || it->link_count >= UINT32_MAX - 1 - c->link_count)
        return -1;
    if (mem_grow(c->alloc, (void **)&c->items, &c->capacity, c->count + 1,
                 sizeof *c->items) ||
        mem_grow(c->alloc, (void **)&c->links, &c->link_capacity,
                 c->link_count + it->link_count, sizeof *c->links))
        return -1;
    pushed = c->items + c->count++;
    *pushed = *it;
    pushed->link = (uint32_t)c->link_count;
    if (it->link_count)
        memcpy(c->links + c->link_count, links, it->link_count * sizeof *links);
    c->link_count += it->link_count;
    return 0;
}

static int is_instruction(const item *it)
{
    return it->role == SESSILE_SYSTEM || it->role == SESSILE_DEVELOPER;
}

int context_push_opening(context *c, const item *it, const message_link *links)
{
    const item *last = c->count ? &c->items[c->count - 1] : NULL;
    item pushed = *it;

    if (is_instruction(it) &&
        (!last || (is_instruction(last) && (last->flags & ITEM_OPENING))))
        pushed.flags |= ITEM_PINNED | ITEM_OPENING;
    return context_push(c, &pushed, links);
}

int64_t context_tokens(const context *c)
{
    int64_t sum = 0;
    size_t i;
    for (i = 0; i < c->count; i++)
        sum += c->items[i].tokens;
    return sum;
}

size_t context_last_user(const context *c)
{
    size_t i = c->count;
    while (i-- > 0) {
        const item *it = &c->items[i];
        if (it->role == SESSILE_USER && (it->flags & ITEM_STARTS_TURN))
            return i;
    }
    return c->count;
}

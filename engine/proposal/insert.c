/*
 * state_put.c: new messages, and what they stand for.
 *
 * Owns the memory of every message that a policy writes. Must never lose sight of what a
 * message stands for: what replaces or covers a new message of an earlier hook inherits
 * what that one stood for, so that in the end everything is told in keys of the first
 * list.
 */
#include "proposal/internal.h"

#include <string.h>

#include "base/error.h"
#include "tokens/tokens.h"

/* ------------------------------------------------------------------ standing for */

void stand_for_nothing(sessile_state *s)
{
    s->stand_count = 0;
    s->strange_count = 0;
}

static int stand_for_index(sessile_state *s, size_t index)
{
    if (mem_grow(s->alloc, (void **)&s->stands, &s->stand_capacity, s->stand_count + 1,
                 sizeof *s->stands))
        return -1;
    s->stands[s->stand_count++] = (uint32_t)index;
    return 0;
}

/* A key of the first list; one that is not in it is kept aside, for law 3 to name. */
static int stand_for_first(sessile_state *s, sessile_key key)
{
    size_t at;
    int found = finder_find(&s->find, key, &at);
    if (found < 0)
        return -1;
    if (found)
        return stand_for_index(s, at);
    if (mem_grow(s->alloc, (void **)&s->strange, &s->strange_capacity,
                 s->strange_count + 1, sizeof *s->strange))
        return -1;
    s->strange[s->strange_count++] = key;
    return 0;
}

static int stand_for_put(sessile_state *s, const put *w)
{
    size_t k;
    for (k = 0; k < w->replace_count; k++)
        if (stand_for_first(s, w->replaces[k]))
            return -1;
    for (k = 0; k < w->cover_count; k++)
        if (stand_for_first(s, w->covers[k]))
            return -1;
    return 0;
}

int stand_for_item(sessile_state *s, size_t i)
{
    uint32_t origin = origin_of(s, i);
    if (origin != ORIGIN_NONE)
        return stand_for_index(s, origin);
    return stand_for_put(s, put_of(s, given_item(s, i)->key.n));
}

int stand_for_key(sessile_state *s, sessile_key key)
{
    if (key_is_own(key) && key.n >= 1 && key.n <= s->puts_before)
        return stand_for_put(s, put_of(s, key.n));
    return stand_for_first(s, key);
}

/*
 * Indexes come in order, but for what a new message of an earlier hook stood for, which
 * may be put anywhere. Then they are sorted by marking them in a row of bytes as long as
 * the list: linear, and each is there once.
 */
static int sort_stands(sessile_state *s)
{
    size_t k, i, n = s->lists[0].c.count;
    uint8_t *seen;

    for (k = 1; k < s->stand_count; k++)
        if (s->stands[k] <= s->stands[k - 1])
            break;
    if (k >= s->stand_count)
        return 0;
    seen = mem_zalloc(s->alloc, n);
    if (!seen)
        return -1;
    for (k = 0; k < s->stand_count; k++)
        seen[s->stands[k]] = 1;
    s->stand_count = 0;
    for (i = 0; i < n; i++)
        if (seen[i])
            s->stands[s->stand_count++] = (uint32_t)i;
    mem_free(s->alloc, seen, n);
    return 0;
}

int stand_keys(sessile_state *s, sessile_key **out, size_t *count)
{
    const context *first = &s->lists[0].c;
    size_t k, n;

    *out = NULL;
    *count = 0;
    if (sort_stands(s))
        return -1;
    n = s->stand_count + s->strange_count;
    if (n == 0)
        return 0;
    *out = mem_alloc(s->alloc, n * sizeof **out);
    if (!*out)
        return -1;
    for (k = 0; k < s->stand_count; k++)
        (*out)[k] = first->items[s->stands[k]].key;
    for (k = 0; k < s->strange_count; k++)
        (*out)[s->stand_count + k] = s->strange[k];
    *count = n;
    return 0;
}

uint32_t stand_turn(const sessile_state *s, uint32_t otherwise)
{
    uint32_t newest = 0;
    size_t k;
    if (s->stand_count == 0)
        return otherwise;
    for (k = 0; k < s->stand_count; k++)
        if (s->stands[k] > newest)
            newest = s->stands[k];
    return s->lists[0].c.items[newest].turn;
}

/* ------------------------------------------------------------------ puts */

sessile_status put_read(sessile_state *s, message *out, sessile_error *err)
{
    s->link_count = 0;
    return message_read(out, s->work.data, s->work.size, &s->links, &s->link_count,
                        &s->link_capacity, s->alloc, err);
}

int put_same_links(const sessile_state *s, size_t i)
{
    const item *it = given_item(s, i);
    const message_link *was = s->given->c.links + it->link;
    size_t k;

    if (it->link_count != s->link_count)
        return 0;
    for (k = 0; k < s->link_count; k++)
        if (was[k].id != s->links[k].id || was[k].is_result != s->links[k].is_result ||
            was[k].in_call != s->links[k].in_call)
            return 0;
    return 1;
}

/* Law 10 judges a hook's whole result when it ends. This keeps a hook that is still
 * running from filling the memory until then. */
static sessile_status check_room(const sessile_state *s, size_t freed, sessile_error *err)
{
    uint64_t most =
        s->result_limit < UINT64_MAX / 8 ? s->result_limit * 4 + 65536 : UINT64_MAX;
    if (s->put_bytes - freed + s->work.size <= most)
        return SESSILE_OK;
    return fail(err, SESSILE_LIMIT,
                "the new messages have far more bytes than "
                "[policy_result] %llu",
                (unsigned long long)s->result_limit);
}

/* The text and columns of s->work. */
static void set_columns(const sessile_state *s, put *w, const message *m, uint32_t turn)
{
    token_count n = state_count_message(s, m);
    int64_t tokens = n.tokens;
    w->columns.role = (uint8_t)m->role;
    w->columns.flags = (uint8_t)(m->flags & (MESSAGE_STARTS_TURN | MESSAGE_SUMMARY |
                                             MESSAGE_KIND | MESSAGE_ERROR));
    w->columns.turn = turn;
    w->columns.unit = (uint8_t)n.unit;
    w->columns.tokens = tokens < 0            ? 0
                        : tokens > UINT32_MAX ? UINT32_MAX
                                              : (uint32_t)tokens;
}

sessile_status put_new(sessile_state *s, const message *m, uint32_t turn,
                       uint32_t *number, sessile_error *err)
{
    sessile_status status = check_room(s, 0, err);
    put *w;

    if (status)
        return status;
    if (s->put_count >= MARK_COVERED - 1)
        return fail(err, SESSILE_LIMIT, "too many new messages for [policy_result]");
    if (mem_grow(s->alloc, (void **)&s->puts, &s->put_capacity, s->put_count + 1,
                 sizeof *s->puts) ||
        mem_grow(s->alloc, (void **)&s->put_from, &s->from_capacity, s->put_count + 1,
                 sizeof *s->put_from))
        return fail_nomem(err);
    w = &s->puts[s->put_count];
    memset(w, 0, sizeof *w);
    w->json = mem_dup(s->alloc, s->work.data, s->work.size);
    if (s->link_count)
        w->links = mem_alloc(s->alloc, s->link_count * sizeof *w->links);
    if (!w->json || (s->link_count && !w->links)) {
        mem_free(s->alloc, w->json, s->work.size + 1);
        mem_free(s->alloc, w->links, s->link_count * sizeof *w->links);
        return fail_nomem(err);
    }
    if (s->link_count)
        memcpy(w->links, s->links, s->link_count * sizeof *w->links);
    w->size = s->work.size;
    s->put_from[s->put_count] = ORIGIN_NONE;
    w->columns.key.entry = SESSILE_NO_ID;
    w->columns.key.n = (uint32_t)++s->put_count;
    w->columns.link_count = (uint32_t)s->link_count;
    set_columns(s, w, m, turn);
    s->put_bytes += w->size;
    *number = w->columns.key.n;
    return SESSILE_OK;
}

sessile_status put_again(sessile_state *s, const message *m, uint32_t number,
                         sessile_error *err)
{
    put *w = put_of(s, number);
    char *copy;
    sessile_status status = check_room(s, w->size, err);

    if (status)
        return status;
    copy = mem_dup(s->alloc, s->work.data, s->work.size);
    if (!copy)
        return fail_nomem(err);
    s->put_bytes = s->put_bytes - w->size + s->work.size;
    mem_free(s->alloc, w->json, w->size + 1);
    w->json = copy;
    w->size = s->work.size;
    set_columns(s, w, m, w->columns.turn);
    return SESSILE_OK;
}

int put_stands(sessile_state *s, uint32_t number, sessile_key *covers, size_t cover_count,
               sessile_key *replaces, size_t replace_count)
{
    put *w = put_of(s, number);
    uint32_t from = ORIGIN_NONE;

    if (replace_count == 1 && cover_count == 0) {
        size_t at;
        int found = finder_find(&s->find, replaces[0], &at);
        if (found < 0)
            return -1;
        if (found)
            from = (uint32_t)at;
    }
    s->put_from[number - 1] = from;
    w->invalid_role =
        (w->columns.role == SESSILE_SYSTEM || w->columns.role == SESSILE_DEVELOPER) &&
        (from == ORIGIN_NONE || s->lists[0].c.items[from].role != w->columns.role);
    w->covers = covers;
    w->cover_count = cover_count;
    w->replaces = replaces;
    w->replace_count = replace_count;
    return 0;
}

void put_clear(sessile_state *s, uint32_t number)
{
    put *w = put_of(s, number);
    if (!w->json)
        return;
    s->put_bytes -= w->size;
    mem_free(s->alloc, w->json, w->size + 1);
    mem_free(s->alloc, w->links, w->columns.link_count * sizeof *w->links);
    mem_free(s->alloc, w->covers, w->cover_count * sizeof *w->covers);
    mem_free(s->alloc, w->replaces, w->replace_count * sizeof *w->replaces);
    memset(w, 0, sizeof *w);
    w->columns.key.entry = SESSILE_NO_ID;
    w->columns.key.n = number;
}

void puts_cut(sessile_state *s, size_t count)
{
    while (s->put_count > count)
        put_clear(s, (uint32_t)s->put_count--);
}

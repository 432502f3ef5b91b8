/*
 * insert.c: inserted messages, and what they cover.
 *
 * Owns the memory of every message that a policy writes. Must never lose what a message
 * covers: a message that replaces or covers an inserted message of an earlier hook
 * inherits what that one covered, so that at the end everything is expressed in keys of
 * the first list.
 */
#include "proposal/internal.h"

#include <string.h>

#include "base/error.h"
#include "tokens/tokens.h"

/* ------------------------------------------------------------------ standing for */

void covered_clear(sessile_state *s)
{
    s->scratch.stand_count = 0;
    s->scratch.strange_count = 0;
}

static int stand_for_index(sessile_state *s, size_t index)
{
    if (mem_grow(s->alloc, (void **)&s->scratch.stands, &s->scratch.stand_capacity,
                 s->scratch.stand_count + 1, sizeof *s->scratch.stands))
        return -1;
    s->scratch.stands[s->scratch.stand_count++] = (uint32_t)index;
    return 0;
}

/* A key of the first list; one that is not in it is kept aside, for law 3 to name. */
static int stand_for_first(sessile_state *s, sessile_key key)
{
    size_t at;
    int found = finder_find(&s->reader.find, key, &at);
    if (found < 0)
        return -1;
    if (found)
        return stand_for_index(s, at);
    if (mem_grow(s->alloc, (void **)&s->scratch.strange, &s->scratch.strange_capacity,
                 s->scratch.strange_count + 1, sizeof *s->scratch.strange))
        return -1;
    s->scratch.strange[s->scratch.strange_count++] = key;
    return 0;
}

static int stand_for_inserted(sessile_state *s, const inserted_message *w)
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

int covered_add_item(sessile_state *s, size_t i)
{
    uint32_t origin = origin_of(s, i);
    if (origin != ORIGIN_NONE)
        return stand_for_index(s, origin);
    return stand_for_inserted(s, inserted_of(s, given_item(s, i)->key.n));
}

int covered_add_key(sessile_state *s, sessile_key key)
{
    if (key_is_own(key) && key.n >= 1 && key.n <= s->made.before)
        return stand_for_inserted(s, inserted_of(s, key.n));
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

    for (k = 1; k < s->scratch.stand_count; k++)
        if (s->scratch.stands[k] <= s->scratch.stands[k - 1])
            break;
    if (k >= s->scratch.stand_count)
        return 0;
    seen = mem_zalloc(s->alloc, n);
    if (!seen)
        return -1;
    for (k = 0; k < s->scratch.stand_count; k++)
        seen[s->scratch.stands[k]] = 1;
    s->scratch.stand_count = 0;
    for (i = 0; i < n; i++)
        if (seen[i])
            s->scratch.stands[s->scratch.stand_count++] = (uint32_t)i;
    mem_free(s->alloc, seen, n);
    return 0;
}

int covered_keys(sessile_state *s, sessile_key **out, size_t *count)
{
    const context *first = &s->lists[0].c;
    size_t k, n;

    *out = NULL;
    *count = 0;
    if (sort_stands(s))
        return -1;
    n = s->scratch.stand_count + s->scratch.strange_count;
    if (n == 0)
        return 0;
    *out = mem_alloc(s->alloc, n * sizeof **out);
    if (!*out)
        return -1;
    for (k = 0; k < s->scratch.stand_count; k++)
        (*out)[k] = first->items[s->scratch.stands[k]].key;
    for (k = 0; k < s->scratch.strange_count; k++)
        (*out)[s->scratch.stand_count + k] = s->scratch.strange[k];
    *count = n;
    return 0;
}

uint32_t covered_turn(const sessile_state *s, uint32_t otherwise)
{
    uint32_t newest = 0;
    size_t k;
    if (s->scratch.stand_count == 0)
        return otherwise;
    for (k = 0; k < s->scratch.stand_count; k++)
        if (s->scratch.stands[k] > newest)
            newest = s->scratch.stands[k];
    return s->lists[0].c.items[newest].turn;
}

/* ------------------------------------------------------------------ inserted */

sessile_status inserted_read(sessile_state *s, message *out, sessile_error *err)
{
    s->scratch.link_count = 0;
    return message_read(out, s->scratch.work.data, s->scratch.work.size,
                        &s->scratch.links, &s->scratch.link_count,
                        &s->scratch.link_capacity, s->alloc, err);
}

int inserted_same_links(const sessile_state *s, size_t i)
{
    const item *it = given_item(s, i);
    const message_link *was = s->given->c.links + it->link;
    size_t k;

    if (it->link_count != s->scratch.link_count)
        return 0;
    for (k = 0; k < s->scratch.link_count; k++)
        if (was[k].id != s->scratch.links[k].id ||
            was[k].is_result != s->scratch.links[k].is_result ||
            was[k].in_call != s->scratch.links[k].in_call)
            return 0;
    return 1;
}

static token_count scale_made(const sessile_state *s, int64_t tokens)
{
    meter_ratio r = {.ratio = s->limits.made_ratio};

    return r.ratio ? (token_count){meter_scale(tokens, &r), TOKENS_FITTED}
                   : (token_count){tokens, TOKENS_ESTIMATE};
}

token_count state_count_text(const sessile_state *s, const char *text, size_t size)
{
    return scale_made(s, tokens_of_text(text, size));
}

static token_count count_message(const sessile_state *s, const message *m)
{
    return scale_made(s, tokens_of_message(m));
}

/* Law 10 judges a hook's whole result when it ends. This keeps a hook that is still
 * running from filling the memory until then. */
static sessile_status check_room(const sessile_state *s, size_t freed, sessile_error *err)
{
    uint64_t most =
        s->limits.result < UINT64_MAX / 8 ? s->limits.result * 4 + 65536 : UINT64_MAX;
    if (s->made.bytes - freed + s->scratch.work.size <= most)
        return SESSILE_OK;
    return fail(err, SESSILE_LIMIT,
                "the new messages have far more bytes than "
                "[policy_result] %llu",
                (unsigned long long)s->limits.result);
}

/* The text and columns of s->work. */
static void set_columns(const sessile_state *s, inserted_message *w, const message *m,
                        uint32_t turn)
{
    token_count n = count_message(s, m);
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

sessile_status inserted_new(sessile_state *s, const message *m, uint32_t turn,
                            uint32_t *number, sessile_error *err)
{
    sessile_status status = check_room(s, 0, err);
    inserted_message *w;

    if (status)
        return status;
    if (s->made.count >= MARK_COVERED - 1)
        return fail(err, SESSILE_LIMIT, "too many new messages for [policy_result]");
    if (mem_grow(s->alloc, (void **)&s->made.at, &s->made.capacity, s->made.count + 1,
                 sizeof *s->made.at) ||
        mem_grow(s->alloc, (void **)&s->made.from, &s->made.from_capacity,
                 s->made.count + 1, sizeof *s->made.from))
        return fail_nomem(err);
    w = &s->made.at[s->made.count];
    memset(w, 0, sizeof *w);
    w->json = mem_dup(s->alloc, s->scratch.work.data, s->scratch.work.size);
    if (s->scratch.link_count)
        w->links = mem_alloc(s->alloc, s->scratch.link_count * sizeof *w->links);
    if (!w->json || (s->scratch.link_count && !w->links)) {
        mem_free(s->alloc, w->json, s->scratch.work.size + 1);
        mem_free(s->alloc, w->links, s->scratch.link_count * sizeof *w->links);
        return fail_nomem(err);
    }
    if (s->scratch.link_count)
        memcpy(w->links, s->scratch.links, s->scratch.link_count * sizeof *w->links);
    w->size = s->scratch.work.size;
    s->made.from[s->made.count] = ORIGIN_NONE;
    w->columns.key.entry = SESSILE_NO_ID;
    w->columns.key.n = (uint32_t)++s->made.count;
    w->columns.link_count = (uint32_t)s->scratch.link_count;
    set_columns(s, w, m, turn);
    s->made.bytes += w->size;
    *number = w->columns.key.n;
    return SESSILE_OK;
}

/* Whether a message says what only a model does, where the message that it replaces
 * (ORIGIN_NONE: it replaces none, or several) says nothing of the kind. One that cannot
 * be read says nothing. */
static void judge_voice(sessile_state *s, inserted_message *w, uint32_t from)
{
    sessile_slice was;
    sessile_error err;

    w->of_model = message_of_model(w->json, w->size);
    if (w->of_model && from != ORIGIN_NONE &&
        !state_text(s, s->lists[0].c.items[from].key, &was, &err) &&
        message_of_model(was.data, was.size))
        w->of_model = NULL;
}

sessile_status inserted_set_text(sessile_state *s, const message *m, uint32_t number,
                                 sessile_error *err)
{
    inserted_message *w = inserted_of(s, number);
    char *copy;
    sessile_status status = check_room(s, w->size, err);

    if (status)
        return status;
    copy = mem_dup(s->alloc, s->scratch.work.data, s->scratch.work.size);
    if (!copy)
        return fail_nomem(err);
    s->made.bytes = s->made.bytes - w->size + s->scratch.work.size;
    mem_free(s->alloc, w->json, w->size + 1);
    w->json = copy;
    w->size = s->scratch.work.size;
    set_columns(s, w, m, w->columns.turn);
    judge_voice(s, w, s->made.from[number - 1]);
    return SESSILE_OK;
}

/* Roles in which a policy may only edit what was said: it speaks neither for the host nor
 * for the model, nor for a tool that nobody called. Law 1 finds the call of a result. */
static int role_is_protected(const inserted_message *w)
{
    uint8_t role = w->columns.role;
    return role == SESSILE_SYSTEM || role == SESSILE_DEVELOPER ||
           role == SESSILE_ASSISTANT || role == SESSILE_MODEL ||
           ((role == SESSILE_TOOL || role == SESSILE_FUNCTION) &&
            w->columns.link_count == 0);
}

/* Whether a message calls a tool where the message that it replaces (ORIGIN_NONE: it
 * replaces none, or several) does not. */
static int has_new_call(const sessile_state *s, const inserted_message *w, uint32_t from)
{
    const context *first = &s->lists[0].c;
    const item *it = from == ORIGIN_NONE ? NULL : &first->items[from];
    size_t k, j, n = it ? it->link_count : 0;

    for (k = 0; k < w->columns.link_count; k++) {
        if (w->links[k].is_result)
            continue;
        for (j = 0; j < n; j++)
            if (!first->links[it->link + j].is_result &&
                first->links[it->link + j].id == w->links[k].id)
                break;
        if (j == n)
            return 1;
    }
    return 0;
}

int inserted_set_covered(sessile_state *s, uint32_t number, sessile_key *covers,
                         size_t cover_count, sessile_key *replaces, size_t replace_count)
{
    inserted_message *w = inserted_of(s, number);
    uint32_t from = ORIGIN_NONE;

    if (replace_count == 1 && cover_count == 0) {
        size_t at;
        int found = finder_find(&s->reader.find, replaces[0], &at);
        if (found < 0)
            return -1;
        if (found)
            from = (uint32_t)at;
    }
    s->made.from[number - 1] = from;
    w->invalid_role =
        role_is_protected(w) &&
        (from == ORIGIN_NONE || s->lists[0].c.items[from].role != w->columns.role);
    w->new_call = has_new_call(s, w, from);
    judge_voice(s, w, from);
    w->covers = covers;
    w->cover_count = cover_count;
    w->replaces = replaces;
    w->replace_count = replace_count;
    return 0;
}

void inserted_clear(sessile_state *s, uint32_t number)
{
    inserted_message *w = inserted_of(s, number);
    if (!w->json)
        return;
    s->made.bytes -= w->size;
    mem_free(s->alloc, w->json, w->size + 1);
    mem_free(s->alloc, w->links, w->columns.link_count * sizeof *w->links);
    mem_free(s->alloc, w->covers, w->cover_count * sizeof *w->covers);
    mem_free(s->alloc, w->replaces, w->replace_count * sizeof *w->replaces);
    memset(w, 0, sizeof *w);
    w->columns.key.entry = SESSILE_NO_ID;
    w->columns.key.n = number;
}

void inserted_truncate(sessile_state *s, size_t count)
{
    while (s->made.count > count)
        inserted_clear(s, (uint32_t)s->made.count--);
}

/*
 * cut.c: where a list may be cut: keep_last, find_cut, pairs.
 *
 * Makes only lawful cuts. Must never separate a call from its results, nor remove open
 * work, pinned messages, the user's last message, or the floor.
 *
 * keep_last drops messages, oldest first, until few enough are left. A group that law 1
 * keeps together is dropped as a whole when its oldest member is next, or kept as a whole
 * if one of its members must stay. A group may extend far (a late answer), so its members
 * are linked once instead of being searched for each time: the cost is linear. Rejected:
 * a single cut that drops everything before it. One pinned pair in the middle would keep
 * everything before it.
 */
#include "proposal/internal.h"

#include <string.h>

#include "base/error.h"

/* What may not go, whatever is asked for. */
typedef struct limits {
    uint32_t last_user; /* in the first list */
    uint32_t floor;     /* from this one on, in the first list */
    size_t first_open;  /* from this one on, in the given list */
} limits;

static limits limits_of(const sessile_state *s)
{
    const context *first = &s->lists[0].c;
    limits out;
    out.last_user = (uint32_t)context_last_user(first);
    out.floor =
        (uint32_t)(first->count - laws_floor(first, s->limits.floor, s->limits.window,
                                             s->limits.reserve));
    out.first_open = given_pairs(s)->first_open;
    return out;
}

static int is_floor(const sessile_state *s, const limits *l, size_t i)
{
    uint32_t likeness = likeness_of(s, i);
    return likeness != ORIGIN_NONE && likeness >= l->floor;
}

static int must_stay(const sessile_state *s, const limits *l, size_t i)
{
    return (given_item(s, i)->flags & ITEM_PINNED) || i >= l->first_open ||
           origin_of(s, i) == l->last_user || is_floor(s, l, i);
}

/* ------------------------------------------------------------------ keep_last */

/* What keep_last works with; arrays have one element an item. */
typedef struct cutting {
    sessile_state *s;
    sessile_unit unit;
    int64_t left;
    uint32_t *next;     /* the next member of the same group; ORIGIN_NONE */
    uint32_t *run;      /* TURNS: which run of one turn it is in */
    uint32_t *run_left; /* TURNS: how many of a run, by its number, are left */
    uint8_t *blocked;   /* of a group, at its first member: it must stay */
    void *block;
    size_t block_size;
} cutting;

static int cutting_init(cutting *c, sessile_state *s, sessile_unit unit)
{
    size_t n = s->given->c.count;

    memset(c, 0, sizeof *c);
    c->s = s;
    c->unit = unit;
    c->block_size = n * (3 * sizeof(uint32_t) + 1);
    c->block = mem_alloc(s->alloc, c->block_size);
    if (!c->block)
        return -1;
    c->next = c->block;
    c->run = c->next + n;
    c->run_left = c->run + n;
    c->blocked = (uint8_t *)(c->run_left + n);
    memset(c->blocked, 0, n);
    return 0;
}

/* Chains the members of groups of more than one, and finds the groups that stay. */
static void find_groups(cutting *c)
{
    const pairing *p = given_pairs(c->s);
    limits l = limits_of(c->s);
    size_t i = p->item_count;

    while (i-- > 0) {
        uint32_t first = p->group[i];
        /* The chain grows from the end: at its first member stands what comes next. */
        if (first != i) {
            int is_last = p->group_end[first] == i;
            c->next[i] = is_last ? ORIGIN_NONE : c->next[first];
            c->next[first] = (uint32_t)i;
        } else if (p->group_end[i] == i) {
            c->next[i] = ORIGIN_NONE;
        }
        if (!is_gone(c->s, i) && must_stay(c->s, &l, i))
            c->blocked[first] = 1;
    }
}

/* A turn that only pinned messages are left of is not one of the newest turns. */
static int counts_for_turns(const cutting *c, size_t i)
{
    const item *it = given_item(c->s, i);
    return it->turn > 0 && !(it->flags & ITEM_PINNED);
}

static int64_t count_turns(cutting *c)
{
    uint32_t runs = 0, turn = 0;
    size_t i;

    for (i = 0; i < c->s->given->c.count; i++) {
        if (is_gone(c->s, i) || !counts_for_turns(c, i))
            continue;
        if (given_item(c->s, i)->turn != turn) {
            turn = given_item(c->s, i)->turn;
            c->run_left[runs++] = 0;
        }
        c->run[i] = runs - 1;
        c->run_left[runs - 1]++;
    }
    return runs;
}

static void cut_one(cutting *c, size_t i)
{
    if (is_gone(c->s, i))
        return;
    if (c->unit == SESSILE_TOKENS)
        c->left -= tokens_now(c->s, i);
    else if (c->unit == SESSILE_MESSAGES)
        c->left--;
    else if (counts_for_turns(c, i))
        c->left -= --c->run_left[c->run[i]] == 0;
    state_mark_removed(c->s, i, MARK_DROPPED);
}

static void cut_groups(cutting *c, int64_t n)
{
    const pairing *p = given_pairs(c->s);
    size_t i;

    for (i = 0; i < p->item_count && c->left > n; i++) {
        uint32_t k = p->group[i];
        if (c->blocked[k] || is_gone(c->s, i))
            continue;
        for (; k != ORIGIN_NONE; k = c->next[k])
            cut_one(c, k);
    }
}

sessile_status state_keep_last(sessile_state *s, int64_t n, sessile_unit unit,
                               sessile_error *err)
{
    cutting c;
    sessile_status status = state_check_unbuilt(s, err);

    if (status)
        return status;
    if (n < 0 || unit < SESSILE_MESSAGES || unit > SESSILE_TOKENS)
        return fail(err, SESSILE_INVALID,
                    "keep_last takes a number from 0 of messages, "
                    "turns or tokens");
    error_clear(err);
    if ((unit == SESSILE_MESSAGES && (int64_t)s->edits.left <= n) ||
        (unit == SESSILE_TOKENS && s->edits.tokens <= n))
        return SESSILE_OK; /* nothing to note either */
    if (cutting_init(&c, s, unit))
        return fail_nomem(err);
    c.left = unit == SESSILE_MESSAGES ? (int64_t)s->edits.left
             : unit == SESSILE_TOKENS ? s->edits.tokens
                                      : count_turns(&c);
    if (c.left > n) {
        find_groups(&c);
        cut_groups(&c, n);
    }
    mem_free(s->alloc, c.block, c.block_size);
    journal_keep_last(s, n, unit);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ cut and pairs */

/*
 * The first index from which on at most `tokens` tokens are left, of those where no group
 * is split, none later than open work and the floor; when even the newest of these leaves
 * more, that one. Edits so far count: what was dropped holds nothing.
 */
size_t state_find_cut(const sessile_state *s, int64_t tokens)
{
    const pairing *p = given_pairs(s);
    limits l = limits_of(s);
    size_t count = s->given->c.count, reach = 0, best = 0, last, i;
    int64_t held = 0;

    for (i = 0; i < count; i++)
        held += tokens_now(s, i);
    for (last = 0; last < count && last < l.first_open && !is_floor(s, &l, last);)
        last++;
    /* reach: how far the groups that begin before i reach. */
    for (i = 0; i <= last; i++) {
        if (i == 0 || reach < i) {
            best = i;
            if (held <= tokens)
                break;
        }
        if (i == count)
            break;
        held -= tokens_now(s, i);
        if (p->group_end[p->group[i]] > reach)
            reach = p->group_end[p->group[i]];
    }
    return best;
}

size_t state_pairs(const sessile_state *s, size_t i, size_t *out, size_t cap)
{
    const pairing *p = given_pairs(s);
    size_t count = 0, k;

    if (i >= p->item_count)
        return 0;
    for (k = p->group[i]; k <= p->group_end[p->group[i]]; k++) {
        if (p->group[k] != p->group[i])
            continue;
        if (count < cap)
            out[count] = k;
        count++;
    }
    return count;
}

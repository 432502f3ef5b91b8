/*
 * pairing.c: which result answers which call.
 *
 * Owns the decision which calls and results are open, dead, late or orphans, and which
 * items form a group, for laws, edits and rendering alike. Must never look at a message's
 * text or depend on anything but the list.
 *
 * The problem: in a list of messages, find for each result the newest call before it that
 * has its id and no result yet, and decide for each call whether it still waits. This
 * runs several times in every turn, over the whole context.
 *
 * The choice: one pass that remembers the message whose calls are being answered
 * (`asking`). Nearly every result follows its call immediately and in order, so the calls
 * of that one message are compared directly. If another message comes in between, the
 * calls that still wait are put into a table, by id. Waiting calls with the same id form
 * a chain there, newest first, linked by their `mate` fields. The calls of a message with
 * very many of them go to the table at once, so that no list takes quadratic time.
 *
 * Rejected: putting every call into the table. It is simpler, but takes five times as
 * long for lists in which every call is answered.
 *
 * Some frameworks write one call in two forms, as a content block and in tool_calls. So
 * the second call with an id in one message is the same call and opens nothing. It is
 * paired with the first one, which is the one that a result answers.
 *
 * A call with its own `output` is given as a call followed by a result with in_call set.
 * In a message of role tool or function it is an answer written as a call: it answers the
 * newest waiting call with that id. Otherwise, or if none waits, the two are paired with
 * each other, or the result belongs to a block of the same message. It never opens a
 * call.
 */
#include "context/context.h"

#include <string.h>

/* The calls of a message with more than this are looked up in the table. */
#define FEW_CALLS 8

/* pair_link.late of a call while it waits; never set after the pass. */
enum { WAITING = 2 };

void pairing_init(pairing *p, const allocator *a)
{
    memset(p, 0, sizeof *p);
    p->alloc = a;
    map_init(&p->calls, a);
}

/* flags, group and group_end live in one block that begins at group. */
#define ITEM_BYTES (2 * sizeof(uint32_t) + 1)

void pairing_deinit(pairing *p)
{
    const allocator *a = p->alloc;
    mem_free(a, p->links, p->capacity_links * sizeof *p->links);
    mem_free(a, p->group, p->capacity_items * ITEM_BYTES);
    map_deinit(&p->calls);
    pairing_init(p, a);
}

/* Makes room for the list. The old contents are lost: a pass writes everything. */
static int make_room(pairing *p, size_t items, size_t links)
{
    if (mem_grow(p->alloc, (void **)&p->links, &p->capacity_links, links,
                 sizeof *p->links))
        return -1;
    if (items > p->capacity_items) {
        size_t capacity = items + items / 2;
        uint32_t *block;
        if (items > SIZE_MAX / ITEM_BYTES / 2)
            return -1;
        block = mem_alloc(p->alloc, capacity * ITEM_BYTES);
        if (!block)
            return -1;
        mem_free(p->alloc, p->group, p->capacity_items * ITEM_BYTES);
        p->group = block;
        p->capacity_items = capacity;
    }
    if (p->group) {
        p->group_end = p->group + p->capacity_items;
        p->flags = (uint8_t *)(p->group_end + p->capacity_items);
        memset(p->flags, 0, items);
    }
    p->item_count = items;
    p->link_count = links;
    return 0;
}

/* The state of a pass, besides the result that it builds. */
typedef struct pass {
    pairing *p;
    const context *c;
    uint32_t asking;   /* the item whose calls may be answered next, or PAIR_NONE */
    uint32_t waiting;  /* how many of its calls wait, while they are not in the table */
    int in_table;      /* the calls of `asking` are in the table */
    size_t unanswered; /* how many calls wait, in total */
} pass;

/* ------------------------------------------------------------------ groups */

/* Groups are trees of items under their first member: the usual union-find, with the
 * smaller index always on top, so that one ascending pass flattens everything. */
static uint32_t group_root(pairing *p, uint32_t i)
{
    while (p->group[i] != i) {
        p->group[i] = p->group[p->group[i]];
        i = p->group[i];
    }
    return i;
}

static void group_join(pairing *p, uint32_t a, uint32_t b)
{
    if (p->group[b] == a) /* the common case: another result for the same message */
        return;
    a = group_root(p, a);
    b = group_root(p, b);
    if (a < b)
        p->group[b] = a;
    else
        p->group[a] = b;
}

static void flatten_groups(pairing *p)
{
    size_t i;
    for (i = 0; i < p->item_count; i++) {
        uint32_t first = p->group[p->group[i]];
        p->group[i] = first;
        p->group_end[i] = (uint32_t)i;
        p->group_end[first] = (uint32_t)i;
    }
}

/* ------------------------------------------------------------------ calls */

/* Puts the call into the table, before the waiting calls with the same id. */
static int table_add(pass *s, uint32_t call)
{
    uint32_t older = PAIR_NONE;
    uint64_t id = s->c->links[call].id;
    (void)map_get(&s->p->calls, id, &older);
    s->p->links[call].mate = older;
    return map_put(&s->p->calls, id, call);
}

/* Removes and returns the newest waiting call with that id; PAIR_NONE: there is none.
 * Never allocates. */
static uint32_t table_take(pass *s, uint64_t id)
{
    uint32_t call, older;
    if (!map_get(&s->p->calls, id, &call))
        return PAIR_NONE;
    older = s->p->links[call].mate;
    if (older == PAIR_NONE)
        (void)map_remove(&s->p->calls, id);
    else
        (void)map_put(&s->p->calls, id, older);
    return call;
}

/* Puts the calls of `asking` that still wait into the table. */
static int enter_asking(pass *s)
{
    const item *it;
    uint32_t k;

    if (s->asking == PAIR_NONE || s->in_table)
        return 0;
    s->in_table = 1;
    if (s->waiting == 0)
        return 0;
    it = &s->c->items[s->asking];
    for (k = it->link; k < it->link + it->link_count; k++)
        if (s->p->links[k].late == WAITING && table_add(s, k))
            return -1;
    return 0;
}

/* Removes and returns the newest waiting call with that id; PAIR_NONE: there is none. The
 * calls of `asking` are newer than those in the table. */
static uint32_t take_call(pass *s, uint64_t id)
{
    if (s->asking != PAIR_NONE && !s->in_table && s->waiting) {
        const item *it = &s->c->items[s->asking];
        uint32_t k = it->link + it->link_count;
        while (k-- > it->link) {
            if (s->c->links[k].id == id && s->p->links[k].late == WAITING) {
                s->waiting--;
                return k;
            }
        }
    }
    return s->p->calls.count ? table_take(s, id) : PAIR_NONE;
}

/* The earlier call of the same item with the id of call k; PAIR_NONE. Few calls are
 * compared one by one; many are in the table. */
static uint32_t same_call(const pass *s, uint32_t k, uint32_t i, int in_table)
{
    const item *it = &s->c->items[i];
    uint64_t id = s->c->links[k].id;
    uint32_t other;

    if (in_table)
        return map_get(&s->p->calls, id, &other) && s->p->links[other].item == i
                   ? other
                   : PAIR_NONE;
    for (other = it->link; other < k; other++)
        if (s->c->links[other].id == id && s->p->links[other].late == WAITING)
            return other;
    return PAIR_NONE;
}

/* 0, or -1: NOMEM. */
static int open_call(pass *s, uint32_t k, uint32_t i, int in_table)
{
    struct pair_link *link = &s->p->links[k];

    link->item = i;
    link->mate = same_call(s, k, i, in_table);
    link->late = link->mate == PAIR_NONE ? WAITING : 0;
    if (link->late != WAITING)
        return 0;
    s->unanswered++;
    if (in_table)
        return table_add(s, k);
    s->waiting++;
    return 0;
}

/* Result k of item i answers `call`. Returns 1 when it came in time for `asking`. */
static int answer(pass *s, uint32_t k, uint32_t call, uint32_t i)
{
    struct pair_link *result = &s->p->links[k], *asked = &s->p->links[call];
    int in_time = asked->item == s->asking;

    s->unanswered--;
    asked->mate = k;
    asked->late = 0;
    result->mate = call;
    if (asked->item == i)
        return 0;
    group_join(s->p, asked->item, i);
    if (!in_time) {
        result->late = 1;
        s->p->flags[i] |= PAIR_LATE;
    }
    return in_time;
}

/* ------------------------------------------------------------------ items */

/* The kinds of links that an item has. */
enum { HAS_CALL = 1, HAS_RESULT = 2, HAS_IN_CALL = 4 };

static int has_own_result(const context *c, uint32_t k, uint32_t end)
{
    return k + 1 < end && c->links[k + 1].in_call && c->links[k + 1].id == c->links[k].id;
}

static unsigned kinds_of(const context *c, uint32_t first, uint32_t end)
{
    unsigned kinds = 0;
    uint32_t k;
    for (k = first; k < end; k++) {
        const message_link *link = &c->links[k];
        if (link->in_call)
            kinds |= HAS_IN_CALL;
        else if (link->is_result)
            kinds |= HAS_RESULT;
        else if (!has_own_result(c, k, end))
            kinds |= HAS_CALL;
    }
    return kinds;
}

/* Whether the output of a call in item i may be meant for another call. */
static int answers_others(const pass *s, uint64_t id, uint32_t i)
{
    const item *it = &s->c->items[i];
    uint32_t newest;
    return it->role == SESSILE_TOOL || it->role == SESSILE_FUNCTION ||
           (map_get(&s->p->calls, id, &newest) && s->p->links[newest].item == i);
}

/* A separate result, or the result of a call that answers another call. */
static int pair_result(pass *s, uint32_t k, uint32_t i)
{
    struct pair_link *link = &s->p->links[k];
    const message_link *given = &s->c->links[k];
    uint32_t call = PAIR_NONE;

    link->item = i;
    link->mate = PAIR_NONE;
    link->late = 0;
    if (!given->in_call || answers_others(s, given->id, i))
        call = take_call(s, given->id);
    if (call != PAIR_NONE)
        return answer(s, k, call, i);
    if (given->in_call) /* its own call is the link before it */
        link->mate = k > s->c->items[i].link ? k - 1 : k;
    else
        s->p->flags[i] |= PAIR_ORPHAN;
    return 0;
}

/* Calls go to the table at once if there are many, or if the same message has results:
 * those results must find these calls first. */
static int is_for_table(const item *it, unsigned kinds)
{
    return (kinds & HAS_CALL) && (kinds != HAS_CALL || it->link_count > FEW_CALLS);
}

/* All links of item i, in their order. 1: it answered `asking` in time; -1: NOMEM. */
static int pair_item(pass *s, uint32_t i, unsigned kinds)
{
    const item *it = &s->c->items[i];
    uint32_t k, end = it->link + it->link_count;
    int answered = 0, in_table = is_for_table(it, kinds);

    for (k = it->link; k < end; k++) {
        if (s->c->links[k].is_result) {
            answered |= pair_result(s, k, i);
        } else if (has_own_result(s->c, k, end)) {
            s->p->links[k].item = i;
            s->p->links[k].mate = k + 1;
            s->p->links[k].late = 0;
        } else {
            if (open_call(s, k, i, in_table))
                return -1;
        }
    }
    return answered;
}

static int pass_item(pass *s, uint32_t i)
{
    const item *it = &s->c->items[i];
    unsigned kinds = kinds_of(s->c, it->link, it->link + it->link_count);
    int answered;

    /* New calls are newer than all waiting ones, so these go to the table first. */
    if (kinds & HAS_CALL) {
        if (enter_asking(s))
            return -1;
        s->waiting = 0;
    }
    answered = it->link_count ? pair_item(s, i, kinds) : 0;
    if (answered < 0)
        return -1;
    if (kinds & HAS_CALL) {
        s->asking = i;
        s->in_table = is_for_table(it, kinds);
        return 0;
    }
    if (answered && !(it->flags & ITEM_STARTS_TURN))
        return 0; /* only results: the calls may still be answered in time */
    if (enter_asking(s))
        return -1;
    s->asking = PAIR_NONE;
    return 0;
}

/* A call that still waits is open in the last message with calls, and dead elsewhere. */
static void judge_waiting(pass *s)
{
    pairing *p = s->p;
    size_t k;

    p->first_open = p->item_count;
    for (k = 0; s->unanswered && k < p->link_count; k++) {
        struct pair_link *link = &p->links[k];
        if (link->late != WAITING)
            continue;
        s->unanswered--;
        link->late = 0;
        link->mate = PAIR_NONE;
        if (link->item == s->asking) {
            p->flags[link->item] |= PAIR_OPEN;
            p->first_open = link->item;
        } else {
            p->flags[link->item] |= PAIR_DEAD;
        }
    }
}

int pairing_make(pairing *p, const context *c)
{
    pass s = {p, c, PAIR_NONE, 0, 0, 0};
    uint32_t i;

    if (make_room(p, c->count, c->link_count))
        return -1;
    map_clear(&p->calls);
    for (i = 0; i < c->count; i++)
        p->group[i] = i;
    for (i = 0; i < c->count; i++) {
        /* Most items have no links, and most of these follow other items without links.
         */
        if (c->items[i].link_count == 0 && s.asking == PAIR_NONE)
            continue;
        if (pass_item(&s, i))
            return -1;
    }
    judge_waiting(&s);
    flatten_groups(p);
    return 0;
}

/*
 * uncompact_plan.c: which messages an uncompaction restores, where they are placed, and
 * which ones leave.
 *
 * Must never change anything that a later compaction did, and must never make a list that
 * separates a call from its result or changes the order of the log.
 *
 * The problem: a compaction in the middle of the path is to be undone, and later ones
 * have worked on its result. The rule is that of history_in_force(): only what is still
 * as the compaction left it is undone, and an inserted message comes and goes together
 * with what it covers. So nothing is ever in the context twice, once as it was said and
 * once as part of a summary.
 *
 * A message that returns is placed behind its old neighbour; if that is gone, in the
 * place of the message that covered it; otherwise behind the message that now covers the
 * neighbour. So undoing a compaction immediately restores the old list. From there an
 * entry moves as far as the order of the log requires. Rejected: places by id alone,
 * which cannot say on which side of a summary a message belongs.
 */
#include "history/uncompact_internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/names.h"

/* ------------------------------------------------------------------ which */

/* How many events of the step are in force; which ones, in u->force. */
static int64_t look_at(undoing *u, const history_step *step)
{
    size_t size = step->count ? step->count : 1;
    uint8_t *room = mem_realloc(u->alloc, u->force, u->force_size, size);

    if (!room)
        return -1;
    u->force = room;
    u->force_size = size;
    return history_in_force(&u->h, step, room);
}

static sessile_status no_compaction(const undoing *u, const session_core *s,
                                    sessile_error *err)
{
    sessile_id id = u->which;
    const char *what = id < s->tree.node_count
                           ? entry_type_name((entry_type)s->tree.nodes[id].type)
                           : NULL;

    if (!what)
        fail(err, SESSILE_NOTFOUND,
             "there is no entry %08" PRIx32 ": its newest is %08" PRIx32, id,
             (sessile_id)(s->tree.node_count - 1));
    else if (s->tree.nodes[id].type != ENTRY_COMPACTION)
        fail(err, SESSILE_NOTFOUND,
             "entry %08" PRIx32 " is a %s, not a compaction: there is nothing to undo",
             id, what);
    else if (!(s->tree.nodes[id].marks & NODE_HAS_CONTEXT))
        fail(err, SESSILE_NOTFOUND,
             "compaction %08" PRIx32
             " did not change the context: there is nothing to undo",
             id);
    else
        fail(err, SESSILE_NOTFOUND,
             "compaction %08" PRIx32
             " is not on the path to the head: go to its branch first",
             id);
    return session_name_error(s, SESSILE_NOTFOUND, err);
}

/* The compaction that happened last to what the step did. */
static sessile_id newest_change(const undoing *u, const history_step *step)
{
    sessile_id newest = 0;

    for (uint32_t i = 0; i < step->count; i++) {
        const history_event *e = &u->h.events[step->first + i];
        uint32_t last = history_last(&u->h, e->key);
        if (last != EVENT_NONE && u->h.events[last].at > newest)
            newest = u->h.events[last].at;
    }
    return newest;
}

sessile_status uncompact_choose(undoing *u, session_core *s, sessile_error *err)
{
    int64_t found = 0;

    if (u->which != SESSILE_NO_ID) {
        sessile_status status = SESSILE_OK;
        u->step = history_find(&u->h, u->which);
        if (!u->step && u->which < s->tree.node_count)
            status = session_load_locked(s, u->which, err);
        if (status)
            return status;
        if (!u->step)
            return no_compaction(u, s, err);
        found = look_at(u, u->step);
    } else {
        for (size_t i = u->h.step_count; i > 0 && found == 0; i--) {
            u->step = &u->h.steps[i - 1];
            if (u->step->undoes == SESSILE_NO_ID)
                found = look_at(u, u->step);
        }
    }
    if (found < 0)
        return fail_nomem(err);
    if (found > 0)
        return SESSILE_OK;
    if (u->which == SESSILE_NO_ID)
        fail(err, SESSILE_INVALID,
             "no compaction on the path to the head is in force: there is nothing to "
             "undo");
    else if (u->step->count == 0)
        fail(err, SESSILE_INVALID, "compaction %08" PRIx32 " changed nothing", u->which);
    else
        fail(err, SESSILE_INVALID,
             "nothing of compaction %08" PRIx32 " is in force any more: %08" PRIx32
             " changed it since, take that back first",
             u->which, newest_change(u, u->step));
    return session_name_error(s, SESSILE_INVALID, err);
}

/* ------------------------------------------------------------------ where */

/* The event of the step for a key, when it is in force. */
static const history_event *change_of(const undoing *u, sessile_key key)
{
    uint32_t i;
    if (!map_get(&u->changes, (uint64_t)key.n << 32 | key.entry, &i))
        return NULL;
    return &u->h.events[u->step->first + i];
}

static int goes(const undoing *u, sessile_key key)
{
    const history_event *e = change_of(u, key);
    return e && e->came;
}

/* Where a key stands now, or what stands for it: 1 and *at; 0: nothing does; -1. */
static int stands_at(undoing *u, sessile_key key, size_t *at)
{
    for (size_t i = 0; i <= u->h.step_count; i++) {
        uint32_t last;
        int found = finder_find(&u->in_now, key, at);
        if (found)
            return found;
        last = history_last(&u->h, key);
        if (last == EVENT_NONE || u->h.events[last].came ||
            u->h.events[last].by.entry == SESSILE_NO_ID)
            return 0;
        key = u->h.events[last].by;
    }
    return 0;
}

/* The entries that stay, so that one that comes back is put between the right two. */
typedef struct staying {
    const undoing *u;
    size_t next; /* in now */
    size_t low;  /* behind the last that is older than what was asked for */
} staying;

/* Between which items of now an entry belongs. Asked for ascending entries. */
static void bounds(staying *st, sessile_id entry, size_t *low, size_t *high)
{
    const context *now = &st->u->now;

    for (; st->next < now->count; st->next++) {
        sessile_key key = now->items[st->next].key;
        if (key.n || goes(st->u, key))
            continue;
        if (key.entry > entry)
            break;
        st->low = st->next + 1;
    }
    *low = st->low;
    *high = st->next;
}

/* u->slots: for each item of was that comes back, its place in now. */
static sessile_status find_places(undoing *u, sessile_error *err)
{
    staying st = {.u = u};
    size_t behind = 0, newest = 0, low, high, at;
    int known = 0; /* the item before is there itself, or comes back */

    u->slots = mem_alloc(u->alloc, (u->was.count + 1) * sizeof *u->slots);
    if (!u->slots)
        return fail_nomem(err);
    u->slot_count = u->was.count + 1;
    for (size_t i = 0; i < u->was.count; i++) {
        sessile_key key = u->was.items[i].key;
        const history_event *e = change_of(u, key);
        int found = 0;

        u->slots[i] = SLOT_NONE;
        if (!e || e->came) {
            found = stands_at(u, key, &at);
            if (found > 0)
                behind = at + 1;
            known = found > 0 && key_same(u->now.items[at].key, key);
        } else {
            size_t slot = behind;
            if (!known && e->by.entry != SESSILE_NO_ID)
                found = finder_find(&u->in_now, e->by, &at);
            if (found > 0)
                slot = at;
            if (key.n == 0) {
                bounds(&st, key.entry, &low, &high);
                slot = slot < newest ? newest : slot;
                slot = slot < low ? low : slot > high ? high : slot;
                newest = slot;
            }
            u->slots[i] = (uint32_t)slot;
            behind = slot;
            known = 1;
        }
        if (found < 0)
            return fail_nomem(err);
    }
    return SESSILE_OK;
}

static int note_key(undoing *u, sessile_key key)
{
    buf_put(&u->keys, &key, sizeof key);
    return u->keys.failed ? -1 : 0;
}

/* heads: of each slot's list of what comes back there, threaded through next. */
static int merge(undoing *u, const uint32_t *heads, const uint32_t *next)
{
    for (size_t i = 0; i <= u->now.count; i++) {
        const item *it;
        for (uint32_t k = heads[i]; k != SLOT_NONE; k = next[k]) {
            it = &u->was.items[k];
            if (context_push(&u->after, it, u->was.links + it->link) ||
                note_key(u, it->key))
                return -1;
            u->result.restored_count++;
        }
        if (i == u->now.count)
            return 0;
        it = &u->now.items[i];
        if (!goes(u, it->key) && context_push(&u->after, it, u->now.links + it->link))
            return -1;
    }
    return 0;
}

static sessile_status make_list(undoing *u, sessile_error *err)
{
    size_t heads_count = u->now.count + 1, count = heads_count + u->was.count;
    uint32_t *heads = mem_alloc(u->alloc, count * sizeof *heads);
    uint32_t *next = heads ? heads + heads_count : NULL;
    int code;

    if (!heads)
        return fail_nomem(err);
    memset(heads, 0xff, count * sizeof *heads); /* SLOT_NONE */
    for (size_t i = u->was.count; i-- > 0;) {
        if (u->slots[i] == SLOT_NONE)
            continue;
        next[i] = heads[u->slots[i]];
        heads[u->slots[i]] = (uint32_t)i;
    }
    code = merge(u, heads, next);
    mem_free(u->alloc, heads, count * sizeof *heads);
    for (size_t i = 0; !code && i < u->now.count; i++)
        if (goes(u, u->now.items[i].key)) {
            code = note_key(u, u->now.items[i].key);
            u->result.removed_count++;
        }
    return code ? fail_nomem(err) : SESSILE_OK;
}

sessile_status uncompact_propose(undoing *u, sessile_error *err)
{
    sessile_status status = find_places(u, err);

    return status ? status : make_list(u, err);
}

/* ------------------------------------------------------------------ the laws */

/* How a call or result fares: 0, 1: answered late, 2: without the other. */
static int link_fault(const pairing *p, size_t link)
{
    return p->links[link].mate == PAIR_NONE ? 2 : p->links[link].late ? 1 : 0;
}

/* A list that was there, with its pairs. */
typedef struct proof {
    const context *c;
    pairing pairs;
    finder find;
} proof;

/* 1: it was no better there; 0: it was, or it was not there; -1. */
static int excuses(proof *w, const item *it, uint32_t offset, int fault)
{
    size_t at;
    int found = finder_find(&w->find, it->key, &at);

    if (found <= 0)
        return found;
    return offset < w->c->items[at].link_count &&
           link_fault(&w->pairs, w->c->items[at].link + offset) >= fault;
}

static sessile_status torn(const undoing *u, const session_core *s, const item *it,
                           uint32_t offset, sessile_error *err)
{
    char key[SESSILE_KEY_SIZE];

    key_print(it->key, key);
    fail(err, SESSILE_INVALID,
         "undoing compaction %08" PRIx32
         " would separate a call from its result: %s in %s (law 1, pairs); undo the "
         "later compactions first",
         u->step->at,
         u->after.links[it->link + offset].is_result ? "the result" : "the call", key);
    return session_name_error(s, SESSILE_INVALID, err);
}

/* A pair may be broken that was as broken now, then, or in the log. */
static sessile_status check_pairs(undoing *u, const session_core *s, sessile_error *err)
{
    proof w[3] = {{.c = &u->now}, {.c = &u->was}, {.c = &u->path}};
    sessile_status status = SESSILE_OK;
    pairing is;

    pairing_init(&is, u->alloc);
    for (int k = 0; k < 3; k++) {
        pairing_init(&w[k].pairs, u->alloc);
        finder_init(&w[k].find, w[k].c, u->alloc);
    }
    if (pairing_make(&is, &u->after))
        status = fail_nomem(err);
    for (int k = 0; !status && k < 3; k++)
        if (pairing_make(&w[k].pairs, w[k].c))
            status = fail_nomem(err);
    for (size_t i = 0; !status && i < u->after.count; i++) {
        const item *it = &u->after.items[i];
        for (uint32_t j = 0; !status && j < it->link_count; j++) {
            int fault = link_fault(&is, it->link + j), excused = 0;
            for (int k = 0; fault && !excused && k < 3; k++)
                excused = excuses(&w[k], it, j, fault);
            if (excused < 0)
                status = fail_nomem(err);
            else if (fault && !excused)
                status = torn(u, s, it, j, err);
        }
    }
    for (int k = 0; k < 3; k++) {
        pairing_deinit(&w[k].pairs);
        finder_deinit(&w[k].find);
    }
    pairing_deinit(&is);
    return status;
}

/* Entries ascend: only a list that was made by hand has it otherwise. */
static sessile_status check_order(const undoing *u, const session_core *s,
                                  sessile_error *err)
{
    sessile_id last = 0;

    for (size_t i = 0; i < u->after.count; i++) {
        sessile_key key = u->after.items[i].key;
        if (key.n)
            continue;
        if (key.entry <= last)
            return session_name_error(
                s,
                fail(err, SESSILE_INVALID,
                     "taking compaction %08" PRIx32 " back would put entry %08" PRIx32
                     " behind %08" PRIx32 ", which came after it (law 4, order)",
                     u->step->at, key.entry, last),
                err);
        last = key.entry;
    }
    return SESSILE_OK;
}

/* What somebody pinned stays until it is unpinned. */
static sessile_status check_pins(const undoing *u, const session_core *s,
                                 sessile_error *err)
{
    for (size_t i = 0; i < u->now.count; i++) {
        const item *it = &u->now.items[i];
        if (!goes(u, it->key) || !(it->flags & ITEM_PINNED) || (it->flags & ITEM_OPENING))
            continue;
        return session_name_error(s,
                                  fail(err, SESSILE_INVALID,
                                       "taking compaction %08" PRIx32
                                       " back would take out %08" PRIx32
                                       ", which is pinned (law 5): unpin it first",
                                       u->step->at, it->key.entry),
                                  err);
    }
    return SESSILE_OK;
}

sessile_status uncompact_check(undoing *u, const session_core *s, sessile_error *err)
{
    sessile_status status = check_pins(u, s, err);

    if (!status)
        status = check_order(u, s, err);
    if (!status)
        status = check_pairs(u, s, err);
    return status;
}

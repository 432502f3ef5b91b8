/*
 * uncompact.c: a compaction taken back, as a compaction by the engine.
 *
 * Owns what comes back, where it stands, and what goes. Must never change anything that a
 * later compaction did, and must never write a list that tears a call from its result or
 * turns the order of the log around.
 *
 * The problem: a compaction in the middle of the path is to be taken back, and those
 * after it have worked on what it left. The rule is history_in_force()'s: only what is so
 * to this day is taken back, and a message that was written goes and comes together with
 * what it stands for. So nothing is ever in the context twice, once as it was said and
 * once as part of a summary.
 *
 * The place of what comes back: behind what it stood behind before; when that is gone,
 * where the message stands that covered it; else behind what stands for what it stood
 * behind. So what is taken back at once is exactly what it was. An entry moves from there
 * as far as the order of the log wants it. Rejected: by id alone, which cannot say on
 * which side of a summary a message belongs.
 */
#include "history/history.h"

#include <inttypes.h>
#include <string.h>

#include "base/names.h"
#include "session/fold.h"
#include "session/compaction.h"
#include "session/life.h"
#include "context/laws.h"

typedef struct undoing {
    sessile_id which; /* as asked */
    /* what is made, anew at each build */
    history h;
    const history_step *step;
    uint8_t *force; /* one per event of the step */
    size_t force_size;
    /* at the head; before the step; all of the path; as proposed */
    context now, was, path, after;
    finder in_now;
    map changes;     /* of keys: the step's event */
    uint32_t *slots; /* one per item of was: before which item of now it comes back */
    size_t slot_count;
    buf keys; /* restored, then removed: sessile_key[] */
    sessile_uncompacted result;
    const char *source; /* of its counts; static */
    buf data;
    const allocator *alloc;
} undoing;

#define SLOT_NONE UINT32_MAX

static void clear(undoing *u)
{
    const allocator *a = u->alloc;

    history_deinit(&u->h);
    finder_deinit(&u->in_now);
    mem_free(a, u->force, u->force_size);
    mem_free(a, u->slots, u->slot_count * sizeof *u->slots);
    u->force = NULL;
    u->slots = NULL;
    u->force_size = u->slot_count = 0;
    context_clear(&u->now);
    context_clear(&u->was);
    context_clear(&u->path);
    context_clear(&u->after);
    map_clear(&u->changes);
    buf_clear(&u->keys);
    buf_clear(&u->data);
}

static void undoing_init(undoing *u, sessile_id which, const allocator *a)
{
    memset(u, 0, sizeof *u);
    u->which = which;
    u->alloc = a;
    history_init(&u->h, a);
    context_init(&u->now, a);
    context_init(&u->was, a);
    context_init(&u->path, a);
    context_init(&u->after, a);
    map_init(&u->in_now.table, a);
    map_init(&u->changes, a);
    buf_init(&u->keys, a);
    buf_init(&u->data, a);
    u->result.compaction = SESSILE_NO_ID;
}

static void undoing_deinit(undoing *u)
{
    clear(u);
    context_deinit(&u->now);
    context_deinit(&u->was);
    context_deinit(&u->path);
    context_deinit(&u->after);
    map_deinit(&u->changes);
    buf_deinit(&u->keys);
    buf_deinit(&u->data);
}

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

static sessile_status no_compaction(const undoing *u, const sessile_session *s,
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
             "entry %08" PRIx32 " is a %s, no compaction: there is nothing to take back",
             id, what);
    else if (!(s->tree.nodes[id].marks & NODE_HAS_CONTEXT))
        fail(err, SESSILE_NOTFOUND,
             "compaction %08" PRIx32
             " left the context as it was: there is nothing to take back",
             id);
    else
        fail(err, SESSILE_NOTFOUND,
             "compaction %08" PRIx32
             " is not on the path to the head: go to its branch first",
             id);
    return session_named(s, SESSILE_NOTFOUND, err);
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

static sessile_status choose(undoing *u, sessile_session *s, sessile_error *err)
{
    int64_t found = 0;

    if (u->which != SESSILE_NO_ID) {
        sessile_status status = SESSILE_OK;
        u->step = history_find(&u->h, u->which);
        if (!u->step && u->which < s->tree.node_count)
            status = session_reach_locked(s, u->which, err);
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
             "take back");
    else if (u->step->count == 0)
        fail(err, SESSILE_INVALID, "compaction %08" PRIx32 " changed nothing", u->which);
    else
        fail(err, SESSILE_INVALID,
             "nothing of compaction %08" PRIx32 " is in force any more: %08" PRIx32
             " changed it since, take that back first",
             u->which, newest_change(u, u->step));
    return session_named(s, SESSILE_INVALID, err);
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

static sessile_status propose(undoing *u, sessile_error *err)
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

/* ------------------------------------------------------------------ the laws */

/* How a call or result fares: 0, 1: answered late, 2: without the other. */
static int fault_of(const pairing *p, size_t link)
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
           fault_of(&w->pairs, w->c->items[at].link + offset) >= fault;
}

static sessile_status torn(const undoing *u, const sessile_session *s, const item *it,
                           uint32_t offset, sessile_error *err)
{
    char key[SESSILE_KEY_SIZE];

    key_print(it->key, key);
    fail(err, SESSILE_INVALID,
         "taking compaction %08" PRIx32
         " back would tear a call from its result: %s in %s (law 1, pairs); take back "
         "what came after it first",
         u->step->at,
         u->after.links[it->link + offset].is_result ? "the result" : "the call", key);
    return session_named(s, SESSILE_INVALID, err);
}

/* A pair may be broken that was as broken now, then, or in the log. */
static sessile_status check_pairs(undoing *u, const sessile_session *s,
                                  sessile_error *err)
{
    proof w[3] = {{.c = &u->now}, {.c = &u->was}, {.c = &u->path}};
    sessile_status status = SESSILE_OK;
    pairing is;

    pairing_init(&is, u->alloc);
    for (int k = 0; k < 3; k++) {
        pairing_init(&w[k].pairs, u->alloc);
        finder_init(&w[k].find, w[k].c, u->alloc);
    }
    if (pairing_of(&is, &u->after))
        status = fail_nomem(err);
    for (int k = 0; !status && k < 3; k++)
        if (pairing_of(&w[k].pairs, w[k].c))
            status = fail_nomem(err);
    for (size_t i = 0; !status && i < u->after.count; i++) {
        const item *it = &u->after.items[i];
        for (uint32_t j = 0; !status && j < it->link_count; j++) {
            int fault = fault_of(&is, it->link + j), excused = 0;
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
static sessile_status check_order(const undoing *u, const sessile_session *s,
                                  sessile_error *err)
{
    sessile_id last = 0;

    for (size_t i = 0; i < u->after.count; i++) {
        sessile_key key = u->after.items[i].key;
        if (key.n)
            continue;
        if (key.entry <= last)
            return session_named(
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
static sessile_status check_pins(const undoing *u, const sessile_session *s,
                                 sessile_error *err)
{
    for (size_t i = 0; i < u->now.count; i++) {
        const item *it = &u->now.items[i];
        if (!goes(u, it->key) || !(it->flags & ITEM_PINNED) || (it->flags & ITEM_OPENING))
            continue;
        return session_named(s,
                             fail(err, SESSILE_INVALID,
                                  "taking compaction %08" PRIx32
                                  " back would take out %08" PRIx32
                                  ", which is pinned (law 5): unpin it first",
                                  u->step->at, it->key.entry),
                             err);
    }
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ all of it */

static sessile_status read_lists(undoing *u, sessile_session *s, sessile_error *err)
{
    sessile_id *path = NULL;
    size_t count = 0;
    const context *now;
    sessile_status status = session_context_locked(s, &now, err);

    if (!status && context_copy(&u->now, now))
        status = fail_nomem(err);
    if (!status)
        status =
            session_context_at_locked(s, s->tree.nodes[u->step->at].parent, &u->was, err);
    if (!status)
        status = session_path_locked(s, s->tree.head, &path, &count, err);
    for (size_t i = 0; !status && i < count; i++)
        if (context_push_node(s, path[i], &u->path))
            status = fail_nomem(err);
    if (path)
        mem_free(&s->store->alloc, path, count * sizeof *path);
    finder_init(&u->in_now, &u->now, u->alloc);
    return status;
}

static sessile_status prepare(undoing *u, sessile_session *s, sessile_error *err)
{
    meter_ratio fit[TOKEN_UNITS];
    int64_t outside = 0;
    sessile_tokens before, after;
    sessile_status status;

    status = session_check_running_locked(s, err);
    if (status)
        return status;
    clear(u);
    memset(&u->result, 0, sizeof u->result);
    u->result.compaction = SESSILE_NO_ID;
    status = history_make(&u->h, s, s->tree.head, err);
    if (!status)
        status = choose(u, s, err);
    if (!status)
        status = read_lists(u, s, err);
    for (uint32_t i = 0; !status && i < u->step->count; i++) {
        sessile_key key = u->h.events[u->step->first + i].key;
        if (u->force[i] && map_put(&u->changes, (uint64_t)key.n << 32 | key.entry, i))
            status = fail_nomem(err);
    }
    if (!status)
        status = find_places(u, err);
    if (!status)
        status = propose(u, err);
    if (!status)
        status = check_pins(u, s, err);
    if (!status)
        status = check_order(u, s, err);
    if (!status)
        status = check_pairs(u, s, err);
    if (!status)
        status = session_fit_locked(s, s->tree.head, fit, err);
    if (!status)
        status = session_outside_locked(s, s->tree.head, &outside, err);
    if (status)
        return status;
    u->result.undone = u->step->at;
    status = session_tokens_locked(s, &before, err);
    if (!status)
        status = session_tokens_with_locked(s, s->tree.head, &u->after, &after, err);
    if (status)
        return status;
    meter_scale_context(&u->now, fit);
    meter_scale_context(&u->was, fit);
    meter_scale_context(&u->after, fit);
    u->source = meter_source(&u->now);
    u->result.tokens_before = before.tokens;
    u->result.tokens_after = after.tokens;
    u->result.cannot_fit =
        laws_cannot_fit(&u->after, s->settings.window, s->settings.reserve + outside);
    return SESSILE_OK;
}

static const sessile_key *restored_of(const undoing *u)
{
    return (const sessile_key *)(const void *)u->keys.data;
}

static int64_t tokens_of(const context *c, const sessile_key *keys, size_t count)
{
    int64_t sum = 0;
    finder f;
    size_t at;

    finder_init(&f, c, c->alloc);
    for (size_t i = 0; i < count; i++)
        if (finder_find(&f, keys[i], &at) > 0)
            sum += c->items[at].tokens;
    finder_deinit(&f);
    return sum;
}

static sessile_status put_part(undoing *u, sessile_session *s, const char *name,
                               const context *c, const sessile_key *keys, size_t count,
                               const char **separator, sessile_error *err)
{
    sessile_status status;

    if (!count)
        return SESSILE_OK;
    buf_printf(&u->data, "%s\"%s\":{\"tokens\":%" PRId64 ",\"entries\":", *separator,
               name, tokens_of(c, keys, count));
    status = compaction_put_keys(s, keys, count, 0, &u->data, err);
    buf_putc(&u->data, '}');
    *separator = ",";
    return status;
}

/* The data of the entry, as session.h describes it. */
static sessile_status put_data(undoing *u, sessile_session *s, sessile_error *err)
{
    size_t count = u->after.count ? u->after.count : 1;
    sessile_key *keys = mem_alloc(u->alloc, count * sizeof *keys);
    const char *separator = "";
    sessile_status status;

    if (!keys)
        return fail_nomem(err);
    for (size_t i = 0; i < u->after.count; i++)
        keys[i] = u->after.items[i].key;
    buf_puts(&u->data, "{\"context\":");
    status = compaction_put_keys(s, keys, u->after.count, 0, &u->data, err);
    mem_free(u->alloc, keys, count * sizeof *keys);
    buf_printf(&u->data,
               ",\"upto\":\"%08" PRIx32
               "\",\"policy\":[],\"reason\":\"manual\",\"uncompacts\":\"%08" PRIx32
               "\",\"tokens_before\":%" PRId64 ",\"tokens_after\":%" PRId64
               ",\"token_source\":\"%s\",\"account\":{",
               s->tree.head, u->step->at, u->result.tokens_before, u->result.tokens_after,
               u->source);
    if (!status)
        status = put_part(u, s, "restored", &u->was, restored_of(u),
                          u->result.restored_count, &separator, err);
    if (!status)
        status =
            put_part(u, s, "removed", &u->now, restored_of(u) + u->result.restored_count,
                     u->result.removed_count, &separator, err);
    buf_puts(&u->data, "}}");
    return !status && u->data.failed ? fail_nomem(err) : status;
}

static sessile_status build(void *arg, sessile_session *s, batch *b, sessile_error *err)
{
    undoing *u = arg;
    sessile_status status = session_check_base_locked(s, s->tree.base, 0, err);

    if (!status)
        status = prepare(u, s, err);
    if (!status)
        status = put_data(u, s, err);
    if (status)
        return status;
    u->result.compaction = batch_put(b, s->tree.head, ENTRY_COMPACTION, SOURCE_HOST,
                                     u->data.data, u->data.size);
    return SESSILE_OK;
}

static sessile_status look(undoing *u, sessile_session *s, sessile_error *err)
{
    sessile_status status = session_lock(s, err);

    if (status)
        return status;
    status = session_refresh_locked(s, err);
    if (!status)
        status = session_check_base_locked(s, s->tree.base, 0, err);
    if (!status)
        status = prepare(u, s, err);
    session_unlock(s);
    return status;
}

static sessile_uncompacted *give(const undoing *u)
{
    size_t size = u->keys.size;
    sessile_uncompacted *out = give_alloc(u->alloc, sizeof *out + size);
    sessile_key *keys;

    if (!out)
        return NULL;
    *out = u->result;
    keys = (sessile_key *)(void *)(out + 1);
    if (size)
        memcpy(keys, u->keys.data, size);
    out->restored = keys;
    out->removed = keys + u->result.restored_count;
    return out;
}

sessile_status session_uncompact(sessile_session *s, sessile_id which, int dry_run,
                                 sessile_uncompacted **out, sessile_error *err)
{
    sessile_status status;
    undoing u;

    *out = NULL;
    undoing_init(&u, which, &s->store->alloc);
    status = dry_run ? look(&u, s, err) : session_write(s, build, &u, NULL, err);
    if (!status && !(*out = give(&u)))
        status = fail_nomem(err);
    undoing_deinit(&u);
    return status;
}

/*
 * why.c: explains why a message is, or is not, in the context at the head.
 *
 * Owns the chain of events: those of the message and, while another message covered it,
 * those of that message. Must never say more than the entries do, and never changes
 * anything.
 */
#include "history/history.h"

#include <string.h>

#include "base/alloc.h"
#include "session/fold.h"
#include "session/compaction.h"

static const sessile_key nobody = {SESSILE_NO_ID, 0};

/* A step before its pointers are set. */
typedef struct step {
    sessile_why_step s;
    size_t row; /* of its compaction; SIZE_MAX: none */
    size_t stands_at;
} step;

typedef struct asking {
    session_core *s;
    sessile_key key;
    history h;
    compaction_rows *rows;
    map row_of; /* of compactions: their row */
    step *steps;
    size_t step_count, step_capacity;
    buf keys;  /* what written messages stand for: sessile_key[] */
    buf chain; /* the message and what stands for it, each for the one before: uint32_t
                  events of the newest thing that happened, EVENT_NONE: nothing yet */
    int in_context;
    sessile_key shown;
    const allocator *alloc;
    sessile_error *err;
} asking;

static sessile_status add_step(asking *a, sessile_why_kind kind, sessile_key key,
                               sessile_id at, step **out)
{
    step *added;

    if (mem_grow(a->alloc, (void **)&a->steps, &a->step_capacity, a->step_count + 1,
                 sizeof *a->steps))
        return fail_nomem(a->err);
    added = &a->steps[a->step_count++];
    memset(added, 0, sizeof *added);
    added->s.kind = kind;
    added->s.key = key;
    added->s.at = at;
    added->s.by = nobody;
    added->s.type = "";
    added->s.time_ms = a->s->tree.nodes[at].time_ms;
    added->row = SIZE_MAX;
    *out = added;
    return SESSILE_OK;
}

static sessile_status set_row(asking *a, step *of, sessile_id at)
{
    uint32_t known;
    size_t row;
    sessile_status status;

    if (map_get(&a->row_of, at, &known)) {
        of->row = known;
        return SESSILE_OK;
    }
    status = compaction_rows_add(a->rows, at, &row, a->err);
    if (!status && map_put(&a->row_of, at, (uint32_t)row))
        status = fail_nomem(a->err);
    if (!status)
        of->row = row;
    return status;
}

/* ------------------------------------------------------------------ how it began */

/* What a written message stands for, and its role. */
static sessile_status read_inserted(asking *a, step *of, sessile_key key)
{
    static const char *const lists[] = {"replaces", "covers"};
    context names;
    json_iter it;
    uint64_t n = 0;
    buf text;
    entry e;
    sessile_status status;

    context_init(&names, a->alloc);
    buf_init(&text, a->alloc);
    status = session_read_entry(a->s, key.entry, &text, &e, a->err);
    it = json_begin(status ? (json){NULL, 0, JSON_NONE} : json_get(e.data, "inserted"));
    while (!status && json_next(&it)) {
        if (json_uint(json_get(it.value, "n"), &n) || n != key.n)
            continue;
        of->s.role = message_speaker_in(json_get(it.value, "message"));
        for (int k = 0; !status && k < 2; k++)
            status = compaction_names(a->s, key.entry, json_get(it.value, lists[k]),
                                      &names, a->err);
        break;
    }
    if (!status && n != key.n)
        status = session_name_error(a->s,
                                    fail(a->err, SESSILE_NOTFOUND,
                                         "compaction %08x wrote no message %u",
                                         (unsigned)key.entry, (unsigned)key.n),
                                    a->err);
    of->stands_at = a->keys.size / sizeof(sessile_key);
    of->s.stands_for_count = names.count;
    for (size_t i = 0; !status && i < names.count; i++)
        buf_put(&a->keys, &names.items[i].key, sizeof(sessile_key));
    if (!status && a->keys.failed)
        status = fail_nomem(a->err);
    context_deinit(&names);
    buf_deinit(&text);
    return status;
}

/* Where the path to id leaves the path to the head. */
static sessile_id common(const session_core *s, sessile_id id)
{
    sessile_id head = s->tree.head;

    while (id != head)
        if (id > head)
            id = s->tree.nodes[id].parent;
        else
            head = s->tree.nodes[head].parent;
    return id;
}

/* Whether there is such a thing at all. */
static sessile_status check_key(asking *a)
{
    session_core *s = a->s;
    sessile_id id = a->key.entry;
    sessile_status status;

    if (id >= s->tree.node_count)
        return session_name_error(s,
                                  fail(a->err, SESSILE_NOTFOUND,
                                       "there is no entry %08x: its newest is %08x",
                                       (unsigned)id, (unsigned)(s->tree.node_count - 1)),
                                  a->err);
    status = session_load_path_locked(s, s->tree.head, 0, a->err);
    if (!status)
        status = session_load_path_locked(s, id, 0, a->err);
    if (!status)
        status = session_load_locked(s, id, a->err);
    if (!status && a->key.n && s->tree.nodes[id].type != ENTRY_COMPACTION)
        return session_name_error(
            s,
            fail(a->err, SESSILE_NOTFOUND, "entry %08x is a %s, which writes no messages",
                 (unsigned)id, entry_type_name((entry_type)s->tree.nodes[id].type)),
            a->err);
    return status;
}

/* The first step. *ends: nothing more is to be said. */
static sessile_status begin_account(asking *a, int *ends)
{
    session_core *s = a->s;
    sessile_id id = a->key.entry;
    const node *n = &s->tree.nodes[id];
    sessile_status status;
    step *of;

    *ends = 1;
    if (!a->key.n && !node_is_message(n)) {
        status = add_step(a, SESSILE_WHY_NO_MESSAGE, a->key, id, &of);
        if (!status)
            of->s.type = entry_type_name((entry_type)n->type);
        return status;
    }
    status =
        add_step(a, a->key.n ? SESSILE_WHY_WRITTEN : SESSILE_WHY_SAID, a->key, id, &of);
    if (status)
        return status;
    of->s.role = message_speaker((sessile_role)n->role, n->flags);
    if (a->key.n)
        status = read_inserted(a, of, a->key);
    if (!status && a->key.n)
        status = set_row(a, of, id);
    if (status)
        return status;
    *ends = !session_descends_locked(s, s->tree.head, id);
    return *ends ? add_step(a, SESSILE_WHY_ELSEWHERE, a->key, common(s, id), &of)
                 : SESSILE_OK;
}

/* ------------------------------------------------------------------ what happened */

/* One of the chain: a message, and the last of its events that was told. */
typedef struct link {
    sessile_key key;
    uint32_t told;
} link;

static link *links_of(const asking *a)
{
    return (link *)(void *)a->chain.data;
}

static size_t link_count(const asking *a)
{
    return a->chain.size / sizeof(link);
}

/* The next event of the chain after compaction `since`: the earliest, of the message
 * nearest to the one that was asked for. */
static uint32_t next_event(const asking *a, sessile_id since, size_t *whose)
{
    uint32_t best = EVENT_NONE;

    for (size_t i = 0; i < link_count(a); i++) {
        link *l = &links_of(a)[i];
        uint32_t e = l->told == EVENT_NONE ? history_first(&a->h, l->key) : l->told;
        while (e != EVENT_NONE && a->h.events[e].at <= since)
            e = a->h.events[e].next;
        if (e == EVENT_NONE)
            continue;
        if (best == EVENT_NONE || a->h.events[e].at < a->h.events[best].at) {
            best = e;
            *whose = i;
        }
    }
    return best;
}

static sessile_status tell_event(asking *a, const history_event *e)
{
    step *of;
    sessile_status status = add_step(a, e->came ? SESSILE_WHY_RESTORED : SESSILE_WHY_LEFT,
                                     e->key, e->at, &of);

    if (status)
        return status;
    if (!e->came) {
        of->s.disposition = (sessile_disposition)e->disposition;
        of->s.by = e->by;
    }
    return set_row(a, of, e->at);
}

/* A written message comes by the compaction that wrote it: that was told at first. */
static sessile_status follow(asking *a)
{
    sessile_id since = a->key.n ? a->key.entry : 0;
    link first = {a->key, EVENT_NONE};
    sessile_status status = SESSILE_OK;
    uint32_t e;
    size_t whose = 0;

    buf_put(&a->chain, &first, sizeof first);
    while (!status && !a->chain.failed &&
           (e = next_event(a, since, &whose)) != EVENT_NONE) {
        const history_event *event = &a->h.events[e];
        link stands = {event->by, EVENT_NONE};
        links_of(a)[whose].told = e;
        a->chain.size = (whose + 1) * sizeof(link);
        since = event->at;
        status = tell_event(a, event);
        if (!event->came && event->by.entry != SESSILE_NO_ID)
            buf_put(&a->chain, &stands, sizeof stands);
    }
    if (!status && a->chain.failed)
        status = fail_nomem(a->err);
    return status;
}

/* ------------------------------------------------------------------ how it is shown */

static sessile_status text_locked(void *arg, sessile_key key, buf *out,
                                  sessile_error *err)
{
    return session_message_locked(arg, key, out, err);
}

/* The message with the call of item at: of its own list; else of the path. */
static sessile_status call_of(asking *a, const context *c, const pairing *p, size_t at,
                              sessile_key *out)
{
    const item *it = &c->items[at];
    sessile_id *ids = NULL;
    size_t count = 0;
    context path;
    pairing pairs;
    sessile_status status = SESSILE_OK;

    *out = nobody;
    for (uint32_t k = it->link; k < it->link + it->link_count; k++)
        if (p->links[k].late)
            *out = c->items[p->links[p->links[k].mate].item].key;
    if (out->entry != SESSILE_NO_ID || it->key.n)
        return SESSILE_OK;
    context_init(&path, a->alloc);
    pairing_init(&pairs, a->alloc);
    status = session_path_locked(a->s, a->s->tree.head, &ids, &count, a->err);
    for (size_t i = 0; !status && i < count; i++)
        if (context_push_node(a->s, ids[i], &path))
            status = fail_nomem(a->err);
    if (!status && pairing_make(&pairs, &path))
        status = fail_nomem(a->err);
    for (size_t i = 0; !status && i < path.count; i++)
        for (uint32_t k = 0; ids[i] == it->key.entry && k < path.items[i].link_count; k++)
            if (pairs.links[path.items[i].link + k].mate != PAIR_NONE)
                *out =
                    path.items[pairs.links[pairs.links[path.items[i].link + k].mate].item]
                        .key;
    if (ids)
        mem_free(&a->s->store->alloc, ids, count * sizeof *ids);
    pairing_deinit(&pairs);
    context_deinit(&path);
    return status;
}

/* Whether the list shows an item as a row of its own. */
static sessile_status is_shown(asking *a, const context *c, sessile_key key, int *out)
{
    sessile_message *rows = NULL;
    size_t count = 0;
    sessile_status status =
        render_context(c, text_locked, a->s, NULL, &rows, &count, NULL, a->alloc, a->err);

    *out = 0;
    for (size_t i = 0; !status && i < count; i++)
        *out |= key_same(rows[i].key, key);
    host_free(rows);
    return status;
}

/* What stands for it at the end, and how that is shown. */
static sessile_status end_account(asking *a)
{
    sessile_key key = links_of(a)[link_count(a) - 1].key;
    const context *c;
    sessile_status status = session_context_locked(a->s, &c, a->err);
    pairing pairs;
    finder find;
    size_t at = 0;
    sessile_key by = nobody;
    int found, shown = 0;
    step *of;

    if (status)
        return status;
    finder_init(&find, c, a->alloc);
    pairing_init(&pairs, a->alloc);
    found = finder_find(&find, key, &at);
    if (found < 0 || (found && pairing_make(&pairs, c)))
        status = fail_nomem(a->err);
    if (!status && found)
        status = is_shown(a, c, key, &shown);
    if (!status && shown) {
        a->shown = key;
        a->in_context = key_same(key, a->key);
    }
    if (!status && found && !shown) {
        status = add_step(a, SESSILE_WHY_ORPHAN, key, a->s->tree.head, &of);
        if (!status)
            status = call_of(a, c, &pairs, at, &by);
        /* a call that is there has been answered by another result */
        found = status || by.entry == SESSILE_NO_ID ? 1 : finder_find(&find, by, &at);
        if (found < 0)
            status = fail_nomem(a->err);
        else if (!found)
            a->steps[a->step_count - 1].s.by = by;
    } else if (!status && shown && (pairs.flags[at] & PAIR_LATE)) {
        status = add_step(a, SESSILE_WHY_MOVED, key, a->s->tree.head, &of);
        if (!status)
            status = call_of(a, c, &pairs, at, &a->steps[a->step_count - 1].s.by);
    } else if (!status && shown && (pairs.flags[at] & PAIR_DEAD)) {
        status = add_step(a, SESSILE_WHY_UNANSWERED, key, a->s->tree.head, &of);
    }
    pairing_deinit(&pairs);
    finder_deinit(&find);
    return status;
}

/* ------------------------------------------------------------------ handed out */

/* One block: the explanation, its steps, rows of compactions with their text, keys. */
static sessile_explanation *make_explanation(const asking *a)
{
    size_t steps = a->step_count * sizeof(sessile_why_step), keys = a->keys.size;
    size_t rows = compaction_rows_size(a->rows);
    sessile_explanation *out = NULL;
    const sessile_compaction *compactions;
    sessile_why_step *to;
    sessile_key *stands;

    if (steps < SIZE_MAX / 4 && keys < SIZE_MAX / 4 && rows < SIZE_MAX / 4)
        out = host_alloc(a->alloc, sizeof *out + steps + keys + rows + 8);
    if (!out)
        return NULL;
    to = (sessile_why_step *)(void *)(out + 1);
    stands = (sessile_key *)(void *)(to + a->step_count);
    if (keys)
        memcpy(stands, a->keys.data, keys);
    /* a key has the size of what rows are aligned to */
    compactions = compaction_rows_give(a->rows, (char *)stands + keys);
    for (size_t i = 0; i < a->step_count; i++) {
        to[i] = a->steps[i].s;
        if (to[i].stands_for_count)
            to[i].stands_for = stands + a->steps[i].stands_at;
        if (a->steps[i].row != SIZE_MAX)
            to[i].compaction = compactions + a->steps[i].row;
    }
    out->key = a->key;
    out->in_context = a->in_context;
    out->shown = a->shown;
    out->steps = to;
    out->step_count = a->step_count;
    return out;
}

static sessile_status explain(asking *a)
{
    sessile_status status = check_key(a);
    int ends = 0;

    if (!status)
        status = history_make(&a->h, a->s, a->s->tree.head, a->err);
    if (!status)
        status = compaction_rows_new(&a->rows, a->s, &a->h, a->err);
    if (!status)
        status = begin_account(a, &ends);
    if (!status && !ends)
        status = follow(a);
    if (!status && !ends)
        status = end_account(a);
    return status;
}

sessile_status session_why(session_core *s, sessile_key key, sessile_explanation **out,
                           sessile_error *err)
{
    asking a = {.s = s,
                .key = key,
                .alloc = &s->store->alloc,
                .err = err,
                .shown = {SESSILE_NO_ID, 0}};
    sessile_status status = session_lock(s, err);

    *out = NULL;
    if (status)
        return status;
    history_init(&a.h, a.alloc);
    map_init(&a.row_of, a.alloc);
    buf_init(&a.keys, a.alloc);
    buf_init(&a.chain, a.alloc);
    status = session_refresh_locked(s, err);
    if (!status)
        status = explain(&a);
    if (!status && !(*out = make_explanation(&a)))
        status = fail_nomem(err);
    session_unlock(s);
    mem_free(a.alloc, a.steps, a.step_capacity * sizeof *a.steps);
    compaction_rows_free(a.rows);
    map_deinit(&a.row_of);
    buf_deinit(&a.keys);
    buf_deinit(&a.chain);
    history_deinit(&a.h);
    return status;
}

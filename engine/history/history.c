/*
 * history.c: what the compactions on a path did, message by message.
 *
 * Owns the comparison of each compaction's list with the context that it changed. Must
 * never guess: what left and what came is taken from the lists, and what covers what is
 * taken from the entries that wrote the messages. The accounts in the entries are for
 * people and are not read.
 *
 * A compaction that takes another one back names it. What it takes out and puts back is
 * in its list, as usual. The other compaction is only asked what had happened to a
 * message before, so that a message that leaves again is covered by the message that
 * covered it the first time.
 */
#include "history/history.h"

#include <string.h>

#include "session/fold.h"
#include "session/compaction.h"

static const sessile_key nobody = {SESSILE_NO_ID, 0};

/* Distinct keys have distinct numbers; 0 is no key of a message. */
static uint64_t number_of(sessile_key key)
{
    return (uint64_t)key.n << 32 | key.entry;
}

void history_init(history *h, const allocator *a)
{
    memset(h, 0, sizeof *h);
    h->alloc = a;
    map_init(&h->first, a);
    map_init(&h->last, a);
}

void history_deinit(history *h)
{
    const allocator *a = h->alloc;
    mem_free(a, h->steps, h->step_capacity * sizeof *h->steps);
    mem_free(a, h->events, h->event_capacity * sizeof *h->events);
    mem_free(a, h->groups, h->group_capacity * sizeof *h->groups);
    mem_free(a, h->turns, h->turn_capacity * sizeof *h->turns);
    map_deinit(&h->first);
    map_deinit(&h->last);
    history_init(h, a);
}

uint32_t history_first(const history *h, sessile_key key)
{
    uint32_t at;
    return map_get(&h->first, number_of(key), &at) ? at : EVENT_NONE;
}

uint32_t history_last(const history *h, sessile_key key)
{
    uint32_t at;
    return map_get(&h->last, number_of(key), &at) ? at : EVENT_NONE;
}

const history_step *history_find(const history *h, sessile_id at)
{
    size_t low = 0, high = h->step_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (h->steps[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < h->step_count && h->steps[low].at == at ? &h->steps[low] : NULL;
}

/* ------------------------------------------------------------------ making it */

typedef struct maker {
    history *h;
    session_core *s;
    sessile_id *path; /* its messages, oldest first */
    size_t path_count;
    context before, after, names;
    map marks;       /* of keys: in which list they were seen last */
    map inserted_of; /* of keys: the put of this compaction that stands for it */
    map replaced;    /* of keys: by a put that stands for it alone */
    map groups;      /* of inserted of this compaction: their group */
    buf text;
} maker;

/* The first of the path's messages after id. */
static size_t path_after(const maker *m, sessile_id id)
{
    size_t low = 0, high = m->path_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->path[middle] <= id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The path's messages after `after` and before `until`. */
static int push_path(const maker *m, context *out, sessile_id after, sessile_id until)
{
    for (size_t i = path_after(m, after); i < m->path_count && m->path[i] < until; i++) {
        item it = {.key = {m->path[i], 0}};
        if (context_push(out, &it, NULL))
            return -1;
    }
    return 0;
}

/* The event of a key at compaction `at`; EVENT_NONE. */
static uint32_t event_at(const history *h, sessile_key key, sessile_id at)
{
    uint32_t e = history_last(h, key);
    while (e != EVENT_NONE && h->events[e].at > at)
        e = h->events[e].before;
    return e != EVENT_NONE && h->events[e].at == at ? e : EVENT_NONE;
}

/* Another group, or EVENT_NONE: NOMEM. */
static uint32_t new_group(history *h, sessile_id at, sessile_key put)
{
    if (h->group_count >= EVENT_NONE - 1 ||
        mem_grow(h->alloc, (void **)&h->groups, &h->group_capacity, h->group_count + 1,
                 sizeof *h->groups))
        return EVENT_NONE;
    h->groups[h->group_count] = (history_group){at, put, EVENT_NONE, 0};
    return (uint32_t)h->group_count++;
}

/* The group of what a policy's compaction takes out or writes. */
static uint32_t group_made(maker *m, const history_step *step, history_event *e)
{
    sessile_key put = e->came ? e->key : nobody;
    uint32_t n, group;

    e->disposition = SESSILE_LOST;
    if (!e->came && map_get(&m->inserted_of, number_of(e->key), &n)) {
        put = e->by = (sessile_key){step->at, n};
        e->disposition = map_get(&m->replaced, number_of(e->key), NULL) ? SESSILE_REPLACED
                                                                        : SESSILE_COVERED;
    }
    if (put.entry != SESSILE_NO_ID && map_get(&m->groups, number_of(put), &group))
        return group;
    group = new_group(m->h, step->at, put);
    if (group != EVENT_NONE && put.entry != SESSILE_NO_ID &&
        map_put(&m->groups, number_of(put), group))
        return EVENT_NONE;
    return group;
}

/* The group of what a compaction that takes another one back takes out or inserted back:
 * it is the one that the other had. */
static uint32_t group_turned(maker *m, const history_step *step, history_event *e)
{
    const history *h = m->h;
    uint32_t undone = event_at(h, e->key, step->undoes), group, made;
    int is_inserted;

    if (undone == EVENT_NONE)
        return group_made(m, step, e);
    group = h->events[undone].group;
    is_inserted = key_same(h->groups[group].put, e->key);
    if (!is_inserted)
        e->by = h->groups[group].put;
    if (e->came)
        return group;
    made = event_at(h, e->key, h->groups[group].at);
    e->disposition =
        is_inserted || made == EVENT_NONE ? SESSILE_UNDONE : h->events[made].disposition;
    return group;
}

/* The step turns the group, once. */
static int turn_group(history *h, uint32_t group, sessile_id at)
{
    history_group *g = &h->groups[group];

    if (g->last != EVENT_NONE && h->turns[g->last].at == at)
        return 0;
    if (h->turn_count >= EVENT_NONE - 1 ||
        mem_grow(h->alloc, (void **)&h->turns, &h->turn_capacity, h->turn_count + 1,
                 sizeof *h->turns))
        return -1;
    h->turns[h->turn_count] = (history_turn){at, g->last};
    g->last = (uint32_t)h->turn_count++;
    return 0;
}

static int add_event(maker *m, history_step *step, sessile_key key, int came)
{
    history *h = m->h;
    history_event e = {.key = key, .at = step->at, .by = nobody, .came = (uint8_t)came};
    uint32_t index = (uint32_t)h->event_count;

    e.group = step->undoes == SESSILE_NO_ID ? group_made(m, step, &e)
                                            : group_turned(m, step, &e);
    if (e.group == EVENT_NONE || h->event_count >= EVENT_NONE - 1 ||
        turn_group(h, e.group, step->at) ||
        mem_grow(h->alloc, (void **)&h->events, &h->event_capacity, h->event_count + 1,
                 sizeof *h->events))
        return -1;
    e.before = history_last(h, key);
    e.next = EVENT_NONE;
    if (map_put(&h->last, number_of(key), index) ||
        (e.before == EVENT_NONE && map_put(&h->first, number_of(key), index)))
        return -1;
    if (e.before != EVENT_NONE)
        h->events[e.before].next = index;
    h->events[h->event_count++] = e;
    step->count++;
    return 0;
}

/* What the messages of a compaction stand for. */
static sessile_status read_inserted(maker *m, sessile_id at, json data,
                                    sessile_error *err)
{
    static const char *const lists[] = {"replaces", "covers"};
    json_iter it = json_begin(json_get(data, "inserted"));
    sessile_status status = SESSILE_OK;
    uint64_t n;

    map_clear(&m->inserted_of);
    map_clear(&m->replaced);
    map_clear(&m->groups);
    while (!status && json_next(&it)) {
        size_t stands = 0;
        sessile_key alone = nobody;
        if (json_uint(json_get(it.value, "n"), &n) || n == 0 || n > UINT32_MAX)
            continue;
        for (int k = 0; !status && k < 2; k++) {
            context_clear(&m->names);
            status =
                compaction_names(m->s, at, json_get(it.value, lists[k]), &m->names, err);
            for (size_t i = 0; !status && i < m->names.count; i++) {
                if (map_put(&m->inserted_of, number_of(m->names.items[i].key),
                            (uint32_t)n))
                    status = fail_nomem(err);
                if (k == 0)
                    alone = m->names.items[i].key;
            }
            stands += m->names.count;
        }
        if (!status && stands == 1 && alone.entry != SESSILE_NO_ID &&
            map_put(&m->replaced, number_of(alone), 1))
            status = fail_nomem(err);
    }
    return status;
}

/* Events of the step: what is in `before` and not in `after`, and the other way round. */
static int compare(maker *m, history_step *step, uint32_t turn)
{
    uint32_t mark, was = 2 * turn, is = 2 * turn + 1;
    size_t i;

    for (i = 0; i < m->before.count; i++)
        if (map_put(&m->marks, number_of(m->before.items[i].key), was))
            return -1;
    for (i = 0; i < m->after.count; i++) {
        sessile_key key = m->after.items[i].key;
        int known = map_get(&m->marks, number_of(key), &mark);
        if (known && mark == is)
            continue;
        if (map_put(&m->marks, number_of(key), is))
            return -1;
        if (known && mark == was)
            step->kept++;
        else if (add_event(m, step, key, 1))
            return -1;
    }
    for (i = 0; i < m->before.count; i++) {
        sessile_key key = m->before.items[i].key;
        if (map_get(&m->marks, number_of(key), &mark) && mark == was &&
            (map_put(&m->marks, number_of(key), 0) || add_event(m, step, key, 0)))
            return -1;
    }
    return 0;
}

/* m->before is the context as the step before left it. */
static sessile_status make_step(maker *m, size_t index, sessile_id since,
                                sessile_error *err)
{
    history *h = m->h;
    history_step *step = &h->steps[index];
    sessile_id upto;
    sessile_status status;
    const char *text;
    context spare;
    size_t size;
    entry e;

    step->first = (uint32_t)h->event_count;
    if (push_path(m, &m->before, since, step->at))
        return fail_nomem(err);
    context_clear(&m->after);
    status = session_read_entry(m->s, step->at, &m->text, &e, err);
    if (!status)
        status =
            compaction_names(m->s, step->at, json_get(e.data, "context"), &m->after, err);
    if (!status)
        status = compaction_upto(m->s, step->at, e.data, &upto, err);
    if (!status && push_path(m, &m->after, upto, step->at))
        status = fail_nomem(err);
    if (!status)
        status = read_inserted(m, step->at, e.data, err);
    if (status)
        return status;
    if (!json_plain(json_get(e.data, "uncompacts"), &text, &size) ||
        id_parse(text, size, &step->undoes) || !history_find(h, step->undoes) ||
        step->undoes >= step->at)
        step->undoes = SESSILE_NO_ID;
    if (index >= UINT32_MAX / 2 - 1 || compare(m, step, (uint32_t)index + 1))
        return fail_nomem(err);
    spare = m->before;
    m->before = m->after;
    m->after = spare;
    return SESSILE_OK;
}

/* The compactions on the path, oldest first. */
static sessile_status find_steps(history *h, session_core *s, sessile_id at,
                                 sessile_error *err)
{
    sessile_id id = s->tree.nodes[at].context_at;
    sessile_status status = SESSILE_OK;

    while (!status && id) {
        if (mem_grow(h->alloc, (void **)&h->steps, &h->step_capacity, h->step_count + 1,
                     sizeof *h->steps))
            return fail_nomem(err);
        h->steps[h->step_count++] = (history_step){.at = id, .undoes = SESSILE_NO_ID};
        status = session_load_locked(s, id, err);
        if (!status)
            status = session_load_locked(s, s->tree.nodes[id].parent, err);
        if (!status)
            id = s->tree.nodes[s->tree.nodes[id].parent].context_at;
    }
    for (size_t i = 0; i < h->step_count / 2; i++) {
        history_step first = h->steps[i];
        h->steps[i] = h->steps[h->step_count - 1 - i];
        h->steps[h->step_count - 1 - i] = first;
    }
    return status;
}

sessile_status history_make(history *h, session_core *s, sessile_id at,
                            sessile_error *err)
{
    maker m = {.h = h, .s = s};
    sessile_status status = session_path_locked(s, at, &m.path, &m.path_count, err);

    context_init(&m.before, h->alloc);
    context_init(&m.after, h->alloc);
    context_init(&m.names, h->alloc);
    map_init(&m.marks, h->alloc);
    map_init(&m.inserted_of, h->alloc);
    map_init(&m.replaced, h->alloc);
    map_init(&m.groups, h->alloc);
    buf_init(&m.text, h->alloc);
    if (!status)
        status = find_steps(h, s, at, err);
    for (size_t i = 0; !status && i < h->step_count; i++)
        status = make_step(&m, i, i ? h->steps[i - 1].at : 0, err);
    context_deinit(&m.before);
    context_deinit(&m.after);
    context_deinit(&m.names);
    map_deinit(&m.marks);
    map_deinit(&m.inserted_of);
    map_deinit(&m.replaced);
    map_deinit(&m.groups);
    buf_deinit(&m.text);
    if (m.path)
        mem_free(&s->store->alloc, m.path, m.path_count * sizeof *m.path);
    return status;
}

/* ------------------------------------------------------------------ what is in force */

/* The group is as compaction `at` left it, or every later change to it was undone. */
static int turn_holds(const history *h, uint32_t group, sessile_id at)
{
    uint32_t t = h->groups[group].last;

    while (t != EVENT_NONE) {
        const history_step *step = history_find(h, h->turns[t].at);
        if (h->turns[t].at == at)
            return 1;
        if (!step || step->undoes == SESSILE_NO_ID)
            return 0;
        /* as it was before the compaction that this one undoes */
        do
            t = h->turns[t].before;
        while (t != EVENT_NONE && h->turns[t].at >= step->undoes);
    }
    return 0;
}

/* A message is in the context at `at` when it came last, or never left. */
static int is_present(const history *h, sessile_key key)
{
    uint32_t last = history_last(h, key);
    return last == EVENT_NONE ? key.n == 0 : h->events[last].came;
}

uint32_t history_in_force(history *h, const history_step *step, uint8_t *out)
{
    const history_event *events = h->events + step->first;
    uint32_t count = 0;

    for (uint32_t i = 0; i < step->count; i++)
        h->groups[events[i].group].touched = 0;
    for (uint32_t i = 0; i < step->count; i++)
        if (!turn_holds(h, events[i].group, step->at) ||
            is_present(h, events[i].key) != events[i].came)
            h->groups[events[i].group].touched = 1;
    for (uint32_t i = 0; i < step->count; i++) {
        out[i] = !h->groups[events[i].group].touched;
        count += out[i];
    }
    return count;
}

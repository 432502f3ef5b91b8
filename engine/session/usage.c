/*
 * usage.c: what providers reported, by groups: by day, model or agent.
 *
 * The groups are computed from the log when somebody asks. Must never let them add up to
 * another sum than the fold's: a turn's own report replaces those of its messages in
 * both.
 */
#include "session/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"

enum { DAY_SIZE = 10 }; /* "2026-11-21" */

typedef struct group {
    size_t key, key_size; /* in the names */
    sessile_usage_group sum;
} group;

/* A message's report, which its turn may take the place of. */
typedef struct part {
    sessile_id id;
    uint32_t group;
    sessile_usage usage;
    double cost; /* below 0: it says none */
} part;

typedef struct grouping {
    const session_core *s;
    sessile_usage_by by;
    group *groups;
    size_t count, capacity;
    part *parts; /* since the last turn */
    size_t part_count, part_capacity;
    map known;
    buf names, model, setting; /* model: of the newest message that named one */
    buf key;                   /* of a group, put together */
    int64_t said_ms;           /* when the newest message was said */
    const allocator *alloc;
} grouping;

/* The group of that name. -1: no memory. */
static int find_group(grouping *g, const char *key, size_t size, uint32_t *out)
{
    uint64_t hash = hash64(size ? key : "", size);
    group *made;

    if (map_get(&g->known, hash, out))
        return 0;
    if (g->count >= UINT32_MAX || mem_grow(g->alloc, (void **)&g->groups, &g->capacity,
                                           g->count + 1, sizeof *g->groups))
        return -1;
    made = &g->groups[g->count];
    memset(made, 0, sizeof *made);
    made->key = g->names.size;
    made->key_size = size;
    buf_put(&g->names, size ? key : "", size);
    if (g->names.failed || map_put(&g->known, hash, (uint32_t)g->count))
        return -1;
    *out = (uint32_t)g->count++;
    return 0;
}

static int group_of(grouping *g, int64_t ms, uint32_t *out)
{
    char day[TIME_SIZE];
    const buf *model = &g->setting;

    switch (g->by) {
    case SESSILE_USAGE_BY_DAY:
        time_print(ms, day);
        return find_group(g, day, DAY_SIZE, out);
    case SESSILE_USAGE_BY_MODEL:
        if (g->model.size)
            model = &g->model;
        return find_group(g, model->data, model->size, out);
    case SESSILE_USAGE_BY_DAY_AND_MODEL:
        if (g->model.size)
            model = &g->model;
        time_print(ms, day);
        buf_clear(&g->key);
        buf_put(&g->key, day, DAY_SIZE);
        buf_put(&g->key, model->data, model->size);
        return g->key.failed ? -1 : find_group(g, g->key.data, g->key.size, out);
    default:
        return find_group(g, g->s->identity.agent, g->s->identity.agent_size, out);
    }
}

static int append_name(buf *out, json value)
{
    buf_clear(out);
    return value.type == JSON_STRING ? json_string(out, value) : 0;
}

static double cost_of(json report)
{
    double cost;
    return usage_cost(report, &cost) ? cost : -1;
}

static void add_report(sessile_usage_group *sum, const sessile_usage *usage, double cost)
{
    usage_add(&sum->usage, usage);
    if (cost >= 0)
        sum->cost += cost;
    else
        usage_add(&sum->uncosted, usage);
}

static void remove_report(sessile_usage_group *sum, const part *p)
{
    usage_subtract(&sum->usage, &p->usage);
    if (p->cost >= 0)
        sum->cost = sum->cost > p->cost ? sum->cost - p->cost : 0;
    else
        usage_subtract(&sum->uncosted, &p->usage);
    sum->reports--;
}

static void stamp(sessile_usage_group *sum, int64_t ms)
{
    if (!sum->reports || ms < sum->first_ms)
        sum->first_ms = ms;
    if (!sum->reports || ms > sum->last_ms)
        sum->last_ms = ms;
    sum->reports++;
}

static int add_message(grouping *g, const entry *e)
{
    sessile_usage usage;
    json model = json_get(e->data, "model");
    uint32_t at;

    g->said_ms = message_time(json_get(e->data, "timestamp"), e->time_ms);
    if (model.type == JSON_STRING && append_name(&g->model, model))
        return -1;
    if (!usage_get(json_get(e->data, "usage"), &usage))
        return 0;
    if (group_of(g, g->said_ms, &at) ||
        mem_grow(g->alloc, (void **)&g->parts, &g->part_capacity, g->part_count + 1,
                 sizeof *g->parts))
        return -1;
    g->parts[g->part_count++] =
        (part){e->id, at, usage, cost_of(json_get(e->data, "usage"))};
    add_report(&g->groups[at].sum, &usage, g->parts[g->part_count - 1].cost);
    stamp(&g->groups[at].sum, g->said_ms);
    return 0;
}

static int add_turn(grouping *g, const entry *e)
{
    sessile_usage last, all;
    json model = json_get(e->data, "model"), usage, total;
    sessile_id first;
    const char *text;
    size_t size;
    uint32_t at;

    if (model.type == JSON_STRING && append_name(&g->model, model))
        return -1;
    if (usage_of_turn(e->data, &last, &all)) {
        if (!json_plain(json_get(e->data, "first"), &text, &size) ||
            id_parse(text, size, &first))
            first = e->id;
        for (size_t i = 0; i < g->part_count; i++) {
            const part *p = &g->parts[i];
            if (p->id < first)
                continue;
            remove_report(&g->groups[p->group].sum, p);
        }
        if (group_of(g, g->said_ms, &at))
            return -1;
        usage = json_get(e->data, "usage");
        total = json_get(usage, "total");
        add_report(&g->groups[at].sum, &all,
                   cost_of(total.type == JSON_OBJECT ? total : usage));
        stamp(&g->groups[at].sum, g->said_ms);
    }
    /* What the next one does not say is what the settings say. */
    buf_clear(&g->model);
    g->part_count = 0;
    return 0;
}

/* A log_visit. */
static sessile_status visit(void *arg, sessile_id id, const char *text, size_t size,
                            sessile_error *err)
{
    grouping *g = arg;
    sessile_status status;
    json setting;
    int failed = 0;
    entry e;

    if (id >= g->s->tree.node_count || g->s->tree.nodes[id].type == ENTRY_TOMBSTONE)
        return SESSILE_OK;
    status = entry_read(&e, text, size, err);
    if (status)
        return status;
    switch (e.type) {
    case ENTRY_MESSAGE:
    case ENTRY_BRANCH_SUMMARY:
        failed = add_message(g, &e);
        break;
    case ENTRY_TURN:
        failed = add_turn(g, &e);
        break;
    case ENTRY_METADATA:
        setting = json_get(json_get(e.data, "settings"), "model");
        if (setting.type != JSON_NONE)
            failed = append_name(&g->setting, setting);
        break;
    default:
        break;
    }
    return failed || g->model.failed || g->setting.failed ? fail_nomem(err) : SESSILE_OK;
}

/* All entries, in pieces between those that were lost. */
static sessile_status visit_all(session_core *s, grouping *g, sessile_error *err)
{
    sessile_status status = session_load_all_locked(s, err);
    sessile_id from = 1;

    while (!status && from < s->tree.node_count) {
        sessile_id end = from;
        while (end < s->tree.node_count && s->tree.nodes[end].type != ENTRY_TOMBSTONE)
            end++;
        if (end > from)
            status = session_texts_locked(s, from, end - 1, visit, g, err);
        from = end + 1;
    }
    return status;
}

static int compare(const sessile_usage_group *a, const sessile_usage_group *b, int by_key)
{
    int64_t x = usage_total(&a->usage), y = usage_total(&b->usage);
    size_t size = a->key.size < b->key.size ? a->key.size : b->key.size;
    int order;

    if (!by_key && x != y)
        return x > y ? -1 : 1;
    order = size ? memcmp(a->key.data, b->key.data, size) : 0;
    if (order)
        return order;
    if (a->key.size != b->key.size)
        return a->key.size < b->key.size ? -1 : 1;
    /* Of one day: the model that took more comes first. */
    return x == y ? 0 : x > y ? -1 : 1;
}

static int by_day(const void *a, const void *b)
{
    return compare(a, b, 1);
}

static int by_size(const void *a, const void *b)
{
    return compare(a, b, 0);
}

/* One block: the rows, then their keys. */
static sessile_status give_groups(const grouping *g, sessile_usage_group **out,
                                  size_t *count, sessile_error *err)
{
    size_t rows = 0;
    char *text;

    for (size_t i = 0; i < g->count; i++)
        rows += g->groups[i].sum.reports > 0;
    *out = host_alloc(g->alloc, rows * sizeof **out + g->names.size + 1);
    if (!*out)
        return fail_nomem(err);
    text = (char *)(*out + rows);
    if (g->names.size)
        memcpy(text, g->names.data, g->names.size);
    for (size_t i = 0; i < g->count; i++) {
        const group *from = &g->groups[i];
        if (from->sum.reports == 0) /* a turn has taken its place */
            continue;
        (*out)[*count] = from->sum;
        sessile_slice key = {text + from->key, from->key_size};
        if (g->by == SESSILE_USAGE_BY_MODEL)
            (*out)[*count].model = key;
        if (g->by == SESSILE_USAGE_BY_DAY_AND_MODEL) {
            (*out)[*count].model =
                (sessile_slice){key.data + DAY_SIZE, key.size - DAY_SIZE};
            key.size = DAY_SIZE;
        }
        (*out)[(*count)++].key = key;
    }
    if (rows)
        qsort(*out, rows, sizeof **out,
              g->by == SESSILE_USAGE_BY_DAY || g->by == SESSILE_USAGE_BY_DAY_AND_MODEL
                  ? by_day
                  : by_size);
    return SESSILE_OK;
}

sessile_status session_usage_groups(session_core *s, sessile_usage_by by,
                                    sessile_usage_group **out, size_t *count,
                                    sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    grouping g = {.s = s, .by = by, .alloc = a};
    sessile_status status = session_lock(s, err);

    *out = NULL;
    *count = 0;
    if (status)
        return status;
    map_init(&g.known, a);
    buf_init(&g.names, a);
    buf_init(&g.model, a);
    buf_init(&g.setting, a);
    buf_init(&g.key, a);
    status = session_refresh_locked(s, err);
    if (!status)
        status = visit_all(s, &g, err);
    if (!status)
        status = give_groups(&g, out, count, err);
    session_unlock(s);
    map_deinit(&g.known);
    buf_deinit(&g.names);
    buf_deinit(&g.model);
    buf_deinit(&g.setting);
    buf_deinit(&g.key);
    mem_free(a, g.groups, g.capacity * sizeof *g.groups);
    mem_free(a, g.parts, g.part_capacity * sizeof *g.parts);
    return status;
}

/*
 * fork_facts.c: the facts that a fork has after the copied lines.
 *
 * Labels and checkpoints that were put on the copied entries later, the end of what a
 * fork does not inherit (a suspension, pending runs, a status, a time to live), and the
 * title, settings and metadata as they are now. Facts about the whole session are written
 * again only where the copied lines alone would be out of date. Must never change the
 * session that is copied.
 */
#include "operations/fork_facts.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "operations/annotate.h"
#include "session/fold.h"

/* ------------------------------------------------------------------ later facts */

/* A fact about the copy's head. */
static void state(fork_plan *p, entry_type type, sessile_id parent, const buf *data)
{
    if (data->failed)
        p->facts.text.failed = 1;
    else
        batch_put(&p->facts, parent, type, SOURCE_HOST, data->data, data->size);
}

/* 1 when a fact's subject is seen for the first time; -1: out of memory. */
static int is_first(map *seen, const facts *all, const fact *one, buf *work)
{
    uint32_t known;
    uint64_t key;

    buf_clear(work);
    buf_putc(work, (char)one->kind);
    buf_put(work, &one->about, sizeof one->about);
    buf_put(work, fact_name(all, one), one->name_size);
    if (work->failed)
        return -1;
    key = hash64(work->data, work->size);
    if (map_get(seen, key, &known))
        return 0;
    return map_put(seen, key, 1) ? -1 : 1;
}

/* 1 when a later fact is about an entry that is copied. */
static sessile_status is_about_them(fork_plan *p, const fact *one, int *yes,
                                    sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    *yes = one->about <= p->last;
    if (one->kind == FACT_CHECKPOINT && !one->off) {
        status = session_load_locked(p->s, one->about, err);
        *yes = !status && p->s->tree.nodes[one->about].parent <= p->last;
    }
    return status;
}

/* Writes a later entry again, under the next id. */
static sessile_status carry(fork_plan *p, sessile_id id, buf *text, sessile_error *err)
{
    sessile_status status;
    entry e;

    status = session_read_entry(p->s, id, text, &e, err);
    if (status)
        return status;
    if (e.parent <= p->last)
        batch_copy(&p->facts, text->data, text->size);
    else /* the head was at an entry that is a tombstone now */
        batch_put(&p->facts, p->last, e.type, e.source, e.data.at, e.data.size);
    return SESSILE_OK;
}

/* Labels and checkpoints of the copied entries, as they are now. */
static sessile_status carry_labels(fork_plan *p, buf *work, sessile_error *err)
{
    const facts *all = &p->s->fold.facts;
    const allocator *a = &p->s->store->alloc;
    sessile_status status = SESSILE_OK;
    size_t count = 0, capacity = 0;
    sessile_id *ids = NULL;
    map seen;

    map_init(&seen, a);
    for (size_t i = all->count; !status && i-- > 0 && all->at[i].entry > p->last;) {
        fact one = all->at[i];
        int yes = 0, first;
        if (one.kind != FACT_LABEL && one.kind != FACT_CHECKPOINT)
            continue;
        first = is_first(&seen, all, &one, work);
        if (first > 0)
            status = is_about_them(p, &one, &yes, err);
        if (first < 0 ||
            (yes && mem_grow(a, (void **)&ids, &capacity, count + 1, sizeof *ids)))
            status = fail_nomem(err);
        else if (yes)
            ids[count++] = one.entry;
    }
    while (!status && count)
        status = carry(p, ids[--count], work, err);
    mem_free(a, ids, capacity * sizeof *ids);
    map_deinit(&seen);
    return status;
}

/* Ends a suspension and pending runs: a fork inherits neither. */
static sessile_status end_waits(fork_plan *p, buf *work, sessile_error *err)
{
    const facts *all = &p->s->fold.facts;
    sessile_status status = SESSILE_OK;
    map seen;

    map_init(&seen, &p->s->store->alloc);
    for (size_t i = all->count; !status && i-- > 0;) {
        const fact *one = &all->at[i];
        int first;
        if (one->entry > p->last ||
            (one->kind != FACT_SUSPEND && one->kind != FACT_PENDING_RUN))
            continue;
        first = is_first(&seen, all, one, work);
        if (first < 0)
            status = fail_nomem(err);
        if (first <= 0 || one->off)
            continue;
        buf_clear(work);
        buf_puts(work, "{\"off\":true,\"cancelled\":true");
        if (one->kind == FACT_PENDING_RUN)
            buf_printf(work, ",\"pending_run\":\"%08" PRIx32 "\"", one->about);
        buf_puts(work, ",\"reason\":\"fork\"}");
        state(p, one->kind == FACT_PENDING_RUN ? ENTRY_PENDING_RUN : ENTRY_SUSPEND,
              p->last, work);
    }
    map_deinit(&seen);
    return status;
}

/* ------------------------------------------------------------------ of the session */

/* The data of the metadata entry, as it is built. */
typedef struct members {
    buf top, settings, metadata; /* `"key":value` and commas */
    buf text, work;
} members;

static void member(buf *out, const char *key, size_t size, json value)
{
    if (out->size)
        buf_putc(out, ',');
    json_put_string(out, key, size);
    buf_putc(out, ':');
    buf_put(out, value.at, value.size);
}

/* The newest fact of that name in the copied lines. */
static const fact *in_lines(const fork_plan *p, const char *name, size_t size)
{
    const facts *all = &p->s->fold.facts;

    for (size_t i = all->count; i-- > 0;)
        if (all->at[i].entry <= p->last && all->at[i].kind == FACT_METADATA &&
            fact_is_named(all, &all->at[i], name, size))
            return &all->at[i];
    return NULL;
}

static const json null_value = {"null", 4, JSON_NULL};

/* A member of settings or metadata as it is now, if the lines differ. */
static sessile_status keep_member(fork_plan *p, members *m, const fact *one,
                                  const char *kind, buf *out, json given,
                                  sessile_error *err)
{
    size_t prefix = strlen(kind) + 1, size = one->name_size - prefix;
    const char *key = fact_name(&p->s->fold.facts, one) + prefix;
    json value = null_value;
    sessile_status status = SESSILE_OK;
    entry e;

    if (one->entry <= p->last ||
        session_member(given, key, size, &m->work).type != JSON_NONE)
        return SESSILE_OK;
    if (!one->off)
        status = session_read_entry(p->s, one->entry, &m->text, &e, err);
    if (status)
        return status;
    if (!one->off)
        value = session_member(json_get(e.data, kind), key, size, &m->work);
    if (value.type != JSON_NONE)
        member(out, key, size, value);
    return SESSILE_OK;
}

static int begins(const fork_plan *p, const fact *one, const char *prefix)
{
    size_t size = strlen(prefix);

    return one->name_size >= size &&
           !memcmp(fact_name(&p->s->fold.facts, one), prefix, size);
}

static sessile_status gather_members(fork_plan *p, members *m, sessile_slice title,
                                     json given, sessile_error *err)
{
    const allocator *a = &p->s->store->alloc;
    const facts *all = &p->s->fold.facts;
    sessile_status status = SESSILE_OK;
    size_t count;
    fact *list;

    if (facts_newest(all, FACT_METADATA, a, &list, &count))
        return fail_nomem(err);
    for (size_t i = 0; !status && i < count; i++) {
        const fact *one = &list[i], *was;
        const char *name = fact_name(all, one);
        if (begins(p, one, "settings.")) {
            status = keep_member(p, m, one, "settings", &m->settings,
                                 (json){NULL, 0, JSON_NONE}, err);
        } else if (begins(p, one, "metadata.")) {
            status = keep_member(p, m, one, "metadata", &m->metadata, given, err);
        } else if (!fact_is_named(all, one, "title", 5)) {
            /* status, time to live and deletion stay with the original */
            was = in_lines(p, name, one->name_size);
            if (was && !was->off)
                member(&m->top, name, one->name_size, null_value);
        }
    }
    mem_free(a, list, count * sizeof *list);
    if (!status && in_lines(p, "title", 5)) {
        if (m->top.size)
            buf_putc(&m->top, ',');
        buf_puts(&m->top, "\"title\":");
        json_put_string(&m->top, title.size ? title.data : "", title.size);
    }
    for (json_iter it = json_begin(given); !status && json_next(&it);) {
        if (m->metadata.size)
            buf_putc(&m->metadata, ',');
        buf_put(&m->metadata, it.key.at, it.key.size);
        buf_putc(&m->metadata, ':');
        buf_put(&m->metadata, it.value.at, it.value.size);
    }
    return status;
}

static void put_group(buf *out, const char *name, const buf *members_of)
{
    if (!members_of->size)
        return;
    if (out->size > 1)
        buf_putc(out, ',');
    buf_printf(out, "\"%s\":{", name);
    buf_put(out, members_of->data, members_of->size);
    buf_putc(out, '}');
}

/* Title, settings and metadata as they are now, if the lines differ. */
static sessile_status state_members(fork_plan *p, sessile_slice title, json given,
                                    sessile_error *err)
{
    const allocator *a = &p->s->store->alloc;
    sessile_status status;
    members m;

    buf_init(&m.top, a);
    buf_init(&m.settings, a);
    buf_init(&m.metadata, a);
    buf_init(&m.text, a);
    buf_init(&m.work, a);
    status = gather_members(p, &m, title, given, err);
    if (!status && m.top.size + m.settings.size + m.metadata.size) {
        buf_clear(&m.text);
        buf_putc(&m.text, '{');
        buf_put(&m.text, m.top.data, m.top.size);
        put_group(&m.text, "settings", &m.settings);
        put_group(&m.text, "metadata", &m.metadata);
        buf_putc(&m.text, '}');
        state(p, ENTRY_METADATA, p->last, &m.text);
    }
    if (!status &&
        (m.top.failed || m.settings.failed || m.metadata.failed || m.work.failed))
        status = fail_nomem(err);
    buf_deinit(&m.top);
    buf_deinit(&m.settings);
    buf_deinit(&m.metadata);
    buf_deinit(&m.text);
    buf_deinit(&m.work);
    return status;
}

sessile_status fork_put_facts(fork_plan *p, sessile_slice title, json metadata,
                              sessile_error *err)
{
    sessile_status status;
    buf work;

    buf_init(&work, &p->s->store->alloc);
    status = carry_labels(p, &work, err);
    if (!status)
        status = end_waits(p, &work, err);
    if (!status)
        status = state_members(p, title, metadata, err);
    buf_deinit(&work);
    return status;
}

/*
 * compare_events.c: what the events say of each session: which entries there should be.
 *
 * Owns how much of that is in memory: entries next to each other are one span, so a
 * session that all events are about has one span, however long it is. When there are too
 * many sessions they are looked at in parts, and the events are read once for each part.
 */
#include "admin/compare_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

uint64_t compare_names(json agent, json session)
{
    const uint64_t both[] = {hash64(agent.at, agent.size),
                             hash64(session.at, session.size)};

    return hash64(both, sizeof both);
}

uint64_t compare_key(uint64_t names, const char *who, size_t size)
{
    const uint64_t both[] = {names, hash64(who, size)};

    return hash64(both, sizeof both);
}

int compare_may_be_gone(const compare *c, const compare_told *t)
{
    uint32_t at;

    return c->removed_ms >= t->time_ms ||
           (map_get(&c->known, compare_key(t->names, COMPARE_REMOVED, 1), &at) &&
            c->told[at].time_ms >= t->time_ms);
}

void compare_forget(compare *c)
{
    const allocator *a = &c->of->alloc;

    for (size_t i = 0; i < c->told_count; i++)
        mem_free(a, c->told[i].list, c->told[i].capacity * sizeof *c->told[i].list);
    c->told_count = c->span_count = 0;
    map_clear(&c->known);
}

/* ------------------------------------------------------------------ spans */

static sessile_status add_span(compare *c, compare_told *t, compare_span s,
                               sessile_error *err)
{
    size_t from = t->count, to;

    while (from && t->list[from - 1].last + (uint64_t)1 >= s.first)
        from--;
    for (to = from; to < t->count && t->list[to].first <= s.last + (uint64_t)1; to++) {
        s.first = t->list[to].first < s.first ? t->list[to].first : s.first;
        s.last = t->list[to].last > s.last ? t->list[to].last : s.last;
    }
    if (to == from) {
        if (c->span_count >= c->spans_most)
            return SESSILE_LIMIT;
        if (mem_grow(&c->of->alloc, (void **)&t->list, &t->capacity, t->count + 1,
                     sizeof *t->list))
            return fail_nomem(err);
    }
    memmove(&t->list[from + 1], &t->list[to], (t->count - to) * sizeof *t->list);
    t->count = t->count + 1 - (to - from);
    c->span_count = c->span_count + 1 - (to - from);
    t->list[from] = s;
    return SESSILE_OK;
}

/* "00000004", or "00000004-00000009". */
static int read_span(json value, compare_span *out)
{
    const char *text;
    size_t size;

    if (!json_plain(value, &text, &size) || (size != 8 && size != 17) ||
        id_parse(text, 8, &out->first))
        return -1;
    out->last = out->first;
    return size == 17 && (text[8] != '-' || id_parse(text + 9, 8, &out->last) ||
                          out->last < out->first)
               ? -1
               : 0;
}

/* ------------------------------------------------------------------ sessions */

static sessile_status find_told(compare *c, uint64_t names, const char *who, size_t size,
                                compare_told **out, sessile_error *err)
{
    uint64_t key = compare_key(names, who, size);
    uint32_t at;

    if (!map_get(&c->known, key, &at)) {
        if (c->told_count >= c->told_most)
            return SESSILE_LIMIT;
        if (mem_grow(&c->of->alloc, (void **)&c->told, &c->told_capacity,
                     c->told_count + 1, sizeof *c->told) ||
            map_put(&c->known, key, (uint32_t)c->told_count))
            return fail_nomem(err);
        at = (uint32_t)c->told_count++;
        c->told[at] = (compare_told){.names = names};
    }
    *out = &c->told[at];
    return SESSILE_OK;
}

static int is_word(sessile_slice text, const char *word)
{
    return text.size == strlen(word) && !memcmp(text.data, word, text.size);
}

static int is_said(json details, const char *name)
{
    uint64_t value;

    return !json_uint(json_get(details, name), &value) && value;
}

static void note_time(int64_t *at, const sessile_audit_event *e)
{
    if (*at < e->time_ms)
        *at = e->time_ms;
}

static sessile_status add_entries(compare *c, compare_told *t,
                                  const sessile_audit_event *e, json value,
                                  sessile_error *err)
{
    compare_span s;
    sessile_status status;

    if (read_span(value, &s))
        return SESSILE_OK;
    status = add_span(c, t, s, err);
    if (status || !is_word(e->outcome, "success") || (t->has_most && t->most > s.last))
        return status;
    t->has_most = 1;
    t->most = s.last;
    t->time_ms = e->time_ms;
    snprintf(t->event, sizeof t->event, "%.*s", (int)e->id.size, e->id.data);
    return SESSILE_OK;
}

/* The session that an event names. */
static sessile_status add_own(compare *c, const sessile_audit_event *e, json data,
                              json details, sessile_error *err)
{
    uint64_t names = compare_names(json_get(data, "agent"), json_get(data, "session"));
    int is_removal = is_word(e->operation, "delete") && !is_said(details, "soft") &&
                     !is_word(e->outcome, "failure");
    json wrote = json_get(details, "wrote"), who = json_get(data, "owner");
    json_iter it = json_begin(wrote);
    const char *text = "";
    size_t size = 0;
    compare_told *t;
    sessile_status status;

    if (!compare_is_of_part(c, names) || (!is_removal && wrote.type != JSON_ARRAY))
        return SESSILE_OK;
    if (who.type == JSON_NONE)
        who = json_get(data, "user");
    (void)json_plain(who, &text, &size);
    if (is_removal) {
        status = find_told(c, names, COMPARE_REMOVED, 1, &t, err);
        if (status)
            return status;
        note_time(&t->time_ms, e);
    }
    status = find_told(c, names, text, size, &t, err);
    if (status)
        return status;
    if (is_removal && is_word(e->outcome, "success")) { /* another one may be made */
        c->span_count -= t->count;
        t->count = 0;
        t->has_most = 0;
    }
    while (!status && wrote.type == JSON_ARRAY && json_next(&it))
        status = add_entries(c, t, e, it.value, err);
    return status;
}

/* Other sessions that its call wrote to. */
static sessile_status add_others(compare *c, const sessile_audit_event *e, json details,
                                 sessile_error *err)
{
    json list = json_get(details, "wrote_to");
    json_iter it = json_begin(list);
    sessile_status status = SESSILE_OK;

    while (!status && list.type == JSON_ARRAY && json_next(&it)) {
        json one = it.value;
        uint64_t names = compare_names(json_get(one, "agent"), json_get(one, "session"));
        const char *text = "";
        size_t size = 0;
        compare_told *t;
        if (!compare_is_of_part(c, names))
            continue;
        (void)json_plain(json_get(one, "owner"), &text, &size);
        status = find_told(c, names, text, size, &t, err);
        if (!status)
            status = add_entries(c, t, e, json_get(one, "entries"), err);
    }
    return status;
}

static sessile_status add_event(compare *c, const sessile_audit_event *e,
                                sessile_error *err)
{
    json data = json_of(e->json.data, e->json.size), details = json_get(data, "details");
    sessile_status status;

    if (!is_word(e->outcome, "failure") && !is_said(details, "dry_run")) {
        if (is_word(e->operation, "move"))
            note_time(&c->moved_ms, e);
        if (is_word(e->operation, "purge") || is_word(e->operation, "forget") ||
            is_word(e->operation, "erase"))
            note_time(&c->removed_ms, e);
    }
    status = add_own(c, e, data, details, err);
    return status ? status : add_others(c, e, details, err);
}

sessile_status compare_read_events(compare *c, size_t most, int *more, sessile_error *err)
{
    sessile_audit_event e;
    sessile_status status = SESSILE_OK;

    *more = 1;
    for (size_t i = 0; !status && i < most; i++) {
        sessile_error why = {0};
        status = audit_read_next(c->reader, &e, &why);
        if (status == SESSILE_DAMAGED || status == SESSILE_TRUNCATED ||
            status == SESSILE_SEALED) { /* verifying has told of that log */
            status = SESSILE_OK;
            continue;
        }
        if (status)
            return fail(err, status, "%s", why.message);
        if (!e.id.size) {
            *more = 0;
            break;
        }
        status = add_event(c, &e, err);
    }
    return status;
}

/*
 * compare_logs.c: what each session says: its entries, and when they were written.
 *
 * Must never report a call that is going on: an entry stands in its session a moment
 * before its event does.
 */
#include "admin/compare_internal.h"

#include <stdio.h>
#include <string.h>

#include "admin/memories.h"
#include "base/alloc.h"
#include "base/text.h"
#include "session/handle.h"

enum { STEP = 1 << 20, GOING_ON_MS = 1000, PSEUDONYMS = 64 };

void compare_leave_log(compare *c)
{
    if (c->log)
        header_deinit(&c->names);
    log_close(c->log);
    c->log = NULL;
}

/* ------------------------------------------------------------------ one entry */

static int is_told(const compare *c, sessile_id id)
{
    for (size_t i = 0; i < c->is_count; i++) {
        const compare_told *t = &c->told[c->is[i]];
        size_t low = 0, high = t->count;
        while (low < high) {
            size_t mid = (low + high) / 2;
            if (t->list[mid].last < id)
                low = mid + 1;
            else
                high = mid;
        }
        if (low < t->count && t->list[low].first <= id)
            return 1;
    }
    return 0;
}

/* The names in events of the session that is read: as long as no event has them, there is
 * nothing to look at. */
static void look_up(compare *c, uint64_t names, const char *who)
{
    uint32_t at;

    if (c->is_count < sizeof c->is / sizeof *c->is &&
        map_get(&c->known, compare_key(names, who, strlen(who)), &at)) {
        c->told[at].is_there = 1;
        c->is[c->is_count++] = at;
    }
}

static uint64_t names_of(const compare *c, sessile_error *err, sessile_status *status)
{
    uint64_t names = 0;
    buf agent, id;

    buf_init(&agent, &c->of->alloc);
    buf_init(&id, &c->of->alloc);
    audit_put_text(&agent, (sessile_slice){c->names.agent.data, c->names.agent.size});
    audit_put_text(&id, (sessile_slice){c->names.id.data, c->names.id.size});
    if (agent.failed || id.failed)
        *status = fail_nomem(err);
    else
        names = compare_names(json_of(agent.data, agent.size), json_of(id.data, id.size));
    buf_deinit(&agent);
    buf_deinit(&id);
    return names;
}

/* Finds what events say of it; *mine 0: it is of another part. */
static sessile_status find_told(compare *c, int *mine, sessile_error *err)
{
    const sessile_slice user = {c->names.user.data, c->names.user.size};
    char pseudonyms[PSEUDONYMS][PSEUDONYM_SIZE];
    sessile_status status = SESSILE_OK;
    uint64_t names = names_of(c, err, &status);
    size_t count = 0;

    c->is_count = 0;
    *mine = !status && compare_is_of_part(c, names);
    c->owner[0] = 0;
    if (status || !*mine)
        return status;
    if (!user.size) {
        look_up(c, names, "");
        return SESSILE_OK;
    }
    pseudonym_under_name_key(c->audit->keys, user, c->owner);
    look_up(c, names, c->owner);
    status = pseudonym_find(c->audit->keys, user, pseudonyms, PSEUDONYMS, &count, err);
    for (size_t i = 0; !status && i < count; i++)
        look_up(c, names, pseudonyms[i]);
    return status;
}

/* Reads the events that came since. */
static sessile_status catch_up(compare *c, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    int more = 1, mine;

    while (!status && more)
        status = compare_read_events(c, 1000, &more, err);
    if (status == SESSILE_LIMIT) { /* only what is new is left out */
        error_clear(err);
        status = SESSILE_OK;
    }
    return status ? status : find_told(c, &mine, err);
}

/* 1: no event names this entry, also not one that has come meanwhile. */
static sessile_status is_lost(compare *c, sessile_id id, int64_t time_ms, int *lost,
                              sessile_error *err)
{
    const os_table *os = c->of->os;
    sessile_status status;

    *lost = !is_told(c, id);
    if (!*lost)
        return SESSILE_OK;
    status = catch_up(c, err);
    *lost = !is_told(c, id);
    if (status || !*lost || c->waited || os->now_ms(os->ud) - time_ms >= GOING_ON_MS)
        return status;
    c->waited = 1;
    os->sleep_ms(os->ud, GOING_ON_MS);
    status = catch_up(c, err);
    *lost = !is_told(c, id);
    return status;
}

static void show(char *out, size_t size, const buf *name)
{
    size_t fits = name->size < size ? name->size : size - 1;

    if (!utf8_valid(name->data, name->size))
        fits = 0;
    fits = fits < name->size ? utf8_floor(name->data, name->size, fits) : fits;
    memcpy(out, name->data ? name->data : "", fits);
    out[fits] = 0;
}

static sessile_status look_at(void *arg, sessile_id id, const char *text, size_t size,
                              sessile_error *err)
{
    compare *c = arg;
    sessile_audit_lost lost = {.entry = id};
    sessile_status status;
    int64_t time_ms;
    int is;
    entry e;

    status = entry_read(&e, text, size, err);
    if (status)
        return status;
    time_ms = e.time_ms;
    if (!compare_is_guarded(c, time_ms) || (c->is_brought && time_ms <= c->moved_ms)) {
        c->report->outside++;
        return SESSILE_OK;
    }
    c->report->changes++;
    status = is_lost(c, id, time_ms, &is, err);
    if (status || !is)
        return status;
    if (!id && time_ms <= c->moved_ms) { /* a migration may have brought it */
        c->is_brought = 1;
        c->report->changes--;
        c->report->outside++;
        return SESSILE_OK;
    }
    lost.time_ms = time_ms;
    show(lost.session, sizeof lost.session, &c->names.id);
    show(lost.agent, sizeof lost.agent, &c->names.agent);
    snprintf(lost.owner, sizeof lost.owner, "%s", c->owner);
    compare_lost(c, &lost);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ one log */

static int is_verdict(sessile_status status)
{
    return status == SESSILE_DAMAGED || status == SESSILE_TRUNCATED ||
           status == SESSILE_SEALED || status == SESSILE_INVALID ||
           status == SESSILE_LIMIT || status == SESSILE_BUSY;
}

static sessile_status open_log(compare *c, const place *at, int *mine, sessile_error *err)
{
    store_core *st = c->of;
    sessile_status status;

    *mine = 0;
    header_init(&c->names, &st->alloc);
    status = header_peek(st, at->folder, at->name, &c->names, err);
    if (!status)
        status = find_told(c, mine, err);
    if (!status && *mine)
        status = log_open_unread(&c->log, &st->backend, st->keys, at->folder, at->name,
                                 session_read_depth(st), st->config.timeout_ms,
                                 &st->alloc, err);
    if (!status && *mine)
        log_reread(c->log);
    if (status || !*mine)
        header_deinit(&c->names);
    c->is_brought = 0;
    return status;
}

/* Events that name entries which are not there. */
static void compare_end(compare *c, sessile_id count)
{
    for (size_t i = 0; i < c->is_count; i++) {
        const compare_told *t = &c->told[c->is[i]];
        sessile_audit_lost lost = {
            .is_event = 1, .time_ms = t->time_ms, .entry = t->most};
        if (!t->has_most || t->most < count || compare_may_be_gone(c, t))
            continue;
        memcpy(lost.event, t->event, sizeof lost.event);
        compare_lost(c, &lost);
    }
}

/* Sessions that are not there, though nothing says that they were removed. */
static void compare_gone(compare *c)
{
    for (size_t i = 0; i < c->told_count; i++) {
        const compare_told *t = &c->told[i];
        sessile_audit_lost lost = {
            .is_event = 1, .time_ms = t->time_ms, .entry = t->most};
        if (t->is_there || !t->has_most || compare_may_be_gone(c, t))
            continue;
        memcpy(lost.event, t->event, sizeof lost.event);
        compare_lost(c, &lost);
    }
}

sessile_status compare_read_logs(compare *c, int *more, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    int mine = 1, left = 0;
    log_tail tail;

    *more = 1;
    if (!c->log && c->next == c->logs.count) {
        compare_gone(c);
        *more = 0;
        return SESSILE_OK;
    }
    if (!c->log) {
        const place *at = &c->logs.list[c->next++];
        if (!folder_has_sessions(at->folder))
            return SESSILE_OK;
        status = open_log(c, at, &mine, err);
        if (!status && !mine)
            return SESSILE_OK;
    }
    if (!status)
        status = log_inspect_step(c->log, STEP, look_at, c, &left, &tail, err);
    if (!status && left)
        return SESSILE_OK;
    if (!status)
        status = log_damage(c->log, err);
    if (!status)
        compare_end(c, log_count(c->log));
    compare_leave_log(c);
    if (status == SESSILE_NOTFOUND) { /* it was just removed */
        error_clear(err);
        return SESSILE_OK;
    }
    c->report->logs++;
    if (!is_verdict(status))
        return status;
    error_clear(err);
    /* of which part it is, its header would say: it is counted once */
    c->report->unread += mine || !c->parts[c->part_count - 1].remainder;
    return SESSILE_OK;
}

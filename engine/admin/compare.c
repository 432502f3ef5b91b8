/*
 * compare.c: the order in which an audit is compared with sessions.
 *
 * Owns which times are compared. Not compared is what was written before the audit begins
 * (its first log, or the first that the retention has left of a lane), and while the
 * control log says that the guard was off.
 */
#include "admin/compare_internal.h"

#include <string.h>

#include "audit/parts.h"
#include "base/alloc.h"
#include "guard/control.h"

enum { EVENTS_A_STEP = 2000, TOLD_MOST = 1 << 18, SPANS_MOST = 1 << 20 };

int compare_is_of_part(const compare *c, uint64_t hash)
{
    const compare_part *p = &c->parts[c->part_count - 1];

    return hash % p->modulus == p->remainder;
}

int compare_is_guarded(const compare *c, int64_t time_ms)
{
    int on = 1;

    if (time_ms < c->since_ms)
        return 0;
    for (size_t i = 0; i < c->turn_count && c->turns[i].time_ms <= time_ms; i++)
        on = c->turns[i].on;
    return on;
}

void compare_lost(compare *c, const sessile_audit_lost *lost)
{
    sessile_audit_report *out = c->report;

    if (lost->is_event)
        out->without_change++;
    else
        out->without_event++;
    if (out->lost_count < SESSILE_AUDIT_LOST)
        out->lost[out->lost_count++] = *lost;
}

/* ------------------------------------------------------------------ times */

static sessile_status add_turn(void *arg, const control_fact *f, sessile_error *err)
{
    compare *c = arg;

    if (mem_grow(&c->of->alloc, (void **)&c->turns, &c->turn_capacity, c->turn_count + 1,
                 sizeof *c->turns))
        return fail_nomem(err);
    c->turns[c->turn_count++] =
        (compare_turn){f->time_ms, json_get(f->data, "on").type == JSON_TRUE};
    return SESSILE_OK;
}

/* A control log that cannot be read says of no time that the guard was off. */
static sessile_status find_turns(compare *c, sessile_error *err)
{
    control *log;
    sessile_status status = control_open(&log, c->of, err);

    if (status)
        return status;
    status = control_each(log, CONTROL_GUARD, add_turn, c, err);
    control_close(log);
    if (status == SESSILE_DAMAGED || status == SESSILE_SEALED ||
        status == SESSILE_TRUNCATED) {
        error_clear(err);
        c->turn_count = 0;
        status = SESSILE_OK;
    }
    return status;
}

static sessile_status find_begin(compare *c, sessile_error *err)
{
    int64_t begun_ms = INT64_MAX, cut_ms = 0;
    lane_parts parts;
    sessile_status status = lane_parts_find(&parts, c->audit, err);

    if (!status)
        status = lane_parts_skip_half(&parts, c->audit, err);
    for (uint32_t i = 0; !status && i < LANE_MOST; i++) {
        sessile_error why;
        lane_head head;
        if (!parts.there[i])
            continue;
        status = lane_part_peek(&head, c->audit, i, parts.first[i], &why);
        if (status == SESSILE_NOMEM || status == SESSILE_IO)
            return fail(err, status, "%s", why.message);
        if (!status && head.created_ms < begun_ms)
            begun_ms = head.created_ms;
        if (!status && parts.first[i] && head.created_ms > cut_ms)
            cut_ms = head.created_ms;
        status = SESSILE_OK;
    }
    c->since_ms = begun_ms > cut_ms ? begun_ms : cut_ms;
    return status;
}

/* ------------------------------------------------------------------ parts */

static sessile_status begin_part(compare *c, sessile_error *err)
{
    const sessile_audit_filter all = {.since_ms = 0};

    compare_leave_log(c);
    compare_forget(c);
    audit_read_close(c->reader);
    c->stage = COMPARE_EVENTS;
    c->next = 0;
    return audit_read_open(&c->reader, c->audit, &all, err);
}

/* There is too much in this part: half of it is looked at, and then the other half. */
static sessile_status halve_part(compare *c, sessile_error *err)
{
    compare_part *p = &c->parts[c->part_count - 1];

    if (c->part_count == sizeof c->parts / sizeof *c->parts)
        return fail(err, SESSILE_LIMIT,
                    "one session has too many entries that no event is next to");
    error_clear(err);
    p->modulus *= 2;
    p[1] = *p;
    p->remainder += p->modulus / 2;
    c->part_count++;
    return begin_part(c, err);
}

sessile_status compare_begin(compare **out, store_core *of, store_core *audit,
                             sessile_error *err)
{
    compare *c;
    sessile_status status;

    *out = NULL;
    if (of->over_records)
        return fail(
            err, SESSILE_UNSUPPORTED,
            "the host keeps the records of this store: there are no sessions in it "
            "to compare");
    c = mem_zalloc(&of->alloc, sizeof *c);
    if (!c)
        return fail_nomem(err);
    c->of = of;
    c->audit = audit;
    map_init(&c->known, &of->alloc);
    c->parts[0] = (compare_part){0, 1};
    c->part_count = 1;
    compare_set_room(c, TOLD_MOST, SPANS_MOST);
    status = find_turns(c, err);
    if (!status)
        status = find_begin(c, err);
    if (!status)
        status = places_find(&c->logs, of, NULL, err);
    for (size_t i = 0; i < c->logs.count; i++)
        c->session_count += (uint64_t)folder_has_sessions(c->logs.list[i].folder);
    if (!status)
        status = begin_part(c, err);
    if (status)
        compare_free(c);
    else
        *out = c;
    return status;
}

sessile_status compare_step(compare *c, sessile_audit_report *report, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    int more = 1;

    c->report = report;
    report->logs_of = c->session_count;
    if (!c->part_count)
        return SESSILE_OK;
    if (c->stage == COMPARE_EVENTS) {
        status = compare_read_events(c, EVENTS_A_STEP, &more, err);
        if (status == SESSILE_LIMIT)
            status = halve_part(c, err);
        else if (!status && !more)
            c->stage = COMPARE_LOGS;
        return status ? status : SESSILE_NEEDS;
    }
    status = compare_read_logs(c, &more, err);
    if (!status && !more && --c->part_count)
        status = begin_part(c, err);
    if (status)
        return status;
    return c->part_count ? SESSILE_NEEDS : SESSILE_OK;
}

void compare_set_room(compare *c, size_t sessions, size_t spans)
{
    c->told_most = sessions;
    c->spans_most = spans;
}

void compare_free(compare *c)
{
    const allocator *a;

    if (!c)
        return;
    a = &c->of->alloc;
    compare_leave_log(c);
    compare_forget(c);
    audit_read_close(c->reader);
    map_deinit(&c->known);
    places_deinit(&c->logs);
    mem_free(a, c->told, c->told_capacity * sizeof *c->told);
    mem_free(a, c->turns, c->turn_capacity * sizeof *c->turns);
    mem_free(a, c, sizeof *c);
}

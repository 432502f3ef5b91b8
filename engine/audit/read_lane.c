/*
 * read_lane.c: reads the events of one lane, log after log.
 *
 * It is read in steps of a few hundred entries. A damaged log is reported once and
 * skipped.
 */
#include "audit/read_internal.h"

#include "base/alloc.h"
#include "base/text.h"
#include "codec/entry.h"
#include "session/handle.h"
#include "session/header.h"

enum { STEP = 64 << 10 }; /* bytes that are read of a lane at a time */

void lane_reader_free(lane_reader *l)
{
    const allocator *a = &l->of->store->alloc;

    log_close(l->log);
    buf_deinit(&l->texts);
    mem_free(a, l->list, l->capacity * sizeof *l->list);
    mem_free(a, l, sizeof *l);
}

static sessile_status take(void *arg, sessile_id id, const char *text, size_t size,
                           sessile_error *err)
{
    lane_reader *l = arg;
    audit_reader_core *r = l->of;
    int64_t time_ms;

    if (r->filter.names && seal_is_type(text, size, "who"))
        return audit_names_add(&r->names, text, size, err);
    if (id < l->pass || !seal_is_type(text, size, "event"))
        return SESSILE_OK;
    /* {"id":"00000000","parent_id":"00000000","timestamp":" */
    if (time_parse(text + 53, TIME_SIZE - 1, &time_ms))
        return SESSILE_OK;
    if (mem_grow(&r->store->alloc, (void **)&l->list, &l->capacity, l->count + 1,
                 sizeof *l->list))
        return fail_nomem(err);
    l->list[l->count++] = (waiting){id, time_ms, l->texts.size, size};
    buf_put(&l->texts, text, size);
    return l->texts.failed ? fail_nomem(err) : SESSILE_OK;
}

static sessile_status open_log(lane_reader *l, sessile_error *err)
{
    store_core *st = l->of->store;
    char name[LANE_NAME];

    lane_part_name(l->lane, l->part, name);
    sessile_status status =
        log_open_unread(&l->log, &st->backend, st->keys, AUDIT_FOLDER, name,
                        session_read_depth(st), 0, &st->alloc, err);
    if (!status)
        log_reread(l->log);
    return status;
}

static void leave_log(lane_reader *l)
{
    log_close(l->log);
    l->log = NULL;
}

/* 1: a part follows this one, and its number is in *part; 0: this is the last one; -1. */
static int next_part(lane_reader *l, uint32_t *part, sessile_error *err)
{
    int there;

    *part = l->part;
    do
        there = lane_part_exists(l->of->store, l->lane, ++*part, err);
    while (!there && *part < l->last);
    return there;
}

void lane_reader_part(lane_reader *l, uint32_t part)
{
    leave_log(l);
    l->part = part;
    l->last = part > l->last ? part : l->last;
    l->pass = 0;
    l->broken = 0;
}

/* A log was read to its end: goes on with the part that follows, if it was there before
 * (*followed), since its writer may have been at work in this one until then. */
static sessile_status end_log(lane_reader *l, uint32_t *followed, sessile_error *err)
{
    uint32_t part;
    int there;

    if (*followed) {
        lane_reader_part(l, *followed);
        *followed = 0;
        return SESSILE_OK;
    }
    if (log_replaced(l->log)) { /* it was sealed again, with a new key */
        leave_log(l);
        return SESSILE_OK;
    }
    there = next_part(l, &part, err);
    if (there > 0)
        *followed = part;
    l->at_end = !there;
    return there < 0 ? err->code : SESSILE_OK;
}

static sessile_status read_on(lane_reader *l, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    uint32_t followed = 0;
    log_tail tail;
    int more;

    while (!status && !l->count && !l->at_end) {
        if (!l->log)
            status = open_log(l, err);
        if (status)
            break;
        status = log_inspect_step(l->log, STEP, take, l, &more, &tail, err);
        if (!status && !more)
            status = log_damage(l->log, err);
        if (status || more)
            continue;
        l->seen_bytes = log_bytes(l->log) + tail.bytes;
        if (!l->count)
            status = end_log(l, &followed, err);
    }
    return status;
}

/* Tells why a log cannot be read on, and goes to the one that follows. */
static sessile_status pass_over(lane_reader *l, sessile_error *err)
{
    sessile_error why = l->why;
    uint32_t part;

    error_clear(&l->why);
    if (next_part(l, &part, NULL) > 0)
        lane_reader_part(l, part);
    else
        l->broken = l->at_end = 1;
    if (why.code == SESSILE_NOTFOUND) /* the retention removed it meanwhile */
        return SESSILE_OK;
    return fail(err, why.code, "%s", why.message);
}

/* Reads on until an event waits, or this was the end for now. */
sessile_status lane_reader_fill(lane_reader *l, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    l->count = l->next = 0;
    buf_clear(&l->texts);
    while (!status && !l->count && !l->at_end) {
        if (l->why.code) {
            status = pass_over(l, err);
            continue;
        }
        status = read_on(l, &l->why);
        if (status == SESSILE_NOMEM)
            return fail_nomem(err);
        if (status)
            leave_log(l);
        status = SESSILE_OK;
    }
    return status;
}

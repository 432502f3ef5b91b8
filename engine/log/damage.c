/*
 * damage.c: the record of a log's damage.
 *
 * Owns why nothing may be written, the flaws, and the stand-ins for lost entries. Must
 * never read the log: salvage.c does, and fills the record.
 */
#include "log/damage.h"

#include <string.h>

/* Flaws that are listed; the rest is counted. */
#define FLAWS_MOST 1000

void log_damage_free(log_t *log)
{
    log_damage_record *d = log->damage;
    if (!d)
        return;
    mem_free(log->alloc, d->places, d->place_capacity * sizeof *d->places);
    mem_free(log->alloc, d->covers, d->cover_capacity * sizeof *d->covers);
    mem_free(log->alloc, d->flaws, d->flaw_capacity * sizeof *d->flaws);
    buf_deinit(&d->texts);
    mem_free(log->alloc, d, sizeof *d);
    log->damage = NULL;
}

sessile_status log_set_damage(log_t *log, const sessile_error *why, sessile_error *err)
{
    if (!log->damage) {
        log->damage = mem_zalloc(log->alloc, sizeof *log->damage);
        if (!log->damage)
            return fail_nomem(err);
        buf_init(&log->damage->texts, log->alloc);
        log->damage->first = log->end.count;
        log->damage->why = *why;
    }
    return SESSILE_OK;
}

sessile_status log_record_damage(log_t *log, sessile_status status, sessile_error *err)
{
    if ((status != SESSILE_DAMAGED && status != SESSILE_TRUNCATED) ||
        log->end.count == 0 || !log->judged)
        return status;
    sessile_error why = *err;
    error_clear(err);
    return log_set_damage(log, &why, err);
}

sessile_id log_count_undamaged(const log_t *log)
{
    return (sessile_id)(log->damage ? log->damage->first : log->end.count);
}

sessile_status log_damage(const log_t *log, sessile_error *err)
{
    if (!log->damage)
        return SESSILE_OK;
    if (err)
        *err = log->damage->why;
    return log->damage->why.code;
}

sessile_id log_count(const log_t *log)
{
    const log_damage_record *d = log->damage;
    return (sessile_id)(d && d->was_read ? d->first + d->count : log->end.count);
}

uint64_t log_bytes(const log_t *log)
{
    const log_damage_record *d = log->damage;
    return d && d->was_read ? d->size : log->end.bytes;
}

uint64_t log_lost(const log_t *log)
{
    return log->damage ? log->damage->lost : 0;
}

size_t log_flaws(const log_t *log, const log_flaw **out, uint64_t *left)
{
    const log_damage_record *d = log->damage;
    *out = d ? d->flaws : NULL;
    *left = d ? d->flaws_left : 0;
    return d ? d->flaw_count : 0;
}

sessile_status damage_add_flaw(log_t *log, log_flaw flaw, sessile_error *err)
{
    log_damage_record *d = log->damage;
    if (d->flaw_count == FLAWS_MOST) {
        d->flaws_left++;
        return SESSILE_OK;
    }
    if (mem_grow(log->alloc, (void **)&d->flaws, &d->flaw_capacity, d->flaw_count + 1,
                 sizeof *d->flaws) != 0)
        return fail_nomem(err);
    d->flaws[d->flaw_count++] = flaw;
    return SESSILE_OK;
}

size_t damage_stand_in_at(const log_damage_record *d, uint64_t id)
{
    size_t low = 0, high = d->cover_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->covers[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int log_has_stand_in(const log_t *log, sessile_id id)
{
    const log_damage_record *d = log->damage;
    size_t at = d ? damage_stand_in_at(d, id) : 0;
    return d && at < d->cover_count && d->covers[at].id == id;
}

sessile_status log_add_stand_in(log_t *log, sessile_id id, const char *text, size_t size,
                                sessile_error *err)
{
    log_damage_record *d = log->damage;
    size_t at = damage_stand_in_at(d, id);
    if (mem_grow(log->alloc, (void **)&d->covers, &d->cover_capacity, d->cover_count + 1,
                 sizeof *d->covers) != 0)
        return fail_nomem(err);
    size_t start = d->texts.size;
    buf_put(&d->texts, text, size);
    if (d->texts.failed) {
        d->texts.failed = 0;
        d->texts.size = start;
        return fail_nomem(err);
    }
    memmove(d->covers + at + 1, d->covers + at,
            (d->cover_count - at) * sizeof *d->covers);
    d->covers[at] = (stand_in){id, start, size};
    d->cover_count++;
    d->lost += d->was_read;
    return SESSILE_OK;
}

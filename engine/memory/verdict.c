/*
 * verdict.c: what somebody decides about entries: deleted, rejected, approved, restored,
 * pinned, confirmed.
 *
 * A verdict that would change nothing is not written. Reason and name are checked before
 * a lock is taken; whether an id is an entry, and whether its state would change, under
 * it.
 */
#include "memory/memory.h"

#include <inttypes.h>

sessile_status memory_check_verdict(const memory_core *m, sessile_memory_verdict_kind to,
                                    sessile_slice reason, sessile_slice by,
                                    sessile_error *err)
{
    sessile_status status =
        memory_check_text(reason, "reason", SESSILE_MEMORY_VALUE_MAX, NULL, err);

    if (!status)
        status =
            memory_check_text(by, "name of who decides", m->store->limits.id, "id", err);
    if (!status && !memory_verdict_name(to))
        status = fail(err, SESSILE_INVALID, "there is no such verdict");
    return status ? status
                  : memory_screen_fixed(m->store, "the reason", reason,
                                        SESSILE_SCREEN_BY_HOST, err);
}

typedef struct judging {
    const sessile_id *ids;
    size_t count, changed;
    sessile_memory_verdict_kind to;
    sessile_slice reason, by;
} judging;

static int is_named_before(const judging *w, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (w->ids[i] == w->ids[at])
            return 1;
    return 0;
}

static sessile_status build_verdict(void *arg, memory_core *m, batch *b,
                                    sessile_error *err)
{
    const states *s = &m->fold->states;
    judging *w = arg;
    buf data;

    w->changed = 0;
    buf_init(&data, b->alloc);
    buf_puts(&data, "{\"of\":[");
    for (size_t i = 0; i < w->count; i++) {
        uint32_t record = states_find(s, w->ids[i]);
        if (record == STATE_NONE) {
            buf_deinit(&data);
            return fail(err, SESSILE_NOTFOUND, "%08" PRIx32 " is no entry here",
                        w->ids[i]);
        }
        if (s->records[record].flags & RECORD_ERASED) {
            buf_deinit(&data);
            return fail(err, SESSILE_NOTFOUND,
                        "%08" PRIx32 " was erased: nothing brings it back", w->ids[i]);
        }
        if (is_named_before(w, i) || !states_would_change(s, b->now_ms, record, w->to))
            continue;
        buf_puts(&data, w->changed++ ? "," : "");
        memory_put_id(&data, w->ids[i]);
    }
    buf_printf(&data, "],\"to\":\"%s\"", memory_verdict_name(w->to));
    memory_put_member(&data, "reason", w->reason);
    memory_put_member(&data, "by", w->by);
    buf_putc(&data, '}');
    if (w->changed)
        memory_add(m, b, ENTRY_VERDICT, SOURCE_HOST, (sessile_slice){NULL, 0}, &data);
    buf_wipe(&data);
    return SESSILE_OK;
}

sessile_status memory_add_verdicts(memory_core *m, batch *b, const sessile_id *ids,
                                   size_t count, sessile_memory_verdict_kind to,
                                   sessile_slice reason, sessile_slice by,
                                   sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    for (size_t at = 0; !status && at < count; at += SESSILE_MEMORY_NAMED_MAX) {
        size_t left = count - at;
        judging w = {.ids = ids + at,
                     .count = left < SESSILE_MEMORY_NAMED_MAX ? left
                                                              : SESSILE_MEMORY_NAMED_MAX,
                     .to = to,
                     .reason = reason,
                     .by = by};
        status = build_verdict(&w, m, b, err);
    }
    return status;
}

sessile_status memory_verdict(memory_core *m, const sessile_id *ids, size_t count,
                              sessile_memory_verdict_kind to, sessile_slice reason,
                              sessile_slice by, size_t *changed, sessile_error *err)
{
    judging w = {ids, count, 0, to, reason, by};
    sessile_status status = memory_check_verdict(m, to, reason, by, err);

    if (!status && count > SESSILE_MEMORY_NAMED_MAX)
        status = fail(err, SESSILE_LIMIT, "a verdict is about at most %d entries",
                      SESSILE_MEMORY_NAMED_MAX);
    if (!status)
        status = memory_commit(m, build_verdict, &w, err);
    if (!status)
        *changed = w.changed;
    return status;
}

/*
 * damage.c: a session whose log is damaged.
 *
 * Owns tombstones, which take the place of lost entries. Must never make a tombstone
 * look like something that was said.
 *
 * The parent of a tombstone is the lost entry before it. The parent of the first one is
 * the head at that moment. Most entries follow the head, so the path of later entries,
 * which name a lost entry as their parent, most likely runs as it did. A tombstone does
 * not move the head. Nothing can be known about what was lost: where the head had been
 * moved in between, the path may show messages of another branch. That is one more
 * reason why such a session reports that it is damaged.
 */
#include "session/fold.h"

#include <inttypes.h>

static sessile_id parent_of(const session_core *s, const log_flaw *lost, sessile_id id)
{
    return id > lost->first && s->tree.nodes[id - 1].type == ENTRY_TOMBSTONE
               ? id - 1
               : s->tree.head;
}

sessile_status fold_put_tombstone(void *arg, const log_flaw *lost, sessile_id id,
                                  buf *out, sessile_error *err)
{
    const fold *f = arg;
    entry_fields fields = {.id = id,
                           .parent = parent_of(f->s, lost, id),
                           .time_ms = f->s->fold.written_ms,
                           .type = ENTRY_TOMBSTONE,
                           .source = SOURCE_SYSTEM,
                           .tokens = -1};
    buf data;

    buf_init(&data, out->alloc);
    buf_printf(&data,
               "{\"lost\":true,\"first\":\"%08" PRIx32 "\",\"last\":\"%08" PRIx32
               "\",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 "}",
               lost->first, lost->last, lost->offset, lost->bytes);
    entry_put_data(out, &fields, &data);
    buf_deinit(&data);
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}

sessile_status session_read_damaged(session_core *s, sessile_error *err)
{
    fold f = {.s = s};

    if (!log_damage(s->log, NULL))
        return SESSILE_OK;
    return log_read_damaged(s->log, fold_visit, fold_put_tombstone, &f, err);
}

sessile_status session_damage_locked(const session_core *s, uint64_t *lost,
                                     sessile_error *err)
{
    if (lost)
        *lost = log_lost(s->log);
    return session_name_error(s, log_damage(s->log, err), err);
}

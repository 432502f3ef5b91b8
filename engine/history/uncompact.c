/*
 * uncompact.c: undoes a compaction by writing another compaction.
 *
 * Owns the steps and the entry. uncompact_plan.c decides what comes back and where, under
 * the log's lock, so that it fits the head as it is when the entry is written.
 */
#include "history/uncompact_internal.h"

#include <inttypes.h>
#include <string.h>

#include "session/life.h"
#include "context/laws.h"

static void clear(undoing *u)
{
    const allocator *a = u->alloc;

    history_deinit(&u->h);
    finder_deinit(&u->in_now);
    mem_free(a, u->force, u->force_size);
    mem_free(a, u->slots, u->slot_count * sizeof *u->slots);
    u->force = NULL;
    u->slots = NULL;
    u->force_size = u->slot_count = 0;
    context_clear(&u->now);
    context_clear(&u->was);
    context_clear(&u->path);
    context_clear(&u->after);
    map_clear(&u->changes);
    buf_clear(&u->keys);
    buf_clear(&u->data);
}

static void undoing_init(undoing *u, sessile_id which, const allocator *a)
{
    memset(u, 0, sizeof *u);
    u->which = which;
    u->alloc = a;
    history_init(&u->h, a);
    context_init(&u->now, a);
    context_init(&u->was, a);
    context_init(&u->path, a);
    context_init(&u->after, a);
    map_init(&u->in_now.table, a);
    map_init(&u->changes, a);
    buf_init(&u->keys, a);
    buf_init(&u->data, a);
    u->result.compaction = SESSILE_NO_ID;
}

static void undoing_deinit(undoing *u)
{
    clear(u);
    context_deinit(&u->now);
    context_deinit(&u->was);
    context_deinit(&u->path);
    context_deinit(&u->after);
    map_deinit(&u->changes);
    buf_deinit(&u->keys);
    buf_deinit(&u->data);
}

static sessile_status read_lists(undoing *u, session_core *s, sessile_error *err)
{
    sessile_id *path = NULL;
    size_t count = 0;
    const context *now;
    sessile_status status = session_context_locked(s, &now, err);

    if (!status && context_copy(&u->now, now))
        status = fail_nomem(err);
    if (!status)
        status =
            session_context_at_locked(s, s->tree.nodes[u->step->at].parent, &u->was, err);
    if (!status)
        status = session_path_locked(s, s->tree.head, &path, &count, err);
    for (size_t i = 0; !status && i < count; i++)
        if (context_push_node(s, path[i], &u->path))
            status = fail_nomem(err);
    if (path)
        mem_free(&s->store->alloc, path, count * sizeof *path);
    finder_init(&u->in_now, &u->now, u->alloc);
    return status;
}

static sessile_status prepare(undoing *u, session_core *s, sessile_error *err)
{
    meter_ratio fit[TOKEN_UNITS];
    int64_t outside = 0;
    sessile_tokens before, after;
    sessile_status status;

    status = session_check_running_locked(s, err);
    if (status)
        return status;
    clear(u);
    memset(&u->result, 0, sizeof u->result);
    u->result.compaction = SESSILE_NO_ID;
    status = history_make(&u->h, s, s->tree.head, err);
    if (!status)
        status = uncompact_choose(u, s, err);
    if (!status)
        status = read_lists(u, s, err);
    for (uint32_t i = 0; !status && i < u->step->count; i++) {
        sessile_key key = u->h.events[u->step->first + i].key;
        if (u->force[i] && map_put(&u->changes, (uint64_t)key.n << 32 | key.entry, i))
            status = fail_nomem(err);
    }
    if (!status)
        status = uncompact_propose(u, err);
    if (!status)
        status = uncompact_check(u, s, err);
    if (!status)
        status = session_fit_locked(s, s->tree.head, fit, err);
    if (!status)
        status = session_outside_locked(s, s->tree.head, &outside, err);
    if (status)
        return status;
    u->result.undone = u->step->at;
    status = session_tokens_locked(s, &before, err);
    if (!status)
        status = session_tokens_with_locked(s, s->tree.head, &u->after, &after, err);
    if (status)
        return status;
    meter_scale_context(&u->now, fit);
    meter_scale_context(&u->was, fit);
    meter_scale_context(&u->after, fit);
    u->source = meter_source(&u->now);
    u->result.tokens_before = before.tokens;
    u->result.tokens_after = after.tokens;
    u->result.cannot_fit = laws_cannot_fit(&u->after, session_config(s).window,
                                           session_config(s).reserve + outside);
    return SESSILE_OK;
}

static const sessile_key *restored_of(const undoing *u)
{
    return (const sessile_key *)(const void *)u->keys.data;
}

static int64_t tokens_of(const context *c, const sessile_key *keys, size_t count)
{
    int64_t sum = 0;
    finder f;
    size_t at;

    finder_init(&f, c, c->alloc);
    for (size_t i = 0; i < count; i++)
        if (finder_find(&f, keys[i], &at) > 0)
            sum += c->items[at].tokens;
    finder_deinit(&f);
    return sum;
}

static sessile_status put_part(undoing *u, session_core *s, const char *name,
                               const context *c, const sessile_key *keys, size_t count,
                               const char **separator, sessile_error *err)
{
    sessile_status status;

    if (!count)
        return SESSILE_OK;
    buf_printf(&u->data, "%s\"%s\":{\"tokens\":%" PRId64 ",\"entries\":", *separator,
               name, tokens_of(c, keys, count));
    status = compaction_put_keys(s, keys, count, 0, &u->data, err);
    buf_putc(&u->data, '}');
    *separator = ",";
    return status;
}

/* The data of the entry, as session/compaction.h describes it. */
static sessile_status put_data(undoing *u, session_core *s, sessile_error *err)
{
    size_t count = u->after.count ? u->after.count : 1;
    sessile_key *keys = mem_alloc(u->alloc, count * sizeof *keys);
    const char *separator = "";
    sessile_status status;

    if (!keys)
        return fail_nomem(err);
    for (size_t i = 0; i < u->after.count; i++)
        keys[i] = u->after.items[i].key;
    buf_puts(&u->data, "{\"context\":");
    status = compaction_put_keys(s, keys, u->after.count, 0, &u->data, err);
    mem_free(u->alloc, keys, count * sizeof *keys);
    buf_printf(&u->data,
               ",\"upto\":\"%08" PRIx32
               "\",\"policy\":[],\"reason\":\"manual\",\"uncompacts\":\"%08" PRIx32
               "\",\"tokens_before\":%" PRId64 ",\"tokens_after\":%" PRId64
               ",\"token_source\":\"%s\",\"account\":{",
               s->tree.head, u->step->at, u->result.tokens_before, u->result.tokens_after,
               u->source);
    if (!status)
        status = put_part(u, s, "restored", &u->was, restored_of(u),
                          u->result.restored_count, &separator, err);
    if (!status)
        status =
            put_part(u, s, "removed", &u->now, restored_of(u) + u->result.restored_count,
                     u->result.removed_count, &separator, err);
    buf_puts(&u->data, "}}");
    return !status && u->data.failed ? fail_nomem(err) : status;
}

static sessile_status build(void *arg, session_core *s, batch *b, sessile_error *err)
{
    undoing *u = arg;
    sessile_status status = session_check_base_locked(s, s->tree.base, 0, err);

    if (!status)
        status = prepare(u, s, err);
    if (!status)
        status = put_data(u, s, err);
    if (status)
        return status;
    u->result.compaction = batch_put(b, s->tree.head, ENTRY_COMPACTION, SOURCE_HOST,
                                     u->data.data, u->data.size);
    return SESSILE_OK;
}

static sessile_status plan_uncompact(undoing *u, session_core *s, sessile_error *err)
{
    sessile_status status = session_lock(s, err);

    if (status)
        return status;
    status = session_refresh_locked(s, err);
    if (!status)
        status = session_check_base_locked(s, s->tree.base, 0, err);
    if (!status)
        status = prepare(u, s, err);
    session_unlock(s);
    return status;
}

static sessile_uncompacted *make_outcome(const undoing *u)
{
    size_t size = u->keys.size;
    sessile_uncompacted *out = host_alloc(u->alloc, sizeof *out + size);
    sessile_key *keys;

    if (!out)
        return NULL;
    *out = u->result;
    keys = (sessile_key *)(void *)(out + 1);
    if (size)
        memcpy(keys, u->keys.data, size);
    out->restored = keys;
    out->removed = keys + u->result.restored_count;
    return out;
}

sessile_status session_uncompact(session_core *s, sessile_id which, int dry_run,
                                 sessile_uncompacted **out, sessile_error *err)
{
    sessile_status status;
    undoing u;

    *out = NULL;
    undoing_init(&u, which, &s->store->alloc);
    status =
        dry_run ? plan_uncompact(&u, s, err) : session_write(s, build, &u, NULL, err);
    if (!status && !(*out = make_outcome(&u)))
        status = fail_nomem(err);
    undoing_deinit(&u);
    return status;
}

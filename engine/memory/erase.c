/*
 * erase.c: which entries are erased, and the two steps in which that happens.
 *
 * An erased entry keeps its id, its kind and its place among the others; its texts go
 * (erase_text.c). What it had replaced stays replaced, because whoever erases the newer
 * entry does not want the older one back.
 *
 * An erased entry has no key any more. It names in `replaces` what it had replaced by its
 * key, and `replaces` can name earlier entries only. An entry that was written later and
 * was replaced by a restored one is therefore deleted first, by a verdict.
 *
 * Verdicts are committed first, like any other. Then the log is written again under its
 * exclusive lock. If the second step fails, the first one stays: the entries have ended,
 * and can be erased again. Entries that others append in between are copied unchanged.
 */
#include "memory/erase.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "memory/filter.h"

static void add_target(erasing *e, uint32_t record)
{
    if (erasing_has(e, record) ||
        (e->m->fold->states.records[record].flags & RECORD_ERASED))
        return;
    e->targets[record / 64] |= UINT64_C(1) << record % 64;
    e->target_count++;
}

static sessile_status add_id(erasing *e, id_list *list, sessile_id id, sessile_error *err)
{
    if (mem_grow(&e->m->store->alloc, (void **)&list->at, &list->capacity,
                 list->count + 1, sizeof *list->at))
        return fail_nomem(err);
    list->at[list->count++] = id;
    return SESSILE_OK;
}

/* Reads an entry of the log into e->entry. */
static sessile_status read_entry(erasing *e, sessile_id id, entry *out,
                                 sessile_error *err)
{
    sessile_status status;

    buf_clear(&e->entry);
    status = log_read(e->m->log, id, &e->entry, err);
    return status ? status : entry_read(out, e->entry.data, e->entry.size, err);
}

/* ------------------------------------------------------------------ which */

static sessile_status choose_ids(erasing *e, sessile_error *err)
{
    for (size_t i = 0; i < e->wanted->id_count; i++) {
        uint32_t record = states_find(&e->m->fold->states, e->wanted->ids[i]);
        if (record == STATE_NONE)
            return fail(err, SESSILE_NOTFOUND,
                        "%08" PRIx32 " is no entry here: nothing was erased",
                        e->wanted->ids[i]);
        add_target(e, record);
    }
    return SESSILE_OK;
}

/* *alone: the entry is from that session and from no other. */
static sessile_status is_alone(erasing *e, uint32_t record, uint64_t session, int *alone,
                               sessile_error *err)
{
    const states *s = &e->m->fold->states;
    memory_entry data;
    uint64_t hash;
    entry read;
    int got = 0;
    sessile_status status = read_entry(e, s->records[record].id, &read, err);

    if (!status)
        status = memory_entry_read(&data, &read, err);
    *alone = 1;
    for (size_t n = 0;
         !status &&
         (got = memory_from_hash(&data, n, &s->key, &e->m->store->alloc, &hash)) > 0;
         n++)
        if (hash != session)
            *alone = 0;
    return got < 0 ? fail_nomem(err) : status;
}

/* Every entry that is from the session. Those that are from others, too, are rejected. */
static sessile_status choose_session(erasing *e, sessile_slice agent,
                                     sessile_slice session, sessile_error *err)
{
    const states *s = &e->m->fold->states;
    const sessile_memory_filter wanted = {
        .states = UINT_MAX, .session = session, .session_agent = agent};
    memory_filter f;
    sessile_status status =
        memory_filter_init(&f, e->m, &wanted, memory_now_ms(e->m), err);

    for (uint32_t i = 0; !status && i < s->count; i++) {
        int alone;
        if (!memory_filter_pass(&f, i))
            continue;
        status = is_alone(e, i, f.session, &alone, err);
        if (!status)
            status = add_id(e, alone ? &e->deleted : &e->rejected, s->records[i].id, err);
        if (!status)
            add_target(e, i);
    }
    if (!status && f.status) {
        status = f.status;
        if (err)
            *err = f.err;
    }
    memory_filter_deinit(&f);
    return status;
}

/* *ended: the log's time at which an entry ended; INT64_MAX: it has not. */
static sessile_status ended_at(erasing *e, uint32_t record, const sessile_id *last_flip,
                               int64_t *ended, sessile_error *err)
{
    const states *s = &e->m->fold->states;
    const memory_record *r = &s->records[record];
    sessile_id by = r->ended_by ? r->ended_by : last_flip[record];
    sessile_status status;
    entry read;

    *ended = INT64_MAX;
    switch (states_of(s, record, e->wanted->ended_before_ms)) {
    case SESSILE_MEMORY_EXPIRED:
        *ended = r->expires_ms;
        break;
    case SESSILE_MEMORY_REPLACED:
    case SESSILE_MEMORY_DELETED:
    case SESSILE_MEMORY_REJECTED:
        *ended = r->time_ms; /* of one that never lived */
        if (!by)
            break;
        status = read_entry(e, by, &read, err);
        if (status)
            return status;
        *ended = read.time_ms;
        break;
    default:
        break;
    }
    return SESSILE_OK;
}

static sessile_status choose_ended(erasing *e, sessile_error *err)
{
    const states *s = &e->m->fold->states;
    const allocator *a = &e->m->store->alloc;
    sessile_id *last_flip = mem_zalloc(a, (s->count + 1) * sizeof *last_flip);
    sessile_status status = last_flip ? SESSILE_OK : fail_nomem(err);
    int64_t ended;

    for (size_t i = 0; !status && i < s->flip_count; i++)
        last_flip[s->flips[i].record] = s->flips[i].at;
    for (uint32_t i = 0; !status && i < s->count; i++) {
        status = ended_at(e, i, last_flip, &ended, err);
        if (!status && ended < e->wanted->ended_before_ms)
            add_target(e, i);
    }
    mem_free(a, last_flip, (s->count + 1) * sizeof *last_flip);
    return status;
}

static int is_before(const memory_record *r, int64_t before_ms)
{
    return !(r->flags & RECORD_ERASED) && r->time_ms < before_ms;
}

static void choose_written(erasing *e)
{
    for (uint32_t i = 0; i < e->count; i++)
        if (is_before(&e->m->fold->states.records[i], e->wanted->written_before_ms))
            add_target(e, i);
}

/* What a target replaces by its key and was written after it. */
static sessile_status choose_beneath(erasing *e, sessile_error *err)
{
    const states *s = &e->m->fold->states;
    sessile_status status = SESSILE_OK;

    for (uint32_t i = 0; i < e->count; i++) {
        const memory_record *r = &s->records[i];
        if (!erasing_has(e, i) || !(r->flags & RECORD_IN_FORCE))
            continue;
        for (uint32_t k = r->below; !status && k != STATE_NONE; k = s->records[k].below)
            if (k > i && !(s->records[k].flags & RECORD_DELETED))
                status = add_id(e, &e->deleted, s->records[k].id, err);
    }
    return status;
}

/* ------------------------------------------------------------------ verdicts */

static sessile_status judge_all(memory_core *m, const id_list *list,
                                sessile_memory_verdict_kind to, sessile_slice reason,
                                sessile_slice by, size_t *changed, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    for (size_t at = 0, count; !status && at < list->count; at += count) {
        size_t some = 0;
        count = list->count - at;
        if (count > SESSILE_MEMORY_NAMED_MAX)
            count = SESSILE_MEMORY_NAMED_MAX;
        status = memory_verdict(m, list->at + at, count, to, reason, by, &some, err);
        *changed += some;
    }
    return status;
}

/* ------------------------------------------------------------------ the calls */

static void begin(erasing *e, memory_core *m, const sessile_memory_erase_options *wanted)
{
    memset(e, 0, sizeof *e);
    e->m = m;
    e->wanted = wanted;
    buf_init(&e->entry, &m->store->alloc);
    buf_init(&e->data, &m->store->alloc);
    buf_init(&e->user, &m->store->alloc);
}

static void end(erasing *e)
{
    const allocator *a = &e->m->store->alloc;
    mem_free(a, e->targets, (e->count / 64 + 1) * sizeof *e->targets);
    mem_free(a, e->rejected.at, e->rejected.capacity * sizeof *e->rejected.at);
    mem_free(a, e->deleted.at, e->deleted.capacity * sizeof *e->deleted.at);
    buf_wipe(&e->entry);
    buf_wipe(&e->data);
    buf_wipe(&e->user);
}

/* The bits of the targets, with no bit set. The mutex is held. */
static sessile_status make_targets(erasing *e, sessile_error *err)
{
    e->count = e->m->fold->states.count;
    e->targets =
        mem_zalloc(&e->m->store->alloc, (e->count / 64 + 1) * sizeof *e->targets);
    return e->targets ? SESSILE_OK : fail_nomem(err);
}

static sessile_status choose(erasing *e, sessile_error *err)
{
    const sessile_memory_erase_options *w = e->wanted;
    sessile_status status = memory_lock_fresh(e->m, err);

    if (status)
        return status;
    status = make_targets(e, err);
    if (!status)
        status = choose_ids(e, err);
    if (!status && w->session.size) {
        status = choose_session(e, w->session_agent, w->session, err);
        e->deleted.count = 0; /* they are erased */
    }
    if (!status && w->ended_before_ms)
        status = choose_ended(e, err);
    if (!status && w->written_before_ms)
        choose_written(e);
    if (!status)
        status = choose_beneath(e, err);
    memory_unlock(e->m);
    return memory_name_error(e->m, status, err);
}

/* Writes the log again. Records that were targets keep their places. */
static sessile_status rewrite(erasing *e, sessile_error *err)
{
    store_core *st = e->m->store;
    char folder[NAME_SIZE], name[NAME_SIZE];
    log_index_callbacks proof = memory_index_callbacks(NULL, 1); /* none is called */
    sessile_status status = memory_lock_fresh(e->m, err);

    if (status)
        return status;
    memory_place(e->m, folder, name);
    status = log_change_entries(&st->backend, st->keys, folder, name, e->m->timeout_ms,
                                &proof, erase_change, e, &st->alloc, err);
    memory_unlock(e->m);
    if (status)
        return memory_name_error(e->m, status, err);
    /* The texts leave this process, too. */
    status = memory_lock_fresh(e->m, err);
    if (!status)
        memory_unlock(e->m);
    return status;
}

sessile_status memory_erase(memory_core *m, const sessile_memory_erase_options *options,
                            size_t *erased, sessile_error *err)
{
    static const sessile_slice nothing = {NULL, 0};
    sessile_status status;
    size_t changed = 0;
    erasing e;

    begin(&e, m, options);
    status = choose(&e, err);
    if (!status && e.target_count)
        status = memory_check_removal(m, err);
    if (!status && e.target_count) {
        status = judge_all(m, &e.rejected, SESSILE_MEMORY_REJECT, nothing, nothing,
                           &changed, err);
        if (!status)
            status = judge_all(m, &e.deleted, SESSILE_MEMORY_DELETE, nothing, nothing,
                               &changed, err);
        if (!status)
            status = rewrite(&e, err);
    }
    if (!status)
        *erased = e.target_count;
    end(&e);
    return status;
}

sessile_status memory_count_before(memory_core *m, int64_t before_ms, uint64_t *count,
                                   sessile_error *err)
{
    sessile_status status = memory_lock_fresh(m, err);

    *count = 0;
    if (status)
        return status;
    for (uint32_t i = 0; i < m->fold->states.count; i++)
        *count += is_before(&m->fold->states.records[i], before_ms);
    memory_unlock(m);
    return SESSILE_OK;
}

sessile_status memory_count_from(memory_core *m, sessile_slice agent,
                                 sessile_slice session, size_t *count, sessile_error *err)
{
    const sessile_memory_erase_options from = {.session = session,
                                               .session_agent = agent};
    sessile_status status;
    erasing e;

    begin(&e, m, &from);
    status = choose(&e, err);
    *count = e.target_count;
    end(&e);
    return status;
}

sessile_status memory_delete_from(memory_core *m, sessile_slice agent,
                                  sessile_slice session, sessile_slice by,
                                  size_t *changed, sessile_error *err)
{
    static const char why[] = "the session that it came from was deleted";
    const sessile_slice reason = {why, sizeof why - 1};
    sessile_status status;
    size_t sum = 0;
    erasing e;

    if (!session.size)
        return fail(err, SESSILE_INVALID, "name the session that is deleted");
    begin(&e, m, NULL);
    status = memory_lock_fresh(m, err);
    if (!status) {
        status = make_targets(&e, err);
        if (!status)
            status = choose_session(&e, agent, session, err);
        memory_unlock(m);
        status = memory_name_error(m, status, err);
    }
    if (!status)
        status = judge_all(m, &e.rejected, SESSILE_MEMORY_REJECT, reason, by, &sum, err);
    if (!status)
        status = judge_all(m, &e.deleted, SESSILE_MEMORY_DELETE, reason, by, &sum, err);
    if (!status)
        *changed = sum;
    end(&e);
    return status;
}

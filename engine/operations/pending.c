/*
 * pending.c: finds the pending runs that can still be answered.
 *
 * A pending run is open until a fact ends it or the conversation makes it obsolete: when
 * the head no longer descends from the entry that its policy saw, or when another
 * compaction has changed the context, the result of an answer could not be applied.
 */
#include "operations/pending.h"

#include <inttypes.h>
#include <string.h>

#include "operations/read.h"
#include "session/fold.h"

/* *open: 1 when an answer could still be applied. */
static sessile_status read_pending(session_core *s, const entry *e, int *open,
                                   sessile_error *err)
{
    sessile_id saw = read_earlier_id(e, "saw");
    sessile_status status;

    *open = 0;
    if (saw == SESSILE_NO_ID)
        return SESSILE_OK;
    status = session_load_locked(s, saw, err);
    if (!status)
        status = session_load_path_locked(s, s->tree.head, saw, err);
    if (status)
        return status;
    *open = (s->tree.head == saw || session_descends_locked(s, s->tree.head, saw)) &&
            s->tree.nodes[s->tree.head].context_at == s->tree.nodes[saw].context_at;
    return SESSILE_OK;
}

sessile_status session_pending_run_locked(session_core *s, sessile_id *id, buf *text,
                                          entry *e, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    sessile_status status = SESSILE_OK;
    size_t count;
    fact *pending_runs;
    int open = 0;

    if (facts_in_force(&s->fold.facts, FACT_PENDING_RUN, a, &pending_runs, &count))
        return fail_nomem(err);
    for (size_t i = count; !status && !open && i-- > 0;) {
        if (*id != SESSILE_NO_ID && pending_runs[i].about != *id)
            continue;
        status = session_read_entry(s, pending_runs[i].about, text, e, err);
        if (!status)
            status = read_pending(s, e, &open, err);
    }
    mem_free(a, pending_runs, count * sizeof *pending_runs);
    if (status)
        return status;
    if (open) {
        *id = e->id;
        return SESSILE_OK;
    }
    if (*id == SESSILE_NO_ID)
        return session_name_error(
            s, fail(err, SESSILE_NOTFOUND, "no run of it waits for an answer"), err);
    return session_name_error(
        s,
        fail(err, SESSILE_NOTFOUND,
             "no run waits at entry %08" PRIx32
             ": it was answered or cancelled, or the conversation went another way",
             *id),
        err);
}

/* ------------------------------------------------------------------ a list */

typedef struct pending {
    const fact *fact;
    int64_t time_ms;
    int refused;
    size_t policy, policy_size, request, request_size; /* in the list's texts */
} pending;

static sessile_status add_pending(session_core *s, const fact *one, pending *rows,
                                  size_t *n, buf *texts, buf *text, sessile_error *err)
{
    sessile_status status;
    int open = 0;
    entry e;
    json asks;

    status = session_read_entry(s, one->about, text, &e, err);
    if (!status)
        status = read_pending(s, &e, &open, err);
    if (status || !open)
        return status;
    asks = json_get(e.data, "asks");
    pending *row = &rows[(*n)++];
    row->fact = one;
    row->time_ms = e.time_ms;
    row->refused = json_get(e.data, "refused").type != JSON_NONE;
    row->policy = texts->size;
    (void)json_string(texts, json_get(asks, "policy"));
    row->policy_size = texts->size - row->policy;
    buf_putc(texts, 0);
    json request = json_get(asks, "request");
    row->request = texts->size;
    if (request.type == JSON_OBJECT)
        buf_put(texts, request.at, request.size);
    row->request_size = texts->size - row->request;
    buf_putc(texts, 0);
    return texts->failed ? fail_nomem(err) : SESSILE_OK;
}

static sessile_pending_run *pack(const session_core *s, const pending *rows, size_t count,
                                 const buf *texts)
{
    sessile_pending_run *out =
        host_alloc(&s->store->alloc, (count + !count) * sizeof *out + texts->size);
    char *to;

    if (!out)
        return NULL;
    to = (char *)(out + count);
    if (texts->size)
        memcpy(to, texts->data, texts->size);
    for (size_t i = 0; i < count; i++)
        out[i] = (sessile_pending_run){
            .entry = rows[i].fact->about,
            .time_ms = rows[i].time_ms,
            .refused = rows[i].refused,
            .policy = {to + rows[i].policy, rows[i].policy_size},
            .request = {to + rows[i].request, rows[i].request_size}};
    return out;
}

static sessile_status pending_runs_locked(session_core *s, sessile_pending_run **out,
                                          size_t *count, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    sessile_status status = SESSILE_OK;
    size_t in_force, n = 0;
    pending *rows = NULL;
    buf texts, text;
    fact *list;

    if (facts_in_force(&s->fold.facts, FACT_PENDING_RUN, a, &list, &in_force))
        return fail_nomem(err);
    buf_init(&texts, a);
    buf_init(&text, a);
    if (in_force) {
        rows = mem_zalloc(a, in_force * sizeof *rows);
        if (!rows)
            status = fail_nomem(err);
    }
    for (size_t i = 0; !status && i < in_force; i++)
        status = add_pending(s, &list[i], rows, &n, &texts, &text, err);
    if (!status) {
        *out = pack(s, rows, n, &texts);
        if (*out)
            *count = n;
        else
            status = fail_nomem(err);
    }
    mem_free(a, rows, in_force * sizeof *rows);
    mem_free(a, list, in_force * sizeof *list);
    buf_deinit(&texts);
    buf_deinit(&text);
    return status;
}

sessile_status session_pending_runs(session_core *s, sessile_pending_run **out,
                                    size_t *count, sessile_error *err)
{
    sessile_status status = session_lock_fresh(s, err);

    if (status)
        return status;
    status = pending_runs_locked(s, out, count, err);
    session_unlock(s);
    return status;
}

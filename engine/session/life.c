/*
 * life.c: ttl, archive, deletion and purge.
 *
 * Owns what the facts of a session mean for its life. A soft deletion, an archived
 * session and a ttl are metadata facts, so that their time, reason and actor are in the
 * log; a hard deletion leaves nothing. Must never remove a session because of what a list
 * said of it: what was written since the look spares it.
 */
#include "session/life.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "log/log.h"
#include "session/fold.h"

#define DELETED       "deleted"
#define ARCHIVED      "archived"
#define TTL           "ttl_ms"
#define FIND(s, name) facts_find(&(s)->facts, FACT_METADATA, 0, name, sizeof(name) - 1)

/* No session lives longer by rule: so that no sum of times overflows. */
#define TTL_MOST (INT64_C(1) << 53)

const char *sessile_life_name(sessile_life life)
{
    static const char *const names[] = {"active", "suspended", "archived", "expired",
                                        "deleted"};
    return (unsigned)life <= SESSILE_LIFE_DELETED ? names[life] : "unknown";
}

/* ------------------------------------------------------------------ where it stands */

sessile_status session_life_facts_locked(sessile_session *s, life_facts *out,
                                         sessile_error *err)
{
    const fact *deleted = FIND(s, DELETED), *ttl = NULL;
    sessile_status status = SESSILE_OK;

    memset(out, 0, sizeof *out);
    out->ttl_ms = s->ttl_ms;
    out->archived = FIND(s, ARCHIVED) != NULL;
    out->suspended = facts_find(&s->facts, FACT_SUSPEND, 0, "", 0) != NULL;
    if (deleted) {
        status = session_reach_locked(s, deleted->entry, err);
        if (!status)
            out->deleted_ms = s->nodes[deleted->entry].time_ms;
    }
    for (size_t i = s->facts.count; !status && !ttl && i-- > 0;) {
        const fact *one = &s->facts.at[i];
        if (one->kind == FACT_METADATA &&
            fact_is_named(&s->facts, one, TTL, sizeof TTL - 1))
            ttl = one;
    }
    if (!status && ttl) {
        uint64_t ms = 0;
        buf text;
        entry e;
        buf_init(&text, &s->store->alloc);
        if (!ttl->off) {
            status = session_read_entry(s, ttl->entry, &text, &e, err);
            if (!status && json_uint(json_get(e.data, TTL), &ms))
                ms = 0;
        }
        out->ttl_ms = ms > TTL_MOST ? TTL_MOST : (int64_t)ms;
        buf_deinit(&text);
    }
    return status;
}

int64_t life_expires(const life_facts *f, int64_t modified_ms)
{
    return f->ttl_ms <= 0 || modified_ms > INT64_MAX - TTL_MOST ? 0
                                                                : modified_ms + f->ttl_ms;
}

sessile_life life_of(const life_facts *f, int64_t modified_ms, int64_t now_ms)
{
    int64_t expires = life_expires(f, modified_ms);

    return f->deleted_ms                  ? SESSILE_LIFE_DELETED
           : expires && expires <= now_ms ? SESSILE_LIFE_EXPIRED
           : f->archived                  ? SESSILE_LIFE_ARCHIVED
           : f->suspended                 ? SESSILE_LIFE_SUSPENDED
                                          : SESSILE_LIFE_ACTIVE;
}

sessile_status session_check_there_locked(sessile_session *s, sessile_error *err)
{
    if (!FIND(s, DELETED))
        return SESSILE_OK;
    return session_named(s,
                         fail(err, SESSILE_NOTFOUND,
                              "it was deleted by entry %08" PRIx32
                              " and not purged yet: undelete it to have it back",
                              FIND(s, DELETED)->entry),
                         err);
}

sessile_status session_life(sessile_session *s, sessile_life_info *out,
                            sessile_error *err)
{
    sessile_status status = session_lock(s, err);
    life_facts f;

    if (status)
        return status;
    status = session_refresh_locked(s, err);
    if (!status)
        status = session_life_facts_locked(s, &f, err);
    if (!status)
        *out = (sessile_life_info){
            .life = life_of(&f, s->modified_ms, s->store->os->now_ms(s->store->os->ud)),
            .ttl_ms = f.ttl_ms,
            .expires_ms = life_expires(&f, s->modified_ms),
            .deleted_ms = f.deleted_ms};
    session_unlock(s);
    return status;
}

/* ------------------------------------------------------------------ facts of its own */

typedef struct step {
    buf text;
    int revives; /* the one step that a deleted session can take */
} step;

static sessile_status build_step(void *arg, sessile_session *s, batch *b,
                                 sessile_error *err)
{
    step *w = arg;
    sessile_status status = w->revives ? SESSILE_OK : session_check_there_locked(s, err);

    if (status)
        return status;
    if (w->revives && !FIND(s, DELETED))
        return session_named(
            s, fail(err, SESSILE_NOTFOUND, "it is not deleted: resume it"), err);
    batch_put(b, s->head, ENTRY_METADATA, SOURCE_HOST, w->text.data, w->text.size);
    return SESSILE_OK;
}

static sessile_status take_step(sessile_session *s, step *w, sessile_error *err)
{
    return w->text.failed ? fail_nomem(err) : session_write(s, build_step, w, err);
}

sessile_status session_set_ttl(sessile_session *s, int64_t ttl_ms, sessile_error *err)
{
    sessile_status status;
    step w = {.revives = 0};

    if (ttl_ms < 0 || ttl_ms > TTL_MOST)
        return fail(err, SESSILE_INVALID,
                    "a ttl is a time in milliseconds, or 0: for ever");
    buf_init(&w.text, &s->store->alloc);
    buf_printf(&w.text, "{\"" TTL "\":%" PRIi64 "}", ttl_ms);
    status = take_step(s, &w, err);
    buf_deinit(&w.text);
    return status;
}

sessile_status session_set_archived(sessile_session *s, int archived, sessile_error *err)
{
    sessile_status status;
    step w = {.revives = 0};

    buf_init(&w.text, &s->store->alloc);
    buf_printf(&w.text, "{\"" ARCHIVED "\":%s}", archived ? "true" : "null");
    status = take_step(s, &w, err);
    buf_deinit(&w.text);
    return status;
}

/* ------------------------------------------------------------------ delete */

static sessile_status put_text(buf *out, const char *name, sessile_slice text,
                               const sessile_store *st, sessile_error *err)
{
    if (text.size > st->limits.message)
        return fail(err, SESSILE_LIMIT, "the %s has more bytes than the limit [message]",
                    name);
    if (!utf8_valid(text.data, text.size))
        return fail(err, SESSILE_INVALID, "the %s is not UTF-8", name);
    if (text.size) {
        buf_printf(out, "%s\"%s\":", out->data[out->size - 1] == '{' ? "" : ",", name);
        json_put_string(out, text.data, text.size);
    }
    return SESSILE_OK;
}

static sessile_status mark(sessile_store *st, const sessile_session_options *which,
                           step *w, sessile_error *err)
{
    sessile_session *s;
    sessile_status status =
        w->text.failed ? fail_nomem(err) : session_open_any(&s, st, which, err);

    if (status)
        return status;
    status = take_step(s, w, err);
    if (status)
        (void)session_close(s, NULL);
    else
        status = session_close(s, err);
    return status;
}

static sessile_status delete_softly(sessile_store *st,
                                    const sessile_session_options *which,
                                    const sessile_delete_options *o, sessile_error *err)
{
    step w = {.revives = 0};
    sessile_status status;

    buf_init(&w.text, &st->alloc);
    buf_puts(&w.text, "{\"" DELETED "\":{");
    status =
        w.text.failed ? fail_nomem(err) : put_text(&w.text, "reason", o->reason, st, err);
    if (!status && !w.text.failed)
        status = put_text(&w.text, "actor", o->actor, st, err);
    buf_puts(&w.text, "}}");
    if (!status)
        status = mark(st, which, &w, err);
    buf_deinit(&w.text);
    return status;
}

/* What may be kept of a session that is gone: nothing that tells its name. */
static sessile_status hash_names(const session_names *n, char out[SESSILE_ID_HASH_SIZE],
                                 const allocator *a, sessile_error *err)
{
    const sessile_slice parts[] = {n->agent, n->user, n->id};
    sessile_status status = SESSILE_OK;
    unsigned char hash[32];
    buf all;

    buf_init(&all, a);
    for (size_t i = 0; i < 3; i++) {
        buf_printf(&all, "%zu:", parts[i].size);
        if (parts[i].size)
            buf_put(&all, parts[i].data, parts[i].size);
    }
    if (all.failed) {
        status = fail_nomem(err);
    } else {
        hash256(hash, all.data, all.size, NULL, 0);
        hex_encode(out, hash, sizeof hash);
    }
    buf_deinit(&all);
    return status;
}

static sessile_status remove_log(sessile_store *st, const session_names *names,
                                 uint64_t expected, uint64_t *bytes, sessile_error *err)
{
    char folder[NAME_SIZE], name[NAME_SIZE];
    sessile_status status;

    names_place(st, names, folder, name);
    status = log_remove(&st->backend, st->keys, folder, name, expected, st->timeout_ms,
                        bytes, err);
    /* What lists remember has its names and labels. Who is killed before this leaves them
     * until the next list. */
    if (!status && (st->backend.table->capabilities & SESSILE_BACKEND_LIST_CACHE))
        status = st->backend.table->list_cache_drop(st->backend.self, folder, err);
    return status;
}

sessile_status session_delete(sessile_store *st, const sessile_session_options *which,
                              const sessile_delete_options *options, sessile_deleted *out,
                              sessile_error *err)
{
    char shown[NAME_SHOWN], agent[NAME_SHOWN], hash[SESSILE_ID_HASH_SIZE];
    session_names names;
    sessile_status status = names_of(&names, st, which, 0, err);

    if (!status) /* before anything is removed: who deletes wants to note it */
        status = hash_names(&names, hash, &st->alloc, err);
    if (status)
        return status;
    if (options->soft) {
        status = delete_softly(st, which, options, err);
    } else {
        status = remove_log(st, &names, UINT64_MAX, &out->bytes, err);
        name_show(names.id, shown);
        name_show(names.agent, agent);
        if (status == SESSILE_NOTFOUND)
            fail(err, status, "there is no session %s of agent %s to delete", shown,
                 agent);
        else if (status)
            fail_prefix(err, "session %s", shown);
    }
    if (!status) {
        memcpy(out->id_hash, hash, sizeof hash);
        out->time_ms = st->os->now_ms(st->os->ud);
    }
    return status;
}

sessile_status session_undelete(sessile_store *st, const sessile_session_options *which,
                                sessile_slice actor, sessile_error *err)
{
    step w = {.revives = 1};
    sessile_status status;

    buf_init(&w.text, &st->alloc);
    buf_puts(&w.text, "{\"" DELETED "\":null,\"undeleted\":{");
    status = w.text.failed ? fail_nomem(err) : put_text(&w.text, "actor", actor, st, err);
    buf_puts(&w.text, "}}");
    if (!status)
        status = mark(st, which, &w, err);
    buf_deinit(&w.text);
    return status;
}

/* ------------------------------------------------------------------ purge */

static int is_due(const sessile_listed *row, int64_t retention_ms, int64_t now_ms)
{
    return !row->status && (row->life == SESSILE_LIFE_EXPIRED ||
                            (row->life == SESSILE_LIFE_DELETED &&
                             row->deleted_ms <= now_ms - retention_ms));
}

sessile_status session_purge(sessile_store *st, const sessile_purge_options *options,
                             sessile_listed **out, size_t *count, sessile_error *err)
{
    int64_t now_ms = st->os->now_ms(st->os->ud);
    sessile_list_options all;
    sessile_listed *rows;
    size_t n, due = 0;
    sessile_status status;

    if (options->retention_ms < 0)
        return fail(err, SESSILE_INVALID, "a retention is a time in milliseconds");
    memset(&all, 0, sizeof all);
    all.agent = options->agent;
    all.lives = 1u << SESSILE_LIFE_EXPIRED | 1u << SESSILE_LIFE_DELETED;
    status = store_handle_list_with(st, &all, &rows, &n, err);
    for (size_t i = 0; !status && i < n; i++) {
        session_names names = {rows[i].id, rows[i].agent, rows[i].user};
        sessile_error why;
        uint64_t bytes;
        if (!is_due(&rows[i], options->retention_ms, now_ms))
            continue;
        error_clear(&why);
        if (!options->dry_run)
            status = remove_log(st, &names, rows[i].bytes, &bytes, &why);
        if (!status)
            rows[due++] = rows[i];
        /* Somebody wrote to it, holds it, or was quicker: it is not ours to take. */
        else if (status == SESSILE_CONFLICT || status == SESSILE_NOTFOUND ||
                 status == SESSILE_BUSY)
            status = SESSILE_OK;
        else if (err)
            *err = why;
    }
    if (status) {
        sessile_free(rows);
        return status;
    }
    *out = rows;
    *count = due;
    return SESSILE_OK;
}

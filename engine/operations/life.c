/*
 * life.c: time to live, archive and deletion.
 *
 * A soft deletion, the archived state and the time to live are metadata facts, so the log
 * has their time, reason and actor. A hard deletion removes the log.
 */
#include "operations/life.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "log/log.h"
#include "operations/deletion.h"
#include "screen/write.h"
#include "session/fold.h"

sessile_status session_life(session_core *s, sessile_life_info *out, sessile_error *err)
{
    sessile_status status = session_lock_fresh(s, err);
    life_facts f;

    if (status)
        return status;
    status = session_life_facts_locked(s, &f, err);
    if (!status)
        *out = (sessile_life_info){
            .life = life_state(&f, s->store->os->now_ms(s->store->os->ud)),
            .ttl_ms = f.ttl_ms,
            .expires_ms = life_expires(&f),
            .deleted_ms = f.deleted_ms};
    session_unlock(s);
    return status;
}

/* ------------------------------------------------------------------ facts of its own */

typedef struct step {
    buf text;
    int revives; /* 1: undelete, the only change that a deleted session allows */
} step;

static sessile_status build_step(void *arg, session_core *s, batch *b, sessile_error *err)
{
    step *w = arg;
    sessile_status status = w->revives ? SESSILE_OK : session_check_exists_locked(s, err);

    if (status)
        return status;
    if (w->revives && !facts_find(&s->fold.facts, FACT_METADATA, 0, LIFE_DELETED,
                                  sizeof LIFE_DELETED - 1))
        return session_name_error(
            s, fail(err, SESSILE_NOTFOUND, "it is not deleted: resume it"), err);
    batch_put(b, s->tree.head, ENTRY_METADATA, SOURCE_HOST, w->text.data, w->text.size);
    return SESSILE_OK;
}

static sessile_status take_step(session_core *s, step *w, sessile_error *err)
{
    return w->text.failed ? fail_nomem(err) : session_write(s, build_step, w, NULL, err);
}

sessile_status session_set_ttl(session_core *s, int64_t ttl_ms, sessile_error *err)
{
    sessile_status status;
    step w = {.revives = 0};

    if (ttl_ms < 0 || ttl_ms > LIFE_TTL_MOST)
        return fail(err, SESSILE_INVALID,
                    "a ttl is a time in milliseconds, or 0: for ever");
    buf_init(&w.text, &s->store->alloc);
    buf_printf(&w.text, "{\"" LIFE_TTL "\":%" PRIi64 "}", ttl_ms);
    status = take_step(s, &w, err);
    buf_deinit(&w.text);
    return status;
}

sessile_status session_set_archived(session_core *s, int archived, sessile_error *err)
{
    sessile_status status;
    step w = {.revives = 0};

    buf_init(&w.text, &s->store->alloc);
    buf_printf(&w.text, "{\"" LIFE_ARCHIVED "\":%s}", archived ? "true" : "null");
    status = take_step(s, &w, err);
    buf_deinit(&w.text);
    return status;
}

/* ------------------------------------------------------------------ delete */

static sessile_status check_text(const char *name, sessile_slice text,
                                 const store_core *st, sessile_error *err)
{
    if (text.size > st->limits.message)
        return fail(err, SESSILE_LIMIT, "the %s has more bytes than the limit [message]",
                    name);
    if (!utf8_valid(text.data, text.size))
        return fail(err, SESSILE_INVALID, "the %s is not UTF-8", name);
    return SESSILE_OK;
}

static sessile_status put_text(buf *out, const char *name, sessile_slice text,
                               const store_core *st, sessile_error *err)
{
    sessile_status status = check_text(name, text, st, err);

    if (!status && text.size) {
        buf_printf(out, "%s\"%s\":", out->data[out->size - 1] == '{' ? "" : ",", name);
        json_put_string(out, text.data, text.size);
    }
    return status;
}

static sessile_status mark(store_core *st, const sessile_session_options *which, step *w,
                           sessile_error *err)
{
    session_core *s;
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

static sessile_status delete_softly(store_core *st, const sessile_session_options *which,
                                    const sessile_delete_options *o, sessile_error *err)
{
    step w = {.revives = 0};
    sessile_status status;

    buf_init(&w.text, &st->alloc);
    buf_puts(&w.text, "{\"" LIFE_DELETED "\":{");
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

/* What is returned of a removed session must not tell its name. */
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

sessile_status session_remove_log(store_core *st, const session_names *names,
                                  const log_ending *expected, uint64_t *bytes,
                                  sessile_error *err)
{
    char folder[NAME_SIZE], name[NAME_SIZE];
    sessile_status status;

    names_place(st, names, folder, name);
    status = log_remove(&st->backend, st->keys, folder, name, expected,
                        st->config.timeout_ms, bytes, err);
    /* The list cache has its names and labels. After a crash before this line they stay
     * there until the next list. */
    if (!status && (st->backend.table->capabilities & SESSILE_BACKEND_LIST_CACHE))
        status = st->backend.table->list_cache_drop(st->backend.self, folder, err);
    return status;
}

/* The size of a session's log; NOTFOUND. A log that does not open has none. */
static sessile_status look(store_core *st, const session_names *names, uint64_t *bytes,
                           sessile_error *err)
{
    char folder[NAME_SIZE], name[NAME_SIZE];
    sessile_error why = {0};
    sessile_backend_log *log;
    int64_t mtime_ms;

    names_place(st, names, folder, name);
    if (st->backend.table->open(st->backend.self, folder, name, &log, &why))
        return why.code == SESSILE_NOTFOUND ? fail(err, why.code, "%s", why.message)
                                            : SESSILE_OK;
    (void)st->backend.table->size(log, bytes, &mtime_ms, &why);
    st->backend.table->close(log);
    return SESSILE_OK;
}

sessile_status session_remove(store_core *st, const session_names *names,
                              const log_ending *expected, const sessile_delete_options *o,
                              sessile_deleted *out, sessile_error *err)
{
    char record[DELETION_NAME];
    sessile_error why = {0};
    sessile_status status = hash_names(names, out->id_hash, &st->alloc, err);

    if (!status)
        status = names_check_removal(st, names, err);
    if (!status)
        status = look(st, names, &out->bytes, err);
    if (status)
        return status;
    out->time_ms = st->os->now_ms(st->os->ud);
    /* Before the removal, so that none is without a record. But a full disk must not keep
     * anybody from removing what fills it. */
    int full = deletion_put(st, names, o, out, record, &why) == SESSILE_FULL;
    if (why.code && !full)
        return fail(err, why.code, "%s", why.message);
    status = session_remove_log(st, names, expected, &out->bytes, err);
    if (status)
        deletion_drop(st, record);
    else if (full && deletion_put(st, names, o, out, record, &why))
        status = fail(err, why.code, "it was removed, but not recorded: %s", why.message);
    return status;
}

sessile_status session_delete(store_core *st, const sessile_session_options *which,
                              const sessile_delete_options *options, sessile_deleted *out,
                              sessile_error *err)
{
    char shown[NAME_SHOWN], agent[NAME_SHOWN];
    sessile_deleted gone = {.bytes = 0};
    session_names names;
    sessile_status status = names_from_options(&names, st, which, 0, err);

    if (!status)
        status = check_text("reason", options->reason, st, err);
    if (!status)
        status = check_text("actor", options->actor, st, err);
    if (!status)
        status = write_screen_fixed(st, SESSILE_SCREEN_METADATA, "reason",
                                    options->reason, 0, err);
    if (!status)
        status = write_screen_fixed(st, SESSILE_SCREEN_METADATA, "actor", options->actor,
                                    0, err);
    if (status)
        return status;
    if (options->soft) {
        status = hash_names(&names, gone.id_hash, &st->alloc, err);
        if (!status)
            status = delete_softly(st, which, options, err);
        gone.time_ms = st->os->now_ms(st->os->ud);
    } else {
        status = session_remove(st, &names, NULL, options, &gone, err);
        name_show(names.id, shown);
        name_show(names.agent, agent);
        if (status == SESSILE_NOTFOUND)
            fail(err, status, "there is no session %s of agent %s to delete", shown,
                 agent);
        else if (status)
            fail_prefix(err, "session %s", shown);
    }
    if (!status)
        *out = gone;
    return status;
}

sessile_status session_undelete(store_core *st, const sessile_session_options *which,
                                sessile_slice actor, sessile_error *err)
{
    step w = {.revives = 1};
    sessile_status status;

    buf_init(&w.text, &st->alloc);
    buf_puts(&w.text, "{\"" LIFE_DELETED "\":null,\"undeleted\":{");
    status = w.text.failed ? fail_nomem(err) : put_text(&w.text, "actor", actor, st, err);
    buf_puts(&w.text, "}}");
    if (!status)
        status = write_screen_fixed(st, SESSILE_SCREEN_METADATA, "actor", actor, 0, err);
    if (!status)
        status = mark(st, which, &w, err);
    buf_deinit(&w.text);
    return status;
}

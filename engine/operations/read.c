/*
 * read.c: the context at an entry, one entry, all entries.
 *
 * Owns the iterator over entries. Must never move what a session last showed its host
 * (base), except when the host reads the context at the head.
 */
#include "operations/read.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "session/count.h"
#include "session/fold.h"
#include "session/read.h"

static sessile_status text_locked(void *arg, sessile_key key, buf *out,
                                  sessile_error *err)
{
    return prefetch_message(arg, key, out, err);
}

sessile_status session_read_context(session_core *s, sessile_id at, sessile_message **out,
                                    size_t *count, sessile_context_info *info,
                                    sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    const context *c = NULL;
    context id;
    meter_ratio fit[TOKEN_UNITS];
    sessile_status status = session_lock_fresh(s, err);
    if (status)
        return status;
    context_init(&id, a);
    int is_head = at == SESSILE_NO_ID || at == s->tree.head;
    if (is_head) {
        at = s->tree.head;
        status = session_context_locked(s, &c, err);
    } else {
        c = &id;
        status = session_context_at_locked(s, at, &id, err);
    }
    if (!status)
        status = session_fit_locked(s, at, fit, err);
    if (!status && c != &id && context_copy(&id, c))
        status = fail_nomem(err);
    if (!status) {
        c = &id;
        meter_scale_context(&id, fit);
    }
    if (!status) {
        prefetch reading;
        prefetch_begin(&reading, s, c);
        status = render_context(c, text_locked, &reading, s, out, count, info, a, err);
        prefetch_end(&reading);
    }
    if (!status) {
        int messages_only;
        status = session_tokens_at_locked(s, at, &info->tokens, &messages_only, err);
    }
    if (!status) {
        uint64_t shown = 0;
        for (size_t i = 0; i < c->count; i++)
            shown += c->items[i].key.n == 0;
        uint64_t said = at ? s->tree.nodes[at].messages : 0;
        info->head = s->tree.head;
        info->lost = c->lost;
        if (is_head)
            s->tree.base = s->tree.head;
        info->dropped = said > shown ? said - shown : 0;
    }
    session_unlock(s);
    if (status) {
        host_free(*out);
        *out = NULL;
        *count = 0;
    }
    context_deinit(&id);
    return status;
}

sessile_status session_entry(session_core *s, sessile_id id, char **out, size_t *size,
                             sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    buf text;
    sessile_status status = session_lock_fresh(s, err);
    if (status)
        return status;
    buf_init(&text, a);
    status = session_text_locked(s, id, &text, err);
    session_unlock(s);
    if (!status && (text.failed || !(*out = host_dup(a, text.data, text.size))))
        status = fail_nomem(err);
    if (!status)
        *size = text.size;
    buf_deinit(&text);
    return status;
}

sessile_id read_earlier_id(const entry *e, const char *member)
{
    const char *text;
    size_t size;
    sessile_id id;

    if (!json_plain(json_get(e->data, member), &text, &size) ||
        id_parse(text, size, &id) || id >= e->id)
        return SESSILE_NO_ID;
    return id;
}

struct entries_core {
    session_core *session;
    sessile_id next, end;
    buf text;
};

sessile_status entries_open(entries_core **out, session_core *s, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    sessile_status status = session_lock_fresh(s, err);
    if (status)
        return status;
    sessile_id end = log_count(s->log);
    session_unlock(s);
    entries_core *e = mem_zalloc(a, sizeof *e);
    if (!e)
        return fail_nomem(err);
    e->session = s;
    e->end = end;
    buf_init(&e->text, a);
    *out = e;
    return SESSILE_OK;
}

sessile_status entries_next(entries_core *entries, sessile_id *id, const char **json,
                            size_t *size, sessile_error *err)
{
    if (entries->next >= entries->end)
        return SESSILE_OK;
    buf_clear(&entries->text);
    sessile_status status = session_lock(entries->session, err);
    if (status)
        return status;
    status = session_text_locked(entries->session, entries->next, &entries->text, err);
    session_unlock(entries->session);
    if (!status && entries->text.failed)
        status = fail_nomem(err);
    if (status)
        return status;
    *id = entries->next;
    entries->next++;
    *json = entries->text.data;
    *size = entries->text.size;
    return SESSILE_OK;
}

sessile_status entries_seek(entries_core *entries, sessile_id from, sessile_error *err)
{
    if (from > entries->end)
        return session_name_error(entries->session,
                                  fail(err, SESSILE_INVALID,
                                       "it has %" PRIu32 " entries: there is no entry "
                                       "%08" PRIx32 " to begin at",
                                       entries->end, from),
                                  err);
    entries->next = from;
    return SESSILE_OK;
}

void entries_close(entries_core *entries)
{
    const allocator *a = &entries->session->store->alloc;
    buf_deinit(&entries->text);
    mem_free(a, entries, sizeof *entries);
}

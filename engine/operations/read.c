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

/* ------------------------------------------------------------------ all entries */

/* The entries from low to high, without high, are still to be shown. */
struct entries_core {
    session_core *session;
    sessile_id low, high;
    int reverse;
    uint32_t types; /* a bit each */
    uint64_t left;  /* how many of them may be shown */
    buf text;
};

/* The entries that options select of the `count` that there are. */
static sessile_status select_range(const session_core *s, entries_core *e,
                                   const sessile_entries_options *o, sessile_id count,
                                   sessile_error *err)
{
    sessile_id beyond = SESSILE_NO_ID;

    if (o->after != SESSILE_NO_ID && o->after >= count)
        beyond = o->after;
    else if (o->before != SESSILE_NO_ID && o->before >= count)
        beyond = o->before;
    if (beyond != SESSILE_NO_ID)
        return session_name_error(s,
                                  fail(err, SESSILE_INVALID,
                                       "it has %" PRIu32 " entries, and %08" PRIx32
                                       " is none of them",
                                       count, beyond),
                                  err);
    e->low = o->after == SESSILE_NO_ID ? 0 : o->after + 1;
    e->high = o->before == SESSILE_NO_ID ? count : o->before;
    e->reverse = o->reverse;
    e->left = o->limit ? o->limit : UINT64_MAX;
    return SESSILE_OK;
}

sessile_status entries_open(entries_core **out, session_core *s,
                            const sessile_entries_options *options, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    entries_core e = {.session = s};
    sessile_status status =
        session_types(options->types, options->type_count, &e.types, err);
    if (!status)
        status = session_lock_fresh(s, err);
    if (status)
        return status;
    sessile_id count = log_count(s->log);
    session_unlock(s);
    status = select_range(s, &e, options, count, err);
    if (status)
        return status;
    entries_core *made = mem_alloc(a, sizeof *made);
    if (!made)
        return fail_nomem(err);
    *made = e;
    buf_init(&made->text, a);
    *out = made;
    return SESSILE_OK;
}

/* Goes on behind the next entry. */
static void pass(entries_core *e)
{
    if (e->reverse)
        e->high--;
    else
        e->low++;
}

/* Finds the next entry that is wanted. Types are known without reading the entries. */
static sessile_status find_next_locked(entries_core *e, sessile_id *at, int *found,
                                       sessile_error *err)
{
    session_core *s = e->session;
    sessile_status status = SESSILE_OK;

    for (*found = 0; !status && !*found && e->left && e->low < e->high;) {
        *at = e->reverse ? e->high - 1 : e->low;
        *found = 1;
        if (e->types != UINT32_MAX) {
            status = session_load_locked(s, *at, err);
            *found = !status && *at < s->tree.node_count &&
                     (e->types >> s->tree.nodes[*at].type & 1);
        }
        if (!status && !*found)
            pass(e);
    }
    return status;
}

sessile_status entries_next(entries_core *entries, sessile_id *id, const char **json,
                            size_t *size, sessile_error *err)
{
    sessile_id at = 0;
    int found = 0;

    if (!entries->left || entries->low >= entries->high)
        return SESSILE_OK;
    buf_clear(&entries->text);
    sessile_status status = session_lock(entries->session, err);
    if (status)
        return status;
    status = find_next_locked(entries, &at, &found, err);
    if (!status && found)
        status = session_text_locked(entries->session, at, &entries->text, err);
    session_unlock(entries->session);
    if (!status && entries->text.failed)
        status = fail_nomem(err);
    if (status || !found)
        return status;
    pass(entries);
    entries->left--;
    *id = at;
    *json = entries->text.data;
    *size = entries->text.size;
    return SESSILE_OK;
}

void entries_close(entries_core *entries)
{
    const allocator *a = &entries->session->store->alloc;
    buf_deinit(&entries->text);
    mem_free(a, entries, sizeof *entries);
}

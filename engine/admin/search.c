/*
 * search.c: searches for a text in all sessions of a store.
 *
 * Opens one log after the other, in the order of a list, and reports each occurrence.
 * Must never have more than one log open, nor more in memory than one step reads. A
 * session or a line that cannot be read must never end the search.
 *
 * A step reads until it has some occurrences or some megabytes; these are reported one
 * by one before it reads on.
 */
#include "admin/search.h"

#include <stdio.h>
#include <string.h>

#include "admin/list.h"
#include "base/alloc.h"
#include "base/text.h"
#include "codec/find.h"
#include "session/fold.h"

#define QUERY_MOST ((size_t)1000)
/* Around an occurrence. */
enum { BEFORE = 60, AFTER = 120 };
/* Of a step. */
enum { ENTRIES_MOST = 4096, FOUND_MOST = 64 };
#define READ_MOST ((size_t)4 << 20)

/* An occurrence. Its text is in the search's `text`. */
typedef struct occurrence {
    sessile_found f; /* slices' data are not set yet */
    size_t at;
} occurrence;

struct search_core {
    store_core *store;
    find_query query;
    unsigned roles;
    int head_only;
    uint64_t limit, found;
    sessile_listed *rows;
    size_t count, next; /* next: the row that is searched after this one */
    /* of the session that is searched */
    session_core *s;
    const sessile_listed *row;
    sessile_id *path; /* head_only: its messages, oldest first */
    size_t path_count, path_at;
    sessile_id from, end; /* entries that are left */
    int unread;           /* an UNREAD was reported for it */
    sessile_error why;
    /* of the step */
    occurrence *ready; /* not reported yet, from next_ready on */
    size_t ready_count, ready_capacity, next_ready;
    buf text, decoded;
    size_t read;
    int stopped;
};

/* ------------------------------------------------------------------ what is found */

static occurrence *add_occurrence(search_core *h, sessile_found_kind kind)
{
    occurrence *t;

    if (mem_grow(&h->store->alloc, (void **)&h->ready, &h->ready_capacity,
                 h->ready_count + 1, sizeof *h->ready))
        return NULL;
    t = &h->ready[h->ready_count++];
    memset(t, 0, sizeof *t);
    t->f.kind = kind;
    t->f.entry = SESSILE_NO_ID;
    t->f.field = t->f.message = "";
    t->f.time_ms = h->row->modified_ms;
    t->at = h->text.size;
    return t;
}

/* An occurrence in text, with what is around it. */
static occurrence *add_excerpt(search_core *h, sessile_found_kind kind, const char *text,
                               size_t size, size_t at)
{
    find_part part = find_around(text, size, at, h->query.size, BEFORE, AFTER);
    occurrence *t = add_occurrence(h, kind);

    if (!t)
        return NULL;
    t->f.text.size = part.to - part.from;
    t->f.at = at - part.from;
    t->f.size = h->query.size;
    t->f.cut_before = part.from > 0;
    t->f.cut_after = part.to < size;
    buf_put(&h->text, text + part.from, t->f.text.size);
    buf_putc(&h->text, 0);
    return h->text.failed ? NULL : t;
}

/* Once for each session; what is wrong is in h->why. 0 or -1. */
static int tell_unread(search_core *h)
{
    occurrence *t;

    if (h->unread)
        return 0;
    h->unread = 1;
    t = add_occurrence(h, SESSILE_FOUND_UNREAD);
    if (!t)
        return -1;
    t->f.status = h->why.code;
    return 0;
}

static sessile_slice slice(const char *data, size_t size)
{
    return (sessile_slice){size ? data : "", size};
}

static void name_session(const search_core *h, sessile_found *out)
{
    const session_core *s = h->s;

    if (s) {
        out->id = slice(s->identity.id, s->identity.id_size);
        out->agent = slice(s->identity.agent, s->identity.agent_size);
        out->user = slice(s->identity.user, s->identity.user_size);
        out->title = slice(s->fold.title, s->fold.title_size);
    } else {
        out->id = h->row->id;
        out->agent = h->row->agent;
        out->user = h->row->user;
        out->title = h->row->title;
    }
}

static void how_far(const search_core *h, sessile_found *out)
{
    out->index = h->next ? h->next - 1 : 0;
    out->total = h->count;
    if (h->s) {
        out->done = h->from;
        out->entries = h->end;
    }
}

/* ------------------------------------------------------------------ one session */

static void leave(search_core *h)
{
    session_drop(h->s);
    h->s = NULL;
    if (h->path)
        mem_free(&h->store->alloc, h->path, h->path_count * sizeof *h->path);
    h->path = NULL;
    h->path_count = h->path_at = 0;
    h->from = h->end = 0;
}

static sessile_status look_at_title(search_core *h)
{
    const session_core *s = h->s;
    size_t at;

    if (find_in_text(&h->query, s->fold.title, s->fold.title_size, &at) &&
        !add_excerpt(h, SESSILE_FOUND_TITLE, s->fold.title, s->fold.title_size, at))
        return SESSILE_NOMEM;
    return SESSILE_OK;
}

static sessile_status look_at_labels(search_core *h)
{
    session_core *s = h->s;
    sessile_status status = SESSILE_OK;
    facts picture;

    facts_init(&picture, &h->store->alloc);
    if (facts_labels(&s->fold.facts, &picture))
        status = SESSILE_NOMEM;
    for (size_t i = 0; !status && i < picture.count; i++) {
        const fact *one = &picture.at[i];
        const char *name = fact_name(&picture, one);
        size_t at;
        occurrence *t;
        if (!find_in_text(&h->query, name, one->name_size, &at))
            continue;
        t = add_excerpt(h, SESSILE_FOUND_LABEL, name, one->name_size, at);
        if (!t) {
            status = SESSILE_NOMEM;
            break;
        }
        t->f.entry = one->about;
        if (!session_load_locked(s, one->entry, NULL) && one->entry < s->tree.node_count)
            t->f.time_ms = s->tree.nodes[one->entry].time_ms;
    }
    facts_deinit(&picture);
    return status;
}

/* A log_visit: the text of one entry. CANCELLED with h->stopped: enough for this step. */
static sessile_status look_at_entry(void *arg, sessile_id id, const char *text,
                                    size_t size, sessile_error *err)
{
    search_core *h = arg;
    find_place place;
    sessile_role role;
    entry e;
    occurrence *t;

    h->from = id + 1;
    h->read += size;
    while (h->path_at < h->path_count && h->path[h->path_at] < id)
        h->path_at++;
    if (h->path && (h->path_at == h->path_count || h->path[h->path_at] != id))
        return SESSILE_OK;
    if (entry_read(&e, text, size, NULL) ||
        (e.type != ENTRY_MESSAGE && e.type != ENTRY_BRANCH_SUMMARY))
        return SESSILE_OK;
    role = message_speaker_in(e.data);
    if ((!h->roles || h->roles >> role & 1) &&
        find_in_message(&h->query, e.data, &place)) {
        buf_clear(&h->decoded);
        if (place.value.type == JSON_STRING ? json_string(&h->decoded, place.value) : 0)
            return fail_nomem(err);
        h->decoded.size = find_strip(h->decoded.data, h->decoded.size);
        if (place.value.type == JSON_NUMBER)
            buf_put(&h->decoded, place.value.at, place.value.size);
        if (h->decoded.failed ||
            !(t = add_excerpt(h, SESSILE_FOUND_MESSAGE, h->decoded.data, h->decoded.size,
                              place.at)))
            return fail_nomem(err);
        t->f.entry = id;
        t->f.role = role;
        t->f.time_ms = message_time(json_get(e.data, "timestamp"), e.time_ms);
        t->f.field = place.field;
    }
    if (h->read < READ_MOST && h->ready_count < FOUND_MOST)
        return SESSILE_OK;
    h->stopped = 1;
    return fail(err, SESSILE_CANCELLED, "enough for one step");
}

/* Opens the session of the next row and looks at what is not in its messages. */
static sessile_status enter(search_core *h, sessile_error *err)
{
    char folder[NAME_SIZE], name[NAME_SIZE];
    session_names names;
    sessile_status status;

    h->row = &h->rows[h->next++];
    h->unread = 0;
    h->why.code = h->row->status;
    snprintf(h->why.message, sizeof h->why.message, "%s", h->row->message);
    if (h->row->status && !h->row->entries)
        return tell_unread(h) ? fail_nomem(err) : SESSILE_OK;
    names = (session_names){h->row->id, h->row->agent, h->row->user, 0};
    names_place(h->store, &names, folder, name);
    error_clear(&h->why);
    status = session_open_place(&h->s, h->store, folder, name, &h->why);
    if (status == SESSILE_NOTFOUND)
        return SESSILE_OK; /* deleted meanwhile */
    if (!status && session_damage_locked(h->s, NULL, &h->why))
        status = tell_unread(h) ? SESSILE_NOMEM : SESSILE_OK;
    if (!status && !h->roles)
        status = look_at_title(h);
    if (!status && !h->roles)
        status = look_at_labels(h);
    if (!status && h->head_only)
        status =
            session_path_locked(h->s, h->s->tree.head, &h->path, &h->path_count, &h->why);
    if (status == SESSILE_NOMEM)
        return fail_nomem(err);
    if (status)
        return tell_unread(h) ? fail_nomem(err) : SESSILE_OK;
    h->from = 1;
    h->end = (sessile_id)h->s->tree.node_count;
    if (h->head_only)
        h->end = h->path_count ? h->path[h->path_count - 1] + 1 : 1;
    return SESSILE_OK;
}

/* Reads one piece of the session. Lines that cannot be opened are reported and skipped.
 */
static sessile_status read_on(search_core *h, sessile_error *err)
{
    sessile_status status;
    sessile_id last;
    sessile_error why;
    buf text;

    if (h->path) { /* what lies between is not read */
        while (h->path_at < h->path_count && h->path[h->path_at] < h->from)
            h->path_at++;
        if (h->path_at < h->path_count)
            h->from = h->path[h->path_at];
    }
    last = h->end - h->from > ENTRIES_MOST ? h->from + ENTRIES_MOST - 1 : h->end - 1;
    if (h->path) /* up to the first gap that is not worth reading through */
        for (size_t i = h->path_at; i + 1 < h->path_count && h->path[i] <= last; i++)
            if (h->path[i + 1] - h->path[i] > 16) {
                last = h->path[i];
                break;
            }
    error_clear(&why);
    h->read = 0;
    h->stopped = 0;
    status = session_texts_locked(h->s, h->from, last, look_at_entry, h, &why);
    if (!status || h->stopped) {
        h->from = h->stopped ? h->from : last + 1;
        return SESSILE_OK;
    }
    if (status == SESSILE_NOMEM)
        return fail_nomem(err);
    if (status != SESSILE_DAMAGED) { /* nothing more of it can be had */
        h->why = why;
        h->from = h->end;
        return tell_unread(h) ? fail_nomem(err) : SESSILE_OK;
    }
    /* The line at h->from is bad, or the index lied about where it is. */
    buf_init(&text, &h->store->alloc);
    status = session_text_locked(h->s, h->from, &text, &why);
    if (!status) {
        (void)look_at_entry(h, h->from, text.data, text.size, &why);
        status = why.code == SESSILE_NOMEM ? SESSILE_NOMEM : SESSILE_OK;
    } else if (status != SESSILE_NOMEM) {
        h->why = why;
        h->from++;
        status = tell_unread(h) ? SESSILE_NOMEM : SESSILE_OK;
    }
    buf_deinit(&text);
    return status ? fail_nomem(err) : SESSILE_OK;
}

/* ------------------------------------------------------------------ the walk */

sessile_status search_open(search_core **out, store_core *st, const principal *who,
                           const sessile_search_options *options,
                           const sessile_list_options *sessions, sessile_error *err)
{
    search_core *h;
    sessile_status status;

    *out = NULL;
    if (!options->text.size)
        return fail(err, SESSILE_INVALID, "the text to search for is empty: give one");
    if (options->text.size > QUERY_MOST)
        return fail(err, SESSILE_INVALID,
                    "the text to search for has %zu bytes: the limit is %zu",
                    options->text.size, QUERY_MOST);
    if (!utf8_valid(options->text.data, options->text.size))
        return fail(err, SESSILE_INVALID, "the text to search for is not UTF-8");
    if (st->over_records)
        return fail(
            err, SESSILE_UNSUPPORTED,
            "this store is opened over records, which the host keeps: search those");
    h = mem_zalloc(&st->alloc, sizeof *h);
    if (!h)
        return fail_nomem(err);
    h->store = st;
    h->roles = options->roles;
    h->head_only = options->head_only;
    h->limit = options->limit;
    buf_init(&h->text, &st->alloc);
    buf_init(&h->decoded, &st->alloc);
    status = find_init(&h->query, options->text, options->exact, &st->alloc)
                 ? fail_nomem(err)
                 : list_sessions(st, who, sessions, &h->rows, &h->count, err);
    if (status) {
        search_close(h);
        return status;
    }
    *out = h;
    return SESSILE_OK;
}

/* What was found before, one after the other. */
static void give_ready(search_core *h, sessile_found *out)
{
    const occurrence *t = &h->ready[h->next_ready++];

    *out = t->f;
    name_session(h, out);
    how_far(h, out);
    out->text = slice(t->f.text.size ? h->text.data + t->at : "", t->f.text.size);
    if (out->kind == SESSILE_FOUND_UNREAD)
        out->message = h->why.message;
    else
        h->found++;
}

static int has_ready(const search_core *h)
{
    return h->next_ready < h->ready_count;
}

sessile_status search_next(search_core *h, sessile_found *out, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    memset(out, 0, sizeof *out);
    out->entry = SESSILE_NO_ID;
    out->field = out->message = "";
    if (h->limit && h->found >= h->limit) {
        leave(h);
        h->ready_count = h->next_ready = 0;
        h->next = h->count;
        return SESSILE_OK;
    }
    if (has_ready(h)) {
        give_ready(h, out);
        return SESSILE_OK;
    }
    h->ready_count = h->next_ready = 0;
    buf_clear(&h->text);
    if (h->s && h->from >= h->end)
        leave(h);
    if (h->s) {
        status = session_lock(h->s, err);
        if (status)
            return status;
        status = read_on(h, err);
        session_unlock(h->s);
    } else if (h->next < h->count) {
        status = enter(h, err);
    } else {
        return SESSILE_OK;
    }
    if (status)
        return status;
    if (has_ready(h)) {
        give_ready(h, out);
        return SESSILE_OK;
    }
    out->kind = SESSILE_FOUND_NOTHING;
    name_session(h, out);
    how_far(h, out);
    return SESSILE_OK;
}

void search_close(search_core *h)
{
    const allocator *a;

    if (!h)
        return;
    a = &h->store->alloc;
    leave(h);
    find_deinit(&h->query);
    host_free(h->rows);
    buf_deinit(&h->text);
    buf_deinit(&h->decoded);
    mem_free(a, h->ready, h->ready_capacity * sizeof *h->ready);
    mem_free(a, h, sizeof *h);
}

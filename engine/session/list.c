/*
 * list.c: the sessions of a store, as rows that belong to the host.
 *
 * Opens each log the way a session is opened, so that a row says what opening would: a
 * log that cannot be opened has a row with its status, and never spoils the list. Must
 * never keep a log open.
 */
#include "session/fold.h"

#include <stdlib.h>
#include <string.h>

/* A log's file, then what was found in it. Text is in the listing's buffer. */
typedef struct found {
    char folder[NAME_SIZE], name[NAME_SIZE];
    sessile_listed row; /* slices' data are not set yet */
    size_t id, agent, user, title, message;
} found;

typedef struct listing {
    sessile_store *store;
    found *rows;
    size_t count, capacity;
    buf text;
    sessile_status status;
} listing;

static int visit(void *arg, const char *folder, const char *name)
{
    listing *l = arg;
    found *row;

    if (strlen(folder) >= NAME_SIZE || strlen(name) >= NAME_SIZE)
        return 0; /* no name of ours */
    if (mem_grow(&l->store->alloc, (void **)&l->rows, &l->capacity, l->count + 1,
                 sizeof *l->rows)) {
        l->status = SESSILE_NOMEM;
        return 1;
    }
    row = &l->rows[l->count++];
    memset(row, 0, sizeof *row);
    memcpy(row->folder, folder, strlen(folder));
    memcpy(row->name, name, strlen(name));
    return 0;
}

/* ------------------------------------------------------------------ a row */

static size_t put_text(listing *l, const char *data, size_t size)
{
    size_t at = l->text.size;

    buf_put(&l->text, data, size);
    buf_putc(&l->text, 0);
    return at;
}

static void fill(listing *l, found *row, const sessile_session *s)
{
    row->id = put_text(l, s->id, s->id_size);
    row->agent = put_text(l, s->agent, s->agent_size);
    row->user = put_text(l, s->user, s->user_size);
    row->title = put_text(l, s->title, s->title_size);
    row->row.id.size = s->id_size;
    row->row.agent.size = s->agent_size;
    row->row.user.size = s->user_size;
    row->row.title.size = s->title_size;
    row->row.created_ms = s->created_ms;
    row->row.modified_ms = s->modified_ms;
    row->row.entries = s->node_count;
    row->row.messages = s->nodes[s->head].messages;
    row->row.bytes = log_bytes(s->log);
    row->row.torn = s->torn;
}

/* What can still be told of a log that does not open: its size and time, and its names if
 * the header is whole. */
static void fill_peeked(listing *l, found *row)
{
    sessile_store *st = l->store;
    sessile_backend_log *raw;
    header h;
    entry e;
    buf text;

    if (!st->backend.table->open(st->backend.self, row->folder, row->name, &raw, NULL)) {
        (void)st->backend.table->size(raw, &row->row.bytes, &row->row.modified_ms, NULL);
        st->backend.table->close(raw);
    }
    buf_init(&text, &st->alloc);
    header_init(&h, &st->alloc);
    if (!log_peek(&st->backend, st->keys, row->folder, row->name, session_read_depth(st),
                  &text, &st->alloc, NULL) &&
        !entry_read(&e, text.data, text.size, NULL) && !header_read(&h, &e, NULL)) {
        row->id = put_text(l, h.id.data, h.id.size);
        row->row.id.size = h.id.size;
        row->agent = put_text(l, h.agent.data, h.agent.size);
        row->row.agent.size = h.agent.size;
        row->row.created_ms = h.created_ms;
    }
    header_deinit(&h);
    buf_deinit(&text);
}

static sessile_status look(listing *l, found *row)
{
    sessile_session *s = NULL;
    sessile_error why;

    error_clear(&why);
    row->row.status = session_open_place(&s, l->store, row->folder, row->name, &why);
    if (row->row.status == SESSILE_NOMEM)
        return SESSILE_NOMEM;
    if (s) {
        row->row.status = session_damage_locked(s, NULL, &why);
        fill(l, row, s);
    } else
        fill_peeked(l, row);
    session_drop(s);
    row->message = put_text(l, why.message, strlen(why.message));
    return l->text.failed ? SESSILE_NOMEM : SESSILE_OK;
}

/* Every row but those whose log was deleted meanwhile. */
static sessile_status look_all(listing *l, sessile_error *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < l->count; i++) {
        if (look(l, &l->rows[i]))
            return fail_nomem(err);
        if (l->rows[i].row.status != SESSILE_NOTFOUND)
            l->rows[kept++] = l->rows[i];
    }
    l->count = kept;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ the list */

/* Newest first; of one time, by file, so that a list is the same twice. */
static int newer(const void *left, const void *right)
{
    const found *a = left, *b = right;
    int by_folder;

    if (a->row.modified_ms != b->row.modified_ms)
        return a->row.modified_ms < b->row.modified_ms ? 1 : -1;
    by_folder = strcmp(a->folder, b->folder);
    return by_folder ? by_folder : strcmp(a->name, b->name);
}

static void set_slice(sessile_slice *slice, const char *text, size_t at)
{
    slice->data = slice->size ? text + at : "";
}

static sessile_status give(listing *l, sessile_listed **out, size_t *count,
                           sessile_error *err)
{
    sessile_listed *rows;
    char *text;

    rows = give_alloc(&l->store->alloc, l->count * sizeof *rows + l->text.size + 1);
    if (!rows)
        return fail_nomem(err);
    text = (char *)(rows + l->count);
    if (l->text.size)
        memcpy(text, l->text.data, l->text.size);
    for (size_t i = 0; i < l->count; i++) {
        const found *from = &l->rows[i];
        rows[i] = from->row;
        set_slice(&rows[i].id, text, from->id);
        set_slice(&rows[i].agent, text, from->agent);
        set_slice(&rows[i].user, text, from->user);
        set_slice(&rows[i].title, text, from->title);
        rows[i].message = text + from->message;
    }
    *out = rows;
    *count = l->count;
    return SESSILE_OK;
}

sessile_status store_handle_list(sessile_store *s, const char *agent,
                                 sessile_listed **out, size_t *count, sessile_error *err)
{
    listing l = {.store = s};
    char folder[NAME_SIZE];
    sessile_status status;

    *out = NULL;
    *count = 0;
    buf_init(&l.text, &s->alloc);
    if (agent)
        keyring_folder_name(s->keys, (sessile_slice){agent, strlen(agent)}, folder);
    status =
        s->backend.table->list(s->backend.self, agent ? folder : NULL, visit, &l, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err); /* nothing was ever written there */
        status = SESSILE_OK;
    }
    if (!status && l.status)
        status = fail_nomem(err);
    if (!status)
        status = look_all(&l, err);
    if (!status) {
        if (l.count > 1)
            qsort(l.rows, l.count, sizeof *l.rows, newer);
        status = give(&l, out, count, err);
    }
    if (l.rows)
        mem_free(&s->alloc, l.rows, l.capacity * sizeof *l.rows);
    buf_deinit(&l.text);
    return status;
}

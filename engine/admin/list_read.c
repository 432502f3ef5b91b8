/*
 * list_read.c: opens one log for a list.
 *
 * The log is opened as a session is, so that its row says what opening would say. Must
 * never keep a log open, nor let a log into the list cache that did not open completely.
 */
#include "admin/list_internal.h"

#include <string.h>

static size_t put_text(listing *l, const char *data, size_t size)
{
    size_t at = l->text.size;

    buf_put(&l->text, data, size);
    buf_putc(&l->text, 0);
    return at;
}

static void fill(listing *l, list_opened *row, const session_core *s)
{
    row->id = put_text(l, s->identity.id, s->identity.id_size);
    row->agent = put_text(l, s->identity.agent, s->identity.agent_size);
    row->user = put_text(l, s->identity.user, s->identity.user_size);
    row->title = put_text(l, s->fold.title, s->fold.title_size);
    row->row.id.size = s->identity.id_size;
    row->row.agent.size = s->identity.agent_size;
    row->row.user.size = s->identity.user_size;
    row->row.title.size = s->fold.title_size;
    row->row.created_ms = fold_created(s);
    row->row.modified_ms = fold_modified(s);
    row->row.entries = s->tree.node_count;
    row->row.messages = s->tree.nodes[s->tree.head].messages;
    row->row.bytes = log_bytes(s->log);
    row->row.torn = s->torn;
}

/* Names of labels, as long as a list cache should carry. */
#define LABELS_MOST ((size_t)64 << 10)

/* Whether a name (as JSON) is in the unfinished array between from and to. */
static int is_among(const listing *l, size_t from, size_t to, const buf *name)
{
    const char *text = l->text.data;

    for (size_t at = from + 1; at < to; at++) {
        json one = json_of(text + at, to - at);
        if (list_same((sessile_slice){one.at, one.size},
                      (sessile_slice){name->data, name->size}))
            return 1;
        at += one.size;
    }
    return 0;
}

/* What its facts say, appended to the listing's text. */
static sessile_status fill_facts(listing *l, list_opened *row, session_core *s)
{
    sessile_status status = session_life_facts_locked(s, &row->life, NULL);
    facts picture;
    buf name;

    row->labels = l->text.size;
    if (status)
        return status;
    facts_init(&picture, &l->store->alloc);
    buf_init(&name, &l->store->alloc);
    if (facts_labels(&s->fold.facts, &picture))
        status = SESSILE_NOMEM;
    buf_putc(&l->text, '[');
    for (size_t i = 0; !status && i < picture.count && !l->text.failed; i++) {
        const fact *one = &picture.at[i];
        size_t at = l->text.size;
        buf_clear(&name);
        json_put_string(&name, fact_name(&picture, one), one->name_size);
        if (at - row->labels <= LABELS_MOST && is_among(l, row->labels, at, &name))
            continue;
        if (at > row->labels + 1)
            buf_putc(&l->text, ',');
        buf_put(&l->text, name.data, name.size);
    }
    buf_putc(&l->text, ']');
    row->row.labels.size = l->text.size - row->labels;
    buf_putc(&l->text, 0);
    if (name.failed)
        status = SESSILE_NOMEM;
    facts_deinit(&picture);
    buf_deinit(&name);
    return status;
}

/* What is still known of a log that cannot be opened: its size and time, and its names if
 * the header is whole. */
static void fill_peeked(listing *l, list_opened *row, const char *folder,
                        const char *name)
{
    store_core *st = l->store;
    sessile_backend_log *raw;
    header h;
    entry e;
    buf text;

    if (!st->backend.table->open(st->backend.self, folder, name, &raw, NULL)) {
        (void)st->backend.table->size(raw, &row->row.bytes, &row->row.modified_ms, NULL);
        st->backend.table->close(raw);
    }
    buf_init(&text, &st->alloc);
    header_init(&h, &st->alloc);
    if (!log_peek(&st->backend, st->keys, folder, name, session_read_depth(st), 0, &text,
                  &st->alloc, NULL) &&
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

sessile_status listing_open_log(listing *l, size_t at)
{
    list_place *p = &l->places[at];
    listed_folder *in = &l->folders[p->in];
    session_core *s = NULL;
    sessile_error why;
    list_opened *row;

    if (mem_grow(&l->store->alloc, (void **)&l->rows, &l->row_capacity, l->row_count + 1,
                 sizeof *l->rows))
        return SESSILE_NOMEM;
    row = &l->rows[l->row_count];
    memset(row, 0, sizeof *row);
    error_clear(&why);
    row->row.status =
        session_open_place(&s, l->store, in->folder, listing_name(l, p), &why);
    if (row->row.status == SESSILE_NOMEM)
        return SESSILE_NOMEM;
    if (row->row.status == SESSILE_NOTFOUND)
        return SESSILE_OK; /* deleted meanwhile */
    if (s) {
        row->row.status = session_damage_locked(s, NULL, &why);
        fill(l, row, s);
        sessile_status facts_status = fill_facts(l, row, s);
        if (facts_status == SESSILE_NOMEM) {
            session_drop(s);
            return facts_status;
        }
        if (facts_status && !row->row.status) /* a fact that cannot be read */
            row->row.status = facts_status;
    } else {
        fill_peeked(l, row, in->folder, listing_name(l, p));
    }
    session_drop(s);
    row->message = put_text(l, why.message, strlen(why.message));
    if (l->text.failed)
        return SESSILE_NOMEM;
    /* Only what was read to the end of what its file was before: a torn end, or a writer
     * in the middle of its work, shows in the bytes. */
    row->keep = !row->row.status && !row->row.torn && p->has_stat &&
                row->row.bytes == p->stat.bytes && row->row.entries <= UINT32_MAX &&
                row->row.labels.size <= LABELS_MOST &&
                list_cache_settled(&p->stat, l->now_ms);
    in->fresh += row->keep ? 1 : 0;
    p->state = OPENED;
    p->row = l->row_count++;
    list_asked a = {.id = listing_text(l, row->row.id, row->id),
                    .agent = listing_text(l, row->row.agent, row->agent),
                    .user = listing_text(l, row->row.user, row->user),
                    .title = listing_text(l, row->row.title, row->title),
                    .labels = listing_text(l, row->row.labels, row->labels),
                    .modified_ms = row->row.modified_ms,
                    .life = row->row.entries ? &row->life : NULL};
    if (listing_wanted(l, &a) && listing_offer(l, at, row->row.modified_ms))
        return SESSILE_NOMEM;
    return SESSILE_OK;
}

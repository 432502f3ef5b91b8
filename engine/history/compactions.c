/*
 * compactions.c: the compactions and refusals of a path, as rows that belong to the
 * host.
 *
 * Owns what a row says and how rows are laid out: the rows first, then their text. Must
 * never hand out anything borrowed from the handle. What an entry does not say, or says
 * in an unknown form, is left out, because other versions of the engine write entries
 * too.
 */
#include "history/history.h"

#include <string.h>

#include "base/names.h"
#include "session/fold.h"

enum {
    TEXT_POLICY = 0,
    TEXT_POLICIES,
    TEXT_REASON,
    TEXT_INSTRUCTIONS,
    TEXT_SUMMARY,
    TEXT_HOOK,
    TEXT_MESSAGE,
    TEXT_LAW,
    TEXTS
};

/* A row before its texts have their final place. */
typedef struct row {
    sessile_compaction c;
    struct {
        size_t at, size;
    } texts[TEXTS];
} row;

struct compaction_rows {
    session_core *s;
    history *h;
    row *rows;
    size_t count, capacity;
    buf text, entry;
    uint8_t *force;
    size_t force_size;
    const allocator *alloc;
};

sessile_status compaction_rows_new(compaction_rows **out, session_core *s, history *h,
                                   sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    compaction_rows *rows = mem_zalloc(a, sizeof *rows);

    *out = rows;
    if (!rows)
        return fail_nomem(err);
    rows->s = s;
    rows->h = h;
    rows->alloc = a;
    buf_init(&rows->text, a);
    buf_init(&rows->entry, a);
    return SESSILE_OK;
}

void compaction_rows_free(compaction_rows *rows)
{
    if (!rows)
        return;
    mem_free(rows->alloc, rows->rows, rows->capacity * sizeof *rows->rows);
    mem_free(rows->alloc, rows->force, rows->force_size);
    buf_deinit(&rows->text);
    buf_deinit(&rows->entry);
    mem_free(rows->alloc, rows, sizeof *rows);
}

/* ------------------------------------------------------------------ one row */

static void begin_text(const compaction_rows *rows, row *r, int which)
{
    r->texts[which].at = rows->text.size;
}

static void end_text(compaction_rows *rows, row *r, int which)
{
    r->texts[which].size = rows->text.size - r->texts[which].at;
    buf_putc(&rows->text, 0);
}

/* A member that is a string, decoded; else nothing. */
static void take_string(compaction_rows *rows, row *r, int which, json value)
{
    begin_text(rows, r, which);
    if (value.type == JSON_STRING)
        (void)json_string(&rows->text, value);
    end_text(rows, r, which);
}

static int64_t number_or(json value, int64_t otherwise)
{
    int64_t n;
    return json_int(value, &n) ? otherwise : n;
}

static sessile_id id_or_none(json value)
{
    const char *text;
    sessile_id id;
    size_t size;
    return json_plain(value, &text, &size) && !id_parse(text, size, &id) ? id
                                                                         : SESSILE_NO_ID;
}

/* "edit_tools 1, summarize 2". */
static void take_policies(compaction_rows *rows, row *r, json list)
{
    json_iter it = json_begin(list);
    const char *separator = "";

    begin_text(rows, r, TEXT_POLICY);
    while (list.type == JSON_ARRAY && json_next(&it)) {
        json name = json_get(it.value, "name"), version = json_get(it.value, "version");
        if (name.type != JSON_STRING)
            continue;
        buf_puts(&rows->text, separator);
        (void)json_string(&rows->text, name);
        if (version.type == JSON_NUMBER) {
            buf_putc(&rows->text, ' ');
            buf_put(&rows->text, version.at, version.size);
        }
        separator = ", ";
    }
    end_text(rows, r, TEXT_POLICY);
    begin_text(rows, r, TEXT_POLICIES);
    if (list.type == JSON_ARRAY)
        buf_put(&rows->text, list.at, list.size);
    else
        buf_puts(&rows->text, "[]");
    end_text(rows, r, TEXT_POLICIES);
}

/* What left and came, and how much of that holds. */
static int count_events(compaction_rows *rows, sessile_compaction *c)
{
    const history_step *step = history_find(rows->h, c->id);
    size_t size = step && step->count ? step->count : 1;
    uint8_t *room;

    if (!step)
        return 0;
    room = mem_realloc(rows->alloc, rows->force, rows->force_size, size);
    if (!room)
        return -1;
    rows->force = room;
    rows->force_size = size;
    c->in_force = history_in_force(rows->h, step, room);
    c->kept = step->kept;
    c->uncompacts = step->undoes;
    for (uint32_t i = 0; i < step->count; i++) {
        const history_event *e = &rows->h->events[step->first + i];
        if (e->came)
            ++*(e->key.entry == c->id ? &c->written : &c->restored);
        else
            ++*(e->disposition == SESSILE_COVERED    ? &c->covered
                : e->disposition == SESSILE_REPLACED ? &c->replaced
                : e->disposition == SESSILE_UNDONE   ? &c->undone
                                                     : &c->lost);
    }
    return 0;
}

static void take_compaction(compaction_rows *rows, row *r, json data)
{
    take_policies(rows, r, json_get(data, "policy"));
    take_string(rows, r, TEXT_INSTRUCTIONS, json_get(data, "instructions"));
    take_string(rows, r, TEXT_SUMMARY, json_get(data, "summary"));
    r->c.first_kept = id_or_none(json_get(data, "first_kept_entry_id"));
    r->c.tokens_before = number_or(json_get(data, "tokens_before"), -1);
    r->c.tokens_after = number_or(json_get(data, "tokens_after"), -1);
}

static void take_refusal(compaction_rows *rows, row *r, json data)
{
    int64_t law = number_or(json_get(data, "law"), 0);
    const char *text;
    size_t size;

    r->c.refused = 1;
    r->c.law = law >= 1 && law <= 10 ? (int)law : 0;
    take_string(rows, r, TEXT_POLICY, json_get(data, "policy"));
    take_string(rows, r, TEXT_HOOK, json_get(data, "hook"));
    take_string(rows, r, TEXT_MESSAGE, json_get(data, "message"));
    take_string(rows, r, TEXT_LAW, json_get(data, "law_name"));
    begin_text(rows, r, TEXT_POLICIES);
    buf_puts(&rows->text, "[]");
    end_text(rows, r, TEXT_POLICIES);
    if (json_plain(json_get(data, "entry"), &text, &size))
        (void)key_parse((sessile_slice){text, size}, &r->c.entry);
}

sessile_status compaction_rows_add(compaction_rows *rows, sessile_id id, size_t *index,
                                   sessile_error *err)
{
    sessile_status status;
    row *r;
    entry e;

    if (mem_grow(rows->alloc, (void **)&rows->rows, &rows->capacity, rows->count + 1,
                 sizeof *rows->rows))
        return fail_nomem(err);
    r = &rows->rows[rows->count];
    memset(r, 0, sizeof *r);
    status = session_read_entry(rows->s, id, &rows->entry, &e, err);
    if (status)
        return status;
    r->c.id = id;
    r->c.time_ms = e.time_ms;
    r->c.uncompacts = r->c.first_kept = SESSILE_NO_ID;
    r->c.entry.entry = SESSILE_NO_ID;
    r->c.tokens_before = r->c.tokens_after = -1;
    take_string(rows, r, TEXT_REASON, json_get(e.data, "reason"));
    if (e.type == ENTRY_REFUSAL)
        take_refusal(rows, r, e.data);
    else
        take_compaction(rows, r, e.data);
    if (rows->text.failed || count_events(rows, &r->c))
        return fail_nomem(err);
    if (index)
        *index = rows->count;
    rows->count++;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ laid out */

size_t compaction_rows_size(const compaction_rows *rows)
{
    return rows->count * sizeof(sessile_compaction) + rows->text.size;
}

sessile_compaction *compaction_rows_give(const compaction_rows *rows, void *to)
{
    sessile_compaction *out = to;
    char *text = (char *)(out + rows->count);

    if (rows->text.size)
        memcpy(text, rows->text.data, rows->text.size);
    for (size_t i = 0; i < rows->count; i++) {
        const row *from = &rows->rows[i];
        sessile_slice *const slices[TEXTS] = {
            [TEXT_POLICY] = &out[i].policy,   [TEXT_POLICIES] = &out[i].policies,
            [TEXT_REASON] = &out[i].reason,   [TEXT_INSTRUCTIONS] = &out[i].instructions,
            [TEXT_SUMMARY] = &out[i].summary, [TEXT_HOOK] = &out[i].hook,
            [TEXT_MESSAGE] = &out[i].message, [TEXT_LAW] = &out[i].law_name,
        };
        out[i] = from->c;
        for (int k = 0; k < TEXTS; k++)
            *slices[k] = from->texts[k].size ? (sessile_slice){text + from->texts[k].at,
                                                               from->texts[k].size}
                                             : (sessile_slice){"", 0};
    }
    return out;
}

/* ------------------------------------------------------------------ those of a path */

/* Refusals are facts: nothing leads to them from the path, but they name the head they
 * were made at. */
static sessile_status add_refusals(compaction_rows *rows, sessile_id from, sessile_id to,
                                   sessile_error *err)
{
    session_core *s = rows->s;
    sessile_status status = SESSILE_OK;

    for (sessile_id id = from; !status && id < to; id++) {
        status = session_load_locked(s, id, err);
        if (!status && s->tree.nodes[id].type == ENTRY_REFUSAL &&
            session_descends_locked(s, s->tree.head, s->tree.nodes[id].parent))
            status = compaction_rows_add(rows, id, NULL, err);
    }
    return status;
}

static sessile_status add_all(compaction_rows *rows, sessile_error *err)
{
    const history *h = rows->h;
    sessile_id from = 1;
    sessile_status status = SESSILE_OK;

    for (size_t i = 0; !status && i < h->step_count; i++) {
        status = add_refusals(rows, from, h->steps[i].at, err);
        if (!status)
            status = compaction_rows_add(rows, h->steps[i].at, NULL, err);
        from = h->steps[i].at + 1;
    }
    if (!status)
        status = add_refusals(rows, from, (sessile_id)rows->s->tree.node_count, err);
    return status;
}

/* How often the newest refusal of all came again is counted by the handle alone. */
static void mark_repeated(compaction_rows *rows)
{
    const session_core *s = rows->s;
    sessile_id newest = (sessile_id)s->tree.node_count;

    if (!s->refusals.repeated)
        return;
    while (newest-- > 0 && s->tree.nodes[newest].type != ENTRY_REFUSAL)
        ;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->rows[i].c.id == newest)
            rows->rows[i].c.repeated = s->refusals.repeated;
}

sessile_status session_compactions(session_core *s, sessile_compaction **out,
                                   size_t *count, sessile_error *err)
{
    compaction_rows *rows = NULL;
    sessile_status status;
    void *block;
    history h;

    *out = NULL;
    *count = 0;
    status = session_lock(s, err);
    if (status)
        return status;
    history_init(&h, &s->store->alloc);
    status = session_refresh_locked(s, err);
    if (!status)
        status = history_make(&h, s, s->tree.head, err);
    if (!status)
        status = compaction_rows_new(&rows, s, &h, err);
    if (!status)
        status = add_all(rows, err);
    if (!status) {
        mark_repeated(rows);
        block = host_alloc(&s->store->alloc, compaction_rows_size(rows));
        if (block) {
            *out = compaction_rows_give(rows, block);
            *count = rows->count;
        } else {
            status = fail_nomem(err);
        }
    }
    compaction_rows_free(rows);
    history_deinit(&h);
    session_unlock(s);
    return status;
}

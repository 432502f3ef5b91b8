/*
 * render.c: a context as it is sent to a model.
 *
 * Owns the order in which messages are shown, and the answers that the engine makes for
 * calls that were never answered. Must never change a message's text, and must never
 * show a list that providers refuse for its pairs: a message with calls is followed by
 * their results, all of them, and no result comes without its call.
 *
 * The log keeps what was said in the order in which it was said. Three things are shown
 * in another order: a late answer moves up to its call, behind the answers that came in
 * time; a dead call is answered "not answered" at the same place; a message that holds
 * nothing but orphaned results is left out. Open calls are left as they are, because
 * their results are still to come.
 *
 * A message that holds several result blocks is shown once: in place, when one of them
 * came in time, else at the first call that it answers. A message that has calls of its
 * own stays where it is.
 */
#include "session/read.h"

#include <string.h>

#include "base/error.h"
#include "tokens/tokens.h"
#include "session/handle.h"

#define NOT_ANSWERED "not answered"

/* A row before its text has its final place. */
typedef struct row {
    sessile_message message; /* json.data is not set */
    size_t at;               /* of the text */
} row;

typedef struct rendering {
    const context *c;
    pairing pairs;
    render_text read;
    void *read_arg;
    const session_core *times;
    const allocator *alloc;
    sessile_error *err;
    row *rows;
    size_t count, capacity;
    buf text;        /* of all rows */
    buf message, id; /* scratch */
    uint32_t *moved; /* one per item: the next late answer of the same call message;
                        at a message with calls: the first one. NULL: none is late */
    uint64_t orphans, unanswered;
} rendering;

#define MOVED_NONE UINT32_MAX

/* ------------------------------------------------------------------ rows */

static int64_t time_of(const rendering *r, sessile_key key)
{
    if (!r->times || key.entry >= r->times->tree.node_count)
        return 0;
    return r->times->tree.nodes[key.entry].time_ms;
}

/* A row whose text has been put into r->text from `at` on. */
static sessile_status add_row(rendering *r, size_t at, sessile_key key, sessile_role role,
                              int64_t tokens, int64_t time_ms)
{
    row *added;

    buf_putc(&r->text, 0);
    if (r->text.failed || mem_grow(r->alloc, (void **)&r->rows, &r->capacity,
                                   r->count + 1, sizeof *r->rows))
        return fail_nomem(r->err);
    added = &r->rows[r->count++];
    memset(added, 0, sizeof *added);
    added->at = at;
    added->message.key = key;
    added->message.role = role;
    added->message.tokens = tokens;
    added->message.time_ms = time_ms;
    added->message.json.size = r->text.size - 1 - at;
    return SESSILE_OK;
}

static sessile_status show_item(rendering *r, uint32_t i)
{
    const item *it = &r->c->items[i];
    size_t at = r->text.size;
    sessile_status status = r->read(r->read_arg, it->key, &r->text, r->err);
    if (status)
        return status;
    return add_row(r, at, it->key, (sessile_role)it->role, it->tokens,
                   time_of(r, it->key));
}

/* ------------------------------------------------------------------ dead calls */

/* 1 when the call whose id is r->id stands in tool_calls, 0 when it is a block. */
static int is_tool_call(const rendering *r, json root)
{
    json_iter it;
    for (it = json_begin(json_get(root, "tool_calls")); json_next(&it);) {
        json id = json_get(it.value, "id");
        if (id.size == r->id.size && memcmp(id.at, r->id.data, id.size) == 0)
            return 1;
    }
    return 0;
}

/* An answer in the form in which the call was made. */
static sessile_status show_unanswered(rendering *r, uint32_t i, uint64_t call)
{
    static const sessile_key made = {SESSILE_NO_ID, 0};
    json root = json_of(r->message.data, r->message.size);
    size_t at = r->text.size;
    int in_calls;
    message m;
    sessile_status status;

    buf_clear(&r->id);
    if (!message_call_id(r->message.data, r->message.size, call, &r->id))
        return SESSILE_OK; /* the text is not what the columns were taken from */
    in_calls = is_tool_call(r, root);
    buf_puts(&r->text, in_calls ? "{\"role\":\"tool\",\"tool_call_id\":"
                                : "{\"role\":\"user\",\"content\":[{\"type\":"
                                  "\"tool_result\",\"tool_use_id\":");
    buf_put(&r->text, r->id.data, r->id.size);
    buf_puts(&r->text, in_calls ? ",\"content\":\"" NOT_ANSWERED "\"}"
                                : ",\"content\":\"" NOT_ANSWERED
                                  "\",\"is_error\":true}]}");
    if (r->text.failed || r->id.failed)
        return fail_nomem(r->err);
    status = message_read(&m, r->text.data + at, r->text.size - at, NULL, NULL, NULL,
                          r->alloc, r->err);
    if (status)
        return status;
    r->unanswered++;
    return add_row(r, at, made, m.role, tokens_of_message(&m),
                   time_of(r, r->c->items[i].key));
}

/* Behind what answered item i in time: its late answers, and one for each dead call. */
static sessile_status finish_calls(rendering *r, uint32_t i)
{
    const item *it = &r->c->items[i];
    sessile_status status = SESSILE_OK;
    uint32_t k;

    for (k = r->moved ? r->moved[i] : MOVED_NONE; k != MOVED_NONE && !status;
         k = r->moved[k])
        status = show_item(r, k);
    if (status || !(r->pairs.flags[i] & PAIR_DEAD))
        return status;
    buf_clear(&r->message);
    status = r->read(r->read_arg, it->key, &r->message, r->err);
    for (k = it->link; k < it->link + it->link_count && !status; k++)
        if (!r->c->links[k].is_result && r->pairs.links[k].mate == PAIR_NONE)
            status = show_unanswered(r, i, r->c->links[k].id);
    return status;
}

/* ------------------------------------------------------------------ results */

/* What the results of an item are to others. */
typedef struct results {
    uint32_t orphans, good;
    uint32_t in_time; /* the message that it answers in time, or MOVED_NONE */
    uint32_t late;    /* the first message that it answers late, or MOVED_NONE */
    int has_calls;
} results;

static results results_of(const rendering *r, uint32_t i)
{
    const item *it = &r->c->items[i];
    results out = {0, 0, MOVED_NONE, MOVED_NONE, 0};
    uint32_t k;

    for (k = it->link; k < it->link + it->link_count; k++) {
        const struct pair_link *link = &r->pairs.links[k];
        uint32_t call;
        if (!r->c->links[k].is_result) {
            out.has_calls |=
                k + 1 == it->link + it->link_count || !r->c->links[k + 1].in_call;
            continue;
        }
        if (link->mate == PAIR_NONE) {
            out.orphans++;
            continue;
        }
        out.good++;
        call = r->pairs.links[link->mate].item;
        if (call == i)
            continue;
        if (!link->late)
            out.in_time = call;
        else if (out.late == MOVED_NONE || call < out.late)
            out.late = call;
    }
    return out;
}

/* 1 when a message without a good result holds something else that is to be shown. */
static sessile_status holds_more(rendering *r, uint32_t i, int *out)
{
    const item *it = &r->c->items[i];
    sessile_status status;
    json content;
    json_iter block;

    *out = (it->flags & ITEM_STARTS_TURN) != 0;
    if (*out)
        return SESSILE_OK;
    buf_clear(&r->message);
    status = r->read(r->read_arg, it->key, &r->message, r->err);
    if (status)
        return status;
    content = json_of(r->message.data, r->message.size);
    if ((it->role == SESSILE_TOOL || it->role == SESSILE_FUNCTION) &&
        json_get(content, "tool_call_id").type == JSON_STRING)
        return SESSILE_OK; /* all of it is the result */
    content = json_get(content, "content");
    *out = content.type == JSON_STRING && content.size > 2;
    for (block = json_begin(content); json_next(&block);)
        *out |= !json_is(json_get(block.value, "type"), "tool_result");
    return SESSILE_OK;
}

/* Chains late answers behind the messages that they answer, in the order of the list. */
static int chain_late(rendering *r)
{
    size_t count = r->c->count, i;

    for (i = 0; i < count; i++)
        if (r->pairs.flags[i] & PAIR_LATE)
            break;
    if (i == count)
        return 0;
    r->moved = mem_alloc(r->alloc, count * sizeof *r->moved);
    if (!r->moved)
        return -1;
    memset(r->moved, 0xff, count * sizeof *r->moved); /* MOVED_NONE */
    for (i = count; i-- > 0;) {
        results what;
        if (!(r->pairs.flags[i] & PAIR_LATE))
            continue;
        what = results_of(r, (uint32_t)i);
        if (what.has_calls || what.in_time != MOVED_NONE)
            continue;
        r->moved[i] = r->moved[what.late];
        r->moved[what.late] = (uint32_t)i;
    }
    return 0;
}

/* ------------------------------------------------------------------ the list */

/* Item i, unless it is shown elsewhere or not at all. */
static sessile_status show_in_place(rendering *r, uint32_t i, const results *what)
{
    int more = 1;
    sessile_status status;

    r->orphans += what->orphans;
    if (what->late != MOVED_NONE && !what->has_calls && what->in_time == MOVED_NONE)
        return SESSILE_OK; /* moved up */
    if (what->orphans && !what->good && !what->has_calls) {
        status = holds_more(r, i, &more);
        if (status)
            return status;
    }
    return more ? show_item(r, i) : SESSILE_OK;
}

static sessile_status show_all(rendering *r)
{
    uint32_t asking = MOVED_NONE, i;
    sessile_status status = SESSILE_OK;

    for (i = 0; i < r->c->count && !status; i++) {
        results what = {0, 0, MOVED_NONE, MOVED_NONE, 0};
        if (r->c->items[i].link_count)
            what = results_of(r, i);
        if (asking != MOVED_NONE && (what.in_time != asking || what.has_calls)) {
            status = finish_calls(r, asking);
            asking = MOVED_NONE;
        }
        if (!status)
            status = show_in_place(r, i, &what);
        if (what.has_calls)
            asking = i;
    }
    if (!status && asking != MOVED_NONE)
        status = finish_calls(r, asking);
    return status;
}

/* One block: rows, then their text. */
static sessile_status give_rows(const rendering *r, sessile_message **out, size_t *count)
{
    sessile_message *rows;
    char *text;
    size_t i;

    if (r->count > (SIZE_MAX - r->text.size) / sizeof *rows)
        return fail_nomem(r->err);
    rows = host_alloc(r->alloc, r->count * sizeof *rows + r->text.size);
    if (!rows)
        return fail_nomem(r->err);
    text = (char *)(rows + r->count);
    if (r->text.size)
        memcpy(text, r->text.data, r->text.size);
    for (i = 0; i < r->count; i++) {
        rows[i] = r->rows[i].message;
        rows[i].json.data = text + r->rows[i].at;
    }
    *out = rows;
    *count = r->count;
    return SESSILE_OK;
}

sessile_status render_context(const context *c, render_text text, void *arg,
                              const session_core *times, sessile_message **out,
                              size_t *count, sessile_context_info *info,
                              const allocator *a, sessile_error *err)
{
    rendering r;
    sessile_status status;

    *out = NULL;
    *count = 0;
    memset(&r, 0, sizeof r);
    r.c = c;
    r.read = text;
    r.read_arg = arg;
    r.times = times;
    r.alloc = a;
    r.err = err;
    pairing_init(&r.pairs, a);
    buf_init(&r.text, a);
    buf_init(&r.message, a);
    buf_init(&r.id, a);
    if (pairing_make(&r.pairs, c) || chain_late(&r)) {
        status = fail_nomem(err);
        goto out;
    }
    status = show_all(&r);
    if (!status)
        status = give_rows(&r, out, count);
    if (!status && info) {
        info->orphans = r.orphans;
        info->unanswered = r.unanswered;
    }

out:
    mem_free(a, r.moved, c->count * sizeof *r.moved);
    mem_free(a, r.rows, r.capacity * sizeof *r.rows);
    buf_deinit(&r.id);
    buf_deinit(&r.message);
    buf_deinit(&r.text);
    pairing_deinit(&r.pairs);
    return status;
}

/*
 * child.c: sessions of sub-agents: starts them, and records what became of them.
 *
 * Owns the entries of type `child` in a parent's log:
 *
 *   {"id":…,"agent":…,"user":…}                        started; its parent is the head
 *   {"id":…,"agent":…,"user":…,"merged":"0000002a"}    that message is its result
 *   {"id":…,"agent":…,"user":…,"discarded":true,"reason":…}
 *
 * user is left out when there is none. Must never open a child's log to answer for its
 * parent: the parent's own log says all that it knows of its children.
 */
#include "operations/fork.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "operations/append.h"
#include "operations/create.h"
#include "screen/write.h"
#include "session/fold.h"
#include "session/life.h"

/* ------------------------------------------------------------------ writing */

typedef struct child_write {
    buf data;      /* of the entry, without the closing brace */
    sessile_id at; /* its parent; SESSILE_NO_ID: the head */
    const buf *message;
    message columns;
    token_count tokens;
    write_labels labels; /* of the message */
    sessile_id id;       /* out: of the message */
} child_write;

static void put_names(buf *out, sessile_slice id, sessile_slice agent, sessile_slice user)
{
    buf_puts(out, "{\"id\":");
    header_put_name(out, id);
    buf_puts(out, ",\"agent\":");
    header_put_name(out, agent);
    if (user.size) {
        buf_puts(out, ",\"user\":");
        header_put_name(out, user);
    }
}

static sessile_status build(void *arg, session_core *s, batch *b, sessile_error *err)
{
    child_write *w = arg;
    sessile_id parent = w->at == SESSILE_NO_ID ? s->tree.head : w->at;
    sessile_status status = SESSILE_OK;
    buf data;

    if (w->message) {
        status = session_check_running_locked(s, err);
        if (!status)
            status = session_check_base_locked(s, s->tree.base, 0, err);
        if (status)
            return status;
        w->id = parent = batch_message(b, s->tree.head, w->message->data,
                                       w->message->size, &w->columns, w->tokens);
        write_labels_put(&w->labels, b, 0, w->id);
    }
    buf_init(&data, &s->store->alloc);
    buf_put(&data, w->data.data, w->data.size);
    if (w->message)
        buf_printf(&data, ",\"merged\":\"%08" PRIx32 "\"", w->id);
    buf_putc(&data, '}');
    if (data.failed)
        status = fail_nomem(err);
    else
        batch_put(b, parent, ENTRY_CHILD, SOURCE_HOST, data.data, data.size);
    buf_deinit(&data);
    return status;
}

static sessile_status write_child(session_core *s, child_write *w, sessile_error *err)
{
    return w->data.failed ? fail_nomem(err) : session_write(s, build, w, NULL, err);
}

/* The parent's head; an error when the parent is damaged and cannot be written. */
static sessile_status read_parent_head(session_core *s, sessile_id *head,
                                       sessile_error *err)
{
    sessile_status status = session_lock_fresh(s, err);

    if (status)
        return status;
    status = session_name_error(s, session_damage_locked(s, NULL, err), err);
    *head = s->tree.head;
    session_unlock(s);
    return status;
}

static sessile_status make_empty(session_core *parent, sessile_session_options *options,
                                 const sessile_link *link, char new_id[UUID_SIZE],
                                 sessile_error *err)
{
    session_names names;
    sessile_status status =
        session_choose_names(&names, parent->store, parent, options, 1, err);

    if (!status)
        status = session_make(parent->store, options, link, NULL, err, new_id);
    if (!status && !options->id.size)
        options->id = (sessile_slice){new_id, UUID_SIZE - 1};
    return status;
}

sessile_status session_child(session_core *parent, int with_context,
                             sessile_session_options *options, char new_id[UUID_SIZE],
                             sessile_error *err)
{
    sessile_link link = {{parent->identity.id, parent->identity.id_size},
                         {parent->identity.agent, parent->identity.agent_size},
                         {parent->identity.user, parent->identity.user_size},
                         SESSILE_NO_ID,
                         ""};
    child_write w = {.id = SESSILE_NO_ID};
    sessile_status status = read_parent_head(parent, &link.entry, err);

    if (!status)
        status = with_context
                     ? session_fork(parent, link.entry, options, &link, new_id, err)
                     : make_empty(parent, options, &link, new_id, err);
    if (status)
        return status;
    w.at = link.entry;
    buf_init(&w.data, &parent->store->alloc);
    put_names(&w.data, options->id, options->agent, options->user);
    status = write_child(parent, &w, err);
    buf_deinit(&w.data);
    if (status) {
        char shown[NAME_SHOWN];
        name_show(options->id, shown);
        fail_prefix(err, "child %s was made, and its parent does not name it", shown);
    }
    return status;
}

static int is_name(const buf *name, const char *text, size_t size)
{
    return name->size == size && (!size || !memcmp(name->data, text, size));
}

static sessile_status check_child(const session_core *parent, const session_core *child,
                                  sessile_error *err)
{
    const header_link *link = &child->header.parent;
    char shown[NAME_SHOWN];

    if (link->entry != SESSILE_NO_ID &&
        is_name(&link->id, parent->identity.id, parent->identity.id_size) &&
        is_name(&link->agent, parent->identity.agent, parent->identity.agent_size) &&
        is_name(&link->user, parent->identity.user, parent->identity.user_size))
        return SESSILE_OK;
    name_show((sessile_slice){child->identity.id, child->identity.id_size}, shown);
    return session_name_error(
        parent, fail(err, SESSILE_INVALID, "session %s is no child of this one", shown),
        err);
}

static void put_child(buf *out, const session_core *child)
{
    put_names(out, (sessile_slice){child->identity.id, child->identity.id_size},
              (sessile_slice){child->identity.agent, child->identity.agent_size},
              (sessile_slice){child->identity.user, child->identity.user_size});
}

sessile_status session_child_merged(session_core *parent, const session_core *child,
                                    sessile_slice text, sessile_id *out,
                                    sessile_error *err)
{
    child_write w = {.at = SESSILE_NO_ID, .id = SESSILE_NO_ID};
    sessile_status status = check_child(parent, child, err);
    buf checked;

    if (status)
        return status;
    buf_init(&checked, &parent->store->alloc);
    buf_init(&w.data, &parent->store->alloc);
    status = session_check_message(parent, text, &checked, &w.columns, &w.tokens,
                                   &w.labels, 0, err);
    if (!status) {
        w.message = &checked;
        put_child(&w.data, child);
        status = write_child(parent, &w, err);
    }
    if (!status && out)
        *out = w.id;
    write_labels_deinit(&w.labels, &parent->store->alloc);
    buf_deinit(&w.data);
    buf_deinit(&checked);
    return status;
}

sessile_status session_child_discarded(session_core *parent, const session_core *child,
                                       sessile_slice reason, sessile_error *err)
{
    child_write w = {.at = SESSILE_NO_ID, .id = SESSILE_NO_ID};
    sessile_status status = check_child(parent, child, err);

    if (!status && reason.size > parent->store->limits.message)
        status =
            fail(err, SESSILE_LIMIT, "the reason is longer than the limit [message]");
    if (!status && !utf8_valid(reason.data, reason.size))
        status = fail(err, SESSILE_INVALID, "the reason is not UTF-8");
    if (!status)
        status = write_screen_fixed(parent->store, SESSILE_SCREEN_STATE, "reason", reason,
                                    0, err);
    if (status)
        return status;
    buf_init(&w.data, &parent->store->alloc);
    put_child(&w.data, child);
    buf_puts(&w.data, ",\"discarded\":true");
    if (reason.size) {
        buf_puts(&w.data, ",\"reason\":");
        json_put_string(&w.data, reason.data, reason.size);
    }
    status = write_child(parent, &w, err);
    buf_deinit(&w.data);
    return status;
}

/* ------------------------------------------------------------------ reading */

typedef struct found {
    size_t id, agent, user, end; /* offsets of its names in text */
    sessile_subsession row;
} found;

typedef struct children {
    const allocator *alloc;
    found *at;
    size_t count, capacity;
    buf text;
} children;

static int same_span(const children *c, size_t a, size_t a_end, size_t b, size_t b_end)
{
    return a_end - a == b_end - b &&
           (a_end == a || !memcmp(c->text.data + a, c->text.data + b, a_end - a));
}

static found *find_child(children *c, const found *one)
{
    for (size_t i = c->count; i-- > 0;) {
        found *f = &c->at[i];
        if (same_span(c, f->id, f->agent, one->id, one->agent) &&
            same_span(c, f->agent, f->user, one->agent, one->user) &&
            same_span(c, f->user, f->end, one->user, one->end))
            return f;
    }
    return NULL;
}

/* Skips an entry that names no child: it was written by hand. */
static sessile_status take_child_entry(children *c, const entry *e, sessile_error *err)
{
    json user = json_get(e->data, "user"), merged = json_get(e->data, "merged");
    found one = {.id = c->text.size}, *f;
    const char *text;
    size_t size;

    if (header_get_name(&c->text, json_get(e->data, "id")))
        goto none;
    one.agent = c->text.size;
    if (header_get_name(&c->text, json_get(e->data, "agent")))
        goto none;
    one.user = c->text.size;
    if (user.type != JSON_NONE && header_get_name(&c->text, user))
        goto none;
    one.end = c->text.size;
    if (c->text.failed)
        return fail_nomem(err);
    f = find_child(c, &one);
    if (f) {
        c->text.size = one.id;
    } else {
        if (mem_grow(c->alloc, (void **)&c->at, &c->capacity, c->count + 1,
                     sizeof *c->at))
            return fail_nomem(err);
        one.row = (sessile_subsession){
            .entry = e->parent, .time_ms = e->time_ms, .merged = SESSILE_NO_ID};
        c->at[c->count++] = one;
        f = &c->at[c->count - 1];
    }
    if (json_get(e->data, "discarded").type == JSON_TRUE)
        f->row.state = SESSILE_CHILD_DISCARDED;
    else if (json_plain(merged, &text, &size) && !id_parse(text, size, &f->row.merged))
        f->row.state = SESSILE_CHILD_MERGED;
    return SESSILE_OK;
none:
    if (c->text.failed)
        return fail_nomem(err);
    c->text.size = one.id;
    return SESSILE_OK;
}

static sessile_status gather(session_core *s, children *c, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    buf text;
    entry e;

    buf_init(&text, c->alloc);
    for (uint64_t id = 1; !status && id < s->tree.node_count; id++) {
        status = session_load_locked(s, (sessile_id)id, err);
        if (status || s->tree.nodes[id].type != ENTRY_CHILD)
            continue;
        status = session_read_entry(s, (sessile_id)id, &text, &e, err);
        if (!status)
            status = take_child_entry(c, &e, err);
    }
    buf_deinit(&text);
    return status;
}

static sessile_status pack(const children *c, const principal *who,
                           sessile_subsession **out, sessile_error *err)
{
    sessile_subsession *rows = host_alloc(
        c->alloc, (c->count + !c->count) * sizeof *rows + c->text.size + 3 * c->count);
    char *to;

    if (!rows)
        return fail_nomem(err);
    to = (char *)(rows + c->count);
    for (size_t i = 0; i < c->count; i++) {
        const found *f = &c->at[i];
        const size_t from[4] = {f->id, f->agent, f->user, f->end};
        sessile_slice *names[3] = {&rows[i].id, &rows[i].agent, &rows[i].user};
        const char *text = c->text.data;
        guard_names of = {{text + f->agent, f->user - f->agent},
                          {text + f->user, f->end - f->user},
                          {text + f->id, f->agent - f->id}};
        int seen = principal_sees(who, &of);
        rows[i] = f->row;
        for (int k = 0; k < 3; k++) {
            *names[k] = (sessile_slice){to, seen ? from[k + 1] - from[k] : 0};
            if (names[k]->size)
                memcpy(to, c->text.data + from[k], names[k]->size);
            to[names[k]->size] = 0;
            to += names[k]->size + 1;
        }
    }
    *out = rows;
    return SESSILE_OK;
}

sessile_status session_subsessions(session_core *s, const principal *who,
                                   sessile_subsession **out, size_t *count,
                                   sessile_error *err)
{
    children c = {.alloc = &s->store->alloc};
    sessile_status status = session_lock_fresh(s, err);

    if (status)
        return status;
    buf_init(&c.text, c.alloc);
    status = gather(s, &c, err);
    session_unlock(s);
    if (!status)
        status = pack(&c, who, out, err);
    if (!status)
        *count = c.count;
    mem_free(c.alloc, c.at, c.capacity * sizeof *c.at);
    buf_deinit(&c.text);
    return status;
}

/*
 * compaction.c: the list that a compaction entry holds: read into a context, and
 * written.
 *
 * A list is an array of names: an entry, a range of the path, or a message that a
 * compaction wrote. Ranges keep it short: a window of a thousand messages is one string.
 * A range is resolved by walking parents from its later end to its earlier end, which
 * takes no longer than the context is. Rejected: ranges of plain ids, which need no walk
 * but would include the messages of other branches in between.
 *
 * Must never trust a list: whatever it names comes before the compaction, and a name
 * that cannot be resolved makes the entry DAMAGED. Tombstones are skipped, so that a
 * salvaged log has the context it had, less what was lost.
 */
#include "session/fold.h"
#include "session/compaction.h"

#include <inttypes.h>
#include <string.h>

#include "base/names.h"
#include "tokens/tokens.h"

/* ------------------------------------------------------------------ messages written */

json compaction_inserted_message(json data, uint32_t n)
{
    static const json none = {NULL, 0, JSON_NONE};
    json_iter it = json_begin(json_get(data, "inserted"));
    uint64_t number;

    while (json_next(&it)) {
        if (!json_uint(json_get(it.value, "n"), &number) && number == n) {
            json text = json_get(it.value, "message");
            return text.type == JSON_OBJECT ? text : none;
        }
    }
    return none;
}

/* A compaction whose messages a list names: read once, its messages found once. */
typedef struct source {
    sessile_id id;
    buf text;
    entry e;
    json *inserted; /* put n at n - 1 */
    size_t inserted_count, inserted_capacity;
    int lost; /* a tombstone stands there */
} source;

typedef struct loader {
    session_core *s;
    sessile_id at;  /* the compaction whose list is read */
    int names_only; /* items are keys: no message that a policy wrote is read */
    context *out;
    source *sources;
    size_t source_count, source_capacity;
    map by_id; /* index into sources */
    id_list ids;
    message_link *links;
    size_t link_capacity;
    const allocator *alloc;
    sessile_error *err;
} loader;

static void loader_deinit(loader *l)
{
    for (size_t i = 0; i < l->source_count; i++) {
        source *from = &l->sources[i];
        buf_deinit(&from->text);
        if (from->inserted)
            mem_free(l->alloc, from->inserted,
                     from->inserted_capacity * sizeof *from->inserted);
    }
    if (l->sources)
        mem_free(l->alloc, l->sources, l->source_capacity * sizeof *l->sources);
    if (l->links)
        mem_free(l->alloc, l->links, l->link_capacity * sizeof *l->links);
    map_deinit(&l->by_id);
    id_list_deinit(&l->ids);
}

static sessile_status malformed(loader *l, const char *what, json name)
{
    int shown = name.size > 40 ? 40 : (int)name.size;

    return session_fail_damaged(l->s, l->at, l->err, "%s (%.*s)", what, shown,
                                name.at ? name.at : "");
}

/* The messages that a compaction wrote, numbered from 1 in their order. */
static sessile_status find_inserted(loader *l, source *from)
{
    json_iter it = json_begin(json_get(from->e.data, "inserted"));
    uint64_t n;

    while (json_next(&it)) {
        if (json_uint(json_get(it.value, "n"), &n) || n != from->inserted_count + 1)
            return session_fail_damaged(l->s, from->id, l->err,
                                        "the messages it wrote are not numbered from 1");
        if (mem_grow(l->alloc, (void **)&from->inserted, &from->inserted_capacity,
                     from->inserted_count + 1, sizeof *from->inserted))
            return fail_nomem(l->err);
        from->inserted[from->inserted_count++] = it.value;
    }
    return SESSILE_OK;
}

/* The source of that id, read when it is new. Valid until the next call. */
static sessile_status load(loader *l, sessile_id id, source **out)
{
    const session_core *s = l->s;
    sessile_status status = session_load_locked(l->s, id, l->err);
    uint32_t index;
    source *from;

    if (status)
        return status;
    if (map_get(&l->by_id, id, &index)) {
        *out = &l->sources[index];
        return SESSILE_OK;
    }
    if (mem_grow(l->alloc, (void **)&l->sources, &l->source_capacity, l->source_count + 1,
                 sizeof *l->sources) ||
        map_put(&l->by_id, id, (uint32_t)l->source_count))
        return fail_nomem(l->err);
    from = &l->sources[l->source_count++];
    memset(from, 0, sizeof *from);
    buf_init(&from->text, l->alloc);
    from->id = id;
    if (s->tree.nodes[id].type == ENTRY_TOMBSTONE) {
        from->lost = 1;
    } else {
        status = session_read_entry(l->s, id, &from->text, &from->e, l->err);
        if (!status)
            status = find_inserted(l, from);
    }
    *out = from;
    return status;
}

/* ------------------------------------------------------------------ a list, read */

static sessile_status push_id(loader *l, sessile_id id, json name)
{
    const session_core *s = l->s;
    sessile_status status = SESSILE_OK;

    if (id < l->at)
        status = session_load_locked(l->s, id, l->err);
    if (status)
        return status;
    if (id >= l->at || !(node_is_message(&s->tree.nodes[id]) ||
                         s->tree.nodes[id].type == ENTRY_TOMBSTONE))
        return malformed(l, "its context names what is no message before it", name);
    if (s->tree.nodes[id].type == ENTRY_TOMBSTONE) {
        l->out->lost++;
        return SESSILE_OK;
    }
    return context_push_node(s, id, l->out) ? fail_nomem(l->err) : SESSILE_OK;
}

/* The path's messages from low to high, both in it. */
static sessile_status push_range(loader *l, sessile_id low, sessile_id high, json name)
{
    sessile_status status;
    int found;

    if (low == 0 || low > high || high >= l->at)
        return malformed(l, "its context names a range that is none", name);
    status = session_load_path_locked(l->s, high, low, l->err);
    if (status)
        return status;
    l->ids.count = 0;
    l->ids.lost = 0;
    found = path_gather(l->s, high, low, &l->ids);
    if (found < 0)
        return fail_nomem(l->err);
    if (found > 0)
        return malformed(
            l, "its context names a range whose ends are on different branches", name);
    status = push_id(l, low, name);
    for (size_t i = l->ids.count; !status && i > 0; i--)
        status = push_id(l, l->ids.at[i - 1], name);
    return status;
}

static sessile_status push_inserted(loader *l, sessile_key key, json name)
{
    session_core *s = l->s;
    item it = {.key = key};
    size_t link_count = 0, unit_size;
    const char *unit;
    int64_t tokens = -1;
    uint64_t turn = 0;
    sessile_status status = SESSILE_OK;
    json_iter counted;
    source *from;
    message m;
    json put, text;

    if (key.entry <= l->at)
        status = session_load_locked(s, key.entry, l->err);
    if (status)
        return status;
    if (key.entry > l->at || (s->tree.nodes[key.entry].type != ENTRY_COMPACTION &&
                              s->tree.nodes[key.entry].type != ENTRY_TOMBSTONE))
        return malformed(l, "its context names a message of what is no compaction", name);
    if (l->names_only && s->tree.nodes[key.entry].type == ENTRY_TOMBSTONE) {
        l->out->lost++;
        return SESSILE_OK;
    }
    if (l->names_only)
        return context_push(l->out, &it, NULL) ? fail_nomem(l->err) : SESSILE_OK;
    status = load(l, key.entry, &from);
    if (status || from->lost) {
        l->out->lost += !status;
        return status;
    }
    if (key.n > from->inserted_count)
        return malformed(l, "its context names a message that was not written", name);
    put = from->inserted[key.n - 1];
    text = json_get(put, "message");
    status = message_read(&m, text.at, text.size, &l->links, &link_count,
                          &l->link_capacity, l->alloc, l->err);
    if (status == SESSILE_NOMEM)
        return status;
    if (status)
        return session_fail_damaged(s, key.entry, l->err,
                                    "what it wrote as %" PRIu32 " is no message", key.n);
    counted = json_begin(json_get(put, "tokens"));
    if (!json_next(&counted) || json_int(counted.value, &tokens) || tokens < 0)
        tokens = tokens_of_message(&m);
    else if (json_next(&counted) && json_plain(counted.value, &unit, &unit_size))
        it.unit = (uint8_t)token_unit_of(unit, unit_size);
    (void)json_uint(json_get(put, "turn"), &turn);
    it.tokens = tokens > UINT32_MAX ? UINT32_MAX : (uint32_t)tokens;
    it.turn = turn > UINT32_MAX ? UINT32_MAX : (uint32_t)turn;
    it.link_count = (uint32_t)link_count;
    it.role = (uint8_t)m.role;
    it.flags = (uint8_t)m.flags;
    return context_push_opening(l->out, &it, l->links) ? fail_nomem(l->err) : SESSILE_OK;
}

static sessile_status push_name(loader *l, json name)
{
    sessile_id low, high;
    const char *text;
    sessile_key key;
    size_t size;

    if (!json_plain(name, &text, &size))
        return malformed(l, "its context holds what is no name", name);
    if (size == 17 && text[8] == '-') {
        if (id_parse(text, 8, &low) || id_parse(text + 9, 8, &high))
            return malformed(l, "its context holds what is no name", name);
        return push_range(l, low, high, name);
    }
    if (key_parse((sessile_slice){text, size}, &key))
        return malformed(l, "its context holds what is no name", name);
    return key.n ? push_inserted(l, key, name) : push_id(l, key.entry, name);
}

sessile_status compaction_list(session_core *s, sessile_id at, context *out,
                               sessile_id *upto, sessile_error *err)
{
    loader l = {.s = s, .at = at, .out = out, .alloc = &s->store->alloc, .err = err};
    sessile_status status;
    json_iter it;
    source *own;

    *upto = 0;
    map_init(&l.by_id, l.alloc);
    l.ids.alloc = l.alloc;
    status = load(&l, at, &own);
    if (!status)
        status = compaction_upto(s, at, own->e.data, upto, err);
    if (status)
        goto out;
    it = json_begin(json_get(own->e.data, "context"));
    while (!status && json_next(&it))
        status = push_name(&l, it.value);
out:
    loader_deinit(&l);
    return status;
}

sessile_status compaction_upto(session_core *s, sessile_id at, json data, sessile_id *out,
                               sessile_error *err)
{
    const char *text;
    size_t size;

    *out = 0;
    if (json_plain(json_get(data, "upto"), &text, &size) && !id_parse(text, size, out) &&
        *out < at)
        return SESSILE_OK;
    return session_fail_damaged(s, at, err,
                                "it does not say which entry its context goes up to");
}

sessile_status compaction_names(session_core *s, sessile_id at, json list, context *out,
                                sessile_error *err)
{
    loader l = {.s = s,
                .at = at,
                .names_only = 1,
                .out = out,
                .alloc = &s->store->alloc,
                .err = err};
    sessile_status status = SESSILE_OK;
    json_iter it = json_begin(list);

    map_init(&l.by_id, l.alloc);
    l.ids.alloc = l.alloc;
    while (!status && json_next(&it))
        status = push_name(&l, it.value);
    loader_deinit(&l);
    return status;
}

/* ------------------------------------------------------------------ a list, written */

/* *follows: `next` is the message that follows `id` on the path of `next`. */
static sessile_status follow(session_core *s, sessile_key next, sessile_id id,
                             int *follows, sessile_error *err)
{
    sessile_id at = next.entry;
    sessile_status status;

    *follows = 0;
    if (next.n || at <= id || at >= s->tree.node_count)
        return SESSILE_OK;
    status = session_load_locked(s, at, err);
    if (status || !node_is_message(&s->tree.nodes[at]))
        return status;
    do {
        at = s->tree.nodes[at].parent;
        status = session_load_locked(s, at, err);
    } while (!status && at > id && !node_is_message(&s->tree.nodes[at]));
    *follows = !status && at == id;
    return status;
}

sessile_status compaction_put_keys(session_core *s, const sessile_key *keys, size_t count,
                                   sessile_id self, buf *out, sessile_error *err)
{
    char name[SESSILE_KEY_SIZE];
    sessile_status status = SESSILE_OK;
    sessile_key key;
    int more;

    buf_putc(out, '[');
    for (size_t i = 0; i < count; i++) {
        key = keys[i];
        if (key.entry == SESSILE_NO_ID)
            key.entry = self;
        if (key.n == 0 && key.entry < s->tree.node_count)
            status = session_load_locked(s, key.entry, err);
        if (status)
            return status;
        if (key.n == 0 && (key.entry >= s->tree.node_count ||
                           !node_is_message(&s->tree.nodes[key.entry])))
            return fail(err, SESSILE_INVALID,
                        "entry %08" PRIx32
                        " is no message: it cannot be named in a context",
                        key.entry);
        key_print(key, name);
        buf_puts(out, i ? ",\"" : "\"");
        buf_puts(out, name);
        if (key.n == 0) {
            sessile_id last = key.entry;
            for (more = 1; more && i + 1 < count;) {
                status = follow(s, keys[i + 1], last, &more, err);
                if (status)
                    return status;
                if (more)
                    last = keys[++i].entry;
            }
            if (last != key.entry) {
                id_print(last, name);
                buf_putc(out, '-');
                buf_puts(out, name);
            }
        }
        buf_putc(out, '"');
    }
    buf_putc(out, ']');
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}

/*
 * annotate.c: labels, settings and metadata, written as facts and read as they are in
 * force.
 *
 * A label that an entry already has is not written again. Settings and metadata are
 * merged member by member: each member has the value of the newest entry that names it.
 * So two writers who set different members do not undo each other, and the log keeps
 * every value with its time.
 */
#include "operations/annotate.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "screen/write.h"
#include "session/fold.h"

typedef struct stated {
    entry_type type;
    sessile_id about; /* SESSILE_NO_ID: the head */
    sessile_slice name;
    int off;
    buf text;
    write_labels labels;
} stated;

static void put_fact(const session_core *s, const stated *w, batch *b)
{
    sessile_id id = batch_put(b, w->about == SESSILE_NO_ID ? s->tree.head : w->about,
                              w->type, SOURCE_HOST, w->text.data, w->text.size);
    write_labels_put(&w->labels, b, 0, id);
}

/* ------------------------------------------------------------------ labels */

static sessile_status check_subject(session_core *s, const stated *w, sessile_error *err)
{
    int pin = w->name.size == sizeof FACT_PINNED - 1 &&
              !memcmp(w->name.data, FACT_PINNED, w->name.size);
    sessile_status status = SESSILE_OK;

    if (w->about < s->tree.node_count)
        status = session_load_locked(s, w->about, err);
    if (status)
        return status;
    if (w->about >= s->tree.node_count || s->tree.nodes[w->about].type == ENTRY_TOMBSTONE)
        return session_name_error(s,
                                  fail(err, SESSILE_NOTFOUND,
                                       "there is no entry %08" PRIx32
                                       " to label: the newest is %08" PRIx32,
                                       w->about, (sessile_id)(s->tree.node_count - 1)),
                                  err);
    if (pin && !node_is_message(&s->tree.nodes[w->about]))
        status = session_name_error(s,
                                    fail(err, SESSILE_INVALID,
                                         "entry %08" PRIx32
                                         " is no message: only messages can be pinned",
                                         w->about),
                                    err);
    return status;
}

static sessile_status build_label(void *arg, session_core *s, batch *b,
                                  sessile_error *err)
{
    stated *w = arg;
    sessile_status status = check_subject(s, w, err);
    const fact *now;

    if (status)
        return status;
    now = facts_find(&s->fold.facts, FACT_LABEL, w->about, w->name.data, w->name.size);
    if (w->off && !now) {
        char shown[NAME_SHOWN];
        name_show(w->name, shown);
        return session_name_error(s,
                                  fail(err, SESSILE_NOTFOUND,
                                       "entry %08" PRIx32 " has no label %s", w->about,
                                       shown),
                                  err);
    }
    if (!w->off == !now)
        put_fact(s, w, b);
    return SESSILE_OK;
}

sessile_status session_label(session_core *s, sessile_id id, sessile_slice name, int off,
                             sessile_error *err)
{
    stated w = {.type = ENTRY_LABEL, .about = id, .name = name, .off = off};
    sessile_status status;

    if (!name.size || !utf8_valid(name.data, name.size))
        return fail(err, SESSILE_INVALID, "a label is a text in UTF-8, not empty");
    if (name.size > LABEL_MOST)
        return fail(err, SESSILE_LIMIT,
                    "this label has %zu bytes, at most %d are allowed", name.size,
                    LABEL_MOST);
    if (!off && screen_is_label(name))
        return fail(err, SESSILE_INVALID,
                    "a label that begins with \"screen:\" says what a screen found, and "
                    "nobody else puts one: take another name");
    status = off ? SESSILE_OK
                 : write_screen_fixed(s->store, SESSILE_SCREEN_METADATA, "label", name, 0,
                                      err);
    if (status)
        return status;
    buf_init(&w.text, &s->store->alloc);
    buf_puts(&w.text, "{\"label\":");
    json_put_string(&w.text, name.data, name.size);
    buf_puts(&w.text, off ? ",\"off\":true}" : "}");
    status =
        w.text.failed ? fail_nomem(err) : session_write(s, build_label, &w, NULL, err);
    buf_deinit(&w.text);
    return status;
}

static sessile_status pack_labels(session_core *s, const fact *list, size_t count,
                                  sessile_label_row **out, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    size_t names = 0;
    sessile_label_row *rows;
    char *to;

    for (size_t i = 0; i < count; i++)
        names += list[i].name_size + 1;
    rows = host_alloc(a, (count + !count) * sizeof *rows + names);
    if (!rows)
        return fail_nomem(err);
    to = (char *)(rows + count);
    for (size_t i = 0; i < count; i++) {
        sessile_status status = session_load_locked(s, list[i].entry, err);
        if (status) {
            host_free(rows);
            return status;
        }
        rows[i] = (sessile_label_row){.entry = list[i].about,
                                      .name = {to, list[i].name_size},
                                      .fact = list[i].entry,
                                      .time_ms = s->tree.nodes[list[i].entry].time_ms};
        memcpy(to, fact_name(&s->fold.facts, &list[i]), list[i].name_size);
        to[list[i].name_size] = 0;
        to += list[i].name_size + 1;
    }
    *out = rows;
    return SESSILE_OK;
}

sessile_status session_labels(session_core *s, sessile_label_row **out, size_t *count,
                              sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    sessile_status status = session_lock_fresh(s, err);
    fact *list;
    size_t n;

    if (status)
        return status;
    if (facts_in_force(&s->fold.facts, FACT_LABEL, a, &list, &n)) {
        status = fail_nomem(err);
    } else {
        status = pack_labels(s, list, n, out, err);
        mem_free(a, list, n * sizeof *list);
        if (!status)
            *count = n;
    }
    session_unlock(s);
    return status;
}

/* ------------------------------------------------------------------ members */

static sessile_status build_members(void *arg, session_core *s, batch *b,
                                    sessile_error *err)
{
    (void)err;
    put_fact(s, arg, b);
    return SESSILE_OK;
}

/* INVALID when a member is there twice: it would not be clear which one counts. */
static sessile_status check_once(const session_core *s, const char *kind, const buf *text,
                                 sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    entry e = {.id = 1, .type = ENTRY_METADATA, .data = json_of(text->data, text->size)};
    sessile_status status = SESSILE_OK;
    size_t count = 0;
    fact *list = NULL;
    facts all;

    facts_init(&all, a);
    if (facts_of_entry(&all, &e) || facts_newest(&all, FACT_METADATA, a, &list, &count))
        status = fail_nomem(err);
    else if (count != all.count)
        status = fail(err, SESSILE_INVALID, "%s: a member is given twice: give each once",
                      kind);
    mem_free(a, list, count * sizeof *list);
    facts_deinit(&all);
    return status;
}

sessile_status session_state_members(session_core *s, const char *kind,
                                     sessile_slice object, sessile_error *err)
{
    const sessile_limits *limits = &s->store->limits;
    stated w = {.type = ENTRY_METADATA, .about = SESSILE_NO_ID};
    sessile_status status;
    buf checked;

    if (object.size > limits->message)
        return fail(err, SESSILE_LIMIT,
                    "these %s have %zu bytes and the limit [message] is %" PRIu64, kind,
                    object.size, limits->message);
    buf_init(&checked, &s->store->alloc);
    buf_init(&w.text, &s->store->alloc);
    status = json_check(&checked, object.data ? object.data : "", object.size,
                        limits->depth, err);
    if (status) {
        fail_prefix(err, "%s", kind);
    } else if (json_of(checked.data, checked.size).type != JSON_OBJECT) {
        status = fail(err, SESSILE_INVALID, "%s: a JSON object is wanted", kind);
    } else {
        status = write_screen_json(s->store, screen_kind_of(kind), &checked, 0, &w.labels,
                                   0, err);
    }
    if (!status) {
        buf_printf(&w.text, "{\"%s\":", kind);
        buf_put(&w.text, checked.data, checked.size);
        buf_putc(&w.text, '}');
        status = w.text.failed ? fail_nomem(err) : check_once(s, kind, &w.text, err);
        if (!status)
            status = session_write(s, build_members, &w, NULL, err);
    }
    write_labels_deinit(&w.labels, &s->store->alloc);
    buf_deinit(&checked);
    buf_deinit(&w.text);
    return status;
}

json session_member(json object, const char *key, size_t size, buf *work)
{
    json found = {NULL, 0, JSON_NONE};
    json_iter it = json_begin(object);

    while (json_next(&it)) {
        buf_clear(work);
        if (!json_string(work, it.key) && !work->failed && work->size == size &&
            (!size || !memcmp(work->data, key, size)))
            found = it.value;
    }
    return found;
}

typedef struct gathering {
    session_core *s;
    const char *kind;
    buf *out;
    buf text, work; /* the last entry that was read */
    sessile_id at;  /* SESSILE_NO_ID: none yet */
    entry e;
    json_iter next; /* its members not yet visited; facts keep their order */
} gathering;

static void put_member(buf *out, const char *key, size_t size, json value)
{
    if (out->data[out->size - 1] != '{')
        buf_putc(out, ',');
    json_put_string(out, key, size);
    buf_putc(out, ':');
    buf_put(out, value.at, value.size);
}

static sessile_status gather(gathering *g, const fact *one, sessile_error *err)
{
    size_t prefix = strlen(g->kind) + 1;
    const char *key = fact_name(&g->s->fold.facts, one) + prefix;
    size_t size = one->name_size - prefix;
    sessile_status status = SESSILE_OK;

    if (g->at != one->entry) {
        status = session_read_entry(g->s, one->entry, &g->text, &g->e, err);
        if (status)
            return status;
        g->next = json_begin(json_get(g->e.data, g->kind));
    }
    g->at = one->entry;
    while (json_next(&g->next)) {
        buf_clear(&g->work);
        if (json_string(&g->work, g->next.key) || g->work.failed ||
            g->work.size != size || (size && memcmp(g->work.data, key, size) != 0))
            continue;
        put_member(g->out, key, size, g->next.value);
        break;
    }
    return SESSILE_OK;
}

/* The metadata of the header, without members that facts have set or removed since. */
static void gather_header(gathering *g, const fact *list, size_t count)
{
    json_iter it = json_begin(json_of(g->s->header.metadata, g->s->header.metadata_size));
    size_t prefix = sizeof "metadata." - 1;

    while (json_next(&it)) {
        size_t i = 0;
        buf_clear(&g->work);
        if (json_string(&g->work, it.key) || g->work.failed)
            continue;
        while (
            i < count &&
            !(list[i].name_size == prefix + g->work.size &&
              !memcmp(fact_name(&g->s->fold.facts, &list[i]), "metadata.", prefix) &&
              (!g->work.size || !memcmp(fact_name(&g->s->fold.facts, &list[i]) + prefix,
                                        g->work.data, g->work.size))))
            i++;
        if (i == count)
            put_member(g->out, g->work.size ? g->work.data : "", g->work.size, it.value);
    }
}

static sessile_status members_locked(session_core *s, const char *kind, buf *out,
                                     sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    gathering g = {.s = s, .kind = kind, .out = out, .at = SESSILE_NO_ID};
    size_t count, kind_size = strlen(kind);
    sessile_status status = SESSILE_OK;
    fact *list;

    if (facts_newest(&s->fold.facts, FACT_METADATA, a, &list, &count))
        return fail_nomem(err);
    buf_init(&g.text, a);
    buf_init(&g.work, a);
    buf_putc(out, '{');
    if (s->header.metadata && !strcmp(kind, "metadata") && !out->failed)
        gather_header(&g, list, count);
    for (size_t i = 0; !status && !out->failed && i < count; i++) {
        const char *name = fact_name(&s->fold.facts, &list[i]);
        if (!list[i].off && list[i].name_size > kind_size && name[kind_size] == '.' &&
            !memcmp(name, kind, kind_size))
            status = gather(&g, &list[i], err);
    }
    buf_putc(out, '}');
    if (!status && (out->failed || g.work.failed))
        status = fail_nomem(err);
    buf_deinit(&g.text);
    buf_deinit(&g.work);
    mem_free(a, list, count * sizeof *list);
    return status;
}

sessile_status session_members(session_core *s, const char *kind, buf *out,
                               sessile_error *err)
{
    sessile_status status = session_lock_fresh(s, err);

    if (status)
        return status;
    status = members_locked(s, kind, out, err);
    session_unlock(s);
    return status;
}

sessile_status session_members_text(session_core *s, const char *kind, char **out,
                                    size_t *size, sessile_error *err)
{
    buf text;
    buf_init(&text, &s->store->alloc);
    sessile_status status = session_members(s, kind, &text, err);
    if (!status && !(*out = host_dup(&s->store->alloc, text.data, text.size)))
        status = fail_nomem(err);
    if (!status)
        *size = text.size;
    buf_deinit(&text);
    return status;
}

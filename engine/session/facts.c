/*
 * facts.c: the records of facts, and which of them are in force.
 *
 * The list only grows, so undoing a write is a cut. The fact in force is
 * found by walking from the newest record of its kind: every write asks whether the
 * session is suspended, and must not pay for its labels. A session has few facts beside
 * its messages, and one that is stated again and again (a setting each turn) is found
 * immediately. Rejected: a table by name, which would have to be restored when a write
 * is undone.
 *
 * Must never fail an entry for what it holds: a fact that makes no sense is ignored.
 */
#include "session/facts.h"

#include <stdlib.h>
#include <string.h>

void facts_init(facts *f, const allocator *a)
{
    memset(f, 0, sizeof *f);
    buf_init(&f->names, a);
}

void facts_deinit(facts *f)
{
    mem_free(f->names.alloc, f->at, f->capacity * sizeof *f->at);
    buf_deinit(&f->names);
    f->at = NULL;
    f->count = f->capacity = 0;
    memset(f->newest, 0, sizeof f->newest);
}

void facts_clear(facts *f)
{
    f->count = 0;
    memset(f->newest, 0, sizeof f->newest);
    buf_clear(&f->names);
}

void facts_cut(facts *f, size_t count, size_t names)
{
    for (; f->count > count; f->count--) {
        const fact *last = &f->at[f->count - 1];
        f->newest[last->kind] = last->before;
    }
    f->names.size = names;
}

int facts_add(facts *f, fact_kind kind, sessile_id entry, sessile_id about,
              const char *name, size_t name_size, int off)
{
    size_t at = f->names.size;

    if (name_size > UINT32_MAX - at || f->count >= UINT32_MAX)
        return -1;
    if (mem_grow(f->names.alloc, (void **)&f->at, &f->capacity, f->count + 1,
                 sizeof *f->at))
        return -1;
    buf_put(&f->names, name, name_size);
    if (f->names.failed) {
        f->names.failed = 0;
        f->names.size = at;
        return -1;
    }
    f->at[f->count++] = (fact){.entry = entry,
                               .about = about,
                               .name_at = (uint32_t)at,
                               .name_size = (uint32_t)name_size,
                               .before = f->newest[kind],
                               .kind = (uint8_t)kind,
                               .off = off != 0};
    f->newest[kind] = (uint32_t)f->count;
    return 0;
}

/* ------------------------------------------------------------------ of an entry */

/* Adds one whose name is a JSON string, behind a prefix. */
static int add_named(facts *f, fact_kind kind, const entry *e, sessile_id about,
                     const char *prefix, json name, int off)
{
    buf text;
    int code = -1;

    buf_init(&text, f->names.alloc);
    buf_puts(&text, prefix);
    if (name.type != JSON_STRING || (!json_string(&text, name) && !text.failed))
        code =
            facts_add(f, kind, e->id, about, text.size ? text.data : "", text.size, off);
    buf_deinit(&text);
    return code;
}

static int is_true(json value)
{
    return value.type == JSON_TRUE;
}

static int of_label(facts *f, const entry *e)
{
    json name = json_get(e->data, "label");

    if (name.type != JSON_STRING)
        return 0;
    return add_named(f, FACT_LABEL, e, e->parent, "", name,
                     is_true(json_get(e->data, "off")));
}

/* An object whose members are stated one by one: null takes one back. */
static int of_members(facts *f, const entry *e, json object, const char *prefix)
{
    json_iter it = json_begin(object);
    int code = 0;

    while (!code && json_next(&it))
        code =
            add_named(f, FACT_METADATA, e, 0, prefix, it.key, it.value.type == JSON_NULL);
    return code;
}

static int of_metadata(facts *f, const entry *e)
{
    json_iter it = json_begin(e->data);
    int code = 0;

    while (!code && json_next(&it)) {
        const char *key;
        size_t size;
        int plain = json_plain(it.key, &key, &size);

        if (plain && size == 8 && !memcmp(key, "settings", 8))
            code = of_members(f, e, it.value, "settings.");
        else if (plain && size == 8 && !memcmp(key, "metadata", 8))
            code = of_members(f, e, it.value, "metadata.");
        else
            code =
                add_named(f, FACT_METADATA, e, 0, "", it.key, it.value.type == JSON_NULL);
    }
    return code;
}

/* Which entry a fact ends: the member of that name; -1: it names none before itself. */
static int ends(const entry *e, const char *member, sessile_id *out)
{
    const char *text;
    size_t size;

    if (!json_plain(json_get(e->data, member), &text, &size) ||
        id_parse(text, size, out) || *out >= e->id)
        return -1;
    return 0;
}

static int of_pending_run(facts *f, const entry *e)
{
    sessile_id about;

    if (!is_true(json_get(e->data, "off")))
        return facts_add(f, FACT_PENDING_RUN, e->id, e->id, "", 0, 0);
    return ends(e, "pending_run", &about)
               ? 0
               : facts_add(f, FACT_PENDING_RUN, e->id, about, "", 0, 1);
}

/* A tombstone that withdraws a checkpoint. (One that stands in for what was lost names
 * nothing.) */
static int of_tombstone(facts *f, const entry *e)
{
    sessile_id about;

    if (ends(e, "withdraws", &about))
        return 0;
    for (uint32_t i = f->newest[FACT_CHECKPOINT]; i-- > 0;) {
        fact one = f->at[i];
        if (one.kind != FACT_CHECKPOINT || one.about != about || one.off)
            continue;
        buf name;
        int code = -1;
        buf_init(&name, f->names.alloc);
        buf_put(&name, fact_name(f, &one), one.name_size); /* names may move */
        if (!name.failed)
            code = facts_add(f, FACT_CHECKPOINT, e->id, about, name.size ? name.data : "",
                             name.size, 1);
        buf_deinit(&name);
        return code;
    }
    return 0;
}

int facts_of_entry(facts *f, const entry *e)
{
    switch (e->type) {
    case ENTRY_LABEL:
        return of_label(f, e);
    case ENTRY_METADATA:
        return of_metadata(f, e);
    case ENTRY_CHECKPOINT:
        return add_named(f, FACT_CHECKPOINT, e, e->id, "", json_get(e->data, "name"), 0);
    case ENTRY_SUSPEND:
        return facts_add(f, FACT_SUSPEND, e->id, 0, "", 0,
                         is_true(json_get(e->data, "off")));
    case ENTRY_PENDING_RUN:
        return of_pending_run(f, e);
    case ENTRY_TOMBSTONE:
        return of_tombstone(f, e);
    default:
        return 0;
    }
}

/* ------------------------------------------------------------------ in force */

int fact_is_named(const facts *f, const fact *one, const char *name, size_t size)
{
    return one->name_size == size && (!size || !memcmp(fact_name(f, one), name, size));
}

int facts_changed_pin(const facts *f, sessile_id entry)
{
    const fact *one = f->count ? &f->at[f->count - 1] : NULL;

    return one && one->entry == entry && one->kind == FACT_LABEL &&
           fact_is_named(f, one, FACT_PINNED, sizeof FACT_PINNED - 1);
}

const char *fact_name(const facts *f, const fact *one)
{
    return one->name_size ? f->names.data + one->name_at : "";
}

const fact *facts_find(const facts *f, fact_kind kind, sessile_id about, const char *name,
                       size_t name_size)
{
    /* One after the other: faster than from each to the one before of its kind. */
    for (uint32_t i = f->newest[kind]; i-- > 0;) {
        const fact *one = &f->at[i];
        if (one->kind == kind && one->about == about &&
            fact_is_named(f, one, name, name_size))
            return one->off ? NULL : one;
    }
    return NULL;
}

/* While sorting, the names are wanted: qsort has no argument for them. */
typedef struct named {
    fact one;
    const char *name;
    size_t at; /* its place in the list: later is newer */
} named;

static int compare_subject(const named *a, const named *b)
{
    uint32_t size =
        a->one.name_size < b->one.name_size ? a->one.name_size : b->one.name_size;
    int order;

    if (a->one.about != b->one.about)
        return a->one.about < b->one.about ? -1 : 1;
    if (a->one.kind != b->one.kind)
        return a->one.kind < b->one.kind ? -1 : 1;
    order = size ? memcmp(a->name, b->name, size) : 0;
    if (order)
        return order;
    return a->one.name_size < b->one.name_size ? -1 : a->one.name_size > b->one.name_size;
}

static int by_subject(const void *x, const void *y)
{
    const named *a = x, *b = y;
    int order = compare_subject(a, b);

    return order ? order : a->at > b->at ? -1 : 1; /* newest first */
}

static int by_entry(const void *x, const void *y)
{
    const fact *a = x, *b = y;

    if (a->about != b->about)
        return a->about < b->about ? -1 : 1;
    if (a->entry != b->entry)
        return a->entry < b->entry ? -1 : 1;
    return a->name_at < b->name_at ? -1 : 1;
}

static int newest(const facts *f, fact_kind kind, int with_taken_back, const allocator *a,
                  fact **out, size_t *count)
{
    named *all;
    size_t n = 0, kept = 0;

    *out = NULL;
    *count = 0;
    for (size_t i = 0; i < f->count; i++)
        n += !kind || f->at[i].kind == kind;
    if (!n)
        return 0;
    all = mem_alloc(a, n * sizeof *all);
    if (!all)
        return -1;
    n = 0;
    for (size_t i = 0; i < f->count; i++)
        if (!kind || f->at[i].kind == kind)
            all[n++] = (named){f->at[i], fact_name(f, &f->at[i]), i};
    qsort(all, n, sizeof *all, by_subject);
    for (size_t i = 0; i < n; i++) {
        int first = i == 0 || compare_subject(&all[i - 1], &all[i]) != 0;
        all[i].at = first && (!all[i].one.off ||
                              (with_taken_back && all[i].one.kind == FACT_METADATA));
        kept += all[i].at;
    }
    if (kept) {
        *out = mem_alloc(a, kept * sizeof **out);
        if (*out) {
            for (size_t i = 0; i < n; i++)
                if (all[i].at)
                    (*out)[(*count)++] = all[i].one;
            qsort(*out, *count, sizeof **out, by_entry);
        }
    }
    mem_free(a, all, n * sizeof *all);
    return kept && !*out ? -1 : 0;
}

/* Of a kind whose facts are each about themselves: in the order of the log, which is
 * theirs, without sorting. Few are in force at any time, and the oldest end first. */
static int own_in_force(const facts *f, fact_kind kind, const allocator *a, fact **out,
                        size_t *count)
{
    fact *kept = NULL;
    size_t n = 0, capacity = 0;

    *out = NULL;
    *count = 0;
    for (size_t i = 0; i < f->count; i++) {
        const fact *one = &f->at[i];
        size_t at = 0;
        if (one->kind != kind)
            continue;
        if (!one->off) {
            if (mem_grow(a, (void **)&kept, &capacity, n + 1, sizeof *kept)) {
                mem_free(a, kept, capacity * sizeof *kept);
                return -1;
            }
            kept[n++] = *one;
            continue;
        }
        while (at < n && kept[at].about != one->about)
            at++;
        if (at < n)
            memmove(&kept[at], &kept[at + 1], (--n - at) * sizeof *kept);
    }
    if (n) {
        *out = mem_alloc(a, n * sizeof **out);
        if (*out) {
            memcpy(*out, kept, n * sizeof **out);
            *count = n;
        }
    }
    mem_free(a, kept, capacity * sizeof *kept);
    return n && !*out ? -1 : 0;
}

int facts_in_force(const facts *f, fact_kind kind, const allocator *a, fact **out,
                   size_t *count)
{
    if (kind == FACT_CHECKPOINT || kind == FACT_PENDING_RUN)
        return own_in_force(f, kind, a, out, count);
    return newest(f, kind, 0, a, out, count);
}

int facts_newest(const facts *f, fact_kind kind, const allocator *a, fact **out,
                 size_t *count)
{
    return newest(f, kind, 1, a, out, count);
}

/* -------------------------------------------------------------------- labels */

int facts_labels(const facts *f, facts *into)
{
    const allocator *a = f->names.alloc;
    size_t count;
    fact *list;
    int code;

    if (!f->count)
        return 0;
    code = facts_in_force(f, FACT_LABEL, a, &list, &count);
    for (size_t i = 0; !code && i < count; i++)
        if (!fact_is_named(f, &list[i], FACT_PINNED, sizeof FACT_PINNED - 1))
            code = facts_add(into, FACT_LABEL, list[i].entry, list[i].about,
                             fact_name(f, &list[i]), list[i].name_size, 0);
    mem_free(a, list, count * sizeof *list);
    return code;
}

size_t facts_labels_of(const facts *labels, sessile_id about, const fact **out)
{
    size_t low = 0, high = labels->count, count = 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (labels->at[middle].about < about)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + count < labels->count && labels->at[low + count].about == about)
        count++;
    *out = count ? &labels->at[low] : NULL;
    return count;
}

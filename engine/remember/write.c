/*
 * write.c: a request to write becomes a proposed entry.
 *
 *     write{ value=, key=, also=, kind=, from=, of=, replaces=, importance=, ttl=,
 *            holds={from=,to=}, metadata=, memory= }
 *
 * `from` names messages that were shown, `of` entries that it was concluded from, and
 * `replaces` entries in whose place it stands, which are of the memory it is written to.
 * The script does not say whose words it is: that is worked out (sources.c). A proposed
 * entry that turns out to be wrong is dropped by its caller, with the run.
 */
#include "remember/proposal.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "memory/kinds.h"

/* Texts of an entry, by where they are in it; decoded one after the other into `text`. */
static const struct {
    const char *name;
    size_t at;
} texts[] = {
    {"value", offsetof(sessile_memory_write_entry, value)},
    {"key", offsetof(sessile_memory_write_entry, key)},
    {"also", offsetof(sessile_memory_write_entry, also)},
};
enum { TEXTS = sizeof texts / sizeof *texts };

static sessile_slice *slice_at(sessile_memory_write_entry *e, size_t at)
{
    return (sessile_slice *)(void *)((char *)e + at);
}

static sessile_status wrong(json name, const char *wanted, sessile_error *err)
{
    return fail(err, SESSILE_INVALID, "write: %.*s is %s",
                (int)utf8_floor(name.at, name.size, 40), name.at, wanted);
}

static int take_time(json value, int64_t *out)
{
    const char *text;
    size_t size;
    if (!json_int(value, out))
        return 0;
    return json_plain(value, &text, &size) ? time_parse(text, size, out) : -1;
}

static sessile_status take_holds(sessile_memory_write_entry *e, json name, json holds,
                                 sessile_error *err)
{
    json from = json_get(holds, "from"), to = json_get(holds, "to");
    if (holds.type != JSON_OBJECT ||
        (from.type != JSON_NONE && take_time(from, &e->holds_from_ms)) ||
        (to.type != JSON_NONE && take_time(to, &e->holds_until_ms)))
        return wrong(name, "a table of times, from and to", err);
    return SESSILE_OK;
}

/* The members of numbers, choices and lists. */
static sessile_status take_member(proposal *p, proposed *x, json name, json value,
                                  sessile_error *err)
{
    sessile_memory_write_entry *e = &x->entry;

    if (json_is(name, "kind"))
        return memory_kind_of(value, &e->kind)
                   ? wrong(name, "fact, episode, reflection or procedure", err)
                   : SESSILE_OK;
    if (json_is(name, "from"))
        return proposal_take_ids(p, value, "from", &x->from, NULL, err);
    if (json_is(name, "of"))
        return proposal_take_ids(p, value, "of", &x->of, &x->of_memory, err);
    if (json_is(name, "replaces"))
        return proposal_take_ids(p, value, "replaces", &x->ids, &x->memory, err);
    if (json_is(name, "importance"))
        return json_double(value, &e->importance) ||
                       !(e->importance >= 0 && e->importance <= 1)
                   ? wrong(name, "a number from 0 to 1", err)
                   : SESSILE_OK;
    if (json_is(name, "ttl"))
        return json_int(value, &e->ttl_ms) || e->ttl_ms < 0
                   ? wrong(name, "a number of milliseconds", err)
                   : SESSILE_OK;
    if (json_is(name, "holds"))
        return take_holds(e, name, value, err);
    return fail(
        err, SESSILE_INVALID,
        "write has no %.*s: there are value, key, also, kind, from, of, replaces, "
        "importance, ttl, holds, metadata and memory",
        (int)utf8_floor(name.at, name.size, 40), name.at);
}

/* The memory that it names, before what else names entries of one. */
static sessile_status take_memory(const proposal *p, proposed *x, json value,
                                  sessile_error *err)
{
    x->memory = x->of_memory = PROPOSAL_MEMORIES; /* not known yet */
    for (size_t i = 0; i < p->memory_count; i++)
        if (json_is(value, proposal_memory_name(p, i)))
            x->memory = i;
    if (value.type != JSON_NONE && x->memory == PROPOSAL_MEMORIES)
        return fail(err, SESSILE_INVALID,
                    "write: memory is \"user\" or \"agent\", as far as there is such a "
                    "memory");
    return SESSILE_OK;
}

/* Members that others have taken. */
static int is_taken(json name)
{
    for (size_t i = 0; i < TEXTS; i++)
        if (json_is(name, texts[i].name))
            return 1;
    return json_is(name, "metadata") || json_is(name, "memory");
}

/* What the engine says of an entry is not copied from another one. */
static void put_metadata(buf *out, json metadata)
{
    const char *before = "{";

    if (metadata.type != JSON_OBJECT)
        return;
    for (json_iter it = json_begin(metadata); json_next(&it);) {
        if (json_is(it.key, "pending_because") || json_is(it.key, "contradicts") ||
            json_is(it.key, "lowered") || json_is(it.key, "flagged"))
            continue;
        buf_puts(out, before);
        buf_put(out, it.key.at, it.key.size);
        buf_putc(out, ':');
        buf_put(out, it.value.at, it.value.size);
        before = ",";
    }
    buf_puts(out, *before == '{' ? "{}" : "}");
}

/* Decodes the texts, then sets the slices: the buffer may have moved on the way. */
static sessile_status take_texts(proposed *x, json entry, sessile_error *err)
{
    size_t ends[TEXTS + 2] = {0};
    json metadata = json_get(entry, "metadata");

    for (size_t i = 0; i < TEXTS; i++) {
        json text = json_get(entry, texts[i].name);
        if (text.type != JSON_STRING && text.type != JSON_NONE)
            return fail(err, SESSILE_INVALID, "write: %s is a text", texts[i].name);
        if (text.type == JSON_STRING && json_string(&x->text, text))
            return fail_nomem(err);
        ends[i + 1] = x->text.size;
    }
    if (metadata.type != JSON_OBJECT && metadata.type != JSON_NONE)
        return fail(err, SESSILE_INVALID, "write: metadata is a table with names");
    put_metadata(&x->text, metadata);
    ends[TEXTS + 1] = x->text.size;
    buf_putc(&x->text, 0);
    if (x->text.failed)
        return fail_nomem(err);
    for (size_t i = 0; i < TEXTS; i++)
        *slice_at(&x->entry, texts[i].at) =
            (sessile_slice){x->text.data + ends[i], ends[i + 1] - ends[i]};
    x->entry.metadata =
        (sessile_slice){x->text.data + ends[TEXTS], ends[TEXTS + 1] - ends[TEXTS]};
    if (!x->entry.value.size)
        return fail(err, SESSILE_INVALID, "write needs a value that is not empty");
    return SESSILE_OK;
}

sessile_status proposal_take_write(proposal *p, size_t step, json entry,
                                   sessile_error *err)
{
    proposed *x;
    sessile_status status = SESSILE_OK;

    if (entry.type != JSON_OBJECT)
        return fail(err, SESSILE_INVALID, "write takes a table");
    x = proposal_add(p, PROPOSED_WRITE, p->target, step);
    if (!x)
        return fail_nomem(err);
    x->entry.was = SESSILE_NO_ID;
    status = take_memory(p, x, json_get(entry, "memory"), err);
    for (json_iter it = json_begin(entry); !status && json_next(&it);)
        if (!is_taken(it.key))
            status = take_member(p, x, it.key, it.value, err);
    if (x->memory == PROPOSAL_MEMORIES)
        x->memory = p->target;
    if (x->of_memory == PROPOSAL_MEMORIES)
        x->of_memory = x->memory;
    return status ? status : take_texts(x, entry, err);
}

/* ------------------------------------------------------------------ of the host */

static void copy_slice(buf *text, sessile_slice from)
{
    buf_put(text, from.data, from.size);
}

/* Sources: their names follow each other in source_text. */
static sessile_status copy_sources(proposal *p, proposed *x,
                                   const sessile_memory_write_entry *e,
                                   sessile_error *err)
{
    size_t at = 0;

    if (!e->from_count)
        return SESSILE_OK;
    x->sources = mem_alloc(p->alloc, e->from_count * sizeof *x->sources);
    if (!x->sources)
        return fail_nomem(err);
    x->source_count = e->from_count;
    for (size_t i = 0; i < e->from_count; i++) {
        copy_slice(&x->source_text, e->from[i].session);
        copy_slice(&x->source_text, e->from[i].agent);
    }
    if (x->source_text.failed)
        return fail_nomem(err);
    for (size_t i = 0; i < e->from_count; i++) {
        x->sources[i] = e->from[i];
        x->sources[i].session.data = x->source_text.data + at;
        at += e->from[i].session.size;
        x->sources[i].agent.data = x->source_text.data + at;
        at += e->from[i].agent.size;
    }
    return SESSILE_OK;
}

sessile_status proposal_take_host(proposal *p, size_t memory,
                                  const sessile_memory_write_entry *entry,
                                  sessile_error *err)
{
    proposed *x = proposal_add(p, PROPOSED_WRITE, memory, 0);
    const sessile_slice all[] = {entry->value, entry->key, entry->also, entry->author,
                                 entry->metadata};
    sessile_slice *to[sizeof all / sizeof *all];
    sessile_status status;
    size_t at = 0;

    if (!x)
        return fail_nomem(err);
    x->is_host = 1;
    x->entry = *entry; /* what it points to is the caller's: copied below */
    x->waits = entry->pending;
    to[0] = &x->entry.value;
    to[1] = &x->entry.key;
    to[2] = &x->entry.also;
    to[3] = &x->entry.author;
    to[4] = &x->entry.metadata;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        copy_slice(&x->text, all[i]);
    for (size_t i = 0; i < entry->replace_count; i++)
        if (entry_ids_add(&x->ids, entry->replaces[i], p->alloc))
            return fail_nomem(err);
    buf_putc(&x->text, 0);
    if (x->text.failed)
        return fail_nomem(err);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        to[i]->data = x->text.data + at;
        at += all[i].size;
    }
    x->entry.replaces = x->ids.at;
    status = copy_sources(p, x, entry, err);
    x->entry.from = x->sources;
    return status;
}

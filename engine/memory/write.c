/*
 * write.c: the entries of a memory: what is remembered, verdicts.
 *
 * Arguments are checked before a lock is taken; what depends on the memory (consent, ids,
 * keys) is checked under it.
 */
#include "memory/memory.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "memory/quote.h"

/* ------------------------------------------------------------------ checks */

sessile_status memory_check_text(sessile_slice text, const char *what, size_t most,
                                 const char *limit, sessile_error *err)
{
    if (text.size > most && limit)
        return fail(err, SESSILE_LIMIT,
                    "the %s has %zu bytes, the limit [%s] is %zu: shorten it", what,
                    text.size, limit, most);
    if (text.size > most)
        return fail(err, SESSILE_LIMIT, "the %s has %zu bytes, at most %zu: shorten it",
                    what, text.size, most);
    if (!utf8_valid(text.data, text.size))
        return fail(err, SESSILE_INVALID, "the %s is not UTF-8", what);
    return SESSILE_OK;
}

static sessile_status check_key(sessile_slice key, size_t most, sessile_error *err)
{
    sessile_status status = memory_check_text(key, "key", most, "memory_key", err);
    uint32_t c;
    if (!status && quote_find_hidden(key, &c))
        status = fail(err, SESSILE_INVALID,
                      "a key has no control, invisible or direction characters: it has "
                      "U+%04" PRIX32,
                      c);
    return status;
}

static sessile_status check_from(const sessile_memory_write_entry *e, sessile_error *err)
{
    if (e->from_count > SESSILE_MEMORY_NAMED_MAX ||
        e->replace_count > SESSILE_MEMORY_NAMED_MAX)
        return fail(err, SESSILE_LIMIT,
                    "an entry names at most %d sources, and replaces at most %d entries",
                    SESSILE_MEMORY_NAMED_MAX, SESSILE_MEMORY_NAMED_MAX);
    for (size_t i = 0; i < e->from_count; i++) {
        const sessile_memory_from *f = &e->from[i];
        if (!f->session.size || !utf8_valid(f->session.data, f->session.size) ||
            !utf8_valid(f->agent.data, f->agent.size) || f->first > f->last)
            return fail(err, SESSILE_INVALID,
                        "a source is a session, named in UTF-8, and its messages from "
                        "first to last");
    }
    return SESSILE_OK;
}

sessile_status memory_check_entry(const memory_core *m,
                                  const sessile_memory_write_entry *e, sessile_error *err)
{
    const sessile_limits *limits = &m->store->limits;
    sessile_status status =
        memory_check_text(e->value, "value", limits->memory_value, "memory_value", err);
    if (!status && !e->value.size)
        status = fail(err, SESSILE_INVALID, "an entry needs a value that is not empty");
    if (!status)
        status = check_key(e->key, limits->memory_key, err);
    if (!status)
        status = memory_check_text(e->also, "text of also", limits->memory_value,
                                   "memory_value", err);
    if (!status)
        status = memory_check_text(e->author, "author", limits->id, "id", err);
    if (!status)
        status = check_from(e, err);
    if (!status && !(e->importance >= 0 && e->importance <= 1))
        status = fail(err, SESSILE_INVALID, "importance is a number from 0 to 1");
    if (!status && (e->ttl_ms < 0 || e->ttl_ms > INT64_C(1) << 53))
        status = fail(err, SESSILE_INVALID,
                      "the time to live is a number of milliseconds, or 0 for ever");
    if (!status && e->holds_from_ms && e->holds_until_ms &&
        e->holds_from_ms > e->holds_until_ms)
        status =
            fail(err, SESSILE_INVALID, "an entry holds from a time until a later one");
    if (!status && (!memory_kind_name(e->kind) || !memory_source_name(e->source)))
        status = fail(err, SESSILE_INVALID, "there is no such kind or source");
    if (!status && e->has_was && !e->key.size)
        status = fail(err, SESSILE_INVALID, "what was there is said of a key: give one");
    return status;
}

/* ------------------------------------------------------------------ entries */

void memory_put_id(buf *out, sessile_id id)
{
    char text[9];
    id_print(id, text);
    buf_printf(out, "\"%s\"", text);
}

void memory_put_ids(buf *out, const sessile_id *ids, size_t count)
{
    buf_putc(out, '[');
    for (size_t i = 0; i < count; i++) {
        buf_puts(out, i ? "," : "");
        memory_put_id(out, ids[i]);
    }
    buf_putc(out, ']');
}

void memory_put_member(buf *out, const char *name, sessile_slice text)
{
    if (!text.size)
        return;
    buf_printf(out, ",\"%s\":", name);
    json_put_string(out, text.data, text.size);
}

static void put_from(buf *out, const memory_core *m, const sessile_memory_write_entry *e)
{
    for (size_t i = 0; i < e->from_count; i++) {
        const sessile_memory_from *f = &e->from[i];
        buf_puts(out, i ? ",{\"session\":" : ",\"from\":[{\"session\":");
        header_put_name(out, f->session);
        buf_puts(out, ",\"agent\":");
        header_put_name(out, f->agent.size ? f->agent
                                           : (sessile_slice){m->agent, m->agent_size});
        buf_puts(out, ",\"first\":");
        memory_put_id(out, f->first);
        buf_puts(out, ",\"last\":");
        memory_put_id(out, f->last);
        buf_puts(out, i + 1 < e->from_count ? "}" : "}]");
    }
}

static void put_holds(buf *out, const sessile_memory_write_entry *e)
{
    char time[TIME_SIZE];
    if (!e->holds_from_ms && !e->holds_until_ms)
        return;
    buf_puts(out, ",\"holds\":{");
    if (e->holds_from_ms) {
        time_print(e->holds_from_ms, time);
        buf_printf(out, "\"from\":\"%s\"%s", time, e->holds_until_ms ? "," : "");
    }
    if (e->holds_until_ms) {
        time_print(e->holds_until_ms, time);
        buf_printf(out, "\"to\":\"%s\"", time);
    }
    buf_putc(out, '}');
}

static void put_entry(buf *out, const memory_core *m, const sessile_memory_write_entry *e,
                      sessile_slice metadata, sessile_slice policy)
{
    buf_puts(out, "{\"value\":");
    json_put_string(out, e->value.data, e->value.size);
    memory_put_member(out, "key", e->key);
    buf_printf(out, ",\"kind\":\"%s\"", memory_kind_name(e->kind));
    memory_put_member(out, "also", e->also);
    put_from(out, m, e);
    if (e->replace_count) {
        buf_puts(out, ",\"replaces\":");
        memory_put_ids(out, e->replaces, e->replace_count);
    }
    if (e->importance >= 0.5e-6) {
        buf_puts(out, ",\"importance\":");
        json_put_millionths(out, e->importance);
    }
    if (e->ttl_ms)
        buf_printf(out, ",\"ttl_ms\":%" PRIi64, e->ttl_ms);
    put_holds(out, e);
    if (metadata.size) {
        buf_puts(out, ",\"metadata\":");
        buf_put(out, metadata.data, metadata.size);
    }
    if (policy.size) {
        buf_puts(out, ",\"policy\":");
        buf_put(out, policy.data, policy.size);
    }
    if (e->pending)
        buf_puts(out, ",\"pending\":true");
    buf_putc(out, '}');
}

sessile_id memory_add(memory_core *m, batch *b, entry_type type, entry_source source,
                      sessile_slice author, const buf *data)
{
    entry_fields fields = {.type = type,
                           .parent = 0,
                           .source = source,
                           .data = data->data,
                           .data_size = data->size,
                           .tokens = -1};
    sessile_id id = batch_next(b);
    buf name, user;

    buf_init(&name, b->alloc);
    buf_init(&user, b->alloc);
    if (!author.size)
        author = (sessile_slice){m->agent, m->agent_size};
    if (utf8_valid(author.data, author.size)) {
        json_put_string(&name, author.data, author.size);
        fields.author_json = name.data;
    }
    if (m->user_size && utf8_valid(m->user, m->user_size)) {
        json_put_string(&user, m->user, m->user_size);
        fields.user_json = user.data;
    }
    if (name.failed || user.failed || data->failed)
        b->text.failed = 1;
    else
        batch_add(b, &fields);
    buf_deinit(&name);
    buf_deinit(&user);
    return id;
}

sessile_id memory_add_entry(memory_core *m, batch *b, const sessile_memory_write_entry *e,
                            sessile_slice metadata, sessile_slice policy)
{
    static const entry_source sources[] = {SOURCE_USER, SOURCE_AGENT, SOURCE_TOOL,
                                           SOURCE_SYSTEM};
    sessile_id id;
    buf data;

    buf_init(&data, b->alloc);
    put_entry(&data, m, e, metadata, policy);
    id = memory_add(m, b, ENTRY_MEMORY, sources[e->source], e->author, &data);
    buf_wipe(&data);
    return id;
}

/* What is written of an entry of the caller's. */
typedef struct written {
    sessile_memory_write_entry entry; /* as screens left it */
    memory_words words;
    buf metadata; /* checked */
} written;

typedef struct writing {
    written *entries;
    size_t count;
    sessile_id *ids;
    const sessile_memory_change *change; /* NULL: entries alone */
} writing;

/* CONFLICT unless these entries are live. */
static sessile_status check_live(const memory_core *m, const sessile_id *ids,
                                 size_t count, int64_t now_ms, sessile_error *err)
{
    const states *s = &m->fold->states;
    for (size_t i = 0; i < count; i++) {
        uint32_t record = states_find(s, ids[i]);
        if (record != STATE_NONE && states_of(s, record, now_ms) != SESSILE_MEMORY_LIVE)
            return fail(err, SESSILE_CONFLICT,
                        "%08" PRIx32 " is not live any more: it was %s meanwhile", ids[i],
                        memory_state_name(states_of(s, record, now_ms)));
    }
    return SESSILE_OK;
}

static sessile_status check_change(const memory_core *m, const sessile_memory_change *c,
                                   int64_t now_ms, sessile_error *err)
{
    sessile_status status = check_live(m, c->ends, c->end_count, now_ms, err);
    for (size_t i = 0; !status && i < c->count; i++)
        status = check_live(m, c->entries[i].replaces, c->entries[i].replace_count,
                            now_ms, err);
    return status;
}

sessile_status memory_check_was(const memory_core *m, const sessile_memory_write_entry *e,
                                int64_t now_ms, sessile_error *err)
{
    const states *s = &m->fold->states;
    uint32_t holder = states_holder(s, states_slot(s, e->key), now_ms);
    sessile_id live = SESSILE_NO_ID;

    if (holder != STATE_NONE)
        live = s->records[holder].id;
    for (size_t k = 0; k < e->replace_count; k++)
        if (states_find(s, e->replaces[k]) == STATE_NONE)
            return fail(err, SESSILE_NOTFOUND,
                        "%08" PRIx32 ", which is to be replaced, is no entry here",
                        e->replaces[k]);
    if (!e->has_was || live == e->was)
        return SESSILE_OK;
    if (live == SESSILE_NO_ID)
        return fail(err, SESSILE_CONFLICT,
                    "the key has no live entry any more: read it again");
    return fail(err, SESSILE_CONFLICT,
                "the live entry of the key is %08" PRIx32 " now: read it again", live);
}

/* The verdict that pins an entry of this commit. */
static void add_pin(memory_core *m, batch *b, sessile_id id,
                    const sessile_memory_change *change)
{
    buf data;
    buf_init(&data, b->alloc);
    buf_puts(&data, "{\"of\":");
    memory_put_ids(&data, &id, 1);
    buf_printf(&data, ",\"to\":\"%s\"", memory_verdict_name(SESSILE_MEMORY_PIN));
    if (change)
        memory_put_member(&data, "by", change->by);
    buf_putc(&data, '}');
    memory_add(m, b, ENTRY_VERDICT, SOURCE_HOST, (sessile_slice){NULL, 0}, &data);
    buf_wipe(&data);
}

static sessile_status build_entries(void *arg, memory_core *m, batch *b,
                                    sessile_error *err)
{
    static const sessile_slice no_policy = {NULL, 0};
    writing *w = arg;
    sessile_status status = w->count ? memory_check_consent(m, err) : SESSILE_OK;

    if (!status && w->change && w->change->only_live)
        status = check_change(m, w->change, b->now_ms, err);

    if (!status && m->fold->states.count + w->count > m->store->limits.memory_entries)
        return fail(err, SESSILE_LIMIT,
                    "this memory has %zu entries, the limit [memory_entries] is %" PRIu64
                    ": erase ended ones",
                    m->fold->states.count, m->store->limits.memory_entries);
    for (size_t i = 0; !status && i < w->count; i++) {
        const sessile_memory_write_entry *e = &w->entries[i].entry;
        const buf *metadata = &w->entries[i].metadata;
        status = memory_check_was(m, e, b->now_ms, err);
        if (status)
            return status;
        w->ids[i] = memory_add_entry(
            m, b, e, (sessile_slice){metadata->data, metadata->size}, no_policy);
        if (e->pinned)
            add_pin(m, b, w->ids[i], w->change);
    }
    if (!status && w->change)
        status =
            memory_add_verdicts(m, b, w->change->ends, w->change->end_count,
                                w->change->to, w->change->reason, w->change->by, err);
    return status;
}

/* Checks all of them, then screens them. */
static sessile_status check_entries(memory_core *m, const writing *w, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    for (size_t i = 0; !status && i < w->count; i++) {
        written *to = &w->entries[i];
        status = memory_check_entry(m, &to->entry, err);
        if (!status)
            status =
                session_check_metadata(&to->metadata, m->store, to->entry.metadata, err);
        if (!status)
            status =
                memory_screen_entry(m->store, &to->entry, &to->words, &to->metadata, err);
        if (status && w->count > 1)
            fail_prefix(err, "entry %zu of %zu", i + 1, w->count);
    }
    return status;
}

static sessile_status write_all(memory_core *m, const sessile_memory_write_entry *entries,
                                size_t count, const sessile_memory_change *change,
                                sessile_id *ids, sessile_error *err)
{
    const allocator *a = &m->store->alloc;
    written *own = mem_alloc(a, (count + 1) * sizeof *own);
    sessile_id *made = mem_alloc(a, (count + 1) * sizeof *made);
    writing w = {own, count, made, change};
    sessile_status status = own && made ? SESSILE_OK : fail_nomem(err);

    for (size_t i = 0; !status && i < count; i++) {
        own[i].entry = entries[i];
        memory_words_init(&own[i].words, a);
        buf_init(&own[i].metadata, a);
    }
    if (!status) {
        status = check_entries(m, &w, err);
        if (!status && (count || change))
            status = memory_commit(m, build_entries, &w, err);
        if (!status && ids)
            memcpy(ids, made, count * sizeof *ids);
        for (size_t i = 0; i < count; i++) {
            memory_words_deinit(&own[i].words);
            buf_wipe(&own[i].metadata);
        }
    }
    mem_free(a, own, (count + 1) * sizeof *own);
    mem_free(a, made, (count + 1) * sizeof *made);
    return status;
}

sessile_status memory_write(memory_core *m, const sessile_memory_write_entry *entries,
                            size_t count, sessile_id *ids, sessile_error *err)
{
    return write_all(m, entries, count, NULL, ids, err);
}

sessile_status memory_change(memory_core *m, const sessile_memory_change *c,
                             sessile_id *ids, sessile_error *err)
{
    sessile_status status = memory_check_verdict(m, c->to, c->reason, c->by, err);
    return status ? status : write_all(m, c->entries, c->count, c, ids, err);
}

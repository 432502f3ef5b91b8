/*
 * filter.c: which entries a caller wants.
 *
 * What a record tells is asked first. Only for the rest (when an entry holds, its
 * metadata, its other sources) it is read from the log.
 */
#include "memory/filter.h"

#include <string.h>

sessile_status memory_filter_init(memory_filter *f, memory_core *m,
                                  const sessile_memory_filter *wanted, int64_t now_ms,
                                  sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    memset(f, 0, sizeof *f);
    f->memory = m;
    f->wanted = wanted;
    f->states = wanted->states ? wanted->states : 1u << SESSILE_MEMORY_LIVE;
    f->now_ms = now_ms;
    buf_init(&f->metadata, &m->store->alloc);
    buf_init(&f->entry, &m->store->alloc);
    if (wanted->session.size)
        f->session = memory_session_hash(&m->fold->states.key,
                                         wanted->session_agent.size
                                             ? wanted->session_agent
                                             : (sessile_slice){m->agent, m->agent_size},
                                         wanted->session);
    if (!wanted->metadata_json.size)
        return SESSILE_OK;
    status = json_check(&f->metadata, wanted->metadata_json.data,
                        wanted->metadata_json.size, m->store->limits.depth, err);
    if (status)
        fail_prefix(err, "the value of metadata that is looked for");
    else if (!wanted->metadata_name.size)
        status = fail(err, SESSILE_INVALID,
                      "a value of metadata is looked for: name the member that has it");
    return status;
}

void memory_filter_deinit(memory_filter *f)
{
    buf_wipe(&f->metadata);
    buf_wipe(&f->entry);
}

static int in_set(unsigned set, unsigned value)
{
    return !set || (set >> value & 1);
}

static int has_prefix(const states *s, const memory_record *r, sessile_slice prefix)
{
    const memory_slot *slot;
    if (!prefix.size)
        return 1;
    if (r->slot == STATE_NONE)
        return 0;
    slot = &s->slots[r->slot];
    return slot->size >= prefix.size && !memcmp(slot->key, prefix.data, prefix.size);
}

static int from_session(memory_filter *f, const memory_entry *e)
{
    const memory_core *m = f->memory;
    uint64_t hash;
    int got;
    for (size_t n = 0; (got = memory_from_hash(e, n, &m->fold->states.key,
                                               &m->store->alloc, &hash)) > 0;
         n++)
        if (hash == f->session)
            return 1;
    if (got < 0)
        f->status = fail_nomem(&f->err);
    return 0;
}

/* Whether a member has the value that is looked for. Strings are compared decoded, all
 * else as it is spelt: 1 and 1.0 differ. */
static int has_value(memory_filter *f, json value)
{
    json wanted = json_of(f->metadata.data, f->metadata.size);
    buf a, b;
    int same;

    if (value.type != wanted.type)
        return 0;
    if (value.type != JSON_STRING)
        return value.size == wanted.size && !memcmp(value.at, wanted.at, value.size);
    buf_init(&a, &f->memory->store->alloc);
    buf_init(&b, &f->memory->store->alloc);
    if (json_string(&a, value) || json_string(&b, wanted))
        f->status = fail_nomem(&f->err);
    same = !f->status && a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size));
    buf_deinit(&a);
    buf_deinit(&b);
    return same;
}

static int has_member(memory_filter *f, const memory_entry *e)
{
    sessile_slice name = f->wanted->metadata_name;
    int found = 0;
    buf key;

    if (e->metadata.type != JSON_OBJECT)
        return 0;
    buf_init(&key, &f->memory->store->alloc);
    for (json_iter it = json_begin(e->metadata); !found && json_next(&it);) {
        buf_clear(&key);
        if (json_string(&key, it.key))
            f->status = fail_nomem(&f->err);
        found = key.size == name.size && !memcmp(key.data, name.data, name.size) &&
                (!f->metadata.size || has_value(f, it.value));
    }
    buf_deinit(&key);
    return found;
}

/* What only the entry itself tells. */
static int look(memory_filter *f, const memory_record *r)
{
    const sessile_memory_filter *w = f->wanted;
    memory_entry data;
    entry e;

    buf_clear(&f->entry);
    f->status = log_read(f->memory->log, r->id, &f->entry, &f->err);
    if (!f->status)
        f->status = entry_read(&e, f->entry.data, f->entry.size, &f->err);
    if (!f->status)
        f->status = memory_entry_read(&data, &e, &f->err);
    if (f->status)
        return 0;
    return (!w->holds_at_ms ||
            (data.from_ms <= w->holds_at_ms && w->holds_at_ms < data.to_ms)) &&
           (!f->session || from_session(f, &data)) &&
           (!w->metadata_name.size || has_member(f, &data));
}

int memory_filter_pass(void *arg, uint32_t record)
{
    memory_filter *f = arg;
    const states *s = &f->memory->fold->states;
    const memory_record *r = &s->records[record];
    const sessile_memory_filter *w = f->wanted;

    if (f->status || !in_set(f->states, states_of(s, record, f->now_ms)) ||
        !in_set(w->kinds, r->kind) || !in_set(w->sources, r->source) ||
        r->time_ms < w->since_ms || (w->until_ms && r->time_ms >= w->until_ms) ||
        !has_prefix(s, r, w->key_prefix))
        return 0;
    if (f->session && r->session == STATE_NONE)
        return 0;
    return (!w->holds_at_ms && !f->session && !w->metadata_name.size) || look(f, r);
}

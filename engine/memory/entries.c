/*
 * entries.c: what the entries of a memory's log say.
 *
 * Must never refuse a member that it does not know: a newer version may have written it.
 */
#include "memory/entries.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "session/header.h"

static int time_of(json value, int64_t *out)
{
    const char *text;
    size_t size;
    return json_plain(value, &text, &size) ? time_parse(text, size, out) : -1;
}

/* A member that is not there, or of its type. */
static int is_a(json value, json_type type)
{
    return value.type == JSON_NONE || value.type == type;
}

static int take_times(memory_entry *out, const entry *e, json ttl, json holds)
{
    json from = json_get(holds, "from"), to = json_get(holds, "to");
    uint64_t ttl_ms;

    if (ttl.type != JSON_NONE) {
        if (json_uint(ttl, &ttl_ms) || ttl_ms > UINT64_C(1) << 53)
            return -1;
        out->expires_ms = e->time_ms + (int64_t)ttl_ms;
    }
    if ((from.type != JSON_NONE && time_of(from, &out->from_ms)) ||
        (to.type != JSON_NONE && time_of(to, &out->to_ms)))
        return -1;
    return 0;
}

sessile_status memory_entry_read(memory_entry *out, const entry *e, sessile_error *err)
{
    json kind = {0}, importance = {0}, ttl = {0}, holds = {0}, pending = {0},
         erased = {0};
    char id[9];
    int good;

    memset(out, 0, sizeof *out);
    out->from_ms = INT64_MIN;
    out->to_ms = INT64_MAX;
    for (json_iter it = json_begin(e->data); json_next(&it);) {
        json_fill(&out->key, it.value, it.key, "key");
        json_fill(&out->value, it.value, it.key, "value");
        json_fill(&out->also, it.value, it.key, "also");
        json_fill(&out->from, it.value, it.key, "from");
        json_fill(&out->replaces, it.value, it.key, "replaces");
        json_fill(&out->metadata, it.value, it.key, "metadata");
        json_fill(&out->policy, it.value, it.key, "policy");
        json_fill(&kind, it.value, it.key, "kind");
        json_fill(&importance, it.value, it.key, "importance");
        json_fill(&ttl, it.value, it.key, "ttl_ms");
        json_fill(&holds, it.value, it.key, "holds");
        json_fill(&pending, it.value, it.key, "pending");
        json_fill(&erased, it.value, it.key, "erased");
    }
    out->erased = erased.type == JSON_TRUE;
    good = (out->value.type == JSON_STRING || out->erased) &&
           is_a(out->key, JSON_STRING) && is_a(out->also, JSON_STRING) &&
           is_a(out->from, JSON_ARRAY) && is_a(out->replaces, JSON_ARRAY) &&
           is_a(out->metadata, JSON_OBJECT) && is_a(out->policy, JSON_OBJECT) &&
           is_a(holds, JSON_OBJECT);
    if (kind.type != JSON_NONE && memory_kind_of(kind, &out->kind))
        good = 0;
    if (importance.type != JSON_NONE && (json_double(importance, &out->importance) ||
                                         !(out->importance >= 0 && out->importance <= 1)))
        good = 0;
    if (take_times(out, e, ttl, holds))
        good = 0;
    out->pending = pending.type == JSON_TRUE;
    /* Any other source vouches for less than an agent does. */
    out->source = e->source == SOURCE_USER     ? SESSILE_MEMORY_BY_USER
                  : e->source == SOURCE_AGENT  ? SESSILE_MEMORY_BY_AGENT
                  : e->source == SOURCE_SYSTEM ? SESSILE_MEMORY_BY_SYSTEM
                                               : SESSILE_MEMORY_BY_TOOL;
    if (good)
        return SESSILE_OK;
    id_print(e->id, id);
    return fail(err, SESSILE_DAMAGED, "entry %s is of type memory, and says nothing", id);
}

size_t memory_ids(json array, sessile_id *ids, size_t most)
{
    size_t count = 0, size;
    const char *text;
    if (array.type != JSON_ARRAY)
        return 0;
    for (json_iter it = json_begin(array); count < most && json_next(&it);)
        if (json_plain(it.value, &text, &size) && !id_parse(text, size, &ids[count]))
            count++;
    return count;
}

uint64_t memory_session_hash(const hash_key *key, sessile_slice agent,
                             sessile_slice session)
{
    uint64_t parts[] = {hash64_keyed(key, agent.data, agent.size),
                        hash64_keyed(key, session.data, session.size)};
    return hash64_keyed(key, parts, sizeof parts);
}

int memory_from_hash(const memory_entry *m, size_t n, const hash_key *key,
                     const allocator *a, uint64_t *hash)
{
    json_iter it = json_begin(m->from);
    buf agent, session;
    int result = 0;

    if (m->from.type != JSON_ARRAY)
        return 0;
    do
        if (!json_next(&it))
            return 0;
    while (n-- > 0);
    buf_init(&agent, a);
    buf_init(&session, a);
    if (it.value.type == JSON_OBJECT) {
        (void)header_get_name(&agent, json_get(it.value, "agent"));
        (void)header_get_name(&session, json_get(it.value, "session"));
    }
    if (agent.failed || session.failed) {
        result = -1;
    } else {
        *hash = memory_session_hash(key, (sessile_slice){agent.data, agent.size},
                                    (sessile_slice){session.data, session.size});
        result = 1;
    }
    buf_deinit(&agent);
    buf_deinit(&session);
    return result;
}

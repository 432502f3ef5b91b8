/*
 * memories_read.c: what requests have of memories: entries, filters, vectors, and the
 * words of sessile_memory.h. What the engine checks is left to it.
 */
#include "service/memories.h"

#include <string.h>

/* ---------------------------------------------------------------------- words */

static const char *word_at(memory_word what, int i)
{
    switch (what) {
    case WORD_STATE:
        return sessile_memory_state_name((sessile_memory_state)i);
    case WORD_KIND:
        return sessile_memory_kind_name((sessile_memory_kind)i);
    case WORD_SOURCE:
        return sessile_memory_source_name((sessile_memory_source)i);
    case WORD_VERDICT:
        return sessile_memory_verdict_name((sessile_memory_verdict_kind)i);
    }
    return NULL;
}

sessile_status read_word(memory_word what, const char *name, const char *field, int *out,
                         sessile_error *err)
{
    static const char *const all[] = {
        [WORD_STATE] = "live, pending, replaced, deleted, rejected, expired or erased",
        [WORD_KIND] = "fact, episode, reflection or procedure",
        [WORD_SOURCE] = "user, agent, tool or system",
        [WORD_VERDICT] =
            "deleted, rejected, approved, restored, pinned, unpinned or confirmed"};
    const char *word;
    *out = 0;
    if (!*name)
        return SESSILE_OK;
    for (int i = 0; (word = word_at(what, i)); i++)
        if (strcmp(word, name) == 0) {
            *out = i;
            return SESSILE_OK;
        }
    return fail(err, SESSILE_INVALID, "%s is %s", field, all[what]);
}

static sessile_status read_bits(memory_word what, char *const *names, size_t n,
                                const char *field, unsigned *out, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    *out = 0;
    for (size_t i = 0; i < n && !status; i++) {
        int bit;
        status = read_word(what, names[i], field, &bit, err);
        *out |= status ? 0 : 1u << bit;
    }
    return status;
}

sessile_status read_filter(const Sessile__V1__MemoryFilter *from,
                           sessile_memory_filter *out, sessile_error *err)
{
    memset(out, 0, sizeof *out);
    if (!from)
        return SESSILE_OK;
    out->since_ms = from->since_ms;
    out->until_ms = from->until_ms;
    out->holds_at_ms = from->holds_at_ms;
    out->key_prefix = sessile_text(from->key_prefix);
    out->session = sessile_text(from->session);
    out->session_agent = sessile_text(from->session_agent);
    out->metadata_name = sessile_text(from->metadata_name);
    out->metadata_json = json_slice(from->metadata_value);
    sessile_status status = read_bits(WORD_STATE, from->states, from->n_states,
                                      "MemoryFilter.states", &out->states, err);
    if (!status)
        status = read_bits(WORD_KIND, from->kinds, from->n_kinds, "MemoryFilter.kinds",
                           &out->kinds, err);
    if (!status)
        status = read_bits(WORD_SOURCE, from->sources, from->n_sources,
                           "MemoryFilter.sources", &out->sources, err);
    return status;
}

/* ---------------------------------------------------------------------- entries */

static sessile_status read_from(call *c, const Sessile__V1__MemoryEntry *r,
                                sessile_memory_write_entry *out, sessile_error *err)
{
    sessile_memory_from *from = call_new(c, (r->n_from + 1) * sizeof *from);
    if (!from)
        return fail_nomem(err);
    for (size_t i = 0; i < r->n_from; i++)
        from[i] = (sessile_memory_from){
            .session = sessile_text(r->from[i]->session),
            .agent = sessile_text(r->from[i]->agent),
            .first = r->from[i]->first,
            .last = r->from[i]->last,
        };
    out->from = from;
    out->from_count = r->n_from;
    return SESSILE_OK;
}

static sessile_status read_entry(call *c, const Sessile__V1__MemoryEntry *r,
                                 sessile_memory_write_entry *out, sessile_error *err)
{
    int kind, source = 0;
    sessile_status status = read_word(WORD_KIND, r->kind, "MemoryEntry.kind", &kind, err);
    if (!status)
        status = read_word(WORD_SOURCE, r->source, "MemoryEntry.source", &source, err);
    if (status)
        return status;
    sessile_memory_write_init(out);
    out->value = sessile_text(r->value);
    out->key = sessile_text(r->key);
    out->also = sessile_text(r->also);
    out->kind = (sessile_memory_kind)kind;
    out->source = (sessile_memory_source)source;
    out->author = sessile_text(r->author);
    out->replaces = r->replaces;
    out->replace_count = r->n_replaces;
    out->importance = r->importance;
    out->ttl_ms = r->ttl_ms;
    out->holds_from_ms = r->holds_from_ms;
    out->holds_until_ms = r->holds_until_ms;
    out->metadata = json_slice(r->metadata);
    out->pending = r->pending;
    out->has_was = r->was != NULL;
    out->was = r->was ? entry_id(r->was->entry) : SESSILE_NO_ID;
    out->pinned = r->pinned;
    return read_from(c, r, out, err);
}

sessile_status read_entries(call *c, Sessile__V1__MemoryEntry *const *from, size_t n,
                            sessile_memory_write_entry **out, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    *out = call_new(c, (n + 1) * sizeof **out);
    if (!*out)
        return fail_nomem(err);
    for (size_t i = 0; i < n && !status; i++)
        status = read_entry(c, from[i], &(*out)[i], err);
    return status;
}

/* ---------------------------------------------------------------------- vectors */

sessile_status read_vectors(call *c, Sessile__V1__Vector *const *from, size_t n,
                            const float **out, size_t *dims, sessile_error *err)
{
    *dims = n ? from[0]->n_v : 0;
    for (size_t i = 0; i < n; i++)
        if (from[i]->n_v != *dims)
            return fail(err, SESSILE_INVALID,
                        "vectors: the first one has %zu numbers, and number %zu has %zu",
                        *dims, i + 1, from[i]->n_v);
    /* n * dims numbers are in the request, so this cannot overflow */
    float *all = call_new(c, (n * *dims + 1) * sizeof *all);
    *out = all;
    if (!all)
        return fail_nomem(err);
    for (size_t i = 0; i < n && *dims; i++)
        memcpy(all + i * *dims, from[i]->v, *dims * sizeof *all);
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- what is found */

sessile_status read_place(const memory_set *set, int shared, size_t *out,
                          sessile_error *err)
{
    for (*out = 0; *out < set->count; ++*out)
        if (set->shared[*out] == (shared != 0))
            return SESSILE_OK;
    *out = 0;
    return fail(err, SESSILE_INVALID,
                "an entry is of the %s memory, which is not there or is not recalled "
                "from",
                shared ? "agent's" : "user's");
}

sessile_status read_outside(call *c, const Sessile__V1__OutsideHits *from,
                            const memory_set *set, sessile_memory_outside **out,
                            size_t *count, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    *out = NULL;
    *count = 0;
    if (!from)
        return SESSILE_OK;
    *out = call_new(c, (from->n_hits + 1) * sizeof **out);
    if (!*out)
        return fail_nomem(err);
    for (size_t i = 0; i < from->n_hits && !status; i++) {
        sessile_memory_outside *hit = &(*out)[i];
        hit->id = from->hits[i]->entry;
        hit->score = from->hits[i]->score;
        if (set)
            status = read_place(set, from->hits[i]->shared, &hit->memory, err);
    }
    *count = from->n_hits;
    return status;
}

/*
 * sources.c: whose words a proposed entry has: laws 1, 2, 5 and 6.
 *
 * The source of an entry is the least trusted of all that the entry is from: messages it
 * names, entries it was concluded from, entries it replaces. A policy, or the model that
 * it asked, can name a message that says something else. So the words of the entry are
 * compared with what it names, and its source is lowered in three cases:
 *
 *   - From the user to the agent: less than half of the entry's words stand in what it
 *     names; or half of the other words were said by tools, beside words of the entry,
 * and by no user.
 *   - From the agent to a tool: at least half of the entry's words stand in what tools
 * said in the session, and less than half in what users said or in the entries that it is
 *     from. An agent that repeats an order from a document does not make it better.
 *   - From anybody to a tool: the entry copies what tools said (overlap.h), whatever it
 *     names. A document can use the words of a question, or of an order that a user gave,
 *     and change one of them.
 *
 * The day and the author of a message count as its words, because statements are told to
 * have them. Entries that it is from may be copied: they have sources of their own.
 */
#include "remember/proposal.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "remember/decoded.h"

/* ------------------------------------------------------------------ sources */

static void lower_to(sessile_memory_source *source, sessile_memory_source other)
{
    if (!memory_trusts(other, *source))
        *source = other;
}

/* Where a source is in source_text, until that does not move any more. */
typedef struct source_place {
    size_t session, session_size, agent, agent_size;
    sessile_id first, last;
} source_place;

typedef struct attesting {
    proposal *p;
    proposed *x;
    size_t index;
    word_set words;   /* of what it names */
    word_set entries; /* of the entries among these */
    sessile_memory_source source;
    source_place places[SESSILE_MEMORY_RUN_FROM];
    size_t place_count;
    size_t last_shown; /* index of the message added last */
} attesting;

static int same_text(const buf *text, size_t at, size_t size, sessile_slice other)
{
    return size == other.size && memcmp(text->data + at, other.data, size) == 0;
}

/* Adds messages first to last of a session, unless they are there. */
static int add_source(attesting *a, sessile_slice session, sessile_slice agent,
                      sessile_id first, sessile_id last)
{
    buf *text = &a->x->source_text;
    source_place *place;

    for (size_t i = 0; i < a->place_count; i++) {
        place = &a->places[i];
        if (place->first <= first && place->last >= last &&
            same_text(text, place->session, place->session_size, session) &&
            same_text(text, place->agent, place->agent_size, agent))
            return 0;
    }
    if (a->place_count == SESSILE_MEMORY_RUN_FROM) {
        proposal_break(a->p, MEMORY_LAW_BOUNDS, a->index,
                       "an entry has at most %d sources", SESSILE_MEMORY_RUN_FROM);
        return 0;
    }
    place = &a->places[a->place_count++];
    *place = (source_place){text->size, session.size, text->size + session.size,
                            agent.size, first,        last};
    buf_put(text, session.data, session.size);
    buf_put(text, agent.data, agent.size);
    return text->failed ? -1 : 0;
}

static int compare_ids(const void *a, const void *b)
{
    sessile_id left = *(const sessile_id *)a, right = *(const sessile_id *)b;
    return (left > right) - (left < right);
}

/* The messages that it names; neighbours of what was shown become one source. */
static int attest_messages(attesting *a)
{
    const proposal *p = a->p;
    const session_identity *own = p->session ? &p->session->identity : NULL;

    /* named in any order, also twice: in order, only the last source can grow */
    if (a->x->from.count)
        qsort(a->x->from.at, a->x->from.count, sizeof *a->x->from.at, compare_ids);
    for (size_t i = 0; i < a->x->from.count; i++) {
        const shown_message *m = proposal_message(p, a->x->from.at[i]);
        size_t at;
        if (!m || !own) {
            char id[9];
            id_print(a->x->from.at[i], id);
            proposal_break(a->p, MEMORY_LAW_ATTESTED, a->index,
                           "it names message %s, which the policy was not shown", id);
            return 0;
        }
        at = (size_t)(m - p->messages);
        lower_to(&a->source, m->source);
        word_set_add(&a->words, p->words, p->said_text.data + m->at, m->size);
        if (i && at == a->last_shown + 1 && a->place_count)
            a->places[a->place_count - 1].last = m->id;
        else if (add_source(a, (sessile_slice){own->id, own->id_size},
                            (sessile_slice){own->agent, own->agent_size}, m->id, m->id))
            return -1;
        a->last_shown = at;
    }
    return 0;
}

static int take_id(json value, sessile_id *out)
{
    const char *text;
    size_t size;
    return json_plain(value, &text, &size) ? id_parse(text, size, out) : -1;
}

/* The sources of an entry that it is from become its own. */
static int inherit(attesting *a, sessile_slice from)
{
    buf session, agent;
    int failed = 0;

    buf_init(&session, a->p->alloc);
    buf_init(&agent, a->p->alloc);
    if (from.size)
        for (json_iter it = json_begin(json_of(from.data, from.size)); json_next(&it);) {
            sessile_id first, last;
            buf_clear(&session);
            buf_clear(&agent);
            if (header_get_name(&session, json_get(it.value, "session")) ||
                header_get_name(&agent, json_get(it.value, "agent")) ||
                take_id(json_get(it.value, "first"), &first) ||
                take_id(json_get(it.value, "last"), &last))
                failed = session.failed || agent.failed;
            else
                failed = add_source(a, (sessile_slice){session.data, session.size},
                                    (sessile_slice){agent.data, agent.size}, first, last);
            if (failed)
                break;
        }
    buf_deinit(&session);
    buf_deinit(&agent);
    return failed ? -1 : 0;
}

/* Entries that it is from, or replaces. */
static sessile_status attest_entries(attesting *a, size_t memory, const entry_ids *ids,
                                     memory_law law, const char *does, sessile_error *err)
{
    memory_core *m = a->p->memories[memory];
    sessile_status status = SESSILE_OK;

    for (size_t i = 0; !status && i < ids->count && !a->p->broken; i++) {
        sessile_memory_row *row = NULL;
        char id[9];
        id_print(ids->at[i], id);
        if (!proposal_has_shown(a->p, memory, ids->at[i])) {
            proposal_break(a->p, law, a->index,
                           "it %s entry %s, which the policy was not shown", does, id);
            return SESSILE_OK;
        }
        status = memory_get(m, ids->at[i], &row, err);
        if (status)
            return status;
        lower_to(&a->source, row->source);
        word_set_add(&a->words, a->p->words, row->value.data, row->value.size);
        word_set_add(&a->entries, a->p->words, row->value.data, row->value.size);
        if (inherit(a, row->from))
            status = fail_nomem(err);
        host_free(row);
    }
    return status;
}

/* ------------------------------------------------------------------ law 2 by words */

/* Whether a text is what tools said, repeated: 1, 0, -1: no memory. entries: what may be
 * repeated. */
static int is_repeated(const proposal *p, const word_set *entries, sessile_slice text)
{
    int tools = word_set_has_half(&p->tool_words, p->words, text);
    int users = word_set_has_half(&p->user_words, p->words, text);
    int known = word_set_has_half(entries, p->words, text);
    return tools < 0 || users < 0 || known < 0 ? -1 : tools && !users && !known;
}

/* Whether a text copies what tools said, also when they said it backwards or with other
 * letters: 1, 0, -1: no memory. entries: what may be copied. */
static int is_copied(const proposal *p, const word_set *entries, sessile_slice text,
                     int is_name)
{
    int copied = 0;
    buf other;

    buf_init(&other, p->alloc);
    for (int by = 0; by < 27 && !copied && text.size; by++) {
        buf_clear(&other);
        if (by == 26)
            decoded_put_reversed(&other, text);
        else
            decoded_put_rotated(&other, text, by);
        copied =
            other.failed
                ? -1
                : word_set_is_copied(&p->tool_words, &p->user_words, entries, p->words,
                                     (sessile_slice){other.data, other.size}, is_name);
    }
    buf_wipe(&other);
    return copied;
}

/* Whether an entry has a tool's words: 1, 0, -1: no memory. is_agents: it is the agent's,
 * if not. */
static int has_tools_words(const proposal *p, const word_set *entries,
                           const sessile_memory_write_entry *e, int is_agents)
{
    int has = is_agents ? is_repeated(p, entries, e->value) : 0;
    if (!has)
        has = is_copied(p, entries, e->value, 0);
    return has ? has : is_copied(p, entries, e->key, 1);
}

static sessile_status check_words(attesting *a, sessile_error *err)
{
    const proposal *p = a->p;
    sessile_memory_source named = a->source;
    int stands, adds, tools;

    if (a->words.failed || a->entries.failed)
        return fail_nomem(err);
    stands = word_set_has_half(&a->words, p->words, a->x->entry.value);
    adds = word_set_adds_half(&a->words, &p->tool_words, &p->user_words, p->words,
                              a->x->entry.value);
    if ((!stands || adds) && !memory_trusts(SESSILE_MEMORY_BY_AGENT, a->source))
        a->source = SESSILE_MEMORY_BY_AGENT;
    tools = has_tools_words(p, &a->entries, &a->x->entry,
                            a->source == SESSILE_MEMORY_BY_AGENT);
    if (tools)
        a->source = SESSILE_MEMORY_BY_TOOL;
    a->x->lowered = a->source != named;
    return stands < 0 || adds < 0 || tools < 0 ? fail_nomem(err) : SESSILE_OK;
}

/* What an agent writes by itself, its model having called a tool. */
sessile_status memory_agent_source(session_core *s, memory_core *m,
                                   const sessile_memory_write_entry *entry,
                                   sessile_slice before, sessile_memory_source *out,
                                   sessile_error *err)
{
    word_set known;
    proposal p;
    int tools;
    sessile_status status;

    proposal_start(&p, s->store, s);
    p.memories[0] = m;
    p.memory_count = 1;
    word_set_init(&known, p.alloc);
    status = proposal_look_back(&p, err);
    if (!status) {
        word_set_add(&known, p.words, before.data, before.size);
        tools = has_tools_words(&p, &known, entry, 1);
        *out = tools ? SESSILE_MEMORY_BY_TOOL : SESSILE_MEMORY_BY_AGENT;
        if (tools < 0 || known.failed)
            status = fail_nomem(err);
    }
    word_set_deinit(&known);
    proposal_deinit(&p);
    return status;
}

/* ------------------------------------------------------------------ all of them */

static void check_bounds(proposal *p, size_t i)
{
    const proposed *x = &p->at[i];
    if (x->entry.value.size > SESSILE_MEMORY_RUN_VALUE ||
        x->entry.also.size > SESSILE_MEMORY_RUN_VALUE)
        proposal_break(p, MEMORY_LAW_BOUNDS, i, "a value has at most %d bytes, not %zu",
                       SESSILE_MEMORY_RUN_VALUE,
                       x->entry.value.size > x->entry.also.size ? x->entry.value.size
                                                                : x->entry.also.size);
    if (x->entry.key.size > SESSILE_MEMORY_KEY_MAX)
        proposal_break(p, MEMORY_LAW_BOUNDS, i, "a key has at most %d bytes, not %zu",
                       SESSILE_MEMORY_KEY_MAX, x->entry.key.size);
    if (!x->from.count && !x->of.count && !x->ids.count)
        proposal_break(p, MEMORY_LAW_ATTESTED, i,
                       "it names no message and no entry that it is from");
}

static void place_sources(proposed *x, const attesting *a)
{
    for (size_t i = 0; i < a->place_count; i++) {
        const source_place *place = &a->places[i];
        x->sources[i] = (sessile_memory_from){
            {x->source_text.data + place->session, place->session_size},
            {x->source_text.data + place->agent, place->agent_size},
            place->first,
            place->last};
    }
}

static sessile_status attest_one(proposal *p, size_t i, sessile_error *err)
{
    attesting *a = mem_zalloc(p->alloc, sizeof *a);
    proposed *x = &p->at[i];
    sessile_status status = SESSILE_OK;

    if (!a)
        return fail_nomem(err);
    a->p = p;
    a->x = x;
    a->index = i;
    a->source = SESSILE_MEMORY_BY_SYSTEM;
    word_set_init(&a->words, p->alloc);
    word_set_init(&a->entries, p->alloc);
    check_bounds(p, i);
    if (!p->broken && attest_messages(a))
        status = fail_nomem(err);
    if (!status && !p->broken)
        status =
            attest_entries(a, x->of_memory, &x->of, MEMORY_LAW_ATTESTED, "is from", err);
    if (!status && !p->broken)
        status =
            attest_entries(a, x->memory, &x->ids, MEMORY_LAW_OVERREACH, "replaces", err);
    if (!status && !p->broken)
        status = check_words(a, err);
    if (!status && !p->broken) {
        x->entry.source = a->source;
        if (a->source == SESSILE_MEMORY_BY_TOOL && !p->trust_tools) {
            x->waits = 1;
            buf_puts(&x->why, "it has a tool's words");
        }
        x->sources = a->place_count
                         ? mem_alloc(p->alloc, a->place_count * sizeof *x->sources)
                         : NULL;
        if (a->place_count && !x->sources)
            status = fail_nomem(err);
        x->source_count = x->sources ? a->place_count : 0;
        if (x->sources)
            place_sources(x, a);
    }
    word_set_deinit(&a->words);
    word_set_deinit(&a->entries);
    mem_free(p->alloc, a, sizeof *a);
    return status;
}

/* 1: the session is a user's, and this memory is not. */
static int is_elsewhere(const proposal *p, size_t memory)
{
    return p->session && p->session->identity.user_size &&
           !p->memories[memory]->user_size;
}

sessile_status proposal_attest(proposal *p, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    size_t writes = p->written;

    for (size_t i = 0; !status && !p->broken && i < p->count; i++) {
        proposed *x = &p->at[i];
        if (x->is_host)
            continue;
        if (is_elsewhere(p, x->memory) && !p->share)
            proposal_break(p, MEMORY_LAW_SCOPE, i,
                           "it goes to the memory of the agent, and the session is a "
                           "user's: what is said there stays there, unless the host "
                           "says share");
        if (x->kind == PROPOSED_WRITE && ++writes > SESSILE_MEMORY_RUN_WRITES)
            proposal_break(p, MEMORY_LAW_BOUNDS, i, "a run writes at most %d entries",
                           SESSILE_MEMORY_RUN_WRITES);
        if (p->broken || x->kind != PROPOSED_WRITE)
            continue;
        status = proposal_open_words(p, err);
        if (!status)
            status = attest_one(p, i, err);
    }
    return status;
}

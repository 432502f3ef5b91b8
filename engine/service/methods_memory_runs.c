/*
 * methods_memory_runs.c: what is recalled, remembered, tidied, admitted and embedded.
 *
 * A run of a memory cannot be parked: what it would go on with is in no log. So in a call
 * that answers once, a need that the server does not answer fails. That costs a recall
 * its vector, and a proposal of a policy; the outcome says so. In RunMemory the client
 * answers.
 */
#include "service/memories.h"
#include "service/runs.h"

#include <string.h>

/* ---------------------------------------------------------------------- requests */

static sessile_status read_config(call *c, const Sessile__V1__MemoryRunConfig *r,
                                  begun *of, sessile_memory_run_options *out,
                                  sessile_error *err)
{
    sessile_memory_run_options_init(out);
    if (!r)
        return SESSILE_OK;
    out->dry_run = r->dry_run;
    out->share = r->share;
    out->trust_tools = r->trust_tools;
    out->embed_model = sessile_text(r->embed_model);
    out->embed_dims = r->embed_dims;
    out->embed_batch = r->embed_batch ? r->embed_batch : out->embed_batch;
    sessile_status status =
        read_reason(r->reason, "MemoryRunConfig.reason", &out->reason, err);
    if (!status)
        status = read_policies(c, r->policies, r->n_policies, &of->policy, err);
    out->policy = of->policy;
    return status;
}

static sessile_status read_items(call *c, const Sessile__V1__RecallItems *r,
                                 const memory_set *set, sessile_recall_options *out,
                                 sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    if (!r)
        return SESSILE_OK;
    sessile_recall_item *items = call_new(c, (r->n_items + 1) * sizeof *items);
    if (!items)
        return fail_nomem(err);
    for (size_t i = 0; i < r->n_items && !status; i++) {
        items[i].id = r->items[i]->entry;
        status = read_place(set, r->items[i]->shared, &items[i].memory, err);
    }
    out->has_items = 1;
    out->items = items;
    out->item_count = r->n_items;
    return status;
}

static sessile_status read_recall(call *c, const Sessile__V1__RecallRequest *r,
                                  const memory_set *set, sessile_recall_options *out,
                                  sessile_error *err)
{
    sessile_memory_outside *outside;
    int trust;
    sessile_recall_options_init(out);
    out->question = sessile_text(r->question);
    out->limit = (size_t)r->limit;
    out->budget = r->budget ? r->budget : out->budget;
    out->share = real_or(r->share, out->share);
    out->min_cover = real_or(r->min_cover, out->min_cover);
    out->min_cosine = r->min_cosine;
    out->recency = real_or(r->recency, out->recency);
    out->importance = real_or(r->importance, out->importance);
    out->start = !r->no_start;
    out->model = sessile_text(r->model);
    out->weight = real_or(r->weight, out->weight);
    if (r->vector) {
        out->vector = r->vector->v;
        out->dims = r->vector->n_v;
    }
    sessile_status status =
        read_word(WORD_SOURCE, r->trust, "RecallRequest.trust", &trust, err);
    if (!status && *r->trust)
        out->trust = (sessile_memory_source)trust;
    if (!status)
        status = read_outside(c, r->outside, set, &outside, &out->outside_count, err);
    out->outside = status ? NULL : outside;
    return status ? status : read_items(c, r->items, set, out, err);
}

/* ---------------------------------------------------------------------- beginning */

static sessile_status begin_recall(call *c, const Sessile__V1__RecallRequest *r,
                                   begun *out, sessile_error *err)
{
    sessile_memory_run_options options;
    sessile_recall_options recall;
    memory_set set = {.count = 0};
    sessile_status status = call_session(c, r->session, &out->session, err);
    if (!status)
        status = call_memories(c, out->session, r->memories, r->n_memories, &set, err);
    if (!status)
        status = read_recall(c, r, &set, &recall, err);
    if (!status)
        status = read_config(c, r->config, out, &options, err);
    return status ? status
                  : sessile_recall_begin(&out->memory_run, out->session, set.at,
                                         set.count, &recall, &options, err);
}

static sessile_status begin_remember(call *c, const Sessile__V1__RememberRequest *r,
                                     begun *out, sessile_error *err)
{
    sessile_memory_run_options options;
    memory_set set = {.count = 0};
    sessile_status status = call_session(c, r->session, &out->session, err);
    if (!status)
        status = call_may_remember(c, sessile_session_agent(out->session), err);
    if (!status)
        status = call_memories(c, out->session, r->memories, r->n_memories, &set, err);
    if (!status && set.count == 0)
        status = fail(err, SESSILE_NOTFOUND,
                      "the session has no memory to remember in: open one first, with "
                      "the user's consent");
    if (!status)
        status = read_config(c, r->config, out, &options, err);
    return status ? status
                  : sessile_remember_begin(&out->memory_run, out->session, set.at,
                                           set.count, &options, err);
}

static sessile_status begin_tidy(call *c, const Sessile__V1__TidyRequest *r, begun *out,
                                 sessile_error *err)
{
    sessile_memory_run_options options;
    sessile_memory *memory = NULL;
    sessile_status status = call_memory_to_write(c, r->memory, 0, &memory, err);
    if (!status)
        status = read_config(c, r->config, out, &options, err);
    if (!status && r->entries) {
        options.has_ids = 1;
        options.ids = r->entries->ids;
        options.id_count = r->entries->n_ids;
    }
    return status ? status : sessile_tidy_begin(&out->memory_run, memory, &options, err);
}

static sessile_status begin_admit(call *c, const Sessile__V1__AdmitRequest *r, begun *out,
                                  sessile_error *err)
{
    sessile_memory_run_options options;
    sessile_memory_write_entry *entries;
    sessile_memory *memory = NULL;
    sessile_status status = read_entries(c, r->entries, r->n_entries, &entries, err);
    if (!status)
        status = call_memory_to_write(c, r->memory, 1, &memory, err);
    if (!status)
        status = read_config(c, r->config, out, &options, err);
    return status ? status
                  : sessile_admit_begin(&out->memory_run, memory, entries, r->n_entries,
                                        &options, err);
}

static sessile_status begin_embed(call *c, const Sessile__V1__EmbedRequest *r, begun *out,
                                  sessile_error *err)
{
    sessile_memory_run_options options;
    sessile_memory *memory;
    sessile_status status = call_memory_to_write(c, r->memory, 0, &memory, err);
    if (!status)
        status = read_config(c, r->config, out, &options, err);
    return status ? status : sessile_embed_begin(&out->memory_run, memory, &options, err);
}

/* ---------------------------------------------------------------------- outcomes */

static Sessile__V1__Recalled *recalled_of(call *c, const sessile_recall_outcome *from)
{
    Sessile__V1__Recalled *out = call_make(c, &sessile__v1__recalled__descriptor);
    if (!out)
        return NULL;
    out->entry = call_entry(c, from->entry);
    out->recalled = from->recalled;
    out->found = from->found;
    out->not_fitting = from->not_fitting;
    out->not_allowed = from->not_allowed;
    out->denied = from->denied;
    out->tokens = from->tokens;
    return out;
}

static sessile_status outcome_of(call *c, const begun *b,
                                 Sessile__V1__MemoryOutcome **result, sessile_error *err)
{
    Sessile__V1__MemoryOutcome *out =
        call_make(c, &sessile__v1__memory_outcome__descriptor);
    sessile_memory_outcome from;
    sessile_status status = sessile_memory_run_outcome(b->memory_run, &from, err);
    *result = out;
    if (status || !out)
        return status ? status : fail_nomem(err);
    out->verdict = call_string(c, runs_verdict(from.verdict));
    out->policy = call_string(c, from.policy);
    out->hook = call_string(c, from.hook);
    out->law = from.law;
    out->message = call_string(c, from.message);
    out->refusal = call_entry(c, from.refusal);
    out->heard = from.heard;
    out->left = from.left;
    out->written = from.written;
    out->pending = from.pending;
    out->lowered = from.lowered;
    out->ended = from.ended;
    out->confirmed = from.confirmed;
    out->not_admitted = from.not_admitted;
    out->stale = from.stale;
    out->changes = call_json(c, from.changes);
    out->recall = recalled_of(c, &from.recall);
    out->has_vector = from.has_vector;
    out->embedded = from.embedded;
    out->to_embed = from.to_embed;
    out->log = call_string(c, from.log);
    out->policy_us = from.policy_us;
    return SESSILE_OK;
}

/* ------------------------------------------------------------- calls that answer once */

static sessile_status send_once(call *c, const begun *b, Sessile__V1__Need *parked,
                                sessile_error *err)
{
    Sessile__V1__MemoryOutcome *out;
    sessile_status status = outcome_of(c, b, &out, err);
    (void)parked;
    return status ? status : call_reply(c, &out->base, err);
}
RUN_ONCE(recall, begin_recall)
RUN_ONCE(remember, begin_remember)
RUN_ONCE(tidy, begin_tidy)
RUN_ONCE(admit, begin_admit)

/* A search for what could be recalled, and what it was asked for with. */
typedef struct recalling {
    row_list list; /* first */
    sessile_session *session;
    memory_set set;
    sessile_recall_options options;
} recalling;

static sessile_status find_rows(call *c, row_list *l, sessile_memory_row **rows,
                                size_t *count, sessile_error *err)
{
    const recalling *all = (const recalling *)l;
    (void)c;
    return sessile_recall_find(all->session, all->set.at, all->set.count, &all->options,
                               rows, count, err);
}

static sessile_status find_recall(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecallRequest *r = request;
    recalling *all = call_new(c, sizeof *all);
    if (!all)
        return fail_nomem(err);
    all->list.find = find_rows;
    all->list.set = &all->set;
    sessile_status status = call_session(c, r->session, &all->session, err);
    if (!status)
        status =
            call_memories(c, all->session, r->memories, r->n_memories, &all->set, err);
    if (!status)
        status = read_recall(c, r, &all->set, &all->options, err);
    return status ? status : reply_rows(c, &all->list, err);
}

static sessile_status get_agent_source(call *c, const void *request, sessile_error *err)
{
    static char *names[] = {"user", "agent"};
    const Sessile__V1__AgentSourceRequest *r = request;
    Sessile__V1__AgentSource out = SESSILE__V1__AGENT_SOURCE__INIT;
    sessile_memory_write_entry *entry;
    sessile_memory_source source;
    sessile_session *session;
    memory_set set = {.count = 0};
    size_t place = 0;
    if (!r->entry)
        return fail(err, SESSILE_INVALID, "AgentSourceRequest.entry: which entry?");
    sessile_status status =
        read_entries(c, (Sessile__V1__MemoryEntry *const *)&r->entry, 1, &entry, err);
    if (!status)
        status = call_session(c, r->session, &session, err);
    if (!status)
        status = call_memories(c, session, &names[r->shared != 0], 1, &set, err);
    if (!status)
        status = read_place(&set, r->shared, &place, err);
    if (!status)
        status = sessile_memory_agent_source(session, set.at[place], entry,
                                             sessile_text(r->before), &source, err);
    if (status)
        return status;
    out.source = call_string(c, sessile_memory_source_name(source));
    return call_reply(c, &out.base, err);
}

/* ---------------------------------------------------------------------- a stream */

static sessile_status begin(call *c, const void *request, begun *out, sessile_error *err)
{
    const Sessile__V1__MemoryRunRequest *r = request;
    switch (r->what_case) {
    case SESSILE__V1__MEMORY_RUN_REQUEST__WHAT_REMEMBER:
        return begin_remember(c, r->remember, out, err);
    case SESSILE__V1__MEMORY_RUN_REQUEST__WHAT_TIDY:
        return begin_tidy(c, r->tidy, out, err);
    case SESSILE__V1__MEMORY_RUN_REQUEST__WHAT_ADMIT:
        return begin_admit(c, r->admit, out, err);
    case SESSILE__V1__MEMORY_RUN_REQUEST__WHAT_RECALL:
        return begin_recall(c, r->recall, out, err);
    case SESSILE__V1__MEMORY_RUN_REQUEST__WHAT_EMBED:
        return begin_embed(c, r->embed, out, err);
    default:
        return fail(err, SESSILE_INVALID,
                    "MemoryRunRequest: the first one begins a run: remember, tidy, "
                    "admit, recall or embed");
    }
}

static sessile_status reply(call *c, const begun *b, const void *request, int *answered,
                            sessile_error *err)
{
    const Sessile__V1__MemoryRunRequest *r = request;
    const float *vectors;
    sessile_answer given;
    size_t dims;
    sessile_status status;
    switch (r->what_case) {
    case SESSILE__V1__MEMORY_RUN_REQUEST__WHAT_NOBODY:
        return SESSILE_OK;
    case SESSILE__V1__MEMORY_RUN_REQUEST__WHAT_REPLY:
        given = read_answer(r->reply);
        status = runs_reply(b, &given, err);
        break;
    case SESSILE__V1__MEMORY_RUN_REQUEST__WHAT_VECTORS:
        status = read_vectors(c, r->vectors->vectors, r->vectors->n_vectors, &vectors,
                              &dims, err);
        if (!status)
            status = sessile_memory_run_reply_vectors(b->memory_run, vectors,
                                                      r->vectors->n_vectors, dims, err);
        break;
    default:
        return fail(err, SESSILE_INVALID,
                    "MemoryRunRequest: a run that waits is answered by reply, vectors or "
                    "nobody");
    }
    *answered = !status;
    return status;
}

static sessile_status send_need(call *c, Sessile__V1__Need *need, sessile_error *err)
{
    Sessile__V1__MemoryRunEvent event = SESSILE__V1__MEMORY_RUN_EVENT__INIT;
    event.what_case = SESSILE__V1__MEMORY_RUN_EVENT__WHAT_NEED;
    event.need = need;
    return call_send(c, &event.base, err);
}

static sessile_status send_outcome(call *c, const begun *b, Sessile__V1__Need *parked,
                                   sessile_error *err)
{
    Sessile__V1__MemoryRunEvent event = SESSILE__V1__MEMORY_RUN_EVENT__INIT;
    sessile_status status = outcome_of(c, b, &event.outcome, err);
    (void)parked;
    event.what_case = SESSILE__V1__MEMORY_RUN_EVENT__WHAT_OUTCOME;
    if (!status)
        status = c->no_memory ? fail_nomem(err) : call_send(c, &event.base, err);
    return status;
}

static sessile_status run_memory(call *c, const void *request, sessile_error *err)
{
    static const run_kind kind = {begin, send_outcome, send_need, reply};
    return run_stream_begin(c, &kind, request, err);
}

const method methods_memory_runs[] = {
    METHOD("FindRecall", find_recall, recall_request, METHOD_READS | METHOD_STREAMS),
    METHOD("Recall", recall, recall_request, 0),
    METHOD("Remember", remember, remember_request, 0),
    METHOD("Tidy", tidy, tidy_request, 0),
    METHOD("Admit", admit, admit_request, 0),
    METHOD("GetAgentSource", get_agent_source, agent_source_request, METHOD_READS),
    METHOD("RunMemory", run_memory, memory_run_request, METHOD_STREAMS | METHOD_DUPLEX),
    {NULL, NULL, 0, NULL},
};

/* methods_memory.c: memories as a whole, and what is written to them. */
#include "service/memories.h"

#include "api/inside.h"
#include "sessile_privacy.h"

/* ---------------------------------------------------------------------- as a whole */

static Sessile__V1__Memory *names_of(call *c, const sessile_session_options *names)
{
    Sessile__V1__Memory *out = call_make(c, &sessile__v1__memory__descriptor);
    sessile_slice agent = names->agent;
    if (!agent.size)
        agent = sessile_text(api_default_agent(c->server->store));
    Sessile__V1__Session *same =
        call_session_names(c, agent, names->user, (sessile_slice){NULL, 0});
    if (!out || !same)
        return NULL;
    out->agent = same->agent;
    out->user = same->user;
    out->shared = names->user.size == 0;
    out->raw = same->raw;
    return out;
}

static void fill_info(call *c, Sessile__V1__MemoryInfo *out,
                      const sessile_memory_stats *from)
{
    out->entries = from->entries;
    out->entries_most = from->entries_most;
    out->nearly_full = from->nearly_full;
    out->live = from->states[SESSILE_MEMORY_LIVE];
    out->pending = from->states[SESSILE_MEMORY_PENDING];
    out->replaced = from->states[SESSILE_MEMORY_REPLACED];
    out->deleted = from->states[SESSILE_MEMORY_DELETED];
    out->rejected = from->states[SESSILE_MEMORY_REJECTED];
    out->expired = from->states[SESSILE_MEMORY_EXPIRED];
    out->erased = from->states[SESSILE_MEMORY_ERASED];
    out->keys = from->keys;
    out->verdicts = from->verdicts;
    out->log_entries = from->log_entries;
    out->log_bytes = from->log_bytes;
    out->vectors = from->vectors;
    out->dims = (uint32_t)from->dims;
    out->model = call_string(c, from->model);
    out->consented = from->consented;
    out->consent = call_entry(c, from->consent);
    out->created_ms = from->created_ms;
    out->language = call_string(c, from->language);
}

static sessile_status get_memory(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__MemoryRequest *r = request;
    Sessile__V1__MemoryInfo out = SESSILE__V1__MEMORY_INFO__INIT;
    sessile_session_options names;
    sessile_memory_stats stats;
    sessile_memory *memory;
    sessile_error damaged;
    sessile_status status = call_memory(c, r->memory, 0, &memory, err);
    if (!status)
        status = sessile_memory_get_stats(memory, &stats, err);
    if (!status)
        status = call_memory_names(c, r->memory, &names, err);
    if (status)
        return status;
    out.memory = names_of(c, &names);
    fill_info(c, &out, &stats);
    if (sessile_memory_damage(memory, &damaged))
        out.damage = call_damage(c, damaged.code, damaged.message, 0);
    return call_reply(c, &out.base, err);
}

/* Made through the caller's own handle: the guard asks whether they may. */
static sessile_status open_memory(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__OpenMemoryRequest *r = request;
    Sessile__V1__MemoryRequest get = SESSILE__V1__MEMORY_REQUEST__INIT;
    sessile_session_options names;
    sessile_memory_options options;
    sessile_memory *made;
    sessile_error off;
    sessile_status status = call_memory_names(c, r->memory, &names, err);
    if (status)
        return status;
    get.memory = r->memory;
    sessile_memory_options_init(&options);
    options.agent = names.agent;
    options.user = names.user;
    options.consent = sessile_text(r->consent);
    options.language = sessile_text(r->language);
    status = call_may_remember(c, names.agent, &off);
    if (status && *r->consent)
        return fail(err, off.code, "%s", off.message);
    options.must_exist = status != SESSILE_OK;
    status = sessile_memory_open(&made, c->view, &options, err);
    sessile_memory_close(made);
    if (status == SESSILE_NOTFOUND && options.must_exist)
        return fail(err, off.code, "%s", off.message); /* it would be made now */
    return status ? status : get_memory(c, &get, err);
}

static sessile_status reply_changed(call *c, size_t entries, sessile_error *err)
{
    Sessile__V1__MemoryChanged out = SESSILE__V1__MEMORY_CHANGED__INIT;
    out.entries = entries;
    return call_reply(c, &out.base, err);
}

static sessile_status set_consent(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__ConsentRequest *r = request;
    sessile_session_options names;
    sessile_consent_options options;
    size_t erased = 0;
    sessile_status status = call_memory_names(c, r->memory, &names, err);
    if (!status && r->given)
        status = call_may_remember(c, names.agent, err);
    if (status)
        return status;
    sessile_consent_options_init(&options);
    options.agent = names.agent;
    options.user = names.user;
    options.given = r->given;
    options.keep = r->keep;
    options.text = sessile_text(r->text);
    options.by = sessile_text(r->by);
    options.scope = sessile_text(r->scope);
    status = sessile_consent(c->view, &options, &erased, err);
    return status ? status : reply_changed(c, erased, err);
}

/* ---------------------------------------------------------------------- entries */

/* Room for the ids of what is written. */
static sessile_id *ids_for(call *c, size_t count)
{
    return call_new(c, (count + 1) * sizeof(sessile_id));
}

static sessile_status reply_ids(call *c, sessile_id *ids, size_t count,
                                sessile_error *err)
{
    Sessile__V1__MemoryWritten out = SESSILE__V1__MEMORY_WRITTEN__INIT;
    out.entries = ids;
    out.n_entries = count;
    return call_reply(c, &out.base, err);
}

static sessile_status write_memory(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__WriteMemoryRequest *r = request;
    sessile_id *ids = ids_for(c, r->n_entries);
    sessile_memory_write_entry *entries;
    sessile_memory *memory;
    sessile_status status = read_entries(c, r->entries, r->n_entries, &entries, err);
    if (!status && !ids)
        status = fail_nomem(err);
    if (!status)
        status = call_memory_to_write(c, r->memory, 1, &memory, err);
    if (!status)
        status = sessile_memory_write(memory, entries, r->n_entries, ids, err);
    return status ? status : reply_ids(c, ids, r->n_entries, err);
}

static sessile_status change_memory(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__ChangeMemoryRequest *r = request;
    sessile_id *ids = ids_for(c, r->n_entries);
    sessile_memory_write_entry *entries;
    sessile_memory *memory;
    int verdict = 0;
    sessile_status status = read_entries(c, r->entries, r->n_entries, &entries, err);
    if (!status && !ids)
        status = fail_nomem(err);
    if (!status)
        status = read_word(WORD_VERDICT, r->verdict, "ChangeMemoryRequest.verdict",
                           &verdict, err);
    if (!status && r->n_entries)
        status = call_memory_to_write(c, r->memory, 1, &memory, err);
    else if (!status)
        status = call_memory(c, r->memory, 0, &memory, err);
    if (status)
        return status;
    sessile_memory_change change = {
        .entries = entries,
        .count = r->n_entries,
        .ends = r->ends,
        .end_count = r->n_ends,
        .to = (sessile_memory_verdict_kind)verdict,
        .reason = sessile_text(r->reason),
        .by = sessile_text(r->by),
        .only_live = r->only_live,
    };
    status = sessile_memory_apply(memory, &change, ids, err);
    return status ? status : reply_ids(c, ids, r->n_entries, err);
}

static sessile_status judge_memory(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__VerdictRequest *r = request;
    sessile_memory *memory;
    size_t changed = 0;
    int verdict;
    sessile_status status =
        read_word(WORD_VERDICT, r->verdict, "VerdictRequest.verdict", &verdict, err);
    if (!status)
        status = call_memory(c, r->memory, 0, &memory, err);
    if (!status)
        status = sessile_memory_verdict(
            memory, r->entries, r->n_entries, (sessile_memory_verdict_kind)verdict,
            sessile_text(r->reason), sessile_text(r->by), &changed, err);
    return status ? status : reply_changed(c, changed, err);
}

static sessile_status delete_memory_from(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__DeleteFromRequest *r = request;
    sessile_memory *memory;
    size_t changed = 0;
    sessile_status status = call_memory(c, r->memory, 0, &memory, err);
    if (!status)
        status = sessile_memory_delete_from(memory, sessile_text(r->session_agent),
                                            sessile_text(r->session), sessile_text(r->by),
                                            &changed, err);
    return status ? status : reply_changed(c, changed, err);
}

static sessile_status erase_memory(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__EraseRequest *r = request;
    const sessile_memory_erase_options options = {
        .ids = r->entries,
        .id_count = r->n_entries,
        .session = sessile_text(r->session),
        .session_agent = sessile_text(r->session_agent),
        .ended_before_ms = r->ended_before_ms,
        .written_before_ms = r->written_before_ms,
    };
    sessile_memory *memory;
    size_t erased = 0;
    sessile_status status = call_memory(c, r->memory, 0, &memory, err);
    if (!status)
        status = sessile_memory_erase(memory, &options, &erased, err);
    return status ? status : reply_changed(c, erased, err);
}

static sessile_status put_vectors(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__VectorsRequest *r = request;
    const float *vectors;
    sessile_memory *memory;
    size_t dims;
    if (r->n_vectors != r->n_entries)
        return fail(err, SESSILE_INVALID,
                    "VectorsRequest.vectors: there is one for each of the entries");
    sessile_status status =
        read_vectors(c, r->vectors, r->n_vectors, &vectors, &dims, err);
    if (!status)
        status = call_memory(c, r->memory, 0, &memory, err);
    if (!status)
        status = sessile_memory_embed(memory, sessile_text(r->model), dims, r->entries,
                                      vectors, r->n_entries, err);
    return status ? status : reply_empty(c, err);
}

const method methods_memory[] = {
    METHOD("OpenMemory", open_memory, open_memory_request, 0),
    METHOD("GetMemory", get_memory, memory_request, METHOD_READS),
    METHOD("SetConsent", set_consent, consent_request, 0),
    METHOD("WriteMemory", write_memory, write_memory_request, 0),
    METHOD("ChangeMemory", change_memory, change_memory_request, 0),
    METHOD("JudgeMemory", judge_memory, verdict_request, 0),
    METHOD("DeleteMemoryFrom", delete_memory_from, delete_from_request, 0),
    METHOD("EraseMemory", erase_memory, erase_request, 0),
    METHOD("PutVectors", put_vectors, vectors_request, 0),
    {NULL, NULL, 0, NULL},
};

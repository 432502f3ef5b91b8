/*
 * methods_history.c: what was done to a context and why, what it cost, and what is said
 * where.
 */
#include "service/server.h"

#include <string.h>

enum { FOUND = 100, FOUND_MOST = 1000 };

/* ---------------------------------------------------------------------- compactions */

static void fill_compaction(call *c, Sessile__V1__Compaction *out,
                            const sessile_compaction *from)
{
    out->id = from->id;
    out->refused = from->refused;
    out->time_ms = from->time_ms;
    out->policy = call_text(c, from->policy);
    out->policies = call_json(c, from->policies);
    out->reason = call_text(c, from->reason);
    out->instructions = call_text(c, from->instructions);
    out->summary = call_text(c, from->summary);
    out->tokens_before = from->tokens_before;
    out->tokens_after = from->tokens_after;
    if (from->refused) {
        out->hook = call_text(c, from->hook);
        out->message = call_text(c, from->message);
        out->law = from->law;
        out->law_name = call_text(c, from->law_name);
        out->entry = call_key(c, from->entry);
        out->repeated = from->repeated;
        return;
    }
    out->uncompacts = call_entry(c, from->uncompacts);
    out->first_kept = call_entry(c, from->first_kept);
    out->kept = from->kept;
    out->lost = from->lost;
    out->covered = from->covered;
    out->replaced = from->replaced;
    out->undone = from->undone;
    out->written = from->written;
    out->restored = from->restored;
    out->in_force = from->in_force;
}

static sessile_status list_compactions(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__SessionRequest *r = request;
    Sessile__V1__CompactionList *out =
        call_make(c, &sessile__v1__compaction_list__descriptor);
    sessile_session *session;
    sessile_compaction *rows;
    size_t count;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_compactions(session, &rows, &count, err);
    if (status)
        return status;
    if (out) {
        out->compactions = call_rows(c, count, &sessile__v1__compaction__descriptor);
        for (size_t i = 0; out->compactions && i < count; i++)
            fill_compaction(c, out->compactions[i], &rows[i]);
        out->n_compactions = out->compactions ? count : 0;
    }
    sessile_free(rows);
    return out ? call_reply(c, &out->base, err) : fail_nomem(err);
}

static sessile_status uncompact(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__UncompactRequest *r = request;
    Sessile__V1__Uncompacted out = SESSILE__V1__UNCOMPACTED__INIT;
    sessile_session *session;
    sessile_uncompacted *done;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_uncompact(session, entry_id(r->which), r->dry_run, &done, err);
    if (status)
        return status;
    out.compaction = call_entry(c, done->compaction);
    out.undone = done->undone;
    out.restored = call_keys(c, done->restored, done->restored_count, &out.n_restored);
    out.removed = call_keys(c, done->removed, done->removed_count, &out.n_removed);
    out.tokens_before = done->tokens_before;
    out.tokens_after = done->tokens_after;
    out.cannot_fit = done->cannot_fit;
    sessile_free(done);
    return call_reply(c, &out.base, err);
}

/* ---------------------------------------------------------------------- why */

static const char *const whys[] = {"said",     "written",    "left",
                                   "restored", "elsewhere",  "no_message",
                                   "orphan",   "unanswered", "moved"};

static void fill_step(call *c, Sessile__V1__WhyStep *out, const sessile_why_step *from)
{
    out->kind = call_string(c, whys[from->kind]);
    out->key = call_key(c, from->key);
    out->at = from->at;
    out->time_ms = from->time_ms;
    if (from->role != SESSILE_ROLE_NONE)
        out->role = call_string(c, sessile_role_name(from->role));
    out->type = call_string(c, from->type);
    if (from->kind == SESSILE_WHY_LEFT)
        out->disposition = call_string(c, disposition_name(from->disposition));
    out->by = call_key(c, from->by);
    out->stands_for =
        call_keys(c, from->stands_for, from->stands_for_count, &out->n_stands_for);
    if (!from->compaction)
        return;
    out->compaction = call_make(c, &sessile__v1__compaction__descriptor);
    if (out->compaction)
        fill_compaction(c, out->compaction, from->compaction);
}

static sessile_status explain(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__WhyRequest *r = request;
    Sessile__V1__Explanation out = SESSILE__V1__EXPLANATION__INIT;
    sessile_session *session;
    sessile_explanation *why;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status && !r->key)
        status = fail(err, SESSILE_INVALID, "WhyRequest.key: which message?");
    if (!status)
        status = sessile_why(session, (sessile_key){r->key->entry, r->key->n}, &why, err);
    if (status)
        return status;
    out.key = call_key(c, why->key);
    out.in_context = why->in_context;
    out.shown = call_key(c, why->shown);
    out.steps = call_rows(c, why->step_count, &sessile__v1__why_step__descriptor);
    for (size_t i = 0; out.steps && i < why->step_count; i++)
        fill_step(c, out.steps[i], &why->steps[i]);
    out.n_steps = out.steps ? why->step_count : 0;
    sessile_free(why);
    return call_reply(c, &out.base, err);
}

/* ---------------------------------------------------------------------- counting */

static Sessile__V1__Usage *usage_of(call *c, const sessile_usage *from)
{
    Sessile__V1__Usage *out = call_make(c, &sessile__v1__usage__descriptor);
    if (!out)
        return NULL;
    out->input = from->input;
    out->output = from->output;
    out->cache_read = from->cache_read;
    out->cache_write = from->cache_write;
    return out;
}

static sessile_status read_by(const char *name, sessile_usage_by *out, sessile_error *err)
{
    static const char *const by[] = {"day", "model", "agent", "day_and_model"};
    size_t i = 0, count = sizeof by / sizeof *by;
    while (i < count && strcmp(name, by[i]) != 0)
        i++;
    if (i == count)
        return fail(err, SESSILE_INVALID,
                    "UsageRequest.by is day, model, agent or day_and_model");
    *out = (sessile_usage_by)i;
    return SESSILE_OK;
}

static sessile_status fill_groups(call *c, sessile_session *session, const char *name,
                                  Sessile__V1__UsageResponse *out, sessile_error *err)
{
    sessile_usage_by by = SESSILE_USAGE_BY_DAY;
    sessile_usage_group *rows;
    size_t count;
    sessile_status status = read_by(name, &by, err);
    if (!status)
        status = sessile_usage_groups(session, by, &rows, &count, err);
    if (status)
        return status;
    out->groups = call_rows(c, count, &sessile__v1__usage_group__descriptor);
    for (size_t i = 0; out->groups && i < count; i++) {
        Sessile__V1__UsageGroup *row = out->groups[i];
        row->key = call_text(c, rows[i].key);
        row->model = call_text(c, rows[i].model);
        row->usage = usage_of(c, &rows[i].usage);
        row->cost = rows[i].cost;
        row->uncosted = usage_of(c, &rows[i].uncosted);
        row->reports = rows[i].reports;
        row->first_ms = rows[i].first_ms;
        row->last_ms = rows[i].last_ms;
        out->n_groups = i + 1;
    }
    sessile_free(rows);
    return SESSILE_OK;
}

static sessile_status get_usage(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__UsageRequest *r = request;
    Sessile__V1__UsageResponse out = SESSILE__V1__USAGE_RESPONSE__INIT;
    sessile_session *session;
    sessile_usage total;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_total_usage(session, &total, err);
    if (!status && *r->by)
        status = fill_groups(c, session, r->by, &out, err);
    if (status)
        return status;
    out.total = usage_of(c, &total);
    return call_reply(c, &out.base, err);
}

static sessile_status count_tokens(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__CountRequest *r = request;
    sessile_count_options options;
    sessile_session *session;
    sessile_tokens tokens;
    sessile_count_options_init(&options);
    options.model = sessile_text(r->model);
    options.tools = json_slice(r->tools);
    options.system = sessile_text(r->system);
    options.at = entry_id(r->at);
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_count_tokens_with(session, &options, &tokens, err);
    if (status)
        return status;
    Sessile__V1__Tokens *out = call_tokens(c, &tokens);
    return out ? call_reply(c, &out->base, err) : fail_nomem(err);
}

/* ---------------------------------------------------------------------- searching */

static const char *const kinds[] = {"end",   "nothing", "message",
                                    "title", "label",   "unread"};

/* Sends one result. Its memory is used again for the next. */
static sessile_status send_found(call *c, const sessile_found *from, sessile_error *err)
{
    Sessile__V1__Found out = SESSILE__V1__FOUND__INIT;
    arena all = c->arena;
    arena_init(&c->arena, all.alloc);
    out.kind = call_string(c, kinds[from->kind]);
    out.session = call_session_names(c, from->agent, from->user, from->id);
    out.title = call_text(c, from->title);
    out.entry = call_entry(c, from->entry);
    if (from->role != SESSILE_ROLE_NONE)
        out.role = call_string(c, sessile_role_name(from->role));
    out.time_ms = from->time_ms;
    out.field = call_string(c, from->field);
    out.text = call_text(c, from->text);
    out.at = from->at;
    out.size = from->size;
    out.cut_before = from->cut_before;
    out.cut_after = from->cut_after;
    if (from->kind == SESSILE_FOUND_UNREAD)
        out.unread = call_damage(c, from->status, from->message, 0);
    sessile_status status = call_reply(c, &out.base, err);
    arena_free(&c->arena);
    c->arena = all;
    return status;
}

/* id: only what is in the session of that id; empty: all. */
static sessile_status send_results(call *c, sessile_search *search, sessile_slice id,
                                   uint64_t limit, sessile_error *err)
{
    sessile_found found;
    uint64_t sent = 0;
    while (sent < limit) {
        if (rpc_call_over(c->rpc))
            return fail(err, SESSILE_CANCELLED, "nobody waits for the results");
        sessile_status status = sessile_search_next(search, &found, err);
        if (status || found.kind == SESSILE_FOUND_END)
            return status;
        if (found.kind == SESSILE_FOUND_NOTHING ||
            (id.size &&
             (found.id.size != id.size || memcmp(found.id.data, id.data, id.size) != 0)))
            continue;
        status = send_found(c, &found, err);
        if (status)
            return status;
        sent++;
    }
    return SESSILE_OK;
}

static sessile_status search(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__SearchRequest *r = request;
    sessile_search_options options;
    sessile_list_options sessions;
    sessile_session_options named;
    sessile_search *search;
    Sessile__V1__Session none = SESSILE__V1__SESSION__INIT;
    sessile_search_options_init(&options);
    sessile_list_options_init(&sessions);
    sessile_status status = read_scope(c, r->session, r->any_user, &sessions, err);
    if (!status)
        status = call_names(c, r->session ? r->session : &none, &named, err);
    for (size_t i = 0; !status && i < r->n_roles; i++) {
        sessile_role role;
        status = read_role(r->roles[i], "SearchRequest.roles", &role, err);
        options.roles |= 1u << role;
    }
    if (!status && r->limit > FOUND_MOST)
        status =
            fail(err, SESSILE_LIMIT, "SearchRequest.limit is at most %d", FOUND_MOST);
    if (status)
        return status;
    /* A list selects by the beginning of an id: the others are left out of the results.
     */
    sessions.id_prefix = named.id;
    options.sessions = &sessions;
    options.text = sessile_text(r->text);
    options.exact = r->exact;
    options.head_only = r->head_only;
    status = sessile_search_open(&search, c->view, &options, err);
    if (status)
        return status;
    status = send_results(c, search, named.id, r->limit ? r->limit : FOUND, err);
    sessile_search_close(search);
    return status;
}

const method methods_history[] = {
    METHOD("ListCompactions", list_compactions, session_request, METHOD_READS),
    METHOD("Explain", explain, why_request, METHOD_READS),
    METHOD("Uncompact", uncompact, uncompact_request, 0),
    METHOD("GetUsage", get_usage, usage_request, METHOD_READS),
    METHOD("CountTokens", count_tokens, count_request, METHOD_READS),
    METHOD("Search", search, search_request, METHOD_READS | METHOD_STREAMS | METHOD_ALL),
    {NULL, NULL, 0, NULL},
};

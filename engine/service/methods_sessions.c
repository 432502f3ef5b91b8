/* methods_sessions.c: sessions as a whole: made, opened, listed, removed. */
#include "service/server.h"

#include <string.h>

#include "api/inside.h"
#include "sessile_guard.h"

enum { ROWS = 100, ROWS_MOST = 1000 };

/* ---------------------------------------------------------------------- one session */

static Sessile__V1__Link *link_of(call *c, const sessile_link *from)
{
    Sessile__V1__Link *out = call_make(c, &sessile__v1__link__descriptor);
    if (!out)
        return NULL;
    out->session = call_session_names(c, from->agent, from->user, from->id);
    out->entry = call_entry(c, from->entry);
    return out;
}

static void fill_life(call *c, Sessile__V1__SessionInfo *out,
                      const sessile_life_info *life)
{
    out->life = call_string(c, sessile_life_name(life->life));
    out->ttl_ms = life->ttl_ms;
    out->expires_ms = life->expires_ms;
}

static sessile_status fill_info(call *c, Sessile__V1__SessionInfo *out,
                                sessile_session *session, sessile_error *err)
{
    sessile_life_info life;
    sessile_link link;
    sessile_error damaged;
    char *title;
    size_t size;
    uint64_t lost;
    sessile_status status = sessile_title(session, &title, &size, err);
    if (status)
        return status;
    out->title = call_text(c, (sessile_slice){title, size});
    sessile_free(title);
    status = sessile_head(session, &out->head, err);
    if (!status)
        status = sessile_event_count(session, &out->events, err);
    if (!status)
        status = sessile_session_life(session, &life, err);
    if (status)
        return status;
    fill_life(c, out, &life);
    out->session =
        call_session_names(c, sessile_session_agent(session),
                           sessile_session_user(session), sessile_session_id(session));
    out->created_ms = sessile_session_created(session);
    out->modified_ms = sessile_session_modified(session);
    if (sessile_session_origin(session, &link))
        out->origin = link_of(c, &link);
    if (sessile_session_parent(session, &link))
        out->parent = link_of(c, &link);
    if (sessile_session_damage(session, &lost, &damaged))
        out->damage = call_damage(c, damaged.code, damaged.message, lost);
    return SESSILE_OK;
}

/* All of one moment: the store is asked once. Of a session that is not the call's, which
 * the method has just made or opened, it need not be asked again. */
sessile_status reply_info(call *c, sessile_session *session, sessile_error *err)
{
    Sessile__V1__SessionInfo *out = call_make(c, &sessile__v1__session_info__descriptor);
    if (!out)
        return fail_nomem(err);
    api_moment_begin(session, session != c->session);
    sessile_status status = fill_info(c, out, session, err);
    if (session != c->session)
        api_moment_end(session);
    return status ? status : call_reply(c, &out->base, err);
}

/* Made through the caller's own handle: the guard asks whether they may. What is there is
 * opened, also of an agent that gets no more. */
static sessile_status make_session(call *c, int open,
                                   const sessile_session_options *options,
                                   sessile_session **out, sessile_error *err)
{
    sessile_error disabled;
    sessile_status status = call_may_add(c, options->agent, &disabled);
    if (!status)
        return open ? sessile_session_open(out, c->view, options, err)
                    : sessile_create(out, c->view, options, err);
    if (open)
        status = sessile_resume(out, c->view, options, err);
    if (!open || status == SESSILE_NOTFOUND)
        status = fail(err, disabled.code, "%s", disabled.message);
    return status;
}

static sessile_status create_session(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__CreateRequest *r = request;
    const service_defaults *configured;
    sessile_session_options options;
    sessile_session *session = NULL;
    sessile_status status = call_names(c, r->session, &options, err);
    if (status)
        return status;
    options.title = sessile_text(r->title);
    options.metadata = json_slice(r->metadata);
    configured = service_defaults_of(c->server, options.agent);
    options.ttl_ms = r->ttl_ms || !configured ? r->ttl_ms : configured->ttl_ms;
    status = make_session(c, r->open && options.id.size, &options, &session, err);
    if (!status)
        status = reply_info(c, session, err);
    (void)sessile_session_close(session, NULL);
    return status;
}

static sessile_status resume_session(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__SessionRequest *r = request;
    sessile_session *session;
    sessile_status status = call_session(c, r->session, &session, err);
    return status ? status : reply_info(c, session, err);
}

static sessile_status delete_session(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__DeleteRequest *r = request;
    Sessile__V1__Deleted *out = call_make(c, &sessile__v1__deleted__descriptor);
    sessile_session_options options;
    sessile_delete_options how = {0};
    sessile_deleted deleted;
    sessile_status status = call_names(c, r->session, &options, err);
    if (status)
        return status;
    how.soft = r->soft;
    how.reason = sessile_text(r->reason);
    how.actor = sessile_text(r->actor);
    status = sessile_delete(c->view, &options, &how, &deleted, err);
    if (status || !out)
        return status ? status : fail_nomem(err);
    out->id_hash = call_string(c, deleted.id_hash);
    out->time_ms = deleted.time_ms;
    out->bytes = deleted.bytes;
    return call_reply(c, &out->base, err);
}

static sessile_status undelete_session(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__UndeleteRequest *r = request;
    sessile_session_options options;
    sessile_status status = call_names(c, r->session, &options, err);
    if (!status)
        status = sessile_undelete(c->view, &options, sessile_text(r->actor), err);
    return status ? status : reply_empty(c, err);
}

/* ---------------------------------------------------------------------- lists */

sessile_status read_scope(call *c, const Sessile__V1__Session *names, int any_user,
                          sessile_list_options *out, sessile_error *err)
{
    Sessile__V1__Session none = SESSILE__V1__SESSION__INIT;
    sessile_session_options named;
    sessile_status status = call_names(c, names ? names : &none, &named, err);
    if (status)
        return status;
    if (named.agent.size)
        out->agent = named.agent;
    if (named.user.size && (names_user(names) || !any_user))
        out->user = named.user;
    return SESSILE_OK;
}

static sessile_status read_lives(const Sessile__V1__ListRequest *r, unsigned *out,
                                 sessile_error *err)
{
    *out = 0;
    for (size_t i = 0; i < r->n_lives; i++) {
        unsigned life = SESSILE_LIFE_ACTIVE;
        while (life <= SESSILE_LIFE_DELETED &&
               strcmp(r->lives[i], sessile_life_name((sessile_life)life)) != 0)
            life++;
        if (life > SESSILE_LIFE_DELETED)
            return fail(err, SESSILE_INVALID,
                        "ListRequest.lives: a session is active, suspended, archived, "
                        "expired or deleted");
        *out |= 1u << life;
    }
    return SESSILE_OK;
}

static sessile_status read_sort(const char *name, sessile_sort *out, sessile_error *err)
{
    int sort = 0;
    *out = SESSILE_SORT_MODIFIED;
    if (!*name)
        return SESSILE_OK;
    while (sessile_sort_name((sessile_sort)sort) &&
           strcmp(name, sessile_sort_name((sessile_sort)sort)) != 0)
        sort++;
    if (!sessile_sort_name((sessile_sort)sort))
        return fail(err, SESSILE_INVALID,
                    "ListRequest.sort is modified, created, title, size or messages");
    *out = (sessile_sort)sort;
    return SESSILE_OK;
}

static sessile_status read_list(call *c, const Sessile__V1__ListRequest *r,
                                sessile_list_options *out, sessile_error *err)
{
    sessile_list_options_init(out);
    sessile_status status = read_scope(c, r->session, r->any_user, out, err);
    if (status)
        return status;
    out->id_prefix = sessile_text(r->id_prefix);
    out->title = sessile_text(r->title);
    out->label = sessile_text(r->label);
    out->text = sessile_text(r->text);
    out->since_ms = r->since_ms;
    out->until_ms = r->until_ms;
    out->offset = r->skip;
    out->limit = r->limit ? r->limit : ROWS;
    if (out->limit > ROWS_MOST)
        return fail(err, SESSILE_LIMIT, "ListRequest.limit is at most %d", ROWS_MOST);
    status = read_lives(r, &out->lives, err);
    return status ? status : read_sort(r->sort, &out->sort, err);
}

static void fill_listed(call *c, Sessile__V1__Listed *out, const sessile_listed *row)
{
    out->session = call_session_names(c, row->agent, row->user, row->id);
    out->title = call_text(c, row->title);
    out->created_ms = row->created_ms;
    out->modified_ms = row->modified_ms;
    out->entries = row->entries;
    out->messages = row->messages;
    out->bytes = row->bytes;
    out->ttl_ms = row->ttl_ms;
    out->expires_ms = row->expires_ms;
    out->deleted_ms = row->deleted_ms;
    out->labels = call_json(c, row->labels);
    if (row->status)
        out->damage = call_damage(c, row->status, row->message, 0);
    else
        out->life = call_string(c, sessile_life_name(row->life));
}

static sessile_status list_sessions(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__ListRequest *r = request;
    Sessile__V1__ListResponse *out =
        call_make(c, &sessile__v1__list_response__descriptor);
    sessile_list_options options;
    page p;
    sessile_status status = read_list(c, r, &options, err);
    if (!status)
        status = page_list(c, r, &options, &p, err);
    if (status)
        return status;
    if (out) {
        out->sessions = call_rows(c, p.count, &sessile__v1__listed__descriptor);
        for (size_t i = 0; out->sessions && i < p.count; i++)
            fill_listed(c, out->sessions[i], &p.first[i]);
        out->n_sessions = out->sessions ? p.count : 0;
        out->next_page_token = p.next;
    }
    sessile_free(p.all);
    return out ? call_reply(c, &out->base, err) : fail_nomem(err);
}

const method methods_sessions[] = {
    METHOD("CreateSession", create_session, create_request, 0),
    METHOD("ResumeSession", resume_session, session_request, METHOD_READS),
    METHOD("ListSessions", list_sessions, list_request, METHOD_READS | METHOD_ALL),
    METHOD("DeleteSession", delete_session, delete_request, 0),
    METHOD("UndeleteSession", undelete_session, undelete_request, 0),
    {NULL, NULL, 0, NULL},
};

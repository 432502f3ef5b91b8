#include "support/views.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/keyed.h"
#include "support/sessions.h"

#include <cmocka.h>

void views_open(views *v, const sessile_guard_options *options)
{
    memset(v, 0, sizeof *v);
    v->folder = folder_make();
    snprintf(v->path, sizeof v->path, "%s/store", v->folder);
    v->store = keyed_open(v->path, KEYED_OLD);
    must(sessile_store_guard(v->store, options, &v->err), &v->err);
}

void views_close(views *v)
{
    sessile_store_close(v->store);
    folder_remove(v->folder);
}

sessile_store *view_of(views *v, const char *user, const char *role)
{
    sessile_credential c;
    sessile_store *view;

    sessile_credential_init(&c);
    c.user = sessile_text(user);
    c.roles = &role;
    c.role_count = role != NULL;
    must(sessile_store_as(&view, v->store, &c, &v->err), &v->err);
    return view;
}

sessile_session_options session_of(const char *agent, const char *user, const char *id)
{
    sessile_session_options o;

    sessile_session_options_init(&o);
    if (agent)
        o.agent = sessile_text(agent);
    if (user)
        o.user = sessile_text(user);
    if (id)
        o.id = sessile_text(id);
    return o;
}

void view_puts(views *v, sessile_store *view, const char *agent, const char *id)
{
    sessile_session_options o = session_of(agent, NULL, id);
    sessile_session *s;

    must(sessile_create(&s, view, &o, &v->err), &v->err);
    must(sessile_append(s, HELLO, NULL, &v->err), &v->err);
    must(sessile_session_close(s, &v->err), &v->err);
}

sessile_status view_resumes(views *v, sessile_store *view, const char *agent,
                            const char *user, const char *id, sessile_session **out)
{
    sessile_session_options o = session_of(agent, user, id);
    sessile_session *s;
    sessile_status status = sessile_resume(&s, view, &o, &v->err);

    if (out)
        *out = s;
    else
        sessile_session_close(s, NULL);
    return status;
}

sessile_status view_reads(views *v, sessile_session *s)
{
    sessile_message *rows;
    size_t count;
    sessile_status status = sessile_messages(s, NULL, &rows, &count, &v->err);

    sessile_free(rows);
    return status;
}

sessile_grant_options grant_of(const char *user, const char *role, const char *session)
{
    sessile_grant_options o;

    sessile_grant_options_init(&o);
    o.user = sessile_text(user);
    o.role = role;
    o.session = sessile_text(session);
    return o;
}

sessile_id view_grants(views *v, sessile_store *by, const sessile_grant_options *o)
{
    sessile_id id;

    must(sessile_grant(by, o, &id, &v->err), &v->err);
    return id;
}

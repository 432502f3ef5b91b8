/* views.h: a guarded store in a folder, views of it, and sessions that they open. */
#ifndef SUPPORT_VIEWS_H
#define SUPPORT_VIEWS_H

#include "sessile_access.h"

#define HELLO sessile_text("{\"role\":\"user\",\"content\":\"hello there\"}")

typedef struct views {
    char *folder, path[600];
    sessile_store *store; /* the host's */
    sessile_error err;
} views;

/* With limits and an audit when the options say so; NULL: what init() makes. */
void views_open(views *v, const sessile_guard_options *options);
void views_close(views *v);

/* A view by the host's word; role NULL: none. */
sessile_store *view_of(views *v, const char *user, const char *role);
/* The options of a session; NULL is left out. */
sessile_session_options session_of(const char *agent, const char *user, const char *id);
/* A session with one message. */
void view_puts(views *v, sessile_store *view, const char *agent, const char *id);
/* What sessile_resume() answers; out (may be NULL): the session, else it is closed. */
sessile_status view_resumes(views *v, sessile_store *view, const char *agent,
                            const char *user, const char *id, sessile_session **out);
/* What a read of a session answers. */
sessile_status view_reads(views *v, sessile_session *s);
/* A role for a user, on the session when that is not NULL. */
sessile_grant_options grant_of(const char *user, const char *role, const char *session);
sessile_id view_grants(views *v, sessile_store *by, const sessile_grant_options *o);

#endif

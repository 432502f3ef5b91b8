/*
 * access_facts.h: what facts about access have in common. For access_*.c alone.
 *
 *   access_grants.c  grants
 *   access_keys.c    access keys and locks
 *   access_rows.h    what is listed, copied for the host
 */
#ifndef GUARD_ACCESS_FACTS_H
#define GUARD_ACCESS_FACTS_H

#include "guard/access.h"

/* 1: it may make and end each of these facts. */
int access_manages(const principal *p);
/* INVALID: that time is over. what: "grant". */
sessile_status access_check_until(const principal *p, int64_t until_ms, const char *what,
                                  sessile_error *err);
/* INVALID: there is no such role. DENIED: p may less. on_session: its scope is of no
 * matter. */
sessile_status access_check_role(const principal *p, const char *name, int on_session,
                                 sessile_error *err);
/* LIMIT: a text that is longer than a name of the store may be, or too many of them: a
 * fact is read by every process that has a guard on the store. what: "label". */
sessile_status access_check_text(const principal *p, sessile_slice text, const char *what,
                                 sessile_error *err);
sessile_status access_check_texts(const principal *p, const sessile_slice *list,
                                  size_t count, const char *what, sessile_error *err);
int access_has_ended(const principal *p, int64_t until_ms);

/* Members of the data of a fact, after others. What is empty is left out. */
void fact_put_name(buf *out, const char *name, sessile_slice text);
void fact_put_names(buf *out, const char *name, const sessile_slice *list, size_t count);
/* IO, NOMEM. */
sessile_status fact_put_user(const principal *p, buf *out, const char *name,
                             sessile_slice user, sessile_error *err);
/* Ends the data, which begins with "{" and a member, and appends it, durably. Errors of
 * control_append(). */
sessile_status fact_append(const principal *p, control_kind kind, buf *data,
                           sessile_id *id, sessile_error *err);

#endif

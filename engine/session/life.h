/*
 * life.h: where a session stands in its life: active, suspended, archived, expired,
 * deleted; and the steps between.
 */
#ifndef SESSION_LIFE_H
#define SESSION_LIFE_H

#include "session/session.h"

/* What the log says; where the session stands follows from it and the time. */
typedef struct life_facts {
    int64_t ttl_ms;     /* 0: none */
    int64_t deleted_ms; /* 0: it is not deleted */
    int archived, suspended;
} life_facts;

sessile_status session_life_facts_locked(sessile_session *s, life_facts *out,
                                         sessile_error *err);
/* modified_ms: of the newest entry. */
sessile_life life_of(const life_facts *f, int64_t modified_ms, int64_t now_ms);
/* When it expires, or 0. */
int64_t life_expires(const life_facts *f, int64_t modified_ms);

/* NOTFOUND, naming the way back, when the session is softly deleted. */
sessile_status session_check_there_locked(sessile_session *s, sessile_error *err);

/* As sessile.h says of the functions of these names. */
sessile_status session_life(sessile_session *s, sessile_life_info *out,
                            sessile_error *err);
sessile_status session_set_ttl(sessile_session *s, int64_t ttl_ms, sessile_error *err);
sessile_status session_set_archived(sessile_session *s, int archived, sessile_error *err);
sessile_status session_delete(sessile_store *st, const sessile_session_options *which,
                              const sessile_delete_options *options, sessile_deleted *out,
                              sessile_error *err);
sessile_status session_undelete(sessile_store *st, const sessile_session_options *which,
                                sessile_slice actor, sessile_error *err);
sessile_status session_purge(sessile_store *st, const sessile_purge_options *options,
                             sessile_listed **out, size_t *count, sessile_error *err);

#endif

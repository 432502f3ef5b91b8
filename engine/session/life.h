/*
 * life.h: the state of a session's life: active, suspended, archived, expired, deleted.
 */
#ifndef SESSION_LIFE_H
#define SESSION_LIFE_H

#include "session/handle.h"

/* Names of the metadata facts. */
#define LIFE_DELETED  "deleted"
#define LIFE_ARCHIVED "archived"
#define LIFE_TTL      "ttl_ms"
/* The longest time to live, ms: no sum of times overflows. */
#define LIFE_TTL_MOST (INT64_C(1) << 53)

/* What the log says; where the session stands follows from it and the time. */
typedef struct life_facts {
    int64_t ttl_ms;     /* 0: none */
    int64_t deleted_ms; /* 0: it is not deleted */
    int64_t written_ms; /* time of the newest entry: a time to live counts from it */
    int archived, suspended;
} life_facts;

sessile_status session_life_facts_locked(session_core *s, life_facts *out,
                                         sessile_error *err);
sessile_life life_state(const life_facts *f, int64_t now_ms);
/* When it expires, or 0. */
int64_t life_expires(const life_facts *f);

/* NOTFOUND, naming the way back, when the session is softly deleted. */
sessile_status session_check_exists_locked(session_core *s, sessile_error *err);

/* SUSPENDED, naming what it waits for, while the host has suspended the session; NOTFOUND
 * when it is softly deleted. Whoever builds path entries or moves the head asks first. */
sessile_status session_check_running_locked(session_core *s, sessile_error *err);

#endif

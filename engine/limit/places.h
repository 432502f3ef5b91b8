/*
 * limit_places.h: the places that calls are counted in. Not for other floors.
 *
 * A place begins with a limit_place, whose functions any thread may call. Nothing here
 * fails but by saying that the place is away.
 */
#ifndef LIMIT_PLACES_H
#define LIMIT_PLACES_H

#include "base/text.h"
#include "limit/window.h"

typedef enum limit_answer {
    LIMIT_COUNTED, /* it has room: ask->retry_ms is 0, and it is counted unless `look` */
    LIMIT_FULL,    /* it has none: ask->retry_ms */
    LIMIT_AWAY,    /* the place cannot be used; why is filled */
    LIMIT_NOT_YET  /* there is no such place yet: nothing is lost */
} limit_answer;

typedef struct limit_place limit_place;
struct limit_place {
    limit_answer (*take)(limit_place *self, limit_ask *ask, sessile_error *why);
    /* Takes back what was counted, in ask->part. If it fails, one more is counted. A
     * server, which does not say the part, takes the oldest count that there is: so there
     * are still never more than N calls in any period. */
    void (*undo)(limit_place *self, const limit_ask *ask);
    void (*free)(limit_place *self);
};

/* The time of the windows on this machine. */
limit_time limit_now(const os_table *os, uint64_t boot);

/* In the handle: 64 to 65,536 records, as many as are needed (limit_ram.c). */
sessile_status limit_ram_open(limit_place **out, const os_table *os, const allocator *a,
                              sessile_error *err);

/* In a file that the processes of this machine share (limit_file.c). Its folder is only
 * made for a call that `makes`. */
sessile_status limit_file_open(limit_place **out, const char *path, const hash_key *key,
                               const os_table *os, const allocator *a,
                               sessile_error *err);

/* In Redis (limit_redis.c). INVALID: the URL; UNSUPPORTED: no client library. */
sessile_status limit_redis_open(limit_place **out, const char *url, const os_table *os,
                                const allocator *a, sessile_error *err);

/* Where a Redis server is, read from its URL. */
typedef struct limit_redis_url {
    char host[256]; /* or */
    char path[108]; /* of a Unix socket; else "" */
    int port, database;
    char user[128], password[256]; /* "" : none */
} limit_redis_url;
/* INVALID; the sentence never has a part of the URL. */
sessile_status limit_redis_url_parse(limit_redis_url *out, const char *url,
                                     sessile_error *err);

/* In a table of a PostgreSQL store (limit_postgres.c). */
sessile_status limit_postgres_open(limit_place **out, const store *backend,
                                   const allocator *a, sessile_error *err);

#endif

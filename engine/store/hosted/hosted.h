/*
 * hosted.h: what the files of a host's backend share.
 *
 *   hosted.c       the table that was brought, checked; the one that the engine sees
 *   hosted_log.c   logs, their caches and drafts
 *   hosted_list.c  what there is
 *   hosted_blob.c  blobs and list_caches
 *
 * Each function of ours hears the host's through a hosted_answer, so that no sentence
 * without an end and no status that there is none of comes further than here.
 */
#ifndef STORE_HOSTED_H
#define STORE_HOSTED_H

#include "store/store.h"

typedef struct hosted {
    allocator alloc;
    sessile_backend host;  /* the host's table; what it lacks is NULL */
    sessile_backend shown; /* what the engine sees */
    void *self;
    char name[41];
} hosted;

/* The host writes its sentence into `heard`; err may be NULL. */
typedef struct hosted_answer {
    sessile_error heard;
    sessile_error *err;
} hosted_answer;

/* What the host is to write into, before it is called. */
sessile_error *hosted_hear(hosted_answer *a, sessile_error *err);
/* After it: its status and sentence, as far as they make sense. what: the function. */
sessile_status hosted_told(const hosted *h, hosted_answer *a, sessile_status status,
                           const char *what);
/* IO: it said what cannot be. */
sessile_status hosted_absurd(const hosted *h, sessile_error *err, const char *what);

/* Each puts its functions into `shown`, where the host has what they call. */
void hosted_show_logs(sessile_backend *shown, const sessile_backend *host);
void hosted_show_lists(sessile_backend *shown, const sessile_backend *host);
void hosted_show_blobs(sessile_backend *shown, const sessile_backend *host);

#endif

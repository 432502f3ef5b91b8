/*
 * hosted.h: what the files of this folder share.
 *
 * Every call of a host function goes through HOSTED_CALL, which checks the status and the
 * error message that come back.
 */
#ifndef STORE_HOSTED_H
#define STORE_HOSTED_H

#include "store/hosted/open.h"

typedef struct hosted {
    allocator alloc;
    sessile_backend host;  /* a copy of the host's table */
    sessile_backend shown; /* the table that the engine sees */
    void *self;
    char name[41];
} hosted;

/*
 * Calls `function` of the host's table with the arguments given and a sessile_error of
 * its own, and declares `status`, which holds the checked result.
 */
#define HOSTED_CALL(status, h, err, function, ...) \
    sessile_error heard = {0};                     \
    sessile_status status = hosted_answer(         \
        h, err, (h)->host.function(__VA_ARGS__, &heard), &heard, #function)

/* The status and the message of a call, as far as they make sense; err may be NULL. */
sessile_status hosted_answer(const hosted *h, sessile_error *err, sessile_status status,
                             sessile_error *heard, const char *function);
/* IO: the host returned something impossible. */
sessile_status hosted_absurd(const hosted *h, sessile_error *err, const char *what);

/* Each fills its part of `shown` with wrappers of the functions that the host has. */
void hosted_show_logs(sessile_backend *shown, const sessile_backend *host);
void hosted_show_lists(sessile_backend *shown, const sessile_backend *host);
void hosted_show_blobs(sessile_backend *shown, const sessile_backend *host);

#endif

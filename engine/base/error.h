/* error.h: fills a sessile_error: every function that can fail reports it this way. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "sessile.h"

/* Fills err (NULL: does nothing) and returns code, so that a function ends with
 * `return fail(err, SESSILE_INVALID, "...")`. The sentence names the thing and says
 * what to do. It never contains a user's text or a secret. It is cut to the size of
 * the field without splitting a UTF-8 sequence; control characters become '?'. */
sessile_status fail(sessile_error *err, sessile_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* fail() with the rule that refused, a name of ours: cut at 63 bytes. */
sessile_status fail_rule(sessile_error *err, sessile_status code, const char *rule,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

/* NOMEM with its one sentence. */
sessile_status fail_nomem(sessile_error *err);

/* Adds "prefix: " to the front of the message. Returns err's code. */
sessile_status fail_prefix(sessile_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The status for an errno: ENOSPC and EDQUOT are FULL, EACCES, EPERM, EROFS and ELOOP
 * DENIED, ENOENT NOTFOUND, EEXIST EXISTS, ENOMEM NOMEM, all else IO. */
sessile_status status_of_errno(int error);

/* fail() with that status; the format says what was being done, and ": <strerror>" is
 * added. */
sessile_status fail_errno(sessile_error *err, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void error_clear(sessile_error *err);

#endif

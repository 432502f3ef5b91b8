/* api.h: the edge: arguments checked, calls passed down, errors cleared. Nothing else. */
#ifndef API_API_H
#define API_API_H

#include "base/error.h"

/* INVALID for a pointer that a call cannot do without. */
static inline sessile_status api_missing(sessile_error *err, const char *function,
                                         const char *what)
{
    return fail(err, SESSILE_INVALID, "%s: %s is NULL", function, what);
}

#endif

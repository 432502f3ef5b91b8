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

/* 1 when a slice has a size and no data. */
static inline int api_bad(sessile_slice slice)
{
    return slice.size && !slice.data;
}

/*
 * Begins reading from a session into out: the error cleared, arguments checked, what
 * others wrote read in, the session's mutex locked (the caller unlocks it; not on
 * failure).
 */
sessile_status api_read_begin(sessile_session *session, const void *out,
                              const char *function, sessile_error *err);

/* INVALID for options of a list that are none. */
sessile_status api_check_list(const sessile_list_options *options, sessile_error *err);

/* Opens a session that is there, with the policy of the options. */
sessile_status api_open(sessile_session **out, sessile_store *store,
                        const sessile_session_options *options, sessile_error *err);

/* Gives a policy_ref's policy back. */
void api_release_policy(void *policy);

#endif

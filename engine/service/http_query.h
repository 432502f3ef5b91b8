/*
 * http_query.h: the parameters of GET /v1/events, from untrusted text.
 */
#ifndef SERVICE_HTTP_QUERY_H
#define SERVICE_HTTP_QUERY_H

#include "base/error.h"

/* What is not given is NULL. */
typedef struct http_query {
    char *agent, *user, *id, *from;
} http_query;

/* Splits and decodes a query, "id=a%20b&from=3", in place: the values are in it.
 * INVALID: another parameter, one that is given twice or has no value, a malformed
 * percent sign, a NUL. */
sessile_status http_query_read(char *query, http_query *out, sessile_error *err);
/* The id of an entry in decimal, below the largest, so that it has a next one. what: for
 * the sentence. INVALID. */
sessile_status http_entry_read(const char *text, const char *what, sessile_id *out,
                               sessile_error *err);

#endif

/* redact.h: what leaves the service as telemetry has no secrets in it. */
#ifndef SERVICE_REDACT_H
#define SERVICE_REDACT_H

#include "base/buf.h"

/*
 * Appends size bytes of any text, with "***" where a secret stands:
 *
 *   - the password of a URL: from the first ':' behind "://" to the last '@' of the word
 *   - the value of password=, passwd=, secret= or token=, to '&', ';' or the word's end
 *   - what follows "Bearer" or "Basic", when it has 16 bytes or more
 *   - the secret of an access key (sesk_ID_...), and tokens (eyJ...)
 *
 * Words end at white space and control characters. It may hide more than the secret, and
 * it cannot know a secret that has no mark: callers still do not log what they know to be
 * one. Look at out->failed.
 */
void redact_put(buf *out, const char *text, size_t size);

/* Appends the text as a JSON string: redacted, invalid UTF-8 replaced, and cut at limit
 * bytes, with "…" behind it then. */
void redact_put_json(buf *out, const char *text, size_t size, size_t limit);

#endif

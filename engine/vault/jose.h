/*
 * jose.h: what tokens and key sets have in common: base64url, and JSON objects in which
 * no name occurs twice.
 */
#ifndef VAULT_JOSE_H
#define VAULT_JOSE_H

#include "codec/json.h"

/* The greatest depth of nested objects in a token or a key set, and the greatest number
 * of members of one object. */
enum { JOSE_DEPTH = 16, JOSE_MEMBERS = 128 };

/*
 * Decodes base64url (RFC 7515: no padding) in its one canonical spelling: 0 and *size, or
 * -1: another alphabet, padding, white space, spare bits that are set, a length that no
 * encoder writes, or more than `room` bytes.
 */
int jose_decode(void *out, size_t room, const char *text, size_t text_size, size_t *size);

typedef enum jose_result {
    JOSE_OK,
    JOSE_NO_JSON, /* no JSON, no object, or nested too deep */
    JOSE_DOUBLED, /* a name occurs twice in an object, at any depth, after its escapes are
                     decoded; or an object has more than JOSE_MEMBERS members */
    JOSE_NOMEM
} jose_result;

/* Checks that text is such an object and appends it, without white space, to checked,
 * which must be empty and outlive *out. */
jose_result jose_object(buf *checked, const char *text, size_t size, json *out);

#endif

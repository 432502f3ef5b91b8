/*
 * jose.c: base64url and JSON objects, as tokens and key sets have them.
 *
 * Owns what is refused before anything is understood. Must never read leniently: when two
 * programs read one token differently, one of them can be told what the other was not.
 */
#include "vault/jose.h"

#include <sodium.h>

#include "base/text.h"

int jose_decode(void *out, size_t room, const char *text, size_t text_size, size_t *size)
{
    const char *end;
    *size = 0;
    /* Refuses padding and spare bits, too. */
    if (sodium_base642bin(out, room, text, text_size, NULL, size, &end,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0 ||
        end != text + text_size) {
        *size = 0;
        return -1;
    }
    return 0;
}

/* The hash of a name whose escapes are decoded: 0, or -1: no memory. */
static int hash_name(json key, buf *name, uint64_t *out)
{
    const char *text;
    size_t size;
    if (!json_plain(key, &text, &size)) {
        buf_clear(name);
        if (json_string(name, key))
            return -1;
        text = name->data;
        size = name->size;
    }
    *out = hash64(text, size);
    return 0;
}

/* Names are compared by their hashes, so that an object of any size costs little. Two
 * names with one hash (2^-64, with a secret of the process) would be refused. */
static jose_result check_names(json value, buf *name)
{
    uint64_t seen[JOSE_MEMBERS];
    size_t count = 0;
    json_iter it = json_begin(value);
    while (json_next(&it)) {
        if (it.is_object) {
            if (count == JOSE_MEMBERS)
                return JOSE_DOUBLED;
            if (hash_name(it.key, name, &seen[count]))
                return JOSE_NOMEM;
            for (size_t i = 0; i < count; i++)
                if (seen[i] == seen[count])
                    return JOSE_DOUBLED;
            count++;
        }
        if (it.value.type == JSON_OBJECT || it.value.type == JSON_ARRAY) {
            jose_result inside = check_names(it.value, name); /* JOSE_DEPTH at most */
            if (inside)
                return inside;
        }
    }
    return JOSE_OK;
}

jose_result jose_object(buf *checked, const char *text, size_t size, json *out)
{
    jose_result result;
    buf name;
    sessile_status status = json_check(checked, text, size, JOSE_DEPTH, NULL);
    if (status == SESSILE_NOMEM)
        return JOSE_NOMEM;
    if (status)
        return JOSE_NO_JSON;
    *out = json_of(checked->data, checked->size);
    if (out->type != JSON_OBJECT)
        return JOSE_NO_JSON;
    buf_init(&name, checked->alloc);
    result = check_names(*out, &name);
    buf_wipe(&name);
    return result;
}

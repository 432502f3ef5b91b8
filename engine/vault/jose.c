/*
 * jose.c: base64url and JSON objects, as tokens and key sets have them.
 *
 * Owns what is refused before anything is understood. Must never read leniently: when two
 * programs read one token differently, one of them can be told what the other was not.
 */
#include "vault/jose.h"

#include "base/text.h"

/* The six bits that a character stands for, or -1. */
static int bits_of(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

/* Not by libsodium: its decoder (1.0.18) takes some bytes above 0x7f for characters of
 * the alphabet, so that one signature would have many spellings. */
int jose_decode(void *out, size_t room, const char *text, size_t text_size, size_t *size)
{
    unsigned char *to = out;
    unsigned pending = 0, bits = 0;
    *size = 0;
    if (text_size % 4 == 1 || text_size / 4 * 3 + text_size % 4 * 3 / 4 > room)
        return -1;
    for (size_t i = 0; i < text_size; i++) {
        int value = bits_of((unsigned char)text[i]);
        if (value < 0)
            return -1;
        pending = (pending << 6 | (unsigned)value) & 0xfff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            *to++ = (unsigned char)(pending >> bits);
        }
    }
    if (pending & ((1u << bits) - 1)) /* spare bits */
        return -1;
    *size = (size_t)(to - (unsigned char *)out);
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

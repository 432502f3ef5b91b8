/*
 * access_key.c: access keys: drawn, read, hashed.
 *
 * Owns their spelling. There is one spelling of each key: letters are compared as they
 * stand, so nothing is decoded.
 */
#include "vault/access_key.h"

#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "vault/guarded.h"

static const char prefix[] = "sesk_";
static const char hash_name[] = "sessile access key";
enum {
    PREFIX = sizeof prefix - 1,
    ID_BYTES = 10,
    SECRET_BYTES = 32,
    SECRET = 52,
    CHECK = 6,
    SECRET_AT = PREFIX + ACCESS_KEY_ID + 1,
    CHECK_AT = SECRET_AT + SECRET + 1
};

static void put_check(const char *text, char out[CHECK])
{
    unsigned char hash[32];
    char letters[9];

    hash256(hash, text, CHECK_AT - 1, NULL, 0);
    base32_encode(letters, hash, 5);
    memcpy(out, letters, CHECK);
    sodium_memzero(hash, sizeof hash);
    sodium_memzero(letters, sizeof letters);
}

void access_key_draw(char out[ACCESS_KEY_TEXT + 1])
{
    unsigned char random[SECRET_BYTES];

    memcpy(out, prefix, PREFIX);
    random_bytes(random, ID_BYTES);
    base32_encode(out + PREFIX, random, ID_BYTES);
    random_bytes(random, sizeof random);
    base32_encode(out + SECRET_AT, random, sizeof random);
    sodium_memzero(random, sizeof random);
    out[SECRET_AT - 1] = out[CHECK_AT - 1] = '_';
    put_check(out, out + CHECK_AT);
    out[ACCESS_KEY_TEXT] = 0;
}

int access_key_read(sessile_slice text, sessile_slice *id)
{
    char check[CHECK];

    *id = (sessile_slice){NULL, 0};
    if (text.size != ACCESS_KEY_TEXT || memcmp(text.data, prefix, PREFIX) != 0 ||
        text.data[SECRET_AT - 1] != '_' || text.data[CHECK_AT - 1] != '_')
        return -1;
    put_check(text.data, check);
    if (sodium_memcmp(check, text.data + CHECK_AT, CHECK) != 0)
        return -1;
    *id = (sessile_slice){text.data + PREFIX, ACCESS_KEY_ID};
    return 0;
}

void access_key_hash(const keyring *k, sessile_slice text,
                     unsigned char out[ACCESS_KEY_HASH])
{
    unsigned char inner[32];

    hash256(inner, text.data, text.size, hash_name, sizeof hash_name - 1);
    hash256(out, inner, sizeof inner, keyring_name_key(k), VAULT_KEY);
    sodium_memzero(inner, sizeof inner);
}

int access_key_same(const unsigned char a[ACCESS_KEY_HASH],
                    const unsigned char b[ACCESS_KEY_HASH])
{
    return sodium_memcmp(a, b, ACCESS_KEY_HASH) == 0;
}

/*
 * names.c: names of logs and folders that any byte string is safe in.
 *
 * Owns the rule of which ids stand as they are. Everything else becomes "=" and base32 of
 * a hash under the store's name key: no byte of an id can lead out of its folder, two ids
 * never share a name, and a sealed store's folder says nothing of the ids in it. It must
 * never depend on the secret: names outlive a change of it.
 */
#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "vault/guarded.h"

#define LONGEST_AS_IS 100

static int stands_as_it_is(sessile_slice text)
{
    if (text.size < 1 || text.size > LONGEST_AS_IS || text.data[0] == '-')
        return 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
            return 0;
    }
    return 1;
}

static void hash_part(crypto_generichash_state *state, sessile_slice text)
{
    unsigned char size[8];
    for (int i = 0; i < 8; i++)
        size[i] = (unsigned char)((uint64_t)text.size >> (8 * i));
    crypto_generichash_update(state, size, sizeof size);
    crypto_generichash_update(state, (const unsigned char *)text.data, text.size);
}

static void hash_parts(const keyring *k, const sessile_slice *parts, size_t count,
                       unsigned char *out, size_t size)
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, keyring_name_key(k), VAULT_KEY, size);
    for (size_t i = 0; i < count; i++)
        hash_part(&state, parts[i]);
    crypto_generichash_final(&state, out, size);
    sodium_memzero(&state, sizeof state);
}

static void hashed_name(const keyring *k, const sessile_slice *parts, size_t count,
                        char out[NAME_SIZE])
{
    unsigned char hash[32];
    hash_parts(k, parts, count, hash, sizeof hash);
    out[0] = '=';
    base32_encode(out + 1, hash, sizeof hash);
}

void keyring_log_name(const keyring *k, sessile_slice user, sessile_slice id,
                      char out[NAME_SIZE])
{
    if (user.size == 0 && stands_as_it_is(id)) {
        memcpy(out, id.data, id.size);
        out[id.size] = '\0';
        return;
    }
    sessile_slice parts[] = {user, id};
    hashed_name(k, parts, 2, out);
}

void keyring_folder_name(const keyring *k, sessile_slice agent, char out[NAME_SIZE])
{
    if (stands_as_it_is(agent)) {
        memcpy(out, agent.data, agent.size);
        out[agent.size] = '\0';
        return;
    }
    hashed_name(k, &agent, 1, out);
}

void keyring_user_name(const keyring *k, sessile_slice user, char out[NAME_SIZE])
{
    out[0] = '\0';
    if (user.size > 0 && keyring_sealed(k) && keyring_has_blobs(k)) {
        hashed_name(k, &user, 1, out);
        /* the "=" of names gives way to the prefix of blobs */
        memmove(out + sizeof USER_PREFIX - 1, out + 1, strlen(out));
        memcpy(out, USER_PREFIX, sizeof USER_PREFIX - 1);
    }
}

uint64_t keyring_name_hash(const keyring *k, const sessile_slice *parts, size_t count)
{
    unsigned char hash[crypto_generichash_BYTES_MIN];
    uint64_t out;
    hash_parts(k, parts, count, hash, sizeof hash);
    memcpy(&out, hash, sizeof out);
    return out;
}

/*
 * fuzz_control.c: whatever the facts of a control log say, the fold holds.
 *
 * An input is lines, each the data of a fact behind a letter: its kind. They are appended
 * to the control log of a store in memory as they are. Holds: the fold takes them all or
 * the store has none; no list has more rows than there are facts; a grant, a key or a
 * lock whose user cannot be read gives nobody anything and locks nobody; a second handle
 * has the same rows.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "guard/enter.h"
#include "guard/guard.h"
#include "codec/json.h"

static const char *const pieces[] = {
    "g{\"role\":\"viewer\",\"user\":\"ann\"}\n",
    "g{\"role\":\"admin\",\"holders\":\"viewer\",\"agents\":[\"a*\"],\"until\":1}\n",
    "g{\"role\":\"editor\",\"user\":\"ann\",\"session\":\"s\",\"agent\":\"main\","
    "\"owner\":\"bob\"}\n",
    "g{\"end\":1}\n",
    "k{\"key\":\"aaaaaaaaaaaaaaaa\",\"hash\":\"",
    "\"user\":null",
    "\"user\":{\"id\":\"u_\",\"secret\":\"user-aa-1\",\"name\":\"AAAA\"}",
    "k{\"revoke\":\"aaaaaaaaaaaaaaaa\"}\n",
    "l{\"locked\":true,\"user\":\"ann\"}\n",
    "l{\"locked\":false,\"user\":\"ann\"}\n",
    "{\"b64\":\"/w==\"}",
    "18446744073709551615",
    "\n",
    NULL};

const fuzz_about fuzz_this = {"control", 4000, 1 << 12, pieces};

static control_kind kind_of(char letter)
{
    return letter == 'g' ? CONTROL_GRANT : letter == 'k' ? CONTROL_KEY : CONTROL_LOCK;
}

/* Appends what is an object. How many facts there are. */
static size_t append(control *c, const char *data, size_t size)
{
    size_t made = 0;

    for (const char *end; size > 0 && made < 64;
         size -= (size_t)(end - data) + 1, data = end + 1) {
        buf text;
        end = memchr(data, '\n', size);
        if (!end)
            break;
        if (end - data < 3)
            continue;
        buf_init(&text, &allocator_default);
        if (!json_check(&text, data + 1, (size_t)(end - data) - 1, 32, NULL) &&
            text.data[0] == '{') {
            sessile_error err;
            FUZZ_CHECK(!control_append(c, kind_of(data[0]), &text, 0, NULL, &err));
            made++;
        }
        buf_deinit(&text);
    }
    return made;
}

typedef struct seen {
    size_t grants, keys, locks;
} seen;

static seen look(sessile_store *store, size_t most)
{
    sessile_grant_row *grants = NULL;
    sessile_access_key_row *keys = NULL;
    sessile_access_lock_row *locks = NULL;
    sessile_error err;
    seen s;

    FUZZ_CHECK(!sessile_grants(store, &grants, &s.grants, &err));
    FUZZ_CHECK(!sessile_access_keys(store, &keys, &s.keys, &err));
    FUZZ_CHECK(!sessile_access_locks(store, &locks, &s.locks, &err));
    FUZZ_CHECK(s.grants + s.keys + s.locks <= most);
    sessile_free(grants);
    sessile_free(keys);
    sessile_free(locks);
    return s;
}

/* Nobody of that name is in a fact: they may nothing, and are not locked. */
static void try_nobody(sessile_store *store)
{
    sessile_credential c;
    sessile_principal who;
    sessile_store *view;
    sessile_error err;

    sessile_credential_init(&c);
    c.user = sessile_text("nobody of that name");
    FUZZ_CHECK(!sessile_store_as(&view, store, &c, &err));
    FUZZ_CHECK(!sessile_store_who(view, &who, &err));
    FUZZ_CHECK(who.permissions == 0 && !who.all);
    sessile_store_close(view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sessile_store_options o;
    sessile_store *store;
    sessile_error err;
    control *other;
    uint64_t version;

    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_PLAIN;
    FUZZ_CHECK(!sessile_open(&store, "ram:", &o, &err));
    FUZZ_CHECK(!sessile_store_guard(store, NULL, &err));
    FUZZ_CHECK(!control_open(&other, store->core, &err));
    size_t made = append(other, (const char *)data, size);
    seen first = look(store, made);
    if (!memmem(data, size, "nobody", 6))
        try_nobody(store);
    control_close(other);
    FUZZ_CHECK(!control_open(&other, store->core, &err));
    FUZZ_CHECK(!control_look(other, &version, &err));
    control_close(other);
    seen again = look(store, made);
    FUZZ_CHECK(!memcmp(&first, &again, sizeof first));
    sessile_store_close(store);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const whole[] = {
        "g{\"role\":\"viewer\",\"user\":\"ann\"}\ng{\"end\":1}\n",
        "g{\"role\":\"editor\",\"user\":\"ann\",\"session\":\"s\",\"agent\":\"main\","
        "\"owner\":\"bob\"}\ng{\"role\":\"admin\",\"holders\":\"viewer\",\"agents\":"
        "[\"a*\"],\"until\":1}\n",
        "k{\"key\":\"aaaaaaaaaaaaaaaa\",\"hash\":"
        "\"000102030405060708090a0b0c0d0e0f10111213"
        "1415161718191a1b1c1d1e1f\",\"user\":\"ann\",\"roles\":[\"editor\"]}\n"
        "k{\"revoke\":\"aaaaaaaaaaaaaaaa\"}\n",
        "l{\"locked\":true,\"user\":\"ann\",\"reason\":\"left\"}\n"
        "l{\"locked\":false,\"user\":\"ann\"}\nl{\"locked\":true,\"user\":{\"id\":\"u_\","
        "\"secret\":\"user-aa-1\",\"name\":\"AAAA\"}}\n",
    };

    fuzz_give_all(take, arg, whole, sizeof whole / sizeof *whole);
}

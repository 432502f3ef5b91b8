/*
 * who.c: the names of users, for readers of the audit.
 *
 * A name is opened when it is asked for, with the secret of its user as it is then: of a
 * user who was forgotten there is none.
 */
#include "audit/read.h"

#include <string.h>

#include "base/text.h"
#include "codec/entry.h"

void audit_names_init(audit_names *n, const store_core *st)
{
    memset(n, 0, sizeof *n);
    n->store = st;
    map_init(&n->at, &st->alloc);
}

void audit_names_deinit(audit_names *n)
{
    for (size_t i = 0; i < n->count; i++) {
        buf_deinit(&n->list[i].sealed);
        buf_deinit(&n->list[i].name);
    }
    mem_free(&n->store->alloc, n->list, n->capacity * sizeof *n->list);
    map_deinit(&n->at);
}

/* A member of data as a text of less than room bytes; 0 or -1. */
static int get_text(json data, const char *member, char *out, size_t room)
{
    const char *text;
    size_t size;

    if (!json_plain(json_get(data, member), &text, &size) || !size || size >= room ||
        memchr(text, 0, size))
        return -1;
    memcpy(out, text, size);
    out[size] = 0;
    return 0;
}

sessile_status audit_names_add(audit_names *n, const char *text, size_t size,
                               sessile_error *err)
{
    struct audit_name one = {.looked = 0};
    const char *sealed;
    size_t sealed_size;
    uint32_t there;
    uint64_t hash;
    entry e;

    if (entry_read(&e, text, size, NULL) ||
        get_text(e.data, "user", one.pseudonym, sizeof one.pseudonym) ||
        get_text(e.data, "secret", one.secret, sizeof one.secret) ||
        !json_plain(json_get(e.data, "name"), &sealed, &sealed_size))
        return SESSILE_OK;
    hash = hash64(one.pseudonym, strlen(one.pseudonym));
    if (map_get(&n->at, hash, &there))
        return SESSILE_OK;
    if (mem_grow(&n->store->alloc, (void **)&n->list, &n->capacity, n->count + 1,
                 sizeof *n->list))
        return fail_nomem(err);
    buf_init(&one.sealed, &n->store->alloc);
    buf_init(&one.name, &n->store->alloc);
    buf_put(&one.sealed, sealed, sealed_size);
    if (one.sealed.failed || map_put(&n->at, hash, (uint32_t)n->count)) {
        buf_deinit(&one.sealed);
        return fail_nomem(err);
    }
    n->list[n->count++] = one;
    return SESSILE_OK;
}

sessile_status audit_names_find(audit_names *n, sessile_slice pseudonym,
                                sessile_slice *out, sessile_error *err)
{
    struct audit_name *one;
    sessile_status status = SESSILE_OK;
    uint32_t at;

    *out = (sessile_slice){NULL, 0};
    if (!map_get(&n->at, hash64(pseudonym.data, pseudonym.size), &at))
        return SESSILE_OK;
    one = &n->list[at];
    if (!one->looked) {
        buf_clear(&one->name);
        status = pseudonym_open(n->store->keys, one->pseudonym, one->secret,
                                (sessile_slice){one->sealed.data, one->sealed.size},
                                &one->name, err);
        if (status == SESSILE_SEALED || status == SESSILE_DAMAGED) {
            error_clear(err);
            buf_clear(&one->name);
            status = SESSILE_OK;
        }
        one->looked = !status;
    }
    *out = (sessile_slice){one->name.data, one->name.size};
    return status;
}

void audit_names_reset(audit_names *n)
{
    for (size_t i = 0; i < n->count; i++) {
        n->list[i].looked = 0;
        buf_wipe(&n->list[i].name);
    }
}

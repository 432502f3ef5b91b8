/*
 * users.c: the users whom an open audit knows: their pseudonyms, and the entries that
 * have their names.
 */
#include "audit/audit_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

sessile_status audit_user_find(audit_log *a, sessile_slice user, known_user **out,
                               sessile_error *err)
{
    store_core *st = a->store;
    size_t forgotten = atomic_load(&st->forgotten_count);
    uint64_t hash = hash64(user.data, user.size);
    char secret[NAME_SIZE];
    known_user *u = NULL;
    sessile_status status;
    buf sealed;

    for (size_t i = 0; i < a->users.count && !u; i++)
        if (a->users.at[i].hash == hash)
            u = &a->users.at[i];
    *out = u;
    if (u && u->forgotten == forgotten)
        return SESSILE_OK;
    if (!u && mem_grow(&st->alloc, (void **)&a->users.at, &a->users.capacity,
                       a->users.count + 1, sizeof *u))
        return fail_nomem(err);
    if (!u) {
        u = &a->users.at[a->users.count++];
        buf_init(&u->who, &st->alloc);
        u->hash = hash;
    }
    *out = u;
    buf_init(&sealed, &st->alloc);
    buf_clear(&u->who);
    status = pseudonym_make(st->keys, user, u->name, secret, &sealed, err);
    if (!status && secret[0])
        buf_printf(&u->who, "{\"user\":\"%s\",\"secret\":\"%s\",\"name\":\"%.*s\"}",
                   u->name, secret, (int)sealed.size, sealed.data);
    if (!status && u->who.failed)
        status = fail_nomem(err);
    u->forgotten = status ? forgotten - 1 : forgotten;
    buf_deinit(&sealed);
    return status;
}

const known_user *audit_user_of(const audit_log *a, const char *pseudonym)
{
    for (size_t i = 0; pseudonym[0] && i < a->users.count; i++)
        if (!strcmp(a->users.at[i].name, pseudonym))
            return &a->users.at[i];
    return NULL;
}

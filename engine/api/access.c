/* access.c: the public functions of grants, access keys and locks. */
#include "api/api.h"

#include "guard/access.h"

/* What these functions begin with, after their arguments were checked. */
#define API_ACCESS(op, store)                                                       \
    principal *who = GUARD_PRINCIPAL(store);                                        \
    if (!who)                                                                       \
        return fail(err, SESSILE_INVALID,                                           \
                    "this store has no guard: set one with sessile_store_guard()"); \
    GUARD_ENTER(op, store);                                                         \
    (void)core

/* A whole key stands for its id, so that the secret is not written anywhere. */
static sessile_status take_key_id(sessile_slice *key, sessile_error *err)
{
    static const char begins[] = "sesk_";
    sessile_slice id;

    if (key->size < sizeof begins - 1 || memcmp(key->data, begins, sizeof begins - 1))
        return SESSILE_OK;
    if (access_key_read(*key, &id))
        return fail(
            err, SESSILE_INVALID,
            "this is no whole access key: give its id, which the list of keys has");
    *key = id;
    return SESSILE_OK;
}

void sessile_grant_options_init(sessile_grant_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

sessile_status sessile_grant(sessile_store *store, const sessile_grant_options *options,
                             sessile_id *id, sessile_error *err)
{
    API_USE(store);
    API_OPTIONAL(sessile_id, id, SESSILE_NO_ID);
    API_NEED(options);
    API_NEED(options->role);
    API_TEXT(options->user);
    API_TEXT(options->holders);
    API_TEXT(options->session);
    API_TEXT(options->agent);
    API_TEXT(options->owner);
    API_TEXTS(options->agents, options->agent_count);
    API_ACCESS(grant, store);
    GUARD_SAY(call_.names.user = options->user);
    GUARD_SAY(call_.names.id = options->session);
    GUARD_TEXT("role", sessile_text(options->role));
    GUARD_COUNT;
    GUARD_INTENT;
    sessile_status status = access_grant_make(who, core, options, id, err);
    if (!status)
        GUARD_NUMBER("grant", *id);
    return GUARD_LEAVE(status);
}

sessile_status sessile_grants(sessile_store *store, sessile_grant_row **rows,
                              size_t *count, sessile_error *err)
{
    API_LIST(rows, count, store);
    API_ACCESS(grants, store);
    return GUARD_LEAVE(access_grant_list(who, rows, count, err));
}

sessile_status sessile_grant_end(sessile_store *store, sessile_id id, sessile_error *err)
{
    API_USE(store);
    API_ACCESS(grant_end, store);
    GUARD_NUMBER("grant", id);
    GUARD_COUNT;
    GUARD_INTENT;
    return GUARD_LEAVE(access_grant_end(who, id, err));
}

void sessile_access_key_options_init(sessile_access_key_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

sessile_status sessile_access_key(sessile_store *store,
                                  const sessile_access_key_options *options, char **key,
                                  sessile_error *err)
{
    API_USE(store);
    API_OUT(key, NULL);
    API_NEED(options);
    API_TEXT(options->user);
    API_TEXT(options->device);
    API_TEXT(options->label);
    API_NEED_IF(options->role_count, options->roles);
    API_TEXTS(options->agents, options->agent_count);
    API_ACCESS(access_key, store);
    GUARD_SAY(call_.names.user = options->user);
    GUARD_COUNT;
    GUARD_INTENT;
    return GUARD_LEAVE(access_key_make(who, core, options, key, err));
}

sessile_status sessile_access_keys(sessile_store *store, sessile_access_key_row **rows,
                                   size_t *count, sessile_error *err)
{
    API_LIST(rows, count, store);
    API_ACCESS(access_keys, store);
    return GUARD_LEAVE(access_key_list(who, rows, count, err));
}

sessile_status sessile_access_key_revoke(sessile_store *store, sessile_slice id,
                                         sessile_error *err)
{
    API_USE(store);
    API_TEXT(id);
    sessile_status status = take_key_id(&id, err);
    if (status)
        return status;
    API_ACCESS(access_key_revoke, store);
    GUARD_TEXT("access_key", id);
    GUARD_INTENT;
    return GUARD_LEAVE(access_key_revoke(who, id, err));
}

sessile_status sessile_access_lock(sessile_store *store, sessile_slice user,
                                   sessile_slice key, sessile_slice reason,
                                   sessile_error *err)
{
    API_USE(store);
    API_TEXT(user);
    API_TEXT(key);
    API_TEXT(reason);
    sessile_status status = take_key_id(&key, err);
    if (status)
        return status;
    API_ACCESS(access_lock, store);
    GUARD_SAY(call_.names.user = user);
    GUARD_TEXT("access_key", key);
    GUARD_INTENT;
    return GUARD_LEAVE(access_lock_set(who, user, key, reason, err));
}

sessile_status sessile_access_unlock(sessile_store *store, sessile_slice user,
                                     sessile_slice key, sessile_error *err)
{
    API_USE(store);
    API_TEXT(user);
    API_TEXT(key);
    sessile_status status = take_key_id(&key, err);
    if (status)
        return status;
    API_ACCESS(access_unlock, store);
    GUARD_SAY(call_.names.user = user);
    GUARD_TEXT("access_key", key);
    GUARD_COUNT;
    GUARD_INTENT;
    return GUARD_LEAVE(access_lock_end(who, user, key, err));
}

sessile_status sessile_access_locks(sessile_store *store, sessile_access_lock_row **rows,
                                    size_t *count, sessile_error *err)
{
    API_LIST(rows, count, store);
    API_ACCESS(access_locks, store);
    return GUARD_LEAVE(access_lock_list(who, rows, count, err));
}

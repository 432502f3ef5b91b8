/* keys.c: the public functions of keys: made, changed, looked at, forgotten. */
#include "api/api.h"

#include "admin/keys.h"

sessile_status sessile_keys_init(const char *url, const sessile_store_options *options,
                                 sessile_error *err)
{
    API_USE(url);
    return keys_init(url, options, err);
}

sessile_status sessile_keys_rotate(sessile_store *store,
                                   const sessile_rotate_options *options, uint64_t *epoch,
                                   sessile_error *err)
{
    error_clear(err);
    if (epoch)
        *epoch = 0;
    API_NEED(store);
    API_NEED_IF(options && options->new_secret, options->key);
    GUARD_ENTER(keys_rotate, store);
    GUARD_INTENT;
    return GUARD_LEAVE(keys_rotate(core, options, epoch, err));
}

sessile_status sessile_keys_status(sessile_store *store, sessile_keys **out,
                                   sessile_error *err)
{
    API_MAKE(out, store);
    GUARD_ENTER(keys_status, store);
    return GUARD_LEAVE(keys_status(core, out, err));
}

sessile_status sessile_reseal_begin(sessile_reseal **out, sessile_store *store,
                                    const char *suite, sessile_error *err)
{
    API_MAKE(out, store);
    GUARD_ENTER(reseal_begin, store);
    GUARD_GOES_ON;
    GUARD_INTENT;
    GUARD_MAKE(out, &core->alloc);
    GUARD_MADE(out, reseal_begin(GUARD_INTO(out), core, suite, err));
}

sessile_status sessile_reseal_step(sessile_reseal *reseal, sessile_reseal_state *state,
                                   sessile_error *err)
{
    error_clear(err);
    if (state)
        memset(state, 0, sizeof *state);
    API_NEED(reseal);
    GUARD_ENTER(reseal_step, reseal);
    return GUARD_STEP(reseal, reseal_step(core, state, err));
}

void sessile_reseal_free(sessile_reseal *reseal)
{
    if (!reseal)
        return;
    GUARD_CLOSE(reseal);
    reseal_free(core);
}

sessile_status sessile_forget(sessile_store *store, sessile_slice user,
                              uint64_t *sessions, sessile_error *err)
{
    error_clear(err);
    if (sessions)
        *sessions = 0;
    API_NEED(store);
    API_TEXT(user);
    GUARD_ENTER(forget, store);
    GUARD_SAY(call_.names.user = user);
    GUARD_INTENT;
    return GUARD_LEAVE(forget_user(core, user, sessions, err));
}

/* store.c: the public functions of stores. */
#include "api/api.h"

#include "admin/list.h"
#include "api/inside.h"
#include "guard/hold.h"
#include "policy/policy.h"
#include "session/limits.h"
#include "session/store_handle.h"
#include "sessile_store.h"
#include "store/open.h"

void sessile_store_options_init(sessile_store_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

const sessile_limit *sessile_limit_at(size_t index)
{
    return limits_at(index);
}

sessile_status sessile_limits_set(sessile_limits *limits, const char *name,
                                  uint64_t value, sessile_error *err)
{
    error_clear(err);
    if (!limits || !name)
        return api_missing(err, __func__, limits ? "name" : "limits");
    return limits_set(limits, name, value, err);
}

const sessile_store_scheme *sessile_store_scheme_at(size_t index)
{
    return store_scheme_at(index);
}

const sessile_store_scheme *sessile_store_scheme_of(const char *url, const char **path)
{
    const char *ignored;

    if (!path)
        path = &ignored;
    *path = NULL;
    return url && *url ? store_scheme(url, path) : NULL;
}

sessile_status api_give_store(sessile_store **out, sessile_status status,
                              store_core *core, sessile_error *err)
{
    if (status)
        return status;
    status = holds_attach(core, err);
    *out = status ? NULL : mem_zalloc(&core->alloc, sizeof **out);
    if (!*out) {
        store_handle_close(core);
        return status ? status : fail_nomem(err);
    }
    (*out)->alloc = core->alloc;
    *GUARD_INTO(out) = core;
    status = guard_opened(*out, err);
    if (status) {
        store_handle_close(core);
        GUARD_FREE(out);
    }
    return status;
}

sessile_status sessile_open(sessile_store **out, const char *url,
                            const sessile_store_options *options, sessile_error *err)
{
    API_MAKE(out, url);
    API_OPTIONS(sessile_store_options, options);
    store_core *core = NULL;
    sessile_status status = store_handle_open(&core, url, options, err);
    return api_give_store(out, status, core, err);
}

sessile_status sessile_open_with(sessile_store **out, const sessile_backend *backend,
                                 void *self, const sessile_store_options *options,
                                 sessile_error *err)
{
    error_clear(err);
    if (out)
        *out = NULL;
    if (!out || !backend) {
        if (backend && backend->free)
            backend->free(self);
        return api_missing(err, __func__, out ? "backend" : "out");
    }
    API_OPTIONS(sessile_store_options, options);
    store_core *core = NULL;
    sessile_status status = store_handle_open_with(&core, backend, self, options, err);
    return api_give_store(out, status, core, err);
}

void sessile_store_close(sessile_store *store)
{
    if (!store)
        return;
    int is_view = store->is_view;
    guard_close(GUARD_PRINCIPAL(store));
    GUARD_CLOSE(store);
    if (!is_view)
        store_handle_close(core);
}

int sessile_store_sealed(const sessile_store *store)
{
    return store && keyring_sealed(GUARD_OWN(store)->keys);
}

sessile_status sessile_store_clock(sessile_store *store, int64_t *ahead_ms,
                                   int64_t *within_ms, sessile_error *err)
{
    error_clear(err);
    API_OUT(ahead_ms, 0);
    API_OPTIONAL(int64_t, within_ms, 0);
    API_NEED(store);
    GUARD_ENTER(store_clock, store);
    return GUARD_LEAVE(store_handle_clock(core, ahead_ms, within_ms, err));
}

static void set_policy(store_core *store, sessile_policy **own, sessile_policy *policy)
{
    policy_retain(policy);
    pthread_mutex_lock(&store->mutex);
    sessile_policy *before = *own;
    *own = policy;
    pthread_mutex_unlock(&store->mutex);
    policy_release(before);
}

static sessile_status set_first(sessile_store *store, sessile_policy *policy,
                                sessile_error *err)
{
    GUARD_ENTER(store_set_policy, store);
    set_policy(core, &core->policies.policy, policy);
    return GUARD_LEAVE(SESSILE_OK);
}

static sessile_status set_second(sessile_store *store, sessile_policy *fallback,
                                 sessile_error *err)
{
    GUARD_ENTER(store_set_fallback, store);
    set_policy(core, &core->policies.fallback, fallback);
    return GUARD_LEAVE(SESSILE_OK);
}

void sessile_store_set_policy(sessile_store *store, sessile_policy *policy)
{
    if (store)
        (void)set_first(store, policy, NULL);
}

void sessile_store_set_fallback(sessile_store *store, sessile_policy *fallback)
{
    if (store)
        (void)set_second(store, fallback, NULL);
}

void sessile_list_options_init(sessile_list_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

const char *sessile_sort_name(sessile_sort sort)
{
    return list_sort_name(sort);
}

sessile_status api_check_list(const sessile_list_options *options, sessile_error *err)
{
    if (api_bad(options->agent) || api_bad(options->id_prefix) ||
        api_bad(options->title) || api_bad(options->user) || api_bad(options->label) ||
        api_bad(options->text))
        return fail(err, SESSILE_INVALID,
                    "a text of a list's options has a size and no "
                    "data");
    if (!list_sort_name(options->sort))
        return fail(err, SESSILE_INVALID, "a list's sort is none of SESSILE_SORT_…");
    return SESSILE_OK;
}

sessile_status sessile_list_with(sessile_store *store,
                                 const sessile_list_options *options,
                                 sessile_listed **out, size_t *count, sessile_error *err)
{
    API_LIST(out, count, store);
    API_OPTIONS(sessile_list_options, options);
    sessile_status status = api_check_list(options, err);
    if (status)
        return status;
    GUARD_ENTER(list_with, store);
    GUARD_NAMES(sessile_list_options, options, guard_own_list);
    return GUARD_LEAVE(list_sessions(core, GUARD_WHO, options, out, count, err));
}

sessile_status sessile_list(sessile_store *store, const char *agent, sessile_listed **out,
                            size_t *count, sessile_error *err)
{
    sessile_list_options all;
    const sessile_list_options *options = &all;

    API_LIST(out, count, store);
    sessile_list_options_init(&all);
    all.agent = sessile_text(agent);
    GUARD_ENTER(list, store);
    GUARD_NAMES(sessile_list_options, options, guard_own_list);
    return GUARD_LEAVE(list_sessions(core, GUARD_WHO, options, out, count, err));
}

const store *api_backend(const sessile_store *host)
{
    return &GUARD_OWN(host)->backend;
}

const char *api_default_agent(const sessile_store *host)
{
    return GUARD_OWN(host)->agent;
}

/* guard.c: the public functions of guards and views. */
#include "api/api.h"

#include "guard/guard.h"
#include "policy/authorize.h"

const char *sessile_permission_name(sessile_permission permission)
{
    return permission_name(permission);
}

void sessile_guard_options_init(sessile_guard_options *options)
{
    if (!options)
        return;
    memset(options, 0, sizeof *options);
    options->urls.refuse = SESSILE_SCREEN_MEMORY | SESSILE_SCREEN_STATE;
}

sessile_status sessile_store_guard(sessile_store *store,
                                   const sessile_guard_options *options,
                                   sessile_error *err)
{
    API_USE(store);
    API_OPTIONS(sessile_guard_options, options);
    API_NEED_IF(options->role_count, options->roles);
    for (size_t i = 0; i < options->role_count; i++)
        API_NEED_IF(options->roles[i].permission_count, options->roles[i].permissions);
    API_NEED_IF(options->limits.rate_count, options->limits.rates);
    API_TEXTS(options->urls.options.allow, options->urls.options.allow_count);
    authorize_rule rule = {NULL, NULL, NULL};
    sessile_status status = SESSILE_OK;
    if (options->authorize && !options->off)
        status = authorize_load(&rule, options->authorize, os_current, err);
    if (!status)
        status = guard_set(store, options, &rule, err);
    if (status && rule.release)
        rule.release(rule.ref);
    return status;
}

void sessile_credential_init(sessile_credential *credential)
{
    if (credential)
        memset(credential, 0, sizeof *credential);
}

#define API_CREDENTIAL(c)                         \
    do {                                          \
        API_NEED(c);                              \
        API_TEXT((c)->user);                      \
        API_TEXT((c)->actor);                     \
        API_TEXT((c)->session);                   \
        API_TEXT((c)->agent);                     \
        API_TEXT((c)->owner);                     \
        API_TEXT((c)->key);                       \
        API_TEXT((c)->token);                     \
        API_TEXT((c)->source);                    \
        API_TEXT((c)->device);                    \
        API_NEED_IF((c)->role_count, (c)->roles); \
        API_TEXTS((c)->agents, (c)->agent_count); \
    } while (0)

sessile_status sessile_store_as(sessile_store **out, sessile_store *store,
                                const sessile_credential *credential, sessile_error *err)
{
    API_MAKE(out, store);
    API_CREDENTIAL(credential);
    return guard_view(out, store, credential, err);
}

sessile_status sessile_store_renew(sessile_store *view, sessile_store *by,
                                   const sessile_credential *credential,
                                   sessile_error *err)
{
    API_USE(view);
    API_CREDENTIAL(credential);
    return guard_renew(view, by, credential, err);
}

sessile_status sessile_store_revoke(sessile_store *view, sessile_error *err)
{
    API_USE(view);
    return guard_revoke(view, err);
}

sessile_status sessile_store_who(const sessile_store *store, sessile_principal *out,
                                 sessile_error *err)
{
    error_clear(err);
    API_ZERO(out);
    API_NEED(store);
    return guard_who(store, out, err);
}

int sessile_can(const sessile_store *view, sessile_permission permission,
                sessile_slice agent, sessile_slice user, sessile_slice id)
{
    sessile_session_options names;

    if (!view || (unsigned)permission >= SESSILE_PERMISSION_COUNT || api_bad(agent) ||
        api_bad(user) || api_bad(id))
        return 0;
    sessile_session_options_init(&names);
    names.agent = agent;
    names.user = user;
    names.id = id;
    return guard_can(view, permission, &names);
}

sessile_status sessile_may(sessile_store *view, const sessile_operation *operation,
                           sessile_error *err)
{
    API_USE(view);
    API_NEED(operation);
    API_TEXT(operation->name);
    API_TEXT(operation->agent);
    API_TEXT(operation->user);
    API_TEXT(operation->id);
    if ((unsigned)operation->permission >= SESSILE_PERMISSION_COUNT)
        return fail(err, SESSILE_INVALID, "there is no such permission: %d",
                    (int)operation->permission);
    return guard_may(view, operation, err);
}

sessile_status sessile_audit_note(sessile_store *view, sessile_slice name,
                                  sessile_slice details, sessile_error *err)
{
    API_USE(view);
    API_TEXT(name);
    API_TEXT(details);
    return guard_note(view, name, details, err);
}

/* life.c: the public functions for ttl, archive, deletion and purge. */
#include "api/api.h"

#include <string.h>

#include "admin/purge.h"
#include "operations/life.h"

sessile_status sessile_session_life(sessile_session *session, sessile_life_info *out,
                                    sessile_error *err)
{
    error_clear(err);
    if (!out)
        return api_missing(err, __func__, "out");
    memset(out, 0, sizeof *out);
    if (!session)
        return api_missing(err, __func__, "session");
    return session_life(session, out, err);
}

sessile_status sessile_set_ttl(sessile_session *session, int64_t ttl_ms,
                               sessile_error *err)
{
    error_clear(err);
    if (!session)
        return api_missing(err, __func__, "session");
    return session_set_ttl(session, ttl_ms, err);
}

sessile_status sessile_set_archived(sessile_session *session, int archived,
                                    sessile_error *err)
{
    error_clear(err);
    if (!session)
        return api_missing(err, __func__, "session");
    return session_set_archived(session, archived, err);
}

static sessile_status check(sessile_store *store, const sessile_session_options *which,
                            const char *function, sessile_error *err)
{
    if (!store || !which)
        return api_missing(err, function, "store or which");
    if (which->id.size == 0)
        return fail(err, SESSILE_INVALID, "which session? its id is empty");
    if (api_bad(which->id) || api_bad(which->agent) || api_bad(which->user))
        return api_missing(err, function, "the data of a slice in which");
    return SESSILE_OK;
}

sessile_status sessile_delete(sessile_store *store, const sessile_session_options *which,
                              const sessile_delete_options *options, sessile_deleted *out,
                              sessile_error *err)
{
    static const sessile_delete_options hard;
    sessile_deleted unwanted = {.bytes = 0};
    sessile_status status;

    error_clear(err);
    options = options ? options : &hard;
    out = out ? out : &unwanted;
    memset(out, 0, sizeof *out);
    status = check(store, which, __func__, err);
    if (!status && (api_bad(options->reason) || api_bad(options->actor)))
        status = api_missing(err, __func__, "the data of reason or actor");
    return status ? status : session_delete(store, which, options, out, err);
}

sessile_status sessile_undelete(sessile_store *store,
                                const sessile_session_options *which, sessile_slice actor,
                                sessile_error *err)
{
    sessile_status status;

    error_clear(err);
    status = check(store, which, __func__, err);
    if (!status && api_bad(actor))
        status = api_missing(err, __func__, "actor.data");
    return status ? status : session_undelete(store, which, actor, err);
}

void sessile_purge_options_init(sessile_purge_options *options)
{
    if (!options)
        return;
    memset(options, 0, sizeof *options);
    options->retention_ms = SESSILE_RETENTION_MS;
}

sessile_status sessile_purge(sessile_store *store, const sessile_purge_options *options,
                             sessile_listed **out, size_t *count, sessile_error *err)
{
    sessile_purge_options defaults;

    error_clear(err);
    if (!out || !count)
        return api_missing(err, __func__, "out or count");
    *out = NULL;
    *count = 0;
    if (!store)
        return api_missing(err, __func__, "store");
    if (!options) {
        sessile_purge_options_init(&defaults);
        options = &defaults;
    }
    if (api_bad(options->agent))
        return api_missing(err, __func__, "agent.data");
    return session_purge(store, options, out, count, err);
}

const char *sessile_life_name(sessile_life life)
{
    static const char *const names[] = {"active", "suspended", "archived", "expired",
                                        "deleted"};
    return (unsigned)life <= SESSILE_LIFE_DELETED ? names[life] : "unknown";
}

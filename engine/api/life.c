/* life.c: the public functions for ttl, archive, deletion and purge. */
#include "api/api.h"

#include "admin/purge.h"
#include "base/names.h"
#include "operations/deletion.h"
#include "operations/life.h"

sessile_status sessile_session_life(sessile_session *session, sessile_life_info *out,
                                    sessile_error *err)
{
    error_clear(err);
    API_ZERO(out);
    API_NEED(session);
    GUARD_ENTER(session_life, session);
    return GUARD_LEAVE(session_life(core, out, err));
}

sessile_status sessile_set_ttl(sessile_session *session, int64_t ttl_ms,
                               sessile_error *err)
{
    API_USE(session);
    GUARD_ENTER(set_ttl, session);
    GUARD_TEXT("set", slice_of("ttl"));
    return GUARD_LEAVE(session_set_ttl(core, ttl_ms, err));
}

sessile_status sessile_set_archived(sessile_session *session, int archived,
                                    sessile_error *err)
{
    API_USE(session);
    GUARD_ENTER(set_archived, session);
    GUARD_TEXT("set", slice_of(archived ? "archived" : "not archived"));
    return GUARD_LEAVE(session_set_archived(core, archived, err));
}

static sessile_status check(const sessile_session_options *which, const char *function,
                            sessile_error *err)
{
    if (which->id.size == 0)
        return fail(err, SESSILE_INVALID, "which session? its id is empty");
    return api_check_session(which, function, err);
}

sessile_status sessile_delete(sessile_store *store, const sessile_session_options *which,
                              const sessile_delete_options *options, sessile_deleted *out,
                              sessile_error *err)
{
    static const sessile_delete_options hard;

    error_clear(err);
    API_OPTIONAL(sessile_deleted, out, (sessile_deleted){.bytes = 0});
    options = options ? options : &hard;
    API_NEED(store);
    API_NEED(which);
    API_TEXT(options->reason);
    API_TEXT(options->actor);
    sessile_status status = check(which, __func__, err);
    if (status)
        return status;
    GUARD_ENTER(delete, store);
    GUARD_NAMES(sessile_session_options, which, guard_own_names);
    GUARD_TEXT("reason", options->reason);
    GUARD_TEXT("by", options->actor);
    GUARD_NUMBER("soft", options->soft != 0);
    GUARD_INTENT;
    return GUARD_LEAVE(session_delete(core, which, options, out, err));
}

sessile_status sessile_undelete(sessile_store *store,
                                const sessile_session_options *which, sessile_slice actor,
                                sessile_error *err)
{
    API_USE(store);
    API_NEED(which);
    API_TEXT(actor);
    sessile_status status = check(which, __func__, err);
    if (status)
        return status;
    GUARD_ENTER(undelete, store);
    GUARD_NAMES(sessile_session_options, which, guard_own_names);
    GUARD_TEXT("by", actor);
    return GUARD_LEAVE(session_undelete(core, which, actor, err));
}

sessile_status sessile_deletions(sessile_store *store, sessile_deletion **out,
                                 size_t *count, sessile_error *err)
{
    API_LIST(out, count, store);
    GUARD_ENTER(deletions, store);
    return GUARD_LEAVE(deletions_list(core, out, count, err));
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

    API_LIST(out, count, store);
    if (!options) {
        sessile_purge_options_init(&defaults);
        options = &defaults;
    }
    API_TEXT(options->agent);
    GUARD_ENTER(purge, store);
    GUARD_SAY(call_.names.agent = options->agent);
    GUARD_NUMBER("dry_run", options->dry_run != 0);
    GUARD_GIVES(out, count);
    GUARD_INTENT;
    return GUARD_LEAVE(session_purge(core, options, out, count, err));
}

sessile_status sessile_purge_forgotten(sessile_store *store, sessile_slice agent,
                                       int dry_run, uint64_t *count, uint64_t *bytes,
                                       sessile_error *err)
{
    error_clear(err);
    API_ZERO(count);
    API_ZERO(bytes);
    API_NEED(store);
    API_TEXT(agent);
    GUARD_ENTER(purge_forgotten, store);
    GUARD_SAY(call_.names.agent = agent);
    GUARD_NUMBER("dry_run", dry_run != 0);
    GUARD_INTENT;
    return GUARD_LEAVE(purge_forgotten(core, agent, dry_run, count, bytes, err));
}

const char *sessile_life_name(sessile_life life)
{
    static const char *const names[] = {"active", "suspended", "archived", "expired",
                                        "deleted"};
    return (unsigned)life <= SESSILE_LIFE_DELETED ? names[life] : "unknown";
}

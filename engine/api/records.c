/*
 * records.c: the public functions of sessions whose records the host keeps.
 */
#include "api/api.h"

#include "policy/policy.h"
#include "operations/records.h"
#include "session/handle.h"

sessile_status sessile_open_records(sessile_store **out,
                                    const sessile_store_options *options,
                                    sessile_error *err)
{
    error_clear(err);
    API_OUT(out, NULL);
    store_core *core = NULL;
    sessile_status status = store_handle_open_records(&core, options, err);
    return api_give_store(out, status, core, err);
}

sessile_status sessile_records_open(sessile_session **out, sessile_store *store,
                                    const sessile_session_options *options,
                                    const sessile_slice *records, size_t count,
                                    sessile_error *err)
{
    API_MAKE(out, store);
    API_NEED(options);
    API_TEXTS(records, count);
    if (count && !options->id.size)
        return fail(err, SESSILE_INVALID, "whose records are these? its id is empty");
    sessile_status status = api_check_session(options, __func__, err);
    if (status)
        return status;
    GUARD_ENTER(records_open, store);
    GUARD_NAMES(sessile_session_options, options, guard_own_names);
    GUARD_REFUSE_IF(GUARD_WHO && !count, guard_may_create(&call_, err));
    if (count)
        GUARD_AS(resume);
    else
        GUARD_COUNT;
    GUARD_MAKE(out, &core->alloc);
    status = session_records_open(GUARD_INTO(out), core, options, records, count, err);
    GUARD_MADE_SESSION(out, status);
}

sessile_status sessile_records_read(sessile_session *session, uint64_t from,
                                    sessile_slice **out, size_t *count,
                                    sessile_error *err)
{
    API_LIST(out, count, session);
    GUARD_ENTER(records_read, session);
    sessile_status status = api_read_begin(core, err);
    if (status)
        return GUARD_LEAVE(status);
    status = session_records_locked(core, from, out, count, err);
    session_unlock(core);
    return GUARD_LEAVE(status);
}

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
    if (!out)
        return api_missing(err, __func__, "out");
    *out = NULL;
    return store_handle_open_records(out, options, err);
}

sessile_status sessile_records_open(sessile_session **out, sessile_store *store,
                                    const sessile_session_options *options,
                                    const sessile_slice *records, size_t count,
                                    sessile_error *err)
{
    error_clear(err);
    if (!out)
        return api_missing(err, __func__, "out");
    *out = NULL;
    if (!store || !options)
        return api_missing(err, __func__, "store or options");
    if (count && !records)
        return api_missing(err, __func__, "records");
    if (count && !options->id.size)
        return fail(err, SESSILE_INVALID, "whose records are these? its id is empty");
    if (api_bad(options->id) || api_bad(options->agent) || api_bad(options->user) ||
        api_bad(options->title) || api_bad(options->metadata))
        return api_missing(err, __func__, "the data of a slice in options");
    for (size_t i = 0; i < count; i++)
        if (api_bad(records[i]))
            return api_missing(err, __func__, "the data of a record");
    sessile_status status =
        session_records_open(out, store, options, records, count, err);
    if (!status && options->policy) {
        policy_retain(options->policy);
        (*out)->settings.policy = (policy_ref){options->policy, api_release_policy};
    }
    return status;
}

sessile_status sessile_records_read(sessile_session *session, uint64_t from,
                                    sessile_slice **out, size_t *count,
                                    sessile_error *err)
{
    error_clear(err);
    if (!out || !count)
        return api_missing(err, __func__, "out or count");
    *out = NULL;
    *count = 0;
    sessile_status status = api_read_begin(session, out, __func__, err);
    if (status)
        return status;
    status = session_records_locked(session, from, out, count, err);
    session_unlock(session);
    return status;
}

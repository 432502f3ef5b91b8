/*
 * status.c: the engine's statuses as those of gRPC.
 *
 * Libraries of clients make a call again by themselves when it ends with UNAVAILABLE. So
 * that is said only where nothing was done, or where doing it again changes nothing. The
 * trailers have what the status of gRPC cannot say.
 */
#include "service/server.h"

#include <stdio.h>

rpc_code status_code(sessile_status status, int flags)
{
    switch (status) {
    case SESSILE_OK:
        return RPC_OK;
    case SESSILE_INVALID:
        return RPC_INVALID_ARGUMENT;
    case SESSILE_NOTFOUND:
        return RPC_NOT_FOUND;
    case SESSILE_EXISTS:
        return RPC_ALREADY_EXISTS;
    case SESSILE_CONFLICT:
        return RPC_ABORTED;
    case SESSILE_BUSY:
    case SESSILE_CLOSED:
        return RPC_UNAVAILABLE;
    case SESSILE_DAMAGED:
    case SESSILE_TRUNCATED:
        return RPC_DATA_LOSS;
    case SESSILE_DENIED:
        return flags & STATUS_NOBODY ? RPC_UNAUTHENTICATED : RPC_PERMISSION_DENIED;
    case SESSILE_LIMIT:
    case SESSILE_FULL:
    case SESSILE_NOMEM:
        return RPC_RESOURCE_EXHAUSTED;
    case SESSILE_SEALED:
    case SESSILE_POLICY:
    case SESSILE_SUSPENDED:
        return RPC_FAILED_PRECONDITION;
    case SESSILE_IO:
        return flags & STATUS_AGAIN ? RPC_UNAVAILABLE : RPC_UNKNOWN;
    case SESSILE_UNSUPPORTED:
        return RPC_UNIMPLEMENTED;
    case SESSILE_FORKED:
        return RPC_INTERNAL;
    case SESSILE_CANCELLED:
        return RPC_CANCELLED;
    case SESSILE_NEEDS:
        break;
    }
    return RPC_INTERNAL;
}

const char *status_code_name(rpc_code code)
{
    static const char *const names[] = {
        "ok",
        "canceled",
        "unknown",
        "invalid_argument",
        "deadline_exceeded",
        "not_found",
        "already_exists",
        "permission_denied",
        "resource_exhausted",
        "failed_precondition",
        "aborted",
        "out_of_range",
        "unimplemented",
        "internal",
        "unavailable",
        "data_loss",
        "unauthenticated",
    };
    return (size_t)code < sizeof names / sizeof *names ? names[code] : "unknown";
}

void status_finish(rpc_call *rpc, const sessile_error *err, int flags)
{
    char name[32], retry[32];
    rpc_header trailers[4] = {{"sessile-status", name}};
    size_t n = 1;
    snprintf(name, sizeof name, "E%s", sessile_status_name(err->code));
    if (err->retry_ms > 0) {
        snprintf(retry, sizeof retry, "%lld", (long long)err->retry_ms);
        trailers[n++] = (rpc_header){"sessile-retry-ms", retry};
    }
    if (err->rule[0])
        trailers[n++] = (rpc_header){"sessile-rule", err->rule};
    if (flags & STATUS_POISONED)
        trailers[n++] = (rpc_header){"sessile-poisoned", "1"};
    rpc_finish(rpc, status_code(err->code, flags), err->message, trailers, n);
}

/* names.c: the words for statuses, hooks and reasons, as policies, logs and people read
 * them. */
#include "base/names.h"

const char *status_name(sessile_status status)
{
    static const char *const names[] = {
        [SESSILE_OK] = "OK",
        [SESSILE_NEEDS] = "NEEDS",
        [SESSILE_INVALID] = "INVALID",
        [SESSILE_NOTFOUND] = "NOTFOUND",
        [SESSILE_EXISTS] = "EXISTS",
        [SESSILE_CONFLICT] = "CONFLICT",
        [SESSILE_BUSY] = "BUSY",
        [SESSILE_DAMAGED] = "DAMAGED",
        [SESSILE_TRUNCATED] = "TRUNCATED",
        [SESSILE_SEALED] = "SEALED",
        [SESSILE_DENIED] = "DENIED",
        [SESSILE_LIMIT] = "LIMIT",
        [SESSILE_POLICY] = "POLICY",
        [SESSILE_IO] = "IO",
        [SESSILE_FULL] = "FULL",
        [SESSILE_NOMEM] = "NOMEM",
        [SESSILE_UNSUPPORTED] = "UNSUPPORTED",
        [SESSILE_FORKED] = "FORKED",
        [SESSILE_SUSPENDED] = "SUSPENDED",
        [SESSILE_CANCELLED] = "CANCELLED",
        [SESSILE_CLOSED] = "CLOSED",
    };
    size_t at = (size_t)status;
    if (at >= sizeof names / sizeof *names || !names[at])
        return "UNKNOWN";
    return names[at];
}

const char *hook_name(sessile_hook hook)
{
    switch (hook) {
    case SESSILE_HOOK_MERGE:
        return "merge";
    case SESSILE_HOOK_SUMMARIZE:
        return "summarize";
    case SESSILE_HOOK_TRUNCATE:
        return "truncate";
    case SESSILE_HOOK_SHOULD_COMPACT:
        return "should_compact";
    case SESSILE_HOOK_FLUSH:
        return "flush";
    case SESSILE_HOOK_COMPACT:
        return "compact";
    case SESSILE_HOOK_BRANCH_SUMMARY:
        return "branch_summary";
    case SESSILE_HOOK_REMEMBER:
        return "remember";
    case SESSILE_HOOK_TIDY:
        return "tidy";
    case SESSILE_HOOK_RECALL:
        return "recall";
    case SESSILE_HOOK_ADMIT:
        return "admit";
    }
    return "unknown";
}

const char *checkpoint_reason_name(sessile_checkpoint_reason reason)
{
    static const char *const names[] = {"manual", "periodic", "event", "threshold"};
    return (unsigned)reason < sizeof names / sizeof *names ? names[reason] : "manual";
}

const char *reason_name(sessile_reason reason)
{
    switch (reason) {
    case SESSILE_REASON_TURN:
        return "turn";
    case SESSILE_REASON_THRESHOLD:
        return "threshold";
    case SESSILE_REASON_OVERFLOW:
        return "overflow";
    case SESSILE_REASON_TIMER:
        return "timer";
    case SESSILE_REASON_EVENT:
        return "event";
    case SESSILE_REASON_MANUAL:
        return "manual";
    }
    return "unknown";
}

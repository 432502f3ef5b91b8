/*
 * names.c: the words for hooks and reasons, as policies, logs and people read them.
 */
#include "sessile.h"

const char *sessile_version(void)
{
    return SESSILE_VERSION;
}

const char *sessile_hook_name(sessile_hook hook)
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
    }
    return "unknown";
}

const char *sessile_checkpoint_reason_name(sessile_checkpoint_reason reason)
{
    static const char *const names[] = {"manual", "periodic", "event", "threshold"};
    return (unsigned)reason < sizeof names / sizeof *names ? names[reason] : "manual";
}

const char *sessile_reason_name(sessile_reason reason)
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

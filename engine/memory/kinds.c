/* kinds.c: the words for states, kinds, sources and verdicts, as the log has them. */
#include "memory/kinds.h"

#include "codec/entry.h"

static const char *const states[] = {"live",     "pending", "replaced", "deleted",
                                     "rejected", "expired", "erased"};
static const char *const kinds[] = {"fact", "episode", "reflection", "procedure"};
static const entry_source sources[] = {SOURCE_USER, SOURCE_AGENT, SOURCE_TOOL,
                                       SOURCE_SYSTEM};
static const char *const verdicts[] = {"deleted", "rejected", "approved", "restored",
                                       "pinned",  "unpinned", "confirmed"};

#define COUNT(names)              (sizeof(names) / sizeof *(names))
#define NAME_OF(names, value)     ((size_t)(value) < COUNT(names) ? names[value] : NULL)
#define FIND(names, text, result) find(names, COUNT(names), text, result)

const char *memory_state_name(sessile_memory_state state)
{
    return NAME_OF(states, state);
}

const char *memory_kind_name(sessile_memory_kind kind)
{
    return NAME_OF(kinds, kind);
}

const char *memory_source_name(sessile_memory_source source)
{
    return (size_t)source < COUNT(sources) ? entry_source_name(sources[source]) : NULL;
}

const char *memory_verdict_name(sessile_memory_verdict_kind verdict)
{
    return NAME_OF(verdicts, verdict);
}

static int find(const char *const *names, size_t count, json text, size_t *out)
{
    for (size_t i = 0; i < count; i++)
        if (json_is(text, names[i])) {
            *out = i;
            return 0;
        }
    return -1;
}

int memory_kind_of(json text, sessile_memory_kind *out)
{
    size_t i;
    if (FIND(kinds, text, &i))
        return -1;
    *out = (sessile_memory_kind)i;
    return 0;
}

int memory_source_of(json text, sessile_memory_source *out)
{
    for (size_t i = 0; i < COUNT(sources); i++)
        if (json_is(text, entry_source_name(sources[i]))) {
            *out = (sessile_memory_source)i;
            return 0;
        }
    return -1;
}

int memory_verdict_of(json text, sessile_memory_verdict_kind *out)
{
    size_t i;
    if (FIND(verdicts, text, &i))
        return -1;
    *out = (sessile_memory_verdict_kind)i;
    return 0;
}

/*
 * limits.c: the one table of limits: name, default, bounds, help.
 *
 * The configuration, its documentation and `sessile doctor` read it through
 * sessile_limit_at(). A new limit is a member of sessile_limits and a row here.
 */
#include "session/limits.h"

#include <stddef.h>
#include <string.h>

#define LIMIT(member) \
    offsetof(sessile_limits, member), sizeof(((sessile_limits *)0)->member)

static const struct {
    sessile_limit shown;
    size_t offset, size; /* of its member of sessile_limits: a uint32_t or a uint64_t */
} limits[] = {
    {{"message", SESSILE_UNIT_BYTES, 8 << 20, 0, UINT64_MAX, "of one message"},
     LIMIT(message)},
    {{"session", SESSILE_UNIT_BYTES, UINT64_C(4) << 30, 0, UINT64_MAX,
      "of one session's log"},
     LIMIT(session)},
    {{"depth", SESSILE_UNIT_COUNT, 128, 1, 1000, "nesting of JSON, at most 1000"},
     LIMIT(depth)},
    {{"id", SESSILE_UNIT_BYTES, 4096, 0, UINT32_MAX, "of an id, an agent, a user"},
     LIMIT(id)},
    {{"title", SESSILE_UNIT_BYTES, 1024, 0, UINT32_MAX, "of a title"}, LIMIT(title)},
    {{"policy_gas", SESSILE_UNIT_COUNT, 50000000, 1, UINT64_MAX,
      "steps of the policies of one turn"},
     LIMIT(policy_gas)},
    {{"policy_ms", SESSILE_UNIT_MS, 500, 0, UINT32_MAX, "their CPU time"},
     LIMIT(policy_ms)},
    {{"policy_memory", SESSILE_UNIT_BYTES, 64 << 20, 0, UINT64_MAX, "their memory"},
     LIMIT(policy_memory)},
    {{"policy_result", SESSILE_UNIT_BYTES, 1 << 20, 0, UINT64_MAX,
      "what one of them may write"},
     LIMIT(policy_result)},
    {{"sessions_per_agent", SESSILE_UNIT_COUNT, 0, 0, UINT64_MAX,
      "sessions of one agent, softly deleted ones included"},
     LIMIT(sessions_per_agent)},
    {{"memory_value", SESSILE_UNIT_BYTES, 64 << 10, 0, 8 << 20,
      "of a value in a memory, at most 8 MiB"},
     LIMIT(memory_value)},
    {{"memory_key", SESSILE_UNIT_BYTES, 200, 0, 200,
      "of a key in a memory, at most 200 bytes"},
     LIMIT(memory_key)},
    {{"memory_entries", SESSILE_UNIT_COUNT, 1000000, 0, 1000000,
      "entries of one memory, ended ones included, at most 1000000"},
     LIMIT(memory_entries)},
    {{"memory_dims", SESSILE_UNIT_COUNT, 4096, 0, 4096,
      "dimensions of an embedding, at most 4096"},
     LIMIT(memory_dims)},
};

enum { LIMITS = sizeof limits / sizeof *limits };

static uint64_t get_member(const sessile_limits *l, size_t i)
{
    const char *at = (const char *)l + limits[i].offset;
    uint32_t narrow;
    uint64_t wide;

    if (limits[i].size == sizeof narrow) {
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static void set_member(sessile_limits *l, size_t i, uint64_t value)
{
    char *at = (char *)l + limits[i].offset;
    uint32_t narrow = (uint32_t)value;

    if (limits[i].size == sizeof narrow)
        memcpy(at, &narrow, sizeof narrow);
    else
        memcpy(at, &value, sizeof value);
}

static sessile_status check_member(size_t i, uint64_t value, sessile_error *err)
{
    if (value > limits[i].shown.most)
        return fail(err, SESSILE_LIMIT, "the limit [%s] is at most %llu",
                    limits[i].shown.name, (unsigned long long)limits[i].shown.most);
    return SESSILE_OK;
}

const sessile_limit *limits_at(size_t index)
{
    return index < LIMITS ? &limits[index].shown : NULL;
}

sessile_status limits_set(sessile_limits *l, const char *name, uint64_t value,
                          sessile_error *err)
{
    for (size_t i = 0; i < LIMITS; i++)
        if (!strcmp(limits[i].shown.name, name)) {
            if (limits[i].size == sizeof(uint32_t) && value > UINT32_MAX)
                return check_member(i, value, err);
            set_member(l, i, value);
            return SESSILE_OK;
        }
    return fail(err, SESSILE_NOTFOUND, "there is no limit [%s]", name);
}

sessile_status limits_check(const sessile_limits *l, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    for (size_t i = 0; i < LIMITS && !status; i++)
        status = check_member(i, get_member(l, i), err);
    return status;
}

void limits_fill(sessile_limits *l)
{
    for (size_t i = 0; i < LIMITS; i++)
        if (!get_member(l, i))
            set_member(l, i, limits[i].shown.standard);
}

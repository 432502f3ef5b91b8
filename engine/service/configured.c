/*
 * configured.c: what is configured for agents, where a server has to know it: what their
 * sessions have, and those to which nothing may be added.
 *
 * The calls of a server do not pass through Lua, so the rows come with its settings
 * (lua/sessile/cli/served_defaults.lua), and what Lua refuses is refused here.
 */
#include "service/server.h"

#include "api/inside.h"
#include "base/names.h"

const service_defaults *service_defaults_of(const service *s, sessile_slice agent)
{
    for (size_t i = 0; i < s->settings.default_count; i++) {
        const char *name = s->settings.defaults[i].agent;
        if (!name || slice_same(sessile_text(name), agent))
            return &s->settings.defaults[i];
    }
    return NULL;
}

/* The configured name of an agent; "" is the one of calls that name none. */
static const char *name_of(const service *s, const service_defaults *row)
{
    return *row->agent ? row->agent : api_default_agent(s->store);
}

sessile_status call_may_add(const call *c, sessile_slice agent, sessile_error *err)
{
    const service_defaults *row = service_defaults_of(c->server, agent);
    if (!row || !row->agent || !row->disabled)
        return SESSILE_OK;
    const char *name = name_of(c->server, row);
    return fail(err, SESSILE_DENIED,
                "agent '%s' is disabled (agents.%s.enabled = false): enable it, or name "
                "another",
                name, name);
}

sessile_status call_may_remember(const call *c, sessile_slice agent, sessile_error *err)
{
    const service_defaults *row = service_defaults_of(c->server, agent);
    sessile_status status = call_may_add(c, agent, err);
    if (status || !row || !row->no_memory)
        return status;
    if (!row->agent)
        return fail(err, SESSILE_DENIED,
                    "long-term memory is off: set memory.enabled to true");
    const char *name = name_of(c->server, row);
    return fail(err, SESSILE_DENIED,
                "long-term memory is off for agent '%s': set memory.enabled, or "
                "agents.%s.memory.enabled, to true",
                name, name);
}

/*
 * agent_info.c: what an agent says about itself when it opens a session.
 */
#include "session/agent_info.h"

#include <inttypes.h>

#include "base/text.h"
#include "codec/json.h"

sessile_status session_check_json(buf *out, const session_core *s, sessile_slice text,
                                  const char *what, int object, sessile_error *err)
{
    const sessile_limits *limits = &s->store->limits;
    sessile_status status;

    if (!text.size)
        return SESSILE_OK;
    if (text.size > limits->message)
        return fail(err, SESSILE_LIMIT,
                    "the %s has %zu bytes and the limit [message] is %" PRIu64
                    ": shorten it, or raise the limit",
                    what, text.size, limits->message);
    status = json_check(out, text.data, text.size, limits->depth, err);
    if (status) {
        fail_prefix(err, "%s", what);
        return status;
    }
    if (object && json_of(out->data, out->size).type != JSON_OBJECT)
        return fail(err, SESSILE_INVALID, "%s: a JSON object is wanted", what);
    return SESSILE_OK;
}

sessile_status session_check_text(sessile_slice text, size_t most, const char *what,
                                  sessile_error *err)
{
    if (text.size > most)
        return fail(err, SESSILE_LIMIT, "this %s has %zu bytes, at most %zu are allowed",
                    what, text.size, most);
    if (!utf8_valid(text.data, text.size))
        return fail(err, SESSILE_INVALID, "the %s is not UTF-8", what);
    return SESSILE_OK;
}

void session_free_agent_info(session_core *s)
{
    buf_deinit(&s->identity.info.version);
    buf_deinit(&s->identity.info.config);
    buf_deinit(&s->identity.info.tools);
}

sessile_status session_set_agent_info(session_core *s, const sessile_agent_info *info,
                                      sessile_error *err)
{
    sessile_status status =
        session_check_text(info->version, AGENT_INFO_MOST, "agent's version", err);

    if (!status)
        status = session_check_text(info->config, AGENT_INFO_MOST,
                                    "agent's configuration", err);
    if (!status && info->tools.size)
        status = session_check_json(&s->identity.info.tools, s, info->tools,
                                    "agent's tools", 0, err);
    if (!status && info->tools.size &&
        json_of(s->identity.info.tools.data, s->identity.info.tools.size).type !=
            JSON_ARRAY)
        status = fail(err, SESSILE_INVALID,
                      "the agent's tools: a JSON array of their names is wanted");
    if (status)
        return status;
    buf_put(&s->identity.info.version, info->version.data, info->version.size);
    buf_put(&s->identity.info.config, info->config.data, info->config.size);
    if (s->identity.info.version.failed || s->identity.info.config.failed)
        return fail_nomem(err);
    return SESSILE_OK;
}

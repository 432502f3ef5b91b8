/* http_query.c: reads the parameters of a request for events, strictly. */
#include "service/http_query.h"

#include <string.h>

#include "base/text.h"

/* Decodes in place: 1, or 0: it is malformed, or has a NUL. */
static int decode_percent(char *text)
{
    const size_t size = strlen(text);
    for (char *plus = text; (plus = strchr(plus, '+')) != NULL;)
        *plus = ' ';
    return url_decode(text, size + 1, text, size) == 0;
}

sessile_status http_query_read(char *query, http_query *out, sessile_error *err)
{
    *out = (http_query){NULL, NULL, NULL, NULL};
    struct {
        const char *name;
        char **value;
    } known[] = {{"agent", &out->agent},
                 {"user", &out->user},
                 {"id", &out->id},
                 {"from", &out->from}};
    while (query && *query) {
        char *next = strchr(query, '&');
        size_t i = 0;
        if (next)
            *next++ = '\0';
        char *value = strchr(query, '=');
        if (value)
            *value++ = '\0';
        while (i < 4 && strcmp(known[i].name, query) != 0)
            i++;
        if (i == 4 || *known[i].value || !value)
            return fail(err, SESSILE_INVALID,
                        "the parameters are agent, user, id and from, each once");
        if (!decode_percent(value))
            return fail(err, SESSILE_INVALID,
                        "the parameter %s is not percent-encoded text", known[i].name);
        *known[i].value = value;
        query = next;
    }
    return SESSILE_OK;
}

sessile_status http_entry_read(const char *text, const char *what, sessile_id *out,
                               sessile_error *err)
{
    uint64_t n = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && n < SESSILE_NO_ID; at++)
        n = n * 10 + (uint64_t)(*at - '0');
    if (at == text || *at || n >= SESSILE_NO_ID - 1)
        return fail(err, SESSILE_INVALID, "%s is the number of an entry", what);
    *out = (sessile_id)n;
    return SESSILE_OK;
}

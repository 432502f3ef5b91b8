/* http_query.c: reads the parameters of a request for events, strictly. */
#include "service/http_query.h"

#include <string.h>

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes in place: 1, or 0: it is malformed, or has a NUL. */
static int decode_percent(char *text)
{
    char *out = text;
    for (; *text; text++) {
        if (*text == '%') {
            int high = hex(text[1]), low = high < 0 ? -1 : hex(text[2]);
            if (low < 0 || high * 16 + low == 0)
                return 0;
            *out++ = (char)(high * 16 + low);
            text += 2;
        } else {
            *out++ = *text == '+' ? ' ' : *text;
        }
    }
    *out = '\0';
    return 1;
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

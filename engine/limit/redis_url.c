/*
 * limit_redis_url.c: the URL of a Redis server.
 *
 *     redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]
 *     redis://[USER:PASSWORD@]/PATH           a Unix socket
 *
 * ":PASSWORD@" has the password alone. User, password and path may be percent-encoded.
 * No sentence has a part of the URL, which may be the password.
 */
#include "base/text.h"
#include "limit/places.h"

#include <string.h>

enum { PORT = 6379, PORT_MOST = 65535, DATABASE_MOST = 1000000 };

/* A decimal number up to `most`; -1: none. */
static int number(const char *text, size_t size, int most)
{
    int n = 0;
    if (size == 0)
        return -1;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        n = 10 * n + (text[i] - '0');
        if (n > most)
            return -1;
    }
    return n;
}

/* HOST or [HOST], and :PORT. */
static int read_host(limit_redis_url *out, const char *text, size_t size)
{
    const char *end = text + size, *port = NULL;
    size_t host = strcspn(text, ":/");
    if (*text == '[') {
        const char *closing = memchr(text, ']', size);
        if (!closing)
            return -1;
        host = (size_t)(closing - ++text);
        port = closing + 1;
    } else {
        host = host < size ? host : size;
        port = text + host;
    }
    if (host == 0 || url_decode(out->host, sizeof out->host, text, host) != 0)
        return -1;
    if (port == end)
        return 0;
    out->port = *port == ':' ? number(port + 1, (size_t)(end - port - 1), PORT_MOST) : -1;
    return out->port > 0 ? 0 : -1;
}

static int read_url(limit_redis_url *out, const char *url)
{
    static const char scheme[] = "redis://";
    if (!url || strncmp(url, scheme, sizeof scheme - 1) != 0)
        return -1;
    url += sizeof scheme - 1;
    size_t size = strcspn(url, "/");
    const char *at = memchr(url, '@', size);
    if (at) {
        const char *colon = memchr(url, ':', (size_t)(at - url));
        if (!colon ||
            url_decode(out->user, sizeof out->user, url, (size_t)(colon - url)) != 0 ||
            url_decode(out->password, sizeof out->password, colon + 1,
                       (size_t)(at - colon - 1)) != 0)
            return -1;
        size -= (size_t)(at + 1 - url);
        url = at + 1;
    }
    const char *rest = url + size; /* "/…", or the end */
    if (size == 0)
        return rest[0] == '/' && rest[1] != '\0'
                   ? url_decode(out->path, sizeof out->path, rest, strlen(rest))
                   : -1;
    if (read_host(out, url, size) != 0)
        return -1;
    if (rest[0] == '/' && rest[1] != '\0')
        out->database = number(rest + 1, strlen(rest + 1), DATABASE_MOST);
    return out->database >= 0 ? 0 : -1;
}

sessile_status limit_redis_url_parse(limit_redis_url *out, const char *url,
                                     sessile_error *err)
{
    memset(out, 0, sizeof *out);
    out->port = PORT;
    if (read_url(out, url) == 0)
        return SESSILE_OK;
    wipe(out, sizeof *out);
    return fail(err, SESSILE_INVALID,
                "the shared place of rate limits is not understood: write "
                "redis://USER:PASSWORD@HOST:PORT/DATABASE, or redis:///PATH for a Unix "
                "socket, and %%2F, %%3A, %%40 for a slash, a colon and an at sign in the "
                "password");
}

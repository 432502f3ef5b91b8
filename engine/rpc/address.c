/*
 * address.c: "host:port", "[::1]:0" and "unix:/path" as addresses of sockets.
 *
 * A loop must never wait for a server of names. So a text is turned into addresses once,
 * when a listener or a channel is opened, and a channel keeps all that were found.
 */
#include "rpc/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

static sessile_status unix_address(addresses *out, const char *path, sessile_error *err)
{
    struct sockaddr_un un;
    memset(&un, 0, sizeof un);
    if (!*path || strlen(path) >= sizeof un.sun_path)
        return fail(err, SESSILE_INVALID,
                    "the path of a Unix socket must have 1 to %zu bytes",
                    sizeof un.sun_path - 1);
    un.sun_family = AF_UNIX;
    memcpy(un.sun_path, path, strlen(path));
    memcpy(&out->list[0].at, &un, sizeof un);
    out->list[0].size = sizeof un;
    out->count = 1;
    return SESSILE_OK;
}

/* Splits "host:port". 0, or -1. */
static int split(addresses *out, const char *text, const char **port)
{
    const char *host = text, *end = strrchr(text, ':'), *c;
    size_t size;

    if (!end)
        return -1;
    *port = end + 1;
    for (c = *port; *c; c++)
        if (*c < '0' || *c > '9')
            return -1;
    if (c == *port || c - *port > 5)
        return -1;
    if (*host == '[') {
        if (end == text || end[-1] != ']')
            return -1;
        host++;
        end--;
    } else if (memchr(host, ':', (size_t)(end - host)))
        return -1;
    size = (size_t)(end - host);
    if (!size || size >= sizeof out->host)
        return -1;
    memcpy(out->host, host, size);
    out->host[size] = 0;
    return 0;
}

sessile_status addresses_find(addresses *out, const char *text, sessile_error *err)
{
    struct addrinfo hints, *found = NULL, *one;
    const char *port;
    int error;

    memset(out, 0, sizeof *out);
    if (!text)
        return fail(err, SESSILE_INVALID, "an address is missing: give host:port");
    if (!strncmp(text, "unix:", 5))
        return unix_address(out, text + 5, err);
    if (split(out, text, &port))
        return fail(
            err, SESSILE_INVALID,
            "the address is not of the form host:port, [IPv6]:port or unix:/path");
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    error = getaddrinfo(out->host, port, &hints, &found);
    if (error == EAI_NONAME) {
        hints.ai_flags = AI_NUMERICSERV;
        error = getaddrinfo(out->host, port, &hints, &found);
    }
    if (error == EAI_MEMORY)
        return fail_nomem(err);
    if (error)
        return fail(err, SESSILE_INVALID,
                    "the host of the address cannot be found (%s): check its name",
                    gai_strerror(error));
    for (one = found; one && out->count < ADDRESSES_MAX; one = one->ai_next) {
        if (one->ai_addrlen > sizeof out->list[0].at)
            continue;
        memcpy(&out->list[out->count].at, one->ai_addr, one->ai_addrlen);
        out->list[out->count++].size = one->ai_addrlen;
    }
    freeaddrinfo(found);
    if (!out->count)
        return fail(err, SESSILE_INVALID, "the host of the address has no address");
    return SESSILE_OK;
}

void address_print(const address *a, char out[ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN];

    if (a->at.ss_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, &a->at, sizeof in);
        inet_ntop(AF_INET, &in.sin_addr, host, sizeof host);
        snprintf(out, ADDRESS_TEXT, "%s:%u", host, ntohs(in.sin_port));
    } else if (a->at.ss_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, &a->at, sizeof in);
        inet_ntop(AF_INET6, &in.sin6_addr, host, sizeof host);
        snprintf(out, ADDRESS_TEXT, "[%s]:%u", host, ntohs(in.sin6_port));
    } else {
        struct sockaddr_un un;
        memset(&un, 0, sizeof un);
        memcpy(&un, &a->at, a->size < sizeof un ? a->size : sizeof un);
        un.sun_path[sizeof un.sun_path - 1] = 0;
        if (a->size > sizeof(sa_family_t) && un.sun_path[0])
            snprintf(out, ADDRESS_TEXT, "unix:%s", un.sun_path);
        else
            snprintf(out, ADDRESS_TEXT, "unix");
    }
}

int address_local(const address *a)
{
    if (a->at.ss_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, &a->at, sizeof in);
        return (ntohl(in.sin_addr.s_addr) >> 24) == 127;
    }
    if (a->at.ss_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, &a->at, sizeof in);
        return IN6_IS_ADDR_LOOPBACK(&in.sin6_addr);
    }
    return a->at.ss_family == AF_UNIX;
}

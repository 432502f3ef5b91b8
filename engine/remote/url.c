/*
 * url.c: the URL of a store, and the credential.
 *
 *     grpcs://HOST:PORT/?ca=FILE&cert=FILE&key=FILE&token_file=FILE&timeout=5s
 *
 * A URL is shown in lists and errors, so it has no secrets: a credential comes from
 * $SESSILE_TOKEN or from a file. In clear text (grpc://) it would be read by others on
 * the way, and so would who talks to whom, so that is for this machine; `plain=true` says
 * that the network is trusted.
 */
#include "remote/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT "7071"
enum { CREDENTIAL_MOST = 8192 };

/* "500ms", "5s", "2m"; a bare number is seconds. -1: none. */
static int read_time(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    unsigned long ms = strcmp(end, "ms") == 0               ? 1
                       : strcmp(end, "s") == 0 || *end == 0 ? 1000
                       : strcmp(end, "m") == 0              ? 60000
                                                            : 0;
    if (end == text || *text == '-' || ms == 0 || n == 0 || n > 86400000 / ms)
        return -1;
    return (int)(n * ms);
}

/* ---------------------------------------------------------------------- parameters */

static sessile_status take_parameter(remote_url *url, const char *name, size_t name_size,
                                     const char *value, size_t size, sessile_error *err)
{
    char text[512];
    const struct {
        const char *name;
        char *out;
    } files[] = {{"ca", url->ca},
                 {"cert", url->cert},
                 {"key", url->key},
                 {"token_file", url->token_file}};
    const char *wrong = "the URL of the store has a parameter that cannot be read: give "
                        "ca, cert, key, token_file (files), timeout=5s, plain=true";
    if (url_decode(text, sizeof text, value, size) != 0)
        return fail(err, SESSILE_INVALID, "%s", wrong);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strlen(files[i].name) == name_size &&
            memcmp(files[i].name, name, name_size) == 0) {
            memcpy(files[i].out, text, strlen(text) + 1);
            return SESSILE_OK;
        }
    if (name_size == 7 && memcmp(name, "timeout", 7) == 0) {
        url->timeout_ms = read_time(text);
        return url->timeout_ms > 0
                   ? SESSILE_OK
                   : fail(err, SESSILE_INVALID,
                          "the URL of the store has a timeout that is no time: write it "
                          "as 500ms, 5s or 1m");
    }
    if (name_size == 5 && memcmp(name, "plain", 5) == 0 &&
        (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        url->plain = strcmp(text, "true") == 0;
        return SESSILE_OK;
    }
    return fail(err, SESSILE_INVALID, "%s", wrong);
}

static sessile_status take_query(remote_url *url, const char *query, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    while (*query && !status) {
        size_t size = strcspn(query, "&"), name = strcspn(query, "=&");
        const char *value = query + name + (name < size);
        status =
            take_parameter(url, query, name, value, (size_t)(query + size - value), err);
        query += size + (query[size] == '&');
    }
    return status;
}

/* ---------------------------------------------------------------------- the place */

static int is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           (strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == strlen(host));
}

/* "host", "host:7071", "[::1]:7071", and behind them a path. */
static sessile_status take_place(remote_url *url, const char *text, size_t size,
                                 sessile_error *err)
{
    char authority[280];
    const char *path = memchr(text, '/', size), *colon;
    size_t n = path ? (size_t)(path - text) : size;
    if (n == 0 && path && size > 1) {
        char socket[108];
        if (url_decode(socket, sizeof socket, path, size) == 0) {
            snprintf(url->address, sizeof url->address, "unix:%s", socket);
            snprintf(url->where, sizeof url->where, "the server at %s", socket);
            url->plain = 1;
            return SESSILE_OK;
        }
    }
    if (n == 0 || n >= sizeof url->host || (path && path + 1 != text + size) ||
        memchr(text, '@', n))
        return fail(err, SESSILE_INVALID,
                    "the URL of the store is grpcs://HOST:PORT/?… or, on this machine, "
                    "grpc://127.0.0.1:PORT/ or grpc:///PATH/OF/SOCKET: a credential does "
                    "not belong into it (SESSILE_TOKEN, token_file)");
    memcpy(authority, text, n);
    authority[n] = '\0';
    if (authority[0] == '[') {
        size_t end = strcspn(authority, "]");
        colon = authority[end] == ']' && authority[end + 1] == ':' ? authority + end + 1
                                                                   : NULL;
        snprintf(url->host, sizeof url->host, "%.*s", end > 0 ? (int)end - 1 : 0,
                 authority + 1);
    } else {
        colon = strchr(authority, ':');
        snprintf(url->host, sizeof url->host, "%.*s",
                 colon ? (int)(colon - authority) : (int)n, authority);
    }
    snprintf(url->address, sizeof url->address, "%s%s", authority, colon ? "" : ":" PORT);
    snprintf(url->where, sizeof url->where, "the server at %s", url->address);
    return SESSILE_OK;
}

sessile_status remote_url_parse(remote_url *out, const char *url, sessile_error *err)
{
    const char *rest = strstr(url, "://"), *query;
    memset(out, 0, sizeof *out);
    if (!rest)
        return fail(err, SESSILE_INVALID, "a store's URL begins with \"grpcs://\"");
    out->encrypted = rest - url == 5;
    rest += 3;
    query = strchr(rest, '?');
    sessile_status status =
        take_place(out, rest, query ? (size_t)(query - rest) : strlen(rest), err);
    if (!status && query)
        status = take_query(out, query + 1, err);
    if (status)
        return status;
    if (out->encrypted && out->host[0] == '\0')
        return fail(err, SESSILE_INVALID,
                    "a socket of this machine needs no TLS: grpc://");
    if (!out->encrypted && !out->plain && !is_loopback(out->host))
        return fail(err, SESSILE_DENIED,
                    "in clear text everybody between here and %s can read and change "
                    "what is sent: use grpcs://, or add plain=true for a network that "
                    "you trust",
                    out->where);
    if (!out->encrypted && (out->ca[0] || out->cert[0] || out->key[0]))
        return fail(err, SESSILE_INVALID, "ca, cert and key are for TLS: use grpcs://");
    if (!out->cert[0] != !out->key[0])
        return fail(err, SESSILE_INVALID,
                    "a certificate goes with its key: cert and key");
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- credential */

static sessile_status read_token(const char *path, const os_table *os, char *out,
                                 size_t room, sessile_error *err)
{
    os_stat_info st;
    sessile_status status = SESSILE_OK;
    int fd = os->open_at(os->ud, -1, path, OS_READ | OS_FOLLOW);
    if (fd < 0)
        return fail_errno(err, errno, "cannot open the token file %s", path);
    if (os->stat_fd(os->ud, fd, &st) != 0) {
        status = fail_errno(err, errno, "cannot look at the token file %s", path);
    } else if (!st.is_regular || (st.mode & 077) != 0) {
        status = fail(err, SESSILE_DENIED,
                      "others may read the token file %s, or it is no file: chmod 600 it",
                      path);
    } else {
        int64_t got = os_read_full(os, fd, out, room - 1, 0);
        if (got < 0)
            status = fail_errno(err, errno, "cannot read the token file %s", path);
        out[got > 0 ? got : 0] = '\0';
        out[strcspn(out, "\r\n")] = '\0';
    }
    os->close(os->ud, fd);
    return status;
}

sessile_status remote_credential(const remote_url *url, const os_table *os,
                                 const allocator *a, char **out, sessile_error *err)
{
    static const char scheme[] = "Bearer ";
    char text[sizeof scheme + CREDENTIAL_MOST], *token = text + sizeof scheme - 1;
    const char *env = os->env(os->ud, "SESSILE_TOKEN");
    sessile_status status = SESSILE_OK;
    *out = NULL;
    memset(text, 0, sizeof text);
    memcpy(text, scheme, sizeof scheme - 1);
    if (url->token_file[0])
        status = read_token(url->token_file, os, token, CREDENTIAL_MOST, err);
    else if (env && strlen(env) < CREDENTIAL_MOST)
        memcpy(token, env, strlen(env));
    for (const char *at = token; *at && !status; at++)
        if (*at <= ' ' || *at > '~')
            status = fail(err, SESSILE_INVALID,
                          "the token for %s has a blank or another character that no "
                          "token has",
                          url->where);
    if (!status && *token) {
        *out = mem_dup(a, text, strlen(text));
        if (!*out)
            status = fail_nomem(err);
    }
    wipe(text, sizeof text);
    return status;
}

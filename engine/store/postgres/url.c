/*
 * url.c: the URL of a store: which parts are ours, which are libpq's, and which are
 * secret.
 *
 * Owns the parameters schema, pool, timeout, keep and cleartext_password, which are
 * removed before libpq reads the rest, and the defaults that detect connections which
 * broke silently. An error must never contain a value of the URL, except of our own
 * parameters, nor libpq's message about a URL, which repeats the URL.
 */
#include "store/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEVERAL_MS = 3000 };
#define KEEP_LEAST ((size_t)1 << 20)
#define KEEP_MOST  (SIZE_MAX / 4)
enum { POOL_DEFAULT = 8, POOL_MOST = 1000, TIMEOUT_DEFAULT_MS = 30000 };

/* What is set unless the URL does. */
static const char *const defaults[][2] = {
    {"fallback_application_name", "sessile"},
    {"client_encoding", "UTF8"},
    {"keepalives_idle", "30"},
    {"keepalives_interval", "10"},
    {"keepalives_count", "3"},
    {"tcp_user_timeout", "30000"},
};

/* Where a URL's user, password and query are. */
typedef struct parts {
    const char *after_user; /* behind the '@', or behind "://" */
    const char *password;   /* as it is written */
    size_t password_size;
    const char *query; /* behind the '?'; NULL: none */
} parts;

/* As libpq looks for them: whatever is before an '@' that comes before a '/'. */
static parts find_parts(const char *url)
{
    parts p = {0};
    const char *at = strstr(url, "://");
    at = at ? at + 3 : strchr(url, ':') + 1;
    size_t user = strcspn(at, "@/");
    p.after_user = at;
    if (at[user] == '@') {
        const char *colon = memchr(at, ':', user);
        if (colon) {
            p.password = colon + 1;
            p.password_size = user - (size_t)(colon + 1 - at);
        }
        p.after_user = at + user + 1;
    }
    p.query = strchr(p.after_user, '?');
    p.query = p.query ? p.query + 1 : NULL;
    return p;
}

/*
 * 1: a password may stand where libpq, and every error of ours, takes it for something
 * that may be shown: it holds an '@', '/', '?' or '#' as it is, and so ends before its
 * time.
 */
static int spills(const char *url)
{
    const char *at = strstr(url, "://") + 3;
    size_t authority = strcspn(at, "/?#");
    const char *first = memchr(at, '@', authority);
    const char *host = first ? first + 1 : at;
    size_t rest = authority - (size_t)(host - at);
    if (memchr(host, '@', rest) || (!first && strchr(at, '@')))
        return 1;
    /* a port is a number; of several hosts each has its own; [::1] may be one of them */
    while (rest > 0) {
        size_t one = 0, name = 0;
        while (one < rest && host[one] != ',')
            one++;
        if (host[0] == '[')
            while (name < one && host[name] != ']')
                name++;
        while (name < one && host[name] != ':')
            name++;
        for (size_t i = name + 1; i < one; i++)
            if (host[i] < '0' || host[i] > '9')
                return 1;
        one += one < rest;
        host += one;
        rest -= one;
    }
    return 0;
}

static sessile_status unreadable(sessile_error *err)
{
    return fail(err, SESSILE_INVALID,
                "the URL of the PostgreSQL store cannot be read: it is "
                "postgres://USER:PASSWORD@HOST:PORT/DATABASE?NAME=VALUE&…, PORT is a "
                "number, and what means something in a URL (@ : / ? # & %%) is written "
                "%%40 %%3A %%2F %%3F %%23 %%26 %%25 inside a part");
}

static sessile_status schema_take(pg_url *out, const char *value, sessile_error *err)
{
    size_t size = strlen(value);
    if (size == 0 || size > PG_SCHEMA_MOST || (value[0] >= '0' && value[0] <= '9') ||
        strncmp(value, "pg_", 3) == 0 ||
        strspn(value,
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") !=
            size) {
        return fail(err, SESSILE_INVALID,
                    "the store's URL has a \"schema\" that cannot be one: give 1 to %d "
                    "letters, digits and _, no digit and no \"pg_\" first",
                    PG_SCHEMA_MOST);
    }
    memcpy(out->schema, value, size + 1);
    return SESSILE_OK;
}

static sessile_status pool_take(pg_url *out, const char *value, sessile_error *err)
{
    char *end;
    long n = strtol(value, &end, 10);
    if (end == value || *end != '\0' || n < 1 || n > POOL_MOST) {
        return fail(err, SESSILE_INVALID,
                    "the store's URL has a \"pool\" that is none: give 1 to %d "
                    "connections",
                    POOL_MOST);
    }
    out->pool = (int)n;
    return SESSILE_OK;
}

/* "30s", "500ms", "2m"; a number alone is of seconds. */
static sessile_status timeout_take(pg_url *out, const char *value, sessile_error *err)
{
    char *end;
    long n = strtol(value, &end, 10);
    int64_t unit = strcmp(end, "ms") == 0                  ? 1
                   : *end == '\0' || strcmp(end, "s") == 0 ? 1000
                   : strcmp(end, "m") == 0                 ? 60000
                                                           : 0;
    if (end == value || unit == 0 || n < 0 || n > 2000000000 / unit) {
        return fail(err, SESSILE_INVALID,
                    "the store's URL has a \"timeout\" that is none: give a time as 30s, "
                    "500ms or 2m, or 0 for none");
    }
    out->statement_ms = n * unit;
    return SESSILE_OK;
}

/* "256MiB"; a number alone is of bytes. */
static sessile_status keep_take(pg_url *out, const char *value, sessile_error *err)
{
    static const struct {
        const char *name;
        int shift;
    } units[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
    char *end;
    unsigned long long n = strtoull(value, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name) == 0 && value[0] >= '1' && value[0] <= '9' &&
            n <= (unsigned long long)KEEP_MOST >> units[i].shift) {
            out->keep = (size_t)n << units[i].shift;
            if (out->keep >= KEEP_LEAST)
                return SESSILE_OK;
        }
    }
    return fail(err, SESSILE_INVALID,
                "the store's URL has a \"keep\" that is none: give a size from 1MiB on, "
                "as 256MiB or 2GiB");
}

static sessile_status clear_password_take(pg_url *out, const char *value,
                                          sessile_error *err)
{
    out->clear_password = strcmp(value, "allow") == 0;
    return out->clear_password || strcmp(value, "refuse") == 0
               ? SESSILE_OK
               : fail(err, SESSILE_INVALID,
                      "the store's URL has a \"cleartext_password\" that is none: give "
                      "refuse or allow");
}

static const struct {
    const char *name;
    sessile_status (*take)(pg_url *out, const char *value, sessile_error *err);
} ours[] = {
    {"schema", schema_take},
    {"pool", pool_take},
    {"timeout", timeout_take},
    {"keep", keep_take},
    {"cleartext_password", clear_password_take},
};

/* One name=value of the query. Ours are taken; libpq's go to rest; others are INVALID. */
static sessile_status parameter(pg_url *out, const char *text, size_t size,
                                const PQconninfoOption *known, buf *rest,
                                sessile_error *err)
{
    char name[64], value[256];
    const char *equals = memchr(text, '=', size);
    size_t name_size = equals ? (size_t)(equals - text) : size;
    if (url_decode(name, sizeof name, text, name_size) != 0) {
        return fail(err, SESSILE_INVALID,
                    "the store's URL has a parameter whose name cannot be read: check "
                    "what follows the '?'");
    }
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        if (strcmp(name, ours[i].name) != 0)
            continue;
        if (!equals ||
            url_decode(value, sizeof value, equals + 1, size - name_size - 1) != 0) {
            return fail(err, SESSILE_INVALID,
                        "the store's URL has a \"%s\" without a value that can be read",
                        name);
        }
        return ours[i].take(out, value, err);
    }
    int found = strcmp(name, "ssl") == 0; /* libpq knows ssl=true as well */
    for (; !found && known->keyword; known++)
        found = strcmp(known->keyword, name) == 0;
    if (!found) {
        return fail(err, SESSILE_INVALID,
                    "the store's URL has a parameter \"%s\", which is none: ours are "
                    "schema, pool, timeout, keep and cleartext_password, the others are "
                    "those of libpq",
                    name);
    }
    buf_putc(rest, rest->size > 0 && strchr(rest->data, '?') ? '&' : '?');
    buf_put(rest, text, size);
    return SESSILE_OK;
}

/* The URL less our parameters. */
static sessile_status split_url(pg_url *out, const pg_lib *lib, const char *url,
                                const parts *p, buf *rest, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    PQconninfoOption *known = lib->PQconndefaults();
    if (!known)
        return fail_nomem(err);
    size_t base = p->query ? (size_t)(p->query - 1 - url) : strlen(url);
    buf query;
    buf_init(&query, rest->alloc);
    for (const char *at = p->query; at && !status;) {
        size_t size = strcspn(at, "&");
        if (size > 0)
            status = parameter(out, at, size, known, &query, err);
        at = at[size] == '&' ? at + size + 1 : NULL;
    }
    buf_put(rest, url, base);
    buf_put(rest, query.data, query.size);
    if (!status && (rest->failed || query.failed))
        status = fail_nomem(err);
    buf_wipe(&query);
    lib->PQconninfoFree(known);
    return status;
}

static const char *option(const PQconninfoOption *options, const char *name)
{
    for (; options && options->keyword; options++)
        if (strcmp(options->keyword, name) == 0)
            return options->val && options->val[0] != '\0' ? options->val : NULL;
    return NULL;
}

static void secret(pg_url *out, int number, const char *text, size_t size)
{
    if (text && size > 0) {
        snprintf(out->secret[number], sizeof out->secret[number], "%.*s",
                 (int)(size > 255 ? 255 : size), text);
    }
}

/* What errors call the server. */
static void name_it(pg_url *out, const pg_lib *lib)
{
    PQconninfoOption *preset = lib->PQconndefaults();
    const char *names[] = {"user", "host", "port", "dbname"}, *of[4];
    for (int i = 0; i < 4; i++) {
        of[i] = option(out->options, names[i]);
        of[i] = of[i] ? of[i] : option(preset, names[i]);
    }
    const char *address = option(out->options, "hostaddr");
    of[1] = of[1] ? of[1] : address ? address : "this machine";
    snprintf(out->where, sizeof out->where, "%.40s%s%.60s:%.10s/%.40s",
             of[0] ? of[0] : "", of[0] ? "@" : "", of[1], of[2] ? of[2] : "5432",
             of[3]   ? of[3]
             : of[0] ? of[0]
                     : "");
    if (!pg_url_clean(out, out->where)) /* a user whose password is their name */
        snprintf(out->where, sizeof out->where, "the PostgreSQL server");
    if (preset)
        lib->PQconninfoFree(preset);
}

/* What a connection is made with. */
static sessile_status fill(pg_url *out, const allocator *a, sessile_error *err)
{
    size_t given = 0, extra = sizeof defaults / sizeof *defaults, n = 0;
    while (out->options[given].keyword)
        given++;
    out->room = (given + extra + 1) * sizeof *out->keys;
    out->keys = mem_zalloc(a, out->room);
    out->values = mem_zalloc(a, out->room);
    if (!out->keys || !out->values)
        return fail_nomem(err);
    for (size_t i = 0; i < given; i++) {
        if (out->options[i].val) {
            out->keys[n] = out->options[i].keyword;
            out->values[n++] = out->options[i].val;
        }
    }
    for (size_t i = 0; i < extra; i++) {
        if (!option(out->options, defaults[i][0])) {
            out->keys[n] = defaults[i][0];
            out->values[n++] = defaults[i][1];
        }
    }
    return SESSILE_OK;
}

static int parts_of(const char *list)
{
    int n = 1;
    for (; list && *list != '\0'; list++)
        n += *list == ',';
    return n;
}

/* A comma list with its first `by` parts put behind the others. */
static void rotated(buf *out, const char *list, int by)
{
    const char *from = list;
    for (; by > 0; by--)
        from = strchr(from, ',') + 1;
    buf_puts(out, from);
    if (from > list) {
        buf_putc(out, ',');
        buf_put(out, list, (size_t)(from - list) - 1);
    }
    buf_putc(out, '\0');
}

int pg_url_values(const pg_url *url, unsigned first, const char ***values, char **text,
                  size_t *size, const allocator *a)
{
    size_t at[3], found[3], n = 0;
    buf lists;
    buf_init(&lists, a);
    *text = NULL;
    *size = 0;
    *values = mem_alloc(a, url->room);
    if (!*values)
        return -1;
    memcpy((void *)*values, (const void *)url->values, url->room);
    for (size_t i = 0; url->keys[i] && url->hosts > 1; i++) {
        if ((strcmp(url->keys[i], "host") == 0 || strcmp(url->keys[i], "hostaddr") == 0 ||
             strcmp(url->keys[i], "port") == 0) &&
            parts_of(url->values[i]) == url->hosts && n < 3) {
            found[n] = i;
            at[n++] = lists.size;
            rotated(&lists, url->values[i], (int)(first % (unsigned)url->hosts));
        }
    }
    if (lists.failed) {
        buf_deinit(&lists);
        mem_free(a, (void *)*values, url->room);
        *values = NULL;
        return -1;
    }
    *text = lists.data;
    *size = lists.capacity;
    for (size_t i = 0; i < n; i++)
        (*values)[found[i]] = lists.data + at[i];
    return 0;
}

/* 1: number i of a comma list, or its only one, is this text. */
static int part_is(const char *list, int i, const char *text)
{
    if (!list || !text)
        return 0;
    for (int n = parts_of(list) > 1 ? i : 0; n > 0; n--)
        list = strchr(list, ',') + 1;
    size_t size = strcspn(list, ",");
    return strlen(text) == size && memcmp(list, text, size) == 0;
}

int pg_url_host(const pg_url *url, const char *host, const char *port)
{
    const char *hosts = option(url->options, "host");
    const char *ports = option(url->options, "port");
    hosts = hosts ? hosts : option(url->options, "hostaddr");
    for (int i = 0; i < url->hosts; i++)
        if (part_is(hosts, i, host) && (!ports || part_is(ports, i, port)))
            return i;
    return 0;
}

sessile_status pg_url_parse(pg_url *out, const pg_lib *lib, const char *url,
                            const os_table *os, const allocator *a, sessile_error *err)
{
    memset(out, 0, sizeof *out);
    memcpy(out->schema, "sessile", sizeof "sessile");
    out->pool = POOL_DEFAULT;
    out->statement_ms = TIMEOUT_DEFAULT_MS;
    parts p = find_parts(url);
    char *trouble = NULL;
    buf rest;
    buf_init(&rest, a);
    sessile_status status = SESSILE_OK;
    if (strncmp(url, "postgres://", 11) != 0 && strncmp(url, "postgresql://", 13) != 0) {
        status = fail(err, SESSILE_INVALID,
                      "the URL of a PostgreSQL store begins with postgres:// or "
                      "postgresql://");
    }
    if (!status && spills(url))
        status = unreadable(err);
    if (!status)
        status = split_url(out, lib, url, &p, &rest, err);
    if (!status) {
        out->options = lib->PQconninfoParse(rest.data, &trouble);
        if (!out->options)
            status = unreadable(err);
        if (trouble) {
            wipe(trouble, strlen(trouble));
            lib->PQfreemem(trouble);
        }
    }
    buf_wipe(&rest);
    if (!status) {
        const char *text = option(out->options, "password");
        secret(out, 0, text, text ? strlen(text) : 0);
        text = option(out->options, "sslpassword");
        secret(out, 1, text, text ? strlen(text) : 0);
        text = os->env(os->ud, "PGPASSWORD");
        secret(out, 2, text, text ? strlen(text) : 0);
        secret(out, 3, p.password, p.password_size);
        text = option(out->options, "options");
        out->keep_commit = text && strstr(text, "synchronous_commit");
        text = option(out->options, "connect_timeout");
        text = text ? text : os->env(os->ud, "PGCONNECT_TIMEOUT");
        long seconds = text ? strtol(text, NULL, 10) : 0;
        /* as libpq: none for what is no number above 0, and at least 2 */
        out->connect_ms = seconds <= 0 || seconds > 1000000
                              ? 0
                              : (int)(seconds < 2 ? 2 : seconds) * 1000;
        text = option(out->options, "host");
        text = text ? text : option(out->options, "hostaddr");
        out->hosts = parts_of(text);
        if (out->hosts > 1 && out->connect_ms == 0) {
            out->connect_ms =
                SEVERAL_MS; /* one that is away must not take all the time */
        }
        name_it(out, lib);
        status = fill(out, a, err);
    }
    if (status)
        pg_url_free(out, lib, a);
    return status;
}

void pg_url_free(pg_url *url, const pg_lib *lib, const allocator *a)
{
    for (PQconninfoOption *o = url->options; o && o->keyword; o++)
        if (o->val)
            wipe(o->val, strlen(o->val));
    if (url->options)
        lib->PQconninfoFree(url->options);
    mem_free(a, (void *)url->keys, url->room);
    mem_free(a, (void *)url->values, url->room);
    wipe(url, sizeof *url);
}

int pg_url_clean(const pg_url *url, const char *text)
{
    for (int i = 0; i < PG_SECRETS; i++)
        if (url->secret[i][0] != '\0' && strstr(text, url->secret[i]))
            return 0;
    return 1;
}

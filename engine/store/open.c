/*
 * open.c: the table of schemes, and opening a store by its URL.
 *
 * A new store needs a row here and a folder of its own. Errors never repeat a URL, which
 * may contain a password: of an unknown scheme only the scheme is named.
 */
#include "store/open.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "store/file/open.h"
#include "store/postgres/open.h"
#include "store/ram.h"
#include "store/remote.h"
#include "store/sqlite/open.h"

static sessile_status open_file(store *out, const char *path, const store_setup *setup,
                                sessile_error *err)
{
    sessile_status status = store_file_open(out, path, setup->os, setup->alloc, err);

    if (!status && setup->allow_network)
        store_file_allow_network(out);
    return status;
}

static sessile_status open_sqlite(store *out, const char *path, const store_setup *setup,
                                  sessile_error *err)
{
    sessile_status status =
        store_sqlite_open(out, path, setup->timeout_ms, setup->os, setup->alloc, err);

    if (!status && setup->allow_network)
        store_sqlite_allow_network(out);
    return status;
}

static sessile_status open_postgres(store *out, const char *url, const store_setup *setup,
                                    sessile_error *err)
{
    sessile_status status =
        store_postgres_open(out, url, setup->timeout_ms, setup->os, setup->alloc, err);

    if (!status && setup->unsynced)
        store_postgres_unsynced(out);
    return status;
}

static sessile_status open_ram(store *out, const char *rest, const store_setup *setup,
                               sessile_error *err)
{
    if (rest[0])
        return fail(err, SESSILE_INVALID,
                    "\"ram:\" takes no path: every such store is its own");
    return store_ram_open(out, setup->os, setup->alloc, err);
}

typedef struct scheme {
    sessile_store_scheme shown;
    /* place: what follows the colon; of a server the whole URL */
    sessile_status (*open)(store *out, const char *place, const store_setup *setup,
                           sessile_error *err);
} scheme;

/* A plain path means the first row. */
static const scheme schemes[] = {
    {{"file", SESSILE_PLACE_FOLDER, "file:FOLDER", "plain files in a folder"}, open_file},
    {{"sqlite", SESSILE_PLACE_FILE, "sqlite:FILE", "one SQLite database"}, open_sqlite},
    {{"postgres", SESSILE_PLACE_SERVER, "postgres://…", "a PostgreSQL database"},
     open_postgres},
    {{"postgresql", SESSILE_PLACE_SERVER, NULL, "another name of postgres"},
     open_postgres},
    {{"grpcs", SESSILE_PLACE_SERVER, "grpcs://…", "a server of records"},
     store_remote_open},
    {{"grpc", SESSILE_PLACE_SERVER, NULL, "the same without TLS, on this machine"},
     store_remote_open},
    {{"ram", SESSILE_PLACE_MEMORY, "ram:", "in memory, until it is closed"}, open_ram},
};

enum { SCHEMES = sizeof schemes / sizeof *schemes, SCHEME_SHOWN = 40 };

const sessile_store_scheme *store_scheme_at(size_t index)
{
    return index < SCHEMES ? &schemes[index].shown : NULL;
}

/* The length of url's scheme; 0: url is a path. A scheme has at least two letters, so
 * that "C:/x" is a path. */
static size_t scheme_size(const char *url)
{
    size_t size =
        strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    int letter = (url[0] >= 'a' && url[0] <= 'z') || (url[0] >= 'A' && url[0] <= 'Z');

    return size >= 2 && letter && url[size] == ':' ? size : 0;
}

/* The server whose URL this seems to be, misspelled: "postgres//user:password@host". */
static const scheme *misspelled(const char *url)
{
    if (strchr(url, '/') && strchr(url, '@'))
        for (size_t i = 0; i < SCHEMES; i++)
            if (schemes[i].shown.place == SESSILE_PLACE_SERVER &&
                !strncmp(url, schemes[i].shown.scheme, strlen(schemes[i].shown.scheme)))
                return &schemes[i];
    return NULL;
}

/* The row of url, and where in url its path begins (NULL: it has none). NULL: none. */
static const scheme *scheme_of(const char *url, const char **path)
{
    size_t size = scheme_size(url);

    *path = NULL;
    if (!size && !misspelled(url)) {
        *path = url;
        return &schemes[0];
    }
    for (size_t i = 0; size && i < SCHEMES; i++) {
        const sessile_store_scheme *s = &schemes[i].shown;
        if (strlen(s->scheme) == size && !memcmp(s->scheme, url, size)) {
            if (s->place == SESSILE_PLACE_FOLDER || s->place == SESSILE_PLACE_FILE)
                *path = url + size + 1;
            return &schemes[i];
        }
    }
    return NULL;
}

const sessile_store_scheme *store_scheme(const char *url, const char **path)
{
    const scheme *s = scheme_of(url, path);

    return s ? &s->shown : NULL;
}

/* Every form of a URL: "file:FOLDER", "sqlite:FILE" … or "ram:". */
static void list_forms(char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < SCHEMES; i++) {
        if (!schemes[i].shown.form)
            continue;
        const char *between = !used ? "" : i + 1 < SCHEMES ? ", " : " or ";
        int n =
            snprintf(out + used, size - used, "%s\"%s\"", between, schemes[i].shown.form);
        if (n < 0 || (size_t)n >= size - used)
            return;
        used += (size_t)n;
    }
}

static sessile_status fail_scheme(const char *url, sessile_error *err)
{
    const scheme *meant = misspelled(url);
    int size = (int)scheme_size(url);
    char forms[200];

    if (meant && !size)
        return fail(err, SESSILE_INVALID,
                    "a store's URL begins with \"%s://\": correct what stands before its "
                    "\"//\" (write a folder of such a name as \"./%s…\")",
                    meant->shown.scheme, meant->shown.scheme);
    list_forms(forms, sizeof forms);
    if (size > SCHEME_SHOWN)
        size = SCHEME_SHOWN;
    return fail(err, SESSILE_UNSUPPORTED,
                "this build has no store for \"%.*s:\": use %s (write a folder of that "
                "name as \"./%.*s:…\")",
                size, url, forms, size, url);
}

sessile_status store_open(store *out, const char *url, const store_setup *setup,
                          sessile_error *err)
{
    const char *path;
    char forms[200];

    if (!url || !*url) {
        list_forms(forms, sizeof forms);
        return fail(err, SESSILE_INVALID, "the store's url is empty: give a path, %s",
                    forms);
    }
    const scheme *s = scheme_of(url, &path);
    if (!s)
        return fail_scheme(url, err);
    if (path && !*path)
        return fail(err, SESSILE_INVALID, "\"%s:\" needs a %s after it", s->shown.scheme,
                    s->shown.place == SESSILE_PLACE_FILE ? "file" : "folder");
    if (!path)
        path = s->shown.place == SESSILE_PLACE_SERVER ? url
                                                      : url + strlen(s->shown.scheme) + 1;
    return s->open(out, path, setup, err);
}

sessile_status store_backend_open(store *out, const char *url,
                                  const sessile_store_options *options,
                                  sessile_error *err)
{
    static const sessile_store_options defaults;
    allocator a = allocator_default;
    const sessile_store_options *o = options ? options : &defaults;
    int timeout_ms = o->config.has_timeout ? o->config.timeout_ms : STORE_TIMEOUT_MS;

    *out = (store){NULL, NULL};
    if (timeout_ms < -1)
        return fail(err, SESSILE_INVALID,
                    "timeout_ms is %d: give milliseconds, or -1 to wait for ever",
                    timeout_ms);
    if (base_init())
        return fail(err, SESSILE_UNSUPPORTED, "libsodium cannot be used on this machine");
    if (o->alloc)
        a = (allocator){o->alloc, o->alloc_ud};
    return store_open(out, url,
                      &(store_setup){.os = os_current,
                                     .alloc = &a,
                                     .timeout_ms = timeout_ms,
                                     .allow_network = o->allow_network,
                                     .unsynced = o->durability == SESSILE_NONE,
                                     .remote = o->remote},
                      err);
}

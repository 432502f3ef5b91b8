/*
 * fields.c: a list of header fields, in the order in which they were added.
 *
 * One block of text holds all fields of a request, so that a request costs one allocation
 * for its headers. Lists are short; a search reads them from the beginning.
 */
#include "rpc/fields.h"

#include <string.h>

void fields_init(fields *f, const allocator *a)
{
    buf_init(&f->text, a);
    f->count = 0;
}

void fields_deinit(fields *f)
{
    buf_deinit(&f->text);
    f->count = 0;
}

int fields_add(fields *f, const char *name, size_t name_size, const char *value,
               size_t value_size)
{
    if (name_size > SIZE_MAX / 4 || value_size > SIZE_MAX / 4 ||
        buf_reserve(&f->text, name_size + value_size + 2))
        return -1;
    buf_put(&f->text, name, name_size);
    buf_putc(&f->text, 0);
    buf_put(&f->text, value, value_size);
    buf_putc(&f->text, 0);
    f->count++;
    return 0;
}

int fields_add_all(fields *f, const rpc_header *headers, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++)
        if (fields_sendable(headers[i].name, headers[i].value) &&
            fields_add(f, headers[i].name, strlen(headers[i].name), headers[i].value,
                       strlen(headers[i].value)))
            return -1;
    return 0;
}

int fields_next(const fields *f, const char **name, const char **value)
{
    const char *at = *name ? *value + strlen(*value) + 1 : f->text.data;
    if (!f->count || at >= f->text.data + f->text.size)
        return 0;
    *name = at;
    *value = at + strlen(at) + 1;
    return 1;
}

const char *fields_find(const fields *f, const char *name)
{
    const char *key = NULL, *value = NULL;
    while (fields_next(f, &key, &value))
        if (!strcmp(key, name))
            return value;
    return NULL;
}

void fields_visit(const fields *f,
                  int (*visit)(void *arg, const char *name, const char *value), void *arg)
{
    const char *name = NULL, *value = NULL;
    while (fields_next(f, &name, &value))
        if (visit(arg, name, value))
            return;
}

/* What the protocol itself sends, and what HTTP/2 forbids. */
static int reserved(const char *name)
{
    static const char *const names[] = {
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
        "host",
        "te",
        "content-length",
        "content-type",
        "grpc-status",
        "grpc-message",
        "grpc-timeout",
        "grpc-encoding",
        "trailer",
    };
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return 1;
    return 0;
}

int fields_sendable(const char *name, const char *value)
{
    const char *c;
    if (!name || !value || !*name || reserved(name))
        return 0;
    for (c = name; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') ||
              (*c != ':' && strchr("-_.", *c))))
            return 0;
    if (*value == ' ')
        return 0;
    for (c = value; *c; c++)
        if (*c < ' ' || *c > '~')
            return 0;
    return c == value || c[-1] != ' ';
}

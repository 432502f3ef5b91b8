/*
 * telemetry_list.c: one reader for both lists of OpenTelemetry's environment.
 *
 * The form is that of W3C Baggage without properties. Values may be secrets (headers), so
 * they are wiped, and no error quotes them.
 */
#include "service/telemetry_list.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

typedef struct span_of {
    const char *at, *end;
} span_of;

static span_of trimmed(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return (span_of){at, end};
}

/* A token of HTTP, at least one character: 0 or -1. */
static int put_name(buf *out, span_of name)
{
    if (name.at == name.end)
        return -1;
    for (const char *c = name.at; c < name.end; c++)
        if (!((*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') ||
              (*c >= 'a' && *c <= 'z') || strchr("!#$%&'*+-.^_`|~", *c)))
            return -1;
    buf_put(out, name.at, (size_t)(name.end - name.at));
    buf_putc(out, 0);
    return 0;
}

/* What a value is after its escapes: 0 or -1. */
static int put_value(buf *out, span_of value)
{
    size_t from = out->size;
    for (const char *c = value.at; c < value.end; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte == '%') {
            if (value.end - c < 3)
                return -1;
            char digits[2] = {(char)tolower((unsigned char)c[1]),
                              (char)tolower((unsigned char)c[2])};
            if (hex_decode(&byte, digits, 1))
                return -1;
            c += 2;
        }
        if (byte < ' ' || byte == 0x7f)
            return -1;
        buf_putc(out, (char)byte);
    }
    if (!out->failed && !utf8_valid(out->data + from, out->size - from))
        return -1;
    buf_putc(out, 0);
    return 0;
}

int telemetry_list_read(const char *text, const allocator *a,
                        int (*visit)(void *arg, const char *name, const char *value),
                        void *arg)
{
    buf pair;
    int failed = 0;
    buf_init(&pair, a);
    while (*text && !failed) {
        const char *end = strchrnul(text, ',');
        span_of item = trimmed(text, end);
        text = *end ? end + 1 : end;
        if (item.at == item.end)
            continue;
        const char *equals = memchr(item.at, '=', (size_t)(item.end - item.at));
        pair.size = 0;
        failed = !equals || put_name(&pair, trimmed(item.at, equals));
        size_t value = pair.size;
        failed = failed || put_value(&pair, trimmed(equals + 1, item.end)) ||
                 pair.failed || visit(arg, pair.data, pair.data + value);
    }
    int no_memory = pair.failed;
    buf_wipe(&pair);
    return no_memory ? -2 : failed ? -1 : 0;
}

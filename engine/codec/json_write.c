/*
 * json_write.c: text as a JSON string.
 *
 * Owns the engine's own spelling of strings: it escapes only what JSON requires. Must
 * never be used for text that a caller gave as JSON: that stays as it was.
 */
#include "codec/json.h"

#include <string.h>

#include "codec/scan.h"

static void put_escape(buf *out, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    char text[6] = {'\\', 'u', '0', '0', 0, 0};
    size_t size = 2;

    switch (c) {
    case '"':
    case '\\':
        text[1] = (char)c;
        break;
    case '\b':
        text[1] = 'b';
        break;
    case '\f':
        text[1] = 'f';
        break;
    case '\n':
        text[1] = 'n';
        break;
    case '\r':
        text[1] = 'r';
        break;
    case '\t':
        text[1] = 't';
        break;
    default:
        text[4] = digits[c >> 4];
        text[5] = digits[c & 15];
        size = 6;
        break;
    }
    buf_put(out, text, size);
}

void json_put_string(buf *out, const void *data, size_t size)
{
    const char *at = data;
    const char *end;

    if (buf_reserve(out, size < PTRDIFF_MAX - 2 ? size + 2 : size))
        return;
    buf_putc(out, '"');
    if (size > 0) {
        end = at + size;
        while (at < end) {
            const char *plain = at;
            at = scan_to_escape(plain, end);
            buf_put(out, plain, (size_t)(at - plain));
            if (at < end)
                put_escape(out, (unsigned char)*at++);
        }
    }
    buf_putc(out, '"');
}

void json_put_cstring(buf *out, const char *text)
{
    json_put_string(out, text, strlen(text));
}

void json_put_millionths(buf *out, double number)
{
    uint64_t millionths = (uint64_t)(number * 1e6 + 0.5);
    buf_printf(out, "%llu.%06u", (unsigned long long)(millionths / 1000000),
               (unsigned)(millionths % 1000000));
}

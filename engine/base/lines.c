/*
 * lines.c: splits what arrives into lines, and writes JSON texts as lines.
 *
 * Must never keep more than one line that is too long: its bytes are dropped as they
 * come. Each byte is searched for a newline once, however small the pieces are.
 */
#include "base/lines.h"

#include <string.h>
#include "base/text.h"

#define KEEP ((size_t)1 << 20) /* bytes that an empty buffer may keep */

void lines_init(lines *l, const allocator *a, size_t most)
{
    memset(l, 0, sizeof *l);
    buf_init(&l->in, a);
    l->most = most;
}

void lines_deinit(lines *l)
{
    buf_deinit(&l->in);
}

size_t lines_held(const lines *l)
{
    return l->in.size - l->start;
}

/* Moves what is left to the front, when that costs less than was read since. */
static void make_room(lines *l)
{
    size_t left = lines_held(l);
    if (left == 0 && l->in.capacity > KEEP) {
        const allocator *a = l->in.alloc;
        buf_deinit(&l->in);
        buf_init(&l->in, a);
        l->start = 0;
    } else if (l->start >= left && l->start > 0) {
        memmove(l->in.data, l->in.data + l->start, left);
        l->in.size = left;
        l->start = 0;
    }
}

int lines_feed(lines *l, const void *data, size_t size)
{
    make_room(l);
    if (size)
        buf_put(&l->in, data, size);
    if (!l->in.failed)
        return 0;
    l->in.failed = 0;
    return -1;
}

void lines_end(lines *l)
{
    l->ended = 1;
}

/* Forgets `size` bytes and, if there is one, the newline behind them. */
static void drop(lines *l, size_t size, int newline)
{
    l->start += size + (size_t)newline;
    l->seen = 0;
}

lines_found lines_next(lines *l, const char **line, size_t *size)
{
    *line = NULL;
    *size = 0;
    for (;;) {
        size_t held = lines_held(l), length;
        const char *from = l->in.data ? l->in.data + l->start : NULL, *newline = NULL;
        int was_skipping = l->skipping;
        if (held > l->seen)
            newline = memchr(from + l->seen, '\n', held - l->seen);
        length = newline ? (size_t)(newline - from) : held;
        if (!newline && (held == 0 || (!l->ended && !was_skipping && held <= l->most))) {
            l->seen = held;
            if (l->ended)
                l->skipping = 0;
            return LINES_NONE;
        }
        drop(l, length, newline != NULL);
        l->skipping = newline ? 0 : was_skipping || length > l->most;
        if (was_skipping)
            continue;
        if (length > l->most)
            return LINES_LONG;
        *line = from;
        *size = length;
        return LINES_ONE;
    }
}

/* Bytes from at that are written as they are. */
static size_t plain(const unsigned char *at, size_t size)
{
    size_t i = 0;
    while (i < size && at[i] < 0x80 && at[i] != '\n' && at[i] != '\r')
        i++;
    return i;
}

void lines_put(buf *out, const char *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t length;
    while (size > 0) {
        length = plain(at, size);
        if (length == 0) {
            length = utf8_length(at, size);
            if (*at == '\n' || *at == '\r')
                buf_putc(out, ' ');
            else if (length == 0)
                buf_puts(out, "\xEF\xBF\xBD");
            else if (length == 2 && at[0] == 0xC2 && at[1] == 0x85)
                buf_puts(out, "\\u0085");
            else if (length == 3 && at[0] == 0xE2 && at[1] == 0x80 &&
                     (at[2] & 0xFE) == 0xA8)
                buf_puts(out, at[2] == 0xA8 ? "\\u2028" : "\\u2029");
            else
                buf_put(out, at, length);
            length = length ? length : 1;
        } else
            buf_put(out, at, length);
        at += length;
        size -= length;
    }
    buf_putc(out, '\n');
}

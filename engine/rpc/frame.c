/*
 * frame.c: the parts of gRPC that are bytes: messages in their frames, and the values of
 * three headers.
 *
 * A peer chooses every byte that is read here. A message whose bytes all lie in what was
 * given is not copied; another is gathered in a buffer that grows with what came.
 */
#include "rpc/frame.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

void frame_head(unsigned char out[FRAME_HEAD], size_t size)
{
    out[0] = 0;
    out[1] = (unsigned char)(size >> 24);
    out[2] = (unsigned char)(size >> 16);
    out[3] = (unsigned char)(size >> 8);
    out[4] = (unsigned char)size;
}

void frame_init(frame_reader *r, size_t limit, const allocator *a)
{
    buf_init(&r->body, a);
    r->limit = limit;
    r->head_size = 0;
}

void frame_deinit(frame_reader *r)
{
    buf_deinit(&r->body);
    r->head_size = 0;
}

/* By the head, which is whole. */
static size_t declared(const frame_reader *r)
{
    return (size_t)r->head[1] << 24 | (size_t)r->head[2] << 16 | (size_t)r->head[3] << 8 |
           r->head[4];
}

int frame_inside(const frame_reader *r)
{
    return r->head_size > 0 && (r->head_size < FRAME_HEAD || r->body.size < declared(r));
}

size_t frame_expected(const frame_reader *r)
{
    return r->head_size == FRAME_HEAD && frame_inside(r) ? declared(r) : 0;
}

/* What is kept of a buffer for the next message of the stream. */
#define KEPT 16384

/* Forgets the message that was handed out. */
static void begin(frame_reader *r)
{
    r->head_size = 0;
    if (r->body.capacity > KEPT)
        buf_deinit(&r->body);
    else
        buf_clear(&r->body);
}

static int is_whole(const frame_reader *r)
{
    return r->head_size == FRAME_HEAD && r->body.size >= declared(r);
}

void frame_taken(frame_reader *r)
{
    if (is_whole(r))
        begin(r);
}

frame_result frame_read(frame_reader *r, const unsigned char **data, size_t *size,
                        const unsigned char **message, size_t *message_size)
{
    size_t expected, take;

    if (is_whole(r))
        begin(r);
    if (r->head_size < FRAME_HEAD) {
        take = FRAME_HEAD - r->head_size;
        if (take > *size)
            take = *size;
        if (take)
            memcpy(r->head + r->head_size, *data, take);
        r->head_size += (unsigned)take;
        *data += take;
        *size -= take;
        if (r->head_size < FRAME_HEAD)
            return FRAME_MORE;
        if (r->head[0])
            return FRAME_COMPRESSED;
        if (declared(r) > r->limit)
            return FRAME_LARGE;
    }
    expected = declared(r);
    if (!r->body.size && *size >= expected) {
        *message = *data;
        *message_size = expected;
        *data += expected;
        *size -= expected;
        r->head_size = 0;
        return FRAME_MESSAGE;
    }
    take = expected - r->body.size;
    if (take > *size)
        take = *size;
    buf_put(&r->body, *data, take);
    if (r->body.failed)
        return FRAME_NOMEM;
    *data += take;
    *size -= take;
    if (r->body.size < expected)
        return FRAME_MORE;
    *message = (const unsigned char *)r->body.data;
    *message_size = expected;
    return FRAME_MESSAGE;
}

/* ---------------------------------------------------------------------- timeouts */

static const struct {
    char unit;
    uint64_t us; /* 0: it is finer than a µs */
} units[] = {{'u', 1},        {'m', 1000},       {'S', 1000000},
             {'M', 60000000}, {'H', 3600000000}, {'n', 0}};

int frame_timeout_parse(const char *text, uint64_t *us)
{
    uint64_t n = 0;
    size_t i, digits = 0;

    for (; *text >= '0' && *text <= '9'; text++, digits++) {
        if (digits == 8)
            return -1;
        n = n * 10 + (uint64_t)(*text - '0');
    }
    if (!digits || !text[0] || text[1])
        return -1;
    for (i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].unit == *text) {
            *us = units[i].us ? n * units[i].us : (n + 999) / 1000;
            return 0;
        }
    return -1;
}

void frame_timeout_print(uint64_t us, char out[FRAME_TIMEOUT_SIZE])
{
    size_t i = 0;
    uint64_t n = us;
    while (n > 99999999 && units[i + 1].us) {
        i++;
        n = us / units[i].us + (us % units[i].us > 0);
    }
    if (n > 99999999)
        n = 99999999;
    snprintf(out, FRAME_TIMEOUT_SIZE, "%u%c", (unsigned)n, units[i].unit);
}

/* ---------------------------------------------------------------------- messages */

void frame_percent_put(buf *out, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= ' ' && c <= '~' && c != '%') {
            buf_putc(out, (char)c);
            continue;
        }
        buf_putc(out, '%');
        buf_putc(out, digits[c >> 4]);
        buf_putc(out, digits[c & 15]);
    }
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void frame_percent_take(buf *out, const char *text)
{
    buf raw;
    buf_init(&raw, out->alloc);
    for (; *text; text++) {
        int high = *text == '%' ? hex(text[1]) : -1, low = high < 0 ? -1 : hex(text[2]);
        /* A zero would end the text for whoever reads it. */
        if (low < 0 || (!high && !low)) {
            buf_putc(&raw, *text);
            continue;
        }
        buf_putc(&raw, (char)(high << 4 | low));
        text += 2;
    }
    if (raw.failed)
        out->failed = 1;
    else
        utf8_put_lossy(out, raw.data, raw.size);
    buf_deinit(&raw);
}

int frame_is_grpc(const char *content_type)
{
    static const char name[] = "application/grpc";
    size_t size = sizeof name - 1;
    return content_type && !strncmp(content_type, name, size) &&
           (!content_type[size] || content_type[size] == '+' ||
            content_type[size] == ';');
}

/*
 * wire.c: numbers and texts as bytes, and back.
 *
 * Must never trust a size: every read first checks how much is left.
 */
#include "base/wire.h"

#include <string.h>

static void put_number(buf *out, uint64_t n, size_t size)
{
    char bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(unsigned char)(n >> (8 * i));
    buf_put(out, bytes, size);
}

void wire_put_u8(buf *out, uint8_t n)
{
    put_number(out, n, 1);
}

void wire_put_u32(buf *out, uint32_t n)
{
    put_number(out, n, 4);
}

void wire_put_u64(buf *out, uint64_t n)
{
    put_number(out, n, 8);
}

void wire_put_i64(buf *out, int64_t n)
{
    put_number(out, (uint64_t)n, 8);
}

void wire_put_text(buf *out, const char *data, size_t size)
{
    if (size > UINT32_MAX) {
        out->failed = 1;
        return;
    }
    wire_put_u32(out, (uint32_t)size);
    buf_put(out, size ? data : "", size);
}

void wire_init(wire *w, const void *data, size_t size)
{
    w->at = data;
    w->end = w->at + size;
    w->bad = 0;
}

/* The next bytes; NULL: there are not as many. */
static const unsigned char *take(wire *w, size_t size)
{
    const unsigned char *at = w->at;
    if (w->bad || (size_t)(w->end - at) < size) {
        w->bad = 1;
        return NULL;
    }
    w->at += size;
    return at;
}

/* Written out, it is one load. */
static uint32_t number(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint8_t wire_u8(wire *w)
{
    const unsigned char *at = take(w, 1);
    return at ? *at : 0;
}

uint32_t wire_u32(wire *w)
{
    const unsigned char *at = take(w, 4);
    return at ? number(at) : 0;
}

uint64_t wire_u64(wire *w)
{
    const unsigned char *at = take(w, 8);
    return at ? number(at) | (uint64_t)number(at + 4) << 32 : 0;
}

int64_t wire_i64(wire *w)
{
    return (int64_t)wire_u64(w);
}

sessile_slice wire_text(wire *w)
{
    sessile_slice out = {"", 0};
    size_t size = wire_u32(w);
    if (w->bad || (size_t)(w->end - w->at) < size) {
        w->bad = 1;
        return out;
    }
    out.data = (const char *)w->at;
    out.size = size;
    w->at += size;
    return out;
}

uint32_t wire_count(wire *w, size_t each)
{
    uint32_t count = wire_u32(w);
    if (w->bad || (size_t)(w->end - w->at) / each < count) {
        w->bad = 1;
        return 0;
    }
    return count;
}

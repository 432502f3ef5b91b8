/*
 * buf.c: a growable byte buffer that remembers a failure.
 *
 * Once an append has failed for lack of memory, every later one is ignored until the
 * buffer is cleared. So a writer checks `failed` once, at the end, and never uses text
 * with a hole in it.
 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define FIRST_CAPACITY 64

void buf_init(buf *b, const allocator *a)
{
    memset(b, 0, sizeof *b);
    b->alloc = a;
}

void buf_deinit(buf *b)
{
    const allocator *a = b->alloc;
    mem_free(a, b->data, b->capacity);
    buf_init(b, a);
}

void buf_wipe(buf *b)
{
    if (b->data)
        wipe(b->data, b->capacity);
    buf_deinit(b);
}

void buf_clear(buf *b)
{
    b->size = 0;
    b->failed = 0;
    if (b->data)
        b->data[0] = 0;
}

int buf_reserve(buf *b, size_t more)
{
    size_t need, wanted;
    char *grown;

    if (b->failed)
        return -1;
    if (b->capacity - b->size > more)
        return 0;
    if (more >= PTRDIFF_MAX - b->size)
        goto no_memory;
    need = b->size + more + 1; /* the NUL */
    wanted = b->capacity < FIRST_CAPACITY ? FIRST_CAPACITY : b->capacity;
    if (wanted <= PTRDIFF_MAX / 2)
        wanted *= 2;
    if (wanted < need)
        wanted = need;
    grown = mem_realloc(b->alloc, b->data, b->capacity, wanted);
    if (!grown)
        goto no_memory;
    b->data = grown;
    b->capacity = wanted;
    b->data[b->size] = 0;
    return 0;

no_memory:
    b->failed = 1;
    return -1;
}

void buf_put(buf *b, const void *data, size_t size)
{
    if (buf_reserve(b, size))
        return;
    if (size)
        memcpy(b->data + b->size, data, size);
    b->size += size;
    b->data[b->size] = 0;
}

void buf_puts(buf *b, const char *text)
{
    buf_put(b, text, strlen(text));
}

void buf_putc(buf *b, char c)
{
    buf_put(b, &c, 1);
}

void buf_printf(buf *b, const char *format, ...)
{
    va_list args, again;
    int wanted;

    if (buf_reserve(b, 0))
        return;
    va_start(args, format);
    va_copy(again, args);
    wanted = vsnprintf(b->data + b->size, b->capacity - b->size, format, args);
    if (wanted < 0) {
        b->failed = 1;
    } else if ((size_t)wanted < b->capacity - b->size) {
        b->size += (size_t)wanted;
    } else if (buf_reserve(b, (size_t)wanted) == 0) {
        vsnprintf(b->data + b->size, (size_t)wanted + 1, format, again);
        b->size += (size_t)wanted;
    }
    if (b->failed)
        b->data[b->size] = 0; /* the first try may have left a piece there */
    va_end(again);
    va_end(args);
}

void buf_put_u64(buf *b, uint64_t n)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    buf_put(b, digits + at, sizeof digits - at);
}

void buf_put_i64(buf *b, int64_t n)
{
    uint64_t size = (uint64_t)n;
    if (n < 0) {
        buf_putc(b, '-');
        size = 0 - size;
    }
    buf_put_u64(b, size);
}

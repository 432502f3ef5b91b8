/*
 * buf.h: a growable byte buffer that remembers a failure, so that a writer checks once.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdint.h>
#include "base/alloc.h"

typedef struct buf {
    char *data; /* NUL-terminated once anything was put */
    size_t size, capacity;
    const allocator *alloc;
    int failed; /* an allocation failed: data is what was appended before */
} buf;

void buf_init(buf *b, const allocator *a);
void buf_deinit(buf *b);              /* init'ed again; does not wipe */
void buf_wipe(buf *b);                /* zeroes, then deinit: for secrets */
void buf_clear(buf *b);               /* empty, memory and allocator kept, failed reset */
int buf_reserve(buf *b, size_t more); /* 0 or -1 */
void buf_put(buf *b, const void *data, size_t size);
void buf_puts(buf *b, const char *text);
void buf_putc(buf *b, char c);
void buf_printf(buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_put_u64(buf *b, uint64_t n);
void buf_put_i64(buf *b, int64_t n);

#endif

/* encoding_internal.h: the struct of an open encoding, for the two files that use it. */
#ifndef TOKENS_ENCODING_INTERNAL_H
#define TOKENS_ENCODING_INTERNAL_H

#include "base/os.h"
#include "tokens/cutter.h"
#include "tokens/encoding.h"
#include "tokens/encoding_image.h"
#include "tokens/pretoken.h"

struct sessile_encoding {
    image image;
    const allocator *alloc;
    allocator own;
    const os_table *os;
    pretoken_scanner *scan; /* or, where it is NULL, the steps of a pattern */
    cutter *cutter;
    int finds; /* some added tokens are found in texts */
    /* One of these holds the image. */
    const void *mapped;
    size_t mapped_size;
    buf memory;
};

#endif

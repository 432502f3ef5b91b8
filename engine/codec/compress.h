/* compress.h: compresses large texts, with libzstd. */
#ifndef CODEC_COMPRESS_H
#define CODEC_COMPRESS_H

#include "base/buf.h"
#include "base/error.h"

/* Appends the compressed bytes to out. NOMEM. */
sessile_status compress_put(buf *out, const void *data, size_t size, sessile_error *err);
/* Appends the raw bytes, which are exactly raw_size; the caller limits that. DAMAGED:
 * the size differs, or data is not compressed data. NOMEM. */
sessile_status compress_read(buf *out, const void *data, size_t size, size_t raw_size,
                             sessile_error *err);
/* The raw size that compressed bytes claim: not trustworthy. 0: none. */
uint64_t compress_raw_size(const void *data, size_t size);

#endif

/*
 * compress.c: compresses large texts.
 *
 * Must never trust the size that compressed bytes claim: the caller passes the
 * expected size, and no more is written.
 */
#include "codec/compress.h"

#include <zstd.h>

/* The default level of zstd: a few hundred MB/s, and a third of JSON. */
#define LEVEL 3

sessile_status compress_put(buf *out, const void *data, size_t size, sessile_error *err)
{
    size_t most = ZSTD_compressBound(size), got;

    if (ZSTD_isError(most) || buf_reserve(out, most))
        return fail_nomem(err);
    got = ZSTD_compress(out->data + out->size, most, data, size, LEVEL);
    if (ZSTD_isError(got))
        return fail_nomem(err);
    out->size += got;
    return SESSILE_OK;
}

sessile_status compress_read(buf *out, const void *data, size_t size, size_t raw_size,
                             sessile_error *err)
{
    size_t got;

    if (buf_reserve(out, raw_size))
        return fail_nomem(err);
    got = ZSTD_decompress(out->data + out->size, raw_size, data, size);
    if (ZSTD_isError(got) || got != raw_size)
        return fail(err, SESSILE_DAMAGED, "what was compressed cannot be read");
    out->size += got;
    return SESSILE_OK;
}

uint64_t compress_raw_size(const void *data, size_t size)
{
    unsigned long long raw = ZSTD_getFrameContentSize(data, size);
    return raw == ZSTD_CONTENTSIZE_UNKNOWN || raw == ZSTD_CONTENTSIZE_ERROR ? 0 : raw;
}

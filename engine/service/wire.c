/* wire.c: see wire.h. */
#include "service/wire.h"

/* 1, or 0: it does not end within 10 bytes, or at all. */
static int read_varint(reader *r, uint64_t *out)
{
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        unsigned char byte = *r->at++;
        if (shift == 63 && byte > 1)
            return 0;
        n |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = n;
            return 1;
        }
    }
    return 0;
}

int read_field(reader *r, field *out)
{
    uint64_t tag, size;
    if (!read_varint(r, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return 0;
    *out = (field){.id = (uint32_t)(tag >> 3), .type = (wire_type)(tag & 7)};
    switch (out->type) {
    case WIRE_VARINT:
        return read_varint(r, &out->number);
    case WIRE_64:
        size = 8;
        break;
    case WIRE_32:
        size = 4;
        break;
    case WIRE_SIZED:
        if (!read_varint(r, &size))
            return 0;
        break;
    default:
        return 0;
    }
    if (size > (size_t)(r->end - r->at))
        return 0;
    out->bytes = (reader){r->at, r->at + size};
    r->at += size;
    return 1;
}

reader reader_of(const void *data, size_t size)
{
    static const unsigned char none;
    const unsigned char *bytes = size ? data : &none;
    return (reader){bytes, bytes + size};
}

reader find_field(reader r, uint32_t id)
{
    reader out = {NULL, NULL};
    field f;
    while (r.at < r.end && read_field(&r, &f))
        if (f.id == id && f.type == WIRE_SIZED)
            out = f.bytes;
    return out;
}

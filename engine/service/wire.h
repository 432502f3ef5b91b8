/* wire.h: the fields of a message of protobuf, from its bytes. */
#ifndef SERVICE_WIRE_H
#define SERVICE_WIRE_H

#include <stddef.h>
#include <stdint.h>

typedef enum wire_type {
    WIRE_VARINT = 0,
    WIRE_64 = 1,
    WIRE_SIZED = 2,
    WIRE_32 = 5
} wire_type;

/* Bytes that are not read yet. */
typedef struct reader {
    const unsigned char *at, *end;
} reader;

typedef struct field {
    uint32_t id;
    wire_type type;
    uint64_t number; /* of a varint */
    reader bytes;    /* of the others: borrowed from what is read */
} field;

/* The next field: 1, or 0: it is malformed, also at the end. Groups are malformed: nobody
 * writes them any more. */
int read_field(reader *r, field *out);
/* Of data that may be NULL. */
reader reader_of(const void *data, size_t size);
/* The bytes of the last sized field of that number; nothing: there is none. */
reader find_field(reader r, uint32_t id);

#endif

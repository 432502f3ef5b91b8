/*
 * json_reader.h: what reads one value, for json_read.c.
 *
 * Every function here takes a value of checked text, and sets *out when it succeeds. On
 * failure there is nothing in *out that has to be freed, and the error names the place:
 * INVALID or NOMEM.
 */
#ifndef SERVICE_JSON_READER_H
#define SERVICE_JSON_READER_H

#include "service/json_parts.h"

typedef struct reader {
    const allocator *alloc;
    buf text;      /* a string decoded */
    buf number;    /* a number from a string, or with a NUL behind it */
    buf seen;      /* for each message that is being read, a byte for each field */
    size_t values; /* read so far */
    sessile_error *err;
} reader;

/* INVALID: "this has to be <wanted>, and is <what it is>". */
sessile_status fail_type(reader *r, const place *at, const char *wanted, json value);

/* *out is a block of r->alloc, for host_free(). */
sessile_status scalar_string(reader *r, const place *at, json value, char **out);
sessile_status scalar_bytes(reader *r, const place *at, json value,
                            ProtobufCBinaryData *out);
/* A whole number, in two's complement. */
sessile_status scalar_32(reader *r, const place *at, json value, int is_signed,
                         uint32_t *out);
sessile_status scalar_64(reader *r, const place *at, json value, int is_signed,
                         uint64_t *out);
/* is_float: rounded to a float. */
sessile_status scalar_real(reader *r, const place *at, json value, int is_float,
                           double *out);
sessile_status scalar_enum(reader *r, const place *at, json value, uint32_t *out);

#endif

/* fields.h: a list of header fields, in the order in which they were added. */
#ifndef RPC_FIELDS_H
#define RPC_FIELDS_H

#include "base/buf.h"
#include "rpc/rpc.h"

typedef struct fields {
    buf text; /* "name\0value\0", one field after the other */
    size_t count;
} fields;

void fields_init(fields *f, const allocator *a);
void fields_deinit(fields *f);
/* 0; -1: no memory, and nothing was added. */
int fields_add(fields *f, const char *name, size_t name_size, const char *value,
               size_t value_size);
/* Adds each of n headers. 0, or -1. */
int fields_add_all(fields *f, const rpc_header *headers, size_t n);
/* The first value of that name, or NULL. Pointers hold until the next field is added. */
const char *fields_find(const fields *f, const char *name);
/* The field after this one; NULL begins. Returns 0 after the last. */
int fields_next(const fields *f, const char **name, const char **value);
void fields_visit(const fields *f,
                  int (*visit)(void *arg, const char *name, const char *value),
                  void *arg);

/* 1: a header that a caller may send: a lower-case token, a printable value, and none of
 * the names that belong to the protocol (":status", "grpc-status", "connection"...). */
int fields_sendable(const char *name, const char *value);

#endif

/* lua_config.h: a configuration file, run like a policy and read as data. */
#ifndef POLICY_LUA_CONFIG_H
#define POLICY_LUA_CONFIG_H

#include <stddef.h>
#include "sessile.h"

/* The contents of a file. The caller frees all of them with sessile_free(). */
typedef struct lua_config {
    char *values; /* JSON of the returned table: a table is the list of its keys and
                     values in turn, [k, v, k, v]; a function is {"line": n} */
    size_t values_size;
    char *text; /* the source, without a byte-order mark or a first line with # */
    size_t text_size;
    char *path; /* absolute, links resolved */
} lua_config;

/* Reads the file at path and runs it in a sandbox: the globals of a policy, a million
 * instructions, 8 MiB of memory, half a second. No metamethod is called. Errors:
 * NOTFOUND; DENIED: it is a symbolic link or not a regular file, belongs to another
 * user except root, or others can write it; INVALID: what is wrong in it, with file
 * and line; LIMIT: over 256 KiB, 10,000 values, or 16 levels; IO, NOMEM. */
sessile_status lua_config_read(const char *path, lua_config *out, sessile_error *err);

/* Whether a path below a file's folder stays inside it: every part that exists is a
 * folder, not a link. Changes path temporarily. */
int lua_config_stays_below(const char *folder, char *path);

#endif

/* lua_config.h: a configuration file, run like a policy and read as data. */
#ifndef POLICY_LUA_CONFIG_H
#define POLICY_LUA_CONFIG_H

#include <stddef.h>
#include "sessile.h"

/* What a file said. All are given back with sessile_free(). */
typedef struct lua_config {
    char *values; /* JSON of the table that it returned: a table is the list of its keys
                     and values in turn, [k, v, k, v]; a function is {"line": n} */
    size_t values_size;
    char *text; /* the source, without a byte-order mark or a first line with # */
    size_t text_size;
    char *path; /* where it is, from the root, links followed */
} lua_config;

/*
 * Reads the file at path and runs it where it reaches nothing: the names that a policy
 * has, a million instructions, 8 MiB of memory, half a second. No metamethod is called.
 * Errors: NOTFOUND; DENIED: it is a symbolic link, no regular file, another user's (but
 * root's), or others may write it; INVALID: what is wrong in it, with file and line;
 * LIMIT: larger than 256 KiB, or 10,000 values, or nested deeper than 16; IO, NOMEM.
 */
sessile_status lua_config_read(const char *path, lua_config *out, sessile_error *err);

/* Whether a path below a file's folder leads nowhere else: what there is of it are
 * folders, and none is a link. Changes path and inserted it back. */
int lua_config_stays_below(const char *folder, char *path);

#endif

/* source.h: a file of Lua (a policy or a configuration): found, checked and read. */
#ifndef POLICY_SOURCE_H
#define POLICY_SOURCE_H

#include "base/buf.h"
#include "base/error.h"
#include "base/os.h"

#define SOURCE_MAX (256 * 1024)

/* Where policies are searched. */
typedef struct source_place {
    const os_table *os;
    const allocator *alloc;
    const char *search_path; /* folders, separated by ':'; "" for none */
} source_place;

typedef struct source {
    buf path, text;
    const char *kind;    /* the word for it in errors: "policy" */
    const char *file;    /* the last part of path */
    const char *foreign; /* why it must not run in this process; NULL: it may */
    int own;             /* this user or root owns it */
    uint64_t device, inode;
    size_t skip;    /* bytes of text that are a byte-order mark or a first line with # */
    char stem[128]; /* file without .lua */
} source;

void source_init(source *c, const allocator *a);
void source_deinit(source *c);

/* Finds and reads the file with that name. folder: the folder of the chain that
 * contains the name, searched first ("" for none). NOTFOUND says what exists; DENIED
 * (not a regular file, a link), LIMIT, POLICY (not text), IO, NOMEM. Call
 * source_deinit() after a failure too. */
sessile_status source_read(source *c, const source_place *from, const char *name,
                           const char *folder, sessile_error *err);
/* The same for the file at path, whatever its name. */
sessile_status source_read_path(source *c, const source_place *from, const char *path,
                                sessile_error *err);

#endif

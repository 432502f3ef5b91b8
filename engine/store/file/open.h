/* open.h: a store of plain files in a folder. */
#ifndef STORE_FILE_OPEN_H
#define STORE_FILE_OPEN_H

#include "store/store.h"

/*
 * Opens a store of files: logs are ROOT/agents/<folder>/<name>.jsonl, blobs are
 * ROOT/<blob>. Opening creates nothing. The first blob_put_new or create makes ROOT with
 * its parents, folders 0700 and files 0600. DENIED: a symbolic link, a file of another
 * user, a file that is not regular, or a ROOT that others may write.
 */
sessile_status store_file_open(store *out, const char *root, const os_table *os,
                               const allocator *a, sessile_error *err);

/* Allows writing on a network file system, which is UNSUPPORTED otherwise. Call it before
 * the store is used. */
void store_file_allow_network(store *st);

/* ROOT, as it was given, without slashes at its end. Borrowed. NULL: another store. */
const char *store_file_root(const store *st);

#endif

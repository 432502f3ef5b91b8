/* deletion.h: the records of sessions that were removed for good. */
#ifndef OPERATIONS_DELETION_H
#define OPERATIONS_DELETION_H

#include "session/header.h"
#include "session/store_handle.h"

#define DELETION_NAME 48

/* Writes the record of a removal. name: set to that of its blob, or "" in a store that
 * cannot list blobs and so keeps none. */
sessile_status deletion_put(store_core *st, const session_names *names,
                            const sessile_delete_options *o, const sessile_deleted *gone,
                            char name[DELETION_NAME], sessile_error *err);
/* Takes a record back: the session was not removed. */
void deletion_drop(store_core *st, const char *name);
/* See sessile_deletions(). */
sessile_status deletions_list(store_core *st, sessile_deletion **out, size_t *count,
                              sessile_error *err);
/* Copies all records into another store. reseal: they are sealed with its keys. *copied:
 * those that were not there; *lost: those that do not open, and were left out. */
sessile_status deletions_copy(store_core *from, store_core *to, int reseal,
                              uint64_t *copied, uint64_t *lost, sessile_error *err);
/* Seals all records with the newest master key. */
sessile_status deletions_reseal(store_core *st, sessile_error *err);

#endif

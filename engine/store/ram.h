/* ram.h: a store in memory, which lives as long as its handle. */
#ifndef STORE_RAM_H
#define STORE_RAM_H

#include "store/store.h"

sessile_status store_ram_open(store *out, const os_table *os, const allocator *a,
                              sessile_error *err);

/* Takes a log's name away. Open handles keep the log; the last one frees it. */
void store_ram_unname(store *st, const char *folder, const char *name);

/* Gives a log another name, which must be free. Without memory the log has no name from
 * then on. Nobody else may be opening or renaming it. */
void store_ram_rename(store *st, const char *folder, const char *name,
                      const char *new_folder, const char *new_name);

#endif

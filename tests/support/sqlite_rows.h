/* sqlite_rows.h: what is in a SQLite store: its rows, its bytes, its logs */
#ifndef SUPPORT_SQLITE_ROWS_H
#define SUPPORT_SQLITE_ROWS_H

#include <sqlite3.h>

#include "support/sqlite.h"

void sqlite_opened(sqlite_place *g);
sessile_backend_log *sqlite_place_resume(sqlite_place *g, const char *name);
/* Another program with the file open. */
char *sqlite_sql(const sqlite_place *g, const char *text, char out[4096]);
char *sqlite_bytes(const char *path, size_t *size);
int sqlite_entries(const char *folder);
extern int others_seen;
int count_other(void *arg, const char *folder, const char *file, uint64_t bytes);
int is_in_file(const char *path, const char *text);

#endif

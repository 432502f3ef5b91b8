/* served.h: a place of stores behind a server of records, which is a process of its own.
 */
#ifndef STORE_SERVED_H
#define STORE_SERVED_H

#include <stddef.h>

typedef struct served served;

/* Starts a server of the records of a store in a new folder: files (sqlite 0), or an
 * SQLite database (1). NULL: it could not be started. */
served *served_start(int sqlite);
/* Ends the server, and starts it again at the same address. */
void served_restart(served *s);
/* Kills it; served_restart() starts it again. */
void served_kill(served *s);
void served_end(served *s);
/* "grpc://127.0.0.1:PORT/" */
const char *served_url(const served *s);
const char *served_folder(const served *s);
int served_pid(const served *s);
/* The library of clients, for the options of a store. */
const char *served_library(void);

#endif

/*
 * raw_store.h: a store of this process used through its table, for tests of the table
 * itself: over system calls that can fail and an allocator that counts.
 */
#ifndef SUPPORT_RAW_STORE_H
#define SUPPORT_RAW_STORE_H

#include "support/logs.h"

typedef enum raw_kind { RAW_FILE, RAW_RAM } raw_kind;

typedef struct raw_store {
    char folder[256], root[300]; /* root: a/store in the folder; opening makes neither */
    faults os;
    meter memory;
    allocator alloc;
    store st;
} raw_store;

/* All but the store itself. */
void raw_init(raw_store *p);
sessile_status raw_try(raw_store *p, raw_kind kind, sessile_error *err);
void raw_open(raw_store *p, raw_kind kind);
/* The same with the log "main/log" of this text, and a handle of it. */
sessile_backend_log *raw_open_log(raw_store *p, raw_kind kind, const char *text);
/* Another handle of a file store. */
void raw_again(raw_store *p, store *again);
/* Fails the test when a block was not freed. */
void raw_close(raw_store *p);
void raw_close_log(raw_store *p, sessile_backend_log *log);

int raw_has_logs(raw_store *p);
/* A handle of the log "main/name". */
sessile_backend_log *raw_log(raw_store *p, const char *name);
/* The log's bytes are exactly these. */
void raw_holds(raw_store *p, sessile_backend_log *log, const char *expected);
/* Takes the exclusive lock; what it says of `replaced`. */
int raw_locked(raw_store *p, sessile_backend_log *log);
/* The path of a file of the store: its root and the rest. */
void raw_path(const raw_store *p, const char *rest, char out[700]);

/* A visit of list: notes "FOLDER/NAME ". */
typedef struct raw_names {
    char text[400];
    int left; /* visits until it stops */
} raw_names;
int raw_note(void *arg, const char *folder, const char *name);

#endif

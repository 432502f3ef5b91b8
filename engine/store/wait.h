/*
 * wait.h: waits for a lock by trying, for a bounded time; sentences all stores share.
 *
 * It never blocks in the lock itself, because such a wait could not be ended when the
 * time is over.
 */
#ifndef STORE_WAIT_H
#define STORE_WAIT_H

#include "base/error.h"
#include "base/os.h"

/* What ends a wait before its time: asked between tries, 1 ends it. ask NULL: nothing. */
typedef struct lock_stop {
    int (*ask)(void *arg);
    void *arg;
} lock_stop;

enum { LOCK_GOT = 0, LOCK_TAKEN = 1, LOCK_STOPPED = 2 };

/*
 * Calls attempt(arg) until it returns 0 (got it) or -1 (failed), or timeout_ms have
 * passed (-1: for ever; 0: one try), or stop says so. Returns LOCK_GOT, -1, LOCK_TAKEN or
 * LOCK_STOPPED.
 */
int lock_wait(const os_table *os, int timeout_ms, int (*attempt)(void *arg), void *arg,
              lock_stop stop);

/* What errors say to do when it is unknown what became of a write (IO). */
#define STORE_LOOK_AGAIN "close the store, open it again and look at what is there"

/* CANCELLED, naming the log. */
sessile_status store_stopped(const char *log, sessile_error *err);
/* IO: an append to the log that may have taken place. */
sessile_status store_undecided(const char *log, sessile_error *err);

/* 1 when name is a single component that the engine may have made: 1 to 200 bytes of
 * [a-z0-9_=.-], not starting with a dot. */
int store_name_ok(const char *name);
/* INVALID when it is none, DAMAGED when it stands for a damaged one; for both. */
sessile_status store_name_check(const char *name, sessile_error *err);
sessile_status store_names_check(const char *folder, const char *name,
                                 sessile_error *err);

/* How a list names a log whose own name is damaged: "misnamed.NUMBER.NAME", where the
 * number is that of its row or file, and NAME what is left of the name. */
#define STORE_MISNAMED      "misnamed."
#define STORE_MISNAMED_SIZE 80
void store_misnamed(uint64_t number, const char *name, char out[STORE_MISNAMED_SIZE]);
/* The name under which a list of blobs shows one: its own, or, if that is damaged, one of
 * these. */
const char *store_blob_shown(uint64_t number, const char *name,
                             char out[STORE_MISNAMED_SIZE]);
/* 1 and the number when name is such a name. */
int store_is_misnamed(const char *name, uint64_t *number);

#endif

/*
 * wait.h: bounded waiting for a lock by trying, shared by the backends.
 *
 * Owns the pace of the tries and nothing else. It never blocks in the lock itself: a
 * blocking lock cannot be given up when the time is over.
 */
#ifndef STORE_WAIT_H
#define STORE_WAIT_H

#include "base/os.h"

/*
 * Calls attempt(arg) until it returns 0 (got it) or -1 (failed), or timeout_ms have
 * passed
 * (-1: for ever; 0: one try). Returns 0, -1, or 1: still taken.
 */
int lock_wait(const os_table *os, int timeout_ms, int (*attempt)(void *arg), void *arg);

/* 1 when name is a single component that the engine may have made: 1 to 200 bytes of
 * [a-z0-9_=.-], not starting with a dot. */
int store_name_ok(const char *name);

#endif

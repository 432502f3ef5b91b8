/*
 * logs.h: stores, keyrings and logs for the tests of the lower floors, and a table of
 * system calls that fails on purpose.
 */
#ifndef SUPPORT_LOGS_H
#define SUPPORT_LOGS_H

#include <stdatomic.h>
#include <stdio.h>

#include "log/log.h"

/* ---- system calls that fail */

typedef enum fault_call {
    CALL_OPEN,
    CALL_READ,
    CALL_WRITE,
    CALL_TRUNCATE,
    CALL_SYNC_DATA,
    CALL_SYNC_ALL,
    CALL_STAT_FD,
    CALL_STAT_AT,
    CALL_LOCK,
    CALL_MKDIR,
    CALL_RENAME,
    CALL_UNLINK,
    CALL_LIST,
    CALL_KINDS
} fault_call;

/*
 * The real system with a fault in it. Counts calls by kind; the call number `at` (from 0)
 * of kind `kind` (CALL_KINDS: of all kinds together) fails with `error`; `more` further
 * ones as well. A write that fails with error 0 writes half of what it was given and then
 * goes on; with `half` it writes half and fails at the next call.
 */
typedef struct faults {
    os_table table;
    unsigned long counts[CALL_KINDS], all;
    fault_call kind;
    unsigned long at, more;
    int error; /* 0: none */
    int half;
    int lazy; /* syncs are counted but not made: for tests that cut no power */
    void (*during_sync)(void *arg); /* called inside each sync of data */
    void *during_arg;
    unsigned long hits;
} faults;
void faults_init(faults *f);
/* Counts start again and the next fault is set. */
void faults_set(faults *f, fault_call kind, unsigned long at, int error);
void faults_none(faults *f);

/* For faults.during_sync and faults.during_arg: syncs of data wait until `open` is 1. */
typedef struct gate {
    atomic_int entered, open;
} gate;
void gate_wait(void *arg);

/* ---- an allocator that counts, and fails at a given call */

typedef struct meter {
    size_t live, peak, calls, fail_at; /* fail_at 0: never */
} meter;
allocator meter_allocator(meter *m);

/* The fixture of a group of tests that need the engine's base and no more. */
int base_set_up(void **state);

/* ---- a store with its keyring */

typedef enum kit_mode { KIT_PLAIN, KIT_AES, KIT_XCHACHA, KIT_RAM, KIT_MODES } kit_mode;
extern const char *const kit_names[KIT_MODES];

#define KIT_SECRET "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

typedef struct kit {
    kit_mode mode;
    char folder[256]; /* the scratch folder */
    char root[300];   /* the store's, in it; missing until something is written */
    faults os;
    meter memory;
    allocator alloc;
    store st;
    keyring *keys;
} kit;

/* 0 when this machine has no AES. */
int kit_possible(kit_mode mode);
/* The modes of a sealed file store that this machine has, one after the other. */
#define EACH_SEALED_MODE(mode)                                 \
    for (kit_mode mode = KIT_AES; mode <= KIT_XCHACHA; mode++) \
        if (kit_possible(mode))
/* A test's loop over the modes: all of them, or those of files. */
#define EACH_MODE                                             \
    for (kit_mode mode = KIT_PLAIN; mode < KIT_MODES; mode++) \
        if (kit_possible(mode))
#define EACH_FILE_MODE                                           \
    for (kit_mode mode = KIT_PLAIN; mode <= KIT_XCHACHA; mode++) \
        if (kit_possible(mode))
void kit_open(kit *k, kit_mode mode);
void kit_close(kit *k);
/* Another store handle and keyring on the same folder (files only). */
void kit_again(kit *other, const kit *k);
void kit_again_close(kit *other);

/* What a scan showed. */
typedef struct seen {
    char **texts;
    size_t *sizes;
    size_t count, capacity;
} seen;
sessile_status
see(void *seen_, sessile_id id, const char *text, size_t size,
    sessile_error *err); /* a log_visit; checks that ids follow each other */
void seen_free(seen *s);

/* An entry's text: free(). padding bytes of content. */
char *entry_text(sessile_id id, const char *content, size_t padding);
void kit_create(kit *k, const char *name);
/* Opens; the status is returned, what was seen is added to s (NULL: not wanted). */
sessile_status kit_try(kit *k, const char *name, log_t **out, seen *s, uint64_t *torn,
                       sessile_error *err);
log_t *kit_resume(kit *k, const char *name, seen *s);
/* A kit with a new log "log", opened; its path in `path`, when there is room for it. */
log_t *kit_begin(kit *k, kit_mode mode, char *path /* 600 bytes, or NULL */);
/* Of a damaged log: reads on past the damage, adding to s what can be read and, for each
 * entry that is lost, "lost 00000005". */
void kit_read_past(log_t *log, seen *s);
/* One write of count entries; content names them. Not synced. */
sessile_status try_write(log_t *log, size_t count, const char *content, size_t padding,
                         sessile_error *err);
void do_write(log_t *log, size_t count, const char *content, size_t padding);
void do_sync(log_t *log);

/* ---- files */

void scratch_make(char folder[256]);
void scratch_remove(const char *folder);
char *file_read_all(const char *path, size_t *size); /* free() */
void file_write_all(const char *path, const void *data, size_t size);
/* The path of a log's file. */
void kit_path(const kit *k, const char *name, char out[600]);

/* A small generator of numbers; the seed is printed by who failed with it. */
uint64_t random_next(uint64_t *state);

#endif

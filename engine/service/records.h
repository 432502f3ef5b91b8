/*
 * records.h: what the files of RecordService share: the store, the logs that are open,
 * and what was sent ahead. README.md lists the files; records.proto is the interface.
 *
 * The next call needs nothing of it: a log that is not open is opened again,
 * and is the same one if its identity is. Only what was sent ahead is lost with the
 * server, and its client sends it again.
 */
#ifndef SERVICE_RECORDS_H
#define SERVICE_RECORDS_H

#include "service/records.pb-c.h"
#include "service/server.h"
#include "store/open.h"

enum {
    RECORD_NAME_SIZE = 256, /* with the NUL */
    RECORD_IDENTITY = 16,
    RECORD_ID = 16,
    RECORD_TAG = 16,
    RECORD_PIECE = 1 << 20,  /* of one message */
    RECORD_AHEAD = 64 * 1024 /* what Open answers of each end */
};

/* A log that is open: lent to one call at a time. */
typedef struct record_log {
    struct record_log *next; /* among those that nobody uses, the newest first */
    char folder[RECORD_NAME_SIZE], name[RECORD_NAME_SIZE];
    unsigned char identity[RECORD_IDENTITY];
    sessile_backend_log *log;
} record_log;

/* Where a log was last seen to end. */
typedef struct record_end {
    unsigned char key[32]; /* a hash of names and identity */
    sessile_log_end end;
} record_end;

/* Sent ahead: bytes, or a draft of the store. */
typedef struct record_held {
    struct record_held *next;
    unsigned char id[RECORD_ID];
    uint64_t used_us, size;
    int lent;  /* a call uses it */
    int ended; /* a draft: that is what became of it */
    buf bytes;
    sessile_backend_draft *draft;
    char kept[RECORD_NAME_SIZE];
    sessile_error outcome;
} record_held;

enum { RECORD_ENDS = 1024 };

struct records {
    allocator alloc;
    store store;
    pthread_mutex_t mutex; /* all that follows */
    record_log *idle;
    size_t idle_count;
    record_end ends[RECORD_ENDS];
    record_held *held;
    size_t held_bytes;
    struct record_watch *watches;
    pthread_cond_t changed; /* somebody appended, or watches */
    pthread_t watcher;
    int watching, ending;
};

/* The backend of what a server serves: of its sessions, or of records alone. Borrowed. */
const store *service_backend(const service *s);

/* A row of a table of methods. */
#define RECORD_METHOD(name, run, input, flags) \
    METHOD(name, run, input, (flags) | METHOD_RECORDS)

/* ---------------------------------------------------------------------- calls */

/* The first step of each method: whether who calls may. DENIED. */
sessile_status records_enter(call *c, sessile_error *err);
sessile_status records_reply_none(call *c, sessile_error *err);
/* Waits until the client has read most of what was sent. CANCELLED: nobody waits. */
sessile_status records_pace(call *c, sessile_error *err);
/* A name of a request as a string. INVALID. */
sessile_status records_name(ProtobufCBinaryData from, char out[RECORD_NAME_SIZE],
                            sessile_error *err);
int records_locks(const records *r);

/* ---------------------------------------------------------------------- logs */

/* Lends the log of a request. NOTFOUND: it was removed or replaced. */
sessile_status records_take(records *r, const Sessile__V1__RecordLog *names,
                            record_log **out, sessile_error *err);
/* Whether the name leads to a log, whichever it is. */
sessile_status records_name_taken(records *r, const Sessile__V1__RecordLog *names,
                                  int *out, sessile_error *err);
/* again 0: it is closed. */
void records_give(records *r, record_log *log, int again);
/* Locks it for this call, where the store has locks, and says how long it is. NOTFOUND:
 * it was removed or replaced. */
sessile_status records_lock(call *c, record_log *log, uint64_t *bytes,
                            sessile_error *err);
/* For a read, so that an append is seen whole or not at all. *locked 0: it need not be,
 * or cannot be locked. BUSY; NOTFOUND: it was removed or replaced. */
sessile_status records_lock_to_read(call *c, record_log *log, int *locked,
                                    sessile_error *err);
void records_unlock(call *c, record_log *log);
/* CONFLICT: the log is known to end elsewhere at that size: what a store with locks
 * leaves to its callers. Under the lock. */
sessile_status records_check_end(records *r, const record_log *log,
                                 const sessile_log_end *end, sessile_error *err);
void records_note_end(records *r, const record_log *log, const sessile_log_end *end);

/* ---------------------------------------------------------------------- sent ahead */

/* What is written: of the request, or of an upload. *out stays until the call ends. BUSY:
 * another call uses the upload. CLOSED: it is not there any more. INVALID: it is a draft.
 * NOMEM. */
sessile_status records_data(call *c, const Sessile__V1__RecordData *from,
                            sessile_slice *out, sessile_error *err);
void records_held_close(records *r);

/* ---------------------------------------------------------------------- watching */

sessile_status records_watch(call *c, const void *request, sessile_error *err);
sessile_status records_tell_ends(call *c, const void *request, sessile_error *err);
/* Somebody changed a log: watches look now. */
void records_poke(records *r);
void records_watch_close(records *r);

#endif

/*
 * transfer_internal.h: shared by transfer.c, which reads the source, and
 * transfer_write.c, which writes the target.
 */
#ifndef LOG_TRANSFER_INTERNAL_H
#define LOG_TRANSFER_INTERNAL_H

#include "log/transfer.h"
#include "log/copy.h"
#include "log/internal.h"

struct transfer {
    transfer_options options;
    const allocator *alloc;
    transfer_info info;
    buf text;  /* the entry that was opened last; bytes past damage */
    buf other; /* what was read of the target, for comparing */

    struct {
        log_t *log; /* log->end: the end of the newest write that was written */
        reader reader;
        uint64_t limit;
        uint64_t index;               /* of the next line */
        unsigned char tag[VAULT_TAG]; /* of the line before */
        int looks;  /* how often the bytes behind the last commit were read */
        int locked; /* shared */
        int raw;    /* damaged: bytes behind the last commit are transferred unread */
        uint64_t raw_at; /* the next of them */
    } source;
    struct {          /* the write that is being read */
        buf bytes;    /* verbatim: lines; resealed: texts of entries */
        size_t *ends; /* resealed: where each of the texts ends */
        size_t count, capacity;
    } write;
    struct {
        int exists;    /* a log of that name */
        int comparing; /* its end has not been reached */
        int differs;
        int replacing; /* a draft will take its place */
        int appending; /* under its exclusive lock, where there are locks */
        int stop;      /* nothing more is to be written */
        int failed;    /* the error came from the target store */
    } target;
    struct { /* the target when lines are written as they are */
        sessile_backend_log *handle;
        uint64_t size;
        uint64_t at;         /* bytes compared or written */
        sessile_log_end end; /* of the target log */
        sessile_backend_draft *draft;
        buf out; /* to be written */
    } verbatim;
    struct { /* the target when entries are sealed again */
        log_t *log;
        uint64_t count;
        int begun; /* under its lock */
        log_copy copy;
    } resealed;
};

/* Opens the target log, if it exists. */
sessile_status transfer_open_target(transfer *t, sessile_error *err);
/* Compares or writes the write that is held; source.log->end is where it starts. */
sessile_status transfer_put_write(transfer *t, sessile_error *err);
/* Compares or writes bytes as they are. */
sessile_status transfer_put_bytes(transfer *t, const char *data, size_t size,
                                  sessile_error *err);
/* After the whole source: makes the target durable. */
sessile_status transfer_finish(transfer *t, sessile_error *err);
/* Closes the target log and drops what is not finished. */
void transfer_close_target(transfer *t);

/* Starts from the first byte again, to replace a log that differs. */
void transfer_restart(transfer *t);

#endif

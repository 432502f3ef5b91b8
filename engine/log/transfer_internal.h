/*
 * transfer_internal.h: shared by transfer.c, which reads the source, and
 * transfer_write.c, which deals with the other store; and by nobody else.
 */
#ifndef LOG_TRANSFER_INTERNAL_H
#define LOG_TRANSFER_INTERNAL_H

#include "log/transfer.h"
#include "log/copy.h"
#include "log/internal.h"

struct transfer {
    transfer_options wish;
    const allocator *alloc;
    transfer_info about;

    /* The source. from->end is the end of the newest write that was put. */
    log_t *from;
    reader r;
    uint64_t limit;
    uint64_t index; /* of the next line */
    unsigned char tag[VAULT_TAG];
    buf text;     /* the entry that was opened last */
    buf held;     /* of the write that is being read: lines, or entries' texts */
    size_t *ends; /* sealed anew: where each of the texts ends */
    size_t end_count, end_capacity;
    int looks;       /* how often what is behind from->end was looked at */
    int locked;      /* the source, shared */
    int raw;         /* damaged: from from->end on bytes are carried as they stand */
    uint64_t raw_at; /* the next of them */

    /* The other store. */
    int there;     /* a log of that name is there */
    int comparing; /* its end has not been reached */
    int differs;
    int stop;      /* nothing more is to be put */
    int replacing; /* a draft will take its place */
    int failed_there;
    /* as it stands */
    sessile_backend_log *log;
    uint64_t log_bytes;
    uint64_t at;         /* bytes compared or put */
    int appending;       /* under its exclusive lock, where there are locks */
    sessile_log_end end; /* of the log there */
    sessile_backend_draft *draft;
    buf out, other; /* to be put; read for comparing */
    /* sealed anew */
    log_t *anew;
    uint64_t anew_count;
    int begun; /* under its lock */
    log_copy copy;
};

/* Opens what is there. */
sessile_status transfer_there(transfer *c, sessile_error *err);
/* The write that is held, whole: its entries or lines; from->end is the write's start. */
sessile_status transfer_write_entry(transfer *c, sessile_error *err);
/* Bytes past damage. */
sessile_status transfer_write_raw(transfer *c, const char *data, size_t size,
                                  sessile_error *err);
/* All of the source has been put. */
sessile_status transfer_finish(transfer *c, sessile_error *err);
/* Closes what is there, and gives up what is not finished. */
void transfer_leave(transfer *c);

/* Begins again, to put a new log in the place of the one that differs. */
void transfer_again(transfer *c);

#endif

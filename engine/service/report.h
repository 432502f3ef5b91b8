/*
 * report.h: what a server tells its operator, in log lines (logline.h), each kind of them
 * at a bounded rate.
 *
 * A database that is away fails thousands of calls a second. The first lines say so, and
 * the rest is a number: REPORT_LINES of a kind are written within REPORT_WINDOW_MS, the
 * others are counted, and a line says how many they were.
 */
#ifndef SERVICE_REPORT_H
#define SERVICE_REPORT_H

#include <pthread.h>

#include "service/logline.h"

enum { REPORT_LINES = 10, REPORT_WINDOW_MS = 10000 };

/* What a line is about. Each kind has its own rate. */
typedef enum report_kind {
    REPORT_SERVER,   /* it began, drains, ended; its certificates */
    REPORT_NODES,    /* its lease, the other nodes, standbys, the clock of the database */
    REPORT_STORE,    /* a call failed: the store, or the key */
    REPORT_DAMAGE,   /* a call failed: what is stored is not what was written */
    REPORT_MEMORY,   /* a call failed: no memory, no room on a device */
    REPORT_INTERNAL, /* a call failed: anything else that is not the client's doing */
    REPORT_AUDIT,    /* the audit cannot be written */
    REPORT_LOAD,     /* calls or connections are refused: there are too many */
    REPORT_FLOOD,    /* connections were ended because of what their peers did */
    REPORT_TELEMETRY, /* a receiver does not accept, records were dropped; not exported */
    REPORT_KINDS
} report_kind;

typedef struct reports {
    logger log;
    pthread_mutex_t mutex; /* all that follows */
    struct {
        uint64_t until_us; /* the end of the window; 0: none was begun */
        unsigned written;
        uint64_t left_out;
    } of[REPORT_KINDS];
} reports;

/* log: where lines go; fd 0: nowhere, and nothing is exported either. */
void reports_init(reports *r, const logger *log);
void reports_deinit(reports *r);

/* As logline_write(), with the rate of its kind. Safe under threads. */
void report(reports *r, report_kind kind, log_level level, const trace_context *context,
            const char *message, const attribute *fields, size_t field_count);
/* Says what was left out in windows that have passed; all: of those that have not, too.
 * To be called about once a second. */
void reports_tick(reports *r, int all);

/*
 * Appends the sentence of an error as it may be shown outside of the guard: without what
 * it quotes, and without the words that the request of the call has as a whole field,
 * which are names of sessions, users and agents. Each of them becomes "***". request: the
 * bytes of a protobuf message.
 */
void report_put_sentence(buf *out, const char *sentence, const void *request,
                         size_t size);

#endif

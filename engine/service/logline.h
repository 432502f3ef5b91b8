/*
 * logline.h: log lines of the service: one JSON object a line.
 *
 *     {"time":"2026-11-27T16:02:31.123Z","level":"warn","trace_id":"…","span_id":"…",
 *      "message":"…", fields…}
 *
 * For people at a terminal a line is text instead, whose control characters are escaped:
 *
 *     16:02:31 warn  The database does not answer. (seconds=5, why="…")
 *
 * A line is at most LOGLINE_SIZE bytes and is written by one write(2), so that lines of
 * several threads and processes do not mix, in a file opened to append, a pipe, or the
 * socket of journald. What does not fit is left out, and `"cut":true` says so; of text,
 * "…".
 */
#ifndef SERVICE_LOGLINE_H
#define SERVICE_LOGLINE_H

#include "service/attribute.h"
#include "service/metrics.h"
#include "service/trace_context.h"

#define LOGLINE_SIZE 4096 /* PIPE_BUF of Linux: the kernel does not split less */

typedef enum log_level { LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARN, LEVEL_ERROR } log_level;

/* "debug", "info", "warn" or "error": 0; -1: none of them. */
int logline_level(log_level *out, const char *text);

/* One line before it is written; all borrowed. */
typedef struct log_record {
    log_level level;
    int64_t time_ms;
    const char *message; /* a sentence of ours */
    const attribute *fields;
    size_t field_count;
    const trace_context *context; /* NULL, or not set: the line has no ids */
} log_record;

/* Set once, before the threads that use it; then constant. */
typedef struct logger {
    int fd;
    int is_text;      /* 1: for people */
    log_level least;  /* lines below are not written */
    metrics *metrics; /* counts lines that were lost; may be NULL */
    /* Also given every line that is written; NULL: nobody. Called by the thread that
     * logs. */
    void (*also)(void *ud, const log_record *record);
    void *also_ud;
} logger;

/*
 * Writes one line. Secrets in the message and in texts are hidden (redact.h). A line that
 * cannot be written whole is lost, and counted. A pipe without a reader raises SIGPIPE,
 * which the program ignores. l may be NULL: nothing is written. Safe under threads.
 *
 *     logline_write(l, LEVEL_WARN, &span->context, "The database does not answer.",
 *                   (attribute[]){attribute_number("seconds", 5)}, 1);
 */
void logline_write(const logger *l, log_level level, const trace_context *context,
                   const char *message, const attribute *fields, size_t field_count);

#endif

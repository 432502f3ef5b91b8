/*
 * reader.c: reads lines from a backend, in large pieces.
 *
 * Owns log->buffers.piece. Uses the backend's read and never maps: a file that shrinks
 * under a mapping kills the process. Must never hold more than a line and a piece, nor a
 * line longer than LINE_LONGEST.
 */
#include <string.h>

#include "log/internal.h"

#define PIECE ((size_t)256 << 10)
/* The first read of a log: its header, which is all that a list wants of it. */
#define FIRST_PIECE ((size_t)4 << 10)

void reader_init(reader *r, log_t *log, uint64_t at, uint64_t limit)
{
    r->log = log;
    r->at = at;
    r->limit = limit;
    r->pos = r->have = 0;
    buf_clear(&log->buffers.piece);
}

/* Reads more bytes behind those there. 1: some came; 0: none are left; -1: error. */
static int read_more(reader *r, uint64_t index, sessile_error *err)
{
    log_t *log = r->log;
    size_t got = 0;
    if (r->pos > 0) {
        memmove(log->buffers.piece.data, log->buffers.piece.data + r->pos,
                r->have - r->pos);
        r->have -= r->pos;
        r->pos = 0;
    }
    uint64_t from = r->at + r->have;
    if (from >= r->limit)
        return 0;
    uint64_t left = r->limit - from;
    size_t piece = from == 0 ? FIRST_PIECE : PIECE;
    size_t want = left < piece ? (size_t)left : piece;
    log->buffers.piece.size = r->have; /* what a reserve has to carry along */
    if (buf_reserve(&log->buffers.piece, want) != 0) {
        fail_nomem(err);
        return -1;
    }
    sessile_status status = log->st.table->read(
        log->handle, index, from, log->buffers.piece.data + r->have, want, &got, err);
    if (log_check_gone(log, status, err))
        return -1;
    r->have += got;
    return got > 0;
}

reader_found reader_next(reader *r, uint64_t index, char **text, size_t *size,
                         sessile_error *err)
{
    size_t searched = 0;
    for (;;) {
        size_t there = r->have - r->pos;
        char *start = there > 0 ? r->log->buffers.piece.data + r->pos : NULL;
        char *newline =
            there > searched ? memchr(start + searched, '\n', there - searched) : NULL;
        if (newline) {
            *text = start;
            *size = (size_t)(newline - start);
            r->pos += *size + 1;
            r->at += *size + 1;
            return READER_LINE;
        }
        searched = there;
        if (there > LINE_LONGEST)
            return READER_TOO_LONG;
        int more = read_more(r, index, err);
        if (more <= 0)
            return more < 0 ? READER_FAILED : READER_END;
    }
}

reader_found reader_skip(reader *r, uint64_t index, sessile_error *err)
{
    for (;;) {
        size_t there = r->have - r->pos;
        char *start = there > 0 ? r->log->buffers.piece.data + r->pos : NULL;
        char *newline = there > 0 ? memchr(start, '\n', there) : NULL;
        if (newline) {
            there = (size_t)(newline - start) + 1;
            r->pos += there;
            r->at += there;
            return READER_LINE;
        }
        r->at += there;
        r->pos = r->have = 0;
        int more = read_more(r, index, err);
        if (more <= 0)
            return more < 0 ? READER_FAILED : READER_END;
    }
}

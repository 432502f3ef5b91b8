/*
 * fork.c: copies the entries of one log into another.
 *
 * A fork is one pass over the log: each line is read, opened, compared with the one
 * before it, and sealed under the new log's key. It needs memory for one piece of the
 * source and one of the copy, however long the log is. Must never take a lock nor change
 * the source: others append to it meanwhile.
 */
#include <string.h>

#include "log/copy.h"
#include "log/internal.h"

static sessile_status damaged(const log_t *log, uint64_t at, uint64_t index,
                              sessile_error *err)
{
    return fail(err, SESSILE_DAMAGED,
                "%s is damaged at byte %llu, entry %08llx: the line there is not what "
                "was written. Nothing was changed",
                log->name, (unsigned long long)at, (unsigned long long)index);
}

/* The next line of the source, opened into log->buffers.text. */
static sessile_status next_line(log_t *log, reader *r, uint64_t index, line *l,
                                sessile_error *err)
{
    char *text;
    size_t size;
    uint64_t at = r->at;
    buf_clear(&log->buffers.text);
    switch (reader_next(r, index, &text, &size, err)) {
    case READER_FAILED:
        return err->code;
    case READER_END:
        return fail(err, SESSILE_TRUNCATED,
                    "%s is shorter than it was: entry %08llx at byte %llu is gone. "
                    "Nothing was changed",
                    log->name, (unsigned long long)index, (unsigned long long)at);
    case READER_TOO_LONG:
        return damaged(log, at, index, err);
    case READER_LINE:
        break;
    }
    switch (line_open(&log->key, log->depth, text, size, index == 0, l,
                      &log->buffers.text, err)) {
    case LINE_FAILED:
        return err->code;
    case LINE_BAD:
        return damaged(log, at, index, err);
    case LINE_GOOD:
        break;
    }
    return l->id == index ? SESSILE_OK : damaged(log, at, index, err);
}

sessile_status log_copy_lines(log_copy *copy, log_t *source, sessile_id last,
                              const unsigned char *tag, log_visit visit, void *arg,
                              sessile_error *err)
{
    sessile_error local = {0};
    sessile_status status = SESSILE_OK;
    unsigned char previous[VAULT_TAG] = {0};
    uint64_t size = 0;
    reader r;
    err = err ? err : &local;
    status = log_size(source, &size, err);
    reader_init(&r, source, 0, size);
    for (uint64_t index = 0; !status && index <= last; index++) {
        line l;
        uint64_t at = r.at;
        status = next_line(source, &r, index, &l, err);
        if (!status && source->key.suite != SUITE_NONE &&
            memcmp(l.previous, previous, VAULT_TAG) != 0)
            status = damaged(source, at, index, err);
        if (status)
            break;
        memcpy(previous, l.tag, VAULT_TAG);
        if (visit) {
            status = visit(arg, (sessile_id)index, source->buffers.text.data,
                           source->buffers.text.size, err);
        }
        if (!status && index > 0) {
            status =
                log_copy_entry(copy, source->buffers.text.data, source->buffers.text.size,
                               l.commit != 0 || index == last, err);
        }
    }
    if (!status && tag && memcmp(previous, tag, VAULT_TAG) != 0) {
        status = fail(err, SESSILE_CONFLICT,
                      "%s was replaced while it was copied: try again", source->name);
    }
    if (log_can_retry(source, status)) {
        status = err->code =
            SESSILE_CONFLICT; /* as with the tag: on the new one, again */
    }
    log_trim(source);
    return status;
}

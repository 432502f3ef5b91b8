/*
 * read.c: reads entries by id, after a scan has found their places.
 *
 * Never writes and never locks: committed bytes do not move. Each line is opened by
 * itself. A scan compares each line with the one before it; lines that this handle did
 * not scan are compared with the tags in the index.
 */
#include <string.h>

#include "log/internal.h"

/* What one read of the backend may bring for a range. */
#define RANGE_PIECE ((uint64_t)1 << 20)
/* And of files for log_prefetch(): memory that stays in the processor's cache costs less
 * than the system calls saved. Where there are no locks a read is a question to a
 * database, and few of them cost less. */
#define FILE_PIECE ((uint64_t)64 << 10)

static uint64_t end_of(const log_t *log, uint64_t id)
{
    return id + 1 < log->end.count ? log->offsets[id + 1] : log->end.bytes;
}

/* Brings the bytes of entries first..last into log->buffers.piece. */
static sessile_status bring(log_t *log, uint64_t first, uint64_t last, sessile_error *err)
{
    uint64_t at = log->offsets[first], size = end_of(log, last) - at;
    size_t got = 0;
    buf_clear(&log->buffers.piece);
    if (size > SIZE_MAX || buf_reserve(&log->buffers.piece, (size_t)size) != 0)
        return fail_nomem(err);
    sessile_status status = log->st.table->read(
        log->handle, first, at, log->buffers.piece.data, (size_t)size, &got, err);
    status = log_check_gone(log, status, err);
    if (!status && got < size) {
        status = fail(err, SESSILE_TRUNCATED,
                      "%s is shorter than it was: entry %08llx at byte %llu is gone. "
                      "Nothing was changed",
                      log->name, (unsigned long long)first, (unsigned long long)at);
    }
    return status;
}

/* 1 when it is known where entry id begins, or the log ends before it. */
static int is_reached(const log_t *log, uint64_t id)
{
    uint64_t number = id / LOG_BLOCK;
    return id >= log->end.count || number >= log->index.lazy ||
           log->index.present[number];
}

/* The last entry that is expected behind id and can be brought with it in one piece. */
static uint64_t expected_with(const log_t *log, uint64_t id)
{
    uint64_t until = id, most = log_has_locks(log->st.table) ? FILE_PIECE : RANGE_PIECE;
    while (until + 1 < log->prefetch.end && until + 1 < log->end.count &&
           is_reached(log, until + 1) && is_reached(log, until + 2) &&
           end_of(log, until + 1) - log->offsets[id] <= most)
        until++;
    return until;
}

/* As bring(), of one entry; of those that are expected many are brought, and kept. */
static sessile_status bring_one(log_t *log, uint64_t id, sessile_error *err)
{
    uint64_t at = log->offsets[id], size = end_of(log, id) - at;
    if (id < log->prefetch.first || id >= log->prefetch.end)
        return bring(log, id, id, err);
    if (at < log->prefetch.at || at - log->prefetch.at > log->prefetch.bytes.size ||
        size > log->prefetch.bytes.size - (at - log->prefetch.at)) {
        uint64_t until = expected_with(log, id);
        sessile_status status = bring(log, id, until, err);
        if (status || until == id)
            return status;
        buf brought = log->buffers.piece;
        log->buffers.piece = log->prefetch.bytes;
        log->prefetch.bytes = brought;
        log->prefetch.bytes.size = (size_t)(end_of(log, until) - at);
        log->prefetch.at = at;
    }
    buf_clear(&log->buffers.piece);
    buf_put(&log->buffers.piece, log->prefetch.bytes.data + (at - log->prefetch.at),
            (size_t)size);
    return log->buffers.piece.failed ? fail_nomem(err) : SESSILE_OK;
}

void log_prefetch(log_t *log, sessile_id first, sessile_id last)
{
    log->prefetch.first = first;
    log->prefetch.end = (uint64_t)last + 1;
}

void log_prefetch_end(log_t *log)
{
    log->prefetch.first = log->prefetch.end = 0;
    buf_deinit(&log->prefetch.bytes);
    log_trim(log);
}

/* Opens entry id, whose bytes (newline included) are at text. */
static sessile_status open_tagged(log_t *log, uint64_t id, char *text, size_t size,
                                  buf *out, unsigned char tag[VAULT_TAG],
                                  sessile_error *err)
{
    line l;
    size_t was = out->size;
    line_verdict verdict = LINE_BAD;
    if (size > 0 && text[size - 1] == '\n')
        verdict = line_open(&log->key, log->depth, text, size - 1, id == 0, &l, out, err);
    if (verdict == LINE_FAILED)
        return err->code;
    if (verdict == LINE_BAD || l.id != id || !index_tag_matches(log, id, l.tag)) {
        out->size = was;
        return fail(
            err, SESSILE_DAMAGED,
            "%s is damaged at byte %llu, entry %08llx: the line there is not what "
            "was written. Nothing was changed",
            log->name, (unsigned long long)log->offsets[id], (unsigned long long)id);
    }
    memcpy(tag, l.tag, VAULT_TAG);
    return SESSILE_OK;
}

static sessile_status open_one(log_t *log, uint64_t id, char *text, size_t size, buf *out,
                               sessile_error *err)
{
    unsigned char tag[VAULT_TAG];
    return open_tagged(log, id, text, size, out, tag, err);
}

/* An entry that a scan has shown. */
static sessile_status read_scanned(log_t *log, sessile_id id, buf *out,
                                   unsigned char tag[VAULT_TAG], sessile_error *err)
{
    if (id >= log->end.count) {
        return fail(err, SESSILE_NOTFOUND, "%s has no entry %08x", log->name,
                    (unsigned)id);
    }
    sessile_status status = log_load(log, id, err);
    if (!status)
        status = bring_one(log, id, err);
    if (!status) {
        status = open_tagged(log, id, log->buffers.piece.data,
                             (size_t)(end_of(log, id) - log->offsets[id]), out, tag, err);
    }
    if (status)
        buf_clear(&log->prefetch.bytes); /* who tries again reads again */
    if (log->buffers.piece.capacity > RANGE_PIECE)
        buf_deinit(&log->buffers.piece);
    return status;
}

sessile_status log_tag(log_t *log, sessile_id id, unsigned char tag[VAULT_TAG],
                       sessile_error *err)
{
    sessile_error local = {0};
    buf_clear(&log->buffers.text);
    sessile_status status =
        read_scanned(log, id, &log->buffers.text, tag, err ? err : &local);
    log_trim(log);
    return status;
}

sessile_status log_read(log_t *log, sessile_id id, buf *out, sessile_error *err)
{
    sessile_error local = {0};
    err = err ? err : &local;
    if (log->damage) {
        int found;
        sessile_status salvaged = log_read_salvaged(log, id, out, &found, err);
        if (found || salvaged)
            return salvaged;
    }
    unsigned char tag[VAULT_TAG];
    return read_scanned(log, id, out, tag, err);
}

/* A range of a damaged log, whose lines need not follow each other. */
static sessile_status one_by_one(log_t *log, sessile_id first, sessile_id last,
                                 log_visit visit, void *arg, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    for (uint64_t id = first; id <= last && !status; id++) {
        buf_clear(&log->buffers.text);
        status = log_read(log, (sessile_id)id, &log->buffers.text, err);
        if (!status && visit)
            status = visit(arg, (sessile_id)id, log->buffers.text.data,
                           log->buffers.text.size, err);
    }
    log_trim(log);
    return status;
}

sessile_status log_read_range(log_t *log, sessile_id first, sessile_id last,
                              log_visit visit, void *arg, sessile_error *err)
{
    sessile_error local = {0};
    sessile_status status = SESSILE_OK;
    err = err ? err : &local;
    if (log->damage && first <= last && last < log_count(log))
        return one_by_one(log, first, last, visit, arg, err);
    if (last >= log->end.count || first > last) {
        return fail(err, SESSILE_NOTFOUND, "%s has no entries %08x to %08x", log->name,
                    (unsigned)first, (unsigned)last);
    }
    for (uint64_t id = first; id <= last && !status;
         id = (id / LOG_BLOCK + 1) * LOG_BLOCK)
        status = log_load(log, (sessile_id)id, err);
    for (uint64_t id = first; id <= last && !status;) {
        uint64_t until = id;
        while (until < last && end_of(log, until + 1) - log->offsets[id] <= RANGE_PIECE)
            until++;
        status = bring(log, id, until, err);
        for (uint64_t start = log->offsets[id]; id <= until && !status; id++) {
            buf_clear(&log->buffers.text);
            status = open_one(
                log, id, log->buffers.piece.data + (log->offsets[id] - start),
                (size_t)(end_of(log, id) - log->offsets[id]), &log->buffers.text, err);
            if (!status && visit)
                status = visit(arg, (sessile_id)id, log->buffers.text.data,
                               log->buffers.text.size, err);
        }
    }
    log_trim(log);
    return status;
}

sessile_status log_read_lines(log_t *log, sessile_id first, sessile_id last, buf *out,
                              sessile_error *err)
{
    sessile_error local = {0};
    err = err ? err : &local;
    sessile_status status = log_damage(log, err);
    if (!status && (last >= log->end.count || first > last)) {
        status = fail(err, SESSILE_NOTFOUND, "%s has no entries %08x to %08x", log->name,
                      (unsigned)first, (unsigned)last);
    }
    for (uint64_t id = first; id <= last && !status;
         id = (id / LOG_BLOCK + 1) * LOG_BLOCK)
        status = log_load(log, (sessile_id)id, err);
    for (uint64_t id = first; id <= last && !status; id++) {
        uint64_t start = id;
        while (id < last && end_of(log, id + 1) - log->offsets[start] <= RANGE_PIECE)
            id++;
        status = bring(log, start, id, err);
        if (!status) {
            buf_put(out, log->buffers.piece.data,
                    (size_t)(end_of(log, id) - log->offsets[start]));
            status = out->failed ? fail_nomem(err) : SESSILE_OK;
        }
    }
    log_trim(log);
    return status;
}

static sessile_status peek(log_t *log, unsigned depth, buf *out, sessile_error *err)
{
    uint64_t bytes;
    char *text;
    size_t size;
    reader r;
    line l;
    sessile_status status = log_size(log, &bytes, err);
    if (status)
        return status;
    reader_init(&r, log, 0, bytes);
    if (reader_next(&r, 0, &text, &size, err) != READER_LINE) {
        return err->code ? err->code
                         : fail(err, SESSILE_DAMAGED, "%s has no first line", log->name);
    }
    line_verdict verdict = line_open(&log->key, depth, text, size, 1, &l, out, err);
    if (verdict == LINE_FAILED)
        return err->code;
    if (verdict == LINE_BAD)
        return fail(err, SESSILE_DAMAGED, "%s is damaged in its first line", log->name);
    return SESSILE_OK;
}

sessile_status log_peek(store *st, const keyring *k, const char *folder, const char *name,
                        unsigned depth, int timeout_ms, buf *out, const allocator *a,
                        sessile_error *err)
{
    sessile_error local = {0};
    sessile_status status = SESSILE_OK;
    int moved = 1;
    err = err ? err : &local;
    for (int i = 0; moved && i < LOG_TRIES; i++) {
        log_t *log;
        error_clear(err);
        status = log_open_unread(&log, st, k, folder, name, depth, timeout_ms, a, err);
        if (status)
            return status;
        status = peek(log, depth, out, err);
        moved = log_can_retry(log, status);
        log_close(log);
    }
    return status;
}

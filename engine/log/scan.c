/*
 * scan.c: reads lines in order, and decides about bytes that are not good lines.
 *
 * Owns V, the end of the last commit before the first byte that is not a good line, and
 * the decision about the bytes past it. Must never change a byte except in log_recover(),
 * under the exclusive lock, after a scan under that lock.
 *
 * The problem: after a crash the end of a log may hold a part of a write, or its blocks
 * in any order. That must heal by itself. Damage to acknowledged entries must not be cut,
 * because that would be a silent loss. Both look the same at the first bad byte.
 *
 * The choice: each write names, in clear and under its seal, the newest entry known to be
 * synced when it was written. If a line past V names a missing entry, that entry was
 * durable: the log is damaged, and nothing is cut. Without such a proof no entry past V
 * is known to be durable, so setting the bytes aside loses nothing that was acknowledged.
 *
 * The index is a second proof: its last block names an entry that was durable when the
 * block was written. If V is before that entry, the log is damaged.
 *
 * The newest write has no later line to speak for it. There the bytes themselves decide.
 * A write that was interrupted is a beginning of itself, or lacks sectors, which are
 * zeros. So what looks like a line, has its newline and no such sector, was written
 * whole. If it is not good, it was changed later, perhaps after it was acknowledged: the
 * log is damaged.
 *
 * A line need not open to be a proof. A writer never claims more than was synced, so a
 * false claim is damage or forgery, and in both cases the log must not be cut. (When
 * proofs had to open, a header from another log made every later line useless, and the
 * whole log was cut.)
 *
 * Rejected: a chain through the additional data (a flipped bit makes all later lines
 * unreadable, so no proof is left), a length or count at a fixed place (a second write
 * that can be torn), a journal (two syncs).
 */
#include <string.h>

#include "log/internal.h"

/* A device writes this many bytes as a whole or not at all; larger units are multiples.
 */
#define SECTOR UINT64_C(512)

/* ---------------------------------------------------------------------- in order */

/* Shows the lines of a finished write, then counts them. */
static sessile_status show_write(log_t *log, size_t count, const reader *r,
                                 const line *last, log_visit visit, void *arg,
                                 sessile_error *err)
{
    size_t start = 0;
    for (size_t i = 0; i < count && visit; i++) {
        sessile_status status =
            visit(arg, (sessile_id)(log->end.count + i), log->buffers.text.data + start,
                  log->pending.ends[i] - start, err);
        if (status)
            return status;
        start = log->pending.ends[i];
    }
    log->end.count += count;
    log->end.bytes = r->at;
    log->in_write = 0;
    memcpy(log->end.tag, last->tag, VAULT_TAG);
    log_note_progress(log, log->end.count,
                      last->has_durable ? (uint64_t)last->durable + 1 : 0);
    return SESSILE_OK;
}

sessile_status log_scan(log_t *log, uint64_t size, log_visit visit, void *arg,
                        sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    unsigned char tag[VAULT_TAG];
    size_t pending = 0;
    reader r;
    memcpy(tag, log->end.tag, VAULT_TAG);
    reader_init(&r, log, log->end.bytes, size);
    buf_clear(&log->buffers.text);
    for (;;) {
        char *text;
        size_t text_size;
        line l;
        uint64_t start = r.at, index = log->end.count + pending;
        log->stopped.at = start;
        log->stopped.index = index;
        reader_found found = reader_next(&r, index, &text, &text_size, err);
        if (found == READER_FAILED) {
            status = err ? err->code : SESSILE_IO;
            break;
        }
        if (found != READER_LINE || index >= SESSILE_NO_ID)
            break;
        line_verdict verdict = line_open(&log->key, log->depth, text, text_size,
                                         index == 0, &l, &log->buffers.text, err);
        if (verdict == LINE_FAILED) {
            status = err->code;
            break;
        }
        if (verdict == LINE_BAD || l.id != index ||
            (log->key.suite != SUITE_NONE && memcmp(l.previous, tag, VAULT_TAG) != 0) ||
            (l.commit != 0 && l.commit != log->in_write + pending + 1))
            break;
        if (mem_grow(log->alloc, (void **)&log->offsets, &log->offset_capacity,
                     (size_t)index + 1, sizeof *log->offsets) != 0 ||
            mem_grow(log->alloc, (void **)&log->pending.ends, &log->pending.capacity,
                     pending + 1, sizeof *log->pending.ends) != 0) {
            status = fail_nomem(err);
            break;
        }
        log->offsets[index] = start;
        log->pending.ends[pending++] = log->buffers.text.size;
        memcpy(tag, l.tag, VAULT_TAG);
        index_add_entry(log, index, r.at, l.commit != 0 ? 0 : log->in_write + pending,
                        tag);
        if (l.commit != 0) {
            status = show_write(log, pending, &r, &l, visit, arg, err);
            if (status)
                break;
            pending = 0;
            buf_clear(&log->buffers.text);
        }
    }
    log_trim(log);
    return status;
}

/* ---------------------------------------------------------------------- past V */

/*
 * Where, in a stretch of bytes that ends at a newline, a whole line may begin: at the
 * last
 * `{"id":"` that no value of JSON could begin with. After a lost or changed newline that
 * is in the middle of the stretch: the byte before is then none of `,` `[` `:`. Only the
 * last one counts: a line that began before it would have it inside, where JSON has no
 * place for it. So there is one candidate a stretch, however hostile the bytes.
 */
static char *find_line_start(char *text, size_t size)
{
    char *found = NULL, *at = text, *end = text + size;
    while (at < end) {
        at = memmem(at, (size_t)(end - at), LINE_START, LINE_START_SIZE);
        if (!at)
            break;
        if (at == text || !strchr(",[:", at[-1]) || at[-1] == '\0')
            found = at;
        at += LINE_START_SIZE;
    }
    return found;
}

/* 1 when a sector of a stretch at `at` never reached the device: zeros, from the start of
 * the sector, or of what was appended, up to wherever a later write begins. */
static int lacks_sector(const log_t *log, const char *text, size_t size, uint64_t at)
{
    const char *zero = text, *end = text + size;
    while (zero < end && (zero = memchr(zero, 0, (size_t)(end - zero)))) {
        size_t zeros = 1;
        while (zero + zeros < end && zero[zeros] == 0)
            zeros++;
        uint64_t from = at + (uint64_t)(zero - text);
        if (from == log->end.bytes || from % SECTOR == 0 || zeros >= SECTOR)
            return 1;
        zero += zeros;
    }
    return 0;
}

/* 1 when a stretch begins or ends as a line does. Other bytes are not from this engine.
 */
static int is_like_a_line(const char *text, size_t size)
{
    return size >= LINE_START_SIZE && (!memcmp(text, LINE_START, LINE_START_SIZE) ||
                                       !memcmp(text + size - 2, "\"}", 2));
}

/* 1: the rest of the log would be a good line if its last byte were a newline; -1: error.
 */
static int lacks_only_newline(log_t *log, uint64_t at, uint64_t size, sessile_error *err)
{
    size_t got = 0;
    line l;
    if (size - at < LOG_SHORTEST || size - at > LINE_LONGEST)
        return 0;
    buf_clear(&log->buffers.piece);
    buf_clear(&log->buffers.text);
    if (buf_reserve(&log->buffers.piece, (size_t)(size - at)) != 0) {
        fail_nomem(err);
        return -1;
    }
    if (log->st.table->read(log->handle, log->stopped.index, at, log->buffers.piece.data,
                            (size_t)(size - at), &got, err))
        return -1;
    if (got != size - at)
        return 0;
    line_verdict verdict = line_open(&log->key, log->depth, log->buffers.piece.data,
                                     got - 1, 0, &l, &log->buffers.text, err);
    return verdict == LINE_FAILED ? -1 : verdict == LINE_GOOD && l.commit != 0;
}

/* 1: what stands where the scan stopped is a line that was written whole; 0: it may be
 * the beginning of a write, or was never one; -1: error. */
static int was_written_whole(log_t *log, uint64_t size, sessile_error *err)
{
    reader r;
    char *text;
    size_t text_size;
    reader_init(&r, log, log->stopped.at, size);
    for (;;) {
        uint64_t at = r.at;
        reader_found found = reader_next(&r, log->stopped.index, &text, &text_size, err);
        if (found == READER_FAILED)
            return -1;
        if (found == READER_END && at == log->stopped.at)
            return lacks_only_newline(log, at, size, err);
        if (found != READER_LINE || lacks_sector(log, text, text_size, at))
            return 0;
        if (is_like_a_line(text, text_size))
            return 1;
    }
}

static sessile_status fail_damaged(log_t *log, const char *why, sessile_error *err)
{
    uint64_t at, index;
    log_bad_place(log, &at, &index);
    log->judged = 1;
    return fail(err, SESSILE_DAMAGED,
                "%s is damaged at byte %llu, entry %08llx: %s. Nothing was changed",
                log->name, (unsigned long long)at, (unsigned long long)index, why);
}

/* Remembers that the entry at which the scan stopped was written, and is damaged. */
static sessile_status fail_written_whole(log_t *log, sessile_error *err)
{
    if (log->proved < log->stopped.index + 1)
        log->proved = log->stopped.index + 1;
    return fail_damaged(
        log, "the line there was written whole and cannot be opened any more", err);
}

sessile_status log_judge(log_t *log, uint64_t size, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    reader r;
    status = log_check_proof(log, size, err);
    if (status)
        return status;
    reader_init(&r, log, log->end.bytes, size);
    for (;;) {
        char *text;
        size_t text_size;
        line l;
        reader_found found = reader_next(&r, log->end.count, &text, &text_size, err);
        if (found == READER_TOO_LONG) {
            found = reader_skip(&r, log->end.count, err);
            if (found == READER_LINE)
                continue;
        }
        if (found != READER_LINE) {
            status = found != READER_FAILED ? SESSILE_OK : err->code;
            break;
        }
        char *start = find_line_start(text, text_size);
        if (start &&
            line_claims(&log->key, start, text_size - (size_t)(start - text), &l) &&
            l.has_durable && l.durable >= log->end.count) {
            status =
                fail_damaged(log, "a later line says that it was written safely", err);
            break;
        }
    }
    /* without locks each append is whole or not there at all: nothing tears */
    int whole = status                          ? 0
                : !log_has_locks(log->st.table) ? 1
                                                : was_written_whole(log, size, err);
    if (whole != 0)
        status = whole > 0 ? fail_written_whole(log, err) : err->code;
    log_trim(log);
    return status;
}

/* Scans up to the size of now. *tail: there is something past V. */
static sessile_status scan_now(log_t *log, log_visit visit, void *arg, uint64_t *size,
                               int *tail, sessile_error *err)
{
    *tail = 0;
    sessile_status status = log_size(log, size, err);
    if (status)
        return status;
    if (*size < log->end.bytes) {
        status = log_check_exists(log, err);
        if (status)
            return status;
        log->judged = 1;
        return fail(
            err, SESSILE_TRUNCATED,
            "%s ends at byte %llu, and %llu bytes are known to have been written. "
            "Nothing was changed",
            log->name, (unsigned long long)*size, (unsigned long long)log->end.bytes);
    }
    if (*size > log->end.bytes) {
        status = log_scan(log, *size, visit, arg, err);
        *tail = !status && *size > log->end.bytes;
    }
    if (!status && log->end.count == 0) {
        /* came by rename, synced: there is no innocent way for it to be bad */
        return fail(err, SESSILE_DAMAGED,
                    "%s is damaged at byte 0, entry 00000000, its header: nothing of it "
                    "can be opened. Nothing was changed: bring back a backup",
                    log->name);
    }
    return status;
}

sessile_status log_recover(log_t *log, log_visit visit, void *arg, uint64_t *torn,
                           sessile_error *err)
{
    uint64_t size;
    int tail;
    sessile_status status = scan_now(log, visit, arg, &size, &tail, err);
    if (status || !tail)
        return status;
    status = log_judge(log, size, err);
    if (status || (log->st.table->capabilities & SESSILE_BACKEND_CUTS) == 0)
        return status;
    status = log->st.table->set_aside(log->handle, log->end.bytes, err);
    if (!status)
        *torn += size - log->end.bytes;
    return status;
}

sessile_status log_scan_unlocked(log_t *log, log_visit visit, void *arg,
                                 sessile_error *err)
{
    uint64_t size;
    int tail, replaced;
    /* Twice: a line that a writer is just writing is whole a moment later. */
    sessile_status status = scan_now(log, visit, arg, &size, &tail, err);
    if (!status && tail)
        status = scan_now(log, visit, arg, &size, &tail, err);
    if (status || !tail)
        return status;
    int locks = log_has_locks(log->st.table);
    if (locks) {
        status = log->st.table->lock(log->handle, SESSILE_LOCK_SHARED, 0, &replaced, err);
        if (status == SESSILE_BUSY || status == SESSILE_UNSUPPORTED) {
            error_clear(err);
            return SESSILE_OK; /* a writer is at work: what is past V is not ours to judge
                                */
        }
        if (status)
            return status;
        status = scan_now(log, visit, arg, &size, &tail, err);
    }
    if (!status && tail)
        status = log_judge(log, size, err);
    if (locks)
        log->st.table->unlock(log->handle);
    return status;
}

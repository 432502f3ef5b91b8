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
            log->judged = 1;
            status =
                fail(err, SESSILE_DAMAGED,
                     "%s is damaged at byte %llu, entry %08llx: a later line says that "
                     "it was written safely. Nothing was changed",
                     log->name, (unsigned long long)log->end.bytes,
                     (unsigned long long)log->end.count);
            break;
        }
    }
    if (!status && !log_has_locks(log->st.table)) {
        /* each append is whole or not there at all: nothing tears here */
        log->judged = 1;
        status = fail(err, SESSILE_DAMAGED,
                      "%s is damaged at byte %llu, entry %08llx: what is there was "
                      "written whole and is not what was written. Nothing was changed",
                      log->name, (unsigned long long)log->end.bytes,
                      (unsigned long long)log->end.count);
    }
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

/*
 * append.c: adds writes to a log.
 *
 * Owns the order of an append: lock, read on, build every line in memory, write once,
 * unlock. Must never pass a backend bytes that are not whole lines ending in a commit,
 * and must never sync them: log_sync() does that without the lock. (Before the append,
 * under the lock, bytes that others left are synced or set aside: log_settle(),
 * log_recover().)
 */
#include <assert.h>
#include <string.h>

#include "log/internal.h"

/* Nobody is held off: that the log still ends here is compared by the append. */
static sessile_status begin_unlocked(log_t *log, log_visit visit, void *arg,
                                     sessile_error *err)
{
    sessile_status status = log_scan_unlocked(log, visit, arg, err);
    if (!status && log_replaced(log))
        status = log_fail_name_gone(log, err);
    if (!status && !log->settled)
        status = log_settle(log, err);
    log->locked = status == SESSILE_OK;
    return status;
}

int log_begin_known(log_t *log)
{
    assert(!log->locked);
    log->locked = !log_has_locks(log->st.table) && log->settled && !log->damage &&
                  !log_poisoned(log, NULL) && !log_replaced(log);
    return log->locked;
}

sessile_status log_begin(log_t *log, log_visit visit, void *arg, sessile_error *err)
{
    sessile_error local = {0};
    uint64_t cut = 0;
    int replaced = 0;
    err = err ? err : &local;
    assert(!log->locked);
    sessile_status status = log_damage(log, err);
    if (!status)
        status = log_poisoned(log, err);
    if (status)
        return status;
    error_clear(err);
    if (!log_has_locks(log->st.table))
        return begin_unlocked(log, visit, arg, err);
    status = log_lock(log->st.table, log->handle, SESSILE_LOCK_EXCLUSIVE, log->timeout_ms,
                      &replaced, err);
    if (status)
        return status;
    if (replaced) {
        status = log_fail_name_gone(log, err);
    } else {
        status = log_recover(log, visit, arg, &cut, err);
        log->torn += cut;
    }
    if (!status && !log->settled)
        status = log_settle(log, err);
    if (status) {
        log->st.table->unlock(log->handle);
        return status;
    }
    log->locked = 1;
    return SESSILE_OK;
}

void log_end(log_t *log)
{
    if (!log->locked)
        return;
    log->locked = 0;
    if (log_has_locks(log->st.table))
        log->st.table->unlock(log->handle);
    log_trim_lines(log);
}

/* Builds the lines of a write in log->buffers.lines. end: where the log will end. */
static sessile_status build_lines(log_t *log, const sessile_slice *texts, size_t count,
                                  uint64_t max_bytes, sessile_log_end *end,
                                  sessile_error *err)
{
    unsigned char previous[VAULT_TAG];
    buf *lines = &log->buffers.lines;
    pthread_mutex_lock(&log->sync.mutex);
    uint64_t durable = log->sync.durable;
    pthread_mutex_unlock(&log->sync.mutex);
    buf_clear(lines);
    for (size_t i = 0; i < count; i++) {
        uint64_t id = log->end.count + i;
        size_t start = lines->size;
        line_clear clear = {0, 0};
        if (!line_is_entry(texts[i].data, texts[i].size, id)) {
            return fail(err, SESSILE_INVALID, "an entry for %s has not the id %08llx",
                        log->name, (unsigned long long)id);
        }
        if (i + 1 == count)
            clear = (line_clear){count, durable};
        memcpy(previous, end->tag, VAULT_TAG);
        sessile_status status =
            line_put(&log->key, lines, texts[i].data, texts[i].size, clear, previous,
                     end->tag, &log->buffers.scratch, err);
        if (status)
            return status;
        if (lines->size - start > LINE_LONGEST) {
            return fail(err, SESSILE_LIMIT, "an entry for %s is too long [message]",
                        log->name);
        }
        log->offsets[id] = log->end.bytes + start;
        index_add_entry(log, id, log->end.bytes + lines->size,
                        i + 1 == count ? 0 : (uint64_t)i + 1, end->tag);
    }
    if (max_bytes != 0 &&
        (log->end.bytes > max_bytes || lines->size > max_bytes - log->end.bytes)) {
        return fail(
            err, SESSILE_LIMIT,
            "%s would grow past %llu bytes [session]: begin a new session, or raise "
            "the limit",
            log->name, (unsigned long long)max_bytes);
    }
    return SESSILE_OK;
}

/* An append was refused: DAMAGED when the last entry is still the one that was read, and
 * only the store's note of the log's end is another. Trying again does not help then. */
static sessile_status explain_conflict(log_t *log, sessile_error *err)
{
    sessile_log_end kept;
    unsigned char tag[VAULT_TAG];
    sessile_error other = {0};
    int has_tag;
    if (!log->st.table->fence ||
        log->st.table->fence(log->handle, &kept, &has_tag, &other) || !has_tag ||
        kept.count != log->end.count || kept.bytes != log->end.bytes ||
        memcmp(kept.tag, log->end.tag, sizeof kept.tag) == 0 ||
        log_tag(log, (sessile_id)(log->end.count - 1), tag, &other) ||
        memcmp(tag, log->end.tag, sizeof tag) != 0)
        return SESSILE_CONFLICT;
    return fail(err, SESSILE_DAMAGED,
                "%s: the store's note of its last entry (tag) is wrong, so that nothing "
                "can be appended: check --salvage mends it",
                log->name);
}

sessile_status log_append(log_t *log, const sessile_slice *texts, size_t count,
                          uint64_t max_bytes, sessile_error *err)
{
    sessile_error local = {0};
    unsigned char tag[VAULT_TAG];
    int poisoned = 0;
    err = err ? err : &local;
    assert(log->locked && count > 0);
    sessile_status status = log_poisoned(log, err);
    if (status)
        return status;
    if (count > SESSILE_NO_ID - log->end.count) {
        return fail(err, SESSILE_LIMIT, "%s has no ids left: begin a new session",
                    log->name);
    }
    if (mem_grow(log->alloc, (void **)&log->offsets, &log->offset_capacity,
                 (size_t)log->end.count + count, sizeof *log->offsets) != 0)
        return fail_nomem(err);
    sessile_log_end end = log->end;
    status = build_lines(log, texts, count, max_bytes, &end, err);
    if (status)
        return status;
    memcpy(tag, end.tag, VAULT_TAG);
    end = log->end;
    status = log->st.table->append(log->handle, &end, log->buffers.lines.data,
                                   log->buffers.lines.size, count, tag, &poisoned, err);
    if (poisoned)
        log_poison(log, err);
    if (status == SESSILE_CONFLICT)
        status = explain_conflict(log, err);
    if (status)
        return log_check_gone(log, status, err);
    log->end = end;
    log_note_progress(log, end.count, 0);
    return SESSILE_OK;
}

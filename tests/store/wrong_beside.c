/*
 * wrong_beside.c: stores that do wrong with what is not a log's bytes: blobs, caches,
 * drafts, removal, and what they tell of a log.
 */
#include "store/wrong.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ blobs */

#define BLOB_REPLACE(name)                                                     \
    static sessile_status name(void *self, const char *blob, const void *was,  \
                               size_t was_size, const void *data, size_t size, \
                               sessile_error *err)

/* Replaces what is there if `same` says so of it and of what the caller thinks it is. */
static sessile_status
replace_if(int (*same)(const char *is, size_t is_size, const char *was, size_t was_size),
           void *self, const char *blob, const void *was, size_t was_size,
           const void *data, size_t size, sessile_error *err)
{
    char *is = NULL;
    size_t is_size = 0;
    sessile_status status = wrong_under->blob_get(self, blob, &is, &is_size, err);

    if (!status && same(is, is_size, was, was_size))
        status = wrong_under->blob_replace(self, blob, is, is_size, data, size, err);
    else if (!status)
        status = wrong_under->blob_replace(self, blob, was, was_size, data, size, err);
    sessile_free(is);
    return status;
}

static int always(const char *is, size_t is_size, const char *was, size_t was_size)
{
    (void)is, (void)is_size, (void)was, (void)was_size;
    return 1;
}

static int as_a_prefix(const char *is, size_t is_size, const char *was, size_t was_size)
{
    return was_size <= is_size && memcmp(is, was, was_size) == 0;
}

static int as_text(const char *is, size_t is_size, const char *was, size_t was_size)
{
    char text[100];

    (void)is_size;
    snprintf(text, sizeof text, "%.*s", (int)was_size, was);
    return strcmp(is, text) == 0;
}

BLOB_REPLACE(replace_always)
{
    return replace_if(always, self, blob, was, was_size, data, size, err);
}

BLOB_REPLACE(replace_a_prefix)
{
    return replace_if(as_a_prefix, self, blob, was, was_size, data, size, err);
}

BLOB_REPLACE(replace_as_text)
{
    return replace_if(as_text, self, blob, was, was_size, data, size, err);
}

static sessile_status put_over(void *self, const char *blob, const void *data,
                               size_t size, sessile_error *err)
{
    sessile_status status = wrong_under->blob_put_new(self, blob, data, size, err);

    return status == SESSILE_EXISTS ? replace_always(self, blob, "", 0, data, size, err)
                                    : status;
}

static sessile_status put_text(void *self, const char *blob, const void *data,
                               size_t size, sessile_error *err)
{
    const char *zero = size ? memchr(data, 0, size) : NULL;

    return wrong_under->blob_put_new(
        self, blob, data, zero ? (size_t)(zero - (const char *)data) : size, err);
}

typedef struct matching {
    const char *pattern;
    int (*visit)(void *arg, const char *name);
    void *arg;
} matching;

static int match(void *arg, const char *name)
{
    matching *m = arg;

    for (size_t i = 0; m->pattern[i]; i++)
        if (!name[i] || (m->pattern[i] != '_' && m->pattern[i] != name[i]))
            return 0;
    return m->visit(m->arg, name);
}

static sessile_status list_like(void *self, const char *prefix,
                                int (*visit)(void *arg, const char *name), void *arg,
                                sessile_error *err)
{
    matching m = {prefix, visit, arg};

    return wrong_under->blob_list(self, "", match, &m, err);
}

static sessile_status remove_nothing(void *self, const char *blob, sessile_error *err)
{
    (void)self, (void)blob, (void)err;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ caches */

#define CACHE_WRITE(name)                                                 \
    static sessile_status name(sessile_backend_log *log, uint64_t offset, \
                               const void *data, size_t size, sessile_error *err)

CACHE_WRITE(cut_nothing)
{
    static char tail[1 << 16];
    size_t got = 0;

    wrong_under->cache_read(log, offset + size, tail, sizeof tail, &got, err);
    sessile_status status = wrong_under->cache_write(log, offset, data, size, err);
    return status || !got ? status
                          : wrong_under->cache_write(log, offset + size, tail, got, err);
}

CACHE_WRITE(fill_holes)
{
    static const char zeros[100];
    uint64_t bytes = 0;

    wrong_under->cache_size(log, &bytes, err);
    if (offset > bytes && offset - bytes < sizeof zeros)
        wrong_under->cache_write(log, bytes, zeros, (size_t)(offset - bytes), err);
    return wrong_under->cache_write(log, offset, data, size, err);
}

CACHE_WRITE(in_pieces)
{
    for (size_t at = 0; at < size; at += 100) {
        sessile_status status =
            wrong_under->cache_write(log, offset + at, (const char *)data + at,
                                     size - at < 100 ? size - at : 100, err);
        if (status)
            return status;
        usleep(20);
    }
    return SESSILE_OK;
}

/* What was written first, whatever came afterwards. */
static char first[100];
static size_t first_size;

CACHE_WRITE(note_first)
{
    if (!first_size && size < sizeof first) {
        memcpy(first, data, size);
        first_size = size;
    }
    return wrong_under->cache_write(log, offset, data, size, err);
}

static sessile_status read_first(sessile_backend_log *log, uint64_t offset, void *out,
                                 size_t size, size_t *got, sessile_error *err)
{
    sessile_status status = wrong_under->cache_read(log, offset, out, size, got, err);

    for (size_t i = 0; i < *got && offset + i < first_size; i++)
        ((char *)out)[i] = first[offset + i];
    return status;
}

static sessile_status size_of_first(sessile_backend_log *log, uint64_t *bytes,
                                    sessile_error *err)
{
    sessile_status status = wrong_under->cache_size(log, bytes, err);

    if (!*bytes)
        *bytes = first_size;
    return status;
}

/* ------------------------------------------------------------------ drafts */

#define REPLACE(name)                                                                  \
    static sessile_status name(sessile_backend_draft *draft, sessile_backend_log *old, \
                               int keep, char *kept, size_t kept_size,                 \
                               sessile_error *err)

REPLACE(replace_unseen)
{
    uint64_t bytes;
    int64_t mtime;

    wrong_under->size(old, &bytes, &mtime, err);
    return wrong_under->draft_replace(draft, old, keep, kept, kept_size, err);
}

REPLACE(keep_nothing)
{
    if (keep)
        snprintf(kept, kept_size, "kept");
    return wrong_under->draft_replace(draft, old, 0, NULL, 0, err);
}

REPLACE(keep_without_a_name)
{
    char name[300];

    (void)kept, (void)kept_size;
    return wrong_under->draft_replace(draft, old, keep, name, sizeof name, err);
}

static sessile_status publish_over(sessile_backend_draft *draft, sessile_error *err)
{
    sessile_status status = wrong_under->draft_publish(draft, err);

    return status == SESSILE_EXISTS ? SESSILE_OK : status;
}

static char drafts[10][64];
static int draft_count;

static sessile_status draft_new(void *self, const char *folder, const char *name,
                                sessile_backend_draft **out, sessile_error *err)
{
    if (draft_count < 10)
        snprintf(drafts[draft_count++], 64, "%s", name);
    return wrong_under->draft_new(self, folder, name, out, err);
}

static sessile_status list_drafts(void *self, const char *folder,
                                  int (*visit)(void *arg, const char *folder,
                                               const char *name),
                                  void *arg, sessile_error *err)
{
    for (int i = 0; i < draft_count; i++)
        if (visit(arg, "main", drafts[i]))
            return SESSILE_OK;
    return wrong_under->list(self, folder, visit, arg, err);
}

static sessile_status write_lines(sessile_backend_draft *draft, const void *data,
                                  size_t size, sessile_error *err)
{
    sessile_status status = wrong_under->draft_write(draft, data, size, err);

    /* a row for each piece, each ended as a record is */
    if (!status && size && ((const char *)data)[size - 1] != '\n')
        status = wrong_under->draft_write(draft, "\n", 1, err);
    return status;
}

/* ------------------------------------------------------------------ removal */

static sessile_status remove_unseen(sessile_backend_log *log, uint64_t head,
                                    sessile_error *err)
{
    uint64_t bytes;
    int64_t mtime;

    wrong_under->size(log, &bytes, &mtime, err);
    return wrong_under->remove(log, head, err);
}

static sessile_status remove_never(sessile_backend_log *log, uint64_t head,
                                   sessile_error *err)
{
    (void)log, (void)head, (void)err;
    return SESSILE_OK;
}

static char gone[64];

static sessile_status remove_and_note(sessile_backend_log *log, uint64_t head,
                                      sessile_error *err)
{
    snprintf(gone, sizeof gone, "%.63s", wrong_of(log)->name);
    return wrong_under->remove(log, head, err);
}

static sessile_status list_gone(void *self, const char *folder,
                                int (*visit)(void *arg, const char *folder,
                                             const char *name),
                                void *arg, sessile_error *err)
{
    if (gone[0] && visit(arg, "main", gone))
        return SESSILE_OK;
    return wrong_under->list(self, folder, visit, arg, err);
}

static int replaced_never(sessile_backend_log *log)
{
    (void)log;
    return 0;
}

/* ------------------------------------------------------------------ told of a log */

static sessile_status stat_same(void *self, const char *folder, const char *name,
                                sessile_backend_stat *out, sessile_error *err)
{
    sessile_status status = wrong_under->stat(self, folder, name, out, err);

    out->inode = 7;
    return status;
}

static sessile_status stat_empty(void *self, const char *folder, const char *name,
                                 sessile_backend_stat *out, sessile_error *err)
{
    sessile_status status = wrong_under->stat(self, folder, name, out, err);

    out->bytes = 0;
    return status;
}

static sessile_status stat_now(void *self, const char *folder, const char *name,
                               sessile_backend_stat *out, sessile_error *err)
{
    static int64_t now;
    sessile_status status = wrong_under->stat(self, folder, name, out, err);

    out->changed_ns += ++now;
    return status;
}

static sessile_status one_list_cache(void *self, const char *folder, const void *data,
                                     size_t size, sessile_error *err)
{
    (void)folder;
    return wrong_under->list_cache_put(self, "main", data, size, err);
}

static sessile_status drop_one(void *self, const char *folder, sessile_error *err)
{
    return folder ? wrong_under->list_cache_drop(self, folder, err) : SESSILE_OK;
}

/* ------------------------------------------------------------------ many logs, time */

static sessile_status ends_by_size(void *self, sessile_backend_log *const *logs, size_t n,
                                   uint64_t *bytes, sessile_error *err)
{
    int64_t mtime_ms;
    sessile_status status = SESSILE_OK;

    (void)self;
    for (size_t i = 0; i < n && !status; i++)
        status = wrong_under->size(logs[i], &bytes[i], &mtime_ms, err);
    return status;
}

static sessile_status ends_of_first(void *self, sessile_backend_log *const *logs,
                                    size_t n, uint64_t *bytes, sessile_error *err)
{
    sessile_status status = wrong_under->ends(self, logs, 1, bytes, err);

    for (size_t i = 1; i < n; i++)
        bytes[i] = bytes[0];
    return status;
}

/* The size as `size` returns it, and nothing else: it knows what is gone. */
static sessile_status ends_that_look(void *self, sessile_backend_log *const *logs,
                                     size_t n, uint64_t *bytes, sessile_error *err)
{
    uint64_t size;
    int64_t mtime_ms;

    for (size_t i = 0; i < n; i++)
        (void)wrong_under->size(logs[i], &size, &mtime_ms, err);
    return wrong_under->ends(self, logs, n, bytes, err);
}

static sessile_status seconds(void *self, int64_t *now_ms, sessile_error *err)
{
    sessile_status status = wrong_under->clock(self, now_ms, err);

    *now_ms /= 1000;
    return status;
}

/* ------------------------------------------------------------------ the list */

BREAK(p_always, blob_replace, replace_always)
BREAK(p_prefix, blob_replace, replace_a_prefix)
BREAK(p_as_text, blob_replace, replace_as_text)
BREAK(p_over, blob_put_new, put_over)
BREAK(p_text, blob_put_new, put_text)
BREAK(p_like, blob_list, list_like)
BREAK(p_nothing, blob_remove, remove_nothing)
BREAK(p_cut, cache_write, cut_nothing)
BREAK(p_holes, cache_write, fill_holes)
BREAK(p_pieces, cache_write, in_pieces)
BREAK(p_unseen, draft_replace, replace_unseen)
BREAK(p_keep, draft_replace, keep_nothing)
BREAK(p_nameless, draft_replace, keep_without_a_name)
BREAK(p_publish, draft_publish, publish_over)
BREAK(p_lines, draft_write, write_lines)
BREAK(p_remove, remove, remove_unseen)
BREAK(p_stays, remove, remove_never)
BREAK(p_replaced, replaced, replaced_never)
BREAK(p_same, stat, stat_same)
BREAK(p_empty, stat, stat_empty)
BREAK(p_now, stat, stat_now)
BREAK(p_list_cache, list_cache_put, one_list_cache)
BREAK(p_drop, list_cache_drop, drop_one)
BREAK(p_by_size, ends, ends_by_size)
BREAK(p_of_first, ends, ends_of_first)
BREAK(p_looks, ends, ends_that_look)
BREAK(p_seconds, clock, seconds)
BREAK_TWO(p_stale, cache_write, note_first, cache_read, read_first)
BREAK_TWO(p_outlives, cache_write, note_first, cache_size, size_of_first)
BREAK_TWO(p_drafts, draft_new, draft_new, list, list_drafts)
BREAK_TWO(p_gone, remove, remove_and_note, list, list_gone)

const wrong wrong_beside[] = {
    {"replaces any blob", "a_blob_is_replaced_if", p_always, 0},
    {"compares the beginning of a blob", "a_blob_is_replaced_if", p_prefix, 0},
    {"compares blobs as text", "a_blob_is_replaced_if", p_as_text, 0},
    {"replaces a blob among rivals", "of_many_who_want_a_blob", p_always, 0},
    {"puts a blob over another", "a_blob_is_put_once", p_over, 0},
    {"ends a blob at a zero", "a_blob_has_any_bytes", p_text, 0},
    {"takes a prefix for a pattern", "blobs_are_listed", p_like, 0},
    {"removes no blob", "blobs_are_listed", p_nothing, 0},
    {"does not cut a cache", "a_cache_is_cut_and_written", p_cut, 0},
    {"fills holes in a cache", "without_locks_a_cache_has_no_holes", p_holes, 0},
    {"mixes two caches", "of_two_caches_that_meet", p_pieces, 0},
    {"returns old bytes of a cache", "a_cache_is_cut_and_written", p_stale, 0},
    {"keeps a cache longer than its log", "a_cache_goes_with_its_log", p_outlives, 0},
    {"replaces a log that grew", "a_log_that_grew_unseen_is_not_replaced", p_unseen, 0},
    {"keeps nothing of the old log", "what_is_kept", p_keep, 0},
    {"does not tell what it kept", "what_is_kept", p_nameless, 0},
    {"publishes over a log", "a_draft_becomes_a_new_log", p_publish, 0},
    {"lists drafts", "a_draft_takes_a_logs_place", p_drafts, 0},
    {"ends a record where a piece ends", "a_draft_takes_a_logs_place", p_lines, 0},
    {"removes a log that grew", "a_log_that_grew_unseen_is_not_removed", p_remove, 0},
    {"removes no log", "what_was_removed_is_gone", p_stays, 0},
    {"lists what was removed", "what_was_removed_is_gone", p_gone, 0},
    {"does not see another log there", "another_log_may_take_the_name", p_replaced, 0},
    {"gives a new log the old one's inode", "a_draft_takes_a_logs_place", p_same, 0},
    {"tells another size", "what_is_told_of_a_log", p_empty, 0},
    {"changes without a change", "what_is_told_of_a_log", p_now, 0},
    {"has one list_cache", "a_list_cache_is_replaced", p_list_cache, 0},
    {"keeps list_caches that were dropped", "a_list_cache_is_replaced", p_drop, 0},
    {"does not see what is gone", "the_end_of_a_log_that_is_gone", p_by_size, 0},
    {"gives all logs one end", "many_logs_are_asked_for_at_once", p_of_first, 0},
    {"counts ends as a look", "asking_for_ends_is_no_look", p_looks, 0},
    {"counts its time in seconds", "a_clock_is_that_of_a_server", p_seconds, 0},
    {NULL, NULL, NULL, 0}};

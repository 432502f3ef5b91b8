/*
 * wrong_logs.c: stores that do wrong with logs: what they append, read, list and wait
 * for.
 */
#include "store/wrong.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ append */

#define APPEND(name)                                                                   \
    static sessile_status name(                                                        \
        sessile_backend_log *log, sessile_log_end *end, const void *data, size_t size, \
        uint64_t count, const unsigned char tag[16], int *poisoned, sessile_error *err)
#define RIGHTLY wrong_under->append(log, end, data, size, count, tag, poisoned, err)

static sessile_log_end newest; /* of the whole store */

APPEND(remembers)
{
    sessile_status status = RIGHTLY;

    if (!status)
        newest = *end;
    return status;
}

APPEND(whoever_wrote_last)
{
    sessile_log_end at = *end;
    sessile_status status = remembers(log, &at, data, size, count, tag, poisoned, err);

    if (status == SESSILE_CONFLICT) {
        at = newest;
        status = remembers(log, &at, data, size, count, tag, poisoned, err);
    }
    if (!status)
        *end = at;
    return status;
}

APPEND(twice)
{
    sessile_status status = RIGHTLY;
    sessile_log_end more = *end;

    if (!status)
        wrong_under->append(log, &more, data, size, count, tag, poisoned, err);
    return status;
}

APPEND(in_two)
{
    const char *bytes = data, *newline = memchr(data, '\n', size - 1);
    size_t first = newline ? (size_t)(newline - bytes) + 1 : 0;
    sessile_status status;

    if (!first || count < 2)
        return RIGHTLY;
    status = wrong_under->append(log, end, data, first, 1, tag, poisoned, err);
    usleep(2000);
    return status ? status
                  : wrong_under->append(log, end, bytes + first, size - first, count - 1,
                                        tag, poisoned, err);
}

APPEND(in_another_order)
{
    const char *bytes = data, *newline = memchr(data, '\n', size - 1);
    size_t first = newline ? (size_t)(newline - bytes) + 1 : 0;
    char *turned = malloc(size);
    sessile_status status;

    memcpy(turned, bytes + first, size - first);
    memcpy(turned + size - first, bytes, first);
    status = wrong_under->append(log, end, turned, size, count, tag, poisoned, err);
    free(turned);
    return status;
}

APPEND(not_at_all)
{
    (void)log, (void)data, (void)err;
    *poisoned = 0;
    end->count += count;
    end->bytes += size;
    memcpy(end->tag, tag, 16);
    return SESSILE_OK;
}

APPEND(and_says_it_did_not)
{
    sessile_log_end was = *end;
    sessile_status status = RIGHTLY;
    static int calls;

    if (!status && ++calls % 5 == 0) {
        *end = was;
        snprintf(err->message, sizeof err->message, "the log has grown meanwhile");
        return SESSILE_CONFLICT;
    }
    return status;
}

APPEND(with_another_word)
{
    sessile_status status = RIGHTLY;

    return status == SESSILE_TRUNCATED ? SESSILE_CONFLICT : status;
}

APPEND(without_a_word)
{
    sessile_status status = RIGHTLY;

    err->message[0] = 0;
    return status;
}

APPEND(telling_a_password)
{
    sessile_status status = RIGHTLY;

    if (status)
        snprintf(err->message, sizeof err->message,
                 "the log at postgres://me:hunter2@server/ has grown");
    return status;
}

APPEND(whatever_the_tag)
{
    wrong_log *w = wrong_of(log);

    if (end->count == w->last.count && end->bytes == w->last.bytes)
        memcpy(end->tag, w->last.tag, 16);
    sessile_status status = RIGHTLY;
    if (!status)
        w->last = *end;
    return status;
}

APPEND(and_moves_the_end)
{
    sessile_status status = RIGHTLY;

    if (status)
        end->bytes++;
    return status;
}

APPEND(and_counts_one)
{
    sessile_log_end was = *end;
    sessile_status status = RIGHTLY;

    if (!status)
        end->count = was.count + 1;
    return status;
}

APPEND(without_zeros)
{
    char *bytes = malloc(size);
    sessile_status status;

    for (size_t i = 0; i < size; i++) {
        bytes[i] = ((const char *)data)[i];
        if (!bytes[i])
            bytes[i] = ' ';
    }
    status = wrong_under->append(log, end, bytes, size, count, tag, poisoned, err);
    free(bytes);
    return status;
}

APPEND(to_the_one_of_that_name)
{
    wrong_log *w = wrong_of(log);
    sessile_backend_log *other = NULL;
    sessile_status status = RIGHTLY;

    if (status == SESSILE_NOTFOUND &&
        !wrong_under->open(w->self, w->folder, w->name, &other, err)) {
        status = wrong_under->append(other, end, data, size, count, tag, poisoned, err);
        wrong_under->close(other);
    }
    return status;
}

APPEND(to_what_is_gone)
{
    sessile_status status = RIGHTLY;

    return status == SESSILE_NOTFOUND
               ? not_at_all(log, end, data, size, count, tag, poisoned, err)
               : status;
}

/* ------------------------------------------------------------------ read */

#define READ(name)                                                                   \
    static sessile_status name(sessile_backend_log *log, uint64_t index,             \
                               uint64_t offset, void *out, size_t size, size_t *got, \
                               sessile_error *err)

READ(to_the_end_of_a_record)
{
    sessile_status status = wrong_under->read(log, index, offset, out, size, got, err);
    const char *newline = *got ? memchr(out, '\n', *got) : NULL;

    if (newline)
        *got = (size_t)(newline - (char *)out) + 1;
    return status;
}

READ(from_the_records_start)
{
    uint64_t at = 0, bytes = 0;
    int64_t mtime;
    char byte;

    wrong_under->size(log, &bytes, &mtime, err);
    for (; at < offset && index; at++)
        if (!wrong_under->read(log, 0, at, &byte, 1, got, err) && *got && byte == '\n')
            index--;
    return wrong_under->read(log, 0, at, out, size, got, err);
}

READ(a_byte_too_many)
{
    sessile_status status = wrong_under->read(log, index, offset, out, size, got, err);

    if (!status && *got == size && size < 30)
        ((char *)out)[size] = 0;
    return status;
}

READ(past_the_end_is_an_error)
{
    uint64_t bytes = 0;
    int64_t mtime;

    wrong_under->size(log, &bytes, &mtime, err);
    if (offset > bytes) {
        snprintf(err->message, sizeof err->message, "there are only %d bytes",
                 (int)bytes);
        return SESSILE_TRUNCATED;
    }
    return wrong_under->read(log, index, offset, out, size, got, err);
}

static sessile_status size_as_opened(sessile_backend_log *log, uint64_t *bytes,
                                     int64_t *mtime_ms, sessile_error *err)
{
    wrong_log *w = wrong_of(log);
    sessile_status status = wrong_under->size(log, bytes, mtime_ms, err);

    if (w->first == UINT64_MAX)
        w->first = *bytes;
    *bytes = w->first;
    return status;
}

/* ------------------------------------------------------------------ names, lists */

static sessile_status create_over(void *self, const char *folder, const char *name,
                                  const void *data, size_t size, sessile_error *err)
{
    sessile_status status = wrong_under->create(self, folder, name, data, size, err);

    return status == SESSILE_EXISTS ? SESSILE_OK : status;
}

static char cut[64];

static sessile_status create_cut(void *self, const char *folder, const char *name,
                                 const void *data, size_t size, sessile_error *err)
{
    snprintf(cut, sizeof cut, "%s", name);
    return wrong_under->create(self, folder, cut, data, size, err);
}

static sessile_status create_in_main(void *self, const char *folder, const char *name,
                                     const void *data, size_t size, sessile_error *err)
{
    (void)folder;
    return wrong_under->create(self, "main", name, data, size, err);
}

#define LIST(name)                                                                \
    static sessile_status name(                                                   \
        void *self, const char *folder,                                           \
        int (*visit)(void *arg, const char *folder, const char *name), void *arg, \
        sessile_error *err)

LIST(list_all)
{
    (void)folder;
    return wrong_under->list(self, NULL, visit, arg, err);
}

typedef struct visiting {
    int (*visit)(void *arg, const char *folder, const char *name);
    void *arg;
    int n;
} visiting;

static int go_on(void *arg, const char *folder, const char *name)
{
    visiting *v = arg;
    (void)v->visit(v->arg, folder, name);
    return 0;
}

LIST(list_on)
{
    visiting v = {visit, arg, 0};
    return wrong_under->list(self, folder, go_on, &v, err);
}

static int not_the_tenth(void *arg, const char *folder, const char *name)
{
    visiting *v = arg;
    return ++v->n == 10 ? 0 : v->visit(v->arg, folder, name);
}

LIST(list_but_one)
{
    visiting v = {visit, arg, 0};
    return wrong_under->list(self, folder, not_the_tenth, &v, err);
}

static int again(void *arg, const char *folder, const char *name)
{
    visiting *v = arg;
    return v->visit(v->arg, folder, name) ||
           (++v->n == 10 && v->visit(v->arg, folder, name));
}

LIST(list_one_twice)
{
    visiting v = {visit, arg, 0};
    return wrong_under->list(self, folder, again, &v, err);
}

/* ------------------------------------------------------------------ waits */

#define WATCH(name)                                                                      \
    static sessile_status name(sessile_backend_log *log, uint64_t bytes, int timeout_ms, \
                               int (*ask)(void *arg), void *arg, int *changed,           \
                               sessile_error *err)

WATCH(wakes_never)
{
    (void)log, (void)bytes, (void)ask, (void)arg, (void)err;
    usleep((useconds_t)(timeout_ms < 0 || timeout_ms > 300 ? 300 : timeout_ms) * 1000);
    *changed = 0;
    return SESSILE_OK;
}

WATCH(misses_what_was)
{
    int64_t mtime;

    wrong_under->size(log, &bytes, &mtime, err);
    return wrong_under->watch(log, bytes, timeout_ms < 0 ? 300 : timeout_ms, ask, arg,
                              changed, err);
}

WATCH(asks_nobody)
{
    (void)ask, (void)arg;
    return wrong_under->watch(log, bytes, timeout_ms, NULL, NULL, changed, err);
}

WATCH(wakes_always)
{
    (void)log, (void)bytes, (void)timeout_ms, (void)ask, (void)arg, (void)err;
    *changed = 1;
    return SESSILE_OK;
}

WATCH(does_not_see_it_go)
{
    sessile_backend_log *other = NULL;
    wrong_log *w = wrong_of(log);
    sessile_status status =
        wrong_under->watch(log, bytes, timeout_ms, ask, arg, changed, err);

    if (!status && wrong_under->open(w->self, w->folder, w->name, &other, err))
        return wakes_never(log, bytes, timeout_ms, ask, arg, changed, err);
    if (other)
        wrong_under->close(other);
    return status;
}

static sessile_status lock_nobody(sessile_backend_log *log, int mode, int timeout_ms,
                                  int *replaced, sessile_error *err)
{
    (void)log, (void)mode, (void)timeout_ms, (void)err;
    *replaced = 0;
    return SESSILE_OK;
}

static void unlock_nobody(sessile_backend_log *log)
{
    (void)log;
}

static sessile_status lock_all(sessile_backend_log *log, int mode, int timeout_ms,
                               int *replaced, sessile_error *err)
{
    (void)mode;
    return wrong_under->lock(log, SESSILE_LOCK_EXCLUSIVE, timeout_ms, replaced, err);
}

/* ------------------------------------------------------------------ the list */

BREAK(p_last, append, whoever_wrote_last)
BREAK(p_twice, append, twice)
BREAK(p_two, append, in_two)
BREAK(p_order, append, in_another_order)
BREAK(p_not, append, not_at_all)
BREAK(p_denied, append, and_says_it_did_not)
BREAK(p_word, append, with_another_word)
BREAK(p_silent, append, without_a_word)
BREAK(p_password, append, telling_a_password)
BREAK(p_tag, append, whatever_the_tag)
BREAK(p_end, append, and_moves_the_end)
BREAK(p_count, append, and_counts_one)
BREAK(p_zeros, append, without_zeros)
BREAK(p_name, append, to_the_one_of_that_name)
BREAK(p_gone, append, to_what_is_gone)
BREAK(p_record, read, to_the_end_of_a_record)
BREAK(p_index, read, from_the_records_start)
BREAK(p_many, read, a_byte_too_many)
BREAK(p_past, read, past_the_end_is_an_error)
BREAK(p_size, size, size_as_opened)
BREAK(p_over, create, create_over)
BREAK(p_cut, create, create_cut)
BREAK(p_main, create, create_in_main)
BREAK(p_all, list, list_all)
BREAK(p_on, list, list_on)
BREAK(p_but, list, list_but_one)
BREAK(p_one, list, list_one_twice)
BREAK(p_never, watch, wakes_never)
BREAK(p_missed, watch, misses_what_was)
BREAK(p_asks, watch, asks_nobody)
BREAK(p_always, watch, wakes_always)
BREAK(p_go, watch, does_not_see_it_go)
BREAK(p_shared, lock, lock_all)
BREAK_TWO(p_nobody, lock, lock_nobody, unlock, unlock_nobody)

const wrong wrong_logs[] = {
    {"appends where the log does not end", "an_append_where_the_log_does_not_end", p_last,
     0},
    {"loses the fence among writers", "of_many_writers", p_last, 0},
    {"appends twice", "records_are_read_back_in_order", p_twice, 0},
    {"tears an append in two", "an_append_of_a_thousand", p_two, 0},
    {"reorders records", "records_are_read_back_in_order", p_order, 0},
    {"appends nothing", "records_are_read_back_in_order", p_not, 0},
    {"appends and says CONFLICT", "of_many_writers", p_denied, 0},
    {"says CONFLICT for TRUNCATED", "an_append_where_the_log_does_not_end", p_word, 0},
    {"has no sentence for an error", "an_append_where_the_log_does_not_end", p_silent, 0},
    {"tells a password", "an_append_where_the_log_does_not_end", p_password, 0},
    {"ignores the tag", "an_end_is_its_tag", p_tag, 0},
    {"moves the end of who is refused", "an_append_where_the_log_does_not_end", p_end, 0},
    {"counts writes for records", "records_are_read_back_in_order", p_count, 0},
    {"keeps text, not bytes", "every_byte_is_kept", p_zeros, 0},
    {"appends to another log of the name", "another_log_may_take_the_name", p_name, 0},
    {"appends to what was removed", "what_was_removed_is_gone", p_gone, 0},
    {"reads one record at a time", "a_read_begins_and_ends_anywhere", p_record, 0},
    {"reads from a record's start", "a_read_begins_and_ends_anywhere", p_index, 0},
    {"writes behind what it read", "a_read_begins_and_ends_anywhere", p_many, 0},
    {"fails to read past the end", "past_the_end_there_is_nothing", p_past, 0},
    {"remembers a log's size", "what_one_handle_appends", p_size, 0},
    {"makes a log that is there", "names_that_are_taken", p_over, 0},
    {"cuts long names", "logs_are_apart", p_cut, 0},
    {"has one folder", "logs_are_apart", p_main, 0},
    {"lists every folder for one", "every_log_is_listed_once", p_all, 0},
    {"lists on when it was enough", "every_log_is_listed_once", p_on, 0},
    {"forgets a log in lists", "many_logs_are_listed", p_but, 0},
    {"lists a log twice", "many_logs_are_listed", p_one, 0},
    {"wakes never", "an_append_wakes_who_watches", p_never, 0},
    {"misses what came before the watch", "what_came_before_the_watch", p_missed, 0},
    {"cannot be stopped watching", "a_watch_ends", p_asks, 0},
    {"wakes always", "a_watch_ends", p_always, 0},
    {"does not see a log go", "a_removal_wakes", p_go, 0},
    {"locks nobody out", "a_lock_excludes_the_other_handle", p_nobody, 1},
    {"has no shared lock", "a_lock_excludes_the_other_handle", p_shared, 1},
    {NULL, NULL, NULL, 0}};

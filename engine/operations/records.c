/*
 * records.c: sessions whose records the host keeps: reads them in, and returns new ones.
 *
 * A record is a line of the log without its newline. Records that are read in become a
 * log in memory, which is scanned like any other log: damage by the host's storage is
 * detected like damage on a disk. Each handle has its own log, under a private name,
 * which disappears with the handle. What another handle writes arrives through the host's
 * record callbacks, and only they can say which write came first.
 *
 * Must never write when the records do not end with a whole write: the host then has more
 * records than the engine has seen, and new ones would be appended after those.
 */
#include "session/fold.h"
#include "operations/create.h"
#include "operations/records.h"
#include "store/ram.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void private_place(store_core *st, session_place *out)
{
    pthread_mutex_lock(&st->mutex);
    uint64_t number = st->records_opened++;
    pthread_mutex_unlock(&st->mutex);
    memset(out, 0, sizeof *out);
    snprintf(out->folder, sizeof out->folder, "records");
    snprintf(out->name, sizeof out->name, "%" PRIx64, number);
}

/* Writes the records into a log. */
static sessile_status take_in(store_core *st, const session_place *at,
                              const sessile_slice *records, size_t count,
                              sessile_error *err)
{
    const sessile_backend *table = st->backend.table;
    sessile_status status = SESSILE_OK;
    buf lines;

    buf_init(&lines, &st->alloc);
    for (size_t i = 0; i < count && !status; i++) {
        if (!records[i].size || memchr(records[i].data, '\n', records[i].size))
            status = fail(err, SESSILE_DAMAGED,
                          "record %zu of %zu is not one line: nothing of it was taken in",
                          i + 1, count);
        buf_put(&lines, records[i].data, records[i].size);
        buf_putc(&lines, '\n');
    }
    if (!status && lines.failed)
        status = fail_nomem(err);
    if (!status && lines.size > st->limits.session)
        status = fail(err, SESSILE_LIMIT,
                      "these records have %zu bytes, the limit [session] is %" PRIu64,
                      lines.size, st->limits.session);
    if (!status)
        status = table->create(st->backend.self, at->folder, at->name, lines.data,
                               lines.size, err);
    buf_deinit(&lines);
    return status;
}

/* Checks that the records end with a whole write. */
static sessile_status check_end(session_core *s, size_t count, sessile_error *err)
{
    uint64_t known = log_count(s->log);

    if (log_damage(s->log, NULL) || known == count)
        return SESSILE_OK;
    return session_name_error(
        s,
        fail(err, SESSILE_DAMAGED,
             "of its %zu records the first %" PRIu64
             " are whole writes, and what follows "
             "is none: was it cut, or saved in part? Keep those %" PRIu64
             ", or bring back a copy",
             count, known, known),
        err);
}

sessile_status session_records_open(session_core **out, store_core *st,
                                    const sessile_session_options *options,
                                    const sessile_slice *records, size_t count,
                                    sessile_error *err)
{
    sessile_session_options named = *options;
    char id[UUID_SIZE];
    session_place at;
    sessile_status status;

    *out = NULL;
    if (!st->over_records)
        return fail(err, SESSILE_UNSUPPORTED,
                    "this store keeps its records itself: open one for records");
    private_place(st, &at);
    if (count)
        status = take_in(st, &at, records, count, err);
    else
        status = session_make(st, options, NULL, &at, err, id);
    if (status)
        return status;
    if (!count && !named.id.size)
        named.id = (sessile_slice){id, UUID_SIZE - 1};
    status = session_open_at(out, st, &named, &at, err);
    if (!status && count)
        status = check_end(*out, count, err);
    if (status) {
        session_drop(*out);
        *out = NULL;
        store_ram_unname(&st->backend, at.folder, at.name);
    }
    return status;
}

void session_records_own(store_core *st, const sessile_session_options *named,
                         session_core *s)
{
    session_names names;
    session_place at, own;

    if (!st->over_records || names_from_options(&names, st, named, 0, NULL))
        return;
    names_place(st, &names, at.folder, at.name);
    private_place(st, &own);
    if (s)
        s->place = (session_place *)(void *)mem_dup(s->alloc, &own, sizeof own);
    if (s && s->place)
        store_ram_rename(&st->backend, at.folder, at.name, own.folder, own.name);
    else
        store_ram_unname(&st->backend, at.folder, at.name);
}

sessile_status session_records_locked(session_core *s, uint64_t from, sessile_slice **out,
                                      size_t *count, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    uint64_t known = log_count(s->log);
    sessile_status status;
    sessile_slice *list;
    buf lines;

    status = log_damage(s->log, err);
    if (!status && from > known)
        status = fail(err, SESSILE_INVALID,
                      "there are %" PRIu64 " records, none after number %" PRIu64, known,
                      from);
    if (status || from == known)
        return session_name_error(s, status, err);
    buf_init(&lines, a);
    status =
        log_read_lines(s->log, (sessile_id)from, (sessile_id)(known - 1), &lines, err);
    size_t n = (size_t)(known - from);
    list = status ? NULL : host_alloc(a, n * sizeof *list + lines.size);
    if (list) {
        char *at = (char *)(list + n);
        memcpy(at, lines.data, lines.size);
        for (size_t i = 0; i < n; i++) {
            char *end = memchr(at, '\n', lines.size - (size_t)(at - (char *)(list + n)));
            list[i] = (sessile_slice){at, (size_t)(end - at)};
            *end = 0;
            at = end + 1;
        }
        *out = list;
        *count = n;
    } else if (!status) {
        status = fail_nomem(err);
    }
    buf_deinit(&lines);
    return session_name_error(s, status, err);
}

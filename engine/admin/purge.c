/*
 * purge.c: removes the sessions that expired or were deleted softly.
 *
 * Candidates come from a list. Each is judged again when it is removed, so that a session
 * that was written to after the list is kept.
 */
#include "admin/purge.h"

#include <string.h>

#include "admin/list.h"
#include "base/alloc.h"
#include "base/error.h"
#include "operations/life.h"

static int is_due(const sessile_listed *row, int64_t retention_ms, int64_t now_ms)
{
    return !row->status && (row->life == SESSILE_LIFE_EXPIRED ||
                            (row->life == SESSILE_LIFE_DELETED &&
                             row->deleted_ms <= now_ms - retention_ms));
}

sessile_status session_purge(sessile_store *st, const sessile_purge_options *options,
                             sessile_listed **out, size_t *count, sessile_error *err)
{
    int64_t now_ms = st->os->now_ms(st->os->ud);
    sessile_list_options all;
    sessile_listed *rows;
    size_t n, due = 0;
    sessile_status status;

    if (options->retention_ms < 0)
        return fail(err, SESSILE_INVALID, "retention_ms is negative");
    memset(&all, 0, sizeof all);
    all.agent = options->agent;
    all.lives = 1u << SESSILE_LIFE_EXPIRED | 1u << SESSILE_LIFE_DELETED;
    status = list_sessions(st, &all, &rows, &n, err);
    for (size_t i = 0; !status && i < n; i++) {
        session_names names = {rows[i].id, rows[i].agent, rows[i].user};
        sessile_error why;
        uint64_t bytes;
        if (!is_due(&rows[i], options->retention_ms, now_ms))
            continue;
        error_clear(&why);
        if (!options->dry_run)
            status = session_remove_log(st, &names, rows[i].bytes, &bytes, &why);
        if (!status)
            rows[due++] = rows[i];
        /* Somebody wrote to it, holds it, or was quicker: it is not ours to take. */
        else if (status == SESSILE_CONFLICT || status == SESSILE_NOTFOUND ||
                 status == SESSILE_BUSY)
            status = SESSILE_OK;
        else if (err)
            *err = why;
    }
    if (status) {
        host_free(rows);
        return status;
    }
    *out = rows;
    *count = due;
    return SESSILE_OK;
}

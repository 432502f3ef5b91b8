/*
 * changed.c: which of many logs have grown, with one statement.
 *
 * The server compares, and answers for those alone that are not as their handles know
 * them: of ten thousand that are followed few have grown. It finds them by their ids, and
 * reads no entry. So a row that does not agree with its entries (sql.c) is not noticed
 * here, and a log whose row is as it was keeps the size that `size` returned.
 */
#include "store/postgres/postgres.h"

/* Ids and sizes as the handles know them. */
typedef struct known {
    buf ids, sizes;
} known;

static int known_fill(known *k, sessile_backend_log *const *logs, size_t n,
                      uint64_t *room, const allocator *a)
{
    for (size_t i = 0; i < n; i++)
        room[i] = pg_log_of(logs[i])->id;
    int failed = pg_ints_fill(&k->ids, room, n, a) != 0;
    for (size_t i = 0; i < n; i++) {
        pg_log *log = pg_log_of(logs[i]);
        pthread_mutex_lock(&log->mutex);
        room[i] = log->bytes;
        pthread_mutex_unlock(&log->mutex);
    }
    return pg_ints_fill(&k->sizes, room, n, a) != 0 || failed ? -1 : 0;
}

/* The size of a log whose row has `row` bytes. A standby may lag behind what this handle
 * has seen: then nothing is new. */
static uint64_t size_by_row(pg_log *log, uint64_t row)
{
    pthread_mutex_lock(&log->mutex);
    uint64_t size = row > log->bytes ? row : log->size;
    pthread_mutex_unlock(&log->mutex);
    return size;
}

sessile_status pg_ends(void *self, sessile_backend_log *const *logs, size_t n,
                       uint64_t *bytes, sessile_error *err)
{
    pg_store *ps = self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s = pg_step_of(PG_ENDS);
    pg_results r;
    known k;
    sessile_status status = SESSILE_OK;
    if (known_fill(&k, logs, n, bytes, &ps->alloc) != 0)
        status = fail_nomem(err);
    pg_arg_bytes(&s, k.ids.data, k.ids.size);
    pg_arg_bytes(&s, k.sizes.data, k.sizes.size);
    if (!status)
        status = pg_ask(&call, &s, 1, "which logs have grown", &r, err);
    buf_deinit(&k.ids);
    buf_deinit(&k.sizes);
    if (status)
        return status;
    for (size_t i = 0; i < n; i++)
        bytes[i] = size_by_row(pg_log_of(logs[i]), 0);
    for (int row = 0; row < pg_rows(ps, r.of[0]); row++) {
        uint64_t number = (uint64_t)pg_int(ps, r.of[0], row, 0) - 1;
        if (number < n)
            bytes[number] = pg_null(ps, r.of[0], row, 1)
                                ? SESSILE_LOG_GONE
                                : size_by_row(pg_log_of(logs[number]),
                                              (uint64_t)pg_int(ps, r.of[0], row, 1));
    }
    pg_results_free(ps, &r);
    return SESSILE_OK;
}

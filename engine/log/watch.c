/*
 * watch.c: waits until others append to a log; asks many logs at once whether they did.
 *
 * Decides how often to ask a store that cannot notify. A wait uses a handle of its own,
 * so that other users of the log do not wait for it. Must never read a line nor hold a
 * lock.
 */
#include "log/internal.h"

/* A store is asked so often at first, and after a while without news. */
enum { SOONEST_MS = 5, LATEST_MS = 50 };
/* A file's name may be gone, and its handle does not say so: it is opened again. */
#define POLLED_MS 1000
/* Whoever listens may have lost what it listens to. */
#define LISTENED_MS 10000

static int shorter(int timeout_ms, int most_ms)
{
    return timeout_ms < 0 || timeout_ms > most_ms ? most_ms : timeout_ms;
}

static sessile_status stopped(const char *name, sessile_error *err)
{
    return fail(err, SESSILE_CANCELLED,
                "waiting for what others write to %s was ended by another thread", name);
}

sessile_status log_sleep(const os_table *os, int ms, log_stop stop, void *arg)
{
    while (ms > 0) {
        int slice = ms < OS_SLICE_MS ? ms : OS_SLICE_MS;
        if (stop(arg))
            return SESSILE_CANCELLED;
        os->sleep_ms(os->ud, slice);
        ms -= slice;
    }
    return stop(arg) ? SESSILE_CANCELLED : SESSILE_OK;
}

/* Asks again and again. */
static sessile_status poll(const sessile_backend *table, sessile_backend_log *log,
                           uint64_t bytes, const os_table *os, int timeout_ms,
                           log_stop stop, void *arg, int *changed, sessile_error *err)
{
    const uint64_t begin = os->clock_us(os->ud);
    sessile_status status = SESSILE_OK;
    for (int pause = SOONEST_MS; !status;) {
        uint64_t size, gone_ms;
        int64_t mtime_ms;
        status = table->size(log, &size, &mtime_ms, err);
        if (status)
            break;
        *changed = size != bytes || (table->replaced && table->replaced(log) != 0);
        gone_ms = (os->clock_us(os->ud) - begin) / 1000;
        if (*changed || gone_ms >= (uint64_t)timeout_ms)
            break;
        int left = timeout_ms - (int)gone_ms;
        status = log_sleep(os, pause < left ? pause : left, stop, arg);
        pause = pause * 2 < LATEST_MS ? pause * 2 : LATEST_MS;
    }
    return status;
}

sessile_status log_ends(store *st, log_t *const *logs, size_t n, uint64_t *bytes,
                        const allocator *a, sessile_error *err)
{
    sessile_backend_log **handles = mem_alloc(a, n * sizeof *handles);
    if (!handles)
        return fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        handles[i] = logs[i]->handle;
    sessile_status status = st->table->ends(st->self, handles, n, bytes, err);
    mem_free(a, handles, n * sizeof *handles);
    return status;
}

sessile_status log_look_at_end(log_t *log, uint64_t *bytes, sessile_error *err)
{
    sessile_status status = log_size(log, bytes, err);
    if (status == SESSILE_NOTFOUND || (!status && log_replaced(log))) {
        error_clear(err);
        *bytes = SESSILE_LOG_GONE;
        status = SESSILE_OK;
    }
    return status;
}

int log_has_news(const log_t *log, uint64_t bytes)
{
    return bytes == SESSILE_LOG_GONE || (!log->damage && bytes != log->end.bytes);
}

sessile_status log_watch(store *st, const char *folder, const char *name, uint64_t bytes,
                         const os_table *os, int timeout_ms, log_stop stop, void *arg,
                         int *changed, sessile_error *err)
{
    const sessile_backend *table = st->table;
    sessile_backend_log *log;
    *changed = 0;
    sessile_status status = table->open(st->self, folder, name, &log, err);
    if (status)
        return status;
    if (table->set_stop)
        table->set_stop(log, stop, arg);
    if (table->watch) {
        status = table->watch(log, bytes, shorter(timeout_ms, LISTENED_MS), stop, arg,
                              changed, err);
        if (status == SESSILE_IO) { /* the next read reports what is wrong */
            error_clear(err);
            status = SESSILE_OK;
            *changed = 1;
        }
    } else {
        status = poll(table, log, bytes, os, shorter(timeout_ms, POLLED_MS), stop, arg,
                      changed, err);
    }
    if (status == SESSILE_CANCELLED)
        status = stopped(name, err);
    table->close(log);
    return status;
}

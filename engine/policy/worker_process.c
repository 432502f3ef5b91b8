/*
 * worker_process.c: a worker's process and the socket to it.
 *
 * Owns both. Must never wait longer than a script may run. The child's own CPU time
 * counts, because a loaded machine is not the script's fault; a limit on wall-clock time
 * applies as well. Must never accept a size from the child without a limit.
 */
#include "policy/worker_process.h"

#include <errno.h>

/* Milliseconds beyond the script's own budget, which the worker enforces. */
#define GRACE_MS 50
/* Limit on wall-clock time, for a child that does not run at all. */
#define WALL_FACTOR  8
#define WALL_MORE_MS 2000
/* The length of one wait; after it the clocks are checked. */
#define TICK_MS 20

void frame_begin(buf *out, frame kind)
{
    buf_clear(out);
    wire_put_u32(out, 0);
    wire_put_u8(out, (uint8_t)kind);
}

void frame_end(buf *out)
{
    uint32_t size = (uint32_t)(out->size - 4);
    if (out->failed)
        return;
    if (out->size - 4 > FRAME_MOST) {
        out->failed = 1;
        return;
    }
    for (int i = 0; i < 4; i++)
        out->data[i] = (char)(unsigned char)(size >> (8 * i));
}

/* ------------------------------------------------------------------ life */

sessile_status worker_start(worker **out, const char *path, const os_table *os,
                            const allocator *a, sessile_error *err)
{
    worker *w = mem_zalloc(a, sizeof *w);

    *out = NULL;
    if (!w)
        return fail_nomem(err);
    w->alloc = *a;
    w->os = os;
    w->owner = os->pid(os->ud);
    buf_init(&w->out, &w->alloc);
    buf_init(&w->in, &w->alloc);
    w->fd = os->spawn(os->ud, path, &w->pid);
    if (w->fd < 0) {
        sessile_status status =
            fail_errno(err, errno,
                       "cannot start the policy worker %s: install it, or name it", path);
        mem_free(a, w, sizeof *w);
        return status;
    }
    *out = w;
    return SESSILE_OK;
}

static void end_process(worker *w)
{
    if (w->fd >= 0) {
        if (w->os->pid(w->os->ud) == w->owner) /* a fork of the host owns nothing */
            w->os->kill(w->os->ud, w->pid);
        w->os->close(w->os->ud, w->fd);
        w->fd = -1;
    }
}

void worker_stop(worker *w)
{
    allocator a;

    if (!w)
        return;
    a = w->alloc;
    end_process(w);
    policy_release(w->policy);
    buf_deinit(&w->out);
    buf_deinit(&w->in);
    mem_free(&a, w, sizeof *w);
}

int worker_is_dead(worker *w)
{
    char byte;
    /* An idle worker sends nothing: what can be read is its end, or an invalid frame. */
    if (w->fd >= 0 &&
        (w->os->receive(w->os->ud, w->fd, &byte, 1, 0) >= 0 || errno != EAGAIN))
        end_process(w);
    return w->fd < 0;
}

sessile_status worker_lost(worker *w, const char *why, sessile_error *err)
{
    end_process(w);
    return fail(err, SESSILE_POLICY, "the policy's process %s: it was ended", why);
}

/* ------------------------------------------------------------------ the socket */

typedef struct deadline {
    uint64_t wall_us;
} deadline;

static deadline deadline_of(const worker *w)
{
    uint64_t now = w->os->clock_us(w->os->ud);
    deadline d = {now + w->cpu_limit_us * WALL_FACTOR + WALL_MORE_MS * UINT64_C(1000)};
    return d;
}

/* Why its time is over; NULL: it is not. */
static const char *overrun(worker *w, const deadline *d)
{
    uint64_t cpu = w->os->process_cpu_us(w->os->ud, w->pid);
    if (cpu > w->cpu_from &&
        w->cpu_us + (cpu - w->cpu_from) > w->cpu_limit_us + GRACE_MS * UINT64_C(1000))
        return "took too much time";
    return w->os->clock_us(w->os->ud) > d->wall_us ? "did not answer in time" : NULL;
}

static sessile_status stop_late(worker *w, const char *why, sessile_error *err)
{
    w->overran = 1;
    return worker_lost(w, why, err);
}

sessile_status worker_send(worker *w, sessile_error *err)
{
    deadline d = deadline_of(w);
    size_t sent = 0;

    frame_end(&w->out);
    if (w->out.failed)
        return fail_nomem(err);
    while (sent < w->out.size) {
        int64_t n = w->os->send(w->os->ud, w->fd, w->out.data + sent, w->out.size - sent,
                                TICK_MS);
        if (n > 0) {
            sent += (size_t)n;
        } else if (n == 0 || errno != EAGAIN) {
            return worker_lost(w, "went away", err);
        } else {
            const char *why = overrun(w, &d);
            if (why)
                return stop_late(w, why, err);
        }
    }
    return SESSILE_OK;
}

/* Appends `size` received bytes to w->in. */
static sessile_status receive(worker *w, size_t size, const deadline *d,
                              sessile_error *err)
{
    if (buf_reserve(&w->in, size))
        return fail_nomem(err);
    while (size > 0) {
        int64_t n =
            w->os->receive(w->os->ud, w->fd, w->in.data + w->in.size, size, TICK_MS);
        if (n > 0) {
            w->in.size += (size_t)n;
            size -= (size_t)n;
        } else if (n == 0 || errno != EAGAIN) {
            return worker_lost(w, "went away", err);
        } else {
            const char *why = overrun(w, d);
            if (why)
                return stop_late(w, why, err);
        }
    }
    return SESSILE_OK;
}

sessile_status worker_receive(worker *w, frame *kind, wire *body, sessile_error *err)
{
    deadline d = deadline_of(w);
    sessile_status status;
    uint32_t size;
    wire head;

    buf_clear(&w->in);
    status = receive(w, 5, &d, err);
    if (status)
        return status;
    wire_init(&head, w->in.data, 5);
    size = wire_u32(&head);
    *kind = (frame)wire_u8(&head);
    if (size < 1 || size - 1 > w->result)
        return worker_lost(w, "sent too much", err);
    buf_clear(&w->in);
    status = receive(w, size - 1, &d, err);
    wire_init(body, w->in.data, w->in.size);
    return status;
}

/* queued.c: see queued.h. */
#include "rpc/queued.h"

#include <stddef.h>

#include "rpc/conn.h"

enum { LOOPS_MOST = 64 };

const char queued_refusal[] =
    "the server holds as many replies as it may that were not read yet: read what was "
    "asked for, or ask for less, and ask again";

struct rpc_queued {
    atomic_uint references; /* of mailboxes, and of whoever opened it */
    allocator alloc;
    size_t most;
    atomic_size_t bytes;
    pthread_mutex_t lock; /* of what follows; it comes before that of a mailbox */
    rpc_loop *loops[LOOPS_MOST];
    size_t count;
};

sessile_status rpc_queued_open(rpc_queued **out, size_t most, const allocator *a,
                               sessile_error *err)
{
    rpc_queued *q = mem_zalloc(a, sizeof *q);
    *out = q;
    if (!q)
        return fail_nomem(err);
    atomic_init(&q->references, 1);
    atomic_init(&q->bytes, 0);
    q->alloc = *a;
    q->most = most;
    pthread_mutex_init(&q->lock, NULL);
    return SESSILE_OK;
}

void queued_release(rpc_queued *q)
{
    allocator a;
    if (!q || atomic_fetch_sub(&q->references, 1) != 1)
        return;
    a = q->alloc;
    pthread_mutex_destroy(&q->lock);
    mem_free(&a, q, sizeof *q);
}

void rpc_queued_drop(rpc_queued *q)
{
    queued_release(q);
}

size_t rpc_queued_bytes(const rpc_queued *q)
{
    return atomic_load(&q->bytes);
}

/* ---------------------------------------------------------------------- counting */

int queued_take(mailbox *box, size_t size)
{
    rpc_queued *q = box->queued;
    size_t bytes = q ? atomic_load(&q->bytes) : 0;
    if (!q)
        return 1;
    do {
        if (size > QUEUED_SMALL && (bytes >= q->most || size > q->most - bytes))
            return 0;
    } while (!atomic_compare_exchange_weak(&q->bytes, &bytes, bytes + size));
    atomic_fetch_add(&box->queued_bytes, size);
    return 1;
}

void queued_remove(mailbox *box, size_t size)
{
    if (!box->queued)
        return;
    atomic_fetch_sub(&box->queued_bytes, size);
    atomic_fetch_sub(&box->queued->bytes, size);
}

int queued_has_room(const mailbox *box, size_t size)
{
    const rpc_queued *q = box->queued;
    size_t bytes = q ? atomic_load(&q->bytes) : 0;
    return !q || size <= QUEUED_SMALL || (bytes < q->most && size <= q->most - bytes);
}

/* ---------------------------------------------------------------------- dropping */

/* The connection of a loop that holds most; NULL: none holds anything. */
static conn *largest(rpc_loop *loop)
{
    conn *found = NULL;
    size_t most = 0;
    for (conn *c = loop->conns.all; c; c = c->next) {
        size_t held = c->owner.listener && c->speaks ? c->speaks->held(c) : 0;
        if (held > most) {
            most = held;
            found = c;
        }
    }
    return found;
}

/* On the loop. It drops somewhat more than it has to, so that it is not asked for each
 * reply that follows. */
static void shed(mail *m)
{
    rpc_loop *loop = (rpc_loop *)(void *)((char *)m - offsetof(rpc_loop, shed.mail));
    const rpc_queued *q = loop->box->queued;
    const size_t enough = q->most / 8 * 5;
    conn *c;

    pthread_mutex_lock(&loop->box->lock);
    loop->shed.posted = 0;
    pthread_mutex_unlock(&loop->box->lock);
    while (atomic_load(&q->bytes) > enough && (c = largest(loop)) && c->speaks->shed(c))
        ;
}

void queued_press(const mailbox *box)
{
    rpc_queued *q = box->queued;
    rpc_loop *loop = NULL;

    if (!q || atomic_load(&q->bytes) <= q->most / 4 * 3)
        return;
    pthread_mutex_lock(&q->lock);
    for (size_t i = 0; i < q->count; i++)
        if (!loop || atomic_load(&q->loops[i]->box->queued_bytes) >
                         atomic_load(&loop->box->queued_bytes))
            loop = q->loops[i];
    if (loop) {
        pthread_mutex_lock(&loop->box->lock);
        if (!loop->shed.posted) {
            loop->shed.posted = 1;
            loop->shed.mail.deliver = shed;
            mailbox_put(loop->box, &loop->shed.mail);
        }
        mailbox_unlock(loop->box);
    }
    pthread_mutex_unlock(&q->lock);
}

/* ---------------------------------------------------------------------- loops */

void rpc_loop_count(rpc_loop *loop, rpc_queued *q)
{
    pthread_mutex_lock(&q->lock);
    if (!loop->box->queued && q->count < LOOPS_MOST) {
        atomic_fetch_add(&q->references, 1);
        loop->box->queued = q;
        q->loops[q->count++] = loop;
    }
    pthread_mutex_unlock(&q->lock);
}

void queued_leave(rpc_loop *loop)
{
    rpc_queued *q = loop->box->queued;
    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    for (size_t i = 0; i < q->count; i++)
        if (q->loops[i] == loop)
            q->loops[i] = q->loops[--q->count];
    pthread_mutex_unlock(&q->lock);
}

/*
 * pieces.c: replies that are lists. See pieces.h.
 *
 * A call sends without looking back until more than 1 MiB waits for its client. Then it
 * enters the list of those that wait, under the mutex, and its worker returns; `drained`
 * or `gone` take it out of the list, under the same mutex, and give it to the pool. Both
 * come on the loop, and later than the reason to wait was looked at: none is missed.
 *
 * Reading rows again is slow for a long list. Only clients that read slowly pay for it,
 * and only when there are many of them.
 */
#include "service/pieces.h"

#include "base/alloc.h"

enum { PIECE = 256 * 1024 };

typedef struct list_reply {
    job job;
    call *call;
    const list_kind *kind;
    void *what;
    char *rows; /* NULL: they were dropped */
    size_t count, sent;
    /* under the mutex of all */
    struct list_reply *next, *before; /* of those that wait */
    int waits;
    int works;   /* a worker has it, and nobody else uses its session */
    size_t kept; /* bytes of rows that count among the kept ones */
} list_reply;

struct pieces {
    service *server;
    size_t most;
    pthread_mutex_t mutex; /* all that follows */
    list_reply *first;
    size_t kept;
    int ending;
};

/* ---------------------------------------------------------------------- sending */

static const char *row_at(const list_reply *l, size_t i)
{
    return l->rows + i * l->kind->row;
}

/* Rows of the next piece: at least one, unless there are none. */
static size_t rows_that_fit(const list_reply *l)
{
    size_t n = 0, bytes = 0;
    for (; l->sent + n < l->count; n++) {
        bytes += l->kind->bytes(row_at(l, l->sent + n));
        if (n > 0 && bytes > PIECE)
            break;
    }
    return n;
}

/* The memory of one piece is used again for the next. */
static sessile_status send_piece(list_reply *l, sessile_error *err)
{
    call *c = l->call;
    const size_t n = rows_that_fit(l);
    arena all = c->arena;
    arena_init(&c->arena, all.alloc);
    const ProtobufCMessage *message =
        l->kind->piece(c, l->what, row_at(l, l->sent), n, l->sent + n == l->count);
    sessile_status status = message ? call_reply(c, message, err) : fail_nomem(err);
    arena_free(&c->arena);
    c->arena = all;
    l->sent += n;
    return status;
}

static sessile_status read_again(list_reply *l, sessile_error *err)
{
    void *rows = NULL;
    size_t count = 0;
    if (rpc_call_over(l->call->rpc))
        return fail(err, SESSILE_CANCELLED, "nobody waits for the reply");
    sessile_status status = l->kind->read(l->call, l->what, &rows, &count, err);
    if (!status && count != l->count) {
        sessile_free(rows);
        return fail(err, SESSILE_CONFLICT,
                    "the session has changed while its list was read: read it again");
    }
    if (!status)
        l->rows = rows;
    return status;
}

/* ---------------------------------------------------------------------- waiting */

/* Under the mutex. */
static void enter(pieces *p, list_reply *l)
{
    l->waits = 1;
    l->before = NULL;
    l->next = p->first;
    if (p->first)
        p->first->before = l;
    p->first = l;
}

/* Gives it to a worker; under the mutex. */
static void wake(pieces *p, list_reply *l)
{
    *(l->before ? &l->before->next : &p->first) = l->next;
    if (l->next)
        l->next->before = l->before;
    l->waits = 0;
    pool_put(p->server->pool, &l->job);
}

/* Keeps the rows of one that waits, or returns them to be freed; under the mutex. */
static void *keep_rows(pieces *p, list_reply *l)
{
    void *drop = NULL;
    const size_t size = host_size(l->rows);
    if (!l->kept && size <= p->most - p->kept) {
        l->kept = size;
        p->kept += size;
    } else if (!l->kept) {
        drop = l->rows;
        l->rows = NULL;
    }
    return drop;
}

/* *waits 1: the list is another worker's from now on, or will be. */
static sessile_status begin_to_wait(list_reply *l, int *waits, sessile_error *err)
{
    pieces *p = l->call->server->pieces;
    sessile_status status = SESSILE_OK;
    void *drop = NULL;
    *waits = 0;
    pthread_mutex_lock(&p->mutex);
    if (p->ending)
        status = fail(err, SESSILE_BUSY, "the server is ending: ask another one");
    else if (rpc_call_over(l->call->rpc))
        status = fail(err, SESSILE_CANCELLED, "nobody waits for the reply");
    else if (call_is_full(l->call))
        *waits = 1;
    if (*waits) {
        l->works = 0;
        drop = keep_rows(p, l);
        enter(p, l);
    }
    pthread_mutex_unlock(&p->mutex);
    sessile_free(drop);
    return status;
}

static void drop_rows(list_reply *l)
{
    pieces *p = l->call->server->pieces;
    pthread_mutex_lock(&p->mutex);
    p->kept -= l->kept;
    l->kept = 0;
    pthread_mutex_unlock(&p->mutex);
    sessile_free(l->rows);
    l->rows = NULL;
}

/* Sends until it waits, or is done, which ends the call. */
static void go_on(list_reply *l)
{
    sessile_error err;
    sessile_status status = SESSILE_OK;
    int waits = 0;
    error_clear(&err);
    while (!status && l->sent < l->count) {
        if (!l->rows)
            status = read_again(l, &err);
        while (!status && l->sent < l->count && !call_is_full(l->call))
            status = send_piece(l, &err);
        if (!status && l->sent < l->count)
            status = begin_to_wait(l, &waits, &err);
        if (waits)
            return; /* it may be gone by now */
    }
    drop_rows(l);
    call_leave(l->call, status, &err);
}

static void run_job(job *j)
{
    list_reply *l = (list_reply *)j;
    pieces *p = l->call->server->pieces;
    pthread_mutex_lock(&p->mutex);
    l->works = 1;
    pthread_mutex_unlock(&p->mutex);
    go_on(l);
}

static void on_drained(call *c)
{
    pieces *p = c->server->pieces;
    list_reply *l = c->own;
    pthread_mutex_lock(&p->mutex);
    if (l->waits)
        wake(p, l);
    pthread_mutex_unlock(&p->mutex);
}

/* While no worker has it, because it waits for its client or in the queue of its session,
 * an interrupt would meet whoever uses the session. */
static void on_gone(call *c)
{
    pieces *p = c->server->pieces;
    const list_reply *l = c->own;
    pthread_mutex_lock(&p->mutex);
    const int works = l->works;
    pthread_mutex_unlock(&p->mutex);
    if (works) {
        pthread_mutex_lock(&c->mutex);
        sessile_interrupt(c->session);
        pthread_mutex_unlock(&c->mutex);
    }
    on_drained(c);
}

static void free_list(call *c)
{
    mem_free(&c->server->alloc, c->own, sizeof(list_reply));
}

static const call_stream list_stream = {NULL, NULL, on_drained, on_gone, free_list};

/* ---------------------------------------------------------------------- the reply */

sessile_status reply_list(call *c, const list_kind *kind, void *what, sessile_error *err)
{
    list_reply all = {.call = c, .kind = kind, .what = what, .job.run = run_job};
    void *rows = NULL;
    sessile_status status = kind->read(c, what, &rows, &all.count, err);
    if (status)
        return status;
    all.rows = rows;
    do
        status = send_piece(&all, err);
    while (!status && all.sent < all.count && !call_is_full(c));
    list_reply *l = NULL;
    if (!status && all.sent < all.count) {
        l = mem_alloc(&c->server->alloc, sizeof *l);
        status = l ? SESSILE_OK : fail_nomem(err);
    }
    if (!l) {
        sessile_free(rows);
        return status;
    }
    *l = all;
    l->works = 1;
    l->job.lane = c->job.lane;
    call_stay(c, &list_stream, l);
    go_on(l);
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- as a whole */

sessile_status pieces_open(pieces **out, service *s, size_t kept_most, sessile_error *err)
{
    pieces *p = mem_zalloc(&s->alloc, sizeof *p);
    *out = p;
    if (!p)
        return fail_nomem(err);
    p->server = s;
    p->most = kept_most;
    pthread_mutex_init(&p->mutex, NULL);
    return SESSILE_OK;
}

void pieces_end(pieces *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    p->ending = 1;
    while (p->first)
        wake(p, p->first);
    pthread_mutex_unlock(&p->mutex);
}

void pieces_close(pieces *p)
{
    if (!p)
        return;
    pthread_mutex_destroy(&p->mutex);
    mem_free(&p->server->alloc, p, sizeof *p);
}

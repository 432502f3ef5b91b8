/*
 * pop.c: takes the newest messages off the conversation, as off a stack.
 *
 * The head moves to before them in one write, so what is returned is what was taken,
 * whoever else writes. Nothing is removed: the log keeps them as a branch. Reading the
 * messages and branching in two calls could leave behind a message that came in between.
 */
#include "operations/pop.h"

#include "operations/messages.h"
#include "session/life.h"
#include "session/write.h"

typedef struct popping {
    size_t n;
    sessile_id base; /* SESSILE_NO_ID: what the handle last showed */
    sessile_message *rows;
    size_t count;
} popping;

/* session_build: the messages are read first, since a write that cannot say what it took
 * must not take it. */
static sessile_status build_pop(void *arg, session_core *s, batch *b, sessile_error *err)
{
    popping *p = arg;
    sessile_id base = p->base == SESSILE_NO_ID ? s->tree.base : p->base;
    sessile_id *path = NULL;
    size_t length = 0;
    sessile_status status = session_check_running_locked(s, err);

    host_free(p->rows); /* of an attempt before */
    p->rows = NULL;
    if (!status)
        status = session_check_base_locked(s, base, 1, err);
    if (!status)
        status = session_path_locked(s, s->tree.head, &path, &length, err);
    if (status)
        return status;
    p->count = p->n < length ? p->n : length;
    const sessile_id *first = path ? path + (length - p->count) : NULL;
    status = session_message_rows_locked(s, first, p->count, &p->rows, err);
    if (!status && p->count)
        batch_move_head(b, s->tree.nodes[*first].parent, s->tree.head);
    else if (!status)
        s->tree.base = s->tree.head;
    if (path)
        mem_free(&s->store->alloc, path, length * sizeof *path);
    return status;
}

sessile_status session_pop(session_core *s, size_t n, sessile_id base,
                           sessile_message **out, size_t *count, sessile_error *err)
{
    popping p = {.n = n, .base = base};
    sessile_status status = session_write(s, build_pop, &p, NULL, err);

    if (status) {
        host_free(p.rows);
        return status;
    }
    *out = p.rows;
    *count = p.count;
    return SESSILE_OK;
}

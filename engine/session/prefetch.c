/*
 * prefetch.c: the messages of a context, read in pieces.
 *
 * Owns which entries are read together: neighbours in the log that a list names one
 * after the other. For a file that saves system calls; for a database it saves queries.
 * Must never change what a message is: it says what comes next and leaves the reading to
 * session_message_locked().
 */
#include "session/read.h"
#include "session/tree.h"
#include "session/handle.h"

/* A gap of at most this number of entries is read through: one read instead of two. */
enum { GAP = 16 };

void prefetch_begin(prefetch *a, session_core *s, const context *c)
{
    *a = (prefetch){.s = s, .c = c, .first = 1, .last = 0};
}

/* The run of the list that begins at item i: its blocks of the index are there when this
 * is OK, and the log knows what will be read. */
static sessile_status expect_run(prefetch *a, size_t i, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    a->first = a->last = a->c->items[i].key.entry;
    for (a->next = i + 1; a->next < a->c->count; a->next++) {
        sessile_id id = a->c->items[a->next].key.entry;
        if (id < a->last || id - a->last > GAP)
            break;
        a->last = id;
    }
    for (uint64_t id = a->first; !status && id <= a->last;
         id = (id / LOG_BLOCK + 1) * LOG_BLOCK)
        status = session_load_locked(a->s, (sessile_id)id, err);
    if (!status && a->first < a->last)
        log_prefetch(a->s->log, a->first, a->last);
    return status;
}

sessile_status prefetch_message(prefetch *a, sessile_key key, buf *out,
                                sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (key.entry < a->first || key.entry > a->last) {
        size_t i = a->next;
        while (i < a->c->count && a->c->items[i].key.entry != key.entry)
            i++;
        /* what is not to come (an answer that was moved up) is read by itself */
        if (i < a->c->count)
            status = expect_run(a, i, err);
    }
    return status ? status : session_message_locked(a->s, key, out, err);
}

void prefetch_end(prefetch *a)
{
    log_prefetch_end(a->s->log);
}

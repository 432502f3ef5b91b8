/*
 * load.c: loads nodes and entries that are only in the index and the log.
 *
 * A node must be loaded before it is read. The header, the head and everything that this
 * handle has folded are always in memory; other nodes are loaded by blocks. A block that
 * cannot be loaded is not damage of the log: the log is then folded again from its lines
 * (reload.c), once, and from then on all nodes are in memory.
 */
#include "session/fold.h"

sessile_status session_load_locked(session_core *s, sessile_id id, sessile_error *err)
{
    sessile_status status = fold_load(s, id, err);

    return status && s->index.failed ? session_reload_locked(s, err) : status;
}

sessile_status session_load_path_locked(session_core *s, sessile_id id, sessile_id low,
                                        sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (id >= s->tree.node_count)
        return SESSILE_OK;
    while (!status && s->index.absent_count && id > low) {
        status = session_load_locked(s, id, err);
        if (!status)
            id = s->tree.nodes[id].parent;
    }
    return status;
}

/* ------------------------------------------------------------------ reading */

static sessile_status reach_range(session_core *s, sessile_id first, sessile_id last,
                                  sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    /* The header's node is always there; where its line ends is its block's to say. */
    first = first ? first : 1;
    last = last ? last : 1;
    for (uint64_t id = first; !status && s->index.absent_count && id <= last;
         id = (id / LOG_BLOCK + 1) * LOG_BLOCK)
        status = session_load_locked(s, (sessile_id)id, err);
    return status;
}

sessile_status session_load_all_locked(session_core *s, sessile_error *err)
{
    return s->index.absent_count
               ? reach_range(s, 1, (sessile_id)(s->tree.node_count - 1), err)
               : SESSILE_OK;
}

/* How often another log may take the name while one entry is read. */
#define TRIES 4

/* 1 when what was read as damaged may only have been looked for at a wrong place, and the
 * log was folded again to know better; or when another log has taken its name, which is
 * open now. */
static int knows_better(session_core *s, sessile_status status, sessile_id id)
{
    if (status == SESSILE_NOTFOUND && log_replaced(s->log))
        return session_reload_locked(s, NULL) == SESSILE_OK;
    if (status != SESSILE_DAMAGED || !s->index.restored ||
        id / LOG_BLOCK >= s->index.absent_blocks)
        return 0;
    s->index.restored = 0; /* once */
    return session_reload_locked(s, NULL) == SESSILE_OK;
}

sessile_status session_tag_locked(session_core *s, sessile_id id,
                                  unsigned char tag[VAULT_TAG], sessile_error *err)
{
    sessile_status status = session_check_usable(s, err);

    if (!status)
        status = reach_range(s, id, id, err);
    if (status)
        return status;
    status = log_tag(s->log, id, tag, err);
    for (int i = 0; status && i < TRIES && knows_better(s, status, id); i++)
        status = log_tag(s->log, id, tag, err);
    return status;
}

sessile_status session_text_locked(session_core *s, sessile_id id, buf *out,
                                   sessile_error *err)
{
    size_t was = out->size;
    sessile_status status = session_check_usable(s, err);

    if (!status)
        status = reach_range(s, id, id, err);
    if (status)
        return status;
    status = log_read(s->log, id, out, err);
    for (int i = 0; status && i < TRIES && knows_better(s, status, id); i++) {
        out->size = was;
        status = log_read(s->log, id, out, err);
    }
    return status;
}

/* What is shown, and how far that has come. */
typedef struct showing {
    log_visit visit;
    void *arg;
    sessile_id next;
    int refused; /* by whom it is shown to */
} showing;

static sessile_status visit_range(void *arg, sessile_id id, const char *text, size_t size,
                                  sessile_error *err)
{
    showing *w = arg;
    sessile_status status = w->visit(w->arg, id, text, size, err);

    w->next = id + 1;
    w->refused = status != SESSILE_OK;
    return status;
}

sessile_status session_texts_locked(session_core *s, sessile_id first, sessile_id last,
                                    log_visit visit, void *arg, sessile_error *err)
{
    sessile_status status = session_check_usable(s, err);

    showing w = {visit, arg, first, 0};

    if (!status)
        status = reach_range(s, first, last, err);
    if (status)
        return status;
    status = log_read_range(s->log, first, last, visit_range, &w, err);
    for (int i = 0; status == SESSILE_NOTFOUND && !w.refused && w.next <= last &&
                    i < TRIES && knows_better(s, status, w.next);
         i++)
        status = log_read_range(s->log, w.next, last, visit_range, &w, err);
    return status;
}

sessile_status session_read_entry(session_core *s, sessile_id id, buf *text, entry *out,
                                  sessile_error *err)
{
    sessile_status status;

    buf_clear(text);
    status = session_text_locked(s, id, text, err);
    if (status)
        return session_name_error(s, status, err);
    status = entry_read(out, text->data, text->size, err);
    if (status)
        return session_fail_damaged(s, id, err, "it cannot be read");
    return SESSILE_OK;
}

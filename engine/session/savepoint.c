/*
 * savepoint.c: the fold returns to the state before entries that the log refused.
 *
 * Entries of our own are folded before they are written, after a savepoint to which the
 * fold returns when the log refuses them. Rejected: folding after the write, which needs
 * an answer to "written, but there is no memory to know it".
 */
#include "session/fold.h"

#include <string.h>

void fold_savepoint_set(fold *f, fold_savepoint *m)
{
    const session_core *s = f->s;

    m->node_count = s->tree.node_count;
    m->blocks_taken = s->index.blocks_taken;
    m->link_count = s->tree.link_count;
    m->item_count = s->context.at_head.count;
    m->item_link_count = s->context.at_head.link_count;
    m->upto = s->context.at_head.upto;
    m->fact_count = s->fold.facts.count;
    m->fact_names = s->fold.facts.names.size;
    m->head = s->tree.head;
    m->usage = s->fold.usage;
    m->title = s->fold.title;
    m->title_size = s->fold.title_size;
    m->written_ms = s->fold.written_ms;
    m->said_ms = s->fold.said_ms;
    m->begun_ms = s->fold.begun_ms;
    memcpy(m->model, s->counting.model, sizeof m->model);
    m->last_refusal = s->refusals.last;
    m->last_fallback_refusal = s->refusals.last_fallback;
    f->keep_title = s->fold.title;
}

void fold_savepoint_release(fold *f, const fold_savepoint *m)
{
    if (m->title && f->s->fold.title != m->title)
        mem_free(f->s->alloc, m->title, m->title_size + 1);
    f->keep_title = NULL;
}

void fold_savepoint_rewind(fold *f, const fold_savepoint *m)
{
    session_core *s = f->s;

    s->tree.node_count = m->node_count;
    child_links_cut(s);
    fold_snapshots_cut(s, s->tree.node_count / LOG_BLOCK);
    /* The links of blocks that came meanwhile stand behind the mark: all stay. */
    if (s->index.blocks_taken == m->blocks_taken)
        s->tree.link_count = m->link_count;
    s->context.at_head.count = m->item_count;
    s->context.at_head.link_count = m->item_link_count;
    s->context.at_head.upto = m->upto;
    meter_forget(s);
    if (s->fold.facts.count != m->fact_count)
        s->context.stale = 1;
    facts_cut(&s->fold.facts, m->fact_count, m->fact_names);
    s->tree.head = m->head;
    s->fold.usage = m->usage;
    if (s->fold.title && s->fold.title != m->title)
        mem_free(s->alloc, s->fold.title, s->fold.title_size + 1);
    s->fold.title = m->title;
    s->fold.title_size = m->title_size;
    s->fold.written_ms = m->written_ms;
    s->fold.said_ms = m->said_ms;
    s->fold.begun_ms = m->begun_ms;
    fold_model(s, m->model);
    s->refusals.last = m->last_refusal;
    s->refusals.last_fallback = m->last_fallback_refusal;
    f->keep_title = NULL;
}

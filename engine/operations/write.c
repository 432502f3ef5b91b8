/*
 * write.c: messages and custom entries that belong together, as one commit.
 *
 * A program that keeps facts of its own beside the conversation, such as the state of a
 * step, needs both or neither in the log. Each text is checked and screened before the
 * log is locked.
 */
#include "operations/write.h"

#include <string.h>

#include "operations/append.h"
#include "session/life.h"

/* An entry on its way: its checked text, and what is known of a message. */
typedef struct part {
    buf text;
    message columns;
    token_count tokens;
    entry_source source; /* of a custom entry */
} part;

typedef struct writing {
    const sessile_write_entry *entries;
    part *parts;
    size_t count, messages;
    sessile_id base; /* SESSILE_NO_ID: none was given */
    write_labels labels;
    sessile_id first;
} writing;

static sessile_status check_base(const writing *w, session_core *s, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (w->messages)
        status = session_check_running_locked(s, err);
    if (!status && w->base != SESSILE_NO_ID)
        status = session_check_base_locked(s, w->base, 1, err);
    else if (!status && w->messages)
        status = session_check_base_locked(s, s->tree.base, 0, err);
    return status;
}

/* session_build: a custom entry is about what the head is there. */
static sessile_status build_entries(void *arg, session_core *s, batch *b,
                                    sessile_error *err)
{
    writing *w = arg;
    sessile_id head = s->tree.head;
    sessile_status status = check_base(w, s, err);

    if (status)
        return status;
    w->first = batch_next(b);
    for (size_t i = 0; i < w->count; i++) {
        part *p = &w->parts[i];
        if (w->entries[i].custom)
            batch_put(b, head, ENTRY_CUSTOM, p->source, p->text.data, p->text.size);
        else
            head = batch_message(b, head, p->text.data, p->text.size, &p->columns,
                                 p->tokens);
    }
    for (size_t i = 0; i < w->count; i++)
        write_labels_put(&w->labels, b, i, w->first + (sessile_id)i);
    return SESSILE_OK;
}

static sessile_status check_entries(writing *w, session_core *s, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    for (size_t i = 0; !status && i < w->count; i++) {
        const sessile_write_entry *e = &w->entries[i];
        part *p = &w->parts[i];
        if (e->custom) {
            p->source =
                e->source ? entry_source_of(e->source, strlen(e->source)) : SOURCE_HOST;
            status =
                session_check_custom(s, e->json, p->source, &p->text, &w->labels, i, err);
        } else {
            w->messages++;
            status = session_check_message(s, e->json, &p->text, &p->columns, &p->tokens,
                                           &w->labels, i, err);
        }
        if (status && w->count > 1)
            fail_prefix(err, "entry %zu", i + 1);
    }
    return status;
}

sessile_status session_write_entries(session_core *s, const sessile_write_entry *entries,
                                     size_t count, sessile_id base, sessile_id *first,
                                     sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    writing w = {.entries = entries, .count = count, .base = base};
    sessile_status status;

    if (count > SIZE_MAX / sizeof *w.parts)
        return fail_nomem(err);
    w.parts = mem_zalloc(a, count * sizeof *w.parts);
    if (!w.parts)
        return fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        buf_init(&w.parts[i].text, a);
    status = check_entries(&w, s, err);
    if (!status)
        status = session_write(s, build_entries, &w, &(session_writing){.known = 1}, err);
    if (!status)
        *first = w.first;
    for (size_t i = 0; i < count; i++)
        buf_deinit(&w.parts[i].text);
    write_labels_deinit(&w.labels, a);
    mem_free(a, w.parts, count * sizeof *w.parts);
    return status;
}

/*
 * recall_screen.c: what is recalled meets the rules for messages.
 *
 * An entry that is refused is left out: one bad entry must not keep the others from being
 * recalled. The text of an entry never changes, so what is said of it here holds when the
 * message is built.
 */
#include "operations/recall_screen.h"

void recall_screened_deinit(recall_screened *r, const allocator *a)
{
    write_labels_deinit(&r->labels, a);
    buf_wipe(&r->text);
}

static sessile_status screen_row(recall_screened *r, struct recall_value *of,
                                 const store_core *st, const sessile_memory_row *row,
                                 sessile_error *err)
{
    sessile_screen_item item = {.kind = SESSILE_SCREEN_MESSAGE,
                                .source = memory_screen_source(row->source),
                                .role = SESSILE_USER,
                                .key = row->key,
                                .text = row->value};
    sessile_status status;
    buf left;

    buf_init(&left, &st->alloc);
    status = write_screen(st, &item, &left, &r->labels, 0, err);
    if (status == SESSILE_DENIED) {
        error_clear(err);
        status = SESSILE_OK;
        of->refused = 1;
    }
    of->at = r->text.size;
    of->size = left.size;
    buf_put(&r->text, left.data, left.size);
    buf_wipe(&left);
    return !status && r->text.failed ? fail_nomem(err) : status;
}

sessile_status recall_screen(recall_screened *r, const store_core *st,
                             memory_core *const *memories,
                             const sessile_recall_item *items, size_t count,
                             sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (!write_is_screened(st, SESSILE_SCREEN_MESSAGE))
        return SESSILE_OK;
    for (size_t i = 0; !status && i < count; i++) {
        sessile_memory_row *row = NULL;
        sessile_status got =
            memory_get(memories[items[i].memory], items[i].id, &row, NULL);
        if (got) { /* who is not there is reported by who builds the message */
            r->items[i].refused = got != SESSILE_NOTFOUND;
            continue;
        }
        status = screen_row(r, &r->items[i], st, row, err);
        host_free(row);
    }
    return status;
}

int recall_is_refused(const recall_screened *r, size_t item)
{
    return r->items[item].refused;
}

void recall_replace(const recall_screened *r, size_t item, sessile_slice *value)
{
    if (r->items[item].size)
        *value = (sessile_slice){r->text.data + r->items[item].at, r->items[item].size};
}

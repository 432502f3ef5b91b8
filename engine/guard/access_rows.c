/* access_rows.c: rows of the fold, copied for the host. */
#include "guard/access_rows.h"

#include <string.h>

#include "guard/guard.h"

#define FIELD(row, at, type) (*(type *)(void *)((char *)(row) + (at)))

static void move_text(sessile_slice *s, char **at)
{
    if (s->size)
        memcpy(*at, s->data, s->size);
    s->data = *at;
    *at += s->size;
    *(*at)++ = 0;
}

/* Copies of rows in one block for the host. */
static sessile_status give(const allocator *a, const rows_shape *sh,
                           const void *const *rows, size_t n, void **out,
                           sessile_error *err)
{
    size_t lists = 0, texts = 0;
    sessile_slice *list;
    char *block, *at;

    for (size_t i = 0; i < n; i++) {
        const void *row = rows[i];
        for (size_t k = 0; k < sh->text_count; k++)
            texts += FIELD(row, sh->texts[k], const sessile_slice).size + 1;
        for (size_t k = 0; k < sh->list_count; k++) {
            const sessile_slice *from = FIELD(row, sh->lists[k], sessile_slice *const);
            size_t count = FIELD(row, sh->counts[k], const size_t);
            lists += count;
            for (size_t j = 0; j < count; j++)
                texts += from[j].size + 1;
        }
    }
    block = host_alloc(a, n * sh->size + lists * sizeof *list + texts + 1);
    if (!block)
        return fail_nomem(err);
    list = (sessile_slice *)(void *)(block + n * sh->size);
    at = (char *)(list + lists);
    for (size_t i = 0; i < n; i++) {
        char *row = block + i * sh->size;
        memcpy(row, rows[i], sh->size);
        for (size_t k = 0; k < sh->text_count; k++)
            move_text(&FIELD(row, sh->texts[k], sessile_slice), &at);
        for (size_t k = 0; k < sh->list_count; k++) {
            size_t count = FIELD(row, sh->counts[k], size_t);
            if (count)
                memcpy(list, FIELD(row, sh->lists[k], sessile_slice *),
                       count * sizeof *list);
            FIELD(row, sh->lists[k], sessile_slice *) = list;
            for (size_t j = 0; j < count; j++)
                move_text(list++, &at);
        }
    }
    *out = block;
    return SESSILE_OK;
}

sessile_status rows_begin(const principal *p, size_t (*count)(const access_fold *a),
                          const void ***rows, size_t *room, sessile_error *err)
{
    access_fold *a = p->guard->access;
    sessile_status status = access_begin(a, 1, err);

    *rows = NULL;
    if (status)
        return status;
    *room = count(a) + 1;
    *rows = mem_alloc(&a->guard->alloc, *room * sizeof **rows);
    if (*rows)
        return SESSILE_OK;
    access_end(a);
    return fail_nomem(err);
}

sessile_status rows_end(const principal *p, const rows_shape *sh, const void **rows,
                        size_t room, size_t n, void **out, size_t *count,
                        sessile_error *err)
{
    access_fold *a = p->guard->access;
    sessile_status status = give(&a->guard->alloc, sh, rows, n, out, err);

    *count = status ? 0 : n;
    mem_free(&a->guard->alloc, rows, room * sizeof *rows);
    access_end(a);
    return status;
}

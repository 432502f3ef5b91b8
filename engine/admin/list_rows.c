/*
 * list_rows.c: sorts a list, and copies it into one block for the host: rows, then text.
 *
 * Must never return anything borrowed. To add a sort order, add it to sessile_sort in
 * sessile.h, and here its name to sort_names and a case to listing_sort().
 */
#include "admin/list.h"
#include "admin/list_internal.h"

#include <stdlib.h>
#include <string.h>

static size_t size_with_nul(const sessile_listed *row)
{
    return row->id.size + row->agent.size + row->user.size + row->title.size +
           row->labels.size + 6 + strlen(row->message);
}

static void place_in_life(const listing *l, sessile_listed *out, const life_facts *f)
{
    out->life = life_state(f, l->now_ms);
    out->ttl_ms = f->ttl_ms;
    out->expires_ms = life_expires(f);
    out->deleted_ms = f->deleted_ms;
}

/* A row whose text is still the listing's or a list cache's. */
static sessile_listed borrowed(const listing *l, const list_key *k)
{
    const list_place *p = &l->places[k->place];
    const list_cache *c = &l->folders[p->in].found;
    sessile_listed out;
    list_cache_row row;

    if (p->state == OPENED) {
        const list_opened *from = &l->rows[p->row];
        out = from->row;
        out.id = listing_text(l, out.id, from->id);
        out.agent = listing_text(l, out.agent, from->agent);
        out.user = listing_text(l, out.user, from->user);
        out.title = listing_text(l, out.title, from->title);
        out.message = l->text.data + from->message;
        out.labels = listing_text(l, out.labels, from->labels);
        if (out.entries)
            place_in_life(l, &out, &from->life);
        return out;
    }
    list_cache_get(c, p->row, &row);
    memset(&out, 0, sizeof out);
    out.id = row.id;
    out.agent = c->agent;
    out.user = row.user;
    out.title = row.title;
    out.created_ms = row.created_ms;
    out.modified_ms = row.modified_ms;
    out.entries = row.entries;
    out.messages = row.messages;
    out.bytes = row.stat.bytes;
    out.message = "";
    out.labels = row.labels;
    place_in_life(l, &out, &row.life);
    return out;
}

typedef struct ranked {
    list_key k;
    uint64_t number;
    sessile_slice text;
    size_t was;
} ranked;

static int compare_ranked(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    size_t size = a->text.size < b->text.size ? a->text.size : b->text.size;
    int order = size ? memcmp(a->text.data, b->text.data, size) : 0;

    if (!order)
        order = (a->text.size > b->text.size) - (a->text.size < b->text.size);
    if (!order)
        order = (a->number < b->number) - (a->number > b->number);
    return order ? order : (a->was > b->was) - (a->was < b->was);
}

static const char *const sort_names[] = {
    [SESSILE_SORT_MODIFIED] = "modified", [SESSILE_SORT_CREATED] = "created",
    [SESSILE_SORT_TITLE] = "title",       [SESSILE_SORT_BYTES] = "size",
    [SESSILE_SORT_MESSAGES] = "messages",
};

const char *list_sort_name(sessile_sort sort)
{
    size_t at = (size_t)sort;
    return at < sizeof sort_names / sizeof *sort_names ? sort_names[at] : NULL;
}

int listing_sort(listing *l)
{
    const allocator *a = &l->store->alloc;
    size_t n = l->key_count;
    ranked *all = mem_alloc(a, (n + 1) * sizeof *all);

    if (!all)
        return -1;
    for (size_t i = 0; i < n; i++) {
        sessile_listed row = borrowed(l, &l->keys[i]);
        all[i] = (ranked){.k = l->keys[i], .was = i};
        switch (l->options->sort) {
        case SESSILE_SORT_CREATED:
            all[i].number = (uint64_t)row.created_ms;
            break;
        case SESSILE_SORT_TITLE:
            all[i].text = row.title;
            break;
        case SESSILE_SORT_BYTES:
            all[i].number = row.bytes;
            break;
        case SESSILE_SORT_MESSAGES:
            all[i].number = row.messages;
            break;
        default:
            break;
        }
    }
    qsort(all, n, sizeof *all, compare_ranked);
    for (size_t i = 0; i < n; i++)
        l->keys[i] = all[i].k;
    mem_free(a, all, (n + 1) * sizeof *all);
    return 0;
}

static void move(char **to, sessile_slice *text)
{
    if (text->size)
        memcpy(*to, text->data, text->size);
    (*to)[text->size] = 0;
    text->data = text->size ? *to : "";
    *to += text->size + 1;
}

sessile_status listing_give(listing *l, sessile_listed **out, size_t *count,
                            sessile_error *err)
{
    size_t skip =
        l->options->offset < l->key_count ? (size_t)l->options->offset : l->key_count;
    size_t n = l->key_count - skip, size = 1;
    if (l->options->limit && n > l->options->limit)
        n = (size_t)l->options->limit;
    sessile_listed *rows;
    char *text;

    for (size_t i = 0; i < n; i++) {
        sessile_listed row = borrowed(l, &l->keys[skip + i]);
        size += size_with_nul(&row);
    }
    rows = host_alloc(&l->store->alloc, n * sizeof *rows + size);
    if (!rows)
        return fail_nomem(err);
    text = (char *)(rows + n);
    for (size_t i = 0; i < n; i++) {
        sessile_slice message;
        rows[i] = borrowed(l, &l->keys[skip + i]);
        move(&text, &rows[i].id);
        move(&text, &rows[i].agent);
        move(&text, &rows[i].user);
        move(&text, &rows[i].title);
        move(&text, &rows[i].labels);
        message = (sessile_slice){rows[i].message, strlen(rows[i].message)};
        move(&text, &message);
        rows[i].message = message.data;
    }
    *out = rows;
    *count = n;
    return SESSILE_OK;
}

/*
 * list_cache.c: what lists remember of the logs of one folder.
 *
 * Reads and writes the bytes of a list cache: fixed rows and their text, in a blob sealed
 * with the keyring of the store. Only logs that could be opened have a row. The file of a
 * log is always right: a list cache with anything odd in it counts as empty.
 *
 * The problem: a list of ten thousand sessions opens ten thousand logs. The choice: one
 * row a log with everything that a list shows, and the file's size, inode and times from
 * before the log was opened, like the index of a version control system. A row is used
 * when all of these are unchanged. Rejected: a list cache that appends keep up to date
 * (every append would pay, and a crash between the two would leave it wrong).
 *
 * The change time makes a row safe: whoever rewrites a log in place and sets its mtime
 * back, or makes it readable by others, changes it. Bytes of a log that rot below the
 * file system are not noticed here. Opening the session notices them, and so does a
 * check.
 */
#include "admin/list_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/names.h"
#include "base/text.h"

/*
 * All numbers little-endian. Another layout is another word here, and so another box.
 *
 *   head, 24 bytes   rows (8), bytes of all text (8), bytes of the agent's name (8)
 *   row, 104 bytes   size, mtime ns, change time ns, inode, created ms, modified ms, ttl
 *                    ms, deleted ms, written ms (8 each), entries, messages, id, user,
 *                    title (4 each: bytes of them; id 0: it is the log's name), name,
 *                    labels (4 each), 1: archived, 2: suspended (4)
 *   order, 4 a row   numbers of rows, the newest first: nobody need sort them again
 *   text             the agent's name, then of each row name, id, user, title, labels
 */
static const char what_for[] = "sessile list cache 4:";
enum {
    HEAD_SIZE = 24,
    ROW_SIZE = 104,
    ORDER_SIZE = 4,
    AD_SIZE = sizeof what_for - 1 + NAME_SIZE
};

enum { /* places in a row */
       AT_BYTES = 0,
       AT_MTIME = 8,
       AT_CHANGED = 16,
       AT_INODE = 24,
       AT_CREATED = 32,
       AT_MODIFIED = 40,
       AT_TTL = 48,
       AT_DELETED = 56,
       AT_WRITTEN = 64,
       AT_ENTRIES = 72,
       AT_MESSAGES = 76,
       AT_ID = 80,
       AT_USER = 84,
       AT_TITLE = 88,
       AT_NAME = 92,
       AT_LABELS = 96,
       AT_FLAGS = 100
};

enum { ARCHIVED = 1, SUSPENDED = 2 }; /* flags */

static uint64_t get64(const char *at)
{
    const unsigned char *p = (const unsigned char *)at;
    uint64_t n = 0;

    for (int i = 7; i >= 0; i--)
        n = n << 8 | p[i];
    return n;
}

static uint32_t get32(const char *at)
{
    const unsigned char *p = (const unsigned char *)at;

    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static void put64(char *at, uint64_t n)
{
    for (int i = 0; i < 8; i++)
        at[i] = (char)(n >> (8 * i) & 0xff);
}

static void put32(char *at, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        at[i] = (char)(n >> (8 * i) & 0xff);
}

/* What a folder's box is for. */
static size_t purpose(char out[AD_SIZE], const char *folder)
{
    size_t size = strlen(folder);

    memcpy(out, what_for, sizeof what_for - 1);
    memcpy(out + sizeof what_for - 1, folder, size);
    return sizeof what_for - 1 + size;
}

/* ------------------------------------------------------------------ reading */

static const char *row_at(const list_cache *c, size_t row)
{
    return c->data.data + HEAD_SIZE + row * ROW_SIZE;
}

static size_t text_size(const char *row)
{
    return (size_t)get32(row + AT_NAME) + get32(row + AT_ID) + get32(row + AT_USER) +
           get32(row + AT_TITLE) + get32(row + AT_LABELS);
}

/* 1 when the order names each row once, none newer than the one before it. seen: a zero
 * for each row. */
static int is_order(const list_cache *c, char *seen)
{
    int64_t before = INT64_MAX;

    for (size_t rank = 0; rank < c->count; rank++) {
        size_t row = list_cache_newest(c, rank);
        if (row >= c->count || seen[row] || list_cache_modified(c, row) > before)
            return 0;
        seen[row] = 1;
        before = list_cache_modified(c, row);
    }
    return 1;
}

/* 0; 1: these are no rows; -1: no memory. A blob that could be opened is ours, so that
 * odd numbers in it are a mistake of ours: they must not be believed all the same. */
static int read_rows(list_cache *c)
{
    uint64_t rows, text, agent, at;
    char *seen;
    int good;

    if (c->data.size < HEAD_SIZE)
        return 1;
    rows = get64(c->data.data);
    text = get64(c->data.data + 8);
    agent = get64(c->data.data + 16);
    if (rows > (c->data.size - HEAD_SIZE) / (ROW_SIZE + ORDER_SIZE) || agent > text ||
        text != c->data.size - HEAD_SIZE - rows * (ROW_SIZE + ORDER_SIZE) ||
        rows >= UINT32_MAX)
        return 1;
    c->texts = mem_alloc(c->alloc, ((size_t)rows + 1) * sizeof *c->texts);
    if (!c->texts)
        return -1;
    c->count = (size_t)rows;
    at = HEAD_SIZE + rows * (ROW_SIZE + ORDER_SIZE);
    c->agent = (sessile_slice){c->data.data + at, (size_t)agent};
    at += agent;
    for (size_t i = 0; i < c->count; i++) {
        c->texts[i] = (size_t)at;
        at += text_size(row_at(c, i));
        if (at > c->data.size)
            return 1;
    }
    seen = mem_zalloc(c->alloc, c->count + 1);
    if (!seen)
        return -1;
    good = at == c->data.size && is_order(c, seen);
    mem_free(c->alloc, seen, c->count + 1);
    return !good;
}

static void forget(list_cache *c)
{
    if (c->texts)
        mem_free(c->alloc, c->texts, (c->count + 1) * sizeof *c->texts);
    c->texts = NULL;
    c->count = 0;
    c->agent = (sessile_slice){"", 0};
    buf_clear(&c->data);
}

sessile_status list_cache_load(list_cache *c, store_core *st, const char *folder)
{
    char *box, ad[AD_SIZE];
    sessile_status status;
    size_t size, ad_size;
    int bad = 0;

    memset(c, 0, sizeof *c);
    c->alloc = &st->alloc;
    c->agent = (sessile_slice){"", 0};
    buf_init(&c->data, &st->alloc);
    map_init(&c->names, &st->alloc);
    if (!(st->backend.table->capabilities & SESSILE_BACKEND_LIST_CACHE))
        return SESSILE_OK;
    status =
        st->backend.table->list_cache_get(st->backend.self, folder, &box, &size, NULL);
    if (status)
        return status == SESSILE_NOMEM ? SESSILE_NOMEM : SESSILE_OK;
    ad_size = purpose(ad, folder);
    if (keyring_open_blob(st->keys, ad, ad_size, box, size, &c->data))
        bad = c->data.failed ? -1 : 1;
    else
        bad = read_rows(c);
    host_free(box);
    if (bad)
        forget(c);
    return bad < 0 ? SESSILE_NOMEM : SESSILE_OK;
}

void list_cache_deinit(list_cache *c)
{
    if (!c->alloc)
        return;
    forget(c);
    buf_deinit(&c->data);
    map_deinit(&c->names);
}

static int is_named(const list_cache *c, size_t row, const char *name, size_t size)
{
    return get32(row_at(c, row) + AT_NAME) == size &&
           !memcmp(c->data.data + c->texts[row], name, size);
}

/* A folder that did not change is listed in the order of last time: the map is made only
 * when a name is not the next one. */
int list_cache_find(list_cache *c, const char *name, size_t *row)
{
    size_t size = strlen(name);
    uint32_t found;

    *row = c->count;
    if (c->next < c->count && is_named(c, c->next, name, size)) {
        *row = c->next++;
        return 0;
    }
    if (!c->mapped) {
        if (map_reserve(&c->names, c->count))
            return -1;
        for (size_t i = 0; i < c->count; i++)
            if (map_put(&c->names,
                        hash64(c->data.data + c->texts[i], get32(row_at(c, i) + AT_NAME)),
                        (uint32_t)i))
                return -1;
        c->mapped = 1;
    }
    if (map_get(&c->names, hash64(name, size), &found) &&
        is_named(c, found, name, size)) {
        *row = found;
        c->next = (size_t)found + 1;
    }
    return 0;
}

size_t list_cache_newest(const list_cache *c, size_t rank)
{
    return get32(c->data.data + HEAD_SIZE + c->count * ROW_SIZE + rank * ORDER_SIZE);
}

int64_t list_cache_modified(const list_cache *c, size_t row)
{
    return (int64_t)get64(row_at(c, row) + AT_MODIFIED);
}

void list_cache_get(const list_cache *c, size_t row, list_cache_row *out)
{
    const char *from = row_at(c, row), *text = c->data.data + c->texts[row];
    size_t id = get32(from + AT_ID);

    out->name = (sessile_slice){text, get32(from + AT_NAME)};
    text += out->name.size;
    out->id = id ? (sessile_slice){text, id} : out->name;
    text += id;
    out->user = (sessile_slice){text, get32(from + AT_USER)};
    text += out->user.size;
    out->title = (sessile_slice){text, get32(from + AT_TITLE)};
    text += out->title.size;
    out->labels = (sessile_slice){text, get32(from + AT_LABELS)};
    out->life = (life_facts){.ttl_ms = (int64_t)get64(from + AT_TTL),
                             .deleted_ms = (int64_t)get64(from + AT_DELETED),
                             .written_ms = (int64_t)get64(from + AT_WRITTEN),
                             .archived = (get32(from + AT_FLAGS) & ARCHIVED) != 0,
                             .suspended = (get32(from + AT_FLAGS) & SUSPENDED) != 0};
    out->stat.bytes = get64(from + AT_BYTES);
    out->stat.mtime_ns = (int64_t)get64(from + AT_MTIME);
    out->stat.changed_ns = (int64_t)get64(from + AT_CHANGED);
    out->stat.inode = get64(from + AT_INODE);
    out->created_ms = (int64_t)get64(from + AT_CREATED);
    out->modified_ms = (int64_t)get64(from + AT_MODIFIED);
    out->entries = get32(from + AT_ENTRIES);
    out->messages = get32(from + AT_MESSAGES);
}

int list_cache_fits(const list_cache *c, size_t row, const sessile_backend_stat *stat)
{
    const char *from = row_at(c, row);

    return get64(from + AT_BYTES) == stat->bytes &&
           get64(from + AT_INODE) == stat->inode &&
           (int64_t)get64(from + AT_MTIME) == stat->mtime_ns &&
           (int64_t)get64(from + AT_CHANGED) == stat->changed_ns;
}

/* ------------------------------------------------------------------ writing */

int list_cache_settled(const sessile_backend_stat *stat, int64_t now_ms)
{
    return stat->changed_ns / 1000000 + LIST_CACHE_SETTLED_MS < now_ms;
}

void list_cache_draft_init(list_cache_draft *d, const allocator *a)
{
    buf_init(&d->rows, a);
    buf_init(&d->text, a);
    d->count = 0;
}

void list_cache_draft_deinit(list_cache_draft *d)
{
    buf_deinit(&d->rows);
    buf_deinit(&d->text);
}

static void put_slice(buf *out, sessile_slice s)
{
    if (s.size)
        buf_put(out, s.data, s.size);
}

void list_cache_draft_add(list_cache_draft *d, const list_cache_row *row)
{
    char out[ROW_SIZE];
    sessile_slice id = slice_same(row->id, row->name) ? (sessile_slice){"", 0} : row->id;

    put64(out + AT_BYTES, row->stat.bytes);
    put64(out + AT_MTIME, (uint64_t)row->stat.mtime_ns);
    put64(out + AT_CHANGED, (uint64_t)row->stat.changed_ns);
    put64(out + AT_INODE, row->stat.inode);
    put64(out + AT_CREATED, (uint64_t)row->created_ms);
    put64(out + AT_MODIFIED, (uint64_t)row->modified_ms);
    put32(out + AT_ENTRIES, row->entries);
    put32(out + AT_MESSAGES, row->messages);
    put32(out + AT_ID, (uint32_t)id.size);
    put32(out + AT_USER, (uint32_t)row->user.size);
    put32(out + AT_TITLE, (uint32_t)row->title.size);
    put32(out + AT_NAME, (uint32_t)row->name.size);
    put64(out + AT_TTL, (uint64_t)row->life.ttl_ms);
    put64(out + AT_DELETED, (uint64_t)row->life.deleted_ms);
    put64(out + AT_WRITTEN, (uint64_t)row->life.written_ms);
    put32(out + AT_LABELS, (uint32_t)row->labels.size);
    put32(out + AT_FLAGS,
          (row->life.archived ? ARCHIVED : 0u) | (row->life.suspended ? SUSPENDED : 0u));
    buf_put(&d->rows, out, sizeof out);
    put_slice(&d->text, row->name);
    put_slice(&d->text, id);
    put_slice(&d->text, row->user);
    put_slice(&d->text, row->title);
    put_slice(&d->text, row->labels);
    d->count++;
}

static size_t order_size(const list_cache_draft *d)
{
    return ((size_t)d->count + 1) * sizeof(uint32_t);
}

typedef struct dated {
    int64_t modified_ms;
    const char *name;
    uint32_t size, row;
} dated;

static int newer(const void *left, const void *right)
{
    const dated *a = left, *b = right;

    if (a->modified_ms != b->modified_ms)
        return a->modified_ms < b->modified_ms ? 1 : -1;
    int by_name = memcmp(a->name, b->name, a->size < b->size ? a->size : b->size);
    return by_name ? by_name : (a->size > b->size) - (a->size < b->size);
}

/* The rows' numbers, newest first, then by name; NULL: no memory. */
static uint32_t *sorted(const list_cache_draft *d, const allocator *a)
{
    size_t count = d->rows.failed || d->text.failed ? 0 : (size_t)d->count;
    dated *all = mem_alloc(a, (count + 1) * sizeof *all);
    uint32_t *order = all ? mem_alloc(a, order_size(d)) : NULL;
    size_t at = 0;

    for (size_t i = 0; order && i < count; i++) {
        const char *row = d->rows.data + i * ROW_SIZE;
        all[i] = (dated){(int64_t)get64(row + AT_MODIFIED), d->text.data + at,
                         get32(row + AT_NAME), (uint32_t)i};
        at += text_size(row);
    }
    if (order)
        qsort(all, count, sizeof *all, newer);
    for (size_t i = 0; order && i < count; i++)
        order[i] = all[i].row;
    if (all)
        mem_free(a, all, (count + 1) * sizeof *all);
    return order;
}

void list_cache_draft_put(list_cache_draft *d, store_core *st, const char *folder,
                          sessile_slice agent)
{
    char head[HEAD_SIZE], ad[AD_SIZE];
    uint32_t *order;
    buf whole, box;

    buf_init(&whole, &st->alloc);
    buf_init(&box, &st->alloc);
    order = sorted(d, &st->alloc);
    put64(head, d->count);
    put64(head + 8, agent.size + d->text.size);
    put64(head + 16, agent.size);
    if (d->rows.failed || d->text.failed || !order || d->count >= UINT32_MAX ||
        buf_reserve(&whole, HEAD_SIZE + d->rows.size + (size_t)d->count * ORDER_SIZE +
                                agent.size + d->text.size))
        goto out;
    buf_put(&whole, head, sizeof head);
    if (d->rows.size)
        buf_put(&whole, d->rows.data, d->rows.size);
    for (size_t i = 0; i < d->count; i++) {
        char number[ORDER_SIZE];
        put32(number, order[i]);
        buf_put(&whole, number, sizeof number);
    }
    put_slice(&whole, agent);
    if (d->text.size)
        buf_put(&whole, d->text.data, d->text.size);
    if (keyring_seal_blob(st->keys, ad, purpose(ad, folder), whole.data, whole.size, &box,
                          NULL))
        goto out;
    (void)st->backend.table->list_cache_put(st->backend.self, folder, box.data, box.size,
                                            NULL);
out:
    if (order)
        mem_free(&st->alloc, order, order_size(d));
    buf_deinit(&whole);
    buf_deinit(&box);
}

sessile_status list_cache_drop(store_core *st, sessile_error *err)
{
    if (!(st->backend.table->capabilities & SESSILE_BACKEND_LIST_CACHE))
        return SESSILE_OK;
    return st->backend.table->list_cache_drop(st->backend.self, NULL, err);
}

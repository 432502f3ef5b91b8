/*
 * list.c: lists the sessions of a store.
 *
 * A row comes from the list cache of the folder if the file of the log is as the cache
 * says. Every other log is opened as a session is, so that its row says what opening
 * would say. A log that cannot be opened has a row with its status; the list does not
 * fail.
 *
 * Order: by the time of the newest entry, as the log has it. To list the newest N of a
 * store without a list cache, not all logs need to be opened: a file changed at or after
 * the time of its newest entry, so logs are opened from the last changed one until no
 * other can be among the N. (Not by mtime, which whoever may write in the folder can set
 * back.)
 */
#include "admin/list.h"
#include "admin/list_internal.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ which logs */

static int gather(void *arg, const char *folder, const char *name,
                  const sessile_backend_stat *stat)
{
    listing *l = arg;
    listed_folder *in = l->folder_count ? &l->folders[l->folder_count - 1] : NULL;
    const allocator *a = &l->store->alloc;
    list_place *p;

    if (strlen(folder) >= NAME_SIZE || strlen(name) >= NAME_SIZE)
        return 0; /* no name of ours */
    if (!folder_has_sessions(folder))
        return 0;
    if (!in || strcmp(in->folder, folder)) {
        if (mem_grow(a, (void **)&l->folders, &l->folder_capacity, l->folder_count + 1,
                     sizeof *l->folders))
            goto nomem;
        in = &l->folders[l->folder_count++];
        memset(in, 0, sizeof *in);
        memcpy(in->folder, folder, strlen(folder));
        in->first = l->count;
    }
    if (mem_grow(a, (void **)&l->places, &l->capacity, l->count + 1, sizeof *l->places))
        goto nomem;
    p = &l->places[l->count++];
    memset(p, 0, sizeof *p);
    p->name = l->names.size;
    p->in = l->folder_count - 1;
    p->has_stat = stat != NULL;
    if (stat)
        p->stat = *stat;
    in->count++;
    buf_put(&l->names, name, strlen(name) + 1);
    if (!l->names.failed)
        return 0;
nomem:
    l->status = SESSILE_NOMEM;
    return 1;
}

static int gather_name(void *arg, const char *folder, const char *name)
{
    return gather(arg, folder, name, NULL);
}

static sessile_status gather_all(listing *l, sessile_error *err)
{
    const store *b = &l->store->backend;
    sessile_slice agent = l->options->agent;
    char folder[NAME_SIZE];
    sessile_status status;

    if (agent.data)
        keyring_folder_name(l->store->keys, agent, folder);
    if (b->table->capabilities & SESSILE_BACKEND_LIST_CACHE)
        status = b->table->list_stat(b->self, agent.data ? folder : NULL, gather, l, err);
    else
        status = b->table->list(b->self, agent.data ? folder : NULL, gather_name, l, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err); /* nothing was ever written there */
        status = SESSILE_OK;
    }
    return !status && l->status ? fail_nomem(err) : status;
}

/* ------------------------------------------------------------------ all of them */

enum { NOT_THERE = SIZE_MAX };

/* Finds the places that a folder's list cache knows; of each row, the place, or
 * NOT_THERE. */
static sessile_status match(listing *l, listed_folder *in, size_t *place_of)
{
    for (size_t i = 0; i < in->found.count; i++)
        place_of[i] = NOT_THERE;
    for (size_t at = in->first; at < in->first + in->count; at++) {
        list_place *p = &l->places[at];
        if (list_cache_find(&in->found, listing_name(l, p), &p->row))
            return SESSILE_NOMEM;
        if (p->row == in->found.count)
            continue;
        in->matched++;
        if (!p->has_stat || !list_cache_fits(&in->found, p->row, &p->stat))
            continue;
        p->state = KNOWN;
        place_of[p->row] = at;
    }
    return SESSILE_OK;
}

static int row_is_wanted(const listing *l, const list_cache *c, size_t row)
{
    list_cache_row r;

    list_cache_get(c, row, &r);
    return listing_wanted(l, &(list_asked){r.id, c->agent, r.user, r.title, r.labels,
                                           r.modified_ms, &r.life});
}

/* Puts them on the list, newest first as the list cache says, so that there is nothing
 * left to sort and the newest N end after N. */
static sessile_status offer_known(listing *l, const listed_folder *in,
                                  const size_t *place_of)
{
    const list_cache *c = &in->found;
    size_t taken = 0;
    int64_t before = INT64_MAX;

    for (size_t rank = 0; rank < c->count; rank++) {
        size_t row = list_cache_newest(c, rank);
        int64_t modified_ms;
        if (place_of[row] == NOT_THERE)
            continue;
        modified_ms = list_cache_modified(c, row);
        if (taken >= l->want && modified_ms < before)
            break;
        if (!row_is_wanted(l, c, row))
            continue;
        before = modified_ms;
        taken++;
        if (listing_offer(l, place_of[row], modified_ms))
            return SESSILE_NOMEM;
    }
    return SESSILE_OK;
}

static sessile_status look_up(listing *l)
{
    const allocator *a = &l->store->alloc;

    for (size_t i = 0; i < l->folder_count; i++) {
        listed_folder *in = &l->folders[i];
        sessile_status status = list_cache_load(&in->found, l->store, in->folder);
        size_t *place_of;
        if (status)
            return status;
        if (!in->found.count)
            continue;
        place_of = mem_alloc(a, in->found.count * sizeof *place_of);
        if (!place_of)
            return SESSILE_NOMEM;
        status = match(l, in, place_of);
        if (!status)
            status = offer_known(l, in, place_of);
        mem_free(a, place_of, in->found.count * sizeof *place_of);
        if (status)
            return status;
    }
    return SESSILE_OK;
}

/* No entry of the log is newer (some file systems keep only every other second), nor is
 * its mtime, which is the time of a log that does not open. */
static int64_t newest_possible(const list_place *p)
{
    int64_t newest =
        p->stat.changed_ns > p->stat.mtime_ns ? p->stat.changed_ns : p->stat.mtime_ns;

    return p->has_stat ? newest / 1000000 + LIST_CACHE_SETTLED_MS : INT64_MAX;
}

/* The others, opened from the last changed on while they can be among the wanted ones. */
static sessile_status look_at_others(listing *l)
{
    sessile_status status = SESSILE_OK;
    size_t count = 0, left = 0;
    list_key *others;

    for (size_t i = 0; i < l->count; i++)
        left += l->places[i].state == UNSEEN;
    if (!left)
        return SESSILE_OK;
    others = mem_alloc(&l->store->alloc, left * sizeof *others);
    if (!others)
        return SESSILE_NOMEM;
    for (size_t i = 0; i < l->count; i++) {
        const list_place *p = &l->places[i];
        if (p->state == UNSEEN)
            others[count++] = listing_key(l, i, newest_possible(p));
    }
    if (l->want < l->count)
        qsort(others, count, sizeof *others, list_newer);
    for (size_t i = 0; !status && i < count; i++) {
        if (l->want < l->count && l->key_count == l->want &&
            others[i].modified_ms < l->keys[0].modified_ms)
            break;
        status = listing_open_log(l, others[i].place);
    }
    mem_free(&l->store->alloc, others, left * sizeof *others);
    return status;
}

/* ------------------------------------------------------------------ the list cache */

static void row_of(const listing *l, const list_place *p, list_cache_row *out)
{
    const list_opened *row = &l->rows[p->row];
    const char *name = listing_name(l, p);

    memset(out, 0, sizeof *out);
    out->name = (sessile_slice){name, strlen(name)};
    out->id = listing_text(l, row->row.id, row->id);
    out->user = listing_text(l, row->row.user, row->user);
    out->title = listing_text(l, row->row.title, row->title);
    out->stat = p->stat;
    out->created_ms = row->row.created_ms;
    out->modified_ms = row->row.modified_ms;
    out->entries = (uint32_t)row->row.entries;
    out->messages = (uint32_t)row->row.messages;
    out->labels = listing_text(l, row->row.labels, row->labels);
    out->life = row->life;
}

/*
 * A list cache is written whole, which costs about as much for 500 sessions as opening
 * one: a few that changed in a large folder are looked at again until there are more of
 * them. Names that are gone go at once.
 */
enum { ROWS_A_LOG = 512 };

static void remember(listing *l, const listed_folder *in)
{
    sessile_slice agent = in->found.agent;
    list_cache_draft d;
    list_cache_row row;

    if (in->fresh <= in->count / ROWS_A_LOG && in->matched == in->found.count)
        return;
    list_cache_draft_init(&d, &l->store->alloc);
    for (size_t at = in->first; at < in->first + in->count; at++) {
        const list_place *p = &l->places[at];
        if (p->state == KNOWN) {
            list_cache_get(&in->found, p->row, &row);
        } else if (p->state == OPENED && l->rows[p->row].keep) {
            row_of(l, p, &row);
            agent = listing_text(l, l->rows[p->row].row.agent, l->rows[p->row].agent);
        } else {
            continue;
        }
        list_cache_draft_add(&d, &row);
    }
    list_cache_draft_put(&d, l->store, in->folder, agent);
    list_cache_draft_deinit(&d);
}

/* ------------------------------------------------------------------ the whole */

static void listing_deinit(listing *l)
{
    const allocator *a = &l->store->alloc;

    for (size_t i = 0; i < l->folder_count; i++)
        list_cache_deinit(&l->folders[i].found);
    if (l->folders)
        mem_free(a, l->folders, l->folder_capacity * sizeof *l->folders);
    if (l->places)
        mem_free(a, l->places, l->capacity * sizeof *l->places);
    if (l->rows)
        mem_free(a, l->rows, l->row_capacity * sizeof *l->rows);
    if (l->keys)
        mem_free(a, l->keys, l->key_capacity * sizeof *l->keys);
    buf_deinit(&l->names);
    buf_deinit(&l->text);
    buf_deinit(&l->label);
}

static int in_order(const listing *l)
{
    for (size_t i = 1; i < l->key_count; i++)
        if (list_newer(&l->keys[i - 1], &l->keys[i]) > 0)
            return 0;
    return 1;
}

static size_t most_wanted(const sessile_list_options *o)
{
    /* in another order than the time's all of them have to be known */
    uint64_t want =
        o->limit && o->sort == SESSILE_SORT_MODIFIED && o->offset <= UINT64_MAX - o->limit
            ? o->offset + o->limit
            : UINT64_MAX;
    return want < SIZE_MAX ? (size_t)want : SIZE_MAX;
}

sessile_status list_sessions(store_core *s, const principal *who,
                             const sessile_list_options *options, sessile_listed **out,
                             size_t *count, sessile_error *err)
{
    listing l = {
        .store = s, .who = who, .options = options, .want = most_wanted(options)};
    sessile_status status;

    *out = NULL;
    *count = 0;
    if (s->over_records)
        return SESSILE_OK; /* each of its logs is a handle's own */
    l.now_ms = s->os->now_ms(s->os->ud);
    buf_init(&l.names, &s->alloc);
    buf_init(&l.text, &s->alloc);
    buf_init(&l.label, &s->alloc);
    if (options->label.size)
        json_put_string(&l.label, options->label.data, options->label.size);
    status = l.label.failed ? fail_nomem(err) : gather_all(&l, err);
    if (!status && (look_up(&l) || look_at_others(&l)))
        status = fail_nomem(err);
    if (!status) {
        for (size_t i = 0; i < l.folder_count; i++)
            remember(&l, &l.folders[i]);
        if (!in_order(&l))
            qsort(l.keys, l.key_count, sizeof *l.keys, list_newer);
        if (options->sort != SESSILE_SORT_MODIFIED && listing_sort(&l))
            status = fail_nomem(err);
    }
    if (!status)
        status = listing_give(&l, out, count, err);
    listing_deinit(&l);
    return status;
}

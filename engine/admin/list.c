/*
 * list.c: the sessions of a store, as rows that belong to the host.
 *
 * A log whose file is what the folder's list cache says is taken from there; every other
 * one is opened the way a session is, so that a row says what opening would: a log that
 * cannot be opened has a row with its status, and never spoils the list. Must never keep
 * a log open, nor remember one that did not open, or not all of it.
 *
 * Order: by the time of the newest entry, as the log has it. The newest N of a store
 * without a list cache need not open all logs: a file changed at or after the time of its
 * newest entry, so that logs are opened from the one that changed last until no other one
 * can be among the N. (Not mtime: whoever may write in the folder can set that back.)
 */
#include "admin/list_cache.h"
#include "session/fold.h"

#include <stdlib.h>
#include <string.h>

enum { UNSEEN, KNOWN, OPENED };

/* A log's file. */
typedef struct place {
    size_t name; /* in the listing's names */
    size_t in;   /* its folder */
    sessile_backend_stat stat;
    size_t row; /* KNOWN: of the list_cache's list cache; OPENED: of the listing */
    uint8_t state;
    uint8_t told; /* stat is set */
} place;

/* An agent's folder: its places are first and the count - 1 behind it. */
typedef struct listed_folder {
    char folder[NAME_SIZE];
    size_t first, count;
    size_t matched; /* rows of the list cache whose log is still there */
    size_t fresh;   /* logs that can be put in the list cache and are not in it */
    list_cache found;
} listed_folder;

/* What was found in a log. Text is in the listing's buffer. */
typedef struct opened {
    sessile_listed row; /* slices' data are not set yet; nor where it stands */
    size_t id, agent, user, title, message, labels;
    life_facts life;
    int keep; /* a list cache may have it */
} opened;

/* What a list is ordered by. */
typedef struct key {
    int64_t modified_ms;
    const char *folder, *name;
    size_t place;
} key;

typedef struct listing {
    sessile_store *store;
    const sessile_list_options *options;
    int64_t now_ms; /* before anything was looked at */
    buf names, text;
    listed_folder *folders;
    size_t folder_count, folder_capacity;
    place *places;
    size_t count, capacity;
    opened *rows;
    size_t row_count, row_capacity;
    key *keys; /* what will be in the list; a heap, oldest first, when full matters */
    size_t key_count, key_capacity;
    size_t want; /* that many at most */
    buf label;   /* that is asked for, as JSON */
    sessile_status status;
} listing;

/* ------------------------------------------------------------------ which logs */

static int gather(void *arg, const char *folder, const char *name,
                  const sessile_backend_stat *stat)
{
    listing *l = arg;
    listed_folder *in = l->folder_count ? &l->folders[l->folder_count - 1] : NULL;
    const allocator *a = &l->store->alloc;
    place *p;

    if (strlen(folder) >= NAME_SIZE || strlen(name) >= NAME_SIZE)
        return 0; /* no name of ours */
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
    p->told = stat != NULL;
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

static const char *name_of(const listing *l, const place *p)
{
    return l->names.data + p->name;
}

static const char *folder_of(const listing *l, const place *p)
{
    return l->folders[p->in].folder;
}

/* ------------------------------------------------------------------ what is in a list */

/* Newest first; of one time, by file, so that a list is the same twice. */
static int newer(const void *left, const void *right)
{
    const key *a = left, *b = right;
    int by_folder;

    if (a->modified_ms != b->modified_ms)
        return a->modified_ms < b->modified_ms ? 1 : -1;
    by_folder = strcmp(a->folder, b->folder);
    return by_folder ? by_folder : strcmp(a->name, b->name);
}

static void swap(key *a, key *b)
{
    key was = *a;
    *a = *b;
    *b = was;
}

static void sift_up(key *heap, size_t at)
{
    for (; at && newer(&heap[(at - 1) / 2], &heap[at]) < 0; at = (at - 1) / 2)
        swap(&heap[(at - 1) / 2], &heap[at]);
}

static void sift_down(key *heap, size_t count)
{
    for (size_t at = 0, down; (down = 2 * at + 1) < count; at = down) {
        if (down + 1 < count && newer(&heap[down + 1], &heap[down]) > 0)
            down++;
        if (newer(&heap[down], &heap[at]) <= 0)
            return;
        swap(&heap[down], &heap[at]);
    }
}

static key key_of(const listing *l, size_t place_, int64_t modified_ms)
{
    const place *p = &l->places[place_];
    return (key){modified_ms, folder_of(l, p), name_of(l, p), place_};
}

/* 0 or -1. */
static int offer(listing *l, size_t place_, int64_t modified_ms)
{
    key k = key_of(l, place_, modified_ms);

    if (l->key_count < l->want) {
        if (mem_grow(&l->store->alloc, (void **)&l->keys, &l->key_capacity,
                     l->key_count + 1, sizeof *l->keys))
            return -1;
        l->keys[l->key_count++] = k;
        if (l->want < l->count) /* else all of them are in it: no heap is needed */
            sift_up(l->keys, l->key_count - 1);
    } else if (newer(&k, &l->keys[0]) < 0) {
        l->keys[0] = k;
        sift_down(l->keys, l->key_count);
    }
    return 0;
}

static int begins(sessile_slice text, sessile_slice with)
{
    return !with.size ||
           (text.size >= with.size && !memcmp(text.data, with.data, with.size));
}

static int same(sessile_slice a, sessile_slice b)
{
    return a.size == b.size && begins(a, b);
}

static unsigned char small(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static int has_text(sessile_slice text, sessile_slice asked)
{
    for (size_t at = 0; asked.size <= text.size && at <= text.size - asked.size; at++) {
        size_t i = 0;
        while (i < asked.size && small(text.data[at + i]) == small(asked.data[i]))
            i++;
        if (i == asked.size)
            return 1;
    }
    return !asked.size;
}

/* labels: a JSON array; l->label: what is asked for, as JSON. */
static int has_label(const listing *l, sessile_slice labels)
{
    json_iter it;

    if (!l->options->label.size)
        return 1;
    if (!labels.size)
        return 0;
    it = json_begin(json_of(labels.data, labels.size));
    while (json_next(&it))
        if (same((sessile_slice){it.value.at, it.value.size},
                 (sessile_slice){l->label.data, l->label.size}))
            return 1;
    return 0;
}

/* What is asked of a log beside its agent. */
typedef struct asked {
    sessile_slice id, user, title, labels;
    int64_t modified_ms;
    const life_facts *life; /* NULL: nothing can be told of it but its id */
} asked;

static int asks_more(const sessile_list_options *o)
{
    return o->title.size || o->user.data || o->label.size || o->text.size ||
           o->since_ms || o->until_ms || o->lives;
}

static int wanted(const listing *l, const asked *a)
{
    const sessile_list_options *o = l->options;
    unsigned lives = o->lives ? o->lives : ~(1u << SESSILE_LIFE_DELETED);

    if (!begins(a->id, o->id_prefix))
        return 0;
    if (!a->life)
        return !asks_more(o);
    return (!o->title.size || same(a->title, o->title)) &&
           (!o->user.data || same(a->user, o->user)) && has_text(a->title, o->text) &&
           (!o->since_ms || a->modified_ms >= o->since_ms) &&
           (!o->until_ms || a->modified_ms < o->until_ms) && has_label(l, a->labels) &&
           (lives >> life_of(a->life, a->modified_ms, l->now_ms) & 1);
}

/* ------------------------------------------------------------------ a log that is opened
 */

static size_t put_text(listing *l, const char *data, size_t size)
{
    size_t at = l->text.size;

    buf_put(&l->text, data, size);
    buf_putc(&l->text, 0);
    return at;
}

static void fill(listing *l, opened *row, const sessile_session *s)
{
    row->id = put_text(l, s->identity.id, s->identity.id_size);
    row->agent = put_text(l, s->identity.agent, s->identity.agent_size);
    row->user = put_text(l, s->identity.user, s->identity.user_size);
    row->title = put_text(l, s->fold.title, s->fold.title_size);
    row->row.id.size = s->identity.id_size;
    row->row.agent.size = s->identity.agent_size;
    row->row.user.size = s->identity.user_size;
    row->row.title.size = s->fold.title_size;
    row->row.created_ms = s->header.created_ms;
    row->row.modified_ms = s->fold.modified_ms;
    row->row.entries = s->tree.node_count;
    row->row.messages = s->tree.nodes[s->tree.head].messages;
    row->row.bytes = log_bytes(s->log);
    row->row.torn = s->torn;
}

/* Names of labels, as long as a list cache should carry. */
#define LABELS_MOST ((size_t)64 << 10)

/* Whether a name (as JSON) is in the unfinished array between from and to. */
static int is_among(const listing *l, size_t from, size_t to, const buf *name)
{
    const char *text = l->text.data;

    for (size_t at = from + 1; at < to; at++) {
        json one = json_of(text + at, to - at);
        if (same((sessile_slice){one.at, one.size},
                 (sessile_slice){name->data, name->size}))
            return 1;
        at += one.size;
    }
    return 0;
}

/* What its facts say, appended to the listing's text. */
static sessile_status fill_facts(listing *l, opened *row, sessile_session *s)
{
    sessile_status status = session_life_facts_locked(s, &row->life, NULL);
    facts picture;
    buf name;

    row->labels = l->text.size;
    if (status)
        return status;
    facts_init(&picture, &l->store->alloc);
    buf_init(&name, &l->store->alloc);
    if (facts_labels(&s->fold.facts, &picture))
        status = SESSILE_NOMEM;
    buf_putc(&l->text, '[');
    for (size_t i = 0; !status && i < picture.count && !l->text.failed; i++) {
        const fact *one = &picture.at[i];
        size_t at = l->text.size;
        buf_clear(&name);
        json_put_string(&name, fact_name(&picture, one), one->name_size);
        if (at - row->labels <= LABELS_MOST && is_among(l, row->labels, at, &name))
            continue;
        if (at > row->labels + 1)
            buf_putc(&l->text, ',');
        buf_put(&l->text, name.data, name.size);
    }
    buf_putc(&l->text, ']');
    row->row.labels.size = l->text.size - row->labels;
    buf_putc(&l->text, 0);
    if (name.failed)
        status = SESSILE_NOMEM;
    facts_deinit(&picture);
    buf_deinit(&name);
    return status;
}

/* What can still be told of a log that does not open: its size and time, and its names if
 * the header is whole. */
static void fill_peeked(listing *l, opened *row, const char *folder, const char *name)
{
    sessile_store *st = l->store;
    sessile_backend_log *raw;
    header h;
    entry e;
    buf text;

    if (!st->backend.table->open(st->backend.self, folder, name, &raw, NULL)) {
        (void)st->backend.table->size(raw, &row->row.bytes, &row->row.modified_ms, NULL);
        st->backend.table->close(raw);
    }
    buf_init(&text, &st->alloc);
    header_init(&h, &st->alloc);
    if (!log_peek(&st->backend, st->keys, folder, name, session_read_depth(st), &text,
                  &st->alloc, NULL) &&
        !entry_read(&e, text.data, text.size, NULL) && !header_read(&h, &e, NULL)) {
        row->id = put_text(l, h.id.data, h.id.size);
        row->row.id.size = h.id.size;
        row->agent = put_text(l, h.agent.data, h.agent.size);
        row->row.agent.size = h.agent.size;
        row->row.created_ms = h.created_ms;
    }
    header_deinit(&h);
    buf_deinit(&text);
}

static sessile_slice text_of(const listing *l, sessile_slice size, size_t at)
{
    return (sessile_slice){size.size ? l->text.data + at : "", size.size};
}

/* Opens the log of a place and, if it is wanted, puts it on the list. */
static sessile_status look(listing *l, size_t at)
{
    place *p = &l->places[at];
    listed_folder *in = &l->folders[p->in];
    sessile_session *s = NULL;
    sessile_error why;
    opened *row;

    if (mem_grow(&l->store->alloc, (void **)&l->rows, &l->row_capacity, l->row_count + 1,
                 sizeof *l->rows))
        return SESSILE_NOMEM;
    row = &l->rows[l->row_count];
    memset(row, 0, sizeof *row);
    error_clear(&why);
    row->row.status = session_open_place(&s, l->store, in->folder, name_of(l, p), &why);
    if (row->row.status == SESSILE_NOMEM)
        return SESSILE_NOMEM;
    if (row->row.status == SESSILE_NOTFOUND)
        return SESSILE_OK; /* deleted meanwhile */
    if (s) {
        row->row.status = session_damage_locked(s, NULL, &why);
        fill(l, row, s);
        sessile_status told = fill_facts(l, row, s);
        if (told == SESSILE_NOMEM) {
            session_drop(s);
            return told;
        }
        if (told && !row->row.status) /* a fact that cannot be read */
            row->row.status = told;
    } else {
        fill_peeked(l, row, in->folder, name_of(l, p));
    }
    session_drop(s);
    row->message = put_text(l, why.message, strlen(why.message));
    if (l->text.failed)
        return SESSILE_NOMEM;
    /* Only what was read to the end of what its file was before: a torn end, or a writer
     * in the middle of its work, shows in the bytes. */
    row->keep = !row->row.status && !row->row.torn && p->told &&
                row->row.bytes == p->stat.bytes && row->row.entries <= UINT32_MAX &&
                row->row.labels.size <= LABELS_MOST &&
                list_cache_settled(&p->stat, l->now_ms);
    in->fresh += row->keep ? 1 : 0;
    p->state = OPENED;
    p->row = l->row_count++;
    asked a = {.id = text_of(l, row->row.id, row->id),
               .user = text_of(l, row->row.user, row->user),
               .title = text_of(l, row->row.title, row->title),
               .labels = text_of(l, row->row.labels, row->labels),
               .modified_ms = row->row.modified_ms,
               .life = row->row.entries ? &row->life : NULL};
    if (wanted(l, &a) && offer(l, at, row->row.modified_ms))
        return SESSILE_NOMEM;
    return SESSILE_OK;
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
        place *p = &l->places[at];
        if (list_cache_find(&in->found, name_of(l, p), &p->row))
            return SESSILE_NOMEM;
        if (p->row == in->found.count)
            continue;
        in->matched++;
        if (!p->told || !list_cache_fits(&in->found, p->row, &p->stat))
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
    return wanted(l, &(asked){r.id, r.user, r.title, r.labels, r.modified_ms, &r.life});
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
        if (offer(l, place_of[row], modified_ms))
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
static int64_t newest_possible(const place *p)
{
    int64_t newest =
        p->stat.changed_ns > p->stat.mtime_ns ? p->stat.changed_ns : p->stat.mtime_ns;

    return p->told ? newest / 1000000 + CATALOG_SETTLED_MS : INT64_MAX;
}

/* The others, opened from the last changed on while they can be among the wanted ones. */
static sessile_status look_at_others(listing *l)
{
    sessile_status status = SESSILE_OK;
    size_t count = 0, left = 0;
    key *others;

    for (size_t i = 0; i < l->count; i++)
        left += l->places[i].state == UNSEEN;
    if (!left)
        return SESSILE_OK;
    others = mem_alloc(&l->store->alloc, left * sizeof *others);
    if (!others)
        return SESSILE_NOMEM;
    for (size_t i = 0; i < l->count; i++) {
        const place *p = &l->places[i];
        if (p->state == UNSEEN)
            others[count++] = key_of(l, i, newest_possible(p));
    }
    if (l->want < l->count)
        qsort(others, count, sizeof *others, newer);
    for (size_t i = 0; !status && i < count; i++) {
        if (l->want < l->count && l->key_count == l->want &&
            others[i].modified_ms < l->keys[0].modified_ms)
            break;
        status = look(l, others[i].place);
    }
    mem_free(&l->store->alloc, others, left * sizeof *others);
    return status;
}

/* ------------------------------------------------------------------ the list cache */

static void row_of(const listing *l, const place *p, list_cache_row *out)
{
    const opened *row = &l->rows[p->row];
    const char *name = name_of(l, p);

    memset(out, 0, sizeof *out);
    out->name = (sessile_slice){name, strlen(name)};
    out->id = text_of(l, row->row.id, row->id);
    out->user = text_of(l, row->row.user, row->user);
    out->title = text_of(l, row->row.title, row->title);
    out->stat = p->stat;
    out->created_ms = row->row.created_ms;
    out->modified_ms = row->row.modified_ms;
    out->entries = (uint32_t)row->row.entries;
    out->messages = (uint32_t)row->row.messages;
    out->labels = text_of(l, row->row.labels, row->labels);
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
        const place *p = &l->places[at];
        if (p->state == KNOWN) {
            list_cache_get(&in->found, p->row, &row);
        } else if (p->state == OPENED && l->rows[p->row].keep) {
            row_of(l, p, &row);
            agent = text_of(l, l->rows[p->row].row.agent, l->rows[p->row].agent);
        } else {
            continue;
        }
        list_cache_draft_add(&d, &row);
    }
    list_cache_draft_put(&d, l->store, in->folder, agent);
    list_cache_draft_deinit(&d);
}

/* ------------------------------------------------------------------ for the host */

typedef struct giving {
    sessile_listed *rows;
    size_t count;
    char *text;
} giving;

static size_t size_with_nul(const sessile_listed *row)
{
    return row->id.size + row->agent.size + row->user.size + row->title.size +
           row->labels.size + 6 + strlen(row->message);
}

static void place_in_life(const listing *l, sessile_listed *out, const life_facts *f)
{
    out->life = life_of(f, out->modified_ms, l->now_ms);
    out->ttl_ms = f->ttl_ms;
    out->expires_ms = life_expires(f, out->modified_ms);
    out->deleted_ms = f->deleted_ms;
}

/* A row whose text is still the listing's or a list cache's. */
static sessile_listed borrowed(const listing *l, const key *k)
{
    const place *p = &l->places[k->place];
    const list_cache *c = &l->folders[p->in].found;
    sessile_listed out;
    list_cache_row row;

    if (p->state == OPENED) {
        const opened *from = &l->rows[p->row];
        out = from->row;
        out.id = text_of(l, out.id, from->id);
        out.agent = text_of(l, out.agent, from->agent);
        out.user = text_of(l, out.user, from->user);
        out.title = text_of(l, out.title, from->title);
        out.message = l->text.data + from->message;
        out.labels = text_of(l, out.labels, from->labels);
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
    key k;
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

/* The keys, newest first, into the order that is asked for. 0 or -1. */
static int sort_by(listing *l)
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

static sessile_status give(listing *l, sessile_listed **out, size_t *count,
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
    rows = give_alloc(&l->store->alloc, n * sizeof *rows + size);
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
        if (newer(&l->keys[i - 1], &l->keys[i]) > 0)
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

sessile_status store_handle_list_with(sessile_store *s,
                                      const sessile_list_options *options,
                                      sessile_listed **out, size_t *count,
                                      sessile_error *err)
{
    listing l = {.store = s, .options = options, .want = most_wanted(options)};
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
            qsort(l.keys, l.key_count, sizeof *l.keys, newer);
        if (options->sort != SESSILE_SORT_MODIFIED && sort_by(&l))
            status = fail_nomem(err);
    }
    if (!status)
        status = give(&l, out, count, err);
    listing_deinit(&l);
    return status;
}

sessile_status store_handle_list(sessile_store *s, const char *agent,
                                 sessile_listed **out, size_t *count, sessile_error *err)
{
    sessile_list_options options;

    memset(&options, 0, sizeof options);
    if (agent)
        options.agent = (sessile_slice){agent, strlen(agent)};
    return store_handle_list_with(s, &options, out, count, err);
}

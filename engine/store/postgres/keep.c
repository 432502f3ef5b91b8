/*
 * keep.c: records of logs in memory, so that they are not fetched again.
 *
 * Records never change, and the id of a log is not used again, so what was read once
 * stays true. Only the end of a log moves, and the server is always asked for it. Two
 * things break this rule, and both begin a new era in which nothing is remembered: a
 * server that failed may have lost commits that it had shown, and a standby that was
 * promoted may never have had them. Then other records get the same place.
 *
 * Bytes are kept in pieces of some PIECE bytes that end where a record ends, sorted by
 * their offset in each log, and in one list of all logs by their last use. The piece that
 * was not used for longest goes first. Appends extend the last piece of their log.
 *
 * A store either shares the records among all handles (keep=BYTES in its URL), or each
 * handle has its own, as a read ahead that is forgotten when it is closed. In the table
 * of shared records a log is found by its name, because it is opened by its name: so the
 * opening can say which records need not be sent.
 *
 * Numbers of records are hints: who reads by them compares offsets (read.c).
 */
#include "store/postgres/keep.h"

#include <string.h>

#include "store/records.h"

enum { PIECE = 64 << 10, SLOTS_FIRST = 64 };

struct keep_piece {
    keep_log *log;
    keep_piece *newer, *older;
    char *data;
    size_t size, capacity;
    uint64_t from, next; /* its offset; the number of the record behind it */
    uint64_t put_us;
};

struct keep_log {
    keep_log *next; /* of its slot */
    uint64_t name, id;
    int listed; /* in the table */
    unsigned handles;
    keep_piece **pieces; /* by offset */
    size_t count, capacity;
};

/* What a piece costs besides its bytes; its log is counted with each of them. */
#define BESIDE (sizeof(keep_piece) + sizeof(keep_log) + sizeof(keep_piece *))

void keep_init(keep *k, const os_table *os, const allocator *a, size_t most, int shared)
{
    *k = (keep){.os = os, .alloc = *a, .most = most, .shared = shared, .era = 1};
    pthread_mutex_init(&k->mutex, NULL);
}

static uint64_t end_of(const keep_piece *p)
{
    return p->from + p->size;
}

/* The first piece that ends behind offset; log->count: there is none. */
static size_t find_piece(const keep_log *log, uint64_t offset)
{
    size_t low = 0, high = log->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (end_of(log->pieces[middle]) > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---------------------------------------------------------------------- by use */

static void unlink_use(keep *k, keep_piece *p)
{
    *(p->newer ? &p->newer->older : &k->newest) = p->older;
    *(p->older ? &p->older->newer : &k->oldest) = p->newer;
}

static void link_use(keep *k, keep_piece *p)
{
    p->newer = NULL;
    p->older = k->newest;
    *(k->newest ? &k->newest->newer : &k->oldest) = p;
    k->newest = p;
}

/* ---------------------------------------------------------------------- the table */

static keep_log **slot_of(const keep *k, uint64_t name)
{
    return &k->table[name & (k->slots - 1)];
}

static keep_log *find_log(const keep *k, uint64_t name)
{
    keep_log *log = k->slots > 0 ? *slot_of(k, name) : NULL;
    while (log && log->name != name)
        log = log->next;
    return log;
}

static int grow_table(keep *k)
{
    size_t slots = k->slots > 0 ? 2 * k->slots : SLOTS_FIRST, was = k->slots;
    keep_log **old = k->table;
    if (k->logs < k->slots)
        return 0;
    keep_log **table = mem_zalloc(&k->alloc, slots * sizeof(keep_log *));
    if (!table)
        return was > 0 ? 0 : -1; /* longer chains will do */
    k->table = table;
    k->slots = slots;
    for (size_t i = 0; i < was; i++) {
        for (keep_log *log = old[i], *next; log; log = next) {
            next = log->next;
            log->next = *slot_of(k, log->name);
            *slot_of(k, log->name) = log;
        }
    }
    mem_free(&k->alloc, (void *)old, was * sizeof *old);
    return 0;
}

static void unlist(keep *k, keep_log *log)
{
    if (!log->listed)
        return;
    for (keep_log **at = slot_of(k, log->name); *at; at = &(*at)->next) {
        if (*at == log) {
            *at = log->next;
            break;
        }
    }
    log->listed = 0;
    k->logs--;
}

static void free_unused(keep *k, keep_log *log)
{
    if (log->handles > 0 || log->count > 0)
        return;
    unlist(k, log);
    mem_free(&k->alloc, (void *)log->pieces, log->capacity * sizeof(keep_piece *));
    mem_free(&k->alloc, log, sizeof *log);
}

/* ---------------------------------------------------------------------- forgetting */

/* Its log stays, also without any piece. */
static void drop_piece(keep *k, keep_piece *p)
{
    keep_log *log = p->log;
    size_t i = find_piece(log, p->from);
    unlink_use(k, p);
    memmove(log->pieces + i, log->pieces + i + 1,
            (log->count - i - 1) * sizeof(keep_piece *));
    log->count--;
    k->bytes -= p->capacity + BESIDE;
    mem_free(&k->alloc, p->data, p->capacity);
    mem_free(&k->alloc, p, sizeof *p);
}

static void drop_pieces(keep *k, keep_log *log)
{
    while (log->count > 0)
        drop_piece(k, log->pieces[log->count - 1]);
}

/* Makes room for as many bytes. */
static void make_room(keep *k, size_t size)
{
    while (k->oldest && k->bytes + size > k->most) {
        keep_log *log = k->oldest->log;
        drop_piece(k, k->oldest);
        free_unused(k, log);
    }
}

static void drop_all(keep *k)
{
    make_room(k, k->most + 1);
}

void keep_deinit(keep *k)
{
    drop_all(k);
    mem_free(&k->alloc, (void *)k->table, k->slots * sizeof *k->table);
    pthread_mutex_destroy(&k->mutex);
}

void keep_forget(keep *k, keep_log *log)
{
    if (!log)
        return;
    pthread_mutex_lock(&k->mutex);
    drop_pieces(k, log);
    pthread_mutex_unlock(&k->mutex);
}

void keep_forget_older(keep *k, keep_log *log, uint64_t us)
{
    uint64_t now = k->os->clock_us(k->os->ud);
    if (!log)
        return;
    pthread_mutex_lock(&k->mutex);
    for (size_t i = log->count; i > 0; i--)
        if (log->pieces[i - 1]->put_us + us <= now)
            drop_piece(k, log->pieces[i - 1]);
    pthread_mutex_unlock(&k->mutex);
}

void keep_begin_era(keep *k)
{
    pthread_mutex_lock(&k->mutex);
    k->era++;
    drop_all(k);
    pthread_mutex_unlock(&k->mutex);
}

uint64_t keep_era(keep *k)
{
    pthread_mutex_lock(&k->mutex);
    uint64_t era = k->era;
    pthread_mutex_unlock(&k->mutex);
    return era;
}

/* ---------------------------------------------------------------------- handles */

static keep_log *log_new(keep *k, uint64_t name, uint64_t id)
{
    keep_log *log = mem_zalloc(&k->alloc, sizeof *log);
    if (log) {
        log->name = name;
        log->id = id;
        log->handles = 1;
    }
    return log;
}

keep_log *keep_attach_alone(keep *k, uint64_t id)
{
    return log_new(k, 0, id);
}

keep_log *keep_attach(keep *k, uint64_t name, uint64_t id)
{
    if (!k->shared)
        return keep_attach_alone(k, id);
    pthread_mutex_lock(&k->mutex);
    keep_log *log = find_log(k, name);
    if (log && log->id != id) { /* replaced: open handles have it until they close it */
        unlist(k, log);
        drop_pieces(k, log);
        free_unused(k, log);
        log = NULL;
    }
    if (log) {
        log->handles++;
    } else if (grow_table(k) == 0) {
        log = log_new(k, name, id);
        if (log) {
            log->listed = 1;
            log->next = *slot_of(k, name);
            *slot_of(k, name) = log;
            k->logs++;
        }
    }
    pthread_mutex_unlock(&k->mutex);
    return log;
}

void keep_detach(keep *k, keep_log *log)
{
    if (!log)
        return;
    pthread_mutex_lock(&k->mutex);
    log->handles--;
    if (log->handles == 0 && !log->listed)
        drop_pieces(k, log);
    free_unused(k, log);
    pthread_mutex_unlock(&k->mutex);
}

void keep_known(keep *k, uint64_t name, uint64_t *id, uint64_t *count, uint64_t *bytes)
{
    *id = *count = *bytes = 0;
    pthread_mutex_lock(&k->mutex);
    const keep_log *log = find_log(k, name);
    for (size_t i = 0; log && i < log->count; i++) {
        const keep_piece *p = log->pieces[i];
        if (p->from != *bytes)
            break;
        *id = log->id;
        *count = p->next;
        *bytes = end_of(p);
    }
    pthread_mutex_unlock(&k->mutex);
}

/* ---------------------------------------------------------------------- putting */

/* The records at the beginning of text that go into one piece, of which `there` bytes are
 * taken: their bytes, and how many. */
static size_t cut(const char *text, size_t size, size_t there, uint64_t *records)
{
    size_t taken = 0;
    *records = 0;
    while (taken < size) {
        size_t n = record_size(text + taken, size - taken);
        if (there + taken > 0 && there + taken + n > PIECE)
            break;
        taken += n;
        (*records)++;
    }
    return taken;
}

/* Puts records behind a piece, if they go into it; returns how many bytes did. */
static size_t extend(keep *k, keep_piece *p, const char *text, size_t size)
{
    uint64_t records;
    size_t n = p->size < PIECE ? cut(text, size, p->size, &records) : 0;
    if (n == 0)
        return 0;
    if (p->size + n > p->capacity) {
        size_t capacity = 2 * p->capacity < PIECE ? 2 * p->capacity : PIECE;
        capacity = capacity < p->size + n ? p->size + n : capacity;
        char *data = mem_realloc(&k->alloc, p->data, p->capacity, capacity);
        if (!data)
            return 0;
        k->bytes += capacity - p->capacity;
        p->data = data;
        p->capacity = capacity;
    }
    memcpy(p->data + p->size, text, n);
    p->size += n;
    p->next += records;
    p->put_us = k->os->clock_us(k->os->ud);
    unlink_use(k, p);
    link_use(k, p);
    return n;
}

/* Puts one piece as number i of its log; returns how many bytes it took, 0: no memory. */
static size_t insert(keep *k, keep_log *log, size_t i, const keep_stretch *s)
{
    uint64_t records;
    size_t n = cut(s->data, s->size, 0, &records);
    if (n + BESIDE > k->most || mem_grow(&k->alloc, (void **)&log->pieces, &log->capacity,
                                         log->count + 1, sizeof(keep_piece *)) != 0)
        return 0;
    keep_piece *p = mem_zalloc(&k->alloc, sizeof *p);
    char *data = p ? mem_alloc(&k->alloc, n) : NULL;
    if (!data) {
        mem_free(&k->alloc, p, sizeof *p);
        return 0;
    }
    memcpy(data, s->data, n);
    *p = (keep_piece){.log = log,
                      .data = data,
                      .size = n,
                      .capacity = n,
                      .from = s->from,
                      .next = s->first + records,
                      .put_us = k->os->clock_us(k->os->ud)};
    memmove(log->pieces + i + 1, log->pieces + i,
            (log->count - i) * sizeof(keep_piece *));
    log->pieces[i] = p;
    log->count++;
    k->bytes += n + BESIDE;
    link_use(k, p);
    return n;
}

/* Puts what belongs in the gap before piece i; returns how many bytes, 0: no memory. */
static size_t fill_gap(keep *k, keep_log *log, size_t i, const keep_stretch *s)
{
    keep_piece *before = i > 0 ? log->pieces[i - 1] : NULL;
    size_t n = 0;
    if (before && end_of(before) == s->from)
        n = extend(k, before, s->data, s->size);
    return n > 0 ? n : insert(k, log, i, s);
}

void keep_put(keep *k, keep_log *log, const keep_stretch *s, uint64_t era)
{
    uint64_t at = s->from, end = s->from + s->size, index = s->first;
    if (!log)
        return;
    pthread_mutex_lock(&k->mutex);
    while (at < end && era == k->era) {
        size_t i = find_piece(log, at);
        const keep_piece *p = i < log->count ? log->pieces[i] : NULL;
        if (p && p->from <= at) { /* it is there */
            at = end_of(p);
            index = p->next;
            continue;
        }
        uint64_t until = p && p->from < end ? p->from : end;
        keep_stretch gap = {s->data + (at - s->from), (size_t)(until - at), at, index};
        size_t n = fill_gap(k, log, i, &gap);
        if (n == 0)
            break;
        index += record_count(gap.data, n);
        at += n;
    }
    log->handles++; /* it must not go with its last piece */
    make_room(k, 0);
    log->handles--;
    pthread_mutex_unlock(&k->mutex);
}

/* ---------------------------------------------------------------------- getting */

size_t keep_get(keep *k, keep_log *log, uint64_t offset, char *out, size_t size,
                uint64_t *index)
{
    size_t got = 0;
    *index = UINT64_MAX;
    if (!log)
        return 0;
    pthread_mutex_lock(&k->mutex);
    size_t i = find_piece(log, offset);
    if (i > 0 && end_of(log->pieces[i - 1]) == offset)
        *index = log->pieces[i - 1]->next;
    for (; got < size && i < log->count && log->pieces[i]->from <= offset + got; i++) {
        keep_piece *p = log->pieces[i];
        size_t skip = (size_t)(offset + got - p->from);
        size_t n = p->size - skip < size - got ? p->size - skip : size - got;
        memcpy(out + got, p->data + skip, n);
        got += n;
        *index = skip + n == p->size ? p->next : UINT64_MAX;
        unlink_use(k, p);
        link_use(k, p);
    }
    pthread_mutex_unlock(&k->mutex);
    return got;
}

uint64_t keep_lacks(keep *k, keep_log *log, uint64_t offset, uint64_t size)
{
    uint64_t lacks = size;
    if (!log || size == 0)
        return size;
    pthread_mutex_lock(&k->mutex);
    size_t i = find_piece(log, offset);
    uint64_t from = i < log->count ? log->pieces[i]->from : UINT64_MAX, end = from;
    if (from > offset && from - offset < size) {
        while (i < log->count && log->pieces[i]->from == end && end - offset < size)
            end = end_of(log->pieces[i++]);
        if (end - offset >= size)
            lacks = from - offset;
    }
    pthread_mutex_unlock(&k->mutex);
    return lacks;
}

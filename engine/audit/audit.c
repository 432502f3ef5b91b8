/*
 * audit.c: what becomes of an event: it is counted, written, synced.
 *
 * Owns the order: what was counted is written before the next event, in the same write.
 * Must never put a user's name, or anything that was not built here, into an entry.
 */
#include "audit/audit_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "codec/entry.h"

enum {
    EQUAL_MOST = 60,
    MINUTE_MS = 60000,
    TEXTS_MOST = 2 * COUNTED_MOST + 4,
    KNOWN_MOST = 1024
};

/* An entry to be written. */
typedef struct draft {
    entry_type type;
    buf data;
    const char *user; /* whose `who` entry it needs, or "" */
} draft;

/* ------------------------------------------------------------------ opening */

sessile_status audit_open(audit_log **out, store_core *st, const audit_options *options,
                          sessile_error *err)
{
    const sessile_backend *table = st->backend.table;
    audit_log *a;

    *out = NULL;
    if (st->over_records || !table->blob_get || !table->blob_put_new ||
        !table->blob_replace || !table->blob_list)
        return fail(err, SESSILE_UNSUPPORTED,
                    "this store keeps no blobs, so it has no place for the keys of an "
                    "audit: put the audit in another store");
    a = mem_zalloc(&st->alloc, sizeof *a);
    if (!a)
        return fail_nomem(err);
    a->store = st;
    a->pid = st->os->pid(st->os->ud);
    a->lanes.store = st;
    a->lanes.part_bytes =
        options && options->part_bytes ? options->part_bytes : LANE_BYTES;
    pthread_mutex_init(&a->mutex, NULL);
    for (size_t i = 0; i < COUNTED_MOST; i++)
        buf_init(&a->counts[i].data, &st->alloc);
    *out = a;
    return SESSILE_OK;
}

static sessile_status enter(audit_log *a, sessile_error *err)
{
    if (a->store->os->pid(a->store->os->ud) != a->pid)
        return fail(err, SESSILE_FORKED,
                    "this audit was opened by process %" PRIu32 ": open it again here",
                    a->pid);
    pthread_mutex_lock(&a->mutex);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ writing */

static void add_text(const audit_log *a, const lane *l, buf *texts, size_t *ends,
                     size_t *count, entry_type type, const buf *data)
{
    store_core *st = a->store;
    entry_fields fields = {.id = log_count(l->log) + (sessile_id)*count,
                           .parent = 0,
                           .time_ms = st->os->now_ms(st->os->ud),
                           .type = type,
                           .source = SOURCE_HOST,
                           .tokens = -1};
    entry_put_data(texts, &fields, data);
    ends[(*count)++] = texts->size;
}

/* Builds the texts of drafts, each user's name before it, and appends them. *last: the id
 * of the last draft. */
static sessile_status append(audit_log *a, lane *l, const draft *drafts,
                             size_t draft_count, sessile_id *last, sessile_error *err)
{
    sessile_slice slices[TEXTS_MOST];
    size_t ends[TEXTS_MOST], count = 0, from = 0;
    sessile_status status;
    buf texts;

    buf_init(&texts, &a->store->alloc);
    for (size_t i = 0; i < draft_count; i++) {
        const known_user *u = audit_user_of(a, drafts[i].user);
        uint32_t there;
        int named = !u || !u->who.size ||
                    map_get(&l->who, hash64(u->name, strlen(u->name)), &there);
        for (size_t k = 0; k < i && !named; k++)
            named = !strcmp(drafts[k].user, drafts[i].user);
        if (!named)
            add_text(a, l, &texts, ends, &count, ENTRY_WHO, &u->who);
        add_text(a, l, &texts, ends, &count, drafts[i].type, &drafts[i].data);
    }
    for (size_t i = 0; i < count; from = ends[i++])
        slices[i] = (sessile_slice){texts.data + from, ends[i] - from};
    status = texts.failed ? fail_nomem(err) : lane_append(l, slices, count, err);
    *last = log_count(l->log) - 1;
    buf_deinit(&texts);
    return status;
}

/* Writes drafts to a lane; id: of the last one. sync: and makes it durable. */
static sessile_status commit(audit_log *a, const draft *drafts, size_t count, int sync,
                             char id[AUDIT_ID], sessile_error *err)
{
    enum { TRIES = 1000 };
    store_core *st = a->store;
    sessile_status status = SESSILE_CONFLICT;
    sessile_id last = SESSILE_NO_ID;
    char part[LANE_NAME];
    size_t at = 0;
    lane *l;

    for (int i = 0; status == SESSILE_CONFLICT && i < TRIES; i++) {
        error_clear(err);
        status = audit_lanes_take(&a->lanes, &at, err);
        if (status)
            return status;
        l = a->lanes.open[at];
        status = append(a, l, drafts, count, &last, err);
        lane_part_name(l->head.lane, l->head.part, part);
        lane_end(l);
        if (status == SESSILE_CONFLICT) /* somebody uses it: the next one */
            a->lanes.current = (at + 1) % a->lanes.count;
    }
    if (status)
        return status;
    l = a->lanes.open[at];
    snprintf(id, AUDIT_ID, "%.12s/%08" PRIx32, part, last);
    a->lanes.unsynced[at] = 1;
    if (lane_is_due(l, st->os->now_ms(st->os->ud))) {
        status = lane_seal(l, st->config.timeout_ms, err);
        if (status ==
            SESSILE_BUSY) { /* others seal it; it is due at the next event too */
            error_clear(err);
            status = SESSILE_OK;
        } else if (!status) {
            a->lanes.unsynced[at] = 0;
        }
    }
    if (!status && sync && a->lanes.unsynced[at]) {
        status = lane_sync(l, err);
        a->lanes.unsynced[at] = status != SESSILE_OK;
    }
    return status;
}

/* ------------------------------------------------------------------ counting */

static int is_over(const counted *c, int64_t now_ms)
{
    return now_ms - c->since_ms >= MINUTE_MS || now_ms < c->since_ms;
}

/* Makes drafts of what was counted, and was not written: all reads, and failures whose
 * minute is over (all 1: all of them). */
static size_t take_counts(audit_log *a, draft *drafts, int all, int64_t now_ms)
{
    size_t made = 0;

    for (size_t i = 0; i < a->count_count; i++) {
        const counted *c = &a->counts[i];
        uint64_t left = !c->is_failure          ? c->count
                        : c->count > EQUAL_MOST ? c->count - EQUAL_MOST
                                                : 0;
        if (!left || (c->is_failure && !all && !is_over(c, now_ms)))
            continue;
        drafts[made] = (draft){.type = ENTRY_EVENT, .user = c->user};
        buf_init(&drafts[made].data, &a->store->alloc);
        buf_put(&drafts[made].data, c->data.data, c->data.size);
        audit_event_end(&drafts[made].data, left);
        made++;
    }
    return made;
}

/* What take_counts() took, with the same `all` and time, is written. */
static void drop_counts(audit_log *a, int all, int64_t now_ms)
{
    size_t kept = 0;

    for (size_t i = 0; i < a->count_count; i++) {
        counted *c = &a->counts[i], *to = &a->counts[kept];
        if (c->is_failure && !all && !is_over(c, now_ms)) {
            counted moved = *c;
            *c = *to;
            *to = moved;
            kept++;
        }
    }
    for (size_t i = kept; i < a->count_count; i++)
        buf_clear(&a->counts[i].data);
    a->count_count = kept;
}

/* The row of equal events, which is made; NULL: no memory, or no room. */
static counted *count_of(audit_log *a, const buf *data, const char *user, int is_failure)
{
    uint64_t hash = hash64(data->data, data->size);
    counted *c;

    for (size_t i = 0; i < a->count_count; i++)
        if (a->counts[i].hash == hash && a->counts[i].is_failure == is_failure)
            return &a->counts[i];
    if (a->count_count == COUNTED_MOST)
        return NULL;
    c = &a->counts[a->count_count];
    buf_clear(&c->data);
    buf_put(&c->data, data->data, data->size);
    if (c->data.failed)
        return NULL;
    c->hash = hash;
    c->count = c->same = 0;
    c->is_failure = is_failure;
    c->since_ms = a->store->os->now_ms(a->store->os->ud);
    snprintf(c->user, sizeof c->user, "%s", user);
    a->count_count++;
    return c;
}

/* Writes what was counted, and one more event or (data NULL) none. */
static sessile_status write_all(audit_log *a, const buf *data, const char *user, int sync,
                                int all, char id[AUDIT_ID], sessile_error *err)
{
    draft drafts[COUNTED_MOST + 1];
    int64_t now_ms = a->store->os->now_ms(a->store->os->ud);
    size_t counts = take_counts(a, drafts, all, now_ms), made = counts;
    sessile_status status = SESSILE_OK;

    if (data)
        drafts[made++] = (draft){ENTRY_EVENT, *data, user};
    if (made)
        status = commit(a, drafts, made, sync, id, err);
    /* After a failed sync they are written all the same. */
    if (!status || (made && id[0]))
        drop_counts(a, all, now_ms);
    for (size_t i = 0; i < counts; i++)
        buf_deinit(&drafts[i].data);
    return status;
}

static sessile_status write_event(audit_log *a, audit_class class, const audit_event *e,
                                  const char *user, char id[AUDIT_ID], sessile_error *err)
{
    int is_failure = e->outcome.is == AUDIT_FAILURE && class == AUDIT_WRITE;
    sessile_status status = SESSILE_OK;
    char owner[PSEUDONYM_SIZE] = "";
    counted *c = NULL;
    buf data;

    buf_init(&data, &a->store->alloc);
    if (e->operation.owner.size)
        audit_owner_of(a, e->operation.owner, owner);
    audit_event_begin(&data, e, user, owner);
    if (data.failed) {
        buf_deinit(&data);
        return fail_nomem(err);
    }
    if (class == AUDIT_READ || (is_failure && class == AUDIT_WRITE)) {
        c = count_of(a, &data, user, is_failure);
        if (!c) {
            status = write_all(a, NULL, "", 0, 1, id, err);
            c = status ? NULL : count_of(a, &data, user, is_failure);
            id[0] = 0;
        }
        if (!status && !c)
            status = fail_nomem(err);
        if (c && is_failure && c->count >= EQUAL_MOST &&
            is_over(c, a->store->os->now_ms(a->store->os->ud))) {
            status = write_all(a, NULL, "", 0, 0, id, err);
            c = status ? NULL : count_of(a, &data, user, is_failure);
            id[0] = 0;
        }
        if (c) {
            c->count++;
            c->same = class == AUDIT_READ ? e->same : 0;
        }
    }
    if (!status && class != AUDIT_READ && (!c || c->count <= EQUAL_MOST)) {
        audit_event_end(&data, 1);
        status = data.failed
                     ? fail_nomem(err)
                     : write_all(a, &data, user, class == AUDIT_SYNCED, 0, id, err);
    }
    buf_deinit(&data);
    return status;
}

/* Forgets the pseudonyms that are known, once what was counted needs none of them. */
static sessile_status make_room(audit_log *a, sessile_error *err)
{
    char id[AUDIT_ID] = "";
    sessile_status status = SESSILE_OK;

    if (a->users.count < KNOWN_MOST)
        return SESSILE_OK;
    status = write_all(a, NULL, "", 0, 1, id, err);
    while (!status && a->users.count)
        buf_deinit(&a->users.at[--a->users.count].who);
    return status;
}

/* 1: an event with that number was counted already, and is counted once more. The process
 * is not asked for, which costs more than all of this: what was read was read by a handle
 * that has asked. */
static int count_same(audit_log *a, uint64_t same)
{
    int found = 0;

    pthread_mutex_lock(&a->mutex);
    for (size_t i = 0; i < a->count_count && !found; i++)
        if (a->counts[i].same == same) {
            a->counts[i].count++;
            found = 1;
        }
    pthread_mutex_unlock(&a->mutex);
    return found;
}

sessile_status audit_write(audit_log *a, audit_class class, const audit_event *e,
                           char id[AUDIT_ID], sessile_error *err)
{
    sessile_error local = {0};
    known_user *u = NULL;
    char own[AUDIT_ID] = "";
    sessile_status status;

    if (id)
        id[0] = 0;
    if (class == AUDIT_READ && e->same && count_same(a, e->same))
        return SESSILE_OK;
    err = err ? err : &local;
    status = enter(a, err);
    if (status)
        return status;
    if (e->who.user.size)
        status = make_room(a, err);
    if (!status && e->who.user.size)
        status = audit_user_find(a, e->who.user, &u, err);
    if (!status)
        status = write_event(a, class, e, u ? u->name : "", own, err);
    pthread_mutex_unlock(&a->mutex);
    if (id)
        memcpy(id, own, AUDIT_ID);
    return status;
}

/* ------------------------------------------------------------------ ends */

static sessile_status write_counts(audit_log *a, sessile_error *err)
{
    char id[AUDIT_ID] = "";

    return write_all(a, NULL, "", 0, 1, id, err);
}

static sessile_status flush(audit_log *a, sessile_error *err)
{
    sessile_status status = write_counts(a, err);

    for (size_t i = 0; !status && i < a->lanes.count; i++)
        if (a->lanes.unsynced[i]) {
            status = lane_sync(a->lanes.open[i], err);
            a->lanes.unsynced[i] = status != SESSILE_OK;
        }
    return status;
}

/* A seal's sync is that of its events, too. */
static sessile_status seal_all(audit_log *a, sessile_error *err)
{
    sessile_status status = write_counts(a, err);

    for (size_t i = 0; !status && i < a->lanes.count; i++)
        if (a->lanes.open[i]) {
            status = lane_seal(a->lanes.open[i], a->store->config.timeout_ms, err);
            a->lanes.unsynced[i] &= status != SESSILE_OK;
        }
    return status;
}

sessile_status audit_flush(audit_log *a, sessile_error *err)
{
    sessile_status status = enter(a, err);

    if (status)
        return status;
    status = flush(a, err);
    pthread_mutex_unlock(&a->mutex);
    return status;
}

sessile_status audit_seal(audit_log *a, sessile_error *err)
{
    sessile_status status = enter(a, err);

    if (status)
        return status;
    status = seal_all(a, err);
    pthread_mutex_unlock(&a->mutex);
    return status;
}

sessile_status audit_close(audit_log *a, sessile_error *err)
{
    const allocator *alloc;
    sessile_status status = SESSILE_OK;

    if (!a)
        return SESSILE_OK;
    alloc = &a->store->alloc;
    if (a->store->os->pid(a->store->os->ud) == a->pid)
        status = flush(a, err);
    audit_lanes_close(&a->lanes);
    for (size_t i = 0; i < COUNTED_MOST; i++)
        buf_deinit(&a->counts[i].data);
    for (size_t i = 0; i < a->users.count; i++)
        buf_deinit(&a->users.at[i].who);
    mem_free(alloc, a->users.at, a->users.capacity * sizeof *a->users.at);
    pthread_mutex_destroy(&a->mutex);
    mem_free(alloc, a, sizeof *a);
    return status;
}

sessile_status audit_root(audit_log *a, char out[SEAL_HEX], sessile_error *err)
{
    size_t at;
    sessile_status status = enter(a, err);

    if (status)
        return status;
    status = audit_lanes_take(&a->lanes, &at, err);
    if (!status) {
        hex_encode(out, a->lanes.open[at]->head.root, SIGN_PUBLIC);
        lane_end(a->lanes.open[at]);
    }
    pthread_mutex_unlock(&a->mutex);
    return status;
}

void audit_owner_of(const audit_log *a, sessile_slice user, char out[PSEUDONYM_SIZE])
{
    pseudonym_under_name_key(a->store->keys, user, out);
}

store_core *audit_store(const audit_log *a)
{
    return a->store;
}

uint64_t audit_part_bytes(const audit_log *a)
{
    return a->lanes.part_bytes;
}

sessile_status audit_reseal(store_core *st, sessile_error *err)
{
    return lane_seeds_reseal(st, err);
}

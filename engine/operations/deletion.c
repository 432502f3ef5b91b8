/*
 * deletion.c: the records of sessions that were removed for good.
 *
 * Each is a blob of its own, deleted-TIME-RANDOM, so that writing one needs no lock and
 * changes no other: an object in JSON, sealed as a list cache is, with the name of the
 * blob as its purpose. Must never keep a name of a session that had a user: forgetting a
 * user leaves nothing of them.
 */
#include "operations/deletion.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "codec/json.h"
#include "vault/vault.h"

#define PREFIX "deleted-"

static int keeps_records(const store_core *st)
{
    const sessile_backend *table = st->backend.table;

    return table->blob_list && table->blob_put_new && table->blob_get;
}

static void put_member(buf *out, const char *name, sessile_slice text)
{
    if (!text.size || !utf8_valid(text.data, text.size))
        return;
    buf_printf(out, ",\"%s\":", name);
    json_put_string(out, text.data, text.size);
}

static sessile_status put_blob(store_core *st, const buf *text, int64_t time_ms,
                               char name[DELETION_NAME], sessile_error *err)
{
    sessile_status status = SESSILE_EXISTS;
    buf sealed;

    buf_init(&sealed, &st->alloc);
    for (int tries = 0; status == SESSILE_EXISTS && tries < 3; tries++) {
        uint32_t random;
        random_bytes(&random, sizeof random);
        snprintf(name, DELETION_NAME, PREFIX "%013" PRIi64 "-%08" PRIx32, time_ms,
                 random);
        buf_clear(&sealed);
        error_clear(err);
        status = keyring_seal_blob(st->keys, name, strlen(name), text->data, text->size,
                                   &sealed, err);
        if (!status)
            status = st->backend.table->blob_put_new(st->backend.self, name, sealed.data,
                                                     sealed.size, err);
    }
    buf_deinit(&sealed);
    return status;
}

sessile_status deletion_put(store_core *st, const session_names *names,
                            const sessile_delete_options *o, const sessile_deleted *gone,
                            char name[DELETION_NAME], sessile_error *err)
{
    sessile_status status;
    buf text;

    name[0] = 0;
    if (!keeps_records(st))
        return SESSILE_OK;
    if (keyring_sealed(st->keys))
        (void)keyring_refresh(st->keys, NULL); /* the newest key, if it can be read */
    buf_init(&text, &st->alloc);
    buf_printf(&text, "{\"id_hash\":\"%s\",\"bytes\":%" PRIu64, gone->id_hash,
               gone->bytes);
    if (!names->user.size) {
        put_member(&text, "agent", names->agent);
        put_member(&text, "id", names->id);
    }
    put_member(&text, "reason", o->reason);
    put_member(&text, "actor", o->actor);
    buf_putc(&text, '}');
    status =
        text.failed ? fail_nomem(err) : put_blob(st, &text, gone->time_ms, name, err);
    buf_deinit(&text);
    if (status)
        name[0] = 0;
    return status;
}

void deletion_drop(store_core *st, const char *name)
{
    sessile_error ignored;

    if (name[0] && st->backend.table->blob_remove)
        (void)st->backend.table->blob_remove(st->backend.self, name, &ignored);
}

/* ------------------------------------------------------------------ all of them */

static sessile_status find(blob_names *r, store_core *st, sessile_error *err)
{
    return blob_names_find(r, st->backend.table, st->backend.self, PREFIX, &st->alloc,
                           err);
}

/* The text of a record, and its sealed bytes: host_free(). DAMAGED: it does not open. */
static sessile_status get(store_core *st, const char *name, buf *text, char **blob,
                          size_t *size, sessile_error *err)
{
    buf checked;
    sessile_status status =
        st->backend.table->blob_get(st->backend.self, name, blob, size, err);

    buf_clear(text);
    if (status)
        return status;
    buf_init(&checked, &st->alloc);
    if (keyring_open_blob(st->keys, name, strlen(name), *blob, *size, text) ||
        json_check(&checked, text->data, text->size, 4, NULL))
        status =
            fail(err, text->failed || checked.failed ? SESSILE_NOMEM : SESSILE_DAMAGED,
                 "the blob %s, the record of a deletion, is not what was written", name);
    buf_deinit(&checked);
    if (status) {
        host_free(*blob);
        *blob = NULL;
    }
    return status;
}

static sessile_status reseal_one(store_core *st, const char *name, buf *text, buf *sealed,
                                 sessile_error *err)
{
    char *blob;
    size_t size;
    sessile_status status = get(st, name, text, &blob, &size, err);

    if (status == SESSILE_DAMAGED || status == SESSILE_NOTFOUND) {
        error_clear(err); /* there is nothing to seal again */
        return SESSILE_OK;
    }
    if (status)
        return status;
    buf_clear(sealed);
    if (keyring_blob_is_old(st->keys, blob, size)) {
        status = keyring_seal_blob(st->keys, name, strlen(name), text->data, text->size,
                                   sealed, err);
        if (!status)
            status = st->backend.table->blob_replace(st->backend.self, name, blob, size,
                                                     sealed->data, sealed->size, err);
    }
    host_free(blob);
    return status;
}

sessile_status deletions_reseal(store_core *st, sessile_error *err)
{
    blob_names all;
    buf text, sealed;
    sessile_status status = find(&all, st, err);
    const char *name = all.text.data;

    buf_init(&text, &st->alloc);
    buf_init(&sealed, &st->alloc);
    for (size_t i = 0; !status && i < all.count; i++, name += strlen(name) + 1)
        status = reseal_one(st, name, &text, &sealed, err);
    buf_deinit(&sealed);
    buf_deinit(&text);
    buf_deinit(&all.text);
    return status;
}

/* Puts a record as it is, or brings that of an earlier copy up to date. */
static sessile_status put_copy(store_core *to, const char *name, const char *data,
                               size_t size, uint64_t *copied, sessile_error *err)
{
    const sessile_backend *table = to->backend.table;
    char *was;
    size_t was_size;
    sessile_status status = table->blob_put_new(to->backend.self, name, data, size, err);

    *copied += !status;
    if (status != SESSILE_EXISTS)
        return status;
    error_clear(err);
    status = table->blob_get(to->backend.self, name, &was, &was_size, err);
    if (!status && table->blob_replace && (was_size != size || memcmp(was, data, size)))
        status =
            table->blob_replace(to->backend.self, name, was, was_size, data, size, err);
    host_free(was);
    return status;
}

static sessile_status copy_one(store_core *from, store_core *to, const char *name,
                               int reseal, uint64_t *copied, sessile_error *err)
{
    char *blob = NULL;
    size_t size;
    buf text, sealed;
    sessile_status status;

    if (!reseal) {
        status =
            from->backend.table->blob_get(from->backend.self, name, &blob, &size, err);
        if (!status)
            status = put_copy(to, name, blob, size, copied, err);
        host_free(blob);
        return status;
    }
    buf_init(&text, &from->alloc);
    buf_init(&sealed, &from->alloc);
    status = get(from, name, &text, &blob, &size, err);
    host_free(blob);
    if (!status)
        status = keyring_seal_blob(to->keys, name, strlen(name), text.data, text.size,
                                   &sealed, err);
    if (!status)
        status = to->backend.table->blob_put_new(to->backend.self, name, sealed.data,
                                                 sealed.size, err);
    *copied += !status;
    if (status == SESSILE_EXISTS) { /* of an earlier copy, under the same keys */
        error_clear(err);
        status = SESSILE_OK;
    }
    buf_deinit(&text);
    buf_deinit(&sealed);
    return status;
}

sessile_status deletions_copy(store_core *from, store_core *to, int reseal,
                              uint64_t *copied, uint64_t *lost, sessile_error *err)
{
    blob_names all;
    sessile_status status = SESSILE_OK;
    const char *name;

    *copied = *lost = 0;
    if (!keeps_records(from) || !keeps_records(to))
        return SESSILE_OK;
    status = find(&all, from, err);
    name = all.text.data;
    for (size_t i = 0; !status && i < all.count; i++, name += strlen(name) + 1) {
        status = copy_one(from, to, name, reseal, copied, err);
        if (status == SESSILE_DAMAGED) {
            *lost += 1;
            error_clear(err);
            status = SESSILE_OK;
        }
    }
    buf_deinit(&all.text);
    return status;
}

/* A row, and where its texts begin among all texts. */
typedef struct row {
    sessile_deletion r;
    size_t at[4];
} row;

static sessile_slice *text_of(sessile_deletion *r, size_t which)
{
    sessile_slice *const texts[] = {&r->id, &r->agent, &r->reason, &r->actor};

    return texts[which];
}

/* text: of the record; empty: it does not open, and only its time is known. */
static void read_row(row *out, const char *name, const buf *text, buf *texts)
{
    static const char *const members[] = {"id", "agent", "reason", "actor"};
    json all = json_of(text->data, text->size);
    const char *hash;
    size_t size;

    memset(out, 0, sizeof *out);
    out->r.time_ms = strtoll(name + sizeof PREFIX - 1, NULL, 10);
    (void)json_uint(json_get(all, "bytes"), &out->r.bytes);
    if (json_plain(json_get(all, "id_hash"), &hash, &size) &&
        size < sizeof out->r.id_hash)
        memcpy(out->r.id_hash, hash, size);
    for (size_t i = 0; i < 4; i++) {
        json value = json_get(all, members[i]);
        out->at[i] = texts->size;
        if (value.type == JSON_STRING && json_string(texts, value) == 0)
            text_of(&out->r, i)->size = texts->size - out->at[i];
        buf_putc(texts, 0);
    }
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = ((const row *)a)->r.time_ms, y = ((const row *)b)->r.time_ms;

    return x > y ? -1 : x < y;
}

static sessile_status give(row *rows, size_t n, const buf *texts, const allocator *a,
                           sessile_deletion **out, sessile_error *err)
{
    sessile_deletion *all = host_alloc(a, n * sizeof *all + texts->size + 1);

    if (!all)
        return fail_nomem(err);
    char *text = (char *)(all + n);
    if (texts->size)
        memcpy(text, texts->data, texts->size);
    if (n)
        qsort(rows, n, sizeof *rows, newest_first);
    for (size_t i = 0; i < n; i++) {
        all[i] = rows[i].r;
        for (size_t which = 0; which < 4; which++)
            text_of(&all[i], which)->data = text + rows[i].at[which];
    }
    *out = all;
    return SESSILE_OK;
}

/* Reads all records into rows. *n: how many there are. */
static sessile_status read_all(store_core *st, const blob_names *all, row *rows,
                               buf *texts, size_t *n, sessile_error *err)
{
    const char *name = all->text.data;
    sessile_status status = SESSILE_OK;
    buf text;

    buf_init(&text, &st->alloc);
    for (size_t i = 0; !status && i < all->count; i++, name += strlen(name) + 1) {
        char *blob;
        size_t size;
        status = get(st, name, &text, &blob, &size, err);
        if (!status)
            host_free(blob);
        if (status == SESSILE_DAMAGED)
            buf_clear(&text); /* that there was a deletion is still known */
        if (!status || status == SESSILE_DAMAGED)
            read_row(&rows[(*n)++], name, &text, texts);
        if (status == SESSILE_DAMAGED || status == SESSILE_NOTFOUND) {
            error_clear(err);
            status = SESSILE_OK;
        }
    }
    buf_deinit(&text);
    return !status && texts->failed ? fail_nomem(err) : status;
}

sessile_status deletions_list(store_core *st, sessile_deletion **out, size_t *count,
                              sessile_error *err)
{
    sessile_status status =
        keyring_sealed(st->keys) ? keyring_refresh(st->keys, err) : SESSILE_OK;
    row *rows = NULL;
    size_t n = 0;
    blob_names all;
    buf texts;

    if (status)
        return status;
    buf_init(&texts, &st->alloc);
    status = find(&all, st, err);
    if (!status) {
        rows = mem_zalloc(&st->alloc, (all.count + 1) * sizeof *rows);
        status = rows ? read_all(st, &all, rows, &texts, &n, err) : fail_nomem(err);
    }
    if (!status)
        status = give(rows, n, &texts, &st->alloc, out, err);
    if (!status)
        *count = n;
    if (rows)
        mem_free(&st->alloc, rows, (all.count + 1) * sizeof *rows);
    buf_deinit(&texts);
    buf_deinit(&all.text);
    return status;
}

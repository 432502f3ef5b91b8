/*
 * fuzz_list_cache.c: what a list remembers of a folder, from the outside and behind its
 * seal.
 *
 * The first byte chooses: 0 the rest is the list cache as it lies in the store; 1 it is
 * what the box holds, boxed here first; 2 it is names and numbers of rows that are put.
 *
 * Holds: what loads has rows whose text lies in it and an order that names each once; a
 * row is found by its name; what was put is got as it was; nothing is an error.
 */
#include "guard/enter.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "admin/list_cache.h"

#define FOLDER  "main"
#define PURPOSE "sessile list cache 4:" FOLDER

static const char *const words[] = {"\1\0", "\xff\xff\xff\xff", "main", NULL};

const fuzz_about fuzz_this = {"list_cache", 100000, 1 << 12, words};

/* ---- a store that has one stored */

static buf stored;

static sessile_status stored_get(void *self, const char *folder, char **out, size_t *size,
                                 sessile_error *err)
{
    (void)self, (void)folder;
    *out = host_dup(&allocator_default, stored.data ? stored.data : "", stored.size);
    *size = stored.size;
    return *out ? SESSILE_OK : fail_nomem(err);
}

static sessile_status list_cache_put(void *self, const char *folder, const void *data,
                                     size_t size, sessile_error *err)
{
    (void)self, (void)folder, (void)err;
    buf_clear(&stored);
    buf_put(&stored, data, size);
    return SESSILE_OK;
}

static const sessile_backend table = {.version = SESSILE_BACKEND_VERSION,
                                      .capabilities = SESSILE_BACKEND_LIST_CACHE,
                                      .name = "stored",
                                      .list_cache_get = stored_get,
                                      .list_cache_put = list_cache_put};

static store_core *a_store(void)
{
    static store_core st;
    if (!st.keys) {
        st.alloc = allocator_default;
        st.backend.table = &table;
        st.keys = (keyring *)(uintptr_t)fixed_keyring(1);
        buf_init(&stored, &allocator_default);
    }
    return &st;
}

/* ---- what holds */

static void inside(sessile_slice text, const list_cache *c)
{
    FUZZ_CHECK(text.size == 0 || (text.data >= c->data.data &&
                                  text.data + text.size <= c->data.data + c->data.size));
}

static void look(void)
{
    list_cache c;
    list_cache_row row;
    FUZZ_CHECK(list_cache_load(&c, a_store(), FOLDER) == SESSILE_OK);
    inside(c.agent, &c);
    for (size_t i = 0; i < c.count; i++) {
        size_t found;
        FUZZ_CHECK(list_cache_newest(&c, i) < c.count);
        FUZZ_CHECK(i == 0 || list_cache_modified(&c, list_cache_newest(&c, i - 1)) >=
                                 list_cache_modified(&c, list_cache_newest(&c, i)));
        list_cache_get(&c, i, &row);
        inside(row.name, &c);
        inside(row.id, &c);
        inside(row.user, &c);
        inside(row.title, &c);
        inside(row.labels, &c);
        FUZZ_CHECK(list_cache_fits(&c, i, &row.stat));
        char *name = fuzz_copy(row.name.data, row.name.size + 1);
        name[row.name.size] = '\0';
        FUZZ_CHECK(list_cache_find(&c, name, &found) == 0 && found <= c.count);
        FUZZ_CHECK(found < c.count || strlen(name) != row.name.size);
        free(name);
    }
    list_cache_deinit(&c);
}

static sessile_slice take(const uint8_t **data, size_t *size)
{
    size_t n = *size > 0 ? **data % 16 : 0;
    *data += *size > 0;
    *size -= *size > 0;
    n = n < *size ? n : *size;
    sessile_slice s = {(const char *)*data, n};
    *data += n;
    *size -= n;
    return s;
}

static int same(sessile_slice a, sessile_slice b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static void put_rows(const uint8_t *data, size_t size)
{
    list_cache_row rows[32], got;
    size_t count = 0;
    list_cache_draft d;
    list_cache c;
    list_cache_draft_init(&d, &allocator_default);
    while (size > 0 && count < 32) {
        list_cache_row *row = &rows[count++];
        memset(row, 0, sizeof *row);
        row->name = take(&data, &size);
        if (row->name.size == 0)
            row->name = sessile_text("n"); /* no log is without a name */
        row->id = take(&data, &size);
        row->user = take(&data, &size);
        row->title = take(&data, &size);
        row->labels = take(&data, &size);
        row->life.ttl_ms = (int64_t)size * 1000;
        row->life.deleted_ms = size % 3 ? (int64_t)size : 0;
        row->life.archived = size % 2;
        row->modified_ms = row->stat.mtime_ns = size > 0 ? (int8_t)data[0] : -1;
        row->stat.bytes = size;
        row->entries = (uint32_t)size;
        if (row->id.size == 0)
            row->id = row->name; /* as an id that stands as its log's name */
        list_cache_draft_add(&d, row);
    }
    buf_clear(&stored);
    list_cache_draft_put(&d, a_store(), FOLDER, sessile_text("agent"));
    FUZZ_CHECK(list_cache_load(&c, a_store(), FOLDER) == SESSILE_OK);
    FUZZ_CHECK(c.count == count && same(c.agent, sessile_text("agent")));
    for (size_t i = 0; i < count; i++) {
        list_cache_get(&c, i, &got);
        FUZZ_CHECK(same(got.name, rows[i].name) && same(got.id, rows[i].id) &&
                   same(got.user, rows[i].user) && same(got.title, rows[i].title) &&
                   same(got.labels, rows[i].labels));
        FUZZ_CHECK(got.life.ttl_ms == rows[i].life.ttl_ms &&
                   got.life.deleted_ms == rows[i].life.deleted_ms &&
                   got.life.archived == rows[i].life.archived && !got.life.suspended);
        FUZZ_CHECK(got.modified_ms == rows[i].modified_ms &&
                   got.entries == rows[i].entries &&
                   list_cache_fits(&c, i, &rows[i].stat));
    }
    list_cache_deinit(&c);
    list_cache_draft_deinit(&d);
    look();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    store_core *st = a_store();
    if (size == 0)
        return 0;
    buf_clear(&stored);
    if (data[0] % 3 == 2) {
        put_rows(data + 1, size - 1);
        return 0;
    }
    if (data[0] % 3 == 1) {
        FUZZ_CHECK(keyring_seal_blob(st->keys, PURPOSE, strlen(PURPOSE), data + 1,
                                     size - 1, &stored, NULL) == SESSILE_OK);
    } else {
        buf_put(&stored, data + 1, size - 1);
    }
    look();
    return 0;
}

void fuzz_seeds(fuzz_take take_seed, void *arg)
{
    static const uint8_t rows[] = "\5alpha\2a1\0\3one\5bravo\0\1u\0\7charlie\1c\0\5three";
    buf inner;
    (void)a_store();
    buf_init(&inner, &allocator_default);
    fuzz_give(take_seed, arg, 2, rows, sizeof rows - 1);
    put_rows(rows, sizeof rows - 1);
    fuzz_give(take_seed, arg, 0, stored.data, stored.size);
    FUZZ_CHECK(keyring_open_blob(fixed_keyring(1), PURPOSE, strlen(PURPOSE), stored.data,
                                 stored.size, &inner) == 0);
    fuzz_give(take_seed, arg, 1, inner.data, inner.size);
    buf_deinit(&inner);
}

/*
 * fuzz_index.c: any bytes as the index of a log that is whole, or was cut off.
 *
 * The first byte chooses: bit 0 sealed; bit 1 the rest is a list of edits of the index as
 * it was written (four bytes each: where, how, with what), else it is the index; bit 2
 * the edits are made inside the box of block 0 or 1 (bit 4), as somebody could who has
 * the key, or of a plain log anybody; bit 3 the log is cut off at its last third.
 *
 * Holds: the log opens, and nothing is shown or read but what it says; only an index that
 * could be forged, or one of a log that was cut, makes it one that may only be read; what
 * the index withholds a scan gives; no byte of the log changes; a look changes none of
 * the index either.
 */
#include "fuzz/fuzz.h"
#include "fuzz/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "log/index.h"
#include "log/line.h"

#define DEPTH   64
#define ENTRIES (2 * LOG_BLOCK + 21)
#define WRITE   7 /* lines */
#define TRAILER 32
enum { SEALED = 1, EDITS = 2, INSIDE = 4, CUT = 8, SECOND = 16 };

static const char *const words[] = {"sessidx1", "\1\0\0\0\0\0\0\0", "\xff\xff\xff\xff",
                                    NULL};

const fuzz_about fuzz_this = {"index", 300, 1 << 14, words};

/* ---- what a floor above would keep */

typedef struct kept {
    uint64_t next;     /* the id that is to be shown next */
    uint64_t restored; /* entries that the index spared */
    unsigned char has[ENTRIES];
    unsigned char records[ENTRIES];
} kept;

static void entry_text(char out[160], size_t id)
{
    if (id == 0) {
        snprintf(out, 160, "%s", "");
        return;
    }
    snprintf(out, 160,
             "{\"id\":\"%08zx\",\"parent_id\":null,\"timestamp\":"
             "\"2026-11-21T20:12:03.123Z\",\"type\":\"custom\",\"data\":{\"n\":%zu}}",
             id, id * 7);
}

static int is_entry(uint64_t id, const char *text, size_t size)
{
    char own[160];
    entry_text(own, (size_t)id);
    const char *want = id == 0 ? fixed_header_entry : own;
    return strlen(want) == size && memcmp(want, text, size) == 0;
}

static sessile_status show(void *arg, sessile_id id, const char *text, size_t size,
                           sessile_error *err)
{
    kept *k = arg;
    (void)err;
    FUZZ_CHECK(id == k->next && id < ENTRIES);
    FUZZ_CHECK(is_entry(id, text, size));
    k->has[id] = 1;
    k->records[id] = (unsigned char)(id * 5);
    k->next++;
    return SESSILE_OK;
}

static sessile_status fill(void *arg, uint64_t block, void *records, buf *extra,
                           buf *snapshot, sessile_error *err)
{
    kept *k = arg;
    unsigned char count[4] = {0};
    for (size_t i = 0; i < LOG_BLOCK; i++)
        if (!k->has[block * LOG_BLOCK + i])
            return fail(err, SESSILE_NOTFOUND, "not seen");
    memcpy(records, k->records + block * LOG_BLOCK, LOG_BLOCK);
    count[0] = (unsigned char)block;
    buf_puts(extra, "more");
    buf_put(snapshot, count, sizeof count);
    return SESSILE_OK;
}

static sessile_status restore(void *arg, uint64_t count, const void *snapshot,
                              size_t size, sessile_error *err)
{
    kept *k = arg;
    FUZZ_CHECK(k->next == 1 && count <= ENTRIES && count % LOG_BLOCK == 0);
    if (size != 4 || *(const unsigned char *)snapshot != count / LOG_BLOCK - 1)
        return fail(err, SESSILE_INVALID, "no such state");
    k->next = k->restored = count;
    return SESSILE_OK;
}

static sessile_status take(void *arg, uint64_t block, const void *records,
                           const void *extra, size_t extra_size, sessile_error *err)
{
    kept *k = arg;
    FUZZ_CHECK((block + 1) * LOG_BLOCK <= k->restored);
    if (extra_size != 4 || memcmp(extra, "more", 4) != 0)
        return fail(err, SESSILE_INVALID, "not what was kept");
    memcpy(k->records + block * LOG_BLOCK, records, LOG_BLOCK);
    memset(k->has + block * LOG_BLOCK, 1, LOG_BLOCK);
    return SESSILE_OK;
}

static void reset(void *arg)
{
    memset(arg, 0, sizeof(kept));
}

static void written(void *arg, uint64_t block)
{
    (void)arg, (void)block;
}

static log_index_callbacks callbacks_of(kept *k)
{
    memset(k, 0, sizeof *k);
    return (log_index_callbacks){.arg = k,
                                 .record_size = 1,
                                 .fill = fill,
                                 .restore = restore,
                                 .take = take,
                                 .reset = reset,
                                 .written = written};
}

/* ---- a good log, and its index */

typedef struct good {
    buf log, index;
    size_t cut; /* where a write ends, before the end of block 1 */
    size_t blocks[3];
    unsigned char ad[INDEX_AD];
} good;

static void put_lines(good *g, int sealed)
{
    unsigned char previous[VAULT_TAG] = {0}, tag[VAULT_TAG];
    char text[160];
    logkey none;
    buf scratch;
    line l;
    buf_init(&scratch, &allocator_default);
    if (sealed) {
        buf_puts(&g->log, fixed_header);
        buf_puts(&g->log, "\n");
    } else {
        FUZZ_CHECK(line_put_header(&none, fixed_keyring(0), NULL, &g->log,
                                   fixed_header_entry, strlen(fixed_header_entry), tag,
                                   &scratch, NULL) == SESSILE_OK);
    }
    char *first = fuzz_copy(g->log.data, g->log.size);
    unsigned char hash[32];
    memcpy(g->ad, "sessile index 1", 16);
    hash256(hash, g->log.data, g->log.size - 1, NULL, 0);
    memcpy(g->ad + 16, hash, sizeof hash);
    FUZZ_CHECK(line_open(fixed_logkey(sealed), DEPTH, first, g->log.size - 1, 1, &l,
                         &scratch, NULL) == LINE_GOOD);
    free(first);
    memcpy(tag, l.tag, VAULT_TAG);
    for (size_t id = 1; id < ENTRIES; id++) {
        line_clear clear = {0, 0};
        if (id % WRITE == 0 || id + 1 == ENTRIES) {
            clear.commit = id % WRITE == 0 ? WRITE : id % WRITE;
            clear.durable = id - clear.commit;
        }
        entry_text(text, id);
        memcpy(previous, tag, VAULT_TAG);
        FUZZ_CHECK(line_put(fixed_logkey(sealed), &g->log, text, strlen(text), clear,
                            previous, tag, &scratch, NULL) == SESSILE_OK);
        if (id == ENTRIES / 3 * 2 / WRITE * WRITE)
            g->cut = g->log.size;
    }
    buf_deinit(&scratch);
}

static uint64_t le64(const char *at)
{
    uint64_t n = 0;
    for (int i = 0; i < 8; i++)
        n |= (uint64_t)(unsigned char)at[i] << (8 * i);
    return n;
}

static const good *good_log(int sealed)
{
    static good both[2];
    good *g = &both[sealed];
    sessile_error err = {0};
    memory m;
    kept k;
    log_t *log;
    if (g->log.size > 0)
        return g;
    buf_init(&g->log, &allocator_default);
    buf_init(&g->index, &allocator_default);
    put_lines(g, sealed);
    memory_init(&m, g->log.data, g->log.size);
    store st = memory_store_cached(&m);
    log_index_callbacks callbacks = callbacks_of(&k);
    FUZZ_CHECK(log_open_indexed(&log, &st, fixed_keyring(sealed), "main", "fuzz", DEPTH,
                                0, &callbacks, show, &k, NULL, &allocator_default,
                                &err) == SESSILE_OK);
    FUZZ_CHECK(log_count(log) == ENTRIES && m.cache_size > 2 * TRAILER);
    log_close(log);
    buf_put(&g->index, m.cache, m.cache_size);
    g->blocks[2] = g->index.size;
    g->blocks[1] = (size_t)le64(g->index.data + g->index.size - 16);
    FUZZ_CHECK(le64(g->index.data + g->blocks[1] - 16) == 0);
    memory_deinit(&m);
    return g;
}

/* ---- one execution */

static void edit(char *data, size_t size, const uint8_t *edits, size_t count)
{
    for (size_t i = 0; i + 4 <= count && size > 0; i += 4) {
        size_t at = ((size_t)edits[i] << 8 | edits[i + 1]) % size;
        switch (edits[i + 2] % 3) {
        case 0:
            data[at] ^= (char)edits[i + 3];
            break;
        case 1:
            data[at] = (char)edits[i + 3];
            break;
        default:
            memset(data + at, edits[i + 3], size - at < 8 ? size - at : 8);
        }
    }
}

static void put_index(buf *out, const good *g, int how, const uint8_t *data, size_t size)
{
    if ((how & (EDITS | INSIDE)) == 0) {
        buf_put(out, data, size);
        return;
    }
    if ((how & INSIDE) == 0) {
        buf_put(out, g->index.data, g->index.size);
        edit(out->data, out->size, data, size);
        return;
    }
    int second = (how & SECOND) != 0;
    size_t start = g->blocks[second], end = g->blocks[second + 1] - TRAILER;
    unsigned char ad[INDEX_AD];
    buf inner;
    memcpy(ad, g->ad, INDEX_AD);
    ad[INDEX_AD - 16] = (unsigned char)second;
    for (int i = 0; i < 8; i++)
        ad[INDEX_AD - 8 + i] = (unsigned char)((uint64_t)start >> (8 * i));
    buf_init(&inner, &allocator_default);
    FUZZ_CHECK(logkey_open_blob(fixed_logkey(how & SEALED), ad, INDEX_AD,
                                g->index.data + start, end - start, &inner) == 0);
    edit(inner.data, inner.size, data, size);
    buf_put(out, g->index.data, start);
    FUZZ_CHECK(logkey_seal_blob(fixed_logkey(how & SEALED), ad, INDEX_AD, inner.data,
                                inner.size, out, NULL) == SESSILE_OK);
    buf_put(out, g->index.data + end, g->index.size - end);
    buf_deinit(&inner);
}

static void read_some(log_t *log, kept *k, uint64_t whole)
{
    static const sessile_id ids[] = {0, 1, 255, 256, 257, 300, 511, 512, ENTRIES - 1};
    int scanned = 0;
    buf text;
    buf_init(&text, &allocator_default);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        sessile_error err = {0};
        if (ids[i] >= whole)
            break;
        buf_clear(&text);
        sessile_status status = log_read(log, ids[i], &text, &err);
        if (status) { /* as a session does: the lines decide */
            FUZZ_CHECK(!scanned);
            scanned = 1;
            memset(k, 0, sizeof *k);
            error_clear(&err);
            FUZZ_CHECK(log_rescan(log, show, k, &err) == SESSILE_OK);
            buf_clear(&text);
            status = log_read(log, ids[i], &text, &err);
        }
        FUZZ_CHECK(status == SESSILE_OK && is_entry(ids[i], text.data, text.size));
    }
    buf_deinit(&text);
}

static void same_log(const memory *m, const good *g, size_t size)
{
    FUZZ_CHECK(m->size == size && memcmp(m->data, g->log.data, size) == 0);
    FUZZ_CHECK(m->aside == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sessile_error err = {0};
    log_index_about about;
    log_tail tail;
    memory m;
    log_t *log;
    kept k;
    buf index;
    if (size == 0)
        return 0;
    const int how = data[0];
    const int forged = (how & SEALED) == 0 || (how & INSIDE) != 0;
    const good *g = good_log(how & SEALED);
    const size_t whole = how & CUT ? g->cut : g->log.size;
    buf_init(&index, &allocator_default);
    put_index(&index, g, how, data + 1, size - 1);
    memory_init(&m, g->log.data, whole);
    m.cache = fuzz_copy(index.data, index.size);
    m.cache_size = index.size;
    store st = memory_store_cached(&m);
    log_index_callbacks callbacks = callbacks_of(&k);
    /* a look */
    FUZZ_CHECK(log_inspect(&log, &st, fixed_keyring(how & SEALED), "main", "fuzz", DEPTH,
                           0, &callbacks, show, &k, &tail, &allocator_default,
                           &err) == SESSILE_OK);
    FUZZ_CHECK(k.next == log_count(log) && tail.bytes == 0);
    FUZZ_CHECK(log_damage(log, NULL) == SESSILE_OK || forged || (how & CUT));
    FUZZ_CHECK(log_index_check(log, 0, &about, &err) == SESSILE_OK);
    FUZZ_CHECK(about.bytes == index.size && about.wrong <= about.blocks);
    int fits = !about.strange && !about.wrong && !about.torn && index.size > 0;
    FUZZ_CHECK(!fits || (how & CUT) || index.size <= g->index.size);
    log_close(log);
    same_log(&m, g, whole);
    FUZZ_CHECK(m.cache_size == index.size &&
               memcmp(m.cache, index.data, index.size) == 0);
    /* opened */
    callbacks = callbacks_of(&k);
    FUZZ_CHECK(log_open_indexed(&log, &st, fixed_keyring(how & SEALED), "main", "fuzz",
                                DEPTH, 0, &callbacks, show, &k, NULL, &allocator_default,
                                &err) == SESSILE_OK);
    if (log_damage(log, NULL)) {
        FUZZ_CHECK(forged || (how & CUT));
    } else {
        FUZZ_CHECK(k.next == log_count(log));
        FUZZ_CHECK((how & CUT) || k.next == ENTRIES);
        read_some(log, &k, log_count(log));
    }
    log_close(log);
    same_log(&m, g, whole);
    memory_deinit(&m);
    buf_deinit(&index);
    return 0;
}

void fuzz_seeds(fuzz_take take_seed, void *arg)
{
    for (int how = 0; how < 32; how++) {
        const good *g = good_log(how & SEALED);
        static const uint8_t edits[] = {0, 17, 0, 1, 0, 24, 1, 9, 2, 0, 2, 255};
        if ((how & (EDITS | INSIDE)) == 0) {
            fuzz_give(take_seed, arg, how, g->index.data, g->index.size);
        } else {
            fuzz_give(take_seed, arg, how, edits, sizeof edits);
            fuzz_give(take_seed, arg, how, edits, 4);
        }
    }
}

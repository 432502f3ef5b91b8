/*
 * test_check_index.c: what check makes of the index of a log, and of a log by its index.
 *
 * Owns: an index that is as it was written is nothing to tell; one that is not is told as
 * what it is, a cache, and is no damage; a log that ends before what its index knows to
 * have been safe is. Whatever is found, a check changes no byte. And what check says of
 * locks that others hold, and of what a crash left behind.
 *
 * Files only: indexes are damaged by hand.
 * Own guard: stores are opened with options of their own, without one.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guard/enter.h"
#include "base/text.h"
#include "log/index.h"
#include "log/line.h"
#include "support/logs.h"
#include "support/sessions.h"

#define TRAILER 32

typedef struct bytes {
    char *data;
    size_t size;
} bytes;

/* A store that syncs, with one session, and its files as they were made. */
typedef struct bed {
    place p;
    bytes log, idx;
    size_t count;
    size_t *lines; /* where each begins; one more: the end */
} bed;

static sessile_store *store_synced(const place *p)
{
    sessile_store_options o;
    sessile_store *st;
    sessile_error err;
    sessile_store_options_init(&o);
    o.key_source = p->kind == STORE_SEALED ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
    o.key = KIT_SECRET;
    o.config.has_timeout = 1;
    o.config.timeout_ms = 0;
    if (sessile_open(&st, p->folder, &o, &err))
        print_error("%s\n", err.message);
    assert_non_null(st);
    return st;
}

static const char *path_of(const bed *b, const char *name)
{
    static char paths[4][700];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/agents/main/%s", b->p.folder, name);
    return path;
}

static bytes take(const bed *b, const char *name)
{
    bytes out;
    out.data = file_read_all(path_of(b, name), &out.size);
    assert_non_null(out.data);
    return out;
}

static void put(const bed *b, const char *name, const void *data, size_t size)
{
    unlink(path_of(b, name));
    file_write_all(path_of(b, name), data, size);
}

static int is(const bed *b, const char *name, const void *data, size_t size)
{
    bytes now = take(b, name);
    int same = now.size == size && memcmp(now.data, data, size) == 0;
    free(now.data);
    return same;
}

/* Everything that the index keeps: links, turns and their usage, titles, lists, heads. */
static void tell(sessile_session *s, size_t entries)
{
    static const char *const called[] = {
        "{\"role\":\"user\",\"content\":\"do it\"}",
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\","
        "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}",
        "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"done\"}",
        "{\"role\":\"assistant\",\"content\":\"there\"}"};
    sessile_error err;
    sessile_id head = 0;
    for (size_t i = 0; log_count(s->core->log) < entries; i++) {
        char title[32];
        say_turn(s, called, 4, ",\"usage\":{\"input\":50,\"output\":20}");
        head = say(s, "user", "and what is said in between");
        snprintf(title, sizeof title, "title %zu", i);
        if (i % 9 == 0)
            assert_int_equal(sessile_set_title(s, sessile_text(title), &err), 0);
        if (i % 14 == 3)
            move_head(s, head);
    }
}

static void end_bed(bed *b)
{
    free(b->log.data);
    free(b->idx.data);
    free(b->lines);
    place_close(&b->p);
}

static void take_bed(bed *b)
{
    free(b->log.data);
    free(b->idx.data);
    free(b->lines);
    b->log = take(b, "hurt.jsonl");
    b->idx = take(b, "hurt.idx");
    b->count = 0;
    b->lines = malloc((b->log.size + 1) * sizeof *b->lines);
    assert_non_null(b->lines);
    for (size_t i = 0; i < b->log.size; i++)
        if (i == 0 || b->log.data[i - 1] == '\n')
            b->lines[b->count++] = i;
    b->lines[b->count] = b->log.size;
}

static bed make_bed(store_kind kind, size_t entries)
{
    bed b;
    memset(&b, 0, sizeof b);
    place_open(&b.p, kind);
    sessile_store_close(b.p.store);
    b.p.store = store_synced(&b.p);
    sessile_session *s = session_made(b.p.store, "hurt");
    tell(s, entries);
    session_closed(s);
    session_closed(session_resumed(b.p.store, "hurt"));
    take_bed(&b);
    return b;
}

typedef struct report {
    uint64_t entries, lost, damage, warnings, notes;
    int salvaged;
    sessile_status code; /* of the first damage */
    char all[8000], next[400];
} report;

static report run_check(const bed *b, const char *id, int salvage)
{
    sessile_session_options o;
    sessile_check *check;
    sessile_checked step;
    sessile_error err;
    report out;
    memset(&out, 0, sizeof out);
    sessile_session_options_init(&o);
    if (id)
        o.id = sessile_text(id);
    assert_int_equal(sessile_check_open(&check, b->p.store, &o, salvage, &err), 0);
    while (!sessile_check_next(check, &step, &err) && step.file) {
        out.entries += step.entries;
        out.lost += step.lost;
        out.salvaged += step.salvaged;
        for (size_t i = 0; i < step.count; i++) {
            const sessile_finding *f = &step.findings[i];
            size_t at = strlen(out.all);
            if (f->severity == SESSILE_DAMAGE && !out.damage++)
                out.code = f->code;
            out.warnings += f->severity == SESSILE_WARNING;
            out.notes += f->severity == SESSILE_NOTE;
            snprintf(out.all + at, sizeof out.all - at, "%s: %s\n", f->file, f->what);
            if (f->next[0])
                snprintf(out.next, sizeof out.next, "%s", f->next);
        }
    }
    assert_int_equal(err.code, SESSILE_OK);
    sessile_check_close(check);
    return out;
}

static uint64_t le64(const char *at)
{
    uint64_t n = 0;
    for (int i = 0; i < 8; i++)
        n |= (uint64_t)(unsigned char)at[i] << (8 * i);
    return n;
}

/* Where block 0 ends. */
static size_t first_end(const bed *b)
{
    size_t end = b->idx.size, start;
    while ((start = (size_t)le64(b->idx.data + end - 16)) > 0)
        end = start;
    return end;
}

#define EACH_KIND for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++)

/* ------------------------------------------------------------------ an index that fits
 */

static void good_index_is_nothing_to_tell(void **state)
{
    (void)state;
    EACH_KIND
    {
        bed b = make_bed((store_kind)kind, 1400);
        for (int how = 0; how < 3; how++) {
            report r = run_check(&b, NULL, 0);
            if (r.damage + r.warnings + r.notes)
                print_error("%s", r.all);
            assert_int_equal(r.damage + r.warnings + r.notes, 0);
            assert_true(is(&b, "hurt.jsonl", b.log.data, b.log.size));
            assert_true(is(&b, "hurt.idx", b.idx.data, b.idx.size));
            if (how == 0) { /* rebuilt by a scan */
                unlink(path_of(&b, "hurt.idx"));
                session_closed(session_resumed(b.p.store, "hurt"));
                assert_true(is(&b, "hurt.jsonl", b.log.data, b.log.size));
            } else if (how == 1) { /* gone on with by one that was opened by it */
                sessile_session *s = session_resumed(b.p.store, "hurt");
                tell(s, 2100);
                session_closed(s);
            }
            take_bed(&b);
        }
        /* one that lags behind is what a crash leaves */
        put(&b, "hurt.idx", b.idx.data, first_end(&b));
        assert_int_equal(run_check(&b, NULL, 0).warnings, 0);
        end_bed(&b);
    }
}

/* ------------------------------------------------------------------ one that does not */

static void told_as_a_cache(bed *b, const void *idx, size_t size, const char *words)
{
    put(b, "hurt.idx", idx, size);
    report r = run_check(b, NULL, 0);
    if (r.damage || r.warnings != 1 || !strstr(r.all, words))
        print_error("%s", r.all);
    assert_int_equal(r.damage, 0);
    assert_int_equal(r.warnings, 1);
    assert_non_null(strstr(r.all, words));
    assert_non_null(strstr(r.all, "only a cache"));
    assert_non_null(strstr(r.next, "--salvage"));
    assert_true(is(b, "hurt.jsonl", b->log.data, b->log.size));
    assert_true(is(b, "hurt.idx", idx, size));
    r = run_check(b, "hurt", 1);
    assert_int_equal(r.salvaged, 0);
    assert_non_null(strstr(r.all, "emptied"));
    assert_true(is(b, "hurt.jsonl", b->log.data, b->log.size));
    r = run_check(b, NULL, 0);
    assert_int_equal(r.damage + r.warnings, 0);
    session_closed(session_resumed(b->p.store, "hurt"));
    assert_true(is(b, "hurt.jsonl", b->log.data, b->log.size));
    r = run_check(b, NULL, 0);
    assert_int_equal(r.damage + r.warnings, 0);
}

static void spoiled_index_is_told(void **state)
{
    (void)state;
    unsigned long tried = 0;
    EACH_KIND
    {
        bed b = make_bed((store_kind)kind, 900);
        size_t first = first_end(&b), size = b.idx.size;
        char *bad = malloc(size + 100);
        assert_non_null(bad);
        const size_t at[] = {
            0,          9,         first / 2, first - TRAILER - 1, first - TRAILER,
            first - 20, first - 1, first,     size - TRAILER - 1};
        for (size_t i = 0; i < sizeof at / sizeof *at; i++, tried++) {
            memcpy(bad, b.idx.data, size);
            bad[at[i]] ^= 4;
            told_as_a_cache(&b, bad, size, "index");
        }
        memcpy(bad, b.idx.data, size);
        memset(bad + size, 'x', 100);
        told_as_a_cache(&b, bad, size + 100, "cut off");
        told_as_a_cache(&b, b.idx.data, size - 1, "index");
        told_as_a_cache(&b, b.idx.data, 200, "nothing opens");
        memset(bad, 0, size);
        told_as_a_cache(&b, bad, size, "nothing opens");
        bed other = make_bed((store_kind)kind, 600);
        told_as_a_cache(&b, other.idx.data, other.idx.size, "another log");
        end_bed(&other);
        free(bad);
        end_bed(&b);
    }
    print_message("# figure: indexes spoiled by one bit, told by check = %lu\n", tried);
}

/* Whole and rightly boxed, as anybody can make one of a plain log: only the comparison
 * with the lines can see it. */
static void index_that_says_other_than_the_log_is_told(void **state)
{
    (void)state;
    bed b = make_bed(STORE_PLAIN, 900);
    size_t first = first_end(&b), records = 56 + LOG_BLOCK * (8 + INDEX_TAG);
    const size_t at[] = {56 + 8 * 7, records + 44 * 9 + 4, records + 44 * 200 + 36,
                         records + 44 * LOG_BLOCK + 3};
    unsigned char ad[INDEX_AD] = "sessile index 1", hash[32];
    logkey plain;
    memset(&plain, 0, sizeof plain);
    hash256(hash, b.log.data, b.lines[1] - 1, NULL, 0);
    memcpy(ad + 16, hash, sizeof hash);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        buf inner, out;
        buf_init(&inner, &allocator_default);
        buf_init(&out, &allocator_default);
        assert_int_equal(
            logkey_open_blob(&plain, ad, INDEX_AD, b.idx.data, first - TRAILER, &inner),
            0);
        inner.data[at[i]] ^= 1;
        assert_int_equal(
            logkey_seal_blob(&plain, ad, INDEX_AD, inner.data, inner.size, &out, NULL),
            0);
        assert_int_equal(out.size, first - TRAILER);
        buf_put(&out, b.idx.data + out.size, b.idx.size - out.size);
        told_as_a_cache(&b, out.data, out.size, "contradict the log");
        buf_deinit(&inner);
        buf_deinit(&out);
    }
    end_bed(&b);
}

/* An index of one block whose end is after `count` entries in `bytes` bytes. */
static void forge(const bed *b, uint64_t count, uint64_t line, uint64_t bytes,
                  const unsigned char tag[VAULT_TAG], buf *out)
{
    size_t size = 56 + LOG_BLOCK * (8 + INDEX_TAG + 44);
    unsigned char *inner = calloc(1, size), ad[INDEX_AD] = "sessile index 1", hash[32];
    uint64_t number = count / LOG_BLOCK - 1, start = 1;
    logkey plain;
    assert_non_null(inner);
    memset(&plain, 0, sizeof plain);
    inner[0] = 3;
    inner[4] = 44;
    memcpy(inner + 8, &number, 8);
    memcpy(inner + 16, &bytes, 8);
    memcpy(inner + 32, tag, VAULT_TAG);
    memcpy(inner + 56 + (LOG_BLOCK - 1) * 8, &line, 8);
    hash256(hash, b->log.data, b->lines[1] - 1, NULL, 0);
    memcpy(ad + 16, hash, sizeof hash);
    memcpy(ad + 48, &number, 8);
    memcpy(ad + 56, &start, 8);
    buf_puts(out, "x");
    assert_int_equal(logkey_seal_blob(&plain, ad, INDEX_AD, inner, size, out, NULL), 0);
    buf_puts(out, "sessidx1");
    buf_put(out, &number, 8);
    buf_put(out, &start, 8);
    buf_put(out, &start, 8);
    free(inner);
}

static void what_a_forged_index_claims_is_bounded(void **state)
{
    (void)state;
    static const uint64_t counts[] = {UINT64_C(1) << 32, UINT64_C(1) << 28};
    for (int with_line = 0; with_line < 2; with_line++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            bed b = make_bed(STORE_PLAIN, 300);
            unsigned char none[VAULT_TAG] = {0}, tag[VAULT_TAG] = {0};
            sessile_id id = (sessile_id)(counts[i] - 2 * (i == 0) - 1);
            sessile_error err;
            char text[200];
            logkey plain;
            buf log, index, scratch;
            memset(&plain, 0, sizeof plain);
            buf_init(&log, &allocator_default);
            buf_init(&index, &allocator_default);
            buf_init(&scratch, &allocator_default);
            buf_put(&log, b.log.data, b.log.size);
            if (with_line) {
                snprintf(text, sizeof text,
                         "{\"id\":\"%08x\",\"parent_id\":\"00000001\",\"timestamp\":"
                         "\"2026-11-21T20:12:03.123Z\",\"type\":\"custom\",\"data\":{}}",
                         (unsigned)id);
                assert_int_equal(line_put(&plain, &log, text, strlen(text),
                                          (line_clear){1, 250}, none, tag, &scratch,
                                          &err),
                                 0);
            }
            forge(&b, counts[i], b.log.size, with_line ? log.size : UINT64_C(1) << 40,
                  tag, &index);
            put(&b, "hurt.jsonl", log.data, log.size);
            put(&b, "hurt.idx", index.data, index.size);
            report r = run_check(&b, "hurt", 0);
            if (!r.damage)
                print_error("%s", r.all);
            assert_true(r.damage > 0 && r.entries < 80000);
            assert_true(is(&b, "hurt.idx", index.data, index.size));
            sessile_session *s = session_resumed(b.p.store, "hurt");
            assert_true(log_count(s->core->log) < 80000);
            assert_true(sessile_session_damage(s, NULL, &err) != SESSILE_OK);
            session_closed(s);
            r = run_check(&b, "hurt", 1);
            assert_int_equal(r.salvaged, 1);
            buf_deinit(&log);
            buf_deinit(&index);
            buf_deinit(&scratch);
            end_bed(&b);
        }
    }
}

/* ------------------------------------------------------------------ the log is short */

static void log_cut_below_its_index_is_truncated(void **state)
{
    (void)state;
    EACH_KIND
    {
        bed b = make_bed((store_kind)kind, 600);
        const size_t cuts[] = {b.lines[1], b.lines[300], b.lines[511], b.lines[300] + 9,
                               b.lines[512] - 1};
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
            sessile_error err;
            sessile_id id;
            uint64_t lost;
            char kept[40];
            snprintf(kept, sizeof kept, "hurt.replaced-1");
            unlink(path_of(&b, kept));
            put(&b, "hurt.jsonl", b.log.data, cuts[i]);
            put(&b, "hurt.idx", b.idx.data, b.idx.size);
            report r = run_check(&b, NULL, 0);
            if (r.code != SESSILE_TRUNCATED)
                print_error("%s", r.all);
            assert_int_equal(r.code, SESSILE_TRUNCATED);
            assert_non_null(strstr(r.all, "512 entries"));
            assert_non_null(strstr(r.all, "agents/main/hurt.jsonl"));
            assert_non_null(strstr(r.all, "at byte"));
            assert_non_null(strstr(r.next, "hurt --salvage"));
            assert_true(is(&b, "hurt.jsonl", b.log.data, cuts[i]));
            assert_true(is(&b, "hurt.idx", b.idx.data, b.idx.size));
            /* it opens to be read */
            sessile_session *s = session_resumed(b.p.store, "hurt");
            assert_int_equal(sessile_session_damage(s, &lost, &err), SESSILE_TRUNCATED);
            assert_int_equal(lost, r.lost);
            assert_int_equal(
                sessile_append(s, sessile_text("{\"role\":\"user\",\"content\":\"no\"}"),
                               &id, &err),
                SESSILE_TRUNCATED);
            session_closed(s);
            assert_true(is(&b, "hurt.jsonl", b.log.data, cuts[i]));
            assert_true(is(&b, "hurt.idx", b.idx.data, b.idx.size));
            /* nothing but the header: it may be a stranger's */
            r = run_check(&b, "hurt", 1);
            if (cuts[i] == b.lines[1]) {
                assert_int_equal(r.salvaged, 0);
                assert_true(is(&b, "hurt.jsonl", b.log.data, cuts[i]));
                continue;
            }
            if (!r.salvaged)
                print_error("%s", r.all);
            assert_int_equal(r.salvaged, 1);
            assert_true(is(&b, kept, b.log.data, cuts[i]));
            s = session_resumed(b.p.store, "hurt");
            assert_int_equal(sessile_session_damage(s, NULL, &err), SESSILE_OK);
            assert_int_equal(log_count(s->core->log), 512);
            for (sessile_id at = 1; at < 512; at++) {
                char *text;
                size_t size;
                assert_int_equal(sessile_entry(s, at, &text, &size, &err), SESSILE_OK);
                assert_int_equal(strstr(text, "\"type\":\"tombstone\"") != NULL,
                                 b.lines[at + 1] > cuts[i]);
                sessile_free(text);
            }
            assert_int_equal(say(s, "user", "it goes on"), 512);
            session_closed(s);
            r = run_check(&b, "hurt", 0);
            assert_int_equal(r.damage + r.warnings, 0);
        }
        end_bed(&b);
    }
}

static void damage_across_a_block_with_an_index(void **state)
{
    (void)state;
    EACH_KIND
    {
        bed b = make_bed((store_kind)kind, 900);
        char *bad = malloc(b.log.size);
        assert_non_null(bad);
        memcpy(bad, b.log.data, b.log.size);
        memset(bad + b.lines[250] + 5, 0, b.lines[263] - b.lines[250]);
        put(&b, "hurt.jsonl", bad, b.log.size);
        report r = run_check(&b, NULL, 0);
        assert_true(r.damage > 0);
        assert_int_equal(r.lost, 14);
        assert_int_equal(r.entries, b.count);
        assert_non_null(strstr(r.all, "000000fa to 00000107"));
        assert_null(strstr(r.all, "only a cache"));
        assert_true(is(&b, "hurt.jsonl", bad, b.log.size));
        assert_true(is(&b, "hurt.idx", b.idx.data, b.idx.size));
        r = run_check(&b, "hurt", 1);
        assert_int_equal(r.salvaged, 1);
        sessile_session *s = session_resumed(b.p.store, "hurt");
        assert_int_equal(log_count(s->core->log), b.count);
        say(s, "user", "it goes on");
        session_closed(s);
        r = run_check(&b, NULL, 0);
        assert_int_equal(r.damage + r.warnings, 0);
        assert_int_equal(r.notes, 1); /* the old bytes */
        free(bad);
        end_bed(&b);
    }
}

/* ------------------------------------------------------------------ locks, leftovers */

static void whoever_holds_the_lock_is_named(void **state)
{
    (void)state;
    bed b = make_bed(STORE_PLAIN, 300);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    b.log.data[b.lines[40] + 40] ^= 1;
    put(&b, "hurt.jsonl", b.log.data, b.log.size);
    int fd = open(path_of(&b, "hurt.jsonl"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    report r = run_check(&b, "hurt", 1);
    assert_int_equal(r.salvaged, 0);
    assert_non_null(strstr(r.all, "holds"));
    assert_true(is(&b, "hurt.jsonl", b.log.data, b.log.size));
    close(fd);
    r = run_check(&b, "hurt", 1);
    assert_int_equal(r.salvaged, 1);
    end_bed(&b);
}

static int says_network(void *ud, int fd, char *name, size_t size)
{
    (void)ud, (void)fd;
    snprintf(name, size, "NFS");
    return 1;
}

static void folder_without_locks_is_looked_at_all_the_same(void **state)
{
    (void)state;
    const os_table *was = os_current;
    bed b = make_bed(STORE_SEALED, 300);
    os_table network = *was;
    network.network = says_network;
    put(&b, "hurt.jsonl", b.log.data, b.log.size - 9);
    os_current = &network;
    sessile_store_close(b.p.store);
    b.p.store = store_synced(&b.p);
    report r = run_check(&b, "hurt", 0);
    if (r.damage || r.notes != 1)
        print_error("%s", r.all);
    assert_int_equal(r.damage + r.warnings, 0);
    assert_int_equal(r.notes, 1);
    assert_non_null(strstr(r.all, "refuses locks"));
    /* damage is damage there as well */
    b.log.data[b.lines[290] + 40] ^= 1;
    put(&b, "hurt.jsonl", b.log.data, b.log.size);
    r = run_check(&b, "hurt", 0);
    assert_int_equal(r.code, SESSILE_DAMAGED);
    sessile_store_close(b.p.store);
    os_current = was;
    b.p.store = store_synced(&b.p);
    end_bed(&b);
}

static void leave(const bed *b, const char *name, int minutes)
{
    struct timespec times[2];
    put(b, name, "part", 4);
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &times[0]), 0);
    times[0].tv_sec -= 60 * minutes;
    times[1] = times[0];
    assert_int_equal(utimensat(AT_FDCWD, path_of(b, name), times, 0), 0);
}

static void leftovers_of_a_crash_are_told_and_removed(void **state)
{
    (void)state;
    bed b = make_bed(STORE_PLAIN, 300);
    leave(&b, ".new-0123456789abcdef", 120);
    leave(&b, ".new-0123456789abcde0", 10);
    report r = run_check(&b, NULL, 0);
    assert_int_equal(r.damage, 0);
    assert_int_equal(r.warnings, 1);
    assert_int_equal(r.notes, 1);
    assert_non_null(strstr(r.all, ".new-0123456789abcdef: what a crash left"));
    assert_non_null(strstr(r.next, "--salvage"));
    assert_true(is(&b, ".new-0123456789abcdef", "part", 4));
    r = run_check(&b, NULL, 1);
    assert_int_equal(r.warnings, 0);
    assert_non_null(strstr(r.all, "removed"));
    assert_int_not_equal(access(path_of(&b, ".new-0123456789abcdef"), F_OK), 0);
    assert_true(is(&b, ".new-0123456789abcde0", "part", 4));
    assert_int_equal(run_check(&b, NULL, 0).warnings, 0);
    end_bed(&b);
}

int main(void)
{
    static faults lazy; /* syncs are counted, not made: no power is cut here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_index_is_nothing_to_tell),
        cmocka_unit_test(spoiled_index_is_told),
        cmocka_unit_test(index_that_says_other_than_the_log_is_told),
        cmocka_unit_test(what_a_forged_index_claims_is_bounded),
        cmocka_unit_test(log_cut_below_its_index_is_truncated),
        cmocka_unit_test(damage_across_a_block_with_an_index),
        cmocka_unit_test(whoever_holds_the_lock_is_named),
        cmocka_unit_test(folder_without_locks_is_looked_at_all_the_same),
        cmocka_unit_test(leftovers_of_a_crash_are_told_and_removed),
    };
    faults_init(&lazy);
    lazy.lazy = 1;
    os_current = &lazy.table;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

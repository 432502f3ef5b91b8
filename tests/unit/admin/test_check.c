/*
 * test_check.c: a damaged session is read as far as it can be, told, and salvaged.
 *
 * Owns the rule for each kind of damage: the session opens, what was not damaged reads as
 * it was written, nothing can be written and no byte changes; check names the place;
 * salvage makes it writable again with tombstones at exactly the ids that are lost, and
 * keeps the old bytes.
 *
 * Files only: logs are damaged by hand.
 * Own guard: stores are opened with options of their own, without one.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/line.h"
#include "support/faulty.h"
#include "support/logs.h"
#include "support/sessions.h"

#define MOST 700

static faults lazy; /* syncs are counted, not made: no power is cut here */

typedef struct world {
    place p;
    char path[600];
    char *bytes;
    size_t size, count, lines[MOST + 1];
    char *texts[MOST];
} world;

static char *entry_of(sessile_session *s, sessile_id id)
{
    sessile_error err;
    char *text;
    size_t size;
    if (sessile_entry(s, id, &text, &size, &err))
        print_error("entry %08x: %s\n", (unsigned)id, err.message);
    assert_non_null(text);
    return text;
}

static void find_file(world *w)
{
    char command[700], *end;
    snprintf(command, sizeof command, "find %s -name hurt.jsonl", w->p.folder);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(w->path, sizeof w->path, pipe));
    pclose(pipe);
    end = strchr(w->path, '\n');
    assert_non_null(end);
    *end = 0;
}

static void beside(const world *w, const char *suffix, char out[700])
{
    snprintf(out, 700, "%.*s%s", (int)(strlen(w->path) - 6), w->path, suffix);
}

static void world_keep(world *w)
{
    sessile_session *s = session_resumed(w->p.store, "hurt");
    find_file(w);
    w->bytes = file_read_all(w->path, &w->size);
    for (size_t i = 0; i < w->size; i++)
        if (i == 0 || w->bytes[i - 1] == '\n')
            w->lines[w->count++] = i;
    w->lines[w->count] = w->size;
    for (size_t i = 0; i < w->count; i++)
        w->texts[i] = entry_of(s, (sessile_id)i);
    session_closed(s);
}

/* Stores of these tests sync: what was never synced cannot be told from a torn end. */
static sessile_store *store_again(const place *p)
{
    sessile_store_options o;
    sessile_store *st;
    sessile_error err;
    sessile_store_options_init(&o);
    o.key_source = p->kind == STORE_SEALED ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
    o.key = KIT_SECRET;
    if (sessile_open(&st, p->folder, &o, &err))
        print_error("%s\n", err.message);
    assert_non_null(st);
    return st;
}

static void place_open_synced(place *p, store_kind kind)
{
    place_open(p, kind);
    sessile_store_close(p->store);
    p->store = store_again(p);
}

/* A conversation with everything in it that refers to something else. */
static void world_open(world *w, store_kind kind)
{
    static const char *const first[] = {
        "{\"role\":\"user\",\"content\":\"do it\"}",
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\","
        "\"type\":"
        "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}",
        "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"done\"}"};
    static const char *const second[] = {"{\"role\":\"user\",\"content\":\"and that\"}",
                                         "{\"role\":\"assistant\",\"content\":\"well\"}"};
    memset(w, 0, sizeof *w);
    place_open_synced(&w->p, kind);
    sessile_session *s = session_made(w->p.store, "hurt");
    say(s, "system", "be good");                                    /* 1 */
    say_turn(s, first, 3, ",\"usage\":{\"input\":5,\"output\":2}"); /* 2 to 5 */
    say_turn(s, second, 2, "");                                     /* 6 to 8 */
    put_entry(
        s, "compaction", SESSILE_NO_ID,
        "{\"context\":[\"00000001\",\"00000009.1\",\"00000006-00000007\"],"
        "\"upto\":\"00000008\",\"inserted\":[{\"n\":1,\"message\":{\"role\":\"user\","
        "\"content\":\"summary\"}}]}"); /* 9 */
    say_turn(s, second, 2, "");         /* a to c */
    for (int i = 0; i < 5; i++)
        say(s, i % 2 ? "assistant" : "user", "something that is said later"); /* d… */
    session_closed(s);
    world_keep(w);
    assert_int_equal(w->count, 18);
}

static void world_close(world *w)
{
    for (size_t i = 0; i < w->count; i++)
        sessile_free(w->texts[i]);
    free(w->bytes);
    place_close(&w->p);
}

/* ------------------------------------------------------------------ the rule */

static int is_tombstone(const char *text)
{
    return strstr(text, "\"type\":\"tombstone\"") && strstr(text, "\"lost\":true");
}

/* Everything that is not lost is what it was; what is lost is a tombstone. */
static void check_entries(const world *w, sessile_session *s, const char *lost)
{
    for (size_t i = 0; i < w->count; i++) {
        char *text = entry_of(s, (sessile_id)i);
        if (lost[i])
            assert_true(is_tombstone(text));
        else
            assert_string_equal(text, w->texts[i]);
        sessile_free(text);
    }
}

static void check_reads(sessile_session *s)
{
    sessile_context_info info;
    sessile_message *list;
    sessile_error err;
    size_t count;
    if (sessile_context(s, SESSILE_NO_ID, &list, &count, &info, &err))
        print_error("context: %s\n", err.message);
    assert_non_null(list);
    assert_true(count >= 5);
    sessile_free(list);
    assert_int_equal(sessile_messages(s, NULL, &list, &count, &err), SESSILE_OK);
    sessile_free(list);
}

typedef struct report {
    uint64_t entries, lost, damage, warnings, notes;
    int salvaged, names_entry;
    char all[8000];
} report;

static sessile_status run_check(sessile_store *st, const char *id, int salvage,
                                sessile_id about, report *out)
{
    sessile_session_options o;
    sessile_check *check;
    sessile_checked step;
    sessile_error err;
    memset(out, 0, sizeof *out);
    sessile_session_options_init(&o);
    if (id)
        o.id = sessile_text(id);
    sessile_status status = sessile_check_open(&check, st, &o, salvage, &err);
    while (!status && !(status = sessile_check_next(check, &step, &err)) && step.file) {
        out->entries += step.entries;
        out->lost += step.lost;
        out->salvaged += step.salvaged;
        for (size_t i = 0; i < step.count; i++) {
            const sessile_finding *f = &step.findings[i];
            out->damage += f->severity == SESSILE_DAMAGE;
            out->warnings += f->severity == SESSILE_WARNING;
            out->notes += f->severity == SESSILE_NOTE;
            out->names_entry |= f->entry == about;
            assert_true(f->file[0] && f->what[0]);
            size_t at = strlen(out->all);
            snprintf(out->all + at, sizeof out->all - at, "%s\n", f->what);
        }
    }
    sessile_check_close(check);
    return status;
}

static void assert_file(const char *path, const char *bytes, size_t size)
{
    size_t now_size;
    char *now = file_read_all(path, &now_size);
    assert_int_equal(now_size, size);
    assert_memory_equal(now, bytes, size);
    free(now);
}

/* bytes in the log's place; lost[i]: entry i is. */
static void check_damage(world *w, const char *bytes, size_t size, const char *lost)
{
    char kept[700];
    uint64_t told, expected = 0;
    sessile_error err;
    sessile_id id, about = SESSILE_NO_ID;
    report r;
    for (size_t i = 0; i < w->count; i++) {
        if (lost[i] && about == SESSILE_NO_ID)
            about = (sessile_id)i;
        expected += lost[i] != 0;
    }
    file_write_all(w->path, bytes, size);
    /* what an index vouches for is not looked at in opening */
    snprintf(kept, sizeof kept, "%.*s.idx", (int)(strlen(w->path) - 6), w->path);
    unlink(kept);
    /* it opens, to be read */
    sessile_session *s = session_resumed(w->p.store, "hurt");
    assert_int_equal(sessile_session_damage(s, &told, &err), SESSILE_DAMAGED);
    assert_int_equal(told, expected);
    assert_non_null(strstr(err.message, "sessile check hurt --salvage"));
    assert_non_null(strstr(err.message, "byte"));
    if (expected == 1) { /* the entry that is hurt, not the first of its write */
        char entry[20];
        snprintf(entry, sizeof entry, "entry %08x", (unsigned)about);
        assert_non_null(strstr(err.message, entry));
    }
    check_entries(w, s, lost);
    check_reads(s);
    assert_int_equal(
        sessile_append(s, sessile_text("{\"role\":\"user\",\"content\":\"no\"}"), &id,
                       &err),
        SESSILE_DAMAGED);
    assert_non_null(strstr(err.message, "--salvage"));
    session_closed(s);
    assert_file(w->path, bytes, size);
    /* check says so, and changes nothing */
    assert_int_equal(run_check(w->p.store, NULL, 0, about, &r), SESSILE_OK);
    assert_true(r.damage > 0);
    assert_int_equal(r.lost, expected);
    assert_true(about == SESSILE_NO_ID || r.names_entry);
    assert_file(w->path, bytes, size);
    /* salvage */
    assert_int_equal(run_check(w->p.store, "hurt", 1, about, &r), SESSILE_OK);
    if (!r.salvaged)
        print_error("%s\n", r.all);
    assert_int_equal(r.salvaged, 1);
    beside(w, ".replaced-1", kept);
    assert_file(kept, bytes, size);
    for (int again = 0; again < 2; again++) {
        s = session_resumed(w->p.store, "hurt");
        assert_int_equal(sessile_session_damage(s, &told, &err), SESSILE_OK);
        check_entries(w, s, lost);
        check_reads(s);
        say(s, "user", "it goes on");
        session_closed(s);
        assert_int_equal(run_check(w->p.store, "hurt", 0, 0, &r), SESSILE_OK);
        assert_int_equal(r.damage + r.warnings, 0);
        assert_int_equal(r.entries, w->count + 1 + (size_t)again);
    }
    /* salvaging what is whole does nothing */
    size_t whole_size;
    char *whole = file_read_all(w->path, &whole_size);
    assert_int_equal(run_check(w->p.store, "hurt", 1, 0, &r), SESSILE_OK);
    assert_int_equal(r.salvaged, 0);
    assert_non_null(strstr(r.all, "nothing to salvage"));
    assert_file(w->path, whole, whole_size);
    free(whole);
    unlink(kept);
}

/* ------------------------------------------------------------------ kinds of damage */

static const store_kind kinds[] = {STORE_PLAIN, STORE_SEALED};
#define EACH_KIND for (size_t k_ = 0; k_ < 2; k_++)

static void flipped_bit_in_each_part_of_each_line(void **state)
{
    (void)state;
    unsigned long tried = 0;
    EACH_KIND
    {
        world w;
        world_open(&w, kinds[k_]);
        for (size_t i = 1; i < w.count; i++) {
            size_t start = w.lines[i], size = w.lines[i + 1] - start;
            size_t at[] = {0,         9,        16,       30,      size / 2,
                           size - 20, size - 3, size - 2, size - 1};
            for (size_t n = 0; n < sizeof at / sizeof *at; n++) {
                char lost[MOST] = {0};
                /* a newline that is another byte costs no line */
                lost[i] = at[n] + 1 < size;
                w.bytes[start + at[n]] ^= 1;
                check_damage(&w, w.bytes, w.size, lost);
                w.bytes[start + at[n]] ^= 1;
                tried++;
            }
        }
        world_close(&w);
    }
    print_message(
        "# figure: damaged logs read past and salvaged (one flipped bit) = %lu\n", tried);
}

/* Lines in another order; MOST: no line. */
static char *reordered(const world *w, const size_t *order, size_t count, size_t *size)
{
    char *out = malloc(2 * w->size);
    assert_non_null(out);
    *size = 0;
    for (size_t i = 0; i < count; i++) {
        size_t n = w->lines[order[i] + 1] - w->lines[order[i]];
        memcpy(out + *size, w->bytes + w->lines[order[i]], n);
        *size += n;
    }
    return out;
}

static void line_removed_swapped_or_twice(void **state)
{
    (void)state;
    unsigned long tried = 0;
    EACH_KIND
    {
        world w;
        world_open(&w, kinds[k_]);
        for (size_t i = 1; i < w.count - 3; i++) {
            for (int how = 0; how < 3; how++) {
                char lost[MOST] = {0};
                size_t order[MOST], n = 0, size;
                for (size_t at = 0; at < w.count; at++) {
                    if (at == i && how == 0)
                        continue;
                    order[n++] = how == 1 && at == i       ? i + 1
                                 : how == 1 && at == i + 1 ? i
                                                           : at;
                    if (at == i && how == 2)
                        order[n++] = at;
                }
                lost[i] = how == 0;
                char *bytes = reordered(&w, order, n, &size);
                check_damage(&w, bytes, size, lost);
                free(bytes);
                tried++;
            }
        }
        world_close(&w);
    }
    print_message("# figure: damaged logs read past and salvaged (lines moved) = %lu\n",
                  tried);
}

/* Which lines a stretch of zeros destroys. A lost newline costs no line. */
static void zero(const world *w, char *bytes, size_t at, size_t size, char *lost)
{
    memset(bytes + at, 0, size);
    for (size_t i = 0; i < w->count; i++)
        if (w->lines[i] < at + size && w->lines[i + 1] - 1 > at)
            lost[i] = 1;
}

static void zeroed_blocks_and_several_places(void **state)
{
    (void)state;
    EACH_KIND
    {
        world w;
        world_open(&w, kinds[k_]);
        for (size_t at = w.lines[1]; at + 512 < w.lines[13]; at += 301) {
            char lost[MOST] = {0}, *bytes = malloc(w.size);
            assert_non_null(bytes);
            memcpy(bytes, w.bytes, w.size);
            zero(&w, bytes, at, 512, lost);
            check_damage(&w, bytes, w.size, lost);
            free(bytes);
        }
        /* in three places at once: a message, the compaction, a turn */
        char lost[MOST] = {0};
        const size_t hit[] = {3, 9, 12};
        for (size_t i = 0; i < 3; i++) {
            w.bytes[w.lines[hit[i]] + 50] ^= 4;
            lost[hit[i]] = 1;
        }
        check_damage(&w, w.bytes, w.size, lost);
        world_close(&w);
    }
}

static void damage_across_many_entries(void **state)
{
    (void)state;
    EACH_KIND
    {
        world w;
        char lost[MOST] = {0};
        memset(&w, 0, sizeof w);
        place_open_synced(&w.p, kinds[k_]);
        sessile_session *s = session_made(w.p.store, "hurt");
        for (int i = 0; i < 600; i++)
            say(s, i % 2 ? "assistant" : "user", "one of many");
        session_closed(s);
        world_keep(&w);
        zero(&w, w.bytes, w.lines[250] + 5, w.lines[263] - w.lines[250], lost);
        check_damage(&w, w.bytes, w.size, lost);
        world_close(&w);
    }
}

static void torn_end_is_told_and_left(void **state)
{
    (void)state;
    EACH_KIND
    {
        world w;
        report r;
        world_open(&w, kinds[k_]);
        file_write_all(w.path, w.bytes, w.size - 9);
        assert_int_equal(run_check(w.p.store, NULL, 0, 0, &r), SESSILE_OK);
        assert_int_equal(r.damage, 0);
        assert_int_equal(r.warnings, 1);
        assert_non_null(strstr(r.all, "cut off"));
        assert_int_equal(run_check(w.p.store, "hurt", 1, 0, &r), SESSILE_OK);
        assert_int_equal(r.salvaged, 0);
        assert_file(w.path, w.bytes, w.size - 9);
        session_closed(session_resumed(w.p.store, "hurt"));
        assert_int_equal(run_check(w.p.store, NULL, 0, 0, &r), SESSILE_OK);
        assert_int_equal(r.warnings, 0);
        assert_int_equal(r.notes, 1); /* the piece */
        assert_non_null(strstr(r.all, "set aside"));
        world_close(&w);
    }
}

static void one_damaged_log_does_not_stop_the_others(void **state)
{
    (void)state;
    world w;
    char other[700];
    report r;
    world_open(&w, STORE_SEALED);
    session_closed(session_made(w.p.store, "fine"));
    snprintf(other, sizeof other, "%.*szebra.jsonl", (int)(strlen(w.path) - 10), w.path);
    file_write_all(other, "nonsense\n", 9);
    snprintf(other, sizeof other, "%.*sstray", (int)(strlen(w.path) - 10), w.path);
    file_write_all(other, "x", 1);
    snprintf(other, sizeof other, "%.*sgone.idx", (int)(strlen(w.path) - 10), w.path);
    file_write_all(other, "x", 1);
    /* a log under another's name */
    snprintf(other, sizeof other, "%.*smoved.jsonl", (int)(strlen(w.path) - 10), w.path);
    file_write_all(other, w.bytes, w.size);
    w.bytes[w.lines[4] + 40] ^= 1;
    file_write_all(w.path, w.bytes, w.size);
    assert_int_equal(run_check(w.p.store, NULL, 0, 4, &r), SESSILE_OK);
    assert_true(r.names_entry);
    assert_int_equal(r.warnings, 2);
    assert_non_null(strstr(r.all, "belongs at agents/main/hurt.jsonl"));
    assert_int_equal(r.entries, 2 * w.count + 1);
    world_close(&w);
}

/* ------------------------------------------------------------------ hostile logs */

static void ids_that_nobody_wrote_are_bounded(void **state)
{
    (void)state;
    static const sessile_id claimed[] = {0xfffffffe, 0x7fffffff, 0x00020000, 0x00000100};
    for (size_t i = 0; i < sizeof claimed / sizeof *claimed; i++) {
        world w;
        report r;
        char text[300], *bytes;
        unsigned char none[VAULT_TAG] = {0}, tag[VAULT_TAG];
        logkey plain;
        buf out, scratch;
        sessile_error err;
        memset(&plain, 0, sizeof plain);
        world_open(&w, STORE_PLAIN);
        buf_init(&out, &allocator_default);
        buf_init(&scratch, &allocator_default);
        snprintf(text, sizeof text,
                 "{\"id\":\"%08x\",\"parent_id\":\"00000001\",\"timestamp\":"
                 "\"2026-11-21T20:12:03.123Z\",\"type\":\"custom\",\"data\":{}}",
                 (unsigned)claimed[i]);
        assert_int_equal(line_put(&plain, &out, text, strlen(text),
                                  (line_clear){1, claimed[i]}, none, tag, &scratch, &err),
                         SESSILE_OK);
        bytes = malloc(w.size + out.size);
        assert_non_null(bytes);
        memcpy(bytes, w.bytes, w.lines[4]);
        memcpy(bytes + w.lines[4], out.data, out.size);
        memcpy(bytes + w.lines[4] + out.size, w.bytes + w.lines[4], w.size - w.lines[4]);
        file_write_all(w.path, bytes, w.size + out.size);
        sessile_session *s = session_resumed(w.p.store, "hurt");
        uint64_t lost;
        assert_int_equal(sessile_session_damage(s, &lost, NULL), SESSILE_DAMAGED);
        assert_true(lost < 66000);
        for (size_t id = 0; id < w.count; id++) {
            char *now = entry_of(s, (sessile_id)id);
            assert_string_equal(now, w.texts[id]);
            sessile_free(now);
        }
        session_closed(s);
        assert_int_equal(run_check(w.p.store, "hurt", 1, 0, &r), SESSILE_OK);
        s = session_resumed(w.p.store, "hurt");
        say(s, "user", "on");
        session_closed(s);
        free(bytes);
        buf_deinit(&out);
        buf_deinit(&scratch);
        world_close(&w);
    }
}

/* ------------------------------------------------------------------ interrupted */

static void salvage_stopped_anywhere_is_run_again(void **state)
{
    (void)state;
    unsigned long stopped = 0;
    EACH_KIND
    {
        for (uint64_t n = 0;; n++) {
            world w;
            report r;
            faulty f;
            char lost[MOST] = {0};
            world_open(&w, kinds[k_]);
            lost[6] = 1;
            w.bytes[w.lines[6] + 50] ^= 1;
            file_write_all(w.path, w.bytes, w.size);
            faulty_init(&f, &lazy.table);
            os_current = &f.table;
            sessile_store *st = store_again(&w.p);
            faulty_stop(&f, n, 0);
            (void)run_check(st, "hurt", 1, 0, &r);
            uint64_t hits = f.hits;
            faulty_none(&f);
            sessile_store_close(st);
            os_current = &lazy.table;
            faulty_deinit(&f);
            /* one of the two logs, whole */
            sessile_session *s = session_resumed(w.p.store, "hurt");
            check_entries(&w, s, lost);
            int damaged = sessile_session_damage(s, NULL, NULL) != SESSILE_OK;
            session_closed(s);
            assert_int_equal(run_check(w.p.store, "hurt", 1, 0, &r), SESSILE_OK);
            assert_int_equal(r.salvaged, damaged);
            s = session_resumed(w.p.store, "hurt");
            assert_int_equal(sessile_session_damage(s, NULL, NULL), SESSILE_OK);
            check_entries(&w, s, lost);
            say(s, "user", "on");
            session_closed(s);
            char kept[700];
            beside(&w, ".replaced-1", kept);
            assert_file(kept, w.bytes, w.size);
            beside(&w, ".replaced-2", kept);
            assert_int_not_equal(access(kept, F_OK), 0);
            world_close(&w);
            if (hits == 0)
                break;
            stopped++;
        }
    }
    assert_true(stopped >= 8);
    print_message("# figure: salvages stopped at a changing call, then run again = %lu\n",
                  stopped);
}

static void memory_that_runs_out_anywhere_changes_nothing(void **state)
{
    (void)state;
    unsigned long failed = 0;
    world w;
    world_open(&w, STORE_PLAIN);
    w.bytes[w.lines[6] + 50] ^= 1;
    for (int salvage = 0; salvage < 2; salvage++) {
        for (size_t n = 1;; n++) {
            sessile_store_options o;
            sessile_store *st;
            sessile_error err;
            meter m;
            report r;
            char kept[700];
            memset(&m, 0, sizeof m);
            allocator a = meter_allocator(&m);
            file_write_all(w.path, w.bytes, w.size);
            sessile_store_options_init(&o);
            o.key_source = SESSILE_KEY_PLAIN;
            o.alloc = a.fn;
            o.alloc_ud = a.ud;
            char url[700];
            snprintf(url, sizeof url, "%.*s",
                     (int)(strlen(w.path) - strlen("/agents/main/hurt.jsonl")), w.path);
            assert_int_equal(sessile_open(&st, url, &o, &err), SESSILE_OK);
            m.fail_at = m.calls + n;
            sessile_status status = run_check(st, "hurt", salvage, 0, &r);
            int reached = m.calls >= m.fail_at;
            m.fail_at = 0;
            sessile_store_close(st);
            assert_int_equal(m.live, 0);
            if (!r.salvaged)
                assert_file(w.path, w.bytes, w.size);
            beside(&w, ".replaced-1", kept);
            unlink(kept);
            if (!reached) {
                assert_int_equal(status, SESSILE_OK);
                assert_int_equal(r.salvaged, salvage);
                break;
            }
            failed++;
        }
    }
    print_message("# figure: allocations failed in check and salvage = %lu\n", failed);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flipped_bit_in_each_part_of_each_line),
        cmocka_unit_test(line_removed_swapped_or_twice),
        cmocka_unit_test(zeroed_blocks_and_several_places),
        cmocka_unit_test(damage_across_many_entries),
        cmocka_unit_test(torn_end_is_told_and_left),
        cmocka_unit_test(one_damaged_log_does_not_stop_the_others),
        cmocka_unit_test(ids_that_nobody_wrote_are_bounded),
        cmocka_unit_test(salvage_stopped_anywhere_is_run_again),
        cmocka_unit_test(memory_that_runs_out_anywhere_changes_nothing),
    };
    faults_init(&lazy);
    lazy.lazy = 1;
    os_current = &lazy.table;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

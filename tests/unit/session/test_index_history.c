/*
 * test_index_history.c: indexes of logs that were cut, replaced or made of other entries;
 * several handles and processes; what opening costs; memory that runs out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard/enter.h"
#include "log/copy.h"
#include "log/internal.h"
#include "session/fold.h"
#include "operations/append.h"
#include "operations/messages.h"
#include "support/check.h"
#include "support/logs.h"
#include "support/sessions.h"

#include <cmocka.h>
#include "support/indexes.h"

/* ------------------------------------------------------------------ faults of
 * the cache */

/* The last thousand bytes before the last block's end are torn: nothing in the
 * log says that they were safe, but the index does. */
static void the_anchor_is_a_witness(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        index_bed b = bed_make((store_kind)kind);
        sessile_session *s = session_made(b.st, "s");
        sessile_error err;
        char *out;
        index_files f;
        for (int i = 1; i < 512; i++)
            say(s, "user", "x");
        session_closed(s);
        f = take_files(&b, "s");
        char *torn = malloc(f.log_size);
        memcpy(torn, f.log, f.log_size);
        memset(torn + f.log_size - 200, 0, 200);
        file_write_all(bed_path(&b, "s", ".jsonl"), torn, f.log_size);
        assert_int_equal(state_of(&b, "s", &out, NULL, &err), SESSILE_DAMAGED);
        char *now = file_read_all(bed_path(&b, "s", ".jsonl"), &f.idx_size);
        assert_memory_equal(now, torn, f.log_size);
        free(now);
        /* without the proof it is a torn end, which heals */
        unlink(bed_path(&b, "s", ".idx"));
        must(state_of(&b, "s", &out, NULL, &err), &err);
        free(out);
        free(torn);
        drop_files(&f);
        bed_end(&b);
    }
}

static void what_is_no_file_of_ours_is_left_alone(void **state)
{
    index_bed b = bed_make(STORE_SEALED);
    const char *idx;
    char *truth, *data;
    size_t size;
    struct stat st;
    index_files f;
    (void)state;
    make_story(&b, "s", 700, 1);
    f = take_files(&b, "s");
    truth = truth_of(&b, "s");
    idx = bed_path(&b, "s", ".idx");

    char away[700];
    snprintf(away, sizeof away, "%s/away", b.folder);
    file_write_all(away, "precious", 8);
    assert_int_equal(symlink(away, idx), 0);
    index_shows(&b, truth, &f, "link", 0);
    data = file_read_all(away, &size);
    assert_int_equal(size, 8);
    assert_memory_equal(data, "precious", 8);
    free(data);
    unlink(idx);

    assert_int_equal(mkdir(idx, 0700), 0);
    index_shows(&b, truth, &f, "folder", 0);
    assert_int_equal(rmdir(idx), 0);

    file_write_all(idx, f.idx, f.idx_size);
    assert_int_equal(chmod(idx, 0666), 0);
    index_shows(&b, truth, &f, "open to others", 0);
    assert_int_equal(stat(idx, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0666);
    assert_int_equal(st.st_size, f.idx_size);

    unlink(idx);
    free(state_must(&b, "s", NULL));
    assert_int_equal(stat(idx, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    free(truth);
    drop_files(&f);
    bed_end(&b);
}

static void no_word_of_a_sealed_session_is_in_its_index(void **state)
{
    static const char *const words[] = {"canary", "title", "call", "sessile-name",
                                        "user"};
    index_bed b = bed_make(STORE_SEALED);
    size_t size;
    char *idx;
    (void)state;
    make_story(&b, "sessile-name", 1500, 4);
    idx = file_read_all(bed_path(&b, "sessile-name", ".idx"), &size);
    assert_true(size > 10000);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_null(memmem(idx, size, words[i], strlen(words[i])));
    free(idx);
    bed_end(&b);
}

/* ------------------------------------------------------------------ inside a
 * write */

static const char *const ten[] = {
    "{\"role\":\"user\",\"content\":\"1\",\"usage\":{\"input\":1}}",
    "{\"role\":\"assistant\",\"content\":\"2\",\"usage\":{\"input\":2}}",
    "{\"role\":\"user\",\"content\":\"3\",\"usage\":{\"input\":4}}",
    "{\"role\":\"assistant\",\"content\":\"4\",\"usage\":{\"input\":8}}",
    "{\"role\":\"user\",\"content\":\"5\",\"usage\":{\"input\":16}}",
    "{\"role\":\"assistant\",\"content\":\"6\",\"usage\":{\"input\":32}}",
    "{\"role\":\"user\",\"content\":\"7\",\"usage\":{\"input\":64}}",
    "{\"role\":\"assistant\",\"content\":\"8\",\"usage\":{\"input\":128}}",
    "{\"role\":\"user\",\"content\":\"9\",\"usage\":{\"input\":256}}"};

static void a_block_may_end_inside_a_write(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++)
        for (int reported = 0; reported < 2; reported++)
            for (int before = 0; before <= 10; before++) {
                index_bed b = bed_make((store_kind)kind);
                sessile_session *s = session_made(b.st, "s");
                char *with, *without;
                int restored = 0;
                for (int i = 1; i < 256 - before; i++)
                    say_json(s, "{\"role\":\"user\",\"content\":\"x\",\"usage\":{"
                                "\"input\":1000}}");
                say_turn(s, ten, 9, reported ? ",\"usage\":{\"input\":7}" : "");
                if (log_count(s->core->log) < 256)
                    say(s, "user", "y");
                session_closed(s);
                with = state_must(&b, "s", &restored);
                assert_int_equal(restored, 1);
                without = truth_of(&b, "s");
                assert_same_text(with, without,
                                 "lines before the block's end:", (size_t)before);
                free(with);
                free(without);
                bed_end(&b);
            }
}

static void a_write_cut_behind_the_anchor_is_damage(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        index_bed b = bed_make((store_kind)kind);
        sessile_session *s = session_made(b.st, "s");
        sessile_error err;
        char *out, *at;
        index_files f;
        for (int i = 1; i < 250; i++)
            say(s, "user", "x");
        say_turn(s, ten, 9, "");
        session_closed(s);
        f = take_files(&b, "s");
        /* the line after the anchor stays, the rest of the write goes */
        at = f.log;
        for (int i = 0; i < 257; i++)
            at = strchr(at, '\n') + 1;
        file_write_all(bed_path(&b, "s", ".jsonl"), f.log, (size_t)(at - f.log));
        assert_int_equal(state_of(&b, "s", &out, NULL, &err), SESSILE_DAMAGED);
        drop_files(&f);
        bed_end(&b);
    }
}

/* ------------------------------------------------------------------ others */

static void handles_add_to_it_in_turn(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        index_bed b = bed_make((store_kind)kind);
        sessile_store *other = index_store_on(b.folder, b.kind);
        sessile_session *s = session_made(b.st, "s"), *t = session_resumed(other, "s");
        uint64_t seed = 8;
        int restored;
        char *with, *without;
        for (size_t n = 200; n < 3000; n += 200) {
            sessile_session *by = n / 200 % 2 ? s : t;
            index_tell(by, n, &seed);
            index_settle(by);
        }
        session_closed(s);
        session_closed(t);
        sessile_store_close(other);
        with = state_must(&b, "s", &restored);
        assert_int_equal(restored, 1);
        without = truth_of(&b, "s");
        assert_same_text(with, without, "in turn", 0);
        free(with);
        free(without);
        bed_end(&b);
    }
}

/* Two processes at once; one of them reads along. */
static void processes_add_to_it_at_once(void **state)
{
    index_bed b = bed_make(STORE_SEALED);
    pid_t pids[2];
    char *with, *without;
    int restored = 0;
    (void)state;
    session_closed(session_made(b.st, "s"));
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            sessile_store *st = index_store_on(b.folder, b.kind);
            sessile_session *s = session_resumed(st, "s");
            sessile_status bad = SESSILE_OK;
            for (int n = 0; n < 600 && !bad; n++) {
                sessile_id id;
                sessile_error err;
                bad = session_append_message(
                    s->core, sessile_text("{\"role\":\"user\",\"content\":\"x\"}"), &id,
                    &err);
                if (bad == SESSILE_CONFLICT) { /* the base moved: look again */
                    s->core->tree.base = s->core->tree.head;
                    bad = SESSILE_OK;
                }
                if (n % 50 == 49)
                    index_settle(s);
            }
            session_closed(s);
            sessile_store_close(st);
            _exit(bad != SESSILE_OK);
        }
    }
    for (int i = 0; i < 2; i++) {
        int how;
        assert_int_equal(waitpid(pids[i], &how, 0), pids[i]);
        assert_int_equal(how, 0);
    }
    with = state_must(&b, "s", &restored);
    assert_int_equal(restored, 1);
    without = truth_of(&b, "s");
    assert_same_text(with, without, "at once", 0);
    free(with);
    free(without);
    bed_end(&b);
}

/* Another inode with the same lines, as resealing a log leaves it. */
static void replace_with(const index_bed *b, const char *name, const void *data,
                         size_t size)
{
    char away[700];
    snprintf(away, sizeof away, "%s/agents/main/.new", b->folder);
    file_write_all(away, data, size);
    assert_int_equal(rename(away, bed_path(b, name, ".jsonl")), 0);
    unlink(bed_path(b, name, ".idx"));
}

static void a_log_that_was_replaced_is_opened_again(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        index_bed b = bed_make((store_kind)kind);
        sessile_session *reader, *writer;
        char *with, *without;
        sessile_error err;
        sessile_id id;
        index_files f;
        buf text;
        make_story(&b, "s", 700, 21);
        reader = session_resumed(b.st, "s");
        writer = session_resumed(b.st, "s");
        f = take_files(&b, "s");
        replace_with(&b, "s", f.log, f.log_size);
        must(try_say(writer, "{\"role\":\"user\",\"content\":\"after\"}", &id, &err),
             &err);
        buf_init(&text, &allocator_default);
        must(put_state(reader, &text, &err), &err);
        buf_putc(&text, 0);
        without = truth_of(&b, "s");
        assert_same_text(text.data, without, "the reader", 0);
        session_closed(writer);
        with = state_must(&b, "s", NULL);
        assert_same_text(with, without, "opened again", 0);
        buf_deinit(&text);
        session_closed(reader);
        free(with);
        free(without);
        drop_files(&f);
        bed_end(&b);
    }
}

static void a_log_of_other_entries_is_not_taken_for_it(void **state)
{
    index_bed b = bed_make(STORE_PLAIN);
    sessile_session *s;
    sessile_error err;
    sessile_id id;
    index_files f;
    char *at;
    (void)state;
    make_story(&b, "s", 400, 21);
    f = take_files(&b, "s");
    s = session_resumed(b.st, "s");
    /* fewer entries */
    at = f.log;
    for (int i = 0; i < 40; i++)
        at = strchr(at, '\n') + 1;
    while (!memmem(at, (size_t)(strchr(at, '\n') - at), ",\"commit\":", 10))
        at = strchr(at, '\n') + 1;
    replace_with(&b, "s", f.log, (size_t)(strchr(at, '\n') + 1 - f.log));
    assert_int_equal(try_say(s, "{\"role\":\"user\",\"content\":\"x\"}", &id, &err),
                     SESSILE_CONFLICT);
    session_closed(s);
    /* none at all, and another session in its place */
    replace_with(&b, "s", f.log, f.log_size);
    s = session_resumed(b.st, "s");
    unlink(bed_path(&b, "s", ".jsonl"));
    assert_int_equal(try_say(s, "{\"role\":\"user\",\"content\":\"x\"}", &id, &err),
                     SESSILE_NOTFOUND);
    unlink(bed_path(&b, "s", ".idx"));
    usleep(2000);
    session_closed(session_made(b.st, "s"));
    assert_int_equal(try_say(s, "{\"role\":\"user\",\"content\":\"x\"}", &id, &err),
                     SESSILE_NOTFOUND);
    assert_int_equal(session_refresh_locked(s->core, &err), SESSILE_NOTFOUND);
    session_closed(s);
    drop_files(&f);
    bed_end(&b);
}

static void an_entry_may_have_become_a_tombstone(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        index_bed b = bed_make((store_kind)kind);
        sessile_session *s = session_made(b.st, "s"), *t;
        sessile_error err;
        sessile_id id;
        buf text;
        for (int i = 0; i < 20; i++)
            say(s, "user", "x");
        t = session_resumed(b.st, "s");
        buf_init(&text, &allocator_default);
        must(log_begin(t->core->log, NULL, NULL, &err), &err);
        log_copy copy;
        for (sessile_id i = 0; i <= 20; i++) {
            buf_clear(&text);
            must(log_read(t->core->log, i, &text, &err), &err);
            if (i == 0)
                must(log_copy_begin(&copy, &b.st->core->backend, b.st->core->keys, "main",
                                    "s", NULL, text.data, text.size, &b.st->core->alloc,
                                    &err),
                     &err);
            if (i == 7) {
                buf_clear(&text);
                buf_puts(&text, "{\"id\":\"00000007\",\"parent_id\":\"00000006\","
                                "\"timestamp\":\"2026-11-21T20:12:03.123Z\",\"type\":"
                                "\"tombstone\",\"source\":\"system\",\"data\":{}}");
            }
            if (i > 0)
                must(log_copy_entry(&copy, text.data, text.size, 1, &err), &err);
        }
        must(log_copy_finish(&copy, t->core->log->handle, 0, NULL, 0, &err), &err);
        log_copy_drop(&copy);
        log_end(t->core->log);
        must(try_say(s, "{\"role\":\"user\",\"content\":\"after\"}", &id, &err), &err);
        assert_int_equal(id, 21);
        assert_int_equal(s->core->tree.nodes[7].type, ENTRY_TOMBSTONE);
        assert_int_equal(s->core->tree.nodes[21].messages, 20);
        buf_deinit(&text);
        session_closed(s);
        session_closed(t);
        bed_end(&b);
    }
}

/* ------------------------------------------------------------------ how much
 * is read */

static uint64_t bytes_read;
static int64_t counting_pread(void *ud, int fd, void *out, size_t size, uint64_t offset)
{
    int64_t n = os_posix.pread(ud, fd, out, size, offset);
    bytes_read += n > 0 ? (uint64_t)n : 0;
    return n;
}

/* Bytes that opening and the context take, of a session compacted to a few
 * messages. */
static uint64_t cost_of(size_t count)
{
    os_table counting = os_posix;
    index_bed b;
    uint64_t cost;
    char data[300];
    sessile_session *s;
    sessile_error err;
    const context *c;
    counting.pread = counting_pread;
    os_current = &counting;
    b = bed_make(STORE_SEALED);
    s = session_made(b.st, "s");
    say(s, "system", "be brief"); /* stays in the context: the oldest block is needed */
    while (log_count(s->core->log) < count)
        say(s, log_count(s->core->log) % 2 ? "user" : "assistant",
            "some words of a message");
    snprintf(data, sizeof data,
             "{\"context\":[\"00000001\",\"%08zx-%08zx\"],\"upto\":\"%08zx\"}",
             count - 100, count - 1, count - 1);
    put_entry(s, "compaction", SESSILE_NO_ID, data);
    session_closed(s);
    bytes_read = 0;
    s = session_resumed(b.st, "s");
    must(session_context_locked(s->core, &c, &err), &err);
    assert_int_equal(c->count, 101);
    cost = bytes_read;
    assert_int_equal(s->core->index.restored, 1);
    session_closed(s);
    bed_end(&b);
    os_current = &os_posix;
    return cost;
}

static void opening_reads_no_more_of_a_longer_log(void **state)
{
    uint64_t small = cost_of(10000 - 10000 % 256 + 100),
             large = cost_of(100000 - 100000 % 256 + 100);
    (void)state;
    print_message("# figure: bytes read to open, of 10,000 entries = %llu\n",
                  (unsigned long long)small);
    print_message("# figure: bytes read to open, of 100,000 entries = %llu\n",
                  (unsigned long long)large);
    assert_true(large < small + 4096);
}

/* ------------------------------------------------------------------ want of
 * memory */

static void want_of_memory_leaves_no_trace(void **state)
{
    index_bed b = bed_make(STORE_PLAIN);
    sessile_session_options o;
    sessile_error err;
    char *truth;
    index_files f;
    long n;
    (void)state;
    make_story(&b, "s", 900, 17);
    f = take_files(&b, "s");
    truth = truth_of(&b, "s");
    put_index(&b, f.idx, f.idx_size);
    memset(&o, 0, sizeof o);
    o.id = sessile_text("s");
    for (n = 0;; n++) {
        sessile_session *s = NULL;
        const context *c;
        sessile_status status;
        buf text;
        allocations_left = n;
        status = sessile_resume(&s, b.st, &o, &err);
        if (!status)
            status = session_context_locked(s->core, &c, &err);
        if (!status) {
            buf_init(&text, &b.st->core->alloc);
            status = session_text_locked(s->core, 5, &text, &err);
            buf_deinit(&text);
        }
        if (!status)
            status = session_load_path_locked(s->core, s->core->tree.head, 0, &err);
        long rest = allocations_left;
        allocations_left = -1;
        if (status)
            assert_int_equal(status, SESSILE_NOMEM);
        if (s) /* and it goes on when there is memory again */
            must(session_load_path_locked(s->core, s->core->tree.head, 0, &err), &err);
        if (s)
            (void)sessile_session_close(s, NULL);
        if (rest > 0)
            break;
    }
    assert_true(n > 20);
    index_shows(&b, truth, &f, "after want of memory", 0);
    free(truth);
    drop_files(&f);
    bed_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_anchor_is_a_witness),
        cmocka_unit_test(what_is_no_file_of_ours_is_left_alone),
        cmocka_unit_test(no_word_of_a_sealed_session_is_in_its_index),
        cmocka_unit_test(a_block_may_end_inside_a_write),
        cmocka_unit_test(a_write_cut_behind_the_anchor_is_damage),
        cmocka_unit_test(handles_add_to_it_in_turn),
        cmocka_unit_test(processes_add_to_it_at_once),
        cmocka_unit_test(a_log_that_was_replaced_is_opened_again),
        cmocka_unit_test(a_log_of_other_entries_is_not_taken_for_it),
        cmocka_unit_test(an_entry_may_have_become_a_tombstone),
        cmocka_unit_test(opening_reads_no_more_of_a_longer_log),
        cmocka_unit_test(want_of_memory_leaves_no_trace),
    };
    return cmocka_run_group_tests_name("the index", tests, NULL, NULL);
}

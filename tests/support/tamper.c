/*
 * tamper.c: a log whose bytes are changed behind the engine's back, and the rule that
 * holds whatever was changed.
 *
 * Must never take a change for harmless because the log opens: what is shown is compared
 * with what was written, and what is not shown with what was set aside.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/tamper.h"

static void make(sample *s, kit_mode mode, const char *name, size_t padding, size_t bytes)
{
    static const size_t writes[] = {1, 3, 1, 2, 1, 1};
    const size_t count = sizeof writes / sizeof *writes;
    memset(s, 0, sizeof *s);
    snprintf(s->name, sizeof s->name, "%s", name);
    kit_open(&s->k, mode);
    s->k.os.lazy = 1;
    kit_create(&s->k, name);
    log_t *log = kit_resume(&s->k, name, NULL);
    for (size_t i = 0; i < count || log_bytes(log) < bytes; i++) {
        s->last = (size_t)log_bytes(log);
        s->kept = log_count(log);
        do_write(log, writes[i % count], "what was said", padding);
        do_sync(log);
    }
    log_close(log);
    log_close(kit_resume(&s->k, name, &s->all));
    kit_path(&s->k, name, s->path);
    s->bytes = file_read_all(s->path, &s->size);
    s->lines = malloc((s->all.count + 1) * sizeof *s->lines);
    assert_non_null(s->lines);
    for (size_t i = 0; i < s->size; i++)
        if (i == 0 || s->bytes[i - 1] == '\n') {
            assert_true(s->line_count < s->all.count);
            s->lines[s->line_count++] = i;
        }
    s->lines[s->line_count] = s->size;
    assert_int_equal(s->line_count, s->all.count);
}

void sample_open(sample *s, kit_mode mode, const char *name, size_t padding)
{
    make(s, mode, name, padding, 0);
}

void sample_open_large(sample *s, kit_mode mode, const char *name, size_t padding,
                       size_t bytes)
{
    make(s, mode, name, padding, bytes);
}

void sample_close(sample *s)
{
    seen_free(&s->all);
    free(s->lines);
    free(s->bytes);
    kit_close(&s->k);
}

/* The bytes that opening did not keep lie beside the log; they are taken away again. */
static void check_piece(const sample *s, const char *bytes, size_t from, size_t size)
{
    char piece[700];
    size_t piece_size;
    snprintf(piece, sizeof piece, "%s/agents/main/%s.torn-%zu", s->k.root, s->name, from);
    char *aside = file_read_all(piece, &piece_size);
    assert_int_equal(piece_size, size);
    assert_memory_equal(aside, bytes + from, size);
    free(aside);
    unlink(piece);
}

/* A damaged log that is open: only to be read, and nothing in it is made up. */
static void look_past(sample *s, log_t *log, seen *found, const char *bytes, size_t size)
{
    sessile_error err = {0};
    /* another log's header is for the session above to refuse, which knows its name */
    size_t ours = memcmp(bytes, s->bytes, s->lines[1]) ? 1 : 0;
    assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_DAMAGED);
    assert_non_null(strstr(err.message, "byte"));
    for (size_t i = ours; i < found->count; i++)
        assert_string_equal(found->texts[i], s->all.texts[i]);
    kit_read_past(log, found);
    s->lost = 0;
    for (size_t i = ours; i < found->count; i++) {
        if (log_has_stand_in(log, (sessile_id)i)) {
            s->lost++;
            continue;
        }
        assert_true(i < s->all.count);
        assert_string_equal(found->texts[i], s->all.texts[i]);
    }
    assert_int_equal(s->lost, log_lost(log));
    /* what was put behind the last line may stand where one more was */
    assert_true(found->count <= s->all.count + (size > s->size));
}

/* The rule. The log's file holds these bytes. */
static verdict judge(sample *s, const char *bytes, size_t size)
{
    sessile_error err = {0};
    seen found = {0};
    uint64_t torn = 0;
    log_t *log;
    sessile_status status = kit_try(&s->k, s->name, &log, &found, &torn, &err);
    verdict result = REFUSED;
    size_t after;
    char *now = file_read_all(s->path, &after);
    if (status) {
        assert_null(log);
        assert_true(status == SESSILE_DAMAGED || status == SESSILE_SEALED ||
                    status == SESSILE_UNSUPPORTED);
        assert_true(err.message[0] != 0);
        assert_int_equal(torn, 0);
        assert_int_equal(after, size);
    } else if (log_damage(log, NULL)) {
        assert_int_equal(torn, 0);
        assert_int_equal(after, size);
        look_past(s, log, &found, bytes, size);
        log_close(log);
    } else {
        assert_int_equal(log_count(log), found.count);
        assert_true(found.count == s->all.count || found.count == s->kept);
        for (size_t i = 0; i < found.count; i++)
            assert_string_equal(found.texts[i], s->all.texts[i]);
        result = torn == 0 ? WHOLE : SET_ASIDE;
        if (torn > 0)
            check_piece(s, bytes, (size_t)log_bytes(log), torn);
        assert_int_equal(after + torn, size);
        log_close(log);
    }
    assert_memory_equal(now, bytes, after);
    free(now);
    seen_free(&found);
    return result;
}

verdict look(sample *s, const char *bytes, size_t size)
{
    file_write_all(s->path, bytes, size);
    return judge(s, bytes, size);
}

verdict look_edited(sample *s, size_t at, size_t was, const char *text, size_t size)
{
    size_t rest = s->size - at - was;
    char *bytes = malloc(s->size + size);
    assert_non_null(bytes);
    memcpy(bytes, s->bytes, at);
    memcpy(bytes + at, text, size);
    memcpy(bytes + at + size, s->bytes + at + was, rest);
    verdict v = look(s, bytes, at + size + rest);
    free(bytes);
    return v;
}

verdict look_flipped(sample *s, size_t at, int bit)
{
    struct stat st;
    int fd = open(s->path, O_WRONLY);
    assert_true(fd >= 0);
    s->bytes[at] = (char)(s->bytes[at] ^ (1 << bit));
    assert_int_equal(pwrite(fd, &s->bytes[at], 1, (off_t)at), 1);
    verdict v = judge(s, s->bytes, s->size);
    if (v == WHOLE || (v == SET_ASIDE && at < s->last))
        print_error("%s: byte %zu, bit %d\n", kit_names[s->k.mode], at, bit);
    s->bytes[at] = (char)(s->bytes[at] ^ (1 << bit));
    assert_int_equal(fstat(fd, &st), 0);
    size_t from = (size_t)st.st_size < at ? (size_t)st.st_size : at;
    size_t until = (size_t)st.st_size < s->size ? s->size : at + 1;
    assert_int_equal(pwrite(fd, s->bytes + from, until - from, (off_t)from),
                     until - from);
    close(fd);
    return v;
}

void in_each_mode(void **state)
{
    const sample_test *t = *state;
    for (kit_mode mode = t->first; mode <= KIT_XCHACHA; mode++) {
        sample s;
        if (!kit_possible(mode))
            continue;
        sample_open(&s, mode, "log", t->padding);
        t->run(&s);
        sample_close(&s);
    }
}

/*
 * test_cut.c: a log that was cut anywhere heals to whole writes.
 *
 * Owns promise 3: at every byte where a log of 200 entries may end, opening shows every
 * write that is whole, sets the rest aside byte for byte, reports its size, and the log
 * goes on. Only within the header, which came by rename, a cut is damage.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/logs.h"

enum { ENTRIES = 200 };

typedef struct sample {
    kit k;
    char path[600];
    char *bytes;
    size_t size;
    seen all;
    size_t ends[ENTRIES + 1], counts[ENTRIES + 1], writes; /* after write i */
} sample;

static void sample_open(sample *s, kit_mode mode)
{
    memset(s, 0, sizeof *s);
    kit_open(&s->k, mode);
    s->k.os.lazy = 1;
    kit_create(&s->k, "log");
    kit_path(&s->k, "log", s->path);
    log_t *log = kit_resume(&s->k, "log", NULL);
    s->ends[0] = (size_t)log_bytes(log);
    s->counts[0] = 1;
    for (s->writes = 1; log_count(log) < ENTRIES; s->writes++) {
        size_t n = 1 + s->writes % 4, left = ENTRIES - log_count(log);
        do_write(log, n < left ? n : left, "said", s->writes % 5 * 7);
        s->ends[s->writes] = (size_t)log_bytes(log);
        s->counts[s->writes] = log_count(log);
    }
    log_close(log);
    log_close(kit_resume(&s->k, "log", &s->all));
    assert_int_equal(s->all.count, ENTRIES);
    s->bytes = file_read_all(s->path, &s->size);
    assert_int_equal(s->size, s->ends[s->writes - 1]);
}

static void sample_close(sample *s)
{
    free(s->bytes);
    seen_free(&s->all);
    kit_close(&s->k);
}

/* Makes the log's file hold exactly the sample's first `cut` bytes. Those before `same`
 * are there already. */
static void cut_at(const sample *s, int fd, size_t cut, size_t same)
{
    assert_int_equal(ftruncate(fd, (off_t)cut), 0);
    if (cut > same)
        assert_int_equal(pwrite(fd, s->bytes + same, cut - same, (off_t)same),
                         cut - same);
}

/* The bytes from `from` to the cut lie beside the log. */
static void check_piece(const sample *s, size_t from, size_t cut)
{
    char piece[700];
    size_t size;
    snprintf(piece, sizeof piece, "%s/agents/main/log.torn-%zu", s->k.root, from);
    char *aside = file_read_all(piece, &size);
    assert_int_equal(size, cut - from);
    assert_memory_equal(aside, s->bytes + from, size);
    free(aside);
    unlink(piece);
}

/* all 0: in the first three quarters of the log, at every fourth byte only. */
static unsigned long cut_everywhere(kit_mode mode, int all)
{
    sample s;
    unsigned long states = 0;
    sample_open(&s, mode);
    size_t every = all ? 0 : s.ends[s.writes * 3 / 4], phase = (size_t)getpid() % 4;
    int fd = open(s.path, O_RDWR);
    assert_true(fd >= 0);
    size_t reached = s.writes - 1, same = s.size;
    for (size_t cut = s.size + 1; cut-- > 0;) {
        if (cut < every && cut % 4 != phase)
            continue;
        states++;
        sessile_error err = {0};
        seen found = {0};
        uint64_t torn;
        log_t *log;
        struct stat st;
        cut_at(&s, fd, cut, same);
        sessile_status status = kit_try(&s.k, "log", &log, &found, &torn, &err);
        if (cut < s.ends[0]) {
            assert_int_equal(status, SESSILE_DAMAGED);
            assert_null(log);
            assert_int_equal(fstat(fd, &st), 0);
            assert_int_equal(st.st_size, cut);
            same = cut;
            seen_free(&found);
            continue;
        }
        while (s.ends[reached] > cut)
            reached--;
        same = s.ends[reached];
        assert_int_equal(status, SESSILE_OK);
        assert_int_equal(found.count, s.counts[reached]);
        assert_int_equal(log_bytes(log), same);
        assert_int_equal(torn, cut - same);
        for (size_t i = 0; i < found.count; i++)
            assert_string_equal(found.texts[i], s.all.texts[i]);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_size, same);
        if (torn > 0)
            check_piece(&s, same, cut);
        if (cut % 97 == 0) { /* and it goes on */
            do_write(log, 2, "after", 3);
            log_close(log);
            log = kit_resume(&s.k, "log", NULL);
            assert_int_equal(log_count(log), s.counts[reached] + 2);
        }
        log_close(log);
        seen_free(&found);
    }
    close(fd);
    sample_close(&s);
    return states;
}

static int soak(void)
{
    return getenv("SESSILE_SOAK") != NULL;
}

static void plain_log_cut_anywhere_heals(void **state)
{
    (void)state;
    printf("# figure: cuts of a plain log of 200 entries healed or refused = %lu\n",
           cut_everywhere(KIT_PLAIN, soak()));
}

static void sealed_log_cut_anywhere_heals(void **state)
{
    (void)state;
    unsigned long states = cut_everywhere(KIT_XCHACHA, soak());
    if (soak() && kit_possible(KIT_AES))
        states += cut_everywhere(KIT_AES, 1);
    printf("# figure: cuts of a sealed log of 200 entries healed or refused = %lu\n",
           states);
}

static void log_whose_cut_cannot_be_synced_does_not_open(void **state)
{
    /* the piece, the folder that names it, the log that was cut */
    enum { SYNCS = 3 };
    (void)state;
    for (unsigned long n = 0; n <= SYNCS; n++) {
        sample s;
        sessile_error err = {0};
        uint64_t torn;
        log_t *log;
        sample_open(&s, KIT_XCHACHA);
        file_write_all(s.path, s.bytes, s.size - 7);
        faults_set(&s.k.os, CALL_SYNC_ALL, n, EIO);
        sessile_status status = kit_try(&s.k, "log", &log, NULL, &torn, &err);
        assert_int_equal(s.k.os.counts[CALL_SYNC_ALL], n < SYNCS ? n + 1 : SYNCS);
        assert_int_equal(status, n < SYNCS ? SESSILE_IO : SESSILE_OK);
        log_close(log);
        sample_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_log_cut_anywhere_heals),
        cmocka_unit_test(sealed_log_cut_anywhere_heals),
        cmocka_unit_test(log_whose_cut_cannot_be_synced_does_not_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * cases_reads.c: what is read is what was appended: any bytes, any size, from anywhere.
 */
#include "store/suite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every offset with every size; and the record's number, which may be a help, is none to
 * rely on. */
static void a_read_begins_and_ends_anywhere(void **state)
{
    static const char text[] = "one\n\ntwo two\n3\n";
    static const uint64_t hints[] = {0, 1, 3, 4, 5, 1000, UINT64_MAX >> 2};
    const size_t whole = strlen(text);
    sessile_backend_log *log;
    opened o = open_log(*state, "one\n", &log, NULL);
    sessile_log_end end = {1, 4, {0}};
    char out[40];

    must(append(&o, log, &end, text + 4, whole - 4, 3, 1), &o.err);
    for (size_t h = 0; h <= sizeof hints / sizeof *hints; h++) {
        for (size_t at = 0; at <= whole + 2; at++) {
            for (size_t size = 0; size <= whole + 3; size += size < 6 ? 1 : 4) {
                uint64_t index = 0;
                size_t got = 99, left = at < whole ? whole - at : 0;
                for (size_t i = 0; i < at && i < whole; i++) /* the right number */
                    index += text[i] == '\n';
                if (h)
                    index = hints[h - 1];
                memset(out, '#', sizeof out);
                must(o.table->read(log, index, at, out, size, &got, &o.err), &o.err);
                assert_int_equal(got, left < size ? left : size);
                if (got)
                    assert_memory_equal(out, text + at, got);
                assert_int_equal(out[got], '#'); /* not a byte more */
            }
        }
    }
    done_with(&o, log, NULL);
}

static void past_the_end_there_is_nothing(void **state)
{
    static const uint64_t far[] = {4, 5, 1000, UINT32_MAX, UINT64_MAX >> 2};
    sessile_backend_log *log;
    opened o = open_log(*state, "one\n", &log, NULL);
    char out[8] = "";

    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        size_t got = 9;
        must(o.table->read(log, 1, far[i], out, sizeof out, &got, &o.err), &o.err);
        assert_int_equal(got, 0);
    }
    done_with(&o, log, NULL);
}

static void any_bytes_and_large_records_are_kept(void **state)
{
    enum { LARGE = 12 << 20 };
    sessile_backend_log *log;
    opened o = open_log(*state, "one\n", &log, NULL);
    sessile_log_end end = {1, 4, {0}};
    char *record = malloc(LARGE), *read;
    size_t size, got = 0;

    assert_non_null(record);
    for (size_t i = 0; i < LARGE; i++) {
        record[i] = (char)(i * 2654435761u >> 13);
        if (record[i] == '\n') /* a record is a line */
            record[i] = 0;
    }
    record[LARGE - 1] = '\n';
    must(append(&o, log, &end, record, LARGE, 1, 1), &o.err);
    must(append(&o, log, &end, "\0\xff\n", 3, 1, 2), &o.err);
    o.table->close(log);
    restarted(&o, *state);
    log = log_of(&o, "log");
    read = all(&o, log, 1 << 20, &size);
    assert_int_equal(size, LARGE + 7);
    assert_memory_equal(read + 4, record, LARGE);
    assert_memory_equal(read + 4 + LARGE, "\0\xff\n", 3);
    /* in one piece, over the ends of records */
    must(o.table->read(log, 0, 0, read, size, &got, &o.err), &o.err);
    assert_int_equal(got, size);
    assert_memory_equal(read, "one\n", 4);
    assert_memory_equal(read + 4, record, LARGE);
    assert_memory_equal(read + 4 + LARGE, "\0\xff\n", 3);
    free(read);
    free(record);
    done_with(&o, log, NULL);
}

static void every_byte_is_kept(void **state)
{
    opened o = open_site(*state);
    char record[256], *read;
    size_t n = 0, size;

    for (int c = 0; c < 256; c++)
        if (c != '\n')
            record[n++] = (char)c;
    record[n++] = '\n';
    must(o.table->create(o.self, "main", "log", record, n, &o.err), &o.err);
    sessile_backend_log *log = log_of(&o, "log");
    sessile_log_end end = {1, n, {0}};
    must(append(&o, log, &end, record, n, 1, 1), &o.err);
    read = all(&o, log, 100, &size);
    assert_int_equal(size, 2 * n);
    assert_memory_equal(read, record, n);
    assert_memory_equal(read + n, record, n);
    free(read);
    done_with(&o, log, NULL);
}

static void a_hundred_thousand_records(void **state)
{
    enum { WRITES = 100, EACH = 1000, SIZE = 16 };
    sessile_backend_log *log;
    opened o = open_log(*state, "000000000000000\n", &log, NULL);
    sessile_log_end end = {1, SIZE, {0}};
    static char piece[EACH * SIZE + 1];
    char *read, line[SIZE + 1], out[SIZE];
    size_t size, got = 0, n = 1;

    for (int i = 0; i < WRITES; i++) {
        for (int j = 0; j < EACH; j++, n++)
            snprintf(piece + j * SIZE, SIZE + 1, "%015zu\n", n % 1000000000000000u);
        must(append(&o, log, &end, piece, EACH * SIZE, EACH, (unsigned char)i), &o.err);
    }
    must(o.table->sync(log, &o.err), &o.err);
    assert_int_equal(end.count, n);
    o.table->close(log);
    restarted(&o, *state);
    log = log_of(&o, "log");
    read = all(&o, log, 100000, &size);
    assert_int_equal(size, n * SIZE);
    for (size_t i = 0; i < n; i++) {
        snprintf(line, sizeof line, "%015zu\n", i % 1000000000000000u);
        assert_memory_equal(read + i * SIZE, line, SIZE);
    }
    for (size_t i = 99991; i < n; i += 1009) { /* one by its number */
        must(o.table->read(log, i, i * SIZE, out, SIZE, &got, &o.err), &o.err);
        assert_int_equal(got, SIZE);
        assert_memory_equal(out, read + i * SIZE, SIZE);
    }
    free(read);
    done_with(&o, log, NULL);
}

static const struct CMUnitTest cases[] = {
    CASE(a_read_begins_and_ends_anywhere),      CASE(past_the_end_there_is_nothing),
    CASE(any_bytes_and_large_records_are_kept), CASE(every_byte_is_kept),
    CASE(a_hundred_thousand_records),
};

CASES(cases_reads, cases);

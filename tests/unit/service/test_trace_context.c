/*
 * test_trace_context.c: the header traceparent, read as W3C says and no other way; which
 * traces a sampler takes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/text.h"
#include "service/trace.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"
#define ZERO  "00000000000000000000000000000000"

static void a_header_is_read_and_written(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"00-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01"},
        {"00-" TRACE "-" SPAN "-00", "00-" TRACE "-" SPAN "-00"},
        /* flags that nobody knows are not passed on */
        {"00-" TRACE "-" SPAN "-ff", "00-" TRACE "-" SPAN "-03"},
        /* later versions: the same fields, and more behind them */
        {"01-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01"},
        {"fe-" TRACE "-" SPAN "-01-what comes", "00-" TRACE "-" SPAN "-01"},
        {"cc-" TRACE "-" SPAN "-01-", "00-" TRACE "-" SPAN "-01"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trace_context c;
        char out[TRACEPARENT_SIZE];
        assert_int_equal(traceparent_parse(&c, cases[i].in, strlen(cases[i].in)), 0);
        assert_true(trace_context_is_set(&c));
        traceparent_print(&c, out);
        assert_string_equal(out, cases[i].out);
    }
}

static void what_is_no_header_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "00",
        "ff-" TRACE "-" SPAN "-01",
        "00-" TRACE "-" SPAN "-01-",
        "00-" TRACE "-" SPAN "-01 ",
        " 00-" TRACE "-" SPAN "-01",
        "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-0x",
        "00-" TRACE "-" SPAN "_01",
        "00_" TRACE "-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01",
        "01-" TRACE "-" SPAN "-01.x",
        "0-" TRACE "-" SPAN "-011",
        "0X-" TRACE "-" SPAN "-01",
        "00-" ZERO "-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-0AF7651916cd43dd8448eb211c80319c-" SPAN "-01",
        "00-" TRACE "-B7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319-0" SPAN "-01",
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trace_context c;
        char out[TRACEPARENT_SIZE];
        memset(&c, 1, sizeof c);
        if (!traceparent_parse(&c, cases[i], strlen(cases[i])))
            fail_msg("accepted: %s", cases[i]);
        assert_false(trace_context_is_set(&c));
        traceparent_print(&c, out);
        assert_string_equal(out, "");
    }
    assert_false(trace_context_is_set(NULL));
}

static const unsigned char *trace_of(uint64_t last, unsigned char id[TRACE_ID_SIZE])
{
    memset(id, 0xff, TRACE_ID_SIZE);
    for (int i = 15; i >= 8; i--, last >>= 8)
        id[i] = (unsigned char)last;
    return id;
}

static void a_ratio_is_a_part_of_all_ids(void **state)
{
    sampler s = {SAMPLE_RATIO, 0, UINT64_C(1) << 61}; /* a quarter */
    unsigned char id[TRACE_ID_SIZE];
    int taken = 0;
    (void)state;
    /* the bound, and the bit that does not count */
    assert_true(sampler_takes(&s, NULL, trace_of((UINT64_C(1) << 62) - 1, id)));
    assert_false(sampler_takes(&s, NULL, trace_of(UINT64_C(1) << 62, id)));
    assert_false(sampler_takes(&s, NULL, trace_of(UINT64_MAX, id)));
    assert_true(sampler_takes(&s, NULL, trace_of(0, id)));
    for (int i = 0; i < 100000; i++) {
        random_bytes(id, sizeof id);
        taken += sampler_takes(&s, NULL, id);
    }
    /* 25,000 and 137 for one standard deviation: ten of them */
    assert_in_range(taken, 23600, 26400);
    s.below = 0;
    assert_false(sampler_takes(&s, NULL, trace_of(0, id)));
    s.below = UINT64_C(1) << 63;
    assert_true(sampler_takes(&s, NULL, trace_of(UINT64_MAX, id)));
}

static void a_parent_decides_where_it_is_asked(void **state)
{
    trace_context sampled, not_sampled;
    unsigned char id[TRACE_ID_SIZE] = {1};
    (void)state;
    assert_int_equal(traceparent_parse(&sampled, "00-" TRACE "-" SPAN "-01", 55), 0);
    assert_int_equal(traceparent_parse(&not_sampled, "00-" TRACE "-" SPAN "-00", 55), 0);
    sampler all = {SAMPLE_ALL, 1, 0}, none = {SAMPLE_NONE, 1, 0};
    assert_true(sampler_takes(&all, NULL, id));
    assert_false(sampler_takes(&none, NULL, id));
    assert_true(sampler_takes(&none, &sampled, id));
    assert_false(sampler_takes(&all, &not_sampled, id));
    all.parent_based = none.parent_based = 0;
    assert_true(sampler_takes(&all, &not_sampled, id));
    assert_false(sampler_takes(&none, &sampled, id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_is_read_and_written),
        cmocka_unit_test(what_is_no_header_is_refused),
        cmocka_unit_test(a_ratio_is_a_part_of_all_ids),
        cmocka_unit_test(a_parent_decides_where_it_is_asked),
    };
    return cmocka_run_group_tests_name("trace contexts", tests, NULL, NULL);
}

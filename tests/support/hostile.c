/* hostile.c: scripts that mean harm, and how they must end */
#include "support/hostile.h"

#include "support/policies.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* CPU time that a script may take past its budget. That it ends at all is what is
 * checked; SESSILE_TIMES=1 prints how soon. Instrumented builds are several times slower.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLACK_MS = 5000 };
#else
enum { SLACK_MS = 1000 };
#endif

const policy_limits limits_tight = {10000000, 300, 16 << 20, 1 << 16};

const policy_limits limits_usual = {50000000, 500, 64 << 20, 1 << 20};

uint64_t thread_cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void check_hostile_within(const hostile *cases, size_t count, int spent,
                          const policy_limits *limits)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t from = thread_cpu_ms(), took;
        ran r = policies_body_within(cases[i].body, "s u a u a", limits);
        took = thread_cpu_ms() - from;
        if (r.status != SESSILE_POLICY)
            fail_msg("%s: status %d: %s", cases[i].body, r.status, r.err.message);
        if (strncmp(r.err.message, "body.lua:1: ", 12) != 0 ||
            !strstr(r.err.message, cases[i].says))
            fail_msg("%s: %s", cases[i].body, r.err.message);
        if (r.result.spent != spent)
            fail_msg("%s: spent %d: %s", cases[i].body, r.result.spent, r.err.message);
        if (strcmp(r.keys, "1 2 3 4 5") != 0)
            fail_msg("%s: left %s", cases[i].body, r.keys);
        if (took > limits->ms + SLACK_MS)
            fail_msg("%s: took %llu ms", cases[i].body, (unsigned long long)took);
        if (getenv("SESSILE_TIMES"))
            print_message("%4llu ms  %s\n", (unsigned long long)took, cases[i].body);
    }
}

void check_hostile_all(const hostile *cases, size_t count, int spent)
{
    check_hostile_within(cases, count, spent, &limits_tight);
}

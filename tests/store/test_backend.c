/*
 * test_backend.c: what the table of a store promises, over every store in stores.c: all
 * the cases_*.c together.
 *
 * The engine's own floor makes calls of these kinds and no others; a store that passes
 * here, in test_sessions.c and in test_failures.c carries sessions.
 */
#include "store/suite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/backend.h"

#include <string.h>

int main(int argc, char **argv)
{
    const case_group groups[] = {cases_logs,    cases_reads,   cases_lists,
                                 cases_writers, cases_blobs,   cases_caches,
                                 cases_drafts,  cases_removal, cases_waits};
    struct CMUnitTest cases[128];
    size_t count = 0;

    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (count + groups[i].count > sizeof cases / sizeof *cases)
            return 1;
        memcpy(cases + count, groups[i].cases, groups[i].count * sizeof *cases);
        count += groups[i].count;
    }
    return suite_run("backend", cases, count, 1, argc, argv);
}

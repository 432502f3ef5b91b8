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

int main(int argc, char **argv)
{
    size_t count;
    const struct CMUnitTest *cases = backend_cases(&count);

    return suite_run("backend", cases, count, 1, argc, argv);
}

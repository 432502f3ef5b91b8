/*
 * clock.c: sets the clock of build/clock/sessile, the executable for specs that need it.
 *
 * SESSILE_TEST_NOW is what the clock shows when the process starts, in ms since 1970.
 * It goes on from there. Without it the clock is the system's.
 */
#include <stdlib.h>

#include "base/os.h"

static os_table table;
static int64_t ahead_ms;

static int64_t shifted_now_ms(void *ud)
{
    return os_posix.now_ms(ud) + ahead_ms;
}

/* Before main(): the table is a constant of the process. */
__attribute__((constructor)) static void set_clock(void)
{
    const char *now = getenv("SESSILE_TEST_NOW");
    if (!now)
        return;
    ahead_ms = strtoll(now, NULL, 10) - os_posix.now_ms(NULL);
    table = os_posix;
    table.now_ms = shifted_now_ms;
    os_current = &table;
}

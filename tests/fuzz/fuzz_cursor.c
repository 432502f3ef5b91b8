/*
 * fuzz_cursor.c: cursors of readers of the audit.
 *
 * Holds: what is accepted has one spelling, which printing gives back; what is refused is
 * INVALID, and its sentence says so.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "audit/read.h"

static const char *const words[] = {"1", " ",        "00-000",           "01-001",
                                    "/", "-",        "99-999999",        "0000002a",
                                    "0", "ffffffff", " 02-000/00000001", NULL};

const fuzz_about fuzz_this = {"cursor", 300000, 1 << 10, words};

static const char *const seeds[] = {
    "1",
    "1 00-000/00000000",
    "1 00-000/0000002a 07-1234/00000001 99-999999/fffffffe",
    "1 00-000/00000001 00-000/00000001",
    "2 00-000/00000001",
};

void fuzz_seeds(fuzz_take take, void *arg)
{
    fuzz_give_all(take, arg, seeds, sizeof seeds / sizeof *seeds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    audit_cursor c;
    sessile_error err = {0};
    buf text;
    sessile_status status =
        audit_cursor_parse(&c, (sessile_slice){(const char *)data, size}, &err);

    if (status) {
        FUZZ_CHECK(status == SESSILE_INVALID && strstr(err.message, "no cursor"));
        return 0;
    }
    buf_init(&text, &allocator_default);
    audit_cursor_print(&c, &text);
    FUZZ_CHECK(text.size == size && memcmp(text.data, data, size) == 0);
    buf_deinit(&text);
    return 0;
}

/*
 * fuzz_names.c: keys of messages, names of logs, times, base64, hex, UTF-8.
 *
 * Holds: each is read in one spelling, which printing gives back; a name of a log is a
 * single harmless path component, one for each id; text that is shown is UTF-8 and inert.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "codec/entry.h"
#include "session/header.h"

static const char *const words[] = {"0000002a",
                                    ".1",
                                    ".4294967295",
                                    "ffffffff",
                                    "2026-11-21T20:12:03.123Z",
                                    "9999-12-31T23:59:59.999Z",
                                    "+14:00",
                                    "-00:30",
                                    ".123456789",
                                    "/",
                                    "..",
                                    "=",
                                    "-",
                                    "con",
                                    "\xc3\xa9",
                                    "\xf0\x9f\x98\x80",
                                    "\xed\xa0\x80",
                                    "AA==",
                                    "AAA=",
                                    NULL};

const fuzz_about fuzz_this = {"names", 200000, 1 << 10, words};

static void keys(const char *text, size_t size)
{
    char printed[SESSILE_KEY_SIZE], id_text[9];
    sessile_key key;
    sessile_id id;
    sessile_slice slice = {text, size};
    if (!sessile_key_parse(slice, &key)) {
        sessile_key_print(key, printed);
        FUZZ_CHECK(strlen(printed) == size && memcmp(printed, text, size) == 0);
    }
    if (id_parse(text, size, &id) == 0) {
        id_print(id, id_text);
        FUZZ_CHECK(size == 8 && memcmp(id_text, text, 8) == 0);
    }
}

static void times(const char *text, size_t size)
{
    char printed[TIME_SIZE];
    int64_t ms, again;
    if (time_parse(text, size, &ms) == 0) {
        time_print(ms, printed);
        FUZZ_CHECK(strlen(printed) == TIME_SIZE - 1);
        FUZZ_CHECK(time_parse(printed, TIME_SIZE - 1, &again) == 0 && again == ms);
    }
}

static void encodings(const char *text, size_t size)
{
    unsigned char *raw = malloc(size / 4 * 3 + 3), *bytes = malloc(size / 2 + 1);
    char *hex = malloc(size + 1);
    buf out;
    FUZZ_CHECK(raw != NULL && bytes != NULL && hex != NULL);
    buf_init(&out, &allocator_default);
    int64_t n = base64_decode(raw, text, size);
    if (n >= 0) {
        base64_put(&out, raw, (size_t)n);
        FUZZ_CHECK(out.size == size && (size == 0 || !memcmp(out.data, text, size)));
    }
    buf_clear(&out);
    base64_put(&out, text, size);
    unsigned char *back = malloc(out.size / 4 * 3 + 3);
    FUZZ_CHECK(back != NULL);
    FUZZ_CHECK(base64_decode(back, out.data ? out.data : "", out.size) == (int64_t)size);
    FUZZ_CHECK(size == 0 || memcmp(back, text, size) == 0);
    if (size % 2 == 0 && hex_decode(bytes, text, size / 2) == 0) {
        hex_encode(hex, bytes, size / 2);
        int64_t lower = 1;
        for (size_t i = 0; i < size; i++)
            lower = lower && !(text[i] >= 'A' && text[i] <= 'F');
        FUZZ_CHECK(!lower || memcmp(hex, text, size) == 0);
    }
    buf_deinit(&out);
    free(back);
    free(raw);
    free(bytes);
    free(hex);
}

/* A judge of its own: RFC 3629 by arithmetic. */
static int is_utf8(const unsigned char *at, size_t size)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    for (size_t i = 0; i < size;) {
        unsigned c = at[i];
        size_t n = c < 0x80       ? 1
                   : c >> 5 == 6  ? 2
                   : c >> 4 == 14 ? 3
                   : c >> 3 == 30 ? 4
                                  : 0;
        uint32_t point = n == 1 ? c : c & (0x7fu >> n);
        if (n == 0 || n > size - i)
            return 0;
        for (size_t k = 1; k < n; k++) {
            if (at[i + k] >> 6 != 2)
                return 0;
            point = point << 6 | (at[i + k] & 63u);
        }
        if (point < least[n] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
            return 0;
        i += n;
    }
    return 1;
}

static void text_functions(const char *text, size_t size)
{
    char shown[NAME_SHOWN];
    int valid = utf8_valid(text, size);
    FUZZ_CHECK(valid == is_utf8((const unsigned char *)text, size));
    if (valid) {
        size_t cut = utf8_floor(text, size, size / 2);
        FUZZ_CHECK(cut <= size / 2 && size / 2 - cut < 4 && utf8_valid(text, cut));
    }
    name_show((sessile_slice){text, size}, shown);
    FUZZ_CHECK(memchr(shown, 0, sizeof shown) != NULL);
    FUZZ_CHECK(utf8_valid(shown, strlen(shown)));
}

static void harmless(const char *name)
{
    size_t size = strlen(name);
    FUZZ_CHECK(size > 0 && size < NAME_SIZE && name[0] != '-' && name[0] != '.');
    FUZZ_CHECK(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-=") == size);
}

/* Two ids and a user out of one input. */
static void log_names(const char *text, size_t size)
{
    char a[NAME_SIZE], b[NAME_SIZE], c[NAME_SIZE];
    size_t half = size / 2, rest = size - half;
    sessile_slice one = {text, half}, two = {text + half, rest}, none = {"", 0};
    const keyring *k = fixed_keyring(1);
    keyring_log_name(k, none, one, a);
    keyring_log_name(k, none, two, b);
    keyring_log_name(k, one, two, c);
    harmless(a);
    harmless(b);
    harmless(c);
    FUZZ_CHECK((strcmp(a, b) == 0) ==
               (half == rest && memcmp(text, text + half, half) == 0));
    FUZZ_CHECK(half == 0 || strcmp(b, c) != 0);
    keyring_folder_name(k, one, c);
    harmless(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    keys(text, size);
    times(text, size);
    encodings(text, size);
    text_functions(text, size);
    log_names(text, size);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const texts[] = {"0000002a",
                                        "0000002a.1",
                                        "ffffffff.7",
                                        "2026-11-21T20:12:03.123Z",
                                        "1970-01-01T00:00:00+01:00",
                                        "bug-42",
                                        "../../etc/passwd",
                                        "abcabc",
                                        "AAECAwQ=",
                                        "deadbeef",
                                        "h\xc3\xa9llo w\xc3\xb6rld \xf0\x9f\x98\x80",
                                        "a\x1b[2Jb",
                                        ""};
    fuzz_give_all(take, arg, texts, sizeof texts / sizeof *texts);
}

/*
 * fuzz_rpc_line.c: what a client of `sessile rpc` sends, and what it is sent.
 *
 * The first byte of an input is how many bytes come at a time, the second how long a line
 * may be.
 *
 * Holds: the lines are those that the whole text has, whatever the pieces; one that is
 * too long is told once, and the next one is right; no more is kept than a line and a
 * piece. What is written as a line is one line of UTF-8, without the ends that other
 * readers know.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/lines.h"
#include "base/text.h"

static const char *const words[] = {"\n",
                                    "\r\n",
                                    "{\"jsonrpc\":\"2.0\"",
                                    "\xE2\x80\xA8",
                                    "\xE2\x80\xA9",
                                    "\xC2\x85",
                                    "\xE2\x80",
                                    "\"id\":",
                                    "aaaaaaaaaaaaaaaaaaaa",
                                    NULL};

const fuzz_about fuzz_this = {"rpc_line", 200000, 1 << 10, words};

void fuzz_seeds(fuzz_take take, void *arg)
{
    fuzz_give_text(take, arg, 3, "\x10{\"jsonrpc\":\"2.0\"}\n\nhalf");
    fuzz_give_text(take, arg, 1, "\x02long line\nok\n");
    fuzz_give_text(take, arg, 9, "\x7f\xE2\x80\xA8\n\xC2\x85\xFF");
}

/* The line that the whole text has at *at, and moves behind it. */
static lines_found plain_next(const char *text, size_t size, size_t *at, size_t most,
                              const char **line, size_t *length)
{
    const char *newline;
    if (*at >= size)
        return LINES_NONE;
    *line = text + *at;
    newline = memchr(*line, '\n', size - *at);
    *length = newline ? (size_t)(newline - *line) : size - *at;
    *at += *length + (newline != NULL);
    return *length > most ? LINES_LONG : LINES_ONE;
}

static void check_lines(const char *text, size_t size, size_t piece, size_t most)
{
    size_t at = 0, fed = 0, length, wanted_length;
    const char *line, *wanted;
    lines l;
    lines_init(&l, &allocator_default, most);
    for (;;) {
        lines_found found = lines_next(&l, &line, &length);
        if (found == LINES_NONE && fed < size) {
            size_t some = size - fed < piece ? size - fed : piece;
            FUZZ_CHECK(lines_held(&l) <= most);
            FUZZ_CHECK(lines_feed(&l, text + fed, some) == 0);
            fed += some;
            if (fed == size)
                lines_end(&l);
            continue;
        }
        if (found == LINES_NONE && size == 0)
            break;
        FUZZ_CHECK(plain_next(text, size, &at, most, &wanted, &wanted_length) == found);
        if (found == LINES_NONE)
            break;
        FUZZ_CHECK(found == LINES_LONG ||
                   (length == wanted_length && !memcmp(line, wanted, length)));
    }
    lines_deinit(&l);
}

static void check_put(const char *text, size_t size)
{
    buf out;
    buf_init(&out, &allocator_default);
    lines_put(&out, text, size);
    FUZZ_CHECK(out.size >= 1 &&
               memchr(out.data, '\n', out.size) == out.data + out.size - 1);
    FUZZ_CHECK(utf8_valid(out.data, out.size) && !memchr(out.data, '\r', out.size));
    FUZZ_CHECK(!strstr(out.data, "\xE2\x80\xA8"));
    FUZZ_CHECK(!strstr(out.data, "\xC2\x85"));
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    if (size < 2)
        return 0;
    check_lines(text + 2, size - 2, data[0] ? data[0] : 1, data[1] ? data[1] : 1);
    check_put(text + 2, size - 2);
    return 0;
}

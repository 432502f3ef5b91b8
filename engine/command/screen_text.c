/*
 * screen_text.c: the cells of a terminal that a text becomes.
 *
 * The last check before the terminal: whatever the input, the output is only printable
 * characters. Must never assume that a caller has cleaned the text.
 */
#include <wchar.h>

#include "command/screen.h"

enum { CANNOT_DRAW = 0xFFFD, MARKS = SCREEN_CELL - 2 };

/* Takes one character from UTF-8. Bytes that are none are U+FFFD, one for each. */
static wchar_t next_character(const char **at, const char *end)
{
    static const unsigned least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *c = (const unsigned char *)*at;
    size_t more = c[0] < 0x80   ? 0
                  : c[0] < 0xC2 ? 4
                  : c[0] < 0xE0 ? 1
                  : c[0] < 0xF0 ? 2
                  : c[0] < 0xF5 ? 3
                                : 4;
    unsigned code = more == 0 ? c[0] : c[0] & (0x3Fu >> more);
    int is_whole = more < 4 && more < (size_t)(end - *at);
    for (size_t i = 1; is_whole && i <= more; i++) {
        is_whole = (c[i] & 0xC0) == 0x80;
        code = code << 6 | (c[i] & 0x3Fu);
    }
    if (!is_whole || code < least[more] || code > 0x10FFFF ||
        (code >= 0xD800 && code <= 0xDFFF)) {
        *at += 1;
        return CANNOT_DRAW;
    }
    *at += more + 1;
    return (wchar_t)code;
}

int screen_is_inert(wchar_t c)
{
    static const wchar_t hidden[][2] = {
        {0x00, 0x1F},     {0x7F, 0x9F},      {0x061C, 0x061C}, {0x180E, 0x180E},
        {0x200B, 0x200F}, {0x2028, 0x202E},  {0x2060, 0x206F}, {0xFEFF, 0xFEFF},
        {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF}};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (c >= hidden[i][0] && c <= hidden[i][1])
            return 0;
    return 1;
}

/* A soft hyphen or a variation selector: it is left out, and the text looks the same. */
static int is_silent(wchar_t c)
{
    return c == 0xAD || (c >= 0xFE00 && c <= 0xFE0F);
}

int screen_next_cell(const char **at, const char *end, wchar_t cell[SCREEN_CELL])
{
    int count = 1, width;
    cell[0] = next_character(at, end);
    if (cell[0] == L'\t' || cell[0] == L'\n')
        cell[0] = L' ';
    if (is_silent(cell[0]))
        return 0;
    width = screen_is_inert(cell[0]) ? wcwidth(cell[0]) : -1;
    if (width <= 0) { /* a mark that stands alone as well */
        cell[0] = CANNOT_DRAW;
        width = 1;
    }
    while (*at < end) {
        const char *after = *at;
        wchar_t mark = next_character(&after, end);
        if (!is_silent(mark) && (!screen_is_inert(mark) || wcwidth(mark) != 0))
            break;
        if (!is_silent(mark) && count <= MARKS)
            cell[count++] = mark;
        *at = after;
    }
    cell[count] = L'\0';
    return width;
}

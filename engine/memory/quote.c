/*
 * quote.c: entries of memories as a message that quotes them.
 *
 * A quoted value is data, whatever it says. It cannot end its line, its quotes or a tag
 * around it, and has no text that a model reads and a person does not see.
 */
#include "memory/quote.h"

#include <inttypes.h>

#include "base/text.h"
#include "codec/json.h"
#include "memory/kinds.h"

/* Characters, other than those that JSON escapes, that are escaped in a quoted value. */
static const struct {
    uint32_t first, last;
} escaped[] = {
    {'<', '<'},         {'>', '>'},       {0x7f, 0x9f},     /* DEL, C1 */
    {0xad, 0xad},                                           /* soft hyphen */
    {0x61c, 0x61c},     {0x180e, 0x180e}, {0x200b, 0x200b}, /* of no width */
    {0x200e, 0x200f},                                       /* direction marks */
    {0x2028, 0x202e},   {0x2060, 0x206f}, {0xfe00, 0xfe0e}, /* lines, directions */
    {0xfeff, 0xfeff},   {0xfff9, 0xfffb},                   /* byte order, notes */
    {0xe0000, 0xe0fff},                                     /* tags, variations */
};

static int is_escaped(uint32_t c)
{
    for (size_t i = 0; i < sizeof escaped / sizeof *escaped; i++)
        if (c >= escaped[i].first && c <= escaped[i].last)
            return 1;
    return 0;
}

static uint32_t decode(const unsigned char *at, size_t size)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = at[0] & masks[size];
    for (size_t i = 1; i < size; i++)
        c = c << 6 | (at[i] & 0x3f);
    return c;
}

void quote_put_text(buf *out, sessile_slice text)
{
    buf json;
    size_t size;

    buf_init(&json, out->alloc);
    json_put_string(&json, text.data ? text.data : "", text.size);
    for (size_t i = 0; !json.failed && i < json.size; i += size) {
        uint32_t c;
        size = utf8_length(json.data + i, json.size - i);
        size = size ? size : 1;
        c = decode((const unsigned char *)json.data + i, size);
        if (!is_escaped(c))
            buf_put(out, json.data + i, size);
        else if (c < 0x10000)
            buf_printf(out, "\\u%04" PRIx32, c);
        else
            buf_printf(out, "\\u%04" PRIx32 "\\u%04" PRIx32,
                       0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
    }
    if (json.failed)
        out->failed = 1;
    buf_wipe(&json);
}

void quote_put_entry(buf *out, const sessile_memory_row *row)
{
    char time[TIME_SIZE];

    time_print(row->time_ms, time);
    buf_printf(out, "\n- [%" PRIx32 ", %.10s, %s, %s] ", row->id, time,
               memory_source_name(row->source), memory_kind_name(row->kind));
    quote_put_text(out, row->value);
}

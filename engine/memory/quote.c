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

/* Control characters, line and paragraph separators, and what Unicode 16 ignores where
 * it cannot show it (Default_Ignorable_Code_Point), but for three that languages and
 * emoji need: the joiners U+200C and U+200D, and the variation selector U+FE0F. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0, 0x1f},          {0x7f, 0x9f},       /* C0; DEL, C1 */
    {0xad, 0xad},       {0x34f, 0x34f},     /* soft hyphen, grapheme joiner */
    {0x61c, 0x61c},     {0x115f, 0x1160},   /* Arabic mark, Hangul fillers */
    {0x17b4, 0x17b5},   {0x180b, 0x180f},   /* Khmer, Mongolian */
    {0x200b, 0x200b},   {0x200e, 0x200f},   /* of no width, direction marks */
    {0x2028, 0x202e},   {0x2060, 0x206f},   /* lines, directions */
    {0x3164, 0x3164},   {0xfe00, 0xfe0e},   /* Hangul filler, variations */
    {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   /* byte order, Hangul filler */
    {0xfff0, 0xfffb},   {0x1bca0, 0x1bca3}, /* notes, shorthand */
    {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}, /* music, tags and variations */
};

static int is_hidden(uint32_t c)
{
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (c >= hidden[i].first && c <= hidden[i].last)
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

int quote_find_hidden(sessile_slice text, uint32_t *c)
{
    for (size_t i = 0, size; i < text.size; i += size) {
        size = utf8_length(text.data + i, text.size - i);
        size = size ? size : 1;
        *c = decode((const unsigned char *)text.data + i, size);
        if (is_hidden(*c))
            return 1;
    }
    return 0;
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
        if (c != '<' && c != '>' && !is_hidden(c))
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

/*
 * url.c: looking for URLs in 1 MB of text, by kind of text.
 *
 * The floor is one memchr() for a byte that is not there: the least that any search of
 * the text costs. What is to be reached is a speed, 0.5 GB a second, which the notes
 * give.
 */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "sessile_screen.h"

#define WANTED_GB 0.5

static void read_file(buf *out, const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t got;
    if (!file)
        broken(path);
    do {
        if (buf_reserve(out, 65536))
            broken("memory");
        got = fread(out->data + out->size, 1, 65536, file);
        out->size += got;
    } while (got > 0);
    fclose(file);
}

/* What is repeated up to the size of each text: a file, or a piece of text. */
static const struct {
    const char *name, *file, *piece;
} kinds[] = {
    {"URLs: the example's conversation", "examples/demo-session.jsonl", NULL},
    {"URLs: English", "engine/README.md", NULL},
    {"URLs: C", "engine/tokens/encoding.c", NULL},
    {"URLs: a list of URLs", NULL, "https://www.example.org/path/to/x?y=z\n"},
    {"URLs: URLs in other alphabets", NULL, "https://m\xc3\xbcnchen.example.org/\n"},
};

static void measure(size_t kind, size_t size)
{
    samples ours = {0}, floor = {0};
    sessile_url_options options;
    /* It is the speed that counts: what the texts name is allowed. */
    sessile_slice allow[] = {sessile_text("localhost"), sessile_text("0.0.0.0/0")};
    sessile_error err;
    const char *volatile seen;
    double fastest;
    buf text;

    buf_init(&text, &allocator_default);
    while (text.size < size)
        if (kinds[kind].file)
            read_file(&text, kinds[kind].file);
        else
            buf_puts(&text, kinds[kind].piece);
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '\\') /* the escapes of JSON, which are undone elsewhere */
            text.data[i] = ' ';
    sessile_url_options_init(&options);
    options.allow = allow;
    options.allow_count = 2;
    for (size_t i = 0; i < rounds(200); i++) {
        double begin = now_us();
        must(sessile_url_check((sessile_slice){text.data, text.size}, &options, NULL,
                               &err),
             &err);
        double middle = now_us();
        seen = memchr(text.data, 1, text.size);
        (void)seen;
        sample_round(&ours, middle - begin, &floor, now_us() - middle, NULL, 0);
    }
    fastest = median(&ours);
    row_print(&(row){kinds[kind].name, &ours, &floor, NULL, "memchr", 0, 0});
    note("%s: %.2f GB/s (%.1f wanted)", kinds[kind].name,
         (double)text.size / fastest / 1000, WANTED_GB);
    buf_deinit(&text);
}

int main(int argc, char **argv)
{
    size_t size = bench_short() ? 20000 : 1000000;
    bench_begin(argc, argv);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        measure(i, size);
    return bench_end();
}

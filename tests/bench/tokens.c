/*
 * tokens.c: exact token counts: megabytes a second of processor time on one thread, by
 * kind of text.
 *
 * The first row is what the figure to reach is of: the texts of a recorded conversation.
 * TRANSCRIPT=FILE names one (JSON lines, of any recorder: the values of "text",
 * "content", "thinking"); without it the one that comes with the examples. Node's
 * tiktoken and gpt-tokenizer count the same texts where they are installed (NODE_PATH);
 * the counts must be equal.
 */
#include "measure.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "codec/json.h"
#include "tokens/encoding.h"

#define WANTED_MB 42.0

typedef struct kind {
    const char *name;
    buf text;
} kind;

enum { REAL, ENGLISH, CODE, CHINESE, RANDOM, ONE_LETTER, KINDS };

/* ------------------------------------------------------------------ texts */

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

static int is_text(json key)
{
    return json_is(key, "text") || json_is(key, "content") || json_is(key, "thinking");
}

/* Every text in a value, each with a line break after it. */
static void gather(buf *out, json value, int text)
{
    json_iter it;
    if (value.type == JSON_STRING && text) {
        if (json_string(out, value))
            broken("memory");
        buf_putc(out, '\n');
    }
    if (value.type != JSON_OBJECT && value.type != JSON_ARRAY)
        return;
    for (it = json_begin(value); json_next(&it);)
        gather(out, it.value, it.is_object ? is_text(it.key) : text);
}

static void read_transcript(buf *out, const char *path)
{
    buf file, checked;
    const char *at, *end, *next;

    buf_init(&file, &allocator_default);
    buf_init(&checked, &allocator_default);
    read_file(&file, path);
    for (at = file.data, end = at + file.size; at < end; at = next + 1) {
        next = memchr(at, '\n', (size_t)(end - at));
        if (!next)
            next = end;
        buf_clear(&checked);
        if (!json_check(&checked, at, (size_t)(next - at), 128, NULL))
            gather(out, json_of(checked.data, checked.size), 0);
    }
    buf_deinit(&file);
    buf_deinit(&checked);
}

static void fill(buf *out, size_t size, const char *const *from, size_t count)
{
    uint32_t x = 1;
    while (out->size < size) {
        x = x * 1664525u + 1013904223u;
        buf_puts(out, from[(x >> 8) % count]);
    }
}

static void make_texts(kind *kinds)
{
    static const char *const chinese[] = {
        "人工智能", "的",   "发展", "正在", "改变", "我们", "。",
        "，",       "数据", "模型", "会话", "记录", "必须", "可靠",
        "地",       "保存", "在",   "磁盘", "上",   "是",   "一个"};
    const char *set = getenv("TRANSCRIPT");
    size_t size = bench_short() ? 20000 : 1000000, k;
    uint32_t x = 7;

    for (k = 0; k < KINDS; k++)
        buf_init(&kinds[k].text, &allocator_default);
    kinds[REAL].name = set ? "a recorded conversation" : "the example's conversation";
    read_transcript(&kinds[REAL].text, set ? set : "examples/demo-session.jsonl");
    kinds[ENGLISH].name = "English (this folder's and other READMEs)";
    while (kinds[ENGLISH].text.size < size) {
        read_file(&kinds[ENGLISH].text, "engine/README.md");
        read_file(&kinds[ENGLISH].text, "README.md");
        read_file(&kinds[ENGLISH].text, "tests/bench/README.md");
    }
    kinds[CODE].name = "C";
    while (kinds[CODE].text.size < size) {
        read_file(&kinds[CODE].text, "engine/tokens/encoding.c");
        read_file(&kinds[CODE].text, "engine/include/sessile.h");
        read_file(&kinds[CODE].text, "engine/log/log.c");
    }
    kinds[CHINESE].name = "Chinese";
    fill(&kinds[CHINESE].text, size, chinese, sizeof chinese / sizeof *chinese);
    kinds[RANDOM].name = "random letters and digits";
    for (k = 0; k < size; k++) {
        x = x * 1664525u + 1013904223u;
        buf_putc(
            &kinds[RANDOM].text,
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[x >> 26]);
    }
    kinds[ONE_LETTER].name = "one letter, all of it";
    for (k = 0; k < size; k++)
        buf_putc(&kinds[ONE_LETTER].text, 'a');
    for (k = 0; k < KINDS; k++)
        if (kinds[k].text.failed)
            broken("memory");
}

/* ------------------------------------------------------------------ rows */

typedef struct figure {
    int64_t tokens;
    double mb; /* a second; 0: none */
} figure;

/* The clock is that of the processor: nothing here waits, and others may be at work. */
static double used_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static figure measure(const encoding *e, const buf *text)
{
    samples s = {0};
    figure f = {0, 0};
    sessile_error err;
    size_t k;

    for (k = 0; k < rounds(15); k++) {
        double start = used_us();
        must(encoding_count(e, text->data, text->size, &f.tokens, &err), &err);
        sample(&s, used_us() - start);
    }
    f.mb = (double)text->size / median(&s);
    free(s.at);
    return f;
}

/* What a package of Node says of the text in a file: "TOKENS MICROSECONDS". */
static figure ask_node(const char *package, const char *name, const char *path)
{
    char command[9000];
    figure f = {0, 0};
    double us = 0;
    long long tokens;
    FILE *pipe;

    snprintf(command, sizeof command,
             "node tests/bench/tokens.mjs %s %s '%s' 2>/dev/null", package, name, path);
    pipe = popen(command, "r");
    if (!pipe)
        return f;
    if (fscanf(pipe, "%lld %lf", &tokens, &us) == 2 && us > 0)
        f.tokens = tokens;
    pclose(pipe);
    f.mb = us > 0 ? 1 / us : 0;
    return f;
}

static void print_peer(figure f, double size, int64_t tokens)
{
    if (f.mb == 0)
        printf(" %14s", "absent");
    else
        printf(" %6.1f %6s", f.mb * size, f.tokens == tokens ? "equal" : "OTHER");
}

static void print_rows(const char *name, kind *kinds)
{
    const char *build = getenv("SESSILE_BUILD");
    char path[4400];
    sessile_error err;
    encoding *e;
    size_t k;

    snprintf(path, sizeof path, "%s/share/sessile/encodings", build ? build : "build");
    must(encoding_open(&e, name, path, &allocator_default, &err), &err);
    for (k = 0; k < KINDS; k++) {
        figure ours = measure(e, &kinds[k].text);
        double size = (double)kinds[k].text.size;
        FILE *file;

        snprintf(path, sizeof path, "%s/text", bench_folder);
        file = fopen(path, "wb");
        if (!file || fwrite(kinds[k].text.data, 1, kinds[k].text.size, file) < 1)
            broken(path);
        fclose(file);
        printf("%-12s %-42s %9.0f %9lld %7.1f", name, kinds[k].name, size / 1000,
               (long long)ours.tokens, ours.mb);
        if (k == REAL)
            printf(" %6.0f", WANTED_MB);
        else
            printf(" %6s", "");
        /* The peers need minutes for a single long word. */
        if (k != ONE_LETTER && !bench_short()) {
            print_peer(ask_node("tiktoken", name, path), size, ours.tokens);
            print_peer(ask_node("gpt-tokenizer", name, path), size, ours.tokens);
        }
        printf("\n");
        fflush(stdout);
        remove(path);
    }
    encoding_free(e);
}

int main(int argc, char **argv)
{
    kind kinds[KINDS];
    size_t k;

    bench_make_folder(argc, argv);
    printf("%-12s %-42s %9s %9s %7s %6s %14s %14s\n", "encoding", "text", "KB", "tokens",
           "MB/s", "wanted", "tiktoken", "gpt-tokenizer");
    make_texts(kinds);
    print_rows("cl100k_base", kinds);
    print_rows("o200k_base", kinds);
    for (k = 0; k < KINDS; k++)
        buf_deinit(&kinds[k].text);
    return bench_end();
}

/*
 * memory.c: a long-term memory, sealed, in a folder: writing, reading a key, searching,
 * opening, recall in a turn, each beside its floor. Searches without a store are in
 * memory_search.c.
 */
#include "bench/memory_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sessile_memory.h"

enum {
    DIMS = 384,
    KEYS = 100,      /* of the entries that have one, behind the others */
    BLOCK = 256,     /* entries of a block of the index */
    ABOUT_LINE = 200 /* bytes of an entry's line that are not its value, before base64 */
};

static char store_name[40];

static void memory_path(char out[4400], const char *ending)
{
    snprintf(out, 4400, "%s/%s/agents/main.memory/memory.%s", bench_folder, store_name,
             ending);
}

static off_t log_bytes(void)
{
    char path[4400];
    memory_path(path, "jsonl");
    return bench_file_size(path);
}

static sessile_memory *open_memory(sessile_store *st)
{
    sessile_memory_options options;
    sessile_memory *m;
    sessile_error err;
    sessile_memory_options_init(&options);
    must(sessile_memory_open(&m, st, &options, &err), &err);
    return m;
}

/* ------------------------------------------------------------------ filled */

/* Entries in commits of a hundred; the last KEYS have keys. */
static void fill_memory(sessile_memory *m, int count)
{
    enum { TOGETHER = 100 };
    static char texts[TOGETHER][MEMORY_TEXT], keys[TOGETHER][16];
    sessile_memory_write_entry entries[TOGETHER];
    sessile_error err;

    for (int at = 0; at < count; at += TOGETHER) {
        for (int i = 0; i < TOGETHER; i++) {
            sessile_memory_write_init(&entries[i]);
            entries[i].value.data = texts[i];
            entries[i].value.size = memory_put_text(texts[i]);
            snprintf(keys[i], sizeof keys[i], "key %d", at + i - (count - KEYS));
            if (at + i >= count - KEYS)
                entries[i].key = sessile_text(keys[i]);
        }
        must(sessile_memory_write(m, entries, TOGETHER, NULL, &err), &err);
    }
}

/* A vector for each entry, in calls of TOGETHER. */
static void embed_memory(sessile_memory *m, int count)
{
    enum { TOGETHER = 64 };
    static float vectors[TOGETHER * DIMS];
    sessile_id ids[TOGETHER];
    sessile_error err;

    for (int at = 0; at < count; at += TOGETHER) {
        int some = count - at < TOGETHER ? count - at : TOGETHER;
        for (int i = 0; i < some; i++)
            ids[i] = (sessile_id)(1 + at + i);
        for (int i = 0; i < some * DIMS; i++)
            vectors[i] = (float)memory_random() / (float)RAND_MAX - 0.5F;
        must(sessile_memory_embed(m, sessile_text("bench"), DIMS, ids, vectors,
                                  (size_t)some, &err),
             &err);
    }
}

/* ------------------------------------------------------------------ one entry */

/* Beside as many bytes written to a file, and synced. */
static void measure_write(sessile_memory *m, int count)
{
    static char line[1 << 20];
    samples ours = {0}, floor = {0};
    int fd = floor_open("write");
    char text[MEMORY_TEXT];
    sessile_error err;
    off_t end = 0;

    for (size_t i = 0; i < rounds(MEMORY_QUESTIONS); i++) {
        sessile_memory_write_entry entry;
        off_t before = log_bytes(), grown;
        double start;
        sessile_memory_write_init(&entry);
        entry.value.data = text;
        entry.value.size = memory_put_text(text);
        start = now_us();
        must(sessile_memory_write(m, &entry, 1, NULL, &err), &err);
        sample(&ours, now_us() - start);
        grown = log_bytes() - before;
        sample(&floor, floor_write(fd, &end, line, (size_t)grown, 1));
    }
    close(fd);
    memory_row_print(&(memory_row){"write, durable", count, &ours, &floor, NULL, 1.1, 0,
                                   "one durable append", ""});
    free(ours.at);
    free(floor.at);
}

/* Beside one line of that size, read and opened. */
static void measure_read(sessile_memory *m, int count)
{
    samples ours = {0}, floor = {0};
    sessile_memory_row *row;
    unsigned char *out;
    floor_pieces lines;
    sessile_error err;
    char key[16];
    double start;

    must(sessile_memory_read(m, sessile_text("key 1"), &row, &err), &err);
    floor_pieces_make(&lines, "lines", (size_t)count, row->value.size + ABOUT_LINE, 1);
    sessile_free(row);
    out = malloc(lines.plain);
    if (!out)
        broken("memory");
    for (size_t i = 0; i < rounds(MEMORY_QUESTIONS); i++) {
        snprintf(key, sizeof key, "key %u", memory_random() % KEYS);
        start = memory_now_us();
        must(sessile_memory_read(m, sessile_text(key), &row, &err), &err);
        sample(&ours, memory_now_us() - start);
        sessile_free(row);
        start = memory_now_us();
        floor_pieces_read(&lines, lines.count - 1 - memory_random() % KEYS, out);
        sample(&floor, memory_now_us() - start);
    }
    memory_row_print(&(memory_row){"read a key", count, &ours, &floor, NULL, 2,
                                   count == 1000 ? 10 : 0, "one line read and opened",
                                   ""});
    floor_pieces_close(&lines);
    free(out);
    free(ours.at);
    free(floor.at);
}

/* Ten hits with their rows, which are read from the log. */
static void measure_search(sessile_memory *m, int count)
{
    samples ours = {0};
    sessile_memory_search_options o;
    sessile_memory_row *rows;
    char text[MEMORY_TEXT];
    sessile_error err;
    size_t found;

    sessile_memory_search_init(&o);
    for (size_t i = 0; i < rounds(MEMORY_QUESTIONS); i++) {
        double start;
        memory_put_question(text);
        start = memory_now_us();
        must(sessile_memory_search(m, sessile_text(text), &o, &rows, &found, &err), &err);
        sample(&ours, memory_now_us() - start);
        sessile_free(rows);
    }
    memory_row_print(&(memory_row){"ten hits, with rows", count, &ours, NULL, NULL, 0,
                                   count == 1000 ? 50 : 0, "", ""});
    free(ours.at);
}

/* ------------------------------------------------------------------ opened */

/* The blocks of the index, and the lines behind them, as sealed pieces of their mean
 * sizes. */
typedef struct open_floor {
    floor_pieces blocks, lines;
} open_floor;

/* Where line number n of a file begins. */
static off_t line_start(const char *path, uint64_t n)
{
    FILE *f = fopen(path, "rb");
    off_t at = 0;
    int c;
    if (!f)
        broken(path);
    for (; n > 0 && (c = getc(f)) != EOF; at++)
        n -= c == '\n';
    fclose(f);
    return at;
}

static void open_floor_make(open_floor *f, uint64_t entries)
{
    enum { SEALED = 28, LINE = 90 }; /* nonce and tag; and a line's clear part */
    char log[4400], index[4400];
    size_t blocks = entries / BLOCK, lines = entries % BLOCK, block, tail;

    memory_path(log, "jsonl");
    memory_path(index, "idx");
    block = blocks ? (size_t)bench_file_size(index) / blocks : 0;
    tail = lines
               ? (size_t)(bench_file_size(log) - line_start(log, entries - lines)) / lines
               : 0;
    floor_pieces_make(&f->blocks, "blocks", blocks, block > SEALED ? block - SEALED : 0,
                      0);
    floor_pieces_make(&f->lines, "lines", lines, tail > LINE ? (tail - LINE) / 4 * 3 : 0,
                      1);
}

/* All of them read and opened, and what they hold copied once to memory of its own. */
static double open_floor_read(const open_floor *f)
{
    const floor_pieces *both[] = {&f->blocks, &f->lines};
    double start = memory_now_us();
    size_t most = f->blocks.plain > f->lines.plain ? f->blocks.plain : f->lines.plain;
    unsigned char *piece = malloc(most + 1);
    unsigned char *all =
        malloc(f->blocks.count * f->blocks.plain + f->lines.count * f->lines.plain + 1);
    unsigned char *to = all;

    if (!piece || !all)
        broken("floor");
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < both[k]->count; i++) {
            floor_pieces_read(both[k], i, piece);
            memcpy(to, piece, both[k]->plain);
            to += both[k]->plain;
        }
    start = memory_now_us() - start;
    free(piece);
    free(all);
    return start;
}

/* With the index, and from the lines: then the index is emptied before each. */
static void measure_open(sessile_store *st, const char *what, int count)
{
    samples ours = {0}, floor = {0}, lines = {0};
    sessile_memory_stats stats;
    sessile_memory *m = open_memory(st);
    sessile_error err;
    char index[4400];
    open_floor f;
    off_t bytes;
    double start;

    memory_path(index, "idx");
    must(sessile_memory_get_stats(m, &stats, &err), &err);
    sessile_memory_close(m);
    bytes = bench_file_size(index);
    open_floor_make(&f, stats.log_entries);
    for (size_t i = 0; i < rounds(15); i++) {
        start = memory_now_us();
        m = open_memory(st);
        sample(&ours, memory_now_us() - start);
        sessile_memory_close(m);
        sample(&floor, open_floor_read(&f));
    }
    for (size_t i = 0; i < rounds(3); i++) {
        if (truncate(index, 0))
            broken(index);
        start = memory_now_us();
        m = open_memory(st);
        sample(&lines, memory_now_us() - start);
        sessile_memory_close(m);
    }
    memory_row_print(&(memory_row){what, count, &ours, &floor, &lines, 1.3, 0,
                                   "its bytes read, opened and copied once",
                                   "opened from its lines"});
    note("    bytes of index an entry: %.0f", (double)bytes / count);
    floor_pieces_close(&f.blocks);
    floor_pieces_close(&f.lines);
    free(ours.at);
    free(floor.at);
    free(lines.at);
}

/* ------------------------------------------------------------------ recall */

/* In a turn: behind the question of a new session. Beside the same search, and as many
 * bytes written and synced. */
static void measure_recall(sessile_store *st, sessile_memory *m, int count)
{
    static char line[1 << 20];
    samples ours = {0}, floor = {0};
    int fd = floor_open("recall");
    sessile_memory_search_options o;
    sessile_recall_options recall;
    sessile_error err;
    off_t end = 0;

    sessile_memory_search_init(&o);
    o.limit = 8;
    sessile_recall_options_init(&recall);
    recall.min_cover = 0; /* so that something is found: these are no questions */
    for (size_t i = 0; i < rounds(50); i++) {
        char id[40], text[MEMORY_TEXT], message[MEMORY_TEXT + 64], path[4400];
        sessile_recall_outcome out;
        sessile_memory_row *rows;
        sessile_session *s;
        off_t before;
        size_t found;
        double start;
        snprintf(id, sizeof id, "recall-%zu", i);
        s = open_session(st, id);
        memory_put_question(text);
        snprintf(message, sizeof message, "{\"role\":\"user\",\"content\":\"%s\"}", text);
        must(sessile_append(s, sessile_text(message), NULL, &err), &err);
        log_path(path, store_name, id);
        before = bench_file_size(path);
        start = now_us();
        must(sessile_recall(s, &m, 1, &recall, &out, &err), &err);
        start = now_us() - start;
        if (out.entry != SESSILE_NO_ID) {
            size_t grown = (size_t)(bench_file_size(path) - before);
            sample(&ours, start);
            start = now_us();
            must(sessile_memory_search(m, sessile_text(text), &o, &rows, &found, &err),
                 &err);
            start = now_us() - start;
            sessile_free(rows);
            sample(&floor, start + floor_write(fd, &end, line, grown, 1));
        }
        close_session(s);
    }
    close(fd);
    memory_row_print(&(memory_row){"recall in a turn", count, &ours, &floor, NULL, 1.2, 0,
                                   "search + one durable append", ""});
    free(ours.at);
    free(floor.at);
}

/* ------------------------------------------------------------------ all of it */

static void measure_whole(int count)
{
    sessile_memory *m;
    sessile_store *st;

    snprintf(store_name, sizeof store_name, "memory-%d", count);
    st = open_store(store_name, SESSILE_KEY_SECRET, SESSILE_SYNC, NULL, NULL);
    m = open_memory(st);
    fill_memory(m, count);
    measure_read(m, count);
    measure_search(m, count);
    sessile_memory_close(m);
    measure_open(st, "open, words", count);
    m = open_memory(st);
    embed_memory(m, count);
    sessile_memory_close(m);
    measure_open(st, "open, vectors of 384", count);
    m = open_memory(st);
    if (count == 10000 || bench_short())
        measure_recall(st, m, count);
    measure_write(m, count);
    sessile_memory_close(m);
    sessile_store_close(st);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {1000, 10000, 100000};
    int count = bench_short() ? 1 : 3;
    bench_make_folder(argc, argv);
    memory_head_print();
    for (int i = 0; i < count; i++)
        memory_bench_words(sizes[i]);
    for (int i = 0; i < count; i++)
        memory_bench_vectors(sizes[i], DIMS);
    for (int i = 0; i < count; i++)
        memory_bench_vectors(sizes[i], 2 * DIMS);
    memory_bench_hybrid(sizes[count - 1]);
    for (int i = 0; i < count; i++)
        measure_whole(sizes[i]);
    note("    What waits for a sync is measured by the clock, all else by processor "
         "time.");
    return bench_end();
}

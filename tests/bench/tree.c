/*
 * tree.c: the tree of a session of ten thousand entries: built, walked, asked; and the
 * head moved.
 *
 * The floor of a tree is what any program would do with parents and tokens in memory:
 * fill rows of the same size, linked by first child and next sibling, and walk two bare
 * arrays. Ours adds what a row says of an entry (type, role, tokens along the path, time,
 * what the model is shown).
 */
#include "measure.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 10000, EVERY = 100 /* a branch after this many messages */ };

typedef struct child_links {
    uint32_t child, next;
} child_links;

/* Branches of EVERY messages, each from the middle of the one before. */
static void fill(sessile_session *s)
{
    char text[2 * MESSAGE];
    sessile_error err;
    sessile_id id = 0;
    for (int i = 0; id + 2 < MANY; i++) {
        must(sessile_append(s, message_text(text, i), &id, &err), &err);
        if (i % EVERY == EVERY - 1)
            must(sessile_branch(s, id - EVERY / 2, sessile_text(NULL), NULL, &err), &err);
    }
}

/* Depth first, as who draws it would. */
static int64_t walk_rows(const sessile_node *rows, size_t count, uint32_t *stack)
{
    int64_t sum = 0;
    size_t depth = 0, seen = 0;
    stack[depth++] = 0;
    while (depth) {
        uint32_t at = stack[--depth];
        sum += rows[at].tokens;
        seen++;
        if (rows[at].next_sibling != SESSILE_NO_ID)
            stack[depth++] = rows[at].next_sibling;
        if (rows[at].first_child != SESSILE_NO_ID)
            stack[depth++] = rows[at].first_child;
    }
    if (seen != count)
        broken("walk");
    return sum;
}

static int64_t walk_arrays(const child_links *of, const uint32_t *tokens, uint32_t *stack)
{
    int64_t sum = 0;
    size_t depth = 0;
    stack[depth++] = 0;
    while (depth) {
        uint32_t at = stack[--depth];
        sum += tokens[at];
        if (of[at].next)
            stack[depth++] = of[at].next;
        if (of[at].child)
            stack[depth++] = of[at].child;
    }
    return sum;
}

static void make_arrays(const uint32_t *parents, size_t count, child_links *of)
{
    memset(of, 0, count * sizeof *of);
    for (size_t i = count; i-- > 1;) {
        of[i].next = of[parents[i]].child;
        of[parents[i]].child = (uint32_t)i;
    }
}

static sessile_node *make_rows(const uint32_t *parents, const uint32_t *tokens,
                               size_t count)
{
    sessile_node *rows = malloc(count * sizeof *rows);
    for (size_t i = 0; rows && i < count; i++) {
        rows[i] = (sessile_node){.id = (sessile_id)i,
                                 .parent = parents[i],
                                 .tokens = tokens[i],
                                 .first_child = SESSILE_NO_ID,
                                 .next_sibling = SESSILE_NO_ID};
    }
    for (size_t i = count; rows && i-- > 1;) {
        rows[i].next_sibling = rows[parents[i]].first_child;
        rows[parents[i]].first_child = (uint32_t)i;
    }
    return rows;
}

static void bench_tree(sessile_session *s)
{
    static samples built, walked, made, stepped;
    static uint32_t parents[2 * MANY], tokens[2 * MANY], stack[2 * MANY];
    static child_links of[2 * MANY];
    sessile_error err;
    sessile_node *rows;
    size_t count;
    must(sessile_tree(s, NULL, &rows, &count, &err), &err);
    if (count < MANY || count > 2 * MANY)
        broken("size");
    for (size_t i = 0; i < count; i++) {
        parents[i] = rows[i].parent;
        tokens[i] = rows[i].tokens;
    }
    sessile_free(rows);
    make_arrays(parents, count, of);
    for (int i = -10; i < (int)rounds(400); i++) {
        double t = now_us();
        must(sessile_tree(s, NULL, &rows, &count, &err), &err);
        t = now_us() - t;
        double w = now_us();
        int64_t sum = walk_rows(rows, count, stack);
        w = now_us() - w;
        sessile_free(rows);
        double m = now_us();
        sessile_node *bare = make_rows(parents, tokens, count);
        m = now_us() - m;
        free(bare);
        double a = now_us();
        if (!bare || sum != walk_arrays(of, tokens, stack))
            broken("arrays");
        a = now_us() - a;
        if (i < 0)
            continue;
        sample(&built, t);
        sample(&walked, w);
        sample(&made, m);
        sample(&stepped, a);
    }
    row_print(&(row){"tree of 10,000, built", &built, &made, NULL,
                     "rows of that size, filled and linked", 0, 100});
    row_print(&(row){"tree of 10,000, walked", &walked, &stepped, NULL,
                     "first child and next sibling, bare", 0, 0});
    note("  to reach: 100 us built, 30 us walked");
}

/* The first question of a handle, and every one after it. */
static void bench_children(sessile_store *store)
{
    static samples first, later;
    sessile_error err;
    for (int i = -2; i < (int)rounds(40); i++) {
        sessile_session *s = open_session(store, "tree");
        sessile_id *ids;
        size_t count;
        double t = now_us();
        must(sessile_children(s, EVERY / 2, &ids, &count, &err), &err);
        t = now_us() - t;
        sessile_free(ids);
        double l = now_us();
        must(sessile_children(s, EVERY / 2, &ids, &count, &err), &err);
        l = now_us() - l;
        sessile_free(ids);
        close_session(s);
        if (i < 0)
            continue;
        sample(&first, t);
        sample(&later, l);
    }
    row_print(
        &(row){"children, first time, from the index", &first, NULL, NULL, "", 0, 0});
    row_print(&(row){"children, from then on", &later, NULL, NULL, "", 0, 0});
}

static void bench_branch(void)
{
    static samples ours, bare;
    sessile_error err;
    sessile_store *store =
        open_store("branch", SESSILE_KEY_SECRET, SESSILE_SYNC, NULL, NULL);
    sessile_session *s = open_session(store, "branch");
    int fd = floor_open("branch-floor");
    char path[4400], *bytes;
    off_t end = 0, was, size;
    fill_session(s, 10);
    log_path(path, "branch", "branch");
    for (int i = -5; i < (int)rounds(200); i++) {
        was = bench_file_size(path);
        double t = now_us();
        must(sessile_branch(s, i % 2 ? 5 : 9, sessile_text(NULL), NULL, &err), &err);
        t = now_us() - t;
        size = bench_file_size(path) - was;
        bytes = calloc(1, (size_t)size);
        if (!bytes)
            broken("memory");
        double f = floor_write(fd, &end, bytes, (size_t)size, 1);
        free(bytes);
        if (i >= 0) {
            sample(&ours, t);
            sample(&bare, f);
        }
    }
    row_print(&(row){"branch, durable, no summary", &ours, &bare, NULL,
                     "write + fdatasync of the same bytes", 1.2, 500});
    close_session(s);
    sessile_store_close(store);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    sessile_store *store =
        open_store("tree", SESSILE_KEY_SECRET, SESSILE_NONE, NULL, NULL);
    sessile_session *s = open_session(store, "tree");
    fill(s);
    bench_tree(s);
    close_session(s);
    bench_children(store);
    sessile_store_close(store);
    bench_branch();
    return bench_end();
}

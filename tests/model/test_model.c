/*
 * test_model.c: random operations on a session against a small model.
 *
 * Owns promise 9 (a moved base is CONFLICT, and nothing else is), and that handles show
 * what was acknowledged, whatever else happened: two handles of one store and one of
 * another, closed and opened, caches dropped and damaged, torn ends of writers that died.
 *
 * A failure prints the seed and the shortest list of operations that still fails, as a
 * line that runs it again. An operation is a letter (the list is at `step`), the handle
 * it uses, and a number from which its details are drawn. A new operation is one function
 * in writing.c or reading.c, and a letter here.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "model/model.h"
#include "support/logs.h"
#include "support/sessions.h"

static faults lazy; /* no power is cut here: syncs need not be made */

static const char kinds[] = "AAAAAATTTTTTBBBFFWWWDDDDooowwwCNUXHHKKKLMMGESSVVQRRZIJJYO";

static int step(world *w, const op *o)
{
    unsigned h = o->handle;
    if (w->count + (o->kind == 'P' ? BULK + 8 : 8) > SAID_MOST)
        return 0;
    figure_ops++;
    switch (o->kind) {
    case 'A':
        return do_append(w, h, o->number);
    case 'w':
        return do_mixed(w, h, o->number);
    case 'T':
    case 'B': /* on a base that is said */
    case 'F': /* on whatever is there */
    case 'P': /* enough that an index is made */
    case 'W': /* beside the head */
        return do_turn(w, h, o->number, o->kind);
    case 'D':
        return do_branch(w, h, o->number);
    case 'o':
        return do_pop(w, h, o->number);
    case 'V':
        return do_tree(w, h, o->number);
    case 'X':
        return do_refused(w, h, o->number);
    case 'C': /* clear */
    case 'N': /* a title */
    case 'U': /* an entry of the host's own */
        return do_fact(w, h, o->number, o->kind);
    case 'H':
        return do_head(w, h);
    case 'K':
    case 'L': /* at another leaf */
        return do_context(w, h, o->number, o->kind);
    case 'M':
    case 'G': /* some of them */
        return do_messages(w, h, o->number, o->kind);
    case 'E':
        return do_entries(w, h);
    case 'S':
        return do_figures(w, h);
    case 'Q':
        return do_list(w, h);
    case 'R':
        return do_reopen(w, h);
    case 'Z':
        return do_reopen_stores(w);
    case 'I':
    case 'J':
        return do_cache(w, o->number, o->kind);
    case 'Y':
        return do_tear(w, o->number);
    case 'O': /* a fork */
        return do_fork(w, h, o->number);
    default:
        return wrong(w, "no such operation: %c", o->kind);
    }
}

/* 0, or 1 and why. */
static int play(const char *mode, const op *ops, size_t count, char why[1200])
{
    static world w;
    int bad = world_begin(&w, mode);
    for (size_t i = 0; i < count && !bad; i++)
        bad = step(&w, &ops[i]);
    for (unsigned h = 0; h < HANDLES && !bad; h++)
        bad = do_entries(&w, h) || do_figures(&w, h) || do_context(&w, h, 0, 'K') ||
              do_messages(&w, h, 0, 'M');
    if (!bad)
        bad = do_tree(&w, 0, count) || do_reopen_stores(&w) || do_entries(&w, 0) ||
              do_figures(&w, 0) || do_tree(&w, 0, count + 1);
    memcpy(why, w.why, sizeof w.why);
    world_end(&w);
    return bad;
}

/* ------------------------------------------------------------------ shrinking */

static size_t shrink(const char *mode, op *ops, size_t count, char why[1200])
{
    for (size_t piece = count / 2; piece > 0; piece = piece > 1 ? piece / 2 : 0) {
        for (size_t at = 0; at + piece <= count;) {
            op fewer[OPS];
            char other[1200];
            memcpy(fewer, ops, at * sizeof *ops);
            memcpy(fewer + at, ops + at + piece, (count - at - piece) * sizeof *ops);
            if (play(mode, fewer, count - piece, other)) {
                count -= piece;
                memcpy(ops, fewer, count * sizeof *ops);
                memcpy(why, other, sizeof other);
            } else {
                at += piece;
            }
        }
    }
    return count;
}

static void explain(const char *mode, uint64_t seed, const op *ops, size_t count,
                    const char *why)
{
    print_error("%s, seed %" PRIu64 ": %s\n", mode, seed, why);
    print_error("SESSILE_MODEL='%s", mode);
    for (size_t i = 0; i < count; i++)
        print_error(" %c%u.%" PRIx32, ops[i].kind, ops[i].handle, ops[i].number);
    print_error("' build/tests/model/test_model\n");
}

static int set_up(void **state)
{
    (void)state;
    faults_init(&lazy);
    lazy.lazy = 1;
    os_current = &lazy.table;
    return base_init();
}

static void random_operations(const char *mode, unsigned long cases)
{
    uint64_t seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    if (getenv("SESSILE_SOAK"))
        cases *= 100;
    print_message("%s, seed %" PRIu64 "\n", mode, seed);
    for (unsigned long n = 0; n < cases; n++) {
        uint64_t r = random_next(&seed), this = r;
        op ops[OPS];
        char why[1200];
        for (size_t i = 0; i < OPS; i++)
            ops[i] = (op){kinds[random_next(&r) % (sizeof kinds - 1)],
                          (unsigned char)(random_next(&r) % HANDLES),
                          (uint32_t)random_next(&r)};
        for (size_t i = 0; i < 3 && n % 4 == 0; i++)
            ops[4 * i].kind = 'P';
        if (play(mode, ops, OPS, why)) {
            size_t count = shrink(mode, ops, OPS, why);
            explain(mode, this, ops, count, why);
            assert_string_equal(why, "");
        }
    }
    printf("# figure: random operations that matched the model (%s) = %lu\n", mode,
           figure_ops);
    printf("# figure: moved bases told as CONFLICT (%s) = %lu\n", mode, figure_conflicts);
    printf("# figure: torn ends put there and set aside (%s) = %lu\n", mode, figure_torn);
    figure_ops = figure_conflicts = figure_torn = 0;
}

static void ram_store_matches_the_model(void **state)
{
    (void)state;
    place_files_only();
    random_operations("ram", 400);
}

static void plain_store_matches_the_model(void **state)
{
    (void)state;
    random_operations("plain", 200);
}

static void sealed_store_matches_the_model(void **state)
{
    (void)state;
    random_operations("sealed", 200);
}

/* A line that a failure printed. */
static void operations_that_were_given_match_the_model(void **state)
{
    const char *line = getenv("SESSILE_MODEL");
    char mode[20], why[1200];
    op ops[OPS];
    size_t count = 0;
    int n = 0;
    (void)state;
    if (!line)
        skip();
    assert_int_equal(sscanf(line, "%19s%n", mode, &n), 1);
    for (line += n; count < OPS; line += n, count++) {
        unsigned handle;
        if (sscanf(line, " %c%u.%" SCNx32 "%n", &ops[count].kind, &handle,
                   &ops[count].number, &n) != 3)
            break;
        ops[count].handle = (unsigned char)(handle % HANDLES);
    }
    if (play(mode, ops, count, why))
        print_error("%s\n", why);
    assert_string_equal(why, "");
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(ram_store_matches_the_model),
        cmocka_unit_test(plain_store_matches_the_model),
        cmocka_unit_test(sealed_store_matches_the_model),
    };
    const struct CMUnitTest given[] = {
        cmocka_unit_test(operations_that_were_given_match_the_model),
    };
    if (getenv("SESSILE_MODEL"))
        return cmocka_run_group_tests(given, set_up, NULL);
    return cmocka_run_group_tests(all, set_up, NULL);
}

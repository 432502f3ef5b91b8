/*
 * test_ids.c: any byte string is a safe name of a session, and no two share one.
 *
 * Owns promise 10. Names are computed for very many random (user, id) pairs and agents:
 * one legal component each, all distinct, none that the store keeps for itself. A sample,
 * and every id that somebody once broke out of a folder with, is made as a session,
 * opened again from another handle and compared; then the disk is looked over: nothing
 * lies outside of ROOT/agents/<folder>/<name>.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "store/wait.h"
#include "support/logs.h"

enum { SHORT = 20000, SOAK = 1000000, ID_LIMIT = 64 << 10 };

#define BYTES(literal)               \
    {                                \
        literal, sizeof(literal) - 1 \
    }

static const sessile_slice nasty[] = {
    BYTES("."),
    BYTES(".."),
    BYTES("../x"),
    BYTES("../../../../tmp/x"),
    BYTES("/"),
    BYTES("/etc/passwd"),
    BYTES("x/.."),
    BYTES("x/y"),
    BYTES("x\\y"),
    BYTES("..\\x"),
    BYTES("%2e%2e%2fx"),
    BYTES("\0"),
    BYTES("\0\0"),
    BYTES("x\0"),
    BYTES("x\0y"),
    BYTES("x"),
    BYTES("X"),
    BYTES("xX"),
    BYTES("Xx"),
    BYTES("XX"),
    BYTES("xx"),
    BYTES("x."),
    BYTES("x.."),
    BYTES("x "),
    BYTES(" x"),
    BYTES(" "),
    BYTES("\n"),
    BYTES("x\n"),
    BYTES("\t"),
    BYTES("-"),
    BYTES("-x"),
    BYTES("-rf"),
    BYTES("--"),
    BYTES("_"),
    BYTES("="),
    BYTES("=x"),
    BYTES("=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    BYTES(".list_cache"),
    BYTES(".new-0011223344556677"),
    BYTES("keyring"),
    BYTES("agents"),
    BYTES("x.jsonl"),
    BYTES("x.idx"),
    BYTES("x.torn-0"),
    BYTES(".jsonl"),
    BYTES(".idx"),
    BYTES("con"),
    BYTES("nul"),
    BYTES("aux.txt"),
    BYTES("com1"),
    BYTES("~"),
    BYTES("~root"),
    BYTES("$HOME"),
    BYTES("`id`"),
    BYTES("*"),
    BYTES("?"),
    BYTES("[a]"),
    BYTES("a:b"),
    BYTES("x;y"),
    BYTES("\x7f"),
    BYTES("\x1b[2J"),
    BYTES("\xff"),
    BYTES("\xff\xfe"),
    BYTES("\x80"),
    BYTES("\xc0\xae\xc0\xae\xc0\xaf"), /* ../ in overlong UTF-8 */
    BYTES("\xe0\x80\xae"),
    BYTES("\xed\xa0\x80"),     /* a surrogate */
    BYTES("\xf4\x90\x80\x80"), /* past the last code point */
    BYTES("caf\xc3\xa9"),      /* composed */
    BYTES("cafe\xcc\x81"),     /* decomposed */
    BYTES("\xe2\x80\xae"
          "txt"), /* turns what follows around */
    BYTES("\xef\xbb\xbfx"),
    BYTES("\xe2\x84\xaa"), /* Kelvin, which folds to k */
    BYTES("k"),
    BYTES("{\"b64\":\"eA==\"}"),
    BYTES("\"},\"x\":{\""),
};
enum { NASTY = sizeof nasty / sizeof *nasty };

static uint64_t seed;

static int set_up(void **state)
{
    (void)state;
    seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    print_message("seed %llu\n", (unsigned long long)seed);
    return base_init();
}

/* ------------------------------------------------------------------ names alone */

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, NAME_SIZE);
}

static void check_name(const char *name)
{
    size_t size = strlen(name);
    assert_true(size > 0 && size <= 100);
    assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_=-"), size);
    assert_true(name[0] != '-');
    assert_true(store_name_ok(name));
}

/* Bytes of which no two are the same: the number is in them. */
static size_t random_bytes_of(uint64_t number, unsigned char *out)
{
    static const unsigned char likely[] = "./\\\0aA0_-= ~%\n\xff\xc3";
    size_t size = random_next(&seed) % 24, flavour = random_next(&seed) % 3;
    for (size_t i = 0; i < size; i++) {
        uint64_t r = random_next(&seed);
        out[i] = flavour == 0   ? (unsigned char)r
                 : flavour == 1 ? likely[r % (sizeof likely - 1)]
                                : (unsigned char)('a' + r % 26);
    }
    for (int i = 0; i < 5; i++)
        out[size + (size_t)i] =
            flavour == 2 ? (unsigned char)"0123456789abcdef"[(number >> 4 * i) % 16]
                         : (unsigned char)(number >> 7 * i & 0x7f);
    return size + 5;
}

static void random_names_are_legal_and_distinct(void **state)
{
    const size_t count = getenv("SESSILE_SOAK") ? SOAK : SHORT;
    char(*names)[NAME_SIZE] = calloc(2 * count, NAME_SIZE);
    keyring *k;
    sessile_error err = {0};
    (void)state;
    assert_non_null(names);
    assert_int_equal(keyring_volatile(&k, &allocator_default, &err), SESSILE_OK);
    for (size_t i = 0; i < count; i++) {
        unsigned char bytes[40];
        size_t size = random_bytes_of(i, bytes);
        /* once as an id alone, once cut into a user and an id: other names, all of them
         */
        size_t cut = 1 + random_next(&seed) % size;
        sessile_slice whole = {(char *)bytes, size}, none = {NULL, 0};
        sessile_slice user = {(char *)bytes, cut}, id = {(char *)bytes + cut, size - cut};
        keyring_log_name(k, none, whole, names[2 * i]);
        keyring_log_name(k, user, id, names[2 * i + 1]);
        check_name(names[2 * i]);
        check_name(names[2 * i + 1]);
        char folder[NAME_SIZE];
        keyring_folder_name(k, whole, folder);
        check_name(folder);
    }
    qsort(names, 2 * count, NAME_SIZE, by_bytes);
    for (size_t i = 1; i < 2 * count; i++)
        assert_memory_not_equal(names[i - 1], names[i], NAME_SIZE);
    printf("# figure: random ids whose names are legal and distinct = %zu\n", 2 * count);
    keyring_free(k);
    free(names);
}

static void where_a_user_ends_and_an_id_begins_makes_a_difference(void **state)
{
    static const char text[] = "aaaa\0\0aaaa";
    char names[11][NAME_SIZE] = {{0}};
    keyring *k;
    sessile_error err = {0};
    (void)state;
    assert_int_equal(keyring_volatile(&k, &allocator_default, &err), SESSILE_OK);
    for (size_t cut = 0; cut < 11; cut++)
        keyring_log_name(k, (sessile_slice){text, cut},
                         (sessile_slice){text + cut, 10 - cut}, names[cut]);
    for (size_t a = 0; a < 11; a++)
        for (size_t b = a + 1; b < 11; b++)
            assert_string_not_equal(names[a], names[b]);
    /* nor does a name that looks like a hashed one stand for it */
    sessile_slice hashed = sessile_text(names[5]);
    char twice[NAME_SIZE];
    keyring_log_name(k, (sessile_slice){NULL, 0}, hashed, twice);
    assert_string_not_equal(twice, names[5]);
    keyring_free(k);
}

/* ------------------------------------------------------------------ sessions on disk */

static const char *outside_of;
static size_t logs_found;

static int look_over(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    const char *name = path + ftw->base, *below = path + strlen(outside_of);
    (void)st;
    /* scratch / store / agents / folder / log */
    if (ftw->level == 0)
        return 0;
    if (ftw->level == 1)
        return strcmp(name, "store") != 0;
    if (ftw->level == 2)
        return strcmp(name, "agents") != 0 && strcmp(name, "keyring") != 0 &&
               (strncmp(name, "user-", 5) != 0 || !store_name_ok(name));
    if (strncmp(below, "/store/agents/", 14) != 0)
        return 1;
    if (ftw->level == 3)
        return type != FTW_D || !store_name_ok(name);
    const char *dot = strrchr(name, '.');
    if (ftw->level != 4 || type != FTW_F || !dot)
        return 1;
    if (strcmp(dot, ".jsonl") == 0)
        logs_found++;
    return 0;
}

static void create_and_compare(sessile_store *store, sessile_store *again,
                               sessile_slice user, sessile_slice id, sessile_slice agent)
{
    sessile_session_options o;
    sessile_session *s, *t;
    sessile_error err = {0};
    sessile_id at;
    sessile_session_options_init(&o);
    o.id = id;
    o.user = user;
    o.agent = agent;
    sessile_status status = sessile_create(&s, store, &o, &err);
    if (status)
        print_error("%s\n", err.message);
    assert_int_equal(status, SESSILE_OK);
    assert_int_equal(
        sessile_append(s, sessile_text("{\"role\":\"user\",\"content\":\"here\"}"), &at,
                       &err),
        SESSILE_OK);
    assert_int_equal(sessile_create(&t, store, &o, &err), SESSILE_EXISTS);
    assert_int_equal(sessile_resume(&t, again, &o, &err), SESSILE_OK);
    sessile_slice was[] = {id, user},
                  is[] = {sessile_session_id(t), sessile_session_user(t)};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(is[i].size, was[i].size);
        if (was[i].size)
            assert_memory_equal(is[i].data, was[i].data, was[i].size);
    }
    assert_int_equal(sessile_head(t, &at, &err), SESSILE_OK);
    assert_int_equal(at, 1);
    assert_int_equal(sessile_session_close(t, &err), SESSILE_OK);
    assert_int_equal(sessile_session_close(s, &err), SESSILE_OK);
}

static void ids_come_back_and_nothing_lies_outside(void **state)
{
    const size_t random_count = getenv("SESSILE_SOAK") ? 5000 : 150;
    static const sessile_slice none = {NULL, 0}, folder = BYTES("../Agent");
    sessile_store_options o;
    sessile_store *store, *again;
    sessile_error err = {0};
    sessile_listed *rows;
    size_t made = 0, count;
    char scratch[256], root[300];
    faults lazy;
    (void)state;
    faults_init(&lazy);
    lazy.lazy = 1;
    os_current = &lazy.table;
    scratch_make(scratch);
    snprintf(root, sizeof root, "%s/store", scratch);
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_SECRET;
    o.key = KIT_SECRET;
    o.limits.id = ID_LIMIT;
    assert_int_equal(sessile_open(&store, root, &o, &err), SESSILE_OK);
    for (size_t i = 0; i < NASTY; i++) {
        if (i == 0) /* the keyring is there once something was made */
            create_and_compare(store, store, none, sessile_text("first"), none), made++;
        if (i == 0)
            assert_int_equal(sessile_open(&again, root, &o, &err), SESSILE_OK);
        create_and_compare(store, again, none, nasty[i], none);
        create_and_compare(store, again, nasty[i], nasty[(i + 1) % NASTY], none);
        create_and_compare(store, again, none, nasty[i], nasty[i]);
        create_and_compare(store, again, none, nasty[i], folder);
        made += 4;
    }
    char *long_id = malloc(ID_LIMIT + 1);
    assert_non_null(long_id);
    memset(long_id, 'a', ID_LIMIT + 1);
    static const size_t sizes[] = {99,  100, 101, 199,  200,  201,          249,     250,
                                   254, 255, 256, 4095, 4096, ID_LIMIT - 1, ID_LIMIT};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        create_and_compare(store, again, none, (sessile_slice){long_id, sizes[i]}, none);
        made++;
    }
    for (size_t i = 0; i < random_count; i++) {
        unsigned char bytes[40];
        size_t size = random_bytes_of(i, bytes), cut = random_next(&seed) % size;
        create_and_compare(store, again, (sessile_slice){(char *)bytes, cut},
                           (sessile_slice){(char *)bytes + cut, size - cut}, none);
        made++;
    }
    /* no id, or one past the limit, is refused, and makes nothing */
    sessile_session_options so;
    sessile_session *s;
    sessile_session_options_init(&so);
    so.id = (sessile_slice){long_id, ID_LIMIT + 1};
    assert_int_equal(sessile_create(&s, store, &so, &err), SESSILE_LIMIT);
    assert_int_equal(sessile_resume(&s, store, &so, &err), SESSILE_LIMIT);
    so.id = (sessile_slice){long_id, 0};
    assert_int_equal(sessile_resume(&s, store, &so, &err), SESSILE_INVALID);

    assert_int_equal(sessile_list(store, NULL, &rows, &count, &err), SESSILE_OK);
    assert_int_equal(count, made);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(rows[i].status, SESSILE_OK);
    sessile_free(rows);
    outside_of = scratch;
    logs_found = 0;
    assert_int_equal(nftw(scratch, look_over, 16, FTW_PHYS), 0);
    assert_int_equal(logs_found, made);
    printf("# figure: sessions with nasty and random ids made and opened = %zu\n", made);
    free(long_id);
    sessile_store_close(again);
    sessile_store_close(store);
    os_current = &os_posix;
    scratch_remove(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_names_are_legal_and_distinct),
        cmocka_unit_test(where_a_user_ends_and_an_id_begins_makes_a_difference),
        cmocka_unit_test(ids_come_back_and_nothing_lies_outside),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

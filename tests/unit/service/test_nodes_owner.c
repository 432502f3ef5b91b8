/*
 * test_nodes_owner.c: which node owns a session: shares, what moves when a node goes, and
 * that names count, not the bytes of a request.
 */
#include <stdio.h>
#include <string.h>

#include "service/memory.pb-c.h"
#include "service/nodes.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

enum { NODES = 5, SESSIONS = 20000 };

static uint64_t key_number(int i)
{
    char id[32];
    snprintf(id, sizeof id, "session-%d", i);
    return node_key(sessile_text("main"), node_user(sessile_text("ann")),
                    sessile_text(id));
}

static void hash_nodes(uint64_t *out, int n)
{
    for (int i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "db%d.example:7071", i);
        out[i] = node_hash(name);
    }
}

static void shares_are_equal(void **state)
{
    uint64_t hashes[NODES];
    int count[NODES] = {0};
    (void)state;
    hash_nodes(hashes, NODES);
    for (int i = 0; i < SESSIONS; i++)
        count[node_choose(key_number(i), hashes, NODES)]++;
    for (int i = 0; i < NODES; i++) /* five standard deviations */
        assert_in_range(count[i], SESSIONS / NODES - 285, SESSIONS / NODES + 285);
}

/* And what moves is shared by those that stay. */
static void a_node_that_goes_moves_only_its_own_sessions(void **state)
{
    uint64_t all[NODES], rest[NODES - 1];
    int moved = 0, to[NODES - 1] = {0};
    (void)state;
    hash_nodes(all, NODES);
    for (int gone = 0; gone < NODES; gone++) {
        for (int i = 0, n = 0; i < NODES; i++)
            if (i != gone)
                rest[n++] = all[i];
        for (int i = 0; i < SESSIONS / 10; i++) {
            uint64_t before = all[node_choose(key_number(i), all, NODES)];
            size_t after = node_choose(key_number(i), rest, NODES - 1);
            if (before != all[gone])
                assert_true(rest[after] == before);
            else
                to[after]++, moved++;
        }
    }
    assert_in_range(moved, SESSIONS / 10, SESSIONS / 10); /* each has one owner */
    for (int i = 0; i < NODES - 1; i++)
        assert_true(to[i] > moved / (NODES - 1) / 2);
}

static void the_order_of_the_nodes_is_nothing(void **state)
{
    uint64_t one[NODES], other[NODES];
    (void)state;
    hash_nodes(one, NODES);
    for (int i = 0; i < NODES; i++)
        other[NODES - 1 - i] = one[i];
    for (int i = 0; i < 1000; i++)
        assert_true(one[node_choose(key_number(i), one, NODES)] ==
                    other[node_choose(key_number(i), other, NODES)]);
}

/* Nodes of different builds, and on machines of another byte order, agree. */
static void hashes_are_for_ever(void **state)
{
    (void)state;
    assert_true(node_hash("a:7071") == UINT64_C(0xc695e20a19cf061a));
    assert_true(key_number(1) == UINT64_C(0xb268d09fcfbb8f5a));
}

static void each_name_counts(void **state)
{
    sessile_slice a = sessile_text("a"), b = sessile_text("b"), ab = sessile_text("ab");
    sessile_slice none = {NULL, 0};
    uint64_t all[] = {
        node_key(a, node_user(b), ab),    node_key(ab, node_user(none), ab),
        node_key(a, node_user(none), ab), node_key(b, node_user(a), ab),
        node_key(a, node_user(b), b),
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(all[i] != all[j]);
}

/* ---------------------------------------------------------------------- requests */

static void assert_names(const ProtobufCMessageDescriptor *type, const void *data,
                         size_t size, const char *agent, const char *user, const char *id)
{
    sessile_slice names[3];
    const char *expected[3] = {agent, user, id};
    assert_int_equal(decode_names(type, data, size, names), *id != '\0');
    for (int i = 0; i < 3; i++) {
        assert_int_equal(names[i].size, strlen(expected[i]));
        if (names[i].size)
            assert_memory_equal(names[i].data, expected[i], names[i].size);
    }
}

static void names_are_found_in_any_order(void **state)
{
    static const char ordered[] = "\x0a\x09\x0a\x01"
                                  "a\x12\x01u\x1a\x01i";
    static const char mixed[] = "\x7a\x01x\x0a\x09\x1a\x01i\x0a\x01"
                                "a\x12\x01u\x12\x01t";
    const ProtobufCMessageDescriptor *type = &sessile__v1__turn_request__descriptor;
    (void)state;
    assert_names(type, ordered, sizeof ordered - 1, "a", "u", "i");
    assert_names(type, mixed, sizeof mixed - 1, "a", "u", "i");
    assert_names(type, "", 0, "", "", "");
    assert_names(type, "\x0a\xff", 2, "", "", ""); /* cut */
}

static void names_that_are_not_text_are_found(void **state)
{
    static const char raw[] = "\x0a\x08\x22\x06\x0a\x01\xff\x1a\x01\xfe";
    (void)state;
    assert_names(&sessile__v1__turn_request__descriptor, raw, sizeof raw - 1, "\xff", "",
                 "\xfe");
}

/* A run's session is that of its first part. */
static void names_are_found_in_the_beginning_of_a_run(void **state)
{
    static const char run[] = "\x12\x07\x0a\x05\x1a\x03"
                              "abc";
    static const char reply[] = "\x32\x05\x0a\x03"
                                "abc"; /* an answer's text is no session */
    (void)state;
    assert_names(&sessile__v1__run_request__descriptor, run, sizeof run - 1, "", "",
                 "abc");
    assert_names(&sessile__v1__run_request__descriptor, reply, sizeof reply - 1, "", "",
                 "");
}

static void a_memory_is_known_by_agent_and_user(void **state)
{
    static const char own[] = "\x0a\x06\x0a\x01"
                              "a\x12\x01u";
    static const char shared[] = "\x0a\x05\x0a\x01"
                                 "a\x18\x01";
    static const char run[] = "\x12\x05\x0a\x03\x12\x01u"; /* a tidy, in a stream */
    const ProtobufCMessageDescriptor *type =
        &sessile__v1__write_memory_request__descriptor;
    const ProtobufCMessageDescriptor *stream =
        &sessile__v1__memory_run_request__descriptor;
    sessile_slice names[3];
    (void)state;
    assert_int_equal(decode_names(type, own, sizeof own - 1, names), NAMES_OWN);
    assert_memory_equal(names[0].data, "a", names[0].size);
    assert_memory_equal(names[1].data, "u", names[1].size);
    assert_int_equal(names[0].size + names[1].size, 2);
    assert_int_equal(names[2].size, 0);
    assert_int_equal(decode_names(type, shared, sizeof shared - 1, names), NAMES_SHARED);
    assert_int_equal(names[1].size + names[2].size, 0);
    assert_int_equal(decode_names(type, "\x0a\x00", 2, names), NAMES_OWN);
    assert_int_equal(decode_names(type, "", 0, names), NAMES_NONE);
    assert_int_equal(decode_names(stream, run, sizeof run - 1, names), NAMES_OWN);
    assert_memory_equal(names[1].data, "u", 1);
}

static void once_is_found(void **state)
{
    static const char with[] = "\x1a\x08\x0d\x01\x00\x00\x00\x12\x01o";
    static const char without[] = "\x1a\x05\x0d\x01\x00\x00\x00";
    const ProtobufCMessageDescriptor *turn = &sessile__v1__turn_request__descriptor;
    (void)state;
    assert_int_equal(decode_has_once(turn, with, sizeof with - 1), 1);
    assert_int_equal(decode_has_once(turn, without, sizeof without - 1), 0);
    assert_int_equal(decode_has_once(turn, "", 0), 0);
    /* in a request without such a field it is something else */
    assert_int_equal(
        decode_has_once(&sessile__v1__compact_request__descriptor, with, sizeof with - 1),
        0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_equal),
        cmocka_unit_test(a_node_that_goes_moves_only_its_own_sessions),
        cmocka_unit_test(the_order_of_the_nodes_is_nothing),
        cmocka_unit_test(hashes_are_for_ever),
        cmocka_unit_test(each_name_counts),
        cmocka_unit_test(names_are_found_in_any_order),
        cmocka_unit_test(names_that_are_not_text_are_found),
        cmocka_unit_test(names_are_found_in_the_beginning_of_a_run),
        cmocka_unit_test(a_memory_is_known_by_agent_and_user),
        cmocka_unit_test(once_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

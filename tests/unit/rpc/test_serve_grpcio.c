/*
 * test_serve_grpcio.c: the server, judged by gRPC's reference core (python3-grpcio).
 *
 * Each test runs one case of client.py against a service of echo.c.
 */
#include "unit/rpc/echo.h"
#include "unit/rpc/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void run_case(const char *name, echo *e)
{
    const char *argv[] = {PYTHON, beside("client.py"), NULL, name, NULL};
    grpcio_needed();
    echo_start(e, 2, "127.0.0.1:0", NULL, NULL);
    argv[2] = e->address;
    program_ok(argv);
    assert_true(echo_empty(e));
    assert_int_equal(echo_look(e).calls, 0);
    assert_int_equal(e->begun, e->gone[RPC_GONE_FINISHED] + e->gone[RPC_GONE_CANCELLED] +
                                   e->gone[RPC_GONE_DEADLINE] + e->gone[RPC_GONE_BROKEN]);
    echo_stop(e);
}

#define CASE(name)                        \
    static void test_##name(void **state) \
    {                                     \
        echo e;                           \
        (void)state;                      \
        run_case(#name, &e);              \
    }

CASE(unary)
CASE(metadata)
CASE(large)
CASE(many)
CASE(server_stream)
CASE(both_streams)
CASE(deadline)
CASE(statuses)
CASE(refusals)
CASE(early)
CASE(peer)

static void test_cancelled_call_is_told_to_the_service(void **state)
{
    echo e;
    (void)state;
    run_case("cancel", &e);
    assert_int_equal(e.gone[RPC_GONE_CANCELLED], 1);
}

static void test_a_slow_stream_waits_for_its_reader(void **state)
{
    echo e;
    (void)state;
    run_case("server_stream", &e);
    assert_true(e.drained > 0);
    assert_in_range(e.most_unsent, 1 << 20, (2 << 20) + 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary),
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_server_stream),
        cmocka_unit_test(test_both_streams),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_cancelled_call_is_told_to_the_service),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_early),
        cmocka_unit_test(test_peer),
        cmocka_unit_test(test_a_slow_stream_waits_for_its_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

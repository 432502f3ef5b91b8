/*
 * test_serve_others.c: the server, judged by grpc-js and h2load, which have HTTP/2 of
 * their own (node's, nghttp2's).
 *
 * grpc-js is of npm: NODE_PATH names the folder that has it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit/rpc/echo.h"
#include "unit/rpc/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_grpc_js(void **state)
{
    echo e;
    const char *find[] = {"/usr/bin/env", "node", "-e", "require('@grpc/grpc-js')", NULL};
    const char *argv[] = {"/usr/bin/env", "node", beside("client.cjs"), NULL, NULL};
    char out[4096];
    (void)state;

    if (program_run(find, out, sizeof out) != 0) {
        print_message("# skipped: node has no @grpc/grpc-js (npm install it, and set "
                      "NODE_PATH)\n");
        skip();
    }
    echo_start(&e, 2, "127.0.0.1:0", NULL, NULL);
    argv[3] = e.address;
    program_ok(argv);
    assert_true(echo_empty(&e));
    assert_int_equal(echo_look(&e).calls, 0);
    echo_stop(&e);
}

/* Many calls over several connections: each one is answered, by gRPC and by HTTP/2. */
static void test_h2load(void **state)
{
    echo e;
    char body[] = "/tmp/rpc-h2load-XXXXXX", url[128], hello[128];
    static char out[65536];
    int fd;
    (void)state;

    program_needed("/usr/bin/h2load", "nghttp2-client");
    fd = mkstemp(body);
    assert_int_equal(write(fd, "\0\0\0\0\5hello", 10), 10);
    close(fd);
    echo_start(&e, 2, "127.0.0.1:0", NULL, NULL);
    snprintf(url, sizeof url, "http://%s/t.Echo/Unary", e.address);
    snprintf(hello, sizeof hello, "http://%s/hello", e.address);
    {
        const char *argv[] = {"/usr/bin/h2load",
                              "-n",
                              "5000",
                              "-c",
                              "5",
                              "-m",
                              "32",
                              "-H",
                              "content-type: application/grpc",
                              "-H",
                              "te: trailers",
                              "-d",
                              body,
                              url,
                              NULL};
        assert_int_equal(program_run(argv, out, sizeof out), 0);
        if (!strstr(out, "5000 succeeded, 0 failed") || !strstr(out, "5000 2xx"))
            fail_msg("%s", out);
    }
    assert_true(echo_empty(&e));
    assert_int_equal(e.gone[RPC_GONE_FINISHED], 5000);
    for (int h1 = 0; h1 < 2; h1++) {
        const char *argv[] = {"/usr/bin/h2load",  "-n", "1000", "-c", "4", hello,
                              h1 ? "--h1" : NULL, NULL};
        assert_int_equal(program_run(argv, out, sizeof out), 0);
        if (!strstr(out, "1000 succeeded, 0 failed") || !strstr(out, "1000 2xx"))
            fail_msg("%s", out);
    }
    unlink(body);
    assert_true(echo_empty(&e));
    assert_int_equal(e.gone[RPC_GONE_FINISHED], 7000);
    echo_stop(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grpc_js),
        cmocka_unit_test(test_h2load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

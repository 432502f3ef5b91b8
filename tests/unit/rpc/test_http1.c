/*
 * test_http1.c: HTTP/1.1: what is answered, and what is refused so that nobody can hide a
 * request in another one.
 *
 * Refusals are a table of requests over a raw socket, each with the one status that is
 * answered. After it the connection ends, and nothing that followed has been read as a
 * request: the service has begun as many calls as the row says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit/rpc/echo.h"
#include "unit/rpc/program.h"
#include "unit/rpc/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static int up_with(void **state, int first_ms)
{
    echo *e = malloc(sizeof *e);
    rpc_limits limits;
    rpc_limits_init(&limits);
    limits.ms.first = first_ms;
    echo_start(e, 1, "127.0.0.1:0", &limits, NULL);
    *state = e;
    return 0;
}

static int up(void **state)
{
    return up_with(state, 0);
}

static int up_hasty(void **state)
{
    return up_with(state, 300);
}

static int down(void **state)
{
    echo_stop(*state);
    free(*state);
    return 0;
}

#define HOST "Host: x\r\n"
#define GET  "GET /hello HTTP/1.1\r\n" HOST "\r\n"
/* A request that must not be answered, behind one that is refused. */
#define HIDDEN "GET /hello HTTP/1.1\r\nHost: hidden\r\n\r\n"

typedef struct row {
    const char *what, *request;
    int status, begun; /* calls of the service */
} row;

static const row refused[] = {
    {"no version", "GET /\r\n" HOST "\r\n", 400, 0},
    {"HTTP/1.0", "GET / HTTP/1.0\r\n" HOST "\r\n", 505, 0},
    {"HTTP/2.0 without its preface", "GET / HTTP/2.0\r\n" HOST "\r\n", 400, 0},
    {"two spaces", "GET  / HTTP/1.1\r\n" HOST "\r\n", 400, 0},
    {"a space at the end", "GET / HTTP/1.1 \r\n" HOST "\r\n", 400, 0},
    {"a space in the target", "GET /a b HTTP/1.1\r\n" HOST "\r\n", 400, 0},
    {"an absolute target", "GET http://x/ HTTP/1.1\r\n" HOST "\r\n", 400, 0},
    {"an asterisk", "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 400, 0},
    {"a fragment", "GET /#a HTTP/1.1\r\n" HOST "\r\n", 400, 0},
    {"a byte that is no ASCII", "GET /\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n", 400, 0},
    {"CONNECT", "CONNECT x:80 HTTP/1.1\r\n" HOST "\r\n", 501, 0},
    {"TRACE", "TRACE / HTTP/1.1\r\n" HOST "\r\n", 501, 0},
    {"a method in lower case", "get / HTTP/1.1\r\n" HOST "\r\n", 400, 0},
    {"an unknown method", "BREW / HTTP/1.1\r\n" HOST "\r\n", 501, 0},
    {"a long method", "GETGETGETGETGETGETGET / HTTP/1.1\r\n" HOST "\r\n", 400, 0},
    {"an empty line first", "\r\n" GET, 400, 0},
    {"no Host", "GET / HTTP/1.1\r\n\r\n", 400, 0},
    {"two Hosts", "GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400, 0},
    {"a bare LF", "GET / HTTP/1.1\n" HOST "\r\n\r\n", 400, 0},
    {"a bare LF in a header", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", 400, 0},
    {"a bare CR", "GET / HTTP/1.1\r\nHost: x\rA: b\r\n\r\n", 400, 0},
    {"a folded line", "GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", 400, 0},
    {"a space before the colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400, 0},
    {"a header without a name", "GET / HTTP/1.1\r\n" HOST ": x\r\n\r\n", 400, 0},
    {"a header without a colon", "GET / HTTP/1.1\r\n" HOST "A\r\n\r\n", 400, 0},
    {"a control byte", "GET / HTTP/1.1\r\n" HOST "A: b\x01\r\n\r\n", 400, 0},
    {"a tab inside", "GET / HTTP/1.1\r\n" HOST "A: b\tc\r\n\r\n", 400, 0},
    {"a space in a name", "GET / HTTP/1.1\r\n" HOST "A b: c\r\n\r\n", 400, 0},
    {"two lengths that differ",
     "POST /echo HTTP/1.1\r\n" HOST
     "Content-Length: 0\r\nContent-Length: 40\r\n\r\n" HIDDEN,
     400, 0},
    {"two lengths that are the same",
     "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
     400, 0},
    {"a list of lengths",
     "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\nhello", 400, 0},
    {"a length with a sign",
     "POST /echo HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\nhello", 400, 0},
    {"a length in hex", "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\nhello",
     400, 0},
    {"an empty length", "POST /echo HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", 400, 0},
    {"a length that overflows",
     "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\n", 400,
     0},
    {"a length over the limit",
     "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 100000000\r\n\r\n", 413, 0},
    {"no length", "POST /echo HTTP/1.1\r\n" HOST "\r\n", 411, 0},
    {"chunks",
     "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN,
     411, 0},
    {"chunks and a length",
     "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\nTransfer-Encoding: "
     "chunked\r\n\r\n0\r\n\r\n" HIDDEN,
     400, 0},
    {"chunks with a case of their own",
     "POST /echo HTTP/1.1\r\n" HOST "tRANSFER-eNCODING: xchunked\r\n\r\n" HIDDEN, 411, 0},
    {"an unknown Expect",
     "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\nExpect: 200-ok\r\n\r\n", 417,
     0},
    {"a request behind a request", GET HIDDEN, 200, 1},
    {"a request behind a body",
     "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello" HIDDEN, 200, 1},
    {"a length on a GET, and a request in it",
     "GET /hello HTTP/1.1\r\n" HOST "Content-Length: 40\r\n\r\n" HIDDEN HIDDEN, 200, 1},
    {"TLS on a plain port", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400,
     0},
    {"half a preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\rX", 400, 0},
};

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)) != NULL; text++)
        n++;
    return n;
}

static void test_what_is_refused(void **state)
{
    echo *e = *state;
    static char got[65536];

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const row *r = &refused[i];
        int ended, fd = wire_open(e->address), before = e->begun, status = 0;
        wire_send(fd, r->request, strlen(r->request));
        wire_read(fd, got, sizeof got, 60000, &ended);
        close(fd);
        sscanf(got, "HTTP/1.1 %d ", &status);
        if (status != r->status || !ended || count(got, "HTTP/1.1 ") != 1 ||
            e->begun - before != r->begun || !strstr(got, "connection: close"))
            fail_msg("%s: %d instead of %d, ended %d, %d calls:\n%s", r->what, status,
                     r->status, ended, e->begun - before, got);
    }
}

/* A request may come byte by byte. */
static void test_requests_one_after_the_other_on_one_connection(void **state)
{
    echo *e = *state;
    static const char post[] = "POST /echo?a=b HTTP/1.1\r\nhost:x\r\nA:  \t b c \t\r\n"
                               "Content-Length: 11\r\n\r\nhello world";
    char got[4096];
    int ended, fd = wire_open(e->address);

    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof post - 1; i++)
            assert_int_equal(wire_send(fd, post + i, 1), 0);
        wire_read(fd, got, sizeof got, 1000, &ended);
        assert_int_equal(ended, 0);
        assert_true(strncmp(got, "HTTP/1.1 200 OK\r\n", 17) == 0);
        assert_non_null(strstr(got, "content-length: 11\r\n"));
        assert_non_null(strstr(got, "\r\n\r\nhello world"));
    }
    close(fd);
}

static void test_a_slow_request_is_given_up(void **state)
{
    echo *e = *state;
    static const char part[] =
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe";
    const size_t sizes[] = {0, 10, 40, sizeof part - 1};
    char got[4096];

    for (size_t i = 0; i < 4; i++) {
        int ended, fd = wire_open(e->address);
        wire_send(fd, part, sizes[i]);
        wire_read(fd, got, sizeof got, 60000, &ended);
        assert_int_equal(ended, 1);
        if (sizes[i] >= 24)
            assert_true(strncmp(got, "HTTP/1.1 408 ", 13) == 0);
        close(fd);
    }
    assert_true(echo_empty(e));
    assert_int_equal(echo_look(e).calls, 0);
}

static void curl(const char *expected, const char *const *more, const char *url)
{
    const char *argv[16] = {"/usr/bin/curl", "-sS", "-m",
                            "120",           "-w",  "[%{http_code} %{http_version}]"};
    static char out[65536];
    size_t n = 6;
    int code;
    while (*more)
        argv[n++] = *more++;
    argv[n++] = url;
    code = program_run(argv, out, sizeof out);
    if (code != 0 || strcmp(out, expected) != 0)
        fail_msg("curl ended with %d, and said:\n%s\ninstead of:\n%s", code, out,
                 expected);
}

static void test_curl_over_both_versions(void **state)
{
    echo *e = *state;
    static const char *const versions[] = {"--http1.1", "--http2-prior-knowledge",
                                           "--http2"};
    static const char *const said[] = {"1.1", "2", "1.1"};
    char url[128], expected[128];

    program_needed("/usr/bin/curl", "curl");
    for (size_t i = 0; i < 3; i++) {
        const char *none[] = {versions[i], NULL};
        const char *post[] = {versions[i], "-d", "some data", NULL};
        const char *head[] = {versions[i], "-I", "-o", "/dev/null", NULL};
        snprintf(url, sizeof url, "http://%s/hello", e->address);
        snprintf(expected, sizeof expected, "hello\n[200 %s]", said[i]);
        curl(expected, none, url);
        snprintf(expected, sizeof expected, "[200 %s]", said[i]);
        curl(expected, head, url);
        snprintf(url, sizeof url, "http://%s/none", e->address);
        snprintf(expected, sizeof expected, "no\n[404 %s]", said[i]);
        curl(expected, none, url);
        snprintf(url, sizeof url, "http://%s/drip", e->address);
        snprintf(expected, sizeof expected, "one\ntwo\nthree\n[200 %s]", said[i]);
        curl(expected, none, url);
        snprintf(url, sizeof url, "http://%s/slow", e->address);
        snprintf(expected, sizeof expected, "slow\n[200 %s]", said[i]);
        curl(expected, none, url);
        snprintf(url, sizeof url, "http://%s/echo?q", e->address);
        snprintf(expected, sizeof expected, "some data[200 %s]", said[i]);
        curl(expected, post, url);
    }
}

/* curl asks with Expect whether it may send it. */
static void test_curl_sends_a_large_body(void **state)
{
    echo *e = *state;
    char path[64] = "/tmp/rpc-body-XXXXXX", from[80], url[128], more[128];
    const char *argv[] = {"/usr/bin/cmp", path, more, NULL};
    int fd = mkstemp(path);
    static char block[1 << 16];

    program_needed("/usr/bin/curl", "curl");
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)(i * 31 + (i >> 8));
    for (int i = 0; i < 64; i++)
        assert_int_equal(write(fd, block, sizeof block), sizeof block);
    close(fd);
    snprintf(from, sizeof from, "@%s", path);
    snprintf(more, sizeof more, "%s.out", path);
    snprintf(url, sizeof url, "http://%s/echo", e->address);
    for (int i = 0; i < 2; i++) {
        const char *flags[] = {i ? "--http1.1" : "--http2-prior-knowledge",
                               "--data-binary",
                               from,
                               "-o",
                               more,
                               NULL};
        curl(i ? "[200 1.1]" : "[200 2]", flags, url);
        program_ok(argv);
    }
    unlink(path);
    unlink(more);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_refused),
        TEST(test_requests_one_after_the_other_on_one_connection),
        cmocka_unit_test_setup_teardown(test_a_slow_request_is_given_up, up_hasty, down),
        TEST(test_curl_over_both_versions),
        TEST(test_curl_sends_a_large_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_postgres_password.c: to whom the password of a PostgreSQL store is sent, and how.
 *
 * Owns a server that is none, which asks as a case has it ask and keeps what it hears,
 * and a real server that asks for clear text. Both are reached over an address that is
 * not the loopback's, where the engine must take them for another machine; without such
 * an address the cases that need one are skipped, and say so.
 */
#include "store/postgres/open.h"
#include "store/postgres/postgres.h"

#include "support/check.h"
#include "support/fake_server.h"
#include "support/postgres.h"
#include "support/postgres_stores.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* An address of this machine that no rule calls local; skips where there is none. */
static const char *foreign_address(void)
{
    static char text[INET_ADDRSTRLEN];
    struct ifaddrs *all;

    text[0] = '\0';
    assert_int_equal(getifaddrs(&all), 0);
    for (struct ifaddrs *i = all; i && !text[0]; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET ||
            (i->ifa_flags & IFF_LOOPBACK) || !(i->ifa_flags & IFF_UP))
            continue;
        struct sockaddr_in at;
        memcpy(&at, i->ifa_addr, sizeof at);
        inet_ntop(AF_INET, &at.sin_addr, text, sizeof text);
    }
    freeifaddrs(all);
    if (!text[0]) {
        print_message("# this machine has no address but the loopback's\n");
        skip();
    }
    return text;
}

/* ------------------------------------------------------------------ what a server says
 */

typedef struct said {
    const char *text;
    size_t size;
} said;

#define SAY(text)              \
    {                          \
        text, sizeof(text) - 1 \
    }
#define CLEAR  "R\0\0\0\10\0\0\0\3"
#define MD5    "R\0\0\0\14\0\0\0\5salt"
#define SCRAM  "R\0\0\0\27\0\0\0\12SCRAM-SHA-256\0\0"
#define LET_IN "R\0\0\0\10\0\0\0\0"
#define ENDED   \
    {           \
        NULL, 0 \
    }
enum { SAYS_MOST = 12, HEARD_MOST = 65536 };

typedef struct liar {
    said says[SAYS_MOST]; /* one a time that it hears something; the last ends it */
    int dribbles;         /* says one byte at a time */
    char heard[HEARD_MOST];
    size_t heard_size;
    fake_server server;
} liar;

static int hear(liar *l, int fd)
{
    if (!fake_server_readable(&l->server, fd))
        return 0;
    ssize_t n = recv(fd, l->heard + l->heard_size, HEARD_MOST - l->heard_size, 0);
    l->heard_size += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static void talk(fake_server *server, int fd)
{
    liar *l = server->arg;

    for (int i = 0; i < SAYS_MOST && l->says[i].text && hear(l, fd); i++) {
        for (size_t at = 0; at < l->says[i].size;) {
            size_t n = l->dribbles ? 1 : l->says[i].size - at;
            if (send(fd, l->says[i].text + at, n, MSG_NOSIGNAL) != (ssize_t)n)
                return;
            at += n;
            if (l->dribbles)
                usleep(500);
        }
    }
    while (hear(l, fd))
        ;
}

/* How an opening at such a server ends; `more` is added to the URL. */
static sessile_status told(liar *l, const char *host, const char *more,
                           sessile_error *err)
{
    char url[300];
    store st;

    l->server.talk = talk;
    l->server.arg = l;
    snprintf(url, sizeof url, "postgres://me:geheim@%s:%d/db?gssencmode=disable&%s", host,
             fake_server_start(&l->server, host), more);
    memset(err, 0, sizeof *err);
    sessile_status status =
        store_postgres_open(&st, url, 300, os_current, &allocator_default, err);
    fake_server_stop(&l->server);
    if (!status)
        store_close(&st);
    return status;
}

static int heard(const liar *l, const char *text)
{
    return memmem(l->heard, l->heard_size, text, strlen(text)) != NULL;
}

static void what_asks_for_clear_text_over_the_network_does_not_get_it(void **state)
{
    static const struct {
        const char *name, *more;
        int dribbles;
        said says[SAYS_MOST];
    } cases[] = {
        {"at once", "sslmode=disable", 0, {SAY(CLEAR)}},
        {"byte by byte", "sslmode=disable", 1, {SAY(CLEAR)}},
        {"no TLS here", "sslmode=prefer", 0, {SAY("N"), SAY(CLEAR)}},
        {"no TLS here, and byte by byte", "sslmode=prefer", 1, {SAY("N"), SAY(CLEAR)}},
        {"before it was asked anything", "sslmode=prefer", 0, {SAY("N" CLEAR)}},
        {"after TLS that fails", "sslmode=prefer", 0, {SAY("S"), SAY(CLEAR)}},
        {"after a word of no TLS", "sslmode=allow", 0, {SAY(CLEAR)}},
        {"behind MD5", "sslmode=disable", 0, {SAY(MD5 CLEAR)}},
        {"after MD5", "sslmode=disable", 0, {SAY(MD5), SAY(CLEAR)}},
        {"behind SCRAM", "sslmode=disable", 0, {SAY(SCRAM CLEAR)}},
        {"after SCRAM", "sslmode=disable", 0, {SAY(SCRAM), SAY(CLEAR)}},
    };
    const char *host = foreign_address();
    liar *l = calloc(1, sizeof *l);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sessile_error err;
        memset(l, 0, sizeof *l);
        memcpy(l->says, cases[i].says, sizeof l->says);
        l->dribbles = cases[i].dribbles;
        sessile_status status = told(l, host, cases[i].more, &err);
        if (heard(l, "geheim"))
            fail_msg("%s: it got the password", cases[i].name);
        if (l->server.connections == 0 || status == SESSILE_OK)
            fail_msg("%s: it was not even asked", cases[i].name);
        /* a TLS that fails is an error of its own */
        if (strcmp(cases[i].name, "after TLS that fails") == 0)
            continue;
        if (status != SESSILE_DENIED || !strstr(err.message, host) ||
            !strstr(err.message, "sslmode=require") ||
            !strstr(err.message, "cleartext_password=allow"))
            fail_msg("%s: %d %s", cases[i].name, (int)status, err.message);
        assert_null(strstr(err.message, "geheim"));
    }
    free(l);
}

static void it_is_sent_where_the_url_says_so_or_nobody_listens(void **state)
{
    liar *l = calloc(1, sizeof *l);
    sessile_error err;

    (void)state;
    l->says[0] = (said)SAY(CLEAR);
    told(l, "127.0.0.1", "sslmode=disable", &err);
    assert_true(heard(l, "geheim"));
    memset(l, 0, sizeof *l);
    l->says[0] = (said)SAY(CLEAR);
    told(l, "127.9.8.7", "sslmode=disable", &err);
    assert_true(heard(l, "geheim"));
    memset(l, 0, sizeof *l);
    l->says[0] = (said)SAY(CLEAR);
    told(l, foreign_address(), "sslmode=disable&cleartext_password=allow", &err);
    assert_true(heard(l, "geheim"));
    free(l);
}

/* What is not a clear password passes, whole, however it comes. */
static void other_questions_are_answered_and_other_words_are_heard(void **state)
{
    static const char no[] = "E\0\0\0\47SFATAL\0VFATAL\0C28P01\0Mnot with me\0\0";
    const char *host = foreign_address();
    liar *l = calloc(1, sizeof *l);
    sessile_error err;

    (void)state;
    for (int dribbles = 0; dribbles < 2; dribbles++) {
        memset(l, 0, sizeof *l);
        l->dribbles = dribbles;
        l->says[0] = (said)SAY(MD5);
        l->says[1] = (said)SAY(no);
        assert_int_equal(told(l, host, "sslmode=disable", &err), SESSILE_DENIED);
        assert_non_null(strstr(err.message, "not with me"));
        assert_true(heard(l, "md5"));
        memset(l, 0, sizeof *l);
        l->dribbles = dribbles;
        l->says[0] = (said)SAY("N");
        l->says[1] = (said)SAY(SCRAM);
        l->says[2] = (said)SAY(no);
        assert_int_equal(told(l, host, "sslmode=prefer", &err), SESSILE_DENIED);
        assert_non_null(strstr(err.message, "not with me"));
        assert_true(heard(l, "SCRAM-SHA-256"));
        assert_false(heard(l, "geheim"));
        memset(l, 0, sizeof *l);
        l->dribbles = dribbles;
        l->says[0] = (said)SAY(LET_IN "Z\0\0\0\5I"); /* and says no more */
        assert_int_equal(told(l, host, "sslmode=disable", &err), SESSILE_IO);
    }
    free(l);
}

/* ------------------------------------------------------------------ a real server */

static void rewrite(const postgres_server *s, const char *file, const char *mode,
                    const char *text)
{
    char path[600];

    snprintf(path, sizeof path, "%s/data/%s", s->folder, file);
    FILE *f = fopen(path, mode);
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* The server's URL with another host and more parameters. */
static char *at_host(const postgres_server *s, const char *host, const char *more)
{
    const char *at = strrchr(s->tcp, '@') + 1, *port = strchr(at, ':');
    char *url = malloc(strlen(s->tcp) + strlen(host) + strlen(more) + 2);

    sprintf(url, "%.*s%s%s?%s", (int)(at - s->tcp), s->tcp, host, port, more);
    return url;
}

static sessile_status opens(const postgres_server *s, const char *host, const char *more,
                            sessile_error *err)
{
    char *url = at_host(s, host, more);
    store st;
    sessile_status status = postgres_opened(url, &st, err);

    if (!status)
        store_close(&st);
    free(url);
    return status;
}

static void a_real_server_that_wants_clear_text(void **state)
{
    const char *why, *host = foreign_address();
    postgres_server *s = postgres_own(&why);
    sessile_error err;

    (void)state;
    if (!s) {
        print_message("# %s\n", why);
        skip();
    }
    rewrite(s, "postgresql.conf", "a", "listen_addresses = '*'\n");
    rewrite(s, "pg_hba.conf", "w", "local all all password\nhost all all all password\n");
    assert_int_equal(postgres_do(s, "stop"), 0);
    assert_int_equal(postgres_do(s, "again"), 0);

    assert_int_equal(opens(s, host, "sslmode=disable", &err), SESSILE_DENIED);
    assert_non_null(strstr(err.message, "clear text"));
    must(opens(s, host, "sslmode=disable&cleartext_password=allow", &err), &err);
    must(opens(s, "127.0.0.1", "sslmode=disable", &err), &err);
    store st = store_at(s->url); /* a Unix socket */
    store_close(&st);
    if (s->ca[0]) {
        must(opens(s, host, "sslmode=require", &err), &err);
        must(opens(s, host, "sslmode=prefer", &err), &err);
    }

    rewrite(s, "pg_hba.conf", "w", "host all all all scram-sha-256\n");
    assert_int_equal(postgres_do(s, "stop"), 0);
    assert_int_equal(postgres_do(s, "again"), 0);
    must(opens(s, host, "sslmode=disable", &err), &err);
    must(opens(s, host, "sslmode=prefer", &err), &err);
    assert_int_equal(opens(s, host, "sslmode=disable&dbname=none", &err),
                     SESSILE_INVALID);

    /* and what is written through a connection that was looked at */
    char *url = at_host(s, host, "sslmode=disable");
    assert_non_null(postgres_make(url));
    free(url);
    postgres_own_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_asks_for_clear_text_over_the_network_does_not_get_it),
        cmocka_unit_test(it_is_sent_where_the_url_says_so_or_nobody_listens),
        cmocka_unit_test(other_questions_are_answered_and_other_words_are_heard),
        cmocka_unit_test(a_real_server_that_wants_clear_text),
    };
    return cmocka_run_group_tests_name("the password of PostgreSQL", tests, NULL, NULL);
}

/*
 * test_postgres_lost.c: answers of a PostgreSQL server that never come.
 *
 * Owns a small proxy between the store and the server, which loses connections where it
 * hurts: before the server has the statement, after it has committed, or without a word.
 * What was acknowledged must be there once; what was refused must never come.
 */
#include "store/postgres/postgres.h"

#include "support/check.h"
#include "support/postgres.h"
#include "store/postgres/open.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ------------------------------------------------------------------ the proxy */

typedef enum what_next {
    PASS,
    LOSE_STATEMENT, /* the next bytes of a client do not arrive: its connection is cut */
    LOSE_ANSWER,    /* they do; the answer does not */
    HOLD_ANSWER,    /* nor is the connection cut: it hangs */
    HOLD_STATEMENT, /* the statement hangs on its way, until it is let go */
    HOLD_ALL,       /* nothing passes any more, on any connection */
} what_next;

enum { LINES_MOST = 64 };

typedef struct line {
    int client, server; /* -1: closed */
    int armed, held;
    char kept[70000]; /* a statement on its way */
    size_t kept_size;
} line;

typedef struct proxy {
    int listener, port, server_port;
    _Atomic int next; /* what_next of what a client sends next; then PASS again */
    atomic_int let_go, stop, lost;
    pthread_t thread;
    line lines[LINES_MOST];
    int count;
} proxy;

static int dial(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void cut(line *l)
{
    if (l->client >= 0)
        close(l->client);
    if (l->server >= 0)
        close(l->server);
    l->client = l->server = -1;
}

static void pass(int to, const char *data, size_t size)
{
    for (ssize_t n; size; data += n, size -= (size_t)n)
        if ((n = send(to, data, size, MSG_NOSIGNAL)) <= 0)
            return;
}

static void from_client(proxy *p, line *l)
{
    static char data[65536];
    ssize_t n = recv(l->client, data, sizeof data, 0);
    int next = atomic_load(&p->next);

    if (n <= 0) { /* gone; what it sent is still on its way */
        close(l->client);
        l->client = -1;
        if (!l->kept_size)
            cut(l);
        return;
    }
    if (next == HOLD_ALL)
        return;
    if (next != PASS && !l->armed && !l->held) {
        atomic_store(&p->next, PASS);
        atomic_fetch_add(&p->lost, 1);
        if (next == LOSE_STATEMENT) {
            cut(l);
            return;
        }
        if (next == HOLD_STATEMENT) {
            memcpy(l->kept, data, (size_t)n);
            l->kept_size = (size_t)n;
            return;
        }
        l->armed = next;
    }
    pass(l->server, data, (size_t)n);
}

static void from_server(proxy *p, line *l)
{
    static char data[65536];
    ssize_t n = recv(l->server, data, sizeof data, 0);

    if (n <= 0 || l->armed == LOSE_ANSWER) {
        cut(l);
        return;
    }
    if (l->armed == HOLD_ANSWER || atomic_load(&p->next) == HOLD_ALL)
        return;
    if (l->client >= 0)
        pass(l->client, data, (size_t)n);
}

static void *run(void *arg)
{
    proxy *p = arg;

    while (!atomic_load(&p->stop)) {
        struct pollfd fds[1 + 2 * LINES_MOST] = {{.fd = p->listener, .events = POLLIN}};
        for (int i = 0; i < p->count; i++) {
            fds[1 + 2 * i] = (struct pollfd){.fd = p->lines[i].client, .events = POLLIN};
            fds[2 + 2 * i] = (struct pollfd){.fd = p->lines[i].server, .events = POLLIN};
        }
        int count = p->count;
        poll(fds, (nfds_t)(1 + 2 * count), 5);
        if (fds[0].revents && p->count < LINES_MOST) {
            line *l = &p->lines[p->count++];
            memset(l, 0, sizeof *l);
            l->client = accept(p->listener, NULL, NULL);
            l->server = dial(p->server_port);
            if (l->server < 0)
                cut(l);
        }
        for (int i = 0; i < count; i++) {
            line *l = &p->lines[i];
            if (fds[1 + 2 * i].revents && l->client >= 0)
                from_client(p, l);
            if (fds[2 + 2 * i].revents && l->server >= 0)
                from_server(p, l);
            if (l->kept_size && atomic_load(&p->let_go)) {
                if (l->server >= 0)
                    pass(l->server, l->kept, l->kept_size);
                l->kept_size = 0;
            }
        }
    }
    for (int i = 0; i < p->count; i++)
        cut(&p->lines[i]);
    return NULL;
}

/* ------------------------------------------------------------------ a place behind it */

typedef struct place {
    proxy p;
    char *url;     /* straight to the server */
    char *through; /* behind the proxy */
    store st;
    sessile_backend_log *log;
    sessile_log_end end;
    sessile_error err;
} place;

static int set_up(void **state)
{
    const char *why;
    const postgres_server *s = postgres_shared(&why);
    place *at = calloc(1, sizeof *at);
    struct sockaddr_in here = {.sin_family = AF_INET};
    socklen_t size = sizeof here;

    *state = at;
    if (!s) {
        print_message("# %s\n", why);
        return 0;
    }
    at->url = postgres_place(s->tcp);
    const char *host = strchr(strstr(at->url, "://") + 3, '@') + 1;
    const char *port = strchr(host, ':'), *rest = strchr(port, '/');
    at->p.server_port = atoi(port + 1);
    at->p.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(at->p.listener, (struct sockaddr *)&here, sizeof here) ||
        listen(at->p.listener, 20) ||
        getsockname(at->p.listener, (struct sockaddr *)&here, &size))
        return -1;
    at->p.port = ntohs(here.sin_port);
    at->through = malloc(strlen(at->url) + 100);
    /* bytes that the proxy holds and lets go are of one message only without TLS */
    sprintf(at->through, "%.*s:%d%s&sslmode=disable&gssencmode=disable",
            (int)(port - at->url), at->url, at->p.port, rest);
    if (pthread_create(&at->p.thread, NULL, run, &at->p))
        return -1;
    return 0;
}

static int tear_down(void **state)
{
    place *at = *state;

    if (at->url) {
        if (at->log)
            at->st.table->close(at->log);
        store_close(&at->st);
        atomic_store(&at->p.stop, 1);
        pthread_join(at->p.thread, NULL);
        close(at->p.listener);
        postgres_drop(at->url);
        free(at->through);
    }
    free(at);
    return 0;
}

/* A store with one log of one record, its connection warm. */
static place *opened(void **state, int timeout_ms)
{
    place *at = *state;
    uint64_t bytes;
    int64_t mtime;

    if (!at->url)
        skip();
    must(store_postgres_open(&at->st, at->through, 5000, os_current, &allocator_default,
                             &at->err),
         &at->err);
    must(at->st.table->create(at->st.self, "main", "log", "one\n", 4, &at->err),
         &at->err);
    must(at->st.table->open(at->st.self, "main", "log", &at->log, &at->err), &at->err);
    must(at->st.table->size(at->log, &bytes, &mtime, &at->err), &at->err);
    at->end = (sessile_log_end){1, 4, {0}};
    at->st.table->set_timeout(at->log, timeout_ms);
    return at;
}

static sessile_status append(place *at, const char *record, int *poisoned)
{
    unsigned char tag[16] = {(unsigned char)at->end.count};

    return at->st.table->append(at->log, &at->end, record, strlen(record), 1, tag,
                                poisoned, &at->err);
}

/* What the server has, asked without the proxy. */
static void holds(place *at, const char *expected)
{
    char sql[300];

    snprintf(
        sql, sizeof sql,
        "select coalesce(string_agg(convert_from(line, 'UTF8'), '' order by e.id), '')"
        " from %s.sessions s left join %s.entries e on e.session = s.id"
        " where s.name = 'log'",
        postgres_schema(at->url), postgres_schema(at->url));
    char *value = postgres_sql(at->url, sql);
    assert_non_null(value);
    assert_string_equal(value, expected);
    free(value);
}

/* ------------------------------------------------------------------ appends */

/* `lost` connections were lost, and each append of theirs is there once. Then
 * "three" is appended, and the log is this. */
static void went_on(place *at, int lost, const char *expected)
{
    int poisoned = 1;

    assert_int_equal(atomic_load(&at->p.lost), lost);
    assert_int_equal(at->end.count, 1 + lost);
    must(append(at, "three\n", &poisoned), &at->err);
    holds(at, expected);
}

static void an_append_that_never_arrived_is_made_again(void **state)
{
    place *at = opened(state, 5000);
    int poisoned = 1;

    atomic_store(&at->p.next, LOSE_STATEMENT);
    must(append(at, "two\n", &poisoned), &at->err);
    went_on(at, 1, "one\ntwo\nthree\n");
}

static void an_append_whose_answer_was_lost_is_not_made_twice(void **state)
{
    place *at = opened(state, 5000);
    int poisoned = 1;

    for (int i = 0; i < 3; i++) {
        atomic_store(&at->p.next, LOSE_ANSWER);
        must(append(at, "two\n", &poisoned), &at->err);
    }
    went_on(at, 3, "one\ntwo\ntwo\ntwo\nthree\n");
}

static void an_answer_that_hangs_is_looked_up(void **state)
{
    place *at = opened(state, 1200);
    int poisoned = 1;

    atomic_store(&at->p.next, HOLD_ANSWER);
    must(append(at, "two\n", &poisoned), &at->err);
    assert_int_equal(poisoned, 0);
    must(append(at, "three\n", &poisoned), &at->err);
    holds(at, "one\ntwo\nthree\n");
}

static void a_statement_that_hangs_never_comes_late(void **state)
{
    place *at = opened(state, 1200);
    int poisoned = 1;

    atomic_store(&at->p.next, HOLD_STATEMENT);
    /* the server's process was ended, and the log looked at: it did not take place */
    assert_int_equal(append(at, "late\n", &poisoned), SESSILE_BUSY);
    assert_int_equal(poisoned, 0);
    assert_int_equal(at->end.count, 1);
    atomic_store(&at->p.let_go, 1);
    must(append(at, "two\n", &poisoned), &at->err);
    usleep(100000);
    holds(at, "one\ntwo\n");
}

static void without_any_answer_it_is_unknown_and_said_so(void **state)
{
    place *at = opened(state, 1000);
    int poisoned = 0;
    size_t got;
    char bytes[20];

    atomic_store(&at->p.next, HOLD_ALL);
    assert_int_equal(append(at, "two\n", &poisoned), SESSILE_IO);
    assert_int_equal(poisoned, 1);
    assert_int_equal(at->end.count, 1);
    assert_non_null(strstr(at->err.message, "nobody could tell"));
    atomic_store(&at->p.next, PASS);
    /* this handle takes no more; a handle opened later sees what is there */
    poisoned = 0;
    assert_int_equal(append(at, "two\n", &poisoned), SESSILE_IO);
    assert_int_equal(poisoned, 1);
    at->st.table->close(at->log);
    must(at->st.table->open(at->st.self, "main", "log", &at->log, &at->err), &at->err);
    must(at->st.table->read(at->log, 0, 0, bytes, sizeof bytes, &got, &at->err),
         &at->err);
    assert_int_equal(got, 4);
    poisoned = 1;
    must(append(at, "two\n", &poisoned), &at->err);
    holds(at, "one\ntwo\n");
}

/* A clock that goes on by so much whenever it is read, however fast the machine is. */
enum { TICK_MS = 100, TICKS_OVER = 4 };
static uint64_t ticks;

static uint64_t ticking(void *ud)
{
    (void)ud;
    return ++ticks * TICK_MS * 1000;
}

static void who_gets_no_answer_is_told_in_the_time_asked(void **state)
{
    enum { ASKED_MS = 5000 };
    place *at = opened(state, ASKED_MS);
    pg_store *ps = at->st.self;
    os_table clock = *ps->os;
    const os_table *os = ps->os;
    int poisoned = 0;
    uint64_t bytes, begun = ticks;
    int64_t mtime;

    clock.clock_us = ticking;
    ps->os = &clock;
    atomic_store(&at->p.next, HOLD_ALL);
    assert_int_equal(append(at, "two\n", &poisoned), SESSILE_IO);
    if ((ticks - begun) * TICK_MS > ASKED_MS + TICKS_OVER * TICK_MS)
        fail_msg("an append took %d ms", (int)(ticks - begun) * TICK_MS);
    assert_non_null(strstr(at->err.message, "open it again and look"));
    begun = ticks;
    assert_int_equal(at->st.table->size(at->log, &bytes, &mtime, &at->err), SESSILE_IO);
    if ((ticks - begun) * TICK_MS > ASKED_MS + TICKS_OVER * TICK_MS)
        fail_msg("a look took %d ms", (int)(ticks - begun) * TICK_MS);
    ps->os = os;
    atomic_store(&at->p.next, PASS);
}

static void another_writer_in_between_is_a_conflict(void **state)
{
    place *at = opened(state, 5000);
    sessile_backend_log *other;
    sessile_log_end end = at->end;
    unsigned char tag[16] = {9};
    int poisoned = 1;

    must(at->st.table->open(at->st.self, "main", "log", &other, &at->err), &at->err);
    must(at->st.table->append(other, &end, "theirs\n", 7, 1, tag, &poisoned, &at->err),
         &at->err);
    at->st.table->close(other);
    atomic_store(&at->p.next, LOSE_ANSWER);
    assert_int_equal(append(at, "mine\n", &poisoned), SESSILE_CONFLICT);
    assert_int_equal(poisoned, 0);
    holds(at, "one\ntheirs\n");
}

static int at_once(void *arg)
{
    (void)arg;
    return 1;
}

static void who_asks_to_stop_is_told_what_became_of_it(void **state)
{
    place *at = opened(state, -1);
    int poisoned = 1;

    at->st.table->set_stop(at->log, at_once, NULL);
    sessile_status status = append(at, "two\n", &poisoned);
    at->st.table->set_stop(at->log, NULL, NULL);
    assert_int_equal(poisoned, 0);
    if (status) {
        assert_int_equal(status, SESSILE_CANCELLED);
        holds(at, "one\n");
    } else {
        holds(at, "one\ntwo\n");
    }
}

/* ------------------------------------------------------------------ all else */

static void what_is_made_or_changed_is_so_once(void **state)
{
    place *at = opened(state, 5000);
    const sessile_backend *t = at->st.table;
    void *self = at->st.self;
    sessile_backend_draft *draft;
    sessile_backend_log *log;
    sessile_backend_stat st;
    char *blob;
    size_t size;

    for (int way = LOSE_STATEMENT; way <= LOSE_ANSWER; way++) {
        char name[20];
        snprintf(name, sizeof name, "made-%d", way);
        atomic_store(&at->p.next, way);
        must(t->create(self, "main", name, "x\n", 2, &at->err), &at->err);
        assert_int_equal(t->create(self, "main", name, "y\n", 2, &at->err),
                         SESSILE_EXISTS);
        atomic_store(&at->p.next, way);
        must(t->blob_put_new(self, name, "was", 3, &at->err), &at->err);
        atomic_store(&at->p.next, way);
        must(t->blob_replace(self, name, "was", 3, "is", 2, &at->err), &at->err);
        must(t->blob_get(self, name, &blob, &size, &at->err), &at->err);
        assert_int_equal(size, 2);
        sessile_free(blob);
        atomic_store(&at->p.next, way);
        must(t->blob_remove(self, name, &at->err), &at->err);

        must(t->draft_new(self, "main", "copied", &draft, &at->err), &at->err);
        must(t->draft_write(draft, "a\nb\n", 4, &at->err), &at->err);
        atomic_store(&at->p.next, way);
        must(t->draft_publish(draft, &at->err), &at->err);
        must(t->open(self, "main", "copied", &log, &at->err), &at->err);
        must(t->draft_new(self, "main", "copied", &draft, &at->err), &at->err);
        must(t->draft_write(draft, "c\n", 2, &at->err), &at->err);
        /* its records are sent first: lost are those */
        atomic_store(&at->p.next, way);
        must(t->draft_replace(draft, log, 0, NULL, 0, &at->err), &at->err);
        t->close(log);
        must(t->stat(self, "main", "copied", &st, &at->err), &at->err);
        assert_int_equal(st.bytes, 2);
        must(t->open(self, "main", "copied", &log, &at->err), &at->err);
        atomic_store(&at->p.next, way);
        must(t->remove(log, 0, &at->err), &at->err);
        t->close(log);
        assert_int_equal(t->stat(self, "main", "copied", &st, &at->err),
                         SESSILE_NOTFOUND);
    }
    assert_int_equal(atomic_load(&at->p.lost), 2 * 7);
}

static void readers_do_not_notice(void **state)
{
    place *at = opened(state, 5000);
    uint64_t bytes;
    int64_t mtime;

    for (int way = LOSE_STATEMENT; way <= LOSE_ANSWER; way++) {
        atomic_store(&at->p.next, way);
        must(at->st.table->size(at->log, &bytes, &mtime, &at->err), &at->err);
        assert_int_equal(bytes, 4);
    }
}

typedef struct watcher {
    place *at;
    pthread_t thread;
    int changed;
    sessile_status status;
    sessile_error err;
    atomic_int over;
} watcher;

static void *watch(void *arg)
{
    watcher *w = arg;
    w->status =
        w->at->st.table->watch(w->at->log, 4, 60000, NULL, NULL, &w->changed, &w->err);
    return NULL;
}

static void a_watch_outlives_its_connection(void **state)
{
    place *at = opened(state, 5000);
    watcher w = {.at = at};
    char sql[300];

    assert_int_equal(pthread_create(&w.thread, NULL, watch, &w), 0);
    snprintf(sql, sizeof sql,
             "select count(pg_terminate_backend(pid)) from pg_stat_activity"
             " where query = 'LISTEN \"%s\"'",
             postgres_schema(at->url));
    for (int ended = 0; ended < 2;) { /* and the one that came after it */
        char *n = postgres_sql(at->url, sql);
        ended += n && strcmp(n, "0");
        free(n);
    }
    /* what comes while nobody listens, behind everybody's back */
    snprintf(sql, sizeof sql,
             "with s as (update %s.sessions set count = 2, bytes = 8 where name = 'log'"
             " returning id) insert into %s.entries select id, 1, 4, 'two\n' from s",
             postgres_schema(at->url), postgres_schema(at->url));
    free(postgres_sql(at->url, sql));
    snprintf(sql, sizeof sql,
             "select count(pg_terminate_backend(pid)) from pg_stat_activity"
             " where query = 'LISTEN \"%s\"'",
             postgres_schema(at->url));
    for (int ended = 0; !ended && !atomic_load(&w.over);) {
        char *n = postgres_sql(at->url, sql);
        ended += n && strcmp(n, "0");
        free(n);
    }
    pthread_join(w.thread, NULL);
    must(w.status, &w.err);
    assert_int_equal(w.changed, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_append_that_never_arrived_is_made_again),
        CASE(an_append_whose_answer_was_lost_is_not_made_twice),
        CASE(an_answer_that_hangs_is_looked_up),
        CASE(a_statement_that_hangs_never_comes_late),
        CASE(without_any_answer_it_is_unknown_and_said_so),
        CASE(who_gets_no_answer_is_told_in_the_time_asked),
        CASE(another_writer_in_between_is_a_conflict),
        CASE(who_asks_to_stop_is_told_what_became_of_it),
        CASE(what_is_made_or_changed_is_so_once),
        CASE(readers_do_not_notice),
        CASE(a_watch_outlives_its_connection),
    };
    return cmocka_run_group_tests_name("answers of PostgreSQL that never come", tests,
                                       NULL, NULL);
}

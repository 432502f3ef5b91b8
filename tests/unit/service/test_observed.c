/*
 * test_observed.c: what a server tells its operator: that it began and ends, calls that
 * failed for a reason of its own, floods, certificates; and never a name or a text.
 */
#include "serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "lines.h"
#include "service/logline.h"
#include "sessile_access.h"
#include "support/runs.h"
#include "unit/rpc/certificates.h"

#define SESSION "canary-of-a-name"
/* printf %s canary-of-a-name | b2sum -l 256 */
#define HASH  "56a11dea7b0cda13"
#define SAID  "canary of a text"
#define TRACE "0af7651916cd43dd8448eb211c80319c"

typedef struct world {
    sessile_store *store;
    serving s;
    lines l;
    service_settings settings;
} world;

static void world_open(world *w, const char *url)
{
    memset(&w->settings, 0, sizeof w->settings);
    memset(&w->s, 0, sizeof w->s);
    w->store = run_store(url);
    lines_open(&w->l);
    w->settings.log.fd = w->l.in;
}

static void world_start(world *w)
{
    static const rpc_header trace[] = {
        {"traceparent", "00-" TRACE "-b7ad6b7169203331-01"}, {NULL, NULL}};
    serving_start(&w->s, w->store, &w->settings);
    w->s.headers = trace;
    cJSON_Delete(lines_wait(&w->l, "The server began to serve."));
}

static void world_close(world *w)
{
    serving_stop(&w->s);
    sessile_store_close(w->store);
    (void)lines_count(&w->l, "");
    assert_null(strstr(w->l.text, SAID));
    lines_close(&w->l);
}

static void create(world *w, const char *id)
{
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    r.session = names_of(id);
    serve_ok(&w->s, "CreateSession", &r);
}

/* ---------------------------------------------------------------------- life */

static void the_beginning_and_the_end_are_told(void **state)
{
    world w;
    (void)state;
    world_open(&w, "ram:");
    w.settings.nodes.name = "node-a";
    w.settings.listen.metrics = "127.0.0.1:0";
    serving_start(&w.s, w.store, &w.settings);
    cJSON *line = lines_wait(&w.l, "The server began to serve.");
    assert_string_equal(line_field(line, "level"), "info");
    assert_string_equal(line_field(line, "address"), service_address(w.s.service));
    assert_string_equal(line_field(line, "metrics"),
                        service_metrics_address(w.s.service));
    assert_string_equal(line_field(line, "store"), "ram");
    assert_string_equal(line_field(line, "node"), "node-a");
    assert_string_equal(line_field(line, "tls"), "false");
    cJSON_Delete(line);
    line = lines_wait(&w.l, "The store has no guard");
    assert_string_equal(line_field(line, "level"), "warn");
    cJSON_Delete(line);
    create(&w, SESSION);
    append_by(&w.s, SESSION, SAID);
    serving_drain(&w.s);
    cJSON_Delete(lines_wait(&w.l, "The server was told to end"));
    rpc_channel_close(w.s.channel); /* else it waits for that */
    line = lines_wait(&w.l, "The server ended: every call was finished.");
    assert_string_equal(line_field(line, "calls"), "0");
    cJSON_Delete(line);
    assert_null(strstr(w.l.text, SESSION));
    assert_int_equal(
        rpc_channel_open(&w.s.channel, w.s.loop, "127.0.0.1:1", NULL, NULL, NULL), 0);
    world_close(&w);
}

static void only_lines_of_the_level_are_written(void **state)
{
    world w;
    (void)state;
    world_open(&w, "ram:");
    w.settings.log.least = LEVEL_ERROR;
    serving_start(&w.s, w.store, &w.settings);
    create(&w, SESSION);
    serving_stop(&w.s);
    assert_int_equal(lines_count(&w.l, ""), 0);
    sessile_store_close(w.store);
    lines_close(&w.l);
}

/* ---------------------------------------------------------------------- failures */

/* Breaks the first line of each log in the store's folder. */
static void damage_logs(void)
{
    char command[300];
    snprintf(command, sizeof command,
             "find '%s' -name '*.jsonl' -exec sh -c 'printf XXXXXXXXXXXXXXXX | "
             "dd of=\"$1\" bs=1 seek=4 conv=notrunc 2>/dev/null' _ {} \\;",
             runs_folder);
    assert_int_equal(system(command), 0);
}

static void make_damaged(const char *id)
{
    sessile_session_options o;
    sessile_session *s;
    sessile_error err;
    sessile_store *store = run_store(runs_folder);
    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    assert_int_equal(sessile_create(&s, store, &o, &err), SESSILE_OK);
    assert_int_equal(sessile_append(s,
                                    sessile_text("{\"role\":\"user\",\"content\":"
                                                 "\"" SAID "\"}"),
                                    NULL, &err),
                     SESSILE_OK);
    assert_int_equal(sessile_session_close(s, &err), SESSILE_OK);
    sessile_store_close(store);
    damage_logs();
}

static void resume_damaged(world *w)
{
    Sessile__V1__SessionRequest r = SESSILE__V1__SESSION_REQUEST__INIT;
    char status[32];
    r.session = names_of(SESSION);
    assert_int_equal(serve_fails(&w->s, "ResumeSession", &r, status), RPC_DATA_LOSS);
}

static void damage_is_told_without_a_name(void **state)
{
    world w;
    (void)state;
    make_damaged(SESSION);
    world_open(&w, runs_folder);
    world_start(&w);
    resume_damaged(&w);
    cJSON *line = lines_wait(&w.l, "A call failed: what is stored");
    assert_string_equal(line_field(line, "level"), "error");
    assert_string_equal(line_field(line, "method"), "ResumeSession");
    assert_string_equal(line_field(line, "status"), "EDAMAGED");
    assert_string_equal(line_field(line, "session"), HASH);
    assert_string_equal(line_field(line, "trace_id"), TRACE);
    assert_non_null(strstr(line_field(line, "why"), "session ***"));
    assert_null(strstr(w.l.text, SESSION));
    cJSON_Delete(line);
    world_close(&w);
}

static void a_setting_shows_the_names(void **state)
{
    world w;
    (void)state;
    make_damaged(SESSION);
    world_open(&w, runs_folder);
    w.settings.log.show_ids = 1;
    world_start(&w);
    resume_damaged(&w);
    cJSON *line = lines_wait(&w.l, "A call failed: what is stored");
    assert_string_equal(line_field(line, "session"), SESSION);
    cJSON_Delete(line);
    world_close(&w);
}

/* Writes to files fail, as on a device that is full. */
static void set_file_limit(rlim_t most)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static Sessile__V1__AppendRequest *saying(const char *id)
{
    static Sessile__V1__AppendRequest r;
    static Sessile__V1__Json json;
    sessile__v1__append_request__init(&r);
    sessile__v1__json__init(&json);
    json.text = (char *)"{\"role\":\"user\",\"content\":\"" SAID "\"}";
    r.session = names_of(id);
    r.message = &json;
    return &r;
}

static void a_broken_store_is_ten_lines_and_a_number(void **state)
{
    enum { CALLS = 30 };
    world w;
    char status[32];
    (void)state;
    world_open(&w, runs_folder);
    world_start(&w);
    create(&w, SESSION);
    set_file_limit(0);
    for (int i = 0; i < CALLS; i++)
        (void)serve_fails(&w.s, "AppendMessage", saying(SESSION), status);
    set_file_limit(RLIM_INFINITY);
    cJSON *line = lines_wait(&w.l, "A call failed: ");
    assert_string_equal(line_field(line, "session"), HASH);
    cJSON_Delete(line);
    assert_int_equal(lines_count(&w.l, "A call failed: "), 10);
    serving_stop(&w.s);
    line = lines_wait(&w.l, "More lines of this kind were left out.");
    assert_string_equal(line_field(line, "lines"), "20");
    cJSON_Delete(line);
    assert_null(strstr(w.l.text, SESSION));
    sessile_store_close(w.store);
    lines_close(&w.l);
}

static void what_clients_do_wrong_is_no_line(void **state)
{
    world w;
    char status[32];
    Sessile__V1__SessionRequest r = SESSILE__V1__SESSION_REQUEST__INIT;
    (void)state;
    world_open(&w, "ram:");
    world_start(&w);
    r.session = names_of("none");
    (void)serve_fails(&w.s, "ResumeSession", &r, status);
    r.session = NULL;
    (void)serve_fails(&w.s, "ResumeSession", &r, status);
    assert_int_equal(lines_count(&w.l, "A call"), 0);
    world_close(&w);
}

/* ---------------------------------------------------------------------- the audit */

static char *guard_with_audit(sessile_store *store)
{
    static const char *const roles[] = {"editor"};
    sessile_access_key_options k;
    sessile_guard_options o;
    sessile_error err;
    char *key;
    sessile_guard_options_init(&o);
    o.audit.on = 1;
    if (sessile_store_guard(store, &o, &err))
        fail_msg("%s", err.message);
    sessile_access_key_options_init(&k);
    k.user = sessile_text("ann");
    k.roles = roles;
    k.role_count = 1;
    if (sessile_access_key(store, &k, &key, &err))
        fail_msg("%s", err.message);
    return key;
}

static void an_audit_that_cannot_be_written_is_told(void **state)
{
    world w;
    char bearer[300], status[32];
    rpc_header headers[2] = {{"authorization", bearer}, {NULL, NULL}};
    (void)state;
    world_open(&w, runs_folder);
    char *key = guard_with_audit(w.store);
    snprintf(bearer, sizeof bearer, "Bearer %s", key);
    w.settings.guarded = 1;
    world_start(&w);
    w.s.headers = headers;
    create(&w, SESSION);
    set_file_limit(0);
    (void)serve_fails(&w.s, "AppendMessage", saying(SESSION), status);
    (void)serve_fails(&w.s, "AppendMessage", saying(SESSION), status);
    set_file_limit(RLIM_INFINITY);
    cJSON *line = lines_wait(&w.l, "A call failed: the audit cannot be written.");
    assert_string_equal(line_field(line, "level"), "error");
    cJSON_Delete(line);
    assert_int_equal(lines_count(&w.l, "The store has no guard"), 0);
    assert_null(strstr(w.l.text, strrchr(key, '_')));
    assert_null(strstr(w.l.text, SESSION));
    sessile_free(key);
    world_close(&w);
}

/* ---------------------------------------------------------------------- floods */

static void flood(const char *address)
{
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                "\0\0\0\4\0\0\0\0\0";
    static const char ping[17] = "\0\0\x08\x06\0\0\0\0\0";
    struct sockaddr_in to = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(fd, hello, sizeof hello - 1, 0), sizeof hello - 1);
    for (int i = 0; i < 200; i++)
        if (send(fd, ping, sizeof ping, MSG_NOSIGNAL) < 0)
            break;
    /* closed with answers unread, what the server has not read yet would be lost */
    char answers[1024];
    shutdown(fd, SHUT_WR);
    while (recv(fd, answers, sizeof answers, 0) > 0)
        ;
    close(fd);
}

static void floods_are_told_by_their_number(void **state)
{
    world w;
    (void)state;
    world_open(&w, "ram:");
    world_start(&w);
    flood(service_address(w.s.service));
    cJSON *line = lines_wait(&w.l, "Connections were ended: their peers flooded");
    assert_string_equal(line_field(line, "level"), "warn");
    assert_string_equal(line_field(line, "count"), "1");
    cJSON_Delete(line);
    world_close(&w);
}

/* ---------------------------------------------------------------------- certificates */

static _Atomic int asked;

static int ask_once(void *arg)
{
    (void)arg;
    return __atomic_exchange_n(&asked, 0, __ATOMIC_SEQ_CST);
}

static void certificates_are_told_when_they_are_read_again(void **state)
{
    certificates c;
    world w;
    (void)state;
    certificates_make(&c);
    certificates_renew(&c, 3);
    world_open(&w, "ram:");
    w.settings.listen.cert = c.server;
    w.settings.listen.key = c.server_key;
    w.settings.reload = ask_once;
    world_start(&w);
    cJSON *line = lines_wait(&w.l, "The certificate expires soon");
    assert_in_range(atoi(line_field(line, "days")), 2, 3);
    cJSON_Delete(line);
    certificates_renew(&c, 100);
    asked = 1;
    line = lines_wait(&w.l, "The certificates were read again.");
    assert_in_range(atoi(line_field(line, "days")), 99, 100);
    cJSON_Delete(line);
    assert_int_equal(unlink(c.server), 0);
    asked = 1;
    line = lines_wait(&w.l, "The certificates cannot be read again");
    assert_string_equal(line_field(line, "level"), "error");
    assert_non_null(strstr(line_field(line, "why"), c.server));
    cJSON_Delete(line);
    world_close(&w);
    certificates_remove(&c);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_beginning_and_the_end_are_told),
        cmocka_unit_test(only_lines_of_the_level_are_written),
        IN_FOLDER(damage_is_told_without_a_name),
        IN_FOLDER(a_setting_shows_the_names),
        IN_FOLDER(a_broken_store_is_ten_lines_and_a_number),
        cmocka_unit_test(what_clients_do_wrong_is_no_line),
        IN_FOLDER(an_audit_that_cannot_be_written_is_told),
        cmocka_unit_test(floods_are_told_by_their_number),
        cmocka_unit_test(certificates_are_told_when_they_are_read_again),
    };
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("what is told", tests, NULL, NULL);
}

/* node.c: see node.h. Orders and replies are datagrams over a socket pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nodes/node.h"

/* ------------------------------------------------------------------ in the process */

typedef struct inside {
    const database *database;
    const char *url;
    sessile_store *store;
    sessile_session *session;
    sessile_policy *policy;
} inside;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void put(node_reply *r, const char *what, size_t size)
{
    size_t at = strlen(r->text), room = sizeof r->text - at - 1;
    if (at > 0 && room > 1) {
        r->text[at++] = ' ';
        room--;
    }
    if (size > room)
        size = room;
    memcpy(r->text + at, what, size);
    r->text[at + size] = '\0';
}

static void put_named(node_reply *r, sessile_id id, sessile_slice name)
{
    char text[300];
    int n = snprintf(text, sizeof text, "%08x:%.*s", id, (int)name.size, name.data);
    put(r, text, (size_t)n);
}

static void put_contents(node_reply *r, sessile_message *list, size_t count)
{
    r->number = count;
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(list[i].json.data, "\"content\":\"");
        at = at ? at + strlen("\"content\":\"") : "?\"";
        put(r, at, strcspn(at, "\""));
    }
    sessile_free(list);
}

static sessile_status turn(inside *in, const char *json, int on_conflict, node_reply *r,
                           sessile_error *err)
{
    sessile_run_options o;
    sessile_outcome outcome;
    sessile_run *run;
    sessile_need need;
    sessile_slice message = sessile_text(json);
    sessile_run_options_init(&o);
    o.on_conflict = (sessile_on_conflict)on_conflict;
    o.config.policy = in->policy;
    sessile_status status = sessile_turn_begin(&run, in->session, &message, 1, &o, err);
    if (status)
        return status;
    status = sessile_run_step(run, &need, err);
    if (!status && !sessile_run_outcome(run, &outcome, NULL))
        r->number = (uint64_t)outcome.verdict;
    sessile_run_free(run);
    return status;
}

static sessile_status obey(inside *in, const node_order *order, node_reply *r,
                           sessile_error *err)
{
    sessile_session_options so;
    sessile_status status = SESSILE_OK;
    sessile_message *messages;
    sessile_label_row *labels;
    sessile_checkpoint_row *points;
    sessile_checkpoint_options co;
    sessile_restored *restored;
    sessile_context_info info;
    size_t count;
    char json[1200];
    snprintf(json, sizeof json, "{\"role\":\"user\",\"content\":\"%s\"}", order->text);
    sessile_session_options_init(&so);
    so.id = sessile_text(order->text);
    switch (order->word) {
    case NODE_OPEN:
        return database_open(in->database, in->url, &in->store, err);
    case NODE_CREATE:
    case NODE_RESUME:
        (void)sessile_session_close(in->session, NULL);
        in->session = NULL;
        if (order->word == NODE_CREATE)
            return sessile_create(&in->session, in->store, &so, err);
        return sessile_resume(&in->session, in->store, &so, err);
    case NODE_APPEND:
        return sessile_append(in->session, sessile_text(json), &r->id, err);
    case NODE_TURN:
        return turn(in, json, order->number, r, err);
    case NODE_POLICY: {
        const sessile_policy_step step = {order->text, NULL, 0};
        return sessile_policy_load(&in->policy, in->store, &step, 1, err);
    }
    case NODE_HEAD:
        return sessile_head(in->session, &r->id, err);
    case NODE_CONTENTS:
        status = sessile_messages(in->session, NULL, &messages, &count, err);
        if (!status)
            put_contents(r, messages, count);
        return status;
    case NODE_CONTEXT:
        status =
            sessile_context(in->session, SESSILE_NO_ID, &messages, &count, &info, err);
        if (!status)
            put_contents(r, messages, count);
        return status;
    case NODE_LABEL:
        return sessile_label(in->session, order->id, sessile_text(order->text), err);
    case NODE_LABELS:
        status = sessile_labels(in->session, &labels, &count, err);
        for (size_t i = 0; !status && i < count; i++)
            put_named(r, labels[i].entry, labels[i].name);
        if (!status)
            sessile_free(labels);
        return status;
    case NODE_CHECKPOINT:
        memset(&co, 0, sizeof co);
        co.name = sessile_text(order->text);
        co.keep = 10000;
        return sessile_checkpoint(in->session, &co, &r->id, err);
    case NODE_CHECKPOINTS:
        status = sessile_checkpoints(in->session, NULL, &points, &count, err);
        for (size_t i = 0; !status && i < count; i++)
            put_named(r, points[i].entry, points[i].name);
        r->number = !status ? count : 0;
        if (!status)
            sessile_free(points);
        return status;
    case NODE_RESTORE:
        status = sessile_restore(in->session, order->id, 0, &restored, err);
        if (!status) {
            r->id = restored->head;
            sessile_free(restored);
        }
        return status;
    case NODE_TIMEOUT:
        return sessile_session_set_timeout(in->session, order->number, err);
    case NODE_WATCH: {
        sessile_id seen = 0;
        int changed;
        status = sessile_session_watch(in->session, &seen, order->number, &changed, err);
        r->number = (uint64_t)changed;
        return status;
    }
    case NODE_SYNC:
        return sessile_session_sync(in->session, err);
    case NODE_CLOSE:
        status = sessile_session_close(in->session, err);
        in->session = NULL;
        return status;
    }
    return SESSILE_INVALID;
}

static void serve(int fd, const database *d, const char *url)
{
    inside in = {d, url, NULL, NULL, NULL};
    node_order order;
    while (recv(fd, &order, sizeof order, 0) == (ssize_t)sizeof order) {
        node_reply r;
        sessile_error err = {0};
        memset(&r, 0, sizeof r);
        double began = now();
        r.status = obey(&in, &order, &r, &err);
        r.at = now();
        r.ms = r.at - began;
        if (r.status)
            snprintf(r.text, sizeof r.text, "%s: %s", sessile_status_name(r.status),
                     err.message);
        if (send(fd, &r, sizeof r, MSG_NOSIGNAL) != (ssize_t)sizeof r)
            break;
    }
    _exit(0);
}

/* ------------------------------------------------------------------ outside */

void node_start(node *n, const database *d, const char *url)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    n->pid = fork();
    assert_true(n->pid >= 0);
    if (n->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* what the test has open, a proxy's connections too, is not this process's */
        for (int fd = 3; fd < 1024; fd++)
            if (fd != pair[1])
                close(fd);
        serve(pair[1], d, url);
    }
    close(pair[1]);
    n->fd = pair[0];
}

void node_kill(node *n)
{
    if (n->pid <= 0)
        return;
    kill(n->pid, SIGKILL);
    waitpid(n->pid, NULL, 0);
    close(n->fd);
    n->pid = 0;
}

void node_ask(const node *n, node_word word, sessile_id id, int number, const char *text)
{
    node_order order;
    memset(&order, 0, sizeof order);
    order.word = word;
    order.id = id;
    order.number = number;
    snprintf(order.text, sizeof order.text, "%s", text ? text : "");
    assert_int_equal(send(n->fd, &order, sizeof order, MSG_NOSIGNAL), sizeof order);
}

node_reply node_answer(const node *n)
{
    node_reply r;
    ssize_t got;
    do {
        got = recv(n->fd, &r, sizeof r, 0);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof r)
        print_error("a node died\n");
    assert_int_equal(got, sizeof r);
    return r;
}

node_reply node_do(const node *n, node_word word, sessile_id id, int number,
                   const char *text)
{
    node_ask(n, word, id, number, text);
    return node_answer(n);
}

node_reply node_must(const node *n, node_word word, sessile_id id, int number,
                     const char *text)
{
    node_reply r = node_do(n, word, id, number, text);
    if (r.status)
        print_error("%d '%s': %s\n", (int)word, text ? text : "", r.text);
    assert_int_equal(r.status, SESSILE_OK);
    return r;
}

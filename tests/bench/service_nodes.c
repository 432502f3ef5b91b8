/*
 * service_nodes.c: servers as processes of their own, and a client of them: see
 * service_parts.h.
 *
 * The client is ours, on the main thread; a call turns its loop until it has ended.
 */
#include "bench/service_parts.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char key_of_store[] =
    "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/* ---------------------------------------------------------------------- servers */

static const char *program(void)
{
    static char path[4200];
    const char *build = getenv("SESSILE_BUILD");
    snprintf(path, sizeof path, "%s/libexec/sessile-server", build ? build : "build");
    return path;
}

const char *nodes_missing(void)
{
    static char why[4300];
    if (access(program(), X_OK) == 0)
        return NULL;
    snprintf(why, sizeof why, "there is no %s: make service", program());
    return why;
}

static void write_config(char path[4400], int i, const char *cert, const char *key)
{
    FILE *f;
    snprintf(path, 4400, "%s/node%d%s.lua", bench_folder, i, cert ? "-tls" : "");
    f = fopen(path, "we");
    if (!f)
        broken(path);
    fprintf(f, "return { serve = { listen = \"127.0.0.1:0\", name = \"node%d\"", i);
    if (cert)
        fprintf(f, ", cert = \"%s\", key = \"%s\", nodes_ca = \"%s\"", cert, key, cert);
    fprintf(f, " } }\n");
    fclose(f);
}

/* In the child. */
static void become_server(const char *config, const char *url, int out)
{
    char log[4500];
    snprintf(log, sizeof log, "%s.log", config);
    int err = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("SESSILE_CONFIG", config, 1);
    setenv("SESSILE_STORE", url, 1);
    setenv("SESSILE_KEY", key_of_store, 1);
    dup2(out, 1);
    dup2(err, 2);
    execl(program(), program(), "serve", (char *)NULL);
    _exit(127);
}

/* Reads where it serves from the one line that it prints. */
static void read_address(int from, const char *config, char out[80])
{
    char line[5000];
    FILE *f = fdopen(from, "r");
    const char *at = NULL;
    if (f && fgets(line, sizeof line, f))
        at = strstr(line, " at 127.0.0.1:");
    if (!at || sscanf(at, " at %79[0-9.:]", out) != 1) {
        fprintf(stderr, "bench: a server does not start: see %s.log\n", config);
        exit(1);
    }
    fclose(f); /* it says no more */
}

static void start_one(nodes *n, int i, const char *url, const char *cert, const char *key)
{
    char config[4400];
    int ends[2];
    sessile_error err;
    write_config(config, i, cert, key);
    if (pipe2(ends, O_CLOEXEC) != 0)
        broken("pipe");
    n->node[i].pid = fork();
    if (n->node[i].pid < 0)
        broken("fork");
    if (n->node[i].pid == 0)
        become_server(config, url, ends[1]);
    close(ends[1]);
    read_address(ends[0], config, n->node[i].address);
    must(rpc_channel_open(&n->node[i].channel, n->loop, n->node[i].address, n->tls, NULL,
                          &err),
         &err);
}

/* Waits until each node names the same owner of some sessions, and each owns one. */
static void settle(const nodes *n)
{
    enum { SESSIONS = 12 };
    char id[32];
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(id, sizeof id, "settle-%d", i);
        client_session(n, 0, id);
    }
    for (int same = 0; !same;) {
        unsigned owners = 0;
        same = 1;
        for (int i = 0; i < SESSIONS && same; i++) {
            snprintf(id, sizeof id, "settle-%d", i);
            int first = client_owner(n, 0, id);
            owners |= 1u << first;
            for (int k = 1; k < n->count; k++)
                same &= client_owner(n, k, id) == first;
        }
        same &= owners == (1u << n->count) - 1;
        rpc_loop_turn(n->loop, 20);
    }
}

void nodes_start(nodes *n, int count, const char *url, const char *cert, const char *key)
{
    sessile_error err;
    memset(n, 0, sizeof *n);
    n->count = count;
    must(rpc_loop_open(&n->loop, NULL, NULL, &err), &err);
    if (cert) {
        rpc_tls_files files = {.ca = cert};
        must(rpc_tls_open(&n->tls, 0, &files, NULL, &err), &err);
    }
    for (int i = 0; i < count; i++)
        start_one(n, i, url, cert, key);
    settle(n);
}

void nodes_stop(nodes *n)
{
    for (int i = 0; i < n->count; i++) {
        rpc_channel_close(n->node[i].channel);
        kill(n->node[i].pid, SIGKILL); /* it would wait for its calls */
        waitpid(n->node[i].pid, NULL, 0);
    }
    rpc_loop_close(n->loop);
    if (n->tls)
        rpc_tls_drop(n->tls);
}

double nodes_resident(const nodes *n, int i)
{
    char path[64], line[256];
    double kib = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)n->node[i].pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %lf kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib * 1024;
}

/* ---------------------------------------------------------------------- calls */

static void message(void *ud, rpc_request *request, const void *data, size_t size)
{
    answer *a = ud;
    (void)request;
    a->messages++;
    if (a->message) {
        a->message(a, data, size);
    } else {
        a->kept_size = size < sizeof a->kept ? size : sizeof a->kept;
        memcpy(a->kept, data, a->kept_size);
    }
}

static void ended(void *ud, rpc_request *request, const rpc_result *result)
{
    answer *a = ud;
    const char *owner = rpc_request_header(request, "sessile-owner");
    /* A stream that is left is cancelled. */
    if (result->code != RPC_OK && result->code != RPC_CANCELLED) {
        fprintf(stderr, "bench: a call ends with %d: %s\n", (int)result->code,
                result->message);
        exit(1);
    }
    snprintf(a->owner, sizeof a->owner, "%s", owner ? owner : "");
    a->at_us = now_us();
    a->ended = 1;
    if (a->over)
        a->over(a);
}

void client_begin(const nodes *n, int i, const char *method,
                  const ProtobufCMessage *request, answer *a)
{
    static const rpc_replies replies = {message, ended, NULL};
    unsigned char bytes[4096];
    char path[128];
    sessile_error err;
    if (protobuf_c_message_get_packed_size(request) > sizeof bytes)
        broken("a request that large");
    size_t size = protobuf_c_message_pack(request, bytes);
    a->ended = 0;
    a->messages = a->kept_size = 0;
    snprintf(path, sizeof path, *method == '/' ? "%s" : "/sessile.v1.SessionService/%s",
             method);
    must(rpc_request_open(&a->request, n->node[i].channel, path, NULL, 0, UINT64_MAX,
                          &replies, a, &err),
         &err);
    rpc_request_send(a->request, bytes, size);
    rpc_request_end(a->request);
}

static void client_wait(const nodes *n, const answer *a)
{
    while (!a->ended)
        rpc_loop_turn(n->loop, 1000);
}

double client_call(const nodes *n, int i, const char *method,
                   const ProtobufCMessage *request, answer *a)
{
    double t = now_us();
    client_begin(n, i, method, request, a);
    client_wait(n, a);
    return a->at_us - t;
}

void client_leave(answer *a)
{
    if (!a->ended)
        rpc_request_cancel(a->request);
}

/* ---------------------------------------------------------------------- sessions */

void client_session(const nodes *n, int i, const char *id)
{
    SESSION_NAMES(names, id);
    Sessile__V1__CreateRequest request = SESSILE__V1__CREATE_REQUEST__INIT;
    answer a = {0};
    request.session = &names;
    request.open = 1;
    client_call(n, i, "CreateSession", &request.base, &a);
}

int client_owner(const nodes *n, int i, const char *id)
{
    SESSION_NAMES(names, id);
    Sessile__V1__SessionRequest request = SESSILE__V1__SESSION_REQUEST__INIT;
    answer a = {0};
    request.session = &names;
    client_call(n, i, "ResumeSession", &request.base, &a);
    for (int k = 0; *a.owner && k < n->count; k++)
        if (!strcmp(n->node[k].address, a.owner))
            return k;
    return i;
}

void client_append_begin(const nodes *n, int i, const char *id, int number, answer *a)
{
    char text[2 * MESSAGE];
    SESSION_NAMES(names, id);
    Sessile__V1__Json json = SESSILE__V1__JSON__INIT;
    Sessile__V1__AppendRequest request = SESSILE__V1__APPEND_REQUEST__INIT;
    sessile_slice made = message_text(text, number);
    text[made.size] = '\0';
    json.text = text;
    request.session = &names;
    request.message = &json;
    client_begin(n, i, "AppendMessage", &request.base, a);
}

double client_append(const nodes *n, int i, const char *id, int number, answer *a)
{
    double t = now_us();
    client_append_begin(n, i, id, number, a);
    client_wait(n, a);
    return a->at_us - t;
}

uint32_t written_entry(const answer *a)
{
    Sessile__V1__Written *w = sessile__v1__written__unpack(NULL, a->kept_size, a->kept);
    if (!w)
        broken("an answer");
    uint32_t entry = w->entry;
    sessile__v1__written__free_unpacked(w, NULL);
    return entry;
}

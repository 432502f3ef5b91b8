/*
 * rpc.c: a unary gRPC call of 600 bytes on loopback: the CPU that the server's thread
 * takes for it and how long it takes, beside a bare loop of nghttp2 that does the same;
 * TLS beside plain text; the memory of an idle connection.
 *
 * The client is ours for both, on the main thread.
 */
#include "bench/measure.h"

#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rpc/rpc.h"

enum { FRAMED = MESSAGE + 5 };

/* ---------------------------------------------------------------------- our server */

static void nothing(void *ud, rpc_call *call)
{
    (void)ud;
    (void)call;
}

static void echo(void *ud, rpc_call *call, const void *data, size_t size)
{
    (void)ud;
    rpc_send(call, data, size);
    rpc_finish(call, RPC_OK, NULL, NULL, 0);
}

static void gone(void *ud, rpc_call *call, rpc_gone why)
{
    (void)ud;
    (void)call;
    (void)why;
}

static const rpc_service service = {nothing, echo, nothing, nothing, gone};

typedef struct server {
    char address[64];
    pthread_t thread;
    rpc_loop *loop; /* NULL: it is bare */
    rpc_listener *listener;
    int listening, stop[2];
} server;

static void *run_ours(void *arg)
{
    rpc_loop_run(((server *)arg)->loop);
    return NULL;
}

static void start_ours(server *s, rpc_tls *tls)
{
    sessile_error err;
    must(rpc_loop_open(&s->loop, NULL, NULL, &err), &err);
    must(rpc_listen(&s->listener, &s->loop, 1, "127.0.0.1:0", tls, &service, NULL, &err),
         &err);
    snprintf(s->address, sizeof s->address, "%s", rpc_listener_address(s->listener));
    if (pthread_create(&s->thread, NULL, run_ours, s) != 0)
        broken("a thread");
}

/* ---------------------------------------------------------------------- a bare one */

/* What is kept of a stream: what came, and how much of it went back. */
typedef struct bare_stream {
    size_t size, sent;
    unsigned char data[FRAMED];
} bare_stream;

static int bare_begin(nghttp2_session *session, const nghttp2_frame *frame, void *ud)
{
    (void)ud;
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
                                             calloc(1, sizeof(bare_stream)));
    return 0;
}

static int bare_data(nghttp2_session *session, uint8_t flags, int32_t id,
                     const uint8_t *data, size_t size, void *ud)
{
    bare_stream *s = nghttp2_session_get_stream_user_data(session, id);
    (void)flags;
    (void)ud;
    if (s && size <= sizeof s->data - s->size) {
        memcpy(s->data + s->size, data, size);
        s->size += size;
    }
    return 0;
}

#define NV(n, v)                                                  \
    {                                                             \
        (uint8_t *)n, (uint8_t *)v, sizeof n - 1, sizeof v - 1, 0 \
    }

static ssize_t bare_fill(nghttp2_session *session, int32_t id, uint8_t *out, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *ud)
{
    static const nghttp2_nv trailer = NV("grpc-status", "0");
    bare_stream *s = source->ptr;
    size_t n = s->size - s->sent < room ? s->size - s->sent : room;
    (void)ud;
    memcpy(out, s->data + s->sent, n);
    s->sent += n;
    if (s->sent == s->size) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, id, &trailer, 1);
    }
    return (ssize_t)n;
}

static int bare_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ud)
{
    static const nghttp2_nv head[] = {NV(":status", "200"),
                                      NV("content-type", "application/grpc")};
    nghttp2_data_provider provider;
    (void)ud;
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
        (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS))
        return 0;
    provider.source.ptr =
        nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    provider.read_callback = bare_fill;
    nghttp2_submit_response(session, frame->hd.stream_id, head, 2, &provider);
    return 0;
}

static int bare_close(nghttp2_session *session, int32_t id, uint32_t error, void *ud)
{
    (void)error;
    (void)ud;
    free(nghttp2_session_get_stream_user_data(session, id));
    return 0;
}

static nghttp2_session *bare_session(void)
{
    static const nghttp2_settings_entry streams = {
        NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 256};
    nghttp2_session_callbacks *on;
    nghttp2_session *session;
    nghttp2_session_callbacks_new(&on);
    nghttp2_session_callbacks_set_on_begin_headers_callback(on, bare_begin);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(on, bare_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(on, bare_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(on, bare_close);
    if (nghttp2_session_server_new(&session, on, NULL))
        broken("nghttp2");
    nghttp2_session_callbacks_del(on);
    nghttp2_submit_settings(session, 0, &streams, 1);
    return session;
}

/* All that can be sent, in one write if it fits. */
static void bare_send(nghttp2_session *session, int fd)
{
    static unsigned char out[1 << 18];
    size_t size = 0;
    for (;;) {
        const uint8_t *data;
        ssize_t n = nghttp2_session_mem_send(session, &data);
        if (n > 0) {
            memcpy(out + size, data, (size_t)n);
            size += (size_t)n;
        }
        if (size && (n <= 0 || size > sizeof out - 20000)) {
            if (send(fd, out, size, MSG_NOSIGNAL) != (ssize_t)size)
                return;
            size = 0;
        }
        if (n <= 0)
            return;
    }
}

static void *run_bare(void *arg)
{
    static unsigned char in[65536];
    server *s = arg;
    int fd = accept(s->listening, NULL, NULL), one = 1, epoll = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN, .data = {.fd = fd}}, got[2];
    nghttp2_session *session = bare_session();

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
    e.data.fd = s->stop[0];
    epoll_ctl(epoll, EPOLL_CTL_ADD, s->stop[0], &e);
    bare_send(session, fd);
    for (;;) {
        ssize_t n;
        if (epoll_wait(epoll, got, 1, -1) < 1 || got[0].data.fd != fd)
            break;
        n = recv(fd, in, sizeof in, 0);
        if (n <= 0 || nghttp2_session_mem_recv(session, in, (size_t)n) < 0)
            break;
        bare_send(session, fd);
    }
    nghttp2_session_del(session);
    close(epoll);
    close(fd);
    return NULL;
}

static void start_bare(server *s)
{
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->loop = NULL;
    s->listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(s->listening, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(s->listening, 1) != 0 || pipe(s->stop) != 0 ||
        getsockname(s->listening, (struct sockaddr *)&at, &size) != 0)
        broken("a socket");
    snprintf(s->address, sizeof s->address, "127.0.0.1:%d", ntohs(at.sin_port));
    if (pthread_create(&s->thread, NULL, run_bare, s) != 0)
        broken("a thread");
}

static void stop(server *s)
{
    if (s->loop)
        rpc_loop_stop(s->loop);
    else if (write(s->stop[1], "", 1) != 1)
        broken("a pipe");
    pthread_join(s->thread, NULL);
    if (s->loop) {
        rpc_listener_close(s->listener);
        rpc_loop_close(s->loop);
    } else
        close(s->listening);
}

/* µs of processor time of its thread. */
static double cpu_us(const server *s)
{
    clockid_t clock;
    struct timespec t;
    if (pthread_getcpuclockid(s->thread, &clock) != 0 || clock_gettime(clock, &t) != 0)
        broken("the clock of a thread");
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---------------------------------------------------------------------- the client */

typedef struct client {
    server *to;
    rpc_loop *loop;
    rpc_channel *channel;
    size_t left, flying;
} client;

static void ask(client *c);

static void answered(void *ud, rpc_request *request, const void *data, size_t size)
{
    (void)ud;
    (void)request;
    (void)data;
    if (size != MESSAGE)
        broken("an answer");
}

static void ended(void *ud, rpc_request *request, const rpc_result *result)
{
    client *c = ud;
    (void)request;
    if (result->code != RPC_OK)
        broken(result->message);
    c->flying--;
    if (c->left)
        ask(c);
}

static const rpc_replies replies = {answered, ended, NULL};

static void ask(client *c)
{
    static const char message[MESSAGE];
    rpc_request *request;
    sessile_error err;
    c->left--;
    c->flying++;
    must(rpc_request_open(&request, c->channel, "/b.Echo/Unary", NULL, 0, UINT64_MAX,
                          &replies, c, &err),
         &err);
    rpc_request_send(request, message, sizeof message);
    rpc_request_end(request);
}

/* Makes n calls, so many at a time: µs a call, and of the server's processor time. */
static double calls(client *c, size_t n, size_t at_once, double *cpu)
{
    double t = now_us(), before = cpu_us(c->to);
    c->left = n;
    while (c->left && c->flying < at_once)
        ask(c);
    while (c->flying)
        rpc_loop_turn(c->loop, 1000);
    *cpu = (cpu_us(c->to) - before) / (double)n;
    return (now_us() - t) / (double)n;
}

static void client_open(client *c, server *to, rpc_tls *tls)
{
    sessile_error err;
    memset(c, 0, sizeof *c);
    c->to = to;
    must(rpc_loop_open(&c->loop, NULL, NULL, &err), &err);
    must(rpc_channel_open(&c->channel, c->loop, to->address, tls, NULL, &err), &err);
}

static void client_close(client *c)
{
    rpc_channel_close(c->channel);
    rpc_loop_close(c->loop);
}

/* ---------------------------------------------------------------------- rows */

static void bench_beside(client *ours, client *other, const char *what, const char *is,
                         size_t at_once, double cpu_wanted, double time_wanted)
{
    static samples cpu, cpu_other, time, time_other;
    size_t n = at_once > 1 ? 2000 : 500, i;
    char label[96];
    double a, b, used;

    for (i = 0; i < rounds(60); i++) {
        b = i & 1 ? calls(other, n, at_once, &used) : 0;
        if (i & 1)
            sample(&cpu_other, used);
        a = calls(ours, n, at_once, &used);
        sample(&cpu, used);
        if (!(i & 1)) {
            b = calls(other, n, at_once, &used);
            sample(&cpu_other, used);
        }
        sample(&time, a);
        sample(&time_other, b);
    }
    snprintf(label, sizeof label, "%s, %zu at once, CPU", what, at_once);
    row_print(&(row){label, &cpu, &cpu_other, NULL, is, cpu_wanted, 0});
    snprintf(label, sizeof label, "%s, %zu at once, time", what, at_once);
    row_print(&(row){label, &time, &time_other, NULL, is, time_wanted, 0});
}

/* Bytes of this process that are in memory. */
static double resident(void)
{
    unsigned long pages = 0, all = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu %lu", &all, &pages) != 2)
        broken("/proc/self/statm");
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void bench_memory(server *s, rpc_tls *tls, const char *what)
{
    enum { MANY = 400 };
    static client many[MANY];
    rpc_loop *loop;
    double cpu, before;
    sessile_error err;
    size_t i;

    must(rpc_loop_open(&loop, NULL, NULL, &err), &err);
    memset(many, 0, sizeof many);
    malloc_trim(0);
    before = resident();
    for (i = 0; i < MANY; i++) {
        many[i].to = s;
        many[i].loop = loop;
        must(rpc_channel_open(&many[i].channel, loop, s->address, tls, NULL, &err), &err);
        calls(&many[i], 1, 1, &cpu);
    }
    note("%s: an idle connection takes %.1f KiB, both ends together", what,
         (resident() - before) / MANY / 1024);
    for (i = 0; i < MANY; i++)
        rpc_channel_close(many[i].channel);
    rpc_loop_close(loop);
}

int main(int argc, char **argv)
{
    char cert[4400], key[4400];
    server plain, bare, sealed;
    client to_plain, to_bare, to_sealed;

    bench_begin(argc, argv);
    start_ours(&plain, NULL);
    start_bare(&bare);
    client_open(&to_plain, &plain, NULL);
    client_open(&to_bare, &bare, NULL);
    bench_beside(&to_plain, &to_bare, "call", "bare nghttp2", 1, 2, 0);
    bench_beside(&to_plain, &to_bare, "call", "bare nghttp2", 64, 2, 0);
    bench_memory(&plain, NULL, "plain");
    if (bench_certificate(cert, key, sizeof cert)) {
        rpc_tls_files files = {cert, key, NULL, NULL}, ca = {NULL, NULL, cert, NULL};
        rpc_tls *tls, *believed;
        sessile_error err;
        must(rpc_tls_open(&tls, 1, &files, NULL, &err), &err);
        must(rpc_tls_open(&believed, 0, &ca, NULL, &err), &err);
        start_ours(&sealed, tls);
        client_open(&to_sealed, &sealed, believed);
        bench_beside(&to_sealed, &to_plain, "TLS", "plain", 64, 0, 1.25);
        bench_memory(&sealed, believed, "TLS");
        client_close(&to_sealed);
        stop(&sealed);
        rpc_tls_drop(tls);
        rpc_tls_drop(believed);
    } else
        note("no row for TLS: there is no openssl command");
    client_close(&to_plain);
    client_close(&to_bare);
    stop(&plain);
    stop(&bare);
    return bench_end();
}

/*
 * test_network.c: the network of the other tests does what it is told, and nothing else.
 *
 * No test waits for a time to pass. That nothing arrives is seen by the network's own
 * count of what it withheld; that something arrives late, against the clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/network.h"

enum { HOSTS = 3, PORT = 7000, MANY = 1000 };

typedef struct scene {
    network *net;
    int host[HOSTS];
    int udp[HOSTS]; /* bound to PORT */
} scene;

static struct sockaddr_in address_of(const scene *s, int host)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    inet_pton(AF_INET, network_address(s->net, s->host[host]), &in.sin_addr);
    return in;
}

static void scene_fill(scene *s)
{
    static const char *const names[HOSTS] = {"one", "two", "three"};
    for (int i = 0; i < HOSTS; i++) {
        int room = 4 << 20;
        s->host[i] = network_host(s->net, names[i]);
        s->udp[i] = network_socket(s->net, s->host[i], SOCK_DGRAM);
        setsockopt(s->udp[i], SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
        struct sockaddr_in in = address_of(s, i);
        assert_int_equal(bind(s->udp[i], (struct sockaddr *)&in, sizeof in), 0);
    }
}

static int scene_open(void **state)
{
    const char *why;
    scene *s = calloc(1, sizeof *s);
    *state = s;
    s->net = network_open(0, &why);
    if (s->net)
        scene_fill(s);
    else
        print_message("# there is no network: %s\n", why);
    return 0;
}

static int scene_close(void **state)
{
    scene *s = *state;
    for (int i = 0; s->net && i < HOSTS; i++)
        close(s->udp[i]);
    network_close(s->net);
    free(s);
    return 0;
}

/* The scene, or the test is skipped. */
static scene *needed(void **state)
{
    scene *s = *state;
    if (!s->net)
        skip();
    return s;
}

/* ------------------------------------------------------------------ datagrams */

/* In steps, so that neither socket's buffer is ever full. */
static void send_number(scene *s, int from, int to, uint32_t number)
{
    struct sockaddr_in in = address_of(s, to);
    assert_int_equal(sendto(s->udp[from], &number, sizeof number, 0,
                            (struct sockaddr *)&in, sizeof in),
                     sizeof number);
}

/* The next that came, or -1 when none is there. */
static int64_t receive_number(scene *s, int at, int wait)
{
    struct pollfd p = {.fd = s->udp[at], .events = POLLIN};
    uint32_t number;
    if (!wait && poll(&p, 1, 0) == 0)
        return -1;
    assert_int_equal(recv(s->udp[at], &number, sizeof number, 0), sizeof number);
    return number;
}

/* Waits until `count` packets from one host have met their end: all sent before it. */
static network_counts settled(scene *s, int from, int to, uint64_t count)
{
    for (;; usleep(1000)) {
        network_counts c = network_count(s->net, s->host[from], s->host[to]);
        if (c.arrived + c.cut + c.lost + c.crowded >= count)
            return c;
    }
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1000 + (double)t.tv_nsec / 1e6;
}

/* The shortest of some round trips, ms. */
static double round_trip(scene *s)
{
    double best = 1e9;
    for (uint32_t i = 0; i < 20; i++) {
        double began = now_ms(), took;
        send_number(s, 0, 1, i);
        assert_int_equal(receive_number(s, 1, 1), i);
        send_number(s, 1, 0, i);
        assert_int_equal(receive_number(s, 0, 1), i);
        took = now_ms() - began;
        best = took < best ? took : best;
    }
    return best;
}

static void each_host_hears_each_other(void **state)
{
    scene *s = needed(state);
    for (int from = 0; from < HOSTS; from++)
        for (int to = 0; to < HOSTS; to++) {
            send_number(s, from, to, (uint32_t)(10 * from + to));
            assert_int_equal(receive_number(s, to, 1), 10 * from + to);
        }
    assert_string_equal(network_address(s->net, s->host[2]), "10.77.0.3");
    assert_int_equal(network_host(s->net, "two"), s->host[1]);
}

static void a_one_way_cut_withholds_one_way(void **state)
{
    scene *s = needed(state);
    network_one_way(s->net, s->host[1], s->host[0], &(network_fault){.cut = 1});
    for (uint32_t i = 0; i < 10; i++) {
        send_number(s, 0, 1, i);
        assert_int_equal(receive_number(s, 1, 1), i);
        send_number(s, 1, 0, i);
    }
    assert_int_equal(settled(s, 1, 0, 10).cut, 10);
    assert_int_equal(receive_number(s, 0, 0), -1);
    /* the third hears both */
    send_number(s, 1, 2, 1);
    assert_int_equal(receive_number(s, 2, 1), 1);
    network_mend(s->net, s->host[0], s->host[1]);
    send_number(s, 1, 0, 99);
    assert_int_equal(receive_number(s, 0, 1), 99);
}

static void an_isolated_host_hears_nobody_until_it_joins(void **state)
{
    scene *s = needed(state);
    network_isolate(s->net, s->host[2]);
    for (int i = 0; i < 2; i++) {
        send_number(s, i, 2, 1);
        send_number(s, 2, i, 1);
        assert_int_equal(settled(s, i, 2, 1).cut, 1);
        assert_int_equal(settled(s, 2, i, 1).cut, 1);
    }
    send_number(s, 0, 1, 5);
    assert_int_equal(receive_number(s, 1, 1), 5);
    network_join(s->net, s->host[2]);
    send_number(s, 0, 2, 6);
    assert_int_equal(receive_number(s, 2, 1), 6);
}

static void a_cut_takes_what_is_on_its_way(void **state)
{
    scene *s = needed(state);
    network_fault late = {.delay_us = 3600000000};
    network_one_way(s->net, s->host[0], s->host[1], &late);
    send_number(s, 0, 1, 1);
    while (network_count(s->net, s->host[0], s->host[1]).waiting == 0)
        usleep(1000);
    network_cut(s->net, s->host[0], s->host[1]);
    assert_int_equal(network_count(s->net, s->host[0], s->host[1]).cut, 1);
    assert_int_equal(receive_number(s, 1, 0), -1);
}

static void a_delayed_packet_comes_so_much_later(void **state)
{
    scene *s = needed(state);
    double plain = round_trip(s);
    network_link(s->net, s->host[0], s->host[1], &(network_fault){.delay_us = 20000});
    double late = round_trip(s);
    assert_true(late >= 40);
    assert_true(late > 4 * plain);
    network_mend(s->net, s->host[0], s->host[1]);
    print_message(
        "# figure: round trip through the test's network, ms = %.3f; with 20 ms "
        "each way = %.3f\n",
        plain, late);
}

static void jitter_lets_packets_overtake(void **state)
{
    scene *s = needed(state);
    int64_t last = -1;
    int overtaken = 0;
    uint8_t seen[200] = {0};
    network_fault fault = {.delay_us = 5000, .jitter_us = 5000};
    network_one_way(s->net, s->host[0], s->host[1], &fault);
    for (uint32_t i = 0; i < sizeof seen; i++)
        send_number(s, 0, 1, i);
    for (size_t i = 0; i < sizeof seen; i++) {
        int64_t got = receive_number(s, 1, 1);
        overtaken += got < last;
        seen[got]++;
        last = got;
    }
    assert_true(overtaken > 0);
    for (size_t i = 0; i < sizeof seen; i++)
        assert_int_equal(seen[i], 1);
}

/* Which of MANY arrive, and how often. */
static void send_many(scene *s, const network_fault *fault, uint8_t seen[MANY])
{
    int64_t got;
    memset(seen, 0, MANY);
    network_one_way(s->net, s->host[0], s->host[1], fault);
    uint64_t before = settled(s, 0, 1, 0).arrived;
    for (uint32_t i = 0; i < MANY; i++) {
        send_number(s, 0, 1, i);
        if (i % 50 == 49) /* no more than the kernel keeps for a host */
            settled(s, 0, 1, before + i + 1);
        while ((got = receive_number(s, 1, 0)) >= 0)
            seen[got]++;
    }
    settled(s, 0, 1, before + MANY);
    while ((got = receive_number(s, 1, 0)) >= 0)
        seen[got]++;
}

static void the_same_packets_are_lost_with_the_same_seed(void **state)
{
    uint8_t seen[2][MANY];
    network_counts counts;
    (void)needed(state);
    for (int run = 0; run < 2; run++) {
        const char *why;
        scene s = {.net = network_open(4711, &why)};
        assert_non_null(s.net);
        scene_fill(&s);
        send_many(&s, &(network_fault){.loss = 0.3}, seen[run]);
        counts = network_count(s.net, s.host[0], s.host[1]);
        for (int i = 0; i < HOSTS; i++)
            close(s.udp[i]);
        network_close(s.net);
    }
    assert_memory_equal(seen[0], seen[1], MANY);
    assert_int_equal(counts.arrived + counts.lost, MANY);
    assert_in_range(counts.lost, MANY / 5, MANY * 2 / 5);
}

static void a_doubled_packet_comes_twice(void **state)
{
    scene *s = needed(state);
    uint8_t seen[MANY];
    send_many(s, &(network_fault){.doubled = 1}, seen);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(seen[i], 2);
    assert_int_equal(network_count(s->net, s->host[0], s->host[1]).doubled, MANY);
}

/* ------------------------------------------------------------------ TCP */

typedef struct stream {
    int listener, from, to;
} stream;

static stream stream_open(scene *s, int from, int to)
{
    stream t = {.listener = network_socket(s->net, s->host[to], SOCK_STREAM),
                .from = network_socket(s->net, s->host[from], SOCK_STREAM)};
    struct sockaddr_in in = address_of(s, to);
    assert_int_equal(bind(t.listener, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(t.listener, 1), 0);
    assert_int_equal(connect(t.from, (struct sockaddr *)&in, sizeof in), 0);
    t.to = accept(t.listener, NULL, NULL);
    assert_true(t.to >= 0);
    return t;
}

static void stream_close(stream *t)
{
    close(t->from);
    close(t->to);
    close(t->listener);
}

static uint8_t byte_at(size_t n)
{
    return (uint8_t)(n * 2654435761u >> 13);
}

/* Sends a pattern through the stream, and checks each byte that comes out. */
static void carry(stream *t, size_t size)
{
    static uint8_t out[1 << 16], in[1 << 16];
    size_t sent = 0, got = 0;
    fcntl(t->from, F_SETFL, O_NONBLOCK);
    while (got < size) {
        struct pollfd p[2] = {{.fd = t->to, .events = POLLIN},
                              {.fd = sent < size ? t->from : -1, .events = POLLOUT}};
        poll(p, 2, -1);
        if (p[1].revents) {
            size_t n = size - sent < sizeof out ? size - sent : sizeof out;
            for (size_t i = 0; i < n; i++)
                out[i] = byte_at(sent + i);
            ssize_t wrote = send(t->from, out, n, MSG_NOSIGNAL);
            assert_true(wrote > 0 || errno == EAGAIN);
            sent += wrote > 0 ? (size_t)wrote : 0;
        }
        if (p[0].revents) {
            ssize_t n = recv(t->to, in, sizeof in, 0);
            assert_true(n > 0);
            for (size_t i = 0; i < (size_t)n; i++)
                if (in[i] != byte_at(got + i))
                    fail_msg("byte %zu is another one", got + i);
            got += (size_t)n;
        }
    }
    struct pollfd more = {.fd = t->to, .events = POLLIN};
    assert_int_equal(poll(&more, 1, 0), 0);
}

static void tcp_goes_on_after_a_cut(void **state)
{
    scene *s = needed(state);
    stream t = stream_open(s, 0, 1);
    char byte = 0;
    carry(&t, 1000);
    network_cut(s->net, s->host[0], s->host[1]);
    uint64_t before = settled(s, 0, 1, 0).cut;
    assert_int_equal(send(t.from, "x", 1, 0), 1);
    /* it was sent, and again, and nothing came */
    while (settled(s, 0, 1, 0).cut < before + 3)
        usleep(1000);
    struct pollfd p = {.fd = t.to, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0);
    network_mend(s->net, s->host[0], s->host[1]);
    assert_int_equal(recv(t.to, &byte, 1, 0), 1);
    assert_int_equal(byte, 'x');
    carry(&t, 1000);
    stream_close(&t);
}

static void tcp_loses_nothing_on_a_bad_link(void **state)
{
    scene *s = needed(state);
    stream t = stream_open(s, 0, 1);
    network_fault bad = {
        .delay_us = 1000, .jitter_us = 500, .loss = 0.05, .doubled = 0.05};
    network_link(s->net, s->host[0], s->host[1], &bad);
    carry(&t, 512 << 10);
    network_counts c = network_count(s->net, s->host[0], s->host[1]);
    assert_true(c.lost > 0 && c.doubled > 0);
    stream_close(&t);
}

static void it_is_fast_enough_for_a_database(void **state)
{
    scene *s = needed(state);
    stream t = stream_open(s, 0, 1);
    size_t size = 64 << 20;
    double began = now_ms();
    carry(&t, size);
    print_message("# figure: TCP through the test's network, Mbit/s = %.0f\n",
                  (double)size * 8 / 1000 / (now_ms() - began));
    stream_close(&t);
}

/* ------------------------------------------------------------------ programs */

static void a_program_runs_in_its_host(void **state)
{
    scene *s = needed(state);
    const char *const right[] = {"grep", "-qwF", "10.77.0.2", "/proc/net/fib_trie", NULL};
    const char *const absent[] = {"no-such-program", NULL};
    assert_int_equal(network_do(s->net, s->host[1], right), 0);
    assert_int_equal(network_do(s->net, s->host[0], right), 1);
    assert_int_equal(network_do(s->net, s->host[0], absent), 127);
    char command[400];
    snprintf(command, sizeof command, "%s grep -qwF 10.77.0.2 /proc/net/fib_trie",
             network_prefix(s->net, s->host[1]));
    assert_int_equal(system(command), 0);
}

/* A host that answers numbers, by a process whose parent has gone. */
static void start_echo(scene *s, int host)
{
    pid_t pid = network_fork(s->net, s->host[host]);
    if (pid == 0) {
        if (setsid() < 0 || fork() != 0)
            _exit(0);
        for (;;) {
            uint32_t number;
            struct sockaddr_in from;
            socklen_t size = sizeof from;
            if (recvfrom(s->udp[host], &number, sizeof number, 0,
                         (struct sockaddr *)&from, &size) == sizeof number)
                sendto(s->udp[host], &number, sizeof number, 0, (struct sockaddr *)&from,
                       size);
        }
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_host_freezes_wakes_and_dies_whole(void **state)
{
    scene *s = needed(state);
    start_echo(s, 1);
    send_number(s, 0, 1, 1);
    assert_int_equal(receive_number(s, 0, 1), 1);
    network_signal(s->net, s->host[1], SIGSTOP);
    send_number(s, 0, 1, 2);
    settled(s, 0, 1, 2);
    assert_int_equal(receive_number(s, 0, 0), -1);
    network_signal(s->net, s->host[1], SIGCONT);
    assert_int_equal(receive_number(s, 0, 1), 2);
    network_signal(s->net, s->host[1], SIGKILL);
    send_number(s, 0, 1, 3);
    assert_int_equal(receive_number(s, 1, 1), 3); /* nobody else takes it any more */
}

/* Leaves a process in a host that has no parent any more and is stopped, says its number
 * through `out`, and is killed. */
_Noreturn static void leave_one_behind(int out)
{
    const char *why;
    int ready[2];
    pid_t left;
    network *net = network_open(1, &why);
    if (!net || pipe(ready))
        _exit(1);
    pid_t pid = network_fork(net, network_host(net, "one"));
    if (pid == 0) {
        if (setsid() < 0 || fork() != 0)
            _exit(0);
        pid = getpid();
        if (write(ready[1], &pid, sizeof pid) != sizeof pid)
            _exit(1);
        raise(SIGSTOP);
        _exit(0);
    }
    if (read(ready[0], &left, sizeof left) == sizeof left)
        (void)!write(out, &left, sizeof left);
    waitpid(pid, NULL, 0);
    raise(SIGKILL);
    _exit(1);
}

static void nothing_outlives_a_test_that_is_killed(void **state)
{
    int ends[2];
    pid_t left = 0;
    (void)needed(state);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t test = fork();
    if (test == 0)
        leave_one_behind(ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &left, sizeof left), sizeof left);
    close(ends[0]);
    assert_int_equal(waitpid(test, NULL, 0), test);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)left);
    while (access(path, F_OK) == 0)
        usleep(1000);
}

/* What this program prints when it is started with "clocks": seconds of both clocks. */
static int print_clocks(void)
{
    struct timespec day, steady;
    clock_gettime(CLOCK_REALTIME, &day);
    clock_gettime(CLOCK_MONOTONIC, &steady);
    printf("%lld %lld\n", (long long)day.tv_sec, (long long)steady.tv_sec);
    return 0;
}

static void a_clock_is_wrong_in_one_process(void **state)
{
    scene *s = needed(state);
    static const long wrong[] = {2 * 3600, -26 * 3600};
    const char *tmp = getenv("TMPDIR");
    for (size_t i = 0; i < 2; i++) {
        const char *why, *const argv[] = {"/proc/self/exe", "clocks", NULL};
        const char *const *extra = network_clock(wrong[i], &why);
        char log[600];
        long long day = 0, steady = 0, before = time(NULL),
                  up = (long long)now_ms() / 1000;
        if (!extra) {
            print_message("# %s\n", why);
            skip();
        }
        snprintf(log, sizeof log, "%s/clocks.%d.%zu", tmp ? tmp : "/tmp", (int)getpid(),
                 i);
        network_program program = {.argv = argv, .extra = extra, .log = log};
        pid_t pid = network_run(s->net, s->host[0], &program);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        FILE *said = fopen(log, "r");
        assert_non_null(said);
        assert_int_equal(fscanf(said, "%lld %lld", &day, &steady), 2);
        fclose(said);
        unlink(log);
        assert_in_range(day - wrong[i], before, time(NULL));
        assert_in_range(steady, up, (long long)now_ms() / 1000);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "clocks") == 0)
        return print_clocks();
#define EACH(test) cmocka_unit_test_setup_teardown(test, scene_open, scene_close)
    const struct CMUnitTest tests[] = {
        EACH(each_host_hears_each_other),
        EACH(a_one_way_cut_withholds_one_way),
        EACH(an_isolated_host_hears_nobody_until_it_joins),
        EACH(a_cut_takes_what_is_on_its_way),
        EACH(a_delayed_packet_comes_so_much_later),
        EACH(jitter_lets_packets_overtake),
        EACH(the_same_packets_are_lost_with_the_same_seed),
        EACH(a_doubled_packet_comes_twice),
        EACH(tcp_goes_on_after_a_cut),
        EACH(tcp_loses_nothing_on_a_bad_link),
        EACH(it_is_fast_enough_for_a_database),
        EACH(a_program_runs_in_its_host),
        EACH(a_host_freezes_wakes_and_dies_whole),
        EACH(nothing_outlives_a_test_that_is_killed),
        EACH(a_clock_is_wrong_in_one_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* redis.c: see redis.h. */
#include "support/redis.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIES = 500, PAUSE_US = 10000, ANSWER_MS = 2000 };

static int call_server(const redis_server *s)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    int tcp = s->port && !s->net,
        fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(local.sun_path, s->socket, strnlen(s->socket, sizeof local.sun_path - 1));
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int failed = tcp ? connect(fd, (struct sockaddr *)&in, sizeof in)
                     : connect(fd, (struct sockaddr *)&local, sizeof local);
    if (failed) {
        close(fd);
        return -1;
    }
    return fd;
}

const char *redis_say(const redis_server *s, const void *command, size_t size)
{
    static char answer[1024];
    struct pollfd p = {.fd = call_server(s), .events = POLLIN};
    ssize_t got = -1;
    if (p.fd >= 0 && send(p.fd, command, size, MSG_NOSIGNAL) == (ssize_t)size &&
        poll(&p, 1, ANSWER_MS) > 0)
        got = read(p.fd, answer, sizeof answer - 1);
    if (p.fd >= 0)
        close(p.fd);
    answer[got > 0 ? got : 0] = '\0';
    return answer;
}

void redis_kill(redis_server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
}

void redis_again(redis_server *s)
{
    char port[16];
    const char *address = s->net ? network_address(s->net, s->host) : "127.0.0.1";
    const char *secret = s->password[0] ? "--requirepass" : NULL;
    /* clang-format off */
    const char *const arguments[] = {
        "redis-server", "--port", port, "--bind", address, "--protected-mode", "no",
        "--unixsocket", s->socket, "--save", "", "--appendonly", "no", "--dir", s->folder,
        "--loglevel", "warning", "--logfile", "log", secret, s->password, NULL};
    /* clang-format on */
    pid_t parent = getpid();
    snprintf(port, sizeof port, "%d", s->port);
    unlink(s->socket);
    s->pid = s->net ? network_fork(s->net, s->host) : fork();
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        unsetenv("LD_PRELOAD"); /* what a sanitizer preloads is not for it */
        if (getppid() == parent)
            execvp("redis-server", (char *const *)arguments);
        _exit(127);
    }
    for (int i = 0; i < TRIES; i++) {
        const char *said = redis_say(s, "PING\r\n", 6);
        if (said[0] == '+' || said[0] == '-')
            return;
        usleep(PAUSE_US);
    }
    fail_msg("redis-server does not answer at %s", s->url);
}

/* A port that nobody has. */
static int free_port(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    socklen_t size = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &size), 0);
    close(fd);
    return ntohs(in.sin_port);
}

/* Not started yet. */
static redis_server *redis_new(void)
{
    const char *tmp = getenv("TMPDIR");
    if (system("command -v redis-server >/dev/null") != 0) {
        print_message("# there is no redis-server: apt-get install redis-server\n");
        skip();
    }
    redis_server *s = calloc(1, sizeof *s);
    /* a socket's path has at most 107 bytes */
    snprintf(s->folder, sizeof s->folder, "%s/redis.XXXXXX",
             tmp && strlen(tmp) < 80 ? tmp : "/tmp");
    assert_non_null(mkdtemp(s->folder));
    snprintf(s->socket, sizeof s->socket, "%s/s", s->folder);
    return s;
}

redis_server *redis_needed(const char *password)
{
    redis_server *s = redis_new();
    snprintf(s->url, sizeof s->url, "redis://%s", s->socket);
    if (password) {
        s->port = free_port();
        snprintf(s->password, sizeof s->password, "%s", password);
        snprintf(s->url, sizeof s->url, "redis://:%s@127.0.0.1:%d/1", password, s->port);
    }
    redis_again(s);
    return s;
}

redis_server *redis_needed_in(network *n, int host)
{
    redis_server *s = redis_new();
    s->net = n;
    s->host = host;
    s->port = 6379;
    snprintf(s->url, sizeof s->url, "redis://%s:%d", network_address(n, host), s->port);
    redis_again(s);
    return s;
}

void redis_free(redis_server *s)
{
    char command[300];
    redis_kill(s);
    snprintf(command, sizeof command, "rm -rf '%s'", s->folder);
    (void)!system(command);
    free(s);
}

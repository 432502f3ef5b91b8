/*
 * os_process.c: starts other processes, exchanges bytes with them, ends them.
 *
 * Programs are started with posix_spawn, not with fork: a fork of the host copies
 * locks that other threads hold. Must never leave a child behind: the caller that
 * spawns also kills.
 */
#include "base/os_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int os_posix_spawn(void *ud, const char *path, uint32_t *pid)
{
    static char *const environment[] = {NULL};
    char *arguments[2];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int pair[2], error;
    pid_t child;

    (void)ud;
    *pid = 0;
    arguments[0] = (char *)(uintptr_t)path; /* not written to */
    arguments[1] = NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return -1;
    error = posix_spawn_file_actions_init(&actions);
    if (error)
        goto close_pair;
    error = posix_spawnattr_init(&attributes);
    if (error)
        goto free_actions;
    /* the host's signal mask and handlers are its own */
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    error = posix_spawn_file_actions_adddup2(&actions, pair[1], STDIN_FILENO);
    if (!error)
        error = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
                                                 O_WRONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    if (!error)
        error = posix_spawn(&child, path, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
free_actions:
    posix_spawn_file_actions_destroy(&actions);
close_pair:
    close(pair[1]);
    if (error) {
        close(pair[0]);
        errno = error;
        return -1;
    }
    *pid = (uint32_t)child;
    return pair[0];
}

/* 1 when fd is ready. Else 0 and errno: EAGAIN when it was not ready in time. */
static int is_ready(int fd, short event, int timeout_ms)
{
    struct pollfd p = {fd, event, 0};
    int got = poll(&p, 1, timeout_ms);
    if (got == 0 || (got < 0 && errno == EINTR))
        errno = EAGAIN;
    return got > 0;
}

int64_t os_posix_receive(void *ud, int fd, void *out, size_t size, int timeout_ms)
{
    (void)ud;
    return is_ready(fd, POLLIN, timeout_ms) ? recv(fd, out, size, MSG_DONTWAIT) : -1;
}

int64_t os_posix_send(void *ud, int fd, const void *data, size_t size, int timeout_ms)
{
    (void)ud;
    return is_ready(fd, POLLOUT, timeout_ms)
               ? send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL)
               : -1;
}

uint64_t os_posix_process_cpu_us(void *ud, uint32_t pid)
{
    struct timespec t;
    clockid_t clock;
    (void)ud;
    if (clock_getcpuclockid((pid_t)pid, &clock) || clock_gettime(clock, &t))
        return 0;
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void os_posix_kill(void *ud, uint32_t pid)
{
    (void)ud;
    kill((pid_t)pid, SIGKILL);
    while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

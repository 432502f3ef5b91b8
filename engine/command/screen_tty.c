/*
 * screen_tty.c: the terminal's modes, and the signals that end, stop or resize a program.
 *
 * Restores the terminal whenever the program ends or stops: a return, exit(), SIGINT,
 * SIGTERM, SIGHUP, SIGQUIT, a crash, SIGTSTP. Must never allocate or call ncurses in a
 * signal handler: handlers write what was prepared before.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "command/screen.h"

/* Those that end the process come first. */
static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,    SIGQUIT, SIGABRT, SIGSEGV,
                              SIGBUS,  SIGFPE,  SIGILL,    SIGTRAP, SIGSYS,  SIGUSR1,
                              SIGUSR2, SIGALRM, SIGXCPU,   SIGXFSZ, SIGPIPE, SIGPROF,
                              SIGPOLL, SIGPWR,  SIGVTALRM, SIGTSTP, SIGCONT, SIGWINCH};
enum { SIGNALS = sizeof signals / sizeof *signals, ENDING = SIGNALS - 3 };

/* A signal handler has nothing but what is static. */
static struct {
    volatile sig_atomic_t is_up, is_resized, is_resumed;
    int fd;
    pid_t owner; /* a child that it began has no say */
    struct termios before, during;
    struct sigaction old[SIGNALS];
    sigset_t mask;
    size_t enter_size, leave_size;
    char enter[512], leave[512];
} tty;

static void write_tty(const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(tty.fd, bytes, size);
        if (n < 0 && errno != EINTR)
            return;
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        }
    }
}

/* ----------------------------------------------------------------------- in handlers */

static void leave(void)
{
    write_tty(tty.leave, tty.leave_size);
    tcsetattr(tty.fd, TCSANOW, &tty.before);
}

static int is_in_background(void)
{
    pid_t group = tcgetpgrp(tty.fd);
    return group > 0 && group != getpgrp();
}

static void come_back(void)
{
    if (tty.is_up && !is_in_background()) {
        tcsetattr(tty.fd, TCSANOW, &tty.during);
        write_tty(tty.enter, tty.enter_size);
    }
    tty.is_resumed = 1;
}

static void handle(int number, void (*handler)(int), struct sigaction *old)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigfillset(&action.sa_mask);
    sigaction(number, &action, old);
}

/* Ends the process as the signal does by default, after restoring the terminal. */
static void on_end(int number)
{
    int saved = errno;
    if (tty.is_up && getpid() == tty.owner)
        leave();
    tty.is_up = 0;
    for (int i = 0; i < ENDING; i++)
        if (signals[i] == number)
            sigaction(number, &tty.old[i], NULL);
    errno = saved;
    raise(number); /* comes when this handler returns */
}

/* Does to the process what the signal does by default. */
static void stop_by(int number)
{
    struct sigaction ours;
    sigset_t one, mask;
    handle(number, SIG_DFL, &ours);
    sigemptyset(&one);
    sigaddset(&one, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &one, &mask); /* stops here */
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigaction(number, &ours, NULL);
}

static void on_stop(int number)
{
    int saved = errno;
    leave();
    stop_by(number);
    come_back();
    errno = saved;
}

static void on_continue(int number)
{
    int saved = errno;
    (void)number;
    come_back();
    errno = saved;
}

static void on_resize(int number)
{
    (void)number;
    tty.is_resized = 1;
}

/* ------------------------------------------------------------------------ the screen */

static void at_exit(void)
{
    if (tty.is_up) {
        leave();
        screen_tty_restore();
    }
}

int screen_tty_save(int fd)
{
    static int registered;
    sigset_t ours;
    if (!registered && atexit(at_exit) != 0)
        return ENOMEM;
    registered = 1;
    if (tcgetattr(fd, &tty.before) != 0)
        return errno;
    tty.fd = fd;
    tty.owner = getpid();
    tty.is_resized = tty.is_resumed = 0;
    sigemptyset(&ours);
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(signals[i], NULL, &tty.old[i]);
        sigaddset(&ours, signals[i]);
    }
    sigprocmask(SIG_BLOCK, &ours, &tty.mask);
    return 0;
}

/* Copies as many as there is room for. */
static size_t copy_bytes(char *room, size_t size, const char *bytes, size_t count)
{
    if (count > size)
        count = size;
    memcpy(room, bytes, count);
    return count;
}

void screen_tty_entered(const char *enter, size_t enter_size, const char *leave_bytes,
                        size_t leave_size)
{
    tty.enter_size = copy_bytes(tty.enter, sizeof tty.enter, enter, enter_size);
    tty.leave_size = copy_bytes(tty.leave, sizeof tty.leave, leave_bytes, leave_size);
    tcgetattr(tty.fd, &tty.during);
    for (int i = 0; i < SIGNALS; i++) {
        /* An ignored signal (nohup) stays ignored. */
        if (i < ENDING && tty.old[i].sa_handler != SIG_IGN)
            handle(signals[i], on_end, NULL);
    }
    if (tty.old[ENDING].sa_handler != SIG_IGN)
        handle(SIGTSTP, on_stop, NULL);
    handle(SIGCONT, on_continue, NULL);
    handle(SIGWINCH, on_resize, NULL);
    tty.is_up = 1;
    sigprocmask(SIG_SETMASK, &tty.mask, NULL);
}

void screen_tty_restore(void)
{
    sigset_t ours, mask;
    sigemptyset(&ours);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&ours, signals[i]);
    sigprocmask(SIG_BLOCK, &ours, &mask);
    tcsetattr(tty.fd, TCSANOW, &tty.before);
    if (!tty.is_up)
        mask = tty.mask;
    tty.is_up = 0;
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &tty.old[i], NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
}

int screen_tty_event(void)
{
    if (tty.is_resumed) {
        tty.is_resumed = 0;
        return SCREEN_RESUMED;
    }
    if (tty.is_resized) {
        tty.is_resized = 0;
        return SCREEN_RESIZED;
    }
    return SCREEN_NOTHING;
}

int screen_tty_wait(int timeout_ms)
{
    struct pollfd one = {.fd = tty.fd, .events = POLLIN};
    struct timespec time = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    sigset_t quiet, mask;
    int n = 0;

    /* A signal between the look at the flags and the wait would be seen too late. */
    sigemptyset(&quiet);
    sigaddset(&quiet, SIGWINCH);
    sigaddset(&quiet, SIGCONT);
    sigaddset(&quiet, SIGTSTP);
    sigprocmask(SIG_BLOCK, &quiet, &mask);
    if (!tty.is_resized && !tty.is_resumed)
        n = ppoll(&one, 1, timeout_ms < 0 ? NULL : &time, &mask);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (n < 0)
        return errno == EINTR ? 0 : -1;
    if (n == 0)
        return 0;
    return one.revents & POLLIN ? 1 : -1;
}

void screen_tty_foreground(void)
{
    if (is_in_background()) {
        stop_by(SIGTTOU);
        come_back();
    }
}

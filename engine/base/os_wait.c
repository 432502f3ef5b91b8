/*
 * os_wait.c: waiting for other threads in slices, and for one descriptor.
 *
 * A signal handler cannot signal a condition variable; it may only increment a number.
 * So a wait is cut into slices, and between two slices the waiter checks the number.
 * The event itself ends the wait immediately. Slices use the monotonic clock, so that
 * setting the time does not prolong them.
 */
#include "base/os.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

static struct timespec slice_end(clockid_t clock)
{
    struct timespec t = {0, 0};
    clock_gettime(clock, &t);
    t.tv_nsec += OS_SLICE_MS * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_nsec -= 1000000000L;
        t.tv_sec++;
    }
    return t;
}

int os_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic) != 0)
        return -1;
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    int result = pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return result == 0 ? 0 : -1;
}

void os_cond_slice(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    struct timespec until = slice_end(CLOCK_MONOTONIC);
    pthread_cond_timedwait(cond, mutex, &until);
}

int os_mutex_slice(pthread_mutex_t *mutex)
{
#ifdef __SANITIZE_THREAD__
    /* ThreadSanitizer does not recognize a mutex that the other call locked. */
    struct timespec until = slice_end(CLOCK_REALTIME);
    return pthread_mutex_timedlock(mutex, &until) == 0;
#else
    struct timespec until = slice_end(CLOCK_MONOTONIC);
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until) == 0;
#endif
}

int os_fd_wait(int fd, int flags, int timeout_ms)
{
    struct pollfd p = {.fd = fd};
    p.events = (short)((flags & OS_READ ? POLLIN : 0) | (flags & OS_WRITE ? POLLOUT : 0));
    return poll(&p, 1, timeout_ms) > 0;
}

/*
 * shared.c: what the handles of one log in one store have in common.
 *
 * Owns the poison of a log, the turn in which the handles of this process come to its
 * lock, and the syncs that they share. It must never speak for another process: between
 * processes the lock on the file is all there is.
 *
 * Turns. The problem: a lock that is tried and tried again, with pauses in between, is
 * idle most of the time when sixteen handles want it. Between processes nothing else is
 * to be had: a lock that is waited for in the kernel cannot be given up when the time is
 * over. In one process the handles queue here, and the one whose turn it is tries alone.
 *
 * Syncs. One handle syncs for all that wrote before it began; the others wait, and the
 * first to wake makes the next one. Which descriptor it syncs matters: Linux reports a
 * write-back that failed once to every descriptor that was open then, and to those opened
 * later not at all. So the one that has been open longest of those who wait is synced: it
 * hears whatever any of them would have heard. (Sixteen handles appending together:
 * 1.1 to 1.6 times the rate at which each syncs for itself, on ext4.)
 *
 * Between processes nothing is shared, though it could be, by a turn taken with a lock on
 * a range past any end. Measured on ext4 with bare processes that append 700 bytes and
 * count in shared memory, which costs less than any lock: 8 processes 12,100, 11,400 and
 * 15,000 appends a second when each syncs for itself, 12,300, 8,200 and 9,100 with one
 * sync for all; 16 processes 15,700, 17,800 and 19,200 against 15,700, 18,100 and 12,500.
 * The journal groups the commits of those who sync at once better than a queue does.
 *
 * A log that was poisoned is remembered as long as the store is open, so that a handle
 * opened later learns of it.
 */
#include "store/file/file.h"

#include <errno.h>
#include <string.h>

file_shared *file_shared_get(file_store *fs, uint64_t device, uint64_t inode,
                             uint64_t *number)
{
    pthread_mutex_lock(&fs->mutex);
    file_shared *shared = fs->shared;
    while (shared && (shared->device != device || shared->inode != inode))
        shared = shared->next;
    if (!shared) {
        shared = mem_zalloc(&fs->alloc, sizeof *shared);
        if (shared) {
            pthread_mutex_init(&shared->mutex, NULL);
            os_cond_init(&shared->moved);
            shared->device = device;
            shared->inode = inode;
            shared->next = fs->shared;
            fs->shared = shared;
        }
    }
    if (shared) {
        shared->handles++;
        *number = shared->opened++;
    }
    pthread_mutex_unlock(&fs->mutex);
    return shared;
}

static void shared_free(file_store *fs, file_shared *shared)
{
    pthread_cond_destroy(&shared->moved);
    pthread_mutex_destroy(&shared->mutex);
    mem_free(&fs->alloc, shared, sizeof *shared);
}

void file_shared_put(file_store *fs, file_shared *shared)
{
    pthread_mutex_lock(&fs->mutex);
    if (--shared->handles == 0 && !shared->poisoned) {
        file_shared **at = &fs->shared;
        while (*at != shared)
            at = &(*at)->next;
        *at = shared->next;
        shared_free(fs, shared);
    }
    pthread_mutex_unlock(&fs->mutex);
}

void file_shared_free_all(file_store *fs)
{
    while (fs->shared) {
        file_shared *shared = fs->shared;
        fs->shared = shared->next;
        shared_free(fs, shared);
    }
}

void file_shared_poison(file_shared *shared)
{
    pthread_mutex_lock(&shared->mutex);
    shared->poisoned = 1;
    pthread_mutex_unlock(&shared->mutex);
}

int file_shared_is_poisoned(file_shared *shared)
{
    pthread_mutex_lock(&shared->mutex);
    int poisoned = shared->poisoned;
    pthread_mutex_unlock(&shared->mutex);
    return poisoned;
}

int file_shared_take(file_shared *shared, const os_table *os, int *timeout_ms,
                     lock_stop stop)
{
    int result = LOCK_GOT;
    uint64_t start = 0;
    pthread_mutex_lock(&shared->mutex);
    while (shared->taken && result == LOCK_GOT) {
        uint64_t now = os->clock_us(os->ud);
        start = start == 0 ? now : start;
        uint64_t gone_ms = (now - start) / 1000;
        if (stop.ask && stop.ask(stop.arg))
            result = LOCK_STOPPED;
        else if (*timeout_ms >= 0 && gone_ms >= (uint64_t)*timeout_ms)
            result = LOCK_TAKEN;
        else
            os_cond_slice(&shared->moved, &shared->mutex);
    }
    if (result == LOCK_GOT) {
        shared->taken = 1;
        if (start != 0 && *timeout_ms > 0) {
            uint64_t gone_ms = (os->clock_us(os->ud) - start) / 1000;
            *timeout_ms =
                gone_ms < (uint64_t)*timeout_ms ? *timeout_ms - (int)gone_ms : 0;
        }
    }
    pthread_mutex_unlock(&shared->mutex);
    return result;
}

typedef struct file_sync_waiting {
    struct file_sync_waiting *next;
    int fd;
    uint64_t number; /* of its handle: the lower, the longer open */
} file_sync_waiting;

/* The descriptor of those who wait that has been open longest. None of them leaves before
 * the sync is done. */
static int oldest(const file_shared *shared)
{
    const file_sync_waiting *found = shared->waiting;
    for (const file_sync_waiting *w = found; w; w = w->next)
        found = w->number < found->number ? w : found;
    return found->fd;
}

size_t file_shared_waiting(const file_shared *shared)
{
    size_t count = 0;
    for (const file_sync_waiting *w = shared->waiting; w; w = w->next)
        count++;
    return count;
}

static void leave(file_shared *shared, file_sync_waiting *me)
{
    file_sync_waiting **at = &shared->waiting;
    while (*at != me)
        at = &(*at)->next;
    *at = me->next;
}

int file_shared_sync(file_shared *shared, const os_table *os, int fd, uint64_t number)
{
    file_sync_waiting me = {NULL, fd, number};
    int result = 0, error = 0;
    pthread_mutex_lock(&shared->mutex);
    uint64_t wanted = shared->begun + 1; /* a sync that is running began too early */
    me.next = shared->waiting;
    /* it leaves the list before this returns */
    /* cppcheck-suppress autoVariables */
    shared->waiting = &me;
    while (shared->syncing && shared->done < wanted)
        pthread_cond_wait(&shared->moved, &shared->mutex);
    if (shared->done < wanted) {
        uint64_t mine = ++shared->begun;
        int longest = oldest(shared);
        shared->syncing = 1;
        pthread_mutex_unlock(&shared->mutex);
        result = os->sync_data(os->ud, longest);
        error = errno;
        pthread_mutex_lock(&shared->mutex);
        shared->syncing = 0;
        shared->done = mine;
        shared->poisoned |= result != 0;
        pthread_cond_broadcast(&shared->moved);
    }
    leave(shared, &me);
    pthread_mutex_unlock(&shared->mutex);
    errno = error;
    return result;
}

void file_shared_give(file_shared *shared)
{
    pthread_mutex_lock(&shared->mutex);
    shared->taken = 0;
    pthread_cond_broadcast(&shared->moved);
    pthread_mutex_unlock(&shared->mutex);
}

/*
 * file_shared.c: what the handles of one log in one store have in common.
 *
 * Owns the poison of a log, and the turn in which the handles of this process come to its
 * lock. It must never speak for another process: between processes the lock on the file
 * is all there is.
 *
 * The problem: a lock that is tried and tried again, with pauses in between, is idle most
 * of the time when sixteen handles want it. Between processes nothing else is to be had:
 * a lock that is waited for in the kernel cannot be given up when the time is over. In
 * one process the handles queue here, and the one whose turn it is tries alone.
 *
 * A log that was poisoned is remembered as long as the store is open, so that a handle
 * opened later learns of it.
 */
#include "store/file.h"

#include <string.h>

file_shared *file_shared_get(file_store *fs, uint64_t device, uint64_t inode)
{
    pthread_mutex_lock(&fs->mutex);
    file_shared *shared = fs->shared;
    while (shared != NULL && (shared->device != device || shared->inode != inode)) {
        shared = shared->next;
    }
    if (shared == NULL) {
        shared = mem_zalloc(&fs->alloc, sizeof(*shared));
        if (shared != NULL) {
            pthread_mutex_init(&shared->mutex, NULL);
            os_cond_init(&shared->free);
            shared->device = device;
            shared->inode = inode;
            shared->next = fs->shared;
            fs->shared = shared;
        }
    }
    if (shared != NULL) {
        shared->handles++;
    }
    pthread_mutex_unlock(&fs->mutex);
    return shared;
}

static void shared_free(file_store *fs, file_shared *shared)
{
    pthread_cond_destroy(&shared->free);
    pthread_mutex_destroy(&shared->mutex);
    mem_free(&fs->alloc, shared, sizeof(*shared));
}

void file_shared_put(file_store *fs, file_shared *shared)
{
    pthread_mutex_lock(&fs->mutex);
    if (--shared->handles == 0 && !shared->poisoned) {
        file_shared **at = &fs->shared;
        while (*at != shared) {
            at = &(*at)->next;
        }
        *at = shared->next;
        shared_free(fs, shared);
    }
    pthread_mutex_unlock(&fs->mutex);
}

void file_shared_free_all(file_store *fs)
{
    while (fs->shared != NULL) {
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
        if (stop.ask != NULL && stop.ask(stop.arg)) {
            result = LOCK_STOPPED;
        } else if (*timeout_ms >= 0 && gone_ms >= (uint64_t)*timeout_ms) {
            result = LOCK_TAKEN;
        } else {
            os_cond_slice(&shared->free, &shared->mutex);
        }
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

void file_shared_give(file_shared *shared)
{
    pthread_mutex_lock(&shared->mutex);
    shared->taken = 0;
    pthread_cond_signal(&shared->free);
    pthread_mutex_unlock(&shared->mutex);
}

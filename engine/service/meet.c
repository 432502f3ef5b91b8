/*
 * meet.c: looks up where other nodes are, and reads the certificates to meet them with.
 *
 * A server of names may take seconds, and so may a file on another machine. A loop must
 * not wait for them, since all its connections would; nor the thread of the beats, which
 * would lose the lease. So one thread does nothing else, one node at a time. A loop gives
 * it a peer, and looks at it again until it is idle.
 */
#include "service/nodes.h"

#include <string.h>

/* The name that its certificate must have: the host of its address. */
static void host_of(const char *address, char *out, size_t room)
{
    const char *end = strrchr(address, ':');
    size_t size = end ? (size_t)(end - address) : strlen(address);
    if (size >= 2 && address[0] == '[' && address[size - 1] == ']') {
        address++;
        size -= 2;
    }
    size = size < room ? size : room - 1;
    memcpy(out, address, size);
    out[size] = '\0';
}

/* Certificates that cannot be read again stay in use; service.c said why. */
static sessile_status read_files(const nodes *n, peer *one)
{
    char host[sizeof one->address];
    if (!n->settings.cert)
        return SESSILE_OK;
    if (one->way.tls) {
        (void)rpc_tls_reload(one->way.tls, NULL);
        return SESSILE_OK;
    }
    host_of(one->address, host, sizeof host);
    rpc_tls_files files = {n->settings.cert, n->settings.key, n->settings.ca, host};
    return rpc_tls_open(&one->way.tls, 0, &files, &n->alloc, NULL);
}

static void look_up(const nodes *n, peer *one)
{
    one->way.status = SESSILE_OK;
    if (one->way.wants_target && !one->way.target)
        one->way.status =
            rpc_target_find(&one->way.target, one->address, &n->alloc, NULL);
    if (!one->way.status)
        one->way.status = read_files(n, one);
}

static void *run(void *arg)
{
    nodes *n = arg;
    pthread_mutex_lock(&n->meet.mutex);
    while (!n->meet.ending) {
        peer *one = n->meet.first;
        if (!one) {
            pthread_cond_wait(&n->meet.wake, &n->meet.mutex);
            continue;
        }
        n->meet.first = one->next_met;
        one->meeting = MEET_BUSY;
        pthread_mutex_unlock(&n->meet.mutex);
        look_up(n, one);
        pthread_mutex_lock(&n->meet.mutex);
        one->meeting = MEET_IDLE;
    }
    for (; n->meet.first; n->meet.first = n->meet.first->next_met)
        n->meet.first->meeting = MEET_IDLE;
    pthread_mutex_unlock(&n->meet.mutex);
    return NULL;
}

void meet_ask(peer *one)
{
    nodes *n = one->peers->nodes;
    one->way.wants_target = !one->channel;
    one->way.reloads = atomic_load(&n->reloads);
    pthread_mutex_lock(&n->meet.mutex);
    if (!n->meet.ending) {
        one->meeting = MEET_WAITS;
        one->next_met = NULL;
        *(n->meet.first ? &n->meet.last->next_met : &n->meet.first) = one;
        n->meet.last = one;
        pthread_cond_signal(&n->meet.wake);
    }
    pthread_mutex_unlock(&n->meet.mutex);
}

int meet_is_idle(peer *one)
{
    nodes *n = one->peers->nodes;
    pthread_mutex_lock(&n->meet.mutex);
    int idle = one->meeting == MEET_IDLE;
    pthread_mutex_unlock(&n->meet.mutex);
    return idle;
}

sessile_status meet_start(nodes *n, sessile_error *err)
{
    int why = pthread_create(&n->meet.thread, NULL, run, n);
    if (why)
        return fail_errno(err, why,
                          "the thread that looks up nodes cannot be "
                          "started");
    n->meet.started = 1;
    return SESSILE_OK;
}

void meet_end(nodes *n)
{
    pthread_mutex_lock(&n->meet.mutex);
    n->meet.ending = 1;
    pthread_cond_signal(&n->meet.wake);
    pthread_mutex_unlock(&n->meet.mutex);
    if (n->meet.started)
        pthread_join(n->meet.thread, NULL);
    n->meet.started = 0;
}

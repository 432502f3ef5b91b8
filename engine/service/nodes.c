/*
 * nodes.c: this node's lease, the others that are alive, and who owns a session.
 *
 * A thread writes the beat each half second, through a connection of its own. The lease
 * is trusted for less time than the database gives it, from before the beat was sent and
 * by this machine's monotonic clock: a node that was stopped and woken, or lost the
 * database, knows by itself that the others do not count on it any more.
 *
 * A store that is no PostgreSQL database has no nodes: then this one owns everything, and
 * the thread only asks now and then whether the store answers, for health.
 */
#include "service/nodes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/inside.h"
#include "base/os.h"
#include "service/observe.h"
#include "service/records.h"

enum {
    FIRST_MS = 5000, /* for the first beat */
    AGAIN_MS = 1000, /* for the others */
    LEAVE_MS = 2000,
    ASK_MS = 5000, /* between two questions to a store without nodes */
    SLICE_MS = 20
};

/* ---------------------------------------------------------------------- hashing */

/* The same in every node; who chooses names can choose their owner, and gains nothing. */
static uint64_t hash_alike(const void *data, size_t size)
{
    static const hash_key key = {"sessile.v1.nodes"};
    return hash64_keyed(&key, size ? data : "", size);
}

uint64_t node_hash(const char *name)
{
    return hash_alike(name, strlen(name));
}

uint64_t node_user(sessile_slice user)
{
    return hash_alike(user.data, user.size);
}

static void put_number(unsigned char *out, uint64_t n)
{
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(n >> (8 * i));
}

uint64_t node_key(sessile_slice agent, uint64_t user, sessile_slice id)
{
    unsigned char all[24];
    put_number(all, hash_alike(agent.data, agent.size));
    put_number(all + 8, user);
    put_number(all + 16, hash_alike(id.data, id.size));
    return hash_alike(all, sizeof all);
}

size_t node_choose(uint64_t key, const uint64_t *hashes, size_t n)
{
    uint64_t best = 0;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char both[16];
        put_number(both, hashes[i]);
        put_number(both + 8, key);
        uint64_t score = hash_alike(both, sizeof both);
        if (i == 0 || score > best || (score == best && hashes[i] > hashes[at])) {
            best = score;
            at = i;
        }
    }
    return at;
}

/* --------------------------------------------------------------------- what is so now */

int nodes_lost(const nodes *n)
{
    return n->link && !atomic_load(&n->leaving) &&
           os_now_us() >= atomic_load(&n->trusted_us);
}

int nodes_owning(const nodes *n)
{
    return !atomic_load(&n->leaving) && !nodes_lost(n);
}

int nodes_serving(const nodes *n)
{
    return nodes_owning(n) && !atomic_load(&n->unanswered);
}

int service_serves(const service *s)
{
    return atomic_load(&s->stops) == 0 && (!s->nodes || nodes_serving(s->nodes));
}

int nodes_replicated(const nodes *n)
{
    return n->settings.replicas <= 0 || atomic_load(&n->standbys) >= n->settings.replicas;
}

nodes_figures nodes_look(const nodes *n)
{
    return (nodes_figures){
        atomic_load(&n->count.here),    atomic_load(&n->count.forwarded),
        atomic_load(&n->count.relayed), atomic_load(&n->count.fallback),
        atomic_load(&n->count.refused), atomic_load(&n->count.missed),
    };
}

/* ---------------------------------------------------------------------- beats */

/* The living are compared without their counts: loops look again when they changed. */
static int is_same(const nodes *n, const store_beat *beat)
{
    if (n->living_count != beat->count)
        return 0;
    for (size_t i = 0; i < beat->count; i++)
        if (n->living[i].incarnation != beat->others[i].incarnation ||
            strcmp(n->living[i].name, beat->others[i].name) != 0 ||
            strcmp(n->living[i].address, beat->others[i].address) != 0)
            return 0;
    return 1;
}

/* This thread alone changes them, so it reads them without the mutex, which loops take:
 * they must not wait for a line of the log to be written. */
static void take_living(nodes *n, const store_beat *beat)
{
    if (is_same(n, beat))
        return;
    nodes_tell_living(n, beat);
    pthread_mutex_lock(&n->mutex);
    if (mem_grow(&n->alloc, (void **)&n->living, &n->living_room, beat->count,
                 sizeof *n->living) == 0) {
        if (beat->count)
            memcpy(n->living, beat->others, beat->count * sizeof *n->living);
        n->living_count = beat->count;
        n->version++;
    }
    pthread_mutex_unlock(&n->mutex);
}

static sessile_status beat_once(nodes *n, int timeout_ms, sessile_error *err)
{
    metrics *m = observe_metrics(n->server->observe);
    store_beat beat;
    uint64_t before = os_now_us();
    int64_t now_ms = os_current->now_ms(os_current->ud);
    n->own.sessions = keep_count(n->server->keep);
    n->own.calls = atomic_load(&n->count.here);
    sessile_status status = store_nodes_beat(n->link, &n->own, LEASE_MS, timeout_ms,
                                             n->settings.replicas > 0, &beat, err);
    if (status) {
        atomic_fetch_add(&n->count.missed, 1);
        metrics_add(m, METRIC_BEATS_MISSED, 0, 0, 1);
        atomic_store(&n->standbys, -1);
        return status;
    }
    take_living(n, &beat);
    n->told.ahead_ms = (now_ms + os_current->now_ms(os_current->ud)) / 2 - beat.now_ms;
    metrics_set(m, METRIC_CLOCK_OFFSET, 0, -n->told.ahead_ms * 1000000);
    metrics_set(m, METRIC_NODES, 0, (int64_t)beat.count + 1);
    atomic_store(&n->standbys, beat.standbys);
    atomic_store(&n->trusted_us, before + (uint64_t)TRUST_MS * 1000);
    return SESSILE_OK;
}

/* Does a store without nodes answer? */
static void ask_store(nodes *n)
{
    const store *st = service_backend(n->server);
    sessile_error err;
    int found;
    if (!st->table->has_logs)
        return;
    sessile_status status = st->table->has_logs(st->self, &found, &err);
    atomic_store(&n->unanswered, status != SESSILE_OK);
    nodes_tell_answer(n, status, &err);
}

static void pause_until(nodes *n, uint64_t until)
{
    while (os_now_us() < until && !atomic_load(&n->ending) && !atomic_load(&n->leaving))
        os_current->sleep_ms(os_current->ud, SLICE_MS);
}

static void *run(void *arg)
{
    nodes *n = arg;
    sessile_error err;
    while (!atomic_load(&n->ending) && !atomic_load(&n->leaving)) {
        uint64_t began = os_now_us();
        if (n->link)
            nodes_tell_beat(n, beat_once(n, AGAIN_MS, &err), &err);
        else
            ask_store(n);
        pause_until(n, began + (uint64_t)(n->link ? BEAT_MS : ASK_MS) * 1000);
    }
    return NULL;
}

sessile_status nodes_start(nodes *n, sessile_error *err)
{
    service *s = n->server;
    for (int i = 0; i < s->settings.loops; i++) {
        sessile_status status = peers_open(&n->loops[i], n, s->loops[i], err);
        if (status)
            return status;
    }
    if (n->link && n->settings.affinity) {
        sessile_status status = meet_start(n, err);
        if (status)
            return status;
    }
    n->told.began = 1;
    int why = pthread_create(&n->thread, NULL, run, n);
    if (why)
        return fail_errno(err, why, "the thread of the beats cannot be started");
    n->started = 1;
    return SESSILE_OK;
}

void nodes_reload(nodes *n)
{
    atomic_fetch_add(&n->reloads, 1);
}

/* The connection is free for the leave once the thread has ended. */
static void end_thread(nodes *n)
{
    if (n->link)
        store_nodes_stop(n->link);
    if (n->started)
        pthread_join(n->thread, NULL);
    n->started = 0;
}

void nodes_leave(nodes *n)
{
    sessile_error err;
    if (atomic_exchange(&n->leaving, 1))
        return;
    end_thread(n);
    if (n->link) /* if it cannot be told, the lease runs out */
        (void)store_nodes_leave(n->link, &n->own, LEAVE_MS, &err);
}

/* ---------------------------------------------------------------------- opening */

static int is_good(const char *text, size_t most)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return 0;
    return size > 0 && size <= most;
}

/* "HOST:PORT" of this machine, for an address that is nobody's or everybody's. */
static void of_this_host(char *out, size_t room, const char *address)
{
    char host[256] = "localhost";
    const char *port = strrchr(address, ':');
    if (gethostname(host, sizeof host - 1) != 0 || !is_good(host, sizeof host))
        strcpy(host, "localhost");
    if (strncmp(address, "unix:", 5) == 0)
        port = address + 4;
    snprintf(out, room, "%.255s:%s", host, port ? port + 1 : "0");
}

static int is_everywhere(const char *address)
{
    return strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
}

sessile_status nodes_name(char out[NODE_NAME + 1], const service *s,
                          const service_settings *in, sessile_error *err)
{
    char name[NODE_ADDRESS + 8];
    if (in->nodes.name)
        snprintf(name, sizeof name, "%s", in->nodes.name);
    else
        of_this_host(name, sizeof name, rpc_listener_address(s->listener));
    if (!in->nodes.name && strlen(name) > NODE_NAME) /* its end tells it from others */
        memmove(name, name + strlen(name) - NODE_NAME, NODE_NAME + 1);
    if (!is_good(name, NODE_NAME))
        return fail(err, SESSILE_INVALID,
                    "a node's name is 1 to %d characters of printable ASCII, without "
                    "spaces",
                    NODE_NAME);
    strcpy(out, name);
    return SESSILE_OK;
}

static sessile_status name_it(nodes *n, const service_settings *in, sessile_error *err)
{
    const char *listens = rpc_listener_address(n->server->listener);
    sessile_status status = nodes_name(n->own.name, n->server, in, err);
    if (status)
        return status;
    if (!in->nodes.advertise && is_everywhere(listens))
        of_this_host(n->own.address, sizeof n->own.address, listens);
    else
        snprintf(n->own.address, sizeof n->own.address, "%s",
                 in->nodes.advertise ? in->nodes.advertise : listens);
    if (!is_good(n->own.address, NODE_ADDRESS))
        return fail(err, SESSILE_INVALID,
                    "advertise is the address at which other nodes connect: HOST:PORT");
    snprintf(n->own.version, sizeof n->own.version, "%s", sessile_version());
    random_bytes(&n->own.incarnation, sizeof n->own.incarnation);
    n->own.incarnation >>= 1; /* a bigint of the database, without a sign */
    n->hash = node_hash(n->own.name);
    return SESSILE_OK;
}

/* NULL stays NULL. 0, or -1: no memory. */
static int copy_text(nodes *n, char **out, const char *text)
{
    *out = text ? mem_dup(&n->alloc, text, strlen(text)) : NULL;
    return text && !*out ? -1 : 0;
}

static sessile_status settle(nodes *n, const service_settings *in, sessile_error *err)
{
    n->settings.affinity = !in->nodes.no_affinity;
    n->settings.replicas = in->nodes.replicas;
    if (copy_text(n, &n->settings.agent, api_default_agent(n->server->store)) != 0 ||
        copy_text(n, &n->settings.cert, in->listen.cert) != 0 ||
        copy_text(n, &n->settings.key, in->listen.key) != 0 ||
        copy_text(n, &n->settings.ca, in->nodes.ca ? in->nodes.ca : in->listen.ca) != 0)
        return fail_nomem(err);
    return name_it(n, in, err);
}

/* A node that was killed and is started again waits for its own lease to run out; that of
 * a living one goes on. */
static sessile_status join(nodes *n, sessile_error *err)
{
    uint64_t until = os_now_us() + (uint64_t)(LEASE_MS + AGAIN_MS) * 1000;
    sessile_status status;
    while ((status = beat_once(n, FIRST_MS, err)) == SESSILE_EXISTS &&
           os_now_us() < until)
        os_current->sleep_ms(os_current->ud, 5 * SLICE_MS);
    return status;
}

sessile_status nodes_open(nodes **out, service *s, const service_settings *settings,
                          sessile_error *err)
{
    nodes *n = mem_zalloc(&s->alloc, sizeof *n);
    *out = NULL;
    if (!n)
        return fail_nomem(err);
    n->alloc = s->alloc;
    n->server = s;
    n->backend = *api_backend(s->store);
    atomic_init(&n->standbys, -1);
    pthread_mutex_init(&n->mutex, NULL);
    pthread_mutex_init(&n->meet.mutex, NULL);
    pthread_cond_init(&n->meet.wake, NULL);
    sessile_status status = settle(n, settings, err);
    if (!status) {
        status = store_nodes_open(&n->link, &n->backend, err);
        if (status == SESSILE_UNSUPPORTED)
            status = SESSILE_OK;
        else if (!status)
            status = join(n, err);
    }
    if (status)
        nodes_close(n);
    else
        *out = n;
    return status;
}

static void drop_text(nodes *n, char *text)
{
    mem_free(&n->alloc, text, text ? strlen(text) + 1 : 0);
}

void nodes_end(nodes *n)
{
    if (!n)
        return;
    atomic_store(&n->ending, 1);
    /* who never had the lease has nothing to leave */
    if (atomic_load(&n->trusted_us))
        nodes_leave(n);
    end_thread(n);
    meet_end(n);
    for (int i = 0; i < LOOPS_AT_MOST; i++) {
        peers_close(n->loops[i]);
        n->loops[i] = NULL;
    }
}

void nodes_close(nodes *n)
{
    if (!n)
        return;
    nodes_end(n);
    store_nodes_close(n->link);
    pthread_mutex_destroy(&n->mutex);
    pthread_mutex_destroy(&n->meet.mutex);
    pthread_cond_destroy(&n->meet.wake);
    mem_free(&n->alloc, n->living, n->living_room * sizeof *n->living);
    drop_text(n, n->settings.agent);
    drop_text(n, n->settings.cert);
    drop_text(n, n->settings.key);
    drop_text(n, n->settings.ca);
    mem_free(&n->alloc, n, sizeof *n);
}

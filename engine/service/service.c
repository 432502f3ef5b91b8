/*
 * service.c: the service as a whole: opened, run, drained, closed.
 *
 * The thread that calls service_run() only waits, and looks now and then whether it was
 * told to end, since a signal handler may do no more than set a number. Loops and workers
 * have threads of their own.
 */
#include "service/known.h"
#include "service/nodes.h"
#include "service/observe.h"
#include "service/pieces.h"
#include "service/runs.h"
#include "service/shares.h"
#include "service/watch.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"

enum {
    WORKERS = 8,
    SESSIONS = 10000,
    MEMORIES = 500, /* each as large as its entries and vectors are */
    WAITING = 4096,
    DRAIN_MS = 30000,
    AGE_MS = 1800000,
    WATCH_MS = 1000,
    CORES_A_LOOP = 4,
    LOOK_MS = 20,
    RELOAD_MS = 3600000
};
#define KEPT_MOST    ((size_t)64 << 20)
#define REPLIES_MOST ((size_t)256 << 20)

static int or_default(int given, int standard)
{
    return given ? given : standard;
}

static int loops_wanted(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long loops = cores / CORES_A_LOOP;
    return loops < 1 ? 1 : loops > LOOPS_AT_MOST ? LOOPS_AT_MOST : (int)loops;
}

static sessile_status check_settings(const service_settings *in, sessile_error *err)
{
    if (!in->listen.address || !*in->listen.address)
        return fail(err, SESSILE_INVALID, "the server has no address to listen at");
    if (!in->listen.cert != !in->listen.key)
        return fail(err, SESSILE_INVALID,
                    "TLS needs both a certificate and its key: cert and key");
    if (in->listen.ca && !in->listen.cert)
        return fail(err, SESSILE_INVALID,
                    "client_ca needs TLS: give cert and key as well");
    if (in->size.workers < 0 || in->size.workers > 1024 || in->size.sessions < 0 ||
        in->size.waiting < 0 || in->ms.drain < 0 || in->ms.age < 0 || in->ms.look < 0 ||
        in->nodes.replicas < 0)
        return fail(err, SESSILE_INVALID,
                    "workers are 1 to 1024; sessions, drain, connection_age and "
                    "replicas are not negative");
    return SESSILE_OK;
}

static sessile_status copy_settings(service *s, const service_settings *in,
                                    sessile_error *err)
{
    const char *role =
        in->listen.certificate_role ? in->listen.certificate_role : "editor";
    s->settings.workers = or_default(in->size.workers, WORKERS);
    s->settings.loops = loops_wanted();
    s->settings.drain_ms = or_default(in->ms.drain, DRAIN_MS);
    s->settings.look_ms = or_default(in->ms.look, WATCH_MS);
    s->settings.guarded = in->guarded;
    s->settings.services = in->services ? in->services : SERVICE_SESSIONS;
    s->settings.json = !in->no_json;
    s->settings.reflection = !in->no_reflection;
    s->settings.reload = in->reload;
    s->settings.reload_arg = in->reload_arg;
    s->settings.defaults = in->defaults;
    s->settings.default_count = in->default_count;
    s->settings.ask = in->model.ask;
    s->settings.ask_arg = in->model.arg;
    s->settings.certificate_role = mem_dup(&s->alloc, role, strlen(role));
    return s->settings.certificate_role ? SESSILE_OK : fail_nomem(err);
}

static sessile_status open_loops(service *s, const service_settings *in,
                                 sessile_error *err)
{
    rpc_limits limits;
    sessile_status status = rpc_queued_open(
        &s->queued, in->size.replies ? in->size.replies : REPLIES_MOST, &s->alloc, err);
    if (status)
        return status;
    rpc_limits_init(&limits);
    limits.ms.age = or_default(in->ms.age, AGE_MS);
    s->loops = mem_zalloc(&s->alloc, (size_t)s->settings.loops * sizeof *s->loops);
    if (!s->loops)
        return fail_nomem(err);
    for (int i = 0; i < s->settings.loops && !status; i++) {
        status = rpc_loop_open(&s->loops[i], &limits, &s->alloc, err);
        if (!status)
            rpc_loop_count(s->loops[i], s->queued);
    }
    return status;
}

/* A certificate that nobody accepts any more is better found here than by clients. */
static sessile_status check_certificate(const service *s, const char *path,
                                        sessile_error *err)
{
    const int64_t now = os_current->now_ms(os_current->ud) / 1000;
    const time_t ends = (time_t)rpc_tls_expires(s->tls);
    struct tm day;
    if (!ends || (int64_t)ends > now || !gmtime_r(&ends, &day))
        return SESSILE_OK;
    return fail(
        err, SESSILE_INVALID,
        "the certificate, %s, expired on %04d-%02d-%02d, so no client accepts it: "
        "put a new one there, with its key",
        path, day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

static sessile_status open_listener(service *s, const service_settings *in,
                                    sessile_error *err)
{
    rpc_tls_files files = {
        .cert = in->listen.cert, .key = in->listen.key, .ca = in->listen.ca};
    sessile_status status = SESSILE_OK;
    if (in->listen.cert)
        status = rpc_tls_open(&s->tls, 1, &files, &s->alloc, err);
    if (!status && s->tls)
        status = check_certificate(s, in->listen.cert, err);
    if (!status)
        status = rpc_listen(&s->listener, s->loops, (size_t)s->settings.loops,
                            in->listen.address, s->tls, &call_service, s, err);
    if (!status && !s->tls && !in->listen.plain && !rpc_listener_local(s->listener))
        status =
            fail(err, SESSILE_DENIED,
                 "%s can be reached by others, who would read and send everything in "
                 "clear text: give cert and key, or listen at 127.0.0.1",
                 in->listen.address);
    if (!status && (s->settings.services & SERVICE_RECORDS) && !in->guarded &&
        !rpc_listener_local(s->listener))
        status =
            fail(err, SESSILE_DENIED,
                 "%s can be reached by others, and without a guard whoever connects may "
                 "change and remove records: configure a guard, or listen at 127.0.0.1",
                 in->listen.address);
    return status;
}

static sessile_status open_records(service *s, const service_settings *in,
                                   sessile_error *err)
{
    if (!(s->settings.services & SERVICE_RECORDS))
        return SESSILE_OK;
    if (!in->records.url)
        return fail(err, SESSILE_INVALID, "the server has no store to serve records of");
    return records_open(&s->records, in->records.url, in->records.options, &s->alloc,
                        err);
}

/* Before the nodes, whose first beat is counted. */
static sessile_status open_observe(service *s, const service_settings *in,
                                   sessile_error *err)
{
    char name[NODE_NAME + 1];
    sessile_status status = nodes_name(name, s, in, err);
    return status ? status : observe_open(&s->observe, s, in, name, err);
}

sessile_status service_open(service **out, sessile_store *store,
                            const service_settings *settings, sessile_error *err)
{
    *out = NULL;
    if (!store)
        return fail(err, SESSILE_INVALID,
                    "the server has no store; one of records alone has one in memory");
    sessile_status status = check_settings(settings, err);
    if (status)
        return status;
    service *s = mem_zalloc(&allocator_default, sizeof *s);
    if (!s)
        return fail_nomem(err);
    s->alloc = allocator_default;
    s->store = store;
    atomic_init(&s->stops, 0);
    status = copy_settings(s, settings, err);
    if (!status)
        status =
            keep_open(&s->keep, s, (size_t)or_default(settings->size.sessions, SESSIONS),
                      &s->alloc, err);
    if (!status)
        status = keep_open(&s->memories, s, MEMORIES, &s->alloc, err);
    if (!status)
        status = open_records(s, settings, err);
    if (!status)
        status = pool_open(&s->pool, s->settings.workers,
                           (size_t)or_default(settings->size.waiting, WAITING), &s->alloc,
                           err);
    if (!status)
        status = watch_open(&s->watch, s, err);
    if (!status)
        status = runs_open(&s->runs, s, err);
    if (!status)
        status = shares_open(&s->shares, &s->alloc, err);
    if (!status && settings->guarded)
        status = known_open(&s->known, &s->alloc, err);
    if (!status)
        status = pieces_open(&s->pieces, s, KEPT_MOST, err);
    if (!status)
        status = open_loops(s, settings, err);
    if (!status)
        status = open_listener(s, settings, err);
    if (!status)
        status = open_observe(s, settings, err);
    if (!status)
        status = nodes_open(&s->nodes, s, settings, err);
    if (status)
        service_close(s);
    else
        *out = s;
    return status;
}

const char *service_address(const service *s)
{
    return rpc_listener_address(s->listener);
}

const char *service_metrics_address(const service *s)
{
    return observe_address(s->observe);
}

void service_stop(service *s)
{
    atomic_fetch_add(&s->stops, 1);
}

/* ---------------------------------------------------------------------- running */

static void *run_loop(void *loop)
{
    rpc_loop_run(loop);
    return NULL;
}

static size_t connections(const service *s)
{
    size_t n = 0;
    for (int i = 0; i < s->settings.loops; i++)
        n += rpc_loop_look(s->loops[i]).connections;
    return n;
}

/* Lets calls finish, for at most drain_ms. */
static void drain(service *s)
{
    const os_table *os = os_current;
    uint64_t began = os->clock_us(os->ud);
    uint64_t until = began + (uint64_t)s->settings.drain_ms * 1000;
    service_tell_drain(s, connections(s), pool_jobs(s->pool));
    nodes_leave(s->nodes);
    rpc_listener_drain(s->listener);
    runs_drain(s->runs);
    watch_drain(s->watch);
    while (atomic_load(&s->stops) < 2 && os->clock_us(os->ud) < until &&
           (connections(s) > 0 || pool_jobs(s->pool) > 0)) {
        observe_tick(s->observe);
        os->sleep_ms(os->ud, LOOK_MS);
    }
    service_tell_drained(s, connections(s), pool_jobs(s->pool),
                         os->clock_us(os->ud) - began);
}

/* Reads the certificates again. Those in use stay when that fails. */
static void reload(service *s, int asked)
{
    sessile_error err;
    int64_t before = rpc_tls_expires(s->tls);
    sessile_status status = rpc_tls_reload(s->tls, &err);
    nodes_reload(s->nodes);
    if (status || asked || rpc_tls_expires(s->tls) != before)
        service_tell_reload(s, status, &err);
}

static void wait_for_stop(service *s)
{
    const os_table *os = os_current;
    uint64_t next = os->clock_us(os->ud) + (uint64_t)RELOAD_MS * 1000;
    while (atomic_load(&s->stops) == 0) {
        int asked = s->settings.reload && s->settings.reload(s->settings.reload_arg);
        if (asked || os->clock_us(os->ud) >= next) {
            if (s->tls)
                reload(s, asked);
            next = os->clock_us(os->ud) + (uint64_t)RELOAD_MS * 1000;
        }
        observe_tick(s->observe);
        os->sleep_ms(os->ud, LOOK_MS);
    }
}

sessile_status service_run(service *s, sessile_error *err)
{
    pthread_t threads[LOOPS_AT_MOST] = {0};
    int started = 0, why = 0;
    sessile_status status = pool_start(s->pool, err);
    if (!status)
        status = nodes_start(s->nodes, err);
    if (!status)
        status = watch_start(s->watch, err);
    if (!status)
        status = observe_start(s->observe, err);
    while (!status && started < s->settings.loops) {
        why = pthread_create(&threads[started], NULL, run_loop, s->loops[started]);
        if (why)
            status = fail_errno(err, why, "a thread cannot be started");
        else
            started++;
    }
    if (!status) {
        service_tell_start(s);
        wait_for_stop(s);
        drain(s);
    }
    for (int i = 0; i < started; i++)
        rpc_loop_stop(s->loops[i]);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return status;
}

void service_close(service *s)
{
    if (!s)
        return;
    watch_stop(s->watch);
    nodes_end(s->nodes); /* workers and the exporter still look at it */
    pieces_end(s->pieces);
    pool_end(s->pool);
    observe_stop(s->observe); /* which looks at all that is closed after it */
    records_close(s->records);
    nodes_close(s->nodes);
    s->nodes = NULL;
    if (s->listener)
        rpc_listener_close(s->listener);
    for (int i = 0; s->loops && i < s->settings.loops; i++)
        if (s->loops[i])
            rpc_loop_close(s->loops[i]);
    if (s->loops)
        mem_free(&s->alloc, s->loops, (size_t)s->settings.loops * sizeof *s->loops);
    rpc_queued_drop(s->queued);
    watch_close(s->watch);
    runs_close(s->runs);
    pieces_close(s->pieces);
    shares_close(s->shares);
    known_close(s->known);
    observe_close(s->observe);
    pool_close(s->pool);
    keep_close(s->keep);
    keep_close(s->memories);
    if (s->tls)
        rpc_tls_drop(s->tls);
    char *role = s->settings.certificate_role;
    mem_free(&s->alloc, role, role ? strlen(role) + 1 : 0);
    mem_free(&s->alloc, s, sizeof *s);
}

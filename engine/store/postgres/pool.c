/*
 * pool.c: makes connections and lends them to calls; the pauses between tries.
 *
 * At most `pool` connections exist, besides the one that listens. A connection serves one
 * call at a time; a call that finds none free waits as long as it may. A broken
 * connection is closed and never used again; change.c settles what was in flight on it.
 * After a fork the child must not use a connection, because the server could not tell the
 * two apart.
 */
#include "store/postgres/postgres.h"

#include <stdlib.h>
#include <string.h>

enum { PAUSE_FIRST_MS = 10, PAUSE_MOST_MS = 400 };

/* What the server would like to tell a person is not printed. But that somebody ended a
 * commit's wait for standbys is told in no other way. */
static void hear_notice(void *arg, const PGresult *r)
{
    pg_conn *c = arg;
    const char *where = c->lib->PQresultErrorField(r, PG_DIAG_SOURCE_FUNCTION);
    c->unwaited |= where && strcmp(where, "SyncRepWaitForLSN") == 0;
}

void pg_finish(pg_store *ps, pg_conn *c)
{
    if (!c)
        return;
    if (c->pg && ps->os->pid(ps->os->ud) == ps->pid) {
        ps->lib.PQfinish(c->pg);
    } else if (c->pg) {
        /* In a child, to end a connection properly would end the parent's: only its own
         * copy of the socket goes, and libpq's memory stays. */
        ps->os->close(ps->os->ud, ps->lib.PQsocket(c->pg));
    }
    mem_free(&ps->alloc, c, sizeof *c);
}

/* ---------------------------------------------------------------------- making one */

/* Waits for the connection's next step: 1: it can be taken; 0: time is up; -1: stopped.
 */
static int await_connection(pg_call *call, int fd, int flags, uint64_t until_us)
{
    const pg_store *ps = call->ps;
    for (;;) {
        if (call->stop.ask && call->stop.ask(call->stop.arg))
            return -1;
        if (pg_over(ps, until_us))
            return 0;
        if (os_fd_wait(fd, flags, OS_SLICE_MS))
            return 1;
    }
}

/* Takes the steps of a connection that was begun. OK: see PQstatus. */
static sessile_status finish_connecting(pg_call *call, PGconn *pg, pg_guard *guard,
                                        uint64_t until, int *passing, sessile_error *err)
{
    pg_store *ps = call->ps;
    PostgresPollingStatusType step = ps->lib.PQstatus(pg) == CONNECTION_BAD
                                         ? PGRES_POLLING_FAILED
                                         : PGRES_POLLING_WRITING;
    while (step == PGRES_POLLING_READING || step == PGRES_POLLING_WRITING) {
        int flags = step == PGRES_POLLING_READING ? OS_READ : OS_WRITE;
        int fd = pg_guard_socket(guard, ps, pg, &flags);
        int can = await_connection(call, fd, flags, until);
        if (can <= 0) {
            *passing = can == 0;
            return can < 0 ? pg_say_late(call, PG_STOPPED, "a connection", err)
                           : fail(err, SESSILE_IO,
                                  "%s does not answer: see whether the server runs and "
                                  "can be reached",
                                  ps->url.where);
        }
        pg_looked looked = pg_guard_look(guard, ps, pg);
        if (looked == PG_ASKED_FOR_CLEAR_TEXT) {
            return fail(err, SESSILE_DENIED,
                        "%s asks for the password in clear text, without TLS, and was "
                        "not given it: let the store's URL say sslmode=require, or let "
                        "the server ask for scram-sha-256; on a network that you trust, "
                        "the URL may say cleartext_password=allow",
                        ps->url.where);
        }
        if (looked == PG_CANNOT_LOOK) {
            return fail(err, SESSILE_IO,
                        "no connection to %s can be made: this process has too many "
                        "files open",
                        ps->url.where);
        }
        if (looked != PG_HEARD_NOTHING)
            step = ps->lib.PQconnectPoll(pg);
    }
    return SESSILE_OK;
}

/* What each session of ours sets, and who the server's process is. */
static sessile_status set_up_session(pg_call *call, pg_conn *c, sessile_error *err)
{
    pg_store *ps = call->ps;
    char number[24];
    buf text;
    buf_init(&text, &ps->alloc);
    buf_put_i64(&text, ps->url.statement_ms);
    if (text.failed || text.size >= sizeof number) {
        buf_deinit(&text);
        return fail_nomem(err);
    }
    memcpy(number, text.data, text.size + 1);
    buf_deinit(&text);
    /* Functions and operators are the server's own, whatever others have put into a
     * schema that this user's search path names: what fits an argument better would be
     * taken. What is acknowledged must be on the server's disk. A weaker setting than
     * `on` that is not `off` waits for that as well. And two writers that meet at a row
     * shall be told who won, not to try again. */
    pg_step s = pg_step_once(
        "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false),"
        " pg_catalog.set_config('statement_timeout', $1::text, false),"
        " pg_catalog.set_config('default_transaction_isolation', 'read committed', "
        "false),"
        " CASE WHEN $2::bigint OPERATOR(pg_catalog.=) 0::bigint"
        " AND pg_catalog.current_setting('synchronous_commit')"
        " OPERATOR(pg_catalog.=) 'off'::text"
        " AND pg_catalog.current_setting('transaction_read_only')"
        " OPERATOR(pg_catalog.=) 'off'::text"
        " THEN pg_catalog.set_config('synchronous_commit', 'on', false) END");
    pg_arg_text(&s, number);
    pg_arg_int(&s, (uint64_t)ps->url.keep_commit);
    pg_results r;
    pg_ended ended = pg_send(call, c, &s, 1, &r);
    if (ended == PG_ANSWERED && !r.wrong) {
        pg_results_free(ps, &r);
        /* Some servers that speak PostgreSQL do not know of these. Every statement of
         * ours looks a few rows up by their keys: one plan is as good for all of them,
         * and planning costs more than they do. */
        s = pg_step_once("SELECT pg_backend_pid()::bigint, a.backend_start,"
                         " set_config('plan_cache_mode', 'force_generic_plan', false),"
                         " set_config('jit', 'off', false),"
                         " CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END::bigint,"
                         " CASE WHEN pg_is_in_recovery() THEN to_hex(greatest("
                         "(SELECT timeline_id FROM pg_control_checkpoint()),"
                         " (SELECT received_tli FROM pg_stat_get_wal_receiver())))"
                         " ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END,"
                         " pg_postmaster_start_time(),"
                         " CASE WHEN current_setting('synchronous_standby_names') <> ''"
                         " THEN 1 ELSE 0 END::bigint"
                         " FROM pg_stat_get_activity(pg_backend_pid()) a");
        ended = pg_send(call, c, &s, 1, &r);
        if (ended == PG_ANSWERED && !r.wrong && pg_rows(ps, r.of[0]) == 1 &&
            !pg_null(ps, r.of[0], 0, 0) && !pg_null(ps, r.of[0], 0, 1)) {
            c->pid = (int32_t)pg_int(ps, r.of[0], 0, 0);
            c->since = pg_int(ps, r.of[0], 0, 1);
            c->standby = pg_int(ps, r.of[0], 0, 4) != 0;
            c->timeline = (uint32_t)strtoul(pg_text(ps, r.of[0], 0, 5), NULL, 16);
            c->started = pg_int(ps, r.of[0], 0, 6);
            c->replicated = pg_int(ps, r.of[0], 0, 7) != 0;
        }
    } else if (ended == PG_ANSWERED) {
        sessile_status status = pg_say(call, r.wrong, "a new connection", err);
        pg_results_free(ps, &r);
        return status;
    }
    pg_results_free(ps, &r);
    return ended == PG_ANSWERED
               ? SESSILE_OK
               : fail(err, SESSILE_IO, "%s took a connection and then said no more",
                      ps->url.where);
}

/* One try, first at that host. *passing: another one may succeed soon. */
static sessile_status connect_once(pg_call *call, unsigned first, pg_conn **out,
                                   int *passing, sessile_error *err)
{
    pg_store *ps = call->ps;
    const pg_lib *lib = &ps->lib;
    uint64_t until = call->answer_us;
    sessile_status status = SESSILE_OK;
    *out = NULL;
    *passing = 0;
    pg_conn *c = mem_zalloc(&ps->alloc, sizeof *c);
    if (!c)
        return fail_nomem(err);
    if (ps->url.connect_ms > 0) {
        uint64_t mine =
            ps->os->clock_us(ps->os->ud) + (uint64_t)ps->url.connect_ms * 1000;
        until = mine < until ? mine : until;
    }
    const char **values;
    char *text;
    size_t text_size;
    if (pg_url_values(&ps->url, first, &values, &text, &text_size, &ps->alloc) == 0) {
        c->pg = lib->PQconnectStartParams(ps->url.keys, values, 0);
        mem_free(&ps->alloc, (void *)values, ps->url.room);
        mem_free(&ps->alloc, text, text_size);
    }
    if (!c->pg) {
        pg_finish(ps, c);
        return fail_nomem(err);
    }
    c->lib = lib;
    lib->PQsetNoticeReceiver(c->pg, hear_notice, c);
    /* so that an error has its SQLSTATE in its text: there is no other way to it */
    lib->PQsetErrorVerbosity(c->pg, PQERRORS_VERBOSE);
    pg_guard guard = {0};
    status = finish_connecting(call, c->pg, &guard, until, passing, err);
    pg_guard_end(&guard, ps, c->pg);
    if (!status && lib->PQstatus(c->pg) != CONNECTION_OK) {
        status = pg_say_connect(ps, c->pg, passing, err);
    } else if (!status) {
        lib->PQsetErrorVerbosity(c->pg, PQERRORS_DEFAULT);
        if (lib->PQsetnonblocking(c->pg, 1) != 0 || !lib->PQenterPipelineMode(c->pg)) {
            status = fail(err, SESSILE_IO, "the connection to %s cannot be used",
                          ps->url.where);
        } else {
            status = set_up_session(call, c, err);
            if (!status)
                status = pg_meet(ps, c, err);
            *passing = status == SESSILE_IO;
        }
    }
    if (!status && call->primary && c->standby) {
        *passing = 1; /* it may be promoted, or another host may be the primary */
        status = fail(err, SESSILE_IO, "%s is a standby, and the primary is away",
                      ps->url.where);
    }
    if (status) {
        pg_finish(ps, c);
        return status;
    }
    *out = c;
    return SESSILE_OK;
}

/* Pauses grow, and no two clients' are equal. -1: it was asked to stop meanwhile. */
static int pause_for(pg_call *call, unsigned tries)
{
    pg_store *ps = call->ps;
    uint16_t random;
    int pause = tries < 6 ? PAUSE_FIRST_MS << tries : PAUSE_MOST_MS;
    random_bytes(&random, sizeof random);
    int left = pause / 2 + random % pause;
    while (left > 0 && !pg_over(ps, call->until_us)) {
        if (call->stop.ask && call->stop.ask(call->stop.arg))
            return -1;
        int slice = left < OS_SLICE_MS ? left : OS_SLICE_MS;
        ps->os->sleep_ms(ps->os->ud, slice);
        left -= slice;
    }
    return 0;
}

/* A connection that breaks whenever it is used is not tried again at once for ever. */
void pg_pause(pg_call *call, int tries)
{
    if (tries > 1)
        (void)pause_for(call, (unsigned)tries - 2);
}

/* Which of several hosts is asked first: the one that was the primary last, or, once that
 * did not answer, the next. */
static unsigned first_host(pg_store *ps)
{
    pthread_mutex_lock(&ps->mutex);
    unsigned host = (unsigned)ps->server.host;
    pthread_mutex_unlock(&ps->mutex);
    return host;
}

/* The next call begins elsewhere, too: one that has less time than a silent host takes
 * would never come to the others. */
static void pass_host(pg_store *ps, unsigned host)
{
    pthread_mutex_lock(&ps->mutex);
    if (ps->server.host == (int)host && ps->url.hosts > 1)
        ps->server.host = (int)((host + 1) % (unsigned)ps->url.hosts);
    pthread_mutex_unlock(&ps->mutex);
}

/* A server that restarts is away for a moment, and all its clients come back at once: the
 * pauses grow, and no two clients' are equal. */
sessile_status pg_connect(pg_call *call, pg_conn **out, sessile_error *err)
{
    pg_store *ps = call->ps;
    for (unsigned tries = 0;; tries++) {
        int passing;
        unsigned host = first_host(ps);
        sessile_status status = connect_once(call, host, out, &passing, err);
        if (status && passing)
            pass_host(ps, host);
        int each_once = call->first && tries + 1 >= (unsigned)ps->url.hosts;
        if (!status || !passing || each_once || pg_over(ps, call->until_us))
            return status;
        if (pause_for(call, tries) != 0)
            return pg_say_late(call, PG_STOPPED, "a connection", err);
    }
}

/* ---------------------------------------------------------------------- lending */

/* The server may have closed it while nobody looked. */
static int alive(const pg_store *ps, pg_conn *c)
{
    if (ps->lib.PQstatus(c->pg) != CONNECTION_OK)
        return 0;
    if (os_fd_wait(ps->lib.PQsocket(c->pg), OS_READ, 0))
        return ps->lib.PQconsumeInput(c->pg) && ps->lib.PQstatus(c->pg) == CONNECTION_OK;
    return 1;
}

static void one_less(pg_store *ps)
{
    pthread_mutex_lock(&ps->mutex);
    ps->connections--;
    pthread_cond_signal(&ps->freed);
    pthread_mutex_unlock(&ps->mutex);
}

int pg_forked(const pg_store *ps, sessile_error *err)
{
    if (ps->os->pid(ps->os->ud) == ps->pid)
        return 0;
    fail(err, SESSILE_FORKED,
         "the store was opened before fork(): open it again in this process");
    return 1;
}

/* Lends a connection, whatever its server shows. */
static sessile_status take(pg_call *call, pg_conn **out, sessile_error *err)
{
    pg_store *ps = call->ps;
    pg_conn *c = NULL;
    *out = NULL;
    if (pg_forked(ps, err))
        return SESSILE_FORKED;
    pthread_mutex_lock(&ps->mutex);
    while (!ps->idle && ps->connections >= ps->url.pool) {
        pthread_mutex_unlock(&ps->mutex);
        if (call->stop.ask && call->stop.ask(call->stop.arg))
            return pg_say_late(call, PG_STOPPED, "a connection", err);
        if (pg_over(ps, call->until_us)) {
            return fail(err, SESSILE_BUSY,
                        "all %d connections to %s are in use: wait longer, or let the "
                        "store's URL say pool=N",
                        ps->url.pool, ps->url.where);
        }
        pthread_mutex_lock(&ps->mutex);
        if (!ps->idle && ps->connections >= ps->url.pool)
            os_cond_slice(&ps->freed, &ps->mutex);
    }
    c = ps->idle;
    if (c)
        ps->idle = c->next;
    else
        ps->connections++;
    pthread_mutex_unlock(&ps->mutex);
    sessile_status status = SESSILE_OK;
    if (c && alive(ps, c) && !pg_is_old(ps, c) && !(call->primary && c->standby)) {
        *out = c;
    } else {
        pg_finish(ps, c);
        status = pg_connect(call, out, err);
        if (status)
            one_less(ps);
    }
    return status;
}

sessile_status pg_take(pg_call *call, pg_conn **out, sessile_error *err)
{
    pg_store *ps = call->ps;
    for (int tries = 0;; tries++) {
        pg_pause(call, tries);
        sessile_status status = take(call, out, err);
        if (status)
            return status;
        pg_ended ended = pg_make_safe(call, *out);
        if (ended == PG_ANSWERED)
            return SESSILE_OK;
        int32_t pid = (*out)->pid;
        int64_t since = (*out)->since;
        pg_discard(ps, *out);
        *out = NULL;
        pg_end_process(ps, pid, since);
        if (ended != PG_LOST || pg_over(ps, call->until_us))
            return pg_say_unsafe(call, ended, err);
    }
}

void pg_give(pg_store *ps, pg_conn *c)
{
    if (ps->lib.PQstatus(c->pg) != CONNECTION_OK || pg_is_old(ps, c)) {
        pg_discard(ps, c);
        return;
    }
    pthread_mutex_lock(&ps->mutex);
    c->next = ps->idle;
    ps->idle = c;
    pthread_cond_signal(&ps->freed);
    pthread_mutex_unlock(&ps->mutex);
}

void pg_discard(pg_store *ps, pg_conn *c)
{
    pg_finish(ps, c);
    one_less(ps);
}

void pg_pool_free(pg_store *ps)
{
    while (ps->idle) {
        pg_conn *c = ps->idle;
        ps->idle = c->next;
        pg_finish(ps, c);
    }
}

/*
 * nodes.c: the leases of the servers that share the database.
 *
 * Owns the table `nodes`. It is unlogged, and nobody waits for its commits: a beat costs
 * the server no write to a disk. After a crash of the server, and on a standby that was
 * promoted, it is empty, and is there again with the next beats.
 *
 * A node has a connection of its own for its beats, so that calls that use up the pool do
 * not end its lease. Whether it is alive is judged by the clock of the database alone.
 */
#include "store/nodes.h"
#include "store/postgres/limits.h"
#include "store/postgres/postgres.h"

#include <stdatomic.h>
#include <string.h>

struct store_nodes {
    pg_store *ps;
    pg_conn *conn; /* NULL: it is made by the next call */
    atomic_int stopped;
    char *beat, *leave; /* SQL */
    store_node *others;
    size_t room;
};

static const char *const made[] = {
    "CREATE UNLOGGED TABLE IF NOT EXISTS @nodes ("
    " name text PRIMARY KEY,"
    " incarnation bigint NOT NULL,"
    " address text NOT NULL,"
    " version text NOT NULL,"
    " started timestamptz NOT NULL,"
    " until timestamptz NOT NULL,"
    " sessions bigint NOT NULL,"
    " calls bigint NOT NULL"
    ") WITH (fillfactor = 50)",
};

/* The columns of a row, in the order of read_row(). */
#define ROW                                                                 \
    "n.name, n.address, n.version, n.incarnation,"                          \
    " floor(extract(epoch FROM n.started) * 1000)::bigint,"                 \
    " floor(extract(epoch FROM n.until - c.t) * 1000)::bigint, n.sessions," \
    " n.calls"
enum { COLUMNS = 8, MINE = COLUMNS, STANDBYS, NOW };

/* The standbys of a primary, by its name r. */
#define COUNT_STANDBYS                                          \
    "SELECT CASE"                                               \
    " WHEN count(*) FILTER (WHERE r.state IS NULL) > 0 THEN -1" \
    " ELSE count(*) FILTER (WHERE r.state = 'streaming'"        \
    "  AND r.sync_state IN ('sync', 'quorum')) END"             \
    " FROM pg_stat_replication r"

/* A row of another incarnation is taken over once its lease ran out. Rows of nodes that
 * are long gone are removed, but for those that somebody else removes or renews. */
static const char beat_sql[] =
    "WITH c AS MATERIALIZED (SELECT clock_timestamp() AS t),"
    " gone AS (DELETE FROM @nodes d WHERE d.name IN (SELECT o.name FROM @nodes o, c"
    "  WHERE o.until < c.t - interval '1 hour' AND o.name <> $1::text"
    "  FOR UPDATE OF o SKIP LOCKED)),"
    " mine AS (INSERT INTO @nodes AS m SELECT $1::text, $2::bigint, $3::text, $4::text,"
    "  c.t, c.t + $5::bigint * interval '1 ms', $6::bigint, $7::bigint FROM c"
    "  ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation,"
    "   address = excluded.address, version = excluded.version,"
    "   started = CASE WHEN m.incarnation = excluded.incarnation THEN m.started"
    "    ELSE excluded.started END,"
    "   until = excluded.until, sessions = excluded.sessions, calls = excluded.calls"
    "  WHERE m.incarnation = excluded.incarnation OR m.until <= clock_timestamp()"
    "  RETURNING 1)"
    " SELECT " ROW ", (SELECT count(*) FROM mine),"
    "  CASE WHEN $8::bigint = 0 THEN -1 ELSE (" COUNT_STANDBYS ") END,"
    "  floor(extract(epoch FROM c.t) * 1000)::bigint"
    " FROM c LEFT JOIN @nodes n ON n.until > c.t AND n.name <> $1::text"
    " ORDER BY n.name LIMIT $9::bigint";

static const char leave_sql[] =
    "DELETE FROM @nodes WHERE name = $1::text AND incarnation = $2::bigint";

static const char standbys_sql[] = COUNT_STANDBYS;

static const char list_sql[] =
    "SELECT " ROW " FROM @nodes n, (SELECT clock_timestamp() AS t) c"
    " ORDER BY n.name LIMIT $1::bigint";

/* ---------------------------------------------------------------------- rows */

/* 1, or 0: it is longer than we write, or what nobody could connect to. */
static int read_text(const pg_store *ps, const PGresult *r, int row, int column,
                     char *out, size_t room)
{
    size_t size;
    const char *text = pg_bytes(ps, r, row, column, &size);
    if (size >= room)
        return 0;
    for (size_t i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return 0;
    memcpy(out, text, size);
    out[size] = '\0';
    return 1;
}

static int read_row(const pg_store *ps, const PGresult *r, int row, store_node *out)
{
    if (pg_null(ps, r, row, 0) ||
        !read_text(ps, r, row, 0, out->name, sizeof out->name) ||
        !read_text(ps, r, row, 1, out->address, sizeof out->address) ||
        !read_text(ps, r, row, 2, out->version, sizeof out->version))
        return 0;
    out->incarnation = (uint64_t)pg_int(ps, r, row, 3);
    out->started_ms = pg_int(ps, r, row, 4);
    out->left_ms = pg_int(ps, r, row, 5);
    out->sessions = (uint64_t)pg_int(ps, r, row, 6);
    out->calls = (uint64_t)pg_int(ps, r, row, 7);
    return 1;
}

static size_t read_rows(const pg_store *ps, const PGresult *r, store_node *out,
                        size_t most)
{
    size_t count = 0;
    for (int i = 0; i < pg_rows(ps, r) && count < most; i++)
        count += (size_t)read_row(ps, r, i, &out[count]);
    return count;
}

/* ---------------------------------------------------------------------- the connection
 */

static sessile_status unsupported(sessile_error *err)
{
    return fail(err, SESSILE_UNSUPPORTED,
                "this store has no nodes: several servers can share a store only in a "
                "PostgreSQL database");
}

static char *text_of(pg_store *ps, const char *sql)
{
    buf text;
    buf_init(&text, &ps->alloc);
    pg_sql_put(&text, sql, ps->url.schema);
    char *out = text.failed ? NULL : mem_dup(&ps->alloc, text.data, text.size);
    buf_deinit(&text);
    return out;
}

static void drop_text(pg_store *ps, char *text)
{
    mem_free(&ps->alloc, text, text ? strlen(text) + 1 : 0);
}

sessile_status store_nodes_open(store_nodes **out, const store *st, sessile_error *err)
{
    *out = NULL;
    if (!store_is_postgres(st))
        return unsupported(err);
    pg_store *ps = st->self;
    store_nodes *n = mem_zalloc(&ps->alloc, sizeof *n);
    if (!n)
        return fail_nomem(err);
    n->ps = ps;
    atomic_init(&n->stopped, 0);
    n->beat = text_of(ps, beat_sql);
    n->leave = text_of(ps, leave_sql);
    if (!n->beat || !n->leave) {
        store_nodes_close(n);
        return fail_nomem(err);
    }
    *out = n;
    return SESSILE_OK;
}

void store_nodes_close(store_nodes *n)
{
    if (!n)
        return;
    pg_store *ps = n->ps;
    pg_finish(ps, n->conn);
    drop_text(ps, n->beat);
    drop_text(ps, n->leave);
    mem_free(&ps->alloc, n->others, n->room * sizeof *n->others);
    mem_free(&ps->alloc, n, sizeof *n);
}

void store_nodes_stop(store_nodes *n)
{
    atomic_store(&n->stopped, 1);
}

static int is_stopped(void *arg)
{
    store_nodes *n = arg;
    return atomic_load(&n->stopped);
}

/* Runs a statement whose commit nobody waits for. What it does may be done twice, so it
 * is done again when the connection broke: the server closes those that idle. */
static sessile_status run(store_nodes *n, pg_call *call, const pg_step *s, pg_results *r,
                          sessile_error *err)
{
    pg_store *ps = n->ps;
    const pg_step steps[2] = {pg_step_of(PG_UNSYNCED), *s};
    if (pg_forked(ps, err))
        return SESSILE_FORKED;
    for (int tries = 0;; tries++) {
        sessile_status status = n->conn ? SESSILE_OK : pg_connect(call, &n->conn, err);
        if (status)
            return status;
        pg_ended ended = pg_answer(call, n->conn, steps, 2, r);
        if (ended == PG_ANSWERED && !r->wrong)
            return SESSILE_OK;
        if (ended == PG_ANSWERED) {
            status = pg_say(call, r->wrong, "table of nodes", err);
            pg_results_free(ps, r);
            /* a primary that became a standby: the next connection may find another */
            if (status == SESSILE_DENIED || status == SESSILE_IO) {
                pg_finish(ps, n->conn);
                n->conn = NULL;
            }
            return status;
        }
        pg_finish(ps, n->conn);
        n->conn = NULL;
        if (ended != PG_LOST)
            return pg_say_late(call, ended, "table of nodes", err);
        if (tries > 0)
            return fail(err, SESSILE_IO, "the connection to %s broke during a beat",
                        ps->url.where);
    }
}

/* ---------------------------------------------------------------------- beats */

static sessile_status make_room(store_nodes *n, size_t rows, sessile_error *err)
{
    if (rows <= n->room)
        return SESSILE_OK;
    store_node *more = mem_zalloc(&n->ps->alloc, rows * sizeof *more);
    if (!more)
        return fail_nomem(err);
    mem_free(&n->ps->alloc, n->others, n->room * sizeof *n->others);
    n->others = more;
    n->room = rows;
    return SESSILE_OK;
}

static sessile_status read_beat(store_nodes *n, const PGresult *r, const store_node *own,
                                store_beat *out, sessile_error *err)
{
    pg_store *ps = n->ps;
    int rows = pg_rows(ps, r);
    sessile_status status = make_room(n, (size_t)rows, err);
    if (status)
        return status;
    if (rows == 0)
        return fail(err, SESSILE_IO, "%s answered a beat with nothing", ps->url.where);
    if (pg_int(ps, r, 0, MINE) == 0)
        return fail(err, SESSILE_EXISTS,
                    "another node is called \"%s\": give each node a name of its own",
                    own->name);
    out->others = n->others;
    out->count = read_rows(ps, r, n->others, n->room);
    out->standbys = (int)pg_int(ps, r, 0, STANDBYS);
    out->now_ms = pg_int(ps, r, 0, NOW);
    return SESSILE_OK;
}

sessile_status store_nodes_beat(store_nodes *n, const store_node *own, int lease_ms,
                                int timeout_ms, int ask_standbys, store_beat *out,
                                sessile_error *err)
{
    memset(out, 0, sizeof *out);
    pg_call call = pg_call_of(n->ps, timeout_ms);
    call.primary = 1;
    call.stop = (lock_stop){is_stopped, n};
    for (int tries = 0;; tries++) {
        pg_step s = pg_step_once(n->beat);
        pg_results r;
        pg_arg_text(&s, own->name);
        pg_arg_int(&s, own->incarnation);
        pg_arg_text(&s, own->address);
        pg_arg_text(&s, own->version);
        pg_arg_int(&s, (uint64_t)lease_ms);
        pg_arg_int(&s, own->sessions);
        pg_arg_int(&s, own->calls);
        pg_arg_int(&s, (uint64_t)ask_standbys);
        pg_arg_int(&s, NODES_MOST);
        call.absent = 0;
        sessile_status status = run(n, &call, &s, &r, err);
        if (status && call.absent && tries == 0) {
            status = pg_schema_add(&call, made, sizeof made / sizeof *made,
                                   "table of nodes", err);
            if (!status)
                continue;
        }
        if (status)
            return status;
        status = read_beat(n, r.of[1], own, out, err);
        pg_results_free(n->ps, &r);
        return status;
    }
}

sessile_status store_nodes_leave(store_nodes *n, const store_node *own, int timeout_ms,
                                 sessile_error *err)
{
    pg_call call = pg_call_of(n->ps, timeout_ms);
    pg_step s = pg_step_once(n->leave);
    pg_results r;
    call.primary = 1;
    pg_arg_text(&s, own->name);
    pg_arg_int(&s, own->incarnation);
    sessile_status status = run(n, &call, &s, &r, err);
    if (!status)
        pg_results_free(n->ps, &r);
    return status && call.absent ? SESSILE_OK : status;
}

/* ---------------------------------------------------------------------- the database */

sessile_status store_nodes_standbys(const store *st, int *out, sessile_error *err)
{
    *out = -1;
    if (!store_is_postgres(st))
        return unsupported(err);
    pg_store *ps = st->self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s = pg_step_once(standbys_sql);
    pg_results r;
    call.primary = 1;
    call.blind = 1; /* it is asked because standbys may be away */
    sessile_status status = pg_ask(&call, &s, 1, "replication", &r, err);
    if (status)
        return status;
    *out = (int)pg_int(ps, r.of[0], 0, 0);
    pg_results_free(ps, &r);
    return SESSILE_OK;
}

store_database store_database_look(const store *st)
{
    store_database out = {0, 0, 0};
    if (!store_is_postgres(st))
        return out;
    pg_store *ps = st->self;
    pthread_mutex_lock(&ps->mutex);
    for (const pg_conn *c = ps->idle; c; c = c->next)
        out.idle++;
    out.busy = ps->connections - out.idle;
    out.timeline = ps->server.timeline;
    pthread_mutex_unlock(&ps->mutex);
    return out;
}

/* ---------------------------------------------------------------------- the list */

sessile_status store_nodes_list(const store *st, store_node **out, size_t *count,
                                const allocator *a, sessile_error *err)
{
    *out = NULL;
    *count = 0;
    if (!store_is_postgres(st))
        return unsupported(err);
    pg_store *ps = st->self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    char *sql = text_of(ps, list_sql);
    if (!sql)
        return fail_nomem(err);
    pg_step s = pg_step_once(sql);
    pg_results r;
    pg_arg_int(&s, NODES_MOST);
    call.primary = 1; /* unlogged: a standby cannot read it */
    sessile_status status = pg_ask(&call, &s, 1, "table of nodes", &r, err);
    drop_text(ps, sql);
    if (status)
        return call.absent ? SESSILE_OK : status;
    size_t rows = (size_t)pg_rows(ps, r.of[0]);
    *out = rows ? host_alloc(a, rows * sizeof **out) : NULL;
    if (*out)
        *count = read_rows(ps, r.of[0], *out, rows);
    pg_results_free(ps, &r);
    return rows && !*out ? fail_nomem(err) : SESSILE_OK;
}

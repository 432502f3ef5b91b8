/*
 * bare_postgres.c: tables in PostgreSQL through libpq: statements prepared once, binary
 * both ways, one statement an append. Built without it where its header is not there.
 *
 * Its tables lie in a schema of their own, which the last connection drops.
 */
#include "bench/bare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if __has_include(<libpq-fe.h>)
#include <endian.h>
#include <libpq-fe.h>

const int bare_postgres_built = 1;

static const char tables[] =
    "CREATE TABLE sessions (id bigint PRIMARY KEY, agent text NOT NULL, name text,"
    " count bigint NOT NULL, bytes bigint NOT NULL, tag bytea NOT NULL,"
    " created bigint NOT NULL, updated bigint NOT NULL, UNIQUE (agent, name));"
    "CREATE TABLE entries (session bigint NOT NULL REFERENCES sessions (id)"
    " ON DELETE CASCADE, id bigint NOT NULL, at bigint NOT NULL, line bytea NOT NULL,"
    " PRIMARY KEY (session, id)) PARTITION BY HASH (session)";

enum { PARTITIONS = 16, MOST = 8 };

struct bare {
    PGconn *c;
    char schema[64];
};

static void right(bare *b, PGresult *r, ExecStatusType wanted)
{
    if (PQresultStatus(r) != wanted) {
        fprintf(stderr, "bench: PostgreSQL: %s", PQerrorMessage(b->c));
        exit(1);
    }
    PQclear(r);
}

static void run(bare *b, const char *text)
{
    right(b, PQexec(b->c, text), PGRES_COMMAND_OK);
}

static void prepare(bare *b, const char *name, const char *text)
{
    right(b, PQprepare(b->c, name, text, 0, NULL), PGRES_COMMAND_OK);
}

/* One statement that moves the session's end and adds count rows. */
static void prepare_append(bare *b, size_t count)
{
    char text[2048], name[16];
    size_t n =
        (size_t)snprintf(text, sizeof text,
                         "WITH s AS (UPDATE sessions SET count = count + %zu, bytes = "
                         "bytes + $2, tag = $3,"
                         " updated = $4 WHERE id = $1 RETURNING id, count, bytes)"
                         " INSERT INTO entries SELECT s.id, s.count - %zu + n - 1,"
                         " s.bytes - $2 + (n - 1) * ($2 / %zu), line FROM s, (VALUES ",
                         count, count, count);
    for (size_t i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s(%zu::bigint, $%zu::bytea)",
                              i ? ", " : "", i + 1, i + 5);
    snprintf(text + n, sizeof text - n, ") AS v (n, line)");
    snprintf(name, sizeof name, "append%zu", count);
    prepare(b, name, text);
}

static bare *pg_open(const char *where, int first, int synced)
{
    char text[256];
    bare *b = calloc(1, sizeof *b);
    if (!b)
        broken("memory");
    b->c = PQconnectdb(where);
    if (PQstatus(b->c) != CONNECTION_OK) {
        fprintf(stderr, "bench: PostgreSQL: %s", PQerrorMessage(b->c));
        exit(1);
    }
    snprintf(b->schema, sizeof b->schema, "bench_bare_%ld", (long)getpid());
    run(b, "SET client_min_messages = warning");
    if (first) {
        snprintf(text, sizeof text, "CREATE SCHEMA %s", b->schema);
        run(b, text);
    }
    snprintf(text, sizeof text, "SET search_path = %s", b->schema);
    run(b, text);
    if (!synced)
        run(b, "SET synchronous_commit = off");
    if (first) {
        run(b, tables);
        for (int i = 0; i < PARTITIONS; i++) {
            snprintf(text, sizeof text,
                     "CREATE TABLE entries_%d PARTITION OF entries"
                     " FOR VALUES WITH (MODULUS %d, REMAINDER %d)",
                     i, PARTITIONS, i);
            run(b, text);
        }
    }
    for (size_t count = 1; count <= MOST; count++)
        prepare_append(b, count);
    prepare(b, "make",
            "INSERT INTO sessions SELECT $1::bigint + n, 'main', 'session-' || $1 + n,"
            " 0, 0, '\\x00', 0, 0 FROM generate_series(0, $2::bigint - 1) AS n");
    prepare(b, "read",
            "SELECT line FROM entries WHERE session = $1 AND id >= $2 ORDER BY id");
    prepare(b, "list",
            "SELECT agent, name, count, bytes, tag, created, updated FROM sessions"
            " ORDER BY updated DESC LIMIT $1");
    return b;
}

static void pg_close(bare *b, int last)
{
    char text[128];
    if (last) {
        snprintf(text, sizeof text, "DROP SCHEMA %s CASCADE", b->schema);
        run(b, text);
    }
    PQfinish(b->c);
    free(b);
}

static PGresult *execute(bare *b, const char *name, int count, const char *const *values,
                         const int *sizes)
{
    static const int binary[4 + MOST] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    return PQexecPrepared(b->c, name, count, values, sizes, binary, 1);
}

/* The integers of a call, as they travel. */
typedef struct numbers {
    uint64_t at[2];
} numbers;

static const char *number(numbers *n, int which, size_t value)
{
    n->at[which] = htobe64((uint64_t)value);
    return (const char *)&n->at[which];
}

static void pg_append(bare *b, int session, const char *lines, size_t size, size_t count)
{
    const char *values[4 + MOST];
    int sizes[4 + MOST] = {8, 8, 16, 8};
    char name[16];
    numbers n, m;
    if (count > MOST)
        broken("too many lines at once");
    values[0] = number(&n, 0, (size_t)session);
    values[1] = number(&n, 1, count * size);
    values[2] = lines + count * size - 20;
    values[3] = number(&m, 0, (size_t)now_us());
    for (size_t i = 0; i < count; i++) {
        values[4 + i] = lines + i * size;
        sizes[4 + i] = (int)size;
    }
    snprintf(name, sizeof name, "append%zu", count);
    right(b, execute(b, name, 4 + (int)count, values, sizes), PGRES_COMMAND_OK);
}

static void make_rows(bare *b, size_t from, size_t count)
{
    numbers n;
    const char *values[2] = {number(&n, 0, from), number(&n, 1, count)};
    const int sizes[2] = {8, 8};
    right(b, execute(b, "make", 2, values, sizes), PGRES_COMMAND_OK);
}

static void pg_make(bare *b, int session, const char *lines, size_t size, size_t count)
{
    make_rows(b, (size_t)session, 1);
    run(b, "BEGIN");
    for (size_t i = 0; i < count; i += MOST)
        pg_append(b, session, lines + i * size, size,
                  count - i < MOST ? count - i : MOST);
    run(b, "COMMIT");
}

static size_t pg_read(bare *b, int session, size_t from, int opened)
{
    bare_sink sink = {NULL, 0, 0};
    numbers n;
    const char *values[2] = {number(&n, 0, (size_t)session), number(&n, 1, from)};
    const int sizes[2] = {8, 8};
    size_t used;
    PGresult *r = execute(b, "read", 2, values, sizes);
    for (int i = 0; i < PQntuples(r); i++)
        bare_take(&sink, PQgetvalue(r, i, 0), (size_t)PQgetlength(r, i, 0), opened);
    right(b, r, PGRES_TUPLES_OK);
    used = sink.used;
    bare_sink_free(&sink);
    return used;
}

static void pg_make_many(bare *b, size_t count)
{
    make_rows(b, 1000, count);
}

static size_t pg_list(bare *b, size_t limit)
{
    bare_sink sink = {NULL, 0, 0};
    numbers n;
    const char *values[1] = {number(&n, 0, limit ? limit : 1000000000)};
    const int sizes[1] = {8};
    PGresult *r = execute(b, "list", 1, values, sizes);
    size_t count = (size_t)PQntuples(r);
    for (size_t i = 0; i < count; i++)
        for (int c = 1; c < 7; c++)
            bare_take(&sink, PQgetvalue(r, (int)i, c), (size_t)PQgetlength(r, (int)i, c),
                      0);
    right(b, r, PGRES_TUPLES_OK);
    bare_sink_free(&sink);
    return count;
}

int bare_postgres_waits(const char *url)
{
    bare b = {.c = PQconnectdb(url)};
    PGresult *r = PQexec(b.c, "SHOW synchronous_standby_names");
    int waits = PQntuples(r) == 1 && *PQgetvalue(r, 0, 0) != '\0';
    right(&b, r, PGRES_TUPLES_OK);
    PQfinish(b.c);
    return waits;
}

void bare_postgres_drop(const char *url, const char *prefix)
{
    char text[512];
    bare b = {.c = PQconnectdb(url)};
    snprintf(text, sizeof text,
             "DO $$ DECLARE n text; BEGIN FOR n IN SELECT nspname FROM pg_namespace"
             " WHERE starts_with(nspname, '%s') LOOP"
             " EXECUTE format('DROP SCHEMA %%I CASCADE', n); END LOOP; END $$",
             prefix);
    run(&b, "SET client_min_messages = warning");
    run(&b, text);
    PQfinish(b.c);
}

const bare_kind bare_postgres = {.append_is = "one statement: UPDATE, INSERT",
                                 .read_is = "SELECT, binary, prepared",
                                 .list_is = "SELECT, binary, prepared",
                                 BARE_CALLS(pg)};

#else

const int bare_postgres_built = 0;
const bare_kind bare_postgres;

int bare_postgres_waits(const char *url)
{
    (void)url;
    return 0;
}

void bare_postgres_drop(const char *url, const char *prefix)
{
    (void)url, (void)prefix;
}

#endif

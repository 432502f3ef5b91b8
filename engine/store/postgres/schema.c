/*
 * schema.c: the tables, made when something is first kept.
 *
 * Owns their definition and its version; README.md says what each column holds. Only who
 * keeps the first thing makes them, in one transaction, under a lock of the server's, so
 * that many who come at once make them once. Who only reads needs no right to make
 * anything. Must never change tables that are there: those of a newer version are left
 * alone and refused.
 */
#include "store/postgres/postgres.h"

#include <stdio.h>
#include <string.h>

enum { VERSION = 1, PARTITIONS = 16 };

static const char *const tables[] = {
    "CREATE TABLE IF NOT EXISTS @sessions ("
    " id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " agent text COLLATE \"C\" NOT NULL,"
    " name text COLLATE \"C\","
    " was text COLLATE \"C\","
    " kept bigint,"
    " taken_by bigint,"
    " count bigint NOT NULL,"
    " bytes bigint NOT NULL,"
    " tag bytea,"
    " created timestamptz NOT NULL DEFAULT clock_timestamp(),"
    " updated timestamptz NOT NULL DEFAULT clock_timestamp(),"
    " watched timestamptz,"
    " UNIQUE (agent, name),"
    " CHECK ((name IS NULL) = (was IS NOT NULL) AND (was IS NULL) = (kept IS NULL))"
    ") WITH (fillfactor = 70)",
    /* for logs that lie beside others: few, or none */
    "CREATE INDEX IF NOT EXISTS sessions_kept ON @sessions (agent, was)"
    " WHERE was IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS @entries ("
    " session bigint NOT NULL REFERENCES @sessions ON DELETE CASCADE,"
    " id bigint NOT NULL,"
    " at bigint NOT NULL,"
    " line bytea NOT NULL,"
    " PRIMARY KEY (session, id)) PARTITION BY HASH (session)",
    /* sealed lines do not get smaller, and trying it would cost every append */
    "ALTER TABLE @entries ALTER line SET STORAGE EXTERNAL",
    "CREATE TABLE IF NOT EXISTS @blobs ("
    " name text COLLATE \"C\" PRIMARY KEY,"
    " data bytea NOT NULL,"
    " updated timestamptz NOT NULL DEFAULT clock_timestamp())",
    "CREATE TABLE IF NOT EXISTS @caches ("
    " session bigint NOT NULL REFERENCES @sessions ON DELETE CASCADE,"
    " at bigint NOT NULL,"
    " data bytea NOT NULL,"
    " PRIMARY KEY (session, at))",
    "ALTER TABLE @caches ALTER data SET STORAGE EXTERNAL",
    "CREATE TABLE IF NOT EXISTS @list_caches ("
    " agent text COLLATE \"C\" PRIMARY KEY,"
    " data bytea NOT NULL)",
    "CREATE TABLE IF NOT EXISTS @store (version int NOT NULL)",
};

/* What a plain line says, for people who query. Lines that are no JSON, and sealed ones,
 * have NULLs: never an error. U+0000, which jsonb cannot hold, is shown as U+FFFD. The
 * function's names are looked up when somebody asks the view, with that user's search
 * path: so each says where it is from. */
static const char *const views[] = {
    "CREATE OR REPLACE FUNCTION @entry(line bytea) RETURNS jsonb"
    " LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $body$"
    " DECLARE said pg_catalog.text;"
    " BEGIN"
    "  said := pg_catalog.convert_from(line, 'UTF8'::pg_catalog.name);"
    "  BEGIN RETURN said::pg_catalog.jsonb; EXCEPTION WHEN others THEN NULL; END;"
    "  RETURN pg_catalog.regexp_replace(said,"
    " '(?<!\\\\)((?:\\\\\\\\)*)\\\\u0000'::pg_catalog.text,"
    " '\\1\\\\ufffd'::pg_catalog.text, 'g'::pg_catalog.text)::pg_catalog.jsonb;"
    " EXCEPTION WHEN others THEN RETURN NULL;"
    " END $body$",
    "CREATE OR REPLACE VIEW @transcript AS SELECT s.agent, s.name, e.session, e.id,"
    " lpad(to_hex(e.id), 8, '0') AS entry, x.j ->> 'parent_id' AS parent,"
    " x.j ->> 'timestamp' AS \"time\", x.j ->> 'type' AS type,"
    " x.j ->> 'source' AS source, x.j ->> 'author' AS author, x.j ->> 'user' AS \"user\","
    " x.j #>> '{data,role}' AS role,"
    " CASE jsonb_typeof(x.j #> '{data,content}') WHEN 'array'"
    " THEN (SELECT string_agg(p ->> 'text', chr(10))"
    "  FROM jsonb_array_elements(x.j #> '{data,content}') p"
    "  WHERE jsonb_typeof(p) = 'object')"
    " ELSE x.j #>> '{data,content}' END AS content,"
    " x.j #>> '{tokens,0}' AS tokens, x.j -> 'data' AS data"
    " FROM @sessions s JOIN @entries e ON e.session = s.id"
    " CROSS JOIN LATERAL (SELECT @entry(e.line) AS j OFFSET 0) x"
    " WHERE s.name IS NOT NULL",
    /* those in force: a tombstone names what it withdraws */
    "CREATE OR REPLACE VIEW @checkpoints AS SELECT s.agent, s.name, e.session, e.id,"
    " lpad(to_hex(e.id), 8, '0') AS entry, x.j ->> 'timestamp' AS \"time\","
    " x.j #>> '{data,name}' AS checkpoint, x.j #>> '{data,head}' AS head,"
    " x.j #>> '{data,reason}' AS reason,"
    " x.j #>> '{data,messages}' AS messages, x.j #>> '{data,tokens,0}' AS tokens,"
    " x.j #> '{data,state}' AS state"
    " FROM @sessions s JOIN @entries e ON e.session = s.id"
    " CROSS JOIN LATERAL (SELECT @entry(e.line) AS j OFFSET 0) x"
    " WHERE s.name IS NOT NULL AND x.j ->> 'type' = 'checkpoint'"
    " AND NOT EXISTS (SELECT FROM @entries w"
    "  CROSS JOIN LATERAL (SELECT @entry(w.line) AS j OFFSET 0) t"
    "  WHERE w.session = e.session AND w.id > e.id AND t.j ->> 'type' = 'tombstone'"
    "  AND t.j #>> '{data,withdraws}' = lpad(to_hex(e.id), 8, '0'))",
    /* the leaf: what the last entry on a path is, or the last fact that moved it says */
    "CREATE OR REPLACE VIEW @overview AS SELECT s.agent, s.name, s.id AS session,"
    " h.j #>> '{data,session}' AS session_id, h.j #>> '{data,agent}' AS session_agent,"
    " h.j #>> '{data,user}' AS session_user, COALESCE(("
    "  SELECT x.j #>> '{data,title}' FROM @entries e"
    "  CROSS JOIN LATERAL (SELECT @entry(e.line) AS j OFFSET 0) x"
    "  WHERE e.session = s.id AND x.j ->> 'type' = 'metadata'"
    "  AND jsonb_typeof(x.j #> '{data,title}') = 'string' ORDER BY e.id DESC LIMIT 1),"
    "  h.j #>> '{data,title}') AS title, s.count AS entries, s.bytes, ("
    "  SELECT CASE WHEN x.j ->> 'type' = 'head' THEN x.j #>> '{data,head}'"
    "  ELSE x.j ->> 'id' END FROM @entries e"
    "  CROSS JOIN LATERAL (SELECT @entry(e.line) AS j OFFSET 0) x"
    "  WHERE e.session = s.id AND x.j ->> 'type' IN"
    "  ('session', 'message', 'turn', 'compaction', 'branch_summary', 'head')"
    "  ORDER BY e.id DESC LIMIT 1) AS head,"
    " s.created AS created_at, s.updated AS updated_at FROM @sessions s"
    " LEFT JOIN LATERAL (SELECT @entry(f.line) AS j FROM @entries f"
    " WHERE f.session = s.id AND f.id = 0) h ON true WHERE s.name IS NOT NULL",
};

sessile_status pg_schema_version(pg_call *call, int *version, sessile_error *err)
{
    pg_store *ps = call->ps;
    pg_step s = pg_step_of(PG_VERSION);
    pg_results r;
    *version = 0;
    call->absent = 0;
    sessile_status status = pg_ask(call, &s, 1, "schema", &r, err);
    if (status)
        return call->absent ? SESSILE_OK : status;
    int rows = pg_rows(ps, r.of[0]);
    int64_t found = rows > 0 ? pg_int(ps, r.of[0], 0, 0) : 0;
    pg_results_free(ps, &r);
    if (rows != 1 || found < 1) {
        return fail(err, SESSILE_INVALID,
                    "the schema \"%s\" at %s has a table \"store\" that is none of ours: "
                    "let the store's URL say schema=NAME",
                    ps->url.schema, ps->url.where);
    }
    if (found > VERSION) {
        return fail(err, SESSILE_UNSUPPORTED,
                    "the schema \"%s\" at %s is of version %lld, and this sessile knows "
                    "%d: use a newer one",
                    ps->url.schema, ps->url.where, (long long)found, VERSION);
    }
    *version = (int)found;
    return SESSILE_OK;
}

/* One statement of the making, in the memory of `all`, where it begins at *from. */
static void add(buf *all, size_t from[], int *count, const char *sql, const char *schema)
{
    from[(*count)++] = all->size;
    pg_sql_put(all, sql, schema);
    buf_putc(all, '\0');
}

/* Whoever else makes this schema waits until we have committed, and finds it there. */
static const char lock[] = "SELECT pg_advisory_xact_lock(hashtext('sessile ' || ~))";

static sessile_status make(pg_call *call, int new_schema, int with_views, int *lacking,
                           sessile_error *err)
{
    pg_store *ps = call->ps;
    const char *schema = ps->url.schema;
    size_t from[PG_STEPS_MOST];
    pg_step steps[PG_STEPS_MOST];
    int count = 0;
    char text[200];
    buf all;
    buf_init(&all, &ps->alloc);
    add(&all, from, &count, lock, schema);
    if (new_schema) {
        snprintf(text, sizeof text, "CREATE SCHEMA IF NOT EXISTS \"%s\"", schema);
        add(&all, from, &count, text, schema);
    }
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        add(&all, from, &count, tables[i], schema);
    for (int i = 0; i < PARTITIONS; i++) {
        snprintf(text, sizeof text,
                 "CREATE TABLE IF NOT EXISTS @entries_%d PARTITION OF @entries"
                 " FOR VALUES WITH (MODULUS %d, REMAINDER %d)",
                 i, PARTITIONS, i);
        add(&all, from, &count, text, schema);
    }
    for (size_t i = 0; with_views && i < sizeof views / sizeof *views; i++)
        add(&all, from, &count, views[i], schema);
    snprintf(text, sizeof text,
             "INSERT INTO @store SELECT %d WHERE NOT EXISTS (SELECT FROM @store)",
             VERSION);
    add(&all, from, &count, text, schema);
    if (all.failed) {
        buf_deinit(&all);
        return fail_nomem(err);
    }
    for (int i = 0; i < count; i++)
        steps[i] = pg_step_once(all.data + from[i]);
    pg_results r;
    sessile_status status = SESSILE_OK;
    pg_conn *c;
    *lacking = 0;
    status = pg_take(call, &c, err);
    if (!status) {
        /* interrupted, it is there or not, and is made again if it is not */
        pg_ended ended = pg_answer(call, c, steps, count, &r);
        if (ended != PG_ANSWERED) {
            pg_discard(ps, c);
            status = ended == PG_LOST
                         ? fail(err, SESSILE_IO,
                                "the connection to %s broke while the schema \"%s\" was "
                                "made: try again",
                                ps->url.where, schema)
                         : pg_say_late(call, ended, "schema", err);
        } else {
            pg_give(ps, c);
            if (r.wrong) {
                *lacking = pg_state_is(ps, r.wrong, "0A") ||
                           pg_state_is(ps, r.wrong, "42601") ||
                           pg_state_is(ps, r.wrong, "42704") ||
                           pg_state_is(ps, r.wrong, "42883");
                status = pg_say(call, r.wrong, "schema", err);
            }
            pg_results_free(ps, &r);
        }
    }
    buf_deinit(&all);
    return status;
}

sessile_status pg_schema_make(pg_call *call, sessile_error *err)
{
    pg_store *ps = call->ps;
    pg_step s = pg_step_once("SELECT 1::bigint FROM pg_namespace WHERE nspname = $1");
    pg_results r;
    pg_arg_text(&s, ps->url.schema);
    sessile_status status = pg_ask(call, &s, 1, "schema", &r, err);
    if (status)
        return status;
    int new_schema = pg_rows(ps, r.of[0]) == 0, lacking;
    pg_results_free(ps, &r);
    status = make(call, new_schema, 1, &lacking, err);
    if (status && lacking) /* a server without functions: no views then */
        status = make(call, new_schema, 0, &lacking, err);
    return status;
}

sessile_status pg_schema_add(pg_call *call, const char *const *sql, int count,
                             const char *what, sessile_error *err)
{
    pg_store *ps = call->ps;
    size_t from[PG_STEPS_MOST];
    pg_step steps[PG_STEPS_MOST];
    int version, steps_count = 0;
    buf all;
    sessile_status status = pg_schema_version(call, &version, err);
    if (!status && version == 0)
        status = pg_schema_make(call, err);
    if (status)
        return status;
    buf_init(&all, &ps->alloc);
    add(&all, from, &steps_count, lock, ps->url.schema);
    for (int i = 0; i < count; i++)
        add(&all, from, &steps_count, sql[i], ps->url.schema);
    if (all.failed) {
        buf_deinit(&all);
        return fail_nomem(err);
    }
    for (int i = 0; i < steps_count; i++)
        steps[i] = pg_step_once(all.data + from[i]);
    pg_results r;
    status = pg_ask(call, steps, steps_count, what, &r, err);
    if (!status)
        pg_results_free(ps, &r);
    buf_deinit(&all);
    return status;
}

/*
 * sql.c: every statement that is sent again and again, and how its arguments are
 * written.
 *
 * Owns their texts. Each is prepared once a connection, under a name made of its text: so
 * whoever shares a connection behind a pooler finds the same statement under that name,
 * or none. '@' stands for the schema and its dot, '~' for the schema's name as a string.
 */
#include "store/postgres/postgres.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "store/records.h"

/* Whoever waits for news of a log (watch.c) is called, and nobody else: NOTIFY
 * takes one lock of the whole server at the commit. */
#define CALL(from) \
    "SELECT CASE WHEN watched > now() THEN pg_notify(~, id::text) END FROM " from

/* What a log's row says, and where its name leads. */
#define ROW "count, bytes, tag, updated"

/* NULL unless commits wait for standbys. */
#define REPLICATED                                                                       \
    "CASE WHEN current_setting('synchronous_standby_names', true) <> '' THEN 1::bigint " \
    "END"

/* A process of the server that is no longer ours. */
#define OLD_PROCESS                                 \
    " FROM pg_stat_get_activity($1::bigint::int) a" \
    " WHERE a.backend_start = $2::timestamptz"

/* The size of a log (s) whose row and entries do not agree: one byte, which no entry has,
 * more than there is. So it is found damaged, and all of it can be read. What no gigabyte
 * of lost entries explains is not believed. */
#define SIZE                                                                           \
    "(SELECT CASE WHEN s.count - 1 = e.id AND s.bytes - length(e.line) = e.at"         \
    " THEN s.bytes ELSE (SELECT CASE WHEN e.at BETWEEN 0 AND t.total + 1073741824"     \
    " THEN e.at + length(e.line) WHEN s.bytes BETWEEN 0 AND t.total + 1073741824"      \
    " THEN s.bytes ELSE t.total END + 1 FROM (SELECT COALESCE(sum(length(x.line)), 0)" \
    "::bigint AS total FROM @entries x WHERE x.session = s.id) t) END"                 \
    " FROM (SELECT 1) AS one LEFT JOIN LATERAL (SELECT id, at, line FROM @entries m"   \
    " WHERE m.session = s.id ORDER BY m.id DESC LIMIT 1) e ON true)"

/*
 * The fence: the row is changed if it still ends there, and only then are there records.
 * Two that come at once wait for one another at the row; the later one then looks at what
 * the first has made of it. `tag` is not known of what was made in one piece.
 */
#define APPEND                                                                      \
    "WITH moved AS (UPDATE @sessions SET count = count + $5::bigint,"               \
    " bytes = bytes + $6::bigint, tag = $7::bytea, updated = clock_timestamp()"     \
    " WHERE id = $1::bigint AND count = $2::bigint AND bytes = $3::bigint"          \
    " AND (tag IS NULL OR tag = $4::bytea) AND name IS NOT NULL"                    \
    " RETURNING id, watched), put AS (INSERT INTO @entries (session, id, at, line)" \
    " SELECT m.id, $2::bigint + r.n - 1, r.at, r.line FROM moved m,"                \
    " unnest($8::bigint[], $9::bytea[]) WITH ORDINALITY AS r(at, line, n)) " CALL(  \
        "moved")

/* Records of a log from $2 on, at most $3 of them, as far as they begin before $4. */
#define LINES                                                         \
    "SELECT at, line FROM (SELECT e.id, e.at, e.line FROM @entries e" \
    " WHERE e.session = $1::bigint AND e.id >= $2::bigint"            \
    " ORDER BY e.id LIMIT $3::bigint) x WHERE at < $4::bigint ORDER BY id"

/*
 * What comes with the opening of a log that is found by its name. Of the log $3 all is
 * there already that is before its record $4, at $5. All of what is missing, if it is no
 * more than $6 bytes; else the first record of it, and the newest $7 that lie in the last
 * $8 bytes.
 */
#define BY_NAME "FROM @sessions WHERE agent = $1::text AND name = $2::text"
#define IS_LONG \
    "s.bytes - CASE WHEN s.id = $3::bigint THEN $5::bigint ELSE 0 END > $6::bigint"
#define LACKED "(e.session <> $3::bigint OR e.id >= $4::bigint)"
#define OPEN_LINES                                                                    \
    "SELECT e.session, e.id, e.at, e.line FROM @entries e WHERE e.session = (SELECT " \
    "id " BY_NAME ") AND e.id >= (SELECT CASE WHEN id = $3::bigint THEN $4::bigint "  \
    "ELSE 0 END " BY_NAME ") ORDER BY e.id LIMIT (SELECT CASE WHEN " IS_LONG          \
    " THEN 1 ELSE s.count END FROM @sessions s WHERE s.agent = $1::text"              \
    " AND s.name = $2::text)"
#define OPEN_TAIL                                                                    \
    "SELECT session, id, at, line FROM (SELECT e.session, e.id, e.at, e.line"        \
    " FROM @entries e WHERE e.session = (SELECT id " BY_NAME ") AND " LACKED         \
    " ORDER BY e.id DESC LIMIT (SELECT CASE WHEN " IS_LONG                           \
    " THEN $7::bigint ELSE 0 END FROM @sessions s WHERE s.agent = $1::text"          \
    " AND s.name = $2::text)) x WHERE at >= (SELECT bytes - $8::bigint " BY_NAME ")" \
    " ORDER BY id"

/* The size of a cache, and its last piece, if it has at most $2 bytes, with what begins
 * at most $3 before it: that is what is read next. */
#define CACHE_SIZE(session, most, before)                                        \
    "SELECT at, length(data)::bigint, CASE WHEN length(data) <= " most           \
    " THEN data END, session FROM @caches WHERE session = " session " AND at >=" \
    " (SELECT max(c.at) FROM @caches c WHERE c.session = " session ") - " before \
    " ORDER BY at"

/* The record that byte $2 of a log is in, where nobody knows its number. Offsets grow
 * with numbers, so halves are tried; an index on them would make each append dearer. */
#define FIND                                                                             \
    "WITH RECURSIVE half(lo, hi, found) AS (SELECT 0::bigint, COALESCE(max(id), 0) + 1," \
    " 0::bigint FROM @entries WHERE session = $1::bigint"                                \
    " UNION ALL SELECT CASE WHEN e.at <= $2::bigint THEN h.lo + (h.hi - h.lo) / 2"       \
    " ELSE h.lo END, CASE WHEN e.at <= $2::bigint THEN h.hi"                             \
    " ELSE h.lo + (h.hi - h.lo) / 2 END,"                                                \
    " CASE WHEN e.at <= $2::bigint THEN e.id ELSE h.found END"                           \
    " FROM half h LEFT JOIN LATERAL (SELECT m.id, m.at FROM @entries m"                  \
    " WHERE m.session = $1::bigint AND m.id <= h.lo + (h.hi - h.lo) / 2"                 \
    " ORDER BY m.id DESC LIMIT 1) e ON true WHERE h.hi - h.lo > 1)"                      \
    " SELECT found FROM half ORDER BY hi - lo LIMIT 1"

/* Where the bytes begin again that byte $2 is missing before. */
#define BEHIND                                                                   \
    "SELECT at, id FROM @entries WHERE session = $1::bigint AND at > $2::bigint" \
    " AND at < $3::bigint ORDER BY at LIMIT 1"

#define STAT_ROW "id, bytes, updated"
#define OTHERS                                                                         \
    "SELECT agent, was || CASE WHEN kept > 0 THEN '.replaced-' ELSE '.draft-' END || " \
    "id, bytes, id FROM @sessions"                                                     \
    " WHERE name IS NULL AND id > $1::bigint"

static const char *const texts[PG_STATEMENTS] = {
    [PG_VERSION] = "SELECT version::bigint FROM @store",

    [PG_CREATE] = "WITH made AS (INSERT INTO @sessions (agent, name, count, bytes)"
                  " VALUES ($1::text, $2::text, $3::bigint, $4::bigint)"
                  " ON CONFLICT (agent, name) DO NOTHING RETURNING id), put AS ("
                  "INSERT INTO @entries (session, id, at, line)"
                  " SELECT m.id, r.n - 1, r.at, r.line FROM made m,"
                  " unnest($5::bigint[], $6::bytea[]) WITH ORDINALITY AS r(at, line, n))"
                  " SELECT id FROM made",
    [PG_OPEN] = "SELECT id, " ROW ", " REPLICATED ", " SIZE " FROM @sessions s"
                " WHERE agent = $1::text AND name = $2::text",
    [PG_OPEN_LINES] = OPEN_LINES,
    [PG_OPEN_TAIL] = OPEN_TAIL,
    [PG_OPEN_CACHE] = CACHE_SIZE("(SELECT id " BY_NAME ")", "$3::bigint", "$4::bigint"),
    [PG_LOOK] =
        "SELECT s.id, s.count, s.bytes, s.tag, s.updated,"
        " CASE WHEN s.name IS NULL THEN NULL ELSE 1::bigint END,"
        " (SELECT n.id FROM @sessions n"
        " WHERE n.agent = $2::text AND n.name = $3::text), " REPLICATED ", " SIZE
        " FROM (VALUES ($1::bigint)) AS v(id) LEFT JOIN @sessions s ON s.id = v.id",
    [PG_LINES] = LINES,
    [PG_FIND] = FIND,
    [PG_BEHIND] = BEHIND,
    [PG_APPEND] = APPEND,
    /* of this transaction alone */
    [PG_UNSYNCED] = "SELECT set_config('synchronous_commit', 'off', true)",
    /* A lock is something to write down: so this commit is one to be synced and
     * replicated, and with it all that the server wrote down before. Neither appends nor
     * others who sync wait for such a lock. */
    [PG_SYNC] = "SELECT count, bytes, tag FROM @sessions WHERE id = $1::bigint"
                " FOR KEY SHARE",

    [PG_LIST] = "SELECT agent, name, " STAT_ROW " FROM @sessions WHERE name IS NOT NULL"
                " AND (agent, name) > ($1::text, $2::text)"
                " ORDER BY agent, name LIMIT $3::bigint",
    [PG_LIST_FOLDER] = "SELECT agent, name, " STAT_ROW " FROM @sessions"
                       " WHERE agent = $1::text AND name > $2::text"
                       " ORDER BY agent, name LIMIT $3::bigint",
    [PG_HAS_LOGS] = "SELECT 1::bigint FROM @sessions WHERE name IS NOT NULL LIMIT 1",
    [PG_STAT] = "SELECT " STAT_ROW " " BY_NAME,
    [PG_NAMES] = "SELECT agent, name FROM @sessions WHERE id = $1::bigint"
                 " AND name IS NOT NULL",
    [PG_RENAME] = "UPDATE @sessions SET agent = $2::text, name = $3::text"
                  " WHERE id = $1::bigint AND name IS NOT NULL AND NOT EXISTS (SELECT 1"
                  " FROM @sessions WHERE agent = $2::text AND name = $3::text AND id <>"
                  " $1::bigint) RETURNING id",
    [PG_OTHERS] = OTHERS " ORDER BY id LIMIT $2::bigint",
    [PG_OTHERS_FOLDER] = OTHERS " AND agent = $3::text ORDER BY id LIMIT $2::bigint",
    [PG_LEFT_OVER] = OTHERS " AND kept = 0 AND updated < now() - interval '1 hour'"
                            " ORDER BY id LIMIT $2::bigint",
    [PG_SWEEP] = "DELETE FROM @sessions WHERE id = $1::bigint AND name IS NULL"
                 " AND kept = 0 AND updated < now() - interval '1 hour'",

    [PG_BLOB_GET] = "SELECT data FROM @blobs WHERE name = $1::text",
    [PG_BLOB_PUT] = "INSERT INTO @blobs (name, data) VALUES ($1::text, $2::bytea)"
                    " ON CONFLICT (name) DO NOTHING RETURNING 1::bigint",
    [PG_BLOB_REPLACE] = "UPDATE @blobs SET data = $3::bytea, updated = clock_timestamp()"
                        " WHERE name = $1::text AND data = $2::bytea RETURNING 1::bigint",
    [PG_BLOB_REMOVE] = "DELETE FROM @blobs WHERE name = $1::text RETURNING 1::bigint",
    [PG_BLOB_LIST] = "SELECT name FROM @blobs WHERE starts_with(name, $1::text)"
                     " ORDER BY name",

    [PG_LIST_CACHE_GET] = "SELECT data FROM @list_caches WHERE agent = $1::text",
    [PG_LIST_CACHE_PUT] =
        "INSERT INTO @list_caches (agent, data) VALUES ($1::text, $2::bytea)"
        " ON CONFLICT (agent) DO UPDATE SET data = excluded.data",
    [PG_LIST_CACHE_DROP] =
        "DELETE FROM @list_caches WHERE $1::text IS NULL OR agent = $1::text",

    [PG_CACHE_SIZE] = CACHE_SIZE("$1::bigint", "$2::bigint", "$3::bigint"),
    [PG_CACHE_READ] =
        "SELECT greatest(at, $2::bigint), substring(data FROM"
        " (greatest($2::bigint - at, 0) + 1)::int"
        " FOR ($3::bigint - greatest(at, $2::bigint))::int) FROM @caches"
        " WHERE session = $1::bigint AND at < $3::bigint AND at >= COALESCE((SELECT"
        " max(c.at) FROM @caches c WHERE c.session = $1::bigint"
        " AND c.at <= $2::bigint), 0) ORDER BY at",
    [PG_CACHE_LOCK] = "SELECT 1::bigint FROM @sessions WHERE id = $1::bigint"
                      " FOR NO KEY UPDATE",
    [PG_CACHE_CUT] =
        "UPDATE @caches SET data = substring(data FOR ($2::bigint - at)::int)"
        " WHERE session = $1::bigint AND at < $2::bigint"
        " AND at + length(data) > $2::bigint",
    [PG_CACHE_DROP] = "DELETE FROM @caches WHERE session = $1::bigint"
                      " AND at >= $2::bigint",
    [PG_CACHE_PUT] = "INSERT INTO @caches (session, at, data)"
                     " SELECT s.id, $2::bigint, $3::bytea FROM @sessions s"
                     " WHERE s.id = $1::bigint AND $2::bigint = COALESCE((SELECT"
                     " max(c.at + length(c.data)) FROM @caches c"
                     " WHERE c.session = $1::bigint), 0) RETURNING 1::bigint",

    [PG_DRAFT_NEW] = "INSERT INTO @sessions (agent, was, kept, count, bytes)"
                     " VALUES ($1::text, $2::text, 0, 0, 0) RETURNING id",
    [PG_DRAFT_LINES] =
        "WITH moved AS (UPDATE @sessions SET count = $2::bigint + $4::bigint,"
        " bytes = $3::bigint, updated = clock_timestamp() WHERE id = $1::bigint"
        " AND name IS NULL AND count = $2::bigint RETURNING id), put AS ("
        "INSERT INTO @entries (session, id, at, line)"
        " SELECT m.id, $2::bigint + r.n - 1, r.at, r.line FROM moved m,"
        " unnest($5::bigint[], $6::bytea[]) WITH ORDINALITY AS r(at, line, n))"
        " SELECT id FROM moved",
    /* The draft that takes the name is written down in the old log's row: what is done
     * next asks for it, so it is done only if this was. */
    [PG_DRAFT_UNNAME] =
        "WITH moved AS (UPDATE @sessions SET name = NULL, was = name,"
        " taken_by = $4::bigint, kept = id WHERE id = $1::bigint"
        " AND count = $2::bigint AND bytes = $3::bigint AND name IS NOT NULL"
        " RETURNING id, watched) " CALL("moved"),
    [PG_DRAFT_NAME] = "UPDATE @sessions d SET name = o.was, was = NULL, kept = NULL,"
                      " created = o.created, updated = clock_timestamp()"
                      " FROM @sessions o WHERE d.id = $1::bigint AND d.name IS NULL"
                      " AND o.id = $2::bigint AND o.taken_by = d.id RETURNING d.id",
    [PG_DRAFT_FORGET] = "WITH cache AS (DELETE FROM @caches c USING @sessions o"
                        " WHERE c.session = o.id AND o.id = $1::bigint"
                        " AND o.taken_by = $2::bigint) DELETE FROM @sessions"
                        " WHERE id = $1::bigint AND taken_by = $2::bigint"
                        " AND $3::bigint = 0",
    [PG_DRAFT_PUBLISH] =
        "UPDATE @sessions SET name = was, was = NULL, kept = NULL, created = "
        "clock_timestamp(),"
        " updated = clock_timestamp() WHERE id = $1::bigint AND name IS NULL RETURNING "
        "id",
    [PG_DRAFT_DROP] = "DELETE FROM @sessions WHERE id = $1::bigint AND name IS NULL"
                      " AND kept = 0",
    [PG_DRAFT_LOOK] = "SELECT CASE WHEN name IS NULL THEN NULL ELSE 1::bigint END, count"
                      " FROM @sessions WHERE id = $1::bigint",
    [PG_REMOVE] = "WITH gone AS (DELETE FROM @sessions WHERE id = $1::bigint"
                  " AND count = $2::bigint AND bytes = $3::bigint AND name IS NOT NULL"
                  " RETURNING id, agent, name, watched), beside AS ("
                  "DELETE FROM @sessions k USING gone g WHERE k.agent = g.agent"
                  " AND k.was = g.name AND k.kept > 0) " CALL("gone"),

    [PG_WATCH] = "UPDATE @sessions SET watched = now() + $2::bigint * interval '1 ms'"
                 " WHERE id = $1::bigint AND (watched IS NULL"
                 " OR watched < now() + $2::bigint * interval '0.5 ms')",
    /* A commit that waits for standbys is left to wait. Where there are such waits, only
     * a process that is seen to be elsewhere is ended: one that commits might wait next.
     */
    [PG_BURY] = "SELECT CASE WHEN a.wait_event = 'SyncRep' OR " REPLICATED " IS NOT NULL"
                " AND a.state = 'active' AND COALESCE(a.wait_event_type, '')"
                " NOT IN ('Client', 'Lock', 'Timeout') THEN 0"
                " WHEN pg_terminate_backend(a.pid) THEN 1 ELSE 0 END::bigint" OLD_PROCESS,
    [PG_END] = "SELECT pg_terminate_backend(a.pid)" OLD_PROCESS,
    /* a commit behind all that was committed before; nothing where nobody replicates */
    [PG_SETTLE] = "SELECT version::bigint FROM @store WHERE " REPLICATED " IS NOT NULL"
                  " FOR KEY SHARE",
    /* names the table, so that a database without it says what is missing */
    [PG_LIMIT] = "SELECT @limit_take($1::bigint, $2::bigint, $3::bigint, $4::bigint)"
                 " FROM (SELECT) AS one LEFT JOIN @limits l ON false",
    /* of these logs, those whose row has not the size that is known, or no name */
    [PG_ENDS] = "SELECT v.n, CASE WHEN s.name IS NULL THEN NULL ELSE s.bytes END"
                " FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS v(id, bytes,"
                " n) LEFT JOIN @sessions s ON s.id = v.id"
                " WHERE s.name IS NULL OR s.bytes <> v.bytes",
    [PG_CLOCK] = "SELECT clock_timestamp()",
};

void pg_sql_put(buf *out, const char *sql, const char *schema)
{
    for (; *sql != '\0'; sql++)
        if (*sql == '@')
            buf_printf(out, "\"%s\".", schema);
        else if (*sql == '~')
            buf_printf(out, "'%s'", schema);
        else
            buf_putc(out, *sql);
}

int pg_texts_fill(pg_texts *out, const char *schema, const allocator *a)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < PG_STATEMENTS; i++) {
        unsigned char hash[32];
        buf text;
        buf_init(&text, a);
        pg_sql_put(&text, texts[i], schema);
        if (!text.failed)
            out->text[i] = mem_dup(a, text.data, text.size);
        if (out->text[i]) {
            hash256(hash, text.data, text.size, NULL, 0);
            memcpy(out->name[i], "sessile_", 8);
            hex_encode(out->name[i] + 8, hash, 12);
        }
        buf_deinit(&text);
        if (!out->text[i]) {
            pg_texts_free(out, a);
            return -1;
        }
    }
    return 0;
}

void pg_texts_free(pg_texts *t, const allocator *a)
{
    for (int i = 0; i < PG_STATEMENTS; i++) {
        if (t->text[i]) {
            mem_free(a, t->text[i], strlen(t->text[i]) + 1);
            t->text[i] = NULL;
        }
    }
}

/* ---------------------------------------------------------------------- arguments */

pg_step pg_step_of(pg_statement statement)
{
    pg_step s;
    memset(&s, 0, sizeof s);
    s.statement = statement;
    return s;
}

pg_step pg_step_once(const char *sql)
{
    pg_step s = pg_step_of(PG_ONCE);
    s.once = sql;
    return s;
}

static void put_be(char *out, uint64_t n, int size)
{
    for (int i = size - 1; i >= 0; i--, n >>= 8)
        out[i] = (char)(n & 0xff);
}

/* A step is copied before it is sent: its numbers are found by `room`, not by a pointer.
 */
void pg_arg_int(pg_step *s, uint64_t n)
{
    put_be(s->room[s->count], n, 8);
    s->value[s->count] = NULL;
    s->size[s->count++] = -1;
}

void pg_arg_text(pg_step *s, const char *text)
{
    s->value[s->count] = text;
    s->size[s->count++] = text ? (int)strlen(text) : 0;
}

void pg_arg_bytes(pg_step *s, const void *data, size_t size)
{
    s->value[s->count] = size > 0 ? data : "";
    s->size[s->count++] = (int)size;
}

static void put_int(buf *out, uint64_t n, int size)
{
    char raw[8];
    put_be(raw, n, size);
    buf_put(out, raw, (size_t)size);
}

/* An array of one dimension, in the server's binary form. */
static void array_head(buf *out, uint32_t type, size_t count)
{
    put_int(out, 1, 4); /* dimensions */
    put_int(out, 0, 4); /* no nulls */
    put_int(out, type, 4);
    put_int(out, count, 4);
    put_int(out, 1, 4); /* counted from 1 */
}

enum { TYPE_INT8 = 20, TYPE_BYTEA = 17 };

int pg_records_fill(pg_records *out, const void *data, size_t size, uint64_t from,
                    const allocator *a)
{
    const char *text = data;
    size_t count = record_count(text, size);
    buf_init(&out->at, a);
    buf_init(&out->lines, a);
    if (size > INT_MAX / 2 || count > INT_MAX / 16)
        return -1;
    buf_reserve(&out->at, 20 + count * 12);
    buf_reserve(&out->lines, 20 + count * 4 + size);
    array_head(&out->at, TYPE_INT8, count);
    array_head(&out->lines, TYPE_BYTEA, count);
    for (size_t at = 0; at < size;) {
        size_t n = record_size(text + at, size - at);
        put_int(&out->at, 8, 4);
        put_int(&out->at, from + at, 8);
        put_int(&out->lines, n, 4);
        buf_put(&out->lines, text + at, n);
        at += n;
    }
    if (out->at.failed || out->lines.failed) {
        pg_records_free(out);
        return -1;
    }
    return 0;
}

int pg_ints_fill(buf *out, const uint64_t *values, size_t count, const allocator *a)
{
    buf_init(out, a);
    array_head(out, TYPE_INT8, count);
    for (size_t i = 0; i < count; i++) {
        put_int(out, 8, 4);
        put_int(out, values[i], 8);
    }
    return out->failed ? -1 : 0;
}

void pg_records_free(pg_records *r)
{
    buf_deinit(&r->at);
    buf_deinit(&r->lines);
}

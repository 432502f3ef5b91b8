/*
 * schema.c: tables, views, and every statement that reads or writes them.
 *
 * Owns the versions of the schema. What is below the version of this engine is brought up
 * to it in one transaction; what is above it is refused, and so is every database that is
 * not ours, before anything of it is changed. A database is ours when its header has our
 * application_id. It is made by a rollback journal and only then put into WAL mode, so
 * that the mark is in the file itself, where it can be looked for without opening it: a
 * database that was never finished is an empty one.
 *
 * The rows of entries are kept by rowid, with an index on (session, id). Measured, 200
 * sessions in turns, 600 and 1,500 bytes a line: 54 and 84 microseconds an append against
 * 109 and 138 in a table WITHOUT ROWID, whose pages have room for few lines and put the
 * rest of each on a page of its own, in a file twice as large; reading in order costs 0.9
 * and 1.5 microseconds a row against 0.4 and 2.4.
 *
 * What is said in plain lines is shown by views, not by generated columns: SQLite
 * computes those at every insert, also the virtual ones.
 */
#include "store/sqlite/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ tables */

static const char version_1[] =
    "CREATE TABLE sessions ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " agent TEXT NOT NULL,"
    " name TEXT,"
    " was TEXT,"
    " kept INTEGER,"
    " count INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL,"
    " tag BLOB,"
    " created INTEGER NOT NULL,"
    " updated INTEGER NOT NULL,"
    " UNIQUE (agent, name),"
    " CHECK ((name IS NULL) = (was IS NOT NULL) AND (was IS NULL) = (kept IS NULL))"
    ") STRICT;"
    "CREATE INDEX sessions_kept ON sessions (agent, was) WHERE was IS NOT NULL;"
    "CREATE TABLE entries ("
    " session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,"
    " id INTEGER NOT NULL,"
    " at INTEGER NOT NULL,"
    " line BLOB NOT NULL,"
    " PRIMARY KEY (session, id)"
    ") STRICT;"
    "CREATE TABLE caches ("
    " session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,"
    " at INTEGER NOT NULL,"
    " data BLOB NOT NULL,"
    " PRIMARY KEY (session, at)"
    ") STRICT;"
    "CREATE TABLE list_caches (agent TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT;"
    "CREATE TABLE blobs ("
    " name TEXT PRIMARY KEY,"
    " data BLOB NOT NULL,"
    " updated INTEGER NOT NULL"
    ") STRICT;"
    /* A line as JSON; NULL for a sealed one, and for any that is no JSON. */
    "CREATE VIEW lines AS SELECT session, id,"
    " CASE WHEN json_valid(CAST(line AS TEXT)) THEN CAST(line AS TEXT) END AS json"
    " FROM entries;"
    /* A row an entry. */
    "CREATE VIEW transcript AS SELECT s.agent, s.name, e.session, e.id,"
    " printf('%08x', e.id) AS entry,"
    " json_extract(e.json, '$.parent_id') AS parent,"
    " json_extract(e.json, '$.timestamp') AS time,"
    " json_extract(e.json, '$.type') AS type,"
    " json_extract(e.json, '$.source') AS source,"
    " json_extract(e.json, '$.author') AS author,"
    " json_extract(e.json, '$.user') AS user,"
    " json_extract(e.json, '$.data.role') AS role,"
    " CASE json_type(e.json, '$.data.content') WHEN 'array' THEN"
    "  (SELECT group_concat(json_extract(p.value, '$.text'), char(10))"
    "   FROM json_each(e.json, '$.data.content') AS p WHERE p.type = 'object')"
    "  ELSE json_extract(e.json, '$.data.content') END AS content,"
    " json_extract(e.json, '$.tokens[0]') AS tokens,"
    " json_extract(e.json, '$.data') AS data"
    " FROM lines AS e JOIN sessions AS s ON s.id = e.session"
    " WHERE s.name IS NOT NULL;"
    /* A row a checkpoint in force. */
    "CREATE VIEW checkpoints AS SELECT s.agent, s.name, e.session, e.id,"
    " printf('%08x', e.id) AS entry,"
    " json_extract(e.json, '$.timestamp') AS time,"
    " json_extract(e.json, '$.data.name') AS checkpoint,"
    " json_extract(e.json, '$.data.head') AS head,"
    " json_extract(e.json, '$.data.reason') AS reason,"
    " json_extract(e.json, '$.data.messages') AS messages,"
    " json_extract(e.json, '$.data.tokens[0]') AS tokens,"
    " json_extract(e.json, '$.data.state') AS state"
    " FROM lines AS e JOIN sessions AS s ON s.id = e.session"
    " WHERE s.name IS NOT NULL AND json_extract(e.json, '$.type') = 'checkpoint'"
    " AND NOT EXISTS (SELECT 1 FROM lines AS t WHERE t.session = e.session"
    "  AND t.id > e.id AND json_extract(t.json, '$.type') = 'tombstone'"
    "  AND json_extract(t.json, '$.data.withdraws') = printf('%08x', e.id));"
    /* A row a session. Its leaf: the last entry on a path, or what the last fact that
     * moved it says. */
    "CREATE VIEW overview AS SELECT s.agent, s.name, s.id AS session,"
    " json_extract(h.json, '$.data.session') AS session_id,"
    " json_extract(h.json, '$.data.agent') AS session_agent,"
    " json_extract(h.json, '$.data.user') AS session_user,"
    " CASE WHEN h.json IS NOT NULL THEN coalesce("
    "  (SELECT json_extract(e.json, '$.data.title') FROM lines AS e"
    "   WHERE e.session = s.id AND e.id IN (SELECT id FROM entries" /* not all parsed */
    "    WHERE session = s.id AND instr(line, x'226d6574616461746122') > 0)"
    "   AND json_extract(e.json, '$.type') = 'metadata'"
    "   AND json_type(e.json, '$.data.title') = 'text' ORDER BY e.id DESC LIMIT 1),"
    "  json_extract(h.json, '$.data.title')) END AS title,"
    " s.count AS entries, s.bytes,"
    " (SELECT CASE json_extract(e.json, '$.type') WHEN 'head'"
    "   THEN json_extract(e.json, '$.data.head') ELSE printf('%08x', e.id) END"
    "  FROM lines AS e WHERE e.session = s.id AND json_extract(e.json, '$.type') IN"
    "   ('session', 'message', 'turn', 'compaction', 'branch_summary', 'head')"
    "  ORDER BY e.id DESC LIMIT 1) AS head,"
    " strftime('%Y-%m-%dT%H:%M:%fZ', s.created / 1000.0, 'unixepoch') AS created_at,"
    " strftime('%Y-%m-%dT%H:%M:%fZ', s.updated / 1000.0, 'unixepoch') AS updated_at"
    " FROM sessions AS s JOIN lines AS h ON h.session = s.id AND h.id = 0"
    " WHERE s.name IS NOT NULL;";

static const char *const versions[SQLITE_SCHEMA_VERSION] = {version_1};

/* ------------------------------------------------------------------ whose it is */

static uint32_t big32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static sessile_status not_ours(const sqlite_store *ss, const char *why,
                               sessile_error *err)
{
    return fail(
        err, SESSILE_INVALID,
        "%s %s: it was left as it is; give the path of a store, or of no file yet",
        ss->path, why);
}

/*
 * Through SQLite's own file functions, which know of each other: another store of this
 * process may have the file open (sqlite.h).
 */
sessile_status sqlite_schema_probe(sqlite_store *ss, int *state, sessile_error *err)
{
    enum { LOOK = 108 }; /* the header, and that of the first page's tree */
    unsigned char page[LOOK] = {0};
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    sqlite3_int64 size = 0;
    int flags;
    *state = 0;
    sqlite3_file *file = vfs ? mem_zalloc(&ss->alloc, (size_t)vfs->szOsFile) : NULL;
    const char *name = file ? sqlite3_create_filename(ss->real, "", "", 0, NULL) : NULL;
    if (!name) {
        if (file)
            mem_free(&ss->alloc, file, (size_t)vfs->szOsFile);
        return fail_nomem(err);
    }
    int rc = vfs->xOpen(vfs, name, file,
                        SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_NOFOLLOW,
                        &flags);
    if (rc == SQLITE_OK) {
        rc = file->pMethods->xFileSize(file, &size);
        if (rc == SQLITE_OK && size > 0)
            rc = file->pMethods->xRead(file, page, size < LOOK ? (int)size : LOOK, 0);
    }
    if (file->pMethods)
        file->pMethods->xClose(file);
    sqlite3_free_filename((char *)(void *)(uintptr_t)name);
    mem_free(&ss->alloc, file, (size_t)vfs->szOsFile);
    if (rc != SQLITE_OK)
        return sqlite_fail(ss, NULL, rc, "cannot read", err);
    if (size == 0)
        return SESSILE_OK;
    if (size < LOOK || memcmp(page, "SQLite format 3", 16) != 0) {
        return not_ours(ss, "is not a database of SQLite, or its first page is damaged",
                        err);
    }
    uint32_t application = big32(page + 68);
    if (application == SQLITE_APPLICATION) {
        *state = 1;
        return SESSILE_OK;
    }
    /* the tree of the first page holds the schema: a leaf without cells has nothing */
    if (application != 0 || page[100] != 13 || page[103] != 0 || page[104] != 0)
        return not_ours(ss, "is another program's database", err);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ versions */

int sqlite_schema_migrate(sqlite3 *db, const char *const *steps, int version, int count)
{
    char text[64];
    int rc = SQLITE_OK;
    for (; version < count && rc == SQLITE_OK; version++)
        rc = sqlite3_exec(db, steps[version], NULL, NULL, NULL);
    if (rc == SQLITE_OK) {
        snprintf(text, sizeof text, "PRAGMA user_version = %d", count);
        rc = sqlite3_exec(db, text, NULL, NULL, NULL);
    }
    return rc;
}

/* Inside a transaction, with what is read there. *version -1: not ours. */
static int read_version(sqlite3 *db, int *version, int *rc)
{
    int64_t application = sqlite_ask(db, "PRAGMA application_id", rc);
    int64_t tables =
        *rc == SQLITE_OK ? sqlite_ask(db, "SELECT count(*) FROM sqlite_schema", rc) : 0;
    int64_t user = *rc == SQLITE_OK ? sqlite_ask(db, "PRAGMA user_version", rc) : 0;
    *version = application == SQLITE_APPLICATION ? (int)user
               : application == 0 && tables == 0 ? 0
                                                 : -1;
    return *rc;
}

/* 1 when the tables are, word for word, those that are made here: no column, CHECK or
 * default of a stranger's. SQLite takes no second table or view of the same name. Whoever
 * adds a version adds what its tables are then called. */
static int own_tables(sqlite3 *db, int *rc)
{
    enum { TABLES = 5 };
    sqlite3_stmt *st = NULL;
    int found = 0;
    *rc = sqlite3_prepare_v2(db, "SELECT sql FROM sqlite_schema WHERE type = 'table'", -1,
                             &st, NULL);
    while (*rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW) {
        const char *sql = (const char *)sqlite3_column_text(st, 0);
        const char *at =
            sql && strncmp(sql, "CREATE TABLE ", 13) == 0 && !strchr(sql, ';')
                ? strstr(version_1, sql)
                : NULL;
        found += at && at[strlen(sql)] == ';';
    }
    if (*rc == SQLITE_OK)
        *rc = sqlite3_reset(st);
    sqlite3_finalize(st);
    return found == TABLES;
}

/* 1 when names are compared byte by byte, as they are bound. */
static int is_utf8(sqlite3 *db, int *rc)
{
    sqlite3_stmt *st = NULL;
    int utf8 = 0;
    *rc = sqlite3_prepare_v2(db, "PRAGMA encoding", -1, &st, NULL);
    if (*rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(st, 0);
        utf8 = name && strcmp(name, "UTF-8") == 0;
    }
    sqlite3_finalize(st);
    return utf8;
}

static int make_schema(sqlite_conn *c, int *version)
{
    int rc = sqlite3_exec(c->db, "PRAGMA synchronous = FULL; BEGIN EXCLUSIVE", NULL, NULL,
                          NULL);
    if (rc != SQLITE_OK)
        return rc;
    /* others may have been faster */
    if (read_version(c->db, version, &rc) == SQLITE_OK && *version >= 0 &&
        *version < SQLITE_SCHEMA_VERSION) {
        char text[64];
        snprintf(text, sizeof text, "PRAGMA application_id = %d", SQLITE_APPLICATION);
        rc = sqlite3_exec(c->db, text, NULL, NULL, NULL);
        if (rc == SQLITE_OK) {
            rc = sqlite_schema_migrate(c->db, versions, *version, SQLITE_SCHEMA_VERSION);
            *version = SQLITE_SCHEMA_VERSION;
        }
    }
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(c->db, "COMMIT", NULL, NULL, NULL);
    if (!sqlite3_get_autocommit(c->db))
        sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

sessile_status sqlite_schema_ready(sqlite_conn *c, int make, int *rc, sessile_error *err)
{
    const sqlite_store *ss = c->store;
    int version = 0;
    /* of one moment: between two statements another process may make the tables */
    *rc = sqlite3_exec(c->db, "BEGIN", NULL, NULL, NULL);
    if (*rc == SQLITE_OK) {
        read_version(c->db, &version, rc);
        sqlite3_exec(c->db, "COMMIT", NULL, NULL, NULL);
    }
    if (*rc == SQLITE_OK && version >= 0 && version < SQLITE_SCHEMA_VERSION &&
        (make || version > 0))
        *rc = make_schema(c, &version);
    if (*rc != SQLITE_OK) {
        return (*rc & 0xff) == SQLITE_BUSY
                   ? SESSILE_BUSY
                   : sqlite_fail(ss, c->db, *rc, "cannot open", err);
    }
    if (version < 0)
        return not_ours(ss, "is another program's database", err);
    if (version == 0)
        return fail(err, SESSILE_NOTFOUND, "nothing was ever kept in %s", ss->path);
    if (version > SQLITE_SCHEMA_VERSION) {
        return fail(err, SESSILE_UNSUPPORTED,
                    "the schema of %s is version %d, and this engine knows version %d: "
                    "use a newer sessile",
                    ss->path, version, SQLITE_SCHEMA_VERSION);
    }
    int own = own_tables(c->db, rc);
    own = *rc == SQLITE_OK && own && is_utf8(c->db, rc);
    if (*rc != SQLITE_OK) {
        return (*rc & 0xff) == SQLITE_BUSY
                   ? SESSILE_BUSY
                   : sqlite_fail(ss, c->db, *rc, "cannot open", err);
    }
    return own ? SESSILE_OK
               : fail(err, SESSILE_DAMAGED,
                      "the tables of %s are not those that were made: somebody changed "
                      "them: bring back a backup",
                      ss->path);
}

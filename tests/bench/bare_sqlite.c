/*
 * bare_sqlite.c: tables in SQLite: WAL, synchronous=FULL (or NORMAL, where a commit is
 * not waited for), a row a line. Built without it where its header is not there.
 */
#include "bench/bare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<sqlite3.h>)
#include <sqlite3.h>

const int bare_sqlite_built = 1;

static const char tables[] =
    "CREATE TABLE sessions (id INTEGER PRIMARY KEY, agent TEXT NOT NULL, name TEXT,"
    " count INTEGER NOT NULL, bytes INTEGER NOT NULL, tag BLOB NOT NULL,"
    " created INTEGER NOT NULL, updated INTEGER NOT NULL, UNIQUE (agent, name)) STRICT;"
    "CREATE TABLE entries (session INTEGER NOT NULL REFERENCES sessions (id)"
    " ON DELETE CASCADE, id INTEGER NOT NULL, at INTEGER NOT NULL, line BLOB NOT NULL,"
    " PRIMARY KEY (session, id)) STRICT;";

enum { BEGIN, COMMIT, MAKE, GROW, PUT, READ, LIST, STATEMENTS };
static const char *const texts[STATEMENTS] = {
    "BEGIN IMMEDIATE",
    "COMMIT",
    "INSERT INTO sessions VALUES (?1, 'main', ?2, 0, 0, zeroblob(16), 0, 0)",
    "UPDATE sessions SET count = count + ?2, bytes = bytes + ?3, tag = ?4, updated = ?5"
    " WHERE id = ?1 RETURNING count, bytes",
    "INSERT INTO entries VALUES (?1, ?2, ?3, ?4)",
    "SELECT line FROM entries WHERE session = ?1 AND id >= ?2 ORDER BY id",
    "SELECT agent, name, count, bytes, tag, created, updated FROM sessions"
    " ORDER BY updated DESC LIMIT ?1",
};

struct bare {
    sqlite3 *db;
    sqlite3_stmt *of[STATEMENTS];
};

static void right(int status, bare *b)
{
    if (status != SQLITE_OK && status != SQLITE_DONE && status != SQLITE_ROW) {
        fprintf(stderr, "bench: SQLite: %s\n", sqlite3_errmsg(b->db));
        exit(1);
    }
}

static void run(bare *b, int which)
{
    right(sqlite3_step(b->of[which]), b);
    right(sqlite3_reset(b->of[which]), b);
}

static bare *lite_open(const char *where, int first, int synced)
{
    bare *b = calloc(1, sizeof *b);
    if (!b)
        broken("memory");
    right(sqlite3_open_v2(
              where, &b->db,
              SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL),
          b);
    right(sqlite3_busy_timeout(b->db, 60000), b);
    right(sqlite3_exec(b->db, "PRAGMA journal_mode=WAL; PRAGMA foreign_keys=ON", NULL,
                       NULL, NULL),
          b);
    right(sqlite3_exec(b->db,
                       synced ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL",
                       NULL, NULL, NULL),
          b);
    if (first)
        right(sqlite3_exec(b->db, tables, NULL, NULL, NULL), b);
    for (int i = 0; i < STATEMENTS; i++)
        right(sqlite3_prepare_v3(b->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                 &b->of[i], NULL),
              b);
    return b;
}

static void lite_close(bare *b, int last)
{
    (void)last;
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(b->of[i]);
    right(sqlite3_close(b->db), b);
    free(b);
}

static void lite_append(bare *b, int session, const char *lines, size_t size,
                        size_t count)
{
    sqlite3_stmt *grow = b->of[GROW], *put = b->of[PUT];
    run(b, BEGIN);
    sqlite3_bind_int(grow, 1, session);
    sqlite3_bind_int64(grow, 2, (sqlite3_int64)count);
    sqlite3_bind_int64(grow, 3, (sqlite3_int64)(count * size));
    sqlite3_bind_blob(grow, 4, lines + count * size - 20, 16, SQLITE_STATIC);
    sqlite3_bind_int64(grow, 5, (sqlite3_int64)now_us());
    right(sqlite3_step(grow), b);
    sqlite3_int64 id = sqlite3_column_int64(grow, 0) - (sqlite3_int64)count;
    sqlite3_int64 at = sqlite3_column_int64(grow, 1) - (sqlite3_int64)(count * size);
    right(sqlite3_reset(grow), b);
    for (size_t i = 0; i < count; i++) {
        sqlite3_bind_int(put, 1, session);
        sqlite3_bind_int64(put, 2, id + (sqlite3_int64)i);
        sqlite3_bind_int64(put, 3, at + (sqlite3_int64)(i * size));
        sqlite3_bind_blob(put, 4, lines + i * size, (int)size, SQLITE_STATIC);
        run(b, PUT);
    }
    run(b, COMMIT);
}

static void make_row(bare *b, int session)
{
    char name[32];
    snprintf(name, sizeof name, "session-%d", session);
    sqlite3_bind_int(b->of[MAKE], 1, session);
    sqlite3_bind_text(b->of[MAKE], 2, name, -1, SQLITE_STATIC);
    run(b, MAKE);
}

static void lite_make(bare *b, int session, const char *lines, size_t size, size_t count)
{
    make_row(b, session);
    if (count)
        lite_append(b, session, lines, size, count);
}

static size_t lite_read(bare *b, int session, size_t from, int opened)
{
    bare_sink sink = {NULL, 0, 0};
    sqlite3_stmt *all = b->of[READ];
    size_t used;
    int status;
    sqlite3_bind_int(all, 1, session);
    sqlite3_bind_int64(all, 2, (sqlite3_int64)from);
    while ((status = sqlite3_step(all)) == SQLITE_ROW) {
        const char *line = sqlite3_column_blob(all, 0);
        bare_take(&sink, line, (size_t)sqlite3_column_bytes(all, 0), opened);
    }
    right(status, b);
    right(sqlite3_reset(all), b);
    used = sink.used;
    bare_sink_free(&sink);
    return used;
}

static void lite_make_many(bare *b, size_t count)
{
    run(b, BEGIN);
    for (size_t i = 0; i < count; i++)
        make_row(b, 1000 + (int)i);
    run(b, COMMIT);
}

static size_t lite_list(bare *b, size_t limit)
{
    bare_sink sink = {NULL, 0, 0};
    sqlite3_stmt *list = b->of[LIST];
    size_t count = 0;
    int status;
    sqlite3_bind_int64(list, 1, limit ? (sqlite3_int64)limit : -1);
    while ((status = sqlite3_step(list)) == SQLITE_ROW) {
        bare_take(&sink, (const char *)sqlite3_column_text(list, 1),
                  (size_t)sqlite3_column_bytes(list, 1), 0);
        bare_take(&sink, sqlite3_column_blob(list, 4),
                  (size_t)sqlite3_column_bytes(list, 4), 0);
        count += sqlite3_column_int64(list, 2) >= 0;
    }
    right(status, b);
    right(sqlite3_reset(list), b);
    bare_sink_free(&sink);
    return count;
}

const bare_kind bare_sqlite = {.append_is = "BEGIN IMMEDIATE, UPDATE, INSERT, COMMIT",
                               .read_is = "SELECT",
                               .list_is = "SELECT",
                               BARE_CALLS(lite)};

#else

const int bare_sqlite_built = 0;
const bare_kind bare_sqlite;

#endif

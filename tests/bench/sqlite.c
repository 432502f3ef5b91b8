/*
 * sqlite.c: the peer: a table of entries in SQLite, WAL, synchronous=FULL, statements
 * prepared once. Plaintext. Built without it where its header is not there.
 */
#include "bench/measure.h"

#include <stdio.h>
#include <stdlib.h>

#if __has_include(<sqlite3.h>)
#include <sqlite3.h>

struct peer {
    sqlite3 *db;
    sqlite3_stmt *put, *read;
};

static void right(int status, peer *p)
{
    if (status != SQLITE_OK && status != SQLITE_DONE && status != SQLITE_ROW) {
        fprintf(stderr, "bench: SQLite: %s\n", sqlite3_errmsg(p->db));
        exit(1);
    }
}

peer *peer_open(const char *name)
{
    char path[4200];
    peer *p = calloc(1, sizeof *p);
    if (!p)
        broken("peer");
    snprintf(path, sizeof path, "%s/%s.sqlite", bench_folder, name);
    right(sqlite3_open(path, &p->db), p);
    right(sqlite3_busy_timeout(p->db, 60000), p);
    right(sqlite3_exec(p->db,
                       "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                       "CREATE TABLE IF NOT EXISTS entry (session INTEGER, id INTEGER,"
                       " json TEXT, PRIMARY KEY (session, id)) WITHOUT ROWID, STRICT",
                       NULL, NULL, NULL),
          p);
    right(sqlite3_prepare_v2(p->db, "INSERT INTO entry VALUES (?, ?, ?)", -1, &p->put,
                             NULL),
          p);
    right(sqlite3_prepare_v2(p->db,
                             "SELECT json FROM entry WHERE session = ?"
                             " ORDER BY id DESC LIMIT ?",
                             -1, &p->read, NULL),
          p);
    return p;
}

void peer_close(peer *p)
{
    if (p) {
        sqlite3_finalize(p->put);
        sqlite3_finalize(p->read);
        sqlite3_close(p->db);
        free(p);
    }
}

void peer_begin(peer *p)
{
    right(sqlite3_exec(p->db, "BEGIN IMMEDIATE", NULL, NULL, NULL), p);
}

void peer_commit(peer *p)
{
    right(sqlite3_exec(p->db, "COMMIT", NULL, NULL, NULL), p);
}

void peer_put(peer *p, int session, int id, sessile_slice text)
{
    sqlite3_bind_int(p->put, 1, session);
    sqlite3_bind_int(p->put, 2, id);
    sqlite3_bind_text(p->put, 3, text.data, (int)text.size, SQLITE_STATIC);
    right(sqlite3_step(p->put), p);
    right(sqlite3_reset(p->put), p);
}

size_t peer_read(peer *p, int session, size_t count)
{
    size_t bytes = 0;
    sqlite3_bind_int(p->read, 1, session);
    sqlite3_bind_int64(p->read, 2, (sqlite3_int64)count);
    while (sqlite3_step(p->read) == SQLITE_ROW)
        bytes += sqlite3_column_text(p->read, 0)
                     ? (size_t)sqlite3_column_bytes(p->read, 0)
                     : 0;
    right(sqlite3_reset(p->read), p);
    return bytes;
}

#else

peer *peer_open(const char *name)
{
    (void)name;
    return NULL;
}

void peer_close(peer *p)
{
    (void)p;
}

void peer_begin(peer *p)
{
    (void)p;
}

void peer_commit(peer *p)
{
    (void)p;
}

void peer_put(peer *p, int session, int id, sessile_slice text)
{
    (void)p, (void)session, (void)id, (void)text;
}

size_t peer_read(peer *p, int session, size_t count)
{
    (void)p, (void)session, (void)count;
    return 0;
}

#endif

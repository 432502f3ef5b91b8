/* queries.c: the text of every statement, by its number. */
#include "store/sqlite/sqlite.h"

/* The size of a log whose row and entries do not agree: one byte, which no entry has,
 * more than there is. So it is found damaged, and all of it can be read. What no gigabyte
 * of lost entries explains is not believed. */
#define LYING                                                                           \
    "(SELECT CASE WHEN e.at >= 0 AND e.at - t.total < 1 << 30 THEN e.at + "             \
    "length(e.line)"                                                                    \
    " WHEN s.bytes >= 0 AND s.bytes - t.total < 1 << 30 THEN s.bytes ELSE t.total END " \
    "+ 1"                                                                               \
    " FROM (SELECT coalesce(sum(length(line)), 0) AS total FROM entries"                \
    " WHERE session = ?1) t)"

#define SAME_NAMES                                            \
    " t.agent IS s.agent AND t.name IS s.name"                \
    " FROM sessions s INDEXED BY sqlite_autoindex_sessions_1" \
    " LEFT JOIN sessions t NOT INDEXED ON t.id = s.id"

const char *const sqlite_query_texts[QUERY_COUNT] = {
    [QUERY_BEGIN] = "BEGIN IMMEDIATE",
    [QUERY_COMMIT] = "COMMIT",
    [QUERY_ROLLBACK] = "ROLLBACK",
    [QUERY_LOG_NEW] = "INSERT INTO sessions (agent, name, count, bytes, created, updated)"
                      " VALUES (?1, ?2, ?3, ?4, ?5, ?5)"
                      " ON CONFLICT (agent, name) DO NOTHING",
    [QUERY_LOG_FIND] = "SELECT id FROM sessions WHERE agent = ?1 AND name = ?2",
    [QUERY_LOG_ROW] =
        "SELECT coalesce(e.id, -1) + 1, CASE WHEN s.count = e.id + 1 AND s.bytes = e.at "
        "+ length(e.line)"
        " THEN s.bytes ELSE " LYING " END, s.tag, s.updated, s.agent, s.name, s.created"
        " FROM sessions s LEFT JOIN entries e ON e.session = s.id AND e.id ="
        " (SELECT max(id) FROM entries WHERE session = ?1) WHERE s.id = ?1",
    [QUERY_LOG_GROW] = "UPDATE sessions SET count = count + ?5, bytes = bytes + ?6,"
                       " tag = ?7, updated = ?8 WHERE id = ?1 AND name IS NOT NULL"
                       " AND count = ?2 AND bytes = ?3 AND (tag = ?4 OR tag IS NULL)",
    [QUERY_LOG_FENCE] =
        "SELECT count, bytes, tag FROM sessions WHERE id = ?1 AND name IS NOT NULL",
    [QUERY_LOG_STAT] = "SELECT id, bytes, updated FROM sessions"
                       " WHERE agent = ?1 AND name = ?2",
    [QUERY_LOG_STAT_ROW] = "SELECT id, bytes, updated FROM sessions NOT INDEXED"
                           " WHERE id = ?1 AND name IS NOT NULL",
    [QUERY_LOG_REINDEX] = "REINDEX sessions",
    [QUERY_LOG_RENAME] = "UPDATE OR IGNORE sessions SET agent = ?2, name = ?3"
                         " WHERE id = ?1 AND name IS NOT NULL",
    [QUERY_LOG_REMOVE] = "DELETE FROM sessions WHERE id = ?1",
    [QUERY_LOG_UNNAME] =
        "UPDATE sessions SET was = name, name = NULL, kept = ?2 WHERE id = ?1",
    [QUERY_ENTRY_PUT] =
        "INSERT INTO entries (session, id, at, line) VALUES (?1, ?2, ?3, ?4)",
    [QUERY_ENTRY_GROW] = "UPDATE entries SET line = CAST(line || ?3 AS BLOB)"
                         " WHERE session = ?1 AND id = ?2",
    [QUERY_ENTRY_AT] = "SELECT at, id FROM entries WHERE session = ?1 AND id <= ?2"
                       " ORDER BY id DESC LIMIT 1",
    [QUERY_ENTRY_NEXT] = "SELECT at, id FROM entries WHERE session = ?1 AND id > ?2"
                         " ORDER BY id LIMIT 1",
    [QUERY_ENTRY_FROM] = "SELECT id, at, line FROM entries"
                         " WHERE session = ?1 AND id >= ?2 ORDER BY id",
    [QUERY_DRAFT_NEW] =
        "INSERT INTO sessions (agent, was, kept, count, bytes, created, updated)"
        " VALUES (?1, ?2, 0, 0, 0, ?3, ?3)",
    [QUERY_DRAFT_GROW] = "UPDATE sessions SET count = ?2, bytes = ?3, updated = ?4"
                         " WHERE id = ?1 AND kept = 0",
    [QUERY_DRAFT_NAME] = "UPDATE OR IGNORE sessions SET name = was, was = NULL,"
                         " kept = NULL, created = coalesce(?2, created), updated = ?3"
                         " WHERE id = ?1 AND kept = 0",
    [QUERY_DRAFT_DROP] = "DELETE FROM sessions WHERE id = ?1 AND kept = 0",
    [QUERY_DRAFT_SWEEP] =
        "DELETE FROM sessions WHERE id = ?1 AND kept = 0 AND updated <= ?2",
    [QUERY_KEPT_LAST] =
        "SELECT coalesce(max(kept), 0) FROM sessions WHERE agent = ?1 AND was = ?2",
    [QUERY_KEPT_REMOVE] =
        "DELETE FROM sessions WHERE agent = ?1 AND was = ?2 AND kept > 0",
    /* the names of the index, by which logs are found, and whether the row has them too
     */
    [QUERY_LIST] = "SELECT s.agent, s.name, s.id, t.bytes, t.updated," SAME_NAMES
                   " WHERE s.name IS NOT NULL AND (s.agent, s.name) > (?1, ?2)"
                   " ORDER BY s.agent, s.name LIMIT ?3",
    [QUERY_LIST_FOLDER] = "SELECT s.agent, s.name, s.id, t.bytes, t.updated," SAME_NAMES
                          " WHERE s.agent = ?1 AND s.name > ?2 ORDER BY s.name LIMIT ?3",
    [QUERY_LIST_OTHERS] =
        "SELECT agent, was, id, bytes, kept FROM sessions"
        " WHERE was IS NOT NULL AND id > ?1 AND (?2 IS NULL OR agent = ?2)"
        " ORDER BY id LIMIT ?3",
    [QUERY_LIST_DRAFTS] = "SELECT agent, was, id, bytes, kept FROM sessions"
                          " WHERE was IS NOT NULL AND kept = 0 AND updated <= ?2"
                          " AND id > ?1 ORDER BY id LIMIT ?3",
    [QUERY_HAS_LOGS] = "SELECT EXISTS (SELECT 1 FROM sessions WHERE name IS NOT NULL)",
    [QUERY_CACHE_END] = "SELECT at + length(data) FROM caches WHERE session = ?1"
                        " ORDER BY at DESC LIMIT 1",
    [QUERY_CACHE_FROM] =
        "SELECT at, data FROM caches WHERE session = ?1 AND at >= coalesce("
        "(SELECT max(at) FROM caches WHERE session = ?1 AND at <= ?2), 0) ORDER BY at",
    [QUERY_CACHE_SHORTEN] = "UPDATE caches SET data = substr(data, 1, ?2 - at)"
                            " WHERE session = ?1 AND at = (SELECT max(at) FROM caches"
                            " WHERE session = ?1 AND at < ?2) AND at + length(data) > ?2",
    [QUERY_CACHE_CUT] = "DELETE FROM caches WHERE session = ?1 AND at >= ?2",
    [QUERY_CACHE_PUT] = "INSERT INTO caches (session, at, data) VALUES (?1, ?2, ?3)",
    [QUERY_LIST_CACHE_GET] = "SELECT data FROM list_caches WHERE agent = ?1",
    [QUERY_LIST_CACHE_PUT] = "INSERT INTO list_caches (agent, data) VALUES (?1, ?2)"
                             " ON CONFLICT (agent) DO UPDATE SET data = excluded.data",
    [QUERY_LIST_CACHE_DROP] = "DELETE FROM list_caches WHERE agent = ?1",
    [QUERY_LIST_CACHE_DROP_ALL] = "DELETE FROM list_caches",
    [QUERY_BLOB_GET] = "SELECT data FROM blobs WHERE name = ?1",
    [QUERY_BLOB_PUT] = "INSERT INTO blobs (name, data, updated) VALUES (?1, ?2, ?3)"
                       " ON CONFLICT (name) DO NOTHING",
    [QUERY_BLOB_REPLACE] = "UPDATE blobs SET data = ?3, updated = ?4"
                           " WHERE name = ?1 AND data = ?2",
    [QUERY_BLOB_REMOVE] = "DELETE FROM blobs WHERE name = ?1",
    [QUERY_BLOB_LIST] = "SELECT name FROM blobs WHERE name > ?1"
                        " AND length(name) <= 200 ORDER BY name LIMIT ?2",
};

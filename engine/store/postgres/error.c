/*
 * error.c: errors of the server as errors of ours.
 *
 * Each message names the server, the thing, and what to do; the server's own words follow
 * where they add something. A message that may contain a secret is left out whole.
 */
#include "store/postgres/postgres.h"

#include <stdio.h>
#include <string.h>

/* The server's words, one line; "" when they hold a secret. */
static void words(const pg_store *ps, const char *said, char out[200])
{
    out[0] = '\0';
    if (!said || !pg_url_clean(&ps->url, said))
        return;
    size_t size = strcspn(said, "\n");
    snprintf(out, 200, " (the server: %.*s)", (int)(size > 170 ? 170 : size), said);
}

/* A sentence for an SQLSTATE that means the same whenever it comes. OK: none does. */
static sessile_status by_state(const pg_store *ps, const char *state, const char *said,
                               sessile_error *err)
{
    const char *where = ps->url.where;
    char more[200];
    words(ps, said, more);
    if (strncmp(state, "28", 2) == 0) {
        return fail(err, SESSILE_DENIED,
                    "%s does not let us in: check the user and the password of the "
                    "store's URL, and the server's pg_hba.conf%s",
                    where, more);
    }
    if (strcmp(state, "3D000") == 0) {
        return fail(
            err, SESSILE_INVALID,
            "%s: the server has no such database: make it (createdb), or mend the "
            "store's URL",
            where);
    }
    if (strcmp(state, "42501") == 0) {
        return fail(
            err, SESSILE_DENIED,
            "%s: the user may not do this in the schema \"%s\": grant the rights, "
            "or use another user%s",
            where, ps->url.schema, more);
    }
    if (strcmp(state, "25006") == 0) {
        return fail(err, SESSILE_DENIED,
                    "%s can only be read: it is a standby, or set to be read only; the "
                    "store's URL may say target_session_attrs=read-write",
                    where);
    }
    if (strcmp(state, "53100") == 0) {
        return fail(err, SESSILE_FULL, "%s: the disk of the server is full: make room",
                    where);
    }
    if (strcmp(state, "53300") == 0) {
        return fail(
            err, SESSILE_BUSY,
            "%s takes no more connections: wait, let the store's URL say a smaller "
            "pool=N, or raise the server's max_connections%s",
            where, more);
    }
    if (strcmp(state, "53200") == 0)
        return fail(err, SESSILE_IO, "%s: the server is out of memory%s", where, more);
    if (strncmp(state, "57P", 3) == 0) {
        return fail(err, SESSILE_IO,
                    "%s is starting or stopping: try again when it is there%s", where,
                    more);
    }
    if (strncmp(state, "08", 2) == 0)
        return fail(err, SESSILE_IO, "the connection to %s broke%s", where, more);
    return SESSILE_OK;
}

int pg_state_is(const pg_store *ps, const PGresult *r, const char *state)
{
    const char *has = r ? ps->lib.PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
    return has && strncmp(has, state, strlen(state)) == 0;
}

sessile_status pg_say(pg_call *call, const PGresult *wrong, const char *what,
                      sessile_error *err)
{
    const pg_store *ps = call->ps;
    const char *state = ps->lib.PQresultErrorField(wrong, PG_DIAG_SQLSTATE);
    const char *said = ps->lib.PQresultErrorField(wrong, PG_DIAG_MESSAGE_PRIMARY);
    state = state ? state : "08000";
    sessile_status status = by_state(ps, state, said, err);
    if (status)
        return status;
    if (strcmp(state, "42P01") == 0 || strcmp(state, "3F000") == 0) {
        call->absent = 1;
        return fail(err, SESSILE_NOTFOUND, "there is no %s: the store at %s is empty",
                    what, ps->url.where);
    }
    if (strcmp(state, "23505") == 0)
        return fail(err, SESSILE_EXISTS, "%s is already there", what);
    if (strcmp(state, "57014") == 0) {
        return fail(err, SESSILE_BUSY,
                    "%s did not answer in time for %s, and ended the statement (its "
                    "timeout is %lld ms): wait longer (timeout=… in the store's URL), or "
                    "try again",
                    ps->url.where, what, (long long)ps->url.statement_ms);
    }
    if (strcmp(state, "55P03") == 0 || strcmp(state, "40001") == 0 ||
        strcmp(state, "40P01") == 0) {
        return fail(err, SESSILE_BUSY, "%s: others write to %s all the time: try again",
                    ps->url.where, what);
    }
    char more[200];
    words(ps, said, more);
    return fail(err, SESSILE_IO,
                "%s could not do what was asked of it for %s: SQLSTATE "
                "%.5s%s",
                ps->url.where, what, state, more);
}

/* The SQLSTATE in a verbose message ("FATAL:  28P01: …", in whatever language); "" when
 * it has none. What comes last counts: of several hosts it is the last one's. Returns
 * what follows it. */
static const char *find_state(const char *text, char out[6])
{
    const char *behind = text;
    out[0] = '\0';
    for (const char *at = text; (at = strstr(at, ":  "));) {
        at += 3;
        if (strspn(at, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && at[5] == ':' &&
            at[6] == ' ') {
            memcpy(out, at, 5);
            out[5] = '\0';
            behind = at + 7;
        }
    }
    return behind;
}

sessile_status pg_say_connect(const pg_store *ps, PGconn *pg, int *passing,
                              sessile_error *err)
{
    const char *text = ps->lib.PQerrorMessage(pg);
    char state[6], more[200];
    const char *said = find_state(text, state);
    *passing = state[0] == '\0' || strncmp(state, "57P0", 4) == 0 ||
               strncmp(state, "08", 2) == 0 || strcmp(state, "53300") == 0;
    if (state[0] == '\0' && ps->lib.PQconnectionNeedsPassword(pg)) {
        *passing = 0;
        return fail(err, SESSILE_DENIED,
                    "%s wants a password: put it into the store's URL, into PGPASSWORD, "
                    "or into ~/.pgpass",
                    ps->url.where);
    }
    sessile_status status = by_state(ps, state, said, err);
    if (status)
        return status;
    words(ps, said, more);
    return fail(err, SESSILE_IO,
                "%s cannot be reached: see whether the server runs, and whether the "
                "store's URL is right%s",
                ps->url.where, more);
}

sessile_status pg_say_late(const pg_call *call, pg_ended ended, const char *what,
                           sessile_error *err)
{
    if (ended == PG_STOPPED)
        return store_stopped(what, err);
    return fail(err, SESSILE_BUSY,
                "%s did not answer in time for %s: wait longer, or try again",
                call->ps->url.where, what);
}

/* ---------------------------------------------------------------------- values */

int pg_rows(const pg_store *ps, const PGresult *r)
{
    return ps->lib.PQntuples(r);
}

int pg_null(const pg_store *ps, const PGresult *r, int row, int column)
{
    return column >= ps->lib.PQnfields(r) || ps->lib.PQgetisnull(r, row, column);
}

int64_t pg_int(const pg_store *ps, const PGresult *r, int row, int column)
{
    if (pg_null(ps, r, row, column) || ps->lib.PQgetlength(r, row, column) != 8)
        return 0;
    const unsigned char *raw = (const unsigned char *)ps->lib.PQgetvalue(r, row, column);
    uint64_t n = 0;
    for (int i = 0; i < 8; i++)
        n = n << 8 | raw[i];
    return (int64_t)n;
}

int64_t pg_time_ns(const pg_store *ps, const PGresult *r, int row, int column)
{
    /* microseconds since 2000-01-01T00:00Z; those that overflow are no times of ours */
    const int64_t epoch = INT64_C(946684800000000);
    int64_t us = pg_int(ps, r, row, column);
    return us < -epoch || us > INT64_MAX / 1000 - epoch ? 0 : (us + epoch) * 1000;
}

const char *pg_bytes(const pg_store *ps, const PGresult *r, int row, int column,
                     size_t *size)
{
    if (pg_null(ps, r, row, column)) {
        *size = 0;
        return "";
    }
    *size = (size_t)ps->lib.PQgetlength(r, row, column);
    return ps->lib.PQgetvalue(r, row, column);
}

const unsigned char *pg_tag(const pg_store *ps, const PGresult *r, int row, int column)
{
    size_t size;
    const char *tag = pg_bytes(ps, r, row, column, &size);
    return size == 16 ? (const unsigned char *)tag : NULL;
}

const char *pg_text(const pg_store *ps, const PGresult *r, int row, int column)
{
    size_t size; /* libpq puts a NUL behind every value */
    return pg_bytes(ps, r, row, column, &size);
}

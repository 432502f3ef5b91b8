/*
 * postgres.h: the PostgreSQL server of a run of tests, and servers that a test may kill.
 *
 * tests/support/postgres starts them; the first that asks for the shared one waits for it
 * (some two seconds). A test program that is run by hand gets one of its own. All are
 * gone when the run ends, however it ends.
 */
#ifndef SUPPORT_POSTGRES_H
#define SUPPORT_POSTGRES_H

/* All strings are whole URLs with their passwords, or paths, and live as long as it. */
typedef struct postgres_server {
    char *url;    /* over the Unix socket: a role that owns its database, no more */
    char *tcp;    /* the same over TCP on 127.0.0.1, where TLS may be asked for */
    char *admin;  /* the superuser, over the socket */
    char *ca;     /* certificate for sslmode=verify-full; "": the server has no TLS */
    char *folder; /* data/ and log */
    char *state;  /* what the script knows it by */
} postgres_server;

/* The server that all tests of this run share; it must not be stopped. NULL: there is
 * none, and *why, which stays, says why and what to install. */
const postgres_server *postgres_shared(const char **why);

/* A server of the caller's own, to be killed and started again, and its end. NULL: as
 * above. Free also ends it when it was killed. */
postgres_server *postgres_own(const char **why);
void postgres_own_free(postgres_server *server);
/* A standby of `of`, ended and freed like one of the caller's own. From now on `of` waits
 * at each commit until the standby has it. */
postgres_server *postgres_replica(const postgres_server *of, const char **why);
/* Either of both in a host of a network (network.h), at port 5432 of its address, which
 * is in `tcp`; of: NULL, or whose standby it is, over that network. `url` and `admin`,
 * over the Unix socket, reach it from every host. */
struct network;
postgres_server *postgres_in(struct network *n, int host, const postgres_server *of,
                             const char **why);
/* "stop", "crash" (as pg_ctl's immediate), "kill" (SIGKILL to all its processes),
 * "again" (starts it after any of these), "promote" (a standby becomes a primary).
 * 0: done. */
int postgres_do(const postgres_server *server, const char *word);

/* A URL of a schema that nobody else has: url and `schema=NAME`; for postgres_drop(),
 * which drops the schema with all that is in it. The schema itself is made by whoever
 * opens a store there. */
char *postgres_place(const char *url);
void postgres_drop(char *place);
/* NAME of such a URL: static, until the next call. */
const char *postgres_schema(const char *place);

/* Runs SQL in a connection of its own; `schema=` is taken off the URL. The first value of
 * the last result, "" when there is none: free(). NULL: it failed, and the server's
 * sentence is on standard error. */
char *postgres_sql(const char *url, const char *sql);

#endif

/*
 * postgres.c: see postgres.h. libpq is opened when it is first asked for, so that tests
 * that never do need no such library.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/network.h"
#include "support/postgres.h"

static const char *script(void)
{
    static char path[1024];
    const char *root = getenv("SESSILE_ROOT");
    snprintf(path, sizeof path, "%s/tests/support/postgres", root ? root : ".");
    return path;
}

static void take(char **out, const char *line, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(line, name, length) != 0 || line[length] != '=')
        return;
    free(*out);
    *out = strdup(line + length + 1);
    (*out)[strcspn(*out, "\n")] = '\0';
}

static void server_free(postgres_server *s)
{
    free(s->url);
    free(s->tcp);
    free(s->admin);
    free(s->ca);
    free(s->folder);
    free(s->state);
    free(s);
}

/* Asks the script for the server that `state` names; of: whose standby it shall be; host:
 * an address and a command that puts another one there, or "". */
static postgres_server *ask(const char *state, long owner, const postgres_server *of,
                            const char *host, const char **why)
{
    char command[3700], line[2048], *absent = NULL;
    postgres_server *s = calloc(1, sizeof *s);
    snprintf(command, sizeof command,
             "SESSILE_TEST_POSTGRES_HOST='%s' '%s' %s '%s' %ld '%s'", host, script(),
             of ? "replica" : "start", state, owner, of ? of->state : "");
    FILE *from = popen(command, "r");
    while (from && fgets(line, sizeof line, from)) {
        take(&s->url, line, "SESSILE_TEST_POSTGRES");
        take(&s->tcp, line, "SESSILE_TEST_POSTGRES_TCP");
        take(&s->admin, line, "SESSILE_TEST_POSTGRES_ADMIN");
        take(&s->ca, line, "SESSILE_TEST_POSTGRES_CA");
        take(&s->folder, line, "SESSILE_TEST_POSTGRES_FOLDER");
        take(&absent, line, "SESSILE_TEST_POSTGRES_ABSENT");
    }
    if (from)
        pclose(from);
    s->state = strdup(state);
    if (s->url && s->tcp && s->admin && s->ca && s->folder)
        return s;
    server_free(s);
    /* kept for good: who skips shows it at the end */
    *why = absent ? absent : "tests/support/postgres did not say where its server is";
    return NULL;
}

static postgres_server *shared, *by_hand;
static const char *shared_why;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void remove_by_hand(void)
{
    if (by_hand)
        postgres_own_free(by_hand);
    by_hand = NULL;
}

static void find_shared(void)
{
    const char *run = getenv("SESSILE_TEST_RUN"), *owner = getenv("SESSILE_TEST_RUN_PID");
    if (run && owner) {
        shared = ask(run, atol(owner), NULL, "", &shared_why);
        return;
    }
    shared = by_hand = postgres_own(&shared_why);
    atexit(remove_by_hand);
}

const postgres_server *postgres_shared(const char **why)
{
    pthread_once(&once, find_shared);
    *why = shared_why;
    return shared;
}

static postgres_server *another(const postgres_server *of, const char *host,
                                const char **why)
{
    const char *tmp = getenv("TMPDIR");
    char state[1024];
    snprintf(state, sizeof state, "%s/sessile-server.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(state)) {
        *why = "no folder for temporary files";
        return NULL;
    }
    return ask(state, (long)getpid(), of, host, why);
}

postgres_server *postgres_own(const char **why)
{
    return another(NULL, "", why);
}

postgres_server *postgres_replica(const postgres_server *of, const char **why)
{
    return another(of, "", why);
}

postgres_server *postgres_in(network *n, int host, const postgres_server *of,
                             const char **why)
{
    char place[300];
    snprintf(place, sizeof place, "%s %s", network_address(n, host),
             network_prefix(n, host));
    return another(of, place, why);
}

int postgres_do(const postgres_server *server, const char *word)
{
    char command[2200];
    snprintf(command, sizeof command, "'%s' %s '%s'", script(), word, server->state);
    return system(command);
}

void postgres_own_free(postgres_server *server)
{
    char lock[1100];
    if (!server)
        return;
    (void)postgres_do(server, "remove");
    snprintf(lock, sizeof lock, "%s/postgres.lock", server->state);
    unlink(lock);
    rmdir(server->state);
    server_free(server);
}

/* ------------------------------------------------------------------ places and SQL */

char *postgres_place(const char *url)
{
    static atomic_uint number;
    size_t room = strlen(url) + 80;
    char *place = malloc(room);
    snprintf(place, room, "%s%cschema=test_%ld_%u", url, strchr(url, '?') ? '&' : '?',
             (long)getpid(), atomic_fetch_add(&number, 1));
    return place;
}

const char *postgres_schema(const char *place)
{
    const char *at = strstr(place, "schema=");
    return at ? at + strlen("schema=") : "sessile";
}

/* What postgres_place() added is taken off again. */
static char *without_schema(const char *url)
{
    char *bare = strdup(url), *at = strstr(bare, "schema=");
    if (at)
        at[-1] = '\0';
    return bare;
}

typedef struct libpq {
    void *(*connect)(const char *);
    int (*status)(const void *);
    char *(*error)(const void *);
    void *(*exec)(void *, const char *);
    int (*result)(const void *);
    int (*rows)(const void *);
    char *(*value)(const void *, int, int);
    void (*clear)(void *);
    void (*finish)(void *);
    void (*notices)(void *, void (*)(void *, const void *), void *);
} libpq;

static int find(libpq *pq)
{
    void *lib = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    const struct {
        const char *name;
        void *at;
    } all[] = {
        {"PQconnectdb", &pq->connect},   {"PQstatus", &pq->status},
        {"PQerrorMessage", &pq->error},  {"PQexec", &pq->exec},
        {"PQresultStatus", &pq->result}, {"PQntuples", &pq->rows},
        {"PQgetvalue", &pq->value},      {"PQclear", &pq->clear},
        {"PQfinish", &pq->finish},       {"PQsetNoticeReceiver", &pq->notices},
    };
    for (size_t i = 0; lib && i < sizeof all / sizeof *all; i++) {
        void *function = dlsym(lib, all[i].name);
        memcpy(all[i].at, &function, sizeof function);
        if (!function)
            return 0;
    }
    return lib != NULL;
}

static void unheard(void *arg, const void *result)
{
    (void)arg;
    (void)result;
}

char *postgres_sql(const char *url, const char *sql)
{
    enum { CONNECTION_OK = 0, COMMAND_OK = 1, TUPLES_OK = 2 };
    libpq pq;
    char *value = NULL;
    if (!find(&pq)) {
        fprintf(stderr, "# libpq.so.5 is not installed\n");
        return NULL;
    }
    char *bare = without_schema(url);
    void *connection = pq.connect(bare);
    if (pq.status(connection) == CONNECTION_OK) {
        pq.notices(connection, unheard, NULL);
        void *result = pq.exec(connection, sql);
        if (pq.result(result) == TUPLES_OK && pq.rows(result) > 0)
            value = strdup(pq.value(result, 0, 0));
        else if (pq.result(result) == COMMAND_OK || pq.result(result) == TUPLES_OK)
            value = strdup("");
        pq.clear(result);
    }
    if (!value)
        fprintf(stderr, "# %s", pq.error(connection));
    pq.finish(connection);
    free(bare);
    return value;
}

void postgres_drop(char *place)
{
    char sql[200];
    snprintf(sql, sizeof sql, "drop schema if exists %s cascade", postgres_schema(place));
    free(postgres_sql(place, sql));
    free(place);
}

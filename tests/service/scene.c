/* scene.c: see scene.h. */
#include "service/scene.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sessile_guard.h"
#include "support/ledger.h"
#include "support/sessions.h"
#include "unit/rpc/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

#define SECRET "the secret of this test's store"

enum { PORT = 7071, METRICS_PORT = 7072, PAUSE_US = 10000, WORDS = 24 };
enum { FIRST_RUNNER = 80 };
enum { THREE_DAYS = 3 * 24 * 3600 };

/* A policy that asks a model three times, and covers all but the last two messages. */
static const char asker[] =
    "return { name = 'asker', version = 1,\n"
    "  summarize = function(state, ctx)\n"
    "    if #state.messages < 4 then return end\n"
    "    local all = ''\n"
    "    for i = 1, 3 do\n"
    "      all = all .. (ctx.model { messages = {{ role = 'user',\n"
    "        content = i .. ':' .. all }} } or '-')\n"
    "    end\n"
    "    state:insert(1, { content = all }, { covers = { 1, #state.messages - 2 } })\n"
    "  end }\n";

/* A node's strings, which live as long as it. */
typedef struct scene_node {
    service_node process;
    char program[600], config[700], listen[64], log[600], address[64];
    char in_config[720], in_store[1200];
    const char *argv[8], *extra[12];
} scene_node;

struct scene {
    cluster *c;
    certificates tls;
    char *folder; /* journals, logs, configurations */
    int writers;  /* of each client */
    scene_node nodes[SCENE_NODES];
    struct {
        int host;
        pid_t writers, watcher, runner;
    } clients[SCENE_CLIENTS];
    char key[200]; /* an access key */
};

cluster *scene_cluster(scene *s)
{
    return s->c;
}

int scene_node_host(const scene *s, int n)
{
    return s->nodes[n].process.host;
}

int scene_client_host(const scene *s, int client)
{
    return s->clients[client].host;
}

uint64_t scene_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static const char *built(const char *what)
{
    static char path[2][600];
    static unsigned next;
    const char *build = getenv("SESSILE_BUILD");
    char *out = path[next++ % 2];
    snprintf(out, sizeof path[0], "%s/%s", build ? build : "build", what);
    return out;
}

/* ------------------------------------------------------------------ nodes */

/* One pair for all nodes, which is valid three days ago as well: their clocks are wrong.
 */
static void make_certificates(scene *s)
{
    const char *why, *const *past = network_clock(-THREE_DAYS, &why);
    size_t used;
    for (int i = 0; past && past[i]; i++)
        assert_int_equal(putenv((char *)past[i]), 0);
    certificates_make(&s->tls);
    used = (size_t)snprintf(s->tls.names, sizeof s->tls.names, "DNS:localhost");
    for (int i = 0; i < SCENE_NODES; i++)
        used +=
            (size_t)snprintf(s->tls.names + used, sizeof s->tls.names - used, ",IP:%s",
                             network_address(s->c->net, scene_node_host(s, i)));
    certificates_renew(&s->tls, 30);
    for (int i = 0; past && past[i]; i++) {
        char name[100];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(past[i], "="), past[i]);
        assert_int_equal(unsetenv(name), 0);
    }
}

static void write_policy(const scene *s)
{
    char path[700];
    snprintf(path, sizeof path, "%s/asker.lua", s->folder);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    fputs(asker, out);
    fclose(out);
}

static void describe_node(scene *s, int at, int no_affinity)
{
    static const long clocks[SCENE_NODES] = {0, 2 * 3600, -26 * 3600};
    scene_node *n = &s->nodes[at];
    const char *why, *const *clock = NULL;
    size_t more = 0;
    snprintf(n->config, sizeof n->config, "%s/node%d.lua", s->folder, at + 1);
    snprintf(n->log, sizeof n->log, "%s/node%d.log", s->folder, at + 1);
    snprintf(n->in_config, sizeof n->in_config, "SESSILE_CONFIG=%s", n->config);
    snprintf(n->in_store, sizeof n->in_store, "SESSILE_STORE=%s", s->c->url);
    snprintf(n->listen, sizeof n->listen, "%s",
             network_address(s->c->net, n->process.host));
    snprintf(n->address, sizeof n->address, "%s:%d", n->listen, PORT);
    FILE *out = fopen(n->config, "we");
    assert_non_null(out);
    fprintf(
        out,
        "return { guard = { audit = false, rate_limits = false }, policy_path = { [[%s]] "
        "},\n"
        "  serve = { name = [[node%d]], cert = [[%s]], key = [[%s]], nodes_ca = [[%s]],\n"
        "    metrics = [[%s:%d]], affinity = %s } }\n",
        s->folder, at + 1, s->tls.server, s->tls.server_key, s->tls.ca, n->listen,
        METRICS_PORT, no_affinity ? "false" : "true");
    fclose(out);
    snprintf(n->program, sizeof n->program, "%s", built("libexec/sessile-server"));
    const char *const argv[] = {n->program, "serve", "--listen", n->address, NULL};
    memcpy(n->argv, argv, sizeof argv);
    const char *const own[] = {n->in_config, n->in_store, "SESSILE_KEY=" SECRET};
    memcpy(n->extra, own, sizeof own);
    if (clocks[at] && !(clock = network_clock(clocks[at], &why)))
        print_message("# %s\n", why);
    for (more = 3; clock && *clock; more++)
        n->extra[more] = strdup(*clock++);
    n->process.port = PORT;
    n->process.program =
        (network_program){.argv = n->argv, .extra = n->extra, .log = n->log};
}

void scene_node_start(scene *s, int at)
{
    service_node_start(s->c->net, &s->nodes[at].process);
}

int scene_node_end(scene *s, int at, int signal)
{
    return service_node_end(&s->nodes[at].process, signal);
}

/* The body of a node's metrics, in `out`; "": it does not answer. */
static void read_metrics(scene *s, int at, char *out, size_t room)
{
    static const char request[] =
        "GET /metrics HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n";
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(METRICS_PORT)};
    int fd = network_socket(s->c->net, s->clients[0].host, SOCK_STREAM);
    size_t used = 0;
    inet_pton(AF_INET, s->nodes[at].listen, &in.sin_addr);
    if (connect(fd, (struct sockaddr *)&in, sizeof in) == 0 &&
        send(fd, request, sizeof request - 1, MSG_NOSIGNAL) > 0)
        for (ssize_t n;
             used + 1 < room && (n = recv(fd, out + used, room - 1 - used, 0)) > 0;)
            used += (size_t)n;
    out[used] = '\0';
    close(fd);
}

unsigned long scene_metric(scene *s, const char *line)
{
    static char text[200000];
    unsigned long sum = 0;
    for (int i = 0; i < SCENE_NODES; i++) {
        read_metrics(s, i, text, sizeof text);
        const char *at = strstr(text, line);
        if (at)
            sum += strtoul(at + strlen(line), NULL, 10);
    }
    return sum;
}

/* ------------------------------------------------------------------ clients */

/* An access key for a user, made with the command line beside the database. */
static void make_key(scene *s)
{
    char command[700], said[1000] = "";
    setenv("SESSILE_CONFIG", s->nodes[0].config, 1);
    setenv("SESSILE_STORE", s->c->server[0]->url, 1);
    setenv("SESSILE_KEY", SECRET, 1);
    snprintf(command, sizeof command, "'%s' --json access key new ann --role editor",
             built("bin/sessile"));
    FILE *from = popen(command, "re");
    assert_non_null(from);
    size_t n = fread(said, 1, sizeof said - 1, from);
    said[n] = '\0';
    assert_int_equal(pclose(from), 0);
    unsetenv("SESSILE_CONFIG");
    unsetenv("SESSILE_STORE");
    unsetenv("SESSILE_KEY");
    const char *at = strstr(said, "\"key\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"key\": \"%199[^\"]", s->key), 1);
}

typedef enum role { WRITES, WATCHES, COMPACTS } role;

static pid_t start_client(scene *s, int at, role does)
{
    static const char *const options[] = {"--writers", "--watch", "--runner"};
    char nodes[300] = "", ids[300] = "", first[12], value[12], log[600];
    const char *root = getenv("SESSILE_ROOT");
    char script[600], messages[600];
    for (int i = 0; i < SCENE_NODES; i++)
        snprintf(nodes + strlen(nodes), sizeof nodes - strlen(nodes), "%s%s",
                 i ? "," : "", s->nodes[i].address);
    for (int i = 0; i < SCENE_SESSIONS; i++)
        snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%ss%d", i ? "," : "", i);
    snprintf(script, sizeof script, "%s/tests/service/clients.py", root ? root : ".");
    snprintf(messages, sizeof messages, "%s", built("proto/service"));
    snprintf(log, sizeof log, "%s/clients.log", s->folder);
    snprintf(first, sizeof first, "%d", at * s->writers);
    snprintf(value, sizeof value, "%d",
             does == WRITES    ? s->writers
             : does == WATCHES ? at
                               : FIRST_RUNNER + at);
    const char *argv[WORDS] = {PYTHON,  script,       messages,  s->folder, "--nodes",
                               nodes,   "--sessions", ids,       "--ca",    s->tls.ca,
                               "--key", s->key,       "--first", first,     options[does],
                               value,   NULL};
    network_program program = {.argv = argv, .log = log};
    return network_run(s->c->net, s->clients[at].host, &program);
}

static void end_client(pid_t *pid)
{
    kill(*pid, SIGKILL);
    assert_int_equal(waitpid(*pid, NULL, 0), *pid);
    *pid = 0;
}

/* What the nodes and the clients have said: of use when something failed. */
static void show_logs(const scene *s)
{
    char command[700];
    snprintf(command, sizeof command, "tail -n 20 '%s'/*.log >&2", s->folder);
    (void)!system(command);
}

static int ended(pid_t pid)
{
    return pid > 0 && waitpid(pid, NULL, WNOHANG) != 0;
}

static void still_there(const scene *s)
{
    for (int i = 0; i < SCENE_CLIENTS; i++)
        if (ended(s->clients[i].writers) || ended(s->clients[i].watcher) ||
            ended(s->clients[i].runner)) {
            show_logs(s);
            fail_msg("a client has ended: see its last line above");
        }
}

/* Of writer w, in all its lives: how many acknowledgements; or with `visit` each of their
 * times, in order. */
static unsigned long times_of(const scene *s, int w,
                              void (*visit)(void *arg, uint64_t us), void *arg)
{
    unsigned long count = 0;
    char path[700], line[64];
    for (int life = 0;; life++) {
        snprintf(path, sizeof path, "%s/times.%d", s->folder, w + 100 * life);
        FILE *in = fopen(path, "re");
        if (!in)
            return count;
        while (fgets(line, sizeof line, in)) {
            count++;
            if (visit)
                visit(arg, strtoull(line, NULL, 10));
        }
        fclose(in);
    }
}

void scene_let_write(scene *s, unsigned long more)
{
    int all = SCENE_CLIENTS * s->writers;
    unsigned long until[64];
    for (int w = 0; w < all; w++)
        until[w] = times_of(s, w, NULL, NULL) + more;
    for (int w = 0; w < all; w++)
        while (times_of(s, w, NULL, NULL) < until[w]) {
            still_there(s);
            usleep(2 * PAUSE_US);
        }
}

unsigned long scene_acknowledged(const scene *s)
{
    unsigned long sum = 0;
    for (int w = 0; w < SCENE_CLIENTS * s->writers; w++)
        sum += times_of(s, w, NULL, NULL);
    return sum;
}

typedef struct gap {
    uint64_t from, until, last, longest;
} gap;

static void next_time(void *arg, uint64_t us)
{
    gap *g = arg;
    if (us > g->from && g->last < g->until && us - g->last > g->longest)
        g->longest = us - g->last;
    if (us > g->last)
        g->last = us;
}

double scene_pause(const scene *s, uint64_t from, uint64_t until)
{
    uint64_t longest = 0;
    for (int w = 0; w < SCENE_CLIENTS * s->writers; w++) {
        gap g = {.from = from, .until = until, .last = from};
        times_of(s, w, next_time, &g);
        next_time(&g, until);
        longest = g.longest > longest ? g.longest : longest;
    }
    return (double)longest / 1000;
}

/* ------------------------------------------------------------------ the judgement */

static char *read_file(const scene *s, const char *name)
{
    char path[700];
    size_t used = 0, room = 1 << 20;
    char *text = malloc(room);
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    FILE *in = fopen(path, "re");
    for (size_t n = 1; in && n > 0; used += n) {
        if (room - used < 2)
            text = realloc(text, room *= 2);
        n = fread(text + used, 1, room - used - 1, in);
    }
    if (in)
        fclose(in);
    text[used] = '\0';
    return text;
}

/* The next line of a session in what a watcher wrote, behind its id; NULL: no more. */
static char *next_line(char **at, const char *id, size_t *size)
{
    size_t length = strlen(id);
    while (**at) {
        char *line = *at, *end = strchr(line, '\n');
        if (!end)
            return NULL;
        *at = end + 1;
        if (strncmp(line, id, length) == 0 && line[length] == ' ') {
            *size = (size_t)(end - line) - length - 1;
            return line + length + 1;
        }
    }
    return NULL;
}

/* 1: the watcher has each entry of the session. What it has must be what the log has. */
static int saw_all(char *seen, sessile_session *session, const char *id)
{
    sessile_entries *all;
    sessile_error err = {0};
    sessile_id entry;
    const char *json;
    size_t size, line_size;
    int whole = 1;
    assert_int_equal(sessile_entries_open(&all, session, NULL, &err), SESSILE_OK);
    while (whole) {
        assert_int_equal(sessile_entries_next(all, &entry, &json, &size, &err),
                         SESSILE_OK);
        char *line = next_line(&seen, id, &line_size), *text = NULL;
        if (size == 0 && line)
            fail_msg("%s: a watcher saw an entry that is not there: %.*s", id,
                     (int)line_size, line);
        if (size == 0)
            break;
        if (!(whole = line != NULL))
            break;
        assert_int_equal(strtoul(line, &text, 10), entry);
        text++;
        assert_int_equal(line_size - (size_t)(text - line), size);
        assert_memory_equal(text, json, size);
    }
    sessile_entries_close(all);
    return whole;
}

/* Waits until each watcher has seen all that the sessions have, which nobody writes to.
 */
static void judge_watchers(const scene *s, sessile_store *store)
{
    for (int watcher = 0; watcher < SCENE_CLIENTS; watcher++)
        for (int i = 0; i < SCENE_SESSIONS; i++) {
            char id[12], name[24], *seen;
            sessile_session *session;
            sessile_error err = {0};
            snprintf(id, sizeof id, "s%d", i);
            sessile_session_options o = named(id);
            o.user = sessile_text("ann");
            if (sessile_resume(&session, store, &o, &err))
                fail_msg("%s", err.message);
            snprintf(name, sizeof name, "watch.%d", watcher);
            for (int whole = 0; !whole;) {
                still_there(s);
                seen = read_file(s, name);
                whole = saw_all(seen, session, id);
                free(seen);
                if (!whole)
                    usleep(10 * PAUSE_US);
            }
            assert_int_equal(sessile_session_close(session, &err), SESSILE_OK);
        }
}

static unsigned long resumes(const scene *s)
{
    unsigned long sum = 0;
    for (int i = 0; i < SCENE_CLIENTS; i++) {
        char name[24], *text;
        snprintf(name, sizeof name, "resumes.%d", i);
        text = read_file(s, name);
        sum += strtoul(text, NULL, 10);
        free(text);
    }
    return sum;
}

void scene_judge(scene *s, const char *title)
{
    sessile_store *store;
    sessile_store_options options;
    sessile_guard_options guard;
    sessile_error err = {0};
    for (int i = 0; i < SCENE_CLIENTS; i++) {
        end_client(&s->clients[i].writers);
        end_client(&s->clients[i].runner);
    }
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_SECRET;
    options.key = SECRET;
    if (sessile_open(&store, s->c->server[s->c->primary]->url, &options, &err))
        fail_msg("%s", err.message);
    sessile_guard_options_init(&guard); /* this handle may do everything */
    guard.profile = "standard";
    if (sessile_store_guard(store, &guard, &err))
        fail_msg("%s", err.message);
    ledger *l = ledger_read(s->folder);
    ledger_sum sum = ledger_compare_all(l, store);
    printf("# figure: %s: acknowledged = %lu, refused = %lu, unknown = %lu, of those "
           "written = %lu, losses = %lu, duplicates = %lu, out of order = %lu\n",
           title, sum.acknowledged, sum.refused, sum.unknown, sum.unsaid, sum.lost,
           sum.twice, sum.disorder);
    ledger_check_sum(&sum);
    judge_watchers(s, store);
    printf("# figure: %s: streams of events that were resumed = %lu\n", title,
           resumes(s));
    sessile_store_close(store);
    ledger_free(l);
    for (int i = 0; i < SCENE_CLIENTS; i++)
        end_client(&s->clients[i].watcher);
}

/* ------------------------------------------------------------------ the whole */

scene *scene_open(const scene_options *options)
{
    static const char *const names[] = {"node1", "node2", "node3", "client1", "client2"};
    grpcio_needed();
    if (access(built("libexec/sessile-server"), X_OK) != 0) {
        print_message("# there is no sessile-server: make service\n");
        skip();
    }
    scene *s = calloc(1, sizeof *s);
    s->c = cluster_needed(0);
    s->folder = folder_make();
    s->writers = options->writers;
    for (int i = 0; i < SCENE_NODES; i++)
        s->nodes[i].process.host = network_host(s->c->net, names[i]);
    for (int i = 0; i < SCENE_CLIENTS; i++)
        s->clients[i].host = network_host(s->c->net, names[SCENE_NODES + i]);
    make_certificates(s);
    write_policy(s);
    for (int i = 0; i < SCENE_NODES; i++)
        describe_node(s, i, options->no_affinity);
    make_key(s);
    for (int i = 0; i < SCENE_NODES; i++)
        scene_node_start(s, i);
    for (int i = 0; i < SCENE_CLIENTS; i++)
        s->clients[i].writers = start_client(s, i, WRITES);
    scene_let_write(s, 1); /* the sessions are there */
    for (int i = 0; i < SCENE_CLIENTS; i++) {
        s->clients[i].watcher = start_client(s, i, WATCHES);
        s->clients[i].runner = start_client(s, i, COMPACTS);
    }
    return s;
}

void scene_close(scene *s)
{
    for (int i = 0; i < SCENE_NODES; i++)
        for (size_t more = 3; s->nodes[i].extra[more]; more++)
            free((char *)s->nodes[i].extra[more]);
    cluster_close(s->c);
    certificates_remove(&s->tls);
    folder_remove(s->folder);
    free(s);
}

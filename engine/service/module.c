/*
 * module.c: the Lua module sessile.service, which only the program sessile-server has.
 *
 * service.run(store, settings, ready) serves an open store until SIGTERM or SIGINT, and
 * returns true, or nil, a message and a code. ready(address, metrics) is called once it
 * listens; if it returns false, nothing is served. The program's configuration, the
 * store, its guard and its policies are Lua's to open, as for every other command.
 */
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "binding.h"
#include "service/logline.h"
#include "service/module_model.h"

/* Signals: a handler may set a number, and call what sets one. */
static service *running;
static volatile sig_atomic_t hung_up, told_to_end;

enum { WORKERS = 8 };

static void on_signal(int number)
{
    if (number == SIGHUP)
        hung_up = 1;
    else if (running)
        service_stop(running);
    else
        told_to_end = 1;
}

/* 1: the certificates are to be read again. */
static int asked_to_reload(void *arg)
{
    (void)arg;
    int was = hung_up;
    hung_up = 0;
    return was;
}

static void handle_signals(void (*handler)(int))
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)sigaction(signals[i], &action, NULL);
    action.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &action, NULL);
}

static const char *text_field(lua_State *L, const char *name)
{
    lua_getfield(L, 2, name); /* stays on the stack: it holds the text */
    return lua_isnil(L, -1) ? NULL : luaL_checkstring(L, -1);
}

static int number_field(lua_State *L, const char *name)
{
    lua_getfield(L, 2, name);
    lua_Integer n = lua_isnil(L, -1) ? 0 : luaL_checkinteger(L, -1);
    luaL_argcheck(L, n >= -1 && n <= INT32_MAX, 2, name);
    lua_pop(L, 1);
    return (int)n;
}

static int row_flag(lua_State *L, int row, const char *name)
{
    lua_getfield(L, row, name);
    int is = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return is;
}

static int flag_field(lua_State *L, const char *name)
{
    return row_flag(L, 2, name);
}

/* What is served, and the store that has the records. */
static void read_services(lua_State *L, service_settings *s, sessile_store_options *o)
{
    s->services = (flag_field(L, "sessions_served") ? SERVICE_SESSIONS : 0u) |
                  (flag_field(L, "records_served") ? SERVICE_RECORDS : 0u);
    s->records.url = text_field(L, "records");
    sessile_store_options_init(o);
    o->allow_network = flag_field(L, "network");
    s->records.options = o;
}

/* Lines go to standard error: text at a terminal, else JSON. */
static void read_log(lua_State *L, service_settings *s)
{
    const char *level = text_field(L, "log");
    log_level least = LEVEL_INFO;
    int is_level = !level || logline_level(&least, level) == 0;
    s->log.fd = is_level ? STDERR_FILENO : 0; /* "off" */
    s->log.least = (int)least;
    s->log.is_text = isatty(STDERR_FILENO);
    s->log.show_ids = flag_field(L, "show_ids");
}

/* The list `defaults`: what sessions have. All that it borrows is left on the stack. */
static void read_defaults(lua_State *L, service_settings *s)
{
    lua_getfield(L, 2, "defaults");
    if (lua_isnil(L, -1))
        return;
    int list = lua_gettop(L);
    size_t n = (size_t)lua_rawlen(L, list);
    service_defaults *rows = lua_newuserdatauv(L, (n + 1) * sizeof *rows, 0);
    struct binding_triggers *storage = lua_newuserdatauv(L, (n + 1) * sizeof *storage, 0);
    memset(rows, 0, (n + 1) * sizeof *rows);
    luaL_checkstack(L, (int)n * 16 + 20, "defaults");
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        int row = lua_gettop(L);
        lua_getfield(L, row, "agent");
        rows[i].agent = lua_tostring(L, -1);
        binding_field_config(L, row, &rows[i].config);
        binding_field_triggers(L, row, &rows[i].config, &storage[i]);
        binding_raw_field(L, row, "policy");
        rows[i].config.policy = binding_policy_opt(L, -1);
        binding_raw_field(L, row, "fallback");
        rows[i].config.fallback = binding_policy_opt(L, -1);
        lua_getfield(L, row, "ttl_ms");
        rows[i].ttl_ms = (int64_t)luaL_optinteger(L, -1, 0);
        rows[i].disabled = row_flag(L, row, "disabled");
        rows[i].no_memory = row_flag(L, row, "no_memory");
    }
    s->defaults = rows;
    s->default_count = n;
}

static service_settings read_settings(lua_State *L, sessile_store_options *records)
{
    service_settings s;
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checkstack(L, 20, NULL);
    memset(&s, 0, sizeof s);
    s.listen.address = text_field(L, "listen");
    s.listen.cert = text_field(L, "cert");
    s.listen.key = text_field(L, "key");
    s.listen.ca = text_field(L, "client_ca");
    s.listen.metrics = text_field(L, "metrics");
    s.listen.certificate_role = text_field(L, "certificate_role");
    s.listen.plain = flag_field(L, "plain");
    s.nodes.name = text_field(L, "name");
    s.nodes.advertise = text_field(L, "advertise");
    s.nodes.ca = text_field(L, "nodes_ca");
    s.nodes.no_affinity = flag_field(L, "no_affinity");
    s.nodes.replicas = number_field(L, "replicas");
    s.size.workers = number_field(L, "workers");
    s.size.sessions = number_field(L, "sessions");
    s.ms.drain = number_field(L, "drain_ms");
    s.ms.age = number_field(L, "connection_age_ms");
    s.guarded = flag_field(L, "guarded");
    s.no_json = flag_field(L, "no_json");
    s.no_reflection = flag_field(L, "no_reflection");
    read_log(L, &s);
    read_services(L, &s, records);
    read_defaults(L, &s);
    s.reload = asked_to_reload;
    return s;
}

/* With `model` the server asks the configured one, with at most half of its workers. */
static int read_model(lua_State *L, service_settings *s, models **out)
{
    const char *path = text_field(L, "config");
    int workers = s->size.workers ? s->size.workers : WORKERS;
    *out = NULL;
    if (!flag_field(L, "model"))
        return 0;
    int failed = models_open(L, path, workers > 1 ? workers / 2 : 1, out);
    s->model.ask = models_ask;
    s->model.arg = *out;
    return failed;
}

/* The results of run(); -1: something was raised, and is on the stack. */
static int serve(lua_State *L, const struct binding_store *store,
                 const service_settings *settings)
{
    sessile_error err;
    service *s;
    /* It may be told to end while it is opened, which takes as long as the store takes.
     */
    told_to_end = 0;
    handle_signals(on_signal);
    sessile_status status = service_open(&s, store->handle, settings, &err);
    if (status) {
        handle_signals(SIG_DFL);
        return binding_fail(L, &err);
    }
    running = s;
    if (told_to_end)
        service_stop(s);
    lua_pushvalue(L, 3);
    lua_pushstring(L, service_address(s));
    lua_pushstring(L, service_metrics_address(s));
    int raised = lua_pcall(L, 2, 1, 0) != LUA_OK;
    if (!raised && lua_toboolean(L, -1))
        status = service_run(s, &err);
    handle_signals(SIG_DFL);
    running = NULL;
    service_close(s);
    return raised ? -1 : binding_done(L, status, &err);
}

static int run(lua_State *L)
{
    struct binding_store *store = binding_store_live(L, 1);
    sessile_store_options records;
    service_settings settings = read_settings(L, &records);
    models *asked;
    if (!store)
        return 3;
    int results = read_model(L, &settings, &asked);
    if (!results)
        results = serve(L, store, &settings);
    models_close(asked);
    return results < 0 ? lua_error(L) : results;
}

/* notify(text): tells the service manager, such as systemd, as "READY=1"; see
 * sd_notify(3). Does nothing where there is none. */
static int notify(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t length = path ? strlen(path) : 0;
    int fd;
    if (length < 2 || length >= sizeof to.sun_path || (*path != '/' && *path != '@'))
        return 0;
    memcpy(to.sun_path, path, length);
    if (*path == '@')
        to.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    (void)sendto(fd, text, size, MSG_NOSIGNAL, (struct sockaddr *)&to,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    close(fd);
    return 0;
}

/* Found by its name (command/sessile.c). */
int luaopen_sessile_service(lua_State *L);
int luaopen_sessile_service(lua_State *L)
{
    static const luaL_Reg functions[] = {{"run", run}, {"notify", notify}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}

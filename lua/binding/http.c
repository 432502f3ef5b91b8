/*
 * http.c: an HTTP request as a userdata, over libcurl.
 *
 * Owns the options of libcurl, the limits of time and size, and the code of each failure.
 * The caller pulls: read() waits for a moment and returns what has come, so that the loop
 * is Lua's, and can stop or yield. Must never accept a certificate that is not verified,
 * follow a redirect, use a proxy, or read a file with passwords.
 *
 * libcurl is opened by name on first use. Linking with it would bring some thirty
 * libraries into every process, and most never send a request.
 */
#include "binding.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CURL_DISABLE_TYPECHECK /* its macros would hide the members of `curl` */
#include <curl/curl.h>

#define HEAD_MOST    (256 * 1024) /* bytes of all header lines */
#define CONNECT_MOST 15000        /* ms until a connection is there, TLS included */
#define READ_MOST    60000        /* ms that one read() may wait */

/* ------------------------------------------------------------------------ libcurl */

#define CURL_FUNCTIONS(X)       \
    X(curl_easy_cleanup)        \
    X(curl_easy_getinfo)        \
    X(curl_easy_header)         \
    X(curl_easy_init)           \
    X(curl_easy_setopt)         \
    X(curl_easy_strerror)       \
    X(curl_global_init)         \
    X(curl_multi_add_handle)    \
    X(curl_multi_cleanup)       \
    X(curl_multi_info_read)     \
    X(curl_multi_init)          \
    X(curl_multi_perform)       \
    X(curl_multi_poll)          \
    X(curl_multi_remove_handle) \
    X(curl_slist_append)        \
    X(curl_slist_free_all)      \
    X(curl_version)             \
    X(curl_version_info)

static struct {
#define CURL_FIELD(name) __typeof__(&(name)) name;
    CURL_FUNCTIONS(CURL_FIELD)
#undef CURL_FIELD
    int ready;
} curl;
static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

/* Since 7.88 libcurl sends everything with MSG_NOSIGNAL. Older ones may end the process
 * by SIGPIPE when a server closes a TLS connection. */
#define CURL_LEAST 0x075800

/* Never closed: OpenSSL registers functions that run when the process ends. */
static void open_curl(void)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    const struct {
        const char *name;
        void *out;
    } functions[] = {
#define CURL_ROW(name) {#name, &curl.name},
        CURL_FUNCTIONS(CURL_ROW)
#undef CURL_ROW
    };
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);
        if (!found)
            return;
        memcpy(functions[i].out, &found, sizeof found);
    }
    curl.ready = curl.curl_version_info(CURLVERSION_NOW)->version_num >= CURL_LEAST &&
                 curl.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

/* 0; or pushes the three values of a failure: 3. */
static int need_curl(lua_State *L)
{
    pthread_once(&curl_once, open_curl);
    if (curl.ready)
        return 0;
    return binding_fail_with(L, SESSILE_UNSUPPORTED,
                             "an endpoint needs libcurl 7.88 or newer: "
                             "apt-get install libcurl4");
}

/* http_library() -> the versions of libcurl and of what it uses; nil, message, code */
int binding_http_library(lua_State *L)
{
    int failed = need_curl(L);
    if (failed)
        return failed;
    lua_pushstring(L, curl.curl_version());
    return 1;
}

/* ------------------------------------------------------------------------ a request */

struct binding_request {
    CURL *easy; /* NULL: closed */
    CURLM *multi;
    struct curl_slist *headers;
    char *data; /* of the body, not yet read */
    size_t size, room;
    int64_t head, body, most; /* bytes that came, and the most of the body */
    int64_t moved;            /* bytes either way at the time of `heard` */
    int64_t heard, idle_ms;
    const char *too_long;     /* what was, or NULL */
    sessile_url_options urls; /* what else than public addresses is connected to */
    sessile_error refused;    /* the address that was not connected to */
    int ended;
    CURLcode result;
    char error[CURL_ERROR_SIZE];
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static size_t on_head(char *data, size_t one, size_t count, void *user)
{
    struct binding_request *r = user;
    (void)data;
    r->head += (int64_t)(one * count);
    if (r->head <= HEAD_MOST)
        return one * count;
    r->too_long = "the answer has too many headers";
    return 0;
}

static size_t on_body(char *data, size_t one, size_t count, void *user)
{
    struct binding_request *r = user;
    size_t size = one * count;
    if ((int64_t)size > r->most - r->body) {
        r->too_long = "the answer is too long";
        return 0;
    }
    if (r->size + size > r->room) {
        size_t room = 2 * (r->size + size);
        char *data_then = realloc(r->data, room);
        if (!data_then)
            return 0;
        r->data = data_then;
        r->room = room;
    }
    memcpy(r->data + r->size, data, size);
    r->size += size;
    r->body += (int64_t)size;
    return size;
}

/* Makes the socket of a connection, if its address is public or allowed. It is the very
 * address that libcurl connects to: whatever a name meant before or means later. */
static curl_socket_t on_socket(void *user, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct binding_request *r = user;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    sessile_status status;

    (void)purpose;
    if (to->family == AF_INET) {
        memcpy(&v4, &to->addr, sizeof v4);
        status = sessile_address_check(SESSILE_IPV4, &v4.sin_addr, ntohs(v4.sin_port),
                                       &r->urls, &r->refused);
    } else if (to->family == AF_INET6) {
        memcpy(&v6, &to->addr, sizeof v6);
        status = sessile_address_check(SESSILE_IPV6, &v6.sin6_addr, ntohs(v6.sin6_port),
                                       &r->urls, &r->refused);
    } else {
        return CURL_SOCKET_BAD;
    }
    return status ? CURL_SOCKET_BAD
                  : socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static int request_close(lua_State *L)
{
    struct binding_request *r = luaL_checkudata(L, 1, BINDING_REQUEST);
    if (r->easy && r->multi)
        curl.curl_multi_remove_handle(r->multi, r->easy);
    if (r->easy)
        curl.curl_easy_cleanup(r->easy);
    if (r->multi)
        curl.curl_multi_cleanup(r->multi);
    if (r->headers)
        curl.curl_slist_free_all(r->headers);
    free(r->data);
    memset(r, 0, sizeof *r);
    return 0;
}

static int request_text(lua_State *L)
{
    lua_pushliteral(L, BINDING_REQUEST);
    return 1;
}

/* ------------------------------------------------------------------------ beginning */

/* The lines of the list `headers` of the table at `table`: 0, or -1: no memory. */
static int take_headers(lua_State *L, int table, struct binding_request *r)
{
    binding_raw_field(L, table, "headers"); /* no code runs, which might change it */
    luaL_checktype(L, -1, LUA_TTABLE);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) == LUA_TSTRING; i++) {
        struct curl_slist *longer =
            curl.curl_slist_append(r->headers, lua_tostring(L, -1));
        if (!longer)
            return -1;
        r->headers = longer;
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    return 0;
}

/* Sets every option. The body is not copied. 0, or -1: one was refused. */
static int set_options(struct binding_request *r, const char *url, const char *ca,
                       const char *body, size_t size, int64_t whole_ms)
{
    CURL *easy = r->easy;
    int64_t connect_ms = r->idle_ms < CONNECT_MOST ? r->idle_ms : CONNECT_MOST;
    int refused = 0;

#define SET(option, value) \
    refused |= curl.curl_easy_setopt(easy, option, value) != CURLE_OK
    SET(CURLOPT_URL, url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (body) { /* else it is a GET */
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
        SET(CURLOPT_POSTFIELDS, body);
    }
    SET(CURLOPT_HTTPHEADER, r->headers);

    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, ""); /* not those of the environment either */
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    if (ca) {
        SET(CURLOPT_CAINFO, ca);
        SET(CURLOPT_CAPATH, NULL); /* the system's authorities do not count then */
    }

    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* closing does not wait for the look-up of a name */
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    SET(CURLOPT_TIMEOUT_MS, (long)whole_ms);
    SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)r->most);
    SET(CURLOPT_ERRORBUFFER, r->error);
    SET(CURLOPT_HEADERFUNCTION, on_head);
    SET(CURLOPT_HEADERDATA, r);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, r);
#undef SET
    return refused ? -1 : 0;
}

/* Lets it connect to public addresses only. 0, or -1: libcurl cannot. */
static int only_public(struct binding_request *r)
{
    CURLcode made = curl.curl_easy_setopt(r->easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    return made == CURLE_OK &&
                   curl.curl_easy_setopt(r->easy, CURLOPT_OPENSOCKETDATA, r) == CURLE_OK
               ? 0
               : -1;
}

/* request(url, {headers = {lines}, body =, idle_ms =, whole_ms =, most =, ca =,
 * public_only =, allow =}) -> request; nil, message, code. Without a body it is a GET,
 * else a POST. idle_ms: without a byte; whole_ms: for all of it; most: bytes of the
 * answer's body; public_only: nothing but public addresses, and those in `allow`, is
 * connected to. Nothing is sent before the first read(). */
int binding_request(lua_State *L)
{
    const char *url = luaL_checkstring(L, 1), *ca;
    struct binding_request *r;
    sessile_slice body;
    int64_t whole_ms;
    int failed;

    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    failed = need_curl(L);
    if (failed)
        return failed;
    body = binding_field_bytes(L, 2, "body");
    ca = binding_field_string(L, 2, "ca");
    whole_ms = binding_field_integer(L, 2, "whole_ms", 0);
    r = binding_new(L, sizeof *r, 2, BINDING_REQUEST);
    binding_raw_field(L, 2, "body");
    lua_setiuservalue(L, -2, 1);
    binding_url_options(L, 2, &r->urls);
    lua_setiuservalue(L, -2, 2);
    r->idle_ms = binding_field_integer(L, 2, "idle_ms", 0);
    r->most = binding_field_integer(L, 2, "most", 0);
    r->easy = curl.curl_easy_init();
    r->multi = curl.curl_multi_init();
    if (!r->easy || !r->multi || take_headers(L, 2, r))
        return binding_fail_with(L, SESSILE_NOMEM, "no memory for a request");
    if (set_options(r, url, ca, body.data, body.size, whole_ms) ||
        (binding_field_boolean(L, 2, "public_only") && only_public(r)))
        return binding_fail_with(L, SESSILE_UNSUPPORTED,
                                 "this libcurl lacks an option that is needed");
    if (curl.curl_multi_add_handle(r->multi, r->easy) != CURLM_OK)
        return binding_fail_with(L, SESSILE_NOMEM, "no memory for a request");
    r->heard = now_ms();
    return 1;
}

/* ------------------------------------------------------------------------ reading */

/* Sends and receives what it can without waiting. */
static void perform(struct binding_request *r)
{
    const CURLMsg *message;
    int running, left;
    CURLMcode code = curl.curl_multi_perform(r->multi, &running);
    if (code != CURLM_OK) {
        r->ended = 1;
        r->result = CURLE_OUT_OF_MEMORY;
    }
    while (!r->ended && (message = curl.curl_multi_info_read(r->multi, &left))) {
        if (message->msg == CURLMSG_DONE) {
            r->ended = 1;
            r->result = message->data.result;
        }
    }
}

/* Whether no byte has moved, either way, for longer than it may. Until the request is
 * sent the time to connect counts, which libcurl knows. */
static int is_idle(struct binding_request *r)
{
    curl_off_t up = 0;
    long request = 0;
    int64_t moved, now = now_ms();
    curl.curl_easy_getinfo(r->easy, CURLINFO_SIZE_UPLOAD_T, &up);
    curl.curl_easy_getinfo(r->easy, CURLINFO_REQUEST_SIZE, &request);
    moved = r->head + r->body + up + request;
    if (moved != r->moved || request == 0) {
        r->moved = moved;
        r->heard = now;
    }
    return now - r->heard > r->idle_ms;
}

/* Failures that a caller tells apart, or that libcurl's own sentence does not explain. */
static const struct {
    CURLcode result;
    sessile_status status;
    const char *sentence;
} failures[] = {
    {CURLE_FILESIZE_EXCEEDED, SESSILE_LIMIT, "the answer is too long"},
    {CURLE_COULDNT_RESOLVE_HOST, SESSILE_IO, "the host is not known"},
    {CURLE_COULDNT_CONNECT, SESSILE_IO, "cannot connect"},
    {CURLE_SSL_CONNECT_ERROR, SESSILE_IO, "no safe connection"},
    {CURLE_PEER_FAILED_VERIFICATION, SESSILE_DENIED, "no safe connection"},
    {CURLE_SSL_CACERT_BADFILE, SESSILE_NOTFOUND,
     "no file of authorities: install ca-certificates, or give ca="},
    /* what libcurl says of a header line of more than 100 KB */
    {CURLE_OUT_OF_MEMORY, SESSILE_LIMIT, "a header of the answer is too long"},
};

/* The three values of the failure that a request ended with. */
static int push_failure(lua_State *L, const struct binding_request *r)
{
    const char *said = *r->error ? r->error : curl.curl_easy_strerror(r->result);
    char text[CURL_ERROR_SIZE + 80];
    long os_error = 0;

    if (r->too_long)
        return binding_fail_with(L, SESSILE_LIMIT, r->too_long);
    if (r->result == CURLE_COULDNT_CONNECT && r->refused.code)
        return binding_fail(L, &r->refused);
    if (r->result == CURLE_COULDNT_CONNECT)
        curl.curl_easy_getinfo(r->easy, CURLINFO_OS_ERRNO, &os_error);
    if (os_error)
        said = strerror((int)os_error);
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        if (failures[i].result == r->result) {
            snprintf(text, sizeof text, "%s: %s", failures[i].sentence, said);
            return binding_fail_with(L, failures[i].status, text);
        }
    }
    return binding_fail_with(L, SESSILE_IO, said);
}

/* request:read(ms) -> bytes of the body, "" when none came within ms; nil at the end of
 * the answer; nil, message, code when it failed: EDENIED for a certificate, ELIMIT for
 * too much, ENOTFOUND for a file of authorities, else EIO. */
static int request_read(lua_State *L)
{
    struct binding_request *r = luaL_checkudata(L, 1, BINDING_REQUEST);
    lua_Integer ms = luaL_checkinteger(L, 2);
    char text[80];

    if (!r->easy)
        return binding_closed(L, "request");
    ms = ms < 0 ? 0 : ms > READ_MOST ? READ_MOST : ms;
    if (!r->ended)
        perform(r);
    if (!r->ended && r->size == 0 && ms > 0) {
        curl.curl_multi_poll(r->multi, NULL, 0, (int)ms, NULL);
        perform(r);
    }
    if (r->size > 0) {
        size_t size = r->size;
        lua_pushlstring(L, r->data, size);
        r->size = 0;
        return 1;
    }
    if (r->ended && r->result == CURLE_OK) {
        lua_pushnil(L);
        return 1;
    }
    if (r->ended)
        return push_failure(L, r);
    if (is_idle(r)) {
        snprintf(text, sizeof text, "nothing came for %g seconds",
                 (double)r->idle_ms / 1000);
        return binding_fail_with(L, SESSILE_IO, text);
    }
    lua_pushliteral(L, "");
    return 1;
}

/* request:status() -> the status of the answer, 0 before it is known */
static int request_status(lua_State *L)
{
    struct binding_request *r = luaL_checkudata(L, 1, BINDING_REQUEST);
    long status = 0;
    if (r->easy)
        curl.curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
    lua_pushinteger(L, (lua_Integer)status);
    return 1;
}

/* request:header(name) -> the first value of that header of the answer; nil: none */
static int request_header(lua_State *L)
{
    struct binding_request *r = luaL_checkudata(L, 1, BINDING_REQUEST);
    const char *name = luaL_checkstring(L, 2);
    struct curl_header *found;
    if (!r->easy || curl.curl_easy_header(r->easy, name, 0, CURLH_HEADER, -1, &found))
        return 0;
    lua_pushstring(L, found->value);
    return 1;
}

/* sleep(ms): waits, between two tries */
int binding_sleep(lua_State *L)
{
    lua_Integer ms = luaL_checkinteger(L, 1);
    struct timespec time;
    ms = ms < 0 ? 0 : ms > READ_MOST ? READ_MOST : ms;
    time.tv_sec = (time_t)(ms / 1000);
    time.tv_nsec = (long)(ms % 1000) * 1000000;
    nanosleep(&time, NULL);
    return 0;
}

void binding_request_open(lua_State *L)
{
    static const struct binding_method methods[] = {{"read", .plain = request_read},
                                                    {"status", .plain = request_status},
                                                    {"header", .plain = request_header},
                                                    {NULL}};
    binding_class(L, BINDING_REQUEST, methods, request_close, request_close,
                  request_text);
}

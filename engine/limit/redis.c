/*
 * limit_redis.c: windows in Redis, by the server's clock.
 *
 * Owns one connection, which is made when it is first needed and again when it broke, and
 * the script that counts a call: the algorithm of limit_window.h. A key is a string of 74
 * bytes that expires with its window. The server runs one script at a time, so nothing
 * here locks.
 *
 * hiredis connects, formats and parses; it is opened at run time. What is said goes
 * through base/os.h: a server that is gone must neither end the process by SIGPIPE nor
 * keep it for longer than PATIENCE_MS. After a failure the server is left alone for a
 * second. (Only the look-up of a host's name has no such bound: give an address where
 * that can hang.)
 *
 * The server's clock is a time of day. Set back, it moves windows to now, as in
 * limit_window.h; set forward, it ends them early. The machine's own count, which comes
 * first, does not know that clock.
 */
#include "base/text.h"
#include "limit/places.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
#define LIBRARY    "libhiredis.so." TEXT(HIREDIS_SONAME)
#define FUNCTIONS(X)               \
    X(redisConnectWithTimeout)     \
    X(redisConnectUnixWithTimeout) \
    X(redisFree)                   \
    X(redisFormatCommandArgv)      \
    X(redisFreeCommand)            \
    X(redisReaderFeed)             \
    X(redisReaderGetReply)         \
    X(freeReplyObject)

enum { PATIENCE_MS = 50, AGAIN_MS = 1000, WORDS_MOST = 8, HASH_SIZE = 41 };

typedef struct redis_place {
    limit_place place;
    const os_table *os;
    allocator alloc;
    struct {
        void *library;
#define FIELD(name) __typeof__(&(name)) name;
        FUNCTIONS(FIELD)
#undef FIELD
    } lib;
    limit_redis_url url;
    char where[300];
    pthread_mutex_t mutex; /* all that follows */
    redisContext *redis;   /* NULL: not connected */
    uint32_t pid;          /* of the process that connected */
    char hash[HASH_SIZE];  /* of the script, once a server had it; else "" */
    int64_t failed_ms;     /* when it was last away; less than 0: it was there */
    sessile_error why;
} redis_place;

/* KEYS: the window. ARGV: count, period in milliseconds, 1 to count nothing, 2 to take
 * one back. Returns 0, or when there may be room, in milliseconds. */
static const char script[] =
    "local most, period, look = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]\n"
    "local format = '>I8' .. string.rep('H', 33)\n"
    "local time = redis.call('TIME')\n"
    "local now = time[1] * 1000 + math.floor(time[2] / 1000)\n"
    "local part = math.floor(now * 32 / period)\n"
    "local kept = redis.call('GET', KEYS[1])\n"
    "local was, sum, c = {}, 0, {}\n"
    "for i = 1, 33 do c[i] = 0 end\n"
    "if kept and #kept == 74 then was = {struct.unpack(format, kept)} end\n"
    "if was[1] and was[1] <= part then\n"
    "  local gone = part - was[1]\n"
    "  for i = gone + 1, 33 do c[i - gone] = was[i + 1]; sum = sum + was[i + 1] end\n"
    "elseif was[1] then\n"
    "  for i = 1, 33 do sum = sum + was[i + 1] end\n"
    "  sum = math.min(sum, 65535)\n"
    "  c[33] = sum\n"
    "end\n"
    "local room = sum < most\n"
    "if room and look == '0' then c[33] = c[33] + 1 end\n"
    "for i = 1, look == '2' and 33 or 0 do\n"
    "  if c[i] > 0 then c[i] = c[i] - 1; break end\n"
    "end\n"
    "redis.call('SET', KEYS[1], struct.pack(format, part, unpack(c)), 'PX',"
    " math.ceil(period * 33 / 32))\n"
    "if room then return 0 end\n"
    "local oldest = 1\n"
    "while oldest < 33 do\n"
    "  sum = sum - c[oldest]\n"
    "  if sum < most then break end\n"
    "  oldest = oldest + 1\n"
    "end\n"
    "return math.max(1, math.ceil((part + oldest) * period / 32) - now)\n";

/* ------------------------------------------------------------------ one command */

static void hang_up(redis_place *p)
{
    if (p->redis)
        p->lib.redisFree(p->redis);
    p->redis = NULL;
}

/* -1: it is gone, or the time is up. */
static int send_all(redis_place *p, const char *data, int size, uint64_t until)
{
    while (size > 0) {
        int sent = os_socket_send(p->redis->fd, data, size);
        if (sent < 0)
            return -1;
        data += sent;
        size -= sent;
        uint64_t now = p->os->clock_us(p->os->ud);
        if (size > 0 && now >= until)
            return -1;
        if (size > 0 && sent == 0)
            os_fd_wait(p->redis->fd, OS_WRITE, (int)((until - now) / 1000) + 1);
    }
    return 0;
}

/* One reply. NULL: the server is gone, is late, or speaks another protocol. */
static redisReply *receive_reply(redis_place *p, uint64_t until)
{
    char bytes[1024];
    for (;;) {
        void *reply = NULL;
        uint64_t now = p->os->clock_us(p->os->ud);
        if (now >= until)
            return NULL;
        os_fd_wait(p->redis->fd, OS_READ, (int)((until - now) / 1000) + 1);
        int got = os_socket_receive(p->redis->fd, bytes, sizeof bytes, OS_TAKE);
        if (got < 0 ||
            (got > 0 &&
             p->lib.redisReaderFeed(p->redis->reader, bytes, (size_t)got) != 0) ||
            p->lib.redisReaderGetReply(p->redis->reader, &reply) != 0)
            return NULL;
        if (reply)
            return reply;
    }
}

/* Sends the words and waits for the reply, at most PATIENCE_MS in all. NULL: as above. */
static redisReply *ask(redis_place *p, const char *const words[], int count)
{
    uint64_t until = p->os->clock_us(p->os->ud) + PATIENCE_MS * UINT64_C(1000);
    const char *argv[WORDS_MOST];
    char *command = NULL;
    redisReply *reply = NULL;
    memcpy(argv, words, (size_t)count * sizeof *argv);
    int size = p->lib.redisFormatCommandArgv(&command, count, argv, NULL);
    if (size > 0 && send_all(p, command, size, until) == 0)
        reply = receive_reply(p, until);
    if (command) {
        wipe(command, (size_t)(size > 0 ? size : 0)); /* it may be AUTH */
        p->lib.redisFreeCommand(command);
    }
    return reply;
}

/* ------------------------------------------------------------------ the connection */

/* The server is away; `said` are its words, or NULL. Closes the connection. */
static limit_answer away(redis_place *p, const char *said, sessile_error *why)
{
    hang_up(p);
    fail(why, SESSILE_IO, "rate limits are not shared: Redis at %s %s%.200s", p->where,
         said ? "says " : "does not answer", said ? said : "");
    p->failed_ms = limit_now(p->os, 0).ms;
    p->why = *why;
    return LIMIT_AWAY;
}

/* One command of a new connection, which must be answered by OK. */
static limit_answer set_up(redis_place *p, const char *const words[], int count,
                           sessile_error *why)
{
    redisReply *reply = ask(p, words, count);
    if (!reply)
        return away(p, NULL, why);
    limit_answer answer =
        reply->type == REDIS_REPLY_ERROR ? away(p, reply->str, why) : LIMIT_COUNTED;
    p->lib.freeReplyObject(reply);
    return answer;
}

static limit_answer connect_to(redis_place *p, sessile_error *why)
{
    const limit_redis_url *url = &p->url;
    const struct timeval patience = {0, PATIENCE_MS * 1000};
    limit_answer answer = LIMIT_COUNTED;
    char number[16];
    p->redis = url->path[0]
                   ? p->lib.redisConnectUnixWithTimeout(url->path, patience)
                   : p->lib.redisConnectWithTimeout(url->host, url->port, patience);
    if (!p->redis || p->redis->err)
        return away(p, NULL, why);
    os_socket_private(p->redis->fd);
    p->pid = p->os->pid(p->os->ud);
    if (url->password[0]) {
        const char *words[] = {"AUTH", url->user, url->password};
        const char *alone[] = {"AUTH", url->password};
        answer = url->user[0] ? set_up(p, words, 3, why) : set_up(p, alone, 2, why);
    }
    if (answer == LIMIT_COUNTED && url->database > 0) {
        snprintf(number, sizeof number, "%d", url->database);
        const char *words[] = {"SELECT", number};
        answer = set_up(p, words, 2, why);
    }
    return answer;
}

/* Whether the server has closed the connection while nobody looked. */
static int is_gone(const redis_place *p)
{
    char byte;
    return os_socket_receive(p->redis->fd, &byte, 1, OS_PEEK) != 0;
}

static limit_answer ready(redis_place *p, sessile_error *why)
{
    if (p->redis && (p->pid != p->os->pid(p->os->ud) || is_gone(p)))
        hang_up(p);
    if (p->redis)
        return LIMIT_COUNTED;
    if (p->failed_ms >= 0 && limit_now(p->os, 0).ms - p->failed_ms < AGAIN_MS) {
        *why = p->why;
        return LIMIT_AWAY;
    }
    return connect_to(p, why);
}

/* ------------------------------------------------------------------ the place */

/* Runs the script by its hash, or, where the server does not know that, by its text. */
static redisReply *run_script(redis_place *p, const limit_ask *a)
{
    char key[40], most[16], period[16];
    snprintf(key, sizeof key, "sessile:limit:%016llx", (unsigned long long)a->key);
    snprintf(most, sizeof most, "%u", (unsigned)a->rate.count);
    snprintf(period, sizeof period, "%u", (unsigned)a->rate.period_ms);
    const char *words[] = {"EVALSHA",
                           p->hash,
                           "1",
                           key,
                           most,
                           period,
                           a->look == LIMIT_BACK ? "2"
                           : a->look             ? "1"
                                                 : "0"};
    redisReply *reply = NULL;
    if (p->hash[0]) {
        reply = ask(p, words, 7);
        if (!reply || reply->type != REDIS_REPLY_ERROR ||
            strncmp(reply->str, "NOSCRIPT", 8) != 0)
            return reply;
        p->lib.freeReplyObject(reply);
    }
    const char *load[] = {"SCRIPT", "LOAD", script};
    reply = ask(p, load, 3);
    if (!reply || reply->type != REDIS_REPLY_STRING || reply->len != HASH_SIZE - 1)
        return reply;
    memcpy(p->hash, reply->str, HASH_SIZE);
    p->lib.freeReplyObject(reply);
    return ask(p, words, 7);
}

static limit_answer redis_take(limit_place *self, limit_ask *a, sessile_error *why)
{
    redis_place *p = (redis_place *)self;
    pthread_mutex_lock(&p->mutex);
    limit_answer answer = ready(p, why);
    if (answer == LIMIT_COUNTED) {
        redisReply *reply = run_script(p, a);
        if (!reply) {
            answer = away(p, NULL, why);
        } else if (reply->type != REDIS_REPLY_INTEGER || reply->integer < 0 ||
                   reply->integer > 2 * (long long)a->rate.period_ms) {
            answer =
                away(p, reply->type == REDIS_REPLY_ERROR ? reply->str : "nonsense", why);
        } else {
            a->retry_ms = (uint32_t)reply->integer;
            answer = a->retry_ms ? LIMIT_FULL : LIMIT_COUNTED;
            p->failed_ms = -1;
        }
        if (reply)
            p->lib.freeReplyObject(reply);
    }
    pthread_mutex_unlock(&p->mutex);
    return answer;
}

static void redis_undo(limit_place *self, const limit_ask *a)
{
    limit_ask back = *a;
    sessile_error why;
    back.look = LIMIT_BACK;
    (void)redis_take(self, &back, &why);
}

static void redis_free(limit_place *self)
{
    redis_place *p = (redis_place *)self;
    allocator a = p->alloc;
    hang_up(p);
    os_library_close(p->lib.library);
    wipe(&p->url, sizeof p->url);
    pthread_mutex_destroy(&p->mutex);
    mem_free(&a, p, sizeof *p);
}

static sessile_status open_library(redis_place *p, sessile_error *err)
{
    const struct {
        const char *name;
        void *out;
        size_t size;
    } functions[] = {
#define ROW(name) {#name, &p->lib.name, sizeof p->lib.name},
        FUNCTIONS(ROW)
#undef ROW
    };
    p->lib.library = os_library_open(LIBRARY);
    int missing = !p->lib.library;
    for (size_t i = 0; !missing && i < sizeof functions / sizeof *functions; i++)
        missing = os_library_find(p->lib.library, functions[i].name, functions[i].out,
                                  functions[i].size) != 0;
    return missing ? fail(err, SESSILE_UNSUPPORTED,
                          "Redis's client library (" LIBRARY
                          ") is not on this machine: install libhiredis" TEXT(
                              HIREDIS_SONAME) ", or count rate limits in the store")
                   : SESSILE_OK;
}

sessile_status limit_redis_open(limit_place **out, const char *url, const os_table *os,
                                const allocator *a, sessile_error *err)
{
    *out = NULL;
    redis_place *p = mem_zalloc(a, sizeof *p);
    if (!p)
        return fail_nomem(err);
    p->place = (limit_place){redis_take, redis_undo, redis_free};
    p->os = os;
    p->alloc = *a;
    p->failed_ms = -1;
    pthread_mutex_init(&p->mutex, NULL);
    sessile_status status = limit_redis_url_parse(&p->url, url, err);
    if (!status)
        status = open_library(p, err);
    if (status) {
        redis_free(&p->place);
        return status;
    }
    if (p->url.path[0])
        snprintf(p->where, sizeof p->where, "%s", p->url.path);
    else
        snprintf(p->where, sizeof p->where, "%s:%d", p->url.host, p->url.port);
    *out = &p->place;
    return SESSILE_OK;
}

/*
 * process.c: the module sessile.process: runs a program and captures its output.
 *
 * Owns the child from its start to its end. The child is in a process group of its own,
 * so that we decide about Ctrl-C at the terminal, and so that the whole group can be
 * ended. Must never use a shell, leave a child behind, or keep more output than allowed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>

#include "command/modules.h"

#define SLICE_MS 100
#define MOST_ERR 65536

extern char **environ;

/* A running child; as userdata, so that whatever Lua raises ends it. */
typedef struct child {
    pid_t pid;         /* 0: none */
    int in, out, err;  /* our ends of its pipes; -1: closed */
    const char *input; /* on the Lua stack while it runs */
    size_t input_size, sent;
    lua_Integer timeout_ms, whole_ms, most, slice_ms;
    size_t taken; /* bytes of its standard output */
} child;

static lua_Integer now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (lua_Integer)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Ends what still runs, and all that it started in its group. */
static void put_down(child *c)
{
    shut(&c->in);
    shut(&c->out);
    shut(&c->err);
    if (c->pid <= 0)
        return;
    kill(-c->pid, SIGTERM);
    for (int i = 0; i < 20; i++) {
        struct timespec pause = {0, 10 * 1000000};
        siginfo_t ended = {0};
        if (waitid(P_PID, (id_t)c->pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            ended.si_pid == c->pid)
            break;
        nanosleep(&pause, NULL);
    }
    kill(-c->pid,
         SIGKILL); /* also what is left of the group; not reaped, it keeps its id */
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    c->pid = 0;
}

static int child_gc(lua_State *L)
{
    put_down(lua_touserdata(L, 1));
    return 0;
}

/* ------------------------------------------------------------------------ starting */

static int open_pipes(int pipes[3][2])
{
    for (int i = 0; i < 3; i++)
        pipes[i][0] = pipes[i][1] = -1;
    for (int i = 0; i < 3; i++)
        if (pipe2(pipes[i], O_CLOEXEC) != 0)
            return errno;
    return 0;
}

static int spawn(child *c, char **words)
{
    int pipes[3][2];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int error = open_pipes(pipes);
    if (error)
        goto close_pipes;
    error = posix_spawn_file_actions_init(&actions);
    if (error)
        goto close_pipes;
    error = posix_spawnattr_init(&attributes);
    if (error)
        goto free_actions;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    error = posix_spawn_file_actions_adddup2(&actions, pipes[0][0], STDIN_FILENO);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, pipes[1][1], STDOUT_FILENO);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, pipes[2][1], STDERR_FILENO);
    if (!error)
        error = posix_spawnp(&c->pid, words[0], &actions, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
free_actions:
    posix_spawn_file_actions_destroy(&actions);
close_pipes:
    shut(&pipes[0][0]);
    shut(&pipes[1][1]);
    shut(&pipes[2][1]);
    c->in = pipes[0][1];
    c->out = pipes[1][0];
    c->err = pipes[2][0];
    if (error) {
        c->pid = 0;
        put_down(c);
        return error;
    }
    fcntl(c->in, F_SETFL, O_NONBLOCK);
    fcntl(c->out, F_SETFL, O_NONBLOCK);
    fcntl(c->err, F_SETFL, O_NONBLOCK);
    return 0;
}

/* ------------------------------------------------------------------------ talking */

/* Sends what fits. A child that does not read is no failure: what it prints counts. */
static int send_some(child *c)
{
    sigset_t pipe, before, pending;
    int was_pending;
    ssize_t sent;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    was_pending = sigismember(&pending, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    sent = write(c->in, c->input + c->sent, c->input_size - c->sent);
    if (sent < 0 && errno == EPIPE && !was_pending) {
        struct timespec none = {0, 0};
        sigtimedwait(&pipe, NULL, &none);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (sent > 0)
        c->sent += (size_t)sent;
    else if (errno != EAGAIN && errno != EINTR)
        shut(&c->in);
    if (c->sent == c->input_size)
        shut(&c->in);
    return sent > 0;
}

/* Reads what there is of one pipe into a buffer of Lua; -1: more than was allowed. */
static int read_pipe(child *c, int *fd, luaL_Buffer *to, size_t *taken, size_t most,
                     int drop)
{
    char piece[8192];
    ssize_t got = read(*fd, piece, sizeof piece);
    (void)c;
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        shut(fd);
        return 0;
    }
    if (got < 0)
        return 0;
    if (*taken + (size_t)got > most) {
        if (!drop)
            return -1;
        got = (ssize_t)(most - *taken);
    }
    *taken += (size_t)got;
    luaL_addlstring(to, piece, (size_t)got);
    return 1;
}

static int failed(lua_State *L, const char *text, const char *code)
{
    lua_pushnil(L);
    lua_pushstring(L, text);
    lua_pushstring(L, code);
    return 3;
}

/* Whether the caller wants it to end: the function at that place says so. */
static int is_stopped(lua_State *L, int place)
{
    int stop;
    if (lua_isnil(L, place))
        return 0;
    lua_pushvalue(L, place);
    lua_call(L, 0, 1);
    stop = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return stop;
}

/* Whether the child has ended; it is then reaped. Its own children continue. */
static int has_ended(child *c, int *status)
{
    if (waitpid(c->pid, status, WNOHANG) != c->pid)
        return 0;
    c->pid = 0;
    return 1;
}

enum {
    AT_WORDS = 1,
    AT_OPTIONS,
    AT_CHILD,
    AT_INPUT,
    AT_OUTPUT,
    AT_STOPPED,
    AT_OUT,
    AT_ERR
};

/* One round of reading and writing. 0: continue; else the number of results that are on
 * the stack. */
static int talk(lua_State *L, child *c, lua_Integer *heard, lua_Integer began,
                size_t *err)
{
    struct pollfd fds[3] = {
        {c->out, POLLIN, 0}, {c->err, POLLIN, 0}, {c->in, POLLOUT, 0}};
    luaL_Buffer buffer;
    lua_Integer now;
    int got;

    if (is_stopped(L, AT_STOPPED))
        return failed(L, "stopped", "ECANCELLED");
    poll(fds, 3, (int)c->slice_ms);
    now = now_ms();
    if (fds[2].revents && c->in >= 0 && send_some(c))
        *heard = now;
    if (fds[0].revents && c->out >= 0) {
        luaL_buffinit(L, &buffer);
        got = read_pipe(c, &c->out, &buffer, &c->taken, (size_t)c->most, 0);
        luaL_pushresult(&buffer);
        if (got < 0)
            return failed(L, "it prints more than an answer may have", "ELIMIT");
        if (got > 0) {
            *heard = now;
            if (!lua_isnil(L, AT_OUTPUT)) {
                lua_pushvalue(L, AT_OUTPUT);
                lua_pushvalue(L, -2);
                lua_call(L, 1, 0);
            }
            lua_rawseti(L, AT_OUT, (lua_Integer)lua_rawlen(L, AT_OUT) + 1);
        } else
            lua_pop(L, 1);
    }
    if (fds[1].revents && c->err >= 0) {
        luaL_buffinit(L, &buffer);
        got = read_pipe(c, &c->err, &buffer, err, MOST_ERR, 1);
        luaL_pushresult(&buffer);
        if (got > 0)
            lua_rawseti(L, AT_ERR, (lua_Integer)lua_rawlen(L, AT_ERR) + 1);
        else
            lua_pop(L, 1);
    }
    if (now - *heard > c->timeout_ms)
        return failed(L, "it printed nothing for too long, and was ended", "EIO");
    if (now - began > c->whole_ms)
        return failed(L, "it takes too long, and was ended", "EIO");
    return 0;
}

static void push_joined(lua_State *L, int place)
{
    luaL_Buffer all;
    lua_Integer count = (lua_Integer)lua_rawlen(L, place);
    luaL_buffinit(L, &all);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, place, i);
        luaL_addvalue(&all);
    }
    luaL_pushresult(&all);
}

static lua_Integer option(lua_State *L, const char *name, lua_Integer otherwise)
{
    lua_Integer value;
    lua_getfield(L, AT_OPTIONS, name);
    value = luaL_optinteger(L, -1, otherwise);
    lua_pop(L, 1);
    return value > 0 ? value : otherwise;
}

/* The words as argv, in memory of Lua's at the top of the stack. */
static char **words_of(lua_State *L)
{
    size_t count = (size_t)luaL_len(L, AT_WORDS);
    char **words;
    luaL_argcheck(L, count > 0 && count < INT_MAX / 16, AT_WORDS, "words expected");
    words = lua_newuserdatauv(L, (count + 1) * sizeof *words, 0);
    for (size_t i = 0; i < count; i++) {
        size_t size;
        const char *word;
        luaL_argcheck(L, lua_rawgeti(L, AT_WORDS, (lua_Integer)i + 1) == LUA_TSTRING,
                      AT_WORDS, "words expected");
        word = lua_tolstring(L, -1, &size);
        luaL_argcheck(L, strlen(word) == size, AT_WORDS, "a word has a zero byte");
        words[i] = (char *)(uintptr_t)word; /* not written to; the list keeps it */
        lua_pop(L, 1);
    }
    words[count] = NULL;
    return words;
}

/* run(words, {input=, timeout_ms=, whole_ms=, most=, on_output=, stopped=}): the program
 * is looked for as a shell does, gets input on its standard input, and has ended when
 * this comes back: {out=, err=, status=} or {out=, err=, signal=}; err is at most 64 KiB.
 * nil, message, code: ENOTFOUND, EDENIED, EIO (it did not start, or took too long),
 * ELIMIT (more than `most` bytes), ECANCELLED (stopped() was true). on_output(piece) gets
 * what it prints as it comes; both may raise, and then it is ended. slice_ms: the longest
 * time between two calls of stopped(), at most 100. */
static int process_run(lua_State *L)
{
    child *c;
    char **words;
    lua_Integer began = now_ms(), heard = began;
    size_t err = 0;
    int status = 0, error, results;

    luaL_checktype(L, AT_WORDS, LUA_TTABLE);
    luaL_checktype(L, AT_OPTIONS, LUA_TTABLE);
    lua_settop(L, AT_OPTIONS);
    c = lua_newuserdatauv(L, sizeof *c, 0);
    memset(c, 0, sizeof *c);
    c->in = c->out = c->err = -1;
    if (luaL_newmetatable(L, "sessile.process")) {
        lua_pushcfunction(L, child_gc);
        lua_setfield(L, -2, "__gc");
        lua_pushcfunction(L, child_gc);
        lua_setfield(L, -2, "__close");
    }
    lua_setmetatable(L, AT_CHILD);
    lua_toclose(L, AT_CHILD);
    c->timeout_ms = option(L, "timeout_ms", 120000);
    c->whole_ms = option(L, "whole_ms", c->timeout_ms);
    c->most = option(L, "most", 16 * 1024 * 1024);
    c->slice_ms = option(L, "slice_ms", SLICE_MS);
    luaL_argcheck(L, c->slice_ms > 0 && c->slice_ms <= SLICE_MS, AT_OPTIONS, "slice_ms");
    lua_getfield(L, AT_OPTIONS, "input");
    c->input = luaL_optlstring(L, AT_INPUT, "", &c->input_size);
    lua_getfield(L, AT_OPTIONS, "on_output");
    lua_getfield(L, AT_OPTIONS, "stopped");
    lua_newtable(L);
    lua_newtable(L);
    words = words_of(L);

    error = spawn(c, words);
    if (error)
        return failed(L, error == ENOENT ? "there is no such program" : strerror(error),
                      error == ENOENT   ? "ENOTFOUND"
                      : error == EACCES ? "EDENIED"
                                        : "EIO");
    if (c->input_size == 0)
        shut(&c->in);
    while (c->out >= 0 || c->err >= 0) {
        results = talk(L, c, &heard, began, &err);
        if (results)
            return results;
        /* what it left running may hold its pipes: its own end is what counts */
        if (has_ended(c, &status)) {
            for (int i = 0; i < 64 && (c->out >= 0 || c->err >= 0); i++) {
                struct pollfd fds[2] = {{c->out, POLLIN, 0}, {c->err, POLLIN, 0}};
                if (poll(fds, 2, 0) <= 0)
                    break;
                results = talk(L, c, &heard, began, &err);
                if (results)
                    return results;
            }
            break;
        }
    }
    while (c->pid > 0 && !has_ended(c, &status)) { /* it closed its output */
        results = talk(L, c, &heard, began, &err);
        if (results)
            return results;
    }
    lua_createtable(L, 0, 3);
    push_joined(L, AT_OUT);
    lua_setfield(L, -2, "out");
    push_joined(L, AT_ERR);
    lua_setfield(L, -2, "err");
    if (WIFSIGNALED(status)) {
        lua_pushinteger(L, WTERMSIG(status));
        lua_setfield(L, -2, "signal");
    } else {
        lua_pushinteger(L, WEXITSTATUS(status));
        lua_setfield(L, -2, "status");
    }
    return 1;
}

/* replace(words, path): the program at the path goes on in place of this one, as if it
 * had been called with these words, the first of which is a name; with its environment
 * and open files. Comes back only with nil, message, code. */
static int process_replace(lua_State *L)
{
    char **words;
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkstring(L, 2);
    lua_settop(L, 2);
    words = words_of(L);
    execv(lua_tostring(L, 2), words);
    return failed(L, strerror(errno), errno == ENOENT ? "ENOTFOUND" : "EDENIED");
}

int luaopen_sessile_process(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"run", process_run}, {"replace", process_replace}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}

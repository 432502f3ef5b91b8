/*
 * stdio.c: the module sessile.stdio: lines from standard input and to standard output,
 * for a program that answers another one.
 *
 * Owns what was read and not asked for, and what waits to be written. Must never wait for
 * one side alone: a peer that writes without reading would wait for us, and we for it.
 * The flags of the two descriptors are not changed, because others may share them: what
 * is read or written at a time is what cannot block.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>

#include "base/lines.h"
#include "command/modules.h"

#define CLASS "sessile.Stdio"
#define PIECE 65536
/* A pipe that can be written to takes this much without blocking (pipe(7)). */
#define PIPE_PIECE PIPE_BUF

typedef struct stdio {
    lines in;
    buf out;
    size_t sent;            /* bytes of out */
    int input_ended;        /* nothing can be read any more */
    int output_ended;       /* nobody reads: what would be written is dropped */
    int is_pipe, is_socket; /* what standard output is */
} stdio;

static stdio *check(lua_State *L)
{
    return luaL_checkudata(L, 1, CLASS);
}

static int stdio_gc(lua_State *L)
{
    stdio *s = check(L);
    lines_deinit(&s->in);
    buf_deinit(&s->out);
    return 0;
}

/* open(most): a line has at most `most` bytes. SIGPIPE is ignored from now on: broken()
 * says that nobody reads standard output. */
static int stdio_open(lua_State *L)
{
    lua_Integer most = luaL_checkinteger(L, 1);
    struct stat st;
    stdio *s;
    luaL_argcheck(L, most > 0, 1, "bytes of a line");
    s = lua_newuserdatauv(L, sizeof *s, 0);
    *s = (stdio){0};
    lines_init(&s->in, &allocator_default, (size_t)most);
    buf_init(&s->out, &allocator_default);
    luaL_setmetatable(L, CLASS);
    if (fstat(STDOUT_FILENO, &st) == 0) {
        s->is_pipe = S_ISFIFO(st.st_mode);
        s->is_socket = S_ISSOCK(st.st_mode);
    }
    signal(SIGPIPE, SIG_IGN);
    return 1;
}

static size_t queued(const stdio *s)
{
    return s->out.size - s->sent;
}

/* Reads what there is, at most a piece. Returns 0; -1: no memory. */
static int read_some(stdio *s)
{
    char piece[PIECE];
    ssize_t got = read(STDIN_FILENO, piece, sizeof piece);
    if (got > 0)
        return lines_feed(&s->in, piece, (size_t)got);
    if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
        s->input_ended = 1;
        lines_end(&s->in);
    }
    return 0;
}

static void give_up_output(stdio *s)
{
    s->output_ended = 1;
    s->sent = 0;
    buf_clear(&s->out);
}

/* Writes a piece that does not block. Returns whether more may be written at once. */
static int write_some(stdio *s)
{
    size_t size = queued(s), most = s->is_pipe ? PIPE_PIECE : PIECE;
    const char *from = s->out.data + s->sent;
    ssize_t sent;
    if (size > most)
        size = most;
    sent = s->is_socket ? send(STDOUT_FILENO, from, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                        : write(STDOUT_FILENO, from, size);
    if (sent > 0)
        s->sent += (size_t)sent;
    else if (sent < 0 && errno != EINTR && errno != EAGAIN)
        give_up_output(s);
    if (!s->output_ended && queued(s) == 0) {
        s->sent = 0;
        buf_clear(&s->out);
    }
    return sent > 0 && queued(s) > 0;
}

/* poll(timeout_ms, reads): waits until something can be read (if reads) or written, or
 * the time is over (-1: for ever), and does that. */
static int stdio_poll(lua_State *L)
{
    stdio *s = check(L);
    int timeout = (int)luaL_checkinteger(L, 2);
    int reads = lua_toboolean(L, 3) && !s->input_ended;
    struct pollfd fds[2] = {{-1, POLLIN, 0}, {-1, POLLOUT, 0}};
    if (reads)
        fds[0].fd = STDIN_FILENO;
    if (queued(s) > 0)
        fds[1].fd = STDOUT_FILENO;
    if (poll(fds, 2, timeout) <= 0)
        return 0;
    if (fds[1].revents) {
        while (write_some(s)) {
            struct pollfd again = {STDOUT_FILENO, POLLOUT, 0};
            if (poll(&again, 1, 0) <= 0)
                break;
        }
    }
    if (fds[0].revents && read_some(s) != 0)
        return luaL_error(L, "not enough memory");
    return 0;
}

/* line(): the next line; false: one was too long, and is dropped; nil: there is none yet,
 * or, with "end", none will come */
static int stdio_line(lua_State *L)
{
    stdio *s = check(L);
    const char *line;
    size_t size;
    switch (lines_next(&s->in, &line, &size)) {
    case LINES_ONE:
        lua_pushlstring(L, line, size);
        return 1;
    case LINES_LONG:
        lua_pushboolean(L, 0);
        return 1;
    case LINES_NONE:
        break;
    }
    lua_pushnil(L);
    if (!s->input_ended)
        return 1;
    lua_pushliteral(L, "end");
    return 2;
}

/* send(json): queues it as a line; poll() writes it */
static int stdio_send(lua_State *L)
{
    stdio *s = check(L);
    size_t size;
    const char *text = luaL_checklstring(L, 2, &size);
    if (s->output_ended)
        return 0;
    if (s->sent > 0 && s->sent >= queued(s)) {
        size_t left = queued(s);
        memmove(s->out.data, s->out.data + s->sent, left);
        s->out.size = left;
        s->sent = 0;
    }
    lines_put(&s->out, text, size);
    if (s->out.failed)
        return luaL_error(L, "not enough memory");
    return 0;
}

/* queued(): bytes that wait to be written */
static int stdio_queued(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)queued(check(L)));
    return 1;
}

/* held(): bytes that were read and not asked for */
static int stdio_held(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)lines_held(&check(L)->in));
    return 1;
}

/* broken(): whether nobody reads what is written */
static int stdio_broken(lua_State *L)
{
    lua_pushboolean(L, check(L)->output_ended);
    return 1;
}

int luaopen_sessile_stdio(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"poll", stdio_poll},     {"line", stdio_line}, {"send", stdio_send},
        {"queued", stdio_queued}, {"held", stdio_held}, {"broken", stdio_broken},
        {"__gc", stdio_gc},       {NULL, NULL},
    };
    static const luaL_Reg functions[] = {{"open", stdio_open}, {NULL, NULL}};
    if (luaL_newmetatable(L, CLASS)) {
        luaL_setfuncs(L, methods, 0);
        lua_pushvalue(L, -1);
        lua_setfield(L, -2, "__index");
    }
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}

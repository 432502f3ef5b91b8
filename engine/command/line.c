/*
 * line.c: the module sessile.line: typed lines with editing, and Ctrl-C.
 *
 * Owns the terminal while a line is typed or an answer is shown, over libedit. Must
 * always restore the terminal, whatever ends this process except SIGKILL. Must never
 * read stdin through both stdio and libedit.
 */
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include <histedit.h>
#include <lauxlib.h>
#include <lua.h>

#include "command/line.h"
#include "command/modules.h"

#define LONGEST (1024 * 1024) /* characters of a line, pasted ones included */

/* ------------------------------------------------------------------------ signals */

/* There is one terminal, and so one of each of these. Handlers only set flags, but for
 * those of signals that end the process: they put the terminal back first. */
static volatile sig_atomic_t interrupted, resized, stopping, owned, pasting;
static struct termios before;
static sigset_t unblocked;

static const int ending[] = {SIGTERM, SIGHUP, SIGQUIT};
static const int noted[] = {SIGINT, SIGWINCH, SIGTSTP};
static struct sigaction old_ending[3], old_noted[3];

static const char paste_on[] = "\033[?2004h", paste_off[] = "\033[?2004l";

void line_say(const char *text)
{
    ssize_t sent = write(STDOUT_FILENO, text, strlen(text));
    (void)sent; /* a terminal that is gone needs no word */
}

static void on_noted(int number)
{
    if (number == SIGINT)
        interrupted = 1;
    else if (number == SIGWINCH)
        resized = 1;
    else
        stopping = 1;
}

static void on_ending(int number)
{
    if (pasting)
        line_say(paste_off);
    if (owned)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    raise(number); /* its action is the default again: SA_RESETHAND */
}

/* Takes the terminal: how it is now is how it will be. 0: stdin is none. */
static int take_terminal(void)
{
    struct sigaction action;
    sigset_t block;
    if (owned || tcgetattr(STDIN_FILENO, &before) != 0)
        return 0;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    interrupted = resized = stopping = 0;
    owned = 1;
    action.sa_handler = on_noted;
    for (int i = 0; i < 3; i++)
        sigaction(noted[i], &action, &old_noted[i]);
    action.sa_handler = on_ending;
    action.sa_flags = (int)(SA_RESETHAND | SA_NODEFER);
    for (int i = 0; i < 3; i++) {
        sigaction(ending[i], &action, &old_ending[i]);
        if (old_ending[i].sa_handler == SIG_IGN) /* as under nohup */
            sigaction(ending[i], &old_ending[i], NULL);
    }
    sigemptyset(&block);
    for (int i = 0; i < 3; i++)
        sigaddset(&block, noted[i]);
    pthread_sigmask(SIG_BLOCK, &block, &unblocked);
    return 1;
}

static void give_back(void)
{
    if (!owned)
        return;
    if (pasting)
        line_say(paste_off);
    pasting = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    for (int i = 0; i < 3; i++)
        sigaction(ending[i], &old_ending[i], NULL);
    pthread_sigmask(SIG_SETMASK, &unblocked, NULL);
    for (int i = 0; i < 3; i++)
        sigaction(noted[i], &old_noted[i], NULL);
    owned = 0;
}

/* ------------------------------------------------------------------------ characters */

reading *line_reading(EditLine *el)
{
    void *found = NULL;
    el_get(el, EL_CLIENTDATA, &found);
    return found;
}

/* Ctrl-Z: the terminal is the shell's until it says otherwise. */
static void stop(EditLine *el)
{
    sigset_t only;
    struct sigaction action, ours;
    line_say(paste_off);
    el_set(el, EL_PREP_TERM, 0);
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    sigaction(SIGTSTP, &action, &ours);
    raise(SIGTSTP);
    sigemptyset(&only);
    sigaddset(&only, SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL); /* stops here */
    pthread_sigmask(SIG_BLOCK, &only, NULL);
    sigaction(SIGTSTP, &ours, NULL);
    stopping = 0;
    el_set(el, EL_PREP_TERM, 1);
    line_say(paste_on);
    el_set(el, EL_REFRESH);
}

/* The next byte: 1; 0 at the end, -1 when it was interrupted or cannot be read. Signals
 * come in while it waits and at no other time. */
static int next_byte(EditLine *el, unsigned char *out)
{
    for (;;) {
        struct pollfd in = {STDIN_FILENO, POLLIN, 0};
        ssize_t got;
        if (interrupted) {
            errno = EINTR;
            return -1;
        }
        if (stopping)
            stop(el);
        if (resized) {
            resized = 0;
            el_resize(el);
            el_set(el, EL_REFRESH);
        }
        if (ppoll(&in, 1, NULL, &unblocked) < 0) {
            if (errno == EINTR)
                continue;
            return -1;
        }
        got = read(STDIN_FILENO, out, 1);
        if (got >= 0)
            return (int)got;
        if (errno != EINTR && errno != EAGAIN)
            return -1;
    }
}

/* As libedit's own reader, over next_byte. What is no UTF-8 is left out. */
static int next_char(EditLine *el, wchar_t *out)
{
    reading *r = line_reading(el);
    for (;;) {
        unsigned char byte;
        char one;
        size_t size;
        int got = next_byte(el, &byte);
        if (got <= 0)
            return got;
        /* Ctrl-D that was typed while lines were the terminal's comes as a zero. */
        one = (char)(byte ? byte : 4);
        size = mbrtowc(out, &one, 1, &r->state);
        if (size == 0 || size == 1)
            return 1;
        if (size == (size_t)-1)
            memset(&r->state, 0, sizeof r->state);
    }
}

/* Pasted text goes into the line as it is, line breaks too, until the terminal says that
 * it ends. */
static unsigned char paste(EditLine *el, int unused)
{
    static const wchar_t end[] = L"\033[201~";
    size_t size = 0, room = 4096, matched = 0;
    wchar_t *text = malloc(room * sizeof *text), c = 0;
    (void)unused;
    while (text && next_char(el, &c) == 1) {
        if (c == end[matched]) {
            if (++matched == 6)
                break;
            continue;
        }
        matched = c == end[0];
        if (matched || size >= LONGEST)
            continue;
        if (size + 2 > room) {
            wchar_t *more = realloc(text, 2 * room * sizeof *text);
            if (!more)
                break;
            text = more;
            room *= 2;
        }
        if (c == L'\r')
            c = L'\n';
        if (c == L'\t')
            c = L' ';
        if (c == L'\n' || (c >= 0x20 && (c < 0x7F || c > 0x9F)))
            text[size++] = c;
    }
    if (text) {
        text[size] = L'\0';
        el_winsertstr(el, text);
    }
    free(text);
    return CC_REFRESH;
}

/* ------------------------------------------------------------------------ reading */

static char *prompt_of(EditLine *el)
{
    return (char *)(uintptr_t)line_reading(el)->prompt; /* libedit only reads it */
}

static int reading_close(lua_State *L)
{
    reading *r = lua_touserdata(L, 1);
    if (r->el) {
        /* Or libedit would set the terminal itself, and throw away what was typed ahead.
         */
        el_set(r->el, EL_EDITMODE, 0);
        el_end(r->el);
    }
    if (r->locale)
        uselocale(r->locale);
    if (r->utf8)
        freelocale(r->utf8);
    r->el = NULL;
    r->locale = r->utf8 = (locale_t)0;
    give_back();
    return 0;
}

static void bind_keys(EditLine *el)
{
    static const char *const keys[][2] = {
        {"\033[3~", "ed-delete-next-char"}, {"\033[1~", "ed-move-to-beg"},
        {"\033[4~", "ed-move-to-end"},      {"\033[H", "ed-move-to-beg"},
        {"\033[F", "ed-move-to-end"},       {"\033[1;5D", "ed-prev-word"},
        {"\033[1;5C", "em-next-word"},      {"^R", "em-inc-search-prev"},
        {"^I", "sessile-complete"},         {"\033[200~", "sessile-paste"}};
    el_set(el, EL_ADDFN, "sessile-complete", "completes what was begun", line_complete);
    el_set(el, EL_ADDFN, "sessile-paste", "takes what is pasted", paste);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        el_set(el, EL_BIND, keys[i][0], keys[i][1], NULL);
}

/* The lines that were typed before, as libedit asks for them. (Its own list has a name
 * that the engine has as well.) */
static int typed_before(void *ud, HistEvent *event, int what, ...)
{
    reading *r = ud;
    lua_Integer count = (lua_Integer)lua_rawlen(r->L, r->lines), line = r->line;
    switch (what) {
    case H_FIRST:
        line = 1;
        break;
    case H_LAST:
        line = count;
        break;
    case H_NEXT:
        line++;
        break;
    case H_PREV:
        line--;
        break;
    case H_CURR:
        break;
    default:
        return -1;
    }
    if (line < 1 || line > count || !lua_checkstack(r->L, 1))
        return -1;
    lua_rawgeti(r->L, r->lines, count + 1 - line);
    event->str = lua_tostring(r->L, -1); /* the list keeps it */
    event->num = (int)(line < INT_MAX ? line : INT_MAX);
    lua_pop(r->L, 1);
    r->line = line;
    return event->str ? 0 : -1;
}

/* Sets libedit up. */
static int start_editor(lua_State *L, reading *r)
{
    r->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (r->utf8)
        r->locale = uselocale(r->utf8);
    r->el = el_init("sessile", stdin, stdout, stderr);
    if (!r->el)
        return luaL_error(L, "not enough memory");
    el_set(r->el, EL_CLIENTDATA, r);
    el_set(r->el, EL_EDITOR, "emacs");
    el_set(r->el, EL_SIGNAL, 0);
    el_set(r->el, EL_GETCFN, next_char);
    el_set(r->el, EL_PROMPT_ESC, prompt_of, '\1');
    bind_keys(r->el);
    if (r->lines)
        el_set(r->el, EL_HIST, typed_before, r);
    return 0;
}

/* A line of what is no terminal. */
static int read_plain(lua_State *L)
{
    luaL_Buffer line;
    size_t size = 0;
    int c = 0;
    luaL_buffinit(L, &line);
    while (size < LONGEST && (c = getc(stdin)) != EOF && c != '\n') {
        luaL_addchar(&line, (char)c);
        size++;
    }
    if (c == EOF && size == 0) {
        lua_pushnil(L);
        lua_pushliteral(L, "end");
        return 2;
    }
    luaL_pushresult(&line);
    return 1;
}

/* read(prompt, {history=, complete=}): the line that is typed, without its end. nil,
 * "end": Ctrl-D, or nothing more comes; nil, "interrupted": Ctrl-C, which drops what was
 * typed. history: a list of lines, the newest last. complete(text before the cursor): a
 * list of texts that begin with it. In the prompt \1 stands around what takes no room
 * (colour). Without a terminal the prompt is not shown, and lines are read as they come.
 */
static int line_read(lua_State *L)
{
    reading *r;
    const char *line;
    int count = 0, stopped;
    const char *prompt = luaL_checkstring(L, 1);
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_newtable(L);
        lua_replace(L, 2);
    }
    luaL_checktype(L, 2, LUA_TTABLE);
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return read_plain(L);
    if (owned)
        return luaL_error(L, "a line is being read already");
    fflush(stdout);
    r = lua_newuserdatauv(L, sizeof *r, 0);
    memset(r, 0, sizeof *r);
    r->L = L;
    r->prompt = prompt;
    if (luaL_newmetatable(L, "sessile.line")) {
        lua_pushcfunction(L, reading_close);
        lua_setfield(L, -2, "__gc");
        lua_pushcfunction(L, reading_close);
        lua_setfield(L, -2, "__close");
    }
    lua_setmetatable(L, -2);
    lua_toclose(L, -1);
    lua_getfield(L, 2, "complete");
    if (!lua_isnil(L, -1))
        r->complete = lua_gettop(L);
    lua_getfield(L, 2, "history");
    if (lua_istable(L, -1))
        r->lines = lua_gettop(L);
    if (!take_terminal())
        return luaL_error(L, "the terminal does not say how it is set");
    start_editor(L, r);
    line_say(paste_on);
    pasting = 1;
    line = el_gets(r->el, &count);
    stopped = interrupted;
    if (stopped || !line || count <= 0) {
        const char *terminal = getenv("TERM");
        if (stopped)
            line_say(terminal && strcmp(terminal, "dumb") != 0 ? "^C\033[J" : "^C");
        line_say("\r\n");
        lua_pushnil(L);
        lua_pushstring(L, stopped ? "interrupted" : "end");
        return 2;
    }
    lua_pushlstring(L, line, (size_t)count - (line[count - 1] == '\n'));
    return 1;
}

/* busy(true): until busy(false), what is typed is not shown, and Ctrl-C only sets what
 * interrupted() returns. */
static int line_busy(lua_State *L)
{
    struct termios quiet;
    if (!lua_toboolean(L, 1)) {
        give_back();
        return 0;
    }
    if (!isatty(STDIN_FILENO) || !take_terminal())
        return 0;
    quiet = before;
    quiet.c_lflag &= (tcflag_t) ~(ECHO | ECHONL);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
    sigaction(SIGWINCH, &old_noted[1], NULL);
    sigaction(SIGTSTP, &old_noted[2], NULL);
    pthread_sigmask(SIG_SETMASK, &unblocked, NULL);
    return 0;
}

/* interrupted(): whether Ctrl-C was pressed since busy(true). */
static int line_interrupted(lua_State *L)
{
    lua_pushboolean(L, interrupted);
    return 1;
}

int luaopen_sessile_line(lua_State *L)
{
    static const luaL_Reg functions[] = {{"read", line_read},
                                         {"busy", line_busy},
                                         {"interrupted", line_interrupted},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}

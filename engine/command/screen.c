/*
 * screen.c: the module sessile.screen: a terminal as a grid of cells, and its keys.
 *
 * The only file that uses ncurses. screen_text.c decides which parts of a text reach a
 * cell, screen_tty.c restores the terminal. Must never know what is drawn.
 *
 *   screen.open() -> a screen; nil, a message and a code: EUNSUPPORTED if there is no
 *     terminal, or it cannot position text; EINVALID if a screen is open already
 *   s:size() -> rows, columns
 *   s:key(timeout_ms) -> the name of a key ("up", "ctrl-d", "resize", "resume",
 *     "closed"), or the typed character; nil after the time (-1 or none: waits forever)
 *   s:put(row, column, text, attributes, columns) -> the columns it took, at most
 *     `columns` and never past the edge. attributes: words such as "bold cyan"
 *   s:clear(), s:refresh(), s:redraw() (draws everything again)
 *   s:cursor(row, column) (hidden without arguments)
 *   s:close(); also <close> and when it is collected
 *   screen.width(text) -> the columns that put would take
 *
 * Rows and columns count from 1. NO_COLOR removes colours and keeps attributes.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>

#include <lauxlib.h>
#include <lua.h>

#include "command/modules.h"
#include "command/screen.h"

#define SCREEN_TYPE "sessile.Screen"

typedef struct screen {
    SCREEN *handle; /* NULL: closed */
    FILE *in, *out;
    locale_t ours, before; /* UTF-8, whatever the environment says */
    int has_colour;
} screen;

/* ncurses draws on one terminal at a time. */
static screen *opened;

enum { COLOURS = 8 };

/* ------------------------------------------------------------------------ the handle */

static screen *check_open(lua_State *L)
{
    screen *s = luaL_checkudata(L, 1, SCREEN_TYPE);
    if (!s->handle)
        luaL_error(L, "the screen is closed");
    return s;
}

static void close_files(screen *s)
{
    if (s->in)
        fclose(s->in);
    if (s->out)
        fclose(s->out);
    s->in = s->out = NULL;
}

static int screen_close(lua_State *L)
{
    screen *s = luaL_checkudata(L, 1, SCREEN_TYPE);
    if (s->handle) {
        endwin();
        screen_tty_restore();
        delscreen(s->handle);
        s->handle = NULL;
        opened = NULL;
    }
    if (s->ours) {
        uselocale(s->before);
        freelocale(s->ours);
        s->ours = (locale_t)0;
    }
    close_files(s);
    return 0;
}

static int fail(lua_State *L, int index, const char *code, const char *message)
{
    lua_pushcfunction(L, screen_close);
    lua_pushvalue(L, index);
    lua_call(L, 1, 0);
    lua_pushnil(L);
    lua_pushstring(L, message);
    lua_pushstring(L, code);
    return 3;
}

/* Opens what the person looks at and types on: stdin and stdout when both are a terminal,
 * else the one the process belongs to: $(sessile tree --select). */
static int open_files(screen *s)
{
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) {
        int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
        int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        if (in >= 0 && !(s->in = fdopen(in, "r")))
            close(in);
        if (out >= 0 && !(s->out = fdopen(out, "w")))
            close(out);
    } else {
        s->in = fopen("/dev/tty", "re");
        s->out = fopen("/dev/tty", "we");
    }
    return s->in && s->out;
}

/* Can this type of terminal place text? It stays as it is. */
static int can_place(const char *type, int fd)
{
    int problem = 0;
    if (setupterm(type, fd, &problem) != OK)
        return 0;
    const char *place = tigetstr("cup");
    int can = place && place != (const char *)-1;
    del_curterm(cur_term);
    return can;
}

/* The type to take the terminal for; NULL: none will do. Not every machine has heard of
 * xterm-kitty and its like: they call themselves so because they are close to one. */
static const char *type_of(int fd)
{
    const char *type = getenv("TERM");
    if (type && can_place(type, fd))
        return type;
    if (type && strncmp(type, "xterm", 5) == 0 && can_place("xterm", fd))
        return "xterm";
    return NULL;
}

/* What the terminal's own description says, for the handlers to write. */
static char sequence[512];
static size_t sequence_size;

static int add_byte(int c)
{
    if (sequence_size < sizeof sequence)
        sequence[sequence_size++] = (char)c;
    return c;
}

static void put_capability(const char *capability)
{
    if (capability)
        tputs(capability, 1, add_byte);
}

static void tell_handlers(void)
{
    char enter[sizeof sequence];
    size_t enter_size;
    sequence_size = 0;
    put_capability(enter_ca_mode);
    put_capability(keypad_xmit);
    put_capability(cursor_invisible);
    memcpy(enter, sequence, sequence_size);
    enter_size = sequence_size;
    sequence_size = 0;
    add_byte('\030'); /* ends a sequence that was cut off in the middle */
    put_capability(exit_attribute_mode);
    put_capability(cursor_normal);
    put_capability(keypad_local);
    put_capability(exit_ca_mode);
    if (!exit_ca_mode)
        put_capability("\r\n");
    screen_tty_entered(enter, enter_size, sequence, sequence_size);
}

/* The pairs: each colour before the terminal's own ground, then before yellow. */
static int start_colours(void)
{
    const char *none = getenv("NO_COLOR");
    if ((none && *none) || !has_colors() || start_color() == ERR)
        return 0;
    short ground = use_default_colors() == OK ? -1 : COLOR_BLACK;
    for (short i = 0; i < COLOURS; i++) {
        init_pair((short)(i + 1), i, ground);
        init_pair((short)(i + 1 + COLOURS), i, COLOR_YELLOW);
    }
    return COLOR_PAIRS > 2 * COLOURS;
}

static void fit(const screen *s)
{
    struct winsize size;
    if (ioctl(fileno(s->out), TIOCGWINSZ, &size) == 0 && size.ws_row > 0 &&
        size.ws_col > 0)
        resizeterm(size.ws_row, size.ws_col);
}

static int screen_open(lua_State *L)
{
    lua_settop(L, 0);
    screen *s = lua_newuserdatauv(L, sizeof *s, 0);
    memset(s, 0, sizeof *s);
    luaL_setmetatable(L, SCREEN_TYPE);
    if (opened)
        return fail(L, 1, "EINVALID", "a screen is open already");
    if (!open_files(s))
        return fail(L, 1, "EUNSUPPORTED", "there is no terminal here");
    s->ours = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!s->ours)
        return fail(L, 1, "EUNSUPPORTED", "the locale C.UTF-8 is not installed");
    s->before = uselocale(s->ours);
    const char *type = type_of(fileno(s->out));
    if (!type)
        return fail(L, 1, "EUNSUPPORTED",
                    "this terminal cannot place text, by what TERM says of it");
    use_env(FALSE); /* LINES and COLUMNS may be of another terminal */
    use_tioctl(TRUE);
    if (screen_tty_save(fileno(s->in)) != 0)
        return fail(L, 1, "EUNSUPPORTED", "the modes of the terminal cannot be read");
    s->handle = newterm(type, s->out, s->in);
    if (!s->handle) {
        screen_tty_restore();
        return fail(L, 1, "EUNSUPPORTED", "the terminal cannot be used");
    }
    opened = s;
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    if (!getenv("ESCDELAY"))
        set_escdelay(100); /* a slow line may take an arrow's bytes apart */
    curs_set(0);
    s->has_colour = start_colours();
    fit(s);
    refresh();
    tell_handlers();
    return 1;
}

/* ----------------------------------------------------------------------------- cells */

enum { FOUND = COLOR_BLACK + 1 + COLOURS };

static const struct style {
    const char *word;
    attr_t attribute;
    short pair; /* as start_colours made them; 0: none */
} styles[] = {{"bold", A_BOLD, 0},
              {"dim", A_DIM, 0},
              {"reverse", A_REVERSE, 0},
              {"underline", A_UNDERLINE, 0},
              {"black", 0, COLOR_BLACK + 1},
              {"red", 0, COLOR_RED + 1},
              {"green", 0, COLOR_GREEN + 1},
              {"yellow", 0, COLOR_YELLOW + 1},
              {"blue", 0, COLOR_BLUE + 1},
              {"magenta", 0, COLOR_MAGENTA + 1},
              {"cyan", 0, COLOR_CYAN + 1},
              {"white", 0, COLOR_WHITE + 1},
              {"found", 0, FOUND}};

/* Finds a word of that size among the styles; NULL: it is none. */
static const struct style *find_style(const char *word, size_t size)
{
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++)
        if (strlen(styles[i].word) == size && strncmp(styles[i].word, word, size) == 0)
            return &styles[i];
    return NULL;
}

/* Reads "bold cyan"; "found" is black on yellow, or reversed where there are no colours.
 */
static attr_t read_style(lua_State *L, int index, const screen *s, short *pair)
{
    const char *text = luaL_optstring(L, index, "");
    attr_t attributes = A_NORMAL;
    *pair = 0;
    while (*text) {
        size_t size = strcspn(text, " ");
        const struct style *one = size > 0 ? find_style(text, size) : NULL;
        luaL_argcheck(L, one || size == 0, index, "words such as \"bold cyan\" expected");
        if (one) {
            attributes |= one->attribute;
            if (one->pair)
                *pair = one->pair;
            if (one->pair == FOUND && !s->has_colour)
                attributes |= A_REVERSE;
        }
        text += size + (text[size] == ' ');
    }
    if (!s->has_colour)
        *pair = 0;
    return attributes;
}

static int screen_put(lua_State *L)
{
    screen *s = check_open(L);
    lua_Integer row = luaL_checkinteger(L, 2), column = luaL_checkinteger(L, 3);
    size_t size;
    const char *text = luaL_checklstring(L, 4, &size), *end = text + size;
    short pair;
    attr_t attributes = read_style(L, 5, s, &pair);
    lua_Integer room = luaL_optinteger(L, 6, COLS);
    lua_Integer used = 0;

    if (row < 1 || row > LINES || column < 1 || column > COLS || room < 1) {
        lua_pushinteger(L, 0);
        return 1;
    }
    if (room > COLS - column + 1)
        room = COLS - column + 1;
    while (text < end) {
        wchar_t cell[SCREEN_CELL];
        cchar_t drawn;
        int width = screen_next_cell(&text, end, cell);
        if (width == 0)
            continue;
        if (used + width > room)
            break;
        if (setcchar(&drawn, cell, attributes, pair, NULL) == OK)
            mvadd_wch((int)row - 1, (int)(column - 1 + used), &drawn);
        used += width;
    }
    lua_pushinteger(L, used);
    return 1;
}

static int screen_width(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size), *end = text + size;
    locale_t ours =
        opened ? (locale_t)0 : newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = ours ? uselocale(ours) : (locale_t)0;
    lua_Integer width = 0;
    while (text < end) {
        wchar_t cell[SCREEN_CELL];
        width += screen_next_cell(&text, end, cell);
    }
    if (ours) {
        uselocale(before);
        freelocale(ours);
    }
    lua_pushinteger(L, width);
    return 1;
}

static int screen_clear(lua_State *L)
{
    check_open(L);
    erase();
    return 0;
}

static int screen_refresh(lua_State *L)
{
    check_open(L);
    screen_tty_foreground();
    refresh();
    return 0;
}

static int screen_redraw(lua_State *L)
{
    check_open(L);
    clearok(curscr, TRUE);
    return 0;
}

static int screen_cursor(lua_State *L)
{
    check_open(L);
    if (lua_isnoneornil(L, 2)) {
        curs_set(0);
        return 0;
    }
    move((int)luaL_checkinteger(L, 2) - 1, (int)luaL_checkinteger(L, 3) - 1);
    curs_set(1);
    return 0;
}

static int screen_size(lua_State *L)
{
    check_open(L);
    lua_pushinteger(L, LINES);
    lua_pushinteger(L, COLS);
    return 2;
}

/* ------------------------------------------------------------------------------ keys */

static const struct {
    wint_t code;
    const char *name;
} keys[] = {{KEY_UP, "up"},         {KEY_DOWN, "down"},    {KEY_LEFT, "left"},
            {KEY_RIGHT, "right"},   {KEY_PPAGE, "pageup"}, {KEY_NPAGE, "pagedown"},
            {KEY_HOME, "home"},     {KEY_END, "end"},      {KEY_FIND, "home"},
            {KEY_SELECT, "end"},    {KEY_ENTER, "enter"},  {KEY_BACKSPACE, "backspace"},
            {KEY_DC, "delete"},     {KEY_BTAB, "backtab"}, {KEY_SR, "shift-up"},
            {KEY_SF, "shift-down"}, {KEY_F(1), "f1"}};

/* Pushes the name of what was typed; 0: it has none. */
static int push_key(lua_State *L, int is_code, wint_t c)
{
    if (is_code) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            if (keys[i].code == c) {
                lua_pushstring(L, keys[i].name);
                return 1;
            }
        }
        return 0;
    }
    if (c == '\r' || c == '\n')
        lua_pushliteral(L, "enter");
    else if (c == '\t')
        lua_pushliteral(L, "tab");
    else if (c == 0x1B)
        lua_pushliteral(L, "escape");
    else if (c == 0x7F || c == '\b')
        lua_pushliteral(L, "backspace");
    else if (c > 0 && c < 0x20)
        lua_pushfstring(L, "ctrl-%c", c < 0x1B ? (int)c + 'a' - 1 : (int)c + '@');
    else if (c >= 0x20 && c <= 0x10FFFF && screen_is_inert((wchar_t)c))
        lua_pushfstring(L, "%U", (unsigned long)c);
    else
        return 0;
    return 1;
}

static int screen_key(lua_State *L)
{
    screen *s = check_open(L);
    lua_Integer timeout = luaL_optinteger(L, 2, -1);
    int waited = 0, empty = 0;
    if (timeout > 3600000)
        timeout = 3600000;
    for (;;) {
        wint_t c;
        int event = screen_tty_event(), got;
        if (event != SCREEN_NOTHING) {
            screen_tty_foreground();
            fit(s);
            clearok(curscr, TRUE);
            lua_pushstring(L, event == SCREEN_RESIZED ? "resize" : "resume");
            return 1;
        }
        got = get_wch(&c);
        if (got != ERR && push_key(L, got == KEY_CODE_YES, c))
            return 1;
        /* Readable, but no data: the other end is closed. */
        if (got == ERR && ++empty > 8) {
            lua_pushliteral(L, "closed");
            return 1;
        }
        if (got != ERR)
            continue;
        if (waited && timeout >= 0)
            return 0;
        switch (screen_tty_wait(timeout < 0 ? -1 : (int)timeout)) {
        case 1:
            break;
        case 0:
            empty = 0;
            waited = 1;
            break;
        default:
            lua_pushliteral(L, "closed");
            return 1;
        }
    }
}

int luaopen_sessile_screen(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"open", screen_open}, {"width", screen_width}, {NULL, NULL}};
    static const luaL_Reg meta[] = {
        {"__gc", screen_close}, {"__close", screen_close}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"size", screen_size},     {"key", screen_key},         {"put", screen_put},
        {"clear", screen_clear},   {"refresh", screen_refresh}, {"redraw", screen_redraw},
        {"cursor", screen_cursor}, {"close", screen_close},     {NULL, NULL}};
    luaL_newmetatable(L, SCREEN_TYPE);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}

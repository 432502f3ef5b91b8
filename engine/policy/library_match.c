/*
 * library_match.c: string.find, match, gmatch and gsub, with a matcher that counts its
 * steps.
 *
 * The problem: a Lua pattern with n repetitions can take (length of the subject)^n
 * steps, all of them in one C function, where no hook runs. Lua's own matcher cannot
 * be stopped: a pattern of thirty bytes can run for years. So each call compiles the
 * pattern into nodes, and our own backtracking matcher takes gas for its steps.
 * Rejected: a limit on the number of repetitions (legitimate patterns have many), and
 * a linear-time automaton (captures, %b, %f and back references do not fit one).
 *
 * Must never read beyond the subject, recurse deeper than DEPTH, or work without a
 * charge.
 */
#include "policy/environment.h"

#include <stdint.h>
#include <string.h>
#include <lauxlib.h>
#include "policy/pattern.h"
#include "policy/vm.h"

#define DEPTH 200  /* repetitions that wait for the rest of the pattern */
#define FEW   16   /* nodes that fit on the stack */
#define STEPS 1024 /* between two charges; four steps are one unit of gas */

typedef struct capture {
    const char *start;
    ptrdiff_t size; /* HERE: a position */
} capture;
#define HERE (-1)

typedef struct matcher {
    lua_State *L;
    const char *subject, *end;
    const pattern *program;
    unsigned depth, steps;
    capture captures[PATTERN_CAPTURES];
} matcher;

/* ------------------------------------------------------------------ matching */

static void charge_step(matcher *m)
{
    if (++m->steps >= STEPS) {
        m->steps = 0;
        vm_charge(m->L, STEPS / 4);
    }
}

static int fits(const matcher *m, const pattern_node *n, const char *s)
{
    unsigned char c;
    if (s >= m->end)
        return 0;
    c = (unsigned char)*s;
    switch (n->kind) {
    case NODE_CHAR:
        return c == n->a;
    case NODE_ANY:
        return 1;
    default:
        return pattern_has(n->set, c);
    }
}

static const char *balanced(matcher *m, const pattern_node *n, const char *s)
{
    size_t open = 1;
    if (s >= m->end || (uint8_t)*s != n->a)
        return NULL;
    while (++s < m->end) {
        charge_step(m);
        if ((uint8_t)*s == n->b) {
            if (--open == 0)
                return s + 1;
        } else if ((uint8_t)*s == n->a) {
            open++;
        }
    }
    return NULL;
}

static int at_frontier(const matcher *m, const pattern_node *n, const char *s)
{
    unsigned char before = s == m->subject ? 0 : (unsigned char)s[-1];
    unsigned char after = s < m->end ? (unsigned char)*s : 0;
    return !pattern_has(n->set, before) && pattern_has(n->set, after);
}

static const char *again(matcher *m, const pattern_node *n, const char *s)
{
    const capture *c = &m->captures[n->a];
    size_t size = (size_t)c->size;
    if (c->size == HERE || (size_t)(m->end - s) < size) /* a position is no text */
        return NULL;
    vm_charge(m->L, size / 16);
    return memcmp(c->start, s, size) == 0 ? s + size : NULL;
}

static const char *match(matcher *m, const pattern_node *n, const char *s);

/* Matches as many as possible, then fewer, until the rest of the pattern matches. */
static const char *match_most(matcher *m, const pattern_node *n, const char *s)
{
    const char *most = s, *least = n->repeat == '+' ? s + 1 : s, *r;
    while (fits(m, n, most)) {
        charge_step(m);
        most++;
    }
    for (; most >= least; most--) {
        charge_step(m);
        r = match(m, n + 1, most);
        if (r)
            return r;
    }
    return NULL;
}

static const char *match_fewest(matcher *m, const pattern_node *n, const char *s)
{
    for (;; s++) {
        const char *r = match(m, n + 1, s);
        charge_step(m);
        if (r || !fits(m, n, s))
            return r;
    }
}

/* The end of a match of n and what follows it at s, or NULL. A capture needs no undoing:
 * there are no alternatives in a pattern, so the path that succeeds has set each of them
 * again. */
static const char *match(matcher *m, const pattern_node *n, const char *s)
{
    const char *r = NULL;
    if (++m->depth > DEPTH)
        luaL_error(m->L, "pattern too complex");
    for (; s; n++) {
        charge_step(m);
        if (n->kind == NODE_END) {
            r = s;
            break;
        }
        if (n->repeat == '*' || n->repeat == '+') {
            r = match_most(m, n, s);
            break;
        }
        if (n->repeat == '-') {
            r = match_fewest(m, n, s);
            break;
        }
        if (n->repeat == '?') {
            if (fits(m, n, s) && (r = match(m, n + 1, s + 1)))
                break;
            continue;
        }
        switch (n->kind) {
        case NODE_STOP:
            s = s == m->end ? s : NULL;
            break;
        case NODE_OPEN:
            m->captures[n->a].start = s;
            break;
        case NODE_CLOSE:
            m->captures[n->a].size = s - m->captures[n->a].start;
            break;
        case NODE_HERE:
            m->captures[n->a] = (capture){s, HERE};
            break;
        case NODE_AGAIN:
            s = again(m, n, s);
            break;
        case NODE_BALANCE:
            s = balanced(m, n, s);
            break;
        case NODE_FRONTIER:
            s = at_frontier(m, n, s) ? s : NULL;
            break;
        default:
            s = fits(m, n, s) ? s + 1 : NULL;
        }
    }
    m->depth--;
    return r;
}

static void begin_match(matcher *m, lua_State *L, const pattern *p, const char *subject,
                        size_t size)
{
    m->L = L;
    m->subject = subject;
    m->end = subject + size;
    m->program = p;
    m->depth = m->steps = 0;
}

static const char *match_at(matcher *m, const char *s)
{
    m->depth = 0;
    return match(m, m->program->nodes, s);
}

/* ------------------------------------------------------------------ captures */

static void push_capture(const matcher *m, unsigned i, const char *start, const char *end)
{
    if (i == 0 && m->program->captures == 0) {
        lua_pushlstring(m->L, start, (size_t)(end - start));
        return;
    }
    if (i >= m->program->captures)
        luaL_error(m->L, "invalid capture index %%%d", (int)i + 1);
    if (m->captures[i].size == HERE)
        lua_pushinteger(m->L, m->captures[i].start - m->subject + 1);
    else
        lua_pushlstring(m->L, m->captures[i].start, (size_t)m->captures[i].size);
}

/* Pushes all captures; if there are none and `whole` is set, the whole match. */
static int push_captures(const matcher *m, int whole, const char *start, const char *end)
{
    unsigned n = m->program->captures, i;
    if (n == 0 && whole)
        n = 1;
    luaL_checkstack(m->L, (int)n, "too many captures");
    for (i = 0; i < n; i++)
        push_capture(m, i, start, end);
    vm_charge(m->L, (uint64_t)(end - start) / 16 + n);
    return (int)n;
}

/* ------------------------------------------------------------------ the functions */

/* Where a search starts: argument `arg`, from 1, or from the end when negative. Beyond
 * the end by more than one: size + 1, as an offset. */
static size_t start_of(lua_State *L, int arg, size_t size)
{
    lua_Integer i = luaL_optinteger(L, arg, 1);
    if (i > 0)
        return (lua_Unsigned)i - 1 > size ? size + 1 : (size_t)i - 1;
    if (i == 0 || i < -(lua_Integer)size)
        return 0;
    return size - (size_t)-i;
}

/* Nodes for a pattern: the caller's few, or a userdata left on the stack. */
static pattern_node *nodes_for(lua_State *L, pattern_node few[FEW], size_t size)
{
    return size < FEW ? few : lua_newuserdatauv(L, (size + 1) * sizeof *few, 0);
}

static int find_plain(lua_State *L, const char *subject, size_t size, size_t start,
                      const char *text, size_t text_size)
{
    const char *found = text_size == 0
                            ? subject + start
                            : memmem(subject + start, size - start, text, text_size);
    vm_charge(L, (size - start) / 8 + 1);
    if (!found) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, found - subject + 1);
    lua_pushinteger(L, found - subject + (lua_Integer)text_size);
    return 2;
}

static int find_or_match(lua_State *L, int find)
{
    size_t size, pattern_size, start;
    const char *subject = luaL_checklstring(L, 1, &size), *s, *e;
    const char *text = luaL_checklstring(L, 2, &pattern_size);
    pattern_node few[FEW];
    pattern p;
    matcher m;

    start = start_of(L, 3, size);
    if (start > size) {
        lua_pushnil(L);
        return 1;
    }
    if (find && (lua_toboolean(L, 4) || strcspn(text, "^$*+?.([%-") == pattern_size))
        return find_plain(L, subject, size, start, text, pattern_size);
    vm_charge(L, pattern_size + 1);
    pattern_compile(L, &p, nodes_for(L, few, pattern_size), text, pattern_size, 1);
    begin_match(&m, L, &p, subject, size);
    for (s = subject + start; s <= m.end; s++) {
        e = match_at(&m, s);
        if (e) {
            if (!find)
                return push_captures(&m, 1, s, e);
            lua_pushinteger(L, s - subject + 1);
            lua_pushinteger(L, e - subject);
            return push_captures(&m, 0, s, e) + 2;
        }
        if (p.anchored)
            break;
    }
    lua_pushnil(L);
    return 1;
}

static int string_find(lua_State *L)
{
    return find_or_match(L, 1);
}

static int string_match(lua_State *L)
{
    return find_or_match(L, 0);
}

/* The state of gmatch between calls, followed by the nodes. */
typedef struct iteration {
    pattern p;
    size_t at;   /* beyond the subject: at the end */
    size_t last; /* where the last match ended; SIZE_MAX: none yet */
    pattern_node nodes[];
} iteration;

/* Upvalues: the iteration, the subject. */
static int gmatch_next(lua_State *L)
{
    iteration *it = lua_touserdata(L, lua_upvalueindex(1));
    size_t size;
    const char *subject = lua_tolstring(L, lua_upvalueindex(2), &size), *e;
    matcher m;

    begin_match(&m, L, &it->p, subject, size);
    for (; it->at <= size; it->at++) {
        const char *s = subject + it->at;
        e = match_at(&m, s);
        if (e && (size_t)(e - subject) != it->last) {
            it->at = it->last = (size_t)(e - subject);
            return push_captures(&m, 1, s, e);
        }
    }
    return 0;
}

static int string_gmatch(lua_State *L)
{
    size_t size, pattern_size, start;
    iteration *it;
    const char *text;

    luaL_checklstring(L, 1, &size);
    text = luaL_checklstring(L, 2, &pattern_size);
    start = start_of(L, 3, size);
    it = lua_newuserdatauv(L, sizeof *it + (pattern_size + 1) * sizeof(pattern_node), 0);
    it->at = start;
    it->last = SIZE_MAX;
    vm_charge(L, pattern_size + 1);
    pattern_compile(L, &it->p, it->nodes, text, pattern_size,
                    0); /* '^' would end the walk */
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, gmatch_next, 2);
    return 1;
}

/* Adds a replacement string with its %0 to %9. */
static void add_text(matcher *m, luaL_Buffer *out, const char *start, const char *end)
{
    size_t size;
    const char *at = lua_tolstring(m->L, 3, &size), *stop = at + size;
    while (at < stop) {
        const char *escape = memchr(at, '%', (size_t)(stop - at));
        size_t plain = (size_t)((escape ? escape : stop) - at);
        luaL_addlstring(out, at, plain);
        at += plain;
        if (!escape)
            break;
        at++;
        if (at < stop && *at == '%') {
            luaL_addchar(out, '%');
        } else if (at < stop && *at == '0') {
            luaL_addlstring(out, start, (size_t)(end - start));
        } else if (at < stop && *at >= '1' && *at <= '9') {
            push_capture(m, (unsigned)(*at - '1'), start, end);
            luaL_tolstring(m->L, -1, NULL); /* a position becomes digits */
            lua_remove(m->L, -2);
            luaL_addvalue(out);
        } else {
            luaL_error(m->L, "invalid use of '%%' in replacement string");
        }
        at++;
    }
    vm_charge(m->L, size / 8 + (uint64_t)(end - start) / 8 + 1);
}

/* Adds the replacement of a match by argument 3. */
static void add_replacement(matcher *m, luaL_Buffer *out, const char *start,
                            const char *end)
{
    lua_State *L = m->L;
    int n;
    switch (lua_type(L, 3)) {
    case LUA_TFUNCTION:
        lua_pushvalue(L, 3);
        n = push_captures(m, 1, start, end);
        lua_call(L, n, 1);
        break;
    case LUA_TTABLE:
        push_capture(m, 0, start, end);
        lua_gettable(L, 3);
        break;
    default:
        add_text(m, out, start, end);
        return;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(out, start, (size_t)(end - start));
    } else if (!lua_isstring(L, -1)) {
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    } else {
        vm_charge(L, lua_rawlen(L, -1) / 8 + 1);
        luaL_addvalue(out);
    }
}

static int string_gsub(lua_State *L)
{
    size_t size, pattern_size;
    const char *subject = luaL_checklstring(L, 1, &size), *s = subject, *last = NULL;
    const char *text = luaL_checklstring(L, 2, &pattern_size);
    lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)size + 1), count = 0;
    int type = lua_type(L, 3);
    pattern_node few[FEW];
    luaL_Buffer out;
    pattern p;
    matcher m;

    luaL_argexpected(L,
                     type == LUA_TNUMBER || type == LUA_TSTRING ||
                         type == LUA_TFUNCTION || type == LUA_TTABLE,
                     3, "string/function/table");
    if (type == LUA_TNUMBER)
        lua_tostring(L, 3); /* in place */
    vm_charge(L, pattern_size + 1);
    pattern_compile(L, &p, nodes_for(L, few, pattern_size), text, pattern_size, 1);
    begin_match(&m, L, &p, subject, size);
    luaL_buffinit(L, &out);
    while (count < most) {
        const char *e = match_at(&m, s);
        if (e && e != last) {
            count++;
            add_replacement(&m, &out, s, e);
            s = last = e;
        } else if (s < m.end) {
            luaL_addchar(&out, *s++);
        } else {
            break;
        }
        if (p.anchored)
            break;
    }
    luaL_addlstring(&out, s, (size_t)(m.end - s));
    luaL_pushresult(&out);
    lua_pushinteger(L, count);
    return 2;
}

void library_match(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"find", string_find},
        {"match", string_match},
        {"gmatch", string_gmatch},
        {"gsub", string_gsub},
        {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}

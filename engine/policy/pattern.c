/*
 * pattern.c: Lua's patterns, compiled into nodes.
 *
 * Patterns mean what they mean in Lua, with one difference: a malformed pattern is
 * refused when it is compiled, even if the match would not have reached the malformed
 * part. Must never read beyond the pattern.
 */
#include "policy/pattern.h"

#include <ctype.h>
#include <string.h>
#include <lauxlib.h>

static int in_class(int c, int letter)
{
    int yes;
    switch (tolower(letter)) {
    case 'a':
        yes = isalpha(c);
        break;
    case 'c':
        yes = iscntrl(c);
        break;
    case 'd':
        yes = isdigit(c);
        break;
    case 'g':
        yes = isgraph(c);
        break;
    case 'l':
        yes = islower(c);
        break;
    case 'p':
        yes = ispunct(c);
        break;
    case 's':
        yes = isspace(c);
        break;
    case 'u':
        yes = isupper(c);
        break;
    case 'w':
        yes = isalnum(c);
        break;
    case 'x':
        yes = isxdigit(c);
        break;
    case 'z': /* from Lua 5.1, still accepted */
        yes = c == 0;
        break;
    default:
        return c == letter;
    }
    return isupper(letter) ? !yes : yes != 0;
}

static void add_to_set(uint32_t set[8], unsigned first, unsigned last)
{
    for (; first <= last; first++)
        set[first >> 5] |= UINT32_C(1) << (first & 31);
}

static void add_class(uint32_t set[8], unsigned char letter)
{
    int c;
    for (c = 0; c < 256; c++)
        if (in_class(c, letter))
            add_to_set(set, (unsigned)c, (unsigned)c);
}

/* Reads a set from behind its '['; returns behind its ']'. */
static const char *compile_set(lua_State *L, const char *at, const char *end,
                               uint32_t set[8])
{
    int negated = at < end && *at == '^', i;
    memset(set, 0, 8 * sizeof *set);
    at += negated;
    do { /* a ']' at the start belongs to the set */
        unsigned char c;
        if (at >= end)
            luaL_error(L, "malformed pattern (missing ']')");
        c = (unsigned char)*at++;
        if (c == '%') {
            if (at >= end)
                luaL_error(L, "malformed pattern (ends with '%%')");
            add_class(set, (unsigned char)*at++);
        } else if (end - at >= 2 && at[0] == '-' && at[1] != ']') {
            add_to_set(set, c, (unsigned char)at[1]);
            at += 2;
        } else {
            add_to_set(set, c, c);
        }
    } while (at >= end || *at != ']');
    for (i = 0; negated && i < 8; i++)
        set[i] = ~set[i];
    return at + 1;
}

typedef struct compiler {
    lua_State *L;
    const char *at, *end;
    pattern *program;
    unsigned open[PATTERN_CAPTURES], open_count; /* captures without their ')' yet */
    unsigned closed;                             /* bits: captures that have it */
} compiler;

static void compile_open(compiler *c, pattern_node *n)
{
    if (c->program->captures >= PATTERN_CAPTURES)
        luaL_error(c->L, "too many captures");
    n->a = (uint8_t)c->program->captures++;
    if (c->at < c->end && *c->at == ')') {
        c->at++;
        n->kind = NODE_HERE;
        c->closed |= UINT32_C(1) << n->a;
        return;
    }
    n->kind = NODE_OPEN;
    c->open[c->open_count++] = n->a;
}

static void compile_close(compiler *c, pattern_node *n)
{
    if (c->open_count == 0)
        luaL_error(c->L, "invalid pattern capture");
    n->kind = NODE_CLOSE;
    n->a = (uint8_t)c->open[--c->open_count];
    c->closed |= UINT32_C(1) << n->a;
}

/* What follows a '%'. Returns 1 when it can be repeated. */
static int compile_escape(compiler *c, pattern_node *n)
{
    unsigned char letter;
    if (c->at >= c->end)
        luaL_error(c->L, "malformed pattern (ends with '%%')");
    letter = (unsigned char)*c->at++;
    if (letter == 'b') {
        if (c->end - c->at < 2)
            luaL_error(c->L, "malformed pattern (missing arguments to '%%b')");
        n->kind = NODE_BALANCE;
        n->a = (uint8_t)*c->at++;
        n->b = (uint8_t)*c->at++;
        return 0;
    }
    if (letter == 'f') {
        if (c->at >= c->end || *c->at++ != '[')
            luaL_error(c->L, "missing '[' after '%%f' in pattern");
        n->kind = NODE_FRONTIER;
        c->at = compile_set(c->L, c->at, c->end, n->set);
        return 0;
    }
    if (letter >= '0' && letter <= '9') {
        if (letter == '0' || !(c->closed >> (letter - '1') & 1))
            luaL_error(c->L, "invalid capture index %%%d in pattern", letter - '0');
        n->kind = NODE_AGAIN;
        n->a = (uint8_t)(letter - '1');
        return 0;
    }
    if (isalpha(letter)) {
        n->kind = NODE_SET;
        memset(n->set, 0, sizeof n->set);
        add_class(n->set, letter);
    } else {
        n->kind = NODE_CHAR;
        n->a = letter;
    }
    return 1;
}

void pattern_compile(lua_State *L, pattern *p, pattern_node *nodes, const char *text,
                     size_t size, int may_anchor)
{
    compiler c = {L, text, text + size, p, {0}, 0, 0};
    pattern_node *n = nodes;

    p->nodes = nodes;
    p->captures = 0;
    p->anchored = may_anchor && size > 0 && *text == '^';
    c.at += p->anchored;
    for (; c.at < c.end; n++) {
        char letter = *c.at++;
        int repeats = 1;
        n->repeat = 0;
        if (letter == '(') {
            compile_open(&c, n);
            repeats = 0;
        } else if (letter == ')') {
            compile_close(&c, n);
            repeats = 0;
        } else if (letter == '$' && c.at == c.end) {
            n->kind = NODE_STOP;
            repeats = 0;
        } else if (letter == '%') {
            repeats = compile_escape(&c, n);
        } else if (letter == '[') {
            n->kind = NODE_SET;
            c.at = compile_set(L, c.at, c.end, n->set);
        } else if (letter == '.') {
            n->kind = NODE_ANY;
        } else {
            n->kind = NODE_CHAR;
            n->a = (uint8_t)letter;
        }
        if (repeats && c.at < c.end && memchr("*+-?", *c.at, 4))
            n->repeat = *c.at++;
    }
    if (c.open_count)
        luaL_error(L, "unfinished capture");
    n->kind = NODE_END;
    n->repeat = 0;
}

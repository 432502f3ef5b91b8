/* pattern.h: Lua's patterns, compiled. */
#ifndef POLICY_PATTERN_H
#define POLICY_PATTERN_H

#include <stdint.h>
#include <lua.h>

#define PATTERN_CAPTURES 32

typedef enum pattern_kind {
    NODE_END,  /* the whole pattern has matched */
    NODE_STOP, /* $ at the end: only at the subject's end */
    NODE_CHAR,
    NODE_ANY,
    NODE_SET,
    NODE_OPEN,
    NODE_CLOSE,
    NODE_HERE,    /* ( ) () */
    NODE_AGAIN,   /* %1 */
    NODE_BALANCE, /* %bxy */
    NODE_FRONTIER /* %f[set] */
} pattern_kind;

typedef struct pattern_node {
    uint8_t kind;
    char repeat;     /* 0, '*', '+', '-' or '?' */
    uint8_t a, b;    /* the character; the pair of %b; the number of the capture */
    uint32_t set[8]; /* of NODE_SET and NODE_FRONTIER: one bit for each byte value */
} pattern_node;

typedef struct pattern {
    int anchored;
    unsigned captures;
    pattern_node *nodes;
} pattern;

/* Compiles size bytes into nodes, which has room for size + 1. may_anchor: a '^' at the
 * start anchors. Raises for a malformed pattern, in Lua's words. */
void pattern_compile(lua_State *L, pattern *p, pattern_node *nodes, const char *text,
                     size_t size, int may_anchor);

static inline int pattern_has(const uint32_t set[8], unsigned char c)
{
    return set[c >> 5] >> (c & 31) & 1;
}

#endif

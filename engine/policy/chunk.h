/*
 * chunk.h: the compiled sources of a chain, their environments, and `require`.
 *
 * Which file a name means is decided when the chain is loaded (load_require.c). After
 * that the names are edges of a graph without cycles, kept in the chain.
 */
#ifndef POLICY_CHUNK_H
#define POLICY_CHUNK_H

#include "policy/chain.h"

/* Prepares a VM for chunk_set_environment(); raises for memory. */
void chunk_open(lua_State *L);
/* Pushes the chunk of a source, compiled as text; raises. */
void chunk_compile(lua_State *L, const char *source, size_t size, const char *file);
/* Compiles every step and every required file of a chain; raises. */
void chunk_compile_chain(lua_State *L, const sessile_policy *p);

/* Makes the environment at the top (which is popped) the environment of the chunk at
 * index. Closures that the chunk made before keep theirs. */
void chunk_set_environment(lua_State *L, int chunk);
/*
 * Sets `require` in the environment at the top of the stack, for the file that is `node`
 * of p. `require` raises for a name that the node has no edge for; it first writes the
 * name to vm->wanted when that is set.
 */
void chunk_set_require(lua_State *L, const sessile_policy *p, unsigned node);
/* The edge of a node with that name; NULL: none. */
const chain_require *chunk_find_require(const sessile_policy *p, unsigned node,
                                        const char *name);
/* Pushes the chunk of a step with a fresh environment of its own, and the environment. */
void chunk_push_step(lua_State *L, const sessile_policy *p, size_t step);
/* Runs a step and pushes that function of the table that it returns; raises when there is
 * none. */
void chunk_push_function(lua_State *L, const sessile_policy *p, size_t step,
                         const char *name);

#endif

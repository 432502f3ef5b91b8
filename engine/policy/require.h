/*
 * require.h: `require` as a policy's source sees it, and what it makes of a hash.
 *
 * Which file a name means is decided when a chain is loaded (load_require.c); afterwards
 * the names are edges of a graph without circles, kept in the chain, and nothing is
 * looked for again.
 */
#ifndef POLICY_REQUIRE_H
#define POLICY_REQUIRE_H

#include "policy/chain.h"

/*
 * Sets `require` in the environment at the top of the stack, for the file that is `node`
 * of p. loaded: index of the table that holds what this environment and those it requires
 * share, or 0 for a new one.
 *
 * A name that the node has no edge for raises; vm->wanted, when there is one, then holds
 * it.
 */
void require_set(lua_State *L, const sessile_policy *p, unsigned node, int loaded);

/* The edge of a node by a name; NULL: none. */
const chain_require *require_find(const sessile_policy *p, unsigned node,
                                  const char *name);

/*
 * The hash of a node with this source, in hex: of the source, and when it requires
 * others, of it and their names and hashes, sorted by name. NOMEM.
 */
sessile_status require_hash(const sessile_policy *p, unsigned node, sessile_slice source,
                            char out[65], sessile_error *err);

#endif

/*
 * describe.h: what a policy's file declares, without the file.
 *
 * A foreign file is inspected in the worker only. The worker returns what the file
 * declares as JSON: {"fields":{"name":…,"options":…},
 * "functions":[["truncate",12],…]}. The engine turns this into a table that reads like
 * the file's own. Its functions do nothing.
 */
#ifndef POLICY_DESCRIBE_H
#define POLICY_DESCRIBE_H

#include <lua.h>

#include "base/buf.h"
#include "policy/policy.h"

/* Runs a chunk once in a fresh environment and pushes the table that it returns.
 * Raises when it returns no table, and when it requires a name that p does not have
 * for that node; vm->wanted is then that name. */
void describe_run(lua_State *L, const char *source, size_t size, const char *file,
                  const sessile_policy *p, unsigned node);
/* Pushes the table described by checked facts. Raises when they describe none. */
void describe_push(lua_State *L, const char *facts, size_t size);
/* The line on which a function of such a table begins; 0: unknown. */
int describe_line(lua_State *L, int function);
/* Runs a file under p's limits, with what p has for its node, and appends its facts.
 * If it requires a name that p does not have, appends nothing and writes the name to
 * wanted (CHAIN_NAME bytes). POLICY with the file and the line; NOMEM. */
sessile_status describe_file(buf *facts, const char *file, sessile_slice source,
                             const sessile_policy *p, unsigned node, char *wanted,
                             sessile_error *err);

#endif

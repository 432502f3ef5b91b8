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

/*
 * Runs a chunk once in a fresh environment and pushes the table that it returns; raises
 * when it is none, and when it requires what p has not for that node: vm->wanted says
 * what.
 */
void describe_run(lua_State *L, const char *source, size_t size, const char *file,
                  const sessile_policy *p, unsigned node);
/* Pushes the table that checked facts stand for. Raises when they stand for none. */
void describe_push(lua_State *L, const char *facts, size_t size);
/* The line on which a function of such a table begins; 0: none is known. */
int describe_line(lua_State *L, int function);
/*
 * Runs a file, with what p has for its node, under p's limits, and appends its facts; or
 * appends nothing, and wanted (CHAIN_NAME bytes) says what it requires beside that.
 * POLICY with the file and the line, NOMEM.
 */
sessile_status describe_file(buf *facts, const char *file, sessile_slice source,
                             const sessile_policy *p, unsigned node, char *wanted,
                             sessile_error *err);

#endif

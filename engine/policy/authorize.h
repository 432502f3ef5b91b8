/*
 * authorize.h: the rule of a guard, written in Lua, in the sandbox of policies.
 *
 * The file returns a table:
 *
 *     name, version, about
 *     authorize  function(who, operation, object) -> true, or false and perhaps a name
 *
 * `who` has user, actor, session, key, method, source and device, each a text or nil;
 * roles and agents, lists; all, a boolean. `operation` has name, permission, also (a
 * second permission, or nil) and changes, a boolean. `object` has agent, user and id,
 * each a text or nil, and `made`, a table with the same for a session that is made of it.
 * All of it can only be read. Whatever the function does but return true refuses.
 */
#ifndef POLICY_AUTHORIZE_H
#define POLICY_AUTHORIZE_H

#include "base/os.h"
#include "guard/authorize.h"

#define AUTHORIZE_GAS UINT64_C(5000000)
#define AUTHORIZE_MS  50

/* Loads a rule; the caller calls out->release. It is the file as it is now: what is
 * written to it later is not seen. Errors: NOTFOUND; DENIED: it belongs to somebody else,
 * others can write it, or it is no regular file; LIMIT; POLICY: the file is wrong; IO,
 * NOMEM. */
sessile_status authorize_load(authorize_rule *out, const char *path, const os_table *os,
                              sessile_error *err);

#endif

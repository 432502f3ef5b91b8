/*
 * screen.h: screens written in Lua, in the sandbox of policies.
 *
 * The file of a screen returns a table:
 *
 *     name, version, about, options   as in a policy
 *     on        {"memory", "message:tool", …}: kinds of items, and roles of messages
 *     patterns  {name = expression, …}, see screen/pattern.h
 *     screen    function(item, ctx) -> verdict, rule, places; runs when a pattern matched
 *     always    true: it also runs when none did
 *     action    without a function: what a match means ("refuse" when it is not said)
 *     rules     names of rules besides the patterns'
 *     on_error  "refuse", or "flag"
 *
 * `item` has kind, role, source, author, key, size, text, urls and matches ({pattern =
 * {{from, to}, …}}, places as string.sub takes them). Each is made when it is read. `ctx`
 * has options. Both can only be read.
 */
#ifndef POLICY_SCREEN_H
#define POLICY_SCREEN_H

#include "screen/screen.h"

#define SCREEN_GAS UINT64_C(5000000)
#define SCREEN_MS  50

/* Loads a screen and adds it to the list. folders: where names are searched, separated by
 * ':', or NULL. verbose: what a script raises is part
 * of the message of its failure, and may have words of the text. Errors: as for
 * sessile_screens_load(). */
sessile_status screen_load(sessile_screens *list, const sessile_screen_step *step,
                           const char *folders, int verbose, const os_table *os,
                           sessile_error *err);

/* screen_run.c: the function of a screen's chain, which is `ref`. */
struct screen_script {
    sessile_policy *chain; /* of one step */
    int verbose;
    allocator alloc;
};
sessile_status screen_script_run(void *ref, const screen_sight *sight,
                                 screen_answer *answer, sessile_error *err);

#endif

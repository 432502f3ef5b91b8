/*
 * compaction.h: the data of a compaction entry, written and read.
 */
#ifndef SESSION_COMPACTION_H
#define SESSION_COMPACTION_H

#include "session/handle.h"

/* ---- compactions (session/compaction.c) */

/*
 * The data of a compaction entry, in this order; what does not apply is left out:
 *   "context": the list up to upto: "00000003", "00000003-00000384" (the path's messages
 *       from one to the other), "00000016.1" (a message written by a compaction)
 *   "upto": the newest path entry that the policy saw
 *   "inserted": [{"n":1,"turn":3,"tokens":[12,"estimate"],"replaces":[…],"covers":[…],
 *       "message":{…}}], n from 1 in the order of the list; keys listed as in context
 *   "policy", "fallback_of": the policies that edited it, and whom they stood in for
 *   "reason", "event" (its name), "room" (window less reserve, when there is a window),
 *       "last_compact" (after a turn: the last compaction before it, see last_compaction)
 *   "instructions", "summary", "first_kept_entry_id", "tokens_before", "tokens_after",
 *       "token_source", "duration_ms", "account": written by the run, for people
 *   "uncompacts": the compaction that this one takes back (its account then says what was
 *       "restored" and "removed")
 *   "vars": {"<policy>":{…}}, of all policies, whole; there only when they changed
 * A compaction without "context" leaves the context as it was.
 */

/* Appends the JSON array of keys, ascending neighbours on a path joined to ranges; keys
 * of own inserted (entry SESSILE_NO_ID) are named "<self>.<n>". */
sessile_status compaction_put_keys(sessile_session *s, const sessile_key *keys,
                                   size_t count, sessile_id self, buf *out,
                                   sessile_error *err);

/* The list of compaction `at` pushed on out; *upto as the entry says. */
sessile_status compaction_list(sessile_session *s, sessile_id at, context *out,
                               sessile_id *upto, sessile_error *err);
/* The entry that the list in the data of compaction `at` goes up to. DAMAGED. */
sessile_status compaction_upto(sessile_session *s, sessile_id at, json data,
                               sessile_id *out, sessile_error *err);
/* The keys that a list of compaction `at` names, pushed on out as items that hold nothing
 * else of what policies wrote: no entry is read. What was lost is passed over. */
sessile_status compaction_names(sessile_session *s, sessile_id at, json list,
                                context *out, sessile_error *err);
/* The message of put n in a compaction's data; JSON_NONE: no such put. */
json compaction_inserted_message(json data, uint32_t n);
#endif

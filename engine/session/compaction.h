/*
 * compaction.h: the data of a compaction entry, written and read.
 */
#ifndef SESSION_COMPACTION_H
#define SESSION_COMPACTION_H

#include "session/handle.h"

/* ---- compactions (session/compaction.c) */

/*
 * The data of a compaction entry, in this order; members that do not apply are omitted:
 *   "context": the list up to upto: "00000003", "00000003-00000384" (the path's messages
 *       from one to the other), "00000016.1" (a message written by a compaction)
 *   "upto": the newest path entry that the policy saw
 *   "inserted": [{"n":1,"turn":3,"tokens":[12,"estimate"],"replaces":[…],"covers":[…],
 *       "message":{…}}], n from 1 in the order of the list; keys listed as in context
 *   "policy", "fallback_of": the policies that edited it, and the ones they replaced
 *   "reason", "event" (its name), "room" (window less reserve, when there is a window),
 *       "last_compact" (after a turn: the last compaction before it, see last_compaction)
 *   "instructions", "summary", "first_kept_entry_id", "tokens_before", "tokens_after",
 *       "token_source", "duration_ms", "account": written by the run, for people
 *   "uncompacts": the compaction that this one undoes (its account then says what was
 *       "restored" and "removed")
 *   "vars": {"<policy>":{…}}, of all policies, complete; only if they changed
 * A compaction without "context" does not change the context.
 */

/* Appends the JSON array of keys; ascending neighbours on a path are joined to ranges.
 * Keys of messages that this compaction inserts (entry SESSILE_NO_ID) are written
 * "<self>.<n>". */
sessile_status compaction_put_keys(session_core *s, const sessile_key *keys, size_t count,
                                   sessile_id self, buf *out, sessile_error *err);

/* Appends the list of compaction `at` to out; sets *upto as the entry has it. */
sessile_status compaction_list(session_core *s, sessile_id at, context *out,
                               sessile_id *upto, sessile_error *err);
/* The entry that the list in the data of compaction `at` goes up to. DAMAGED. */
sessile_status compaction_upto(session_core *s, sessile_id at, json data, sessile_id *out,
                               sessile_error *err);
/* Appends the keys in a list of compaction `at` to out, as items without the texts that
 * policies wrote: no entry is read. Entries that are lost to damage are skipped. */
sessile_status compaction_names(session_core *s, sessile_id at, json list, context *out,
                                sessile_error *err);
/* The inserted message n in a compaction's data; JSON_NONE: there is none. */
json compaction_inserted_message(json data, uint32_t n);
#endif

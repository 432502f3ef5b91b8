/*
 * pending.h: pending runs: runs that were written into the log until somebody answers.
 *
 * The data of a `pending_run` entry, written by run/pending.c:
 *
 *   {"kind":"turn"|"compact","saw":"<entry>","first":"<entry>" (of a turn),
 *    "policy":[{"name":…,"version":…,"hash":…,"options":{…},"path":…}],
 *    "reason":…,"instructions":…,"now":<ms>,"window":n,"reserve":n,
 *    "keep_min":n, (absent: the session's)
 *    "answers":[{"request":"<BLAKE2b-256, hex>","text":…|"failed":…}],
 *    "asks":{"policy":"<name>","hash":"<BLAKE2b-256, hex>","request":{…}},
 *    "refused":"<why>"}  (it was answered, and its policy was refused: it can be tried
 *                         again)
 *
 * An entry that ends a pending run: {"off":true,"pending_run":"<entry>"}.
 */
#ifndef OPERATIONS_PENDING_H
#define OPERATIONS_PENDING_H

#include "session/handle.h"

/*
 * Reads pending run *id (SESSILE_NO_ID: the newest that is open) into text and e.
 * NOTFOUND: there is none, or it is closed. The mutex is held.
 */
sessile_status session_pending_run_locked(session_core *s, sessile_id *id, buf *text,
                                          entry *e, sessile_error *err);
/* sessile_pending_runs(). */
sessile_status session_pending_runs(session_core *s, sessile_pending_run **out,
                                    size_t *count, sessile_error *err);

#endif

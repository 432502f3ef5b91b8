/*
 * journal.h: keeps two states equal, one in the engine and one in another process.
 *
 * The other process starts from an image of the state. Every edit is a call with plain
 * arguments that has the same result on an equal state, so the calls made on one state
 * are recorded and repeated on the other. Nothing else passes between the engine and an
 * isolated policy. A replay checks each call as if a script had made it.
 */
#ifndef PROPOSAL_JOURNAL_H
#define PROPOSAL_JOURNAL_H

#include "base/wire.h"
#include "proposal/state.h"

/* ---- journal.c */

/* Appends the state as it was when state_new() had made it, whatever has happened since.
 */
void state_image_put(const sessile_state *s, buf *out);
/* Reads such an image: fills setup except read, read_arg and alloc, puts the context into
 * `into` and the labels into `labels` (both init'ed). INVALID: it is not an image. */
sessile_status state_image_get(wire *w, state_setup *setup, context *into, facts *labels,
                               sessile_error *err);

/* From now on every call that succeeds is recorded in journal. NULL ends this. */
void state_journal_to(sessile_state *s, buf *journal);

/* ---- journal_replay.c */

/* Makes the calls of a journal on s. only_edits: refuses calls that begin or end hooks.
 * INVALID: it is not a journal, or s refuses one of its calls. */
sessile_status state_journal_replay(sessile_state *s, const void *data, size_t size,
                                    int only_edits, sessile_error *err);

#endif

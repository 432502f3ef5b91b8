/*
 * journal.h: a state in another process: its beginning as bytes, and the calls that
 * edited it.
 *
 * Everything that edits a state is a call with plain arguments, and each gives the same
 * result on an equal state. So two states stay equal when the calls made on one are made
 * on the other. That is all that passes between the engine and an isolated policy. A
 * replay checks every call as if a script had made it.
 */
#ifndef PROPOSAL_JOURNAL_H
#define PROPOSAL_JOURNAL_H

#include "base/wire.h"
#include "proposal/state.h"

/* The state as it was when state_new() had made it, whatever has happened since. */
void state_image_put(const sessile_state *s, buf *out);
/* The reverse: fills setup but for read, read_arg and alloc, its context into `into`, its
 * labels into `labels` (both init'ed). INVALID: no image. */
sessile_status state_image_get(wire *w, state_setup *setup, context *into, facts *labels,
                               sessile_error *err);

/* From now on every successful call is noted in journal; NULL: no longer. */
void state_journal_to(sessile_state *s, buf *journal);

/* Makes the calls of a journal on s. only_edits: refuses calls that begin or end hooks.
 * INVALID: no journal, or a call that this state refuses. */
sessile_status state_journal_replay(sessile_state *s, const void *data, size_t size,
                                    int only_edits, sessile_error *err);

#endif

/*
 * verify.h: whether the audit is what was sealed; proofs of single events.
 *
 * Needs the store's key, to read the records, and of the audit itself only the public key
 * that audit_root() once told. Changes nothing. Options, report and anchors are those of
 * sessile_audit.h.
 */
#ifndef AUDIT_VERIFY_H
#define AUDIT_VERIFY_H

#include "audit/audit.h"
#include "codec/json.h"
#include "sessile_audit.h"

typedef struct audit_verifier audit_verifier;

/* Verifies all lanes that `root` (64 hex digits) vouches for, in steps. options: copied;
 * may be NULL. INVALID: root or an anchor is none; NOTFOUND: there is no audit. */
sessile_status audit_verify_begin(audit_verifier **out, store_core *st, const char *root,
                                  const sessile_audit_verify_options *options,
                                  sessile_error *err);
/* Reads about a megabyte. NEEDS: there is more; OK: all was read. *report: what was found
 * so far; what is wrong is in it. IO, NOMEM. */
sessile_status audit_verify_step(audit_verifier *v, sessile_audit_report *report,
                                 sessile_error *err);
void audit_verify_free(audit_verifier *v);
/* All steps. */
sessile_status audit_verify(store_core *st, const char *root,
                            const sessile_audit_verify_options *options,
                            sessile_audit_report *report, sessile_error *err);
/* The last seal of each lane of that root, verified: anchors to keep elsewhere. *count:
 * at most room. DAMAGED: the audit does not hold. */
sessile_status audit_heads(store_core *st, const char *root, int is_copy,
                           sessile_audit_anchor *out, size_t room, size_t *count,
                           sessile_error *err);

/*
 * Appends a proof, JSON on one line:
 *
 *   {"event":TEXT,"seal":TEXT,"hashes":[…],"key":HEX,"chain":[TEXT,…],"lane":PROOF}
 *
 * event and seal are the texts of entries, as JSON strings. chain: the seals of the lane
 * before that one, oldest first; key: the public key of the first of all these seals.
 * lane: of a lane other than the root, the proof of the entry that names its first key. A
 * chain of more than 10000 seals, or whose beginning was removed, is left out or begins
 * later: then key is that of a later epoch, and there is no lane. id: of the event.
 * NOTFOUND: there is no such event; SUSPENDED: it is not sealed yet.
 */
sessile_status audit_prove(store_core *st, const char *id, buf *out, sessile_error *err);
/*
 * Checks a proof alone: the event is one that the seal closes, the seal follows the
 * chain, and `key` in the proof vouches for the chain. key: set to the public key that
 * vouches for all of it: of a whole proof the root key of the audit. event: appended (may
 * be NULL). proof may be the receipt of an erasure, which has one as its member `proof`:
 * then it is checked as well that the receipt says what its event says. DAMAGED.
 */
sessile_status audit_check_proof(const char *proof, size_t size, char key[SEAL_HEX],
                                 buf *event, const allocator *a, sessile_error *err);
#define AUDIT_RECEIPT_HASH 65
/* What an event says of a receipt: BLAKE2b-256 of its compact JSON without the members
 * `event` and `proof`, in hex. 0, or -1: no memory. */
int audit_receipt_hash(json receipt, char out[AUDIT_RECEIPT_HASH], const allocator *a);

#endif

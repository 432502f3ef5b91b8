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
 * Appends a proof, JSON on one line: {"event":TEXT,"seal":TEXT,"hashes":[…],"key":HEX}.
 * event and seal are the texts as JSON strings, key is the public key of the seal's
 * epoch. id: of the event. NOTFOUND: there is no such event; SUSPENDED: it is not sealed
 * yet.
 */
sessile_status audit_prove(store_core *st, const char *id, buf *out, sessile_error *err);
/*
 * Checks a proof alone: the event is one that the seal closes, and the seal is signed by
 * the key in the proof. key: set to that key, which is known from the seal before
 * it, or, of the first epoch, is the root. event: appended (may be NULL). DAMAGED.
 */
sessile_status audit_check_proof(const char *proof, size_t size, char key[SEAL_HEX],
                                 buf *event, const allocator *a, sessile_error *err);

#endif

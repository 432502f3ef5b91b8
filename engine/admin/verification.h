/* verification.h: verifies an audit, and then compares it with the sessions. */
#ifndef ADMIN_VERIFICATION_H
#define ADMIN_VERIFICATION_H

#include "audit/verify.h"

/* DAMAGED: the store was guarded with an audit of its own, and no log of that is left.
 * Another one may have begun since. */
sessile_status verification_check_there(store_core *st, sessile_error *err);
/* The status, and err, of a call that found no audit: NOTFOUND becomes DAMAGED where
 * there was one. */
sessile_status verification_missing(store_core *st, sessile_status status,
                                    sessile_error *err);
/* As sessile_audit_root(). */
sessile_status verification_root(store_core *st, char out[SEAL_HEX], sessile_error *err);

/* As sessile_audit.h says of sessile_audit_verify_begin(), _step() and _free(). guarded:
 * whose sessions a deep verification reads. */
sessile_status verification_begin(audit_verification_core **out, store_core *st,
                                  const char *root,
                                  const sessile_audit_verify_options *options,
                                  store_core *guarded, sessile_error *err);
sessile_status verification_step(audit_verification_core *v, sessile_audit_report *report,
                                 sessile_error *err);
void verification_free(audit_verification_core *v); /* NULL is ignored */

#endif

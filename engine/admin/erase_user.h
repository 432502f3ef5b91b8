/* erase_user.h: erases a user from a store. */
#ifndef ADMIN_ERASE_USER_H
#define ADMIN_ERASE_USER_H

#include "session/store_handle.h"
#include "sessile_privacy.h"

/* As sessile_privacy.h says of sessile_user_erase(). */
sessile_status user_erase(store_core *st, sessile_slice user,
                          const sessile_erase_options *options, sessile_receipt **out,
                          sessile_error *err);
/* What a receipt counts, and the event of the erasure with it. Names are static. */
enum { RECEIPT_COUNTS = 8 };
typedef struct receipt_count {
    const char *name;
    uint64_t value;
} receipt_count;
void receipt_counts(const sessile_receipt *r, receipt_count out[RECEIPT_COUNTS]);
/* Adds to a receipt which event of the audit says it, and the proof (empty: none). The
 * receipt becomes another block; NOMEM: it stays as it was. */
sessile_status receipt_prove(store_core *st, sessile_receipt **receipt, const char *event,
                             const buf *proof, sessile_error *err);

#endif

/* retention.h: removes what is older than rules say. */
#ifndef ADMIN_RETENTION_H
#define ADMIN_RETENTION_H

#include "audit/audit.h"
#include "sessile_privacy.h"

/* As sessile_privacy.h says of sessile_purge_retention(). audit: of the store's guard;
 * NULL: there is none, and the audit in the store itself is meant. */
sessile_status purge_retention(store_core *st, audit_log *audit,
                               const sessile_retention_options *options,
                               sessile_retained *out, sessile_error *err);

#endif

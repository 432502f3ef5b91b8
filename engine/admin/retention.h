/* retention.h: removes what is older than rules say. */
#ifndef ADMIN_RETENTION_H
#define ADMIN_RETENTION_H

#include "session/store_handle.h"
#include "sessile_privacy.h"

/* As sessile_privacy.h says of sessile_purge_retention(). */
sessile_status purge_retention(store_core *st, const sessile_retention_options *options,
                               sessile_retained *out, sessile_error *err);

#endif

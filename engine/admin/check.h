/* check.h: checks every log of a store, and salvages damaged ones. */
#ifndef ADMIN_CHECK_H
#define ADMIN_CHECK_H

#include "session/store_handle.h"

/* As sessile.h says of sessile_check_open(), _next() and _close(). */
sessile_status check_open(check_core **out, store_core *st,
                          const sessile_session_options *which, int salvage,
                          sessile_error *err);
sessile_status check_next(check_core *c, sessile_checked *out, sessile_error *err);
void check_close(check_core *c);

#endif

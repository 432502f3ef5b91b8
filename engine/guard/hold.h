/*
 * hold.h: what must not be removed, until somebody releases it.
 *
 * Holds are facts of the control log, so they bind whoever opens the store, with a guard
 * or without.
 */
#ifndef GUARD_HOLD_H
#define GUARD_HOLD_H

#include "guard/control.h"
#include "session/store_handle.h"
#include "sessile_privacy.h"

/* From now on store_check_removal() asks the holds of this store. */
sessile_status holds_attach(store_core *st, sessile_error *err);

/* As sessile_privacy.h says of sessile_hold(), _holds() and _hold_release(); arguments
 * are not NULL. */
sessile_status hold_add(store_core *st, const sessile_hold_options *options,
                        sessile_id *id, sessile_error *err);
sessile_status hold_list(store_core *st, sessile_hold_row **out, size_t *count,
                         sessile_error *err);
sessile_status hold_release(store_core *st, sessile_id id, sessile_slice by,
                            sessile_error *err);
/* The control log of a store, for facts that are written without a guard; NULL: the host
 * keeps the records. */
control *holds_control(const store_core *st);
/* DENIED when any hold is in force. */
sessile_status hold_check_any(store_core *st, sessile_error *err);

#endif

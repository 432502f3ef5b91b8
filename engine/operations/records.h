/*
 * records.h: sessions whose records the host keeps.
 */
#ifndef OPERATIONS_RECORDS_H
#define OPERATIONS_RECORDS_H

#include "session/handle.h"

/* The public functions of these names. */
sessile_status session_records_open(session_core **out, store_core *st,
                                    const sessile_session_options *options,
                                    const sessile_slice *records, size_t count,
                                    sessile_error *err);
/* After a session was created by name in such a store: s owns its log from now on, or the
 * log is removed when s is NULL. Does nothing in other stores. */
void session_records_own(store_core *st, const sessile_session_options *named,
                         session_core *s);
sessile_status session_records_locked(session_core *s, uint64_t from, sessile_slice **out,
                                      size_t *count, sessile_error *err);

#endif

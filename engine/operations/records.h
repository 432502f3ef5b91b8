/*
 * records.h: sessions over records that somebody else keeps.
 */
#ifndef OPERATIONS_RECORDS_H
#define OPERATIONS_RECORDS_H

#include "session/handle.h"

/* As sessile.h says of the functions of these names. */
sessile_status session_records_open(sessile_session **out, sessile_store *st,
                                    const sessile_session_options *options,
                                    const sessile_slice *records, size_t count,
                                    sessile_error *err);
/* In a store over records a session that was made by its names is s's own from now on
 * (NULL: it was not opened, and goes). Elsewhere nothing happens. */
void session_records_own(sessile_store *st, const sessile_session_options *named,
                         sessile_session *s);
sessile_status session_records_locked(sessile_session *s, uint64_t from,
                                      sessile_slice **out, size_t *count,
                                      sessile_error *err);

#endif

/* life.h: time to live, archive and deletion of a session. */
#ifndef OPERATIONS_LIFE_H
#define OPERATIONS_LIFE_H

#include "log/log.h"
#include "session/life.h"
#include "vault/vault.h"

/* The public functions of these names. */
sessile_status session_life(session_core *s, sessile_life_info *out, sessile_error *err);
sessile_status session_set_ttl(session_core *s, int64_t ttl_ms, sessile_error *err);
sessile_status session_set_archived(session_core *s, int archived, sessile_error *err);
sessile_status session_delete(store_core *st, const sessile_session_options *which,
                              const sessile_delete_options *options, sessile_deleted *out,
                              sessile_error *err);
sessile_status session_undelete(store_core *st, const sessile_session_options *which,
                                sessile_slice actor, sessile_error *err);
/* Removes a session for good, and records it (deletion.h). expected: as below. */
sessile_status session_remove(store_core *st, const session_names *names,
                              const log_ending *expected, const sessile_delete_options *o,
                              sessile_deleted *out, sessile_error *err);
/* Removes the log of a session and its row in the list cache of the folder.
 * expected: how the log must still end; NULL: any. *bytes: its size. CONFLICT when it was
 * written to or replaced, NOTFOUND, BUSY. */
sessile_status session_remove_log(store_core *st, const session_names *names,
                                  const log_ending *expected, uint64_t *bytes,
                                  sessile_error *err);

#endif

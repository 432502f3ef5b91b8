/*
 * checkpoint.h: states of execution that are kept in the log and restored from it.
 *
 * The data of a `checkpoint` entry, whose parent is the entry it is about:
 *
 *   {"name":…,"head":"<entry>","reason":…,"event":…,
 *    "agent":{"name":…,"version":…,"config":…,"tools":[…]},
 *    "messages":n,"tokens":[n,"<source>"],"metadata":{…},
 *    "state":<JSON>  or  "zstd":"<base64>","bytes":n,
 *    "checksum":"<SHA-256, hex, of the data up to here>"}
 *
 * Members that do not apply are left out. The conversation is not copied: it is the path
 * to `head`, which never changes.
 */
#ifndef OPERATIONS_CHECKPOINT_H
#define OPERATIONS_CHECKPOINT_H

#include "session/handle.h"

enum {
    CHECKPOINT_NAME_MOST = 200,                /* bytes of a name, an event, a version */
    CHECKPOINT_STATE_MOST = 1024 * 1024 * 1024 /* bytes of a state that is restored */
};

/* The public functions of these names; arguments are not NULL. */
sessile_status session_checkpoint(session_core *s,
                                  const sessile_checkpoint_options *options,
                                  sessile_id *out, sessile_error *err);
/* The same for an entry that is or was the head. */
sessile_status session_checkpoint_at(session_core *s, sessile_id at,
                                     const sessile_checkpoint_options *options,
                                     sessile_id *out, sessile_error *err);
sessile_status session_checkpoints(session_core *s,
                                   const sessile_checkpoint_filter *filter,
                                   sessile_checkpoint_row **out, size_t *count,
                                   sessile_error *err);
sessile_status session_restore(session_core *s, sessile_id id, int force,
                               sessile_restored **out, sessile_error *err);
sessile_status session_withdraw_checkpoint(session_core *s, sessile_id id,
                                           sessile_error *err);

/* ---- shared by checkpoint.c and restore.c */

void checkpoint_checksum(const char *data, size_t size, char out[65]);
/* OK: id is a checkpoint in force; else NOTFOUND. The mutex is held. */
sessile_status checkpoint_find_locked(session_core *s, sessile_id id, sessile_error *err);

#endif

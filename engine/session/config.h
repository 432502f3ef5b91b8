/*
 * config.h: what is configured for a store, a session or a run: checked, inherited, kept.
 *
 * This floor knows no policies: it counts the references to them, and no more.
 */
#ifndef SESSION_CONFIG_H
#define SESSION_CONFIG_H

#include "base/alloc.h"
#include "base/error.h"
#include "session/cores.h"

/* The values of a store that was given none. */
extern const sessile_config config_defaults;

/* INVALID: a member has a value that it cannot have. */
sessile_status config_check(const sessile_config *c, sessile_error *err);
/* INVALID: one of window and reserve is inherited from `from`, and nothing of the window
 * is left. */
sessile_status config_check_merged(const sessile_config *c, const sessile_config *from,
                                   sessile_error *err);
/* INVALID: less than -1. */
sessile_status config_check_timeout(int timeout_ms, sessile_error *err);

/* Sets each zeroed member of c to that of `from`. Nothing is copied or retained: see
 * config_keep(). */
void config_inherit(sessile_config *c, const sessile_config *from);

/* Replaces what c borrows by copies, and retains its policies. On NOMEM c is empty.
 * config_free() gives it back, and leaves it empty. */
sessile_status config_keep(sessile_config *c, const allocator *a, sessile_error *err);
void config_free(sessile_config *c, const allocator *a);

#endif

/*
 * config.h: what is configured for a store, a session or a run: checked, inherited, kept.
 *
 * This floor knows no policies: it counts the references to them, and no more.
 */
#ifndef SESSION_CONFIG_H
#define SESSION_CONFIG_H

#include "base/alloc.h"
#include "base/error.h"

/* What a store has where it was given nothing. */
extern const sessile_config config_defaults;

/* INVALID: a member that cannot be. */
sessile_status config_check(const sessile_config *c, sessile_error *err);
/* INVALID: less than -1. */
sessile_status config_check_timeout(int timeout_ms, sessile_error *err);

/* Gives c what it lacks. Nothing is copied or retained: see config_keep(). */
void config_inherit(sessile_config *c, const sessile_config *from);

/* Replaces what c borrows by copies, and retains its policies. On NOMEM c is empty.
 * config_free() gives it back, and leaves it empty. */
sessile_status config_keep(sessile_config *c, const allocator *a, sessile_error *err);
void config_free(sessile_config *c, const allocator *a);

#endif

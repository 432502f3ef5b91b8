/*
 * keys.h: the keys of a store and its sessions: status, rotation, resealing, forgetting.
 */
#ifndef ADMIN_KEYS_H
#define ADMIN_KEYS_H

#include "session/handle.h"

/* As sessile.h says of the functions of these names; arguments are not NULL. */
sessile_status keys_init(const char *url, const sessile_store_options *options,
                         sessile_error *err);
sessile_status keys_rotate(store_core *st, const sessile_rotate_options *options,
                           uint64_t *epoch, sessile_error *err);
sessile_status keys_status(store_core *st, sessile_keys **out, sessile_error *err);
sessile_status reseal_begin(reseal_core **out, store_core *st, const char *suite,
                            sessile_error *err);
sessile_status reseal_step(reseal_core *r, sessile_reseal_state *state,
                           sessile_error *err);
void reseal_free(reseal_core *r);
sessile_status forget_user(store_core *st, sessile_slice user, uint64_t *sessions,
                           sessile_error *err);

#endif

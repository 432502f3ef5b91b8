/*
 * options.h: what a policy declares about its options, and the options that were
 * given.
 */
#ifndef POLICY_OPTIONS_H
#define POLICY_OPTIONS_H

#include <stdint.h>
#include <lua.h>
#include "base/error.h"

/* Options given in one place: to a file, or to a chain and so to all of its elements. */
typedef struct options_offer {
    const char *json; /* checked text of an object */
    size_t size;
    const char *who; /* the policy they were given to, as its user named it */
    uint64_t used;   /* bit i: the i-th key, sorted, is declared by somebody */
    struct options_offer *outer;
} options_offer;

/*
 * Pushes the effective options of a policy as JSON text: the defaults of the table of
 * declarations at index (or nil there), then each offer from the nearest outwards.
 * INVALID (nothing pushed) when a value is not as declared; raises when the declarations
 * are wrong.
 */
sessile_status options_resolve(lua_State *L, int declarations, options_offer *offers,
                               sessile_error *err);

/* INVALID when a key of the offer was declared by nobody; says the nearest that was.
 * Raises for memory only. */
sessile_status options_check_used(lua_State *L, const options_offer *offer,
                                  sessile_error *err);

/* How many edits lead from a to b (a swap of neighbours counts one); UINT_MAX: too many.
 */
unsigned options_distance(const char *a, const char *b);

#endif

/*
 * options.h: what a policy declares about its options, and the options that were given.
 */
#ifndef POLICY_OPTIONS_H
#define POLICY_OPTIONS_H

#include <stdint.h>
#include <lua.h>
#include "base/error.h"

/* Options given in one place: to a file, or to a chain and thus to all of its
 * elements. */
typedef struct options_offer {
    const char *json; /* checked text of an object */
    size_t size;
    const char *who; /* the policy that got them, by the name its user wrote */
    uint64_t used;   /* bit i: a policy declares the i-th key, sorted */
    struct options_offer *outer;
    const char *kind; /* the word for it in errors; NULL: "policy" */
} options_offer;

/* Pushes the effective options of a policy as JSON text: the defaults in the table of
 * declarations at index (or nil), then each offer, the nearest first. INVALID (nothing
 * pushed) when a value does not match its declaration; raises when a declaration is
 * wrong. */
sessile_status options_resolve(lua_State *L, int declarations, options_offer *offers,
                               sessile_error *err);

/* INVALID when no policy declares a key of the offer; the error suggests the nearest
 * declared key. Raises only for lack of memory. */
sessile_status options_check_used(lua_State *L, const options_offer *offer,
                                  sessile_error *err);

/* The edit distance from a to b (swapping neighbours counts as one); UINT_MAX: too
 * far. */
unsigned options_distance(const char *a, const char *b);

#endif

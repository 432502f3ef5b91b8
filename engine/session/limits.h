/* limits.h: the limits of a store, with their defaults and bounds. */
#ifndef SESSION_LIMITS_H
#define SESSION_LIMITS_H

#include "base/error.h"

/* See sessile_limit_at(). */
const sessile_limit *limits_at(size_t index);
/* See sessile_limits_set(). */
sessile_status limits_set(sessile_limits *l, const char *name, uint64_t value,
                          sessile_error *err);
/* LIMIT when one is out of bounds. */
sessile_status limits_check(const sessile_limits *l, sessile_error *err);
/* Replaces each 0 by its default. */
void limits_fill(sessile_limits *l);

#endif

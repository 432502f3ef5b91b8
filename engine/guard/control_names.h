/* control_names.h: names of users in facts of the control log. For control.c alone. */
#ifndef GUARD_CONTROL_NAMES_H
#define GUARD_CONTROL_NAMES_H

#include "guard/control.h"

/* Appends a user as the value of a member. IO, NOMEM. */
sessile_status control_seal_user(const store_core *st, buf *out, sessile_slice user,
                                 sessile_error *err);
/* The pseudonym of a sealed user; empty: the value is none. */
sessile_slice control_pseudonym(json value);
/* Appends the name of a sealed user. *lost: nothing opens it any more. IO, NOMEM: that is
 * not known. */
sessile_status control_open_user(const store_core *st, json value, buf *out, int *lost,
                                 sessile_error *err);

/* Appends a fact's data, each sealed user in it replaced by what put appends for it. */
typedef sessile_status (*control_put)(void *arg, json user, buf *out, sessile_error *err);
sessile_status control_put_data(buf *out, json data, control_put put, void *arg,
                                sessile_error *err);

#endif

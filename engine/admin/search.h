/* search.h: searches for a text in all sessions of a store. */
#ifndef ADMIN_SEARCH_H
#define ADMIN_SEARCH_H

#include "session/store_handle.h"

/* As sessile.h says of the functions of these names. */
sessile_status search_open(search_core **out, store_core *st,
                           const sessile_search_options *options, sessile_error *err);
sessile_status search_next(search_core *s, sessile_found *out, sessile_error *err);
void search_close(search_core *s);

#endif

/* search.h: searches for a text in all sessions of a store. */
#ifndef ADMIN_SEARCH_H
#define ADMIN_SEARCH_H

#include "guard/principal.h"
#include "session/store_handle.h"

/* As sessile.h says of the functions of these names. sessions: in place of
 * options->sessions, not NULL; who: as for list_sessions(). */
sessile_status search_open(search_core **out, store_core *st, const principal *who,
                           const sessile_search_options *options,
                           const sessile_list_options *sessions, sessile_error *err);
sessile_status search_next(search_core *s, sessile_found *out, sessile_error *err);
void search_close(search_core *s);

#endif

/* list.h: the sessions of a store as rows. */
#ifndef ADMIN_LIST_H
#define ADMIN_LIST_H

#include "guard/principal.h"
#include "session/store_handle.h"

/* As sessile.h says of sessile_list_with() and sessile_sort_name(); options are not NULL.
 * who: sees the rows, and is given those in its scope alone; NULL: all. */
sessile_status list_sessions(store_core *s, const principal *who,
                             const sessile_list_options *options, sessile_listed **out,
                             size_t *count, sessile_error *err);
const char *list_sort_name(sessile_sort sort);

#endif

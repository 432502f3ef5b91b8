/* list.h: the sessions of a store as rows. */
#ifndef ADMIN_LIST_H
#define ADMIN_LIST_H

#include "session/store_handle.h"

/* As sessile.h says of sessile_list_with() (options not NULL), sessile_list() and
 * sessile_sort_name(). */
sessile_status list_sessions(store_core *s, const sessile_list_options *options,
                             sessile_listed **out, size_t *count, sessile_error *err);
sessile_status list_of_agent(store_core *s, const char *agent, sessile_listed **out,
                             size_t *count, sessile_error *err);
const char *list_sort_name(sessile_sort sort);

#endif

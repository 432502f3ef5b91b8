/* open.h: a store over a backend that the host application supplies. */
#ifndef STORE_HOSTED_OPEN_H
#define STORE_HOSTED_OPEN_H

#include "store/store.h"

/* Opens a store over the host's table. The store owns self from this call on, and frees
 * it also on failure. INVALID: the table lacks a function it needs; UNSUPPORTED: its
 * version.
 */
sessile_status store_hosted_open(store *out, const sessile_backend *table, void *self,
                                 const allocator *a, sessile_error *err);

#endif

/* access_rows.h: rows of the fold, copied for the host. For access_*.c alone. */
#ifndef GUARD_ACCESS_ROWS_H
#define GUARD_ACCESS_ROWS_H

#include "guard/access.h"

/* Where the texts and the lists of a row are. */
typedef struct rows_shape {
    size_t size, texts[8], text_count, lists[2], counts[2], list_count;
} rows_shape;

/* Begins listing: the fold as it is now, and room for pointers to all rows of a kind.
 * After OK call rows_end(). Errors of access_begin(), NOMEM. */
sessile_status rows_begin(const principal *p, size_t (*count)(const access_fold *a),
                          const void ***rows, size_t *room, sessile_error *err);
/* Gives copies of n of them in one block for the host. NOMEM. */
sessile_status rows_end(const principal *p, const rows_shape *sh, const void **rows,
                        size_t room, size_t n, void **out, size_t *count,
                        sessile_error *err);

#endif

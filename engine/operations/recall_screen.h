/* recall_screen.h: what is recalled meets the rules of the store: it becomes a message.
 */
#ifndef OPERATIONS_RECALL_SCREEN_H
#define OPERATIONS_RECALL_SCREEN_H

#include "memory/memory.h"
#include "screen/write.h"

/* What screens say of the values of items, by their numbers. Zeroed but for text. */
typedef struct recall_screened {
    struct recall_value {
        int refused;
        size_t at, size; /* in text: what is recalled instead; size 0: the value itself */
    } items[SESSILE_RECALL_ITEMS_MAX];
    buf text;
    write_labels labels; /* of text 0 */
} recall_screened;

/* Screens the values of items, without a lock. What cannot be read is refused. */
sessile_status recall_screen(recall_screened *r, const store_core *st,
                             memory_core *const *memories,
                             const sessile_recall_item *items, size_t count,
                             sessile_error *err);
int recall_is_refused(const recall_screened *r, size_t item);
/* Sets *value to what is recalled instead, if words of it were removed. */
void recall_replace(const recall_screened *r, size_t item, sessile_slice *value);
void recall_screened_deinit(recall_screened *r, const allocator *a);

#endif

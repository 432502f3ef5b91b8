/* rations.c: an allocator that gives a number of blocks. */
#include "support/rations.h"

#include <stdlib.h>

void *ration(void *ud, void *ptr, size_t osize, size_t nsize)
{
    rations *r = ud;
    (void)osize;
    if (nsize == 0) {
        r->live -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    if (r->left == 0)
        return NULL;
    if (r->left > 0)
        r->left--;
    void *block = realloc(ptr, nsize);
    r->live += block && !ptr;
    return block;
}

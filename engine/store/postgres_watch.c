/* postgres_watch.c */
#include "store/postgres.h"
void pg_watch_free(pg_store *ps)
{
    (void)ps;
}

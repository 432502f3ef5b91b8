/* limits.h: rate limits in the database of a PostgreSQL store. For guard/. */
#ifndef STORE_POSTGRES_LIMITS_H
#define STORE_POSTGRES_LIMITS_H

#include "store/store.h"

/* 1: the store is one of store_postgres_open(). */
int store_is_postgres(const store *st);

/*
 * Counts one call of a key, if there were fewer than `count` in any period that ends now,
 * by the server's clock; with look 1 counts nothing, with 2 takes back the oldest one
 * that counts. OK and *retry_ms 0: it has room; else in how many milliseconds it may. The
 * first call makes the table and the function, and the schema. DENIED: they are not
 * there, and this role may not make them; IO, BUSY, FORKED.
 */
sessile_status store_postgres_limit(const store *st, uint64_t key, uint32_t count,
                                    uint32_t period_ms, int look, uint32_t *retry_ms,
                                    sessile_error *err);

#endif

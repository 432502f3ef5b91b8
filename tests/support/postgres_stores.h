/* postgres_stores.h: PostgreSQL stores opened at a URL */
#ifndef SUPPORT_POSTGRES_STORES_H
#define SUPPORT_POSTGRES_STORES_H

#include "store/postgres/postgres.h"
#include "support/postgres.h"

const postgres_server *postgres_needed(void);
sessile_status postgres_opened(const char *url, store *out, sessile_error *err);
store store_at(const char *url);
/* The URL with more parameters. */
char *url_with(const char *url, const char *more);
/* The value of one statement, there and then. */
void postgres_value(const char *url, const char *text, const char *expected);
void *postgres_make(void *arg);

#endif

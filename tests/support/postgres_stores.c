/* postgres_stores.c: PostgreSQL stores opened at a URL */
#include "support/postgres_stores.h"

#include "store/postgres/open.h"
#include "store/postgres/postgres.h"

#include "support/check.h"
#include "support/postgres.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const postgres_server *postgres_needed(void)
{
    const char *why;
    const postgres_server *s = postgres_shared(&why);

    if (!s) {
        print_message("# %s\n", why);
        skip();
    }
    return s;
}

sessile_status postgres_opened(const char *url, store *out, sessile_error *err)
{
    memset(err, 0, sizeof *err);
    return store_postgres_open(out, url, 5000, os_current, &allocator_default, err);
}

store store_at(const char *url)
{
    store st;
    sessile_error err;

    if (postgres_opened(url, &st, &err))
        fail_msg("%s", err.message);
    return st;
}

char *url_with(const char *url, const char *more)
{
    char *out = malloc(strlen(url) + strlen(more) + 2);

    sprintf(out, "%s%c%s", url, strchr(url, '?') ? '&' : '?', more);
    return out;
}

void postgres_value(const char *url, const char *text, const char *expected)
{
    char *value = postgres_sql(url, text);

    assert_non_null(value);
    if (expected)
        assert_string_equal(value, expected);
    free(value);
}

void *postgres_make(void *arg)
{
    store st = store_at(arg);
    sessile_error err = {0};
    sessile_status status = st.table->create(st.self, "main", "log", "one\n", 4, &err);
    if (status && status != SESSILE_EXISTS)
        printf("# %s\n", err.message);
    store_close(&st);
    return !status ? "made" : status == SESSILE_EXISTS ? "there" : NULL;
}

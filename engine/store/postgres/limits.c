/*
 * limits.c: how often something was done, for all nodes that share the database.
 *
 * Owns the table `limits` and the function `limit_take`, which keeps a window of 33
 * counts for each key; limit/window.h explains them. The table is unlogged: a call
 * waits for no disk, and after a crash of the server all windows are fresh. Whoever finds
 * neither makes both, under the lock that the making of the schema takes as well, so that
 * many who come at once make them once.
 *
 * The server's clock is a time of day. When it was set back, a window's calls are counted
 * as if they were made now; when it was set forward, windows end early.
 */
#include "store/postgres/limits.h"
#include "store/postgres/postgres.h"

#include <string.h>

static const char *const made[] = {
    "CREATE UNLOGGED TABLE IF NOT EXISTS @limits ("
    " key bigint PRIMARY KEY,"
    " part bigint NOT NULL,"
    " counts int[] NOT NULL,"
    " ends bigint NOT NULL"
    ") WITH (fillfactor = 50)",
    /* A row that is found is locked until the commit. Windows that are over are removed
     * now and then, when one is added; a row that somebody has locked is left. */
    "CREATE OR REPLACE FUNCTION @limit_take(k bigint, most bigint, period bigint,"
    " look bigint) RETURNS bigint LANGUAGE plpgsql AS $body$"
    " DECLARE"
    "  was bigint; c int[]; ms bigint; now_part bigint; gone bigint; total bigint;"
    " BEGIN"
    "  LOOP"
    "   SELECT l.part, l.counts INTO was, c FROM @limits l WHERE l.key = k FOR UPDATE;"
    "   EXIT WHEN FOUND;"
    "   IF random() < 0.001 THEN"
    "    DELETE FROM @limits d WHERE d.key IN (SELECT o.key FROM @limits o"
    "     WHERE o.ends < extract(epoch FROM clock_timestamp()) * 1000"
    "     FOR UPDATE SKIP LOCKED);"
    "   END IF;"
    "   INSERT INTO @limits VALUES (k, 0, array_fill(0, ARRAY[33]), 9223372036854775807)"
    "    ON CONFLICT DO NOTHING;"
    "  END LOOP;"
    "  ms := floor(extract(epoch FROM clock_timestamp()) * 1000);"
    "  now_part := ms * 32 / period;"
    "  gone := now_part - was;"
    "  IF gone < 0 THEN"
    "   c := array_fill(0, ARRAY[32]) || (SELECT sum(x) FROM unnest(c) x)::int;"
    "  ELSIF gone > 32 THEN"
    "   c := array_fill(0, ARRAY[33]);"
    "  ELSIF gone > 0 THEN"
    "   c := c[gone + 1:33] || array_fill(0, ARRAY[gone::int]);"
    "  END IF;"
    "  total := (SELECT sum(x) FROM unnest(c) x);"
    "  IF total < most AND look = 0 THEN c[33] := c[33] + 1; END IF;"
    "  IF look = 2 THEN"
    "   FOR i IN 1..33 LOOP"
    "    IF c[i] > 0 THEN c[i] := c[i] - 1; EXIT; END IF;"
    "   END LOOP;"
    "  END IF;"
    "  IF gone <> 0 OR look = 2 OR (total < most AND look = 0) THEN"
    "   UPDATE @limits SET part = now_part, counts = c, ends = ms + 2 * period"
    "    WHERE key = k;"
    "  END IF;"
    "  IF total < most THEN RETURN 0; END IF;"
    "  FOR i IN 1..32 LOOP"
    "   total := total - c[i];"
    "   IF total < most THEN"
    "    RETURN greatest(1, ((now_part + i) * period + 31) / 32 - ms);"
    "   END IF;"
    "  END LOOP;"
    "  RETURN greatest(1, ((now_part + 33) * period + 31) / 32 - ms);"
    " END $body$",
};

int store_is_postgres(const store *st)
{
    return st->table && st->table->append == pg_append;
}

sessile_status store_postgres_limit(const store *st, uint64_t key, uint32_t count,
                                    uint32_t period_ms, int look, uint32_t *retry_ms,
                                    sessile_error *err)
{
    pg_store *ps = st->self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    *retry_ms = 0;
    call.primary = 1;
    for (int tries = 0;; tries++) {
        pg_step s = pg_step_of(PG_LIMIT);
        pg_results r;
        pg_arg_int(&s, key);
        pg_arg_int(&s, count);
        pg_arg_int(&s, period_ms);
        pg_arg_int(&s, (uint64_t)look);
        call.absent = 0;
        sessile_status status = pg_put(&call, &s, 1, "limits", &r, err);
        if (status && call.absent && tries == 0) {
            status =
                pg_schema_add(&call, made, sizeof made / sizeof *made, "limits", err);
            if (!status)
                continue;
        }
        if (status)
            return status;
        *retry_ms = (uint32_t)pg_int(ps, r.of[0], 0, 0);
        pg_results_free(ps, &r);
        return SESSILE_OK;
    }
}

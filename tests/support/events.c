/* events.c: see events.h. */
#include "support/events.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/lane.h"
#include "guard/guard.h"
#include "log/log.h"
#include "session/handle.h"
#include "support/check.h"

static sessile_status take(void *arg, sessile_id id, const char *text, size_t size,
                           sessile_error *err)
{
    events *e = arg;

    (void)id;
    (void)err;
    if (!memmem(text, size, "\"type\":\"event\"", 14))
        return SESSILE_OK;
    if (e->count == e->capacity) {
        e->capacity = 2 * e->capacity + 64;
        e->texts = realloc(e->texts, e->capacity * sizeof *e->texts);
    }
    e->texts[e->count++] = strndup(text, size);
    return SESSILE_OK;
}

void events_read(events *out, struct guard *g, store_core *st)
{
    sessile_error err;

    memset(out, 0, sizeof *out);
    if (g)
        must(audit_flush(g->audit, &err), &err);
    for (uint32_t lane = 0; lane_exists(st, lane, &err) == 1; lane++) {
        char name[LANE_NAME];
        log_tail tail;
        log_t *log;
        lane_part_name(lane, 0, name);
        must(log_inspect(&log, &st->backend, st->keys, AUDIT_FOLDER, name,
                         session_read_depth(st), 1000, NULL, take, out, &tail, &st->alloc,
                         &err),
             &err);
        log_close(log);
    }
}

void events_free(events *e)
{
    for (size_t i = 0; i < e->count; i++)
        free(e->texts[i]);
    free(e->texts);
    memset(e, 0, sizeof *e);
}

size_t events_with(const events *e, size_t from, const char *part, const char *more)
{
    size_t n = 0;

    for (size_t i = from; i < e->count; i++)
        n += (!part || strstr(e->texts[i], part)) && (!more || strstr(e->texts[i], more));
    return n;
}

void assert_events(const events *e, size_t from, size_t count, const char *part,
                   const char *more)
{
    size_t n = events_with(e, from, part, more);

    if (n == count)
        return;
    for (size_t i = from; i < e->count; i++)
        fprintf(stderr, "# %s\n", e->texts[i]);
    fail_msg("%zu events with %s and %s, not %zu", n, part ? part : "anything",
             more ? more : "anything", count);
}

void event_member(char out[64], const char *row)
{
    int size = snprintf(out, 64, "\"operation\":\"%.*s\"", (int)strlen(row) - 2, row);

    for (int i = 13; i < size; i++)
        out[i] = (char)tolower((unsigned char)out[i]);
}

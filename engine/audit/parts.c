/* parts.c: see parts.h. */
#include "audit/parts.h"

#include <string.h>

#include "session/handle.h"
#include "session/header.h"

static int add_part(void *arg, const char *folder, const char *name)
{
    lane_parts *p = arg;
    uint32_t lane, part;

    (void)folder;
    if (lane_part_parse(name, &lane, &part))
        return 0;
    if (!p->there[lane]) {
        p->there[lane] = 1;
        p->lanes++;
        p->first[lane] = p->last[lane] = part;
    }
    if (part < p->first[lane])
        p->first[lane] = part;
    if (part > p->last[lane])
        p->last[lane] = part;
    return 0;
}

sessile_status lane_parts_find(lane_parts *out, store_core *st, sessile_error *err)
{
    sessile_status status;

    memset(out, 0, sizeof *out);
    status = st->backend.table->list(st->backend.self, AUDIT_FOLDER, add_part, out, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK;
    }
    return status;
}

sessile_status lane_parts_skip_half(lane_parts *p, store_core *st, sessile_error *err)
{
    for (uint32_t i = 0; i < LANE_MOST; i++) {
        sessile_error why;
        lane_head head;
        if (!p->there[i] || p->first[i] == p->last[i])
            continue;
        sessile_status status = lane_part_peek(&head, st, i, p->first[i], &why);
        if (status == SESSILE_NOMEM || status == SESSILE_IO)
            return fail(err, status, "%s", why.message);
        p->half[i] = status == SESSILE_DAMAGED;
        p->first[i] += p->half[i];
    }
    return SESSILE_OK;
}

int lane_part_exists(store_core *st, uint32_t lane, uint32_t part, sessile_error *err)
{
    char name[LANE_NAME];
    sessile_backend_log *log;
    sessile_status status;

    lane_part_name(lane, part, name);
    status = st->backend.table->open(st->backend.self, AUDIT_FOLDER, name, &log, err);
    if (!status)
        st->backend.table->close(log);
    if (status != SESSILE_NOTFOUND)
        return status ? -1 : 1;
    error_clear(err);
    return 0;
}

sessile_status lane_part_peek(lane_head *out, store_core *st, uint32_t lane,
                              uint32_t part, sessile_error *err)
{
    char name[LANE_NAME];
    sessile_status status;
    buf text;

    lane_part_name(lane, part, name);
    buf_init(&text, &st->alloc);
    status = log_peek(&st->backend, st->keys, AUDIT_FOLDER, name, session_read_depth(st),
                      st->config.timeout_ms, &text, &st->alloc, err);
    if (!status)
        status = lane_head_read(out, text.data, text.size, &st->alloc, err);
    buf_deinit(&text);
    return status;
}

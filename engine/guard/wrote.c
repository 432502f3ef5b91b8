/*
 * wrote.c: which entries of sessions a call wrote, for its event.
 *
 * It is how a change that lost its event is found (admin/compare.h). Owns the spelling:
 * "wrote" are the entries of the session that the event names, as
 * ["00000004","00000006-00000009"]; "wrote_to" those of other sessions, each as
 * {"session","agent","owner","entries"}. A session that is made has an entry 0.
 */
#include "guard/guard.h"

#include <inttypes.h>

#include "base/names.h"
#include "session/writes.h"

typedef struct wrote {
    const guard_call *call;
    buf own, others; /* entries of what the event names; of other sessions */
} wrote;

static void put_entries(buf *out, sessile_id first, sessile_id last)
{
    buf_printf(out, "%s\"%08" PRIx32, out->size ? "," : "", first);
    if (last != first)
        buf_printf(out, "-%08" PRIx32, last);
    buf_putc(out, '"');
}

static void add_wrote(void *arg, const session_names *names, sessile_id first,
                      sessile_id last)
{
    wrote *w = arg;
    const guard_names *about = &w->call->names;
    char owner[PSEUDONYM_SIZE];

    /* without `owner` an event is of the caller's own: see guard_name_object() */
    if (slice_same(names->id, about->id) && slice_same(names->agent, about->agent) &&
        slice_same(names->user, about->user) &&
        (about->user.size || !w->call->who->user.size)) {
        put_entries(&w->own, first, last);
        return;
    }
    buf_puts(&w->others, w->others.size ? ",{\"session\":" : "{\"session\":");
    audit_put_text(&w->others, names->id);
    buf_puts(&w->others, ",\"agent\":");
    audit_put_text(&w->others, names->agent);
    if (names->user.size) {
        audit_owner_of(w->call->who->guard->audit, names->user, owner);
        buf_printf(&w->others, ",\"owner\":\"%s\"", owner);
    }
    buf_printf(&w->others, ",\"entries\":\"%08" PRIx32 "-%08" PRIx32 "\"}", first, last);
}

int guard_say_wrote(guard_call *call)
{
    wrote w = {.call = call};
    int any = write_notes_any(call->who->guard->notes);

    if (!any)
        return 0;
    buf_init(&w.own, call->details.alloc);
    buf_init(&w.others, call->details.alloc);
    write_notes_take(call->who->guard->notes, add_wrote, &w);
    if (w.own.size)
        buf_printf(&call->details, ",\"wrote\":[%.*s]", (int)w.own.size, w.own.data);
    if (w.others.size)
        buf_printf(&call->details, ",\"wrote_to\":[%.*s]", (int)w.others.size,
                   w.others.data);
    call->details.failed |= w.own.failed || w.others.failed;
    buf_deinit(&w.own);
    buf_deinit(&w.others);
    return 1;
}

void guard_forget_wrote(const principal *p)
{
    write_notes_take(p->guard->notes, NULL, NULL);
}

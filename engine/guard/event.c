/* event.c: what the guard writes into the audit. */
#include "guard/event.h"

#include <string.h>

#include "guard/guard.h"

sessile_status guard_event(const principal *p, audit_class class, audit_event *e,
                           char id[AUDIT_ID], sessile_error *err)
{
    if (id)
        id[0] = 0;
    if (!p || !p->guard->audit)
        return SESSILE_OK;
    e->who.user = p->user;
    e->who.actor = p->actor;
    e->who.role = p->role;
    e->who.method = p->method;
    e->who.key = p->key;
    return audit_write(p->guard->audit, class, e, id, err);
}

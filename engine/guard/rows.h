/* rows.h: operations.def as a table. For guard/ alone. */
#ifndef GUARD_ROWS_H
#define GUARD_ROWS_H

#include "audit/audit.h"
#include "guard/enter.h"
#include "guard/roles.h"
#include "limit/limit.h"

/* A bit beyond all permissions: the call goes on with what another began. */
#define NEED_STEP ((permissions)1 << 30)
/* The same: one of read_audit and check_store is enough. */
#define NEED_CHECK_AUDIT ((permissions)1 << 29)

typedef struct guard_row {
    permissions need;
    int of_all; /* it touches what belongs to no single user: scope all */
    limit_rule limit;
    const char *event; /* "CREATE_W"; "NONE" */
    const char *name;  /* "create" */
} guard_row;
extern const guard_row guard_rows[OP_COUNT];

/* 1: the call changes something, so nothing may be done that is not recorded. */
int guard_changes(unsigned op);

#define GUARD_EVENT_NAME 32
/* An event of that row, and its class. Its name is put into `name`. */
audit_class guard_event_row(audit_event *e, unsigned op, char name[GUARD_EVENT_NAME]);

#endif

/* authorize.c: asks the host's own rule, and says no when there is no clear yes. */
#include "guard/authorize.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "guard/guard.h"
#include "guard/rows.h"

sessile_status authorize(const authorize_question *question, char *why,
                         sessile_error *err)
{
    const authorize_rule *rule = &question->who->guard->authorize;
    authorize_answer answer = {0};
    char name[sizeof "authorize:" + AUTHORIZE_NAME];

    if (!rule->ask || (question->who->may & PERMISSION_HOST))
        return SESSILE_OK;
    rule->ask(rule->ref, question, &answer);
    if (answer.allows)
        return SESSILE_OK;
    if (why)
        memcpy(why, answer.why, sizeof answer.why);
    snprintf(name, sizeof name, "authorize%s%s", answer.name[0] ? ":" : "", answer.name);
    return fail_rule(err, SESSILE_DENIED, name,
                     "a rule of this store's host does not allow this");
}

/* Also of those that need no permission to change, as grant: they are written before. */
static int changes(const guard_row *row, unsigned op)
{
    return guard_changes(op) || row->event[strlen(row->event) - 1] == 'M';
}

sessile_status authorize_call_as(guard_call *call, guard_op op, const guard_names *made,
                                 sessile_error *err)
{
    const guard_row *row = &guard_rows[op];
    permissions need = row->need & NEED_CHECK_AUDIT ? PERMISSION(READ_AUDIT) : row->need;
    const authorize_question question = {
        call->who,        slice_of(row->name), need & PERMISSIONS_ALL,
        changes(row, op), &call->names,        made};
    char why[AUTHORIZE_WHY] = "";
    sessile_status status;

    if (!row->need || (row->need & NEED_STEP))
        return SESSILE_OK;
    status = authorize(&question, why, err);
    if (status)
        guard_text(call, "why", slice_of(why));
    return status;
}

sessile_status authorize_call(guard_call *call, const guard_names *made,
                              sessile_error *err)
{
    return authorize_call_as(call, (guard_op)call->op, made, err);
}

/* own.c: operations of the host's own, which are asked, counted and recorded as the
 * engine's are. */
#include "guard/guard.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "codec/json.h"
#include "guard/access.h"
#include "guard/authorize.h"
#include "guard/event.h"

enum { NAME_MOST = 63, DETAILS_MOST = 4096, DETAILS_DEPTH = 8 };

/* "host:NAME", so that nobody takes it for one of the engine's. */
static sessile_status read_name(char out[NAME_MOST + 6], sessile_slice name,
                                sessile_error *err)
{
    int plain = utf8_valid(name.data, name.size);

    for (size_t i = 0; plain && i < name.size; i++)
        plain = (unsigned char)name.data[i] >= 0x20 && name.data[i] != 0x7f;
    if (!name.size || name.size > NAME_MOST || !plain)
        return fail(err, SESSILE_INVALID,
                    "the name of an operation is UTF-8 of 1 to %d bytes, without control "
                    "characters",
                    NAME_MOST);
    snprintf(out, NAME_MOST + 6, "host:%.*s", (int)name.size, name.data);
    return SESSILE_OK;
}

static limit_rule rule_of(const char *name)
{
    int rule = LIMIT_NONE;

    while (rule < LIMIT_RULES && name && strcmp(limit_rule_name((limit_rule)rule), name))
        rule++;
    return (limit_rule)rule;
}

sessile_status guard_may(sessile_store *view, const sessile_operation *o,
                         sessile_error *err)
{
    char name[NAME_MOST + 6], failed[AUTHORIZE_WHY] = "";
    limit_rule rule = rule_of(o->limit);
    sessile_error why = {0}, unwritten;
    guard_names names = {o->agent, o->user, o->id};
    audit_event e;
    buf details;
    sessile_status status = read_name(name, o->name, err);

    if (!status && rule == LIMIT_RULES)
        status = fail(err, SESSILE_INVALID, "there is no rate limit \"%.40s\"", o->limit);
    if (status || !view->who)
        return status;
    status = guard_allows(view->who, view->core, o->permission, &names, &why);
    const authorize_question question = {
        view->who, slice_of(name), PERMISSION_OF(o->permission), !o->reads, &names, NULL};
    if (!status)
        status = authorize(&question, failed, &why);
    if (!status)
        status = guard_take(view->who, rule, &names, &why);
    audit_event_init(&e);
    e.operation.name = slice_of(name);
    e.operation.permission = slice_of(permission_name(o->permission));
    guard_name_object(&e, view->who, &names);
    e.outcome.is = status ? AUDIT_FAILURE : AUDIT_SUCCESS;
    e.outcome.status = status;
    e.outcome.rule = slice_of(why.rule);
    buf_init(&details, &view->alloc);
    if (failed[0]) {
        buf_printf(&details, "{\"why\":");
        audit_put_text(&details, slice_of(failed));
        buf_putc(&details, '}');
    }
    if (!details.failed)
        e.details = (sessile_slice){details.data, details.size};
    sessile_status written = guard_event(
        view->who, o->reads && !status ? AUDIT_READ : AUDIT_WRITE, &e, NULL, &unwritten);
    buf_deinit(&details);
    if (written)
        atomic_store(&view->who->guard->broken, 1);
    if (!status && written && !o->reads)
        return fail_rule(err, written, "audit",
                         "this may not be done, because it cannot be recorded: %s",
                         unwritten.message);
    if (status && err)
        *err = why;
    return status;
}

sessile_status guard_note(sessile_store *view, sessile_slice name, sessile_slice details,
                          sessile_error *err)
{
    char own[NAME_MOST + 6];
    audit_event e;
    buf checked;
    sessile_status status = read_name(own, name, err);

    if (status)
        return status;
    if (!view->who || !view->who->guard->audit)
        return fail(err, SESSILE_INVALID,
                    "this store has no audit: set a guard with one");
    status = access_accept(view->who, err);
    if (status)
        return status;
    if (details.size > DETAILS_MOST)
        return fail(err, SESSILE_LIMIT, "the details of a note have at most %d bytes",
                    DETAILS_MOST);
    audit_event_init(&e);
    e.operation.name = slice_of(own);
    e.operation.session = view->who->session;
    buf_init(&checked, &view->alloc);
    if (details.size)
        status = json_check(&checked, details.data, details.size, DETAILS_DEPTH, err);
    if (!status && details.size &&
        json_of(checked.data, checked.size).type != JSON_OBJECT)
        status = fail(err, SESSILE_INVALID, "the details of a note are a JSON object");
    e.details = (sessile_slice){checked.data, checked.size};
    if (!status)
        status = guard_event(view->who, AUDIT_WRITE, &e, NULL, err);
    buf_deinit(&checked);
    return status;
}

/*
 * call.c: how often a call may be made, and what is recorded of it.
 *
 * Owns the event of each call: its class and its name come from operations.def, who and
 * what from the call. Must never put content into an event: what callers of guard_text()
 * give are names and reasons.
 */
#include "guard/guard.h"

#include <inttypes.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "codec/json.h"
#include "guard/event.h"
#include "guard/rows.h"
#include "audit/verify.h"
#include "session/handle.h"

guard_names guard_names_of(const session_core *s)
{
    const session_identity *own = &s->identity;

    return (guard_names){{own->agent, own->agent_size},
                         {own->user, own->user_size},
                         {own->id, own->id_size}};
}

void guard_begin(guard_call *call, guard_op op)
{
    static const guard_names none;

    call->op = call->event_of = (unsigned short)op;
    call->begun = 0;
    call->shared = call->left = call->goes_on = call->intended = 0;
    call->missing = 0;
    call->granted = NULL;
    call->own = &none;
    call->names = none;
    call->counted = NULL;
    call->number = 0;
    call->entry = NULL;
    call->event[0] = 0;
    call->gives = NULL;
    call->gives_count = NULL;
    buf_init(&call->details, &call->who->alloc);
}

/* ------------------------------------------------------------------ limits */

/* A number that is worked out once. */
static uint64_t number_once(_Atomic uint64_t *kept, const limiter *l,
                            const sessile_slice *parts, size_t count)
{
    uint64_t number = kept ? atomic_load_explicit(kept, memory_order_relaxed) : 0;

    if (!number) {
        number = limiter_who(l, parts, count);
        number += !number;
        if (kept)
            atomic_store_explicit(kept, number, memory_order_relaxed);
    }
    return number;
}

static uint64_t user_number(principal *p, const limiter *l)
{
    sessile_slice parts[2] = {slice_of("user"), p->user};

    if (!p->user.size)
        parts[1] = p->actor.size ? p->actor : p->key;
    if (!p->user.size)
        parts[0] = slice_of(p->actor.size ? "actor" : "key");
    return number_once(&p->counted, l, parts, 2);
}

/* A session is counted whoever uses it; a memory for each of its users. */
static uint64_t object_number(principal *p, const limiter *l, const guard_names *names,
                              _Atomic uint64_t *kept)
{
    uint64_t user = names->id.size ? 0 : user_number(p, l);
    const sessile_slice parts[] = {slice_of(names->id.size ? "session" : "memory"),
                                   names->agent,
                                   names->user,
                                   names->id,
                                   {(const char *)&user, sizeof user}};

    return number_once(kept, l, parts, sizeof parts / sizeof *parts);
}

/* A shared place that was lost is an event of the host's. */
static void tell_lost(const principal *p, limiter *l)
{
    sessile_error why;
    audit_event e;

    if (!limiter_lost(l, &why))
        return;
    while (p->parent)
        p = p->parent;
    audit_event_init(&e);
    e.operation.name = slice_of("limits_lost");
    e.outcome.is = AUDIT_FAILURE;
    e.outcome.status = why.code;
    (void)guard_event(p, AUDIT_WRITE, &e, NULL, NULL);
}

static sessile_status take(principal *p, limit_rule rule, const guard_names *names,
                           _Atomic uint64_t *kept, limit_taken *taken, sessile_error *err)
{
    limiter *l = p->guard->limiter;
    sessile_status status;
    uint64_t who;

    if (taken)
        *taken = (limit_taken){0};
    if (!l || rule == LIMIT_NONE || (p->may & PERMISSION_HOST))
        return SESSILE_OK;
    who = limit_rule_per(rule) == LIMIT_PER_SESSION ? object_number(p, l, names, kept)
                                                    : user_number(p, l);
    status = limit_take(l, rule, who, taken, err);
    tell_lost(p, l);
    return status;
}

sessile_status guard_take(principal *p, limit_rule rule, const guard_names *names,
                          sessile_error *err)
{
    return take(p, rule, names, NULL, NULL, err);
}

sessile_status guard_count(guard_call *call, sessile_error *err)
{
    const guard_row *row = &guard_rows[call->op];
    limiter *l = call->who->guard->limiter;
    limit_taken taken;
    sessile_status status =
        take(call->who, row->limit, &call->names, call->counted, &taken, err);

    if (status || row->limit == LIMIT_SESSION_CREATION ||
        !(row->need & PERMISSION(CREATE_SESSION)))
        return status;
    /* a session that is made of another one is one more of its maker */
    status = take(call->who, LIMIT_SESSION_CREATION, &call->names, NULL, NULL, err);
    if (status && l)
        limit_return(l, &taken);
    return status;
}

/* ------------------------------------------------------------------ details */

void guard_text(guard_call *call, const char *name, sessile_slice text)
{
    if (!call->who->guard->audit || !text.size)
        return;
    buf_printf(&call->details, ",\"%s\":", name);
    audit_put_text(&call->details, text);
}

void guard_texts(guard_call *call, const char *name, const sessile_slice *texts,
                 size_t count)
{
    if (!call->who->guard->audit || !count)
        return;
    buf_printf(&call->details, ",\"%s\":", name);
    for (size_t i = 0; i < count; i++) {
        buf_putc(&call->details, i ? ',' : '[');
        audit_put_text(&call->details, texts[i]);
    }
    buf_putc(&call->details, ']');
}

void guard_number(guard_call *call, const char *name, uint64_t value)
{
    if (call->who->guard->audit)
        buf_printf(&call->details, ",\"%s\":%" PRIu64, name, value);
}

/* ------------------------------------------------------------------ events */

/* "CREATE_W": the name in lower case, and the class. */
static audit_class read_row(unsigned op, char name[GUARD_EVENT_NAME])
{
    const char *text = guard_rows[op].event;
    size_t size = strlen(text) - 2;

    for (size_t i = 0; i < size; i++)
        name[i] = text[i] == '_' ? '_' : (char)(text[i] - 'A' + 'a');
    name[size] = 0;
    return text[size + 1] == 'R'   ? AUDIT_READ
           : text[size + 1] == 'M' ? AUDIT_SYNCED
                                   : AUDIT_WRITE;
}

audit_class guard_event_row(audit_event *e, unsigned op, char name[GUARD_EVENT_NAME])
{
    permissions need = guard_rows[op].need;
    unsigned first = 0;
    audit_class class = read_row(op, name);

    audit_event_init(e);
    e->operation.name = slice_of(name);
    if (need & NEED_CHECK_AUDIT)
        need = PERMISSION(READ_AUDIT);
    while (need && !(need >> first & 1))
        first++;
    if (need)
        e->operation.permission = slice_of(
            first < SESSILE_PERMISSION_COUNT ? permission_name((sessile_permission)first)
                                             : "host");
    return class;
}

void guard_name_object(audit_event *e, const principal *p, const guard_names *names)
{
    e->who.agent = names->agent;
    e->operation.session = names->id;
    if (!slice_same(names->user, p->user))
        e->operation.owner = names->user;
}

/* Reads of one handle that are counted together. */
static uint64_t same_reads(const guard_call *call)
{
    const uint64_t of[] = {call->number, call->who->number, call->event_of};

    return call->number ? hash64(of, sizeof of) | 1 : 0;
}

/* Writes the event of a call. failed: the error of the call, or NULL. */
static sessile_status record(guard_call *call, audit_class class, audit_outcome is,
                             const sessile_error *failed, sessile_error *err)
{
    char name[GUARD_EVENT_NAME];
    sessile_status status = SESSILE_OK;
    audit_event e;
    buf details;

    (void)guard_event_row(&e, call->event_of, name);
    guard_name_object(&e, call->who, &call->names);
    e.outcome.is = is;
    if (failed) {
        e.outcome.status = failed->code;
        e.outcome.rule = slice_of(failed->rule);
    } else if (class == AUDIT_READ) {
        e.same = same_reads(call);
    }
    if (call->entry && *call->entry != SESSILE_NO_ID)
        e.operation.entry = *call->entry;
    buf_init(&details, call->details.alloc);
    if (call->details.size) {
        buf_putc(&details, '{');
        buf_put(&details, call->details.data + 1, call->details.size - 1);
        buf_putc(&details, '}');
        e.details = (sessile_slice){details.data, details.size};
    }
    if (details.failed || call->details.failed)
        status = fail_nomem(err);
    if (class == AUDIT_WRITE && !failed && call->who->guard->sync)
        class = AUDIT_SYNCED;
    if (!status)
        status = guard_event(call->who, class, &e, call->event, err);
    buf_deinit(&details);
    if (status)
        atomic_store(&call->who->guard->broken, 1);
    return status;
}

/* The outcome of what cannot be undone is sealed. */
static sessile_status record_end(guard_call *call, audit_class class, audit_outcome is,
                                 const sessile_error *failed, sessile_error *err)
{
    sessile_status status = record(call, class, is, failed, err);

    if (!status && class == AUDIT_SYNCED) {
        status = audit_seal(call->who->guard->audit, err);
        if (status == SESSILE_BUSY) /* somebody else seals it; it is written */
            status = SESSILE_OK;
    }
    return status;
}

/* A call was done, and could not be recorded. */
static sessile_status unrecorded(guard_call *call, sessile_status status,
                                 const sessile_error *why, sessile_error *err)
{
    if (call->gives) {
        host_free(*call->gives);
        *call->gives = NULL;
        if (call->gives_count)
            *call->gives_count = 0;
    }
    return fail_rule(
        err, status, "audit",
        "this was done, and is not in the audit, which cannot be written: %s",
        why->message);
}

static int is_recorded(const guard_call *call)
{
    return call->who->guard->audit && strcmp(guard_rows[call->event_of].event, "NONE");
}

static void record_failure(guard_call *call, audit_class class, const sessile_error *err)
{
    sessile_error why;

    if (class == AUDIT_READ && call->who->guard->no_reads)
        return;
    (void)record_end(call, class, AUDIT_FAILURE, err, &why);
}

/* What a step wrote is in the audit before the next one, which may never come. */
static void record_progress(guard_call *call)
{
    sessile_error why;

    if (guard_say_wrote(call))
        (void)record(call, AUDIT_WRITE, AUDIT_INTENT, NULL, &why);
}

sessile_status guard_end(guard_call *call, sessile_status status, sessile_error *err)
{
    char name[GUARD_EVENT_NAME];
    audit_class class;
    sessile_error why;
    int is_step = (guard_rows[call->op].need & NEED_STEP) != 0;

    call->left = 1;
    if (is_step)
        call->event_of = call->begun;
    if (!is_recorded(call))
        return status;
    if (status == SESSILE_NEEDS) { /* there is more to come */
        record_progress(call);
        return status;
    }
    class = read_row(call->event_of, name);
    if (guard_say_wrote(call) && class == AUDIT_READ)
        class = AUDIT_WRITE;
    if (status) {
        if (class == AUDIT_READ ? status == SESSILE_DENIED || status == SESSILE_LIMIT
                                : !call->intended)
            class = AUDIT_WRITE;
        record_failure(call, class, err);
        return status;
    }
    if (class == AUDIT_READ) {
        if (!call->who->guard->no_reads)
            (void)record(call, class, AUDIT_SUCCESS, NULL, &why);
        return SESSILE_OK;
    }
    if (is_step || (call->goes_on && call->intended)) /* its beginning is an event */
        return SESSILE_OK;
    status =
        record_end(call, class, call->goes_on ? AUDIT_INTENT : AUDIT_SUCCESS, NULL, &why);
    return status && guard_changes(call->event_of) ? unrecorded(call, status, &why, err)
                                                   : SESSILE_OK;
}

sessile_status guard_intend(guard_call *call, sessile_error *err)
{
    sessile_error why;
    sessile_status status;

    if (!is_recorded(call))
        return SESSILE_OK;
    status = record(call, AUDIT_SYNCED, AUDIT_INTENT, NULL, &why);
    call->intended = !status;
    return status ? fail_rule(err, status, "audit",
                              "nothing was done, because the audit cannot be written: %s",
                              why.message)
                  : SESSILE_OK;
}

sessile_status guard_step(guard_call *call, unsigned char *told, sessile_status status,
                          sessile_error *err)
{
    char name[GUARD_EVENT_NAME];
    audit_class class;
    sessile_error why;

    call->left = 1;
    call->event_of = call->begun;
    if (!is_recorded(call))
        return status;
    if (*told == TOLD_NOTHING || *told == TOLD_END || status == SESSILE_NEEDS) {
        record_progress(call);
        return status;
    }
    class = read_row(call->event_of, name);
    (void)guard_say_wrote(call);
    if (status) {
        *told = TOLD_FAILURE;
        record_failure(call, class, err);
        return status;
    }
    *told = TOLD_END;
    status = record_end(call, class, AUDIT_SUCCESS, NULL, &why);
    return status ? unrecorded(call, status, &why, err) : SESSILE_OK;
}

sessile_status guard_prove(const guard_call *call, buf *out, sessile_error *err)
{
    return call->who && call->event[0]
               ? audit_prove(call->who->guard->audit_of, call->event, out, err)
               : SESSILE_OK;
}

void guard_look_again(const guard_call *call)
{
    if (call->who && call->who->guard->access)
        (void)control_look_now(call->who->guard->access->control, NULL, NULL);
}

void guard_forgotten(guard_call *call)
{
    sessile_error why;

    if (!call->left && is_recorded(call)) {
        (void)guard_say_wrote(call);
        (void)record(call, AUDIT_WRITE, AUDIT_UNKNOWN, NULL, &why);
    }
    buf_deinit(&call->details);
    principal_release(call->granted);
    call->granted = NULL;
}

void guard_abandon(principal *who, const guard_names *names, unsigned op)
{
    guard_call call;

    if (!who)
        return;
    call.who = who;
    guard_begin(&call, (guard_op)op);
    call.names = *names;
    guard_forgotten(&call);
}

/* ------------------------------------------------------------------ other events */

void guard_view_event(const principal *p, unsigned op, const sessile_error *failed)
{
    char name[GUARD_EVENT_NAME];
    audit_event e;
    audit_class class = guard_event_row(&e, op, name);

    e.operation.session = p->session;
    e.outcome.is = failed->code ? AUDIT_FAILURE : AUDIT_SUCCESS;
    e.outcome.status = failed->code;
    e.outcome.rule = slice_of(failed->rule);
    if (guard_event(p, class, &e, NULL, NULL))
        atomic_store(&p->guard->broken, 1);
}

sessile_status guard_checkpoint_begin(principal *who, const session_core *s,
                                      sessile_error *err)
{
    const guard_names names = guard_names_of(s);

    return who ? guard_take(who, LIMIT_CHECKPOINT_WRITES, &names, err) : SESSILE_OK;
}

void guard_checkpoint_end(principal *who, const session_core *s, sessile_id checkpoint,
                          const sessile_error *failed)
{
    guard_call call;
    sessile_error why;

    if (!who || !who->guard->audit)
        return;
    call.who = who;
    guard_begin(&call, OP_checkpoint);
    call.names = guard_names_of(s);
    call.entry = &checkpoint;
    guard_text(&call, "reason", slice_of("automatic"));
    if (failed->code)
        record_failure(&call, AUDIT_WRITE, failed);
    else
        (void)record(&call, AUDIT_WRITE, AUDIT_SUCCESS, NULL, &why);
    buf_deinit(&call.details);
}

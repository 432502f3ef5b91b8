/*
 * retention.c: removes what is older than rules say.
 *
 * Owns which rule is for whom. How sessions and entries go is that of a purge and of an
 * erasure.
 */
#include "admin/retention.h"

#include <string.h>

#include "admin/memories.h"
#include "admin/purge.h"
#include "audit/retain.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/names.h"

typedef struct applying {
    const sessile_retention_options *options;
    sessile_retained *out;
    int64_t now_ms;
} applying;

static int is_for(const sessile_retention_rule *r, sessile_slice agent,
                  sessile_slice user)
{
    sessile_slice wanted = r->user.size ? r->user : r->agent;
    sessile_slice given = r->user.size ? user : agent;

    return slice_same(wanted, given);
}

/* How specific a rule is: for all, for an agent, for a user. */
static int rank_of(const sessile_retention_rule *r)
{
    return r->user.size ? 2 : r->agent.size ? 1 : 0;
}

/* What holds for these names; 0: for ever. */
static sessile_retention_rule rule_for(const sessile_retention_options *o,
                                       sessile_slice agent, sessile_slice user)
{
    sessile_retention_rule found = {.sessions_ms = 0};

    for (int rank = 0; rank <= 2; rank++)
        for (size_t i = 0; i < o->count; i++) {
            const sessile_retention_rule *r = &o->rules[i];
            if (rank_of(r) != rank || (rank && !is_for(r, agent, user)))
                continue;
            if (r->sessions_ms >= 0)
                found.sessions_ms = r->sessions_ms;
            if (r->deleted_ms >= 0)
                found.deleted_ms = r->deleted_ms;
            if (r->memory_ms >= 0)
                found.memory_ms = r->memory_ms;
        }
    return found;
}

static purge_rule of_sessions(const void *arg, sessile_slice agent, sessile_slice user)
{
    const applying *a = arg;
    sessile_retention_rule rule = rule_for(a->options, agent, user);

    return (purge_rule){.sessions_ms = rule.sessions_ms,
                        .deleted_ms = rule.deleted_ms ? rule.deleted_ms : -1};
}

static sessile_status of_memory(void *arg, memory_core *m, sessile_error *err)
{
    applying *a = arg;
    int64_t keep = rule_for(a->options, (sessile_slice){m->agent, m->agent_size},
                            (sessile_slice){m->user, m->user_size})
                       .memory_ms;
    sessile_memory_erase_options o = {.written_before_ms = a->now_ms - keep};
    sessile_error why = {0};
    uint64_t due;
    size_t erased = 0;
    sessile_status status;

    if (!keep)
        return SESSILE_OK;
    status = memory_count_before(m, o.written_before_ms, &due, err);
    if (status || !due)
        return status;
    status = memory_check_removal(m, &why);
    if (!status && !a->options->dry_run)
        status = memory_erase(m, &o, &erased, &why);
    if (status == SESSILE_DENIED && !strncmp(why.rule, "hold:", 5)) {
        a->out->held++;
        return SESSILE_OK;
    }
    if (status) {
        if (err)
            *err = why;
        return status;
    }
    a->out->entries += a->options->dry_run ? due : erased;
    return SESSILE_OK;
}

static sessile_status check_rules(const sessile_retention_options *o, sessile_error *err)
{
    for (size_t i = 0; i < o->count; i++) {
        const sessile_retention_rule *r = &o->rules[i];
        if (r->agent.size && r->user.size)
            return fail(err, SESSILE_INVALID,
                        "a rule of retention is for an agent, for a user or for all");
        if (r->sessions_ms < -1 || r->deleted_ms < -1 || r->memory_ms < -1)
            return fail(err, SESSILE_INVALID, "a time of a retention is negative");
    }
    return o->audit_ms < 0
               ? fail(err, SESSILE_INVALID, "a time of a retention is negative")
               : SESSILE_OK;
}

/* Logs of the audit. Without one there is nothing to do. */
static sessile_status of_audit(store_core *st, audit_log *given, const applying *a,
                               sessile_error *err)
{
    const audit_retention o = {.before_ms = a->now_ms - a->options->audit_ms,
                               .dry_run = a->options->dry_run,
                               .guarded = st};
    sessile_error why = {0};
    audit_retained out = {0};
    audit_log *own = NULL;
    sessile_status status = given ? SESSILE_OK : audit_open(&own, st, NULL, &why);

    if (!status)
        status = audit_retain(given ? given : own, given ? audit_store(given) : st, &o,
                              &out, &why);
    (void)audit_close(own, NULL);
    a->out->audit_logs = out.removed;
    a->out->audit_held = out.held;
    if (!status || (!given && status == SESSILE_UNSUPPORTED) ||
        status == SESSILE_NOTFOUND)
        return SESSILE_OK;
    return fail(err, status, "%s", why.message);
}

sessile_status purge_retention(store_core *st, audit_log *audit,
                               const sessile_retention_options *options,
                               sessile_retained *out, sessile_error *err)
{
    const sessile_list_options all = {
        .lives = 1u << SESSILE_LIFE_ACTIVE | 1u << SESSILE_LIFE_SUSPENDED |
                 1u << SESSILE_LIFE_ARCHIVED | 1u << SESSILE_LIFE_EXPIRED |
                 1u << SESSILE_LIFE_DELETED};
    applying a = {options, out, st->os->now_ms(st->os->ud)};
    sessile_listed *rows = NULL;
    size_t count = 0;
    sessile_status status = check_rules(options, err);

    if (!status)
        status = purge_sessions(st, &all, of_sessions, &a, options->dry_run, &rows,
                                &count, &out->held, err);
    for (size_t i = 0; i < count; i++)
        out->bytes += rows[i].bytes;
    out->sessions = count;
    host_free(rows);
    if (!status)
        status =
            memories_each(st, (sessile_slice){NULL, 0}, of_memory, &a, &out->closed, err);
    if (!status && options->audit_ms)
        status = of_audit(st, audit, &a, err);
    return status;
}

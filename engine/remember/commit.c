/*
 * commit.c: judges a proposal on each memory as it is, and writes it.
 *
 * In each memory, one commit: what is written, what ends, and how far the session was
 * heard; or, of a proposal that breaks a law, the refusal alone. How far it was heard
 * does not move then, so that a policy that was mended hears the same again.
 *
 * What goes to another memory than the target is judged and written while the target is
 * locked and was judged: nothing is written to either unless both may be. If the power
 * fails between the two, the other one has its entries and the session was not heard.
 * So of two memories the target is locked first, which is the user's; recalls, too, lock
 * in that order.
 */
#include "remember/proposal.h"

#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "memory/kinds.h"

typedef struct committing {
    proposal *p;
    size_t memory; /* the other one, when it is written */
    int dry;
    int other_done; /* that was written */
    proposal_author_of author;
    void *arg;
    buf *metadata; /* of each proposed entry, checked */
} committing;

/* ------------------------------------------------------------------ metadata */

/* Appends the reason why an entry waits, and what it contradicts. */
static void put_waiting(buf *out, const proposed *x)
{
    buf_puts(out, "\"pending_because\":");
    if (x->contradicts)
        json_put_cstring(out, "it contradicts what a higher source said");
    else
        json_put_string(out, x->why.data ? x->why.data : "", x->why.size);
    if (!x->contradicted.count)
        return;
    buf_puts(out, ",\"contradicts\":");
    memory_put_ids(out, x->contradicted.at, x->contradicted.count);
}

/* 1: the host says itself why its entry waits, or there is nothing to say. */
static int is_said(const proposed *x, const buf *given)
{
    return !x->why.size ||
           json_get(json_of(given->data, given->size), "pending_because").type !=
               JSON_NONE;
}

/* The metadata of an entry, with what the engine says of one that waits, or that has
 * less trust than was proposed. */
static void put_metadata(buf *out, const proposed *x, const buf *given)
{
    int is_empty = given->size <= 2;

    if ((!x->entry.pending && !x->lowered) || (x->is_host && is_said(x, given))) {
        buf_put(out, given->data, given->size);
        return;
    }
    buf_putc(out, '{');
    if (x->entry.pending)
        put_waiting(out, x);
    if (x->lowered)
        buf_printf(out, "%s\"lowered\":true", x->entry.pending ? "," : "");
    if (!is_empty)
        buf_putc(out, ',');
    buf_put(out, is_empty ? "}" : given->data + 1, is_empty ? 1 : given->size - 1);
}

/* ------------------------------------------------------------------ entries */

static void put_author(buf *out, const proposal_author *author)
{
    buf_puts(out, "{\"name\":");
    json_put_cstring(out, author->name);
    buf_printf(out, ",\"version\":%lld,\"hash\":\"%s\"}", (long long)author->version,
               author->hash);
}

/* rule: of the screen that refused an entry, or "". */
static void add_refusal(memory_core *m, batch *b, memory_law law, const char *rule,
                        const char *message, const proposal_author *author)
{
    buf data;

    buf_init(&data, b->alloc);
    buf_puts(&data, "{\"policy\":");
    put_author(&data, author);
    if (author->hook[0])
        buf_printf(&data, ",\"hook\":\"%s\"", author->hook);
    if (law)
        buf_printf(&data, ",\"law\":%d", (int)law);
    if (rule[0])
        buf_printf(&data, ",\"rule\":\"%s\"", rule);
    buf_puts(&data, ",\"message\":");
    json_put_string(&data, message, utf8_floor(message, strlen(message), 4000));
    buf_putc(&data, '}');
    memory_add(m, b, ENTRY_REFUSAL, SOURCE_HOST, (sessile_slice){NULL, 0}, &data);
    buf_wipe(&data);
}

static void add_heard(committing *c, memory_core *m, batch *b)
{
    const session_core *s = c->p->session;
    buf data;

    buf_init(&data, b->alloc);
    buf_puts(&data, "{\"session\":");
    header_put_name(&data, (sessile_slice){s->identity.id, s->identity.id_size});
    buf_puts(&data, ",\"nonce\":");
    json_put_cstring(&data, s->header.nonce);
    buf_puts(&data, ",\"upto\":");
    memory_put_id(&data, c->p->heard.upto);
    buf_putc(&data, '}');
    memory_add(m, b, ENTRY_HEARD, SOURCE_HOST, (sessile_slice){NULL, 0}, &data);
    buf_deinit(&data);
}

static sessile_status add_one(committing *c, size_t i, memory_core *m, batch *b,
                              sessile_error *err)
{
    static const sessile_memory_verdict_kind verdicts[] = {
        [PROPOSED_DELETE] = SESSILE_MEMORY_DELETE,
        [PROPOSED_CONFIRM] = SESSILE_MEMORY_CONFIRM};
    proposed *x = &c->p->at[i];
    proposal_author author = c->author(c->arg, x->step);
    buf metadata, policy;

    if (x->kind != PROPOSED_WRITE)
        return memory_add_verdicts(m, b, x->ids.at, x->ids.count, verdicts[x->kind],
                                   (sessile_slice){x->why.data, x->why.size},
                                   slice_of(author.name), err);
    buf_init(&metadata, b->alloc);
    buf_init(&policy, b->alloc);
    x->entry.from = x->sources;
    x->entry.from_count = x->source_count;
    x->entry.replaces = x->ids.at;
    x->entry.replace_count = x->ids.count;
    if (x->is_host) {
        sessile_status status = memory_check_was(m, &x->entry, b->now_ms, err);
        if (status)
            return status;
    }
    put_metadata(&metadata, x, &c->metadata[i]);
    if (!x->is_host)
        put_author(&policy, &author);
    x->id =
        memory_add_entry(m, b, &x->entry, (sessile_slice){metadata.data, metadata.size},
                         (sessile_slice){policy.data, policy.size});
    if (metadata.failed || policy.failed)
        b->text.failed = 1;
    buf_deinit(&metadata);
    buf_deinit(&policy);
    return SESSILE_OK;
}

/* Judges what goes to a memory on the memory as it is. */
static sessile_status judge(committing *c, size_t memory, memory_core *m, int64_t now_ms,
                            sessile_error *err)
{
    proposal *p = c->p;
    size_t writes = 0;

    for (size_t i = 0; i < p->count; i++)
        if (p->at[i].memory == memory) {
            p->at[i].id = SESSILE_NO_ID;
            writes += p->at[i].kind == PROPOSED_WRITE;
        }
    if (writes && m->fold->states.count + writes > m->store->limits.memory_entries)
        return fail(err, SESSILE_LIMIT,
                    "this memory has %zu entries, the limit [memory_entries] is %llu: "
                    "erase ended ones",
                    m->fold->states.count,
                    (unsigned long long)m->store->limits.memory_entries);
    return proposal_judge(p, memory, now_ms, err);
}

static sessile_status add_all(committing *c, size_t memory, memory_core *m, batch *b,
                              sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    for (size_t i = 0; !status && i < c->p->count; i++) {
        proposed *x = &c->p->at[i];
        if (x->memory == memory && x->rule[0] && !c->dry) {
            proposal_author author = c->author(c->arg, x->step);
            add_refusal(m, b, MEMORY_LAW_NONE, x->rule, x->why.data, &author);
        }
        if (x->memory != memory || x->state != PROPOSED_GOOD)
            continue;
        x->entry.pending = x->waits || x->contradicts;
        if (!c->dry)
            status = add_one(c, i, m, b, err);
    }
    return status;
}

/* A memory_build, of the other memory. */
static sessile_status build_other(void *arg, memory_core *m, batch *b, sessile_error *err)
{
    committing *c = arg;
    sessile_status status = judge(c, c->memory, m, b->now_ms, err);
    return status || c->p->broken ? status : add_all(c, c->memory, m, b, err);
}

/* What goes to other memories, while the target is locked. */
static sessile_status write_others(committing *c, sessile_error *err)
{
    proposal *p = c->p;
    sessile_status status = SESSILE_OK;

    for (size_t i = 0; !status && !p->broken && !c->other_done && i < p->count; i++) {
        if (p->at[i].memory == p->target)
            continue;
        c->memory = p->at[i].memory; /* there are two at most */
        status = memory_commit(p->memories[c->memory], build_other, c, err);
        c->other_done = !status && !p->broken;
    }
    return status;
}

static proposal_author culprit(const committing *c)
{
    const proposal *p = c->p;
    return c->author(c->arg, p->culprit < p->count ? p->at[p->culprit].step : 0);
}

/* A memory_build, of the target: may be called again. */
static sessile_status build(void *arg, memory_core *m, batch *b, sessile_error *err)
{
    committing *c = arg;
    proposal *p = c->p;
    sessile_status status;

    p->broken = MEMORY_LAW_NONE;
    p->refusal = SESSILE_NO_ID;
    status = judge(c, p->target, m, b->now_ms, err);
    if (!status && !p->is_stale)
        status = write_others(c, err);
    if (status || p->is_stale)
        return status;
    if (p->broken) {
        proposal_author author = culprit(c);
        p->refusal = c->dry ? SESSILE_NO_ID : batch_next(b);
        if (!c->dry)
            add_refusal(m, b, p->broken, "", p->message, &author);
        return SESSILE_OK;
    }
    status = add_all(c, p->target, m, b, err);
    if (!status && !c->dry && p->heard.moves)
        add_heard(c, m, b);
    return status;
}

/* ------------------------------------------------------------------ all of it */

/* What a screen refuses is left out and recorded, and the rest is written: a text that
 * is refused each time must not keep a session from being heard. */
static sessile_status leave_out(proposed *x, const sessile_error *why, sessile_error *err)
{
    x->state = PROPOSED_NOT_ADMITTED;
    memcpy(x->rule, why->rule, sizeof x->rule);
    buf_clear(&x->why);
    buf_puts(&x->why, why->message);
    buf_putc(&x->why, 0);
    if (x->why.failed)
        return fail_nomem(err);
    x->why.size--;
    return SESSILE_OK;
}

static sessile_status screen_one(committing *c, size_t i, sessile_error *err)
{
    proposed *x = &c->p->at[i];
    sessile_error why = {0};
    sessile_status status;

    if (x->state == PROPOSED_NOT_ADMITTED)
        return SESSILE_OK;
    status = x->kind == PROPOSED_WRITE
                 ? memory_screen_entry(c->p->store, &x->entry, &x->words, &c->metadata[i],
                                       &why)
                 : memory_screen_fixed(c->p->store, "the reason",
                                       (sessile_slice){x->why.data, x->why.size},
                                       SESSILE_SCREEN_BY_AGENT, &why);
    if (status == SESSILE_DENIED && !x->is_host)
        return leave_out(x, &why, err);
    if (status && err)
        *err = why;
    return status;
}

static sessile_status check_entries(committing *c, sessile_error *err)
{
    proposal *p = c->p;
    sessile_status status = SESSILE_OK;

    for (size_t i = 0; !status && i < p->count; i++) {
        const proposed *x = &p->at[i];
        if (x->kind == PROPOSED_WRITE)
            status = memory_check_entry(p->memories[x->memory], &x->entry, err);
        if (!status && x->kind == PROPOSED_WRITE)
            status =
                session_check_metadata(&c->metadata[i], p->store, x->entry.metadata, err);
        if (status && status != SESSILE_NOMEM && !x->is_host) {
            proposal_break(p, MEMORY_LAW_BOUNDS, i, "%s", err ? err->message : "");
            return SESSILE_OK;
        }
        if (!status)
            status = screen_one(c, i, err);
    }
    return status;
}

/* Counts what was written and ended, for the laws of a run. */
static void count_written(proposal *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->at[i].state == PROPOSED_GOOD) {
            p->written += p->at[i].kind == PROPOSED_WRITE;
            p->ended += p->at[i].ends;
        }
}

sessile_status proposal_commit(proposal *p, int dry, proposal_author_of author, void *arg,
                               sessile_error *err)
{
    committing c = {.p = p, .dry = dry, .author = author, .arg = arg};
    size_t count = p->count;
    sessile_status status = SESSILE_OK;

    c.metadata = mem_alloc(p->alloc, (count + 1) * sizeof *c.metadata);
    if (!c.metadata)
        return fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        buf_init(&c.metadata[i], p->alloc);
    if (!p->broken)
        status = check_entries(&c, err);
    if (!status && p->broken) {
        proposal_author by = culprit(&c);
        status = proposal_refuse(p, p->broken, p->message, dry, &by, err);
    } else if (!status) {
        status = memory_commit(p->memories[p->target], build, &c, err);
        if (!status && !p->broken && !p->is_stale)
            count_written(p);
    }
    for (size_t i = 0; i < count; i++)
        buf_wipe(&c.metadata[i]);
    mem_free(p->alloc, c.metadata, (count + 1) * sizeof *c.metadata);
    return status;
}

typedef struct refusing {
    memory_law law;
    const char *message;
    const proposal_author *author;
    sessile_id id;
} refusing;

static sessile_status build_refusal(void *arg, memory_core *m, batch *b,
                                    sessile_error *err)
{
    refusing *r = arg;
    sessile_status status = memory_check_consent(m, err);
    if (status)
        return status;
    r->id = batch_next(b);
    add_refusal(m, b, r->law, "", r->message, r->author);
    return SESSILE_OK;
}

sessile_status proposal_refuse(proposal *p, memory_law law, const char *message, int dry,
                               const proposal_author *author, sessile_error *err)
{
    refusing r = {law, message, author, SESSILE_NO_ID};
    sessile_status status =
        dry ? SESSILE_OK : memory_commit(p->memories[p->target], build_refusal, &r, err);
    p->refusal = status ? SESSILE_NO_ID : r.id;
    return status;
}

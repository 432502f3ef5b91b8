/*
 * laws.c: what a proposal may end: law 3, judged on a memory as it is.
 *
 * The memory is locked. A change that builds on an entry which was shown and has changed
 * since is stale, and is left out. A change that would end an entry which was never shown
 * or is pinned, or one entry too many, breaks the law; then all of the proposal is
 * refused. When another process has written meanwhile, the proposal is judged again from
 * the beginning.
 */
#include "remember/proposal.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

/* A run may end this many entries, or a tenth of the live ones. */
#define ENDS_ALWAYS 5

typedef struct judging_run {
    proposal *p;
    memory_core *m;
    size_t memory;
    int64_t now_ms;
    entry_ids ended; /* by this proposal */
} judging_run;

size_t proposal_most_ends(const proposal *p, const memory_core *m)
{
    size_t tenth = (m->fold->states.live_count + p->ended) / 10;
    return tenth > ENDS_ALWAYS ? tenth : ENDS_ALWAYS;
}

static int is_in(const entry_ids *l, sessile_id id)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->at[i] == id)
            return 1;
    return 0;
}

static void make_stale(proposed *x, const char *why)
{
    x->state = PROPOSED_STALE;
    x->stale = why;
}

/* Whose word it is: of an entry that a person has approved, at least the user's. */
static sessile_memory_source standing(const memory_record *r)
{
    return r->flags & RECORD_APPROVED && r->source != SESSILE_MEMORY_BY_SYSTEM
               ? SESSILE_MEMORY_BY_USER
               : (sessile_memory_source)r->source;
}

/* One entry that x would end. 1: it may; 0: x is stale, or the law is broken. */
static int may_end(judging_run *j, size_t index, sessile_id id, int is_key)
{
    const states *s = &j->m->fold->states;
    proposal *p = j->p;
    proposed *x = &p->at[index];
    uint32_t record = states_find(s, id);

    if (record == STATE_NONE || states_of(s, record, j->now_ms) != SESSILE_MEMORY_LIVE) {
        make_stale(x, "an entry that it is about is not live any more");
    } else if (is_in(&j->ended, id)) {
        make_stale(x, "another entry of the same run stands in that place");
    } else if (!proposal_has_shown(p, j->memory, id)) {
        if (id >= p->seen[j->memory])
            make_stale(x, "its key was written by somebody else meanwhile");
        else
            proposal_break(p, MEMORY_LAW_OVERREACH, index,
                           "%s entry %08" PRIx32 ", which the policy was not shown: read "
                           "it first",
                           is_key ? "its key has the live" : "it is about", id);
    } else if (x->kind == PROPOSED_CONFIRM) {
        return 1;
    } else if (s->records[record].flags & RECORD_PINNED) {
        proposal_break(p, MEMORY_LAW_OVERREACH, index,
                       "it would end entry %08" PRIx32 ", which is pinned", id);
    } else if (x->kind == PROPOSED_DELETE &&
               !memory_trusts(SESSILE_MEMORY_BY_AGENT, standing(&s->records[record]))) {
        proposal_break(p, MEMORY_LAW_OVERREACH, index,
                       "it would delete entry %08" PRIx32 ", which is not the agent's: "
                       "write what is right now, and let a person decide",
                       id);
    } else {
        return 1;
    }
    return 0;
}

/* An entry of a higher source is not replaced: the newcomer waits, and says what it
 * contradicts. */
static int contradict(judging_run *j, proposed *x, sessile_id id)
{
    const states *s = &j->m->fold->states;
    uint32_t record = states_find(s, id);

    if (memory_trusts(x->entry.source, standing(&s->records[record])))
        return 0;
    x->contradicts = 1;
    return entry_ids_add(&x->contradicted, id, j->p->alloc);
}

/* 1: the entries that it was concluded from are live, as far as they are of this memory.
 */
static int stands_on_live(const judging_run *j, const proposed *x)
{
    const states *s = &j->m->fold->states;
    for (size_t i = 0; x->of_memory == j->memory && i < x->of.count; i++) {
        uint32_t record = states_find(s, x->of.at[i]);
        if (record == STATE_NONE ||
            states_of(s, record, j->now_ms) != SESSILE_MEMORY_LIVE)
            return 0;
    }
    return 1;
}

/* 1: an entry of the run that comes before it takes its key. */
static int key_is_taken(const judging_run *j, size_t index)
{
    const proposed *x = &j->p->at[index];
    for (size_t i = 0; x->entry.key.size && i < index; i++) {
        const proposed *other = &j->p->at[i];
        if (other->kind == PROPOSED_WRITE && other->memory == j->memory &&
            !other->is_host && other->state == PROPOSED_GOOD && !other->waits &&
            !other->contradicts && other->entry.key.size == x->entry.key.size &&
            memcmp(other->entry.key.data, x->entry.key.data, x->entry.key.size) == 0)
            return 1;
    }
    return 0;
}

static int judge_write(judging_run *j, size_t index)
{
    const states *s = &j->m->fold->states;
    proposed *x = &j->p->at[index];
    uint32_t holder = STATE_NONE;
    size_t before = j->ended.count;

    x->contradicts = 0;
    x->contradicted.count = 0;
    x->holder = SESSILE_NO_ID;
    x->ends = 0;
    if (!stands_on_live(j, x))
        make_stale(x, "an entry that it is from is not live any more");
    else if (key_is_taken(j, index))
        make_stale(x, "another entry of the same run has its key");
    if (x->state != PROPOSED_GOOD)
        return 0;
    if (x->entry.key.size)
        holder = states_holder(s, states_slot(s, x->entry.key), j->now_ms);
    for (size_t i = 0; i <= x->ids.count; i++) {
        int is_key = i == x->ids.count;
        sessile_id id;
        if (is_key && (holder == STATE_NONE || is_in(&x->ids, s->records[holder].id)))
            continue;
        id = is_key ? s->records[holder].id : x->ids.at[i];
        if (is_key)
            x->holder = id;
        if (!may_end(j, index, id, is_key)) {
            j->ended.count = before;
            return 0;
        }
        if (contradict(j, x, id) || entry_ids_add(&j->ended, id, j->p->alloc))
            return -1;
    }
    if (x->contradicts || x->waits)
        j->ended.count = before; /* nothing ends until somebody approves it */
    x->ends = j->ended.count - before;
    return 0;
}

static int judge_verdict(judging_run *j, size_t index)
{
    proposed *x = &j->p->at[index];
    size_t before = j->ended.count;

    for (size_t i = 0; i < x->ids.count; i++) {
        if (!may_end(j, index, x->ids.at[i], 0)) {
            j->ended.count = before;
            return 0;
        }
        if (x->kind == PROPOSED_DELETE &&
            entry_ids_add(&j->ended, x->ids.at[i], j->p->alloc))
            return -1;
    }
    x->ends = j->ended.count - before;
    return 0;
}

static sessile_status judge_heard(judging_run *j, sessile_error *err)
{
    sessile_id upto;
    sessile_status status;

    if (!j->p->heard.moves || j->memory != j->p->target)
        return SESSILE_OK;
    status = proposal_heard(j->p, &upto, err);
    j->p->is_stale = !status && upto != j->p->heard.from;
    return status;
}

sessile_status proposal_judge(proposal *p, size_t memory, int64_t now_ms,
                              sessile_error *err)
{
    judging_run j = {
        .p = p, .m = p->memories[memory], .memory = memory, .now_ms = now_ms};
    sessile_status status = memory_check_consent(j.m, err);
    size_t most = proposal_most_ends(p, j.m);
    int failed = 0;

    if (!status)
        status = judge_heard(&j, err);
    for (size_t i = 0; !status && !failed && !p->broken && i < p->count; i++) {
        proposed *x = &p->at[i];
        if (x->memory != memory || x->is_host || x->state == PROPOSED_NOT_ADMITTED)
            continue;
        x->state = PROPOSED_GOOD;
        x->ends = 0;
        failed = x->kind == PROPOSED_WRITE ? judge_write(&j, i) : judge_verdict(&j, i);
    }
    if (!status && j.ended.count && p->ended + j.ended.count > most)
        proposal_break(p, MEMORY_LAW_OVERREACH, p->count,
                       "it would end %zu of %zu live entries; a run may end %zu",
                       p->ended + j.ended.count, j.m->fold->states.live_count + p->ended,
                       most);
    mem_free(p->alloc, j.ended.at, j.ended.capacity * sizeof *j.ended.at);
    return status ? status : failed ? fail_nomem(err) : SESSILE_OK;
}

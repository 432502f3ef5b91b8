/*
 * test_uncompact.c: compactions taken back, against a model, and what is said of them.
 *
 * The model knows no lists: a compaction is a set of groups (a message written and what
 * it stands for, or a message that is lost), each on or off, and the context is what is
 * left of the path when the groups that are on are applied in their order. Taking a
 * compaction back turns groups off, taking that back turns them on. It is rebuilt from
 * the path after every operation.
 *
 * SEED=n runs one seed. A failure prints it.
 */
#include "guard/enter.h"
#include "support/sessions.h"
#include "session/fold.h"
#include "history/history.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPS = 60, GROUPS = 600, MEMBERS = 24, KEYS = 400, CHAIN = 64 };

/* ------------------------------------------------------------------ the model */

typedef struct group {
    sessile_id at;   /* the compaction that made it */
    sessile_key put; /* n 0: none: its one member is lost */
    sessile_key members[MEMBERS];
    size_t member_count;
    int on;
    /* the operations that made it what it is, newest first; and as it was before each */
    sessile_id chain[CHAIN];
    size_t chain_count;
    struct {
        sessile_id op;
        sessile_id chain[CHAIN];
        size_t chain_count;
    } was[CHAIN];
    size_t was_count;
} group;

typedef struct op {
    sessile_id id, parent;
    enum { OP_SAY, OP_COMPACT, OP_UNDO } kind;
    sessile_id target; /* OP_UNDO */
    size_t first_group, group_count;
} op;

typedef struct model {
    op ops[2 * OPS];
    size_t op_count;
    group groups[GROUPS];
    size_t group_count;
    sessile_key set[KEYS]; /* the context, in no order */
    size_t set_count;
    uint64_t random, seed;
} model;

static uint32_t draw(model *m, uint32_t below)
{
    uint64_t z = m->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return below ? (uint32_t)((z ^ z >> 31) % below) : 0;
}

static int same(sessile_key a, sessile_key b)
{
    return a.entry == b.entry && a.n == b.n;
}

static int has(const model *m, sessile_key key)
{
    for (size_t i = 0; i < m->set_count; i++)
        if (same(m->set[i], key))
            return 1;
    return 0;
}

static void set_add(model *m, sessile_key key)
{
    assert_false(has(m, key));
    m->set[m->set_count++] = key;
}

static void set_remove(model *m, sessile_key key)
{
    for (size_t i = 0; i < m->set_count; i++)
        if (same(m->set[i], key)) {
            m->set[i] = m->set[--m->set_count];
            return;
        }
    fail_msg("SEED=%" PRIu64 ": the model has lost %08x.%u", m->seed, key.entry, key.n);
}

static const op *op_of(const model *m, sessile_id id)
{
    for (size_t i = 0; i < m->op_count; i++)
        if (m->ops[i].id == id)
            return &m->ops[i];
    return NULL;
}

/* The path to leaf, oldest first; head facts and the like are not in it. */
static size_t path_of(const model *m, sessile_id leaf, const op *out[2 * OPS])
{
    size_t count = 0;
    const op *o;

    for (o = op_of(m, leaf); o; o = op_of(m, o->parent))
        out[count++] = o;
    for (size_t i = 0; i < count / 2; i++) {
        o = out[i];
        out[i] = out[count - 1 - i];
        out[count - 1 - i] = o;
    }
    return count;
}

/* The set that the groups make, up to the count-th operation of a path. */
static void apply(model *m, const op *const *path, size_t count)
{
    m->set_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (path[i]->kind == OP_SAY)
            set_add(m, (sessile_key){path[i]->id, 0});
        for (size_t k = 0; k < path[i]->group_count; k++) {
            const group *g = &m->groups[path[i]->first_group + k];
            for (size_t j = 0; g->on && j < g->member_count; j++)
                set_remove(m, g->members[j]);
            if (g->on && g->put.n)
                set_add(m, g->put);
        }
    }
}

static int in_chain(const group *g, sessile_id id)
{
    for (size_t i = 0; i < g->chain_count; i++)
        if (g->chain[i] == id)
            return 1;
    return 0;
}

/* Whether what operation `id` did to the group is so to this day. */
static int in_force(const model *m, const group *g, sessile_id id)
{
    if (!in_chain(g, id))
        return 0;
    if (g->on)
        return !g->put.n || has(m, g->put);
    for (size_t i = 0; i < g->member_count; i++)
        if (!has(m, g->members[i]))
            return 0;
    return 1;
}

/* Notes how the group was before operation `id` touched it, and what made it what it is
 * now: that operation, and what did before `back` (0: nothing). */
static void touch(group *g, sessile_id id, sessile_id back)
{
    sessile_id before[CHAIN];
    size_t count = 0;

    for (size_t i = 0; back && i < g->was_count; i++)
        if (g->was[i].op == back) {
            count = g->was[i].chain_count;
            memcpy(before, g->was[i].chain, sizeof before);
        }
    assert_true(g->was_count < CHAIN && count + 1 < CHAIN);
    g->was[g->was_count].op = id;
    g->was[g->was_count].chain_count = g->chain_count;
    memcpy(g->was[g->was_count++].chain, g->chain, sizeof g->chain);
    g->chain[0] = id;
    memcpy(g->chain + 1, before, count * sizeof *before);
    g->chain_count = count + 1;
    g->on = !g->on;
}

/* Everything that holds of `target`, and was touched by it, is turned round. Returns how
 * many groups. */
static size_t undo(model *m, const op *const *path, size_t count, sessile_id id,
                   sessile_id target)
{
    int turn[GROUPS] = {0};
    size_t turned = 0;

    apply(m, path, count);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < path[i]->group_count; k++)
            turn[path[i]->first_group + k] =
                in_force(m, &m->groups[path[i]->first_group + k], target);
    for (size_t i = 0; i < GROUPS; i++)
        if (turn[i]) {
            turned++;
            if (id)
                touch(&m->groups[i], id, target);
        }
    return turned;
}

/* The state of the model at a leaf; path filled. */
static size_t rebuild(model *m, sessile_id leaf, const op *path[2 * OPS])
{
    size_t count = path_of(m, leaf, path);

    for (size_t i = 0; i < m->group_count; i++)
        m->groups[i].on = 0, m->groups[i].chain_count = m->groups[i].was_count = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < path[i]->group_count; k++)
            touch(&m->groups[path[i]->first_group + k], path[i]->id, 0);
        if (path[i]->kind == OP_UNDO)
            undo(m, path, i, path[i]->id, path[i]->target);
    }
    apply(m, path, count);
    return count;
}

static op *note(model *m, sessile_id id, sessile_id parent, int kind)
{
    op *o = &m->ops[m->op_count++];

    assert_true(m->op_count < 2 * OPS);
    memset(o, 0, sizeof *o);
    o->id = id;
    o->parent = parent;
    o->kind = kind;
    o->first_group = m->group_count;
    return o;
}

static group *note_group(model *m, op *o, sessile_key put)
{
    group *g = &m->groups[m->group_count++];

    assert_true(m->group_count < GROUPS);
    memset(g, 0, sizeof *g);
    g->at = o->id;
    g->put = put;
    o->group_count++;
    return g;
}

/* ------------------------------------------------------------------ operations */

static size_t keys_now(sessile_session *s, sessile_key out[KEYS])
{
    const context *c;
    sessile_error err;
    size_t count;

    assert_int_equal(session_lock(s->core, &err), SESSILE_OK);
    assert_int_equal(session_refresh_locked(s->core, &err), SESSILE_OK);
    if (session_context_locked(s->core, &c, &err))
        fail_msg("%s", err.message);
    count = c->count;
    assert_true(count < KEYS);
    for (size_t i = 0; i < count; i++)
        out[i] = c->items[i].key;
    session_unlock(s->core);
    return count;
}

static void do_say(model *m, sessile_session *s, const char *role)
{
    sessile_id parent = s->core->tree.head;
    char text[64];

    snprintf(text, sizeof text, "said %u", draw(m, 1000));
    note(m, say(s, role, text), parent, OP_SAY);
}

static void print_keys(buf *out, const sessile_key *keys, size_t count)
{
    char name[SESSILE_KEY_SIZE];

    buf_putc(out, '[');
    for (size_t i = 0; i < count; i++) {
        sessile_key_print(keys[i], name);
        buf_printf(out, "%s\"%s\"", i ? "," : "", name);
    }
    buf_putc(out, ']');
}

/* A compaction as a policy would make it, of random groups; one put in three stands
 * somewhere else than what it covers stood. */
static void do_compact(model *m, sessile_session *s)
{
    sessile_key before[KEYS], out[KEYS];
    size_t count = keys_now(s, before), kept = 0, n = 0;
    sessile_id self = (sessile_id)log_count(s->core->log);
    op *o = note(m, self, s->core->tree.head, OP_COMPACT);
    buf data, inserted;

    buf_init(&data, &allocator_default);
    buf_init(&inserted, &allocator_default);
    for (size_t i = 0; i < count;) {
        uint32_t disposition = draw(m, 12);
        size_t run = disposition < 3 ? 1 + draw(m, 4) : 1;
        run = run > count - i ? count - i : run;
        if (disposition < 4) { /* covered, or (a run of one) replaced */
            sessile_key put = {self, (uint32_t)++n};
            group *g = note_group(m, o, put);
            for (size_t k = 0; k < run; k++)
                g->members[g->member_count++] = before[i + k];
            buf_printf(&inserted,
                       "%s{\"n\":%zu,\"turn\":0,\"tokens\":[3,\"estimate\"],\"%s\":",
                       n > 1 ? "," : "", n, run == 1 ? "replaces" : "covers");
            print_keys(&inserted, g->members, g->member_count);
            buf_puts(&inserted, ",\"message\":{\"role\":\"user\",\"content\":\"sum\","
                                "\"metadata\":{\"kind\":\"summary\"}}}");
            out[kept++] = put;
        } else if (disposition == 4) {
            group *g = note_group(m, o, (sessile_key){0, 0});
            g->members[g->member_count++] = before[i];
        } else {
            out[kept++] = before[i];
        }
        i += run;
    }
    for (size_t i = 1; i < kept; i++)
        if (out[i].entry == self && draw(m, 3) == 0) {
            sessile_key moved = out[i];
            size_t to = draw(m, (uint32_t)i);
            memmove(out + to + 1, out + to, (i - to) * sizeof *out);
            out[to] = moved;
        }
    buf_puts(&data, "{\"context\":");
    print_keys(&data, out, kept);
    buf_printf(&data,
               ",\"upto\":\"%08" PRIx32 "\",\"inserted\":[%s],\"policy\":[{\"name\":"
               "\"random\",\"version\":3}],\"reason\":\"turn\"}",
               s->core->tree.head, inserted.size ? inserted.data : "");
    assert_int_equal(put_entry(s, "compaction", SESSILE_NO_ID, data.data), self);
    buf_deinit(&data);
    buf_deinit(&inserted);
}

/* A compaction of the path, or what is none. */
static sessile_id random_target(model *m, sessile_id head)
{
    const op *path[2 * OPS];
    size_t count = path_of(m, head, path);

    for (int tries = 0; tries < 8 && count; tries++) {
        const op *o = path[draw(m, (uint32_t)count)];
        if (o->kind != OP_SAY)
            return o->id;
    }
    return SESSILE_NO_ID;
}

/* What was taken back at once is the list that it was, in its order. */
static void is_what_it_was(const model *m, sessile_session *s, sessile_id before)
{
    context c;
    sessile_error err;
    sessile_key now[KEYS];
    size_t count = keys_now(s, now);

    context_init(&c, &allocator_default);
    assert_int_equal(session_lock(s->core, &err), SESSILE_OK);
    assert_int_equal(session_context_at_locked(s->core, before, &c, &err), SESSILE_OK);
    session_unlock(s->core);
    assert_int_equal(count, c.count);
    for (size_t i = 0; i < count; i++)
        if (!same(now[i], c.items[i].key))
            fail_msg("SEED=%" PRIu64 ": at %08x item %zu is %08x.%u, not %08x.%u",
                     m->seed, s->core->tree.head, i, now[i].entry, now[i].n,
                     c.items[i].key.entry, c.items[i].key.n);
    context_deinit(&c);
}

static void do_undo(model *m, sessile_session *s, sessile_id target)
{
    const op *path[2 * OPS];
    size_t count = rebuild(m, s->core->tree.head, path), turned;
    sessile_id parent = s->core->tree.head;
    sessile_uncompacted *out;
    sessile_status status;
    sessile_error err;

    if (target == SESSILE_NO_ID)
        return;
    turned = undo(m, path, count, 0, target);
    if (draw(m, 4) == 0) {
        status = sessile_uncompact(s, target, 1, &out, &err);
        if (status != (turned ? SESSILE_OK : SESSILE_INVALID))
            fail_msg("SEED=%" PRIu64 ": trying %08x: %s: %s", m->seed, target,
                     sessile_status_name(status), err.message);
        if (!status)
            assert_int_equal(out->compaction, SESSILE_NO_ID);
        sessile_free(out);
        assert_int_equal(s->core->tree.head, parent);
    }
    status = sessile_uncompact(s, target, 0, &out, &err);
    if (status != (turned ? SESSILE_OK : SESSILE_INVALID))
        fail_msg("SEED=%" PRIu64 ": %08x: %s: %s", m->seed, target,
                 sessile_status_name(status), err.message);
    if (!status) {
        assert_int_equal(out->undone, target);
        note(m, out->compaction, parent, OP_UNDO)->target = target;
        if (target == parent)
            is_what_it_was(m, s, op_of(m, target)->parent);
    }
    sessile_free(out);
}

/* ------------------------------------------------------------------ comparison */

/* What the model is shown for a key: itself, what stands for it, or nothing (n.entry
 * NO_ID). */
static sessile_key shown_for(const model *m, sessile_key key)
{
    for (int again = 1; again;) {
        again = 0;
        if (has(m, key))
            return key;
        for (size_t i = 0; i < m->group_count && !again; i++) {
            const group *g = &m->groups[i];
            for (size_t k = 0; g->on && g->put.n && k < g->member_count && !again; k++)
                if (same(g->members[k], key)) {
                    key = g->put;
                    again = 1;
                }
        }
    }
    return (sessile_key){SESSILE_NO_ID, 0};
}

static void check_why(model *m, sessile_session *s, sessile_key key)
{
    sessile_explanation *e;
    sessile_key expected = shown_for(m, key);
    sessile_error err;
    char name[SESSILE_KEY_SIZE];

    sessile_key_print(key, name);
    if (sessile_why(s, key, &e, &err))
        fail_msg("SEED=%" PRIu64 ": why %s: %s", m->seed, name, err.message);
    if (!same(e->shown, expected) || e->in_context != has(m, key))
        fail_msg("SEED=%" PRIu64 ": %s is shown as %08x.%u, not %08x.%u", m->seed, name,
                 e->shown.entry, e->shown.n, expected.entry, expected.n);
    for (size_t i = 1; i < e->step_count; i++)
        assert_true(e->steps[i].at >= e->steps[i - 1].at);
    sessile_free(e);
}

static void compare(model *m, sessile_session *s)
{
    const op *path[2 * OPS];
    sessile_key now[KEYS];
    size_t count = keys_now(s, now), path_count = rebuild(m, s->core->tree.head, path);
    sessile_id last = 0;

    if (count != m->set_count)
        fail_msg("SEED=%" PRIu64 ": at %08x %zu messages, not %zu", m->seed,
                 s->core->tree.head, count, m->set_count);
    for (size_t i = 0; i < count; i++) {
        if (!has(m, now[i]))
            fail_msg("SEED=%" PRIu64 ": at %08x %08x.%u is in the context", m->seed,
                     s->core->tree.head, now[i].entry, now[i].n);
        if (now[i].n)
            continue;
        if (now[i].entry <= last)
            fail_msg("SEED=%" PRIu64 ": %08x stands behind %08x", m->seed, now[i].entry,
                     last);
        last = now[i].entry;
    }
    for (size_t i = draw(m, 3) ? path_count : 0; i < path_count; i++) {
        if (path[i]->kind == OP_SAY)
            check_why(m, s, (sessile_key){path[i]->id, 0});
        for (size_t k = 0; k < path[i]->group_count; k++)
            if (m->groups[path[i]->first_group + k].put.n)
                check_why(m, s, m->groups[path[i]->first_group + k].put);
    }
}

/* Newest first, everything is taken back: what is left is what was said. */
static void undo_everything(model *m, sessile_session *s)
{
    const op *path[2 * OPS];
    sessile_key now[KEYS];
    size_t count = path_of(m, s->core->tree.head, path), said = 0;
    sessile_error err;

    for (size_t i = count; i-- > 0;) {
        const history_step *step;
        sessile_uncompacted *out;
        history h;
        if (path[i]->kind == OP_SAY)
            continue;
        history_init(&h, &allocator_default);
        assert_int_equal(history_make(&h, s->core, s->core->tree.head, &err), SESSILE_OK);
        step = history_find(&h, path[i]->id);
        assert_non_null(step);
        if (step->count && sessile_uncompact(s, path[i]->id, 0, &out, &err))
            fail_msg("SEED=%" PRIu64 ": %s", m->seed, err.message);
        if (step->count)
            sessile_free(out);
        history_deinit(&h);
    }
    size_t left = keys_now(s, now);
    for (size_t i = 0; i < count; i++) {
        if (path[i]->kind != OP_SAY)
            continue;
        if (said >= left || !same(now[said], (sessile_key){path[i]->id, 0}))
            fail_msg("SEED=%" PRIu64 ": message %08x did not come back", m->seed,
                     path[i]->id);
        said++;
    }
    assert_int_equal(said, left);
}

static void run(uint64_t seed)
{
    static model m;
    place p;
    sessile_session *s;

    memset(&m, 0, sizeof m);
    m.seed = m.random = seed;
    place_open(&p, seed % 8 ? STORE_RAM : STORE_PLAIN);
    s = session_made(p.store, "s");
    for (int i = 0; i < OPS; i++) {
        uint32_t what = draw(&m, 20);
        if (what < 7 || i < 4)
            do_say(&m, s, i % 2 ? "assistant" : "user");
        else if (what < 11)
            do_compact(&m, s);
        else if (what < 19)
            do_undo(&m, s, random_target(&m, s->core->tree.head));
        else if (m.op_count)
            move_head(s, m.ops[draw(&m, (uint32_t)m.op_count)].id);
        compare(&m, s);
    }
    undo_everything(&m, s);
    session_closed(s);
    place_close(&p);
}

static void as_the_model_says(void **state)
{
    const char *given = getenv("SEED");

    (void)state;
    if (given) {
        run(strtoull(given, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= 40; seed++)
        run(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_model_says)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

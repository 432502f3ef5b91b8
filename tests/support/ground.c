/*
 * ground.c: handles and the account of what they acknowledged.
 *
 * Must never note as acknowledged what a host was not told.
 */
#include "support/ground.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char secret[] =
    "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/* Puts a note in the place of the oldest two messages. */
static const char cutting[] =
    "return { name = 'cutting', version = 1, truncate = function(state)\n"
    "  state.vars.n = (state.vars.n or 0) + 1\n"
    "  state:insert(1, { role = 'user', content = 'in short' }, { covers = { 1, 2 } })\n"
    "end }\n";

static void *must(void *block)
{
    if (!block)
        abort();
    return block;
}

void ground_path(const char *id, char out[128])
{
    snprintf(out, 128, GROUND_ROOT "/agents/main%s/%s.jsonl",
             strcmp(id, GROUND_MEMORY) == 0 ? ".memory" : "", id);
}

/* ---------------------------------------------------------------------- life */

void ground_open(ground *g, const scenario *s, int sealed, const os_table *os, simfs *fs)
{
    memset(g, 0, sizeof *g);
    g->fs = fs;
    g->os = simfs_table(fs);
    g->sealed = sealed;
    g->doing = s->name;
    assert_int_equal(g->os->mkdir_at(g->os->ud, -1, "/data"), 0);
    assert_int_equal(g->os->mkdir_at(g->os->ud, -1, "/policies"), 0);
    simfs_settle(fs);
    simfs_write(fs, "/policies/cutting.lua", cutting, sizeof cutting - 1);
    if (s->prepare) {
        sessile_status status = s->prepare(g);
        if (status)
            fail_msg("%s cannot be prepared: %s", s->name, g->err.message);
    }
    ground_drop_handles(g);
    simfs_settle(fs);
    g->mindless = s->mindless;
    g->os = os;
}

void ground_drop_handles(ground *g)
{
    for (int h = 0; h < GROUND_HANDLES; h++) {
        sessile_run_free(g->runs[h]);
        g->runs[h] = NULL;
    }
    sessile_policy_free(g->policy);
    g->policy = NULL;
    for (int h = 0; h < GROUND_HANDLES; h++) {
        (void)sessile_session_close(g->sessions[h], NULL);
        g->sessions[h] = NULL;
        sessile_memory_close(g->memories[h]);
        g->memories[h] = NULL;
    }
    for (int h = 0; h < GROUND_HANDLES; h++)
        ground_close_store(g, h);
}

void ground_texts_free(char **texts, size_t count)
{
    for (size_t i = 0; texts && i < count; i++)
        free(texts[i]);
    free(texts);
}

void ground_close(ground *g)
{
    ground_drop_handles(g);
    for (int i = 0; i < GROUND_LOGS; i++) {
        ground_texts_free(g->logs[i].texts, g->logs[i].count);
        free(g->logs[i].original);
    }
    memset(g, 0, sizeof *g);
}

void ground_session_options(sessile_session_options *o, const ground_log *l)
{
    sessile_session_options_init(o);
    o->id = sessile_text(l->id);
    o->user = sessile_text(l->user);
}

void ground_learn(ground *g)
{
    sessile_store *st;
    sessile_error err;
    if (ground_store_on(&st, simfs_table(g->fs), g->sealed, 0, &err))
        fail_msg("%s: %s", g->doing, err.message);
    for (int i = 0; i < GROUND_LOGS; i++) {
        ground_log *l = &g->logs[i];
        ground_view v;
        if (!l->id || l->texts)
            continue;
        if (ground_view_open(&v, st, l, 0, &err) ||
            ground_entries(&v, &l->texts, &l->count, &err) || ground_view_close(&v, &err))
            fail_msg("%s: %s", g->doing, err.message);
        if (l->original) {
            free(l->texts[l->erased]);
            l->texts[l->erased] = l->original;
            l->original = NULL;
        }
    }
    sessile_store_close(st);
}

/* Whether an entry is the one that was, or has been erased where that may be. */
static int is_entry(const ground_log *want, size_t i, const char *text)
{
    if (!want->texts[i])
        return 1;
    if (!want->erasing || i != want->erased)
        return strcmp(want->texts[i], text) == 0;
    return strstr(text, "\"erased\":true") ? !strstr(text, "common")
                                           : want->erasing == 1 && strstr(text, "common");
}

int ground_differs(const ground_log *want, char **texts, size_t count, char *why,
                   size_t size)
{
    if (count < want->acknowledged) {
        snprintf(why, size, "%s has %zu entries, %zu were acknowledged", want->id, count,
                 want->acknowledged);
        return 1;
    }
    if (count > want->count) {
        snprintf(why, size, "%s has %zu entries, no more than %zu were written", want->id,
                 count, want->count);
        return 1;
    }
    for (size_t i = 0; i < count; i++)
        if (!is_entry(want, i, texts[i])) {
            snprintf(why, size, "entry %zu of %s is\n%s\nand was\n%s", i, want->id,
                     texts[i], want->texts[i]);
            return 1;
        }
    for (size_t i = 0; i < want->whole_count; i++)
        if (count > want->wholes[i].first && count <= want->wholes[i].last) {
            snprintf(why, size, "%s has %zu entries: part of a turn, %zu to %zu",
                     want->id, count, want->wholes[i].first, want->wholes[i].last);
            return 1;
        }
    return 0;
}

/* ---------------------------------------------------------------------- the account */

static ground_log *log_of(ground *g, const char *id)
{
    for (int i = 0; i < GROUND_LOGS; i++) {
        if (!g->logs[i].id)
            g->logs[i].id = id;
        if (strcmp(g->logs[i].id, id) == 0)
            return &g->logs[i];
    }
    fail_msg("too many sessions");
    return NULL;
}

/* Entries up to `count` are safe. */
static void acknowledge(ground *g, int h, size_t count)
{
    ground_log *l = g->open[h];
    if (!g->mindless && count > l->acknowledged)
        l->acknowledged = count;
}

static void whole(ground *g, int h, size_t first, size_t last)
{
    ground_log *l = g->open[h];
    assert_true(l->whole_count < GROUND_WHOLES);
    l->wholes[l->whole_count].first = first;
    l->wholes[l->whole_count++].last = last;
}

/* ---------------------------------------------------------------------- doing */

sessile_status ground_store_on(sessile_store **out, const os_table *os, int sealed,
                               int mindless, sessile_error *err)
{
    sessile_store_options o;
    const os_table *was = os_current;
    sessile_store_options_init(&o);
    o.key_source = sealed ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
    o.key = sealed ? secret : NULL;
    o.durability = mindless ? SESSILE_NONE : SESSILE_SYNC;
    os_current = os;
    sessile_status status = sessile_open(out, GROUND_ROOT, &o, err);
    os_current = was;
    return status;
}

sessile_status ground_store(ground *g, int h)
{
    g->last = h;
    g->writing = 0;
    return ground_store_on(&g->stores[h], g->os, g->sealed, g->mindless, &g->err);
}

static sessile_status have(ground *g, int h, const char *id, int create)
{
    g->last = h;
    g->writing = 0;
    sessile_session_options o;
    ground_log *l = log_of(g, id);
    ground_session_options(&o, l);
    g->open[h] = l;
    sessile_status status =
        create ? sessile_create(&g->sessions[h], g->stores[h], &o, &g->err)
               : sessile_resume(&g->sessions[h], g->stores[h], &o, &g->err);
    if (!status && create) {
        l->created = 1;
        l->acknowledged = l->acknowledged ? l->acknowledged : 1;
    }
    return status;
}

sessile_status ground_create(ground *g, int h, const char *id)
{
    return have(g, h, id, 1);
}

sessile_status ground_resume(ground *g, int h, const char *id)
{
    return have(g, h, id, 0);
}

sessile_status ground_create_for(ground *g, int h, const char *id, const char *user)
{
    log_of(g, id)->user = user;
    return have(g, h, id, 1);
}

sessile_status ground_rotate(ground *g, int h)
{
    g->last = h;
    g->writing = 0;
    return sessile_keys_rotate(g->stores[h], NULL, NULL, &g->err);
}

sessile_status ground_reseal(ground *g, int h)
{
    sessile_reseal_state state;
    sessile_reseal *r;
    g->last = h;
    g->writing = 0;
    sessile_status status = sessile_reseal_begin(&r, g->stores[h], NULL, &g->err),
                   failed = 0;
    do {
        if (!status)
            status = sessile_reseal_step(r, &state, &g->err);
        if ((!status || status == SESSILE_NEEDS) && state.log) {
            failed = state.why.code; /* no error of the step, but the host hears of it */
            g->err = state.why;
            break;
        }
    } while (status == SESSILE_NEEDS && !(status = SESSILE_OK));
    sessile_reseal_free(r);
    return failed ? failed : status;
}

/* The truth of one log, as of now. */
static void learn_alone(ground *g, ground_log *l)
{
    ground_learn(g);
    for (int i = 0; i < GROUND_LOGS; i++)
        if (&g->logs[i] != l) {
            ground_texts_free(g->logs[i].texts, g->logs[i].count);
            g->logs[i].texts = NULL;
        }
}

sessile_status ground_forget(ground *g, int h, const char *id)
{
    ground_log *l = log_of(g, id);
    if (!l->texts) /* the last moment to learn the truth of it */
        learn_alone(g, l);
    l->forgetting = 1;
    g->last = h;
    g->writing = 0;
    sessile_status status =
        sessile_forget(g->stores[h], sessile_text(l->user), NULL, &g->err);
    if (!status)
        l->forgetting = 2;
    return status;
}

/* A message with its number and some padding: free(). */
static char *message_new(ground *g, const char *role, size_t size)
{
    char *text = must(malloc(size + 200)), *fill = must(malloc(size + 1));
    memset(fill, 'a' + g->turn_count % 26, size);
    fill[size] = 0;
    snprintf(text, size + 200, "{\"role\":\"%s\",\"content\":\"%d %s\"}", role,
             g->turn_count++, fill);
    free(fill);
    return text;
}

sessile_status ground_say(ground *g, int h, size_t size)
{
    g->last = h;
    g->writing = 1;
    char *text = message_new(g, "user", size);
    sessile_id id;
    sessile_status status =
        sessile_append(g->sessions[h], sessile_text(text), &id, &g->err);
    free(text);
    if (!status)
        acknowledge(g, h, (size_t)id + 1);
    return status;
}

sessile_status ground_turn_begin(ground *g, int h, size_t count, size_t size)
{
    g->last = h;
    g->writing = 1;
    sessile_policy_step step = {"/policies/cutting.lua", NULL, 0};
    sessile_slice messages[16];
    char *texts[16];
    sessile_id seen;
    sessile_run_options o;
    sessile_status status = SESSILE_OK;
    const os_table *was = os_current;
    assert_true(count <= 16);
    os_current = g->os;
    if (!g->policy)
        status = sessile_policy_load(&g->policy, g->stores[h], &step, 1, &g->err);
    os_current = was;
    if (status)
        return status;
    for (size_t i = 0; i < count; i++) {
        texts[i] = message_new(g, i % 2 ? "assistant" : "user", size);
        messages[i] = sessile_text(texts[i]);
    }
    sessile_run_options_init(&o);
    o.config.policy = g->policy;
    o.no_policy = g->turn_count < 8;
    status = sessile_head(g->sessions[h], &seen, &g->err); /* others may have written */
    if (!status)
        status =
            sessile_turn_begin(&g->runs[h], g->sessions[h], messages, count, &o, &g->err);
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    return status;
}

sessile_status ground_turn_end(ground *g, int h)
{
    g->last = h;
    g->writing = 1;
    sessile_need need;
    sessile_outcome out;
    sessile_status status = sessile_run_step(g->runs[h], &need, &g->err);
    if (!status)
        status = sessile_run_outcome(g->runs[h], &out, &g->err);
    if (!status) {
        acknowledge(g, h, (size_t)out.last + 1);
        whole(g, h, out.first, out.last);
        if (out.compaction != SESSILE_NO_ID)
            acknowledge(g, h, (size_t)out.compaction + 1);
        if (out.verdict == SESSILE_REFUSED)
            g->refused = (size_t)out.last + 1;
    }
    sessile_run_free(g->runs[h]);
    g->runs[h] = NULL;
    return status;
}

sessile_status ground_close_session(ground *g, int h)
{
    g->last = h;
    g->writing = 1;
    sessile_id head = 0;
    sessile_error err;
    sessile_status known = sessile_head(g->sessions[h], &head, &g->err);
    sessile_status status = sessile_session_close(g->sessions[h], known ? &err : &g->err);
    g->sessions[h] = NULL;
    /* the scenarios without durability write messages only: the newest is the head */
    if (!status && !known && (size_t)head + 1 > g->open[h]->acknowledged)
        g->open[h]->acknowledged = (size_t)head + 1;
    return known ? known : status;
}

void ground_close_store(ground *g, int h)
{
    if (!g->borrowed[h])
        sessile_store_close(g->stores[h]);
    g->stores[h] = NULL;
    g->borrowed[h] = 0;
}

void ground_share(ground *g, int h, int of)
{
    g->stores[h] = g->stores[of];
    g->borrowed[h] = 1;
}

sessile_status ground_list(ground *g, int h)
{
    sessile_listed *rows;
    size_t count;
    g->last = h;
    g->writing = 0;
    sessile_status status = sessile_list(g->stores[h], NULL, &rows, &count, &g->err);
    for (size_t i = 0; !status && i < count; i++)
        if (rows[i].status) {
            status = rows[i].status;
            g->err.code = status;
            snprintf(g->err.message, sizeof g->err.message, "%s", rows[i].message);
        }
    sessile_free(rows);
    return status;
}

/* ---------------------------------------------------------------------- memories */

sessile_status ground_memory(ground *g, int h, const char *user)
{
    sessile_memory_options o;
    ground_log *l = log_of(g, GROUND_MEMORY);
    g->last = h;
    g->writing = 0;
    g->open[h] = l;
    l->user = user;
    sessile_memory_options_init(&o);
    o.user = sessile_text(user);
    o.consent = sessile_text(user ? "yes" : NULL);
    sessile_status status =
        sessile_memory_open(&g->memories[h], g->stores[h], &o, &g->err);
    if (!status) {
        l->created = 1;
        acknowledge(g, h, user ? 2 : 1);
    }
    return status;
}

sessile_status ground_remember(ground *g, int h, size_t count, size_t size,
                               sessile_id ends)
{
    enum { MOST = 8 };
    sessile_memory_write_entry entries[MOST];
    sessile_memory_change change = {
        .entries = entries, .count = count, .ends = &ends, .end_count = ends > 0};
    char *values[MOST], keys[MOST][8];
    sessile_id ids[MOST];
    assert_true(count >= 1 && count <= MOST);
    g->last = h;
    g->writing = 1;
    for (size_t i = 0; i < count; i++) {
        values[i] = must(malloc(size + 40));
        int n = snprintf(values[i], 40, "common %d ", g->turn_count);
        memset(values[i] + n, 'a' + g->turn_count % 26, size);
        values[i][(size_t)n + size] = 0;
        snprintf(keys[i], sizeof keys[i], "k%d", g->turn_count % 3);
        sessile_memory_write_init(&entries[i]);
        entries[i].value = sessile_text(values[i]);
        entries[i].key = sessile_text(g->turn_count % 2 ? keys[i] : NULL);
        g->turn_count++;
    }
    sessile_status status = sessile_memory_apply(g->memories[h], &change, ids, &g->err);
    for (size_t i = 0; i < count; i++)
        free(values[i]);
    if (!status) {
        size_t last = ids[count - 1] + (ends > 0);
        acknowledge(g, h, last + 1);
        if (last > ids[0])
            whole(g, h, ids[0], last);
    }
    return status;
}

sessile_status ground_judge(ground *g, int h, sessile_id id,
                            sessile_memory_verdict_kind to)
{
    g->last = h;
    g->writing = 1;
    sessile_status status =
        sessile_memory_verdict(g->memories[h], &id, 1, to, sessile_text("so"),
                               sessile_text(NULL), NULL, &g->err);
    if (!status)
        acknowledge(g, h, g->open[h]->acknowledged + 1);
    return status;
}

sessile_status ground_erase(ground *g, int h, sessile_id id)
{
    sessile_memory_erase_options o = {.ids = &id, .id_count = 1};
    ground_log *l = g->open[h];
    g->last = h;
    g->writing = 0;
    if (!l->texts) { /* the last moment to learn what it was */
        learn_alone(g, l);
        l->original = must(strdup(l->texts[id]));
        ground_texts_free(l->texts, l->count);
        l->texts = NULL;
    }
    l->erased = id;
    l->erasing = 1;
    sessile_status status = sessile_memory_erase(g->memories[h], &o, NULL, &g->err);
    if (!status)
        l->erasing = 2;
    return status;
}

sessile_status ground_close_memory(ground *g, int h)
{
    g->last = h;
    g->writing = 0;
    sessile_memory_close(g->memories[h]);
    g->memories[h] = NULL;
    return SESSILE_OK;
}

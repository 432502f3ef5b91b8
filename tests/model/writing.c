/*
 * writing.c: the operations that write, done to the session and to the model.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "support/logs.h"
#include "support/sessions.h"

static void make_text(uint64_t *r, char out[600])
{
    static const char *const roles[] = {"user", "assistant", "user", "system"};
    static const char *const words[] = {
        "word ",  "\\\"",    "\\u0000", "\xc3\xa9",         "\\\\", "{", "\\n",
        "12345 ", "}]\\\"}", "   ",     "\xf0\x9f\x98\x80", "a"};
    int n =
        snprintf(out, 600, "{\"role\":\"%s\",\"content\":\"", roles[random_next(r) % 4]);
    for (uint64_t i = random_next(r) % 30; i > 0; i--)
        n += snprintf(out + n, 600 - (size_t)n, "%s", words[random_next(r) % 12]);
    snprintf(out + n, 600 - (size_t)n, "\",\"n\":%" PRIu64 "}", random_next(r) % 1000);
}

/* What a write through a handle does to the handle's view. */
static void wrote(world *w, unsigned h)
{
    w->torn = 0; /* whoever writes sets it aside first */
    w->base[h] = w->head;
}

int do_append(world *w, unsigned h, uint64_t r)
{
    char text[600];
    sessile_id id;
    sessile_error err;
    make_text(&r, text);
    sessile_status status = sessile_append(w->s[h], sessile_text(text), &id, &err);
    sessile_status expected =
        world_descends(w, w->head, w->base[h]) ? SESSILE_OK : SESSILE_CONFLICT;
    figure_conflicts += expected == SESSILE_CONFLICT;
    world_check_torn(w);
    if (status != expected)
        return wrong(w, "append is %s, not %s: %s", sessile_status_name(status),
                     sessile_status_name(expected), err.message);
    if (status)
        return 0;
    if (id != w->count)
        return wrong(w, "append made %x, not %x", id, w->count);
    world_put_message(w, text, ENTRY_MESSAGE);
    wrote(w, h);
    return 0;
}

/* Messages and custom entries, as those that are appended or on a base that is said. */
int do_mixed(world *w, unsigned h, uint64_t r)
{
    enum { MOST = 5 };
    char texts[MOST][600];
    sessile_write_entry entries[MOST] = {{{NULL, 0}, 0, NULL}};
    sessile_id base = SESSILE_NO_ID, first;
    size_t n = 1 + random_next(&r) % MOST, messages = 0;
    sessile_status expected = SESSILE_OK;
    sessile_error err;
    for (size_t i = 0; i < n; i++) {
        entries[i].custom = random_next(&r) % 2 == 0;
        if (entries[i].custom)
            snprintf(texts[i], sizeof texts[i], "{\"n\":%zu}", i);
        else
            make_text(&r, texts[i]);
        entries[i].json = sessile_text(texts[i]);
        messages += !entries[i].custom;
    }
    if (random_next(&r) % 2)
        base = random_next(&r) % 2 ? w->head : (sessile_id)(random_next(&r) % w->count);
    if (base != SESSILE_NO_ID ? base != w->head
                              : messages && !world_descends(w, w->head, w->base[h]))
        expected = SESSILE_CONFLICT;
    sessile_status status = sessile_write(w->s[h], entries, n, base, &first, &err);
    figure_conflicts += expected == SESSILE_CONFLICT;
    world_check_torn(w);
    if (status != expected)
        return wrong(w, "writing %zu messages of %zu entries at %x is %s, not %s: %s",
                     messages, n, base, sessile_status_name(status),
                     sessile_status_name(expected), err.message);
    if (status)
        return 0;
    if (first != w->count)
        return wrong(w, "entries written from %x on, not from %x", first, w->count);
    for (size_t i = 0; i < n; i++)
        if (entries[i].custom)
            world_put(w, ENTRY_CUSTOM, w->head);
        else
            world_put_message(w, texts[i], ENTRY_MESSAGE);
    w->torn = 0;
    if (messages)
        wrote(w, h);
    return 0;
}

int do_refused(world *w, unsigned h, uint64_t r)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"role\":\"user\"",
        "{\"role\":\"nobody\",\"content\":\"\"}",
        "{\"role\":\"user\",\"role\":\"user\",\"content\":\"\"}",
        "{\"role\":\"user\",\"content\":\"\xff\"}",
        "null"};
    const char *text = bad[random_next(&r) % 8];
    sessile_error err;
    sessile_id id;
    sessile_run *run;
    sessile_slice both[2] = {sessile_text("{\"role\":\"user\",\"content\":\"\"}"),
                             sessile_text(text)};
    sessile_status status = random_next(&r) % 2
                                ? sessile_append(w->s[h], both[1], &id, &err)
                                : sessile_turn_begin(&run, w->s[h], both, 2, NULL, &err);
    return status == SESSILE_INVALID
               ? 0
               : wrong(w, "%s is %s", text, sessile_status_name(status));
}

static sessile_status run_to_its_end(sessile_run *run, sessile_outcome *out,
                                     sessile_error *err)
{
    sessile_need need;
    sessile_status status = sessile_run_step(run, &need, err);
    if (!status)
        status = sessile_run_outcome(run, out, err);
    sessile_run_free(run);
    return status;
}

/* kind T: on the handle's own base; B: on an entry that is said; F: whatever the base; P:
 * that, and many messages; W: on any base, beside the head if need be. */
int do_turn(world *w, unsigned h, uint64_t r, char kind)
{
    static char texts[BULK][600];
    char usage[200];
    sessile_slice messages[BULK];
    sessile_run_options o;
    sessile_run *run;
    sessile_outcome outcome;
    sessile_error err;
    sessile_usage u = {0};
    unsigned n = kind == 'P' ? BULK : 1 + (unsigned)(random_next(&r) % 3);
    for (unsigned i = 0; i < n; i++) {
        make_text(&r, texts[i]);
        messages[i] = sessile_text(texts[i]);
    }
    sessile_run_options_init(&o);
    if (random_next(&r) % 2) {
        u.input = 1 + (int64_t)(random_next(&r) % 5000);
        u.output = (int64_t)(random_next(&r) % 500);
        u.cache_read = (int64_t)(random_next(&r) % 50);
        snprintf(usage, sizeof usage,
                 "{\"input\":%" PRId64 ",\"output\":%" PRId64 ",\"cache_read\":%" PRId64
                 "}",
                 u.input, u.output, u.cache_read);
        o.usage = sessile_text(usage);
    }
    sessile_id base = w->base[h];
    if (kind == 'F' || kind == 'P')
        o.on_conflict = SESSILE_ON_CONFLICT_APPEND;
    if (kind == 'W')
        o.on_conflict = SESSILE_ON_CONFLICT_BRANCH;
    if (kind == 'B' || ((kind == 'F' || kind == 'W') && random_next(&r) % 2)) {
        o.has_base = 1;
        o.base = base =
            random_next(&r) % 2 ? w->head : (sessile_id)(random_next(&r) % w->count);
    }
    sessile_status status = sessile_turn_begin(&run, w->s[h], messages, n, &o, &err);
    int beside = kind == 'W' && base != w->head;
    sessile_status expected = base == w->head || kind == 'F' || kind == 'P' ? SESSILE_OK
                              : !beside                ? SESSILE_CONFLICT
                              : world_is_leaf(w, base) ? SESSILE_OK
                                                       : SESSILE_NOTFOUND;
    if (status == expected && !status)
        status = run_to_its_end(run, &outcome, &err);
    figure_conflicts += expected == SESSILE_CONFLICT;
    world_check_torn(w);
    if (status != expected)
        return wrong(w, "a turn on %x is %s, not %s: %s", base,
                     sessile_status_name(status), sessile_status_name(expected),
                     err.message);
    if (status)
        return 0;
    if (outcome.first != w->count || outcome.last != w->count + n ||
        outcome.head != outcome.last)
        return wrong(w, "turn made %x to %x", outcome.first, outcome.last);
    sessile_id head = w->head;
    if (beside)
        w->head = base;
    for (unsigned i = 0; i < n; i++)
        world_put_message(w, texts[i], ENTRY_MESSAGE);
    said *e = world_put(w, ENTRY_TURN, w->head);
    e->count = n;
    e->usage = u;
    sessile_id leaf = w->head;
    if (beside) {
        w->head = head;
        world_put(w, ENTRY_HEAD, head);
    }
    wrote(w, h);
    w->base[h] = leaf;
    return 0;
}

/* To any entry, on the handle's base or from wherever the head is, with a summary or
 * without. */
int do_branch(world *w, unsigned h, uint64_t r)
{
    char text[200] = "", why[20] = "";
    sessile_run_options o;
    sessile_outcome outcome;
    sessile_run *run;
    sessile_error err;
    sessile_id to = (sessile_id)(random_next(&r) % w->count);
    sessile_id from = w->head, fork = to, leaf = to;
    sessile_run_options_init(&o);
    if (random_next(&r) % 2)
        o.on_conflict = SESSILE_ON_CONFLICT_APPEND;
    if (random_next(&r) % 2) {
        snprintf(why, sizeof why, "why %u", (unsigned)(random_next(&r) % 1000));
        o.summary = sessile_text(why);
    }
    sessile_status expected =
        o.on_conflict == SESSILE_ON_CONFLICT_FAIL && w->base[h] != w->head
            ? SESSILE_CONFLICT
        : world_is_leaf(w, to) ? SESSILE_OK
                               : SESSILE_NOTFOUND;
    sessile_status status = sessile_branch_begin(&run, w->s[h], to, &o, &err);
    if (status == expected && !status)
        status = run_to_its_end(run, &outcome, &err);
    figure_conflicts += expected == SESSILE_CONFLICT;
    world_check_torn(w);
    if (status != expected)
        return wrong(w, "a branch to %x is %s, not %s: %s", to,
                     sessile_status_name(status), sessile_status_name(expected),
                     err.message);
    if (status)
        return 0;
    while (!world_descends(w, from, fork))
        fork = w->log[fork].parent;
    if (to != w->head) {
        world_put(w, ENTRY_HEAD, w->head);
        w->head = to;
    }
    if (why[0]) {
        leaf = w->count;
        snprintf(text, sizeof text,
                 "{\"role\":\"user\",\"content\":\"%s\",\"metadata\":{\"kind\":"
                 "\"branch_summary\",\"from\":\"%08x\",\"ancestor\":\"%08x\"}}",
                 why, from, fork);
        world_put_message(w, text, ENTRY_BRANCH_SUMMARY);
    }
    wrote(w, h);
    return outcome.from == from && outcome.head == leaf
               ? 0
               : wrong(w, "branch from %x to %x, not %x to %x", outcome.from,
                       outcome.head, from, leaf);
}

/* The newest messages, on the handle's base or on any entry. */
int do_pop(world *w, unsigned h, uint64_t r)
{
    sessile_id path[SAID_MOST], base = SESSILE_NO_ID;
    size_t have = world_path(w, w->head, path), n = 1 + random_next(&r) % 4, count;
    sessile_message *rows;
    sessile_error err;
    int bad;
    if (random_next(&r) % 2)
        base = random_next(&r) % 2 ? w->head : (sessile_id)(random_next(&r) % w->count);
    sessile_status expected = (base == SESSILE_NO_ID ? w->base[h] : base) == w->head
                                  ? SESSILE_OK
                                  : SESSILE_CONFLICT;
    sessile_status status = sessile_pop(w->s[h], n, base, &rows, &count, &err);
    figure_conflicts += expected == SESSILE_CONFLICT;
    world_check_torn(w);
    if (status != expected)
        return wrong(w, "%u messages taken off at %x is %s, not %s: %s", (unsigned)n,
                     base, sessile_status_name(status), sessile_status_name(expected),
                     err.message);
    if (status)
        return 0;
    n = have < n ? have : n;
    bad = count != n;
    for (size_t i = 0; i < n && !bad; i++)
        bad = rows[i].key.entry != path[have - n + i];
    sessile_free(rows);
    if (bad)
        return wrong(w, "others were taken off than the newest %u", (unsigned)n);
    if (n) {
        world_put(w, ENTRY_HEAD, w->head);
        w->head = w->log[path[have - n]].parent;
    }
    wrote(w, h);
    return 0;
}

int do_fact(world *w, unsigned h, uint64_t r, char kind)
{
    sessile_error err;
    sessile_id id = w->count;
    sessile_status status;
    char text[TITLE_SIZE];
    snprintf(text, sizeof text, kind == 'N' ? "title %u \xc3\xa9\"\\" : "{\"n\":%u}",
             (unsigned)(random_next(&r) % 1000));
    if (kind == 'C')
        status = sessile_clear(w->s[h], &err);
    else if (kind == 'N')
        status = sessile_set_title(w->s[h], sessile_text(text), &err);
    else
        status = sessile_append_custom(w->s[h], sessile_text(text), NULL, &id, &err);
    if (status)
        return wrong(w, "%c: %s", kind, err.message);
    if (id != w->count)
        return wrong(w, "custom made %x, not %x", id, w->count);
    world_put(w,
              kind == 'C'   ? ENTRY_HEAD
              : kind == 'N' ? ENTRY_METADATA
                            : ENTRY_CUSTOM,
              w->head);
    w->torn = 0;
    if (kind == 'C') {
        w->head = 0;
        w->base[h] = 0;
    } else if (kind == 'N') {
        memcpy(w->title, text, sizeof text);
    }
    return 0;
}

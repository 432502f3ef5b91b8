/*
 * test_model.c: random operations on a session against a model that fits on a page.
 *
 * Owns promise 9 (a moved base is CONFLICT, and nothing else is), and that what handles
 * show is what was acknowledged, whatever else happened: two handles of one store and one
 * of another, closed and opened, caches dropped and spoiled, torn ends of writers who
 * died. The model is a list of entries and a head; it knows no log, no fold, no cache.
 *
 * A failure prints the seed and the shortest list of operations that still fails, as a
 * line that runs it again. An operation is a letter (the list is at `step`), the handle
 * it goes through, and a number from which its details are drawn. Model, operations and
 * shrinking stand in one file: a new operation changes all three.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "codec/entry.h"
#include "codec/message.h"
#include "support/logs.h"
#include "support/sessions.h"
#include "tokens/tokens.h"

enum {
    HANDLES = 3,
    OPS = 60,
    BULK = 140, /* three of them are more than a block of an index */
    SAID_MOST = 4 * OPS + 4 * BULK,
    TITLE_SIZE = 40
};

/* ------------------------------------------------------------------ the model */

typedef struct said {
    entry_type type;
    sessile_id parent;
    char *text; /* of messages */
    sessile_role role;
    int64_t tokens;
    unsigned count;      /* of turns: its messages */
    sessile_usage usage; /* of turns; all 0: none was given */
} said;

typedef struct world {
    const char *mode; /* "ram", "plain", "sealed" */
    char folder[256], root[300];
    char *url;
    sessile_store *stores[2]; /* of ram: the same twice */
    sessile_session *s[HANDLES];
    sessile_id base[HANDLES]; /* the head that the handle last showed or made */
    said log[SAID_MOST];
    sessile_id count, head;
    char title[TITLE_SIZE];
    uint64_t torn;  /* bytes of a torn end that nobody has set aside yet */
    size_t torn_at; /* the log's size without them */
    char why[1200];
} world;

typedef struct op {
    char kind;
    unsigned char handle;
    uint32_t number;
} op;

static unsigned long figure_ops, figure_conflicts, figure_torn;

/* 1 after noting why, so that a check reads `return wrong(…)`. */
static int wrong(world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int wrong(world *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(w->why, sizeof w->why, format, list);
    va_end(list);
    return 1;
}

static int is_message(const said *e)
{
    return e->type == ENTRY_MESSAGE || e->type == ENTRY_BRANCH_SUMMARY;
}

/* Something that a conversation can go on from. */
static int is_leaf(const world *w, sessile_id id)
{
    return id == 0 || is_message(&w->log[id]) || w->log[id].type == ENTRY_TURN;
}

static int descends(const world *w, sessile_id id, sessile_id ancestor)
{
    while (id != 0 && id != ancestor)
        id = w->log[id].parent;
    return id == ancestor;
}

/* Ids of the path's messages, oldest first. */
static size_t path(const world *w, sessile_id leaf, sessile_id out[SAID_MOST])
{
    size_t count = 0;
    for (sessile_id at = leaf; at != 0; at = w->log[at].parent)
        count += is_message(&w->log[at]);
    size_t left = count;
    for (sessile_id at = leaf; at != 0; at = w->log[at].parent)
        if (is_message(&w->log[at]))
            out[--left] = at;
    return count;
}

static int64_t total(const sessile_usage *u)
{
    return u->input + u->output + u->cache_read + u->cache_write;
}

/* A new entry; a path entry moves the head. */
static said *put(world *w, entry_type type, sessile_id parent)
{
    said *e = &w->log[w->count];
    memset(e, 0, sizeof *e);
    e->type = type;
    e->parent = parent;
    if (is_message(e) || type == ENTRY_TURN)
        w->head = w->count;
    w->count++;
    return e;
}

static void put_message(world *w, const char *text, entry_type type)
{
    said *e = put(w, type, w->head);
    message m;
    sessile_error err;
    assert_int_equal(
        message_read(&m, text, strlen(text), NULL, NULL, NULL, &allocator_default, &err),
        SESSILE_OK);
    e->text = strdup(text);
    e->role = m.role;
    e->tokens = tokens_of_message(&m);
}

static void path_of_log(const world *w, const char *name, char out[600])
{
    snprintf(out, 600, "%s/agents/main/%s", w->root, name);
}

/* After calls that may have met the torn end and need not. */
static void look_at_torn(world *w)
{
    char file[600];
    struct stat st;
    path_of_log(w, "s.jsonl", file);
    if (w->torn != 0 && stat(file, &st) == 0 && (size_t)st.st_size == w->torn_at)
        w->torn = 0;
}

/* ------------------------------------------------------------------ the engine */

static faults lazy; /* no power is cut here: syncs need not be made */

static int open_store(world *w, sessile_store **out)
{
    sessile_store_options o;
    sessile_error err;
    sessile_store_options_init(&o);
    o.key_source = strcmp(w->mode, "sealed") ? SESSILE_KEY_PLAIN : SESSILE_KEY_SECRET;
    o.key = KIT_SECRET;
    o.config.has_timeout = 1;
    o.config.timeout_ms = 2000;
    if (sessile_open(out, w->url, &o, &err))
        return wrong(w, "open: %s", err.message);
    return 0;
}

static int resume(world *w, unsigned h)
{
    sessile_session_options o;
    sessile_error err;
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    if (sessile_resume(&w->s[h], w->stores[h / 2], &o, &err))
        return wrong(w, "resume: %s", err.message);
    uint64_t torn = sessile_session_torn(w->s[h]);
    if (torn != w->torn)
        return wrong(w, "resume set %" PRIu64 " bytes aside, %" PRIu64 " are torn", torn,
                     w->torn);
    w->torn = 0;
    w->base[h] = w->head;
    return 0;
}

static int close_one(world *w, unsigned h)
{
    sessile_error err;
    sessile_session *s = w->s[h];
    w->s[h] = NULL;
    if (sessile_session_close(s, &err))
        return wrong(w, "close: %s", err.message);
    return 0;
}

static int begin(world *w, const char *mode)
{
    sessile_session_options o;
    sessile_error err;
    memset(w, 0, sizeof *w);
    w->mode = mode;
    scratch_make(w->folder);
    snprintf(w->root, sizeof w->root, "%s/store", w->folder);
    w->url = strcmp(mode, "ram") ? place_url(w->root) : strdup("ram:");
    assert_non_null(w->url);
    if (open_store(w, &w->stores[0]))
        return 1;
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    if (sessile_resume(&w->s[0], w->stores[0], &o, &err) != SESSILE_NOTFOUND)
        return wrong(w, "a session that was not made yet opens");
    if (sessile_create(&w->s[0], w->stores[0], &o, &err))
        return wrong(w, "create: %s", err.message);
    if (sessile_create(&w->s[1], w->stores[0], &o, &err) != SESSILE_EXISTS)
        return wrong(w, "a session is made twice");
    put(w, ENTRY_SESSION, SESSILE_NO_ID);
    w->stores[1] = w->stores[0];
    if (strcmp(mode, "ram") && open_store(w, &w->stores[1]))
        return 1;
    return resume(w, 1) || resume(w, 2);
}

static void end(world *w)
{
    for (unsigned h = 0; h < HANDLES; h++)
        (void)sessile_session_close(w->s[h], NULL);
    if (w->stores[1] != w->stores[0])
        sessile_store_close(w->stores[1]);
    sessile_store_close(w->stores[0]);
    for (sessile_id i = 0; i < w->count; i++)
        free(w->log[i].text);
    place_url_free(w->url);
    scratch_remove(w->folder);
}

/* ------------------------------------------------------------------ writing */

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

static int do_append(world *w, unsigned h, uint64_t r)
{
    char text[600];
    sessile_id id;
    sessile_error err;
    make_text(&r, text);
    sessile_status status = sessile_append(w->s[h], sessile_text(text), &id, &err);
    sessile_status expected =
        descends(w, w->head, w->base[h]) ? SESSILE_OK : SESSILE_CONFLICT;
    figure_conflicts += expected == SESSILE_CONFLICT;
    look_at_torn(w);
    if (status != expected)
        return wrong(w, "append is %s, not %s: %s", sessile_status_name(status),
                     sessile_status_name(expected), err.message);
    if (status)
        return 0;
    if (id != w->count)
        return wrong(w, "append made %x, not %x", id, w->count);
    put_message(w, text, ENTRY_MESSAGE);
    wrote(w, h);
    return 0;
}

static int do_refused(world *w, unsigned h, uint64_t r)
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

/* kind T: on the handle's own base; B: on an entry that is said; F: whatever the base; P:
 * that, and many messages; W: on any base, beside the head if need be. */
static int do_turn(world *w, unsigned h, uint64_t r, char kind)
{
    static char texts[BULK][600];
    char usage[200];
    sessile_slice messages[BULK];
    sessile_run_options o;
    sessile_run *run;
    sessile_need need;
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
                              : !beside          ? SESSILE_CONFLICT
                              : is_leaf(w, base) ? SESSILE_OK
                                                 : SESSILE_NOTFOUND;
    figure_conflicts += expected == SESSILE_CONFLICT;
    look_at_torn(w);
    if (status != expected)
        return wrong(w, "a turn on %x is %s, not %s: %s", base,
                     sessile_status_name(status), sessile_status_name(expected),
                     err.message);
    if (status)
        return 0;
    status = sessile_run_step(run, &need, &err);
    if (!status)
        status = sessile_run_outcome(run, &outcome, &err);
    sessile_run_free(run);
    if (status)
        return wrong(w, "turn: %s", err.message);
    if (outcome.first != w->count || outcome.last != w->count + n ||
        outcome.head != outcome.last)
        return wrong(w, "turn made %x to %x", outcome.first, outcome.last);
    sessile_id head = w->head;
    if (beside)
        w->head = base;
    for (unsigned i = 0; i < n; i++)
        put_message(w, texts[i], ENTRY_MESSAGE);
    said *e = put(w, ENTRY_TURN, w->head);
    e->count = n;
    e->usage = u;
    sessile_id leaf = w->head;
    if (beside) {
        w->head = head;
        put(w, ENTRY_HEAD, head);
    }
    wrote(w, h);
    w->base[h] = leaf;
    return 0;
}

/* To any entry, on the handle's base or from wherever the head is, with a summary or
 * without. */
static int do_branch(world *w, unsigned h, uint64_t r)
{
    char text[200] = "", why[20] = "";
    sessile_run_options o;
    sessile_outcome outcome;
    sessile_need need;
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
        : is_leaf(w, to) ? SESSILE_OK
                         : SESSILE_NOTFOUND;
    sessile_status status = sessile_branch_begin(&run, w->s[h], to, &o, &err);
    figure_conflicts += expected == SESSILE_CONFLICT;
    look_at_torn(w);
    if (status != expected)
        return wrong(w, "a branch to %x is %s, not %s: %s", to,
                     sessile_status_name(status), sessile_status_name(expected),
                     err.message);
    if (status)
        return 0;
    status = sessile_run_step(run, &need, &err);
    if (!status)
        status = sessile_run_outcome(run, &outcome, &err);
    sessile_run_free(run);
    if (status)
        return wrong(w, "branch: %s", err.message);
    while (!descends(w, from, fork))
        fork = w->log[fork].parent;
    if (to != w->head) {
        put(w, ENTRY_HEAD, w->head);
        w->head = to;
    }
    if (why[0]) {
        leaf = w->count;
        snprintf(text, sizeof text,
                 "{\"role\":\"user\",\"content\":\"%s\",\"metadata\":{\"kind\":"
                 "\"branch_summary\",\"from\":\"%08x\",\"ancestor\":\"%08x\"}}",
                 why, from, fork);
        put_message(w, text, ENTRY_BRANCH_SUMMARY);
    }
    wrote(w, h);
    return outcome.from == from && outcome.head == leaf
               ? 0
               : wrong(w, "branch from %x to %x, not %x to %x", outcome.from,
                       outcome.head, from, leaf);
}

static int do_fact(world *w, unsigned h, uint64_t r, char kind)
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
    put(w,
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

/* ------------------------------------------------------------------ reading */

static int same_rows(world *w, const sessile_message *rows, size_t count,
                     const sessile_id *ids, size_t expected)
{
    if (count != expected)
        return wrong(w, "%zu messages, not %zu", count, expected);
    for (size_t i = 0; i < count; i++) {
        const said *e = &w->log[ids[i]];
        if (rows[i].key.entry != ids[i] || rows[i].key.n != 0 || rows[i].role != e->role)
            return wrong(w, "message %zu is %x, not %x", i, rows[i].key.entry, ids[i]);
        if (rows[i].json.size != strlen(e->text) ||
            memcmp(rows[i].json.data, e->text, rows[i].json.size) != 0)
            return wrong(w, "message %x says %.*s, not %s", ids[i],
                         (int)rows[i].json.size, rows[i].json.data, e->text);
        if (rows[i].tokens != e->tokens)
            return wrong(w, "message %x has %" PRId64 " tokens, not %" PRId64, ids[i],
                         rows[i].tokens, e->tokens);
    }
    return 0;
}

/* The context: at the head, or (L) at any entry of a path. */
static int do_context(world *w, unsigned h, uint64_t r, char kind)
{
    sessile_id ids[SAID_MOST], leaf = w->head, asked = SESSILE_NO_ID;
    sessile_message *rows;
    sessile_context_info info;
    sessile_error err;
    size_t count;
    if (kind == 'L') {
        asked = (sessile_id)(random_next(&r) % w->count);
        if (!is_leaf(w, asked))
            asked = w->head;
        leaf = asked;
    }
    if (sessile_context(w->s[h], asked, &rows, &count, &info, &err))
        return wrong(w, "context at %x: %s", leaf, err.message);
    int bad = same_rows(w, rows, count, ids, path(w, leaf, ids));
    sessile_free(rows);
    if (!bad && (info.head != w->head || info.dropped || info.orphans || info.unanswered))
        bad = wrong(w, "context at %x: head %x, not %x", leaf, info.head, w->head);
    if (leaf == w->head)
        w->base[h] = w->head;
    return bad;
}

static int do_messages(world *w, unsigned h, uint64_t r, char kind)
{
    sessile_id all[SAID_MOST], ids[SAID_MOST], leaf = w->head;
    sessile_messages_options o;
    sessile_message *rows;
    sessile_error err;
    size_t count, n = 0;
    sessile_messages_options_init(&o);
    if (kind == 'G') {
        o.limit = random_next(&r) % 8;
        o.last = random_next(&r) % 8;
        if (o.last)
            o.limit = 0;
        o.role = random_next(&r) % 2 ? SESSILE_ROLE_NONE : SESSILE_USER;
        sessile_id at = (sessile_id)(random_next(&r) % w->count);
        if (is_leaf(w, at))
            o.at = leaf = at;
    }
    size_t said_there = path(w, leaf, all);
    if (kind == 'G' && said_there > 0 && random_next(&r) % 2)
        o.from = all[random_next(&r) % said_there];
    for (size_t i = 0; i < said_there; i++)
        if ((o.from == SESSILE_NO_ID || all[i] >= o.from) &&
            (o.role == SESSILE_ROLE_NONE || w->log[all[i]].role == o.role))
            ids[n++] = all[i];
    const sessile_id *from = ids;
    if (o.limit && n > o.limit)
        n = o.limit;
    if (o.last && n > o.last) {
        from += n - o.last;
        n = o.last;
    }
    if (sessile_messages(w->s[h], kind == 'G' ? &o : NULL, &rows, &count, &err))
        return wrong(w, "messages: %s", err.message);
    int bad = same_rows(w, rows, count, from, n);
    sessile_free(rows);
    if (leaf == w->head)
        w->base[h] = w->head;
    return bad;
}

static int same_entry(world *w, sessile_id id, const char *text, size_t size)
{
    const said *e = &w->log[id];
    sessile_error err;
    entry got;
    if (entry_read(&got, text, size, &err))
        return wrong(w, "entry %x does not read: %s", id, err.message);
    if (got.id != id || got.type != e->type || got.parent != e->parent)
        return wrong(w, "entry %x is %.*s", id, (int)size, text);
    if (e->text && (got.data.size != strlen(e->text) ||
                    memcmp(got.data.at, e->text, got.data.size) != 0))
        return wrong(w, "entry %x says %.*s, not %s", id, (int)got.data.size, got.data.at,
                     e->text);
    return 0;
}

static int do_entries(world *w, unsigned h)
{
    sessile_entries *all;
    sessile_error err;
    sessile_id id, next = 0;
    const char *text;
    size_t size;
    int bad = 0;
    if (sessile_entries_open(&all, w->s[h], &err))
        return wrong(w, "entries: %s", err.message);
    for (;; next++) {
        if (sessile_entries_next(all, &id, &text, &size, &err))
            bad = wrong(w, "entry %x: %s", next, err.message);
        if (bad || size == 0)
            break;
        bad = id != next || id >= w->count ? wrong(w, "entry %x in place %x", id, next)
                                           : same_entry(w, id, text, size);
        if (bad)
            break;
    }
    sessile_entries_close(all);
    return bad                ? bad
           : next == w->count ? 0
                              : wrong(w, "%x entries, not %x", next, w->count);
}

static int do_figures(world *w, unsigned h)
{
    sessile_error err;
    sessile_tokens t;
    sessile_usage u, all = {0};
    uint64_t events, expected = 0;
    int64_t tokens = 0, since = 0;
    const char *source = "estimate";
    char *title = NULL;
    size_t size;
    for (sessile_id at = w->head; at != 0; at = w->log[at].parent) {
        const said *e = &w->log[at];
        expected += e->type == ENTRY_TURN;
        if (e->type == ENTRY_TURN && total(&e->usage) && !strcmp(source, "estimate")) {
            source = "usage";
            tokens = total(&e->usage) + since;
        }
        since += e->tokens;
        if (e->type == ENTRY_TURN)
            for (unsigned i = 0; i < e->count; i++) {
                at = w->log[at].parent;
                since += w->log[at].tokens;
            }
        else
            expected++;
    }
    if (!strcmp(source, "estimate"))
        tokens = since;
    for (sessile_id i = 0; i < w->count; i++) {
        all.input += w->log[i].usage.input;
        all.output += w->log[i].usage.output;
        all.cache_read += w->log[i].usage.cache_read;
    }
    if (sessile_count_tokens(w->s[h], &t, &err) ||
        sessile_total_usage(w->s[h], &u, &err) ||
        sessile_event_count(w->s[h], &events, &err) ||
        sessile_title(w->s[h], &title, &size, &err))
        return wrong(w, "figures: %s", err.message);
    int same = !strcmp(title, w->title) && size == strlen(w->title);
    sessile_free(title);
    if (!same)
        return wrong(w, "the title is not %s", w->title);
    if (t.tokens != tokens || strcmp(t.source, source))
        return wrong(w, "%" PRId64 " tokens by %s, not %" PRId64 " by %s", t.tokens,
                     t.source, tokens, source);
    if (memcmp(&u, &all, sizeof u))
        return wrong(w, "usage is %" PRId64 " in, %" PRId64 " out", u.input, u.output);
    return events == expected
               ? 0
               : wrong(w, "%" PRIu64 " events, not %" PRIu64, events, expected);
}

static int same_ids(world *w, const char *what, sessile_status status,
                    sessile_id *const *given, const size_t *counted,
                    const sessile_id *expected, size_t n)
{
    sessile_id *ids = *given;
    size_t count = *counted;
    int same =
        !status && count == n && (n == 0 || memcmp(ids, expected, n * sizeof *ids) == 0);
    sessile_free(ids);
    return same ? 0 : wrong(w, "%s: %zu, not %zu, or others", what, count, n);
}

/* The tree, and each question about it, of some entry. */
static int do_tree(world *w, unsigned h, uint64_t r)
{
    static sessile_id children[SAID_MOST], siblings[SAID_MOST], leaves[SAID_MOST];
    static sessile_id up[SAID_MOST];
    sessile_id at = (sessile_id)(random_next(&r) % w->count), other = w->head, *ids, got;
    size_t child_count = 0, sibling_count = 0, leaf_count = 0, up_count = 0, count;
    sessile_node *rows;
    sessile_error err;
    sessile_session *s = w->s[h];
    while (!is_leaf(w, at))
        at--;
    for (sessile_id id = 0; id < w->count; id++) {
        int is_last = is_leaf(w, id);
        if (!is_last)
            continue;
        if (id && w->log[id].parent == at)
            children[child_count++] = id;
        if (id && at && id != at && w->log[id].parent == w->log[at].parent)
            siblings[sibling_count++] = id;
        for (sessile_id below = id + 1; is_last && below < w->count; below++)
            is_last = w->log[below].parent != id || !is_leaf(w, below);
        if (is_last)
            leaves[leaf_count++] = id;
        if (descends(w, at, id))
            up[up_count++] = id;
    }
    while (!descends(w, at, other))
        other = w->log[other].parent;
    if (same_ids(w, "children", sessile_children(s, at, &ids, &count, &err), &ids, &count,
                 children, child_count) ||
        same_ids(w, "siblings", sessile_siblings(s, at, &ids, &count, &err), &ids, &count,
                 siblings, sibling_count) ||
        same_ids(w, "leaves", sessile_leaves(s, &ids, &count, &err), &ids, &count, leaves,
                 leaf_count) ||
        same_ids(w, "path", sessile_path(s, at, &ids, &count, &err), &ids, &count, up,
                 up_count))
        return 1;
    if (sessile_common_ancestor(s, at, w->head, &got, &err) || got != other)
        return wrong(w, "%x and the head come from %x, not %x", at, got, other);
    if (sessile_tree(s, NULL, &rows, &count, &err) || count != w->count) {
        sessile_free(rows);
        return wrong(w, "the tree has %zu rows", count);
    }
    int bad = 0;
    for (sessile_id id = 0; !bad && id < w->count; id++) {
        const said *e = &w->log[id];
        int64_t total = 0;
        for (sessile_id to = id; id && to; to = w->log[to].parent)
            total += w->log[to].tokens;
        if (rows[id].id != id || rows[id].parent != e->parent ||
            rows[id].total_tokens != total || rows[id].is_path != is_leaf(w, id) ||
            rows[id].on_path != descends(w, w->head, id) ||
            rows[id].is_head != (id == w->head) ||
            rows[id].in_context != (is_message(e) && descends(w, w->head, id)))
            bad = wrong(w, "row %x of the tree is another", id);
    }
    sessile_free(rows);
    return bad;
}

static int do_head(world *w, unsigned h)
{
    sessile_error err;
    sessile_id head;
    if (sessile_head(w->s[h], &head, &err))
        return wrong(w, "head: %s", err.message);
    w->base[h] = w->head;
    return head == w->head ? 0 : wrong(w, "the head is %x, not %x", head, w->head);
}

static int do_list(world *w, unsigned h)
{
    sessile_listed *rows;
    sessile_error err;
    sessile_id ids[SAID_MOST];
    size_t count;
    int bad = 0;
    if (sessile_list(w->stores[h / 2], "main", &rows, &count, &err))
        return wrong(w, "list: %s", err.message);
    if (count != 1)
        bad = wrong(w, "%zu rows", count);
    else if (rows->status || rows->entries != w->count ||
             rows->messages != path(w, w->head, ids) ||
             rows->title.size != strlen(w->title) ||
             memcmp(rows->title.data, w->title, rows->title.size) != 0)
        bad = wrong(w, "the row says %s, %" PRIu64 " entries, %" PRIu64 " messages, %.*s",
                    sessile_status_name(rows->status), rows->entries, rows->messages,
                    (int)rows->title.size, rows->title.data);
    sessile_free(rows);
    look_at_torn(w);
    return bad;
}

/* A fork at any leaf: what was said up to it, under the same ids, and the title. */
static int do_fork(world *w, unsigned h, uint64_t r)
{
    static unsigned forks;
    sessile_session_options o;
    sessile_session *f = NULL;
    sessile_message *rows = NULL;
    sessile_error err;
    sessile_id ids[SAID_MOST], head, leaf = w->head;
    int named = random_next(&r) % 4 != 0, bad = 0;
    char id[32], *text = NULL;
    size_t count = 0, size;
    if (named)
        for (leaf = (sessile_id)(random_next(&r) % w->count);
             leaf != 0 && w->log[leaf].type != ENTRY_MESSAGE &&
             w->log[leaf].type != ENTRY_TURN;)
            leaf--;
    snprintf(id, sizeof id, "fork-%u", forks++);
    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    o.agent = sessile_text("forks");
    if (sessile_fork(&f, w->s[h], named ? leaf : SESSILE_NO_ID, &o, &err))
        return wrong(w, "fork at %x: %s", leaf, err.message);
    if (sessile_head(f, &head, &err) || head != leaf)
        bad = wrong(w, "the fork's head is %x, not %x", head, leaf);
    for (sessile_id i = 1; !bad && i <= leaf; i++) {
        if (sessile_entry(f, i, &text, &size, &err))
            bad = wrong(w, "entry %x of a fork: %s", i, err.message);
        else
            bad = same_entry(w, i, text, size);
        sessile_free(text);
    }
    if (!bad && sessile_messages(f, NULL, &rows, &count, &err))
        bad = wrong(w, "messages of a fork: %s", err.message);
    if (!bad && count != path(w, leaf, ids))
        bad = wrong(w, "a fork at %x has %zu messages", leaf, count);
    for (size_t i = 0; !bad && i < count; i++)
        if (rows[i].key.entry != ids[i])
            bad = wrong(w, "a fork has message %x, not %x", rows[i].key.entry, ids[i]);
    sessile_free(rows);
    text = NULL;
    if (!bad && (sessile_title(f, &text, &size, &err) || strcmp(text, w->title) != 0))
        bad = wrong(w, "the title of a fork is not %s", w->title);
    sessile_free(text);
    sessile_session_close(f, NULL);
    return bad;
}

/* ------------------------------------------------------------------ around it */

static int do_reopen(world *w, unsigned h)
{
    return close_one(w, h) || resume(w, h);
}

static int do_reopen_stores(world *w)
{
    if (!strcmp(w->mode, "ram"))
        return 0; /* it lives in its handle */
    for (unsigned h = 0; h < HANDLES; h++)
        if (close_one(w, h))
            return 1;
    for (int i = 0; i < 2; i++) {
        sessile_store_close(w->stores[i]);
        w->stores[i] = NULL;
    }
    if (open_store(w, &w->stores[0]) || open_store(w, &w->stores[1]))
        return 1;
    return resume(w, 0) || resume(w, 1) || resume(w, 2);
}

/* I: a cache is gone; J: a byte of it is wrong, or its end is missing. */
static int do_cache(const world *w, uint64_t r, char kind)
{
    char file[600];
    struct stat st;
    path_of_log(w, random_next(&r) % 2 ? "s.idx" : ".list_cache", file);
    if (!strcmp(w->mode, "ram") || place_elsewhere() || stat(file, &st) != 0 ||
        st.st_size == 0)
        return 0;
    if (kind == 'I') {
        unlink(file);
        return 0;
    }
    off_t at = (off_t)(random_next(&r) % (uint64_t)st.st_size);
    if (random_next(&r) % 4 == 0)
        return truncate(file, at);
    size_t size;
    char *bytes = file_read_all(file, &size);
    bytes[at] = (char)(bytes[at] ^ (1 << random_next(&r) % 8));
    file_write_all(file, bytes, size);
    free(bytes);
    return 0;
}

/* A writer that died in the middle: part of a line, behind the last commit. */
static int do_tear(world *w, uint64_t r)
{
    char file[600];
    size_t size;
    if (!strcmp(w->mode, "ram") || place_elsewhere() || w->torn != 0)
        return 0;
    path_of_log(w, "s.jsonl", file);
    char *bytes = file_read_all(file, &size);
    char *line = memrchr(bytes, '\n', size - 1);
    line = line ? line + 1 : bytes;
    w->torn = 1 + random_next(&r) % ((size_t)(bytes + size - line) - 1);
    w->torn_at = size;
    int fd = open(file, O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, line, w->torn), w->torn);
    close(fd);
    free(bytes);
    figure_torn++;
    return 0;
}

static const char kinds[] = "AAAAAATTTTTTBBBFFWWWDDDDCNUXHHKKKLMMGESSVVQRRZIJJYO";

static int step(world *w, const op *o)
{
    unsigned h = o->handle;
    if (w->count + (o->kind == 'P' ? BULK + 8 : 8) > SAID_MOST)
        return 0;
    figure_ops++;
    switch (o->kind) {
    case 'A':
        return do_append(w, h, o->number);
    case 'T':
    case 'B': /* on a base that is said */
    case 'F': /* on whatever is there */
    case 'P': /* enough that an index is made */
    case 'W': /* beside the head */
        return do_turn(w, h, o->number, o->kind);
    case 'D':
        return do_branch(w, h, o->number);
    case 'V':
        return do_tree(w, h, o->number);
    case 'X':
        return do_refused(w, h, o->number);
    case 'C': /* clear */
    case 'N': /* a title */
    case 'U': /* an entry of the host's own */
        return do_fact(w, h, o->number, o->kind);
    case 'H':
        return do_head(w, h);
    case 'K':
    case 'L': /* at another leaf */
        return do_context(w, h, o->number, o->kind);
    case 'M':
    case 'G': /* some of them */
        return do_messages(w, h, o->number, o->kind);
    case 'E':
        return do_entries(w, h);
    case 'S':
        return do_figures(w, h);
    case 'Q':
        return do_list(w, h);
    case 'R':
        return do_reopen(w, h);
    case 'Z':
        return do_reopen_stores(w);
    case 'I':
    case 'J':
        return do_cache(w, o->number, o->kind);
    case 'Y':
        return do_tear(w, o->number);
    case 'O': /* a fork */
        return do_fork(w, h, o->number);
    default:
        return wrong(w, "no such operation: %c", o->kind);
    }
}

/* 0, or 1 and why. */
static int play(const char *mode, const op *ops, size_t count, char why[1200])
{
    static world w;
    int bad = begin(&w, mode);
    for (size_t i = 0; i < count && !bad; i++)
        bad = step(&w, &ops[i]);
    for (unsigned h = 0; h < HANDLES && !bad; h++)
        bad = do_entries(&w, h) || do_figures(&w, h) || do_context(&w, h, 0, 'K') ||
              do_messages(&w, h, 0, 'M');
    if (!bad)
        bad = do_tree(&w, 0, count) || do_reopen_stores(&w) || do_entries(&w, 0) ||
              do_figures(&w, 0) || do_tree(&w, 0, count + 1);
    memcpy(why, w.why, sizeof w.why);
    end(&w);
    return bad;
}

/* ------------------------------------------------------------------ shrinking */

static size_t shrink(const char *mode, op *ops, size_t count, char why[1200])
{
    for (size_t piece = count / 2; piece > 0; piece = piece > 1 ? piece / 2 : 0) {
        for (size_t at = 0; at + piece <= count;) {
            op fewer[OPS];
            char other[1200];
            memcpy(fewer, ops, at * sizeof *ops);
            memcpy(fewer + at, ops + at + piece, (count - at - piece) * sizeof *ops);
            if (play(mode, fewer, count - piece, other)) {
                count -= piece;
                memcpy(ops, fewer, count * sizeof *ops);
                memcpy(why, other, sizeof other);
            } else {
                at += piece;
            }
        }
    }
    return count;
}

static void explain(const char *mode, uint64_t seed, const op *ops, size_t count,
                    const char *why)
{
    print_error("%s, seed %" PRIu64 ": %s\n", mode, seed, why);
    print_error("SESSILE_MODEL='%s", mode);
    for (size_t i = 0; i < count; i++)
        print_error(" %c%u.%" PRIx32, ops[i].kind, ops[i].handle, ops[i].number);
    print_error("' build/tests/model/test_model\n");
}

static int set_up(void **state)
{
    (void)state;
    faults_init(&lazy);
    lazy.lazy = 1;
    os_current = &lazy.table;
    return base_init();
}

static void random_operations(const char *mode, unsigned long cases)
{
    uint64_t seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    if (getenv("SESSILE_SOAK"))
        cases *= 100;
    print_message("%s, seed %" PRIu64 "\n", mode, seed);
    for (unsigned long n = 0; n < cases; n++) {
        uint64_t r = random_next(&seed), this = r;
        op ops[OPS];
        char why[1200];
        for (size_t i = 0; i < OPS; i++)
            ops[i] = (op){kinds[random_next(&r) % (sizeof kinds - 1)],
                          (unsigned char)(random_next(&r) % HANDLES),
                          (uint32_t)random_next(&r)};
        for (size_t i = 0; i < 3 && n % 4 == 0; i++)
            ops[4 * i].kind = 'P';
        if (play(mode, ops, OPS, why)) {
            size_t count = shrink(mode, ops, OPS, why);
            explain(mode, this, ops, count, why);
            assert_string_equal(why, "");
        }
    }
    printf("# figure: random operations that matched the model (%s) = %lu\n", mode,
           figure_ops);
    printf("# figure: moved bases told as CONFLICT (%s) = %lu\n", mode, figure_conflicts);
    printf("# figure: torn ends put there and set aside (%s) = %lu\n", mode, figure_torn);
    figure_ops = figure_conflicts = figure_torn = 0;
}

static void ram_store_matches_the_model(void **state)
{
    (void)state;
    place_files_only();
    random_operations("ram", 400);
}

static void plain_store_matches_the_model(void **state)
{
    (void)state;
    random_operations("plain", 200);
}

static void sealed_store_matches_the_model(void **state)
{
    (void)state;
    random_operations("sealed", 200);
}

/* A line that a failure printed. */
static void operations_that_were_given_match_the_model(void **state)
{
    const char *line = getenv("SESSILE_MODEL");
    char mode[20], why[1200];
    op ops[OPS];
    size_t count = 0;
    int n = 0;
    (void)state;
    if (!line)
        skip();
    assert_int_equal(sscanf(line, "%19s%n", mode, &n), 1);
    for (line += n; count < OPS; line += n, count++) {
        unsigned handle;
        if (sscanf(line, " %c%u.%" SCNx32 "%n", &ops[count].kind, &handle,
                   &ops[count].number, &n) != 3)
            break;
        ops[count].handle = (unsigned char)(handle % HANDLES);
    }
    if (play(mode, ops, count, why))
        print_error("%s\n", why);
    assert_string_equal(why, "");
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(ram_store_matches_the_model),
        cmocka_unit_test(plain_store_matches_the_model),
        cmocka_unit_test(sealed_store_matches_the_model),
    };
    const struct CMUnitTest given[] = {
        cmocka_unit_test(operations_that_were_given_match_the_model),
    };
    if (getenv("SESSILE_MODEL"))
        return cmocka_run_group_tests(given, set_up, NULL);
    return cmocka_run_group_tests(all, set_up, NULL);
}

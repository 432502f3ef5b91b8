/*
 * test_determinism.c: the same log, policy, options and answers give the same bytes.
 *
 * The bundled conversation is played again and again under every policy that ships, and
 * under one that leans on everything that might vary, each time in a new Lua state whose
 * strings are hashed with another seed. Every entry of the log must come out as before,
 * but for what a clock says. Lua draws the seed from the address of the state, so the
 * allocator moves it.
 *
 * 100 replays of each; with SESSILE_SOAK 1,000.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#include "base/buf.h"
#include "base/text.h"
#include "sessile.h"
#include "support/policies.h"

#include <cmocka.h>

enum { WINDOW = 9000, RESERVE = 500, LINES = 200, HEAD = 32 };

/* ------------------------------------------------------------------ moved memory */

/* Every block lies `shift` bytes further than malloc would have it. */
typedef struct mover {
    size_t shift;
} mover;

static void *move(void *ud, void *ptr, size_t osize, size_t nsize)
{
    const mover *m = ud;
    char *old = ptr, *block;
    size_t head[2] = {0, 0}; /* where malloc's block begins before it, and its size */

    (void)osize;
    if (old)
        memcpy(head, old - sizeof head, sizeof head);
    if (nsize == 0) {
        if (old)
            free(old - head[0]);
        return NULL;
    }
    block = malloc(nsize + HEAD + m->shift);
    if (!block)
        return NULL;
    block += HEAD + m->shift;
    if (old) {
        memcpy(block, old, head[1] < nsize ? head[1] : nsize);
        free(old - head[0]);
    }
    head[0] = HEAD + m->shift;
    head[1] = nsize;
    memcpy(block - sizeof head, head, sizeof head);
    return block;
}

/* The order in which a table of 64 names is walked by a bare Lua state. */
static uint64_t walk(mover *m)
{
    lua_State *L = lua_newstate(move, m);
    uint64_t order = 0;
    int i;

    assert_non_null(L);
    lua_newtable(L);
    for (i = 0; i < 64; i++) {
        lua_pushfstring(L, "name%d", i);
        lua_pushinteger(L, i);
        lua_settable(L, 1);
    }
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1))
        order = order * 31 + (uint64_t)lua_tointeger(L, -1);
    lua_close(L);
    return order;
}

/* Without this the others would prove nothing. */
static void a_moved_state_hashes_with_another_seed(void **unused)
{
    uint64_t first = 0;
    unsigned other = 0;
    size_t i;
    (void)unused;
    for (i = 0; i < 50; i++) {
        mover m = {16 * i};
        uint64_t order = walk(&m);
        if (i == 0)
            first = order;
        other += order != first;
    }
    if (other <= 40)
        fail_msg("only %u of 49 orders differ", other);
}

/* ------------------------------------------------------------------ a replay */

static char *lines[LINES];
static size_t line_count;

static int read_lines(void **unused)
{
    FILE *file = fopen("examples/demo-session.jsonl", "r");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    (void)unused;
    assert_non_null(file);
    while ((size = getline(&line, &capacity, file)) > 0) {
        assert_true(line_count < LINES);
        line[size - 1] = 0;
        lines[line_count++] = strdup(line);
    }
    free(line);
    fclose(file);
    policies_start();
    return 0;
}

static int free_lines(void **unused)
{
    (void)unused;
    while (line_count)
        free(lines[--line_count]);
    policies_end();
    return 0;
}

/* The model: what it says depends on what it is asked, and on nothing else. */
static void answer(sessile_run *run, const sessile_need *need)
{
    char text[80];
    sessile_answer a = {0};
    unsigned char digest[32];
    sessile_error err;

    hash256(digest, need->request.data, need->request.size, NULL, 0);
    snprintf(text, sizeof text, "A summary of %zu bytes, %02x%02x%02x%02x.",
             need->request.size, digest[0], digest[1], digest[2], digest[3]);
    a.text = sessile_text(text);
    assert_int_equal(sessile_run_reply(run, &a, &err), SESSILE_OK);
}

static void finish(sessile_run *run, unsigned *applied)
{
    sessile_outcome out;
    sessile_need need;
    sessile_error err;
    sessile_status status;

    while ((status = sessile_run_step(run, &need, &err)) == SESSILE_NEEDS)
        answer(run, &need);
    assert_int_equal(status, SESSILE_OK);
    assert_int_equal(sessile_run_outcome(run, &out, &err), SESSILE_OK);
    if (out.verdict == SESSILE_REFUSED)
        fail_msg("refused: %s", out.message);
    *applied += out.verdict == SESSILE_APPLIED;
    sessile_run_free(run);
}

/* Appends an entry without the values that a clock or chance gave. */
static void put_timeless(buf *out, const char *json, size_t size)
{
    static const char *const clocks[] = {"\"timestamp\":\"", "\"created\":\"",
                                         "\"nonce\":\"", "\"duration_ms\":"};
    const char *end = json + size;
    size_t i;
    while (json < end) {
        for (i = 0; i < sizeof clocks / sizeof *clocks; i++) {
            size_t n = strlen(clocks[i]);
            if ((size_t)(end - json) > n && memcmp(json, clocks[i], n) == 0) {
                json += n;
                while (json < end && *json != ',' && *json != '"' && *json != '}')
                    json++;
                break;
            }
        }
        if (json < end)
            buf_putc(out, *json++);
    }
    buf_putc(out, '\n');
}

static void put_log(buf *out, sessile_session *s)
{
    sessile_entries *entries;
    sessile_error err;
    sessile_id id;
    const char *json;
    size_t size;

    assert_int_equal(sessile_entries_open(&entries, s, NULL, &err), SESSILE_OK);
    while (!sessile_entries_next(entries, &id, &json, &size, &err) && size)
        put_timeless(out, json, size);
    sessile_entries_close(entries);
}

/* Plays the conversation turn by turn, a reminder in each, then compacts as a person
 * would. */
static void play(sessile_session *s, unsigned *applied)
{
    static const char reminder[] =
        "{\"role\":\"user\",\"content\":\"Say what you measured, and how.\","
        "\"metadata\":{\"kind\":\"reminder\"}}";
    sessile_slice turn[LINES + 1];
    sessile_run_options options;
    sessile_run *run;
    sessile_error err;
    size_t i, n = 0;

    for (i = 0; i < line_count; i++) {
        turn[n++] = sessile_text(lines[i]);
        if (i + 1 < line_count &&
            (!strstr(lines[i + 1], "\"role\":\"user\"") || (i == 0 && n == 1)))
            continue;
        turn[n++] = sessile_text(reminder);
        assert_int_equal(sessile_turn_begin(&run, s, turn, n, NULL, &err), SESSILE_OK);
        finish(run, applied);
        n = 0;
    }
    sessile_run_options_init(&options);
    options.instructions = sessile_text("keep the names");
    assert_int_equal(sessile_compact_begin(&run, s, &options, &err), SESSILE_OK);
    finish(run, applied);
}

/* One life of a store, in memory moved by shift; its log, timeless. */
static void replay(const char *policy, const char *options, size_t shift, buf *out,
                   unsigned *applied)
{
    mover m = {shift};
    char path[4200];
    sessile_store_options o;
    sessile_session_options so;
    sessile_policy_step step = {policy, options, 0};
    sessile_policy *p;
    sessile_session *s;
    sessile_store *store;
    sessile_error err;

    snprintf(path, sizeof path, "policies:%s", policies_folder());
    sessile_store_options_init(&o);
    o.policy_path = path;
    o.config.window = WINDOW;
    o.config.reserve = RESERVE;
    o.alloc = move;
    o.alloc_ud = &m;
    o.limits.policy_ms = 10000; /* a loaded machine is no difference */
    assert_int_equal(sessile_open(&store, "ram:", &o, &err), SESSILE_OK);
    if (sessile_policy_load(&p, store, &step, 1, &err))
        fail_msg("%s", err.message);
    sessile_store_set_policy(store, p);
    sessile_policy_free(p);
    sessile_session_options_init(&so);
    so.id = sessile_text("the-same");
    assert_int_equal(sessile_create(&s, store, &so, &err), SESSILE_OK);
    play(s, applied);
    put_log(out, s);
    sessile_session_close(s, NULL);
    sessile_store_close(store);
}

static void show_difference(const char *policy, unsigned run, const buf *a, const buf *b)
{
    size_t at = 0, from;
    while (at < a->size && at < b->size && a->data[at] == b->data[at])
        at++;
    from = at > 100 ? at - 100 : 0;
    fail_msg("%s, replay %u, differs at byte %zu:\n%.200s\nand\n%.200s", policy, run, at,
             a->data + from, b->data + from);
}

static void always_the_same(const char *policy, const char *options)
{
    unsigned runs = getenv("SESSILE_SOAK") ? 1000 : 100, applied = 0, i;
    buf first, again;

    buf_init(&first, &allocator_default);
    buf_init(&again, &allocator_default);
    replay(policy, options, 0, &first, &applied);
    assert_true(applied > 0); /* or it would say nothing of the policy */
    buf_putc(&first, 0);
    for (i = 1; i < runs; i++) {
        buf_clear(&again);
        replay(policy, options, 16 * (size_t)i, &again, &applied);
        buf_putc(&again, 0);
        assert_false(again.failed);
        if (again.size != first.size || memcmp(again.data, first.data, first.size) != 0)
            show_difference(policy, i, &first, &again);
    }
    buf_deinit(&first);
    buf_deinit(&again);
}

#define SHIPS(name, options)                                 \
    static void name##_is_the_same_every_time(void **unused) \
    {                                                        \
        (void)unused;                                        \
        always_the_same(#name, options);                     \
    }
SHIPS(edit_tools, "{}")
SHIPS(key_messages, "{}")
SHIPS(merge_dedupe, "{\"min_tokens\":1,\"preserve_recent\":2}")
SHIPS(sliding_window, "{}")
SHIPS(summarize, "{}")
SHIPS(tiered, "{}")
SHIPS(token_budget, "{}")

/* What a script can reach that might not be the same: the order of tables, names of
 * functions and tables, chance, a sort of equals, the memory in use. */
static void what_leans_on_order_is_the_same_every_time(void **unused)
{
    (void)unused;
    policies_write(
        "leans", "return { name = 'leans', version = 1,\n"
                 "  truncate = function(state, ctx)\n"
                 "    local t, out = {}, {}\n"
                 "    for i = 1, 40 do t['key' .. ctx.random(1000000)] = i end\n"
                 "    for k, v in pairs(t) do out[#out + 1] = k .. v end\n"
                 "    for k in pairs(string) do out[#out + 1] = k end\n"
                 "    out[#out + 1] = tostring(t) .. tostring(print) .. tostring(pairs)\n"
                 "    local list = {}\n"
                 "    for k, v in pairs(t) do list[#list + 1] = { k, v % 3 } end\n"
                 "    table.sort(list, function(a, b) return a[2] < b[2] end)\n"
                 "    for _, one in ipairs(list) do out[#out + 1] = one[1] end\n"
                 "    local ok, why = pcall(error, {}) out[#out + 1] = tostring(why)\n"
                 "    ok, why = pcall(function() return t.a.b end) out[#out + 1] = why\n"
                 "    state.vars = { seen = t, n = (state.vars.n or 0) + 1 }\n"
                 "    local text = table.concat(out, ' ')\n"
                 "    ctx.model { messages = { { role = 'user', content = text, author = "
                 "'a' } } }\n"
                 "    if #state.messages > 4 then\n"
                 "      state:insert(#state.messages, { role = 'user', content = text,\n"
                 "        metadata = { kind = 'note', all = t } })\n"
                 "    end\n"
                 "  end }\n");
    always_the_same("leans", "{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_moved_state_hashes_with_another_seed),
        cmocka_unit_test(edit_tools_is_the_same_every_time),
        cmocka_unit_test(key_messages_is_the_same_every_time),
        cmocka_unit_test(merge_dedupe_is_the_same_every_time),
        cmocka_unit_test(sliding_window_is_the_same_every_time),
        cmocka_unit_test(summarize_is_the_same_every_time),
        cmocka_unit_test(tiered_is_the_same_every_time),
        cmocka_unit_test(token_budget_is_the_same_every_time),
        cmocka_unit_test(what_leans_on_order_is_the_same_every_time),
    };
    return cmocka_run_group_tests(tests, read_lines, free_lines);
}

/*
 * memory_run.c: runs of memories: remember, tidy, admit, recall, embed.
 *
 * A run states what it needs as a table and takes the answer, like the runs of sessions
 * (run.c). The loop is Lua (lua/sessile/memory_runs.lua), so a model may yield.
 */
#include "binding.h"

#include <string.h>

#include "policy/lua_json.h"
#include "sessile_memory.h"

BINDING_FREE(run_free, sessile_memory_run_free)

/* ------------------------------------------------------------------ begin */

#define OPTION(...) BINDING_FIELD(sessile_memory_run_options, __VA_ARGS__)
static const struct binding_field option_fields[] =
    BINDING_FIELDS(OPTION("dry_run", BOOLEAN, dry_run), OPTION("share", BOOLEAN, share),
                   OPTION("trust_tools", BOOLEAN, trust_tools),
                   OPTION("embed_model", SLICE, embed_model));

/* {policy, isolation, reason, timeout_ms, dry_run, share, trust_tools, ids, embed_model,
 * embed_dims, embed_batch} at index; leaves what holds the ids on the stack. */
static void get_options(lua_State *L, int index, sessile_memory_run_options *out)
{
    static const char *const isolations[] = {"none", "worker", NULL};

    luaL_checktype(L, index, LUA_TTABLE);
    sessile_memory_run_options_init(out);
    binding_get_fields(L, index, option_fields, out);
    binding_raw_field(L, index, "policy");
    out->policy = binding_policy_opt(L, -1);
    if (binding_one_of(L, index, "isolation", isolations))
        out->isolation = SESSILE_WORKER;
    out->has_timeout = binding_field_timeout(L, index, "timeout_ms", &out->timeout_ms);
    out->embed_dims =
        (size_t)binding_field_count(L, index, "embed_dims", SESSILE_MEMORY_DIMS_MAX);
    if (binding_raw_field(L, index, "embed_batch") != LUA_TNIL)
        out->embed_batch = (size_t)binding_field_count(L, index, "embed_batch",
                                                       SESSILE_MEMORY_RUN_BATCH);
    out->has_ids = binding_raw_field(L, index, "ids") == LUA_TTABLE;
    out->ids = binding_memory_ids(L, index, "ids", &out->id_count);
}

/* Pushes a closed run of what is at index 1. */
static struct binding_child *new_run(lua_State *L, struct binding_session *session,
                                     struct binding_child *memory)
{
    // cppcheck-suppress nullPointer ; one of the two is there
    struct binding_store *store = session ? session->store : memory->stores[0];
    struct binding_child *run = binding_child_new(L, &binding_memory_run_class, store);
    run->session = session;
    return run;
}

static int begun(lua_State *L, struct binding_child *run, sessile_memory_run *handle,
                 sessile_status status, const sessile_error *err)
{
    if (!status)
        return binding_child_opened(run, handle);
    run->session = NULL;
    return binding_fail(L, err);
}

/* session:remember_run({memories}, {options}) -> run; nil, message, code */
int binding_session_remember_run(lua_State *L, struct binding_session *session)
{
    sessile_memory_run_options options;
    sessile_memory_run *handle = NULL;
    sessile_memory **memories;
    sessile_status status;
    sessile_error err;
    size_t count;

    lua_settop(L, 3);
    memories = binding_memories(L, 2, &count);
    if (!memories)
        return 3;
    get_options(L, 3, &options);
    struct binding_child *run = new_run(L, session, NULL);
    status =
        sessile_remember_begin(&handle, session->handle, memories, count, &options, &err);
    return begun(L, run, handle, status, &err);
}

/* session:recall_run({memories}, {of the recall}, {options}) -> run; nil, message, code
 */
int binding_session_recall_run(lua_State *L, struct binding_session *session)
{
    sessile_memory_run_options options;
    sessile_recall_options recall;
    sessile_memory_run *handle = NULL;
    sessile_memory **memories;
    sessile_status status;
    sessile_error err;
    size_t count;

    lua_settop(L, 4);
    memories = binding_memories(L, 2, &count);
    if (!memories)
        return 3;
    binding_recall_options(L, 3, &recall);
    get_options(L, 4, &options);
    struct binding_child *run = new_run(L, session, NULL);
    status = sessile_recall_begin(&handle, session->handle, memories, count, &recall,
                                  &options, &err);
    return begun(L, run, handle, status, &err);
}

typedef sessile_status (*memory_begin)(sessile_memory_run **, sessile_memory *,
                                       const sessile_memory_run_options *,
                                       sessile_error *);

static int begin(lua_State *L, struct binding_child *memory, memory_begin function)
{
    sessile_memory_run_options options;
    sessile_memory_run *handle = NULL;
    sessile_status status;
    sessile_error err;

    lua_settop(L, 2);
    get_options(L, 2, &options);
    struct binding_child *run = new_run(L, NULL, memory);
    status = function(&handle, memory->handle, &options, &err);
    return begun(L, run, handle, status, &err);
}

/* memory:tidy{options}, memory:embed_run{options} -> run; nil, message, code */
int binding_memory_tidy(lua_State *L, struct binding_child *memory)
{
    return begin(L, memory, sessile_tidy_begin);
}

int binding_memory_embed_run(lua_State *L, struct binding_child *memory)
{
    return begin(L, memory, sessile_embed_begin);
}

/* memory:admit({entries}, {options}) -> run; nil, message, code */
int binding_memory_admit(lua_State *L, struct binding_child *memory)
{
    sessile_memory_run_options options;
    sessile_memory_write_entry *entries;
    sessile_memory_run *handle = NULL;
    sessile_status status;
    sessile_error err;
    size_t count;

    lua_settop(L, 3);
    entries = binding_memory_entries(L, 2, &count);
    if (!entries)
        return 3;
    get_options(L, 3, &options);
    struct binding_child *run = new_run(L, NULL, memory);
    status = sessile_admit_begin(&handle, memory->handle, entries, count, &options, &err);
    return begun(L, run, handle, status, &err);
}

/* ------------------------------------------------------------------ needs */

static void push_need(lua_State *L, const sessile_need *need)
{
    static const char *const kinds[] = {[SESSILE_NEED_MODEL] = "model",
                                        [SESSILE_NEED_HOOK] = "hook",
                                        [SESSILE_NEED_EMBED] = "embed"};

    lua_createtable(L, 0, 8);
    lua_pushstring(L, kinds[need->kind]);
    lua_setfield(L, -2, "kind");
    lua_pushstring(L, need->policy ? need->policy : "");
    lua_setfield(L, -2, "policy");
    binding_set_integer(L, "step", (int64_t)need->step + 1);
    binding_set_text(L, "reason", sessile_reason_name(need->reason));
    binding_set_integer(L, "now", need->now_ms);
    lua_json_push(L, need->request.data, need->request.size);
    lua_setfield(L, -2, "request");
    if (need->kind != SESSILE_NEED_HOOK)
        return;
    binding_set_text(L, "hook", sessile_hook_name(need->hook));
    if (need->options.size)
        lua_json_push(L, need->options.data, need->options.size);
    else
        lua_newtable(L);
    lua_setfield(L, -2, "options");
}

/* run:step() -> a need; true when it is done; nil, message, code */
static int run_step(lua_State *L, struct binding_child *run)
{
    sessile_status status;
    sessile_need need;
    sessile_error err;

    memset(&need, 0, sizeof need);
    status = sessile_memory_run_step(run->handle, &need, &err);
    if (!status) {
        lua_pushboolean(L, 1);
        return 1;
    }
    if (status != SESSILE_NEEDS)
        return binding_fail(L, &err);
    push_need(L, &need);
    return 1;
}

/* ------------------------------------------------------------------ answers */

/* run:reply(text) -> true; nil, message, code: what a model said */
static int run_reply(lua_State *L, struct binding_child *run)
{
    sessile_answer answer;
    sessile_error err;

    memset(&answer, 0, sizeof answer);
    answer.text = binding_check_bytes(L, 2);
    return binding_done(L, sessile_memory_run_reply(run->handle, &answer, &err), &err);
}

/* run:returned({result, why, asks}) -> true; nil, message, code: of a hook */
static int run_returned(lua_State *L, struct binding_child *run)
{
    sessile_answer answer;
    sessile_error err;
    int failed;

    lua_settop(L, 2);
    memset(&answer, 0, sizeof answer);
    failed = binding_json(L, 2, 0, "what the hook returned", &answer.text);
    if (failed)
        return failed;
    return binding_done(L, sessile_memory_run_reply(run->handle, &answer, &err), &err);
}

/* run:fail(reason) -> true; nil, message, code: there is no answer */
static int run_fail(lua_State *L, struct binding_child *run)
{
    sessile_answer answer;
    sessile_error err;

    memset(&answer, 0, sizeof answer);
    answer.status = SESSILE_POLICY;
    answer.text = binding_check_bytes(L, 2);
    return binding_done(L, sessile_memory_run_reply(run->handle, &answer, &err), &err);
}

/* run:vectors{…} -> true; nil, message, code. Lists of numbers; if they are not all of
 * one size, the answer is a failed one. */
static int run_vectors(lua_State *L, struct binding_child *run)
{
    size_t count, dims = 0;
    sessile_error err;
    float *vectors;

    lua_settop(L, 2);
    luaL_checktype(L, 2, LUA_TTABLE);
    count = lua_rawlen(L, 2);
    if (count > SESSILE_MEMORY_RUN_BATCH)
        count = SESSILE_MEMORY_RUN_BATCH;
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        size_t size = lua_istable(L, -1) ? lua_rawlen(L, -1) : 0;
        if (i && size != dims)
            size = 0; /* no vector is of no dimensions: the engine says so */
        dims = size;
        lua_pop(L, 1);
        if (!dims || dims > SESSILE_MEMORY_DIMS_MAX) {
            dims = 0;
            break;
        }
    }
    vectors = lua_newuserdatauv(L, (count * dims + 1) * sizeof *vectors, 0);
    for (size_t i = 0; dims && i < count; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        for (size_t k = 0; k < dims; k++) {
            lua_rawgeti(L, -1, (lua_Integer)k + 1);
            vectors[i * dims + k] = (float)lua_tonumber(L, -1);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    return binding_done(
        L, sessile_memory_run_reply_vectors(run->handle, vectors, count, dims, &err),
        &err);
}

/* ------------------------------------------------------------------ outcome */

#define OUTCOME(...) BINDING_FIELD(sessile_memory_outcome, __VA_ARGS__)
static void more_of_outcome(lua_State *L, const void *row)
{
    const sessile_memory_outcome *outcome = row;
    binding_push_row(L, &binding_recall_row, &outcome->recall);
    lua_setfield(L, -2, "recall");
}

static const struct binding_row outcome_row = BINDING_ROW(
    sessile_memory_outcome, more_of_outcome,
    BINDING_ENUM(sessile_memory_outcome, "verdict", verdict, binding_verdicts),
    OUTCOME("policy", TEXT, policy), OUTCOME("hook", TEXT, hook),
    OUTCOME("law", INTEGER, law), OUTCOME("message", TEXT, message),
    OUTCOME("refusal", ID, refusal), OUTCOME("heard", INTEGER, heard),
    OUTCOME("left", INTEGER, left), OUTCOME("written", INTEGER, written),
    OUTCOME("pending", INTEGER, pending), OUTCOME("lowered", INTEGER, lowered),
    OUTCOME("ended", INTEGER, ended), OUTCOME("confirmed", INTEGER, confirmed),
    OUTCOME("not_admitted", INTEGER, not_admitted), OUTCOME("stale", INTEGER, stale),
    OUTCOME("changes", JSON, changes), OUTCOME("has_vector", BOOLEAN, has_vector),
    OUTCOME("embedded", INTEGER, embedded), OUTCOME("to_embed", INTEGER, to_embed),
    OUTCOME("log", TEXT, log), OUTCOME("policy_us", INTEGER, policy_us));

static int run_outcome(lua_State *L, struct binding_child *run)
{
    sessile_memory_outcome outcome;
    sessile_error err;
    sessile_status status = sessile_memory_run_outcome(run->handle, &outcome, &err);
    return binding_done_row(L, status, &outcome_row, &outcome, &err);
}

const struct binding_child_class binding_memory_run_class = {"sessile.core.MemoryRun",
                                                             "run",
                                                             run_free,
                                                             {{"step", run_step},
                                                              {"reply", run_reply},
                                                              {"returned", run_returned},
                                                              {"fail", run_fail},
                                                              {"vectors", run_vectors},
                                                              {"outcome", run_outcome}}};

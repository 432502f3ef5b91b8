/*
 * binding.h: what the files of the Lua binding share: the userdata and how they hold on
 * to each other, and the conversions of values.c.
 *
 * Every userdata is valid before its C handle is filled in, so that a Lua error in
 * between leaks nothing. A child counts in its parent: a parent that is closed while
 * children live says ECLOSED from then on, and its C handle goes when the last child has
 * gone. That keeps the order the engine asks for (runs, then sessions, then the store)
 * whatever the order of close calls and finalizers is.
 *
 * Never: keep a C result across a Lua call that may raise, unless a userdata owns it.
 */
#ifndef BINDING_BINDING_H
#define BINDING_BINDING_H

#include <stddef.h>
#include <lua.h>
#include <lauxlib.h>
#include "sessile.h"

#if LUA_VERSION_NUM < 504
#error "the binding wants Lua 5.4"
#endif

#define BINDING_STORE     "sessile.core.Store"
#define BINDING_POLICY    "sessile.core.Policy"
#define BINDING_SESSION   "sessile.core.Session"
#define BINDING_ENTRIES   "sessile.core.Entries"
#define BINDING_RUN       "sessile.core.Run"
#define BINDING_RESEAL    "sessile.core.Reseal"
#define BINDING_CHECK     "sessile.core.Check"
#define BINDING_MIGRATION "sessile.core.Migration"
#define BINDING_SEARCH    "sessile.core.Search"
#define BINDING_GUARD     "sessile.core.Guard"
#define BINDING_ENCODING  "sessile.core.Encoding"
#define BINDING_REQUEST   "sessile.core.Request"

#if defined(__GNUC__)
#define BINDING_EXPORT __attribute__((visibility("default")))
#else
#define BINDING_EXPORT
#endif

/* ---- handles. User value 1 of a child is its parent, whose memory so lives. */

struct binding_store {
    sessile_store *handle;
    size_t children; /* sessions and policies with a handle */
    int closed;      /* close was asked for */
};

struct binding_policy {
    sessile_policy *handle;
    struct binding_store *store;
};

struct binding_session {
    sessile_session *handle;
    struct binding_store *store;
    size_t children; /* runs and iterators with a handle */
    int closed;
};

struct binding_entries {
    sessile_entries *handle;
    struct binding_session *session;
};

struct binding_run {
    sessile_run *handle;
    struct binding_session *session;
    int asks;          /* a sessile_need_kind: what the run waits for */
    sessile_hook hook; /* of a HOOK need */
    int done;          /* the last step said OK */
};

/* store.c. The check functions raise for a wrong type; *_live return NULL and push the
 * three values of a closed handle. */
void binding_store_open(lua_State *L);
int binding_open(lua_State *L);
int binding_limits(lua_State *L);
int binding_schemes(lua_State *L);
int binding_scheme(lua_State *L);
int binding_sorts(lua_State *L);
struct binding_store *binding_store_live(lua_State *L, int index);
void binding_store_release(struct binding_store *store);
/* Options of open at `table` (nil: the defaults); text is anchored by the table. */
void binding_store_options(lua_State *L, int table, sessile_store_options *out);
/* The index of a field's text among `values` (ended by NULL), 0 when it is absent; raises
 * for another text. */
int binding_one_of(lua_State *L, int table, const char *name, const char *const *values);
/* The policy at index, or NULL for nil or none. */
sessile_policy *binding_policy_opt(lua_State *L, int index);

/* What a list is asked for, as the table at `table` (not relative) says; text is anchored
 * by it. */
void binding_list_options(lua_State *L, int table, sessile_list_options *out);
/* A row of a list: a sessile_listed. */
extern const struct binding_row binding_listed_row;

/* keys.c */
extern const char *const binding_key_sources[];
void binding_keys_open(lua_State *L);
int binding_keys_init(lua_State *L);
int binding_store_keys(lua_State *L, struct binding_store *store);
int binding_store_rotate(lua_State *L, struct binding_store *store);
int binding_store_reseal(lua_State *L, struct binding_store *store);
int binding_store_forget(lua_State *L, struct binding_store *store);

/* migrate.c */
void binding_migrate_open(lua_State *L);
int binding_migrate(lua_State *L);

/* life.c */
int binding_store_delete(lua_State *L, struct binding_store *store);
int binding_store_undelete(lua_State *L, struct binding_store *store);
int binding_store_purge(lua_State *L, struct binding_store *store);
int binding_session_life(lua_State *L, struct binding_session *session);
int binding_session_set_ttl(lua_State *L, struct binding_session *session);
int binding_session_set_archived(lua_State *L, struct binding_session *session);

/* check.c */
void binding_check_open(lua_State *L);
int binding_store_check(lua_State *L, struct binding_store *store);

/* config.c */
int binding_config(lua_State *L);
int binding_stays_below(lua_State *L);

/* search.c */
void binding_search_open(lua_State *L);
int binding_store_search(lua_State *L, struct binding_store *store);

/* encoding.c */
void binding_encoding_open(lua_State *L);
int binding_encoding(lua_State *L);

/* http.c */
void binding_request_open(lua_State *L);
int binding_http_library(lua_State *L);
int binding_post(lua_State *L);
int binding_sleep(lua_State *L);

/* session.c */
void binding_session_open(lua_State *L);
/* Functions of a store that make sessions: mode 'c'reate, 'r'esume, 's'ession, 'o'ver
 * records. */
int binding_session_make(lua_State *L, struct binding_store *store, int mode);
struct binding_session *binding_session_live(lua_State *L, int index);
sessile_status binding_session_release(struct binding_session *session,
                                       sessile_error *err);
/* Options of a session at `table`, and a new userdata for one of the store at index
 * `store`, closed until it says that it was opened. */
int binding_session_options(lua_State *L, int table, sessile_session_options *out);
struct binding_session *binding_session_new(lua_State *L, int store);
void binding_session_opened(struct binding_session *session, struct binding_store *store);

/* records.c */
int binding_open_records(lua_State *L);
int binding_store_open_over(lua_State *L, struct binding_store *store);
int binding_session_records(lua_State *L, struct binding_session *session);
int binding_now(lua_State *L);
/* The strings of the list at index, which anchors them; pushes what holds the array. */
sessile_slice *binding_records(lua_State *L, int index, size_t *count);

/* annotate.c: methods of a session */
int binding_session_label(lua_State *L, struct binding_session *session);
int binding_session_unlabel(lua_State *L, struct binding_session *session);
int binding_session_labels(lua_State *L, struct binding_session *session);
int binding_session_settings(lua_State *L, struct binding_session *session);
int binding_session_metadata(lua_State *L, struct binding_session *session);
int binding_session_suspend(lua_State *L, struct binding_session *session);
int binding_session_suspended(lua_State *L, struct binding_session *session);
int binding_session_resume_with(lua_State *L, struct binding_session *session);
int binding_session_cancel(lua_State *L, struct binding_session *session);

/* fork.c */
int binding_session_fork(lua_State *L, struct binding_session *session);
int binding_store_put(lua_State *L, struct binding_store *store);
int binding_session_child(lua_State *L, struct binding_session *session);
int binding_session_merged(lua_State *L, struct binding_session *session);
int binding_session_discarded(lua_State *L, struct binding_session *session);
int binding_session_subsessions(lua_State *L, struct binding_session *session);
/* Sets what the header says of other sessions in the table on top. */
void binding_push_links(lua_State *L, const sessile_session *session);

/* entries.c */
void binding_entries_open(lua_State *L);
int binding_session_entries(lua_State *L, struct binding_session *session);
int binding_session_entry(lua_State *L, struct binding_session *session);
int binding_session_messages(lua_State *L, struct binding_session *session);
int binding_session_context(lua_State *L, struct binding_session *session);

/* tree.c */
int binding_session_path(lua_State *L, struct binding_session *session);
int binding_session_children(lua_State *L, struct binding_session *session);
int binding_session_siblings(lua_State *L, struct binding_session *session);
int binding_session_leaves(lua_State *L, struct binding_session *session);
int binding_session_common_ancestor(lua_State *L, struct binding_session *session);
int binding_session_tree(lua_State *L, struct binding_session *session);
/* nil, a message that names the nearest entries, "ENOTFOUND": for what is no id. */
int binding_no_entry(lua_State *L, struct binding_session *session);

/* explain.c */
int binding_session_compactions(lua_State *L, struct binding_session *session);
int binding_session_why(lua_State *L, struct binding_session *session);
int binding_session_uncompact(lua_State *L, struct binding_session *session);

/* run.c */
void binding_run_open(lua_State *L);
struct binding_run *binding_run_live(lua_State *L, int index);
int binding_session_turn(lua_State *L, struct binding_session *session);
int binding_session_compact(lua_State *L, struct binding_session *session);
int binding_session_plan(lua_State *L, struct binding_session *session);
int binding_session_branch(lua_State *L, struct binding_session *session);
int binding_session_answer(lua_State *L, struct binding_session *session);

/* checkpoint.c */
int binding_session_checkpoint(lua_State *L, struct binding_session *session);
int binding_session_checkpoints(lua_State *L, struct binding_session *session);
int binding_session_restore(lua_State *L, struct binding_session *session);
int binding_session_delete_checkpoint(lua_State *L, struct binding_session *session);
/* The table `agent_info` among a session's options, which keeps its texts: 0; or pushes
 * the three values of a failure: 3. */
int binding_agent_info(lua_State *L, int table, sessile_agent_info *out);

/* pending.c */
int binding_run_defer(lua_State *L, struct binding_run *run);
int binding_session_pending_runs(lua_State *L, struct binding_session *session);

/* ---- values.c */

/* Registers a metatable: methods as __index, and __name, __gc, __close, __tostring. */
void binding_class(lua_State *L, const char *name, const luaL_Reg *methods,
                   lua_CFunction finalize, lua_CFunction text);

/* A method that is called only while its handle is open; otherwise it returns what
 * binding_closed pushes. The list ends with an empty name. */
struct binding_method {
    const char *name;
    int (*session)(lua_State *L, struct binding_session *session);
    int (*store)(lua_State *L, struct binding_store *store);
    int (*run)(lua_State *L, struct binding_run *run);
};
/* Adds them to a class; a row has the one member that fits the class. */
void binding_methods(lua_State *L, const char *name,
                     const struct binding_method *methods);
/* Pushes a zeroed userdata of that class. */
void *binding_new(lua_State *L, size_t size, int user_values, const char *name);

/* Pushes nil, the message, "E" + name; returns 3. */
int binding_fail(lua_State *L, const sessile_error *err);
int binding_fail_with(lua_State *L, sessile_status status, const char *message);
/* nil, "the … is closed: nothing was done", "ECLOSED". */
int binding_closed(lua_State *L, const char *what);
/* true when status is OK, else binding_fail. */
int binding_done(lua_State *L, sessile_status status, const sessile_error *err);

/* The id when status is OK, else binding_fail. */
int binding_done_id(lua_State *L, sessile_status status, const sessile_id *id,
                    const sessile_error *err);

/* {model, tools, system, leaf} of a count: 0, or what binding_field_json returned. */
int binding_count_options(lua_State *L, int table, sessile_count_options *out);
/* store:count(text), store:count_messages(list, options) (count.c) */
int binding_count(lua_State *L, struct binding_store *store);
int binding_count_messages(lua_State *L, struct binding_store *store);
/* The function `count` of the table as the host's counter of a store. Pushes what must
 * live as long as the store, or nil. */
void binding_counter(lua_State *L, int table, sessile_store_options *out);

/* ---- rows: structs of the engine as tables */

enum binding_kind {
    BINDING_INTEGER, /* of 4 or 8 bytes */
    BINDING_TIME,    /* an int64_t; left out when it is 0 */
    BINDING_BOOLEAN, /* an int */
    BINDING_ID,
    BINDING_KEY,
    BINDING_TEXT,   /* a char pointer; left out when NULL or empty */
    BINDING_SLICE,  /* left out when empty */
    BINDING_STRING, /* a slice; empty: "" */
    BINDING_JSON    /* a slice, as the value that it holds; left out when empty */
};

/* A member of a struct as a field of a table. A list ends with an empty name. */
struct binding_field {
    const char *name;
    enum binding_kind kind;
    size_t offset, size;
};
#define BINDING_FIELD(type, name, kind, member)                                   \
    {                                                                             \
        name, BINDING_##kind, offsetof(type, member), sizeof(((type *)0)->member) \
    }

/* A struct as a table: its fields, and what `more` sets in the table on top. */
struct binding_row {
    size_t size;
    void (*more)(lua_State *L, const void *row); /* or NULL */
    struct binding_field fields[25];
};
/* Sets the fields of the struct at `row` in the table on top. */
void binding_set_fields(lua_State *L, const struct binding_field *fields,
                        const void *row);
void binding_push_row(lua_State *L, const struct binding_row *type, const void *row);
/* A list of `count` of them. */
void binding_push_rows(lua_State *L, const struct binding_row *type, const void *rows,
                       size_t count);

/* Sets `failure` {log, message, code} in the table on top, where a log is named. */
void binding_set_failure(lua_State *L, const char *log, const sessile_error *why);

/* A block that a call of the engine allocates: binding_result, then the call, then
 * binding_result_failed with the block, which owns it. */
struct binding_result {
    struct binding_guard *guard;
    sessile_status status;
    sessile_error err;
    size_t count;
};
struct binding_result binding_result(lua_State *L);
/* 0; or pushes the three values of a failure: 3. */
int binding_result_failed(lua_State *L, struct binding_result *result, void *block);
/* Frees the block; 1, the value on top. */
int binding_result_done(struct binding_result *result);
/* All of it for a list of rows. */
int binding_result_rows(lua_State *L, struct binding_result *result,
                        const struct binding_row *type, void *rows);

/* Owns one sessile_free() block until it is collected: made empty, then filled. */
struct binding_guard {
    void *block;
};
struct binding_guard *binding_guard(lua_State *L);
/* Frees the block at once. */
void binding_guard_free(struct binding_guard *guard);

/* Fields of the table at `table` (nil: none). The text is anchored by the table. Wrong
 * types raise, naming the field. */
sessile_slice binding_field_bytes(lua_State *L, int table, const char *name);
const char *binding_field_string(lua_State *L, int table, const char *name);
lua_Integer binding_field_integer(lua_State *L, int table, const char *name,
                                  lua_Integer fallback);
/* 0 when the field is absent; raises unless it is 0 to most. */
uint64_t binding_field_count(lua_State *L, int table, const char *name, uint64_t most);
/* 1 and *out when the field is there: milliseconds, any negative number being -1. */
int binding_field_timeout(lua_State *L, int table, const char *name, int *out);
int binding_timeout(lua_Integer ms);
int binding_field_boolean(lua_State *L, int table, const char *name);

/* options.c: the fields of the table at `table` (nil: none) that a store, a session and a
 * run have in common: window, reserve, timeout_ms, isolation ("none", "worker"). */
void binding_field_config(lua_State *L, int table, sessile_config *out);
/* Room for what a configuration points to. */
struct binding_triggers {
    sessile_triggers compact, checkpoint;
};
/* Those of runs: triggers, checkpoint (the same fields), checkpoint_keep. What *out
 * borrows is in *storage, and in values that are left on the stack. */
void binding_field_triggers(lua_State *L, int table, sessile_config *out,
                            struct binding_triggers *storage);

/* An 8-digit id, or SESSILE_NO_ID when the field is absent; raises when it is no id. */
sessile_id binding_field_id(lua_State *L, int table, const char *name);
sessile_role binding_field_role(lua_State *L, int table, const char *name);

/* Pushes the JSON text of the value at index and sets *out to it: 0; or pushes the three
 * values of a failure (EINVALID, `what` named): 3. */
int binding_json(lua_State *L, int index, int message, const char *what,
                 sessile_slice *out);
/* The same for a table's field; absent: *out empty and nil pushed. Pushes one value or
 * three. */
int binding_field_json(lua_State *L, int table, const char *name, sessile_slice *out);

/* Reads an id given as a string argument; raises when it is none. */
sessile_id binding_check_id(lua_State *L, int index);
/* Pushes the printed key, or nil for SESSILE_NO_ID. */
void binding_push_key(lua_State *L, sessile_key key);
void binding_push_id(lua_State *L, sessile_id id);
void binding_push_slice(lua_State *L, sessile_slice slice);

/* Sets a field of the table on top. Left out (nil): a time of 0, an empty text, an id or
 * key of SESSILE_NO_ID. */
void binding_set_integer(lua_State *L, const char *name, int64_t value);
void binding_set_time(lua_State *L, const char *name, int64_t ms);
void binding_set_boolean(lua_State *L, const char *name, int value);
void binding_set_text(lua_State *L, const char *name, const char *text);
void binding_set_slice(lua_State *L, const char *name, sessile_slice text);
void binding_set_id(lua_State *L, const char *name, sessile_id id);
void binding_set_key(lua_State *L, const char *name, sessile_key key);

/* A list of message tables: the caller's fields, and by metatable id, key, tokens, time,
 * json. */
void binding_push_messages(lua_State *L, const sessile_message *list, size_t count);
/* An entry, settings: a JSON object as a table, with .json and __name by metatable. */
void binding_push_object(lua_State *L, const char *name, const char *json, size_t size);
void binding_push_tokens(lua_State *L, const sessile_tokens *tokens);
sessile_reason binding_field_reason(lua_State *L, int table, const char *name);

int luaopen_sessile_core(lua_State *L);

#endif

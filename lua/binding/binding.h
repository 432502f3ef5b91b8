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
#include "sessile_access.h"
#include "sessile_guard.h"
#include "sessile_memory.h"

#if LUA_VERSION_NUM < 504 && !defined(BINDING_COMPAT51_H)
#error "the binding wants Lua 5.4, or LuaJIT and compat51.h"
#endif

#define BINDING_STORE   "sessile.core.Store"
#define BINDING_SESSION "sessile.core.Session"
#define BINDING_RUN     "sessile.core.Run"
#define BINDING_GUARD   "sessile.core.Guard"
#define BINDING_REQUEST "sessile.core.Request"

#if defined(__GNUC__)
#define BINDING_EXPORT __attribute__((visibility("default")))
#else
#define BINDING_EXPORT
#endif

struct binding_row;

/* ---- handles. User value 1 of a child is its parent, whose memory so lives. */

struct binding_store {
    sessile_store *handle;
    struct binding_store *of;    /* of a view: the store that it was made from */
    struct binding_store *audit; /* that keeps the audit of this one's guard */
    size_t children;             /* sessions, policies and views with a handle */
    int closed;                  /* close was asked for */
};

struct binding_session {
    sessile_session *handle;
    struct binding_store *store;
    size_t children; /* runs and iterators with a handle */
    int closed;
};

struct binding_run {
    sessile_run *handle;
    struct binding_session *session;
    int asks;          /* a sessile_need_kind: what the run waits for */
    sessile_hook hook; /* of a HOOK need */
    int done;          /* the last step said OK */
};

/* Functions of the module, and methods of a handle that is open. */
typedef int binding_function(lua_State *L);
typedef int binding_store_method(lua_State *L, struct binding_store *store);
typedef int binding_session_method(lua_State *L, struct binding_session *session);
typedef int binding_run_method(lua_State *L, struct binding_run *run);

/* handles.c: handles that only iterate or hold something: checks, searches, migrations,
 * policies. Their classes differ in how the engine frees one, and in their methods. */
struct binding_child {
    void *handle; /* of the engine; NULL: closed */
    const struct binding_child_class *class;
    struct binding_store *stores[2]; /* its parents, or NULL */
    struct binding_session *session;
};
struct binding_child_class {
    const char *name; /* of the metatable */
    const char *noun; /* for "the … is closed" */
    void (*free)(void *handle);
    struct {
        const char *name;
        int (*call)(lua_State *L, struct binding_child *child); /* while it is open */
    } methods[24]; /* ends with an empty one */
};
void binding_child_register(lua_State *L, const struct binding_child_class *class);
/* Pushes a closed one. It keeps the value at index 1, which is `store` unless that is
 * NULL, and has room for one more user value. Other parents are the caller's to set. */
struct binding_child *binding_child_new(lua_State *L,
                                        const struct binding_child_class *class,
                                        struct binding_store *store);
/* Opens it, counts it in its parents, and returns 1. */
int binding_child_opened(struct binding_child *child, void *handle);
void binding_child_close(struct binding_child *child);

extern const struct binding_child_class binding_check_class, binding_search_class,
    binding_encoding_class, binding_reseal_class, binding_migration_class,
    binding_policy_class, binding_entries_class, binding_memory_class,
    binding_memory_run_class, binding_screens_class, binding_audit_class,
    binding_verification_class;

/* store.c. The check functions raise for a wrong type; *_live return NULL and push the
 * three values of a closed handle. */
void binding_store_open(lua_State *L);
binding_function binding_open, binding_limits, binding_schemes, binding_scheme,
    binding_sorts, binding_permissions;
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
binding_function binding_keys_init;
binding_store_method binding_store_keys, binding_store_rotate, binding_store_reseal,
    binding_store_forget;

/* access.c */
binding_store_method binding_store_grant, binding_store_grants, binding_store_ungrant,
    binding_store_access_key, binding_store_access_keys, binding_store_revoke_key,
    binding_store_lock, binding_store_unlock, binding_store_locks;

/* guard.c */
/* The texts of the list in a field, which anchors them, as an array on the stack; NULL:
 * none. slices: as slices, not as texts. */
void *binding_field_texts(lua_State *L, int table, const char *name, int slices,
                          size_t *count);
binding_store_method binding_store_guard, binding_store_as, binding_store_renew,
    binding_store_revoke, binding_store_who, binding_store_can, binding_store_may,
    binding_store_note;

/* privacy.c */
binding_store_method binding_store_consent, binding_store_consents, binding_store_hold,
    binding_store_holds, binding_store_release_hold, binding_store_purge_retention,
    binding_store_erase_user;

/* audit.c */
binding_function binding_audit_check;
binding_store_method binding_store_audit, binding_store_audit_verify,
    binding_store_audit_root, binding_store_audit_head, binding_store_audit_seal,
    binding_store_audit_prove;
/* screen.c */
binding_store_method binding_store_screen;
/* Fills in what may be written: screens (a list of the core) and urls ({refuse = {kinds},
 * flag = {kinds}, allow =, only_allowed =}) of the table at `table`. What is borrowed is
 * left on the stack. */
void binding_write_rules(lua_State *L, int table, sessile_guard_options *out);

/* migrate.c */
binding_function binding_migrate;

/* life.c */
binding_store_method binding_store_delete, binding_store_undelete, binding_store_purge,
    binding_store_purge_forgotten, binding_store_deletions, binding_store_nodes,
    binding_store_standbys;
binding_session_method binding_session_life, binding_session_set_ttl,
    binding_session_set_archived;

/* check.c */
binding_store_method binding_store_check;

/* config.c */
binding_function binding_config, binding_stays_below;

/* search.c */
binding_store_method binding_store_search;

/* memory.c */
binding_store_method binding_store_memory;
extern const struct binding_row binding_memory_row;
/* What an outside index found, in the list at the field `outside`; NULL: there is none.
 * Leaves what holds it on the stack. */
struct sessile_memory_outside *binding_outside(lua_State *L, int table, size_t *count);

/* The names of the kinds and the sources of entries, ended by NULL. */
extern const char *const binding_memory_kinds[], *const binding_memory_sources[];
/* A number at a field; *out stays as it is if there is none. Raises for anything else. */
void binding_field_number(lua_State *L, int table, const char *name, double *out);
/* Copies `count` numbers of the list at index. Raises if one is no number. */
void binding_floats(lua_State *L, int index, float *out, size_t count);

/* memory_write.c */
int binding_memory_write(lua_State *L, struct binding_child *memory);
int binding_memory_apply(lua_State *L, struct binding_child *memory);
int binding_memory_verdict(lua_State *L, struct binding_child *memory);
int binding_memory_erase(lua_State *L, struct binding_child *memory);
int binding_memory_delete_from(lua_State *L, struct binding_child *memory);
int binding_memory_consent(lua_State *L, struct binding_child *memory);
int binding_memory_embed(lua_State *L, struct binding_child *memory);
/* The ids in the list at a field; leaves what holds them on the stack. */
sessile_id *binding_memory_ids(lua_State *L, int table, const char *name, size_t *count);
/* The entries to be written in the list at index, with a table on top that holds what
 * they point to; NULL: pushed the three values of a failure. */
sessile_memory_write_entry *binding_memory_entries(lua_State *L, int list, size_t *count);

/* recall.c */
binding_session_method binding_session_recall, binding_session_recall_find;
binding_session_method binding_session_agent_source;
/* The open memories in the list at index; NULL, with the three values of a failure
 * pushed: one is closed. Leaves what holds them on the stack. */
sessile_memory **binding_memories(lua_State *L, int index, size_t *count);
/* The options of a recall in the table at index, and what holds their lists. */
void binding_recall_options(lua_State *L, int index, sessile_recall_options *out);
extern const struct binding_row binding_recall_row;

/* outcome.c */
/* What a run came to: the names of sessile_verdict, ended by NULL. */
extern const char *const binding_verdicts[];

/* memory_run.c */
binding_session_method binding_session_remember_run, binding_session_recall_run;
int binding_memory_tidy(lua_State *L, struct binding_child *memory);
int binding_memory_admit(lua_State *L, struct binding_child *memory);
int binding_memory_embed_run(lua_State *L, struct binding_child *memory);

/* encoding.c */
binding_function binding_encoding;

/* screen.c */
binding_function binding_screens;

/* url.c */
binding_function binding_url_check, binding_address_check;
/* The options allow and only_allowed of the table at `table` (not relative; nil: none).
 * Pushes a value that *out lives as long as. */
void binding_url_options(lua_State *L, int table, sessile_url_options *out);

/* http.c */
void binding_request_open(lua_State *L);
binding_function binding_http_library, binding_request, binding_sleep;

/* session.c */
void binding_session_open(lua_State *L);
struct binding_session *binding_session_live(lua_State *L, int index);
sessile_status binding_session_release(struct binding_session *session,
                                       sessile_error *err);
/* The options of a session at `table`; pushes one value that anchors them: 0; or the
 * three values of a failure: 3. */
int binding_session_options(lua_State *L, int table, sessile_session_options *out);
/* Reads the options at `table` and pushes a closed session of the store, or of the
 * session's store, at index 1. NULL: pushed the three values of a failure. */
struct binding_session *binding_session_new(lua_State *L, int table,
                                            sessile_session_options *out);
/* Opens it as the session on top, when the status is OK; else binding_fail. */
int binding_session_made(lua_State *L, struct binding_session *made,
                         struct binding_store *store, sessile_status status,
                         const sessile_error *err);

/* records.c */
binding_function binding_open_records;
binding_store_method binding_store_open_over;
binding_session_method binding_session_records;
binding_function binding_now;

/* random.c: random(seed) -> function([n]), as random of a policy's ctx */
binding_function binding_random;
/* The strings of the list at index, which anchors them; pushes what holds the array. */
sessile_slice *binding_records(lua_State *L, int index, size_t *count);

/* annotate.c: methods of a session */
binding_session_method binding_session_label, binding_session_unlabel,
    binding_session_labels, binding_session_settings, binding_session_metadata,
    binding_session_suspend, binding_session_suspended, binding_session_resume_with,
    binding_session_cancel;

/* fork.c */
binding_session_method binding_session_fork;
binding_store_method binding_store_put;
binding_session_method binding_session_child, binding_session_merged,
    binding_session_discarded, binding_session_subsessions;
/* Sets what the header says of other sessions in the table on top. */
void binding_push_links(lua_State *L, const sessile_session *session);

/* entries.c */
/* Makes entries iterators callable. */
void binding_entries_open(lua_State *L);
binding_session_method binding_session_entries, binding_session_entry,
    binding_session_messages, binding_session_context;

/* tree.c */
binding_session_method binding_session_path, binding_session_children,
    binding_session_siblings, binding_session_leaves, binding_session_common_ancestor,
    binding_session_tree;
/* nil, a message that names the nearest entries, "ENOTFOUND": for a text that is not an
 * id. */
binding_session_method binding_no_entry;

/* explain.c */
binding_session_method binding_session_compactions, binding_session_why,
    binding_session_uncompact;

/* run.c */
void binding_run_open(lua_State *L);
struct binding_run *binding_run_live(lua_State *L, int index);
binding_session_method binding_session_turn, binding_session_compact,
    binding_session_plan, binding_session_branch, binding_session_answer;

/* checkpoint.c */
binding_session_method binding_session_checkpoint, binding_session_checkpoints,
    binding_session_restore, binding_session_delete_checkpoint;
/* The table `agent_info` among a session's options, which keeps its texts: 0; or pushes
 * the three values of a failure: 3. */
int binding_agent_info(lua_State *L, int table, sessile_agent_info *out);

/* outcome.c */
binding_run_method binding_run_outcome;

/* pending.c */
binding_run_method binding_run_defer;
binding_session_method binding_session_pending_runs;

/* ---- values.c */

/* A method of a class: one of the members. All but `plain` are called only while the
 * handle is open; otherwise they return what binding_closed pushes. */
struct binding_method {
    const char *name;
    binding_session_method *session;
    binding_store_method *store;
    binding_run_method *run;
    binding_function *plain;
};
/* Registers a metatable: __index with `methods` (which end with an empty name) and close,
 * and __name, __gc, __close, __tostring. */
void binding_class(lua_State *L, const char *name, const struct binding_method *methods,
                   lua_CFunction close, lua_CFunction finalize, lua_CFunction text);
/* Pushes a zeroed userdata of that class. */
void *binding_new(lua_State *L, size_t size, int user_values, const char *name);

/* Pushes nil, the message, "E" + name, and, where the error has them, retry_ms and the
 * rule; returns how many. */
int binding_fail(lua_State *L, const sessile_error *err);
int binding_fail_with(lua_State *L, sessile_status status, const char *message);
/* nil, a sentence about a zero byte in the URL of a store, "EINVALID". */
int binding_zero_byte(lua_State *L);
/* nil, "the … is closed: nothing was done", "ECLOSED". */
int binding_closed(lua_State *L, const char *what);
/* Defines the function that frees a child's handle. */
#define BINDING_FREE(name, function) \
    static void name(void *handle)   \
    {                                \
        function(handle);            \
    }

/* true when status is OK, else binding_fail. */
int binding_done(lua_State *L, sessile_status status, const sessile_error *err);

/* The id, the number or the row when status is OK; else binding_fail. */
int binding_done_id(lua_State *L, sessile_status status, const sessile_id *id,
                    const sessile_error *err);
int binding_done_count(lua_State *L, sessile_status status, const uint64_t *count,
                       const sessile_error *err);
int binding_done_row(lua_State *L, sessile_status status, const struct binding_row *type,
                     const void *row, const sessile_error *err);

/* {model, tools, system, leaf} of a count: 0, or what binding_field_json returned. */
int binding_count_options(lua_State *L, int table, sessile_count_options *out);
/* store:count(text), store:count_messages(list, options) (count.c) */
binding_store_method binding_count, binding_count_messages;
/* The function `count` of the table as the host's counter of a store. Pushes what must
 * live as long as the store, or nil. */
void binding_counter(lua_State *L, int table, sessile_store_options *out);

/* ---- rows: structs of the engine as tables */

enum binding_kind {
    BINDING_INTEGER, /* of 4 or 8 bytes */
    BINDING_COUNT,   /* the same, unsigned; differs only when it is read */
    BINDING_TIME,    /* an int64_t; left out when it is 0 */
    BINDING_INDEX,   /* a number from 0, as one from 1 */
    BINDING_BOOLEAN, /* an int */
    BINDING_NUMBER,  /* a double */
    BINDING_ID,
    BINDING_KEY,
    BINDING_TEXT,   /* a char pointer; left out when NULL or empty */
    BINDING_CHARS,  /* an array of char; left out when empty */
    BINDING_SLICE,  /* left out when empty */
    BINDING_STRING, /* a slice; empty: "" */
    BINDING_JSON,   /* a slice, as the value that it holds; left out when empty */
    BINDING_ROLE,   /* its name; left out when there is none */
    BINDING_STATUS, /* "E" and its name; left out when it is OK */
    BINDING_NAME    /* an enum, as one of a list of names */
};

/* A member of a struct as a field of a table. A list ends with an empty name. */
struct binding_field {
    const char *name;
    enum binding_kind kind;
    size_t offset, size;
    const char *const *names; /* for BINDING_NAME; ends with NULL */
};
#define BINDING_FIELD_OF(type, name, kind, member, names)                      \
    {                                                                          \
        name, kind, offsetof(type, member), sizeof(((type *)0)->member), names \
    }
#define BINDING_FIELD(type, name, kind, member) \
    BINDING_FIELD_OF(type, name, BINDING_##kind, member, NULL)
#define BINDING_ENUM(type, name, member, names) \
    BINDING_FIELD_OF(type, name, BINDING_NAME, member, names)

/* A list of them. */
#define BINDING_FIELDS(...) \
    {                       \
        __VA_ARGS__,        \
        {                   \
            0               \
        }                   \
    }

/* A struct as a table: its fields, and what `more` sets in the table on top. */
struct binding_row {
    size_t size;
    void (*more)(lua_State *L, const void *row); /* or NULL */
    struct binding_field fields[32];
};
#define BINDING_ROW(type, more, ...) \
    {                                \
        sizeof(type), more,          \
        {                            \
            __VA_ARGS__,             \
            {                        \
                0                    \
            }                        \
        }                            \
    }
/* Sets the fields of the struct at `row` in the table on top. */
void binding_set_fields(lua_State *L, const struct binding_field *fields,
                        const void *row);
void binding_push_row(lua_State *L, const struct binding_row *type, const void *row);
/* A list of `count` of them. */
void binding_push_rows(lua_State *L, const struct binding_row *type, const void *rows,
                       size_t count);

/* Reads the fields of the table at `table` (nil: none) into the struct at `out`. A field
 * that is absent leaves its member as it is. Text is anchored by the table. */
void binding_get_fields(lua_State *L, int table, const struct binding_field *fields,
                        void *out);

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
/* All of it for a list of rows, one row (NULL: false), messages, a list of ids, a text,
 * a JSON object. */
int binding_result_rows(lua_State *L, struct binding_result *result,
                        const struct binding_row *type, void *rows);
int binding_result_row(lua_State *L, struct binding_result *result,
                       const struct binding_row *type, void *row);
int binding_result_messages(lua_State *L, struct binding_result *result,
                            sessile_message *list);
int binding_result_ids(lua_State *L, struct binding_result *result, sessile_id *ids);
int binding_result_text(lua_State *L, struct binding_result *result, char *text);
int binding_result_object(lua_State *L, struct binding_result *result, const char *class,
                          char *json);
/* A method of a session that returns a list of rows. */
#define BINDING_LIST(name, row_type, descriptor, function)                   \
    int name(lua_State *L, struct binding_session *session)                  \
    {                                                                        \
        struct binding_result got = binding_result(L);                       \
        row_type *rows = NULL;                                               \
        got.status = function(session->handle, &rows, &got.count, &got.err); \
        return binding_result_rows(L, &got, descriptor, rows);               \
    }
/* What a step of a long operation returns: whether it is done, and its state. */
int binding_stepped(lua_State *L, sessile_status status, const struct binding_row *type,
                    const void *state, const sessile_error *err);

/* Owns one sessile_free() block until it is collected: made empty, then filled. */
struct binding_guard {
    void *block;
};
struct binding_guard *binding_guard(lua_State *L);
/* Frees the block at once. */
void binding_guard_free(struct binding_guard *guard);

/* Raises a sentence at the line of the program that called the library: with the function
 * that on_misuse(function) was given. */
int binding_misuse(lua_State *L, const char *format, ...);
binding_function binding_on_misuse;

/* Pushes the field of the table at `table` (anything else has none); returns its type. No
 * metamethod runs: text belongs to the table, which keeps it. */
int binding_raw_field(lua_State *L, int table, const char *name);

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
 * run have in common: window, reserve, keep_min, timeout_ms, isolation ("none",
 * "worker"). */
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
/* The role of that name (NULL: none), or SESSILE_ROLE_NONE. */
sessile_role binding_role_of(const char *name);
sessile_role binding_field_role(lua_State *L, int table, const char *name);

/* Pushes the JSON text of the value at index and sets *out to it: 0; or pushes the three
 * values of a failure (EINVALID, `what` named): 3. */
int binding_json(lua_State *L, int index, int message, const char *what,
                 sessile_slice *out);
/* The same for a table's field; absent: *out empty and nil pushed. Pushes one value or
 * three. */
int binding_field_json(lua_State *L, int table, const char *name, sessile_slice *out);

/* The JSON of every value of the list at index: an array of slices and the table that
 * keeps their texts are left on the stack: 0; or pushes the three values of a failure:
 * 3. */
int binding_json_list(lua_State *L, int index, int message, sessile_slice **out,
                      size_t *count);

/* Reads an id given as a string argument; raises when it is none. */
sessile_id binding_check_id(lua_State *L, int index);
/* The same, or SESSILE_NO_ID when there is no argument. */
sessile_id binding_opt_id(lua_State *L, int index);
/* A string argument; raises when it is none. */
sessile_slice binding_check_bytes(lua_State *L, int index);
/* The same, or empty when there is no argument. */
sessile_slice binding_opt_bytes(lua_State *L, int index);
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
void binding_set_status(lua_State *L, const char *name, sessile_status status);
void binding_set_slice(lua_State *L, const char *name, sessile_slice text);
void binding_set_id(lua_State *L, const char *name, sessile_id id);
void binding_set_key(lua_State *L, const char *name, sessile_key key);

/* A list of message tables: the caller's fields, and by metatable id, key, tokens, time,
 * json. */
void binding_push_messages(lua_State *L, const sessile_message *list, size_t count);
/* An entry, settings: a JSON object as a table, with .json and __name by metatable. */
void binding_push_object(lua_State *L, const char *name, const char *json, size_t size);
void binding_push_tokens(lua_State *L, const sessile_tokens *tokens);
/* n, {tokens, low, high, source}: 2 */
int binding_push_count(lua_State *L, const sessile_tokens *tokens);
sessile_reason binding_field_reason(lua_State *L, int table, const char *name);

int luaopen_sessile_core(lua_State *L);

#endif

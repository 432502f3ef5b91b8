/* privacy.c: consents, holds, retention and erasure: methods of a store. */
#include "binding.h"

#include <string.h>

#include "sessile_privacy.h"

#define CONSENT(...) BINDING_FIELD(sessile_consent_options, __VA_ARGS__)
static const struct binding_field consent_fields[] =
    BINDING_FIELDS(CONSENT("agent", SLICE, agent), CONSENT("user", SLICE, user),
                   CONSENT("given", BOOLEAN, given), CONSENT("keep", BOOLEAN, keep),
                   CONSENT("by", SLICE, by), CONSENT("text", SLICE, text),
                   CONSENT("scope", SLICE, scope));

/* store:consent{agent, user, given, keep, by, text, scope} -> how many entries were
 * erased */
int binding_store_consent(lua_State *L, struct binding_store *store)
{
    sessile_consent_options options;
    sessile_error err;
    size_t erased;
    uint64_t result;

    luaL_checktype(L, 2, LUA_TTABLE);
    sessile_consent_options_init(&options);
    binding_get_fields(L, 2, consent_fields, &options);
    sessile_status status = sessile_consent(store->handle, &options, &erased, &err);
    result = erased;
    return binding_done_count(L, status, &result, &err);
}

#define CONSENT_ROW(...) BINDING_FIELD(sessile_consent_row, __VA_ARGS__)
static const struct binding_row consent_row = BINDING_ROW(
    sessile_consent_row, NULL, CONSENT_ROW("agent", SLICE, agent),
    CONSENT_ROW("user", SLICE, user), CONSENT_ROW("given", BOOLEAN, given),
    CONSENT_ROW("time", TIME, time_ms), CONSENT_ROW("by", SLICE, by),
    CONSENT_ROW("text", SLICE, text), CONSENT_ROW("scope", SLICE, scope),
    CONSENT_ROW("text_hash", CHARS, text_hash), CONSENT_ROW("entries", INTEGER, entries));

/* store:consents(user) -> rows */
int binding_store_consents(lua_State *L, struct binding_store *store)
{
    sessile_slice user = binding_opt_bytes(L, 2);
    sessile_consent_row *rows = NULL;
    struct binding_result got = binding_result(L);
    got.status = sessile_consents(store->handle, user, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &consent_row, rows);
}

#define HOLD(...) BINDING_FIELD(sessile_hold_options, __VA_ARGS__)
static const struct binding_field hold_fields[] =
    BINDING_FIELDS(HOLD("agent", SLICE, agent), HOLD("user", SLICE, user),
                   HOLD("session", SLICE, session), HOLD("reason", SLICE, reason),
                   HOLD("by", SLICE, by), HOLD("until", INTEGER, until_ms));

/* store:hold{agent, user, session, reason, by, until} -> its id */
int binding_store_hold(lua_State *L, struct binding_store *store)
{
    sessile_hold_options options;
    sessile_error err;
    sessile_id id;

    luaL_checktype(L, 2, LUA_TTABLE);
    sessile_hold_options_init(&options);
    binding_get_fields(L, 2, hold_fields, &options);
    return binding_done_id(L, sessile_hold(store->handle, &options, &id, &err), &id,
                           &err);
}

#define HOLD_ROW(...) BINDING_FIELD(sessile_hold_row, __VA_ARGS__)
static const struct binding_row hold_row = BINDING_ROW(
    sessile_hold_row, NULL, HOLD_ROW("id", ID, id), HOLD_ROW("agent", SLICE, agent),
    HOLD_ROW("user", SLICE, user), HOLD_ROW("session", SLICE, session),
    HOLD_ROW("reason", SLICE, reason), HOLD_ROW("by", SLICE, by),
    HOLD_ROW("time", TIME, time_ms), HOLD_ROW("until", TIME, until_ms));

/* store:holds() -> rows */
int binding_store_holds(lua_State *L, struct binding_store *store)
{
    sessile_hold_row *rows = NULL;
    struct binding_result got = binding_result(L);
    got.status = sessile_holds(store->handle, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &hold_row, rows);
}

/* store:release(id, by) -> true */
int binding_store_release_hold(lua_State *L, struct binding_store *store)
{
    sessile_id id = binding_check_id(L, 2);
    sessile_slice by = binding_opt_bytes(L, 3);
    sessile_error err;
    return binding_done(L, sessile_hold_release(store->handle, id, by, &err), &err);
}

#define RULE(...) BINDING_FIELD(sessile_retention_rule, __VA_ARGS__)
static const struct binding_field rule_fields[] = BINDING_FIELDS(
    RULE("agent", SLICE, agent), RULE("user", SLICE, user),
    RULE("sessions", INTEGER, sessions_ms), RULE("deleted", INTEGER, deleted_ms),
    RULE("memory", INTEGER, memory_ms));

#define RETAINED(...) BINDING_FIELD(sessile_retained, __VA_ARGS__)
static const struct binding_row retained_row =
    BINDING_ROW(sessile_retained, NULL, RETAINED("sessions", INTEGER, sessions),
                RETAINED("bytes", INTEGER, bytes), RETAINED("entries", INTEGER, entries),
                RETAINED("held", INTEGER, held), RETAINED("closed", INTEGER, closed),
                RETAINED("audit_logs", INTEGER, audit_logs),
                RETAINED("audit_held", INTEGER, audit_held));

/* store:purge_retention({{agent, user, sessions, deleted, memory}, …}, dry_run, audit) ->
 * {sessions, bytes, entries, held, closed, audit_logs, audit_held}. Times in ms; 0: for
 * ever; absent: as the wider rule says. */
int binding_store_purge_retention(lua_State *L, struct binding_store *store)
{
    sessile_retention_options options;
    sessile_retention_rule *rules;
    sessile_retained out;
    sessile_error err;

    luaL_checktype(L, 2, LUA_TTABLE);
    sessile_retention_options_init(&options);
    options.dry_run = lua_toboolean(L, 3);
    options.audit_ms = luaL_optinteger(L, 4, 0);
    options.count = (size_t)lua_rawlen(L, 2);
    luaL_checkstack(L, (int)options.count + 8, NULL);
    rules = lua_newuserdatauv(L, (options.count + 1) * sizeof *rules, 0);
    for (size_t i = 0; i < options.count; i++) {
        memset(&rules[i], 0, sizeof rules[i]);
        rules[i].sessions_ms = rules[i].deleted_ms = rules[i].memory_ms = -1;
        lua_rawgeti(L, 2, (lua_Integer)i + 1); /* stays: it anchors the texts */
        binding_get_fields(L, lua_gettop(L), rule_fields, &rules[i]);
    }
    options.rules = rules;
    return binding_done_row(L,
                            sessile_purge_retention(store->handle, &options, &out, &err),
                            &retained_row, &out, &err);
}

#define RECEIPT(...) BINDING_FIELD(sessile_receipt, __VA_ARGS__)
static const struct binding_row receipt_row = BINDING_ROW(
    sessile_receipt, NULL, RECEIPT("time", TIME, time_ms),
    RECEIPT("subject", CHARS, subject), RECEIPT("shredded", BOOLEAN, shredded),
    RECEIPT("sessions", INTEGER, sessions), RECEIPT("memories", INTEGER, memories),
    RECEIPT("bytes", INTEGER, bytes), RECEIPT("shared_entries", INTEGER, shared_entries),
    RECEIPT("consents", INTEGER, consents), RECEIPT("grants", INTEGER, grants),
    RECEIPT("access_keys", INTEGER, access_keys), RECEIPT("locks", INTEGER, locks),
    RECEIPT("before", TIME, before_ms), RECEIPT("event", CHARS, event),
    RECEIPT("forks", INTEGER, forks), RECEIPT("without_user", INTEGER, without_user),
    RECEIPT("unreadable", INTEGER, unreadable), RECEIPT("json", STRING, json));

/* store:erase_user(user, dry_run) -> the receipt */
int binding_store_erase_user(lua_State *L, struct binding_store *store)
{
    sessile_slice user = binding_check_bytes(L, 2);
    sessile_erase_options options;
    sessile_receipt *receipt = NULL;

    sessile_erase_options_init(&options);
    options.dry_run = lua_toboolean(L, 3);
    struct binding_result got = binding_result(L);
    got.status = sessile_user_erase(store->handle, user, &options, &receipt, &got.err);
    return binding_result_row(L, &got, &receipt_row, receipt);
}

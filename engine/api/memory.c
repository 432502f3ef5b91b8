/* memory.c: the functions of sessile_memory.h. */
#include "sessile_memory.h"
#include "api/api.h"
#include "base/names.h"
#include "memory/kinds.h"
#include "memory/memory.h"
#include "operations/recall.h"

const char *sessile_memory_state_name(sessile_memory_state state)
{
    return memory_state_name(state);
}

const char *sessile_memory_kind_name(sessile_memory_kind kind)
{
    return memory_kind_name(kind);
}

const char *sessile_memory_source_name(sessile_memory_source source)
{
    return memory_source_name(source);
}

const char *sessile_memory_verdict_name(sessile_memory_verdict_kind verdict)
{
    return memory_verdict_name(verdict);
}

/* ------------------------------------------------------------------ opening */

void sessile_memory_options_init(sessile_memory_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

static guard_names names_of(const memory_core *m)
{
    /* cppcheck-suppress nullPointer ; API_MAKE lets no NULL come this far */
    return (guard_names){{m->agent, m->agent_size}, {m->user, m->user_size}, {NULL, 0}};
}

/* The keys that entries are written under, the first ones. */
static void say_keys(guard_call *call, const sessile_memory_write_entry *entries,
                     size_t count)
{
    enum { MOST = 8 };
    sessile_slice keys[MOST];
    size_t n = 0;

    for (size_t i = 0; i < count && n < MOST; i++)
        if (entries[i].key.size)
            keys[n++] = entries[i].key;
    guard_number(call, "entries", count);
    guard_texts(call, "keys", keys, n);
}

sessile_status sessile_memory_open(sessile_memory **out, sessile_store *store,
                                   const sessile_memory_options *options,
                                   sessile_error *err)
{
    API_MAKE(out, store);
    API_OPTIONS(sessile_memory_options, options);
    API_TEXT(options->agent);
    API_TEXT(options->user);
    API_TEXT(options->consent);
    API_TEXT(options->language);
    GUARD_ENTER(memory_open, store);
    GUARD_NAMES(sessile_memory_options, options, guard_own_memory);
    if (options->consent.size) {
        GUARD_REFUSE_IF(GUARD_WHO, guard_also(GUARD_WHO, &call_.names, OP_memory_open,
                                              SESSILE_MAY_WRITE_MEMORY, err));
        GUARD_REFUSE_IF(GUARD_WHO, guard_check_consent(GUARD_WHO, options->user, err));
    }
    GUARD_MAKE(out, &core->alloc);
    (*out)->shared = !options->user.size;
    sessile_status status = memory_open(GUARD_INTO(out), core, options, err);
    if (GUARD_WHO && !status)
        (*out)->names = names_of(*GUARD_INTO(out));
    GUARD_MADE(out, status);
}

sessile_status sessile_memory_as(sessile_memory **out, sessile_memory *memory,
                                 sessile_store *view, sessile_error *err)
{
    API_MAKE(out, memory);
    API_NEED(view);
    memory_core *shared = GUARD_OWN(memory);
    const guard_names names = names_of(shared);
    const sessile_memory_options own = {.agent = names.agent, .user = names.user};
    const sessile_memory_options *options = &own;
    GUARD_ENTER(memory_as, view);
    GUARD_NAMES(sessile_memory_options, options, guard_own_memory);
    if (shared->store != core)
        return GUARD_LEAVE(
            fail(err, SESSILE_INVALID, "the memory was opened through another store"));
    GUARD_MAKE(out, &core->alloc);
    (*out)->shared = !options->user.size;
    if (GUARD_WHO)
        (*out)->names = names;
    memory_retain(shared);
    *GUARD_INTO(out) = shared;
    GUARD_MADE(out, SESSILE_OK);
}

void sessile_memory_close(sessile_memory *memory)
{
    if (!memory)
        return;
    GUARD_CLOSE(memory);
    memory_close(core);
}

sessile_status sessile_memory_damage(sessile_memory *memory, sessile_error *out)
{
    error_clear(out);
    if (!memory)
        return SESSILE_OK;
    sessile_error *err = out;
    GUARD_ENTER(memory_damage, memory);
    return GUARD_LEAVE(memory_damage(core, out));
}

/* ------------------------------------------------------------------ writing */

void sessile_memory_write_init(sessile_memory_write_entry *entry)
{
    if (entry)
        memset(entry, 0, sizeof *entry);
}

sessile_status api_check_memory_entry(const sessile_memory_write_entry *entry,
                                      sessile_error *err)
{
    API_TEXT(entry->value);
    API_TEXT(entry->key);
    API_TEXT(entry->also);
    API_TEXT(entry->author);
    API_TEXT(entry->metadata);
    API_NEED_IF(entry->from_count, entry->from);
    API_NEED_IF(entry->replace_count, entry->replaces);
    for (size_t i = 0; i < entry->from_count; i++) {
        API_TEXT(entry->from[i].session);
        API_TEXT(entry->from[i].agent);
    }
    return SESSILE_OK;
}

sessile_status sessile_memory_write(sessile_memory *memory,
                                    const sessile_memory_write_entry *entries,
                                    size_t count, sessile_id *ids, sessile_error *err)
{
    API_USE(memory);
    API_NEED_IF(count, entries);
    for (size_t i = 0; i < count; i++) {
        sessile_status status = api_check_memory_entry(&entries[i], err);
        if (ids)
            ids[i] = SESSILE_NO_ID;
        if (status)
            return status;
    }
    GUARD_ENTER(memory_write, memory);
    GUARD_SAY(say_keys(&call_, entries, count));
    if (count && ids)
        GUARD_ENTRY(ids);
    GUARD_COUNT;
    return GUARD_LEAVE(memory_write(core, entries, count, ids, err));
}

sessile_status sessile_memory_apply(sessile_memory *memory,
                                    const sessile_memory_change *change, sessile_id *ids,
                                    sessile_error *err)
{
    API_USE(memory);
    API_NEED(change);
    API_NEED_IF(change->count, change->entries);
    API_NEED_IF(change->end_count, change->ends);
    API_TEXT(change->reason);
    API_TEXT(change->by);
    for (size_t i = 0; i < change->count; i++) {
        sessile_status status = api_check_memory_entry(&change->entries[i], err);
        if (ids)
            ids[i] = SESSILE_NO_ID;
        if (status)
            return status;
    }
    GUARD_ENTER(memory_apply, memory);
    GUARD_SAY(say_keys(&call_, change->entries, change->count));
    GUARD_NUMBER("ends", change->end_count);
    GUARD_COUNT;
    return GUARD_LEAVE(memory_change(core, change, ids, err));
}

sessile_status sessile_memory_verdict(sessile_memory *memory, const sessile_id *ids,
                                      size_t count, sessile_memory_verdict_kind verdict,
                                      sessile_slice reason, sessile_slice by,
                                      size_t *changed, sessile_error *err)
{
    API_OPTIONAL(size_t, changed, 0);
    API_USE(memory);
    API_NEED_IF(count, ids);
    API_TEXT(reason);
    API_TEXT(by);
    GUARD_ENTER(memory_verdict, memory);
    GUARD_TEXT("verdict", slice_of(memory_verdict_name(verdict)));
    GUARD_NUMBER("entries", count);
    if (count)
        GUARD_ENTRY(ids);
    GUARD_COUNT;
    return GUARD_LEAVE(
        memory_verdict(core, ids, count, verdict, reason, by, changed, err));
}

sessile_status sessile_memory_consent(sessile_memory *memory, int given, sessile_slice by,
                                      sessile_slice text, sessile_slice scope,
                                      sessile_error *err)
{
    API_USE(memory);
    API_TEXT(by);
    API_TEXT(text);
    API_TEXT(scope);
    GUARD_ENTER(memory_consent, memory);
    const sessile_slice user = {core->user, core->user_size};
    GUARD_REFUSE_IF(GUARD_WHO, guard_check_consent(GUARD_WHO, user, err));
    GUARD_NUMBER("given", given != 0);
    GUARD_INTENT;
    return GUARD_LEAVE(memory_consent(core, given, by, text, scope, err));
}

sessile_status sessile_memory_embed(sessile_memory *memory, sessile_slice model,
                                    size_t dims, const sessile_id *ids,
                                    const float *vectors, size_t count,
                                    sessile_error *err)
{
    API_USE(memory);
    API_TEXT(model);
    API_NEED_IF(count, ids);
    API_NEED_IF(count, vectors);
    GUARD_ENTER(memory_embed, memory);
    GUARD_NUMBER("entries", count);
    GUARD_COUNT;
    return GUARD_LEAVE(memory_embed(core, model, dims, ids, vectors, count, err));
}

sessile_status sessile_memory_delete_from(sessile_memory *memory, sessile_slice agent,
                                          sessile_slice session, sessile_slice by,
                                          size_t *changed, sessile_error *err)
{
    API_OPTIONAL(size_t, changed, 0);
    API_USE(memory);
    API_TEXT(agent);
    API_TEXT(session);
    API_TEXT(by);
    GUARD_ENTER(memory_delete_from, memory);
    GUARD_TEXT("session", session);
    GUARD_COUNT;
    return GUARD_LEAVE(memory_delete_from(core, agent, session, by, changed, err));
}

sessile_status sessile_memory_erase(sessile_memory *memory,
                                    const sessile_memory_erase_options *options,
                                    size_t *erased, sessile_error *err)
{
    API_OPTIONAL(size_t, erased, 0);
    API_USE(memory);
    API_NEED(options);
    API_NEED_IF(options->id_count, options->ids);
    API_TEXT(options->session);
    API_TEXT(options->session_agent);
    GUARD_ENTER(memory_erase, memory);
    GUARD_TEXT("session", options->session);
    GUARD_NUMBER("entries", options->id_count);
    GUARD_COUNT;
    GUARD_INTENT;
    return GUARD_LEAVE(memory_erase(core, options, erased, err));
}

/* ------------------------------------------------------------------ reading */

sessile_status sessile_memory_read(sessile_memory *memory, sessile_slice key,
                                   sessile_memory_row **out, sessile_error *err)
{
    API_MAKE(out, memory);
    API_TEXT(key);
    GUARD_ENTER(memory_read, memory);
    GUARD_COUNT;
    return GUARD_LEAVE(memory_read(core, key, out, err));
}

sessile_status sessile_memory_get(sessile_memory *memory, sessile_id id,
                                  sessile_memory_row **out, sessile_error *err)
{
    API_MAKE(out, memory);
    GUARD_ENTER(memory_get, memory);
    GUARD_COUNT;
    return GUARD_LEAVE(memory_get(core, id, out, err));
}

sessile_status sessile_memory_entry(sessile_memory *memory, sessile_id id, char **out,
                                    size_t *size, sessile_error *err)
{
    API_LIST(out, size, memory);
    GUARD_ENTER(memory_entry, memory);
    GUARD_COUNT;
    return GUARD_LEAVE(memory_entry_text(core, id, out, size, err));
}

static sessile_status check_filter(const sessile_memory_filter *filter,
                                   sessile_error *err)
{
    API_TEXT(filter->key_prefix);
    API_TEXT(filter->session);
    API_TEXT(filter->session_agent);
    API_TEXT(filter->metadata_name);
    API_TEXT(filter->metadata_json);
    return SESSILE_OK;
}

sessile_status sessile_memory_list(sessile_memory *memory,
                                   const sessile_memory_list_options *options,
                                   sessile_memory_row **rows, size_t *count,
                                   sessile_error *err)
{
    static const sessile_memory_list_options all;
    sessile_status status;

    API_LIST(rows, count, memory);
    options = options ? options : &all;
    status = check_filter(&options->filter, err);
    if (status)
        return status;
    GUARD_ENTER(memory_list, memory);
    GUARD_COUNT;
    return GUARD_LEAVE(memory_list(core, options, rows, count, err));
}

sessile_status sessile_memory_history(sessile_memory *memory, sessile_slice key,
                                      sessile_id id, sessile_memory_row **rows,
                                      size_t *count, sessile_error *err)
{
    API_LIST(rows, count, memory);
    API_TEXT(key);
    GUARD_ENTER(memory_history, memory);
    GUARD_COUNT;
    return GUARD_LEAVE(memory_history(core, key, id, rows, count, err));
}

void sessile_memory_search_init(sessile_memory_search_options *options)
{
    if (!options)
        return;
    memset(options, 0, sizeof *options);
    options->weight = RANK_WEIGHT;
}

sessile_status sessile_memory_search(sessile_memory *memory, sessile_slice question,
                                     const sessile_memory_search_options *options,
                                     sessile_memory_row **rows, size_t *count,
                                     sessile_error *err)
{
    sessile_memory_search_options plain;
    sessile_status status;

    API_LIST(rows, count, memory);
    API_TEXT(question);
    sessile_memory_search_init(&plain);
    options = options ? options : &plain;
    API_TEXT(options->model);
    API_NEED_IF(options->outside_count, options->outside);
    status = check_filter(&options->filter, err);
    if (status)
        return status;
    GUARD_ENTER(memory_search, memory);
    GUARD_COUNT;
    return GUARD_LEAVE(memory_search(core, question, options, rows, count, err));
}

sessile_status sessile_memory_watch(sessile_memory *memory, sessile_id *seen,
                                    int timeout_ms, int *changed, sessile_error *err)
{
    sessile_id own = 0;
    sessile_status status;

    error_clear(err);
    API_NEED(memory);
    API_NEED(changed);
    *changed = 0;
    status = config_check_timeout(timeout_ms, err);
    if (status)
        return status;
    GUARD_ENTER(memory_watch, memory);
    return GUARD_LEAVE(memory_watch(core, seen ? seen : &own, timeout_ms, changed, err));
}

sessile_status sessile_memory_get_stats(sessile_memory *memory, sessile_memory_stats *out,
                                        sessile_error *err)
{
    error_clear(err);
    API_ZERO(out);
    API_NEED(memory);
    GUARD_ENTER(memory_get_stats, memory);
    return GUARD_LEAVE(memory_stats(core, out, err));
}

sessile_status sessile_memory_models(sessile_memory *memory,
                                     sessile_memory_model **models, size_t *count,
                                     sessile_error *err)
{
    API_LIST(models, count, memory);
    GUARD_ENTER(memory_models, memory);
    return GUARD_LEAVE(memory_models(core, models, count, err));
}

/* ------------------------------------------------------------------ recall */

void sessile_recall_options_init(sessile_recall_options *options)
{
    if (!options)
        return;
    memset(options, 0, sizeof *options);
    options->budget = 1000;
    options->share = 0.05;
    options->min_cover = 0.15;
    options->trust = SESSILE_MEMORY_BY_AGENT;
    options->recency = options->importance = 0.1;
    options->start = 1;
    options->weight = RANK_WEIGHT;
}

sessile_status api_check_recall(const sessile_recall_options *options, sessile_error *err)
{
    API_TEXT(options->question);
    API_TEXT(options->model);
    API_NEED_IF(options->item_count, options->items);
    API_NEED_IF(options->outside_count, options->outside);
    return SESSILE_OK;
}

sessile_status api_memory_cores(memory_cores *cores, sessile_memory *const *memories,
                                size_t count, int writes, const guard_call *call,
                                const char *function, sessile_error *err)
{
    /* whose session has no guard recalls or remembers, as far as the memories' knows */
    guard_op op = call->who ? (guard_op)call->op : writes ? OP_remember_begin : OP_recall;

    if (count > MEMORY_CORES_MOST)
        return fail(err, SESSILE_INVALID,
                    "at most %d memories: the user's, and the one that the agent keeps "
                    "for all",
                    MEMORY_CORES_MOST);
    for (size_t i = 0; i < count; i++) {
        if (!memories || !memories[i])
            return api_missing(err, function,
                               memories ? "one of the memories" : "memories");
        if (!guard_gives_memory(call->who, memories[i], writes) ||
            GUARD_MAY(op, memories[i], READ_MEMORY, NULL) ||
            (writes && GUARD_MAY(op, memories[i], WRITE_MEMORY, NULL)))
            continue;
        cores->at[cores->count++] = GUARD_ALSO(memories[i]);
    }
    return SESSILE_OK;
}

sessile_status sessile_recall_find(sessile_session *session,
                                   sessile_memory *const *memories, size_t memory_count,
                                   const sessile_recall_options *options,
                                   sessile_memory_row **rows, size_t *count,
                                   sessile_error *err)
{
    sessile_status status;

    API_LIST(rows, count, session);
    API_OPTIONS(sessile_recall_options, options);
    status = api_check_recall(options, err);
    if (status)
        return status;
    GUARD_ENTER(recall_find, session);
    GUARD_COUNT;
    API_MEMORIES(cores, memories, memory_count, 0);
    return GUARD_LEAVE(
        session_recall_find(core, cores.at, cores.count, options, rows, count, err));
}

sessile_status sessile_recall(sessile_session *session, sessile_memory *const *memories,
                              size_t memory_count, const sessile_recall_options *options,
                              sessile_recall_outcome *out, sessile_error *err)
{
    sessile_status status;

    error_clear(err);
    API_ZERO(out);
    out->entry = SESSILE_NO_ID;
    API_NEED(session);
    API_OPTIONS(sessile_recall_options, options);
    status = api_check_recall(options, err);
    if (status)
        return status;
    GUARD_ENTER(recall, session);
    GUARD_ENTRY(&out->entry);
    GUARD_COUNT;
    API_MEMORIES(cores, memories, memory_count, 0);
    return GUARD_LEAVE(session_recall(core, cores.at, cores.count, options, out, err));
}

/*
 * open.c: creates, opens and closes sessions.
 *
 * Must never create a session when one is to be opened. handle.c allocates and fills the
 * handle.
 */
#include "session/fold.h"
#include "session/agent_info.h"
#include "session/life.h"
#include "session/quota.h"
#include "session/writes.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

/* ------------------------------------------------------------------ create */

sessile_status session_check_metadata(buf *out, const store_core *st, sessile_slice text,
                                      sessile_error *err)
{
    sessile_status status;

    if (!text.size)
        return SESSILE_OK;
    if (text.size > st->limits.message)
        return fail(err, SESSILE_LIMIT,
                    "the metadata has %zu bytes, the limit [message] is %" PRIu64,
                    text.size, st->limits.message);
    status = json_check(out, text.data, text.size, st->limits.depth, err);
    if (status) {
        fail_prefix(err, "the metadata");
        return status;
    }
    if (json_of(out->data, out->size).type != JSON_OBJECT)
        return fail(err, SESSILE_INVALID, "the metadata must be a JSON object");
    return SESSILE_OK;
}

sessile_status session_check_title(const store_core *st, sessile_slice title,
                                   sessile_error *err)
{
    if (title.size > st->limits.title)
        return fail(err, SESSILE_LIMIT,
                    "the title has %zu bytes, the limit [title] is %" PRIu32
                    ": choose a shorter one",
                    title.size, st->limits.title);
    if (!utf8_valid(title.data, title.size))
        return fail(err, SESSILE_INVALID, "the title is not UTF-8");
    return SESSILE_OK;
}

static int64_t ttl_of(const store_core *st, const sessile_session_options *options)
{
    int64_t own = options ? options->ttl_ms : 0;
    return own < 0 ? 0 : own ? own : st->ttl_ms;
}

/* The place that the names lead to, or another one. */
static void place_of(const store_core *st, const session_names *names,
                     const session_place *at, char folder[NAME_SIZE],
                     char name[NAME_SIZE])
{
    if (at) {
        memcpy(folder, at->folder, NAME_SIZE);
        memcpy(name, at->name, NAME_SIZE);
    } else {
        names_place(st, names, folder, name);
    }
}

sessile_status session_create(store_core *st, const sessile_session_options *options,
                              sessile_error *err, char *new_id)
{
    return session_create_at(st, options, NULL, NULL, err, new_id);
}

sessile_status session_create_at(store_core *st, const sessile_session_options *options,
                                 const sessile_link *parent, const session_place *at,
                                 sessile_error *err, char *new_id)
{
    static const sessile_slice nothing = {NULL, 0};
    char folder[NAME_SIZE], name[NAME_SIZE], shown[NAME_SHOWN], uuid[UUID_SIZE];
    char user[NAME_SIZE];
    buf metadata, text;
    session_names names;
    sessile_status status;
    uint64_t bytes = 0;

    if (new_id)
        new_id[0] = 0;
    buf_init(&metadata, &st->alloc);
    buf_init(&text, &st->alloc);
    status = names_from_options(&names, st, options, 1, err);
    if (status)
        goto out;
    if (!names.id.size && !new_id) {
        status = fail(err, SESSILE_INVALID, "a session's id may not be empty here");
        goto out;
    }
    if (!names.id.size) {
        store_handle_uuid(st, options ? options->uuid_v4 : 0, uuid);
        names.id = (sessile_slice){uuid, UUID_SIZE - 1};
    }
    status = session_check_title(st, options ? options->title : nothing, err);
    if (!status && options)
        status = config_check_merged(&options->config, &st->config, err);
    if (!status && options)
        status = session_check_metadata(&metadata, st, options->metadata, err);
    if (!status)
        status = quota_check(st, &names, err);
    if (status)
        goto out;
    header_put(&text, &names,
               &(header_fields){.title = options ? options->title : nothing,
                                .metadata = {metadata.data, metadata.size},
                                .ttl_ms = ttl_of(st, options),
                                .parent = parent,
                                .now_ms = st->os->now_ms(st->os->ud)});
    if (text.failed) {
        status = fail_nomem(err);
        goto out;
    }
    place_of(st, &names, at, folder, name);
    keyring_user_name(st->keys, names.user, user);
    status = write_note(st->notes, &names, err);
    if (status)
        goto out;
    status = log_create_for(&st->backend, st->keys, folder, name, user, text.data,
                            text.size, st->config.timeout_ms, &bytes, &st->alloc, err);
    write_noted(st->notes, 0, !status);
    if (!status)
        status = quota_keep(st, &names, bytes, err);
    name_show(names.id, shown);
    if (status == SESSILE_EXISTS)
        fail(err, SESSILE_EXISTS, "session %s exists: resume it, or choose another id",
             shown);
    else if (status && err)
        fail_prefix(err, "session %s", shown);
    if (!status && new_id && names.id.data == uuid)
        memcpy(new_id, uuid, UUID_SIZE);
out:
    buf_deinit(&metadata);
    buf_deinit(&text);
    return status;
}

/* ------------------------------------------------------------------ open */

/* Opens the log of a handle, folds it, and loads the head. */
static sessile_status scan(session_core *s, const char *folder, const char *name,
                           sessile_error *err)
{
    sessile_status status = session_scan(s, folder, name, 0, err);

    if (!status)
        status = session_load_locked(s, s->tree.head, err);
    s->tree.base = s->tree.head;
    return status;
}

static sessile_status open_any(session_core **out, store_core *st,
                               const sessile_session_options *options,
                               const session_place *at, sessile_error *err);

sessile_status session_open(session_core **out, store_core *st,
                            const sessile_session_options *options, sessile_error *err)
{
    return session_open_at(out, st, options, NULL, err);
}

sessile_status session_open_at(session_core **out, store_core *st,
                               const sessile_session_options *options,
                               const session_place *at, sessile_error *err)
{
    sessile_status status = open_any(out, st, options, at, err);

    if (!status)
        status = session_check_exists_locked(*out, err); /* nobody else has it yet */
    if (status) {
        session_drop(*out);
        *out = NULL;
    }
    return status;
}

sessile_status session_open_any(session_core **out, store_core *st,
                                const sessile_session_options *options,
                                sessile_error *err)
{
    return open_any(out, st, options, NULL, err);
}

static sessile_status take_config(session_core *s, const sessile_session_options *options,
                                  sessile_error *err)
{
    if (!options)
        return SESSILE_OK;
    sessile_status status = config_check(&options->config, err);
    if (!status)
        status = config_check_merged(&options->config, &s->store->config, err);
    if (status)
        return status;
    if (options->config.has_timeout)
        session_set_timeout(s, options->config.timeout_ms);
    s->config = options->config;
    return config_keep(&s->config, s->alloc, err);
}

void session_set_timeout(session_core *s, int timeout_ms)
{
    atomic_store(&s->waiting.timeout_ms, timeout_ms);
    atomic_store(&s->waiting.has_timeout, 1);
}

sessile_config session_own_config(const session_core *s)
{
    sessile_config config = s->config;
    config.timeout_ms = atomic_load(&s->waiting.timeout_ms);
    config.has_timeout = atomic_load(&s->waiting.has_timeout);
    return config;
}

sessile_config session_config(const session_core *s)
{
    sessile_config config = session_own_config(s);
    config_inherit(&config, &s->store->config);
    return config;
}

static sessile_status open_any(session_core **out, store_core *st,
                               const sessile_session_options *options,
                               const session_place *at, sessile_error *err)
{
    char folder[NAME_SIZE], name[NAME_SIZE], shown[NAME_SHOWN], agent[NAME_SHOWN];
    session_core *s = NULL;
    session_names names;
    sessile_status status;

    *out = NULL;
    status = names_from_options(&names, st, options, 0, err);
    if (status)
        return status;
    s = session_blank(st, NULL);
    if (!s)
        return fail_nomem(err);
    s->identity.id = mem_dup(s->alloc, names.id.data, names.id.size);
    s->identity.agent = mem_dup(s->alloc, names.agent.data, names.agent.size);
    s->identity.user =
        mem_dup(s->alloc, names.user.size ? names.user.data : "", names.user.size);
    s->identity.id_size = names.id.size;
    s->identity.agent_size = names.agent.size;
    s->identity.user_size = names.user.size;
    if (at)
        s->place = (session_place *)(void *)mem_dup(s->alloc, at, sizeof *at);
    if (!s->identity.id || !s->identity.agent || !s->identity.user || (at && !s->place)) {
        status = fail_nomem(err);
        goto out;
    }
    status = take_config(s, options, err);
    if (!status && options)
        status = session_set_agent_info(s, &options->agent_info, err);
    if (status)
        goto out;
    place_of(st, &names, at, folder, name);
    status = scan(s, folder, name, err);
    name_show(names.id, shown);
    if (status == SESSILE_NOTFOUND) {
        name_show(names.agent, agent);
        fail(err, SESSILE_NOTFOUND,
             "there is no session %s of agent %s: list them, or create it", shown, agent);
    } else {
        session_name_error(s, status, err);
    }
    if (status)
        goto out;
    *out = s;
    s = NULL;
out:
    session_drop(s);
    return status;
}

sessile_status session_open_place(session_core **out, store_core *st, const char *folder,
                                  const char *name, sessile_error *err)
{
    char own_folder[NAME_SIZE], own_name[NAME_SIZE];
    session_core *s = session_blank(st, NULL);
    session_names names;
    sessile_status status;

    *out = NULL;
    if (!s)
        return fail_nomem(err);
    status = scan(s, folder, name, err);
    if (status)
        goto out;
    names = session_own_names(s);
    names_place(st, &names, own_folder, own_name);
    if (strcmp(own_folder, folder) || strcmp(own_name, name)) {
        char shown[NAME_SHOWN];
        name_show(names.id, shown);
        status = fail(err, SESSILE_DAMAGED,
                      "session %s is kept as %s/%s, which is not its name: the name was "
                      "damaged, or the log was moved: sessile check --salvage",
                      shown, folder, name);
        goto out;
    }
    *out = s;
    s = NULL;
out:
    session_drop(s);
    return status;
}

sessile_status session_inspect(session_core **out, store_core *st, const char *folder,
                               const char *name, log_visit visit, void *arg,
                               session_core **seen, log_tail *tail, sessile_error *err)
{
    session_core *s = session_blank(st, NULL);
    log_index_callbacks callbacks;
    sessile_status status;

    *out = NULL;
    if (!s)
        return fail_nomem(err);
    callbacks = session_index_callbacks(s, 1); /* a look writes no index, but compares */
    *seen = s;
    status =
        log_inspect(&s->log, &st->backend, st->keys, folder, name, session_read_depth(st),
                    st->config.timeout_ms, &callbacks, visit, arg, tail, s->alloc, err);
    *out = s; /* its names may be known although the log is not open */
    return status;
}

sessile_status session_close(session_core *s, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (!s)
        return SESSILE_OK;
    /* A child's copy may have been made in the middle of a call: it is left alone. */
    if (session_check_process(s, err))
        return SESSILE_FORKED;
    if (s->store->durability == SESSILE_NONE && !log_damage(s->log, NULL))
        status = session_name_error(s, log_sync(s->log, log_count(s->log), err), err);
    if (!status && s->store->durability == SESSILE_NONE && !s->fold.broken)
        log_index_try(s->log);
    session_drop(s);
    return status;
}

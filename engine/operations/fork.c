/*
 * fork.c: makes sessions from other sessions: forks and whole copies.
 *
 * Owns what a fork copies: the log's lines up to an entry, as they are (log/fork.c seals
 * them again), and after them the facts that these lines lack (fork_facts.c). Must never
 * hold the session's mutex while lines are copied, nor change the session that is copied.
 * The lines keep their ids, so compactions, labels and parents stay valid.
 */
#include "operations/fork.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "log/copy.h"
#include "operations/create.h"
#include "operations/fork_facts.h"
#include "session/fold.h"
#include "session/quota.h"
#include "session/writes.h"

static void plan_init(fork_plan *p, session_core *s)
{
    memset(p, 0, sizeof *p);
    p->s = s;
    buf_init(&p->header, &s->store->alloc);
    batch_init(&p->facts, 0, 0, &s->store->alloc);
}

static void plan_deinit(fork_plan *p)
{
    buf_deinit(&p->header);
    batch_deinit(&p->facts);
}

/* ------------------------------------------------------------------ the copy */

/* DAMAGED or TRUNCATED when one of the copied lines is bad. */
static sessile_status check_sound(const fork_plan *p, sessile_error *err)
{
    const session_core *s = p->s;
    sessile_id sound = log_count_undamaged(s->log), at;
    sessile_error why = {0};

    if (p->last < sound || !log_damage(s->log, &why))
        return SESSILE_OK;
    for (at = sound ? sound - 1 : 0; at && !session_is_path_entry(s, at);)
        at--;
    return session_name_error(s,
                              fail(err, why.code,
                                   "it is damaged from entry %08" PRIx32
                                   " on: fork it at %08" PRIx32
                                   ", the newest entry before that, or repair it first",
                                   sound, at),
                              err);
}

/* Writes lines, then facts, under the new names. No mutex is held. */
static sessile_status write_copy(const fork_plan *p, store_core *to,
                                 const session_names *names, sessile_error *err)
{
    store_core *from = p->s->store;
    const session_names own = session_own_names(p->s);
    char folder[NAME_SIZE], name[NAME_SIZE], new_folder[NAME_SIZE], new_name[NAME_SIZE];
    char user[NAME_SIZE];
    sessile_status status;
    log_t *source = NULL;
    log_copy copy;

    memset(&copy, 0, sizeof copy);
    names_place(from, &own, folder, name);
    if (p->s->place) {
        memcpy(folder, p->s->place->folder, sizeof folder);
        memcpy(name, p->s->place->name, sizeof name);
    }
    names_place(to, names, new_folder, new_name);
    keyring_user_name(to->keys, names->user, user);
    status = log_open_unread(&source, &from->backend, from->keys, folder, name,
                             session_read_depth(from), from->config.timeout_ms,
                             &from->alloc, err);
    if (!status)
        status =
            log_copy_begin_new(&copy, &to->backend, to->keys, new_folder, new_name, user,
                               p->header.data, p->header.size, &to->alloc, err);
    if (!status)
        status = log_copy_lines(&copy, source, p->last, p->tag, NULL, NULL, err);
    for (size_t i = 0; !status && i < p->facts.count; i++) {
        sessile_slice text = batch_entry(&p->facts, i);
        status =
            log_copy_entry(&copy, text.data, text.size, i + 1 == p->facts.count, err);
    }
    if (!status)
        status = log_copy_publish(&copy, source, from->keys, to->config.timeout_ms, err);
    if (!status)
        status = quota_keep(to, names, copy.bytes, err);
    log_copy_drop(&copy);
    log_close(source);
    return status;
}

static sessile_status exists(const session_names *names, sessile_error *err)
{
    char shown[NAME_SHOWN];

    name_show(names->id, shown);
    return fail(err, SESSILE_EXISTS, "session %s exists: resume it, or choose another id",
                shown);
}

/* EXISTS before anything is read. A name that is taken later is found at the end. */
static sessile_status check_free(store_core *to, const session_names *names,
                                 sessile_error *err)
{
    char folder[NAME_SIZE], name[NAME_SIZE];
    sessile_backend_log *there;

    names_place(to, names, folder, name);
    if (to->backend.table->open(to->backend.self, folder, name, &there, NULL))
        return SESSILE_OK; /* other errors are reported when it is made */
    to->backend.table->close(there);
    return exists(names, err);
}

/* Starts the copy again when another log replaced the session's, at most TRIES times. */
#define TRIES 4

typedef sessile_status (*make_plan)(fork_plan *p, void *arg, sessile_error *err);

static sessile_status copy_session(session_core *s, store_core *to,
                                   const session_names *names, make_plan make, void *arg,
                                   sessile_error *err)
{
    sessile_error local = {0};
    sessile_status status = check_free(to, names, err);

    err = err ? err : &local;
    if (!status)
        status = quota_check(to, names, err);
    for (int i = 0, again = 1; !status && again; i++) {
        fork_plan p;
        plan_init(&p, s);
        if (names->user.size)
            header_put_name(&p.facts.user, names->user);
        status = session_lock_fresh(s, err);
        if (!status) {
            status = make(&p, arg, err);
            if (!status &&
                (p.header.failed || p.facts.text.failed || p.facts.user.failed))
                status = fail_nomem(err);
            session_unlock(s);
        }
        if (!status)
            status = write_note(to->notes, names, err);
        if (!status) {
            status = write_copy(&p, to, names, err);
            write_noted(to->notes, 0,
                        status ? 0 : p.last + 1 + (sessile_id)p.facts.count);
            again = status == SESSILE_CONFLICT && i + 1 < TRIES;
            if (again)
                status = SESSILE_OK;
            else if (status == SESSILE_EXISTS)
                exists(names, err);
            else
                session_name_error(s, status, err);
        }
        plan_deinit(&p);
    }
    return status;
}

/* Fills in names that are not given from the session. */
static sessile_slice given_or(sessile_slice given, const char *own, size_t size)
{
    return given.data ? given : (sessile_slice){own, size};
}

sessile_status session_choose_names(session_names *names, store_core *to, session_core *s,
                                    sessile_session_options *options, int id_may_be_empty,
                                    sessile_error *err)
{
    options->agent = given_or(options->agent, s->identity.agent, s->identity.agent_size);
    options->user = given_or(options->user, s->identity.user, s->identity.user_size);
    sessile_config own = session_own_config(s);
    if (to != s->store) { /* that store decides which policies run, and where */
        own.policy = own.fallback = NULL;
        own.isolation = SESSILE_ISOLATION_DEFAULT;
    }
    config_inherit(&options->config, &own);
    sessile_status status = config_check_merged(&options->config, &to->config, err);
    return status ? status : names_from_options(names, to, options, id_may_be_empty, err);
}

/* ------------------------------------------------------------------ fork */

typedef struct fork_wish {
    const session_names *names;
    sessile_id entry;
    sessile_slice title; /* data NULL: the session's */
    json metadata;
    const write_labels *labels; /* of the header */
    const sessile_link *parent;
} fork_wish;

static sessile_status plan_fork(fork_plan *p, void *arg, sessile_error *err)
{
    const fork_wish *w = arg;
    session_core *s = p->s;
    sessile_slice title = given_or(w->title, s->fold.title, s->fold.title_size);
    int64_t now_ms = s->store->os->now_ms(s->store->os->ud);
    sessile_status status;

    p->last = w->entry == SESSILE_NO_ID ? s->tree.head : w->entry;
    status = session_check_at(s, p->last, err);
    if (!status)
        status = check_sound(p, err);
    if (!status)
        status = session_name_error(s, session_tag_locked(s, p->last, p->tag, err), err);
    if (status)
        return status;
    sessile_link origin = {{s->identity.id, s->identity.id_size},
                           {s->identity.agent, s->identity.agent_size},
                           {s->identity.user, s->identity.user_size},
                           p->last,
                           ""};
    /* a plain line has only half of the tag */
    hex_encode(origin.tag, p->tag, keyring_sealed(s->store->keys) ? VAULT_TAG : 8);
    header_put(&p->header, w->names,
               &(header_fields){.title = title,
                                .metadata = {s->header.metadata, s->header.metadata_size},
                                .origin = &origin,
                                .parent = w->parent,
                                .now_ms = now_ms});
    p->facts.first = p->last + 1;
    p->facts.now_ms = now_ms;
    status = fork_put_facts(p, title, w->metadata, err);
    write_labels_put(w->labels, &p->facts, 0, 0);
    if (!status && p->facts.count > SESSILE_NO_ID - p->facts.first - (size_t)1)
        status = fail(err, SESSILE_LIMIT, "the fork would have no ids left");
    return status;
}

sessile_status session_fork(session_core *s, sessile_id entry,
                            sessile_session_options *options, const sessile_link *parent,
                            char new_id[UUID_SIZE], sessile_error *err)
{
    store_core *st = s->store;
    sessile_session_options given = *options;
    given_texts texts;
    session_names names;
    sessile_status status = given_texts_screen(&texts, st, &given, err);

    if (!status)
        status = session_choose_names(&names, st, s, options, 1, err);
    if (!status && !names.id.size) {
        store_handle_uuid(st, options->uuid_v4, new_id);
        names.id = options->id = (sessile_slice){new_id, UUID_SIZE - 1};
    }
    if (!status) {
        fork_wish wish = {.names = &names,
                          .entry = entry,
                          .title = given.title,
                          .metadata = {NULL, 0, JSON_NONE},
                          .labels = &texts.labels,
                          .parent = parent};
        if (texts.metadata.size)
            wish.metadata = json_of(texts.metadata.data, texts.metadata.size);
        status = copy_session(s, st, &names, plan_fork, &wish, err);
    }
    given_texts_deinit(&texts);
    return status;
}

/* ------------------------------------------------------------------ put */

static sessile_status plan_put(fork_plan *p, void *arg, sessile_error *err)
{
    session_core *s = p->s;
    sessile_status status = session_damage_locked(s, NULL, err);
    buf text;

    if (status)
        return session_name_error(s, status, err);
    p->last = (sessile_id)(s->tree.node_count - 1);
    buf_init(&text, &s->store->alloc);
    status = session_tag_locked(s, p->last, p->tag, err);
    if (!status)
        status = session_text_locked(s, 0, &text, err);
    if (!status)
        status = header_rename(&p->header, text.data, text.size, arg, err);
    buf_deinit(&text);
    return session_name_error(s, status, err);
}

sessile_status session_put(store_core *to, session_core *s,
                           sessile_session_options *options, sessile_error *err)
{
    session_names names;
    sessile_status status;

    if (!options->id.size)
        options->id = (sessile_slice){s->identity.id, s->identity.id_size};
    status = session_choose_names(&names, to, s, options, 0, err);
    return status ? status : copy_session(s, to, &names, plan_put, &names, err);
}

/*
 * fork.c: makes sessions from other sessions: forks and whole copies.
 *
 * Owns what a fork copies: the log's lines up to an entry, as they are (log/fork.c seals
 * them again), and after them the facts that were written later about these entries and
 * about the whole session. Must never hold the session's mutex while lines are copied,
 * nor change the session that is copied.
 *
 * The lines keep their ids, so compactions, labels and parents stay valid. Facts about
 * the whole session are written again only where the copied lines alone would be out of
 * date.
 */
#include "operations/fork.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "log/copy.h"
#include "operations/annotate.h"
#include "session/fold.h"
#include "session/quota.h"

/* What to copy, found before the lines are read. */
typedef struct plan {
    sessile_session *s;
    sessile_id last; /* the last entry that is copied */
    unsigned char tag[VAULT_TAG];
    buf header;
    batch facts; /* written after the lines */
} plan;

static void plan_init(plan *p, sessile_session *s)
{
    memset(p, 0, sizeof *p);
    p->s = s;
    buf_init(&p->header, &s->store->alloc);
    batch_init(&p->facts, 0, 0, &s->store->alloc);
}

static void plan_deinit(plan *p)
{
    buf_deinit(&p->header);
    batch_deinit(&p->facts);
}

/* ------------------------------------------------------------------ later facts */

/* A fact about the copy's head. */
static void state(plan *p, entry_type type, sessile_id parent, const buf *data)
{
    if (data->failed)
        p->facts.text.failed = 1;
    else
        batch_put(&p->facts, parent, type, SOURCE_HOST, data->data, data->size);
}

/* 1 when a fact's subject is seen for the first time; -1: out of memory. */
static int is_first(map *seen, const facts *all, const fact *one, buf *work)
{
    uint32_t known;
    uint64_t key;

    buf_clear(work);
    buf_putc(work, (char)one->kind);
    buf_put(work, &one->about, sizeof one->about);
    buf_put(work, fact_name(all, one), one->name_size);
    if (work->failed)
        return -1;
    key = hash64(work->data, work->size);
    if (map_get(seen, key, &known))
        return 0;
    return map_put(seen, key, 1) ? -1 : 1;
}

/* 1 when a later fact is about an entry that is copied. */
static sessile_status is_about_them(plan *p, const fact *one, int *yes,
                                    sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    *yes = one->about <= p->last;
    if (one->kind == FACT_CHECKPOINT && !one->off) {
        status = session_load_locked(p->s, one->about, err);
        *yes = !status && p->s->tree.nodes[one->about].parent <= p->last;
    }
    return status;
}

/* Writes a later entry again, under the next id. */
static sessile_status carry(plan *p, sessile_id id, buf *text, sessile_error *err)
{
    sessile_status status;
    entry e;

    status = session_read_entry(p->s, id, text, &e, err);
    if (status)
        return status;
    if (e.parent <= p->last)
        batch_copy(&p->facts, text->data, text->size);
    else /* the head was at an entry that is a tombstone now */
        batch_put(&p->facts, p->last, e.type, e.source, e.data.at, e.data.size);
    return SESSILE_OK;
}

/* Labels and checkpoints of the copied entries, as they are now. */
static sessile_status carry_labels(plan *p, buf *work, sessile_error *err)
{
    const facts *all = &p->s->fold.facts;
    const allocator *a = &p->s->store->alloc;
    sessile_status status = SESSILE_OK;
    size_t count = 0, capacity = 0;
    sessile_id *ids = NULL;
    map seen;

    map_init(&seen, a);
    for (size_t i = all->count; !status && i-- > 0 && all->at[i].entry > p->last;) {
        fact one = all->at[i];
        int yes = 0, first;
        if (one.kind != FACT_LABEL && one.kind != FACT_CHECKPOINT)
            continue;
        first = is_first(&seen, all, &one, work);
        if (first > 0)
            status = is_about_them(p, &one, &yes, err);
        if (first < 0 ||
            (yes && mem_grow(a, (void **)&ids, &capacity, count + 1, sizeof *ids)))
            status = fail_nomem(err);
        else if (yes)
            ids[count++] = one.entry;
    }
    while (!status && count)
        status = carry(p, ids[--count], work, err);
    mem_free(a, ids, capacity * sizeof *ids);
    map_deinit(&seen);
    return status;
}

/* Ends a suspension and pending runs: a fork inherits neither. */
static sessile_status end_waits(plan *p, buf *work, sessile_error *err)
{
    const facts *all = &p->s->fold.facts;
    sessile_status status = SESSILE_OK;
    map seen;

    map_init(&seen, &p->s->store->alloc);
    for (size_t i = all->count; !status && i-- > 0;) {
        const fact *one = &all->at[i];
        int first;
        if (one->entry > p->last ||
            (one->kind != FACT_SUSPEND && one->kind != FACT_PENDING_RUN))
            continue;
        first = is_first(&seen, all, one, work);
        if (first < 0)
            status = fail_nomem(err);
        if (first <= 0 || one->off)
            continue;
        buf_clear(work);
        buf_puts(work, "{\"off\":true,\"cancelled\":true");
        if (one->kind == FACT_PENDING_RUN)
            buf_printf(work, ",\"pending_run\":\"%08" PRIx32 "\"", one->about);
        buf_puts(work, ",\"reason\":\"fork\"}");
        state(p, one->kind == FACT_PENDING_RUN ? ENTRY_PENDING_RUN : ENTRY_SUSPEND,
              p->last, work);
    }
    map_deinit(&seen);
    return status;
}

/* ------------------------------------------------------------------ of the session */

/* The data of the metadata entry, as it is built. */
typedef struct members {
    buf top, settings, metadata; /* `"key":value` and commas */
    buf text, work;
} members;

static void member(buf *out, const char *key, size_t size, json value)
{
    if (out->size)
        buf_putc(out, ',');
    json_put_string(out, key, size);
    buf_putc(out, ':');
    buf_put(out, value.at, value.size);
}

/* The newest fact of that name in the copied lines. */
static const fact *in_lines(const plan *p, const char *name, size_t size)
{
    const facts *all = &p->s->fold.facts;

    for (size_t i = all->count; i-- > 0;)
        if (all->at[i].entry <= p->last && all->at[i].kind == FACT_METADATA &&
            fact_is_named(all, &all->at[i], name, size))
            return &all->at[i];
    return NULL;
}

static const json null_value = {"null", 4, JSON_NULL};

/* A member of settings or metadata as it is now, if the lines differ. */
static sessile_status keep_member(plan *p, members *m, const fact *one, const char *kind,
                                  buf *out, json given, sessile_error *err)
{
    size_t prefix = strlen(kind) + 1, size = one->name_size - prefix;
    const char *key = fact_name(&p->s->fold.facts, one) + prefix;
    json value = null_value;
    sessile_status status = SESSILE_OK;
    entry e;

    if (one->entry <= p->last ||
        session_member(given, key, size, &m->work).type != JSON_NONE)
        return SESSILE_OK;
    if (!one->off)
        status = session_read_entry(p->s, one->entry, &m->text, &e, err);
    if (status)
        return status;
    if (!one->off)
        value = session_member(json_get(e.data, kind), key, size, &m->work);
    if (value.type != JSON_NONE)
        member(out, key, size, value);
    return SESSILE_OK;
}

static int begins(const plan *p, const fact *one, const char *prefix)
{
    size_t size = strlen(prefix);

    return one->name_size >= size &&
           !memcmp(fact_name(&p->s->fold.facts, one), prefix, size);
}

static sessile_status gather_members(plan *p, members *m, sessile_slice title, json given,
                                     sessile_error *err)
{
    const allocator *a = &p->s->store->alloc;
    const facts *all = &p->s->fold.facts;
    sessile_status status = SESSILE_OK;
    size_t count;
    fact *list;

    if (facts_newest(all, FACT_METADATA, a, &list, &count))
        return fail_nomem(err);
    for (size_t i = 0; !status && i < count; i++) {
        const fact *one = &list[i], *was;
        const char *name = fact_name(all, one);
        if (begins(p, one, "settings.")) {
            status = keep_member(p, m, one, "settings", &m->settings,
                                 (json){NULL, 0, JSON_NONE}, err);
        } else if (begins(p, one, "metadata.")) {
            status = keep_member(p, m, one, "metadata", &m->metadata, given, err);
        } else if (!fact_is_named(all, one, "title", 5)) {
            /* status, time to live and deletion stay with the original */
            was = in_lines(p, name, one->name_size);
            if (was && !was->off)
                member(&m->top, name, one->name_size, null_value);
        }
    }
    mem_free(a, list, count * sizeof *list);
    if (!status && in_lines(p, "title", 5)) {
        if (m->top.size)
            buf_putc(&m->top, ',');
        buf_puts(&m->top, "\"title\":");
        json_put_string(&m->top, title.size ? title.data : "", title.size);
    }
    for (json_iter it = json_begin(given); !status && json_next(&it);) {
        if (m->metadata.size)
            buf_putc(&m->metadata, ',');
        buf_put(&m->metadata, it.key.at, it.key.size);
        buf_putc(&m->metadata, ':');
        buf_put(&m->metadata, it.value.at, it.value.size);
    }
    return status;
}

static void put_group(buf *out, const char *name, const buf *members_of)
{
    if (!members_of->size)
        return;
    if (out->size > 1)
        buf_putc(out, ',');
    buf_printf(out, "\"%s\":{", name);
    buf_put(out, members_of->data, members_of->size);
    buf_putc(out, '}');
}

/* Title, settings and metadata as they are now, if the lines differ. */
static sessile_status state_members(plan *p, sessile_slice title, json given,
                                    sessile_error *err)
{
    const allocator *a = &p->s->store->alloc;
    sessile_status status;
    members m;

    buf_init(&m.top, a);
    buf_init(&m.settings, a);
    buf_init(&m.metadata, a);
    buf_init(&m.text, a);
    buf_init(&m.work, a);
    status = gather_members(p, &m, title, given, err);
    if (!status && m.top.size + m.settings.size + m.metadata.size) {
        buf_clear(&m.text);
        buf_putc(&m.text, '{');
        buf_put(&m.text, m.top.data, m.top.size);
        put_group(&m.text, "settings", &m.settings);
        put_group(&m.text, "metadata", &m.metadata);
        buf_putc(&m.text, '}');
        state(p, ENTRY_METADATA, p->last, &m.text);
    }
    if (!status &&
        (m.top.failed || m.settings.failed || m.metadata.failed || m.work.failed))
        status = fail_nomem(err);
    buf_deinit(&m.top);
    buf_deinit(&m.settings);
    buf_deinit(&m.metadata);
    buf_deinit(&m.text);
    buf_deinit(&m.work);
    return status;
}

/* ------------------------------------------------------------------ the copy */

/* DAMAGED or TRUNCATED when one of the copied lines is bad. */
static sessile_status check_sound(const plan *p, sessile_error *err)
{
    const sessile_session *s = p->s;
    sessile_id sound = log_count_undamaged(s->log), at;
    sessile_error why = {SESSILE_OK, ""};

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
static sessile_status write_copy(const plan *p, sessile_store *to,
                                 const session_names *names, sessile_error *err)
{
    sessile_store *from = p->s->store;
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
static sessile_status check_free(sessile_store *to, const session_names *names,
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

typedef sessile_status (*make_plan)(plan *p, void *arg, sessile_error *err);

static sessile_status copy_session(sessile_session *s, sessile_store *to,
                                   const session_names *names, make_plan make, void *arg,
                                   sessile_error *err)
{
    sessile_error local = {SESSILE_OK, ""};
    sessile_status status = check_free(to, names, err);

    err = err ? err : &local;
    if (!status)
        status = quota_check(to, names, err);
    for (int i = 0, again = 1; !status && again; i++) {
        plan p;
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
        if (!status) {
            status = write_copy(&p, to, names, err);
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

sessile_status session_choose_names(session_names *names, sessile_store *to,
                                    sessile_session *s, sessile_session_options *options,
                                    int id_may_be_empty, sessile_error *err)
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
    const sessile_link *parent;
} fork_wish;

static sessile_status plan_fork(plan *p, void *arg, sessile_error *err)
{
    const fork_wish *w = arg;
    sessile_session *s = p->s;
    sessile_slice title = given_or(w->title, s->fold.title, s->fold.title_size);
    int64_t now_ms = s->store->os->now_ms(s->store->os->ud);
    sessile_status status;
    buf work;

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
    buf_init(&work, &s->store->alloc);
    status = carry_labels(p, &work, err);
    if (!status)
        status = end_waits(p, &work, err);
    if (!status)
        status = state_members(p, title, w->metadata, err);
    buf_deinit(&work);
    if (!status && p->facts.count > SESSILE_NO_ID - p->facts.first - (size_t)1)
        status = fail(err, SESSILE_LIMIT, "the fork would have no ids left");
    return status;
}

sessile_status session_fork(sessile_session *s, sessile_id entry,
                            sessile_session_options *options, const sessile_link *parent,
                            char new_id[UUID_SIZE], sessile_error *err)
{
    sessile_store *st = s->store;
    fork_wish wish = {.entry = entry, .title = options->title, .parent = parent};
    session_names names;
    sessile_status status;
    buf metadata;

    buf_init(&metadata, &st->alloc);
    status = session_choose_names(&names, st, s, options, 1, err);
    if (!status && options->title.data)
        status = session_check_title(st, options->title, err);
    if (!status)
        status = session_check_metadata(&metadata, st, options->metadata, err);
    if (!status && !names.id.size) {
        store_handle_uuid(st, options->uuid_v4, new_id);
        names.id = options->id = (sessile_slice){new_id, UUID_SIZE - 1};
    }
    if (!status) {
        wish.names = &names;
        wish.metadata = metadata.size ? json_of(metadata.data, metadata.size)
                                      : (json){NULL, 0, JSON_NONE};
        status = copy_session(s, st, &names, plan_fork, &wish, err);
    }
    buf_deinit(&metadata);
    return status;
}

/* ------------------------------------------------------------------ put */

static sessile_status plan_put(plan *p, void *arg, sessile_error *err)
{
    sessile_session *s = p->s;
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

sessile_status session_put(sessile_store *to, sessile_session *s,
                           sessile_session_options *options, sessile_error *err)
{
    session_names names;
    sessile_status status;

    if (!options->id.size)
        options->id = (sessile_slice){s->identity.id, s->identity.id_size};
    status = session_choose_names(&names, to, s, options, 0, err);
    return status ? status : copy_session(s, to, &names, plan_put, &names, err);
}

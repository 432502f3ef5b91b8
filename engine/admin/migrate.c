/*
 * migrate.c: copies a whole store into another one, session after session.
 *
 * Owns the order: scan, copy, users' secrets, read back, report. A session that fails is
 * reported and the others go on; only an error of the target store, or of the whole
 * source, ends the migration. Must never open a session, which would heal it, write its
 * index, and so change the source.
 */
#include "admin/migrate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "operations/deletion.h"
#include "session/fold.h"
#include "session/header.h"
#include "store/wait.h"

/* After this number of failing reads in a row the sessions are not at fault. */
enum { LOST_MOST = 8, TRIES = 3 };

void migrate_free(migration_core *m)
{
    allocator a = allocator_default;

    if (!m)
        return;
    if (m->from)
        a = m->from->alloc;
    transfer_free(m->at);
    migrate_look_deinit(&m->look);
    host_free(m->keyring);
    if (m->kept.alloc)
        buf_deinit(&m->kept);
    if (m->part)
        mem_free(&a, m->part, strlen(m->part) + 1);
    if (m->final)
        mem_free(&a, m->final, strlen(m->final) + 1);
    if (!m->to_lent)
        store_handle_close(m->to);
    if (!m->from_lent)
        store_handle_close(m->from);
    mem_free(&allocator_default, m, sizeof *m);
}

sessile_status migrate_begin(migration_core **out, const sessile_place *from,
                             store_core *from_open, const sessile_place *to,
                             store_core *to_open, const sessile_migrate_options *options,
                             sessile_error *err)
{
    migration_core *m = mem_zalloc(&allocator_default, sizeof *m);
    sessile_status status;

    if (!m)
        return fail_nomem(err);
    if (options)
        m->options = *options;
    m->parts = m->options.parts ? m->options.parts
                                : SESSILE_MIGRATE_LOGS | SESSILE_MIGRATE_KEYRING |
                                      SESSILE_MIGRATE_USERS;
    status = migrate_open(m, from, from_open, to, to_open, err);
    if (status) {
        migrate_free(m);
        return status;
    }
    *out = m;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ one session */

static void report(migration_core *m, const sessile_error *why)
{
    const char *folder = migrate_folder(&m->look, m->next);
    const char *name = migrate_name(&m->look, m->next);
    size_t n = strlen(folder);

    memcpy(m->failed, folder, n);
    m->failed[n++] = '/';
    memcpy(m->failed + n, name, strlen(name) + 1);
    m->state.log = m->failed;
    m->state.why = *why;
}

/* Where the session is kept in the other store, whose names have another key, or the same
 * if bytes are copied unchanged. */
static sessile_status place_there(migration_core *m, const char *folder, const char *name,
                                  sessile_error *err)
{
    store_core *from = m->from, *to = m->state.as_it_stands ? m->from : m->to;
    sessile_status status;
    session_names names;
    header head;
    entry first;
    buf text;

    buf_init(&text, &from->alloc);
    header_init(&head, &from->alloc);
    status = log_peek(&from->backend, from->keys, folder, name, session_read_depth(from),
                      from->config.timeout_ms, &text, &from->alloc, err);
    if (!status)
        status = entry_read(&first, text.data, text.size, err);
    if (!status)
        status = header_read(&head, &first, err);
    if (!status) {
        names.id = (sessile_slice){head.id.data, head.id.size};
        names.agent = (sessile_slice){head.agent.data, head.agent.size};
        names.user = (sessile_slice){head.user.data, head.user.size};
        names.kind = head.kind;
        names_place(to, &names, m->to_folder, m->to_name);
        if (!m->state.as_it_stands)
            keyring_user_name(to->keys, names.user, m->user);
    }
    header_deinit(&head);
    buf_deinit(&text);
    return status;
}

static int is_misnamed(const char *folder, const char *name)
{
    uint64_t number;

    return store_is_misnamed(folder, &number) || store_is_misnamed(name, &number);
}

static sessile_status begin_copying(migration_core *m, int compare, sessile_error *err)
{
    const char *folder = migrate_folder(&m->look, m->next);
    const char *name = migrate_name(&m->look, m->next);
    log_index_callbacks callbacks = session_index_callbacks(NULL, 1);
    sessile_status status = SESSILE_OK;
    transfer_options wish = {.from = &m->from->backend,
                             .to = &m->to->backend,
                             .from_keys = m->without_key ? NULL : m->from->keys,
                             .to_keys = m->state.as_it_stands ? NULL : m->to->keys,
                             .folder = folder,
                             .name = name,
                             .to_folder = m->to_folder,
                             .to_name = m->to_name,
                             .user = m->user,
                             .limit = m->look.logs[m->next].bytes,
                             .compare = compare,
                             .replace = m->options.replace,
                             .timeout_ms = m->to->config.timeout_ms,
                             .depth = session_read_depth(m->from),
                             .callbacks = &callbacks};

    m->misnamed = is_misnamed(folder, name);
    if (m->misnamed && (m->without_key || !m->from->keys)) {
        status = fail(err, m->closed.code ? m->closed.code : SESSILE_SEALED,
                      "its name is damaged, and its right name cannot be read, so it was "
                      "left out (%.300s)",
                      m->closed.message);
    } else if (m->state.as_it_stands && !m->misnamed) {
        memcpy(m->to_folder, folder, strlen(folder) + 1);
        memcpy(m->to_name, name, strlen(name) + 1);
    } else {
        status = place_there(m, folder, name, err);
    }
    return status ? status : transfer_begin(&m->at, &wish, &m->from->alloc, err);
}

/* Tells that a session whose name is damaged was copied under its right name. */
static void report_name(migration_core *m)
{
    sessile_error why;

    fail(&why, SESSILE_DAMAGED,
         "its name is damaged here: the copy has it as %s/%s. To mend it here: sessile "
         "check --salvage",
         m->to_folder, m->to_name);
    report(m, &why);
}

/* Counts the result of a copied session. */
static void count_copied(migration_core *m, const transfer_info *about)
{
    sessile_migrate_state *s = &m->state;
    migrate_log *log = &m->look.logs[m->next];
    sessile_error why = {
        .code = SESSILE_CONFLICT,
        .message = "the target has a different session of this name: it was left alone"};

    s->unfinished += about->unfinished;
    log->put = 1;
    log->bytes = about->bytes;
    if (m->misnamed)
        report_name(m); /* unless there is worse to report */
    switch (about->result) {
    case TRANSFER_COPIED:
        s->copied++;
        break;
    case TRANSFER_CONTINUED:
        s->continued++;
        break;
    case TRANSFER_REPLACED:
        s->replaced++;
        break;
    case TRANSFER_KEPT:
    case TRANSFER_AHEAD:
    case TRANSFER_SHORT: /* its beginning, before the damage */
        s->kept++;
        s->verified += !about->damage.code;
        log->put = 0;
        break;
    case TRANSFER_DIFFERS:
        s->conflicts++;
        log->put = 0;
        report(m, &why);
        break;
    }
    if (about->damage.code) {
        s->damaged++;
        log->put = 0; /* that it is not what was written is known already */
        report(m, &about->damage);
    }
    if (m->without_key && m->from->keys) {
        if (m->closed.code == SESSILE_SEALED && transfer_user(m->at)[0]) {
            s->forgotten++;
        } else if (user_secret_is_missing(&m->closed) && migrate_has_no_users(m)) {
            s->forgotten++; /* a backup whose users' secrets are kept apart */
        } else {
            s->damaged++;
            report(m, &m->closed);
        }
    }
}

/* Sealed with a user's secret: when it does not open, the user was forgotten. */
static int is_of_a_user(const migration_core *m)
{
    log_about about;

    return !log_read_about(&m->from->backend, migrate_folder(&m->look, m->next),
                           migrate_name(&m->look, m->next), 0, 0, &about, NULL) &&
           about.key.user[0];
}

/* One that failed. OK: the rest goes on. NEEDS: it is tried again. */
static sessile_status failed(migration_core *m, const sessile_error *why,
                             int reads_no_more, sessile_error *err)
{
    sessile_migrate_state *s = &m->state;
    sessile_status status = why->code;
    int there = m->at && transfer_target_failed(m->at);
    int wrote =
        status == SESSILE_IO || status == SESSILE_FULL || status == SESSILE_DENIED;

    if (status == SESSILE_NOMEM || status == SESSILE_CANCELLED || (there && wrote))
        return fail(err, status, "%s", why->message);
    if (status == SESSILE_NOTFOUND && !there && m->tries++ < TRIES && m->at)
        return SESSILE_NEEDS; /* another log took its name */
    if (status == SESSILE_NOTFOUND && !there) {
        s->gone++;
        return SESSILE_OK;
    }
    if (s->as_it_stands && !m->without_key && m->from->keys && !there && reads_no_more &&
        (status == SESSILE_SEALED || status == SESSILE_DAMAGED ||
         status == SESSILE_UNSUPPORTED)) {
        m->without_key = 1; /* its bytes all the same */
        m->closed = *why;
        return SESSILE_NEEDS;
    }
    if ((!s->as_it_stands || m->misnamed) && status == SESSILE_SEALED &&
        is_of_a_user(m)) {
        s->forgotten++;
        return SESSILE_OK;
    }
    m->lost = status == SESSILE_IO ? m->lost + 1 : 0;
    if (m->lost >= LOST_MOST)
        return fail(err, status, "%s", why->message);
    if (m->misnamed)
        s->failed++;
    else if (status == SESSILE_DAMAGED || status == SESSILE_TRUNCATED)
        s->damaged++;
    else if (status == SESSILE_CONFLICT)
        s->conflicts++;
    else
        s->failed++;
    report(m, why);
    return SESSILE_OK;
}

static void next_session(migration_core *m)
{
    m->next++;
    m->tries = 0;
    m->without_key = 0;
    error_clear(&m->closed);
    m->state.done++;
    m->passed += m->look.logs[m->next - 1].size;
    m->state.bytes_done = m->passed;
}

/* Counts the result of reading a session back. */
static void verify(migration_core *m, const transfer_info *about)
{
    static const sessile_error wrong = {
        .code = SESSILE_IO,
        .message = "what was read back differs from what was copied, or it was resealed "
                   "meanwhile: run it again"};

    if (about->result == TRANSFER_KEPT || about->result == TRANSFER_AHEAD) {
        m->state.verified++;
        return;
    }
    m->state.failed++;
    report(m, &wrong);
}

/* Copies a piece of a session, or (compare) reads it back. */
static sessile_status piece(migration_core *m, int compare, sessile_error *err)
{
    sessile_error why = {0};
    int begins = !m->at;
    sessile_status status = begins ? begin_copying(m, compare, &why) : SESSILE_OK;
    transfer_info about;

    if (!status)
        status = transfer_step(m->at, &why);
    if (status == SESSILE_NEEDS) {
        m->state.bytes_done = m->passed + transfer_done(m->at);
        return SESSILE_NEEDS;
    }
    if (!status) {
        m->lost = 0;
        transfer_get_info(m->at, &about);
        if (compare)
            verify(m, &about);
        else
            count_copied(m, &about);
    } else {
        status = failed(m, &why, begins, err);
    }
    transfer_free(m->at);
    m->at = NULL;
    if (!status)
        next_session(m);
    return status ? status : SESSILE_NEEDS;
}

/* ------------------------------------------------------------------ in order */

static void enter(migration_core *m, sessile_migrate_stage stage)
{
    sessile_migrate_state *s = &m->state;

    s->stage = stage;
    s->sessions = s->bytes = s->done = s->bytes_done = 0;
    m->next = 0;
    m->passed = 0;
    for (size_t i = 0; i < m->look.count; i++) {
        migrate_log *log = &m->look.logs[i];
        if (stage == SESSILE_MIGRATE_VERIFYING && !log->put)
            continue;
        log->size = log->bytes;
        s->sessions++;
        s->bytes += log->bytes;
    }
}

static sessile_status looking(migration_core *m, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (m->parts & SESSILE_MIGRATE_LOGS)
        status = migrate_look_again(m, err);
    m->state.sessions = m->look.count;
    if (!status) {
        enter(m, SESSILE_MIGRATE_COPYING);
        status = SESSILE_NEEDS;
    }
    return status;
}

/* After the logs: a session that is removed meanwhile has its record too. */
static sessile_status copy_deletions(migration_core *m, sessile_error *err)
{
    uint64_t copied, lost;
    sessile_error why;
    sessile_status status =
        deletions_copy(m->from, m->to, !m->state.as_it_stands, &copied, &lost, err);

    if (status || !lost)
        return status;
    m->state.failed += lost;
    snprintf(m->failed, sizeof m->failed, "deleted-");
    m->state.log = m->failed;
    fail(&why, SESSILE_DAMAGED,
         "%" PRIu64 " records of deletions do not open, and were left out", lost);
    m->state.why = why;
    return SESSILE_OK;
}

/* Reports the next user's secret that was kept in the copy. 0: there is none. */
static int report_kept(migration_core *m)
{
    const char *name = m->kept.data + m->told;
    sessile_error why;

    if (m->told == m->kept.size)
        return 0;
    fail(&why, SESSILE_DAMAGED, "%s", name + strlen(name) + 1);
    m->told += strlen(name) + strlen(why.message) + 2;
    snprintf(m->failed, sizeof m->failed, "%s", name);
    m->state.log = m->failed;
    m->state.why = why;
    return 1;
}

static sessile_status copying(migration_core *m, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (m->next < m->look.count)
        return piece(m, 0, err);
    if (m->state.as_it_stands && (m->parts & SESSILE_MIGRATE_USERS) && !m->users_done) {
        status = migrate_users(m, err);
        m->users_done = 1;
    }
    if (!status && report_kept(m))
        return SESSILE_NEEDS;
    if (!status && (m->parts & SESSILE_MIGRATE_LOGS))
        status = copy_deletions(m, err);
    if (status)
        return status;
    enter(m, SESSILE_MIGRATE_VERIFYING);
    return SESSILE_NEEDS;
}

static sessile_status verifying(migration_core *m, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    while (m->next < m->look.count && !m->look.logs[m->next].put)
        m->next++;
    if (m->next < m->look.count)
        return piece(m, 1, err);
    if (m->state.as_it_stands)
        status = migrate_keys_same(m, err);
    if (!status && m->part) {
        store_handle_close(m->to);
        m->to = NULL;
        status = migrate_publish(m, err);
        m->ended = status != SESSILE_OK;
    }
    if (!status) {
        m->look.bytes = 0;
        for (size_t i = 0; i < m->look.count; i++)
            m->look.bytes += m->look.logs[i].bytes;
        m->state.stage = SESSILE_MIGRATE_DONE;
        m->state.sessions = m->state.done = m->look.count;
        m->state.bytes = m->state.bytes_done = m->look.bytes;
    }
    return status;
}

sessile_status migrate_step(migration_core *m, sessile_migrate_state *state,
                            sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    m->state.log = NULL;
    error_clear(&m->state.why);
    if (m->ended)
        return fail(err, SESSILE_CLOSED, "this copy ended with an error: begin another");
    switch (m->state.stage) {
    case SESSILE_MIGRATE_LOOKING:
        status = looking(m, err);
        break;
    case SESSILE_MIGRATE_COPYING:
        status = copying(m, err);
        break;
    case SESSILE_MIGRATE_VERIFYING:
        status = verifying(m, err);
        break;
    case SESSILE_MIGRATE_DONE:
        break;
    }
    m->ended |= status && status != SESSILE_NEEDS;
    *state = m->state;
    return status;
}

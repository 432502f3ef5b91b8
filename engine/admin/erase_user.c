/*
 * erase_user.c: erases a user from a store.
 *
 *   1. every log is looked at: what is the user's, what is under a hold
 *   2. what agents keep for all from sessions of the user is erased, while the names of
 *      these sessions are still known
 *   3. the user is forgotten: from here on nothing opens, whatever happens next
 *   4. the logs are removed, with all that lies beside them, and list caches
 *
 * Each step can be done again: an interrupted erasure is repeated from its beginning, and
 * finds what is left by the hash of the user, which stands in clear in the first line of
 * each log. Must never remove anything before it is known that there is no hold.
 *
 * In a plain store there is no secret, so a log is the user's whose header says so.
 */
#include "admin/erase_user.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "admin/keys.h"
#include "admin/list.h"
#include "admin/list_cache.h"
#include "admin/memories.h"
#include "admin/places.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

/* How often the store is looked through for logs that were made meanwhile. */
enum { PASSES = 4 };

typedef struct erasure {
    store_core *st;
    sessile_slice user;
    char secret[NAME_SIZE]; /* keyring_user_name(); "": users have no secrets here */
    places own;             /* logs of the user */
    sessile_receipt done;
} erasure;

/* ------------------------------------------------------------------ what there is */

static int is_user(const erasure *e, const buf *name)
{
    return name->size == e->user.size && !memcmp(name->data, e->user.data, name->size);
}

/* Of a log that is not known to be the user's. *own: its header says that it is. */
static void look_at_header(erasure *e, const place *at, int *own)
{
    sessile_error ignored;
    header h;

    header_init(&h, &e->st->alloc);
    if (!header_peek(e->st, at->folder, at->name, &h, &ignored)) {
        if (!e->secret[0] && is_user(e, &h.user))
            *own = 1;
        else if (h.kind == NAMES_SESSION) {
            e->done.without_user += !h.user.size;
            e->done.forks += is_user(e, &h.origin.user) || is_user(e, &h.parent.user);
        }
    }
    header_deinit(&h);
}

static sessile_status add_own(erasure *e, const place *at, sessile_error *err)
{
    const store_removal what = {at->folder, at->name, e->secret, e->user};
    sessile_status status = store_check_removal(e->st, &what, err);

    if (status)
        return status;
    if (mem_grow(&e->st->alloc, (void **)&e->own.list, &e->own.capacity, e->own.count + 1,
                 sizeof *e->own.list))
        return fail_nomem(err);
    e->own.list[e->own.count++] = *at;
    return SESSILE_OK;
}

static sessile_status look_at(erasure *e, const place *at, sessile_error *err)
{
    log_about log;
    sessile_error why = {0};
    sessile_status status =
        log_read_about(&e->st->backend, at->folder, at->name, 0, 0, &log, &why);
    int own;

    if (status == SESSILE_NOTFOUND)
        return SESSILE_OK;
    if (status == SESSILE_DAMAGED) {
        e->done.unreadable++;
        return SESSILE_OK;
    }
    if (status)
        return fail(err, status, "%s", why.message);
    own = log.sealed && e->secret[0] && !strcmp(log.key.user, e->secret);
    if (!own && (folder_has_sessions(at->folder) || folder_has_memories(at->folder)))
        look_at_header(e, at, &own);
    return own ? add_own(e, at, err) : SESSILE_OK;
}

/* Finds the logs of the user, and counts what will not be reached. DENIED: a hold. */
static sessile_status look(erasure *e, sessile_error *err)
{
    places all;
    sessile_status status = places_find(&all, e->st, NULL, err);

    e->own.count = 0;
    e->done.forks = e->done.without_user = e->done.unreadable = 0;
    for (size_t i = 0; !status && i < all.count; i++)
        status = look_at(e, &all.list[i], err);
    places_deinit(&all);
    return status;
}

/* ------------------------------------------------------------------ what others keep */

static sessile_status erase_from_shared(erasure *e, const sessile_listed *row,
                                        int dry_run, sessile_error *err)
{
    const sessile_memory_options which = {.agent = row->agent, .must_exist = 1};
    const sessile_memory_erase_options from = {.session = row->id,
                                               .session_agent = row->agent};
    sessile_error why = {0};
    memory_core *m;
    size_t erased = 0;
    sessile_status status = memory_open(&m, e->st, &which, &why);

    if (status == SESSILE_NOTFOUND)
        return SESSILE_OK;
    if (!status && dry_run)
        status = memory_count_from(m, row->agent, row->id, &erased, &why);
    else if (!status)
        status = memory_erase(m, &from, &erased, &why);
    if (m)
        memory_close(m);
    e->done.shared_entries += erased;
    if (status && err)
        *err = why;
    return status;
}

/* Entries that agents keep for all and that came from sessions of the user. */
static sessile_status erase_shared(erasure *e, int dry_run, sessile_error *err)
{
    const sessile_list_options own = {
        .user = e->user,
        .lives = 1u << SESSILE_LIFE_ACTIVE | 1u << SESSILE_LIFE_SUSPENDED |
                 1u << SESSILE_LIFE_ARCHIVED | 1u << SESSILE_LIFE_EXPIRED |
                 1u << SESSILE_LIFE_DELETED};
    sessile_listed *rows = NULL;
    size_t count = 0;
    sessile_status status = list_sessions(e->st, NULL, &own, &rows, &count, err);

    for (size_t i = 0; !status && i < count; i++)
        if (rows[i].id.size && rows[i].agent.size)
            status = erase_from_shared(e, &rows[i], dry_run, err);
    host_free(rows);
    return status;
}

/* ------------------------------------------------------------------ removing */

static sessile_status remove_log(erasure *e, const place *at, sessile_error *err)
{
    store_core *st = e->st;
    uint64_t bytes = 0;
    sessile_error why = {0};
    sessile_status status =
        e->done.shredded
            ? log_remove_forgotten(&st->backend, st->keys, at->folder, at->name,
                                   st->config.timeout_ms, &bytes, &why)
            : log_remove(&st->backend, st->keys, at->folder, at->name, NULL,
                         st->config.timeout_ms, &bytes, &why);

    if (status == SESSILE_NOTFOUND) /* somebody was quicker */
        return SESSILE_OK;
    if (status)
        return fail_rule(err, status, why.rule, "a log of the user was not removed: %s",
                         why.message);
    e->done.bytes += bytes;
    if (folder_has_memories(at->folder))
        e->done.memories++;
    else
        e->done.sessions++;
    return SESSILE_OK;
}

static sessile_status forget_and_remove(erasure *e, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    /* Until none is left: somebody may make a session for the user meanwhile. */
    for (int pass = 0; !status && pass < PASSES; pass++) {
        if (e->secret[0])
            status = forget_user(e->st, e->user, NULL, err);
        e->done.shredded = !status && e->secret[0];
        for (size_t i = 0; !status && i < e->own.count; i++)
            status = remove_log(e, &e->own.list[i], err);
        if (!status)
            status = look(e, err);
        if (status || !e->own.count)
            break;
    }
    if (!status && e->own.count)
        status = fail(err, SESSILE_BUSY,
                      "sessions of this user are being made: end what makes them, and "
                      "try again");
    return status ? status : list_cache_drop(e->st, err);
}

/* ------------------------------------------------------------------ the receipt */

static void put_receipt(buf *out, const sessile_receipt *r, int dry_run)
{
    buf_printf(out,
               "{\"sessile_erasure\":1,\"subject\":\"%s\",\"time_ms\":%" PRIi64
               ",\"dry_run\":%s,\"shredded\":%s,\"sessions\":%" PRIu64
               ",\"memories\":%" PRIu64 ",\"bytes\":%" PRIu64
               ",\"shared_entries\":%" PRIu64,
               r->subject, r->time_ms, dry_run ? "true" : "false",
               r->shredded ? "true" : "false", r->sessions, r->memories, r->bytes,
               r->shared_entries);
    buf_printf(out,
               ",\"not_reached\":{\"forks\":%" PRIu64 ",\"without_user\":%" PRIu64
               ",\"unreadable\":%" PRIu64 ",\"also\":["
               "\"what sessions and memories of others say of the user\","
               "\"what hosts wrote into reasons, actors and names\","
               "%s"
               "\"backups and exports\","
               "\"what was sent to a model's provider\"]}}",
               r->forks, r->without_user, r->unreadable,
               r->shredded
                   ? "\"copies of the blobs user-…: with one of them a copy of a "
                     "log opens\","
                   : "\"bytes on the disk: this store is plain, so its files were "
                     "removed and nothing was shredded\",");
}

static sessile_status give(const erasure *e, int dry_run, sessile_receipt **out,
                           sessile_error *err)
{
    sessile_receipt *r;
    sessile_status status = SESSILE_OK;
    buf text;

    buf_init(&text, &e->st->alloc);
    put_receipt(&text, &e->done, dry_run);
    r = text.failed ? NULL : host_alloc(&e->st->alloc, sizeof *r + text.size + 1);
    if (!r) {
        status = fail_nomem(err);
    } else {
        char *json = (char *)(r + 1);
        *r = e->done;
        memcpy(json, text.data, text.size);
        json[text.size] = 0;
        r->json = (sessile_slice){json, text.size};
        *out = r;
    }
    buf_deinit(&text);
    return status;
}

/* A dry run: what would be removed. */
static sessile_status count_own(erasure *e, sessile_error *err)
{
    sessile_status status = erase_shared(e, 1, err);

    for (size_t i = 0; !status && i < e->own.count; i++) {
        const place *at = &e->own.list[i];
        log_about log;
        sessile_error ignored;
        if (log_read_about(&e->st->backend, at->folder, at->name, 0, 0, &log, &ignored))
            continue;
        e->done.bytes += log.bytes;
        if (folder_has_memories(at->folder))
            e->done.memories++;
        else
            e->done.sessions++;
    }
    e->done.shredded = e->secret[0] != 0;
    return status;
}

sessile_status user_erase(store_core *st, sessile_slice user,
                          const sessile_erase_options *options, sessile_receipt **out,
                          sessile_error *err)
{
    erasure e = {.st = st, .user = user};
    store_removal all = {"", "", e.secret, user};
    sessile_status status;

    if (!user.size)
        return fail(err, SESSILE_INVALID, "the name of the user is empty");
    if (!st->backend.table->remove)
        return fail(err, SESSILE_UNSUPPORTED,
                    "the store \"%s\" removes nothing, so nobody is erased from it",
                    st->backend.table->name);
    keyring_user_name(st->keys, user, e.secret);
    snprintf(e.done.subject, sizeof e.done.subject, "%016" PRIx64,
             keyring_name_hash(st->keys, &user, 1));
    e.done.time_ms = st->os->now_ms(st->os->ud);
    e.own.alloc = &st->alloc;
    status = store_check_removal(st, &all, err);
    if (!status)
        status = look(&e, err);
    if (!status && options->dry_run)
        status = count_own(&e, err);
    else if (!status) {
        status = erase_shared(&e, 0, err);
        if (!status)
            status = forget_and_remove(&e, err);
    }
    if (!status)
        status = give(&e, options->dry_run, out, err);
    places_deinit(&e.own);
    return status;
}

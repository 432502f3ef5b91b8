/*
 * erase_user.c: erases a user from a store.
 *
 *   1. every log is looked at: what is the user's, what is under a hold
 *   2. what was found is written down (guard/erasure.h)
 *   3. what agents keep for all from sessions of the user is erased, while the names of
 *      these sessions are still known
 *   4. the user is forgotten: from here on nothing opens, whatever happens next
 *   5. the logs are removed, with all that lies beside them, and list caches
 *   6. grants, access keys and locks of the user are ended
 *   7. that it is done is written down
 *
 * Each step can be done again: an interrupted erasure is repeated from its beginning, and
 * finds what is left by the hash of the user, which stands in clear in the first line of
 * each log. What it had removed before is counted by what was written down. Must never
 * remove anything before it is known that there is no hold, nor say that somebody was
 * erased of whom nothing was there.
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
#include "guard/erasure.h"

/* How often the store is looked through for logs that were made meanwhile. */
enum { PASSES = 4 };

typedef struct erasure {
    store_core *st;
    sessile_slice user;
    char secret[NAME_SIZE]; /* keyring_user_name(); "": users have no secrets here */
    places own;             /* logs of the user */
    erasure_record record;
    erasure_counts found;
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

static sessile_status add_own(erasure *e, const place *at, uint64_t bytes,
                              sessile_error *err)
{
    const store_removal what = {at->folder, at->name, e->secret, e->user};
    sessile_status status = store_check_removal(e->st, &what, err);

    if (!status)
        status = erasure_add_log(&e->record, at->folder, at->name, bytes,
                                 folder_has_memories(at->folder), err);
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
    return own ? add_own(e, at, log.bytes, err) : SESSILE_OK;
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
    if (dry_run)
        e->found.shared_entries += erased;
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

static sessile_status count_consent(void *arg, memory_core *m, sessile_error *err)
{
    erasure *e = arg;
    sessile_memory_stats stats = {0};
    sessile_status status = memory_stats(m, &stats, err);

    e->found.consents += !status && stats.consented;
    return status;
}

/* What will end beside logs. */
static sessile_status count_beside(erasure *e, sessile_error *err)
{
    uint64_t closed = 0;
    sessile_status status;

    e->found = (erasure_counts){0};
    status = erase_shared(e, 1, err);
    if (!status)
        status = memories_each(e->st, e->user, count_consent, e, &closed, err);
    return status ? status : erasure_end_access(&e->record, 1, &e->found, err);
}

/* ------------------------------------------------------------------ who it is */

/* *known 1: the user has a secret, or had one that was forgotten. */
static sessile_status look_at_secrets(const erasure *e, int *known, sessile_error *err)
{
    enum { EPOCHS = 64 };
    char pseudonyms[1][PSEUDONYM_SIZE];
    uint64_t epochs[EPOCHS];
    size_t count, n = keyring_epochs(e->st->keys, epochs, EPOCHS);
    sessile_status status =
        pseudonym_find(e->st->keys, e->user, pseudonyms, 1, &count, err);

    *known = !status && count > 0;
    for (size_t i = 0; !status && !*known && i < n && i < EPOCHS; i++) {
        char name[NAME_SIZE + 24];
        int forgot;
        snprintf(name, sizeof name, "%s-%" PRIu64, e->secret, epochs[i]);
        forgot = keyring_forgot_secret(e->st->keys, name, err);
        if (forgot < 0)
            return err->code;
        *known = forgot;
    }
    return status;
}

/* NOTFOUND: nothing is known of the user, so a receipt would say what is not so. */
static sessile_status check_known(const erasure *e, sessile_error *err)
{
    const erasure_record *r = &e->record;
    const erasure_counts *f = &e->found;
    sessile_status status = SESSILE_OK;
    int known = r->count || r->is_begun || r->done_ms || r->forgotten_ms || f->grants ||
                f->access_keys || f->locks;

    if (!known && e->secret[0])
        status = look_at_secrets(e, &known, err);
    return status || known
               ? status
               : fail(err, SESSILE_NOTFOUND,
                      "nothing is known of this user, so nobody was erased: compare the "
                      "name with those of the sessions");
}

/* ------------------------------------------------------------------ removing */

static sessile_status remove_log(const erasure *e, const place *at, sessile_error *err)
{
    store_core *st = e->st;
    uint64_t bytes;
    sessile_error why = {0};
    sessile_status status =
        e->done.shredded
            ? log_remove_forgotten(&st->backend, st->keys, at->folder, at->name, 0,
                                   st->config.timeout_ms, &bytes, &why)
            : log_remove(&st->backend, st->keys, at->folder, at->name, NULL,
                         st->config.timeout_ms, &bytes, &why);

    if (status && status != SESSILE_NOTFOUND) /* somebody was quicker */
        return fail_rule(err, status, why.rule, "a log of the user was not removed: %s",
                         why.message);
    return SESSILE_OK;
}

static sessile_status forget_and_remove(erasure *e, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    /* Until none is left: somebody may make a session for the user meanwhile. */
    for (int pass = 0; !status && pass < PASSES; pass++) {
        if (pass)
            status = erasure_begin(&e->record, &e->found, err);
        if (!status && e->secret[0])
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

void receipt_counts(const sessile_receipt *r, receipt_count out[RECEIPT_COUNTS])
{
    const receipt_count counts[RECEIPT_COUNTS] = {{"sessions", r->sessions},
                                                  {"memories", r->memories},
                                                  {"bytes", r->bytes},
                                                  {"shared_entries", r->shared_entries},
                                                  {"consents", r->consents},
                                                  {"grants", r->grants},
                                                  {"access_keys", r->access_keys},
                                                  {"locks", r->locks}};

    memcpy(out, counts, sizeof counts);
}

static void put_numbers(buf *out, const sessile_receipt *r, int dry_run)
{
    receipt_count counts[RECEIPT_COUNTS];

    receipt_counts(r, counts);

    buf_printf(out,
               "{\"sessile_erasure\":1,\"subject\":\"%s\",\"time_ms\":%" PRIi64
               ",\"before_ms\":%" PRIi64 ",\"dry_run\":%s,\"shredded\":%s",
               r->subject, r->time_ms, r->before_ms, dry_run ? "true" : "false",
               r->shredded ? "true" : "false");
    for (size_t i = 0; i < RECEIPT_COUNTS; i++)
        buf_printf(out, ",\"%s\":%" PRIu64, counts[i].name, counts[i].value);
}

static void put_receipt(buf *out, const sessile_receipt *r, int dry_run)
{
    put_numbers(out, r, dry_run);
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
                     "removed and nothing was shredded\","
                     "\"the name of the user in what was granted, locked and held: it "
                     "stands in clear in the control log of a plain store\",");
}

/* A receipt and its text in one block. */
static sessile_status make_receipt(const allocator *a, const sessile_receipt *from,
                                   const buf *text, sessile_receipt **out,
                                   sessile_error *err)
{
    sessile_receipt *r = text->failed ? NULL : host_alloc(a, sizeof *r + text->size + 1);
    char *json;

    if (!r)
        return fail_nomem(err);
    json = (char *)(r + 1);
    *r = *from;
    memcpy(json, text->data, text->size);
    json[text->size] = 0;
    r->json = (sessile_slice){json, text->size};
    *out = r;
    return SESSILE_OK;
}

static sessile_status give(const erasure *e, int dry_run, sessile_receipt **out,
                           sessile_error *err)
{
    sessile_status status;
    buf text;

    buf_init(&text, &e->st->alloc);
    put_receipt(&text, &e->done, dry_run);
    status = make_receipt(&e->st->alloc, &e->done, &text, out, err);
    buf_deinit(&text);
    return status;
}

sessile_status receipt_prove(store_core *st, sessile_receipt **receipt, const char *event,
                             const buf *proof, sessile_error *err)
{
    sessile_receipt *old = *receipt, with = *old;
    sessile_status status;
    buf text;

    snprintf(with.event, sizeof with.event, "%s", event);
    buf_init(&text, &st->alloc);
    buf_put(&text, old->json.data, old->json.size - 1);
    buf_printf(&text, ",\"event\":\"%s\"", with.event);
    if (proof->size) {
        buf_puts(&text, ",\"proof\":");
        buf_put(&text, proof->data, proof->size);
    }
    buf_putc(&text, '}');
    status = make_receipt(&st->alloc, &with, &text, receipt, err);
    buf_deinit(&text);
    if (!status)
        host_free(old);
    return status;
}

/* ------------------------------------------------------------------ all of it */

/* 1: an erasure was completed, and nothing that ends came since. */
static int is_done(const erasure *e)
{
    static const erasure_counts none;

    return e->record.done_ms && !e->record.is_begun && !e->record.count &&
           !memcmp(&e->found, &none, sizeof none);
}

/* What was removed, or would be, in all: also by an erasure that was interrupted. */
static void sum_up(erasure *e)
{
    const erasure_record *r = &e->record;
    sessile_receipt *d = &e->done;

    for (size_t i = 0; i < r->count; i++) {
        d->bytes += r->logs[i].bytes;
        d->memories += r->logs[i].is_memory != 0;
        d->sessions += !r->logs[i].is_memory;
    }
    d->shared_entries = r->most.shared_entries;
    d->consents = r->most.consents;
    d->grants = r->most.grants;
    d->access_keys = r->most.access_keys;
    d->locks = r->most.locks;
    d->before_ms = is_done(e) ? r->done_ms : 0;
    d->shredded = e->secret[0] != 0;
}

static sessile_status erase(erasure *e, sessile_error *err)
{
    sessile_status status;
    erasure_counts now = {0};

    if (is_done(e))
        return forget_and_remove(e, err);
    status = erasure_begin(&e->record, &e->found, err);
    if (!status)
        status = erase_shared(e, 0, err);
    if (!status)
        status = forget_and_remove(e, err);
    if (!status)
        status = erasure_end_access(&e->record, 0, &now, err);
    return status ? status : erasure_done(&e->record, err);
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
    erasure_subject(st, user, e.done.subject);
    e.done.time_ms = st->os->now_ms(st->os->ud);
    e.own.alloc = &st->alloc;
    status = store_check_removal(st, &all, err);
    if (!status)
        status = erasure_read(&e.record, st, user, err);
    if (!status)
        status = look(&e, err);
    if (!status)
        status = count_beside(&e, err);
    if (!status)
        status = check_known(&e, err);
    if (!status && options->dry_run)
        erasure_raise(&e.record, &e.found);
    else if (!status)
        status = erase(&e, err);
    if (!status) {
        sum_up(&e);
        status = give(&e, options->dry_run, out, err);
    }
    places_deinit(&e.own);
    erasure_deinit(&e.record);
    return status;
}

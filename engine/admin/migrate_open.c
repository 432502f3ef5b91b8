/*
 * migrate_open.c: opens the two stores of a migration, and decides whether bytes can be
 * copied unchanged or entries must be sealed again.
 *
 * Must never create anything in the source, nor in the target before all checks are done.
 * Must never repeat a URL in an error: it may contain a password.
 */
#include "admin/migrate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "store/open.h"

/* ------------------------------------------------------------------ names */

/* 1 when both lead to one file or folder that is there, or are the same words. */
static int same_place(const os_table *os, const char *a, const char *b)
{
    const char *path_a, *path_b;
    const sessile_store_scheme *scheme = store_scheme(a, &path_a);
    os_stat_info at_a, at_b;

    if (!strcmp(a, b))
        return !scheme || scheme->place != SESSILE_PLACE_MEMORY;
    store_scheme(b, &path_b);
    return path_a && path_b && !os->stat_at(os->ud, -1, path_a, &at_a) &&
           !os->stat_at(os->ud, -1, path_b, &at_b) && at_a.device == at_b.device &&
           at_a.inode == at_b.inode;
}

#define PART ".part"

/* 1 when what SQLite keeps beside a database is at path + suffix, and not empty. */
static int has_beside(const migration_core *m, const char *path, const char *suffix)
{
    const os_table *os = m->from->os;
    const allocator *a = &m->from->alloc;
    size_t size = strlen(path) + strlen(suffix) + 1;
    char *name = mem_alloc(a, size);
    os_stat_info at;
    int there;

    if (!name)
        return 1;
    snprintf(name, size, "%s%s", path, suffix);
    there = !os->stat_at(os->ud, -1, name, &at) && at.size > 0;
    mem_free(a, name, size);
    return there;
}

/* The new file must not come to lie beside these: SQLite would take them for its own. */
static sessile_status none_beside(const migration_core *m, sessile_error *err)
{
    static const char *const suffixes[] = {"-wal", "-journal"};

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (has_beside(m, m->final, suffixes[i]))
            return fail(err, SESSILE_EXISTS,
                        "%s%s is left from a database that is gone: choose another name, "
                        "or move it away",
                        m->final, suffixes[i]);
    return SESSILE_OK;
}

/* The url under which a store is made that gets its name at the end. */
static sessile_status part_url(migration_core *m, const char *url, char **out,
                               sessile_error *err)
{
    const allocator *a = &m->from->alloc;
    size_t skip, size = strlen(url);
    const char *path;
    os_stat_info at;

    *out = NULL;
    store_scheme(url, &path);
    skip = path ? (size_t)(path - url) : 0;
    while (path && size > skip + 1 && url[size - 1] == '/')
        size--;
    if (!path || size == skip)
        return fail(
            err, SESSILE_INVALID,
            "a copy that appears as a whole is a file or a folder: give its path");
    m->final = mem_alloc(a, size - skip + 1);
    m->part = mem_alloc(a, size - skip + sizeof PART);
    *out = mem_alloc(a, size + sizeof PART);
    if (!m->final || !m->part || !*out)
        return fail_nomem(err);
    memcpy(m->final, path, size - skip);
    m->final[size - skip] = 0;
    memcpy(m->part, path, size - skip);
    memcpy(m->part + (size - skip), PART, sizeof PART);
    memcpy(*out, url, size);
    memcpy(*out + size, PART, sizeof PART);
    if (!m->from->os->stat_at(m->from->os->ud, -1, m->final, &at))
        return fail(err, SESSILE_EXISTS,
                    "%s is there already: choose another name, or move it away",
                    m->final);
    return none_beside(m, err);
}

sessile_status migrate_publish(migration_core *m, sessile_error *err)
{
    const os_table *os = m->from->os;
    os_stat_info at;
    sessile_status status;
    int fd;

    if (!m->part)
        return SESSILE_OK;
    status = none_beside(m, err);
    if (status)
        return status;
    if (os->stat_at(os->ud, -1, m->part, &at))
        return fail_errno(err, errno, "cannot look at %s", m->part);
    if (!at.is_dir && has_beside(m, m->part, "-wal"))
        return fail(
            err, SESSILE_BUSY,
            "%s is incomplete: another program has it open, or there was no space "
            "left when it was closed. Correct that, and run it again",
            m->part);
    fd = os->open_at(os->ud, -1, m->part, at.is_dir ? OS_READ | OS_DIRECTORY : OS_READ);
    if (fd < 0 || os->sync_all(os->ud, fd)) {
        int error = errno;
        if (fd >= 0)
            os->close(os->ud, fd);
        return fail_errno(err, error, "cannot sync %s", m->part);
    }
    os->close(os->ud, fd);
    if (os->rename_new(os->ud, -1, m->part, m->final))
        return fail_errno(err, errno, "cannot rename %s to %s", m->part, m->final);
    if (os_sync_parent(os, &m->from->alloc, m->final))
        return fail_errno(err, errno, "cannot sync the folder of %s", m->final);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ keys */

static int seals(const store_core *st)
{
    return (st->backend.table->capabilities & SESSILE_BACKEND_SEALS) != 0;
}

static int found_one(void *arg, const char *folder, const char *name)
{
    (void)folder, (void)name;
    *(int *)arg = 1;
    return 1;
}

static sessile_status has_logs(const store *st, int *out, sessile_error *err)
{
    sessile_status status;

    *out = 0;
    if (st->table->has_logs)
        return st->table->has_logs(st->self, out, err);
    status = st->table->list(st->self, NULL, found_one, out, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK;
    }
    return status;
}

/* Opens the keyring, or makes it where it is not there (there: it is). By default a plain
 * one is opened as plain. */
static sessile_status open_keys(store_core *st, const sessile_store_options *o, int there,
                                sessile_error *err)
{
    sessile_key_source source = o ? o->key_source : SESSILE_KEY_DEFAULT;
    const char *key = o ? o->key : NULL, *suite = o ? o->suite : NULL;
    const store *b = &st->backend;
    sessile_status status = SESSILE_SEALED;

    if (!seals(st))
        return keyring_volatile(&st->keys, &st->alloc, err);
    if (there && source == SESSILE_KEY_DEFAULT)
        status = keyring_open(&st->keys, b->table, b->self, SESSILE_KEY_PLAIN, NULL,
                              suite, st->os, &st->alloc, NULL);
    if (status == SESSILE_SEALED)
        status = keyring_open(&st->keys, b->table, b->self, source, key, suite, st->os,
                              &st->alloc, err);
    else if (status)
        fail(err, status, "the keyring cannot be opened");
    return status;
}

/* ------------------------------------------------------------------ how it is done */

typedef struct sides {
    const sessile_place *from, *to;
    char *to_keyring;
    size_t to_size;
    int to_logs;
} sides;

static sessile_key_source source_of(const sessile_place *p)
{
    return p->options ? p->options->key_source : SESSILE_KEY_DEFAULT;
}

static sessile_status open_from(migration_core *m, const sides *s, sessile_error *err)
{
    int logs;
    sessile_status status =
        migrate_blob(&m->from->backend, KEYRING_BLOB, &m->keyring, &m->keyring_size, err);

    if (!status)
        status = has_logs(&m->from->backend, &logs, err);
    if (status)
        return status;
    if (!m->keyring && !logs && !m->from_lent)
        return fail(err, SESSILE_NOTFOUND,
                    "there is no store to copy: nothing was found at its address");
    if (m->from_lent)
        return SESSILE_OK;
    status = open_keys(m->from, s->from->options, m->keyring != NULL, &m->closed);
    /* Without a key bytes can be copied all the same, unless one was given. */
    if (status == SESSILE_SEALED && m->keyring &&
        source_of(s->from) == SESSILE_KEY_DEFAULT)
        return SESSILE_OK;
    return status ? fail(err, status, "%s", m->closed.message) : SESSILE_OK;
}

/* 1: `to` has the very keyring of `from`, or what that was before it got new keys. */
static int same_keyring(const migration_core *m, const sides *s)
{
    if (!m->keyring || !s->to_keyring)
        return 0;
    return (m->keyring_size == s->to_size &&
            !memcmp(m->keyring, s->to_keyring, s->to_size)) ||
           (m->from->keys && keyring_continues(m->from->keys, s->to_keyring, s->to_size));
}

/* 1: logs are copied as they stand. */
static int can_stand(const migration_core *m, const sides *s)
{
    sessile_key_source source = source_of(s->to);
    int plain = m->from->keys && !keyring_sealed(m->from->keys);

    if (!m->keyring || !seals(m->to) || m->options.change)
        return same_keyring(m, s);
    return same_keyring(m, s) ||
           (!s->to_keyring && !s->to_logs &&
            (source == SESSILE_KEY_DEFAULT || (plain && source == SESSILE_KEY_PLAIN)));
}

static sessile_status put_keyring(migration_core *m, const sides *s, sessile_error *err)
{
    const store *to = &m->to->backend;

    if (!(m->parts & SESSILE_MIGRATE_KEYRING) ||
        (s->to_keyring && m->keyring_size == s->to_size &&
         !memcmp(m->keyring, s->to_keyring, s->to_size)))
        return SESSILE_OK;
    if (s->to_keyring)
        return to->table->blob_replace
                   ? to->table->blob_replace(to->self, KEYRING_BLOB, s->to_keyring,
                                             s->to_size, m->keyring, m->keyring_size, err)
                   : fail(err, SESSILE_UNSUPPORTED,
                          "the keys of the source have changed, and this store cannot "
                          "replace its keyring");
    return to->table->blob_put_new(to->self, KEYRING_BLOB, m->keyring, m->keyring_size,
                                   err);
}

/* Opens `to` with its own keyring, under which entries will be sealed again. */
static sessile_status open_to(migration_core *m, const sides *s, sessile_error *err)
{
    sessile_key_source source = source_of(s->to);
    sessile_error why = {0};
    int sealed, was;
    sessile_status status;

    if (!m->from->keys)
        return fail(err, SESSILE_SEALED,
                    "its sessions must be sealed again, and its key is missing: %s",
                    m->closed.message);
    was = keyring_sealed(m->from->keys);
    if (m->to->keys) {
        sealed = keyring_sealed(m->to->keys);
    } else if (!s->to_keyring) { /* created only after all checks */
        sealed = seals(m->to) && source != SESSILE_KEY_PLAIN;
    } else {
        status = open_keys(m->to, s->to->options, 1, &why);
        if (status)
            return fail(err, status, "the target has a keyring of its own: %s",
                        why.message);
        sealed = keyring_sealed(m->to->keys);
    }
    if (sealed != was && !m->options.change)
        return fail(
            err, SESSILE_INVALID,
            was ? "the sessions are sealed, and would be plain there: confirm that, or "
                  "give the key of the target"
                : "the sessions are plain, and would be sealed there: confirm that");
    if (m->to->keys)
        return SESSILE_OK;
    return open_keys(m->to, s->to->options, 0, err);
}

static sessile_status decide(migration_core *m, sides *s, sessile_error *err)
{
    sessile_status status =
        migrate_blob(&m->to->backend, KEYRING_BLOB, &s->to_keyring, &s->to_size, err);

    if (!status)
        status = has_logs(&m->to->backend, &s->to_logs, err);
    if (status)
        return status;
    if (s->to_logs && !m->options.into && (m->options.fresh || !same_keyring(m, s)) &&
        !m->part)
        return fail(err, SESSILE_EXISTS, "there are sessions in the target");
    m->state.as_it_stands = can_stand(m, s);
    if (s->to_logs && m->state.as_it_stands)
        status = migrate_check_guarded(m, same_keyring(m, s), err);
    if (status)
        return status;
    if (!m->state.as_it_stands && m->options.mirror)
        return fail(err, SESSILE_CONFLICT,
                    "the target is not a copy of this store, or its keys have changed "
                    "since: make a new copy");
    if (!m->state.as_it_stands) {
        status = m->parts != SESSILE_MIGRATE_LOGS + SESSILE_MIGRATE_KEYRING +
                                 SESSILE_MIGRATE_USERS
                     ? fail(err, SESSILE_INVALID,
                            "a store that is sealed again is copied as a whole")
                     : open_to(m, s, err);
        return status || !s->to_logs ? status : migrate_check_guarded(m, 0, err);
    }
    m->state.unopened = !m->from->keys;
    return put_keyring(m, s, err);
}

/* url: used instead of that of the place, unless NULL. */
static sessile_status open_place(store_core **out, int *lent, const sessile_place *p,
                                 store_core *open, const char *url, sessile_error *err)
{
    if (!open)
        return store_handle_open_bare(out, url ? url : p->url, p->backend, p->self,
                                      p->options, err);
    if (open->over_records)
        return fail(
            err, SESSILE_UNSUPPORTED,
            "this store is opened over records, which the host keeps: copy those");
    *out = open;
    *lent = 1;
    return SESSILE_OK;
}

sessile_status migrate_open(migration_core *m, const sessile_place *from,
                            store_core *from_open, const sessile_place *to,
                            store_core *to_open, sessile_error *err)
{
    const char *to_url = to->url || !to_open ? to->url : to_open->url;
    sides s = {.from = from, .to = to};
    int taken = 0; /* the backend of `to` */
    char *url = NULL;
    sessile_status status =
        open_place(&m->from, &m->from_lent, from, from_open, NULL, err);

    if (!status &&
        ((m->from->url && to_url && same_place(m->from->os, m->from->url, to_url)) ||
         (from_open && from_open == to_open)))
        status = fail(err, SESSILE_INVALID, "both names lead to the same store");
    if (!status)
        status = open_from(m, &s, err);
    if (!status && m->options.whole)
        status = part_url(m, to->url ? to->url : "ram:", &url, err);
    if (!status) {
        taken = 1;
        status = open_place(&m->to, &m->to_lent, to, to_open, url, err);
    }
    if (!taken && !to->url && !to_open && to->backend->free)
        to->backend->free(to->self);
    if (!status)
        status = decide(m, &s, err);
    if (url)
        mem_free(&m->from->alloc, url, strlen(url) + 1);
    host_free(s.to_keyring);
    return status;
}

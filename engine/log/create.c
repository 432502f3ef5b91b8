/*
 * create.c: gives a new log its name, with a header only or as a finished copy.
 *
 * If the keyring has a newer epoch by then, the reseal of all logs may have missed this
 * one, and the old epoch may be removed soon: so the new log is resealed here. Must never
 * change a log to which somebody else has written.
 */
#include <string.h>

#include "log/copy.h"
#include "log/internal.h"

/* A log that was made just now. */
typedef struct made_log {
    const char *folder, *name, *user;
    const char *header; /* the entry's text */
    size_t header_size;
    const char *line; /* its line, newline included */
    size_t line_size;
    uint64_t epoch; /* that it was sealed in */
    int timeout_ms;
    const allocator *alloc;
} made_log;

/* 1 when the keyring has a newer epoch than the new log. */
static int is_outdated(const store *st, const keyring *k, uint64_t epoch)
{
    return (st->table->capabilities & SESSILE_BACKEND_REPLACES) != 0 &&
           !keyring_refresh(k, NULL) && keyring_epoch(k) != epoch;
}

static sessile_status fail_outdated(const char *name, sessile_error *err)
{
    return fail(err, SESSILE_BUSY,
                "%s was made while the keys were rotated, and others used it before it "
                "got the new key: it is there, under the old one; reseal the store",
                name);
}

/* Of a log that is its header alone: the same header under the newest key. */
static sessile_status replace_made(store *st, const keyring *k, const made_log *made,
                                   sessile_backend_log *old, sessile_error *err)
{
    log_copy copy;
    sessile_status status =
        log_copy_begin(&copy, st, k, made->folder, made->name, made->user, made->header,
                       made->header_size, made->alloc, err);
    /* Its own maker seals it: there is nothing that forgetting could have ended. */
    copy.keys = NULL;
    if (!status)
        status = log_copy_finish(&copy, old, 0, NULL, 0, err);
    log_copy_drop(&copy);
    return status;
}

/* 1 when the log holds the line that was made and no more. -1: unknown. */
static int is_as_made(const store *st, sessile_backend_log *log, const made_log *made)
{
    sessile_error err = {0};
    uint64_t bytes;
    int64_t mtime_ms;
    size_t got = 0;
    buf text;
    int same = -1;
    if (st->table->size(log, &bytes, &mtime_ms, &err))
        return -1;
    if (bytes != made->line_size)
        return 0;
    buf_init(&text, made->alloc);
    if (buf_reserve(&text, made->line_size) == 0 &&
        !st->table->read(log, 0, 0, text.data, made->line_size, &got, &err))
        same = got == made->line_size && memcmp(text.data, made->line, got) == 0;
    buf_deinit(&text);
    return same;
}

/* Gives a log that was made just now the newest key, if it has not got it. */
static sessile_status renew_key(store *st, const keyring *k, const made_log *made,
                                sessile_error *err)
{
    sessile_backend_log *log;
    int done, replaced = 0, locks = log_has_locks(st->table);
    if (!is_outdated(st, k, made->epoch))
        return SESSILE_OK;
    sessile_status status =
        st->table->open(st->self, made->folder, made->name, &log, err);
    if (status)
        return status;
    if (locks)
        status = st->table->lock(log, SESSILE_LOCK_EXCLUSIVE, made->timeout_ms, &replaced,
                                 err);
    else if (st->table->set_timeout)
        st->table->set_timeout(log, made->timeout_ms);
    int same = !status && !replaced ? is_as_made(st, log, made) : 0;
    if (same == 1)
        status = replace_made(st, k, made, log, err);
    if (!locks && status == SESSILE_CONFLICT) { /* somebody writes to it just now */
        error_clear(err);
        status = SESSILE_OK;
        same = 0;
    }
    st->table->close(log);                   /* its lock goes with it */
    if (same != 1 && !replaced && !status) { /* somebody has written to it already */
        status = log_reseal(st, k, made->folder, made->name, made->timeout_ms, NULL,
                            &done, made->alloc, err);
    }
    return status == SESSILE_BUSY ? fail_outdated(made->name, err) : status;
}

sessile_status log_create_for(store *st, const keyring *k, const char *folder,
                              const char *name, const char *user, const char *header,
                              size_t size, int timeout_ms, uint64_t *bytes,
                              const allocator *a, sessile_error *err)
{
    unsigned char tag[VAULT_TAG];
    logkey key;
    buf out, scratch;
    memset(&key, 0, sizeof key);
    buf_init(&out, a);
    buf_init(&scratch, a);
    sessile_status status;
    if (!line_is_entry(header, size, 0)) {
        status = fail(err, SESSILE_INVALID, "a log begins with an entry of id 00000000");
        goto out;
    }
    status = line_put_header(&key, k, user, &out, header, size, tag, &scratch, err);
    if (!status && out.size > LINE_LONGEST)
        status = fail(err, SESSILE_LIMIT, "the header is too long [message]");
    if (!status)
        status = st->table->create(st->self, folder, name, out.data, out.size, err);
    if (!status && keyring_sealed(k)) {
        made_log made = {folder,   name,     user,      header,     size,
                         out.data, out.size, key.epoch, timeout_ms, a};
        status = renew_key(st, k, &made, err);
    }
    if (bytes)
        *bytes = out.size;
out:
    logkey_deinit(&key);
    buf_deinit(&out);
    buf_deinit(&scratch);
    return status;
}

sessile_status log_create(store *st, const keyring *k, const char *folder,
                          const char *name, const char *header, size_t size,
                          int timeout_ms, const allocator *a, sessile_error *err)
{
    return log_create_for(st, k, folder, name, NULL, header, size, timeout_ms, NULL, a,
                          err);
}

sessile_status log_copy_publish(log_copy *copy, const log_t *source, const keyring *k,
                                int timeout_ms, sessile_error *err)
{
    int done;
    sessile_status status = log_copy_take_name(copy, source, k, err);
    if (!status && keyring_sealed(copy->keys) &&
        is_outdated(&copy->st, copy->keys, copy->key.epoch)) {
        status = log_reseal(&copy->st, copy->keys, copy->folder, copy->name, timeout_ms,
                            NULL, &done, copy->alloc, err);
        if (status == SESSILE_BUSY)
            status = fail_outdated(copy->name, err);
    }
    return status;
}

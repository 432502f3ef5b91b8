/*
 * copy.c: writes a whole log, to replace one or under a new name.
 *
 * Owns the lines of a draft: a new data key, a chain of tags from the header on, and
 * writes as the caller ends them. Must never check the entries that it is given, nor
 * touch the log that is copied or replaced: that is the caller's part.
 *
 * A draft is synced before it gets its name, so all its lines are durable before anybody
 * can see them. Each write names all entries before it as durable. So damage in a copy is
 * never mistaken for a torn end.
 */
#include "log/copy.h"

#include <string.h>

#include "log/internal.h"

/* Lines are handed to the backend in pieces of this size. */
#define PIECE ((size_t)256 << 10)
/* The clear part of a sealed header is shorter. */
#define HEADER_LOOK 1024

void log_copy_drop(log_copy *copy)
{
    if (!copy->alloc)
        return;
    if (copy->draft)
        copy->st.table->draft_drop(copy->draft);
    logkey_deinit(&copy->key);
    buf_deinit(&copy->lines);
    buf_deinit(&copy->scratch);
    memset(copy, 0, sizeof *copy);
}

sessile_status log_copy_flush(log_copy *copy, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    if (!copy->draft)
        return copy->lines.failed ? fail_nomem(err) : SESSILE_OK; /* gathered */
    if (copy->lines.size > 0) {
        status = copy->st.table->draft_write(copy->draft, copy->lines.data,
                                             copy->lines.size, err);
        buf_clear(&copy->lines);
    }
    return status;
}

/* draft: whether the store is to be given the lines in pieces. */
static sessile_status begin_copy(log_copy *copy, store *st, const keyring *k,
                                 const char *folder, const char *name, const char *user,
                                 const char *header, size_t size, int draft,
                                 const allocator *a, sessile_error *err)
{
    if (!line_is_entry(header, size, 0))
        return fail(err, SESSILE_INVALID, "a log begins with an entry of id 00000000");
    copy->st = *st;
    copy->alloc = a;
    copy->keys = k;
    buf_init(&copy->lines, a);
    buf_init(&copy->scratch, a);
    sessile_status status = line_put_header(&copy->key, k, user, &copy->lines, header,
                                            size, copy->tag, &copy->scratch, err);
    if (!status && copy->lines.size > LINE_LONGEST)
        status = fail(err, SESSILE_LIMIT, "the header is too long [message]");
    if (!status && draft)
        status = st->table->draft_new(st->self, folder, name, &copy->draft, err);
    copy->folder = folder;
    copy->name = name;
    copy->count = copy->committed = 1;
    copy->bytes = copy->lines.size;
    return status;
}

sessile_status log_copy_begin(log_copy *copy, store *st, const keyring *k,
                              const char *folder, const char *name, const char *user,
                              const char *header, size_t size, const allocator *a,
                              sessile_error *err)
{
    memset(copy, 0, sizeof *copy);
    if ((st->table->capabilities & SESSILE_BACKEND_REPLACES) == 0)
        return fail(err, SESSILE_UNSUPPORTED, "this store cannot replace a log");
    return begin_copy(copy, st, k, folder, name, user, header, size, 1, a, err);
}

sessile_status log_copy_begin_new(log_copy *copy, store *st, const keyring *k,
                                  const char *folder, const char *name, const char *user,
                                  const char *header, size_t size, const allocator *a,
                                  sessile_error *err)
{
    memset(copy, 0, sizeof *copy);
    int draft = (st->table->capabilities & SESSILE_BACKEND_REPLACES) != 0 &&
                st->table->draft_publish;
    return begin_copy(copy, st, k, folder, name, user, header, size, draft, a, err);
}

sessile_status log_copy_entry(log_copy *copy, const char *text, size_t size,
                              int ends_write, sessile_error *err)
{
    unsigned char previous[VAULT_TAG];
    line_clear clear = {0, 0};
    size_t start = copy->lines.size;
    if (copy->count >= SESSILE_NO_ID || !line_is_entry(text, size, copy->count)) {
        return fail(err, SESSILE_INVALID, "an entry to copy has not the id %08llx",
                    (unsigned long long)copy->count);
    }
    if (ends_write)
        clear = (line_clear){copy->count + 1 - copy->committed, copy->committed};
    memcpy(previous, copy->tag, VAULT_TAG);
    sessile_status status = line_put(&copy->key, &copy->lines, text, size, clear,
                                     previous, copy->tag, &copy->scratch, err);
    if (status)
        return status;
    if (copy->lines.size - start > LINE_LONGEST)
        return fail(err, SESSILE_LIMIT, "an entry to copy is too long [message]");
    copy->bytes += copy->lines.size - start;
    copy->count++;
    if (ends_write)
        copy->committed = copy->count;
    return copy->lines.size < PIECE ? SESSILE_OK : log_copy_flush(copy, err);
}

/* Both ways to finish. */
static sessile_status end_copy(log_copy *copy, sessile_error *err)
{
    if (copy->committed != copy->count)
        return fail(err, SESSILE_INVALID, "the last write of a copy is not ended");
    return log_copy_flush(copy, err);
}

/*
 * Begun before a user was forgotten and finished after it, a copy would bring back what
 * was to be gone for ever: its key is wrapped by a new secret of that user. So the old
 * log has to open still, now that the new secret is there. Who forgets removes secrets
 * until there are none: it has seen the new one, or we see that the old one is gone.
 */
static sessile_status check_still_opens(const store *st, const keyring *k,
                                        sessile_backend_log *old, sessile_error *err)
{
    logkey key;
    char text[HEADER_LOOK];
    size_t got = 0;
    sessile_status status = st->table->read(old, 0, 0, text, sizeof text, &got, err);
    const char *end = !status ? memmem(text, got, ",\"commit\":", 10) : NULL;
    if (!status) {
        status = !end ? fail(err, SESSILE_DAMAGED, "the first line of a log is damaged")
                      : logkey_open(&key, k, text, (size_t)(end - text), err);
    }
    if (!status)
        logkey_deinit(&key);
    return status;
}

sessile_status log_copy_finish(log_copy *copy, sessile_backend_log *old, int keep,
                               char *kept, size_t kept_size, sessile_error *err)
{
    sessile_status status = end_copy(copy, err);
    if (!status && copy->key.user[0] != '\0' && copy->keys)
        status = check_still_opens(&copy->st, copy->keys, old, err);
    if (!status) {
        status =
            copy->st.table->draft_replace(copy->draft, old, keep, kept, kept_size, err);
        copy->draft = NULL; /* freed also when it fails */
    }
    return status;
}

sessile_status log_copy_take_name(log_copy *copy, const log_t *source, const keyring *k,
                                  sessile_error *err)
{
    sessile_status status = end_copy(copy, err);
    if (!status && source->key.user[0] != '\0')
        status = check_still_opens(&source->st, k, source->handle, err);
    if (status)
        return status;
    if (copy->draft) {
        status = copy->st.table->draft_publish(copy->draft, err);
        copy->draft = NULL; /* freed also when it fails */
        return status;
    }
    return copy->st.table->create(copy->st.self, copy->folder, copy->name,
                                  copy->lines.data, copy->lines.size, err);
}

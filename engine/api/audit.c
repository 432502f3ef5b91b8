/* audit.c: the public functions that read and verify the audit. */
#include "api/api.h"

#include "admin/verification.h"
#include "audit/read.h"
#include "audit/retain.h"
#include "session/store_handle.h"

/* The text as a block of the host's. */
static sessile_status give(const buf *text, sessile_status status, char **out,
                           size_t *size, sessile_error *err)
{
    if (status)
        return status;
    *out = text->failed ? NULL : host_dup(text->alloc, text->data, text->size);
    *size = *out ? text->size : 0;
    return *out ? SESSILE_OK : fail_nomem(err);
}

void sessile_audit_filter_init(sessile_audit_filter *filter)
{
    if (filter)
        memset(filter, 0, sizeof *filter);
}

sessile_status sessile_audit_open(sessile_audit_reader **out, sessile_store *store,
                                  const sessile_audit_filter *filter, sessile_error *err)
{
    API_MAKE(out, store);
    API_OPTIONS(sessile_audit_filter, filter);
    API_TEXT(filter->user);
    API_TEXT(filter->about);
    API_TEXT(filter->operation);
    API_TEXT(filter->outcome);
    API_TEXT(filter->session);
    API_TEXT(filter->agent);
    API_TEXT(filter->cursor);
    GUARD_ENTER(audit_open, store);
    GUARD_MAKE(out, &core->alloc);
    GUARD_MADE(out, verification_missing(
                        core, audit_read_open(GUARD_INTO(out), core, filter, err), err));
}

sessile_status sessile_audit_next(sessile_audit_reader *reader, sessile_audit_event *out,
                                  sessile_error *err)
{
    error_clear(err);
    API_ZERO(out);
    API_NEED(reader);
    GUARD_ENTER(audit_next, reader);
    return GUARD_LEAVE(audit_read_next(core, out, err));
}

sessile_status sessile_audit_wait(sessile_audit_reader *reader, int timeout_ms,
                                  int *changed, sessile_error *err)
{
    error_clear(err);
    API_OPTIONAL(int, changed, 0);
    API_NEED(reader);
    GUARD_ENTER(audit_wait, reader);
    return GUARD_LEAVE(
        audit_read_wait(core, timeout_ms < 0 ? 0 : timeout_ms, changed, err));
}

sessile_status sessile_audit_cursor(sessile_audit_reader *reader, char **out,
                                    sessile_error *err)
{
    API_MAKE(out, reader);
    GUARD_ENTER(audit_cursor, reader);
    buf text;
    size_t size;
    buf_init(&text, &reader->alloc);
    sessile_status status =
        give(&text, audit_read_cursor(core, &text, err), out, &size, err);
    buf_deinit(&text);
    return GUARD_LEAVE(status);
}

void sessile_audit_close(sessile_audit_reader *reader)
{
    if (!reader)
        return;
    GUARD_CLOSE(reader);
    audit_read_close(core);
}

void sessile_audit_verify_options_init(sessile_audit_verify_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

sessile_status sessile_audit_verify_begin(sessile_audit_verification **out,
                                          sessile_store *store, const char *root,
                                          const sessile_audit_verify_options *options,
                                          sessile_error *err)
{
    API_MAKE(out, store);
    API_NEED(root);
    API_OPTIONS(sessile_audit_verify_options, options);
    API_NEED_IF(options->anchor_count, options->anchors);
    GUARD_ENTER(audit_verify_begin, store);
    sessile_store *guarded = options->deep ? options->guarded : NULL;
    if (guarded)
        GUARD_ALSO_MAY(audit_verify_begin, guarded, CHECK_STORE);
    GUARD_MAKE(out, &core->alloc);
    GUARD_MADE(out, verification_begin(GUARD_INTO(out), core, root, options,
                                       guarded ? GUARD_ALSO(guarded) : core, err));
}

sessile_status sessile_audit_verify_step(sessile_audit_verification *verification,
                                         sessile_audit_report *report, sessile_error *err)
{
    error_clear(err);
    API_ZERO(report);
    API_NEED(verification);
    GUARD_ENTER(audit_verify_step, verification);
    return GUARD_LEAVE(verification_step(core, report, err));
}

void sessile_audit_verify_free(sessile_audit_verification *verification)
{
    if (!verification)
        return;
    GUARD_CLOSE(verification);
    verification_free(core);
}

sessile_status sessile_audit_root(sessile_store *store, char out[SESSILE_AUDIT_KEY],
                                  sessile_error *err)
{
    error_clear(err);
    API_NEED(out);
    out[0] = 0;
    API_NEED(store);
    GUARD_ENTER(audit_root, store);
    return GUARD_LEAVE(verification_root(core, out, err));
}

sessile_status sessile_audit_head(sessile_store *store, const char *root, int is_copy,
                                  sessile_audit_anchor **out, size_t *count,
                                  sessile_error *err)
{
    API_LIST(out, count, store);
    API_NEED(root);
    GUARD_ENTER(audit_head, store);
    sessile_audit_anchor heads[LANE_MOST];
    sessile_status status =
        audit_heads(core, root, is_copy, heads, LANE_MOST, count, err);
    if (!status) {
        *out = (sessile_audit_anchor *)(void *)host_dup(&core->alloc, heads,
                                                        *count * sizeof *heads);
        status = *out ? SESSILE_OK : fail_nomem(err);
    }
    return GUARD_LEAVE(status);
}

sessile_status sessile_audit_seal(sessile_store *store, sessile_error *err)
{
    API_USE(store);
    GUARD_ENTER(audit_seal, store);
    return GUARD_LEAVE(audit_seal_lanes(core, err));
}

sessile_status sessile_audit_prove(sessile_store *store, const char *id, char **out,
                                   size_t *size, sessile_error *err)
{
    API_OPTIONAL(size_t, size, 0);
    API_MAKE(out, store);
    API_NEED(id);
    GUARD_ENTER(audit_prove, store);
    buf text;
    buf_init(&text, &core->alloc);
    sessile_status status =
        give(&text, audit_prove(core, id, &text, err), out, size, err);
    buf_deinit(&text);
    return GUARD_LEAVE(status);
}

sessile_status sessile_audit_check_proof(sessile_slice proof, char key[SESSILE_AUDIT_KEY],
                                         char **event, size_t *event_size,
                                         sessile_error *err)
{
    error_clear(err);
    API_OPTIONAL(char *, event, NULL);
    API_OPTIONAL(size_t, event_size, 0);
    API_NEED(key);
    key[0] = 0;
    API_TEXT(proof);
    buf text;
    buf_init(&text, &allocator_default);
    sessile_status status =
        audit_check_proof(proof.data, proof.size, key, &text, &allocator_default, err);
    status = give(&text, status, event, event_size, err);
    if (event == &event_unwanted)
        sessile_free(event_unwanted);
    buf_deinit(&text);
    return status;
}

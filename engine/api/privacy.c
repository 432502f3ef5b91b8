/* privacy.c: the public functions of consents, holds, retention and erasure. */
#include "api/api.h"

#include "admin/consents.h"
#include "admin/erase_user.h"
#include "admin/retention.h"
#include "audit/verify.h"
#include "guard/guard.h"
#include "guard/hold.h"
#include "sessile_privacy.h"

/* ------------------------------------------------------------------ consent */

void sessile_consent_options_init(sessile_consent_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

sessile_status sessile_consent(sessile_store *store,
                               const sessile_consent_options *options, size_t *erased,
                               sessile_error *err)
{
    API_OPTIONAL(size_t, erased, 0);
    API_USE(store);
    API_NEED(options);
    API_TEXT(options->agent);
    API_TEXT(options->user);
    API_TEXT(options->by);
    API_TEXT(options->text);
    API_TEXT(options->scope);
    GUARD_ENTER(consent, store);
    sessile_consent_options own = *options;
    sessile_memory_options which = {.agent = own.agent, .user = own.user};
    GUARD_REFUSE_IF(GUARD_WHO, guard_own_memory(&call_, core, &which, err));
    GUARD_REFUSE_IF(GUARD_WHO, guard_may_consent(GUARD_WHO, own.user, err));
    GUARD_INTENT;
    return GUARD_LEAVE(consent_set(core, &own, erased, err));
}

sessile_status sessile_consents(sessile_store *store, sessile_slice user,
                                sessile_consent_row **out, size_t *count,
                                sessile_error *err)
{
    API_LIST(out, count, store);
    API_TEXT(user);
    GUARD_ENTER(consents, store);
    GUARD_REFUSE_IF(GUARD_WHO, guard_own_user(GUARD_WHO, &user, err));
    return GUARD_LEAVE(consent_list(core, user, out, count, err));
}

/* ------------------------------------------------------------------ holds */

void sessile_hold_options_init(sessile_hold_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

sessile_status sessile_hold(sessile_store *store, const sessile_hold_options *options,
                            sessile_id *id, sessile_error *err)
{
    API_OPTIONAL(sessile_id, id, 0);
    API_USE(store);
    API_NEED(options);
    API_TEXT(options->agent);
    API_TEXT(options->user);
    API_TEXT(options->session);
    API_TEXT(options->reason);
    API_TEXT(options->by);
    GUARD_ENTER(hold, store);
    GUARD_SAY(
        (call_.names = (guard_names){options->agent, options->user, options->session}));
    GUARD_INTENT;
    return GUARD_LEAVE(hold_add(core, options, id, err));
}

sessile_status sessile_holds(sessile_store *store, sessile_hold_row **out, size_t *count,
                             sessile_error *err)
{
    API_LIST(out, count, store);
    GUARD_ENTER(holds, store);
    return GUARD_LEAVE(hold_list(core, out, count, err));
}

sessile_status sessile_hold_release(sessile_store *store, sessile_id id, sessile_slice by,
                                    sessile_error *err)
{
    API_USE(store);
    API_TEXT(by);
    GUARD_ENTER(hold_release, store);
    GUARD_NUMBER("hold", id);
    GUARD_INTENT;
    return GUARD_LEAVE(hold_release(core, id, by, err));
}

/* ------------------------------------------------------------------ retention */

void sessile_retention_options_init(sessile_retention_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

sessile_status sessile_purge_retention(sessile_store *store,
                                       const sessile_retention_options *options,
                                       sessile_retained *out, sessile_error *err)
{
    API_OPTIONAL(sessile_retained, out, (sessile_retained){.sessions = 0});
    API_USE(store);
    API_NEED(options);
    API_NEED_IF(options->count, options->rules);
    for (size_t i = 0; i < options->count; i++) {
        API_TEXT(options->rules[i].agent);
        API_TEXT(options->rules[i].user);
    }
    GUARD_ENTER(purge_retention, store);
    GUARD_INTENT;
    return GUARD_LEAVE(purge_retention(core, guard_audit(GUARD_WHO), options, out, err));
}

/* ------------------------------------------------------------------ erasure */

void sessile_erase_options_init(sessile_erase_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

static void say_dry_run(guard_call *call, const sessile_erase_options *options)
{
    if (options->dry_run)
        guard_number(call, "dry_run", 1);
}

/* What the event of an erasure has of its receipt: the counts, and a hash of all of it.
 */
static sessile_status say_receipt(guard_call *call, const sessile_receipt *r,
                                  sessile_error *err)
{
    receipt_count counts[RECEIPT_COUNTS];
    char hash[AUDIT_RECEIPT_HASH];

    receipt_counts(r, counts);
    for (size_t i = 0; i < RECEIPT_COUNTS; i++)
        guard_number(call, counts[i].name, counts[i].value);
    if (audit_receipt_hash(json_of(r->json.data, r->json.size), hash,
                           call->details.alloc))
        return fail_nomem(err);
    guard_text(call, "receipt", sessile_text(hash));
    return SESSILE_OK;
}

/* What was done is done: a receipt that cannot be proven yet is without its proof. */
static void prove(store_core *st, const guard_call *call, sessile_receipt **receipt)
{
    sessile_error why;
    buf proof;

    if (!call->who || !call->event[0])
        return;
    buf_init(&proof, &st->alloc);
    if (guard_prove(call, &proof, &why))
        buf_clear(&proof);
    (void)receipt_prove(st, receipt, call->event, &proof, &why);
    buf_deinit(&proof);
}

sessile_status sessile_user_erase(sessile_store *store, sessile_slice user,
                                  const sessile_erase_options *options,
                                  sessile_receipt **out, sessile_error *err)
{
    sessile_receipt *receipt = NULL;

    error_clear(err);
    if (out)
        *out = NULL;
    API_NEED(store);
    API_TEXT(user);
    API_OPTIONS(sessile_erase_options, options);
    GUARD_ENTER(user_erase, store);
    GUARD_REFUSE_IF(GUARD_WHO, guard_ends_user(GUARD_WHO, user, err));
    GUARD_SAY(call_.names.user = user);
    GUARD_SAY(say_dry_run(&call_, options));
    GUARD_INTENT;
    sessile_status status = user_erase(core, user, options, &receipt, err);
    if (!status)
        GUARD_SAY(status = say_receipt(&call_, receipt, err));
    guard_look_again(&call_);
    status = GUARD_LEAVE(status);
    if (!status && !options->dry_run)
        prove(core, &call_, &receipt);
    if (!status && out)
        *out = receipt;
    else
        sessile_free(receipt);
    return status;
}

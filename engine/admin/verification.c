/* verification.c: see verification.h. */
#include "admin/verification.h"

#include <string.h>

#include "admin/compare.h"
#include "audit/parts.h"
#include "audit/retain.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "guard/access.h"

struct audit_verification_core {
    store_core *store;
    audit_verifier *seals; /* NULL: they are verified */
    compare *deep;         /* NULL: not asked for */
    sessile_audit_report report;
};

sessile_status verification_check_there(store_core *st, sessile_error *err)
{
    guarded_audit said;
    lane_parts parts;
    control *log;
    int on, begun_anew = 0;
    sessile_status status = st->over_records ? SESSILE_OK : control_open(&log, st, err);

    if (status || st->over_records)
        return status;
    status = access_guarded(log, &on, NULL, &said, err);
    control_close(log);
    if (status || !said.root[0])
        return status;
    status = lane_parts_find(&parts, st, err);
    if (!status)
        status = lane_parts_skip_half(&parts, st, err);
    for (uint32_t i = 0; !status && i < LANE_MOST; i++) {
        char root[SEAL_HEX];
        lane_head head;
        if (!parts.there[i])
            continue;
        if (lane_part_peek(&head, st, i, parts.first[i], NULL))
            return SESSILE_OK; /* verifying says what is wrong with it */
        hex_encode(root, head.root, SIGN_PUBLIC);
        if (strcmp(root, said.root) != 0)
            continue;
        /* with a seed that had sealed nothing, the key is the same */
        begun_anew |=
            head.root_lane == i && !head.part && head.created_ms > said.since_ms;
        if (!begun_anew)
            return SESSILE_OK;
    }
    return status
               ? status
               : fail(err, SESSILE_DAMAGED,
                      "the audit of this store is gone: the store was guarded with the "
                      "audit of the key %.16s…, and no log of it is left%s",
                      said.root, parts.lanes ? "; another one was begun since" : "");
}

sessile_status verification_missing(store_core *st, sessile_status status,
                                    sessile_error *err)
{
    sessile_error why = {0};

    if (status == SESSILE_NOTFOUND &&
        verification_check_there(st, &why) == SESSILE_DAMAGED)
        return fail(err, SESSILE_DAMAGED, "%s", why.message);
    return status;
}

sessile_status verification_root(store_core *st, char out[SEAL_HEX], sessile_error *err)
{
    sessile_status status = verification_check_there(st, err);

    return status ? status : audit_root_find(st, out, err);
}

sessile_status verification_begin(audit_verification_core **out, store_core *st,
                                  const char *root,
                                  const sessile_audit_verify_options *options,
                                  store_core *guarded, sessile_error *err)
{
    audit_verification_core *v = mem_zalloc(&st->alloc, sizeof *v);
    sessile_status status;

    *out = NULL;
    if (!v)
        return fail_nomem(err);
    v->store = st;
    status = verification_missing(
        st, audit_verify_begin(&v->seals, st, root, options, err), err);
    if (!status && options->deep)
        status = compare_begin(&v->deep, guarded, st, err);
    if (status)
        verification_free(v);
    else
        *out = v;
    return status;
}

sessile_status verification_step(audit_verification_core *v, sessile_audit_report *report,
                                 sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (v->seals) {
        status = audit_verify_step(v->seals, &v->report, err);
        if (!status) {
            audit_verify_free(v->seals);
            v->seals = NULL;
            status = v->deep ? SESSILE_NEEDS : SESSILE_OK;
        }
    } else if (v->deep) {
        status = compare_step(v->deep, &v->report, err);
    }
    *report = v->report;
    return status;
}

void verification_free(audit_verification_core *v)
{
    allocator a;

    if (!v)
        return;
    a = v->store->alloc;
    audit_verify_free(v->seals);
    compare_free(v->deep);
    mem_free(&a, v, sizeof *v);
}

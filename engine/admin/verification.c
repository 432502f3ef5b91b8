/* verification.c: see verification.h. */
#include "admin/verification.h"

#include "admin/compare.h"
#include "base/alloc.h"
#include "base/error.h"

struct audit_verification_core {
    store_core *store;
    audit_verifier *seals; /* NULL: they are verified */
    compare *deep;         /* NULL: not asked for */
    sessile_audit_report report;
};

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
    status = audit_verify_begin(&v->seals, st, root, options, err);
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

/*
 * consent.c: whether a user agrees that this memory is kept.
 *
 * Each consent, and each withdrawal, is an entry of the log; the newest one counts. One
 * that is given has the words that the user agreed to, so that it can be shown what the
 * consent is to. A withdrawal needs none: nothing may stand in its way.
 */
#include "memory/memory.h"

sessile_status memory_check_consent(const memory_core *m, sessile_error *err)
{
    if (m->user_size && !m->fold->consented)
        return fail_rule(
            err, SESSILE_DENIED, "consent",
            "the user has not consented%s: nothing is written until a consent is",
            m->fold->consent ? ", or does no longer" : "");
    return SESSILE_OK;
}

int memory_is_hidden(const memory_core *m)
{
    return m->user_size && !m->fold->consented && atomic_load(&m->store->consent);
}

typedef struct consenting {
    buf data;
    int once; /* not where it is given already */
} consenting;

static sessile_status build_consent(void *arg, memory_core *m, batch *b,
                                    sessile_error *err)
{
    const consenting *c = arg;
    (void)err;
    if (!c->once || !m->fold->consented)
        memory_add(m, b, ENTRY_CONSENT, SOURCE_HOST, (sessile_slice){NULL, 0}, &c->data);
    return SESSILE_OK;
}

/* given: 1 or 0. once: writes nothing where the newest entry about consent gives it. */
static sessile_status consent(memory_core *m, int given, int once, sessile_slice by,
                              sessile_slice text, sessile_slice scope, sessile_error *err)
{
    sessile_status status =
        m->user_size
            ? SESSILE_OK
            : fail(err, SESSILE_INVALID, "this memory is of no user: nobody can consent");
    consenting c = {.once = once};

    if (!status && given && !text.size)
        status = fail(err, SESSILE_INVALID,
                      "a consent needs the words that the user agreed to: without them "
                      "nobody can show to what");
    if (!status)
        status =
            memory_check_text(by, "name of who consents", m->store->limits.id, "id", err);
    if (!status)
        status = memory_check_text(text, "consent", SESSILE_MEMORY_VALUE_MAX, NULL, err);
    if (!status)
        status = memory_check_text(scope, "scope", SESSILE_MEMORY_VALUE_MAX, NULL, err);
    if (!status)
        status = memory_screen_fixed(m->store, "the consent", text,
                                     SESSILE_SCREEN_BY_HOST, err);
    if (!status)
        status = memory_screen_fixed(m->store, "the scope", scope, SESSILE_SCREEN_BY_HOST,
                                     err);
    if (status)
        return status;
    buf_init(&c.data, &m->store->alloc);
    buf_printf(&c.data, "{\"given\":%s", given ? "true" : "false");
    memory_put_member(&c.data, "by", by);
    memory_put_member(&c.data, "text", text);
    memory_put_member(&c.data, "scope", scope);
    buf_putc(&c.data, '}');
    status = memory_commit(m, build_consent, &c, err);
    buf_wipe(&c.data);
    return status;
}

sessile_status memory_consent(memory_core *m, int given, sessile_slice by,
                              sessile_slice text, sessile_slice scope, sessile_error *err)
{
    return consent(m, given, 0, by, text, scope, err);
}

sessile_status memory_consent_once(memory_core *m, sessile_slice text, sessile_error *err)
{
    static const sessile_slice nothing = {NULL, 0};
    return consent(m, 1, 1, nothing, text, nothing, err);
}

/*
 * access_facts.c: what facts about access have in common: who may write them, how long
 * their texts may be, and how they are written.
 */
#include "guard/access_facts.h"

#include <inttypes.h>

#include "base/names.h"
#include "guard/guard.h"
#include "session/header.h"

enum { LIST_MOST = 64 }; /* names in one fact */

/* ------------------------------------------------------------------ who may */

int access_manages(const principal *p)
{
    return (p->may & PERMISSION(MANAGE_ACCESS)) && p->all && principal_is_whole(p);
}

sessile_status access_check_until(const principal *p, int64_t until_ms, const char *what,
                                  sessile_error *err)
{
    if (until_ms < 0 || (until_ms && until_ms <= guard_now_ms(p->guard)))
        return fail(err, SESSILE_INVALID, "the %s would have ended already", what);
    return SESSILE_OK;
}

sessile_status access_check_role(const principal *p, const char *name, int on_session,
                                 sessile_error *err)
{
    const role *r = name ? roles_find(&p->guard->roles, name) : NULL;

    if (!r)
        return fail(err, SESSILE_INVALID, "there is no role \"%.63s\"", name ? name : "");
    if ((p->may & PERMISSION_HOST) != 0)
        return SESSILE_OK;
    if ((r->may & ~p->may) || (r->all && !on_session && !p->all))
        return fail(err, SESSILE_DENIED,
                    "nobody gives what they do not have: the role %s may more", r->name);
    return SESSILE_OK;
}

sessile_status access_check_text(const principal *p, sessile_slice text, const char *what,
                                 sessile_error *err)
{
    const uint32_t most = p->guard->store->limits.id;

    return text.size <= most ? SESSILE_OK
                             : fail(err, SESSILE_LIMIT,
                                    "the %s has %zu bytes, the limit [id] is %" PRIu32,
                                    what, text.size, most);
}

sessile_status access_check_texts(const principal *p, const sessile_slice *list,
                                  size_t count, const char *what, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (count > LIST_MOST)
        return fail(err, SESSILE_LIMIT, "there are %zu names of %ss: at most %d may be",
                    count, what, LIST_MOST);
    for (size_t i = 0; !status && i < count; i++)
        status = access_check_text(p, list[i], what, err);
    return status;
}

int access_has_ended(const principal *p, int64_t until_ms)
{
    return until_ms && guard_now_ms(p->guard) >= until_ms;
}

/* ------------------------------------------------------------------ writing */

void fact_put_name(buf *out, const char *name, sessile_slice text)
{
    if (!text.size)
        return;
    buf_printf(out, ",\"%s\":", name);
    header_put_name(out, text);
}

void fact_put_names(buf *out, const char *name, const sessile_slice *list, size_t count)
{
    if (!count)
        return;
    buf_printf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_putc(out, ',');
        header_put_name(out, list[i]);
    }
    buf_putc(out, ']');
}

sessile_status fact_put_user(const principal *p, buf *out, const char *name,
                             sessile_slice user, sessile_error *err)
{
    if (!user.size)
        return SESSILE_OK;
    buf_printf(out, ",\"%s\":", name);
    return control_put_user(p->guard->access->control, out, user, err);
}

sessile_status fact_append(const principal *p, control_kind kind, buf *data,
                           sessile_id *id, sessile_error *err)
{
    sessile_status status = fact_put_user(p, data, "by", p->user, err);

    buf_putc(data, '}');
    return status ? status
                  : control_append(p->guard->access->control, kind, data, 1, id, err);
}

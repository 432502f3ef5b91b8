/* guarded.c: whether a store stays guarded: what the last fact about it says. */
#include "guard/access.h"

#include <string.h>

typedef struct guarded {
    int on;
    buf *profile;
} guarded;

static sessile_status fold_guarded(void *arg, const control_fact *f, sessile_error *err)
{
    guarded *g = arg;
    json profile = json_get(f->data, "profile");

    g->on = json_get(f->data, "on").type == JSON_TRUE;
    if (!g->profile)
        return SESSILE_OK;
    buf_clear(g->profile);
    if (profile.type == JSON_STRING)
        (void)json_string(g->profile, profile);
    return g->profile->failed ? fail_nomem(err) : SESSILE_OK;
}

sessile_status access_guarded(control *c, int *on, buf *profile, sessile_error *err)
{
    guarded g = {0, profile};
    sessile_status status = control_each(c, CONTROL_GUARD, fold_guarded, &g, err);

    *on = g.on;
    if (status == SESSILE_DAMAGED || status == SESSILE_SEALED ||
        status == SESSILE_TRUNCATED) {
        error_clear(err);
        *on = 1;
        return SESSILE_OK;
    }
    return status;
}

sessile_status access_set_guarded(control *c, int on, const char *profile,
                                  const allocator *a, sessile_error *err)
{
    sessile_status status;
    int was;
    buf name, data;

    buf_init(&name, a);
    buf_init(&data, a);
    status = control_look_now(c, NULL, err);
    if (!status)
        status = access_guarded(c, &was, &name, err);
    buf_putc(&name, 0);
    if (!status &&
        (was != on || (on && strcmp(name.data ? name.data : "", profile) != 0))) {
        buf_printf(&data, "{\"on\":%s", on ? "true" : "false");
        if (on) {
            buf_puts(&data, ",\"profile\":");
            json_put_cstring(&data, profile);
        }
        buf_putc(&data, '}');
        status = control_append(c, CONTROL_GUARD, &data, 1, NULL, err);
    }
    buf_deinit(&name);
    buf_deinit(&data);
    return status;
}

/* guarded.c: whether a store stays guarded: what the last fact about it says. */
#include "guard/access.h"

#include <string.h>

typedef struct guarded {
    int on;
    buf *profile;
    guarded_audit *audit; /* or NULL */
} guarded;

static void note_audit(guarded_audit *a, const control_fact *f)
{
    const char *text = "";
    size_t size = 0;

    if (!json_plain(json_get(f->data, "root"), &text, &size) || size != SEAL_HEX - 1)
        size = 0;
    if (!a->root[0] || strlen(a->root) != size || memcmp(a->root, text, size) != 0)
        a->since_ms = f->time_ms;
    memcpy(a->root, text, size);
    a->root[size] = 0;
}

static sessile_status fold_guarded(void *arg, const control_fact *f, sessile_error *err)
{
    guarded *g = arg;
    json profile = json_get(f->data, "profile");

    g->on = json_get(f->data, "on").type == JSON_TRUE;
    if (g->audit)
        note_audit(g->audit, f);
    if (!g->profile)
        return SESSILE_OK;
    buf_clear(g->profile);
    if (profile.type == JSON_STRING)
        (void)json_string(g->profile, profile);
    return g->profile->failed ? fail_nomem(err) : SESSILE_OK;
}

sessile_status access_guarded(control *c, int *on, buf *profile, guarded_audit *audit,
                              sessile_error *err)
{
    guarded g = {0, profile, audit};
    sessile_status status;

    if (audit)
        *audit = (guarded_audit){.since_ms = 0};
    status = control_each(c, CONTROL_GUARD, fold_guarded, &g, err);
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
                                  const char *root, const allocator *a,
                                  sessile_error *err)
{
    guarded_audit known;
    sessile_status status;
    int was;
    buf name, data;

    buf_init(&name, a);
    buf_init(&data, a);
    status = control_look_now(c, NULL, err);
    if (!status)
        status = access_guarded(c, &was, &name, &known, err);
    buf_putc(&name, 0);
    if (!status &&
        (was != on || (on && (strcmp(name.data ? name.data : "", profile) != 0 ||
                              strcmp(known.root, root) != 0)))) {
        buf_printf(&data, "{\"on\":%s", on ? "true" : "false");
        if (on) {
            buf_puts(&data, ",\"profile\":");
            json_put_cstring(&data, profile);
            if (root[0])
                buf_printf(&data, ",\"root\":\"%s\"", root);
        }
        buf_putc(&data, '}');
        status = control_append(c, CONTROL_GUARD, &data, 1, NULL, err);
    }
    buf_deinit(&name);
    buf_deinit(&data);
    return status;
}

/*
 * vars.c: the notes (vars) of the policies of one run, by policy name.
 *
 * Owns copies of what the log holds ({"<policy>":{…}}, for all policies that ever ran in
 * the session) and of what this run's hooks changed. Never looks inside a policy's notes.
 */
#include "run/run.h"

#include <string.h>

static run_vars *vars_find(const run_core *run, const char *name, size_t size)
{
    for (size_t i = 0; i < run->notes.count; i++) {
        run_vars *v = &run->notes.at[i];
        if (v->name_size == size && memcmp(v->name, name, size) == 0)
            return v;
    }
    return NULL;
}

static sessile_status vars_put(run_core *run, const char *name, size_t name_size,
                               const char *text, size_t text_size, sessile_error *err)
{
    char *copy = mem_dup(run->alloc, text, text_size);
    if (!copy)
        return fail_nomem(err);
    run_vars *v = vars_find(run, name, name_size);
    if (v) {
        mem_free(run->alloc, v->text, v->text_size + 1);
    } else {
        char *key = mem_dup(run->alloc, name, name_size);
        if (!key || mem_grow(run->alloc, (void **)&run->notes.at, &run->notes.capacity,
                             run->notes.count + 1, sizeof *run->notes.at)) {
            mem_free(run->alloc, key, name_size + 1);
            mem_free(run->alloc, copy, text_size + 1);
            return fail_nomem(err);
        }
        v = &run->notes.at[run->notes.count++];
        v->name = key;
        v->name_size = name_size;
    }
    v->text = copy;
    v->text_size = text_size;
    return SESSILE_OK;
}

sessile_status run_vars_load(run_core *run, const char *text, size_t size,
                             sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    buf name;
    buf_init(&name, run->alloc);
    json_iter it = json_begin(json_of(text, size));
    while (!status && json_next(&it)) {
        buf_clear(&name);
        if (json_string(&name, it.key) || name.failed)
            status = fail_nomem(err);
        else
            status = vars_put(run, name.size ? name.data : "", name.size, it.value.at,
                              it.value.size, err);
    }
    buf_deinit(&name);
    return status;
}

const run_vars *run_vars_get(const run_core *run, const char *name)
{
    return vars_find(run, name, strlen(name));
}

sessile_status run_vars_set(run_core *run, const char *name, sessile_slice text,
                            sessile_error *err)
{
    run->notes.changed = 1;
    return vars_put(run, name, strlen(name), text.data, text.size, err);
}

void run_vars_write(const run_core *run, buf *out)
{
    buf_putc(out, '{');
    for (size_t i = 0; i < run->notes.count; i++) {
        if (i)
            buf_putc(out, ',');
        json_put_string(out, run->notes.at[i].name, run->notes.at[i].name_size);
        buf_putc(out, ':');
        buf_put(out, run->notes.at[i].text, run->notes.at[i].text_size);
    }
    buf_putc(out, '}');
}

void run_vars_deinit(run_core *run)
{
    for (size_t i = 0; i < run->notes.count; i++) {
        mem_free(run->alloc, run->notes.at[i].name, run->notes.at[i].name_size + 1);
        mem_free(run->alloc, run->notes.at[i].text, run->notes.at[i].text_size + 1);
    }
    mem_free(run->alloc, run->notes.at, run->notes.capacity * sizeof *run->notes.at);
    run->notes.at = NULL;
    run->notes.count = run->notes.capacity = 0;
}

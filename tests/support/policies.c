/*
 * policies.c: policies written in a test, loaded from files, run on a list.
 *
 * Owns a folder that is emptied at the end of each test. Must never look for policies
 * anywhere else.
 */
#include "support/policies.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[512];

void policies_start(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/policies-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(folder));
}

void policies_end(void)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

int policies_set_up(void **state)
{
    (void)state;
    policies_start();
    return 0;
}

int policies_tear_down(void **state)
{
    (void)state;
    policies_end();
    return 0;
}

const char *policies_folder(void)
{
    return folder;
}

void policies_write_bytes(const char *name, const char *source, size_t size)
{
    char path[1024];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s.lua", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(source, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

void policies_write(const char *name, const char *source)
{
    policies_write_bytes(name, source, strlen(source));
}

sessile_status policies_load(sessile_policy **out, const char *name, const char *options,
                             const policy_limits *limits, sessile_error *err)
{
    sessile_policy_step step = {name, options, 0};
    return policy_load(out, &step, 1, folder, limits, NULL, &os_posix, &allocator_default,
                       err);
}

sessile_policy *policies_must_load(const char *name, const char *options)
{
    sessile_error err;
    sessile_policy *p;
    if (policies_load(&p, name, options, NULL, &err))
        fail_msg("%s: %s", name, err.message);
    return p;
}

policy_setup policies_setup(void)
{
    policy_setup setup;
    memset(&setup, 0, sizeof setup);
    setup.session_id = sessile_text("s-1");
    setup.agent = sessile_text("main");
    setup.title = sessile_text("A title");
    setup.metadata =
        sessile_text("{\"project\":{\"name\":\"x\"},\"tags\":[\"a\",\"b\"]}");
    setup.turn = 7;
    setup.instructions = sessile_text("keep names");
    setup.now_ms = 1700000000000;
    return setup;
}

static void copy(char *out, size_t size, const char *text, size_t length)
{
    if (length >= size)
        length = size - 1;
    if (length)
        memcpy(out, text, length);
    out[length] = 0;
}

static void finish(ran *r, sessile_state *state)
{
    sessile_slice vars, text;
    sessile_error err;
    int changed, vars_changed;

    if (!r->status && !r->err.code)
        r->status = state_hook_end(state, &changed, &vars_changed, &r->err);
    else
        state_hook_drop(state);
    copy(r->keys, sizeof r->keys, list_keys(state_after(state)),
         strlen(list_keys(state_after(state))));
    vars = sessile_state_vars(state);
    copy(r->vars, sizeof r->vars, vars.data, vars.size);
    if (!state_text(state, (sessile_key){SESSILE_NO_ID, 1}, &text, &err))
        copy(r->text, sizeof r->text, text.data, text.size);
}

void fixture_open(fixture *f, sessile_policy *p, const char *line)
{
    memset(f, 0, sizeof *f);
    f->policy = p;
    list_make(&f->list, line);
    f->state = list_state(&f->list);
    fixture_new_pipeline(f);
}

void fixture_load(fixture *f, const char *name, const char *source, const char *line,
                  const policy_limits *limits)
{
    sessile_policy *p;
    sessile_error err;
    policies_write(name, source);
    if (policies_load(&p, name, NULL, limits, &err))
        fail_msg("%s: %s", name, err.message);
    fixture_open(f, p, line);
}

void fixture_end_pipeline(fixture *f)
{
    policy_pipeline_free(f->pipeline);
    f->pipeline = NULL;
}

void fixture_new_pipeline(fixture *f)
{
    policy_setup setup = policies_setup();
    fixture_end_pipeline(f);
    assert_int_equal(policy_pipeline_new(&f->pipeline, f->policy, &setup, &f->err),
                     SESSILE_OK);
    memset(&f->err, 0, sizeof f->err);
}

sessile_status fixture_call(fixture *f, sessile_hook hook)
{
    return policy_pipeline_call(f->pipeline, 0, hook, f->state, SESSILE_REASON_TURN,
                                &f->result, &f->err);
}

void fixture_close(fixture *f)
{
    policy_pipeline_free(f->pipeline);
    state_free(f->state);
    list_free(&f->list);
    policy_release(f->policy);
}

static ran run(sessile_policy *p, sessile_hook hook, const char *line)
{
    sessile_answer no = {SESSILE_IO, {"no", 2}, 0};
    const char *log;
    fixture f;
    ran r;

    memset(&r, 0, sizeof r);
    fixture_open(&f, p, line);
    r.status = fixture_call(&f, hook);
    while (r.status == SESSILE_NEEDS)
        r.status = policy_pipeline_answer(f.pipeline, &no, &f.result, &f.err);
    r.result = f.result;
    r.err = f.err;
    finish(&r, f.state);
    log = policy_pipeline_log(f.pipeline);
    copy(r.log, sizeof r.log, log, strlen(log));
    fixture_close(&f);
    return r;
}

ran policies_run(const char *name, const char *options, sessile_hook hook,
                 const char *line)
{
    return run(policies_must_load(name, options), hook, line);
}

ran policies_body_within(const char *body, const char *line, const policy_limits *limits)
{
    sessile_policy *p;
    char *source = NULL;
    size_t size;
    FILE *stream = open_memstream(&source, &size);
    ran r;

    fprintf(stream, "return { truncate = function(state, ctx) %s\nend }\n", body);
    fclose(stream);
    policies_write("body", source);
    free(source);
    memset(&r, 0, sizeof r);
    r.status = policies_load(&p, "body", NULL, limits, &r.err);
    if (r.status)
        return r;
    return run(p, SESSILE_HOOK_TRUNCATE, line);
}

ran policies_body(const char *body, const char *line)
{
    return policies_body_within(body, line, NULL);
}

/* ------------------------------------------------------------------ locales */

static char locale_folder[512];

int locale_with_comma(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"};
    const char *base = getenv("TMPDIR");
    char command[1200];
    size_t i;

    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_NUMERIC, names[i]))
            return 1;
    snprintf(locale_folder, sizeof locale_folder, "%s/locale-XXXXXX",
             base ? base : "/tmp");
    assert_non_null(mkdtemp(locale_folder));
    snprintf(command, sizeof command,
             "localedef --no-archive -i de_DE -f UTF-8 '%s/comma' >/dev/null 2>&1",
             locale_folder);
    setenv("LOCPATH", locale_folder, 1);
    if (system(command) == 0 && setlocale(LC_NUMERIC, "comma"))
        return 1;
    locale_as_before();
    return 0;
}

void locale_as_before(void)
{
    char command[600];
    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    if (!locale_folder[0])
        return;
    snprintf(command, sizeof command, "rm -rf '%s'", locale_folder);
    assert_int_equal(system(command), 0);
    locale_folder[0] = 0;
}

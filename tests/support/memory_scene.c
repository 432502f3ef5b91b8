/* memory_scene.c: a session with its memories, and runs whose hooks are the host's. */
#include "support/memory_scene.h"
#include "support/sessions.h"
#include "support/check.h"
#include "support/memories.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sessile_session *memory_session(sessile_store *st, const char *id, const char *user)
{
    sessile_session_options options;
    sessile_session *s;
    sessile_error err;

    sessile_session_options_init(&options);
    options.id = sessile_text(id);
    options.agent = sessile_text("coder");
    options.user = sessile_text(user);
    must(sessile_session_open(&s, st, &options, &err), &err);
    return s;
}

void memory_scene_open(memory_scene *sc, sessile_store *st, unsigned hooks)
{
    sessile_policy_step step = {"host", NULL, hooks};
    sessile_error err;

    sc->store = st;
    sc->session = memory_session(st, "s", "ann");
    sc->memories[0] = memory_of(st, "ann");
    sc->memories[1] = memory_of(st, NULL);
    must(sessile_policy_load(&sc->policy, place_host(st), &step, 1, &err), &err);
}

void memory_scene_close(memory_scene *sc)
{
    sessile_policy_free(sc->policy);
    sessile_memory_close(sc->memories[0]);
    sessile_memory_close(sc->memories[1]);
    sessile_session_close(sc->session, NULL);
}

sessile_id memory_said(sessile_session *s, const char *role, const char *content,
                       const char *rest)
{
    char message[4096];
    sessile_error err;
    sessile_id id;

    snprintf(message, sizeof message, "{\"role\":\"%s\",\"content\":\"%s\"%s}", role,
             content, rest);
    must(sessile_append(s, sessile_text(message), &id, &err), &err);
    return id;
}

static const char *answer_of(const memory_script *script, sessile_hook hook)
{
    const char *text = hook == SESSILE_HOOK_REMEMBER ? script->remember
                       : hook == SESSILE_HOOK_TIDY   ? script->tidy
                       : hook == SESSILE_HOOK_ADMIT  ? script->admit
                                                     : script->recall;
    return text ? text : "{}";
}

memory_result memory_driven(sessile_memory_run *run, memory_script *script)
{
    memory_result r;
    sessile_need need;

    memset(&r, 0, sizeof r);
    while ((r.status = sessile_memory_run_step(run, &need, &r.err)) == SESSILE_NEEDS) {
        sessile_answer answer = {SESSILE_OK, {NULL, 0}, 0};
        sessile_error err;
        if (need.kind == SESSILE_NEED_HOOK)
            answer.text = sessile_text(answer_of(script, need.hook));
        snprintf(script->seen, sizeof script->seen, "%.*s", (int)need.request.size,
                 need.request.data);
        script->calls++;
        if (script->on)
            script->on(script->arg, &need, &answer);
        must(sessile_memory_run_reply(run, &answer, &err), &err);
    }
    if (!r.status) {
        sessile_error err;
        must(sessile_memory_run_outcome(run, &r.o, &err), &err);
        snprintf(r.policy, sizeof r.policy, "%s", r.o.policy);
        snprintf(r.hook, sizeof r.hook, "%s", r.o.hook);
        snprintf(r.message, sizeof r.message, "%s", r.o.message);
        assert_true(r.o.changes.size < sizeof r.changes);
        memcpy(r.changes, r.o.changes.data, r.o.changes.size);
        r.o.policy = r.o.hook = r.o.message = r.o.log = NULL;
        r.o.changes.data = NULL;
    }
    sessile_memory_run_free(run);
    return r;
}

sessile_memory_run_options memory_options(const memory_scene *sc)
{
    sessile_memory_run_options options;
    sessile_memory_run_options_init(&options);
    options.policy = sc->policy;
    return options;
}

memory_result memory_remembered(memory_scene *sc, memory_script *script,
                                const sessile_memory_run_options *options)
{
    sessile_memory_run *run;
    memory_result r;

    memset(&r, 0, sizeof r);
    r.status =
        sessile_remember_begin(&run, sc->session, sc->memories, 2, options, &r.err);
    return r.status ? r : memory_driven(run, script);
}

memory_result memory_asked(memory_scene *sc, const char *format, ...)
{
    sessile_memory_run_options options = memory_options(sc);
    memory_script script = {.remember = NULL};
    char asks[16384], answer[sizeof asks + 32];
    va_list args;
    int size;

    va_start(args, format);
    size = vsnprintf(asks, sizeof asks, format, args);
    va_end(args);
    assert_in_range(size, 0, sizeof asks - 1);
    snprintf(answer, sizeof answer, "{\"asks\":%s}", asks);
    script.remember = answer;
    return memory_remembered(sc, &script, &options);
}

const char *memory_writes(sessile_id id)
{
    static char answer[400];
    snprintf(answer, sizeof answer,
             "{\"asks\":[" MEMORY_WRITE("\"value\":\"prefers tea\",\"from\":\"%08" PRIx32
                                        "\"") "]}",
             id);
    return answer;
}

memory_result memory_heard(memory_scene *sc, memory_script *script)
{
    sessile_memory_run_options options = memory_options(sc);
    return memory_remembered(sc, script, &options);
}

memory_result memory_recalled(memory_scene *sc, memory_script *script)
{
    sessile_memory_run_options options = memory_options(sc);
    sessile_memory_run *run;
    memory_result r;
    memset(&r, 0, sizeof r);
    r.status =
        sessile_recall_begin(&run, sc->session, sc->memories, 2, NULL, &options, &r.err);
    return r.status ? r : memory_driven(run, script);
}

sessile_id memory_log_count(sessile_memory *m)
{
    sessile_memory_stats stats;
    sessile_error err;
    must(sessile_memory_get_stats(m, &stats, &err), &err);
    return (sessile_id)stats.log_entries;
}

static sessile_memory_row row_of(sessile_memory *m, sessile_id id)
{
    sessile_memory_row *row, copy;
    sessile_error err;
    must(sessile_memory_get(m, id, &row, &err), &err);
    copy = *row;
    sessile_free(row);
    return copy;
}

sessile_memory_state memory_state_of(sessile_memory *m, sessile_id id)
{
    return row_of(m, id).state;
}

sessile_memory_source memory_source_in(sessile_memory *m, sessile_id id)
{
    return row_of(m, id).source;
}

/* memory_scene.h: a session of coder for ann with both memories, and runs of them whose
 * hooks are the host's. */
#ifndef SUPPORT_MEMORY_SCENE_H
#define SUPPORT_MEMORY_SCENE_H

#include "sessile_memory.h"

typedef struct memory_scene {
    sessile_store *store;
    sessile_session *session;
    sessile_memory *memories[2]; /* ann's, and the one for all */
    sessile_policy *policy;      /* of the host */
} memory_scene;

/* hooks: of the policy; SESSILE_HOOK_ added up. */
void memory_scene_open(memory_scene *sc, sessile_store *st, unsigned hooks);
void memory_scene_close(memory_scene *sc);
/* Session "s" of coder for a user; NULL: of none. */
sessile_session *memory_session(sessile_store *st, const char *id, const char *user);
/* Appends a message: its id. rest: further members, as ",\"metadata\":{}", or "". */
sessile_id memory_said(sessile_session *s, const char *role, const char *content,
                       const char *rest);

/* What hooks of the host answer: JSON texts; NULL: "{}". */
typedef struct memory_script {
    const char *remember, *tidy, *admit, *recall;
    /* Called before each answer, which it may change. May be NULL. */
    void (*on)(void *arg, const sessile_need *need, sessile_answer *answer);
    void *arg;
    int calls;
    char seen[8192]; /* the arguments of the last hook, cut to fit */
} memory_script;

/* An outcome, and copies of its texts. */
typedef struct memory_result {
    sessile_status status; /* not OK: the run failed; err says why */
    sessile_error err;
    sessile_memory_outcome o;
    char policy[128], hook[32], message[512], changes[16384];
} memory_result;

/* Steps a run to its end and frees it. */
memory_result memory_driven(sessile_memory_run *run, memory_script *script);
/* Begins and drives a run of that kind; begin's error is the result's. */
memory_result memory_remembered(memory_scene *sc, memory_script *script,
                                const sessile_memory_run_options *options);
/* The same with the options of the scene; and of recall. */
memory_result memory_heard(memory_scene *sc, memory_script *script);
memory_result memory_recalled(memory_scene *sc, memory_script *script);
/* A request of ctx.memory that writes one entry; an answer of `remember` that writes one
 * from a message, borrowed until the next call. */
#define MEMORY_WRITE(members) "{\"memory\":\"write\",\"arguments\":[{" members "}]}"
const char *memory_writes(sessile_id id);
/* What `remember` asks, printed: a JSON array of requests of ctx.memory. */
memory_result memory_asked(memory_scene *sc, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Options with the policy of the scene. */
sessile_memory_run_options memory_options(const memory_scene *sc);

/* How many log entries a memory has. */
sessile_id memory_log_count(sessile_memory *m);
/* The state and the source of an entry. */
sessile_memory_state memory_state_of(sessile_memory *m, sessile_id id);
sessile_memory_source memory_source_in(sessile_memory *m, sessile_id id);

#endif

/*
 * policies.h: policies written in a test, loaded from files, run on a list.
 *
 *   policies_start();                       a fresh folder under TMPDIR
 *   policies_write("keep", "return {…}");   keep.lua in it
 *   ran r = policies_run("keep", NULL, SESSILE_HOOK_TRUNCATE, "s u a u a");
 *   assert_string_equal(r.keys, "1 4 5");
 *
 * Whatever a test does, policies_end() frees it.
 */
#ifndef SUPPORT_POLICIES_H
#define SUPPORT_POLICIES_H

#include "policy/policy.h"
#include "support/lists.h"

/* What became of one hook of a policy of one step. */
typedef struct ran {
    sessile_status status;
    sessile_error err;
    policy_result result;
    char keys[256]; /* of the context after it, as list_keys() */
    char vars[256]; /* the policy's notes after it */
    char log[256];
    char text[1024]; /* JSON of the first message that it wrote, or "" */
} ran;

void policies_start(void);
void policies_end(void);
/* The same as fixtures of cmocka. */
int policies_set_up(void **state);
int policies_tear_down(void **state);
const char *policies_folder(void);
/* Writes name.lua, mode 0600. size variants for text with NULs. */
void policies_write(const char *name, const char *source);
void policies_write_bytes(const char *name, const char *source, size_t size);

/* Loads one policy from the folder; the caller releases it. limits NULL: the defaults. */
sessile_status policies_load(sessile_policy **out, const char *name, const char *options,
                             const policy_limits *limits, sessile_error *err);
/* The same, which must succeed. */
sessile_policy *policies_must_load(const char *name, const char *options);

/* The setup that runs get: session "s-1", agent "main", turn 7, now 1,700,000,000,000. */
policy_setup policies_setup(void);

/* A policy, a state over a list, and a pipeline: what a test needs to run hooks. */
typedef struct fixture {
    sessile_policy *policy;
    list list;
    sessile_state *state;
    policy_pipeline *pipeline; /* with policies_setup() */
    policy_result result;      /* of the last hook */
    sessile_error err;
} fixture;

/* For a loaded policy, which the fixture owns from now on, and the list of that line. */
void fixture_open(fixture *f, sessile_policy *p, const char *line);
/* Writes name.lua and loads it first. limits NULL: the defaults. */
void fixture_load(fixture *f, const char *name, const char *source, const char *line,
                  const policy_limits *limits);
/* Frees the pipeline; makes a new one. */
void fixture_end_pipeline(fixture *f);
void fixture_new_pipeline(fixture *f);
/* Runs a hook of step 0. */
sessile_status fixture_call(fixture *f, sessile_hook hook);
void fixture_close(fixture *f);

/* Loads, runs one hook on a list, ends the hook. A model that is asked says "no". */
ran policies_run(const char *name, const char *options, sessile_hook hook,
                 const char *line);
/* Runs a source that is only a body: function(state, ctx) … end as truncate. */
ran policies_body(const char *body, const char *line);
ran policies_body_within(const char *body, const char *line, const policy_limits *limits);

/* Sets a locale with a decimal comma, one of the machine's or one made for the test; 0
 * when there is none. Then back, and what was made is removed. */
int locale_with_comma(void);
void locale_as_before(void);

#endif

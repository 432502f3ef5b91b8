/*
 * embed.c: sessile in a C program: a store, a policy, turns, and what the model would
 * get.
 *
 *   embed [FOLDER [POLICY.lua]]
 *
 * Without a folder it works in a temporary one and removes it. It says three things to an
 * imaginary model, closes everything, opens it again, and prints the context.
 */
#define _XOPEN_SOURCE 700
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sessile.h"

#ifndef POLICIES
#define POLICIES "policies" /* the folder of the shipped ones; make gives its own */
#endif

/* Every failure ends here: the error has a code and a sentence that says what to do. */
static void must(sessile_status status, const sessile_error *err)
{
    if (!status)
        return;
    fprintf(stderr, "embed: %s: %s\n", sessile_status_name(status), err->message);
    exit(1);
}

/* A turn, written before the policy runs. This policy asks nothing; one that needs a
 * model or a hook stops at SESSILE_NEEDS and continues after sessile_run_reply(). */
static void take_turn(sessile_session *session, const char *question, const char *answer)
{
    sessile_slice messages[2];
    sessile_run *run;
    sessile_need need;
    sessile_outcome outcome;
    sessile_error err;

    messages[0] = sessile_text(question);
    messages[1] = sessile_text(answer);
    must(sessile_turn_begin(&run, session, messages, 2, NULL, &err), &err);
    must(sessile_run_step(run, &need, &err), &err);
    must(sessile_run_outcome(run, &outcome, &err), &err);
    printf("turn: %lld tokens -> %lld, %zu messages left\n",
           (long long)outcome.tokens_before, (long long)outcome.tokens_after,
           outcome.removal_count);
    sessile_run_free(run);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

int main(int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    const char *folder = argc > 1 ? argv[1] : NULL;
    char temporary[4096];
    sessile_policy_step step = {NULL, "{\"messages\":4,\"keep\":0.5}", 0};
    sessile_store_options options;
    sessile_session_options who;
    sessile_store *store;
    sessile_session *session;
    sessile_message *context;
    sessile_error err;
    size_t count, i;

    if (!folder) {
        snprintf(temporary, sizeof temporary, "%s/sessile-embed.XXXXXX", tmp);
        folder = mkdtemp(temporary);
        if (!folder) {
            perror("embed: mkdtemp");
            return 1;
        }
    }
    step.name = argc > 2 ? argv[2] : POLICIES "/sliding_window.lua";
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_SECRET; /* sealed: unreadable without it */
    options.key = "an example keeps no secrets";
    sessile_session_options_init(&who);
    who.id = sessile_text("first-steps");

    must(sessile_open(&store, folder, &options, &err), &err);
    must(sessile_policy_load(&who.config.policy, store, &step, 1, &err), &err);
    must(sessile_session_open(&session, store, &who, &err), &err);
    take_turn(
        session, "{\"role\":\"user\",\"content\":\"What is a barnacle?\"}",
        "{\"role\":\"assistant\",\"content\":\"An animal that stays where it is.\"}");
    take_turn(
        session, "{\"role\":\"user\",\"content\":\"For how long?\"}",
        "{\"role\":\"assistant\",\"content\":\"All its life, once it has settled.\"}");
    take_turn(session, "{\"role\":\"user\",\"content\":\"What is that called?\"}",
              "{\"role\":\"assistant\",\"content\":\"Sessile.\"}");
    must(sessile_session_close(session, &err), &err);

    must(sessile_resume(&session, store, &who, &err), &err);
    must(sessile_context(session, SESSILE_NO_ID, &context, &count, NULL, &err), &err);
    for (i = 0; i < count; i++)
        printf("%s\n", context[i].json.data);

    sessile_free(context);
    must(sessile_session_close(session, &err), &err);
    sessile_policy_free(who.config.policy);
    sessile_store_close(store);
    if (argc < 2)
        (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return 0;
}

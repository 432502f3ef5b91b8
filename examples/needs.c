/*
 * needs.c: a policy that asks a model, from C: the engine never calls anybody. A run says
 * what it needs, the host gets it in its own way and time, and the run continues.
 *
 *   needs
 *
 * It keeps its session in memory. The model is a script: put your provider in its place.
 */
#include <stdio.h>
#include <stdlib.h>
#include "sessile.h"

#ifndef POLICIES
#define POLICIES "policies" /* the folder of the shipped ones; make gives its own */
#endif

#define FOUR_TIMES(text) text text text text

static void must(sessile_status status, const sessile_error *err)
{
    if (!status)
        return;
    fprintf(stderr, "needs: %s: %s\n", sessile_status_name(status), err->message);
    exit(1);
}

/* Asks a model. The request is JSON, {"messages":[…],"max_tokens":…,"purpose":…}: what an
 * HTTP request would carry. The text must live until it was given to the run. NULL:
 * failed. */
static const char *ask_model(sessile_slice request, int times)
{
    printf("  a model is asked: %zu KB\n", (request.size + 512) / 1024);
    return times == 1 ? NULL : "Barnacles were explained: they settle once, for life.";
}

/* One turn. Its messages are in the log before the policy runs: whatever happens to the
 * model, nothing that was said is lost. */
static void take_turn(sessile_session *session, const char *question, const char *answer)
{
    static int times;
    sessile_slice messages[2];
    sessile_run *run;
    sessile_need need;
    sessile_outcome outcome;
    sessile_error err;
    sessile_status status;

    messages[0] = sessile_text(question);
    messages[1] = sessile_text(answer);
    must(sessile_turn_begin(&run, session, messages, 2, NULL, &err), &err);
    while ((status = sessile_run_step(run, &need, &err)) == SESSILE_NEEDS) {
        sessile_answer reply = {SESSILE_OK, {NULL, 0}, 0};
        const char *text = NULL;
        if (need.kind == SESSILE_NEED_MODEL)
            text = ask_model(need.request, ++times);
        if (text) {
            reply.text = sessile_text(text);
        } else {
            reply.status = SESSILE_IO; /* the policy fails, and its fallback runs */
            reply.text = sessile_text("the model cannot be reached");
        }
        must(sessile_run_reply(run, &reply, &err), &err);
    }
    must(status, &err);
    must(sessile_run_outcome(run, &outcome, &err), &err);
    if (outcome.verdict == SESSILE_REFUSED)
        printf("%s failed: %s; %s ran instead\n", outcome.policy, outcome.message,
               outcome.fallback.policy);
    if (outcome.compaction != SESSILE_NO_ID)
        printf("compacted: %lld tokens -> %lld, '%s'\n", (long long)outcome.tokens_before,
               (long long)outcome.tokens_after, outcome.summary);
    sessile_run_free(run);
}

int main(void)
{
    static const char question[] =
        "{\"role\":\"user\",\"content\":\"What do barnacles do all day?\"}";
    static const char answer[] = "{\"role\":\"assistant\",\"content\":\"" FOUR_TIMES(
        FOUR_TIMES(FOUR_TIMES("They stay, and wave their feet. "))) "\"}";
    sessile_policy_step step = {"summarize", "{\"preserve_recent\":2}", 0};
    sessile_store_options options;
    sessile_session_options who;
    sessile_store *store;
    sessile_session *session;
    sessile_message *context;
    sessile_error err;
    size_t count;
    int i;

    sessile_store_options_init(&options);
    options.config.window = 8000;
    options.policy_path = POLICIES;
    sessile_session_options_init(&who);
    who.id = sessile_text("barnacles");
    must(sessile_open(&store, "ram:", &options, &err), &err);
    must(sessile_policy_load(&who.config.policy, store, &step, 1, &err), &err);
    must(sessile_session_open(&session, store, &who, &err), &err);
    for (i = 0; i < 28; i++)
        take_turn(session, question, answer);

    must(sessile_context(session, SESSILE_NO_ID, &context, &count, NULL, &err), &err);
    printf("%zu messages in the context, the first: %s\n", count, context[0].json.data);
    sessile_free(context);
    must(sessile_session_close(session, &err), &err);
    sessile_policy_free(who.config.policy);
    sessile_store_close(store);
    return 0;
}

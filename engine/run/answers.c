/*
 * answers.c: what models answered in one run, now and before the run was pending.
 *
 * A policy that runs again from its start makes the same requests again. Each request is
 * identified by the BLAKE2b-256 of its JSON. A request that was made n times has n
 * answers, in order. A request without an answer goes to the host. So a policy or a
 * context that changed costs one more question to the model, and nothing breaks.
 */
#include "run/run.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"

void run_answers_deinit(run_answers *list, const allocator *a)
{
    for (size_t i = 0; i < list->count; i++)
        mem_free(a, list->at[i].text, list->at[i].size + 1);
    mem_free(a, list->at, list->capacity * sizeof *list->at);
    memset(list, 0, sizeof *list);
}

sessile_status run_answers_add(run_answers *list, const unsigned char request[32],
                               sessile_status status, sessile_slice text,
                               const allocator *a, sessile_error *err)
{
    char *copy = mem_dup(a, text.size ? text.data : "", text.size);

    if (!copy || mem_grow(a, (void **)&list->at, &list->capacity, list->count + 1,
                          sizeof *list->at)) {
        mem_free(a, copy, text.size + 1);
        return fail_nomem(err);
    }
    run_answer *one = &list->at[list->count++];
    memcpy(one->request, request, sizeof one->request);
    one->status = status;
    one->text = copy;
    one->size = text.size;
    one->used = 0;
    return SESSILE_OK;
}

void run_answers_drop(run_answers *list, const unsigned char request[32],
                      const allocator *a)
{
    size_t i = list->count;

    while (i > 0 && memcmp(list->at[i - 1].request, request, 32) != 0)
        i--;
    if (!i--)
        return;
    mem_free(a, list->at[i].text, list->at[i].size + 1);
    memmove(&list->at[i], &list->at[i + 1], (--list->count - i) * sizeof *list->at);
}

/* Keeps what the policy will be given: for an answer that is too long or not UTF-8, the
 * error that replaces it. */
sessile_status run_answers_note(run_core *run, const sessile_answer *answer,
                                sessile_error *err)
{
    uint64_t limit = run->session->store->limits.policy_result;
    sessile_slice text = answer->text;
    sessile_status status = answer->status;
    char why[80];

    if (text.size > limit || !utf8_valid(text.data, text.size)) {
        status = SESSILE_POLICY;
        if (text.size > limit)
            snprintf(why, sizeof why, "the answer is longer than %llu bytes",
                     (unsigned long long)limit);
        else
            snprintf(why, sizeof why, "the answer is not UTF-8");
        text = slice_of(why);
    }
    return run_answers_add(&run->ask.answers, run->ask.request, status, text, run->alloc,
                           err);
}

void run_request_hash(unsigned char out[32], sessile_slice request)
{
    hash256(out, request.data ? request.data : "", request.size, NULL, 0);
}

const run_answer *run_answers_known(run_core *run)
{
    for (size_t i = 0; i < run->replay.known.count; i++) {
        run_answer *one = &run->replay.known.at[i];
        if (!one->used && !memcmp(one->request, run->ask.request, 32)) {
            one->used = 1;
            return one;
        }
    }
    return NULL;
}

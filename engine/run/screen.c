/*
 * screen.c: what a run is given meets the rules of its store.
 *
 * The messages of a turn are screened where they are checked (turn.c), and the state of a
 * checkpoint where it is written. Here: answers, which policies are given, summaries of
 * branches, which become messages, and the texts of a run's options.
 */
#include "run/run.h"

#include "base/text.h"

sessile_status run_screen_answer(run_core *run, int is_host, sessile_slice *text,
                                 buf *left, sessile_error *err)
{
    sessile_screen_item item = {.kind = SESSILE_SCREEN_ANSWER,
                                .source = is_host ? SESSILE_SCREEN_BY_HOST
                                                  : SESSILE_SCREEN_BY_AGENT,
                                .text = *text};
    sessile_status status;

    /* what is too long, or no text, is replaced by an error in any case */
    if (!text->size || text->size > run->session->store->limits.policy_result ||
        !utf8_valid(text->data, text->size))
        return SESSILE_OK;
    status = write_screen(run->session->store, &item, left, &run->labels, 0, err);
    if (status)
        fail_prefix(err, "the answer");
    else if (left->size)
        *text = (sessile_slice){left->data, left->size};
    return status;
}

sessile_status run_screen_summary(run_core *run, sessile_screen_source source,
                                  sessile_slice *text, buf *left, sessile_error *err)
{
    sessile_screen_item item = {.kind = SESSILE_SCREEN_MESSAGE,
                                .source = source,
                                .role = SESSILE_USER,
                                .text = *text};
    sessile_status status = SESSILE_OK;

    if (text->size)
        status = write_screen(run->session->store, &item, left, &run->labels, 0, err);
    if (status)
        fail_prefix(err, "the summary");
    else if (left->size)
        *text = (sessile_slice){left->data, left->size};
    return status;
}

sessile_status run_screen_options(const run_core *run, const sessile_run_options *options,
                                  sessile_error *err)
{
    const store_core *store = run->session->store;
    sessile_status status = write_screen_fixed(
        store, SESSILE_SCREEN_MESSAGE, "instructions", options->instructions, 0, err);

    if (!status)
        status = write_screen_fixed(store, SESSILE_SCREEN_METADATA, "event",
                                    options->event, 0, err);
    if (!status)
        status = write_screen_fixed(store, SESSILE_SCREEN_METADATA, "model",
                                    options->model, 0, err);
    return status;
}

/*
 * model.c: what the engine adds to the calls of a model. The model is a fake that answers
 * after a fixed delay; a row has all the time but the fake's own.
 */
#include "bench/measure.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { DELAY_MS = 20, MESSAGES = 1000 };

static const char answer[] =
    "The service was slow since its cache was cold; it is warmed now.";

/* The model: its answer, and the time that it took. */
static sessile_slice fake_model(double *us)
{
    struct timespec delay = {0, DELAY_MS * 1000000L};
    double t = now_us();
    nanosleep(&delay, NULL);
    *us += now_us() - t;
    return sessile_text(answer);
}

/* Steps a run to its end, the fake answering; the time that it took. */
static double finish(sessile_run *run, sessile_outcome *out)
{
    double asked = 0;
    sessile_need need;
    sessile_error err;
    sessile_status status;
    while ((status = sessile_run_step(run, &need, &err)) == SESSILE_NEEDS) {
        sessile_answer reply = {SESSILE_OK, {NULL, 0}, 0};
        reply.text = fake_model(&asked);
        must(sessile_run_reply(run, &reply, &err), &err);
    }
    must(status, &err);
    must(sessile_run_outcome(run, out, &err), &err);
    return asked;
}

static double take_turn(sessile_session *s, const sessile_slice *list, size_t count)
{
    sessile_run_options options;
    sessile_outcome out;
    sessile_error err;
    sessile_run *run;
    sessile_run_options_init(&options);
    options.no_policy = 1;
    double t = now_us();
    must(sessile_turn_begin(&run, s, list, count, &options, &err), &err);
    (void)finish(run, &out);
    t = now_us() - t;
    sessile_run_free(run);
    return t;
}

static void grow(sessile_session *s, size_t count)
{
    static char texts[100][2 * MESSAGE];
    sessile_slice list[100];
    for (size_t i = 0; i < 100; i++)
        list[i] = message_text(texts[i], (int)i);
    for (size_t done = 0; done < count; done += 100)
        (void)take_turn(s, list, 100);
}

/* A call as an agent makes it: the context is read, the model answers, question and
 * answer are written, durably. */
static void bench_call(sessile_store *store, size_t messages)
{
    static samples added, bare;
    static const char line[2 * MESSAGE + 400] = "";
    sessile_session *s =
        open_session(store, messages == MESSAGES ? "call-of-1000" : "call-of-100");
    sessile_error err;
    int fd = floor_open("floor");
    off_t end = 0;
    char label[80];
    grow(s, messages);
    for (int i = -5; i < (int)rounds(200); i++) {
        char texts[2][2 * MESSAGE];
        sessile_slice list[2] = {message_text(texts[0], 0), message_text(texts[1], 1)};
        sessile_message *context;
        size_t count;
        double asked = 0;
        (void)fake_model(&asked); /* the disk has rested as long as before ours */
        double f = floor_write(fd, &end, line, sizeof line, 1), t = now_us();
        asked = 0;
        must(sessile_context(s, SESSILE_NO_ID, &context, &count, NULL, &err), &err);
        sessile_free(context);
        (void)fake_model(&asked);
        (void)take_turn(s, list, 2);
        t = now_us() - t;
        if (i >= 0)
            sample_round(&added, t - asked, &bare, f, NULL, 0);
    }
    close(fd);
    snprintf(label, sizeof label, "call of a model, what a session adds, %zu", messages);
    row_print(&(row){label, &added, &bare, NULL, "as many bytes written, synced", 0, 5});
    close_session(s);
}

/* Whatever a run with a model costs beside the model. */
static void report(const char *name, samples *engine, samples *model, double asked_ms)
{
    double share = 100 * median(engine) / (median(engine) + median(model));
    double at_p95 = p95(engine) / 1e6;
    row_print(&(row){name, engine, NULL, NULL, "", 0, asked_ms});
    note("  engine's share, when the model takes %d ms: %.1f %%; p95 with a model of 1 "
         "s: %.3f s",
         DELAY_MS, share, 1 + at_p95);
    model->count = 0;
}

/* A thousand messages are summarised by the model, as the policy `summarize` does it. */
static void bench_compact(sessile_store *store)
{
    static samples engine, model;
    sessile_error err;
    use_policy(store, "summarize", "{}");
    for (int i = 0; i < (int)rounds(100); i++) {
        char id[32];
        sessile_outcome out;
        sessile_run *run;
        snprintf(id, sizeof id, "compact-%d", i);
        sessile_session *s = open_session(store, id);
        grow(s, MESSAGES);
        double t = now_us();
        must(sessile_compact_begin(&run, s, NULL, &err), &err);
        double asked = finish(run, &out);
        t = now_us() - t;
        if (out.verdict != SESSILE_APPLIED || asked <= 0)
            broken("the compaction");
        sample(&engine, t - asked);
        sample(&model, asked);
        sessile_run_free(run);
        close_session(s);
    }
    report("compaction by a model, summarize, 1000", &engine, &model, 5000);
}

/* A branch back to the tenth message, with a summary of what is left. */
static void bench_branch(sessile_store *store)
{
    static samples engine, model;
    sessile_session *s = open_session(store, "branch");
    sessile_run_options options;
    sessile_error err;
    sessile_run_options_init(&options);
    options.summarize = 1;
    for (int i = 0; i < (int)rounds(100); i++) {
        sessile_outcome out;
        sessile_run *run;
        grow(s, 100);
        double t = now_us();
        must(sessile_branch_begin(&run, s, 10, &options, &err), &err);
        double asked = finish(run, &out);
        t = now_us() - t;
        if (asked <= 0)
            broken("the branch");
        sample(&engine, t - asked);
        sample(&model, asked);
        sessile_run_free(run);
    }
    report("branch, summary by a model, 100 left", &engine, &model, 500);
    close_session(s);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    sessile_store *store =
        open_store("model", SESSILE_KEY_SECRET, SESSILE_SYNC, NULL, NULL);
    bench_call(store, 100);
    bench_call(store, MESSAGES);
    bench_branch(store);
    bench_compact(store);
    sessile_store_close(store);
    return bench_end();
}

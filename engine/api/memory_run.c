/* memory_run.c: the public functions of runs of memories. */
#include "sessile_memory.h"
#include "api/api.h"
#include "memory_run/begin.h"
#include "remember/proposal.h"

#define EMBED_BATCH 64

void sessile_memory_run_options_init(sessile_memory_run_options *options)
{
    if (!options)
        return;
    memset(options, 0, sizeof *options);
    options->reason = SESSILE_REASON_MANUAL;
    options->embed_batch = EMBED_BATCH;
}

static sessile_status check(const sessile_memory_run_options *o, const char *function,
                            sessile_error *err)
{
    if (api_bad(o->embed_model))
        return api_missing(err, function, "the data of a slice in options");
    if (o->has_ids && o->id_count && !o->ids)
        return api_missing(err, function, "options.ids");
    if (!utf8_valid(o->embed_model.data, o->embed_model.size))
        return fail(err, SESSILE_INVALID, "the model's name is not UTF-8");
    if ((unsigned)o->isolation > SESSILE_WORKER)
        return fail(err, SESSILE_INVALID, "there is no such isolation");
    return SESSILE_OK;
}

/* What begins every run: its output, what it is of, its options. */
#define API_MEMORY_RUN(handle)                             \
    API_MAKE(out, handle);                                 \
    API_OPTIONS(sessile_memory_run_options, options);      \
    sessile_status status = check(options, __func__, err); \
    if (status)                                            \
    return status

sessile_status sessile_remember_begin(sessile_memory_run **out, sessile_session *session,
                                      sessile_memory *const *memories,
                                      size_t memory_count,
                                      const sessile_memory_run_options *options,
                                      sessile_error *err)
{
    API_MEMORY_RUN(session);
    GUARD_ENTER(remember_begin, session);
    GUARD_GOES_ON;
    GUARD_COUNT;
    API_MEMORIES(cores, memories, memory_count, 1);
    GUARD_MAKE(out, &core->store->alloc);
    GUARD_MADE(out, memory_run_remember(GUARD_INTO(out), core, cores.at, cores.count,
                                        options, err));
}

sessile_status sessile_tidy_begin(sessile_memory_run **out, sessile_memory *memory,
                                  const sessile_memory_run_options *options,
                                  sessile_error *err)
{
    API_MEMORY_RUN(memory);
    GUARD_ENTER(tidy_begin, memory);
    GUARD_GOES_ON;
    GUARD_COUNT;
    GUARD_MAKE(out, &memory->alloc);
    GUARD_MADE(out, memory_run_tidy(GUARD_INTO(out), core, options, err));
}

sessile_status
sessile_memory_agent_source(sessile_session *session, sessile_memory *memory,
                            const sessile_memory_write_entry *entry, sessile_slice before,
                            sessile_memory_source *source, sessile_error *err)
{
    sessile_status status;

    error_clear(err);
    API_NEED(session);
    API_NEED(memory);
    API_NEED(entry);
    API_NEED(source);
    API_TEXT(before);
    *source = SESSILE_MEMORY_BY_TOOL;
    status = api_check_memory_entry(entry, err);
    if (status)
        return status;
    GUARD_ENTER(memory_agent_source, session);
    GUARD_ALSO_MAY(memory_agent_source, memory, READ_MEMORY);
    return GUARD_LEAVE(
        memory_agent_source(core, GUARD_ALSO(memory), entry, before, source, err));
}

sessile_status sessile_admit_begin(sessile_memory_run **out, sessile_memory *memory,
                                   const sessile_memory_write_entry *entries,
                                   size_t count,
                                   const sessile_memory_run_options *options,
                                   sessile_error *err)
{
    API_MEMORY_RUN(memory);
    API_NEED_IF(count, entries);
    for (size_t i = 0; !status && i < count; i++)
        status = api_check_memory_entry(&entries[i], err);
    if (status)
        return status;
    GUARD_ENTER(admit_begin, memory);
    GUARD_GOES_ON;
    GUARD_COUNT;
    GUARD_MAKE(out, &memory->alloc);
    GUARD_MADE(out,
               memory_run_admit(GUARD_INTO(out), core, entries, count, options, err));
}

sessile_status sessile_recall_begin(sessile_memory_run **out, sessile_session *session,
                                    sessile_memory *const *memories, size_t memory_count,
                                    const sessile_recall_options *recall,
                                    const sessile_memory_run_options *options,
                                    sessile_error *err)
{
    API_MEMORY_RUN(session);
    API_OPTIONS(sessile_recall_options, recall);
    status = api_check_recall(recall, err);
    if (status)
        return status;
    GUARD_ENTER(recall_begin, session);
    GUARD_GOES_ON;
    GUARD_COUNT;
    API_MEMORIES(cores, memories, memory_count, 0);
    GUARD_MAKE(out, &core->store->alloc);
    GUARD_MADE(out, memory_run_recall(GUARD_INTO(out), core, cores.at, cores.count,
                                      recall, options, err));
}

sessile_status sessile_embed_begin(sessile_memory_run **out, sessile_memory *memory,
                                   const sessile_memory_run_options *options,
                                   sessile_error *err)
{
    API_MEMORY_RUN(memory);
    GUARD_ENTER(embed_begin, memory);
    GUARD_GOES_ON;
    GUARD_COUNT;
    GUARD_MAKE(out, &memory->alloc);
    GUARD_MADE(out, memory_run_embed(GUARD_INTO(out), core, options, err));
}

sessile_status sessile_memory_run_step(sessile_memory_run *run, sessile_need *need,
                                       sessile_error *err)
{
    API_USE(run);
    API_NEED(need);
    GUARD_ENTER(memory_run_step, run);
    return GUARD_STEP(run, memory_run_step(core, need, err));
}

sessile_status sessile_memory_run_reply(sessile_memory_run *run,
                                        const sessile_answer *answer, sessile_error *err)
{
    API_USE(run);
    API_NEED(answer);
    API_TEXT(answer->text);
    GUARD_ENTER(memory_run_reply, run);
    return GUARD_LEAVE(memory_run_reply(core, answer, err));
}

sessile_status sessile_memory_run_reply_vectors(sessile_memory_run *run,
                                                const float *vectors, size_t count,
                                                size_t dims, sessile_error *err)
{
    API_USE(run);
    API_NEED_IF(count && dims, vectors);
    GUARD_ENTER(memory_run_reply_vectors, run);
    return GUARD_LEAVE(memory_run_reply_vectors(core, vectors, count, dims, err));
}

sessile_status sessile_memory_run_outcome(sessile_memory_run *run,
                                          sessile_memory_outcome *out, sessile_error *err)
{
    error_clear(err);
    API_ZERO(out);
    API_NEED(run);
    GUARD_ENTER(memory_run_outcome, run);
    return GUARD_LEAVE(memory_run_outcome(core, out, err));
}

void sessile_memory_run_free(sessile_memory_run *run)
{
    if (!run)
        return;
    GUARD_CLOSE(run);
    memory_run_free(core);
}

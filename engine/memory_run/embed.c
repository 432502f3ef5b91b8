/* embed.c: entries of a memory get vectors. */
#include "memory_run/memory_run.h"

sessile_status memory_step_embed(sessile_memory_run *run, sessile_need *need,
                                 sessile_error *err)
{
    (void)run;
    (void)need;
    return fail(err, SESSILE_UNSUPPORTED, "entries cannot be embedded yet");
}

/*
 * isolation.c: the worker process that runs policies, when the run's configuration asks
 * for one or when a policy's file belongs to another user.
 *
 * The session owns the worker while nothing runs, and a run owns it while it runs, so two
 * runs never use the same worker. A worker serves one session and ends with it. A worker
 * that was killed is not returned to the session; the next run starts another.
 */
#include "policy/worker.h"
#include "run/run.h"
#include "proposal/journal.h"

static void stop_idle_worker(void *idle)
{
    worker_stop(idle);
}

sessile_status run_acquire_worker(run_core *run, sessile_error *err)
{
    session_core *s = run->session;
    store_core *store = s->store;
    sessile_status status = SESSILE_OK;

    if (run->config.isolation != SESSILE_WORKER &&
        !(run->policy && policy_is_foreign(run->policy)))
        return SESSILE_OK;
    status = session_lock(s, err);
    if (status)
        return status;
    run->worker = s->worker.idle;
    s->worker.idle = NULL;
    session_unlock(s);
    if (run->worker && worker_is_dead(run->worker)) {
        worker_stop(run->worker);
        run->worker = NULL;
    }
    if (!run->worker)
        status = worker_start(&run->worker, store->worker, store->os, &store->alloc, err);
    if (!status)
        state_journal_to(run->state, &run->journal);
    return status;
}

void run_release_worker(run_core *run)
{
    session_core *s = run->session;
    struct worker *left = run->worker;

    run->worker = NULL;
    if (left && !worker_is_dead(left) && !session_lock(s, NULL)) {
        if (!s->worker.idle) {
            s->worker = (session_worker){left, stop_idle_worker};
            left = NULL;
        }
        session_unlock(s);
    }
    worker_stop(left);
}

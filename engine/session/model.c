/*
 * model.c: which model a session is for, and a message counted for it.
 *
 * The model is the store's, when its options name one; else the last one that the log
 * names, in a turn or in the settings. Counting needs no lock: the unit to count in is
 * remembered, and looked up again only when the log names another model.
 */
#include "session/fold.h"
#include "base/names.h"

#include <string.h>

sessile_slice session_model(const session_core *s)
{
    const char *of_store = s->store->model;

    return of_store ? slice_of(of_store) : slice_of(s->counting.model);
}

void fold_model(session_core *s, const char *name)
{
    if (!strcmp(s->counting.model, name))
        return;
    memcpy(s->counting.model, name, MODEL_SIZE);
    atomic_store(&s->counting.unit, -1);
}

int session_exact_unit(const session_core *s)
{
    sessile_slice model = session_model(s);

    return counters_exact(s->store->counters, model.data, model.size);
}

static void choose_locked(session_core *s)
{
    sessile_slice model = session_model(s);

    if (atomic_load(&s->counting.unit) >= 0)
        return;
    atomic_store(&s->counting.kind, model_find(model.data, model.size));
    atomic_store(&s->counting.unit,
                 counters_unit(s->store->counters, model.data, model.size));
}

static token_count count_message_in(const session_core *s, int unit, const message *m)
{
    token_count n = {0, TOKENS_ESTIMATE};

    n.tokens = counters_message(s->store->counters, (token_unit)unit,
                                atomic_load(&s->counting.kind), m, &n.unit);
    return n;
}

token_count session_count_locked(session_core *s, const message *m)
{
    choose_locked(s);
    return count_message_in(s, atomic_load(&s->counting.unit), m);
}

token_count session_count(session_core *s, const message *m)
{
    int unit = atomic_load(&s->counting.unit);

    if (unit < 0 && !session_lock(s, NULL)) {
        choose_locked(s);
        unit = atomic_load(&s->counting.unit);
        session_unlock(s);
    }
    return count_message_in(s, unit < 0 ? TOKENS_ESTIMATE : unit, m);
}

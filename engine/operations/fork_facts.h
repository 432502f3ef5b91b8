/* fork_facts.h: a copy of a session as fork.c and fork_facts.c plan it. */
#ifndef OPERATIONS_FORK_FACTS_H
#define OPERATIONS_FORK_FACTS_H

#include "session/handle.h"
#include "session/write.h"

/* What to copy, found before the lines are read. */
typedef struct fork_plan {
    session_core *s;
    sessile_id last; /* the last entry that is copied */
    unsigned char tag[VAULT_TAG];
    buf header;
    batch facts; /* written after the lines */
} fork_plan;

/*
 * Appends to p->facts what the copied lines alone would lack or have out of date. title
 * and metadata (JSON_NONE: none) are what the fork is given; the title is written if the
 * lines have one. p->last and the ids of p->facts are set, and the session's mutex is
 * held. NOMEM may also show in p->facts.text.failed.
 */
sessile_status fork_put_facts(fork_plan *p, sessile_slice title, json metadata,
                              sessile_error *err);

#endif

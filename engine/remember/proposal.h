/*
 * proposal.h: what policies propose to write to memories, and what they were shown.
 *
 *   proposal.c   a proposal: what was shown, what is proposed
 *   said.c       the messages of a session that were not heard yet
 *   show.c       entries as a policy sees them
 *   request.c    what ctx.memory was asked
 *   write.c      a request to write becomes a proposed entry
 *   sources.c    whose words a proposed entry has: laws 1, 2, 5 and 6
 *   overlap.c    whether the words of a text stand in others
 *   laws.c       what may end: law 3, on the memory as it is
 *   commit.c     writes it
 *   changes.c    tells the host
 *
 * sessile_memory.h states the laws.
 */
#ifndef REMEMBER_PROPOSAL_H
#define REMEMBER_PROPOSAL_H

#include "base/buf.h"
#include "memory/memory.h"
#include "remember/overlap.h"
#include "session/handle.h"

enum { PROPOSAL_MEMORIES = SESSILE_RECALL_MEMORIES_MAX, PROPOSAL_NEAR = 8 };

typedef enum memory_law {
    MEMORY_LAW_NONE = 0,
    MEMORY_LAW_ATTESTED,
    MEMORY_LAW_TRUST,
    MEMORY_LAW_OVERREACH,
    MEMORY_LAW_LOST,
    MEMORY_LAW_SCOPE,
    MEMORY_LAW_BOUNDS
} memory_law;

/* A message of the session that a policy was shown. */
typedef struct shown_message {
    sessile_id id;
    sessile_memory_source source;
    size_t at, size; /* its words, in proposal.said_text */
} shown_message;

typedef enum proposed_kind {
    PROPOSED_WRITE = 0,
    PROPOSED_DELETE,
    PROPOSED_CONFIRM
} proposed_kind;

typedef enum proposed_state {
    PROPOSED_GOOD = 0,
    PROPOSED_NOT_ADMITTED,
    PROPOSED_STALE /* what it builds on has changed meanwhile */
} proposed_state;

typedef struct entry_ids {
    sessile_id *at;
    size_t count, capacity;
} entry_ids;

/* What a policy proposes. Texts are owned, in `text`. */
typedef struct proposed {
    proposed_kind kind;
    size_t memory; /* index in proposal.memories */
    size_t step;   /* of the chain: whose it is */
    buf text;
    sessile_memory_write_entry entry; /* WRITE; its slices are into text */
    entry_ids from, of;               /* WRITE: messages, entries that it is from */
    size_t of_memory;                 /* index of the memory of those entries */
    entry_ids ids;                    /* WRITE: that it replaces; else that it is about */
    sessile_memory_from *sources; /* WRITE: for entry.from; texts are in source_text */
    size_t source_count;
    buf source_text;
    memory_words words;   /* WRITE: what screens left; entry's slices may be into them */
    char rule[64];        /* of a screen that refused it; why says it; "": none did */
    int is_host;          /* 1: the host's own entry: of the laws only 5 holds */
    int lowered;          /* law 2 made the user's words the agent's or a tool's */
    int waits;            /* `admit` or a source wants a person to approve it */
    buf why;              /* why it waits or was not admitted; of others the reason */
    proposed_state state; /* `admit` and the judgement on the memory as it is set it */
    const char *stale;    /* STALE: why; static */
    size_t ends;          /* entries that it ends, on the memory as it is */
    int contradicts;      /* it would replace entries of a higher source: it waits */
    entry_ids contradicted;
    sessile_id holder; /* WRITE: the live entry of its key, which it replaces; or NO_ID */
    sessile_id id;     /* once it is written, or SESSILE_NO_ID */
} proposed;

typedef struct proposal {
    const allocator *alloc;
    store_core *store;
    session_core *session; /* NULL: of none */
    memory_core *memories[PROPOSAL_MEMORIES];
    size_t memory_count;
    size_t target;   /* where entries go, and how far a session was heard */
    int share;       /* entries may go to another memory than the target */
    int trust_tools; /* what comes from tools does not wait */
    int reads_only;  /* 1: the hook that runs may not propose anything */
    words *words;    /* of the target's language, of its own; NULL: not needed yet */
    sessile_id seen[PROPOSAL_MEMORIES]; /* entries of each log when it began */

    shown_message *messages;
    size_t message_count, message_capacity;
    buf said_text;
    word_set tool_words; /* of tools in the session, also before what is heard now */
    word_set user_words; /* of users that were shown */
    map shown;           /* entries that were shown */

    proposed *at;
    size_t count, capacity;

    struct {       /* how far the session is heard, if this is written */
        int moves; /* 1: from `from` to `upto` */
        sessile_id from, upto;
        size_t left; /* messages after it */
    } heard;

    size_t written, ended; /* by the commits of this run so far */

    memory_law broken; /* the judgement; NONE: it may be written */
    size_t culprit;    /* whose proposal it was; `count`: nobody's */
    char message[400];
    int is_stale; /* the session was heard by somebody else meanwhile */
    sessile_id refusal;
} proposal;

/* memories: as for sessile_recall(); checked by the caller. DENIED: the user of one does
 * not consent. */
sessile_status proposal_init(proposal *p, store_core *st, session_core *s,
                             memory_core *const *memories, size_t memory_count,
                             sessile_error *err);
/* The same without memories. */
void proposal_start(proposal *p, store_core *st, session_core *s);
void proposal_deinit(proposal *p);
/* Forgets what is proposed; what was shown stays shown. */
void proposal_clear(proposal *p);
/* Makes p->words. Takes the target's lock. */
sessile_status proposal_open_words(proposal *p, sessile_error *err);
/* Sets *may to 1 if the memory's user consents, so that it may be read; else to 0. */
sessile_status proposal_may_read(const proposal *p, size_t memory, int *may,
                                 sessile_error *err);
/* "user" or "agent". */
const char *proposal_memory_name(const proposal *p, size_t memory);

int proposal_show_entry(proposal *p, size_t memory, sessile_id id); /* 0, or -1 */
int proposal_has_shown(const proposal *p, size_t memory, sessile_id id);
const shown_message *proposal_message(const proposal *p, sessile_id id); /* or NULL */
/* Appends a proposed change that is empty. NULL: no memory. */
proposed *proposal_add(proposal *p, proposed_kind kind, size_t memory, size_t step);
/* Drops the proposed changes from number `count` on. */
void proposal_cut(proposal *p, size_t count);
int entry_ids_add(entry_ids *l, sessile_id id, const allocator *a); /* 0, or -1 */

/* ---- said.c */

/*
 * Shows what was said after what was heard: appends a JSON array of messages
 * {"id","role","source","time" (ms),"day","author"?,"cut"?,"content"} to out, and sets
 * `heard`. At most SAID_MESSAGES and SAID_BYTES of text; the rest is `left` for the next
 * time. A longer message is cut ("cut":true).
 */
enum { SAID_MESSAGES = 200, SAID_MESSAGE_BYTES = 8192, SAID_BYTES = 262144 };
sessile_status proposal_hear(proposal *p, buf *out, sessile_error *err);
/* How far the target has heard the session; 0: never. The target is locked. NOMEM. */
sessile_status proposal_heard(const proposal *p, sessile_id *upto, sessile_error *err);
/* Shows messages of a context, without texts of the engine's and the policies'. */
sessile_status proposal_show_context(proposal *p, const context *c, sessile_error *err);
/* Takes in the words of the newest messages of the path, heard or not. Nothing of them
 * may be named. */
sessile_status proposal_look_back(proposal *p, sessile_error *err);

/* ---- show.c */

/* Appends a row as a policy sees it, and has it shown. */
sessile_status proposal_put_row(proposal *p, buf *out, size_t memory,
                                const sessile_memory_row *row, sessile_error *err);
/* Appends the live entry of that id and an array of its neighbours: "{…},[…]"; *live 0:
 * it is not live, and nothing was appended. DENIED. */
sessile_status proposal_put_near(proposal *p, buf *out, size_t memory, sessile_id id,
                                 int *live, sessile_error *err);
/* Appends what an `admit` hook sees of a proposed entry. */
void proposal_put_proposed(const proposal *p, buf *out, size_t i);

/* ---- request.c, write.c */

/* Answers a request of ctx.memory of a policy of the chain, appending to answer: JSON,
 * see policy/ctx_memory.c. Only lack of memory and errors of the store are errors here.
 */
sessile_status proposal_request(proposal *p, size_t step, sessile_slice request,
                                buf *answer, sessile_error *err);
/* Takes the arguments of a write. INVALID: they are wrong. */
sessile_status proposal_take_write(proposal *p, size_t step, json arguments,
                                   sessile_error *err);
/* Takes an entry of the host. */
sessile_status proposal_take_host(proposal *p, size_t memory,
                                  const sessile_memory_write_entry *entry,
                                  sessile_error *err);
/* Reads ids (strings, or objects with a member id), each once, from an array, or from one
 * of them. An object may name its memory: *memory becomes that, from PROPOSAL_MEMORIES
 * (not known yet). memory NULL: of messages. INVALID: also for entries of two memories,
 * none, and too many. */
sessile_status proposal_take_ids(const proposal *p, json ids, const char *what,
                                 entry_ids *out, size_t *memory, sessile_error *err);

/* ---- sources.c, laws.c, commit.c, changes.c */

/* Works out whose words each entry has, and judges laws 1, 2, 3 (what was shown), 5 and
 * 6 as far as the memory's state does not matter. */
sessile_status proposal_attest(proposal *p, sessile_error *err);
/* See sessile_memory_agent_source(). */
sessile_status memory_agent_source(session_core *s, memory_core *m,
                                   const sessile_memory_write_entry *entry,
                                   sessile_slice before, sessile_memory_source *out,
                                   sessile_error *err);
/* Judges what depends on the state of a memory, which is locked and fresh. */
sessile_status proposal_judge(proposal *p, size_t memory, int64_t now_ms,
                              sessile_error *err);
/* How many entries a run may end in a memory: law 3. The memory is locked. */
size_t proposal_most_ends(const proposal *p, const memory_core *m);
void proposal_break(proposal *p, memory_law law, size_t culprit, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Who wrote an entry, for its `policy` and for refusals. */
typedef struct proposal_author {
    const char *name, *hash, *hook;
    int64_t version;
} proposal_author;
typedef proposal_author (*proposal_author_of)(void *arg, size_t step);

/* Judges all of it, and, unless dry, writes it: entries and how far the session was heard
 * as one commit in each memory, or a refusal. */
sessile_status proposal_commit(proposal *p, int dry, proposal_author_of author, void *arg,
                               sessile_error *err);
/* Records the refusal of a policy that failed. */
sessile_status proposal_refuse(proposal *p, memory_law law, const char *message, int dry,
                               const proposal_author *author, sessile_error *err);

/* Appends the changes, separated by commas: see sessile_memory_outcome. */
void proposal_put_changes(const proposal *p, buf *out, proposal_author_of author,
                          void *arg);

#endif

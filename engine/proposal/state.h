/*
 * state.h: the context as the hooks of a pipeline see it, and their edits.
 *
 * One state serves a whole pipeline. state_hook_begin() fixes the list and the indexes
 * that a hook is given; the functions below record edits; state_hook_end() applies them
 * and makes the list for the next hook. An edit that is out of range or malformed is
 * INVALID and changes nothing. Whether edits are lawful is judged later, by laws.h.
 */
#ifndef PROPOSAL_STATE_H
#define PROPOSAL_STATE_H

#include "context/context.h"
#include "session/facts.h"
#include "context/laws.h"
#include "session/meter.h"

/* Appends the message JSON of an item that is not an inserted message of this state. */
typedef sessile_status (*state_read)(void *arg, sessile_key key, buf *out,
                                     sessile_error *err);

typedef struct state_setup {
    const context *context; /* copied */
    const facts *labels;    /* from facts_labels(), copied; NULL: none */
    size_t previous;        /* number of items from before the turn */
    int64_t window, reserve;
    const meter_ratio *fit; /* TOKEN_UNITS ratios that the items' counts are multiplied
                               with; NULL: counts stay as they are */
    int64_t made_ratio; /* the same for estimates of inserted messages; 0: as they are */
    uint32_t floor;
    uint64_t result_limit; /* bytes of all inserted messages */
    uint64_t vars_limit;   /* 16 KiB a policy */
    unsigned depth;        /* of JSON */
    state_read read;
    void *read_arg;
    const allocator *alloc;
} state_setup;

sessile_status state_new(sessile_state **out, const state_setup *setup,
                         sessile_error *err);
void state_free(sessile_state *s);

/* Begins a hook. vars: those of its policy, JSON text, copied. */
sessile_status state_hook_begin(sessile_state *s, const char *vars, size_t vars_size,
                                sessile_error *err);
/* Applies the hook's edits. *changed: the list differs from the one that the hook was
 * given. *vars_changed: state_vars_text() has new vars. */
sessile_status state_hook_end(sessile_state *s, int *changed, int *vars_changed,
                              sessile_error *err);
/* Drops the hook's edits. */
void state_hook_drop(sessile_state *s);

const context *state_before(const sessile_state *s); /* the first list */
const context *state_after(const sessile_state *s);  /* after the hooks that have ended */
/* Saves state_after(), for state_rewind() if a compact hook removed too little. One
 * level. */
sessile_status state_mark(sessile_state *s, sessile_error *err);
sessile_status state_rewind(sessile_state *s, sessile_error *err);
/* The input of laws.h, borrowed from the state. */
sessile_status state_laws(sessile_state *s, laws_input *out, sessile_error *err);
/* Counts a text as inserted messages are counted. */
token_count state_count_text(const sessile_state *s, const char *text, size_t size);
/* The message text of any key of state_after(), inserted messages too; borrowed. */
sessile_status state_text(sessile_state *s, sessile_key key, sessile_slice *out,
                          sessile_error *err);

/* The functions sessile_state_…() of sessile.h; arguments were checked. */
size_t state_count(const sessile_state *s);
int64_t state_tokens(const sessile_state *s);
int64_t state_window(const sessile_state *s);
int64_t state_reserve(const sessile_state *s);
uint32_t state_keep_min(const sessile_state *s);
size_t state_previous(const sessile_state *s);
sessile_status state_get(const sessile_state *s, size_t i, sessile_column *out,
                         sessile_error *err);
sessile_status state_json(sessile_state *s, size_t i, sessile_slice *out,
                          sessile_error *err);
sessile_status state_label(const sessile_state *s, size_t i, size_t n, sessile_slice *out,
                           sessile_error *err);
sessile_status state_drop(sessile_state *s, size_t first, size_t last,
                          sessile_error *err);
sessile_status state_replace(sessile_state *s, size_t i, sessile_slice fields,
                             sessile_error *err);
sessile_status state_insert(sessile_state *s, size_t i, sessile_slice text,
                            int has_covers, size_t cover_first, size_t cover_last,
                            sessile_error *err);
sessile_status state_keep_last(sessile_state *s, int64_t n, sessile_unit unit,
                               sessile_error *err);
size_t state_find_cut(const sessile_state *s, int64_t tokens);
size_t state_pairs(const sessile_state *s, size_t i, size_t *out, size_t cap);
sessile_status state_rebuild(sessile_state *s, const sessile_state_item *items,
                             size_t count, sessile_error *err);
sessile_slice state_vars_text(const sessile_state *s);
sessile_status state_set_vars(sessile_state *s, sessile_slice text, sessile_error *err);

#endif

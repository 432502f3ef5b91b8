/* proposals.h: proposals written in a line, and the law that they break */
#ifndef SUPPORT_PROPOSALS_H
#define SUPPORT_PROPOSALS_H

#include "support/lists.h"

enum { PROPOSAL_PUTS = 64 };

typedef struct proposal {
    list before;
    context after;
    pairing pairs;
    inserted_message inserted[PROPOSAL_PUTS];
    laws_input in;
} proposal;

void proposal_begin(proposal *p, const char *line);
void proposal_end(proposal *p);
inserted_message *add_inserted(proposal *p, const char *text, const uint32_t *covers,
                               size_t cover_count, const uint32_t *replaces,
                               size_t replace_count);
/* Numbers in a line, up to 32 of them. */
size_t numbers_of(const char *line, uint32_t *out);
/* A put made of a word, with what it covers and replaces in words. */
inserted_message *add_word(proposal *p, const char *word, const char *covers,
                           const char *replaces);
void add_kept(proposal *p, const context *from, size_t i);
void propose(proposal *p, const char *line);
law broken_law(const proposal *p, judgement *j);
void expect_law(const proposal *p, law expected, const char *words);
/* What a proposal that only takes messages out or inserted them in breaks. */
void check_law(const char *before, const char *after, law expected, const char *words);
void keeps_laws(const char *before, const char *after);

#endif

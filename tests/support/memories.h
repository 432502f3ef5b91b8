/* memories.h: long-term memories for tests. */
#ifndef SUPPORT_MEMORIES_H
#define SUPPORT_MEMORIES_H

#include "sessile_memory.h"

/* Of the agent "coder"; user NULL: of the agent alone, else with consent. */
sessile_memory *memory_of(sessile_store *st, const char *user);
/* Writes one entry: its id. key, value and also may be NULL. */
sessile_id remember(sessile_memory *m, const char *key, const char *value,
                    const char *also);
void judge(sessile_memory *m, sessile_id id, sessile_memory_verdict_kind verdict);
/* The values of the hits of a question, best first, with "|" between them; free(). */
char *found(sessile_memory *m, const char *question);
/* The same of all live entries, newest first. */
char *listed_values(sessile_memory *m, const sessile_memory_list_options *options);
/* Fails unless the text is `expected`; frees it. */
void expect_text(char *text, const char *expected);
/* Fails unless the live entry of a key has this value; NULL: there is none. */
void expect_key(sessile_memory *m, const char *key, const char *value);

#endif

/*
 * lists.h: contexts written in a line, for tests of pairing, laws, states and rendering.
 *
 * A list is words separated by blanks; each is one message, its key 1, 2, 3 and so on:
 *
 *   s d u a        system, developer, user, assistant, with text
 *   n              user with metadata.kind "note": starts no turn
 *   a:x,y          assistant with tool_calls x and y
 *   b:x,y          assistant with text and content blocks tool_use x and y
 *   r:x            tool message that answers x
 *   m:x,y          user message of tool_result blocks only
 *   t:x,y          the same, with a text block behind: it starts a turn
 *   o:x            assistant with a tool_call x that carries its own output
 *   p:x            tool message with tool_calls x that has output: an answer in that form
 *   x:a/b          tool_use blocks a and tool_result blocks b in one assistant message
 *   *              behind a word: pinned
 *
 * Texts are real messages, read by message_read(), so that columns are what they would
 * be.
 */
#ifndef SUPPORT_LISTS_H
#define SUPPORT_LISTS_H

#include "context/laws.h"
#include "proposal/state.h"

typedef struct list {
    context c;
    char **texts;   /* one per item */
    size_t reads;   /* how often list_read was called */
    size_t fail_at; /* list_read of this key's entry fails with IO; 0: none */
} list;

void list_make(list *l, const char *line);
void list_free(list *l);
/* A state_read and render_text over a list. */
sessile_status list_read(void *arg, sessile_key key, buf *out, sessile_error *err);

/* A state over a list, its first hook begun: floor 2, no window, 1 MiB of result. */
sessile_state *list_state(list *l);
sessile_state *list_state_with(list *l, uint32_t floor, int64_t window, int64_t reserve);

/* The message of one word, as JSON that the caller frees with free(). */
char *word_json(const char *word, int number);
/* A put with that text, number n, that stands for keys (copied). Free: put_free. */
inserted_message put_make(uint32_t n, const char *text, const uint32_t *covers,
                          size_t cover_count, const uint32_t *replaces,
                          size_t replace_count);
void put_free(inserted_message *w);

/* Keys of a context in a line: "1 2 +1 5", own inserted with a plus. Static text. */
const char *list_keys(const context *c);

/* Random numbers for property tests: SEED in the environment, else drawn and told when a
 * test fails. */
void random_start(void);
uint32_t random_below(uint32_t n);
uint64_t random_seed(void);
/* A random line of about n words; calls and results of few ids, in all their forms. */
void random_line(char *out, size_t size, unsigned n);

#endif

/*
 * cutter.h: splits text into pieces, by the steps of a tokenizer.json or by an
 * expression.
 *
 * Immutable once it is open: threads share it.
 */
#ifndef TOKENS_CUTTER_H
#define TOKENS_CUTTER_H

#include "base/buf.h"
#include "base/error.h"

typedef struct cutter cutter;

/* Which parts a step keeps: the matches of its expression, the text between them, or
 * both. */
enum { CUT_KEEP_FOUND = 1, CUT_KEEP_BETWEEN = 2, CUT_KEEP = 3 };

/* Appends a step to a list of steps, which is text that can be stored. The expression
 * is in PCRE2's syntax, or in Oniguruma's or Rust's, as published tokenizers have it,
 * where PCRE2 gives it the same meaning; else UNSUPPORTED. NOMEM. */
sessile_status cut_put(buf *steps, const char *expression, size_t size, unsigned keep,
                       sessile_error *err);
/* The same for a literal text. */
sessile_status cut_put_text(buf *steps, const char *text, size_t size, unsigned keep,
                            sessile_error *err);

/* Compiles the steps. INVALID: they are malformed, or an expression is wrong, and
 * where. */
sessile_status cutter_open(cutter **out, const char *steps, size_t size,
                           const allocator *alloc, sessile_error *err);
void cutter_free(cutter *c);

/* Calls visit for each piece of a text in UTF-8, in order; visit returns 0 to
 * continue. NOMEM; LIMIT: an expression tries too many ways to match. */
sessile_status cutter_run(const cutter *c, const unsigned char *text, size_t size,
                          int (*visit)(void *arg, const unsigned char *piece,
                                       size_t size),
                          void *arg, sessile_error *err);

#endif

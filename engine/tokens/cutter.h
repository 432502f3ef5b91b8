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

/* What a step does with what its expression finds, and with what lies between. */
enum { CUT_KEEP_FOUND = 1, CUT_KEEP_BETWEEN = 2, CUT_KEEP = 3 };

/*
 * Appends a step to a list of steps, which is text that can be stored. The expression is
 * one of PCRE2, or, as published tokenizers have them, one of Oniguruma's or Rust's whose
 * meaning is the same there: UNSUPPORTED where it would be another. NOMEM.
 */
sessile_status cut_put(buf *steps, const char *expression, size_t size, unsigned keep,
                       sessile_error *err);
/* The same for text that is looked for as it is. */
sessile_status cut_put_text(buf *steps, const char *text, size_t size, unsigned keep,
                            sessile_error *err);

/* Makes the steps ready. INVALID: they are none, or an expression is wrong, and where. */
sessile_status cutter_open(cutter **out, const char *steps, size_t size,
                           const allocator *alloc, sessile_error *err);
void cutter_free(cutter *c);

/* Hands out the pieces of a text in UTF-8, in order; visit returns 0 to go on. NOMEM,
 * LIMIT: an expression goes through too many ways to match. */
sessile_status cutter_run(const cutter *c, const unsigned char *text, size_t size,
                          int (*visit)(void *arg, const unsigned char *piece,
                                       size_t size),
                          void *arg, sessile_error *err);

#endif

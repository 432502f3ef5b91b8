/*
 * words.h: text to terms, for the search of a memory.
 *
 * A term is what is compared: a word that was folded and stemmed, a number, or one or
 * two characters of a script that is written without spaces. Entries and questions go
 * through the same code, so that they meet.
 */
#ifndef MEMORY_WORDS_H
#define MEMORY_WORDS_H

#include "base/buf.h"
#include "base/error.h"

typedef struct words words;

/* The language when none is named. */
#define WORDS_LANGUAGE "english"

/* For one language, by its English name, as libstemmer lists them. INVALID: unknown; the
 * message lists those that are known. NOMEM. */
sessile_status words_open(words **out, const char *language, const allocator *a,
                          sessile_error *err);
void words_close(words *w); /* NULL is ignored */

/* Two of one fingerprint make the same terms of every text: the same language, rules,
 * stop words, and versions of the libraries. 0, or -1: no memory. */
int words_fingerprint(words *w, uint64_t *out);

enum {
    WORDS_QUESTION =
        1 /* of characters without spaces the pairs alone, where there is one */
};

/* Gets each term, in the order of the text; borrowed. Not 0 ends the walk. */
typedef int (*words_visit)(void *arg, const char *term, size_t size);

/*
 * Visits the terms of text, without the stop words of the language. If the text consists
 * of stop words alone, these are visited. Bytes that are not UTF-8 count as U+FFFD. 0, or
 * what the visitor returned, or -1: no memory.
 */
int words_each(words *w, const char *text, size_t size, unsigned flags, words_visit visit,
               void *arg);

/* The day of a time in UTC, in words: "8 May 2023". The month is named in the language,
 * if its months are known here, else in English. The text is valid UTF-8. */
#define WORDS_DAY_SIZE 48
void words_day(const words *w, int64_t time_ms, char out[WORDS_DAY_SIZE]);

#endif

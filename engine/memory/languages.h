/* languages.h: what is known of a language beside its stemmer. For words.c only. */
#ifndef MEMORY_LANGUAGES_H
#define MEMORY_LANGUAGES_H

typedef struct language {
    const char *name;
    const char *stops;  /* separated by spaces, folded, with their marks; NULL: none */
    const char *months; /* January to December, separated by spaces; NULL: English */
    int bare;           /* the stemmer knows no marks: they are taken off before it */
} language;

/* NULL: only its stemmer is known. */
const language *language_of(const char *name);

#endif

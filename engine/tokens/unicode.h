/* unicode.h: the class of each code point, as tokenizers distinguish them. */
#ifndef TOKENS_UNICODE_H
#define TOKENS_UNICODE_H

#include <stdint.h>

enum {
    UNICODE_NONE,    /* punctuation, symbols, controls, unassigned */
    UNICODE_UPPER,   /* Lu, Lt */
    UNICODE_LOWER,   /* Ll */
    UNICODE_LETTER,  /* Lm, Lo: without case */
    UNICODE_MARK,    /* M */
    UNICODE_NUMBER,  /* N */
    UNICODE_SPACE,   /* White_Space, but for the next two */
    UNICODE_NEWLINE, /* \r, \n */
    UNICODE_CLASSES
};

#define UNICODE_BLOCK  128
#define UNICODE_BLOCKS (0x110000 / UNICODE_BLOCK)

extern const char unicode_version[];                  /* "16.0.0" */
extern const uint8_t unicode_ascii[128];              /* 1 << class */
extern const uint8_t unicode_block[UNICODE_BLOCKS];   /* which row of the next */
extern const char unicode_class[][UNICODE_BLOCK + 1]; /* a digit a code point */

/* The class of a code point below 0x110000. */
static inline unsigned unicode_class_of(uint32_t point)
{
    return (unsigned char)unicode_class[unicode_block[point / UNICODE_BLOCK]]
                                       [point % UNICODE_BLOCK] &
           7u;
}

#endif

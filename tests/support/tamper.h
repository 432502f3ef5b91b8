/*
 * tamper.h: a log whose bytes are changed behind the engine's back, and the rule that
 * holds whatever was changed.
 */
#ifndef SUPPORT_TAMPER_H
#define SUPPORT_TAMPER_H

#include "support/logs.h"

/* A log of some writes, each synced, as it was left, and where its lines begin. */
typedef struct sample {
    kit k;
    char name[32];
    char path[600];
    char *bytes;
    size_t size;
    seen all;
    size_t last; /* where the last write begins; its first entry is entry `kept` */
    size_t kept;
    uint64_t lost;             /* entries of the damaged log that was looked at last */
    size_t *lines, line_count; /* starts; lines[line_count] is the end */
} sample;

/* Six writes of nine entries in all. */
void sample_open(sample *s, kit_mode mode, const char *name, size_t padding);
/* As many as make a log of at least that size in bytes. */
void sample_open_large(sample *s, kit_mode mode, const char *name, size_t padding,
                       size_t bytes);
void sample_close(sample *s);

typedef enum verdict { REFUSED, SET_ASIDE, WHOLE } verdict;

/*
 * Puts bytes in the log's place, opens it, and checks the rule: opening either says what
 * is wrong and changes no byte, or shows exactly what was written, lacking at most the
 * last write, and sets aside and reports the bytes that it does not show.
 */
verdict look(sample *s, const char *bytes, size_t size);
/* The same of the sample's bytes with `was` of them, from `at` on, replaced by a text. */
verdict look_edited(sample *s, size_t at, size_t was, const char *text, size_t size);
/* The same with one bit changed; the log's file must hold the sample's bytes, and holds
 * them again afterwards. */
verdict look_flipped(sample *s, size_t at, int bit);

/* A test of cmocka that runs over a sample in each mode of a file store from `first` on:
 * KIT_PLAIN, all; KIT_AES, the sealed ones. */
typedef struct sample_test {
    void (*run)(sample *s);
    kit_mode first;
    size_t padding;
} sample_test;
void in_each_mode(void **state);
#define SAMPLE_TEST(run, first, padding)               \
    {                                                  \
#run, in_each_mode, NULL, NULL, &(sample_test) \
        {                                              \
            run, first, padding                        \
        }                                              \
    }

#endif

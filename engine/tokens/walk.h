/*
 * walk.h: which parts of a message are sent to a model: its texts, one by one, and
 * what is around them.
 */
#ifndef TOKENS_WALK_H
#define TOKENS_WALK_H

#include "codec/message.h"

typedef enum walk_mark {
    WALK_CALL,   /* a call: names of fields, and an id that is some characters of noise */
    WALK_RESULT, /* a result, likewise */
    WALK_MEDIA   /* an image, sound or file */
} walk_mark;

/* What a provider adds around a message, when nothing is known of it. */
#define WALK_MESSAGE_OVERHEAD 4
/* Tokens of a mark. */
int walk_overhead(walk_mark mark);

typedef struct walk {
    void *arg;
    void (*text)(void *arg, json value); /* a string's inside, or JSON as it stands */
    void (*mark)(void *arg, walk_mark mark);
} walk;

/* Content (text, and text of blocks), calls (name and arguments), results; other fields
 * are nothing that a model is sent. */
void message_walk(const message *m, const walk *w);

#endif

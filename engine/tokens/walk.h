/* walk.h: which parts of a message are sent to a model: its texts, one by one, and what
 * is around them. */
#ifndef TOKENS_WALK_H
#define TOKENS_WALK_H

#include "codec/message.h"

typedef enum walk_mark {
    WALK_CALL,   /* a call: names of fields, and an id of some random characters */
    WALK_RESULT, /* the same for a result */
    WALK_MEDIA   /* an image, sound or file */
} walk_mark;

/* What a provider adds around a message, for an unknown provider. */
#define WALK_MESSAGE_OVERHEAD 4
/* Tokens of a mark. */
int walk_overhead(walk_mark mark);

typedef struct walk {
    void *arg;
    void (*text)(void *arg, json value); /* the inside of a string, or JSON as it is */
    void (*mark)(void *arg, walk_mark mark);
} walk;

/* Walks content (text, and text of blocks), calls (name and arguments) and results.
 * Other fields are not sent to a model. */
void message_walk(const message *m, const walk *w);

#endif

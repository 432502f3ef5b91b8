/*
 * screened.h: a store whose rules look for one word, CANARY: each text of these kinds
 * that has it is flagged, redacted or refused. It has a session of ann's with a message,
 * and a memory of hers.
 */
#ifndef SUPPORT_SCREENED_H
#define SUPPORT_SCREENED_H

#include "screen/write.h"
#include "sessile_guard.h"
#include "sessile_memory.h"
#include "support/sessions.h"

#define CANARY  "xCANARYx"
#define MESSAGE "{\"role\":\"user\",\"content\":\"a " CANARY "\"}"
#define OBJECT  "{\"a\":[\"a " CANARY "\"]}"
#define HELLO   "{\"role\":\"user\",\"content\":\"hello\"}"
#define K(kind) SESSILE_SCREEN_##kind

typedef struct screened {
    place place;
    sessile_store *store;
    sessile_session *s;
    sessile_memory *m;
    sessile_error err;
    const char *text; /* what the outcome says, of a case whose call is OK */
    char said[1000];
} screened;

/* The list of one screen that such a store has, for these kinds. */
sessile_screens *screened_list(unsigned kinds, sessile_screen_verdict action);
void screened_open(screened *w, unsigned kinds, sessile_screen_verdict action);
void screened_close(screened *w);
/* Files of the store that have the word. */
int screened_files(const screened *w);
/* Options of a session with the word in its title; an entry of a memory. */
sessile_session_options screened_titled(const char *id);
sessile_memory_write_entry screened_entry(const char *key, const char *value);

#endif

/*
 * writes.h: what each thread wrote to sessions, until the event of its call says so.
 *
 * A store whose guard keeps an audit has notes. Whoever writes to a session, or makes
 * one, first makes room for a note and then says what came of it; the door takes what the
 * thread has noted when its call ends. Notes of a thread that writes to the end of one
 * session are one note, so they do not grow with what is written.
 */
#ifndef SESSION_WRITES_H
#define SESSION_WRITES_H

#include "session/header.h"

typedef struct write_notes write_notes;

/* NULL: no memory. */
write_notes *write_notes_new(const allocator *a);
void write_notes_free(write_notes *n); /* NULL is ignored */

/* Before this thread writes to that session. n NULL: nothing is noted. After OK call
 * write_noted(). NOMEM. */
sessile_status write_note(write_notes *n, const session_names *names, sessile_error *err);
/* It wrote count entries, 0 or more. */
void write_noted(write_notes *n, sessile_id first, sessile_id count);

/* 1: this thread has written something that was not taken. */
int write_notes_any(write_notes *n);
/* Shows what this thread has written, oldest first, and forgets it. visit NULL: forgets
 * it. */
typedef void (*write_visit)(void *arg, const session_names *names, sessile_id first,
                            sessile_id last);
void write_notes_take(write_notes *n, write_visit visit, void *arg);

#endif

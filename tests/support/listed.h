/*
 * listed.h: lists of sessions for tests of the list cache: as text, beside the list that
 * opens every log, over a system that counts the logs that are opened, hides the list
 * cache when asked to, and can move the clock: a log counts as settled some seconds after
 * it was written.
 */
#ifndef SUPPORT_LISTED_H
#define SUPPORT_LISTED_H

#include "support/sessions.h"

extern os_table listed_os;
extern unsigned long listed_logs_opened; /* set to 0 before what is to be counted */
extern int listed_hidden;       /* the list cache cannot be opened, nor a file be made */
extern int listed_readonly;     /* no file can be made */
extern int64_t listed_ahead_ms; /* of lists: what was just written is settled */
extern int listed_in_a_list;    /* entries keep the real time */
extern const sessile_list_options listed_all;

/* A row as text, with the bytes of its torn end if they are wanted. */
void listed_put_row(buf *out, const sessile_listed *row, int with_torn);
/* A list as text: free(). */
char *listed_text(sessile_store *st, const sessile_list_options *o);
/* The list without a list cache: what every other one must be. */
char *listed_bare(sessile_store *st, const sessile_list_options *o);
/* A list, and the next one, are what a list without a list cache is. */
void assert_listed_right(sessile_store *st, const char *where);
/* How many logs a list opens. */
unsigned long listed_opened(sessile_store *st);

void listed_path(const place *p, const char *name, char out[600]);
char *listed_cache_read(const place *p, size_t *size); /* free() */
void listed_cache_write(const place *p, const void *data, size_t size);
/* The sessions "one", "two" and "three". */
void listed_make_three(const place *p);
/* Appends a message through another handle of the store. */
void listed_append(const place *p, const char *id);
/* Changes the byte at an offset of a file. */
void listed_spoil(const char *path, long offset);

/* Runs the tests in a sealed place and in a plain one, each kind as a group; how many
 * failed. */
struct CMUnitTest;
int listed_run(const struct CMUnitTest *tests, size_t count, const char *what);

#endif

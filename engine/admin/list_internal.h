/*
 * list_internal.h: shared by the files of a list.
 *
 *   list.c        gathers the logs; looks them up in the list cache; has the rest opened
 *   list_match.c  which logs are selected, and the newest N of them
 *   list_read.c   opens one log
 *   list_rows.c   sorts, and copies rows for the host
 */
#ifndef ADMIN_LIST_INTERNAL_H
#define ADMIN_LIST_INTERNAL_H

#include "admin/list_cache.h"
#include "guard/principal.h"
#include "session/fold.h"

enum { UNSEEN, KNOWN, OPENED };

/* A log's file. */
typedef struct list_place {
    size_t name; /* in the listing's names */
    size_t in;   /* its folder */
    sessile_backend_stat stat;
    size_t row; /* KNOWN: of the folder's list cache; OPENED: of the listing */
    uint8_t state;
    uint8_t has_stat; /* stat is set */
} list_place;

/* An agent's folder: its places are first and the count - 1 behind it. */
typedef struct listed_folder {
    char folder[NAME_SIZE];
    size_t first, count;
    size_t matched; /* rows of the list cache whose log is still there */
    size_t fresh;   /* logs that can be put in the list cache and are not in it */
    list_cache found;
} listed_folder;

/* What was found in a log. Text is in the listing's buffer. */
typedef struct list_opened {
    sessile_listed row; /* slices' data are not set yet; nor where it stands */
    size_t id, agent, user, title, message, labels;
    life_facts life;
    int keep; /* a list cache may have it */
} list_opened;

/* What a list is ordered by. */
typedef struct list_key {
    int64_t modified_ms;
    const char *folder, *name;
    size_t place;
} list_key;

typedef struct listing {
    store_core *store;
    const principal *who; /* sees the rows; NULL: everybody */
    const sessile_list_options *options;
    int64_t now_ms; /* before anything was looked at */
    buf names, text;
    listed_folder *folders;
    size_t folder_count, folder_capacity;
    list_place *places;
    size_t count, capacity;
    list_opened *rows;
    size_t row_count, row_capacity;
    list_key *keys; /* what will be in the list; a heap, oldest first, when it is full */
    size_t key_count, key_capacity;
    size_t want; /* that many at most */
    buf label;   /* that is asked for, as JSON */
    sessile_status status;
} listing;

static inline const char *listing_name(const listing *l, const list_place *p)
{
    return l->names.data + p->name;
}

static inline const char *listing_folder(const listing *l, const list_place *p)
{
    return l->folders[p->in].folder;
}

/* Text of an opened row: its size and where it is in the listing's buffer. */
static inline sessile_slice listing_text(const listing *l, sessile_slice size, size_t at)
{
    return (sessile_slice){size.size ? l->text.data + at : "", size.size};
}

/* ---- list_match.c */

/* What is asked of a log. */
typedef struct list_asked {
    sessile_slice id, agent, user, title, labels;
    int64_t modified_ms;
    const life_facts *life; /* NULL: only its id is known */
} list_asked;

/* Compares two keys for qsort(): newest first; of one time, by file, so that a list is
 * the same twice. */
int list_newer(const void *left, const void *right);
int list_same(sessile_slice a, sessile_slice b);
list_key listing_key(const listing *l, size_t place_, int64_t modified_ms);
/* Puts a log on the list, unless the list is full of newer ones. 0, or -1: no memory. */
int listing_offer(listing *l, size_t place_, int64_t modified_ms);
int listing_wanted(const listing *l, const list_asked *a);

/* ---- list_read.c */

/* Opens the log of a place and, if it is wanted, puts it on the list. NOMEM is the only
 * error: a log that cannot be opened has a row with its status. */
sessile_status listing_open_log(listing *l, size_t at);

/* ---- list_rows.c */

/* Brings the keys, newest first, into the order that is asked for. 0, or -1: no memory.
 */
int listing_sort(listing *l);
/* Copies the rows that are asked for into one block for the host. */
sessile_status listing_give(listing *l, sessile_listed **out, size_t *count,
                            sessile_error *err);

#endif

/*
 * watch.h: sessions that are watched, and the calls that watch them.
 *
 *   watched    a session, open once however many watch it
 *   follower   a call of StreamSessionEvents
 *   track      a session of a follower: how far its entries were sent
 *
 * Nothing waits on a thread. A track is due when its session may have entries that were
 * not sent; sessions with tracks that are due are given to workers, a few at a time.
 * watch.c decides what is due; watch_table.c has the sessions by their names; watch_ask.c
 * asks the store what others have written; watch_send.c reads entries and sends them.
 *
 * The mutex is held for the tables and states, never while a session is opened, read or
 * closed.
 */
#ifndef SERVICE_WATCH_H
#define SERVICE_WATCH_H

#include "service/server.h"

enum { WATCHED_MOST = 100000 }; /* sessions that a server watches */

typedef struct watched watched;
typedef struct track track;
typedef struct follower follower;

typedef enum track_state {
    TRACK_IDLE,  /* all was sent that is known */
    TRACK_DUE,   /* in the queue of its session */
    TRACK_BUSY,  /* a worker sends */
    TRACK_PAUSED /* too much is on its way: it goes on when that was taken */
} track_state;

/* What a worker found. */
typedef enum track_result {
    TRACK_CAUGHT_UP,
    TRACK_MORE, /* there is more to send */
    TRACK_FULL, /* and too much is on its way */
    TRACK_GONE, /* the session was removed */
    TRACK_FAILED
} track_result;

struct track {
    track *newer, *older; /* of its session */
    track *due;           /* the next in its session's queue */
    track *paused;        /* the next of its follower that is paused */
    watched *of;          /* NULL: it ended */
    follower *by;
    track_state state;
    int again; /* it became due while a worker sent */
    /* of the worker that sends */
    uint64_t lane;                    /* of its session's calls */
    const Sessile__V1__Session *said; /* how its events name the session */
    sessile_session *session;         /* the handle of who calls; NULL: not yet open */
    sessile_id next;                  /* to send; SESSILE_NO_ID: what is not there yet */
    int doubt;                        /* the session may have been removed */
    int told;                         /* that all before `next` was sent */
};

struct follower {
    call *call;
    uint64_t share;        /* of shares_give() */
    size_t size;           /* of this block */
    size_t count;          /* of tracks */
    size_t left;           /* of them, those that did not end */
    size_t there;          /* of them, those whose session was not removed */
    int ended;             /* it is sent nothing more */
    int single;            /* it asked for one session by its name */
    sessile_status status; /* how its call ends */
    sessile_error err;
    track *paused;
    track tracks[];
};

struct watched {
    job job;
    watch *watch;
    watched *same;  /* in the table */
    watched *ready; /* in the list of those that wait for a worker */
    uint64_t key;
    size_t size; /* of this block */
    sessile_session_options names;
    kept *kept;    /* NULL: not open yet */
    track *newest; /* of its tracks */
    track *first_due, *last_due;
    sessile_id end; /* as many entries are known to be there */
    unsigned pins;  /* it must stay: the store is being asked about it */
    int doubted;    /* another server says that it has written */
    int queued;     /* it waits for a worker, or has one */
    int listed;     /* it is in the table */
};

enum { WATCH_TABLE = 16384 };

struct watch {
    service *server;
    pthread_mutex_t mutex; /* all that follows */
    pthread_cond_t wake;   /* of the thread */
    watched *table[WATCH_TABLE];
    size_t count;
    watched *first, *last; /* wait for a worker */
    int working, most;     /* have one; at most */
    int doubted;           /* the store is to be asked about some at once */
    int draining, ending, started;
    pthread_t thread;
};

/* ---------------------------------------------------------------------- watch.c */

/* NOMEM. */
sessile_status watch_open(watch **out, service *s, sessile_error *err);
/* A call on a session ended: those who watch it are sent what is new. */
void watch_poke(watch *w, sessile_session *session);
/* Ends every stream: the clients go on at another server. New ones are refused. */
void watch_drain(watch *w);
/* The workers and the loops have ended before. */
void watch_close(watch *w);
/* Sessions that are watched. */
size_t watch_count(watch *w);

/* Begins to send to a follower whose names and cursors are filled in. BUSY: the server
 * ends. LIMIT: too many sessions are watched. NOMEM. On failure the follower is the
 * caller's, and nothing was begun. */
sessile_status watch_begin(watch *w, follower *f, const sessile_session_options *names,
                           sessile_error *err);
/* What a call that watches is told. */
extern const call_stream watch_stream;
/* Gives a session to the workers, under the mutex. */
void watch_queue(watch *w, watched *one);
/* Its tracks are due, under the mutex: it has grown, or it was removed. */
void watch_wake(watch *w, watched *one);

/* ---------------------------------------------------------------------- watch_table.c */

/* All under the mutex. By names as a request has them; what it leaves out, the store
 * knows. NULL: it is not watched. */
watched *watched_find(watch *w, const sessile_session_options *names);
/* The first one that is open and is the session of these names, which are whole; and the
 * next one behind `one`, as a session can be there under several names. */
watched *watched_first(watch *w, const sessile_session_options *names);
watched *watched_next(watched *one, const sessile_session_options *names);
/* Enters it in the table. lane: of its session's calls; run: its job. NULL: no memory. */
watched *watched_new(watch *w, const sessile_session_options *names, uint64_t lane,
                     void (*run)(job *j));
/* Takes it out of the table, if it is there. */
void watched_leave(watch *w, watched *one);

/* ---------------------------------------------------------------------- watch_ask.c */

/* Starts the thread that asks the store. IO, NOMEM: it cannot be started. */
sessile_status watch_start(watch *w, sessile_error *err);
/* Another server says that it has written to a session: the store is asked whether it
 * has. Nothing happens if nobody watches it. */
void watch_look(watch *w, const sessile_session_options *names);
/* Ends the thread; it gives the workers nothing more. */
void watch_stop(watch *w);

/* ---------------------------------------------------------------------- watch_send.c */

/* Opens a track's session when it is not yet, and sends entries of it: a piece. w is not
 * locked. *end: how many entries there are, unless it failed. */
track_result track_serve(watch *w, track *t, sessile_id *end, sessile_error *err);
/* Says once that a track's session is open, and stays so (watch.c). */
void watch_opened(watch *w, watched *one, kept *k);

#endif

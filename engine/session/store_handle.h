/* store_handle.h: what store_core is: a backend, its keyring, and the defaults. */
#ifndef SESSION_STORE_HANDLE_H
#define SESSION_STORE_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/os.h"
#include "session/config.h"
#include "store/store.h"
#include "tokens/counters.h"
#include "vault/vault.h"

/* A log that is about to be removed for good, or to lose entries. */
typedef struct store_removal {
    const char *folder, *name;
    const char *secret; /* keyring_user_name() of whose it is; "": see user */
    sessile_slice user; /* where users have no secrets */
} store_removal;
/* What must not be removed (guard/hold.c). */
typedef struct store_holds {
    /* DENIED: a hold is in force. Other errors: that is not known. */
    sessile_status (*check)(struct store_holds *h, const store_removal *what,
                            sessile_error *err);
    void (*free)(struct store_holds *h);
} store_holds;

struct store_core {
    allocator alloc;
    const os_table *os;
    store backend;
    keyring *keys;
    char *url;         /* where it was opened, with its password; NULL: at no URL */
    char *agent;       /* default agent, NUL-terminated */
    char *policy_path; /* or NULL */
    char *model;       /* of every session, or NULL */
    counters *counters;
    char *worker;          /* the program that runs isolated policies */
    sessile_limits limits; /* every field set */
    sessile_durability durability;
    int64_t ttl_ms;
    struct write_rules *rules; /* counted: of screen/write.h; NULL: none */
    int over_records;          /* the host keeps the records of its sessions */
    store_holds *holds;        /* NULL: there are none */
    struct write_notes *notes; /* of writes.h; NULL: nobody asks what is written */
    atomic_int consent;      /* 1: what users have not consented to is not found either */
    sessile_config config;   /* with the defaults; without policies */
    pthread_mutex_t mutex;   /* guards what follows */
    sessile_config policies; /* its policy and fallback, and nothing else */
    uint64_t records_opened;
    unsigned char uuid_last[16];
    uint64_t *forgotten; /* hash64 of users forgotten through this handle */
    size_t forgotten_capacity;
    _Atomic size_t forgotten_count; /* read without the mutex */
};

sessile_status store_handle_open(store_core **out, const char *url,
                                 const sessile_store_options *options,
                                 sessile_error *err);
/* The same over a backend of the host's, which is taken over also on failure. */
sessile_status store_handle_open_with(store_core **out, const sessile_backend *backend,
                                      void *self, const sessile_store_options *options,
                                      sessile_error *err);
/* A volatile one, whose sessions are opened over records. */
sessile_status store_handle_open_records(store_core **out,
                                         const sessile_store_options *options,
                                         sessile_error *err);
/* As store_handle_open(), but EXISTS when the store has its keyring already. */
sessile_status store_handle_make(store_core **out, const char *url,
                                 const sessile_store_options *options,
                                 sessile_error *err);
/* The backend alone, found by url or (NULL) the host's, which is taken over also on
 * failure. It has no keyring: nothing but the backend may be used until keys is set. */
sessile_status store_handle_open_bare(store_core **out, const char *url,
                                      const sessile_backend *backend, void *self,
                                      const sessile_store_options *options,
                                      sessile_error *err);
void store_handle_close(store_core *s);

/* sessile_store_clock(). */
sessile_status store_handle_clock(store_core *s, int64_t *ahead_ms, int64_t *within_ms,
                                  sessile_error *err);

/* 1 when that user was forgotten through this handle after the first `since` were. */
int store_handle_forgot(store_core *s, sessile_slice user, size_t since);

/* DENIED when a hold keeps a log from being removed. Whoever removes what a person or a
 * policy wrote asks here first. */
sessile_status store_check_removal(store_core *s, const store_removal *what,
                                   sessile_error *err);

/* A new id into out, by version. */
void store_handle_uuid(store_core *s, int v4, char out[37]);

#endif

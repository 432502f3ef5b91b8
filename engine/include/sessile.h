/*
 * sessile.h: the whole interface of libsessile for hosts.
 *
 * sessile stores conversations of agents in durable, encrypted, append-only logs. Lua
 * policies decide after every turn what the model sees next. The library starts no
 * threads, prints nothing, never ends the process, and has no global state: two stores in
 * one process are independent of each other.
 *
 * Rules for every function
 *   - A function that can fail returns a sessile_status. It first sets its outputs to
 *     NULL or zero. On failure it fills the caller's sessile_error, which may be NULL.
 *   - A NULL pointer that the function needs, or a slice with a size and no data, is
 *     INVALID.
 *   - The caller owns what an output pointer returns and releases it with sessile_free(),
 *     unless the comment says "borrowed".
 *   - Sizes are in bytes, times in milliseconds since 1970-01-01T00:00Z. Text is UTF-8
 *     JSON where the comment says JSON, otherwise bytes. Returned text ends with a NUL
 *     that its size does not include.
 *   - Many threads may use a store or a session at the same time. Only one thread at a
 *     time may use a run, an iterator, a state, or another handle that is stepped.
 *   - Close sessions before their store. Free runs before their session.
 *
 * The header is valid C99 and C++98. It is one long file because it is the reference: a
 * host includes it alone, and a reader finds everything by searching it.
 */
#ifndef SESSILE_H
#define SESSILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(SESSILE_BUILD) && defined(__GNUC__)
#define SESSILE_API __attribute__((visibility("default")))
#else
#define SESSILE_API
#endif

#define SESSILE_VERSION "0.1.0"

/* ------------------------------------------------------------------ status and errors */

/*
 * The result of a call. No other values are returned. Lua and the command line use the
 * same names with an E in front (ENOTFOUND).
 */
typedef enum sessile_status {
    SESSILE_OK = 0,    /* done */
    SESSILE_NEEDS,     /* a run waits for an answer: see sessile_need */
    SESSILE_INVALID,   /* the argument or text is not what the call takes: correct it */
    SESSILE_NOTFOUND,  /* no such session, entry or policy: list what there is */
    SESSILE_EXISTS,    /* the name is taken: resume it, or choose another */
    SESSILE_CONFLICT,  /* the session was changed since it was read: read again, retry */
    SESSILE_BUSY,      /* another writer holds the lock, or a server does not answer: wait
                          longer, or retry; nothing was changed */
    SESSILE_DAMAGED,   /* stored bytes are not what was written: nothing was changed */
    SESSILE_TRUNCATED, /* the log is shorter than what is known to have been written */
    SESSILE_SEALED,    /* wrong or missing key, or a plain log in a sealed store */
    SESSILE_DENIED,    /* permissions, ownership, or a policy file that is not trusted */
    SESSILE_LIMIT,  /* a limit of size, depth or number, whose key the message names, or
                       of how often something may be done: see retry_ms */
    SESSILE_POLICY, /* a policy failed or broke a law; the turn stands */
    SESSILE_IO,    /* a system call or a server failed; the message says so if a write may
                      have taken place: open the store again and look */
    SESSILE_FULL,  /* no space left on the device */
    SESSILE_NOMEM, /* the allocator returned NULL; nothing was changed */
    SESSILE_UNSUPPORTED, /* this build, machine or store cannot do that */
    SESSILE_FORKED,      /* the handle was opened in another process */
    SESSILE_SUSPENDED,   /* the host suspended this session: resume or cancel it first */
    SESSILE_CANCELLED,   /* ended by another thread */
    SESSILE_CLOSED       /* the handle was closed */
} sessile_status;

/* An error: its kind, and one sentence that says what is wrong and what to do. */
typedef struct sessile_error {
    sessile_status code;
    char message[432]; /* NUL-terminated; empty when code is SESSILE_OK */
    int64_t retry_ms;  /* of LIMIT, where calls are counted: in how many milliseconds the
                          same call can succeed; 0: unknown, or another error */
    char rule[64];     /* of LIMIT and DENIED: the rule of a guard that refused, as
                          "session_creation"; or empty */
} sessile_error;

/* The name of a status without prefix, as "NOTFOUND". Static; never NULL. */
SESSILE_API const char *sessile_status_name(sessile_status status);

/* The library's version, as "0.1.0". Static. */
SESSILE_API const char *sessile_version(void);

/* ------------------------------------------------------------------ memory and text */

/*
 * An allocator with the contract of Lua's. nsize 0 frees ptr. Otherwise it resizes ptr to
 * nsize bytes (NULL: allocates them), or returns NULL and leaves ptr unchanged. osize is
 * the size that the engine last requested for ptr. Several threads may call it at the
 * same time. It must not call sessile.
 */
typedef void *(*sessile_alloc)(void *ud, void *ptr, size_t osize, size_t nsize);

/* Releases what a call returned. NULL is ignored. */
SESSILE_API void sessile_free(void *ptr);

/* Borrowed bytes. data may be NULL when size is 0. */
typedef struct sessile_slice {
    const char *data;
    size_t size;
} sessile_slice;

/* A slice over a NUL-terminated string (NULL: empty). Borrows text. */
SESSILE_API sessile_slice sessile_text(const char *text);

/* An entry's position in its log; printed as 8 lower-case hex digits. 0 is the header. */
typedef uint32_t sessile_id;
#define SESSILE_NO_ID UINT32_C(0xffffffff)

/*
 * The name of one message of a context: an entry (n = 0), or the n-th message that a
 * compaction wrote (n >= 1), printed "00000016.1". While a proposal is being made, the
 * messages it writes have the entry SESSILE_NO_ID ("ffffffff.1").
 */
typedef struct sessile_key {
    sessile_id entry;
    uint32_t n;
} sessile_key;

/* Writes the printed form of a key and a NUL, at most SESSILE_KEY_SIZE bytes. */
#define SESSILE_KEY_SIZE 24
SESSILE_API void sessile_key_print(sessile_key key, char out[SESSILE_KEY_SIZE]);

/* Reads a printed id or key of exactly size bytes; INVALID when it is neither. */
SESSILE_API sessile_status sessile_key_parse(sessile_slice text, sessile_key *out);

/* ------------------------------------------------------------------ encodings */

/*
 * An encoding counts the tokens of a text exactly as the models that use it do. It needs
 * no store and no session. An open encoding never changes: any number of threads may use
 * one handle at the same time, until one of them closes it.
 *
 * The functions treat special tokens ("<|endoftext|>") in a text as ordinary text. A text
 * need not be UTF-8: invalid bytes count as U+FFFD, which a decoder would put there.
 */
typedef struct sessile_encoding sessile_encoding;

typedef struct sessile_encoding_options {
    const char *folders; /* folders to look for NAME.bpe in, separated by ':'; NULL: where
                            the library was installed */
    const char *pattern; /* of a .tiktoken file: a regular expression, or the name of an
                            encoding with the same; NULL: it is a published vocabulary */
    sessile_alloc alloc; /* NULL: malloc */
    void *alloc_ud;
} sessile_encoding_options;
SESSILE_API void sessile_encoding_options_init(sessile_encoding_options *options);

/*
 * Opens an encoding by name, "cl100k_base" or "o200k_base", or, when the name has a '/',
 * by the path of a file: a .tiktoken file, a tokenizer.json whose model is a byte-level
 * BPE, or a .bpe file made by the build. A .bpe file is mapped into memory: replace it by
 * renaming another one over it, never write into it. options may be NULL. Close *out with
 * sessile_encoding_close(). *out is NULL on failure.
 *
 * NOTFOUND: no such name or file. DENIED, IO: the file cannot be read. INVALID: it is not
 * what its name says, and where; or its pattern must be given. UNSUPPORTED: a
 * tokenizer.json that could not be followed exactly, and what is in the way. LIMIT: over
 * 256 MiB, or a number in it is beyond what is kept. NOMEM.
 */
SESSILE_API sessile_status sessile_encoding_open(sessile_encoding **out, const char *name,
                                                 const sessile_encoding_options *options,
                                                 sessile_error *err);
/* NULL is ignored. */
SESSILE_API void sessile_encoding_close(sessile_encoding *encoding);

/* "cl100k_base", or the name of the file without its extension. Borrowed from the
 * encoding. */
SESSILE_API const char *sessile_encoding_name(const sessile_encoding *encoding);

/* Counts the tokens of a text, in time proportional to its size. LIMIT: the text is
 * larger than 2 GiB, or the file's own pattern has too many ways to match it. NOMEM. */
SESSILE_API sessile_status sessile_encoding_count(const sessile_encoding *encoding,
                                                  sessile_slice text, int64_t *tokens,
                                                  sessile_error *err);
/* Returns the ids of a text's tokens, an array for sessile_free() even when it is empty.
 * Errors: as for sessile_encoding_count(). */
SESSILE_API sessile_status sessile_encoding_encode(const sessile_encoding *encoding,
                                                   sessile_slice text, uint32_t **ids,
                                                   size_t *count, sessile_error *err);
/* Returns the bytes that tokens encode, special tokens by their names, for
 * sessile_free(). A NUL follows them. They are UTF-8 if the ids are those of a whole
 * text. INVALID: an id is not a token. NOMEM. */
SESSILE_API sessile_status sessile_encoding_decode(const sessile_encoding *encoding,
                                                   const uint32_t *ids, size_t count,
                                                   char **text, size_t *size,
                                                   sessile_error *err);

/* ------------------------------------------------------------------ stores */

typedef struct sessile_store sessile_store;
typedef struct sessile_session sessile_session;
typedef struct sessile_policy sessile_policy;
typedef struct sessile_run sessile_run;
typedef struct sessile_state sessile_state;
typedef struct sessile_entries sessile_entries;

/* Where the secret that opens a sealed store comes from. */
typedef enum sessile_key_source {
    SESSILE_KEY_DEFAULT = 0, /* $SESSILE_KEY, else the key file of this user; made once */
    SESSILE_KEY_PLAIN,       /* no sealing: opens plain stores only */
    SESSILE_KEY_ENV,         /* the environment variable named by `key` */
    SESSILE_KEY_FILE,        /* the file at path `key`, mode 0600 or stricter, ours */
    SESSILE_KEY_SECRET       /* `key` itself is the secret */
} sessile_key_source;

typedef enum sessile_durability {
    SESSILE_SYNC = 0, /* a write is synced to the device before its call returns */
    SESSILE_NONE /* synced at close and by sessile_session_sync(). A power cut may lose
                    later writes. Damage among lines after the last sync can look like a
                    torn end: it is set aside and reported */
} sessile_durability;

/* Where policy files run. */
typedef enum sessile_isolation {
    SESSILE_ISOLATION_DEFAULT = 0, /* inherited: see sessile_config */
    SESSILE_IN_PROCESS,            /* in a Lua state of their own inside the library */
    SESSILE_WORKER /* in a separate process for each session. It has no keys, no files and
                      few system calls, and is killed when it exceeds its time. A policy
                      behaves the same in both */
} sessile_isolation;

/* Limits; 0 means the default. A LIMIT error names the limit in [brackets].
 * sessile_limit_at() tells the defaults and bounds. */
typedef struct sessile_limits {
    uint64_t message;            /* bytes of one message */
    uint64_t session;            /* bytes of one log */
    uint32_t depth;              /* nesting of JSON */
    uint32_t id;                 /* bytes of a session id, agent or user */
    uint32_t title;              /* bytes of a title */
    uint64_t policy_gas;         /* instructions of one pipeline */
    uint32_t policy_ms;          /* CPU time of one pipeline */
    uint64_t policy_memory;      /* bytes of a policy's Lua state */
    uint64_t policy_result;      /* bytes a proposal may write */
    uint64_t sessions_per_agent; /* sessions of one agent, of all its users, softly
                                    deleted ones included; by default any number. See
                                    sessile_create() */
    /* Of a long-term memory, see sessile_memory.h: */
    uint32_t memory_value;   /* bytes of a value, or of also */
    uint32_t memory_key;     /* bytes of a key */
    uint64_t memory_entries; /* entries of one memory, whatever their state */
    uint32_t memory_dims;    /* dimensions of a vector */
} sessile_limits;

typedef enum sessile_limit_unit {
    SESSILE_UNIT_COUNT = 0,
    SESSILE_UNIT_BYTES,
    SESSILE_UNIT_MS
} sessile_limit_unit;

/* What there is to know about one limit. */
typedef struct sessile_limit {
    const char *name; /* of the member, as "message" */
    sessile_limit_unit unit;
    uint64_t standard;    /* the default; 0: no limit */
    uint64_t least, most; /* bounds; 0 always means the default */
    const char *help;     /* a few words */
} sessile_limit;

/* The limit with this index from 0; NULL behind the last. Static. */
SESSILE_API const sessile_limit *sessile_limit_at(size_t index);

/* Sets a limit by its name. NOTFOUND: no such limit; LIMIT: its member has no room for
 * the value. sessile_open() checks the bounds. */
SESSILE_API sessile_status sessile_limits_set(sessile_limits *limits, const char *name,
                                              uint64_t value, sessile_error *err);

/*
 * When policies run their `compact` hook without should_compact being asked. The engine
 * has no timers: it checks all triggers at the end of a turn, after merge, summarize and
 * truncate. If several fire, there is one compaction, and its reason is the first of
 * EVENT, OVERFLOW, THRESHOLD (share, messages), TIMER (interval). If none fires, the
 * engine asks each policy's should_compact.
 *
 * "The last compaction" below is the newest one on the path that a `compact` hook, a
 * person or the host made; what merge, summarize and truncate wrote does not count.
 * Messages and the interval fire at multiples: a compaction that was refused or changed
 * nothing is tried again after the same number of messages or the same time. If the
 * context stays large after share or overflow fired, they fire again when it has grown by
 * a twentieth of window - reserve, or when the window has changed.
 */
typedef struct sessile_triggers {
    uint64_t messages; /* after this number of messages since the last compaction or the
                          start, appended ones included; 0: never */
    uint64_t interval_ms; /* after this time since then, by the turn's time; 0: never */
    unsigned share;       /* parts per thousand of window - reserve in use: 800; 0: never;
                             without a window: never */
    int overflow; /* the context does not fit window - reserve: one compaction of every
                     policy that has one, after those that run for another reason */
    const char *const *events; /* names: fires when a turn is given one of them */
    size_t event_count;
} sessile_triggers;

/*
 * When turns make checkpoints by themselves, and how many are kept. Messages and the
 * interval count from the newest checkpoint on the path; share fires when it is passed;
 * overflow is not looked at.
 */
typedef struct sessile_checkpoint_rules {
    const sessile_triggers *triggers; /* NULL: inherited */
    uint32_t keep;                    /* greatest number kept; 0: inherited */
} sessile_checkpoint_rules;

/*
 * What can be configured for a store, for the handle of a session, and for a single run.
 * A zeroed member is inherited: a run inherits from its session, a session from its
 * store, and a store has the defaults given below. A fork, a child and a copy also
 * inherit what the session that they are made of was given; in another store, without its
 * policies and its isolation.
 *
 * Triggers are copied, and replace the inherited ones as a whole. Zeroed triggers turn
 * automatic compaction off: after a turn no hook of a policy runs, as with
 * sessile_run_options.no_policy; compact, plan and branch still run policies. Policies
 * are retained.
 */
typedef struct sessile_config {
    sessile_policy *policy;   /* default: none. A policy is loaded with an open store, so
                                 that of a store is usually set afterwards: see
                                 sessile_store_set_policy() */
    sessile_policy *fallback; /* runs in place of a policy that was refused: see
                                 sessile_outcome.fallback; default: the one that the
                                 policy's file names, if any */
    const sessile_triggers *triggers;    /* default: none, so that policies decide */
    sessile_checkpoint_rules checkpoint; /* default: no triggers, 50 kept */
    int64_t window;  /* the model's window in tokens; default: unlimited */
    int64_t reserve; /* tokens of the window kept free; default: none. INVALID: it leaves
                        nothing of the window, given or inherited. It need not include
                        what is sent beside the messages (a system prompt that is not an
                        entry, tools): after a few reports of usage the engine estimates
                        that, and subtracts it from the window too, up to half of what is
                        left */
    uint32_t keep_min; /* number of newest messages that every proposal keeps, or replaces
                          one for one; default: 2. Fewer if they alone do not fit. A
                          proposal that keeps fewer is refused (law 7) */
    int has_timeout;   /* 0: timeout_ms is inherited */
    int timeout_ms;    /* longest wait of a call for other writers: 0: none; -1: for ever;
                          default: 5000. See sessile_session_set_timeout() */
    sessile_isolation isolation; /* default: IN_PROCESS */
} sessile_config;

/*
 * A function of the host that counts the tokens of a text, which need not be UTF-8. If it
 * returns a negative number, the engine estimates the text. The engine calls it when no
 * encoding is known, to count a message that is written or tokens that are asked for. It
 * may block. It is called from any thread that calls the engine, and must not call the
 * engine.
 */
typedef int64_t (*sessile_count_function)(void *ud, const char *text, size_t size);

/* Call sessile_store_options_init() first; then set what differs. All text is borrowed
 * for the duration of sessile_open() only. */
typedef struct sessile_store_options {
    sessile_config config; /* of every session, where it has no other */
    const char *agent;     /* default agent of sessions: "main" */
    sessile_key_source key_source;
    const char *key;   /* see sessile_key_source */
    const char *suite; /* NULL, "aes-256-gcm", "xchacha20-poly1305": of a new
                          keyring; NULL picks AES where the CPU has it */
    sessile_durability durability;
    int allow_network; /* 1: also write on a network file system (NFS, SMB, 9P, sshfs …),
                          whose locks and syncs may not hold: only safe if one machine
                          alone writes there. Reading is always allowed. */
    const char *model; /* the model's name, whose tokens are counted; NULL: the one that
                          a session's log names last (sessile_run_options.model, or the
                          setting "model") */
    const char *encoding; /* in what tokens are counted: "o200k_base", "cl100k_base", or a
                             path with a '/' of a .tiktoken or tokenizer.json; NULL: the
                             model's, if it is published. Opened at first use. If it
                             cannot be opened, the next method counts, and is named as
                             the source: see sessile_tokens */
    const char *encoding_path;    /* folders to look for encodings in, separated by ':';
                                     NULL:    where the library was installed */
    sessile_count_function count; /* the host's counter, or NULL */
    void *count_ud;
    int64_t ttl_ms;          /* of new sessions that name none; 0: they do not expire */
    const char *policy_path; /* folders to look for policies in, ':' between; NULL */
    const char *worker; /* for WORKER, and for policy files that others may write: the
                           program; NULL: sessile-worker as installed */
    const char *remote; /* for grpcs:// and grpc://: the library; NULL:
                           libsessile-remote.so as installed */
    sessile_limits limits;
    sessile_alloc alloc; /* NULL: malloc */
    void *alloc_ud;
} sessile_store_options;

SESSILE_API void sessile_store_options_init(sessile_store_options *options);

/* What follows the scheme of a store's URL. */
typedef enum sessile_store_place {
    SESSILE_PLACE_FOLDER = 0, /* the path of a folder on this machine */
    SESSILE_PLACE_FILE,       /* the path of a file on this machine */
    SESSILE_PLACE_SERVER,     /* a server's address */
    SESSILE_PLACE_MEMORY      /* nothing: it lives in this process */
} sessile_store_place;

/* A scheme of store URLs. */
typedef struct sessile_store_scheme {
    const char *scheme; /* "sqlite" */
    sessile_store_place place;
    const char *form; /* how a URL is written, "sqlite:FILE"; NULL: as another one's */
    const char *help; /* a few words */
} sessile_store_scheme;

/* The scheme with this index from 0; NULL behind the last. Static. */
SESSILE_API const sessile_store_scheme *sessile_store_scheme_at(size_t index);

/* The scheme of a store's URL; that of "file:" for a plain path. NULL: sessile_open()
 * would refuse the URL. *path (may be NULL) is set to the path in url, or to NULL when it
 * has none; a plain path is the whole of url. */
SESSILE_API const sessile_store_scheme *sessile_store_scheme_of(const char *url,
                                                                const char **path);

/*
 * Opens the store at url: a path or "file:PATH" (made 0700 when missing), "sqlite:PATH"
 * (a database of SQLite, made 0600 when something is first kept in it),
 * "postgres://USER:PASSWORD@HOST:PORT/DATABASE?…" or "postgresql://…" (a database of
 * PostgreSQL, by libpq, which is looked for then; its schema is made when something is
 * first kept), or "ram:" (a volatile store that lives in this handle; never sealed).
 * options NULL: the defaults. Errors: SEALED (wrong, missing or unexpected key), DENIED
 * (owner or mode of the folder, database or key file; the server's user, password or
 * rights), UNSUPPORTED (scheme; no libpq here; a new store on a network file system; a
 * schema that is newer than this engine), INVALID (also: what is at PATH is another
 * program's; a URL that cannot be read), DAMAGED (the database), LIMIT [depth], BUSY, IO
 * (also: no server answers), NOMEM. Nothing is made on SEALED. No message holds a
 * password.
 */
SESSILE_API sessile_status sessile_open(sessile_store **out, const char *url,
                                        const sessile_store_options *options,
                                        sessile_error *err);

/* Closes the store. NULL is ignored. Its sessions must have been closed. */
SESSILE_API void sessile_store_close(sessile_store *store);

/* Returns 1 if logs of this store are sealed, 0 if they are plain. */
SESSILE_API int sessile_store_sealed(const sessile_store *store);

/*
 * Compares this machine's clock with that of the store's server. *ahead_ms: by how much
 * this machine's is ahead (below 0: behind). It is exact to half the time that the
 * question took, *within_ms (may be NULL). Expiry, retention and the order of a list go
 * by the times of entries, which are those of the machines that wrote them: a difference
 * of more than a minute should be mended (NTP). 0 where the store has no clock but this
 * machine's: files, SQLite, memory. BUSY, IO.
 */
SESSILE_API sessile_status sessile_store_clock(sessile_store *store, int64_t *ahead_ms,
                                               int64_t *within_ms, sessile_error *err);

/* Sets the policy of every session that has none of its own. Takes a reference of its
 * own; NULL: none. */
SESSILE_API void sessile_store_set_policy(sessile_store *store, sessile_policy *policy);

/* Sets the policy that runs instead when a policy was refused, for every session that has
 * no fallback of its own: see sessile_outcome.fallback. Takes a reference of its own;
 * NULL: none.
 */
SESSILE_API void sessile_store_set_fallback(sessile_store *store,
                                            sessile_policy *fallback);

/*
 * Where a session stands. Expired: its ttl has passed since its newest entry; it can be
 * used as before, which revives it, until somebody purges it. Deleted: softly; hidden
 * from lists and from resume until it is undeleted or purged.
 */
typedef enum sessile_life {
    SESSILE_LIFE_ACTIVE = 0,
    SESSILE_LIFE_SUSPENDED, /* the host suspended it */
    SESSILE_LIFE_ARCHIVED,
    SESSILE_LIFE_EXPIRED,
    SESSILE_LIFE_DELETED
} sessile_life;
/* "active", … Static. */
SESSILE_API const char *sessile_life_name(sessile_life life);

/* One row of sessile_list(). Text is borrowed from the list. */
typedef struct sessile_listed {
    sessile_slice id, agent, user, title;
    int64_t created_ms, modified_ms; /* see sessile_session_created(), …_modified() */
    uint64_t entries, messages, bytes;
    uint64_t torn;         /* bytes of a torn end that this list set aside when it opened
                              the log; 0: none */
    sessile_status status; /* OK. DAMAGED or TRUNCATED with `entries` set: the session can
                              be read but not written. Anything else: why the log could
                              not be opened; then only bytes, modified_ms (that of the
                              file) and, if known, id and agent are set */
    const char *message;   /* the message of the error, or "" */
    sessile_life life;     /* if status is OK: its state at the time of the call */
    int64_t ttl_ms, expires_ms, deleted_ms; /* 0: none */
    sessile_slice labels; /* JSON array of the names of its labels, each once, without
                             "pinned" */
} sessile_listed;

/* The order of a list. Times and sizes: newest or largest first. Titles: ascending. */
typedef enum sessile_sort {
    SESSILE_SORT_MODIFIED = 0,
    SESSILE_SORT_CREATED,
    SESSILE_SORT_TITLE, /* compared byte by byte */
    SESSILE_SORT_BYTES,
    SESSILE_SORT_MESSAGES
} sessile_sort;
/* "modified", "created", "title", "size", "messages"; NULL for any other value, so that
 * counting up from 0 until NULL finds all of them. Static. */
SESSILE_API const char *sessile_sort_name(sessile_sort sort);

/* Selects sessions. Call sessile_list_options_init() first: it selects all of them. */
typedef struct sessile_list_options {
    sessile_slice agent;        /* data NULL: of every agent */
    sessile_slice id_prefix;    /* only sessions whose id begins with this; empty: all */
    sessile_slice title;        /* only sessions with exactly this title; empty: all */
    uint64_t offset;            /* number of rows to skip */
    uint64_t limit;             /* greatest number of rows; 0: all */
    sessile_slice user;         /* only sessions of this user; data NULL: of every user */
    sessile_slice label;        /* only sessions that have this label on some entry;
                                   empty: all */
    sessile_slice text;         /* only sessions whose title contains this, ignoring the
                                   case of ASCII letters; empty: all */
    int64_t since_ms, until_ms; /* modified at or after since_ms, and before until_ms; 0:
                                   no bound */
    unsigned lives;    /* a bit (1u << SESSILE_LIFE_…) for each state wanted; 0: all but
                          DELETED */
    sessile_sort sort; /* the newest come first among equals */
} sessile_list_options;

SESSILE_API void sessile_list_options_init(sessile_list_options *options);

/*
 * Lists the sessions that options select (NULL: all). *out is one block of *count rows:
 * release it with sessile_free(). Newest first: by modified_ms, then by the file's name.
 * A log that cannot be opened is left out when a condition needs its contents.
 *
 * A list looks at the file of each log. It keeps what it found in a sealed list cache
 * beside the logs, so that later lists open only new and changed logs, and those written
 * to within the last two seconds. Only lists use the list cache: opening a session never
 * reads it. A row says what opening the session would say, unless the log's bytes have
 * changed while the file's size and times have not, as when a disk decays. If the list
 * cache cannot be read or written, lists are slow but correct. With a limit, on a store
 * that was never listed, only logs whose file may be among the newest are opened.
 *
 * Errors: IO, DENIED (a folder), NOMEM. A log that cannot be opened is a row.
 */
SESSILE_API sessile_status sessile_list_with(sessile_store *store,
                                             const sessile_list_options *options,
                                             sessile_listed **out, size_t *count,
                                             sessile_error *err);

/* Lists all sessions of an agent (NULL: of every agent). As sessile_list_with(). */
SESSILE_API sessile_status sessile_list(sessile_store *store, const char *agent,
                                        sessile_listed **out, size_t *count,
                                        sessile_error *err);

/* ------------------------------------------------------------------ keys */

/*
 * A sealed store has a keyring, which is encrypted with the secret that opens the store.
 * It holds one master key for each epoch. The newest key seals new logs, older keys open
 * older logs. Each user's sessions are sealed with a separate secret for that user, which
 * the master key encrypts. Plain and volatile stores have no keyring: UNSUPPORTED.
 */

/* Creates the keyring of a store without opening the store. Also creates the key file of
 * this user, if the secret comes from there and the file does not exist. EXISTS: the
 * store has a keyring. Other errors: as for sessile_open(). */
SESSILE_API sessile_status sessile_keys_init(const char *url,
                                             const sessile_store_options *options,
                                             sessile_error *err);

/* What sessile_keys_rotate() changes. All zero: add a new epoch. */
typedef struct sessile_rotate_options {
    int new_secret; /* 1: encrypt the keyring with another secret and add no epoch */
    sessile_key_source key_source; /* source of the new secret: ENV, FILE or SECRET */
    const char *key;               /* see sessile_key_source */
    int make_file; /* FILE: 1: create the file with a random key if it does not exist; 0:
                      SEALED */
} sessile_rotate_options;

/*
 * Changes the keyring. Logs are not touched. options NULL: adds an epoch, a new master
 * key that seals the sessions created from now on; *epoch (may be NULL) is set to its
 * number. With new_secret, the old secret no longer opens the store (SEALED). It encrypts
 * the same master keys again and adds no epoch: *epoch stays, and with an old copy of the
 * keyring the old secret still opens every log. After a leak: a new secret, a new epoch,
 * then sessile_reseal_begin(). The change is durable on return. After a crash the store
 * opens with either the old or the new secret.
 *
 * Handles in other processes keep the keys they have. A handle that was opened with the
 * old secret cannot create sessions until it is opened again (SEALED).
 *
 * Errors: INVALID (the new secret is not usable), DENIED, SEALED, FULL. After IO the
 * keyring may or may not have changed: call sessile_keys_status().
 */
SESSILE_API sessile_status sessile_keys_rotate(sessile_store *store,
                                               const sessile_rotate_options *options,
                                               uint64_t *epoch, sessile_error *err);

/* An epoch, and the number of logs that are sealed with its key. */
typedef struct sessile_keys_epoch {
    uint64_t epoch;
    uint64_t logs;
} sessile_keys_epoch;

/* A description of the keys of a store. It contains no key. */
typedef struct sessile_keys {
    int sealed;                    /* 0: the store is plain, and of the counts only `logs`
                                      is set */
    const char *suite;             /* cipher suite of new logs: "aes-256-gcm" or
                                      "xchacha20-poly1305" */
    sessile_key_source key_source; /* where this handle got its secret */
    const char *kdf;               /* how the secret becomes a key: "none" (it is one) or
                                      "argon2id" */
    uint64_t kdf_ops, kdf_mem;     /* argon2id: passes, bytes */
    uint64_t users;                /* number of users with a secret of their own */
    uint64_t logs;
    uint64_t user_logs;               /* number of logs that are sealed with a user's
                                         secret */
    uint64_t old_logs;                /* number of logs that sessile_reseal_begin() would
                                         seal again */
    uint64_t odd_logs;                /* number of logs whose first line is unreadable */
    const sessile_keys_epoch *epochs; /* newest first */
    size_t epoch_count;
} sessile_keys;

/* Reads the keyring and the first line of each log. *out is one block: free it with
 * sessile_free(). Errors: IO, DENIED, NOMEM. */
SESSILE_API sessile_status sessile_keys_status(sessile_store *store, sessile_keys **out,
                                               sessile_error *err);

/*
 * Reseals a store: every log that is not sealed with the newest epoch and the suite of
 * the store is decrypted and sealed again, one log at a time. Each log is replaced in one
 * atomic step; entries and ids stay the same. When no log needs an older epoch any more,
 * that epoch is removed from the keyring, so that a leaked master key opens nothing. A
 * reseal that was interrupted continues where it stopped when it is run again. A log that
 * cannot be read is left as it is, and its epoch is kept.
 *
 *   for (st = sessile_reseal_begin(&r, store, NULL, &err);
 *        !st && (st = sessile_reseal_step(r, &state, &err)) == SESSILE_NEEDS; st = 0)
 *       show(&state);
 *   sessile_reseal_free(r);
 */
typedef struct sessile_reseal sessile_reseal;

typedef struct sessile_reseal_state {
    uint64_t logs;      /* number of logs in the store */
    uint64_t seen;      /* logs done so far */
    uint64_t resealed;  /* logs sealed again */
    uint64_t forgotten; /* logs of forgotten users, which nothing can open */
    uint64_t failed;    /* logs that failed and were left as they were */
    uint64_t dropped;   /* epochs removed from the keyring; set by the last step */
    const char *log;    /* name of the log that failed in this step, or NULL; borrowed
                           until the next step */
    sessile_error why;  /* why it failed */
} sessile_reseal_state;

/* Begins a reseal. suite: the cipher suite of the store from now on; NULL: keep the
 * present one. Free *out with sessile_reseal_free(). UNSUPPORTED: the store is plain or
 * volatile, or there is no such suite. */
SESSILE_API sessile_status sessile_reseal_begin(sessile_reseal **out,
                                                sessile_store *store, const char *suite,
                                                sessile_error *err);
/* Processes one log. Returns NEEDS while more remain, and OK when all are done. state may
 * be NULL. A log that fails does not fail the step: see state->log. Errors: IO, FULL,
 * SEALED, NOMEM. */
SESSILE_API sessile_status sessile_reseal_step(sessile_reseal *reseal,
                                               sessile_reseal_state *state,
                                               sessile_error *err);
SESSILE_API void sessile_reseal_free(sessile_reseal *reseal);

/*
 * Forgets a user: overwrites and removes the secret of that user, durably. Afterwards no
 * session and no memory of that user, of any agent, can be opened, and no copy of its
 * log: SEALED. The only way back is a copy of the blob with the secret (`user-…` in the
 * folder of the store), so keep backups of these blobs separately and for a short time. A
 * sealed marker (`forgotten-…`) without the name of the user records what was removed. If
 * a secret is missing without one that opens, its sessions are DAMAGED until a copy of
 * the blob is back, or the user is forgotten again.
 *
 * Handles of these sessions that are open on this store return SEALED from now on.
 * Handles in other processes keep working until they are closed. A session that is
 * created for that user later gets a new secret. *sessions (may be NULL) is set to the
 * number of logs, of sessions and memories, that could be opened until now. After an
 * interruption or an error, call it again.
 *
 * Errors: INVALID (user is empty), UNSUPPORTED (a plain store: delete the sessions
 * instead), IO (call it again), BUSY.
 */
SESSILE_API sessile_status sessile_forget(sessile_store *store, sessile_slice user,
                                          uint64_t *sessions, sessile_error *err);

/* ------------------------------------------------------------------ another store */

/* The source or the target of a migration. Set one of url, store and backend. */
typedef struct sessile_place {
    const char *url; /* as for sessile_open(); the store need not exist yet. May be set
                        together with `store`, as its address, so that copying a store
                        into itself is detected */
    sessile_store *store; /* an open store; it stays the property of the caller, who keeps
                             it open until the migration is freed */
    const struct sessile_backend *backend; /* a backend of the host, as for
                                              sessile_open_with() */
    void *self; /* of the backend; it belongs to the engine once sessile_migrate_begin()
                   is called */
    /* For url and backend: key, suite, timeout_ms, allow_network and alloc are used, the
     * rest is ignored. NULL: the defaults. With SESSILE_KEY_DEFAULT a plain store is
     * opened as plain. */
    const sessile_store_options *options;
} sessile_place;

/* Parts of a store, for sessile_migrate_options.parts. Used only when bytes are copied
 * unchanged. */
enum {
    SESSILE_MIGRATE_LOGS = 1,
    SESSILE_MIGRATE_KEYRING = 2,
    SESSILE_MIGRATE_USERS = 4 /* the users' secrets */
};

/* Zeroed: copy everything into an empty store, or continue an earlier run. */
typedef struct sessile_migrate_options {
    int change;  /* 1: allow copying a sealed store into a plain one, or a plain one into
                    a sealed one */
    int into;    /* 1: `to` may already contain other sessions */
    int fresh;   /* 1: EXISTS even if the sessions in `to` come from an earlier run */
    int replace; /* 1: replace a session in `to` that differs; its old log is kept beside
                    it */
    int mirror;  /* 1: `to` is a mirror of `from`: secrets of users who were forgotten in
                    `from` are removed from it, or replaced if the user came back. Needs
                    the key of `from`; a secret is kept unless its user was forgotten */
    int whole;   /* 1: `to` is "sqlite:PATH" or a folder, and does not exist (else
                    EXISTS): it is built as PATH.part and renamed at the end. An
                    interrupted run is continued */
    unsigned parts; /* bits SESSILE_MIGRATE_…; 0: all parts */
} sessile_migrate_options;

typedef enum sessile_migrate_stage {
    SESSILE_MIGRATE_LOOKING = 0, /* finding out which sessions to copy, and how much of
                                    each */
    SESSILE_MIGRATE_COPYING,
    SESSILE_MIGRATE_VERIFYING,
    SESSILE_MIGRATE_DONE
} sessile_migrate_stage;

/* Progress of a migration. Each session is counted in exactly one of copied, continued,
 * kept, replaced, conflicts, forgotten, gone and failed. */
typedef struct sessile_migrate_state {
    sessile_migrate_stage stage;
    int as_it_stands; /* 1: bytes are copied unchanged; 0: entries are sealed with the
                         keys of `to` */
    int unopened; /* 1: no key was given, so that bytes were compared but not decrypted */
    int moment;   /* 1: the copy is `from` as it was at one moment; 0: something was
                     written while the sessions were listed */
    uint64_t sessions, done; /* sessions in all, and done so far in this stage */
    uint64_t bytes, bytes_done;
    uint64_t copied, continued, kept, replaced;
    uint64_t conflicts;  /* `to` has a different session of that name, which was left
                            alone */
    uint64_t forgotten;  /* sessions of forgotten users, which nothing can open. If bytes
                            are copied unchanged, they are copied as well, and also
                            counted in copied … replaced */
    uint64_t gone;       /* deleted from `from` meanwhile */
    uint64_t failed;     /* could not be copied */
    uint64_t damaged;    /* damaged in `from`. If bytes are copied unchanged, the damage
                            is copied with them */
    uint64_t verified;   /* read back or compared, and found equal */
    uint64_t unfinished; /* bytes after the last commit of a log: never acknowledged, not
                            copied */
    uint64_t users, users_removed; /* users' secrets written, and removed (with mirror) */
    uint64_t users_kept; /* users' secrets of `to` that `from` has lost, or has others of:
                            kept, since nothing proves that the user was forgotten */
    const char *log;     /* "folder/name" of the log that had a conflict, failed or is
                            damaged in this step, or the name of a user's secret that was
                            kept, or NULL; borrowed until the next step */
    sessile_error why;
} sessile_migrate_state;

/*
 * Copies every session of one store into another, and verifies the copy by reading it
 * back.
 *
 *   for (st = sessile_migrate_begin(&m, &from, &to, NULL, &err);
 *        !st && (st = sessile_migrate_step(m, &state, &err)) == SESSILE_NEEDS; st = 0)
 *       show(&state);
 *   sessile_migrate_free(m);
 *
 * There are two ways to copy. If `to` is empty or was filled in this way before, the
 * keyring, the users' secrets and the bytes of all logs are copied unchanged: the same
 * secret opens both stores. This needs no key; with one, each line is verified on the
 * way. If `to` has a keyring of its own, or options for `to` give a key, each entry is
 * decrypted and sealed with the keys of `to`; ids, labels, checkpoints, contexts,
 * deletions and times to live stay as they are. This needs both keys.
 *
 * `from` is only read; not even its caches change. Others may write to it meanwhile. Each
 * session is copied up to the end of a commit, and the sessions that it names as child,
 * parent or origin are copied too, unless they are deleted. The copy contains everything
 * that was acknowledged before sessile_migrate_begin() was called. To copy what was
 * written later, run the migration again: existing sessions are compared and continued,
 * and the keyring is updated. To move a store that is in use: migrate, stop all writers,
 * migrate again.
 *
 * After an interruption `to` contains whole sessions, and beginnings of sessions that end
 * with a commit. Run the migration again to continue. A session that differs in `to` is a
 * conflict and is left alone, unless `replace` is set. Memory use is independent of the
 * length of logs; it grows by some hundred bytes for each session.
 */
typedef struct sessile_migration sessile_migration;

/* Begins a migration. Free *out with sessile_migrate_free(). Errors: NOTFOUND (`from` is
 * not a store), INVALID (source and target are the same; one is sealed and the other
 * plain, and `change` is not set), EXISTS (`to` has sessions: see into, fresh and whole),
 * SEALED (a key that is needed is missing or wrong), and those of sessile_open(). DENIED:
 * a store that is given open may not be moved (move_store), or `to` is given by its
 * address and stays guarded (sessile_guard.h), unless this goes on with a copy of `from`.
 */
SESSILE_API sessile_status sessile_migrate_begin(sessile_migration **out,
                                                 const sessile_place *from,
                                                 const sessile_place *to,
                                                 const sessile_migrate_options *options,
                                                 sessile_error *err);
/* Copies one piece. Returns NEEDS while more remains, and OK when all is done: then look
 * at conflicts, failed and damaged. state may be NULL. A session that fails does not fail
 * the step. After an error the migration cannot continue: begin another one.
 * Errors: IO, FULL, DENIED (of `to`, or of `from` as a whole), CONFLICT (the keys of
 * `from` were changed meanwhile), NOMEM. */
SESSILE_API sessile_status sessile_migrate_step(sessile_migration *migration,
                                                sessile_migrate_state *state,
                                                sessile_error *err);
SESSILE_API void sessile_migrate_free(sessile_migration *migration);

/* ------------------------------------------------------------------ sessions */

/* Describes an agent. It is written into checkpoints, and compared when one is restored.
 * Empty: unknown. */
typedef struct sessile_agent_info {
    sessile_slice version; /* version of the program, at most 200 bytes */
    sessile_slice config;  /* hash of the configuration, at most 200 bytes */
    sessile_slice tools;   /* JSON array of the names of its tools */
} sessile_agent_info;

/* Which session. An empty id asks create for a new one (a UUIDv7); an empty agent is the
 * store's. Ids, agents and users are opaque bytes. Call the init function first. */
typedef struct sessile_session_options {
    sessile_slice id, agent, user;
    sessile_slice title;    /* of a new session */
    sessile_slice metadata; /* JSON object of a new session, or empty */
    int uuid_v4;            /* make a version 4 id instead of version 7 */
    sessile_config config;  /* of this handle */
    int64_t ttl_ms; /* of a new session: it expires so long after its newest entry; 0: the
                       store's; -1: never */
    sessile_agent_info agent_info; /* of this handle; copied */
} sessile_session_options;

SESSILE_API void sessile_session_options_init(sessile_session_options *options);

/*
 * Creates a session, durably, and opens it. Close *out with sessile_session_close().
 * EXISTS: the name is taken. LIMIT [sessions_per_agent]: its agent has as many sessions
 * as it may. Other errors: INVALID, LIMIT, IO, FULL, DENIED, SEALED, NOMEM.
 *
 * The sessions of an agent are counted by name before and after a session is created, by
 * create, fork, put and child. So the limit holds also when several processes create
 * sessions at the same time; the last place may then be refused to all of them. It can be
 * exceeded if a process is killed between the two counts, and in a store that removes
 * nothing (see sessile_backend.remove). A migration does not count.
 */
SESSILE_API sessile_status sessile_create(sessile_session **out, sessile_store *store,
                                          const sessile_session_options *options,
                                          sessile_error *err);

/* Opens an existing session. An empty agent is the store's, and no other one is looked
 * for: sessile_list_with() finds the agents that have a session of an id. NOTFOUND: there
 * is none. SEALED: the key does not open it,
 * or its user was forgotten. BUSY: a torn end could not be set aside because another
 * writer holds the lock. Bytes that were set aside are reported by
 * sessile_session_torn(). A damaged log opens for reading: see sessile_session_damage().
 * DAMAGED: nothing of it can be read, or it is not a session; the message names the
 * place, and the command to run. */
SESSILE_API sessile_status sessile_resume(sessile_session **out, sessile_store *store,
                                          const sessile_session_options *options,
                                          sessile_error *err);

/* Opens the session, or creates it if there is none. options->id must be given. Errors:
 * as for sessile_resume() and sessile_create(). */
SESSILE_API sessile_status sessile_session_open(sessile_session **out,
                                                sessile_store *store,
                                                const sessile_session_options *options,
                                                sessile_error *err);

/* ---- the end of sessions */

/* Zeroed: a hard deletion. */
typedef struct sessile_delete_options {
    int soft;                    /* 1: mark the session as deleted; it can be undeleted,
                                    or purged later */
    sessile_slice reason, actor; /* why, and who did it; UTF-8, or empty. Soft: written
                                    into the log; hard: into the record of the deletion */
} sessile_delete_options;

#define SESSILE_ID_HASH_SIZE 65
/* A receipt for a deletion. The hash is not keyed: whoever guesses agent, user and id can
 * verify the guess. */
typedef struct sessile_deleted {
    char id_hash[SESSILE_ID_HASH_SIZE]; /* hash of agent, user and id; hex, with NUL */
    int64_t time_ms;
    uint64_t bytes; /* hard: size of the log */
} sessile_deleted;

/*
 * Deletes the session that id, agent and user of `which` name. options NULL: hard. out
 * may be NULL.
 *
 * A hard deletion removes the log and everything beside it, durably, even if the session
 * does not open. It overwrites the header first (in a plain store, the whole log). Open
 * handles fail at their next write. Copies elsewhere, such as backups, can still be
 * opened with the keys of the store: see sessile_forget(). If the process is killed
 * meanwhile, the session is whole or damaged; delete it again.
 *
 * A record of a hard deletion stays in the store: see sessile_deletions().
 *
 * A soft deletion marks the session: see sessile_life.
 *
 * Errors: NOTFOUND, BUSY, UNSUPPORTED (hard: the store cannot remove logs), IO.
 */
SESSILE_API sessile_status sessile_delete(sessile_store *store,
                                          const sessile_session_options *which,
                                          const sessile_delete_options *options,
                                          sessile_deleted *out, sessile_error *err);
/* Undoes a soft deletion. actor: who did it; UTF-8, written into the log; or empty.
 * NOTFOUND: there is no such session, or it is not deleted. */
SESSILE_API sessile_status sessile_undelete(sessile_store *store,
                                            const sessile_session_options *which,
                                            sessile_slice actor, sessile_error *err);

/* The record of a session that was removed for good, by a hard deletion or a purge. */
typedef struct sessile_deletion {
    int64_t time_ms;
    char id_hash[SESSILE_ID_HASH_SIZE]; /* as in sessile_deleted; "": the record does not
                                           open, and only its time is known */
    uint64_t bytes;                     /* size of the log */
    sessile_slice id, agent; /* empty if the session had a user: no record names somebody
                                who may want to be forgotten */
    sessile_slice reason, actor;
} sessile_deletion;
/* Lists these records, newest first; free *out with sessile_free(). They are sealed as
 * sessions are. Stores that can list blobs keep them: all but some of a host's. A copy of
 * the store has them too; a fork is another session and has none. If a session has a
 * record and is still there, its deletion was interrupted: delete it again. */
SESSILE_API sessile_status sessile_deletions(sessile_store *store, sessile_deletion **out,
                                             size_t *count, sessile_error *err);

/* A server that shares the store (`sessile serve`). */
typedef struct sessile_store_node {
    const char *name, *address, *version; /* address: where the others connect to it */
    int64_t started_ms;                   /* since 1970, by the database's clock */
    int64_t left_ms; /* of its lease, which it renews each half second; 0 or less: it ran
                        out so long ago, and the server is not alive */
    uint64_t sessions; /* that it keeps open */
    uint64_t calls;    /* that it has served */
} sessile_store_node;
/* Lists them, by name; free *out with sessile_free(). One that ended is left out, one
 * that was killed stays in the list for an hour. UNSUPPORTED: the store is in no
 * PostgreSQL database, so no servers share it. */
SESSILE_API sessile_status sessile_nodes(sessile_store *store, sessile_store_node **out,
                                         size_t *count, sessile_error *err);
/* How many standbys of the store's database stream and are waited for by commits; -1: the
 * role of the store's URL may not see them, which takes pg_read_all_stats. UNSUPPORTED:
 * the store is in no PostgreSQL database. BUSY, IO. */
SESSILE_API sessile_status sessile_standbys(sessile_store *store, int *standbys,
                                            sessile_error *err);

#define SESSILE_RETENTION_MS (INT64_C(90) * 24 * 60 * 60 * 1000)
/* Call the init function first. */
typedef struct sessile_purge_options {
    sessile_slice agent;  /* data NULL: every agent */
    int64_t retention_ms; /* how long a softly deleted session is kept; default
                             SESSILE_RETENTION_MS */
    int dry_run;          /* 1: remove nothing */
    sessile_slice user;   /* only sessions of this user; data NULL: of every user */
} sessile_purge_options;
SESSILE_API void sessile_purge_options_init(sessile_purge_options *options);
/* Deletes expired sessions, and sessions that were softly deleted more than retention_ms
 * ago, for good. Nothing else removes a session that the caller did not name. *out lists
 * the sessions that were removed (dry_run: that would be), as sessile_list_with() does;
 * free it with sessile_free(). A session is kept if it was written to meanwhile or a
 * writer holds its lock. */
SESSILE_API sessile_status sessile_purge(sessile_store *store,
                                         const sessile_purge_options *options,
                                         sessile_listed **out, size_t *count,
                                         sessile_error *err);

/* Removes what is left of the sessions of forgotten users (sessile_forget()): logs that
 * nothing opens any more. A log is kept if its user's secret is missing and nothing
 * records that the user was forgotten: that is damage. Of a user who came back since, the
 * logs that were not written to after the forgetting go. agent: data NULL: of every
 * agent. dry_run 1: removes nothing. *count, *bytes: how many logs were removed, or would
 * be, and their size, also after an error. Logs whose first line is damaged are skipped.
 * BUSY, IO; UNSUPPORTED: the store cannot remove logs. */
SESSILE_API sessile_status sessile_purge_forgotten(sessile_store *store,
                                                   sessile_slice agent, int dry_run,
                                                   uint64_t *count, uint64_t *bytes,
                                                   sessile_error *err);

typedef struct sessile_life_info {
    sessile_life life;
    int64_t ttl_ms, expires_ms, deleted_ms; /* 0: none */
} sessile_life_info;
SESSILE_API sessile_status sessile_session_life(sessile_session *session,
                                                sessile_life_info *out,
                                                sessile_error *err);
/* Sets the time after which the session expires, in ms after its newest entry; 0: never.
 * It is written into the log as a fact. */
SESSILE_API sessile_status sessile_set_ttl(sessile_session *session, int64_t ttl_ms,
                                           sessile_error *err);
/* Archives the session (1), or undoes that (0). An archived session can be read and
 * written as before; only its state in lists changes. */
SESSILE_API sessile_status sessile_set_archived(sessile_session *session, int archived,
                                                sessile_error *err);

/* ---- forks and copies */

/* Size of the tag of a line of a log in hex, with its NUL. */
#define SESSILE_TAG_SIZE 33

/* An entry of another session: the one that a fork was made from, or a child was begun
 * at. */
typedef struct sessile_link {
    sessile_slice id, agent, user; /* borrowed from the session; user empty: none */
    sessile_id entry;
    char tag[SESSILE_TAG_SIZE]; /* tag of the line of that entry; "": not recorded */
} sessile_link;

/*
 * Creates a new session with a copy of all entries of `session` up to `entry`
 * (SESSILE_NO_ID: its head). `entry` becomes the head of the new session. Ids stay the
 * same, and earlier branches are copied too. Labels, pins and checkpoints that were put
 * on these entries later, the title, settings and metadata are copied as they are now. A
 * suspension, a deletion, an archived state and a time to live are not. From then on the
 * two sessions are independent: either may be deleted.
 *
 * Entries are sealed again one by one, so that memory use does not depend on the size of
 * the log. No lock is held; others may write to `session` meanwhile. If the process is
 * killed, the new session exists as a whole or not at all.
 *
 * Of options these are used: id (empty: a new one), agent and user (data NULL: those of
 * `session`; user of size 0: none), title (data NULL: that of `session`), metadata (its
 * members replace those of `session`), and what applies to the handle, which is otherwise
 * configured as `session` is. A fork for another user is sealed with the secret of that
 * user: forgetting one user does not affect the other. out NULL: the fork is made but not
 * opened; then an id must be given.
 *
 * Errors: NOTFOUND (no such entry, or it is not a path entry), EXISTS, DAMAGED or
 * TRUNCATED (the log is damaged at or before the entry; the message names the newest
 * entry that can be forked), SEALED (the user was forgotten meanwhile), INVALID, LIMIT,
 * IO, FULL, DENIED, NOMEM. On an error nothing was created, except perhaps after IO.
 */
SESSILE_API sessile_status sessile_fork(sessile_session **out, sessile_session *session,
                                        sessile_id entry,
                                        const sessile_session_options *options,
                                        sessile_error *err);

/*
 * Copies a whole session into another store, sealed with the keys of that store: every
 * entry of every branch under the same id, the head and a suspension included. options
 * (NULL: none): id, agent and user of the copy, each that of `session` if its data is
 * NULL, and what applies to the handle. out NULL: the copy is made but not opened.
 * Errors: EXISTS (the name is taken there), DAMAGED or TRUNCATED (salvage the session
 * first: see sessile_check_open()), and those of sessile_fork().
 */
SESSILE_API sessile_status sessile_put(sessile_session **out, sessile_store *store,
                                       sessile_session *session,
                                       const sessile_session_options *options,
                                       sessile_error *err);

/* Returns 1 and sets *out to the origin if the session is a fork, else returns 0. The
 * origin may have been deleted. */
SESSILE_API int sessile_session_origin(const sessile_session *session, sessile_link *out);

/* ---- parents and children */

/*
 * Creates a session for a sub-agent. It has a log of its own. Its header names the parent
 * and the head of the parent, and an entry of type "child" in the log of the parent names
 * the child. with_context 0: the child is empty; 1: it is a fork of the parent at its
 * head. options: as for sessile_fork(); a child without context takes title and metadata
 * from options only. The child is created before the entry is written: if the process is
 * killed in between, the parent does not name the child. Errors: as for sessile_fork()
 * and sessile_append_custom().
 */
SESSILE_API sessile_status sessile_child(sessile_session **out, sessile_session *parent,
                                         int with_context,
                                         const sessile_session_options *options,
                                         sessile_error *err);

/* Returns 1 and sets *out to the parent if the session is a child, else returns 0. */
SESSILE_API int sessile_session_parent(const sessile_session *session, sessile_link *out);

/*
 * Records the result of a child in the log of its parent. sessile_child_merged() appends
 * a message to the parent, as sessile_append() does, and records that it comes from the
 * child, both in one commit; *out (may be NULL) is the id of the message. To keep the
 * message from starting a turn, give it a metadata.kind. sessile_child_discarded()
 * records that the child was discarded, and why (UTF-8, or empty). Neither changes the
 * child. Both may be called repeatedly; the newest record is in force. INVALID: it is not
 * a child of this parent. SUSPENDED (merged only). Other errors: as for sessile_append().
 */
SESSILE_API sessile_status sessile_child_merged(sessile_session *parent,
                                                const sessile_session *child,
                                                sessile_slice message, sessile_id *out,
                                                sessile_error *err);
SESSILE_API sessile_status sessile_child_discarded(sessile_session *parent,
                                                   const sessile_session *child,
                                                   sessile_slice reason,
                                                   sessile_error *err);

typedef enum sessile_child_state {
    SESSILE_CHILD_OPEN = 0, /* it has no result yet */
    SESSILE_CHILD_MERGED,
    SESSILE_CHILD_DISCARDED
} sessile_child_state;

/* One child, as recorded in the log of its parent. Text is borrowed from the list. */
typedef struct sessile_subsession {
    sessile_slice id, agent, user;
    sessile_id entry; /* the head of the parent when the child was created */
    int64_t time_ms;  /* when it was created */
    sessile_child_state state;
    sessile_id merged; /* the newest message that was merged from it, or SESSILE_NO_ID */
} sessile_subsession;
/* Lists the children of a session, oldest first: one block of *count rows; free it with
 * sessile_free(). It reads every entry of the log. The list of a fork includes the
 * children that its origin had at that entry. A listed child may have been deleted since.
 */
SESSILE_API sessile_status sessile_subsessions(sessile_session *session,
                                               sessile_subsession **out, size_t *count,
                                               sessile_error *err);

/* ---- an open session */

/* Closes the handle. NULL is ignored. With durability NONE it syncs first, and returns an
 * error if that fails; the handle is closed in any case. FORKED: the call was made in a
 * child process; the handle is left as it is, since it may have been copied in the middle
 * of a call. */
SESSILE_API sessile_status sessile_session_close(sessile_session *session,
                                                 sessile_error *err);

/*
 * Syncs everything that this handle wrote or read. The next write records that the
 * earlier ones are safe: if they are damaged later, the status is DAMAGED, and they are
 * never taken for a torn end. Needed with durability NONE, for instance after a long
 * import, before its last entry; and to rely on a write that returned IO and was found
 * when the session was opened again: a PostgreSQL primary can show what its synchronous
 * standbys do not have yet. IO: it is unknown whether the writes are safe, and the handle
 * writes nothing more; open the session again and look. BUSY: the standbys did not answer
 * in time; call it again. CANCELLED: see sessile_interrupt(). FORKED, CLOSED.
 */
SESSILE_API sessile_status sessile_session_sync(sessile_session *session,
                                                sessile_error *err);

/*
 * Sets how long a call of this handle may wait in total for other writers' locks and for
 * other threads that use the handle, in ms. -1: for ever; 0: try once. When the time is
 * up the call returns BUSY. (For other threads, which need microseconds, it waits at
 * least a tenth of a second.) Calls that are waiting already are not affected. The time
 * that the device takes to sync is not bounded. INVALID: timeout_ms is below -1.
 */
SESSILE_API sessile_status sessile_session_set_timeout(sessile_session *session,
                                                       int timeout_ms,
                                                       sessile_error *err);

/*
 * Waits until the session has entries that the caller has not seen, and then sets
 * *changed to 1. Read them as usual, with sessile_messages(), sessile_context(), or
 * sessile_entry() with the ids from the old *seen on. Other threads may use the handle
 * meanwhile.
 *
 * seen: the number of entries that the caller knows, including those that this handle
 * wrote (0: as many as this handle has read). On return, also with most errors, it is the
 * number of entries that there are. So no entry is missed between two calls, and the call
 * returns immediately if there are new ones already. timeout_ms: -1: for ever; 0: look
 * once. When the time is up: OK with *changed 0. Stores that cannot report changes are
 * polled every 5 to 50 ms.
 *
 * CANCELLED: see sessile_interrupt(). NOTFOUND: the session was removed. UNSUPPORTED: the
 * session was opened with sessile_records_open(). INVALID: *seen is larger than the
 * number of entries. BUSY, IO.
 */
SESSILE_API sessile_status sessile_session_watch(sessile_session *session,
                                                 sessile_id *seen, int timeout_ms,
                                                 int *changed, sessile_error *err);

/*
 * Asks the store once whether others have written to any of n open sessions: for programs
 * that follow many of them. Reads no entry and waits for no session, so other threads may
 * use the sessions meanwhile. The sessions must be of this store, and stay open during
 * the call. One may be among them twice.
 *
 * changed: n bytes. 0: the log of sessions[i] ends where this handle has read or written
 * it to. 1: look at it: it has grown, it was removed or replaced, another thread is using
 * the handle just now, or the handle may not read it any more. The next call on the
 * session shows the new entries, or says what is wrong. It stays 1 until then.
 *
 * Databases are asked with one statement for 10,000 sessions, files by their names. A
 * store of the host's without `ends` (sessile_store.h) is asked for each size.
 *
 * On an error changed is all 0. INVALID: a session is of another store. BUSY, IO, NOMEM.
 */
SESSILE_API sessile_status sessile_changed(sessile_store *store,
                                           sessile_session *const *sessions, size_t n,
                                           unsigned char *changed, sessile_error *err);

/*
 * Ends the waits of a session. May be called from another thread or from a signal
 * handler, as long as the handle is open. Every call of the handle that has begun and
 * waits, or comes to wait, returns CANCELLED within about 10 ms. Nothing was written
 * then, with one exception: a call that waits for the sync of another thread has written
 * its entries, but they are not known to be safe; the message says so. A call that does
 * not have to wait succeeds. Later calls are not affected. NULL is ignored.
 */
SESSILE_API void sessile_interrupt(sessile_session *session);

/* Names. They never change. Text is borrowed from the session. These calls take no lock.
 */
SESSILE_API sessile_slice sessile_session_id(const sessile_session *session);
SESSILE_API sessile_slice sessile_session_agent(const sessile_session *session);
SESSILE_API sessile_slice sessile_session_user(const sessile_session *session);
/* When it was created; of an imported session, when its first message was said, if that
 * was before. A fork was created when it was made. */
SESSILE_API int64_t sessile_session_created(sessile_session *session);
/* When its newest message was said. Without messages, or for a fork without new ones:
 * when it was created. */
SESSILE_API int64_t sessile_session_modified(sessile_session *session);
/*
 * The bytes of memory that the handle holds now: its entries as a tree, the context at
 * the head, and what it knows of its log. For programs that keep many sessions open and
 * close some when there are too many. Texts of messages are not held, but read from the
 * store. A call that is running counts with what it needs meanwhile. Not counted: what
 * the backend keeps for the log (a database's records that were read ahead have a limit
 * for the whole store), the idle process of isolated policies, and what the allocator
 * adds to each block. Takes no lock. 0 for NULL.
 */
SESSILE_API size_t sessile_session_memory(const sessile_session *session);
/* The window of the model in tokens that this handle was opened with (0: unlimited), and
 * how much of it is kept free (*reserve; may be NULL). */
SESSILE_API int64_t sessile_session_window(const sessile_session *session,
                                           int64_t *reserve);
/* The number of bytes of torn ends that were set aside when this handle was opened, and
 * since. It grows when another writer died and this handle finds its torn end before
 * writing. 0: none. */
SESSILE_API uint64_t sessile_session_torn(const sessile_session *session);
/* The number of entries that this handle has read or written, and so the id of the next
 * one. The store is not asked; others may have written more. */
SESSILE_API sessile_id sessile_session_length(sessile_session *session);

/*
 * Returns OK, or DAMAGED or TRUNCATED if the session can be read but not written. *out
 * (may be NULL) then has a message with the file, the first damaged entry and byte, how
 * much is lost, and the command that repairs it. Every call that writes fails with the
 * same error. Lost entries read as type "tombstone" with data {"lost":true,…}. *lost (may
 * be NULL) is set to their number.
 */
SESSILE_API sessile_status sessile_session_damage(sessile_session *session,
                                                  uint64_t *lost, sessile_error *out);

/* The head: the path entry that the next append follows and whose context
 * sessile_context() returns by default. */
SESSILE_API sessile_status sessile_head(sessile_session *session, sessile_id *out,
                                        sessile_error *err);
/* Moves the head back to the header, so that the context is empty. The log keeps
 * everything. SUSPENDED; other errors as for sessile_append(). */
SESSILE_API sessile_status sessile_clear(sessile_session *session, sessile_error *err);

/* Gets the title ("" if there is none; free *out with sessile_free()), and sets it by
 * writing a fact into the log. Errors: as for sessile_label(). */
SESSILE_API sessile_status sessile_title(sessile_session *session, char **out,
                                         size_t *size, sessile_error *err);
SESSILE_API sessile_status sessile_set_title(sessile_session *session,
                                             sessile_slice title, sessile_error *err);

/* The number of turns, appended messages and compactions on the path to the head. */
SESSILE_API sessile_status sessile_event_count(sessile_session *session, uint64_t *out,
                                               sessile_error *err);

/* Tokens as providers reported them, summed over all turns and messages. */
typedef struct sessile_usage {
    int64_t input, output, cache_read, cache_write;
} sessile_usage;
SESSILE_API sessile_status sessile_total_usage(sessile_session *session,
                                               sessile_usage *out, sessile_error *err);

/* How sessile_usage_groups() groups usage. */
typedef enum sessile_usage_by {
    SESSILE_USAGE_BY_DAY = 0, /* the day (UTC) of the reporting entry: "2026-11-21" */
    SESSILE_USAGE_BY_MODEL, /* the model named by the turn, else by its last message that
                               names one, else by the setting "model" at that time; "":
                               unknown */
    SESSILE_USAGE_BY_AGENT, /* the agent of the session; to add up many sessions */
    SESSILE_USAGE_BY_DAY_AND_MODEL /* one row for each model of a day */
} sessile_usage_by;

/* The usage of one group. */
typedef struct sessile_usage_group {
    sessile_slice key;   /* borrowed from the list */
    sessile_slice model; /* by model, by day and model: its name, borrowed; else empty */
    sessile_usage usage;
    double cost;               /* in US dollars: the sum of what reports say themselves
                                  ("cost" of the usage: a number, or an object with
                                  "total") */
    sessile_usage uncosted;    /* the part of usage whose reports say no cost */
    uint64_t reports;          /* number of turns and messages that reported it */
    int64_t first_ms, last_ms; /* times of the first and the last of these entries */
} sessile_usage_group;

/*
 * The usage of sessile_total_usage() by groups: one block of *count rows; free it with
 * sessile_free(). Days are oldest first, other groups largest first. Groups without a
 * report are left out. The call reads the whole log. Errors: INVALID (by), DAMAGED,
 * SEALED, IO, NOMEM.
 */
SESSILE_API sessile_status sessile_usage_groups(sessile_session *session,
                                                sessile_usage_by by,
                                                sessile_usage_group **out, size_t *count,
                                                sessile_error *err);

/* A number of tokens, its bounds (low <= tokens <= high) and where it comes from. */
typedef struct sessile_tokens {
    int64_t tokens, low, high;
    const char *source; /* "usage" (reported by the provider, plus a count of what
                           followed), "exact" (by the encoding of the model), "host" (by
                           the function of the host), "fitted" (a count times a factor
                           learned from the usage of this session) or "estimate" (by
                           classes of characters); static. A sum has the least reliable
                           source of its parts */
} sessile_tokens;
/* Returns the number of tokens of the context at the head. */
SESSILE_API sessile_status sessile_count_tokens(sessile_session *session,
                                                sessile_tokens *out, sessile_error *err);

/* What to count, and for which model. Call sessile_count_options_init() first. */
typedef struct sessile_count_options {
    sessile_slice model;  /* empty: the model of the session or store. Reported usage says
                             nothing about another model: its context is counted, and
                             messages that were counted differently are read again */
    sessile_slice tools;  /* definitions of tools as the model gets them, a JSON array in
                             the form of OpenAI or Anthropic; or empty */
    sessile_slice system; /* text of a system prompt that is not a message; or empty */
    sessile_id at;        /* an entry of the session; SESSILE_NO_ID: the head */
} sessile_count_options;
SESSILE_API void sessile_count_options_init(sessile_count_options *options);

/* Returns the number of tokens that a model would be sent at options->at. Tools and the
 * system prompt are added, unless reported usage includes them already. NOTFOUND (at),
 * INVALID (tools), DAMAGED, SEALED, IO, NOMEM. */
SESSILE_API sessile_status sessile_count_tokens_with(sessile_session *session,
                                                     const sessile_count_options *options,
                                                     sessile_tokens *out,
                                                     sessile_error *err);

/* Counts messages (JSON objects) that are not in a session. each: room for count results,
 * one for each message; may be NULL. INVALID: the error says which message is not one,
 * and why. */
SESSILE_API sessile_status sessile_count_messages(sessile_store *store,
                                                  const sessile_count_options *options,
                                                  const sessile_slice *messages,
                                                  size_t count, sessile_tokens *each,
                                                  sessile_tokens *out,
                                                  sessile_error *err);

/* Writes the reason why the encoding that was wanted last is not used, cut to `size`
 * bytes including a NUL; "" if no encoding failed. */
SESSILE_API void sessile_encoding_error(sessile_store *store, char *out, size_t size);

/* Counts the tokens of a text as this store does for its model; store NULL: estimates
 * them. The text need not be UTF-8. */
SESSILE_API sessile_status sessile_count_text(const sessile_store *store,
                                              sessile_slice text, sessile_tokens *out,
                                              sessile_error *err);

/* Roles of messages. sessile_role_name() returns "system", "user", …; static. */
typedef enum sessile_role {
    SESSILE_ROLE_NONE = 0,
    SESSILE_SYSTEM,
    SESSILE_DEVELOPER,
    SESSILE_USER,
    SESSILE_ASSISTANT,
    SESSILE_MODEL,
    SESSILE_TOOL,
    SESSILE_FUNCTION
} sessile_role;
SESSILE_API const char *sessile_role_name(sessile_role role);

/* ------------------------------------------------------------------ records */

/*
 * For hosts that keep sessions in a table or service of their own and do not want to
 * write a backend in C (sessile_store.h). The host loads the records of a session, opens
 * the session over them, uses it, and then saves the records that are new. A record is
 * one line of text without its newline: JSON, plain or sealed.
 */

/*
 * Opens a store for sessile_records_open(). options NULL: the defaults. key_source
 * DEFAULT or PLAIN: records are plain. SECRET: they are sealed with `key`, "hex:" or
 * "base64:" followed by 32 bytes in that encoding. INVALID: a passphrase, or another
 * source. UNSUPPORTED: the limit [sessions_per_agent], since the host has the sessions.
 */
SESSILE_API sessile_status sessile_open_records(sessile_store **out,
                                                const sessile_store_options *options,
                                                sessile_error *err);
/*
 * Opens the session that options name over its records, all of them in order. count 0:
 * creates it, as sessile_create() does. The log belongs to this handle alone: no other
 * handle sees it, no list has it, and it disappears with the handle. The same is true of
 * a fork or a copy that is made in such a store: save all of its records.
 *
 * DAMAGED: the records do not begin with the header of a session, belong to another
 * session, or do not end with a whole commit (the message says how many do). Damage
 * before a record that was safe opens for reading: see sessile_session_damage(). SEALED:
 * sealed with another key, or plain records in a sealed store. UNSUPPORTED: the store was
 * not opened with sessile_open_records().
 */
SESSILE_API sessile_status sessile_records_open(sessile_session **out,
                                                sessile_store *store,
                                                const sessile_session_options *options,
                                                const sessile_slice *records,
                                                size_t count, sessile_error *err);
/*
 * Returns the records of a session (of any store) after the first `from`: one block of
 * *count rows; free it with sessile_free(). NULL and 0 if there are none. When you save
 * them, add all or none, and only if exactly `from` records are saved so far. Otherwise
 * another handle was faster: close this one. INVALID: there are fewer than `from`
 * records. DAMAGED, TRUNCATED.
 */
SESSILE_API sessile_status sessile_records_read(sessile_session *session, uint64_t from,
                                                sessile_slice **out, size_t *count,
                                                sessile_error *err);

/* ------------------------------------------------------------------ writing */

/*
 * Appends one message, a JSON object, as a commit of its own. No policy runs. *out (may
 * be NULL) is the id of its entry.
 *
 * Errors: INVALID (not JSON or not UTF-8, no valid role, a member that occurs twice),
 * LIMIT [message|depth|session], CONFLICT (the head is not a descendant of what this
 * handle last saw: read again), SUSPENDED, BUSY, CANCELLED, IO, FULL, NOMEM, NOTFOUND
 * (the session was softly deleted), DAMAGED or TRUNCATED (see sessile_session_damage()).
 * After an error the session is unchanged, except after IO or CANCELLED during a sync:
 * then the entry may be there.
 */
SESSILE_API sessile_status sessile_append(sessile_session *session, sessile_slice message,
                                          sessile_id *out, sessile_error *err);

/*
 * Appends an entry of type "custom" with a JSON object as its data. It is a fact and
 * never enters the context. source: user, agent, system, tool or host; NULL: host. Works
 * on a suspended session too. Other errors: as for sessile_append().
 */
SESSILE_API sessile_status sessile_append_custom(sessile_session *session,
                                                 sessile_slice data, const char *source,
                                                 sessile_id *out, sessile_error *err);

/* One entry of sessile_write(). */
typedef struct sessile_write_entry {
    sessile_slice json; /* a message, or the data of a custom entry: a JSON object */
    int custom;         /* 1: a custom entry */
    const char *source; /* of a custom entry, as for sessile_append_custom() */
} sessile_write_entry;

/*
 * Writes messages and custom entries that belong together, in their order, as one commit:
 * all of them are in the log, or none. No policy runs, and they are no turn. A custom
 * entry is about the message before it, or else about the head. *first (may be NULL) is
 * the id of the first; the others follow it, one by one.
 *
 * base: SESSILE_NO_ID: messages follow the head as those of sessile_append() do, and
 * custom entries alone need no base and work on a suspended session. Otherwise the head
 * that the caller knows: CONFLICT if it is not the head (compactions after it do not
 * matter).
 *
 * Errors: INVALID (no entries; or one of them, whose number the message names); others as
 * for sessile_append().
 */
SESSILE_API sessile_status sessile_write(sessile_session *session,
                                         const sessile_write_entry *entries, size_t count,
                                         sessile_id base, sessile_id *first,
                                         sessile_error *err);

/* ------------------------------------------------------------------ annotations */

/*
 * Annotations are facts about a session: entries that never enter the context and never
 * move the head. They are durable on return, and still there when the session is opened
 * again. For each fact the newest entry is in force, on whatever branch it was written.
 * Errors of calls that write: INVALID, LIMIT, BUSY, CANCELLED, IO, FULL, NOMEM.
 */

/*
 * Puts a label (UTF-8, 1 to 200 bytes) on an entry, or removes it. An entry can have
 * several labels, and several entries the same one. A label that is there already is not
 * written again. The label "pinned" is special: a message that has it stays in the
 * context, unedited, whatever policies propose. Only messages can be pinned (INVALID).
 * Labels that begin with "screen:" are put by screens alone (sessile_guard.h): putting
 * one is INVALID, and removing one needs the host's own handle or manage_access, else
 * DENIED. NOTFOUND: no such entry, or it does not have the label.
 */
SESSILE_API sessile_status sessile_label(sessile_session *session, sessile_id entry,
                                         sessile_slice name, sessile_error *err);
SESSILE_API sessile_status sessile_unlabel(sessile_session *session, sessile_id entry,
                                           sessile_slice name, sessile_error *err);

/* A label of an entry. The name is borrowed from the list and ends with a NUL. */
typedef struct sessile_label_row {
    sessile_id entry;
    sessile_slice name;
    sessile_id fact; /* id of the fact */
    int64_t time_ms; /* time of the fact */
} sessile_label_row;
/* Lists all labels, ordered by entry, then by when they were put: one block of *count
 * rows; free it with sessile_free(). */
SESSILE_API sessile_status sessile_labels(sessile_session *session,
                                          sessile_label_row **out, size_t *count,
                                          sessile_error *err);

/*
 * Settings (such as the model or a thinking level) and metadata are JSON objects of the
 * host. Setting one changes the members that `object` has and leaves the others; a member
 * that is null is removed. Metadata starts with what the session was created with. The
 * getters return the whole object, its members in the order in which they were last set;
 * free *out with sessile_free(). INVALID: a member occurs twice.
 */
SESSILE_API sessile_status sessile_set_settings(sessile_session *session,
                                                sessile_slice object, sessile_error *err);
SESSILE_API sessile_status sessile_settings(sessile_session *session, char **out,
                                            size_t *size, sessile_error *err);
SESSILE_API sessile_status sessile_set_metadata(sessile_session *session,
                                                sessile_slice object, sessile_error *err);
SESSILE_API sessile_status sessile_metadata(sessile_session *session, char **out,
                                            size_t *size, sessile_error *err);

/* ------------------------------------------------------------------ checkpoints */

/*
 * A checkpoint keeps the head, and a state of the host: any JSON, such as the step of a
 * plan. It is one entry that refers to the log. The conversation is not copied, since it
 * never changes.
 */

typedef enum sessile_checkpoint_reason {
    SESSILE_CHECKPOINT_MANUAL = 0,
    SESSILE_CHECKPOINT_PERIODIC,
    SESSILE_CHECKPOINT_EVENT,
    SESSILE_CHECKPOINT_THRESHOLD
} sessile_checkpoint_reason;
SESSILE_API const char *sessile_checkpoint_reason_name(sessile_checkpoint_reason reason);

/* Zeroed: no name and no state. Text is borrowed for the call. */
typedef struct sessile_checkpoint_options {
    sessile_slice name;     /* UTF-8, at most 200 bytes; or empty */
    sessile_slice state;    /* JSON, at most [message] bytes; or empty */
    sessile_slice metadata; /* JSON object, or empty */
    sessile_checkpoint_reason reason;
    sessile_slice event; /* EVENT: name of the event, at most 200 bytes */
    uint32_t keep;       /* greatest number kept, this one included; 0: as many as the
                            session's configuration says. The
                            oldest are withdrawn, those with a name last */
} sessile_checkpoint_options;

/* Writes a checkpoint of the head, durably. *out (may be NULL) is its id. Works on a
 * suspended session too. Errors: as for sessile_label(). */
SESSILE_API sessile_status sessile_checkpoint(sessile_session *session,
                                              const sessile_checkpoint_options *options,
                                              sessile_id *out, sessile_error *err);

/* Selects checkpoints. Zeroed: all. */
typedef struct sessile_checkpoint_filter {
    sessile_slice name;                      /* only those with this name; empty: all */
    int named;                               /* 1: only those that have a name */
    int64_t since_ms, until_ms;              /* made at or after since_ms and before
                                                until_ms; 0: no bound */
    const sessile_checkpoint_reason *reason; /* only those made for this reason; NULL: for
                                                any */
} sessile_checkpoint_filter;

/* One checkpoint. Text is borrowed from the list. */
typedef struct sessile_checkpoint_row {
    sessile_id entry;
    sessile_id head; /* the head that it keeps; SESSILE_NO_ID: unknown */
    int64_t time_ms;
    sessile_checkpoint_reason reason;
    uint64_t messages; /* number of messages in the context then */
    int64_t tokens;    /* tokens of the context then */
    uint64_t state_bytes;
    int sound; /* 0: its checksum does not match, and it cannot be restored */
    sessile_slice name, version, event, metadata;
} sessile_checkpoint_row;

/* Lists checkpoints, newest first: one block of *count rows; free it with sessile_free().
 * filter NULL: all. */
SESSILE_API sessile_status sessile_checkpoints(sessile_session *session,
                                               const sessile_checkpoint_filter *filter,
                                               sessile_checkpoint_row **out,
                                               size_t *count, sessile_error *err);

typedef struct sessile_restored {
    sessile_id checkpoint, head;
    sessile_slice state;    /* JSON as it was given, except for white space; or empty */
    sessile_slice warnings; /* what is different now, one line each; or empty */
} sessile_restored;

/*
 * Verifies a checkpoint, moves the head to the one that it keeps, durably, and returns
 * its state. Later entries stay in the log as another branch. *out is one block: free it
 * with sessile_free(). Errors: NOTFOUND; DAMAGED (its checksum does not match; nothing
 * was changed); CONFLICT (it was made by another version of the agent; with force 1 this
 * is a warning only); SUSPENDED.
 */
SESSILE_API sessile_status sessile_restore(sessile_session *session,
                                           sessile_id checkpoint, int force,
                                           sessile_restored **out, sessile_error *err);

/* Deletes a checkpoint by writing a tombstone. NOTFOUND; other errors as for
 * sessile_label(). */
SESSILE_API sessile_status sessile_checkpoint_delete(sessile_session *session,
                                                     sessile_id checkpoint,
                                                     sessile_error *err);

/* ------------------------------------------------------------------ suspensions */

/*
 * Suspends a session: until it is resumed or cancelled, every call in any process that
 * would add to the conversation or move its head returns SUSPENDED. Reading, facts
 * (labels, settings, titles, checkpoints, custom entries) and forks still work. The
 * suspension is kept in the log. It is for the host; a run that waits for its model needs
 * none. reason: UTF-8, or empty. state: JSON that sessile_suspended() returns, or empty.
 * *out (may be NULL) is the id of its entry. SUSPENDED: it is suspended already.
 */
SESSILE_API sessile_status sessile_suspend(sessile_session *session, sessile_slice reason,
                                           sessile_slice state, sessile_id *out,
                                           sessile_error *err);

typedef struct sessile_suspension {
    sessile_id entry;
    int64_t time_ms;
    sessile_slice reason, state; /* as given; borrowed from the block */
} sessile_suspension;
/* Returns the suspension in force, or NULL if the session is not suspended. *out is one
 * block: free it with sessile_free(). */
SESSILE_API sessile_status sessile_suspended(sessile_session *session,
                                             sessile_suspension **out,
                                             sessile_error *err);

/* Ends the suspension and appends the messages that the host waited for (count may be 0),
 * in one commit. *first (may be NULL) is the id of the first message. NOTFOUND: the
 * session is not suspended. */
SESSILE_API sessile_status sessile_resume_with(sessile_session *session,
                                               const sessile_slice *messages,
                                               size_t count, sessile_id *first,
                                               sessile_error *err);
/* Ends the suspension and every pending run, and appends no message. reason: UTF-8, or
 * empty. NOTFOUND: there is neither. LIMIT [message]: the reason is too long. */
SESSILE_API sessile_status sessile_cancel(sessile_session *session, sessile_slice reason,
                                          sessile_error *err);

/* ------------------------------------------------------------------ reading */

/* One message of a list. Text is borrowed from the list. */
typedef struct sessile_message {
    sessile_key key; /* n > 0: written by a policy; entry SESSILE_NO_ID: made by the
                        engine */
    sessile_role role;
    int64_t tokens;
    int64_t time_ms;    /* when it was said: its "timestamp" (ms since 1970, or a date and
                           time in text), or the time of its entry */
    sessile_slice json; /* the message as it was given, except for white space */
} sessile_message;

/* More about a context. */
typedef struct sessile_context_info {
    sessile_tokens tokens;
    sessile_id head;
    uint64_t dropped; /* messages on the path that are not in the context as they are */
    uint64_t orphans; /* results left out: their call is unknown, answered already, or not
                         in the context */
    uint64_t unanswered; /* results that the engine made for calls that were never
                            answered */
    uint64_t lost;       /* entries lost to damage that belonged to it: see
                            sessile_session_damage() */
} sessile_context_info;

/* Selects messages of a path. 0 and SESSILE_NO_ID: no restriction. Call
 * sessile_messages_options_init() first. */
typedef struct sessile_messages_options {
    sessile_id from; /* the first entry to return; SESSILE_NO_ID: from the root */
    size_t limit;    /* at most this number, counted from the first; 0: all */
    size_t last;     /* only this number of the newest ones; 0: all */
    sessile_role role;
    sessile_id at; /* the end of the path; SESSILE_NO_ID: the head */
} sessile_messages_options;
SESSILE_API void sessile_messages_options_init(sessile_messages_options *options);

/* Lists every message on the path from the root to options->at, compacted or not, oldest
 * first: one block of *count rows; free it with sessile_free(). options NULL: all up to
 * the head. NOTFOUND: `at` or `from` is not an entry on the path. */
SESSILE_API sessile_status sessile_messages(sessile_session *session,
                                            const sessile_messages_options *options,
                                            sessile_message **out, size_t *count,
                                            sessile_error *err);

/* Returns the context at an entry (SESSILE_NO_ID: the head): the list of messages that a
 * model is given. Results follow their calls, calls that were never answered have the
 * result "not answered", and results without a call are left out. *out is one block of
 * *count rows; free it with sessile_free(). info may be NULL. The tokens of a message are
 * what the model counts, as far as reported usage tells; everywhere else in this header
 * they are what was counted when the message was written. NOTFOUND (at); DAMAGED, SEALED,
 * IO, NOMEM. */
SESSILE_API sessile_status sessile_context(sessile_session *session, sessile_id at,
                                           sessile_message **out, size_t *count,
                                           sessile_context_info *info,
                                           sessile_error *err);

/*
 * Returns the JSON text of an entry; free *out with sessile_free(). Its members are, in
 * this order:
 *
 *   id, parent_id   8 hex digits; parent_id of the header: null
 *   timestamp       when the entry was written: "2026-11-21T20:12:03.123Z"
 *   type            "message", "turn", "compaction", …
 *   source          where it comes from: "user", "agent", "system", "tool", "policy",
 *                   "host"
 *   author          the "author" of a message, if it has one
 *   user            the user of the session when it was written, if there was one; a name
 *                   that is not UTF-8 is {"b64": "…"}. The header has it in its data
 *   data            an object; the message as it was given, or what the type has
 *   tokens          [number, how it was counted], of a message
 *
 * NOTFOUND, DAMAGED, SEALED, IO, NOMEM.
 */
SESSILE_API sessile_status sessile_entry(sessile_session *session, sessile_id id,
                                         char **out, size_t *size, sessile_error *err);

/* ------------------------------------------------------------------ the tree */

/*
 * Every entry except the header has a parent. The header, messages, turns, compactions
 * and branch summaries form the tree of the conversation. One of them is the head, and
 * the conversation can continue from any of them (sessile_branch()). Other entries are
 * facts; the parent of a fact is the entry that it is about. The functions below take
 * entries of the tree (NOTFOUND for others; the message names the nearest in the tree).
 * They return lists of ids as one block of *count; free it with sessile_free(). Other
 * errors: IO, DAMAGED, NOMEM.
 */

/* The entries from the header to id, both included. SESSILE_NO_ID: to the head. */
SESSILE_API sessile_status sessile_path(sessile_session *session, sessile_id id,
                                        sessile_id **out, size_t *count,
                                        sessile_error *err);
/* The children of id, oldest first; and the other children of its parent. The first call
 * on a handle looks at every entry, later calls only at those they return. */
SESSILE_API sessile_status sessile_children(sessile_session *session, sessile_id id,
                                            sessile_id **out, size_t *count,
                                            sessile_error *err);
SESSILE_API sessile_status sessile_siblings(sessile_session *session, sessile_id id,
                                            sessile_id **out, size_t *count,
                                            sessile_error *err);
/* The newest entry that is on the paths to both a and b. It is one of the two if that is
 * an ancestor of the other. */
SESSILE_API sessile_status sessile_common_ancestor(sessile_session *session, sessile_id a,
                                                   sessile_id b, sessile_id *out,
                                                   sessile_error *err);
/* The entries without children, in the order of the log. The head need not be one of
 * them. */
SESSILE_API sessile_status sessile_leaves(sessile_session *session, sessile_id **out,
                                          size_t *count, sessile_error *err);

/* A row of sessile_tree(). Rows are in the order of the log: a parent comes before its
 * children. */
typedef struct sessile_node {
    sessile_id id;
    sessile_id parent;     /* with a selection: the nearest ancestor that is selected;
                              SESSILE_NO_ID: none */
    uint32_t first_child;  /* row of the oldest child; SESSILE_NO_ID: none */
    uint32_t next_sibling; /* row of the next younger child of the same parent;
                              SESSILE_NO_ID: none */
    uint32_t tokens;       /* tokens of a message; else 0 */
    unsigned char role;    /* of a message: a sessile_role; else SESSILE_ROLE_NONE */
    unsigned char speaker; /* of a message, to a person: its role; SESSILE_TOOL if it is
                              the user's and holds only results of tools */
    unsigned starts_turn : 1; /* 1: the user asks something here */
    unsigned is_path : 1;     /* 1: part of the conversation; 0: a fact */
    unsigned on_path : 1;     /* 1: on the path to the head */
    unsigned is_head : 1;
    unsigned labelled : 1;   /* 1: it has a label, or is pinned */
    unsigned in_context : 1; /* 1: the context at the head shows it as it is */
    const char *type;        /* "message", "turn", …; static */
    int64_t total_tokens;    /* tokens of all messages from the header to this entry */
    int64_t time_ms;         /* when a message was said; else the time of the entry */
} sessile_node;

/* Selects entries. Call sessile_tree_options_init() first: it selects all. */
typedef struct sessile_tree_options {
    const char *const *types; /* only entries of these types */
    size_t type_count;        /* 0: all types */
    int labelled;             /* 1: only entries that have a label */
} sessile_tree_options;
SESSILE_API void sessile_tree_options_init(sessile_tree_options *options);

/* Returns the entries of the session as a tree: one block of *count rows; free it with
 * sessile_free(). options NULL: all. INVALID: there is no such type. */
SESSILE_API sessile_status sessile_tree(sessile_session *session,
                                        const sessile_tree_options *options,
                                        sessile_node **out, size_t *count,
                                        sessile_error *err);

/* Selects entries of a log, and their order. Call sessile_entries_options_init() first:
 * it selects all, oldest first. */
typedef struct sessile_entries_options {
    sessile_id after; /* only entries after this one; SESSILE_NO_ID: from the header on */
    sessile_id before; /* only entries before this one; SESSILE_NO_ID: to the newest */
    const char *const *types; /* only entries of these types, as "custom" */
    size_t type_count;        /* 0: all types */
    uint64_t limit;           /* at most this number; 0: all */
    int reverse;              /* 1: the newest first */
} sessile_entries_options;
SESSILE_API void sessile_entries_options_init(sessile_entries_options *options);

/* Iterates over the entries that the log has now and that options select (NULL: all).
 * Each step returns the id and the JSON text of an entry, which is borrowed until the
 * next step. At the end: OK with *size 0. Only what a step returns is read from the
 * store: what has come since `after`, or the newest of a type, costs the same in a long
 * log as in a short one. Close the iterator before its session. INVALID: the log has no
 * entry `after` or `before`, or there is no such type. */
SESSILE_API sessile_status sessile_entries_open(sessile_entries **out,
                                                sessile_session *session,
                                                const sessile_entries_options *options,
                                                sessile_error *err);
SESSILE_API sessile_status sessile_entries_next(sessile_entries *entries, sessile_id *id,
                                                const char **json, size_t *size,
                                                sessile_error *err);
SESSILE_API void sessile_entries_close(sessile_entries *entries);

/* ------------------------------------------------------------------ searching */

/* What to look for, and where. Call sessile_search_options_init() first. Text is borrowed
 * until sessile_search_open() returns. */
typedef struct sessile_search_options {
    sessile_slice text; /* the text to find, no pattern; UTF-8, 1 to 1000 bytes */
    int exact;          /* 0: ignore the case of ASCII letters; 1: do not */
    const sessile_list_options *sessions; /* which sessions, in what order; NULL: all */
    unsigned roles; /* bits 1u << role: search only messages of these speakers (as in
                       sessile_node); 0: messages of any role, titles and labels */
    int head_only;  /* 1: only messages on the path to the head; 0: the whole log */
    uint64_t limit; /* stop after this number of results; 0: no limit */
} sessile_search_options;
SESSILE_API void sessile_search_options_init(sessile_search_options *options);

typedef enum sessile_found_kind {
    SESSILE_FOUND_END = 0, /* the search has ended */
    SESSILE_FOUND_NOTHING, /* no result in this step, only progress */
    SESSILE_FOUND_MESSAGE,
    SESSILE_FOUND_TITLE,
    SESSILE_FOUND_LABEL,
    SESSILE_FOUND_UNREAD /* a session that could not be searched completely */
} sessile_found_kind;

/* The result of a step. All text is borrowed until the next step. */
typedef struct sessile_found {
    sessile_found_kind kind;
    sessile_slice id, agent, user, title; /* the session; UNREAD: as far as known */
    sessile_id entry;  /* the message, or the entry with the label; else SESSILE_NO_ID */
    sessile_role role; /* MESSAGE: its speaker, as in sessile_node */
    int64_t time_ms;   /* time of the message or of the label; else of the newest entry of
                          the session */
    const char *field; /* MESSAGE: the member that contains it: "content", "tool_calls",
                          …; else "" */
    sessile_slice text;        /* the first occurrence with the text around it, UTF-8 */
    size_t at, size;           /* offset and size of the occurrence in `text`, in bytes */
    int cut_before, cut_after; /* 1: there is more before or after `text` */
    sessile_status status;     /* UNREAD: why */
    const char *message;       /* UNREAD: the message of the error; else "" */
    uint64_t index, total;     /* sessions searched so far, and in all */
    uint64_t done, entries;    /* entries of this session searched so far, and in all */
} sessile_found;

typedef struct sessile_search sessile_search;
/*
 * Begins a search through the sessions that options->sessions selects, in the order of
 * that list. Within a session it looks at the title, the labels (without "pinned"), then
 * at messages and branch summaries of all branches in the order of the log. Of a message
 * it searches the text of the content in any of its forms, the reasoning of the model,
 * and arguments and results of tools, with JSON escapes decoded and without the control
 * sequences of terminals. It does not search names of members, ids, signatures, or data
 * that is encrypted or not text.
 *
 * There is no index. Logs are opened and read one at a time, and a step reads a few
 * megabytes, so that the host can stop after any step. Close *out with
 * sessile_search_close(). INVALID: text is empty, too long or not UTF-8. Other errors: as
 * for sessile_list_with().
 */
SESSILE_API sessile_status sessile_search_open(sessile_search **out, sessile_store *store,
                                               const sessile_search_options *options,
                                               sessile_error *err);
/* Does the next step. A session or a line that cannot be opened is a step of kind UNREAD,
 * not an error. An error ends the search: NOMEM, FORKED. */
SESSILE_API sessile_status sessile_search_next(sessile_search *search, sessile_found *out,
                                               sessile_error *err);
/* Ends a search, before its store is closed. NULL is ignored. */
SESSILE_API void sessile_search_close(sessile_search *search);

/* ------------------------------------------------------------------ checks */

typedef enum sessile_severity {
    SESSILE_NOTE = 0, /* nothing is wrong: something was done, or is kept */
    SESSILE_WARNING,  /* nothing that was acknowledged is missing, but somebody should
                         look */
    SESSILE_DAMAGE    /* something that was written cannot be read, or has changed */
} sessile_severity;

/* Something that a check found. */
typedef struct sessile_finding {
    sessile_severity severity;
    sessile_status code; /* DAMAGED, TRUNCATED, SEALED, …; OK for notes */
    const char *file;    /* path in the store, such as "agents/main/bug-42.jsonl" */
    sessile_id entry;    /* SESSILE_NO_ID: not about an entry */
    uint64_t offset, bytes;
    const char *what; /* a sentence */
    const char *next; /* the command to run, or "" */
} sessile_finding;

/* The result of a step: one log, or, in the last step (id empty, entries 0), the files
 * beside the logs. All text is borrowed until the next step. */
typedef struct sessile_checked {
    sessile_slice id, agent;
    const char *file; /* NULL: the check is done */
    uint64_t entries, bytes;
    uint64_t lost; /* number of entries that cannot be read */
    int salvaged;  /* 1: the log was rewritten, and its old bytes are kept */
    const sessile_finding *findings;
    size_t count;
    size_t index, total; /* steps done so far, and in all */
} sessile_checked;

typedef struct sessile_check sessile_check;
/*
 * Begins a check of one session (which->id, agent and user), of all sessions of an agent
 * (an empty id), or of the whole store (which NULL, or both empty). It reads each log
 * from the first byte, decrypts each line, compares it with the one before it, and folds
 * each entry.
 *
 * salvage 0: nothing is changed; even a torn end stays. salvage 1: each damaged log is
 * replaced by a new one, in which every lost entry is a tombstone and every other entry
 * is unchanged and has the same id. The old bytes are kept beside it. Close *out with
 * sessile_check_close(). NOTFOUND: no such session. INVALID, IO, NOMEM.
 */
SESSILE_API sessile_status sessile_check_open(sessile_check **out, sessile_store *store,
                                              const sessile_session_options *which,
                                              int salvage, sessile_error *err);
/* Does the next step. out->file is NULL when the check is done. What is wrong with a log
 * is in the findings; an error is about the check itself: NOMEM, IO (a folder cannot be
 * listed). */
SESSILE_API sessile_status sessile_check_next(sessile_check *check, sessile_checked *out,
                                              sessile_error *err);
/* NULL is ignored. */
SESSILE_API void sessile_check_close(sessile_check *check);

/* ------------------------------------------------------------------ policies */

/* The hooks of a policy, in the order in which they run. They are bits of
 * sessile_policy_step.hooks. */
typedef enum sessile_hook {
    SESSILE_HOOK_MERGE = 1,
    SESSILE_HOOK_SUMMARIZE = 2,
    SESSILE_HOOK_TRUNCATE = 4,
    SESSILE_HOOK_SHOULD_COMPACT = 8,
    SESSILE_HOOK_FLUSH = 16,
    SESSILE_HOOK_COMPACT = 32,
    SESSILE_HOOK_BRANCH_SUMMARY = 64, /* only for branches: see sessile_branch_begin() */
    /* only for runs of memories: see sessile_memory.h */
    SESSILE_HOOK_REMEMBER = 128,
    SESSILE_HOOK_TIDY = 256,
    SESSILE_HOOK_RECALL = 512,
    SESSILE_HOOK_ADMIT = 1024
} sessile_hook;
SESSILE_API const char *sessile_hook_name(sessile_hook hook);

/*
 * One policy of a chain. hooks 0: a Lua file. A name that contains '/' or ends in ".lua"
 * is a path; any other name is looked up in the folders of policy_path of the store.
 * hooks not 0: functions of the host. Then a run returns NEEDS with SESSILE_NEED_HOOK
 * when one of these hooks is due; the name is used in messages.
 */
typedef struct sessile_policy_step {
    const char *name;
    const char *options; /* JSON object text, or NULL */
    unsigned hooks;      /* functions of the host: which hooks there are; 0: a Lua file */
} sessile_policy_step;

/*
 * Loads a chain of policies: finds the files, compiles them and checks their options.
 * Modules that a file requires while it is loaded are loaded too, by the same rules. A
 * policy never changes, may be used by any number of threads, and is reference-counted;
 * release *out with sessile_policy_free().
 *
 * If a file belongs to somebody other than the user or root, or others may write to it,
 * the whole chain runs in a process of its own, whatever the isolation of the store is
 * (DENIED if that process cannot be started: see `worker` in sessile_store_options).
 *
 * Errors: NOTFOUND (the message lists the policies that exist), POLICY (it does not
 * compile or load), INVALID (options), DENIED (a link, or not a regular file), LIMIT,
 * NOMEM.
 */
SESSILE_API sessile_status sessile_policy_load(sessile_policy **out, sessile_store *store,
                                               const sessile_policy_step *steps,
                                               size_t count, sessile_error *err);
/* Releases the reference of the caller. NULL is ignored. */
SESSILE_API void sessile_policy_free(sessile_policy *policy);

/* ------------------------------------------------------------------ runs */

/* Why a policy runs. sessile_reason_name() returns "turn", "threshold", …; static. */
typedef enum sessile_reason {
    SESSILE_REASON_TURN = 0,
    SESSILE_REASON_THRESHOLD,
    SESSILE_REASON_OVERFLOW,
    SESSILE_REASON_TIMER,
    SESSILE_REASON_EVENT,
    SESSILE_REASON_MANUAL
} sessile_reason;
SESSILE_API const char *sessile_reason_name(sessile_reason reason);

/* What to do when the base of a turn or a branch is no longer the head. */
typedef enum sessile_on_conflict {
    SESSILE_ON_CONFLICT_FAIL = 0, /* return CONFLICT and write nothing */
    SESSILE_ON_CONFLICT_APPEND,   /* turn: append after what came in between; branch: move
                                     the head from wherever it is */
    SESSILE_ON_CONFLICT_BRANCH    /* turn: write it as a branch beside what came in
                                     between. The head stays where it is; the outcome
                                     names the last entry of the branch, which is the next
                                     base of this handle */
} sessile_on_conflict;

struct sessile_memory; /* see sessile_memory.h */

typedef struct sessile_run_options {
    sessile_config config;  /* of this run. Triggers and checkpoint rules: turn */
    sessile_slice usage;    /* turn: JSON object of the provider's usage, or empty; of
                               several model calls: the last one's, and their sum as
                               its member "total" */
    sessile_slice model;    /* turn: the model's name, or empty; branch: of the model to
                               ask, given with the engine's own request */
    sessile_slice metadata; /* turn: JSON object, or empty */
    int has_base; /* turn, branch: base below is the head it was thought on; else
                     it is the head that this handle last showed or made (by
                     head, context, messages, a write), so that a CONFLICT
                     comes again until somebody has looked */
    sessile_id base;
    sessile_slice once;  /* turn: a name of the caller's for this turn, UTF-8 of 1 to 64
                            bytes without control characters, or empty. If a turn of that
                            name was written after the base (has_base), nothing is
                            written: the outcome is `again` and has its ids, whatever its
                            messages are. So a call whose answer was lost can be made
                            again, by any process */
    int no_policy;       /* turn: run none, whatever is configured; the next turn
                            judges triggers for both */
    int no_fallback;     /* run none, whatever is configured or named by the policy */
    sessile_slice event; /* turn: the name of what happened, or empty; a trigger that
                            lists it fires, one that does not lets it pass */
    sessile_slice state; /* turn: JSON for a checkpoint that is due, copied; empty:
                            the run needs it then (SESSILE_NEED_STATE) */
    sessile_slice instructions;      /* compact, branch: what the person typed */
    sessile_reason reason;           /* compact: default MANUAL: a person asks, and no
                                        fallback runs unless config.fallback of these
                                        options names it */
    sessile_on_conflict on_conflict; /* turn, branch */
    sessile_slice summary;           /* branch: of what it leaves, or empty */
    int summarize;                   /* branch: ask for one, when none is given */
    /* turn, compact, plan, answer: the memories that policies have as ctx.memory, as for
     * sessile_recall() in sessile_memory.h. What is proposed for them is judged by the
     * laws of memory and written before the compaction is. Without the user's consent
     * policies have none. */
    struct sessile_memory *const *memories;
    size_t memory_count;
} sessile_run_options;
SESSILE_API void sessile_run_options_init(sessile_run_options *options);

/*
 * Begins a turn. It writes the messages (JSON objects) and a turn entry as one commit,
 * before any policy runs. Whatever goes wrong afterwards costs a compaction, never the
 * turn. The turn is acknowledged only when sessile_run_step() returns OK, so step until
 * it returns OK or an error. Free *out with sessile_run_free().
 *
 * Without messages (count 0) it ends the turn of the messages that were appended since
 * the last one: only the turn entry is written, then policies run. INVALID: there are no
 * such messages, or options->usage is given.
 *
 * With options->once a turn is written once, however often it is asked for: see there.
 * INVALID: `once` without a base, or too long.
 *
 * CONFLICT: the head is not the base (compactions after the base do not matter). Nothing
 * was written; options->on_conflict can choose otherwise. CANCELLED: see
 * sessile_interrupt(). Other errors: as for sessile_append().
 */
SESSILE_API sessile_status sessile_turn_begin(sessile_run **out, sessile_session *session,
                                              const sessile_slice *messages, size_t count,
                                              const sessile_run_options *options,
                                              sessile_error *err);

/* Begins a compaction of the context at the head. Free *out with sessile_run_free().
 * INVALID: there is no policy. */
SESSILE_API sessile_status sessile_compact_begin(sessile_run **out,
                                                 sessile_session *session,
                                                 const sessile_run_options *options,
                                                 sessile_error *err);

/* As sessile_compact_begin(), but nothing is written. The outcome is what a compaction
 * would do now. */
SESSILE_API sessile_status sessile_plan_begin(sessile_run **out, sessile_session *session,
                                              const sessile_run_options *options,
                                              sessile_error *err);

/*
 * Begins a branch: moves the head to an entry of the tree, where the conversation
 * continues. The move is written as a fact, so that it survives a restart. The entries
 * that the path leaves stay in the log.
 *
 * NOTFOUND: there is no such entry in the tree; the message names the nearest. CONFLICT:
 * the head is not the base (compactions after the base do not matter), and nothing was
 * written; with on_conflict APPEND the head moves from wherever it is. INVALID or LIMIT
 * [message]: the summary. Other errors: as for sessile_append().
 *
 * A summary of what the path leaves can be added as a "branch_summary" entry: a message
 * of the user at the new head, which is part of the context. Its metadata has `kind`
 * ("branch_summary"), `from` (the old head) and `ancestor` (the newest entry on both
 * paths). With options->summary it is written together with the move. With
 * options->summarize it is requested after the move: from the first policy whose
 * branch_summary hook returns one, or, if no policy has that hook, from the model of the
 * host (a need with policy ""). A summary that fails, or comes after the conversation has
 * continued, is left out; verdict and message of the outcome say so.
 */
SESSILE_API sessile_status sessile_branch_begin(sessile_run **out,
                                                sessile_session *session,
                                                sessile_id entry,
                                                const sessile_run_options *options,
                                                sessile_error *err);

/* Does all of this in one call, with the given summary, or none (empty). *head (may be
 * NULL) is the head afterwards. */
SESSILE_API sessile_status sessile_branch(sessile_session *session, sessile_id entry,
                                          sessile_slice summary, sessile_id *head,
                                          sessile_error *err);

/* Takes the newest n messages of the path off the conversation, as off a stack: the head
 * moves to before them, in one commit. *out has them, oldest first: one block of *count
 * rows; free it with sessile_free(). They are fewer than n if the path has fewer. The log
 * keeps everything, and sessile_branch() goes back. A turn can lose some of its messages,
 * and a call its result; what a compaction after them did is undone with them.
 *
 * base: the head that the caller knows; SESSILE_NO_ID: the one that this handle last
 * showed or made. CONFLICT: somebody has written since; read again, then retry. INVALID:
 * n is 0. SUSPENDED; other errors as for sessile_append(). After an error nothing was
 * taken off, except as sessile_append() says. */
SESSILE_API sessile_status sessile_pop(sessile_session *session, size_t n,
                                       sessile_id base, sessile_message **out,
                                       size_t *count, sessile_error *err);

typedef enum sessile_need_kind {
    SESSILE_NEED_NONE = 0,
    SESSILE_NEED_MODEL, /* ask a model; answer with its text */
    SESSILE_NEED_HOOK,  /* run the host's hook on the state; answer with its verdict */
    SESSILE_NEED_STATE, /* a checkpoint is due: answer with the state of the host (JSON),
                           or with a failure to make it without a state */
    SESSILE_NEED_EMBED  /* memories: embed texts; answer with
                           sessile_memory_run_reply_vectors() */
} sessile_need_kind;

/* What a run waits for. Everything is borrowed until sessile_run_reply(). */
typedef struct sessile_need {
    sessile_need_kind kind;
    const char *policy; /* name of the policy that asks; "": the engine asks */
    size_t step;        /* index of the policy in its chain */
    /* MODEL: JSON {"messages":[…],"max_tokens":…,"purpose":…}. EMBED: JSON {"texts":[…],
     * "model":…,"dims":…,"purpose":"entry" or "question"}; dims 0: as the model says;
     * of entries also "ids":[…].
     * HOOK of a memory: its arguments, a JSON array. */
    sessile_slice request;
    sessile_hook hook;    /* HOOK: which hook */
    sessile_state *state; /* HOOK: the state that the hook reads and edits; of a memory:
                             NULL */
    sessile_reason reason;
    sessile_slice instructions;
    sessile_slice options; /* HOOK: options of the policy, a JSON object */
    int64_t now_ms;        /* HOOK: the time of the turn; policies should use no other
                              clock */
    int fallback;          /* 1: the fallback asks, and `step` is an index in its chain */
} sessile_need;

/* The answer to a need. */
typedef struct sessile_answer {
    sessile_status status; /* OK; anything else: the answer is a failure, and `text` is
                              its reason */
    sessile_slice text;    /* MODEL: the text of the model; STATE: the state, JSON; HOOK
                              branch_summary: the summary, or empty; HOOK of a memory:
                              see sessile_memory_run_step() */
    int verdict;           /* HOOK should_compact: 0 or 1 */
} sessile_answer;

/* Continues the run. OK: it is done. NEEDS: it waits for the answer to *need. Anything
 * else: the run has failed. The failure of a policy is not an error of the run: it is in
 * the outcome. */
SESSILE_API sessile_status sessile_run_step(sessile_run *run, sessile_need *need,
                                            sessile_error *err);
/* Gives the run the answer to what it needs; then step again. The answer is copied.
 * INVALID: the run needs nothing. */
SESSILE_API sessile_status sessile_run_reply(sessile_run *run,
                                             const sessile_answer *answer,
                                             sessile_error *err);

/* The result of a policy's proposal. */
typedef enum sessile_verdict {
    SESSILE_NO_POLICY = 0, /* no policy is configured, or automatic compaction is off */
    SESSILE_UNCHANGED,     /* it proposed nothing */
    SESSILE_APPLIED,
    SESSILE_REFUSED,    /* it failed or broke a law: see `law` and `message` */
    SESSILE_TOO_LITTLE, /* compact would have saved less than 5 %: not applied, and
                           nothing else was edited */
    SESSILE_STALE,  /* not applied: the session was changed meanwhile, see `message` */
    SESSILE_PENDING /* the run is pending: see outcome.pending_run */
} sessile_verdict;

/* What happens to a message that leaves the context. */
typedef enum sessile_disposition {
    SESSILE_LOST = 0, /* dropped without a substitute */
    SESSILE_COVERED,  /* a new message covers it and others */
    SESSILE_REPLACED, /* a new message replaces it alone */
    SESSILE_UNDONE    /* the compaction that wrote it was undone; never of a run */
} sessile_disposition;
/* One message that a proposal takes out of the context. */
typedef struct sessile_removal {
    sessile_key key;
    sessile_disposition disposition;
    sessile_role role;
    int64_t tokens;
    sessile_key by; /* COVERED, REPLACED: the new message; else entry SESSILE_NO_ID */
} sessile_removal;

/* The result of a fallback. Fields as in sessile_outcome. */
typedef struct sessile_fallback {
    sessile_verdict
        verdict; /* NO_POLICY: it did not run; PENDING: it waits for a model */
    int too_little;
    const char *policy;
    const char *hook;
    int law;
    const char *message;
    sessile_id refusal;
    uint64_t repeated;
} sessile_fallback;

/*
 * The result of a run. Everything is borrowed from the run. If the policy was refused and
 * there is a fallback, the fallback has run once on the same context, with notes and
 * budget of its own. It is the configured one, else the one that the policy's file names;
 * for a compaction that a person asked for, only the one that the call named. Then
 * verdict, policy, hook, law, message, refusal and repeated are about the policy,
 * `fallback` is about the fallback, and everything else describes what is now in force.
 */
typedef struct sessile_outcome {
    sessile_id first, last; /* turn: ids of its first message and of its turn entry; the
                               same id twice if it wrote no message */
    int again; /* turn: 1: an earlier call with the same `once` wrote it; nothing was
                  written now, and no policy ran */
    sessile_id
        head; /* the head after the run; of a turn written as a branch: its last entry */
    sessile_id from;           /* branch: the head that was left; else SESSILE_NO_ID */
    sessile_id branch_summary; /* branch: the entry with the summary, or SESSILE_NO_ID */
    sessile_id compaction;     /* the compaction entry, or SESSILE_NO_ID */
    int64_t time_ms;           /* when that entry was written; 0: none was */
    sessile_id first_kept;     /* the first message that stayed as it was, of those after
                                  the first that left the context; or SESSILE_NO_ID */
    sessile_verdict verdict;
    int too_little;      /* 1: a `compact` hook would have saved less than 5 %, and its
                            edits were left out */
    const char *policy;  /* REFUSED: the policy that failed; else the last one that
                            edited; or "" */
    const char *hook;    /* REFUSED: the hook that failed; or "" */
    int law;             /* REFUSED: the law that was broken, 1 to 10 (10: the budget is
                            used up); 0: an error */
    const char *message; /* REFUSED, STALE: the reason; or "" */
    sessile_id refusal;  /* id of the entry that records the refusal, or SESSILE_NO_ID */
    sessile_id pending_run;        /* PENDING: id for sessile_answer_begin(); or
                                      SESSILE_NO_ID */
    sessile_id checkpoint;         /* the checkpoint made by the turn, or SESSILE_NO_ID */
    const char *checkpoint_failed; /* why a checkpoint that was due could not be made; or
                                      "" */
    uint64_t repeated; /* REFUSED: how often the same refusal has been repeated since it
                          was recorded (then `refusal` is SESSILE_NO_ID) */
    const char *log;   /* what policy files wrote with ctx.log, one line each; or "" */
    int64_t tokens_before, tokens_after; /* tokens of the context before, after the run */
    int64_t cannot_fit; /* number of tokens by which the context exceeds window - reserve;
                           0: it fits */
    const sessile_removal *removals;
    size_t removal_count;
    sessile_slice memory;  /* what policies proposed for memories, as `changes` of a
                              sessile_memory_outcome; empty: nothing */
    const char *summary;   /* text of the first message that was inserted, or ""; branch:
                              the summary */
    uint64_t engine_us;    /* time spent in the engine, without waiting for the host */
    uint64_t policy_us;    /* part of it that was spent in policies */
    sessile_reason reason; /* turn: why `compact` hooks ran last: EVENT, OVERFLOW,
                              THRESHOLD or TIMER; TURN: no trigger fired. Otherwise the
                              reason that the options gave */
    sessile_fallback fallback;
} sessile_outcome;
SESSILE_API sessile_status sessile_run_outcome(sessile_run *run, sessile_outcome *out,
                                               sessile_error *err);

/* Returns the context after the run (of a plan: as it would be). *out is as for
 * sessile_context(). INVALID: the run is not done. */
SESSILE_API sessile_status sessile_run_context(sessile_run *run, sessile_message **out,
                                               size_t *count, sessile_error *err);

/*
 * Ends a run that waits for a model by writing it into the log as a pending run, durably.
 * The outcome is PENDING. *out (and outcome.pending_run) is the id for
 * sessile_answer_begin(), which may be called in this process or another, at any later
 * time. Other appends and turns are not blocked meanwhile. INVALID: the run does not wait
 * for a model, or it is a plan or a branch. Other errors: as for sessile_append(); the
 * run then still waits.
 */
SESSILE_API sessile_status sessile_run_defer(sessile_run *run, sessile_id *out,
                                             sessile_error *err);

/* A pending run that can still be answered. Text is borrowed from the list. */
typedef struct sessile_pending_run {
    sessile_id entry;
    int64_t time_ms;
    int refused; /* 1: it was answered, and then its policy was refused. The answer is
                    kept: after mending the policy, call sessile_answer_begin() without an
                    answer */
    sessile_slice policy;  /* name of the policy that asks */
    sessile_slice request; /* request to the model: JSON, as in sessile_need.request */
} sessile_pending_run;
/* Lists pending runs, oldest first: one block of *count rows; free it with
 * sessile_free(). A pending run disappears when it was answered or cancelled, when a
 * later compaction was written, or when the head left its branch. */
SESSILE_API sessile_status sessile_pending_runs(sessile_session *session,
                                                sessile_pending_run **out, size_t *count,
                                                sessile_error *err);

/*
 * Begins a run that continues a pending run (SESSILE_NO_ID: the newest). Its policy runs
 * again from the start on the same context. Earlier answers are taken from the log; the
 * next request gets `answer`. If answer is NULL, or there are more requests, the run
 * returns NEEDS as usual. The pending run is closed when the result is written. If the
 * policy is refused, the answers are kept as another pending run.
 *
 * Of options these are used: policy (NULL: that of the session, else of the store, else
 * the pending one, loaded from its files), fallback, no_fallback and the timeout. Free
 * *out with sessile_run_free(). NOTFOUND: it can no longer be answered. SUSPENDED.
 * INVALID, POLICY, DENIED: as for sessile_policy_load().
 */
SESSILE_API sessile_status sessile_answer_begin(
    sessile_run **out, sessile_session *session, sessile_id pending_run,
    const sessile_answer *answer, const sessile_run_options *options, sessile_error *err);

/* Frees a run. If it is not done, its turn stays in the log and its proposal is dropped.
 * NULL is ignored. */
SESSILE_API void sessile_run_free(sessile_run *run);

/* ------------------------------------------------------------------ explaining */

/* A compaction on the path that has a context of its own, or a refusal. */
typedef struct sessile_compaction {
    sessile_id id;
    int refused; /* 1: a refusal: a policy broke a law or failed, and nothing changed */
    int64_t time_ms;
    sessile_slice policy;   /* names and versions of the policies whose edits it contains,
                               "edit_tools 1, summarize 2"; of a refusal: name of the
                               policy that failed */
    sessile_slice policies; /* the same with hashes and options, as a JSON array */
    sessile_slice reason;   /* "turn", "threshold", "manual", … */
    sessile_slice instructions, summary; /* each may be empty */
    int64_t tokens_before, tokens_after; /* -1: unknown */
    /* the members from here to in_force are set for compactions */
    sessile_id uncompacts;            /* the one that it undoes; or SESSILE_NO_ID */
    sessile_id first_kept;            /* see sessile_outcome; or SESSILE_NO_ID */
    uint64_t kept;                    /* messages of its context that were there before */
    uint64_t lost, covered, replaced; /* messages that left, by disposition */
    uint64_t undone;                  /* messages that left because the compaction that
                                         wrote them is undone */
    uint64_t written, restored;       /* messages that came: inserted by it, and restored
                                         by it */
    uint64_t in_force; /* how many of these removals and additions are still in force */
    /* the members from here are set for refusals */
    sessile_slice hook, message; /* the hook that failed, and the reason; each may be
                                    empty */
    int law;                     /* the law that was broken, 1 to 10; 0: an error or a
                                    used up budget */
    sessile_slice law_name;      /* or empty */
    sessile_key entry;           /* the message concerned; or entry SESSILE_NO_ID */
    uint64_t repeated; /* of the newest refusal: how often it was repeated, as far as this
                          handle has seen */
} sessile_compaction;

/* Lists the compactions that have a context of their own on the path to the head, and the
 * refusals between them, in the order of the log: one block of *count rows; free it with
 * sessile_free(). DAMAGED: one of them cannot be read. NOMEM. */
SESSILE_API sessile_status sessile_compactions(sessile_session *session,
                                               sessile_compaction **out, size_t *count,
                                               sessile_error *err);

/* What happened to a message. */
typedef enum sessile_why_kind {
    SESSILE_WHY_SAID = 0,   /* it was appended, and so came into the context */
    SESSILE_WHY_WRITTEN,    /* a compaction inserted it: see stands_for */
    SESSILE_WHY_LEFT,       /* a compaction removed it: see disposition and `by` */
    SESSILE_WHY_RESTORED,   /* a compaction restored it */
    SESSILE_WHY_ELSEWHERE,  /* it is on another branch, which leaves the path at `at` */
    SESSILE_WHY_NO_MESSAGE, /* the entry is not a message and never enters a context */
    SESSILE_WHY_ORPHAN, /* in the list but not given to the model: a result whose call is
                           unknown, answered already, or not in the context (then `by` is
                           the message with the call) */
    SESSILE_WHY_UNANSWERED, /* given to the model; one of its calls has no result, and the
                               engine answers "not answered" */
    SESSILE_WHY_MOVED /* given to the model in another place, after its call, which is in
                         `by` */
} sessile_why_kind;

typedef struct sessile_why_step {
    sessile_why_kind kind;
    sessile_key key;   /* the message: the one asked for, or one that replaced or covered
                          it */
    sessile_id at;     /* the entry where it happened */
    int64_t time_ms;   /* time of that entry */
    sessile_role role; /* SAID, WRITTEN: the speaker, as in sessile_node */
    const char *type;  /* NO_MESSAGE: type of the entry; else "" */
    sessile_disposition disposition; /* LEFT */
    sessile_key by; /* LEFT: its substitute, or entry SESSILE_NO_ID; ORPHAN, MOVED: the
                       call */
    const sessile_key *stands_for; /* WRITTEN: the messages that it replaces or covers */
    size_t stands_for_count;
    const sessile_compaction *compaction; /* WRITTEN, LEFT, RESTORED; else NULL */
} sessile_why_step;

typedef struct sessile_explanation {
    sessile_key key;
    int in_context;    /* 1: the model is given this message itself */
    sessile_key shown; /* the message that the model is given for it: itself, or its
                          substitute; entry SESSILE_NO_ID: none */
    const sessile_why_step *steps; /* oldest first, at least one */
    size_t step_count;
} sessile_explanation;

/*
 * Explains why a message is in the context at the head, or why not: everything that
 * happened to it and, after it was replaced or covered, to its substitute. *out is one
 * block: free it with sessile_free(). NOTFOUND: there is no such entry, or the compaction
 * inserted no such message. DAMAGED, NOMEM.
 */
SESSILE_API sessile_status sessile_why(sessile_session *session, sessile_key key,
                                       sessile_explanation **out, sessile_error *err);

/* The result of sessile_uncompact(). */
typedef struct sessile_uncompacted {
    sessile_id compaction; /* the entry that was written; SESSILE_NO_ID: dry run */
    sessile_id undone;     /* the compaction that was undone */
    const sessile_key *restored, *removed; /* in the order of the context */
    size_t restored_count, removed_count;
    int64_t tokens_before, tokens_after; /* tokens of the context */
    int64_t cannot_fit; /* number of tokens by which the context exceeds window - reserve;
                           0: it fits */
} sessile_uncompacted;

/*
 * Undoes a compaction on the path to the head by writing a new compaction. Messages that
 * it removed come back, in their place as far as that is known. Messages that it inserted
 * are removed, each only if everything that it replaced or covered comes back. What a
 * later compaction did to these messages stays as it is. Notes of policies stay too. To
 * redo the first compaction, undo the new one.
 *
 * which: SESSILE_NO_ID: the newest compaction that is in force and undoes no other.
 * dry_run 1: nothing is written. *out (may be NULL) is one block: free it with
 * sessile_free().
 *
 * Errors: NOTFOUND (it is not a compaction with a context on the path), INVALID (nothing
 * of it is in force; or a call would be separated from its result; or a pinned message
 * would be removed; the message names them), CONFLICT (the head is not a descendant of
 * what this handle last saw), SUSPENDED, and those of sessile_append().
 */
SESSILE_API sessile_status sessile_uncompact(sessile_session *session, sessile_id which,
                                             int dry_run, sessile_uncompacted **out,
                                             sessile_error *err);

/* ------------------------------------------------------------------ states */

/*
 * A state is the context that a hook sees, together with the edits of that hook. It is
 * valid until the reply. Indexes start at 0 and refer to the list that the hook was
 * given; edits do not change them.
 */

/* What is known of a message of a state without reading its text. */
typedef struct sessile_column {
    sessile_key key;
    sessile_role role;
    int64_t tokens;
    uint32_t turn; /* 0: before the first user message */
    unsigned pinned : 1;
    unsigned open : 1;    /* 1: it has a call that still waits for its result */
    unsigned dead : 1;    /* 1: it has a call that was never answered */
    unsigned written : 1; /* 1: a policy wrote it */
    unsigned starts_turn : 1;
    unsigned edited : 1; /* 1: dropped or replaced by this hook */
} sessile_column;

SESSILE_API size_t sessile_state_count(const sessile_state *state);
SESSILE_API int64_t sessile_state_tokens(const sessile_state *state); /* with the edits */
SESSILE_API int64_t sessile_state_window(const sessile_state *state); /* 0: unlimited */
/* With what goes beside the messages: see sessile_config.reserve. */
SESSILE_API int64_t sessile_state_reserve(const sessile_state *state);
/* How many of the newest messages have to stay: see sessile_config.keep_min. */
SESSILE_API uint32_t sessile_state_keep_min(const sessile_state *state);
/* INVALID when i is out of range. */
SESSILE_API sessile_status sessile_state_get(const sessile_state *state, size_t i,
                                             sessile_column *out, sessile_error *err);
/* The JSON text of a message, which is read on demand. Borrowed until the state ends. */
SESSILE_API sessile_status sessile_state_json(sessile_state *state, size_t i,
                                              sessile_slice *out, sessile_error *err);
/* The n-th label (from 0), pins excluded, that message i had when the run began. Borrowed
 * until the state ends. data NULL: it has no n-th label. Messages written by policies
 * have none. */
SESSILE_API sessile_status sessile_state_label(const sessile_state *state, size_t i,
                                               size_t n, sessile_slice *out,
                                               sessile_error *err);
/* The number of messages at the start that were the context before the turn (merge), or
 * sessile_state_count() (branch_summary: all of them are left). */
SESSILE_API size_t sessile_state_previous(const sessile_state *state);

/* Drops messages first to last, both included. */
SESSILE_API sessile_status sessile_state_drop(sessile_state *state, size_t first,
                                              size_t last, sessile_error *err);
/* Replaces members of message i by those of `fields`, a JSON object, usually
 * {"content":…}. Role, calls and results stay. The new message records which one it
 * replaces. */
SESSILE_API sessile_status sessile_state_replace(sessile_state *state, size_t i,
                                                 sessile_slice fields,
                                                 sessile_error *err);
/* Inserts a message before message i (count: at the end). covers 1: it covers messages
 * cover_first to cover_last, which are dropped. The role defaults to user, and
 * metadata.kind to "summary". Law 3 refuses a new message that calls a tool, or has
 * thinking or anything else that only a model writes, or has the role system, developer,
 * assistant or model, or has the role of a tool and answers no call. */
SESSILE_API sessile_status sessile_state_insert(sessile_state *state, size_t i,
                                                sessile_slice message, int covers,
                                                size_t cover_first, size_t cover_last,
                                                sessile_error *err);
typedef enum sessile_unit {
    SESSILE_MESSAGES = 0,
    SESSILE_TURNS,
    SESSILE_TOKENS
} sessile_unit;
/* Drops messages, oldest first, as far as laws 1, 2, 5 and 7 allow, until about n units
 * are left. */
SESSILE_API sessile_status sessile_state_keep_last(sessile_state *state, int64_t n,
                                                   sessile_unit unit, sessile_error *err);
/* Returns the index before which to cut so that about `tokens` tokens are left and no
 * call is separated from its result. */
SESSILE_API size_t sessile_state_find_cut(const sessile_state *state, int64_t tokens);
/* Finds the messages that law 1 keeps together with message i, including i. Writes at
 * most cap indexes, ascending, and returns how many it wrote. */
SESSILE_API size_t sessile_state_pairs(const sessile_state *state, size_t i, size_t *out,
                                       size_t cap);
/* An item for sessile_state_rebuild(). index: a message of the state, unchanged; or
 * SIZE_MAX: a new message (json) that covers or replaces the messages with the given
 * keys. */
typedef struct sessile_state_item {
    size_t index;
    sessile_slice json;
    const sessile_key *covers;
    size_t cover_count;
    const sessile_key *replaces;
    size_t replace_count;
} sessile_state_item;
SESSILE_API sessile_status sessile_state_rebuild(sessile_state *state,
                                                 const sessile_state_item *items,
                                                 size_t count, sessile_error *err);
/* The notes of the running policy: a JSON object, "{}" at first. Borrowed until they are
 * set. */
SESSILE_API sessile_slice sessile_state_vars(const sessile_state *state);
SESSILE_API sessile_status sessile_state_set_vars(sessile_state *state,
                                                  sessile_slice json, sessile_error *err);

#ifdef __cplusplus
}
#endif

#endif

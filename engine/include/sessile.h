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
 * NULL or zero, and on failure fills the caller's sessile_error, which may be NULL.
 *   - A NULL pointer that the function needs, or a slice with a size and no data, is
 * INVALID.
 *   - The caller owns what an output pointer returns and releases it with sessile_free(),
 *     unless the comment says "borrowed".
 *   - Sizes are in bytes, times in milliseconds since 1970-01-01T00:00Z. Text is UTF-8
 * JSON where the comment says JSON, otherwise bytes. Returned text ends with a NUL that
 * its size does not include.
 *   - Many threads may use a store or a session at the same time. Only one thread at a
 * time may use a run, an iterator or a state.
 *   - Close sessions before their store. Free runs before their session.
 *
 * The header is valid C99 and C++98.
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
    SESSILE_NEEDS,     /* a run waits for an answer: see sessile_run_need() */
    SESSILE_INVALID,   /* the argument or text is not what the call takes: correct it */
    SESSILE_NOTFOUND,  /* no such session, entry or policy: list what there is */
    SESSILE_EXISTS,    /* the name is taken: resume it, or choose another */
    SESSILE_CONFLICT,  /* the session was changed since it was read: read again, retry */
    SESSILE_BUSY,      /* another writer holds the lock: wait longer, or retry */
    SESSILE_DAMAGED,   /* stored bytes are not what was written: nothing was changed */
    SESSILE_TRUNCATED, /* the log is shorter than what is known to have been written */
    SESSILE_SEALED,    /* wrong or missing key, or a plain log in a sealed store */
    SESSILE_DENIED,    /* permissions, ownership, or a policy file that is not trusted */
    SESSILE_LIMIT,     /* a limit of size, depth or number; the message names its key */
    SESSILE_POLICY,    /* a policy failed or broke a law; the turn stands */
    SESSILE_IO,    /* a system call failed; after a failed sync, read again to learn the
                      state */
    SESSILE_FULL,  /* no space left on the device */
    SESSILE_NOMEM, /* the allocator returned NULL; nothing was changed */
    SESSILE_UNSUPPORTED, /* this build, machine or store cannot do that */
    SESSILE_FORKED,      /* the handle was opened in another process */
    SESSILE_SUSPENDED,   /* the host paused this session: resume or cancel it first */
    SESSILE_CANCELLED,   /* ended by another thread */
    SESSILE_CLOSED       /* the handle was closed */
} sessile_status;

/* An error: its kind, and one sentence that says what is wrong and what to do. */
typedef struct sessile_error {
    sessile_status code;
    char message[504]; /* NUL-terminated; empty when code is SESSILE_OK */
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
    uint64_t message;       /* bytes of one message */
    uint64_t session;       /* bytes of one log */
    uint32_t depth;         /* nesting of JSON */
    uint32_t id;            /* bytes of a session id, agent or user */
    uint32_t title;         /* bytes of a title */
    uint64_t policy_gas;    /* instructions of one pipeline */
    uint32_t policy_ms;     /* CPU time of one pipeline */
    uint64_t policy_memory; /* bytes of a policy's Lua state */
    uint64_t policy_result; /* bytes a proposal may write */
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
    uint64_t standard;    /* the default */
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
 * store, and a store has the defaults given below. A fork, a child and a copy inherit
 * from the session they are made of.
 *
 * Triggers are copied, and replace the inherited ones as a whole; zeroed triggers never
 * fire. Policies are retained.
 */
typedef struct sessile_config {
    sessile_policy *policy;   /* default: none. Of a store: NULL here, since a policy is
                                 loaded with an open store; see
                                 sessile_store_set_policy() */
    sessile_policy *fallback; /* runs in place of a policy that was refused: see
                                 sessile_outcome.fallback; default: none */
    const sessile_triggers *triggers;    /* default: none */
    sessile_checkpoint_rules checkpoint; /* default: no triggers, 50 kept */
    int64_t window;  /* the model's window in tokens; default: unlimited */
    int64_t reserve; /* tokens of the window kept free; default: none. It need not include
                        what is sent beside the messages (a system prompt that is not an
                        entry, tools): after a few reports of usage the engine estimates
                        that, and subtracts it from the window too, up to half of what is
                        left */
    int has_timeout; /* 0: timeout_ms is inherited */
    int timeout_ms;  /* longest wait of a call for other writers: 0: none; -1: for ever;
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
    SESSILE_LIFE_SUSPENDED, /* the host paused it */
    SESSILE_LIFE_ARCHIVED,
    SESSILE_LIFE_EXPIRED,
    SESSILE_LIFE_DELETED
} sessile_life;
/* "active", … Static. */
SESSILE_API const char *sessile_life_name(sessile_life life);

/* One row of sessile_list(). Text is borrowed from the list. */
typedef struct sessile_listed {
    sessile_slice id, agent, user, title;
    int64_t created_ms, modified_ms; /* of the header and of the newest entry */
    uint64_t entries, messages, bytes;
    uint64_t torn;         /* bytes of a torn tail that opening it set aside; 0: none */
    sessile_status status; /* OK; or DAMAGED or TRUNCATED with entries set: it can be
                              read, not written; or why this log could not be opened
                              (then only bytes, modified_ms (the file's) and, if it can
                              be told, id and agent are set) */
    const char *message;   /* the error's sentence, or "" */
    sessile_life life;     /* status OK: where it stands, now */
    int64_t ttl_ms, expires_ms, deleted_ms; /* each 0: none */
    sessile_slice labels; /* JSON array of the names, each once, pins aside */
} sessile_listed;

/* The order of a list: newest or largest first, titles ascending. */
typedef enum sessile_sort {
    SESSILE_SORT_MODIFIED = 0,
    SESSILE_SORT_CREATED,
    SESSILE_SORT_TITLE, /* by its bytes */
    SESSILE_SORT_BYTES,
    SESSILE_SORT_MESSAGES
} sessile_sort;
/* "modified", "created", "title", "size", "messages"; NULL for any other value, so that
 * counting up from 0 until NULL finds all of them. Static. */
SESSILE_API const char *sessile_sort_name(sessile_sort sort);

/* Which sessions. Call the init function first: it asks for all of them. */
typedef struct sessile_list_options {
    sessile_slice agent;        /* data NULL: of every agent */
    sessile_slice id_prefix;    /* only those whose id begins so */
    sessile_slice title;        /* only those of exactly this title; empty: of any */
    uint64_t offset;            /* number of rows to skip */
    uint64_t limit;             /* greatest number of rows; 0: all */
    sessile_slice user;         /* only of this user; data NULL: of any */
    sessile_slice label;        /* only those with this label on an entry; empty: all */
    sessile_slice text;         /* only those whose title has this in it (ASCII letters
                                   large or small); empty: all */
    int64_t since_ms, until_ms; /* modified at or after, before; 0: no bound */
    unsigned lives;    /* bits, 1u << SESSILE_LIFE_…; 0: all but the deleted ones */
    sessile_sort sort; /* of equals the newest come first */
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

/* What to change. Zeros: a new epoch. */
typedef struct sessile_rotate_options {
    int new_secret; /* 1: the keyring is wrapped by another secret, no new epoch */
    sessile_key_source key_source; /* of the new secret: ENV, FILE or SECRET */
    const char *key;               /* see sessile_key_source */
    int make_file; /* FILE: made with a random key when it is not there; else SEALED */
} sessile_rotate_options;

/*
 * Changes the keyring and no log. With a new epoch (options NULL) a new master key seals
 * new sessions; *epoch (may be NULL) is its number. With a new secret, the old one no
 * longer opens the store (SEALED). The change is durable on return. After a crash the
 * store opens with the old secret or with the new one. Handles of other processes keep
 * the keys they have; a handle that was opened with the old secret cannot create sessions
 * until it is opened again (SEALED). Errors: INVALID (the new secret is not usable),
 * DENIED, SEALED, FULL; after IO the keyring may have changed: read its status.
 */
SESSILE_API sessile_status sessile_keys_rotate(sessile_store *store,
                                               const sessile_rotate_options *options,
                                               uint64_t *epoch, sessile_error *err);

/* An epoch and what it seals. */
typedef struct sessile_keys_epoch {
    uint64_t epoch;
    uint64_t logs;
} sessile_keys_epoch;

/* What may be said of a store's keys; never a key. */
typedef struct sessile_keys {
    int sealed;                    /* 0: plain; only logs is set */
    const char *suite;             /* of new logs: "aes-256-gcm", … */
    sessile_key_source key_source; /* where this handle has its secret from */
    const char *kdf;               /* "none": the secret is a key; "argon2id" */
    uint64_t kdf_ops, kdf_mem;     /* argon2id: passes, bytes */
    uint64_t users;                /* users that have a secret of their own */
    uint64_t logs;
    uint64_t user_logs;               /* sealed with a user's secret */
    uint64_t old_logs;                /* logs that sessile_reseal would seal again */
    uint64_t odd_logs;                /* their first line could not be read */
    const sessile_keys_epoch *epochs; /* newest first */
    size_t epoch_count;
} sessile_keys;

/* Looks at the keyring and at the first line of each log. *out is one block: free it with
 * sessile_free(). Errors: IO, DENIED, NOMEM. */
SESSILE_API sessile_status sessile_keys_status(sessile_store *store, sessile_keys **out,
                                               sessile_error *err);

/*
 * Seals again each log that is not of the newest epoch or not of the store's suite, log
 * by log, each in one step: entries, ids and writes stay. When nothing is left that needs
 * them, older epochs are taken out of the keyring, so that a master key that leaked opens
 * nothing. Interrupted anywhere, it goes on where it stopped when it is run again. What
 * cannot be read is left alone, and its epoch kept.
 *
 *   for (st = sessile_reseal_begin(&r, store, NULL, &err);
 *        !st && (st = sessile_reseal_step(r, &state, &err)) == SESSILE_NEEDS; st = 0)
 *       show(&state);
 *   sessile_reseal_free(r);
 */
typedef struct sessile_reseal sessile_reseal;

typedef struct sessile_reseal_state {
    uint64_t logs;      /* in the store */
    uint64_t seen;      /* of which dealt with */
    uint64_t resealed;  /* logs sealed again */
    uint64_t forgotten; /* of users whose secret was forgotten: nothing opens them */
    uint64_t failed;    /* left as they were */
    uint64_t dropped;   /* epochs taken out of the keyring: at the last step */
    const char *log;    /* borrowed: the log of a failure in this step, or NULL */
    sessile_error why;  /* its failure */
} sessile_reseal_state;

/* suite: the store's from now on; NULL: what it has. UNSUPPORTED: plain, volatile, or no
 * such suite. */
SESSILE_API sessile_status sessile_reseal_begin(sessile_reseal **out,
                                                sessile_store *store, const char *suite,
                                                sessile_error *err);
/* Deals with one log: NEEDS while there is more to do, OK when all is done. A log that
 * fails is no error of the step. Errors: IO, FULL, SEALED, NOMEM. */
SESSILE_API sessile_status sessile_reseal_step(sessile_reseal *reseal,
                                               sessile_reseal_state *state,
                                               sessile_error *err);
SESSILE_API void sessile_reseal_free(sessile_reseal *reseal);

/*
 * Forgets a user: overwrites and removes the user's secret, durably. Every session of
 * that user, of any agent, can be read no more, in copies of its log neither: SEALED. A
 * copy of the secret's blob (`user-…` in the store's folder) would bring them back: keep
 * backups of blobs apart, and short. Handles of such sessions that this store has open
 * say SEALED from now on; those of other processes end with the process. *sessions (may
 * be NULL): how many could be read until now. Interrupted or repeated, it may be run
 * again. A session that is made for that user later has a new secret. Errors: INVALID (no
 * user), UNSUPPORTED (plain: delete the sessions), IO (run it again), BUSY.
 */
SESSILE_API sessile_status sessile_forget(sessile_store *store, sessile_slice user,
                                          uint64_t *sessions, sessile_error *err);

/* ------------------------------------------------------------------ another store */

/* A store to move from, or to: one of the three. */
typedef struct sessile_place {
    const char *url; /* as for sessile_open(): not opened, perhaps not there yet. With
                        `store`, where that is, so that a copy into itself is seen */
    sessile_store *store; /* open, and the caller's until the migration is freed */
    const struct sessile_backend *backend; /* the host's, as for sessile_open_with(): … */
    void *self; /* … the engine's from sessile_migrate_begin() on */
    /* Not of a store: key, suite, timeout_ms, allow_network and alloc are looked at;
     * NULL: the defaults. With SESSILE_KEY_DEFAULT a plain store is opened as one. */
    const sessile_store_options *options;
} sessile_place;

/* What of a store is moved, where it is moved as it stands. */
enum {
    SESSILE_MIGRATE_LOGS = 1,
    SESSILE_MIGRATE_KEYRING = 2,
    SESSILE_MIGRATE_USERS = 4 /* the users' secrets */
};

/* Zeroed: all of it, into an empty store, or on from an earlier run. */
typedef struct sessile_migrate_options {
    int change;  /* 1: sealed to plain, or plain to sealed, is meant */
    int into;    /* 1: `to` may have sessions of its own */
    int fresh;   /* 1: EXISTS also where they are an earlier run's */
    int replace; /* 1: a session there that differs is replaced (its log is kept aside) */
    int mirror;  /* 1: `to` is nothing but a copy: secrets of users that were forgotten in
                    `from` are removed, others replaced */
    int whole;   /* 1: `to` is "sqlite:PATH", or a folder, that is not there (EXISTS): it
                    is made as PATH.part and gets its name at the end; an interrupted run
                    is gone on with */
    unsigned parts; /* SESSILE_MIGRATE_…; 0: all */
} sessile_migrate_options;

typedef enum sessile_migrate_stage {
    SESSILE_MIGRATE_LOOKING = 0, /* which sessions, and up to where */
    SESSILE_MIGRATE_COPYING,
    SESSILE_MIGRATE_VERIFYING,
    SESSILE_MIGRATE_DONE
} sessile_migrate_stage;

/* How far it is. Each session is counted under one of copied … failed. */
typedef struct sessile_migrate_state {
    sessile_migrate_stage stage;
    int as_it_stands; /* 1: bytes are copied; 0: sealed again with `to`'s keys */
    int unopened; /* 1: without a key: no seal was opened, bytes alone were compared */
    int moment;   /* 1: all ends are those of one moment; 0: of a short while, in which
                     something was written */
    uint64_t sessions, done; /* to be dealt with; dealt with, in this stage */
    uint64_t bytes, bytes_done;
    uint64_t copied, continued, kept, replaced;
    uint64_t conflicts;  /* another session of that name is there: left alone */
    uint64_t forgotten;  /* of users who were forgotten: nothing opens them. As it stands
                            they are copied all the same, and counted there too. */
    uint64_t gone;       /* deleted meanwhile */
    uint64_t failed;     /* not copied */
    uint64_t damaged;    /* damaged in `from`; as it stands copied with the damage */
    uint64_t verified;   /* read back, or compared, and equal */
    uint64_t unfinished; /* bytes behind last commits: never acknowledged, not copied */
    uint64_t users, users_removed; /* users' secrets put; removed (mirror) */
    const char *log;               /* borrowed: of a conflict, failure or damage in this
                                      step, or NULL: "folder/name" */
    sessile_error why;
} sessile_migrate_state;

/*
 * Copies every session of one store into another, and reads it back.
 *
 *   for (st = sessile_migrate_begin(&m, &from, &to, NULL, &err);
 *        !st && (st = sessile_migrate_step(m, &state, &err)) == SESSILE_NEEDS; st = 0)
 *       show(&state);
 *   sessile_migrate_free(m);
 *
 * As it stands, where `to` is empty or was made so: keyring, users' secrets and the bytes
 * of all logs; ids, tags and ciphertext are the same, and the same secret opens them. No
 * key is needed; with one, every line is proved on the way. Sealed again, where `to` has
 * a keyring of its own, or a key of `to` is given: every entry as it is (ids, labels,
 * checkpoints, context, deletion, time to live), under `to`'s keys. Both keys are needed.
 *
 * `from` is only read: nothing in it changes, caches neither. Others may write to it:
 * each session is copied up to the end of a write, and with a session also those that it
 * names as children, parent or origin, unless they are deleted. What was acknowledged
 * before the call began is in the copy. What comes later is brought by another run: what
 * is there is compared and continued (a keyring that got new keys since replaces the
 * copy's). To move while others write: run it, stop them, run
 * it again.
 *
 * Interrupted anywhere, `to` holds whole sessions, and beginnings that end with a write;
 * run again it goes on. A session that differs there is a conflict and left alone.
 * Memory does not grow with the length of logs, but by some hundred bytes a session.
 */
typedef struct sessile_migration sessile_migration;

/* Errors: NOTFOUND (there is no store in `from`), INVALID (the same place twice; sealed
 * and plain without `change`), EXISTS (`to` has sessions: see into, fresh and whole),
 * SEALED (a key that is needed is missing or wrong); those of sessile_open(). */
SESSILE_API sessile_status sessile_migrate_begin(sessile_migration **out,
                                                 const sessile_place *from,
                                                 const sessile_place *to,
                                                 const sessile_migrate_options *options,
                                                 sessile_error *err);
/* Deals with a piece: NEEDS while there is more to do, OK when all is done (look at
 * conflicts, failed and damaged then). A session that fails is no error of the step.
 * Errors end it, and another run goes on: IO, FULL, DENIED (of `to`, or `from` as a
 * whole), CONFLICT (the keys of `from` were changed meanwhile), NOMEM. */
SESSILE_API sessile_status sessile_migrate_step(sessile_migration *migration,
                                                sessile_migrate_state *state,
                                                sessile_error *err);
SESSILE_API void sessile_migrate_free(sessile_migration *migration);

/* ------------------------------------------------------------------ sessions */

/* What an agent says of itself; it is kept in checkpoints, and compared when one is
 * restored. Empty: unknown. */
typedef struct sessile_agent_info {
    sessile_slice version; /* of its program, at most 200 bytes */
    sessile_slice config;  /* a hash of its configuration, likewise */
    sessile_slice tools;   /* JSON array of their names */
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

/* Makes a session, durably. EXISTS when the name is taken. Other errors: INVALID, LIMIT,
 * IO, FULL, DENIED, SEALED, NOMEM. */
SESSILE_API sessile_status sessile_create(sessile_session **out, sessile_store *store,
                                          const sessile_session_options *options,
                                          sessile_error *err);

/* Opens a session that exists; creates nothing. NOTFOUND; SEALED; BUSY. A torn tail is
 * set aside and reported by sessile_session_torn(). A damaged log opens too, to be read:
 * sessile_session_damage() says so. DAMAGED: nothing of it can be opened, or what it
 * holds is no session; the sentence names the place and what to type. */
SESSILE_API sessile_status sessile_resume(sessile_session **out, sessile_store *store,
                                          const sessile_session_options *options,
                                          sessile_error *err);

/* Resumes the session, or creates it when there is none. An id must be given. */
SESSILE_API sessile_status sessile_session_open(sessile_session **out,
                                                sessile_store *store,
                                                const sessile_session_options *options,
                                                sessile_error *err);

/* ---- the end of sessions */

/* Called with zeros: a hard deletion. */
typedef struct sessile_delete_options {
    int soft;                    /* 1: marked, to be undeleted or purged */
    sessile_slice reason, actor; /* soft: UTF-8, kept in the log; or empty */
} sessile_delete_options;

#define SESSILE_ID_HASH_SIZE 65
/* All that is left to whoever deletes: to be noted elsewhere. The hash has no key: who
 * guesses the names can tell that they are these. */
typedef struct sessile_deleted {
    char id_hash[SESSILE_ID_HASH_SIZE]; /* of agent, user and id: hex, and a NUL */
    int64_t time_ms;
    uint64_t bytes; /* hard: of its log */
} sessile_deleted;

/*
 * Deletes a session: id, agent and user of `which` say which one. Hard: its log and all
 * that lies beside it are removed, durably, the header first being overwritten (of a
 * plain log everything), whether it opens or not; handles that are open fail at their
 * next write. Copies elsewhere, as in a backup, still open with the store's keys: see
 * sessile_forget(). Killed in the middle, the session is there whole, or damaged; run it
 * again. Soft: as sessile_life says. options NULL: hard; out may be NULL. NOTFOUND; BUSY;
 * UNSUPPORTED (hard: the store removes nothing); IO.
 */
SESSILE_API sessile_status sessile_delete(sessile_store *store,
                                          const sessile_session_options *which,
                                          const sessile_delete_options *options,
                                          sessile_deleted *out, sessile_error *err);
/* Brings back a session that was deleted softly. NOTFOUND: there is none, or it is not
 * deleted. actor: as for sessile_delete(). */
SESSILE_API sessile_status sessile_undelete(sessile_store *store,
                                            const sessile_session_options *which,
                                            sessile_slice actor, sessile_error *err);

#define SESSILE_RETENTION_MS (INT64_C(90) * 24 * 60 * 60 * 1000)
/* Call the init function first. */
typedef struct sessile_purge_options {
    sessile_slice agent;  /* data NULL: of every agent */
    int64_t retention_ms; /* how long a deleted session is kept: SESSILE_RETENTION_MS */
    int dry_run;          /* 1: nothing is removed */
} sessile_purge_options;
SESSILE_API void sessile_purge_options_init(sessile_purge_options *options);
/* Deletes, hard, what has expired and what was deleted longer ago than that; nothing else
 * ever removes a session by itself. *out: what went (or would), as sessile_list_with()
 * gives it. One that was written to meanwhile, or is held by a writer, stays. */
SESSILE_API sessile_status sessile_purge(sessile_store *store,
                                         const sessile_purge_options *options,
                                         sessile_listed **out, size_t *count,
                                         sessile_error *err);

typedef struct sessile_life_info {
    sessile_life life;
    int64_t ttl_ms, expires_ms, deleted_ms; /* each 0: none */
} sessile_life_info;
SESSILE_API sessile_status sessile_session_life(sessile_session *session,
                                                sessile_life_info *out,
                                                sessile_error *err);
/* Sets the time after which a session expires, in ms from its newest entry; 0: never. It
 * is a fact, like a setting. */
SESSILE_API sessile_status sessile_set_ttl(sessile_session *session, int64_t ttl_ms,
                                           sessile_error *err);
/* Archived: put away, and no more than that: it can be read and written. */
SESSILE_API sessile_status sessile_set_archived(sessile_session *session, int archived,
                                                sessile_error *err);

/* ---- forks and copies */

/* The tag of a line of a log, in hex; at most SESSILE_TAG_SIZE bytes with its NUL. */
#define SESSILE_TAG_SIZE 33

/* An entry of another session: where a fork was taken, or where a child was begun. */
typedef struct sessile_link {
    sessile_slice id, agent, user; /* borrowed from the session; user empty: of none */
    sessile_id entry;
    char tag[SESSILE_TAG_SIZE]; /* what that entry's line was known by; "": not kept */
} sessile_link;

/*
 * A new session with everything that `session` holds up to `entry` (SESSILE_NO_ID: its
 * head), which is the head of the new one. Ids mean what they meant: branches that were
 * left before it come along. Labels, pins and checkpoints that were put on these entries
 * later, the title, settings and metadata come along as they are now; a pause, a status
 * and a time to live do not. The two have nothing in common from then on: either may be
 * deleted. Lines are opened and sealed again one by one, whatever the size; no lock is
 * held, others may write to the session meanwhile. Killed at any moment, the new session
 * is there whole or not at all.
 *
 * options: id (empty: a new one), agent and user (data NULL: the session's own; a user of
 * size 0: none), title (data NULL: the session's), metadata (members that are put over
 * the session's own), policy, window, reserve, timeout (of the handle; else the
 * session's). A fork for another user is sealed with that user's secret, so that
 * forgetting the one leaves the other's. out NULL: it is made and not opened (then an id
 * must be given).
 *
 * Errors: NOTFOUND (no such entry, or one that is not on any path), EXISTS, DAMAGED or
 * TRUNCATED (the session is damaged at or before the entry: the sentence names the newest
 * entry that can be forked), SEALED (its user was forgotten meanwhile), INVALID, LIMIT,
 * IO, FULL, DENIED, NOMEM. Nothing was made but after IO: look.
 */
SESSILE_API sessile_status sessile_fork(sessile_session **out, sessile_session *session,
                                        sessile_id entry,
                                        const sessile_session_options *options,
                                        sessile_error *err);

/*
 * Copies a session whole into another store, sealed as that store seals: every entry, of
 * every branch, under the same ids, the head where it is, pauses as they are. options
 * (NULL: none): id, agent and user, each the session's own when its data is NULL; policy,
 * window, reserve and timeout of the handle. Errors: EXISTS (the name is taken there);
 * DAMAGED, TRUNCATED (salvage it first); as for sessile_fork(). out NULL: not opened.
 */
SESSILE_API sessile_status sessile_put(sessile_session **out, sessile_store *store,
                                       sessile_session *session,
                                       const sessile_session_options *options,
                                       sessile_error *err);

/* 1 and *out when the session is a fork: of what. The link outlives what it names. */
SESSILE_API int sessile_session_origin(const sessile_session *session, sessile_link *out);

/* ---- parents and children */

/*
 * A session for a sub-agent: with a log of its own, linked to `parent` both ways: its
 * header names the parent and its head, an entry of type "child" in the parent's log
 * names the child. with_context 0: it is empty; 1: it is a fork of the parent at its
 * head. options as for sessile_fork(), but that an empty session has the title and
 * metadata given, and no other. The child is made first: killed in between, there is a
 * child that its parent does not name. Errors: as for sessile_fork() and
 * sessile_append_custom().
 */
SESSILE_API sessile_status sessile_child(sessile_session **out, sessile_session *parent,
                                         int with_context,
                                         const sessile_session_options *options,
                                         sessile_error *err);

/* 1 and *out when the session is a child: of what. */
SESSILE_API int sessile_session_parent(const sessile_session *session, sessile_link *out);

/*
 * What came of a child, written into its parent: merged appends a message (as
 * sessile_append(); give it a metadata.kind, so that it starts no turn) and names it, in
 * one commit; *out (may be NULL) is the message. discarded says so, with a reason (UTF-8,
 * or empty). Neither touches the child, and either may come again: the newest holds.
 * INVALID: the child is none of this parent; SUSPENDED (merged); as for sessile_append().
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
    SESSILE_CHILD_OPEN = 0, /* nothing came of it yet */
    SESSILE_CHILD_MERGED,
    SESSILE_CHILD_DISCARDED
} sessile_child_state;

/* One child, as its parent's log has it; text is borrowed from the list. */
typedef struct sessile_subsession {
    sessile_slice id, agent, user;
    sessile_id entry; /* the parent's entry that it was begun at */
    int64_t time_ms;  /* when */
    sessile_child_state state;
    sessile_id merged; /* the newest message that came of it, or SESSILE_NO_ID */
} sessile_subsession;
/* The children of a session, oldest first, as one block: sessile_free(); every entry of
 * its log is looked at. Of a fork, those
 * of its origin that were begun before it are among them. A child may have been deleted:
 * only the log is asked. */
SESSILE_API sessile_status sessile_subsessions(sessile_session *session,
                                               sessile_subsession **out, size_t *count,
                                               sessile_error *err);

/* ---- an open session */

/* Closes the handle (with durability NONE: syncs first, whose failure is returned; the
 * handle is gone either way). NULL is OK. FORKED: in a child process the handle is left
 * alone, since it may have been copied in the middle of a call. */
SESSILE_API sessile_status sessile_session_close(sessile_session *session,
                                                 sessile_error *err);

/*
 * Syncs what this handle wrote, and says in the next write that it is safe: damage to it
 * is then DAMAGED, never taken for a torn end. For durability NONE: after much was
 * written, before its last entry. With durability SYNC there is nothing to do. IO: what
 * was written is not known to be safe, and nothing more is written; open the session
 * again and look. CANCELLED: see sessile_interrupt(). FORKED, CLOSED.
 */
SESSILE_API sessile_status sessile_session_sync(sessile_session *session,
                                                sessile_error *err);

/*
 * How long a call of this handle may wait in all, in ms, for the lock of another writer
 * and for other threads in this handle: -1: for ever; 0: the lock is tried once. (Other
 * threads in the handle, who hold each other up for microseconds, are waited for at least
 * a tenth of a second.) Then BUSY. Calls that wait already are not affected. What is not
 * bounded by it: the device, while it syncs. INVALID: below -1.
 */
SESSILE_API sessile_status sessile_session_set_timeout(sessile_session *session,
                                                       int timeout_ms,
                                                       sessile_error *err);

/*
 * Waits until others have written entries to this session that the caller has not seen:
 * then *changed is 1, and they are read as ever (sessile_messages(), sessile_context(),
 * sessile_entry() of ids from the old *seen on). Other threads use the handle meanwhile.
 * seen: how many entries the caller knows of (0: as many as this handle had read), what
 * this handle writes itself included; then as many as there are, also when it fails
 * after that. So nothing is missed between two calls, and what is there already is told
 * at once. timeout_ms: -1: for ever; 0: looks once; when it has passed: OK, *changed 0.
 * A store that can tell by itself is not asked; others are, every 5 to 50 ms.
 * CANCELLED: sessile_interrupt(). NOTFOUND: the session was removed. UNSUPPORTED: its
 * records are the host's. INVALID: *seen is more than there are. BUSY, IO.
 */
SESSILE_API sessile_status sessile_session_watch(sessile_session *session,
                                                 sessile_id *seen, int timeout_ms,
                                                 int *changed, sessile_error *err);

/*
 * From another thread, or from a signal handler: every call of this handle that has begun
 * and is waiting, or comes to wait, ends in CANCELLED within about 10 ms: nothing was
 * written; or, when it waits for another thread's sync, what it wrote is there and not
 * known to be safe, and the message says so. A call that need not wait goes on and
 * succeeds. Calls that begin later are not affected. The handle must be open. NULL is
 * ignored.
 */
SESSILE_API void sessile_interrupt(sessile_session *session);

/* Names and times, fixed for the life of the handle; borrowed; no lock is taken. */
SESSILE_API sessile_slice sessile_session_id(const sessile_session *session);
SESSILE_API sessile_slice sessile_session_agent(const sessile_session *session);
SESSILE_API sessile_slice sessile_session_user(const sessile_session *session);
SESSILE_API int64_t sessile_session_created(const sessile_session *session);
/* The time of the newest entry; of a fork that nothing was added to, when it was made. */
SESSILE_API int64_t sessile_session_modified(sessile_session *session);
/* The model's window that this handle was opened with, in tokens (0: unlimited), and what
 * of it is kept free (*reserve; may be NULL). */
SESSILE_API int64_t sessile_session_window(const sessile_session *session,
                                           int64_t *reserve);
/* Bytes that recovery set aside when this handle was opened and since: it grows when a
 * writer died and this handle found its torn end before a write of its own. 0: none. */
SESSILE_API uint64_t sessile_session_torn(const sessile_session *session);

/*
 * OK, or why this session can be read and not written: DAMAGED or TRUNCATED, with a
 * sentence in *out that names the file, the first entry and byte that are damaged, how
 * much is lost, and the command that makes it writable again. Entries that are lost are
 * of type "tombstone", their data {"lost":true,…}; whatever writes is refused with this
 * same error. *lost (or NULL): how many entries. out may be NULL.
 */
SESSILE_API sessile_status sessile_session_damage(sessile_session *session,
                                                  uint64_t *lost, sessile_error *out);

/* The newest path entry: the leaf that context() and the next append start from. */
SESSILE_API sessile_status sessile_head(sessile_session *session, sessile_id *out,
                                        sessile_error *err);
/* Moves the head back to the header: messages() is empty, the log remains. SUSPENDED; as
 * for sessile_append(). */
SESSILE_API sessile_status sessile_clear(sessile_session *session, sessile_error *err);

/* The title, handed out ("" when there is none), and its setting as a fact in the log. */
SESSILE_API sessile_status sessile_title(sessile_session *session, char **out,
                                         size_t *size, sessile_error *err);
SESSILE_API sessile_status sessile_set_title(sessile_session *session,
                                             sessile_slice title, sessile_error *err);

/* Turns, bare appends and compactions on the path to the head. */
SESSILE_API sessile_status sessile_event_count(sessile_session *session, uint64_t *out,
                                               sessile_error *err);

/* Tokens as providers report them, summed over the session's turns and messages. */
typedef struct sessile_usage {
    int64_t input, output, cache_read, cache_write;
} sessile_usage;
SESSILE_API sessile_status sessile_total_usage(sessile_session *session,
                                               sessile_usage *out, sessile_error *err);

/* What usage is grouped by. */
typedef enum sessile_usage_by {
    SESSILE_USAGE_BY_DAY = 0, /* of the entry that reports it, in UTC: "2026-11-21" */
    SESSILE_USAGE_BY_MODEL, /* as the turn names it, else its last message that does, else
                               the session's setting "model" then; "": nobody says */
    SESSILE_USAGE_BY_AGENT  /* the session's own: for sums over many sessions */
} sessile_usage_by;

/* What was reported of one of them. */
typedef struct sessile_usage_group {
    sessile_slice key; /* borrowed from the list */
    sessile_usage usage;
    uint64_t reports;          /* turns and messages that reported it */
    int64_t first_ms, last_ms; /* times of the first and the last of their entries */
} sessile_usage_group;

/*
 * The same usage by groups: one block of *count rows, days oldest first, else the largest
 * first; free it with sessile_free(). The groups add up to sessile_total_usage(). The log
 * is read through for it. Groups without a report are left out. Errors: INVALID (by);
 * DAMAGED, SEALED, IO, NOMEM.
 */
SESSILE_API sessile_status sessile_usage_groups(sessile_session *session,
                                                sessile_usage_by by,
                                                sessile_usage_group **out, size_t *count,
                                                sessile_error *err);

/* A count and where it comes from. low <= tokens <= high. */
typedef struct sessile_tokens {
    int64_t tokens, low, high;
    const char *source; /* "usage" (the provider's, and a count of what followed it),
                           "exact" (by the model's own encoding), "host" (by the host's
                           counter), "fitted" (a count times what this session's usage has
                           taught) or "estimate" (by classes of text); static. Of several
                           it is the least */
} sessile_tokens;
/* Tokens of the context at the head. */
SESSILE_API sessile_status sessile_count_tokens(sessile_session *session,
                                                sessile_tokens *out, sessile_error *err);

/* What is counted, and for whom. Call the init function first. */
typedef struct sessile_count_options {
    sessile_slice model;  /* empty: the store's or session's. For another model what was
                             reported says nothing: the context is counted for it, its
                             messages being read where they were counted otherwise */
    sessile_slice tools;  /* definitions as the model is given them, a JSON array in
                             OpenAI's or Anthropic's form; or empty */
    sessile_slice system; /* the text of a system prompt that is no message; or empty */
    sessile_id at;        /* of a session: SESSILE_NO_ID: the head */
} sessile_count_options;
SESSILE_API void sessile_count_options_init(sessile_count_options *options);

/* Tokens of what a model would be sent at a leaf. Tools and system prompt are added where
 * they are not in the count yet: usage has them in it. NOTFOUND (leaf), INVALID (tools),
 * DAMAGED, SEALED, IO, NOMEM. */
SESSILE_API sessile_status sessile_count_tokens_with(sessile_session *session,
                                                     const sessile_count_options *options,
                                                     sessile_tokens *out,
                                                     sessile_error *err);

/* The same of messages that are in no session, JSON objects. each: NULL, or room for one
 * count a message. INVALID: which message is none, and why. */
SESSILE_API sessile_status sessile_count_messages(sessile_store *store,
                                                  const sessile_count_options *options,
                                                  const sessile_slice *messages,
                                                  size_t count, sessile_tokens *each,
                                                  sessile_tokens *out,
                                                  sessile_error *err);

/* Why the encoding that was wanted last is not used: a sentence, cut to size bytes with
 * its NUL; "" when none failed. */
SESSILE_API void sessile_encoding_error(sessile_store *store, char *out, size_t size);

/* Tokens of plain text, counted as this store counts for its model (NULL: by estimate).
 * The text need not be UTF-8. INVALID: out or the text's data is NULL. */
SESSILE_API sessile_status sessile_count_text(const sessile_store *store,
                                              sessile_slice text, sessile_tokens *out,
                                              sessile_error *err);

/* Roles of messages. */
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
 * A host that keeps sessions in a table, a cache or a service of its own, and wants no
 * store written in C (sessile_store.h), loads a session's records, opens it over them,
 * uses it, and saves what it has more than was loaded. A record is one line of text
 * without its newline: JSON, plain or sealed.
 */

/*
 * A store whose sessions are opened over records. options (NULL: the defaults):
 * key_source DEFAULT or PLAIN: records are plain; SECRET: they are sealed with `key`,
 * "hex:" or "base64:" and 32 bytes. INVALID: a passphrase, or another source.
 */
SESSILE_API sessile_status sessile_open_records(sessile_store **out,
                                                const sessile_store_options *options,
                                                sessile_error *err);
/*
 * Opens the session named by options over its records, all of them, in order; count 0:
 * makes a new one, as sessile_create(). The handle's log is its own: no other handle
 * sees it, no list has it, and it is gone with the handle. (So is that of a fork or a
 * copy that is made in such a store: its records are read from 0.)
 * Records are looked at like a log on a disk: DAMAGED when they do not begin with a
 * session's header, name another session, or do not end with a whole write (it says how
 * many do); what is damaged before a record that was safe opens to be read (see
 * sessile_session_damage()). SEALED: another key, or plain records under a key.
 * UNSUPPORTED: the store is none of sessile_open_records().
 */
SESSILE_API sessile_status sessile_records_open(sessile_session **out,
                                                sessile_store *store,
                                                const sessile_session_options *options,
                                                const sessile_slice *records,
                                                size_t count, sessile_error *err);
/*
 * The records after the first `from`, of a session of any store: one block of *count
 * rows, given back with sessile_free(); NULL and 0 when there are none. Whoever keeps
 * them adds them all or none, and only if it has exactly `from`: else another handle was
 * faster, and this one is to be closed. INVALID: there are fewer; DAMAGED, TRUNCATED.
 */
SESSILE_API sessile_status sessile_records_read(sessile_session *session, uint64_t from,
                                                sessile_slice **out, size_t *count,
                                                sessile_error *err);

/* ------------------------------------------------------------------ writing */

/*
 * One message, a JSON object, committed alone; no policy runs. *out is its entry.
 * Errors: INVALID (JSON, UTF-8, role, a field given twice), LIMIT
 * [message|depth|session], CONFLICT (the head is no descendant of what this handle last
 * saw), SUSPENDED, BUSY, CANCELLED, IO, FULL, NOMEM; NOTFOUND (it was deleted softly);
 * DAMAGED, TRUNCATED (see sessile_session_damage()). On every error but IO of a sync, and
 * CANCELLED while waiting for one, the session is as it was.
 */
SESSILE_API sessile_status sessile_append(sessile_session *session, sessile_slice message,
                                          sessile_id *out, sessile_error *err);

/*
 * A host entry of type "custom" (data: a JSON object), a fact that never enters the
 * context. source: NULL (host) or one of user, agent, system, tool, host. A session that
 * is paused takes one too. Other errors: as for append.
 */
SESSILE_API sessile_status sessile_append_custom(sessile_session *session,
                                                 sessile_slice data, const char *source,
                                                 sessile_id *out, sessile_error *err);

/* ------------------------------------------------------------------ annotations */

/*
 * Facts about a session: entries that never enter the context and never move the head,
 * each durable on return. The newest one holds, whatever the branch, and comes back when
 * the session is resumed. Errors of those that write: INVALID, LIMIT, BUSY, CANCELLED,
 * IO, FULL, NOMEM.
 */

/*
 * Puts a label (UTF-8, 1 to 200 bytes) on an entry, or takes it away. An entry may have
 * several, a label may be on several. "pinned" is the pin: a message that has it stays in
 * the context, unedited, whatever policies propose; it can only be on a message
 * (INVALID). A label that is there already is not written again. NOTFOUND: no such entry;
 * or no such label on it.
 */
SESSILE_API sessile_status sessile_label(sessile_session *session, sessile_id entry,
                                         sessile_slice name, sessile_error *err);
SESSILE_API sessile_status sessile_unlabel(sessile_session *session, sessile_id entry,
                                           sessile_slice name, sessile_error *err);

/* One label of one entry. The name is borrowed from the list and ends with a NUL. */
typedef struct sessile_label_row {
    sessile_id entry;
    sessile_slice name;
    sessile_id fact; /* the entry that says so */
    int64_t time_ms; /* its time */
} sessile_label_row;
/* All labels in force, by entry, then as they were put; one block: sessile_free(). */
SESSILE_API sessile_status sessile_labels(sessile_session *session,
                                          sessile_label_row **out, size_t *count,
                                          sessile_error *err);

/*
 * Settings (the model, a thinking level: whatever a host wants back) and metadata, each a
 * JSON object of which every member is kept by itself: setting states the members of
 * `object`, the others stay; null takes one back. Of metadata, those that the session was
 * made with count as stated first. Handed out: the object in force, keys as they were
 * last stated; *out is freed with sessile_free(). INVALID: a member is given twice.
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
 * A checkpoint is where an agent stood: the head, and a state of the host's own (which
 * step, which plan: any JSON). It is one entry, a reference into the log: the
 * conversation is not copied, since nothing can change it.
 */

typedef enum sessile_checkpoint_reason {
    SESSILE_CHECKPOINT_MANUAL = 0,
    SESSILE_CHECKPOINT_PERIODIC,
    SESSILE_CHECKPOINT_EVENT,
    SESSILE_CHECKPOINT_THRESHOLD
} sessile_checkpoint_reason;
SESSILE_API const char *sessile_checkpoint_reason_name(sessile_checkpoint_reason reason);

/* Zeroed: without name and state. Text is borrowed for the call. */
typedef struct sessile_checkpoint_options {
    sessile_slice name;     /* UTF-8, at most 200 bytes; or empty */
    sessile_slice state;    /* JSON, at most [message] bytes; or empty */
    sessile_slice metadata; /* JSON object, or empty */
    sessile_checkpoint_reason reason;
    sessile_slice event; /* EVENT: which, at most 200 bytes */
    uint32_t keep;       /* greatest number kept, this one included; 0: as many as the
                            session's configuration says. The
                            oldest are withdrawn, those with a name last */
} sessile_checkpoint_options;

/* Writes one about the head, durably; no other call is stopped by it, and a session that
 * is paused takes one too. Errors: as for sessile_label(). */
SESSILE_API sessile_status sessile_checkpoint(sessile_session *session,
                                              const sessile_checkpoint_options *options,
                                              sessile_id *out, sessile_error *err);

/* Which of them. Zeroed: all. */
typedef struct sessile_checkpoint_filter {
    sessile_slice name;                      /* of this name */
    int named;                               /* 1: only those that have one */
    int64_t since_ms, until_ms;              /* made between; 0: whenever */
    const sessile_checkpoint_reason *reason; /* made for this; NULL: for any */
} sessile_checkpoint_filter;

/* One checkpoint. Text is borrowed from the list. */
typedef struct sessile_checkpoint_row {
    sessile_id entry;
    sessile_id head; /* where it stands; SESSILE_NO_ID: it does not say */
    int64_t time_ms;
    sessile_checkpoint_reason reason;
    uint64_t messages; /* in the context then */
    int64_t tokens;    /* of it */
    uint64_t state_bytes;
    int sound; /* 0: it is not what was written, and cannot be restored */
    sessile_slice name, version, event, metadata;
} sessile_checkpoint_row;

/* Those that are kept, newest first; one block: sessile_free(). filter may be NULL. */
SESSILE_API sessile_status sessile_checkpoints(sessile_session *session,
                                               const sessile_checkpoint_filter *filter,
                                               sessile_checkpoint_row **out,
                                               size_t *count, sessile_error *err);

typedef struct sessile_restored {
    sessile_id checkpoint, head;
    sessile_slice state;    /* JSON as it was given, white space aside; or empty */
    sessile_slice warnings; /* what is different now, a line each; or empty */
} sessile_restored;

/*
 * Verifies a checkpoint, moves the head to where it stands, durably, and hands its state
 * out (one block: sessile_free()). What came later stays in the log as another branch.
 * Errors: NOTFOUND; DAMAGED (its checksum says that it is not what was written: nothing
 * was changed); CONFLICT (another version of the agent made it; force: a warning);
 * SUSPENDED.
 */
SESSILE_API sessile_status sessile_restore(sessile_session *session,
                                           sessile_id checkpoint, int force,
                                           sessile_restored **out, sessile_error *err);

/* Withdraws one, by a tombstone. NOTFOUND; as for sessile_label(). */
SESSILE_API sessile_status sessile_checkpoint_delete(sessile_session *session,
                                                     sessile_id checkpoint,
                                                     sessile_error *err);

/* ------------------------------------------------------------------ pauses */

/*
 * The host's pause, kept in the log: until it ends, whatever would add to the
 * conversation or move its head answers SUSPENDED, in any process; reading, facts
 * (labels, settings, titles, checkpoints, custom entries) and forks go on. (A policy that
 * waits for its model stops nobody.) reason: UTF-8, or empty; state: JSON, or empty: what
 * the host wants back. SUSPENDED: it is paused already.
 */
SESSILE_API sessile_status sessile_suspend(sessile_session *session, sessile_slice reason,
                                           sessile_slice state, sessile_id *out,
                                           sessile_error *err);

typedef struct sessile_suspension {
    sessile_id entry;
    int64_t time_ms;
    sessile_slice reason, state; /* as given; borrowed from the block */
} sessile_suspension;
/* What it waits for, as a block for sessile_free(), or NULL: it is not paused. */
SESSILE_API sessile_status sessile_suspended(sessile_session *session,
                                             sessile_suspension **out,
                                             sessile_error *err);

/* Ends the pause and appends the messages that were waited for (none: count 0), as one
 * commit. *first (may be NULL): the first of them. NOTFOUND: it is not paused. */
SESSILE_API sessile_status sessile_resume_with(sessile_session *session,
                                               const sessile_slice *messages,
                                               size_t count, sessile_id *first,
                                               sessile_error *err);
/* Ends the pause, and every pending run, with nothing appended. reason: UTF-8, or empty.
 * NOTFOUND: there is none of these; LIMIT [message] (the reason). */
SESSILE_API sessile_status sessile_cancel(sessile_session *session, sessile_slice reason,
                                          sessile_error *err);

/* ------------------------------------------------------------------ reading */

/* One message of a list. Text is borrowed from the list. */
typedef struct sessile_message {
    sessile_key key; /* n > 0: a policy wrote it; entry SESSILE_NO_ID: engine-made */
    sessile_role role;
    int64_t tokens;
    int64_t time_ms;    /* the entry's time */
    sessile_slice json; /* the message as it was given, token for token */
} sessile_message;

/* What else is to be said about a context. */
typedef struct sessile_context_info {
    sessile_tokens tokens;
    sessile_id head;
    uint64_t dropped; /* messages of the path that the context does not show verbatim */
    uint64_t orphans; /* results left out: unknown call, call out of context, answered */
    uint64_t unanswered; /* engine-made results for dead calls */
    uint64_t lost; /* entries of it that damage took: see sessile_session_damage() */
} sessile_context_info;

/* Which messages of the path; 0 and SESSILE_NO_ID mean no restriction. */
typedef struct sessile_messages_options {
    sessile_id from; /* first entry id to return; SESSILE_NO_ID: from the start */
    size_t limit;    /* greatest number, counted from the start */
    size_t last;     /* only this number of the newest; 0: all */
    sessile_role role;
    sessile_id at; /* SESSILE_NO_ID: the head */
} sessile_messages_options;
SESSILE_API void sessile_messages_options_init(sessile_messages_options *options);

/* Every message from the root to the leaf, compacted or not, oldest first: one block of
 * *count rows, given back with sessile_free(). options NULL: all. NOTFOUND: leaf or from
 * is no entry on the path. */
SESSILE_API sessile_status sessile_messages(sessile_session *session,
                                            const sessile_messages_options *options,
                                            sessile_message **out, size_t *count,
                                            sessile_error *err);

/* What the model would get at leaf (SESSILE_NO_ID: the head): calls paired with their
 * results, dead calls answered "not answered", orphaned results left out. A message's
 * tokens are the model's where usage has taught how many those are, as policies see them;
 * elsewhere in this header they are what was counted when it was written. */
SESSILE_API sessile_status sessile_context(sessile_session *session, sessile_id at,
                                           sessile_message **out, size_t *count,
                                           sessile_context_info *info,
                                           sessile_error *err);

/* One entry, its JSON text handed out. NOTFOUND, DAMAGED, SEALED, IO, NOMEM. */
SESSILE_API sessile_status sessile_entry(sessile_session *session, sessile_id id,
                                         char **out, size_t *size, sessile_error *err);

/* ------------------------------------------------------------------ the tree */

/*
 * Every entry but the header has a parent. Messages, turns, compactions and branch
 * summaries, and the header, are the tree of the conversation: one of them is the head,
 * and any of them can be gone on from (sessile_branch()). Other entries are facts, each
 * about the entry that is its parent. The functions below take entries of the tree:
 * NOTFOUND for others, with the nearest that are. Lists of ids are blocks of *count,
 * given back with sessile_free(). Errors beside that: IO, DAMAGED, NOMEM.
 */

/* From the header to id, both included. SESSILE_NO_ID: to the head. */
SESSILE_API sessile_status sessile_path(sessile_session *session, sessile_id id,
                                        sessile_id **out, size_t *count,
                                        sessile_error *err);
/* What goes on from id, oldest first; and what else goes on from its parent. The first
 * call of a handle looks at every entry, later ones at the answer alone. */
SESSILE_API sessile_status sessile_children(sessile_session *session, sessile_id id,
                                            sessile_id **out, size_t *count,
                                            sessile_error *err);
SESSILE_API sessile_status sessile_siblings(sessile_session *session, sessile_id id,
                                            sessile_id **out, size_t *count,
                                            sessile_error *err);
/* The newest entry on the paths of both: one of the two, when it is on the other's. */
SESSILE_API sessile_status sessile_common_ancestor(sessile_session *session, sessile_id a,
                                                   sessile_id b, sessile_id *out,
                                                   sessile_error *err);
/* What nothing goes on from, in the order of the log. The head need not be among them. */
SESSILE_API sessile_status sessile_leaves(sessile_session *session, sessile_id **out,
                                          size_t *count, sessile_error *err);

/* One row of sessile_tree(). Rows are in the order of the log: parents come first. */
typedef struct sessile_node {
    sessile_id id;
    sessile_id parent;     /* of some types only: the nearest ancestor that is among
                              them; SESSILE_NO_ID: none */
    uint32_t first_child;  /* its row; SESSILE_NO_ID: none */
    uint32_t next_sibling; /* its row, children being oldest first; or none */
    uint32_t tokens;       /* of a message; else 0 */
    unsigned char role;    /* of a message, a sessile_role; else SESSILE_ROLE_NONE */
    unsigned is_path : 1;  /* of the conversation; 0: a fact */
    unsigned on_path : 1;  /* on the path to the head */
    unsigned is_head : 1;
    unsigned labelled : 1;   /* it has a label, or a pin */
    unsigned in_context : 1; /* the model would be shown it as it stands */
    const char *type;        /* "message", "turn", …; static */
    int64_t total_tokens;    /* of all messages from the header to here */
    int64_t time_ms;         /* the entry's time */
} sessile_node;

/* Call the init function first: it asks for all entries. */
typedef struct sessile_tree_options {
    const char *const *types; /* only entries of these types */
    size_t type_count;        /* 0: of any */
    int labelled;             /* 1: only entries that have a label: sessile_labels() */
} sessile_tree_options;
SESSILE_API void sessile_tree_options_init(sessile_tree_options *options);

/* The entries of the session as a tree: one block of *count rows, given back with
 * sessile_free(). options NULL: all. INVALID: there is no such type. */
SESSILE_API sessile_status sessile_tree(sessile_session *session,
                                        const sessile_tree_options *options,
                                        sessile_node **out, size_t *count,
                                        sessile_error *err);

/* An iterator over all entries in the order of the log, as of now. Each step hands the
 * text out borrowed until the next step; OK with *size 0 at the end. */
SESSILE_API sessile_status sessile_entries_open(sessile_entries **out,
                                                sessile_session *session,
                                                sessile_error *err);
SESSILE_API sessile_status sessile_entries_next(sessile_entries *entries, sessile_id *id,
                                                const char **json, size_t *size,
                                                sessile_error *err);
SESSILE_API void sessile_entries_close(sessile_entries *entries);

/* ------------------------------------------------------------------ searching */

/* What to look for, and where. Call the init function first. Borrowed until the search is
 * open. */
typedef struct sessile_search_options {
    sessile_slice text; /* UTF-8, 1 to 1000 bytes: it occurs as it stands */
    int exact;          /* 0: ASCII letters large or small are one; 1: each is itself */
    const sessile_list_options *sessions; /* which, and in what order; NULL: all */
    unsigned roles; /* bits, 1u << SESSILE_ROLE_…: only messages of these; 0: messages of
                       any role, titles and labels */
    int head_only;  /* 1: only messages on the path to the head; 0: all of the log */
    uint64_t limit; /* ends after this number of results; 0: at the end */
} sessile_search_options;
SESSILE_API void sessile_search_options_init(sessile_search_options *options);

typedef enum sessile_found_kind {
    SESSILE_FOUND_END = 0, /* the search is done */
    SESSILE_FOUND_NOTHING, /* nothing yet: how far it is */
    SESSILE_FOUND_MESSAGE,
    SESSILE_FOUND_TITLE,
    SESSILE_FOUND_LABEL,
    SESSILE_FOUND_UNREAD /* a session that could not be searched, or not all of it */
} sessile_found_kind;

/* One step of a search. All of it is borrowed until the next step. */
typedef struct sessile_found {
    sessile_found_kind kind;
    sessile_slice id, agent, user, title; /* the session; of UNREAD what can be told */
    sessile_id entry;  /* the message, or what the label is on; else SESSILE_NO_ID */
    sessile_role role; /* of a message */
    int64_t time_ms;   /* of the message, or of the label; else the session's newest */
    const char *field; /* of a message where it is: "content", "tool_calls", …; else "" */
    sessile_slice text;        /* UTF-8: the first occurrence and what is around it */
    size_t at, size;           /* the occurrence, in text */
    int cut_before, cut_after; /* 1: there is more before, after text */
    sessile_status status;     /* of UNREAD: why */
    const char *message;       /* of UNREAD: the sentence; else "" */
    uint64_t index, total;     /* of sessions: how far it is */
    uint64_t done, entries;    /* of the entries of this one */
} sessile_found;

typedef struct sessile_search sessile_search;
/*
 * Begins a search through the sessions that a list of the same options has, in the order
 * of that list: newest first. In each: the title, labels (pins aside), then the messages
 * as they stand in the log, whatever the branch, and branch summaries. Of a message the
 * content is looked through, whatever its form, what the model thought, and what tools
 * were called with and answered, escapes decoded; not the names of members, ids, nor data
 * that is no text. Nothing is indexed: each log is opened and read, one at a time, a few
 * megabytes in a step, so that a host can stop between any two. INVALID: text is empty,
 * too long or no UTF-8; else as sessile_list_with().
 */
SESSILE_API sessile_status sessile_search_open(sessile_search **out, sessile_store *store,
                                               const sessile_search_options *options,
                                               sessile_error *err);
/* The next step. A session that does not open, or lines that do not, are a step of kind
 * UNREAD; an error is about the search itself, and ends it: NOMEM, FORKED. */
SESSILE_API sessile_status sessile_search_next(sessile_search *search, sessile_found *out,
                                               sessile_error *err);
/* NULL is allowed. Before the store is closed. */
SESSILE_API void sessile_search_close(sessile_search *search);

/* ------------------------------------------------------------------ checks */

typedef enum sessile_severity {
    SESSILE_NOTE = 0, /* nothing is wrong: what was done, or is kept */
    SESSILE_WARNING,  /* nothing that was acknowledged is missing; somebody should look */
    SESSILE_DAMAGE /* something that was written cannot be read, or is not what it was */
} sessile_severity;

/* One thing that a check found. */
typedef struct sessile_finding {
    sessile_severity severity;
    sessile_status code; /* DAMAGED, TRUNCATED, SEALED, …; OK for notes */
    const char *file;    /* below the store, as "agents/main/bug-42.jsonl" */
    sessile_id entry;    /* SESSILE_NO_ID: not about an entry */
    uint64_t offset, bytes;
    const char *what; /* a sentence */
    const char *next; /* the command to type, or "" */
} sessile_finding;

/* What a step of a check looked at: one log, or at last (id empty, entries 0) what lies
 * beside the logs. All of it is borrowed until the next step. */
typedef struct sessile_checked {
    sessile_slice id, agent;
    const char *file; /* NULL: the check is done */
    uint64_t entries, bytes;
    uint64_t lost; /* entries that cannot be read */
    int salvaged;  /* 1: it was written again; its old bytes are kept */
    const sessile_finding *findings;
    size_t count;
    size_t index, total; /* of steps: for showing how far it is */
} sessile_checked;

typedef struct sessile_check sessile_check;
/*
 * Begins a check: of one session (which: its id, and agent and user), of all of an agent
 * (an empty id), or of all (NULL, or both empty). Each log is read whole, each line
 * opened and compared with the one before it, each entry folded. Nothing is changed, a
 * torn tail stays, unless salvage is 1: then a damaged log is replaced by a new one in
 * which each lost entry is a tombstone and every other is what and where it was; the old
 * bytes are kept beside it. NOTFOUND: no such session; INVALID, IO, NOMEM.
 */
SESSILE_API sessile_status sessile_check_open(sessile_check **out, sessile_store *store,
                                              const sessile_session_options *which,
                                              int salvage, sessile_error *err);
/* The next step. out->file is NULL when there is none left. What is wrong with a log is
 * in its findings; an error is about the check itself: NOMEM, IO (a folder cannot be
 * listed). */
SESSILE_API sessile_status sessile_check_next(sessile_check *check, sessile_checked *out,
                                              sessile_error *err);
/* NULL is ignored. */
SESSILE_API void sessile_check_close(sessile_check *check);

/* ------------------------------------------------------------------ policies */

/* The hooks of a policy, in the order they run; bits of sessile_policy_step.hooks. */
typedef enum sessile_hook {
    SESSILE_HOOK_MERGE = 1,
    SESSILE_HOOK_SUMMARIZE = 2,
    SESSILE_HOOK_TRUNCATE = 4,
    SESSILE_HOOK_SHOULD_COMPACT = 8,
    SESSILE_HOOK_FLUSH = 16,
    SESSILE_HOOK_COMPACT = 32,
    SESSILE_HOOK_BRANCH_SUMMARY = 64 /* of a branch alone: see sessile_branch_begin() */
} sessile_hook;
SESSILE_API const char *sessile_hook_name(sessile_hook hook);

/*
 * One policy of a chain: a Lua file (name or path set; with '/' or ending in ".lua" it is
 * a path, else looked up in the store's policy_path), or the host's own functions (name
 * for messages, hooks set): then a run answers NEEDS with SESSILE_NEED_HOOK.
 */
typedef struct sessile_policy_step {
    const char *name;
    const char *options; /* JSON object text, or NULL */
    unsigned hooks;      /* host policies: which hooks they have; 0: a Lua file */
} sessile_policy_step;

/*
 * Loads and checks a chain of count steps: finds the files, compiles them, checks their
 * options. The policy is immutable, safe under threads, counted by reference.
 * Errors: NOTFOUND (names what there is), POLICY (does not compile or load), INVALID
 * (options), DENIED (no regular file; a link; see below), LIMIT, NOMEM. What a file
 * requires while it is loaded comes with it, by the same rules.
 * A file that neither its user nor root owns, or that others may write, is run in a
 * process of its own only, with the rest of its chain, whatever the store's isolation is;
 * DENIED where that cannot be started (see worker in the store's options).
 */
SESSILE_API sessile_status sessile_policy_load(sessile_policy **out, sessile_store *store,
                                               const sessile_policy_step *steps,
                                               size_t count, sessile_error *err);
/* Gives the caller's reference back. NULL is ignored. */
SESSILE_API void sessile_policy_free(sessile_policy *policy);

/* ------------------------------------------------------------------ runs */

/* Why a policy runs. */
typedef enum sessile_reason {
    SESSILE_REASON_TURN = 0,
    SESSILE_REASON_THRESHOLD,
    SESSILE_REASON_OVERFLOW,
    SESSILE_REASON_TIMER,
    SESSILE_REASON_EVENT,
    SESSILE_REASON_MANUAL
} sessile_reason;
SESSILE_API const char *sessile_reason_name(sessile_reason reason);

/* What becomes of a turn or a branch whose base is no longer the head. */
typedef enum sessile_on_conflict {
    SESSILE_ON_CONFLICT_FAIL = 0, /* CONFLICT: nothing is written */
    SESSILE_ON_CONFLICT_APPEND,   /* what came between is accepted: written at the head;
                                     branch: moved from wherever the head is */
    SESSILE_ON_CONFLICT_BRANCH    /* turn: a sibling of what came between; the head stays
                                     where it is, the outcome names the leaf, and this
                                     handle's next base is that leaf */
} sessile_on_conflict;

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
    int no_policy;       /* turn: run none, whatever is configured; the next turn
                            judges triggers for both */
    int no_fallback;     /* run none, whatever is configured */
    sessile_slice event; /* turn: the name of what happened, or empty; a trigger that
                            lists it fires, one that does not lets it pass */
    sessile_slice state; /* turn: JSON for a checkpoint that is due, copied; empty:
                            the run needs it then (SESSILE_NEED_STATE) */
    sessile_slice instructions;      /* compact, branch: what the person typed */
    sessile_reason reason;           /* compact: default MANUAL */
    sessile_on_conflict on_conflict; /* turn, branch */
    sessile_slice summary;           /* branch: of what it leaves, or empty */
    int summarize;                   /* branch: ask for one, when none is given */
} sessile_run_options;
SESSILE_API void sessile_run_options_init(sessile_run_options *options);

/*
 * Starts a turn: its messages (JSON objects, at least one) and a turn entry are written
 * as one commit before any policy runs, so whatever comes after costs a compaction, never
 * a word. OK acknowledges nothing yet: step until OK or an error. Errors as for append,
 * and CONFLICT when the head is not the base (compactions after it aside): nothing is
 * written; on_conflict says otherwise. CANCELLED: sessile_interrupt().
 */
SESSILE_API sessile_status sessile_turn_begin(sessile_run **out, sessile_session *session,
                                              const sessile_slice *messages, size_t count,
                                              const sessile_run_options *options,
                                              sessile_error *err);

/* Starts a compaction of the context at the head. INVALID without a policy. */
SESSILE_API sessile_status sessile_compact_begin(sessile_run **out,
                                                 sessile_session *session,
                                                 const sessile_run_options *options,
                                                 sessile_error *err);

/* As compact, but nothing is ever written: the outcome carries what would be. */
SESSILE_API sessile_status sessile_plan_begin(sessile_run **out, sessile_session *session,
                                              const sessile_run_options *options,
                                              sessile_error *err);

/*
 * Moves the head to an entry of the tree, where the conversation goes on: by a fact in
 * the log, so that it is there again after a restart though nothing was said. What is
 * left stays in the log. NOTFOUND: no such entry of the tree; the message names the
 * nearest. CONFLICT: the head is not the base (compactions after it aside): nothing was
 * written; on_conflict APPEND moves it from wherever it is. Other errors as for append;
 * INVALID, LIMIT [message] (the summary).
 *
 * A summary of what is left becomes a "branch_summary" entry, a message of the user at
 * the new head, which the context shows; in its metadata are `kind` ("branch_summary"),
 * `from` (the head that was left) and `ancestor` (the newest entry on both paths).
 * options->summary: it is given, and written together with the move. options->summarize:
 * it is asked for once the head has moved, of the first policy whose branch_summary gives
 * one; when no policy has that hook, of the host's model, by a need with policy "". A
 * summary that fails, or is too late because the conversation has gone on, is left out:
 * the outcome's verdict and message say so.
 */
SESSILE_API sessile_status sessile_branch_begin(sessile_run **out,
                                                sessile_session *session,
                                                sessile_id entry,
                                                const sessile_run_options *options,
                                                sessile_error *err);

/* The same in one call, with a given summary, or none (empty). *leaf (or NULL): the
 * head after it. */
SESSILE_API sessile_status sessile_branch(sessile_session *session, sessile_id entry,
                                          sessile_slice summary, sessile_id *head,
                                          sessile_error *err);

typedef enum sessile_need_kind {
    SESSILE_NEED_NONE = 0,
    SESSILE_NEED_MODEL, /* ask your model; answer with its text */
    SESSILE_NEED_HOOK,  /* run your hook on the state; answer with its verdict */
    SESSILE_NEED_STATE  /* a checkpoint is due: answer with your state, JSON; or with a
                           failure: it is made without one */
} sessile_need_kind;

/* What a run waits for. Everything is borrowed until the reply. */
typedef struct sessile_need {
    sessile_need_kind kind;
    const char *policy; /* name of the policy that asks; "": the engine */
    size_t step;        /* its index in the chain */
    sessile_slice request; /* MODEL: JSON {"messages":[…],"max_tokens":…,"purpose":…} */
    sessile_hook hook;     /* HOOK: which */
    sessile_state *state; /* HOOK: what it is to read and edit */
    sessile_reason reason;
    sessile_slice instructions;
    sessile_slice options; /* HOOK: the step's options, JSON object */
    int64_t now_ms;        /* HOOK: the turn's time, the only clock a policy should use */
    int fallback;          /* 1: the fallback asks; step is an index in its chain */
} sessile_need;

/* The answer to a need. */
typedef struct sessile_answer {
    sessile_status status; /* OK, or the answer is a failure and text its reason */
    sessile_slice text;    /* MODEL: what the model said; STATE: the state, JSON; HOOK
                              branch_summary: the summary, or empty */
    int verdict;           /* HOOK should_compact: 0 or 1 */
} sessile_answer;

/* Goes on until the run is done (OK), needs something (NEEDS), or cannot go on. A
 * policy's failure is not an error of the run: it is in the outcome. */
SESSILE_API sessile_status sessile_run_step(sessile_run *run, sessile_need *need,
                                            sessile_error *err);
/* Takes the answer; step again. INVALID when nothing was asked. */
SESSILE_API sessile_status sessile_run_reply(sessile_run *run,
                                             const sessile_answer *answer,
                                             sessile_error *err);

/* What became of a policy's proposal. */
typedef enum sessile_verdict {
    SESSILE_NO_POLICY = 0, /* none is configured */
    SESSILE_UNCHANGED,     /* it proposed nothing */
    SESSILE_APPLIED,
    SESSILE_REFUSED,    /* it failed or broke a law: see law and message */
    SESSILE_TOO_LITTLE, /* compact saved under 5 %: left out; nothing else was edited */
    SESSILE_STALE,      /* the conversation moved on while it was thinking */
    SESSILE_PENDING /* it waits for an answer from elsewhere: see outcome.pending_run */
} sessile_verdict;

/* What becomes of a message that leaves the context. */
typedef enum sessile_disposition {
    SESSILE_LOST = 0, /* dropped */
    SESSILE_COVERED,  /* a new message stands for it among others */
    SESSILE_REPLACED, /* a new message stands for it alone */
    SESSILE_UNDONE    /* a compaction wrote it, and was taken back (never of a run) */
} sessile_disposition;
/* One message that a proposal takes out of the context. */
typedef struct sessile_removal {
    sessile_key key;
    sessile_disposition disposition;
    sessile_role role;
    int64_t tokens;
    sessile_key by; /* COVERED, REPLACED: the new message; else entry SESSILE_NO_ID */
} sessile_removal;

/* What a fallback came to; the fields as in sessile_outcome. */
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
 * The result of a run. All of it is borrowed from the run. When the policy was refused
 * and a fallback is configured, that has run, once, on the same context, with notes and a
 * budget of its own: verdict, policy, hook, law, message, refusal and repeated tell of
 * the policy, `fallback` of the fallback, and all else of what is now in force.
 */
typedef struct sessile_outcome {
    sessile_id first, last; /* turn: its first message and its turn entry */
    sessile_id
        head; /* the head after the run; of a turn beside the head: its last entry */
    sessile_id from;           /* branch: the head that was left; else SESSILE_NO_ID */
    sessile_id branch_summary; /* branch: the entry with the summary, or SESSILE_NO_ID */
    sessile_id compaction;     /* the entry written, or SESSILE_NO_ID */
    sessile_verdict verdict;
    int too_little;      /* a compact's saving was under 5 % and was left out */
    const char *policy;  /* REFUSED: the culprit; else the last that edited; or "" */
    const char *hook;    /* REFUSED: where; or "" */
    int law;             /* REFUSED: 1 to 10 (a spent budget is law 10), or 0: an error */
    const char *message; /* REFUSED, STALE: why; or "" */
    sessile_id refusal;  /* the entry that records it, or SESSILE_NO_ID */
    sessile_id pending_run;        /* PENDING: the entry to answer, or SESSILE_NO_ID */
    sessile_id checkpoint;         /* that the turn made by itself, or SESSILE_NO_ID */
    const char *checkpoint_failed; /* why one that was due could not be made; or "" */
    uint64_t repeated; /* REFUSED: how often the same refusal has come again since
                          it was recorded (then refusal is SESSILE_NO_ID) */
    const char *log;   /* what policy files said with ctx.log, a line each; "" */
    int64_t tokens_before, tokens_after; /* of the context, as sessile_session_tokens()
                                            says before and after */
    int64_t cannot_fit; /* tokens by which the context exceeds window - reserve */
    const sessile_removal *removals;
    size_t removal_count;
    const char *summary;   /* text of the first message written, or ""; branch: the
                              summary */
    uint64_t engine_us;    /* time spent in the engine, host's waits aside */
    uint64_t policy_us;    /* of which in policies */
    sessile_reason reason; /* turn: why the policies last compacted, or were to: EVENT,
                              OVERFLOW, THRESHOLD, TIMER; TURN: nothing said so; else the
                              reason that was given */
    sessile_fallback fallback;
} sessile_outcome;
SESSILE_API sessile_status sessile_run_outcome(sessile_run *run, sessile_outcome *out,
                                               sessile_error *err);

/* The context as the run leaves (turn, compact) or would leave it (plan); as
 * sessile_context(). INVALID before the run is done. */
SESSILE_API sessile_status sessile_run_context(sessile_run *run, sessile_message **out,
                                               size_t *count, sessile_error *err);

/*
 * Writes a run that waits for a model down, durably, and ends it: its outcome is PENDING,
 * *out (and outcome.pending_run) the entry to answer, in this process or another, now or
 * later. Nobody is held up: others append and turn meanwhile. INVALID: no model is asked
 * (but a hook of the host, or a state), or the run is a plan or a branch. Other errors:
 * as for append; the run still waits.
 */
SESSILE_API sessile_status sessile_run_defer(sessile_run *run, sessile_id *out,
                                             sessile_error *err);

/* A pending run that can still be answered. Text is borrowed from the list. */
typedef struct sessile_pending_run {
    sessile_id entry;
    int64_t time_ms;
    int refused; /* 1: it was answered, and its policy then refused: the answer is kept,
                    begin without one to try again with a mended policy */
    sessile_slice policy;  /* which asks */
    sessile_slice request; /* of its model: JSON, as sessile_need.request */
} sessile_pending_run;
/* Oldest first; one block: sessile_free(). One is gone when it was answered or cancelled,
 * when another compaction came since, or when the head left the branch it was on. */
SESSILE_API sessile_status sessile_pending_runs(sessile_session *session,
                                                sessile_pending_run **out, size_t *count,
                                                sessile_error *err);

/*
 * Starts a run that goes on where a pending one stopped: pending_run SESSILE_NO_ID: the
 * newest. Its policy runs again from its start on the context it had; what was answered
 * before is answered again from the log, then `answer` (NULL: none yet, so that it asks
 * again). What it asks that nobody answered, the run needs. Should it be refused, its
 * answers are kept as a pending run of their own, for another try. Options: policy (NULL:
 * the session's, else the store's, else the one that was pending, from its files),
 * timeout. When its end is written the pending run is closed. NOTFOUND: it cannot be
 * answered any more; SUSPENDED; INVALID, POLICY, DENIED: as for sessile_policy_load().
 */
SESSILE_API sessile_status sessile_answer_begin(
    sessile_run **out, sessile_session *session, sessile_id pending_run,
    const sessile_answer *answer, const sessile_run_options *options, sessile_error *err);

/* Frees a run. Before its last OK: the turn stands, the proposal is dropped. */
SESSILE_API void sessile_run_free(sessile_run *run);

/* ------------------------------------------------------------------ explaining */

/* A compaction on the path that has a context, or a refusal there. */
typedef struct sessile_compaction {
    sessile_id id;
    int refused; /* 1: what a policy proposed and was not allowed; nothing changed */
    int64_t time_ms;
    sessile_slice policy;   /* "edit_tools 1, summarize 2": names and versions of those
                               whose edits are in it; of a refusal the culprit's name */
    sessile_slice policies; /* the same with hashes and options, a JSON array */
    sessile_slice reason;   /* "turn", "threshold", "manual", … */
    sessile_slice instructions, summary; /* or empty */
    int64_t tokens_before, tokens_after; /* -1: it does not say */
    /* of compactions */
    sessile_id uncompacts;            /* the one that it takes back; or SESSILE_NO_ID */
    uint64_t kept;                    /* messages of its list that were there before */
    uint64_t lost, covered, replaced; /* what left, by disposition */
    uint64_t undone;                  /* what left since it was written by the other */
    uint64_t written, restored;       /* what came: messages written, and put back */
    uint64_t in_force; /* how many of those that left or came did so to this day:
                          nothing happened to them since, or it was taken back */
    /* of refusals */
    sessile_slice hook, message; /* where, and why; or empty */
    int law;                     /* 1 to 10; 0: an error or a spent budget */
    sessile_slice law_name;      /* or empty */
    sessile_key entry;           /* which message; or entry SESSILE_NO_ID */
    uint64_t repeated; /* of the newest refusal: how often it came again, as far as
                          this handle has seen */
} sessile_compaction;

/* The compactions with a context on the path to the head, and the refusals between them,
 * in order of the log: one block of *count rows, given back with sessile_free(). DAMAGED:
 * one of them cannot be read; NOMEM. */
SESSILE_API sessile_status sessile_compactions(sessile_session *session,
                                               sessile_compaction **out, size_t *count,
                                               sessile_error *err);

/* What happened to a message. */
typedef enum sessile_why_kind {
    SESSILE_WHY_SAID = 0,  /* it was said, and so came into the context */
    SESSILE_WHY_WRITTEN,   /* a compaction wrote it; stands_for says what it stands for */
    SESSILE_WHY_LEFT,      /* a compaction took it out; see disposition and by */
    SESSILE_WHY_RESTORED,  /* a compaction put it back */
    SESSILE_WHY_ELSEWHERE, /* it is on another branch, which left the path at `at` */
    SESSILE_WHY_NO_MESSAGE, /* it is something else, which never enters a context */
    SESSILE_WHY_ORPHAN, /* in the list, and not shown to the model: a result whose call is
                           unknown, answered already, or not in the context (then by
                           names the message with the call) */
    SESSILE_WHY_UNANSWERED, /* shown; a call in it has no result and is answered "not
                               answered" by the engine */
    SESSILE_WHY_MOVED /* shown, not in its place but behind its call, which by names */
} sessile_why_kind;

typedef struct sessile_why_step {
    sessile_why_kind kind;
    sessile_key key;   /* which message: the one asked for, or one that stood for it */
    sessile_id at;     /* the entry where it happened */
    int64_t time_ms;   /* of that entry */
    sessile_role role; /* SAID, WRITTEN */
    const char *type;  /* NO_MESSAGE: the type of entry; else "" */
    sessile_disposition disposition; /* LEFT */
    sessile_key by; /* LEFT: its substitute, or entry SESSILE_NO_ID; ORPHAN, MOVED */
    const sessile_key *stands_for; /* WRITTEN */
    size_t stands_for_count;
    const sessile_compaction *compaction; /* WRITTEN, LEFT, RESTORED; else NULL */
} sessile_why_step;

typedef struct sessile_explanation {
    sessile_key key;
    int in_context;    /* 1: the model is shown this very message */
    sessile_key shown; /* the message that the model is shown for it: itself, or the one
                          that stands for it; entry SESSILE_NO_ID: none */
    const sessile_why_step *steps; /* oldest first, at least one */
    size_t step_count;
} sessile_explanation;

/*
 * Why a message is in the context at the head, or not: all that happened to it and, once
 * something else stood for it, to that. *out is one block: free it with sessile_free().
 * NOTFOUND: there is no such entry, or the compaction wrote no such message. DAMAGED,
 * NOMEM.
 */
SESSILE_API sessile_status sessile_why(sessile_session *session, sessile_key key,
                                       sessile_explanation **out, sessile_error *err);

/* What taking a compaction back came to. */
typedef struct sessile_uncompacted {
    sessile_id compaction; /* the entry written; SESSILE_NO_ID: a dry run */
    sessile_id undone;     /* the compaction that was taken back */
    const sessile_key *restored, *removed; /* in order of the context */
    size_t restored_count, removed_count;
    int64_t tokens_before, tokens_after; /* likewise */
    int64_t cannot_fit; /* tokens by which it exceeds the session's window - reserve */
} sessile_uncompacted;

/*
 * Takes a compaction on the path to the head back, as a new compaction: what it took out
 * comes back (where it stood, as far as that can still be told), what it wrote goes. What
 * a later compaction did to any of that stays as it is; a message that was written goes
 * only together with the return of all it stands for. Policies' notes stay. Taking such a
 * compaction back does the first one again.
 *
 * which: SESSILE_NO_ID is the newest one that is in force and takes no other back.
 * dry_run 1: nothing is written. *out is one block: free it with sessile_free(). Errors:
 * NOTFOUND (no compaction with a context on the path), INVALID (nothing of it is in
 * force; or a call and its result would be torn apart, or what is pinned would go: the
 * sentence names them), CONFLICT (the head is no descendant of what this handle last
 * saw), SUSPENDED, and as for sessile_append().
 */
SESSILE_API sessile_status sessile_uncompact(sessile_session *session, sessile_id which,
                                             int dry_run, sessile_uncompacted **out,
                                             sessile_error *err);

/* ------------------------------------------------------------------ states */

/*
 * A state is the context that one hook sees, with the hook's edits. It is valid until the
 * hook's reply. Indexes start at 0. They are those of the list that the hook was given:
 * edits do not change them.
 */

/* A message of a state: columns, no text read. */
typedef struct sessile_column {
    sessile_key key;
    sessile_role role;
    int64_t tokens;
    uint32_t turn; /* 0: before the first user message */
    unsigned pinned : 1;
    unsigned open : 1;    /* it has a call still waiting for results */
    unsigned dead : 1;    /* it has a call that was never answered */
    unsigned written : 1; /* a policy wrote it */
    unsigned starts_turn : 1;
    unsigned edited : 1; /* dropped or replaced by this hook */
} sessile_column;

SESSILE_API size_t sessile_state_count(const sessile_state *state);
SESSILE_API int64_t sessile_state_tokens(const sessile_state *state); /* edits included */
SESSILE_API int64_t sessile_state_window(const sessile_state *state); /* 0: unlimited */
/* With what goes beside the messages: see sessile_config.reserve. */
SESSILE_API int64_t sessile_state_reserve(const sessile_state *state);
/* INVALID when i is out of range. */
SESSILE_API sessile_status sessile_state_get(const sessile_state *state, size_t i,
                                             sessile_column *out, sessile_error *err);
/* The message's JSON, read on demand, borrowed for the state's life. */
SESSILE_API sessile_status sessile_state_json(sessile_state *state, size_t i,
                                              sessile_slice *out, sessile_error *err);
/* The n-th label (from 0) that message i had when the run began, pins aside, borrowed for
 * the state's life; data NULL: it has no more. What a policy wrote has none. */
SESSILE_API sessile_status sessile_state_label(const sessile_state *state, size_t i,
                                               size_t n, sessile_slice *out,
                                               sessile_error *err);
/* merge: how many messages from the start are the context before the turn;
 * branch_summary: count, all of them being what is left. */
SESSILE_API size_t sessile_state_previous(const sessile_state *state);

/* Drops messages first to last, both included. */
SESSILE_API sessile_status sessile_state_drop(sessile_state *state, size_t first,
                                              size_t last, sessile_error *err);
/* Replaces members of message i by those of `fields`, a JSON object, usually
 * {"content":…}. Its role, calls and results stay. The new message records which one it
 * replaces. */
SESSILE_API sessile_status sessile_state_replace(sessile_state *state, size_t i,
                                                 sessile_slice fields,
                                                 sessile_error *err);
/* Inserts a message before message i (count: at the end). covers 1: messages cover_first
 * to cover_last are dropped and recorded as covered by it. The role defaults to user and
 * metadata.kind to "summary". */
SESSILE_API sessile_status sessile_state_insert(sessile_state *state, size_t i,
                                                sessile_slice message, int covers,
                                                size_t cover_first, size_t cover_last,
                                                sessile_error *err);
typedef enum sessile_unit {
    SESSILE_MESSAGES = 0,
    SESSILE_TURNS,
    SESSILE_TOKENS
} sessile_unit;
/* Drops messages that laws 1, 2, 5 and 7 allow to drop, oldest first, until about n units
 * are left. */
SESSILE_API sessile_status sessile_state_keep_last(sessile_state *state, int64_t n,
                                                   sessile_unit unit, sessile_error *err);
/* Returns the index i before which to cut, so that about `tokens` tokens are left and no
 * call is separated from its results. */
SESSILE_API size_t sessile_state_find_cut(const sessile_state *state, int64_t tokens);
/* Writes the indexes that law 1 keeps together with i, i included, ascending, at most cap
 * of them, and returns their number. */
SESSILE_API size_t sessile_state_pairs(const sessile_state *state, size_t i, size_t *out,
                                       size_t cap);
/* An item of a list that replaces the state's. index: a message of the state, unchanged,
 * or SIZE_MAX for a new message (json) that stands for the given keys. */
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
/* The running policy's notes, a JSON object ("{}" at first), borrowed until they are set.
 */
SESSILE_API sessile_slice sessile_state_vars(const sessile_state *state);
SESSILE_API sessile_status sessile_state_set_vars(sessile_state *state,
                                                  sessile_slice json, sessile_error *err);

#ifdef __cplusplus
}
#endif

#endif

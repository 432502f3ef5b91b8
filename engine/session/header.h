/* header.h: names of a session: checked, written into its header entry, read back. */
#ifndef SESSION_HEADER_H
#define SESSION_HEADER_H

#include "codec/entry.h"
#include "session/store_handle.h"

/* What a log is. */
typedef enum names_kind {
    NAMES_SESSION = 0,
    NAMES_MEMORY, /* a long-term memory, in a folder beside its agent's */
    NAMES_AUDIT,  /* a part of the audit, in AUDIT_FOLDER, whatever the agent is */
    NAMES_CONTROL /* the guard's control log, in CONTROL_FOLDER */
} names_kind;

/* Three byte strings, borrowed. They may hold any byte. */
typedef struct session_names {
    sessile_slice id, agent, user;
    names_kind kind;
} session_names;

/* The folder of an agent's memories is the agent's, with this at the end. No agent's own
 * folder has a dot in its name. */
#define MEMORY_FOLDER ".memory"
/* The id of a memory, which only its place and its header know. */
#define MEMORY_ID "memory"
/* The folder of the audit's logs, which is no agent's either. */
#define AUDIT_FOLDER "guard.audit"
/* That of the guard's control log. */
#define CONTROL_FOLDER "guard.control"
/* 0: the folder holds memories, the audit or the control log. Lists of sessions skip it.
 */
int folder_has_sessions(const char *folder);

/* The names that options ask for: an empty agent is the store's. LIMIT [id]; INVALID: an
 * empty id, unless it may be empty. */
sessile_status names_from_options(session_names *out, const store_core *st,
                                  const sessile_session_options *options,
                                  int id_may_be_empty, sessile_error *err);

/* Where the store keeps a session or a memory of these names. */
void names_place(const store_core *st, const session_names *names, char folder[NAME_SIZE],
                 char name[NAME_SIZE]);

/* DENIED when a hold keeps what has these names from being removed. */
sessile_status names_check_removal(store_core *st, const session_names *names,
                                   sessile_error *err);

/* A name for a sentence: as it is, cut when long, in hex when it is not UTF-8. */
#define NAME_SHOWN 96
void name_show(sessile_slice name, char out[NAME_SHOWN]);

/* What a new header says beside its names. */
typedef struct header_fields {
    sessile_slice title;
    sessile_slice metadata;              /* checked JSON text of an object, or empty */
    const sessile_link *origin, *parent; /* or NULL */
    sessile_slice language;              /* of a memory */
    int64_t ttl_ms;                      /* 0: none */
    int64_t now_ms;
} header_fields;
/* Appends the header entry. */
void header_put(buf *out, const session_names *names, const header_fields *fields);
/* Appends the header entry `text` under other names, all else token for token. NOMEM;
 * DAMAGED: it is no header. */
sessile_status header_rename(buf *out, const char *text, size_t size,
                             const session_names *names, sessile_error *err);
/* Appends a name as JSON: a string, or {"b64":"…"} where it is not UTF-8. */
void header_put_name(buf *out, sessile_slice name);
/* Decodes such a name. 0, or -1: it is none (or no memory: out->failed). */
int header_get_name(buf *out, json value);

/* An entry of another session, decoded; entry SESSILE_NO_ID: there is none. */
typedef struct header_link {
    buf id, agent, user;
    sessile_id entry;
    char tag[SESSILE_TAG_SIZE];
} header_link;
void header_link_init(header_link *l, const allocator *a);
void header_link_deinit(header_link *l);

/* With its NUL. Drawn when a session is made, and copied wherever its header is: what
 * tells it from another one that was made under its name, even within the same
 * millisecond. */
#define HEADER_NONCE 17

/* What a header says, decoded. Valid after header_init(); deinit'ed by the caller. */
typedef struct header {
    buf id, agent, user, title;
    char nonce[HEADER_NONCE]; /* "": it was made before there were any */
    header_link origin, parent;
    int64_t created_ms;
    int64_t ttl_ms; /* 0: none */
    names_kind kind;
    buf language;
} header;
void header_init(header *h, const allocator *a);
void header_deinit(header *h);
/* DAMAGED: e is no header. NOMEM. */
sessile_status header_read(header *h, const entry *e, sessile_error *err);
/* Reads the header of a log, and nothing else of it. h: after header_init(). NOTFOUND;
 * DAMAGED, SEALED, BUSY, IO, NOMEM. */
sessile_status header_peek(store_core *st, const char *folder, const char *name,
                           header *h, sessile_error *err);
/* The nonce of the session of these names, as its header has it now. Errors of
 * header_peek(). */
sessile_status names_made(store_core *st, const session_names *names,
                          char nonce[HEADER_NONCE], sessile_error *err);

#endif

/* entry.h: entries to JSON text and back. */
#ifndef CODEC_ENTRY_H
#define CODEC_ENTRY_H

#include "codec/json.h"

typedef enum entry_type {
    ENTRY_UNKNOWN = 0, /* a type of another version: kept unchanged */
    ENTRY_SESSION,
    ENTRY_MESSAGE,
    ENTRY_TURN,
    ENTRY_COMPACTION,
    ENTRY_BRANCH_SUMMARY,
    ENTRY_HEAD,
    ENTRY_LABEL,
    ENTRY_CHECKPOINT,
    ENTRY_METADATA,
    ENTRY_SUSPEND,
    ENTRY_PENDING_RUN,
    ENTRY_REFUSAL,
    ENTRY_CUSTOM,
    ENTRY_TOMBSTONE,
    ENTRY_CHILD,
    /* of a long-term memory, whose header is of type memory too */
    ENTRY_MEMORY,
    ENTRY_VERDICT,
    ENTRY_HEARD,
    ENTRY_VECTOR,
    ENTRY_CONSENT,
    /* of the audit, whose header is of type audit */
    ENTRY_AUDIT,
    ENTRY_EVENT,
    ENTRY_SEAL,
    ENTRY_LANE,
    ENTRY_WHO,
    /* of the guard's control log, whose header is of type control */
    ENTRY_CONTROL,
    ENTRY_FACT
} entry_type;

typedef enum entry_source {
    SOURCE_NONE = 0,
    SOURCE_USER,
    SOURCE_AGENT,
    SOURCE_SYSTEM,
    SOURCE_TOOL,
    SOURCE_POLICY,
    SOURCE_HOST
} entry_source;

const char *entry_type_name(entry_type type);
const char *entry_source_name(entry_source source);
entry_source entry_source_of(const char *name, size_t size); /* SOURCE_NONE: unknown */
/* The provenance of a message of that role: user, agent, system or tool. */
entry_source source_of_role(sessile_role role);
/* 1: message, turn, compaction, branch_summary: their parent is the head, and they
 * become the head. 0: any other type. */
int entry_on_path(entry_type type);

typedef struct entry {
    sessile_id id, parent; /* parent SESSILE_NO_ID: null */
    int64_t time_ms;
    entry_type type;
    entry_source source;
    json author;       /* who spoke: a string, or JSON_NONE */
    json user;         /* who acted: as header_put_name() writes it, or JSON_NONE */
    json data;         /* an object */
    int64_t tokens;    /* -1: not counted */
    json token_source; /* string, or JSON_NONE */
} entry;

/*
 * Appends an entry's text in the fixed order id, parent_id, timestamp, type, source,
 * author, user, data, tokens. data, author and user are checked JSON text.
 */
typedef struct entry_fields {
    sessile_id id, parent;
    int64_t time_ms;
    entry_type type;
    entry_source source;
    const char *author_json, *user_json; /* JSON with a NUL, or NULL */
    const char *data;
    size_t data_size;
    int64_t tokens; /* -1: left out */
    const char *token_source;
} entry_fields;
void entry_put(buf *out, const entry_fields *fields);
/* The same with the data in a buffer; out fails when the buffer has. */
void entry_put_data(buf *out, entry_fields *fields, const buf *data);

/* Reads checked text; spans point into it. DAMAGED when it is not an entry. */
sessile_status entry_read(entry *out, const char *text, size_t size, sessile_error *err);

void id_print(sessile_id id, char out[9]);
int id_parse(const char *text, size_t size,
             sessile_id *out); /* 8 lower-case hex; 0 or -1 */

/* Version 7: 74 random bits, monotonic in a process by the caller's `last` (16 bytes kept
 * under the caller's lock, zero at first). Version 4 by libuuid. 36 bytes and a NUL. */
#define UUID_SIZE 37
void uuid7_print(char out[UUID_SIZE], int64_t now_ms, unsigned char last[16]);
void uuid4_print(char out[UUID_SIZE]);

#endif

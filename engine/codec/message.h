/*
 * message.h: what the engine needs to know about a message: role, calls, results, kind.
 */
#ifndef CODEC_MESSAGE_H
#define CODEC_MESSAGE_H

#include "codec/json.h"

enum {
    MESSAGE_STARTS_TURN = 1, /* user, not only tool_result blocks, no metadata.kind */
    MESSAGE_SUMMARY = 2,     /* metadata.kind is "summary" or "branch_summary" */
    MESSAGE_KIND = 4,        /* metadata.kind is there */
    MESSAGE_ERROR = 8 /* is_error or isError is true, of the message or of a block */
};

/* A link: one call, or one result, named by hash64_lasting of its id's
 * decoded bytes. */
typedef struct message_link {
    uint64_t id;
    uint8_t is_result; /* 0 call, 1 result */
    uint8_t in_call;   /* `output` in the call itself: answers that id, opens nothing */
} message_link;

typedef struct message {
    sessile_role role;
    unsigned flags;
    json root, content, tool_calls, tool_call_id, usage, metadata, author, timestamp;
} message;

/*
 * Reads checked text as a message and appends its links, in order, to the array that the
 * caller grows (*links by mem_grow with allocator a; *link_count is advanced). links
 * NULL: not wanted. A call is an element of tool_calls (its "id") or a content block of
 * type "tool_use"
 * ("id"); a result is a message of role tool or function with tool_call_id, a block
 * "tool_result" ("tool_use_id" or "tool_call_id"), or "output" in a call of tool_calls.
 * INVALID: not an object; role missing or unknown; a call without a string id; role,
 * content, tool_calls or tool_call_id given twice; wrong types of these. NOMEM.
 */
sessile_status message_read(message *out, const char *text, size_t size,
                            message_link **links, size_t *link_count,
                            size_t *link_capacity, const allocator *a,
                            sessile_error *err);

/* When a message was said, ms: its "timestamp" (ms since 1970, or a date and time),
 * unless that is later than the time of its entry; else the time of its entry. */
int64_t message_time(json timestamp, int64_t entry_ms);

/* What a message is to a person, by its role and flags: its role; TOOL if it is the
 * user's and holds only results of tools. */
sessile_role message_speaker(sessile_role role, unsigned flags);
/* The same of the text of a message; SESSILE_ROLE_NONE: it has no role. */
sessile_role message_speaker_in(json text);

/* What of a message, checked text, only a model writes: the name of the member, or the
 * type of the block, such as "thinking". Static; NULL: nothing. */
const char *message_of_model(const char *text, size_t size);

/* "user", … Static. */
const char *role_name(sessile_role role);
/* The role of a name that json_is() compares; SESSILE_ROLE_NONE: unknown. */
sessile_role role_of(json name);

/* Appends to out the JSON text of the id string (with quotes) of the call whose hash
 * is id; 1 found, 0 not. For answers that the engine makes. */
int message_call_id(const char *text, size_t size, uint64_t id, buf *out);

/* usage of a message or turn: input|input_tokens|prompt_tokens, output|output_tokens|
 * completion_tokens, cache_read|cacheRead|cache_read_input_tokens,
 * cache_write|cacheWrite| cache_creation_input_tokens. Missing: 0. Returns 1 when any was
 * there. */
int usage_read(json usage, sessile_usage *out);
/* What the report says that it cost, in US dollars: 1, or 0 when it says nothing. */
int usage_cost(json usage, double *out);

#endif

/* kinds.h: the words for states, kinds, sources and verdicts, as the log has them. */
#ifndef MEMORY_KINDS_H
#define MEMORY_KINDS_H

#include "codec/json.h"
#include "sessile_memory.h"

/* NULL: no such value. */
const char *memory_state_name(sessile_memory_state state);
const char *memory_kind_name(sessile_memory_kind kind);
const char *memory_source_name(sessile_memory_source source);
const char *memory_verdict_name(sessile_memory_verdict_kind verdict);

/* The value of a JSON string: 0, or -1: it is none of them. */
int memory_kind_of(json text, sessile_memory_kind *out);
int memory_source_of(json text, sessile_memory_source *out);
int memory_verdict_of(json text, sessile_memory_verdict_kind *out);

#endif

/*
 * state_rules.h: which entries of a memory are live, by the definition in
 * memory/states.h: every question is answered by looking at all entries.
 */
#ifndef SUPPORT_STATE_RULES_H
#define SUPPORT_STATE_RULES_H

#include "sessile_memory.h"

enum { RULE_ENTRIES = 160, RULE_NAMED = 6 };

typedef struct rule_entry {
    sessile_id id;
    size_t stamp; /* rule_stamp() when it is written */
    sessile_id replaces[RULE_NAMED];
    size_t replace_count;
    int key; /* -1: none */
    int pending, deleted, rejected, approved, pinned;
    int64_t expires_ms;
} rule_entry;

typedef struct rule_memory {
    rule_entry entries[RULE_ENTRIES];
    size_t count, stamped;
} rule_memory;

/* The latest that replaces it, or NULL. */
const rule_entry *rule_replacer(const rule_memory *m, const rule_entry *old);
sessile_memory_state rule_state(const rule_memory *m, const rule_entry *e, int64_t now);
/* A later one than all before. */
size_t rule_stamp(rule_memory *m);
/* A verdict about an entry; for those that it names in their order. */
void rule_judge(rule_memory *m, rule_entry *e, int64_t now,
                sessile_memory_verdict_kind to);
/* Whether it would say anything new. */
int rule_would_change(const rule_memory *m, const rule_entry *e, int64_t now,
                      sessile_memory_verdict_kind to);

#endif

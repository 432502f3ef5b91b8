/* hostile.h: scripts that mean harm, and how they must end */
#ifndef SUPPORT_HOSTILE_H
#define SUPPORT_HOSTILE_H

#include "support/policies.h"

extern const policy_limits limits_tight;
/* What a store gives unless told otherwise; and the same with gas for ever. */
extern const policy_limits limits_usual;
uint64_t thread_cpu_ms(void);
typedef struct hostile {
    const char *body;
    const char *says; /* part of the sentence */
} hostile;

void check_hostile_within(const hostile *cases, size_t count, int spent,
                          const policy_limits *limits);
void check_hostile_all(const hostile *cases, size_t count, int spent);
#define check_hostile(cases, spent) \
    check_hostile_all(cases, sizeof cases / sizeof *cases, spent)

#define test(f) cmocka_unit_test_setup_teardown(f, policies_set_up, policies_tear_down)

#endif

/* policy_bodies.h: bodies of small policies that succeed or are refused */
#ifndef SUPPORT_POLICY_BODIES_H
#define SUPPORT_POLICY_BODIES_H

#include "support/policies.h"

void must_have_run(const ran *r);
/* The log of a body that must succeed on "s u a u a". */
const char *policies_logged(const char *body);
/* The sentence of a body that must fail with POLICY. */
const char *policies_refused(const char *body);
#define test(f) cmocka_unit_test_setup_teardown(f, policies_set_up, policies_tear_down)

#endif

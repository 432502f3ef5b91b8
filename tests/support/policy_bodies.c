/* policy_bodies.c: bodies of small policies that succeed or are refused */
#include "support/policy_bodies.h"

#include "support/policies.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void must_have_run(const ran *r)
{
    if (r->status)
        fail_msg("status %d: %s", r->status, r->err.message);
}

const char *policies_logged(const char *body)
{
    static ran r;
    r = policies_body(body, "s u a u a");
    must_have_run(&r);
    return r.log;
}

const char *policies_refused(const char *body)
{
    static ran r;
    r = policies_body(body, "s u a u a");
    assert_int_equal(r.status, SESSILE_POLICY);
    assert_string_equal(r.keys, "1 2 3 4 5");
    return r.err.message;
}

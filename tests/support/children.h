/* children.h: processes of a test that go step by step */
#ifndef SUPPORT_CHILDREN_H
#define SUPPORT_CHILDREN_H

#include <sys/types.h>

#include "support/sessions.h"

/* A child that goes step by step: it says a byte and waits for one. */
typedef struct child {
    pid_t pid;
    int to, from;
} child;

child child_start(void (*work)(void *arg, int in, int out), void *arg);
char child_hear(int fd);
void child_tell(int fd, char byte);
void child_end(child *c);
sessile_session *session_that_waits(place *p, const char *id, int has_timeout,
                                    int timeout_ms);
sessile_status turn_of_hello(sessile_session *s, const sessile_run_options *options,
                             sessile_outcome *out, sessile_error *err);
#define EACH_STORE(test)                                                         \
    cmocka_unit_test_setup_teardown(test, place_set_up_sealed, place_tear_down), \
        cmocka_unit_test_setup_teardown(test, place_set_up_ram, place_tear_down)

#define ON_DISK(test) \
    cmocka_unit_test_setup_teardown(test, place_set_up_plain, place_tear_down)

#endif

/* children.c: processes of a test that go step by step */
#include "guard/enter.h"
#include "support/children.h"

#include "support/check.h"
#include "support/logs.h"
#include "support/sessions.h"
#include "run/begin.h"
#include "operations/messages.h"
#include "session/write.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

child child_start(void (*work)(void *arg, int in, int out), void *arg)
{
    int down[2], up[2];
    child c;
    assert_int_equal(pipe(down) | pipe(up), 0);
    c.pid = fork();
    assert_true(c.pid >= 0);
    if (c.pid == 0) {
        close(down[1]);
        close(up[0]);
        work(arg, down[0], up[1]);
        _exit(0);
    }
    close(down[0]);
    close(up[1]);
    c.to = down[1];
    c.from = up[0];
    return c;
}

char child_hear(int fd)
{
    char byte = 0;
    return read(fd, &byte, 1) == 1 ? byte : 0;
}

void child_tell(int fd, char byte)
{
    if (write(fd, &byte, 1) != 1)
        _exit(3);
}

void child_end(child *c)
{
    int status;
    child_tell(c->to, 'q');
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(c->to);
    close(c->from);
}

sessile_session *session_that_waits(place *p, const char *id, int has_timeout,
                                    int timeout_ms)
{
    sessile_session_options options = {.id = sessile_text(id),
                                       .config.has_timeout = has_timeout,
                                       .config.timeout_ms = timeout_ms};
    sessile_session *s;
    sessile_error err;
    if (sessile_resume(&s, p->store, &options, &err))
        fail_msg("%s", err.message);
    return s;
}

sessile_status turn_of_hello(sessile_session *s, const sessile_run_options *options,
                             sessile_outcome *out, sessile_error *err)
{
    sessile_slice message = sessile_text("{\"role\":\"user\",\"content\":\"hello\"}");
    sessile_need need;
    sessile_run *run;
    sessile_status status = sessile_turn_begin(&run, s, &message, 1, options, err);
    if (!status)
        status = sessile_run_step(run, &need, err);
    if (!status)
        status = sessile_run_outcome(run, out, err);
    sessile_run_free(run);
    return status;
}

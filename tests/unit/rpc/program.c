/* program.c: programs of others, as peers of what is tested. */
#include "unit/rpc/program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

void program_start(program *p, const char *const *argv, char *line, size_t size)
{
    int in[2], out[2];
    size_t n = 0;

    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        if (!line)
            dup2(out[1], 2);
        for (int fd = 3; fd < 256; fd++)
            close(fd);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    p->to = in[1];
    p->from = out[0];
    while (line && n + 1 < size && read(p->from, line + n, 1) == 1 && line[n] != '\n')
        n++;
    if (line)
        line[n] = 0;
}

void program_end(program *p)
{
    close(p->to);
    close(p->from);
    kill(p->pid, SIGTERM);
    waitpid(p->pid, NULL, 0);
}

int program_run(const char *const *argv, char *out, size_t size)
{
    program p;
    size_t n = 0;
    ssize_t got;
    char more[4096];
    int status = 0;

    program_start(&p, argv, NULL, 0);
    close(p.to);
    while ((got = read(p.from, more, sizeof more)) > 0) {
        size_t take = (size_t)got < size - 1 - n ? (size_t)got : size - 1 - n;
        memcpy(out + n, more, take);
        n += take;
    }
    out[n] = 0;
    close(p.from);
    waitpid(p.pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
}

void program_ok(const char *const *argv)
{
    static char out[65536];
    int code = program_run(argv, out, sizeof out);
    if (code != 0)
        fail_msg("%s ended with %d:\n%s", argv[0], code, out);
}

static void skip_for(const char *what)
{
    print_message("# skipped: %s is not installed\n", what);
    skip();
}

void program_needed(const char *path, const char *package)
{
    if (access(path, F_OK) != 0)
        skip_for(package);
}

void grpcio_needed(void)
{
    const char *argv[] = {PYTHON, "-c", "import grpc", NULL};
    char out[4096];
    if (access(PYTHON, X_OK) != 0 || program_run(argv, out, sizeof out) != 0)
        skip_for("python3-grpcio");
}

const char *beside(const char *name)
{
    static char path[4][512];
    static int next;
    const char *root = getenv("SESSILE_ROOT");
    char *at = path[next++ % 4];
    snprintf(at, sizeof path[0], "%s/tests/unit/rpc/%s", root ? root : ".", name);
    return at;
}

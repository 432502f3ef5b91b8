/*
 * test_suite.c: is the suite one? It sees each wrong store of wrong_*.c, passes a right
 * one in the same way, and runs over a store in a shared object that it was not built
 * with.
 *
 * Each run is a process of its own: this program with --wrong, or another one of the
 * suite.
 */
#include "store/suite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/backend.h"
#include "store/wrong.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a run printed, and how it ended. */
typedef struct run {
    char out[65536];
    int status;
} run;

static const char *folder; /* the programs are there */

static void run_it(run *r, char *const argv[])
{
    size_t size = 0;
    ssize_t got;
    int out[2];
    pid_t child;

    assert_int_equal(pipe(out), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(out[1], 1);
        dup2(out[1], 2);
        close(out[0]);
        close(out[1]);
        /* what never comes is not waited for long, and a password is there to be told */
        setenv("SESSILE_PATIENCE", "2000", 1);
        setenv("SESSILE_TEST_POSTGRES", "postgres://me:hunter2@server/", 1);
        setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 1);
        execv(argv[0], argv);
        _exit(127);
    }
    close(out[1]);
    while ((got = read(out[0], r->out + size, sizeof r->out - 1 - size)) > 0)
        size += (size_t)got;
    r->out[size] = 0;
    close(out[0]);
    while (waitpid(child, &r->status, 0) < 0 && errno == EINTR)
        continue;
}

static int count_lines(const char *text, const char *start, const char *part)
{
    int n = 0;

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *end = strchr(line, '\n');
        const char *at = strstr(line, part);
        n += strncmp(line, start, strlen(start)) == 0 && at && (!end || at < end);
    }
    return n;
}

static void run_wrong(run *r, const char *name, const char *seen_by)
{
    char program[1000];
    char *argv[] = {program, (char *)"--wrong", (char *)name, (char *)seen_by, NULL};

    snprintf(program, sizeof program, "%s/test_suite", folder);
    run_it(r, argv);
}

/* ------------------------------------------------------------------ wrong stores */

static void sees_all_of(const wrong *list)
{
    static run r;
    int seen = 0, missed = 0;

    for (const wrong *w = list; w->name; w++) {
        run_wrong(&r, w->name, w->seen_by);
        if (WIFEXITED(r.status) && WEXITSTATUS(r.status) == 1 &&
            count_lines(r.out, "not ok", w->seen_by) == 1) {
            seen++;
        } else {
            missed++;
            print_error("\"%s\" was not seen by %s (status %d):\n%s\n", w->name,
                        w->seen_by, r.status, r.out);
        }
    }
    print_message("# figure: wrong stores seen = %d of %d\n", seen, seen + missed);
    assert_int_equal(missed, 0);
}

static void stores_that_do_wrong_with_logs_are_seen(void **state)
{
    (void)state;
    sees_all_of(wrong_logs);
}

static void stores_that_do_wrong_beside_them_are_seen(void **state)
{
    (void)state;
    sees_all_of(wrong_beside);
}

/* Else those that were seen might have failed for another reason. */
static void a_right_store_passes_in_the_same_way(void **state)
{
    static run r;

    (void)state;
    run_wrong(&r, "", "");
    if (r.status || count_lines(r.out, "ok ", "wrong: ") < 40)
        fail_msg("%s", r.out);
}

/* ------------------------------------------------------------------ shared objects */

static void a_store_in_a_shared_object_is_tested(void **state)
{
    static const char *const programs[] = {"test_backend", "test_sessions", "test_lives",
                                           "test_failures"};
    static const int least[] = {20, 10, 10, 1};
    static run r;
    char program[1000], object[1000];
    char *argv[] = {program, (char *)"--store", object, NULL};

    (void)state;
    snprintf(object, sizeof object, "%s/minimal.so", folder);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        snprintf(program, sizeof program, "%s/%s", folder, programs[i]);
        run_it(&r, argv);
        if (r.status || count_lines(r.out, "ok ", "minimal.so, ") < least[i])
            fail_msg("%s", r.out);
    }
}

static void an_object_without_a_store_is_told(void **state)
{
    static run r;
    char program[1000], object[1000];
    char *argv[] = {program, (char *)"--store", object, NULL};

    (void)state;
    snprintf(program, sizeof program, "%s/test_backend", folder);
    snprintf(object, sizeof object, "%s/../../libsessile.so", folder);
    run_it(&r, argv);
    assert_int_equal(WEXITSTATUS(r.status), 2);
    assert_non_null(strstr(r.out, "has no function sessile_test_store"));
    snprintf(object, sizeof object, "%s/nothing.so", folder);
    run_it(&r, argv);
    assert_int_equal(WEXITSTATUS(r.status), 2);
    assert_non_null(strstr(r.out, "nothing.so"));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest cases[] = {
        cmocka_unit_test(stores_that_do_wrong_with_logs_are_seen),
        cmocka_unit_test(stores_that_do_wrong_beside_them_are_seen),
        cmocka_unit_test(a_right_store_passes_in_the_same_way),
        cmocka_unit_test(a_store_in_a_shared_object_is_tested),
        cmocka_unit_test(an_object_without_a_store_is_told),
    };
    static char self[1000];
    ssize_t size;

    if (argc == 4 && strcmp(argv[1], "--wrong") == 0) {
        const suite_store *kind = wrong_store(argv[2]);
        int failed = kind ? backend_run(kind, 1, argv[3]) : 2;
        return failed > 0 ? 1 : failed;
    }
    size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size <= 0 || !strrchr(self, '/'))
        return 1;
    *strrchr(self, '/') = 0;
    folder = self;
    return cmocka_run_group_tests(cases, NULL, NULL);
}

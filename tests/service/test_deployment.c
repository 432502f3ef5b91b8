/*
 * test_deployment.c: the page for operators (engine/service/DEPLOYMENT.md) is right: its
 * blocks are run in order, as they stand there, on machines with the names and addresses
 * that it gives, while a client writes all the time.
 *
 * What is not as on real machines: `systemctl` and `scp` are the programs of those names
 * in this folder, and the packages are those of this system, so that apt-get finds them
 * installed. Blocks that say `no-test` are not run.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "service/guide.h"
#include "service/machine.h"
#include "support/sessions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

enum { DB1, DB2, DB3, ADMIN, CLIENT, MACHINES };
/* in the order of their addresses */
static const char *const names[MACHINES] = {"db1", "db2", "db3", "admin", "client"};

typedef struct followed {
    network *net;
    machine machines[MACHINES];
    char *folder, log[600], source[4096];
    guide guide;
    pid_t writer; /* 0: none */
} followed;

/* ---------------------------------------------------------------------- on machines */

/* What was said last, for a person. */
static void show_log(const followed *f)
{
    char line[400];
    FILE *log = fopen(f->log, "re");
    if (log && fseek(log, -6000, SEEK_END) != 0)
        rewind(log);
    while (log && fgets(line, sizeof line, log))
        print_message("# %s", line);
    if (log)
        fclose(log);
}

/* What the chapter on capacity measured: "db1 wal_bytes 123". */
static void show_costs(const followed *f)
{
    char line[400], machine[8], what[32], end;
    long long value;
    FILE *log = fopen(f->log, "re");
    while (log && fgets(line, sizeof line, log))
        if (sscanf(line, "%7s %31[a-z_] %lld%c", machine, what, &value, &end) == 4 &&
            end == '\n')
            print_message("# %s", line);
    if (log)
        fclose(log);
}

static void run(followed *f, int on, const char *script)
{
    int status = machine_do(&f->machines[on], script, 0, f->log);
    if (status != 0) {
        show_log(f);
        fail_msg("on %s: status %d of: %s", names[on], status, script);
    }
}

static void run_block(followed *f, const guide_block *b)
{
    for (int i = 0; i < GUIDE_MACHINES && b->where[i][0]; i++) {
        int on = 0;
        while (on < MACHINES && strcmp(names[on], b->where[i]) != 0)
            on++;
        if (on == MACHINES)
            fail_msg("line %d: there is no machine %s", b->line, b->where[i]);
        int status = machine_do(&f->machines[on], b->text, b->in_source, f->log);
        if (status != 0) {
            show_log(f);
            fail_msg("DEPLOYMENT.md, line %d (%s), on %s: status %d", b->line, b->heading,
                     names[on], status);
        }
    }
}

/* ---------------------------------------------------------------------- a client */

#define CURL                                  \
    "curl -fsS --max-time 20 --cacert ca.pem" \
    " -H \"authorization: Bearer $(cat ann.key)\" -H 'content-type: application/json'"

/* Appends one text at a node, without a second attempt. */
static void write_at(followed *f, int node, const char *text)
{
    char script[600];
    snprintf(script, sizeof script,
             CURL " -d '{\"session\":{\"id\":\"bug-42\"},\"message\":{\"role\":\"user\","
                  "\"content\":\"%s\"}}' https://%s:7071/sessile.v1.SessionService/"
                  "AppendMessage\necho %s >>acknowledged",
             text, names[node], text);
    run(f, CLIENT, script);
}

/* Each text that was acknowledged is there once. */
static void find_all_at(followed *f, int node)
{
    char script[700];
    snprintf(script, sizeof script,
             "cp acknowledged expected\n" CURL " -d '{\"session\":{\"id\":\"bug-42\"}}'"
             " https://%s:7071/sessile.v1.SessionService/GetMessages >found\n"
             "set +x\n"
             "grep -o '\"content\":\"[^\"]*\"' found | cut -d '\"' -f 4 | sort >there\n"
             "sort expected | comm -23 - there >lost; uniq -d there >doubled\n"
             "cat lost doubled; test -s expected -a ! -s lost -a ! -s doubled",
             names[node]);
    run(f, CLIENT, script);
}

/* The client of the page says one thing after the other until it is told to end. What it
 * says is refused, and not written, if this test wrote between its two calls. */
static void begin_writing(followed *f)
{
    f->writer = machine_run(
        &f->machines[CLIENT],
        "rm -f enough\n"
        "set +x\n"
        "for ((i = 1; ; i++)); do\n"
        "  test ! -e enough || exit 0\n"
        "  if python3 say.py bug-42 \"meanwhile $i\" 2>refused; then\n"
        "    echo \"meanwhile $i\" >>acknowledged\n"
        "  else\n"
        "    grep StatusCode.ABORTED refused || { cat refused >&2; exit 1; }\n"
        "  fi >/dev/null\n"
        "  sleep 0.3\n"
        "done",
        0, f->log);
}

static void end_writing(followed *f)
{
    int status;
    run(f, CLIENT, "touch enough");
    waitpid(f->writer, &status, 0);
    f->writer = 0;
    assert_int_equal(status, 0);
    run(f, CLIENT, "grep -c meanwhile acknowledged");
}

/* ---------------------------------------------------------------------- between chapters
 */

static void two_nodes_share_sessions(followed *f)
{
    run(f, CLIENT, "printf '%s\\n' 'why is it slow?' 'and since when?' >acknowledged");
    write_at(f, DB1, "through db1");
    find_all_at(f, DB2);
    write_at(f, DB2, "through db2");
    find_all_at(f, DB1);
    begin_writing(f);
}

static void a_standby_may_be_away(followed *f)
{
    network_isolate(f->net, f->machines[DB3].host);
    write_at(f, DB1, "without db3");
    network_join(f->net, f->machines[DB3].host);
    network_isolate(f->net, f->machines[DB2].host);
    write_at(f, DB1, "without db2");
    network_join(f->net, f->machines[DB2].host);
}

/* Its power goes: nobody is told. Of the two standbys db2 has more, which is the one that
 * the page promotes. */
static void db1_dies(followed *f)
{
    network_cut(f->net, f->machines[DB1].host, f->machines[DB3].host);
    write_at(f, DB1, "last of db1");
    network_isolate(f->net, f->machines[DB1].host);
    network_signal(f->net, f->machines[DB1].host, SIGKILL);
}

static void db1_runs_again(followed *f)
{
    run(f, CLIENT,
        "python3 say.py bug-42 'after the promotion'\n"
        "echo 'after the promotion' >>acknowledged");
    find_all_at(f, DB2);
    network_join(f->net, f->machines[DB1].host);
    machine_boot(&f->machines[DB1]);
}

static void all_is_there(followed *f)
{
    end_writing(f);
    write_at(f, DB1, "back on db1");
    find_all_at(f, DB1);
    find_all_at(f, DB2);
}

/* What happens before the first block of a chapter. */
static const struct {
    const char *heading;
    void (*happens)(followed *f);
} events[] = {
    {"A second standby", two_nodes_share_sessions},
    {"A rolling restart", a_standby_may_be_away},
    {"When the primary dies", db1_dies},
    {"Bringing the old primary back", db1_runs_again},
    {"What to watch", all_is_there},
};
enum { EVENTS = sizeof events / sizeof *events };

static int begin_chapter(followed *f, const char *heading)
{
    for (int i = 0; i < EVENTS; i++)
        if (strcmp(events[i].heading, heading) == 0) {
            events[i].happens(f);
            return 1;
        }
    return 0;
}

/* ---------------------------------------------------------------------- the page */

static void follow_open(followed *f)
{
    char path[4200];
    const char *why = machine_missing(), *root = getenv("SESSILE_ROOT");
    memset(f, 0, sizeof *f);
    if (!why && getenv("TEST_ASAN"))
        why = "what is installed is a build without sanitizers";
    if (!why)
        f->net = network_open(0, &why);
    if (!f->net) {
        print_message("# the guide is not followed: %s\n", why);
        skip();
    }
    assert_non_null(realpath(root ? root : ".", f->source));
    f->folder = folder_make();
    snprintf(f->log, sizeof f->log, "%s/log", f->folder);
    snprintf(path, sizeof path, "%s/engine/service/DEPLOYMENT.md", f->source);
    guide_open(&f->guide, path);
    for (int i = 0; i < MACHINES; i++)
        machine_open(&f->machines[i], f->net, names[i], f->folder, f->source);
    for (int i = 0; i < MACHINES; i++)
        machine_wait(&f->machines[i]);
}

static void follow_close(followed *f)
{
    network_close(f->net);
    for (int i = 0; i < MACHINES; i++)
        machine_close(&f->machines[i]);
    guide_close(&f->guide);
    folder_remove(f->folder);
}

static void the_page_works_as_it_stands(void **state)
{
    static followed f;
    const char *heading = "";
    int ran = 0, happened = 0;
    time_t began = time(NULL);
    (void)state;
    follow_open(&f);
    for (int i = 0; i < f.guide.count; i++) {
        const guide_block *b = &f.guide.blocks[i];
        if (strcmp(b->heading, heading) != 0) {
            print_message("# after %d s: %s\n", (int)(time(NULL) - began), b->heading);
            happened += begin_chapter(&f, b->heading);
        }
        heading = b->heading;
        if (!b->reason[0]) {
            run_block(&f, b);
            ran++;
        }
    }
    assert_int_equal(happened, EVENTS);
    find_all_at(&f, DB1);
    find_all_at(&f, DB2);
    show_costs(&f);
    print_message("# figure: blocks of the deployment page that were run = %d of %d\n",
                  ran, f.guide.count);
    follow_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_works_as_it_stands),
    };
    /* what is said is there when this is ended from outside */
    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

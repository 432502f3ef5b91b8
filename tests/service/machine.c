/* machine.c: see machine.h. */
#include "service/machine.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const char *machine_missing(void)
{
    static const struct {
        const char *path, *why;
    } needed[] = {
        {"/usr/lib/postgresql/15/bin/initdb",
         "PostgreSQL 15 is not installed: apt-get install postgresql-15"},
        {"/usr/bin/pg_createcluster",
         "there is no postgresql-common: apt-get install it"},
        {"/usr/bin/curl", "there is no curl: apt-get install curl"},
        {"/usr/bin/openssl", "there is no openssl: apt-get install openssl"},
        {"/usr/bin/protoc", "there is no protoc: apt-get install protobuf-compiler"},
        {"/usr/bin/make", "there is no make: apt-get install make"},
    };
    if (geteuid() != 0)
        return "machines with files of their own need root";
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (access(needed[i].path, X_OK) != 0)
            return needed[i].why;
    if (system(
            "unshare --mount --uts sh -c 'mount -t tmpfs m /mnt && mkdir /mnt/u /mnt/w &&"
            " mount -t overlay -o lowerdir=/etc,upperdir=/mnt/u,workdir=/mnt/w m /etc'"
            " >/dev/null 2>&1") != 0)
        return "this system lets nobody mount an overlay";
    if (system("/usr/bin/python3 -c 'import grpc, google.protobuf' 2>/dev/null") != 0)
        return "python3 has no grpc: apt-get install python3-grpcio python3-protobuf";
    return NULL;
}

static int space_of(pid_t pid, const char *kind)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, kind);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail_msg("%s cannot be opened", path);
    return fd;
}

/* The file that appears once it is made. */
static void ready_file(const machine *m, char out[700])
{
    snprintf(out, 700, "%s/%s/ready", m->folder, network_name(m->net, m->host));
}

static void wait_made(const machine *m)
{
    char ready[700];
    ready_file(m, ready);
    while (access(ready, F_OK) != 0) {
        if (waitpid(m->pid, NULL, WNOHANG) == m->pid)
            fail_msg("machine %s is not made: see tests/service/machine",
                     network_name(m->net, m->host));
        usleep(5000);
    }
}

void machine_open(machine *m, network *n, const char *name, const char *folder,
                  const char *source)
{
    char own[600], script[1100], log[700];
    *m = (machine){.net = n, .folder = folder, .source = source};
    m->host = network_host(n, name);
    snprintf(own, sizeof own, "%s/%s", folder, name);
    snprintf(script, sizeof script, "%s/tests/service/machine", source);
    snprintf(log, sizeof log, "%s/log", own);
    assert_int_equal(mkdir(own, 0755), 0);
    const char *const argv[] = {"unshare", "--mount", "--uts", script, name, own, NULL};
    m->pid = network_run(n, m->host, &(network_program){.argv = argv, .log = log});
}

void machine_wait(machine *m)
{
    wait_made(m);
    m->files = space_of(m->pid, "mnt");
    m->name = space_of(m->pid, "uts");
}

void machine_close(machine *m)
{
    waitpid(m->pid, NULL, 0);
    close(m->files);
    close(m->name);
}

/* Options of nsenter. */
static void ways_in(const machine *m, char files[80], char name[80])
{
    snprintf(files, 80, "--mount=/proc/%d/fd/%d", (int)getpid(), m->files);
    snprintf(name, 80, "--uts=/proc/%d/fd/%d", (int)getpid(), m->name);
}

void machine_boot(machine *m)
{
    char files[80], name[80], own[600], ready[700];
    ways_in(m, files, name);
    snprintf(own, sizeof own, "%s/%s", m->folder, network_name(m->net, m->host));
    ready_file(m, ready);
    waitpid(m->pid, NULL, 0);
    unlink(ready);
    const char *const argv[] = {
        "nsenter",
        files,
        name,
        "sh",
        "-c",
        "rm -rf /run/*; install -d -o postgres -g postgres -m 2775 /run/postgresql;"
        " echo $$ >\"$0/pid\"; touch \"$0/ready\"; exec sleep infinity",
        own,
        NULL};
    m->pid = network_run(m->net, m->host, &(network_program){.argv = argv});
    wait_made(m);
}

/* What runs for more than `seconds` is ended, with status 124; 0: nothing is. */
static pid_t start(machine *m, const char *script, int in_source, const char *log,
                   int seconds)
{
    char files[80], name[80], all[700], build[1100], limit[16];
    const char *own = getenv("SESSILE_BUILD");
    ways_in(m, files, name);
    snprintf(all, sizeof all, "MACHINES=%s", m->folder);
    snprintf(build, sizeof build, "BUILD=%s", own ? own : "build");
    snprintf(limit, sizeof limit, "%d", seconds);
    const char *const argv[] = {
        "nsenter",
        files,
        name,
        "env",
        "-i",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME=/root",
        "USER=root",
        "LANG=C.UTF-8",
        "DEBIAN_FRONTEND=noninteractive",
        all,
        build,
        "timeout",
        "--kill-after=5",
        limit,
        "bash",
        "-c",
        "cd \"$0\"; PS4='+ \\t '; set -ex; eval \"$1\"",
        in_source ? m->source : "/root",
        script,
        NULL};
    return network_run(m->net, m->host, &(network_program){.argv = argv, .log = log});
}

pid_t machine_run(machine *m, const char *script, int in_source, const char *log)
{
    return start(m, script, in_source, log, 0);
}

int machine_do(machine *m, const char *script, int in_source, const char *log)
{
    int status;
    pid_t pid = start(m, script, in_source, log, 180);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

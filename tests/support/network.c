/*
 * network.c: the test's side of a network: it gives orders to the process that carries
 * the packets (network_wire.c), and starts programs in the hosts.
 */
#include "support/network.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <glob.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/network_inside.h"

enum { NO_ENTRY = 125, NO_PROGRAM = 127, PAUSE_US = 2000 };

typedef struct host {
    char name[32], address[24];
    int space; /* its namespace */
    ino_t inode;
} host;

struct network {
    pthread_mutex_t turn; /* one order at a time */
    int control;
    pid_t process, owner;
    int users; /* the namespace of users that the hosts belong to, or -1 */
    host hosts[NETWORK_HOSTS];
    int count;
};

/* ------------------------------------------------------------------ orders */

void network_say(int control, const network_answer *answer, const int *fds, int count)
{
    struct iovec body = {.iov_base = (void *)answer, .iov_len = sizeof *answer};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } extra = {.room = {0}};
    struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = extra.room;
        message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
        extra.head.cmsg_level = SOL_SOCKET;
        extra.head.cmsg_type = SCM_RIGHTS;
        extra.head.cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
        memcpy(CMSG_DATA(&extra.head), fds, (size_t)count * sizeof(int));
    }
    (void)!sendmsg(control, &message, MSG_NOSIGNAL);
}

int network_hear(int control, network_answer *answer, int fds[2])
{
    struct iovec body = {.iov_base = answer, .iov_len = sizeof *answer};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } extra = {.room = {0}};
    struct msghdr message = {.msg_iov = &body,
                             .msg_iovlen = 1,
                             .msg_control = extra.room,
                             .msg_controllen = sizeof extra.room};
    fds[0] = fds[1] = -1;
    if (recvmsg(control, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *answer)
        return 0;
    struct cmsghdr *with = CMSG_FIRSTHDR(&message);
    if (with && with->cmsg_type == SCM_RIGHTS)
        memcpy(fds, CMSG_DATA(with), with->cmsg_len - CMSG_LEN(0));
    return 1;
}

static network_answer order(network *n, const network_order *what, int fds[2])
{
    network_answer answer;
    pthread_mutex_lock(&n->turn);
    int heard = send(n->control, what, sizeof *what, MSG_NOSIGNAL) > 0 &&
                network_hear(n->control, &answer, fds);
    pthread_mutex_unlock(&n->turn);
    if (!heard)
        fail_msg("the process of the network is gone");
    return answer;
}

/* ------------------------------------------------------------------ its life */

network *network_open(uint64_t seed, const char **why)
{
    static network_answer answer;
    const char *given = getenv("SEED");
    int ends[2], fds[2];
    pid_t parent = getpid();
    if (seed == 0)
        seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 1000003u + 1;
    *why = "no socket or process for a network";
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return NULL;
    pid_t process = fork();
    if (process == 0) {
        /* nothing of the test's is kept open here: it would never see an end */
        dup3(ends[1], 3, O_CLOEXEC);
        syscall(SYS_close_range, 4, ~0u, 0);
        network_wire(3, seed, parent);
    }
    close(ends[1]);
    if (process < 0 || !network_hear(ends[0], &answer, fds) || answer.why[0]) {
        if (answer.why[0])
            *why = answer.why;
        close(ends[0]);
        waitpid(process, NULL, 0);
        return NULL;
    }
    network *n = calloc(1, sizeof *n);
    pthread_mutex_init(&n->turn, NULL);
    n->control = ends[0];
    n->process = process;
    n->owner = parent;
    n->users = -1;
    print_message("# network: SEED=%llu\n", (unsigned long long)seed);
    return n;
}

void network_close(network *n)
{
    if (!n)
        return;
    close(n->control);
    if (getpid() == n->owner)
        waitpid(n->process, NULL, 0);
    for (int i = 0; i < n->count; i++)
        close(n->hosts[i].space);
    if (n->users >= 0)
        close(n->users);
    pthread_mutex_destroy(&n->turn);
    free(n);
}

int network_host(network *n, const char *name)
{
    int fds[2];
    struct stat st;
    for (int i = 0; i < n->count; i++)
        if (strcmp(n->hosts[i].name, name) == 0)
            return i;
    network_answer answer = order(n, &(network_order){.word = NETWORK_HOST}, fds);
    if (answer.why[0])
        fail_msg("no host %s: %s", name, answer.why);
    host *h = &n->hosts[n->count];
    snprintf(h->name, sizeof h->name, "%s", name);
    snprintf(h->address, sizeof h->address, "10.77.0.%u", n->count + 1u);
    assert_int_equal(fstat(fds[0], &st), 0);
    h->space = fds[0];
    h->inode = st.st_ino;
    if (n->users < 0)
        n->users = fds[1];
    else if (fds[1] >= 0)
        close(fds[1]);
    return n->count++;
}

const char *network_address(const network *n, int host)
{
    return n->hosts[host].address;
}

const char *network_name(const network *n, int host)
{
    return n->hosts[host].name;
}

/* ------------------------------------------------------------------ links */

void network_one_way(network *n, int from, int to, const network_fault *fault)
{
    int fds[2];
    network_order what = {.word = NETWORK_FAULT, .from = from, .to = to, .fault = *fault};
    (void)order(n, &what, fds);
}

void network_link(network *n, int one, int other, const network_fault *both_ways)
{
    network_one_way(n, one, other, both_ways);
    network_one_way(n, other, one, both_ways);
}

void network_cut(network *n, int one, int other)
{
    network_link(n, one, other, &(network_fault){.cut = 1});
}

void network_mend(network *n, int one, int other)
{
    network_link(n, one, other, &(network_fault){.cut = 0});
}

void network_isolate(network *n, int host)
{
    for (int i = 0; i < n->count; i++)
        if (i != host)
            network_cut(n, host, i);
}

void network_join(network *n, int host)
{
    for (int i = 0; i < n->count; i++)
        if (i != host)
            network_mend(n, host, i);
}

network_counts network_count(network *n, int from, int to)
{
    int fds[2];
    network_order what = {.word = NETWORK_COUNT, .from = from, .to = to};
    return order(n, &what, fds).counts;
}

/* ------------------------------------------------------------------ programs */

pid_t network_fork(network *n, int host)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    close(n->control); /* the test's end alone tells the process of the network to end */
    if ((n->users >= 0 && setns(n->users, CLONE_NEWUSER)) ||
        setns(n->hosts[host].space, CLONE_NEWNET))
        _exit(NO_ENTRY);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(NO_ENTRY);
    return 0;
}

/* In the child. */
static void become(const char *user)
{
    struct passwd *who = user ? getpwnam(user) : NULL;
    if (!user || geteuid() != 0)
        return;
    if (!who || setgroups(0, NULL) || setgid(who->pw_gid) || setuid(who->pw_uid))
        _exit(NO_ENTRY);
    setenv("HOME", "/", 1);
}

pid_t network_run(network *n, int host, const network_program *program)
{
    pid_t parent = getpid(), pid = network_fork(n, host);
    if (pid != 0)
        return pid;
    int out = program->log ? open(program->log, O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
    int in = open("/dev/null", O_RDONLY);
    dup2(in, 0);
    if (program->log) {
        dup2(out, 1);
        dup2(out, 2);
    }
    syscall(SYS_close_range, 3, ~0u, 0);
    become(program->user);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a new user forgot it */
    if (getppid() != parent)
        _exit(NO_ENTRY);
    for (const char *const *e = program->extra; e && *e; e++)
        putenv((char *)*e);
    execvp(program->argv[0], (char *const *)program->argv);
    _exit(NO_PROGRAM);
}

int network_do(network *n, int host, const char *const *argv)
{
    int status;
    pid_t pid = network_run(n, host, &(network_program){.argv = argv});
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int network_socket(network *n, int host, int type)
{
    int ends[2], fds[2];
    network_answer answer = {.why = ""};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    pid_t pid = network_fork(n, host);
    if (pid == 0) {
        int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
        network_say(ends[1], &answer, &fd, fd >= 0);
        _exit(0);
    }
    close(ends[1]);
    int heard = network_hear(ends[0], &answer, fds);
    close(ends[0]);
    waitpid(pid, NULL, 0);
    if (!heard || fds[0] < 0)
        fail_msg("no socket in host %s", n->hosts[host].name);
    return fds[0];
}

int network_wait_port(network *n, int host, int port, pid_t pid)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = network_socket(n, host, SOCK_STREAM), ended = 0;
    inet_pton(AF_INET, n->hosts[host].address, &in.sin_addr);
    while (connect(fd, (struct sockaddr *)&in, sizeof in) && !ended) {
        usleep(PAUSE_US);
        ended = waitpid(pid, NULL, WNOHANG) == pid;
    }
    close(fd);
    return ended ? -1 : 0;
}

/* 'T', 'Z' and so on, of proc(5); 0: there is no such process. */
static char state_of(pid_t pid, pid_t *parent)
{
    char name[64], state = 0;
    int of = 0;
    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    FILE *stat = fopen(name, "re");
    /* the name of its program may have blanks, but has no newline */
    if (stat && fscanf(stat, "%*d (%*[^\n)]) %c %d", &state, &of) != 2)
        state = 0;
    if (stat)
        fclose(stat);
    *parent = (pid_t)of;
    return state;
}

/* Whether the signal has done to a process all that it does. One that has ended and was
 * not waited for is there to whoever looks for its number, such as a PostgreSQL that is
 * started again. */
static int took_effect(pid_t pid, int signal)
{
    pid_t parent;
    char state = state_of(pid, &parent);
    if (signal == SIGKILL)
        return !state || (state == 'Z' && parent == getpid());
    return signal != SIGSTOP || !state || state == 'Z' || state == 'T';
}

void network_signal(network *n, int host, int signal)
{
    pid_t all[500];
    int again;
    do {
        int found = network_list(n->hosts[host].inode, n->process, all, 500);
        again = 0;
        for (int i = 0; i < found; i++) {
            again |= signal == SIGKILL || !took_effect(all[i], signal);
            kill(all[i], signal);
        }
        for (int i = 0; i < found; i++)
            while (!took_effect(all[i], signal))
                usleep(PAUSE_US);
    } while (again);
}

const char *network_prefix(network *n, int host)
{
    static char words[200], users[80];
    if (n->users >= 0)
        snprintf(users, sizeof users, "--preserve-credentials --user=/proc/%d/fd/%d ",
                 (int)n->owner, n->users);
    snprintf(words, sizeof words, "nsenter --net=/proc/%d/fd/%d %s", (int)n->owner,
             n->hosts[host].space, users);
    return words;
}

const char *const *network_clock(long seconds, const char **why)
{
    static char preload[4][400], offset[4][40];
    static const char *extra[4][6];
    static unsigned next;
    unsigned at = next++ % 4;
    const char *set = getenv("LD_PRELOAD"), *asan = getenv("ASAN_OPTIONS");
    static char checks[400];
    glob_t found;
    *why = "there is no libfaketime: apt-get install libfaketime";
    if (glob("/usr/lib/*/faketime/libfaketimeMT.so.1", 0, NULL, &found))
        return NULL;
    snprintf(preload[at], sizeof preload[at], "LD_PRELOAD=%s%s%s", set ? set : "",
             set ? ":" : "", found.gl_pathv[0]);
    globfree(&found);
    snprintf(offset[at], sizeof offset[at], "FAKETIME=%+ld", seconds);
    /* a program that has AddressSanitizer in it would refuse a library before it */
    snprintf(checks, sizeof checks, "ASAN_OPTIONS=%s%sverify_asan_link_order=0",
             asan ? asan : "", asan ? ":" : "");
    const char *all[] = {preload[at], offset[at], "FAKETIME_DONT_FAKE_MONOTONIC=1",
                         checks, NULL};
    memcpy(extra[at], all, sizeof all);
    return extra[at];
}

/*
 * network_wire.c: the process through which every packet of a test's network goes.
 *
 * It makes the hosts: a namespace and a TUN device each. A packet that a host sends is
 * read here, and is one of: withheld (the link is cut), lost, put into a heap until its
 * time, or written to the device of the host whose address it has. A link has a sequence
 * of random numbers of its own, three for each packet whatever its faults are: what
 * happens to the hundredth packet from A to B does not depend on other links.
 *
 * A process and not a thread of the test: it outlives the test, to end what the test has
 * left in the hosts, and no sanitizer of the test follows its packets through a fork.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/network_inside.h"

enum {
    MTU = 1500,
    LONGEST_QUEUE =
        2000,      /* packets that the kernel keeps for a host until they are read */
    BATCH = 64,    /* packets read from one device before the next has its turn */
    ROOM = 1 << 16 /* packets that wait for their time */
};

typedef struct path {
    network_fault fault;
    network_counts counts;
    uint64_t random;
} path;

typedef struct machine {
    int tun;
    ino_t space;
} machine;

typedef struct packet {
    int64_t due_ns;
    uint64_t number; /* of two at the same time, the first comes first */
    uint8_t *bytes;
    uint16_t size;
    uint8_t from, to;
} packet;

typedef struct wire_process {
    int control, home, users; /* namespaces: where it lives, and of users or -1 */
    pid_t parent;
    uint64_t seed;
    machine hosts[NETWORK_HOSTS];
    int count;
    path links[NETWORK_HOSTS][NETWORK_HOSTS];
    packet *heap; /* due first, first */
    size_t waiting;
    uint64_t number;
} wire_process;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* splitmix64, by Sebastiano Vigna. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* From 0 to below 1. */
static double share(uint64_t *state)
{
    return (double)(draw(state) >> 11) * 0x1p-53;
}

/* ------------------------------------------------------------------ hosts */

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t wrote = fd < 0 ? -1 : write(fd, text, strlen(text));
    if (fd >= 0)
        close(fd);
    return wrote == (ssize_t)strlen(text) ? 0 : -1;
}

/* A namespace of users in which whoever runs the test may make hosts. He keeps his
 * number: PostgreSQL does not run as root, also not as one that is root in here only. */
static int own_users(wire_process *w)
{
    char users[64], groups[64];
    snprintf(users, sizeof users, "%u %u 1", (unsigned)geteuid(), (unsigned)geteuid());
    snprintf(groups, sizeof groups, "%u %u 1", (unsigned)getegid(), (unsigned)getegid());
    if (unshare(CLONE_NEWUSER) || write_file("/proc/self/uid_map", users) ||
        write_file("/proc/self/setgroups", "deny") ||
        write_file("/proc/self/gid_map", groups))
        return -1;
    w->users = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    return w->users < 0 ? -1 : 0;
}

static int set_address(int fd, unsigned long what, const char *device,
                       const char *address)
{
    struct ifreq set = {0};
    struct sockaddr_in in = {.sin_family = AF_INET};
    snprintf(set.ifr_name, sizeof set.ifr_name, "%s", device);
    inet_pton(AF_INET, address, &in.sin_addr);
    memcpy(&set.ifr_addr, &in, sizeof in);
    return ioctl(fd, what, &set);
}

static int bring_up(int fd, const char *device)
{
    struct ifreq set = {.ifr_flags = IFF_UP | IFF_RUNNING};
    snprintf(set.ifr_name, sizeof set.ifr_name, "%s", device);
    return ioctl(fd, SIOCSIFFLAGS, &set);
}

/* In the namespace where it is made, and where it is. What could not be done, or NULL. */
static const char *open_tun(int *tun)
{
    struct ifreq set = {.ifr_name = "tun0", .ifr_flags = IFF_TUN | IFF_NO_PI};
    *tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (*tun < 0)
        return "/dev/net/tun";
    return ioctl(*tun, TUNSETIFF, &set) ? "a TUN device" : NULL;
}

/* The namespace in which it lives itself: nobody's. What could not be done, or NULL: then
 * hosts can be made. */
static const char *settle(wire_process *w)
{
    if (unshare(CLONE_NEWNET) && (own_users(w) || unshare(CLONE_NEWNET)))
        return "network namespaces (run as root, or allow user namespaces)";
    w->home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (w->home < 0)
        return "/proc";
    int probe;
    const char *why = open_tun(&probe);
    if (!why)
        close(probe);
    return why;
}

/* In the host's namespace. What could not be done, or NULL. */
static const char *make_device(wire_process *w, machine *host)
{
    struct ifreq set = {.ifr_name = "tun0", .ifr_qlen = LONGEST_QUEUE};
    char address[32];
    const char *why = open_tun(&host->tun);
    if (why)
        return why;
    snprintf(address, sizeof address, "10.77.0.%d", w->count + 1);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)ioctl(fd, SIOCSIFTXQLEN,
                &set); /* root alone; others have 500, and slower TCP */
    if (fd < 0 || bring_up(fd, "lo") || set_address(fd, SIOCSIFADDR, "tun0", address) ||
        set_address(fd, SIOCSIFNETMASK, "tun0", "255.255.255.0") || bring_up(fd, "tun0"))
        why = "the address of a TUN device";
    if (fd >= 0)
        close(fd);
    return why;
}

/* *space: its namespace. What could not be done, or NULL. */
static const char *make_host(wire_process *w, int *space)
{
    machine *host = &w->hosts[w->count];
    struct stat st;
    if (w->count == NETWORK_HOSTS)
        return "more hosts";
    if (unshare(CLONE_NEWNET))
        return "a network namespace";
    const char *why = make_device(w, host);
    *space = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (!why && (*space < 0 || fstat(*space, &st)))
        why = "/proc/self/ns/net";
    if (setns(w->home, CLONE_NEWNET) && !why)
        why = "its own namespace";
    if (why)
        return why;
    host->space = st.st_ino;
    w->count++;
    return NULL;
}

int network_list(ino_t space, pid_t but, pid_t *pids, int room)
{
    DIR *all = opendir("/proc");
    int found = 0;
    for (struct dirent *e; all && found < room && (e = readdir(all));) {
        char name[64];
        struct stat st;
        pid_t pid = isdigit((unsigned char)e->d_name[0]) ? (pid_t)atoi(e->d_name) : 0;
        snprintf(name, sizeof name, "/proc/%d/ns/net", (int)pid);
        if (pid > 0 && pid != but && stat(name, &st) == 0 && st.st_ino == space)
            pids[found++] = pid;
    }
    if (all)
        closedir(all);
    return found;
}

/* ------------------------------------------------------------------ packets */

static int before(const packet *a, const packet *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

static void put(wire_process *w, packet p)
{
    size_t at = w->waiting++;
    for (; at > 0 && before(&p, &w->heap[(at - 1) / 2]); at = (at - 1) / 2)
        w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = p;
}

static packet take(wire_process *w)
{
    packet first = w->heap[0], last = w->heap[--w->waiting];
    size_t at = 0;
    for (size_t next; (next = 2 * at + 1) < w->waiting; at = next) {
        if (next + 1 < w->waiting && before(&w->heap[next + 1], &w->heap[next]))
            next++;
        if (!before(&w->heap[next], &last))
            break;
        w->heap[at] = w->heap[next];
    }
    w->heap[at] = last;
    return first;
}

static void arrive(wire_process *w, int from, int to, const uint8_t *bytes, size_t size)
{
    path *l = &w->links[from][to];
    if (write(w->hosts[to].tun, bytes, size) == (ssize_t)size) {
        l->counts.arrived++;
        l->counts.bytes += size;
    }
}

static void delay(wire_process *w, int from, int to, const uint8_t *bytes, size_t size,
                  int64_t by_ns)
{
    if (w->waiting == ROOM) {
        w->links[from][to].counts.crowded++;
        return;
    }
    packet p = {.due_ns = now_ns() + by_ns,
                .number = w->number++,
                .bytes = malloc(size),
                .size = (uint16_t)size,
                .from = (uint8_t)from,
                .to = (uint8_t)to};
    if (!p.bytes)
        return;
    memcpy(p.bytes, bytes, size);
    w->links[from][to].counts.waiting++;
    put(w, p);
}

static void pass(wire_process *w, int from, const uint8_t *bytes, size_t size)
{
    static const uint8_t net[] = {10, 77, 0};
    /* IPv4, and in our net: a host also asks for routers of IPv6 */
    if (size < 20 || bytes[0] >> 4 != 4 || memcmp(bytes + 16, net, sizeof net) != 0 ||
        bytes[19] == 0 || bytes[19] > w->count)
        return;
    int to = bytes[19] - 1;
    path *l = &w->links[from][to];
    const network_fault *f = &l->fault;
    int lost = share(&l->random) < f->loss, doubled = share(&l->random) < f->doubled;
    int64_t by_ns = (int64_t)f->delay_us * 1000 +
                    (int64_t)((2 * share(&l->random) - 1) * f->jitter_us * 1000);
    if (f->cut) {
        l->counts.cut++;
        return;
    }
    if (lost) {
        l->counts.lost++;
        return;
    }
    l->counts.doubled += (uint64_t)doubled;
    for (int copies = 1 + doubled; copies > 0; copies--)
        if (by_ns > 0)
            delay(w, from, to, bytes, size, by_ns);
        else
            arrive(w, from, to, bytes, size);
}

static void deliver_due(wire_process *w)
{
    while (w->waiting > 0 && w->heap[0].due_ns <= now_ns()) {
        packet p = take(w);
        w->links[p.from][p.to].counts.waiting--;
        arrive(w, p.from, p.to, p.bytes, p.size);
        free(p.bytes);
    }
}

/* What is on its way when a link is cut does not arrive. */
static void withhold(wire_process *w, int from, int to)
{
    path *l = &w->links[from][to];
    size_t count = w->waiting;
    w->waiting = 0;
    for (size_t i = 0; i < count; i++)
        if (w->heap[i].from == from && w->heap[i].to == to)
            free(w->heap[i].bytes);
        else
            put(w, w->heap[i]);
    l->counts.cut += l->counts.waiting;
    l->counts.waiting = 0;
}

/* ------------------------------------------------------------------ the process */

static void new_host(wire_process *w, network_answer *answer)
{
    int fds[2] = {-1, w->users}, at = w->count;
    const char *why = make_host(w, &fds[0]);
    if (why)
        snprintf(answer->why, sizeof answer->why, "%s: %s", why, strerror(errno));
    for (int i = 0; !why && i <= at; i++) {
        w->links[i][at].random = w->seed + (uint64_t)(i * NETWORK_HOSTS + at);
        w->links[at][i].random = w->seed + (uint64_t)(at * NETWORK_HOSTS + i);
    }
    answer->own_users = w->users >= 0;
    network_say(w->control, answer, fds, why ? 0 : 1 + answer->own_users);
    if (fds[0] >= 0)
        close(fds[0]);
}

/* 0: nobody gives orders any more. */
static int obey(wire_process *w)
{
    network_order order;
    network_answer answer = {.own_users = 0};
    if (recv(w->control, &order, sizeof order, 0) != (ssize_t)sizeof order)
        return 0;
    if (order.word == NETWORK_HOST) {
        new_host(w, &answer);
        return 1;
    }
    path *l = &w->links[order.from][order.to];
    if (order.word == NETWORK_FAULT)
        l->fault = order.fault;
    if (l->fault.cut)
        withhold(w, order.from, order.to);
    answer.counts = l->counts;
    network_say(w->control, &answer, NULL, 0);
    return 1;
}

/* A signal that ends a wait. Who sent it does not matter: the parent is looked for. */
static void wake(int signal)
{
    (void)signal;
}

static void forward(wire_process *w)
{
    uint8_t bytes[MTU + 100];
    for (;;) {
        struct pollfd fds[NETWORK_HOSTS + 1] = {{.fd = w->control, .events = POLLIN}};
        struct timespec until = {0};
        for (int i = 0; i < w->count; i++)
            fds[i + 1] = (struct pollfd){.fd = w->hosts[i].tun, .events = POLLIN};
        if (w->waiting > 0) {
            int64_t left = w->heap[0].due_ns - now_ns();
            left = left > 0 ? left : 0;
            until = (struct timespec){.tv_sec = left / 1000000000,
                                      .tv_nsec = left % 1000000000};
        }
        int ready = ppoll(fds, (nfds_t)w->count + 1, w->waiting ? &until : NULL, NULL);
        if (getppid() != w->parent || (ready > 0 && fds[0].revents && !obey(w)))
            return;
        deliver_due(w);
        for (int i = 0; ready > 0 && i < w->count; i++) {
            ssize_t got = 1;
            if (fds[i + 1].fd < 0 || !(fds[i + 1].revents & POLLIN))
                continue;
            for (int n = 0; n < BATCH; n++) {
                got = read(w->hosts[i].tun, bytes, sizeof bytes);
                if (got <= 0)
                    break;
                pass(w, i, bytes, (size_t)got);
            }
        }
    }
}

static void end_all(ino_t space)
{
    pid_t pids[100];
    for (int found; (found = network_list(space, getpid(), pids, 100)) > 0; usleep(1000))
        for (int i = 0; i < found; i++)
            kill(pids[i], SIGKILL);
}

void network_wire(int control, uint64_t seed, pid_t parent)
{
    static wire_process w;
    struct sigaction ends = {.sa_handler = wake};
    network_answer answer = {.own_users = 0};
    w.control = control;
    w.parent = parent;
    w.seed = draw(&seed);
    w.users = w.home = -1;
    w.heap = malloc(ROOM * sizeof *w.heap);
    setsid(); /* Ctrl-C ends the test, and that ends this */
    sigaction(SIGHUP, &ends, NULL);
    const char *why = w.heap ? settle(&w) : "memory";
    prctl(PR_SET_PDEATHSIG, SIGHUP); /* last: new credentials forget it */
    prctl(PR_SET_TIMERSLACK, 1);
    if (why)
        snprintf(answer.why, sizeof answer.why, "%s: %s", why, strerror(errno));
    network_say(control, &answer, NULL, 0);
    if (!why)
        forward(&w);
    for (int i = 0; i < w.count; i++)
        end_all(w.hosts[i].space);
    _exit(0);
}

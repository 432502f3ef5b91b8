/*
 * network.h: hosts on one machine, and a network between them that fails as a test says.
 *
 * A host is a network namespace with one TUN device, 10.77.0.1 for the first. Each packet
 * between two hosts is read from the one's device and written to the other's by a process
 * of its own, which loses, doubles, delays or withholds it as the test has said of that
 * link. So the kernel's own TCP meets what it would meet on a bad network.
 *
 * It needs /dev/net/tun, and root or user namespaces. Nothing is left behind: when the
 * test has died in any way, that process kills what runs in the hosts, and they are gone.
 *
 * Any thread may call. A child of the test may only fork again and run.
 */
#ifndef SUPPORT_NETWORK_H
#define SUPPORT_NETWORK_H

#include <stdint.h>
#include <sys/types.h>

enum { NETWORK_HOSTS = 32 };

typedef struct network network;

/* An empty network. seed: of every loss, doubling and jitter, which each link takes from
 * a sequence of its own; 0: SEED of the environment, or another one each time. It is
 * printed. NULL: this machine has none, and *why (static) says what is missing. */
network *network_open(uint64_t seed, const char **why);
/* Kills what runs in the hosts. NULL: nothing. */
void network_close(network *n);

/* The number of the host of that name, 0 for the first; it is made when there is none.
 * Fails the test when it cannot be made. */
int network_host(network *n, const char *name);
/* "10.77.0.N": lives as long as the network. */
const char *network_address(const network *n, int host);
const char *network_name(const network *n, int host);

/* What becomes of the packets from one host to another. All zero: they arrive. */
typedef struct network_fault {
    int cut;           /* 1: none arrives */
    uint32_t delay_us; /* how much later they arrive */
    uint32_t
        jitter_us;  /* up to how much sooner or later than that: some overtake others */
    double loss;    /* the share that is lost, 0 to 1 */
    double doubled; /* the share that arrives twice */
} network_fault;

/* Sets it; what the link did before is over. When the call returns it is in force, also
 * for packets on their way: no packet arrives after a cut. */
void network_one_way(network *n, int from, int to, const network_fault *fault);
void network_link(network *n, int one, int other, const network_fault *both_ways);
/* No packet either way; all packets both ways. */
void network_cut(network *n, int one, int other);
void network_mend(network *n, int one, int other);
/* Every link of a host: cut, or mended. */
void network_isolate(network *n, int host);
void network_join(network *n, int host);

/* Packets from one host to another, since both were made. */
typedef struct network_counts {
    uint64_t arrived, bytes; /* written to the device, and how many bytes they have */
    uint64_t cut, lost, doubled;
    uint64_t crowded; /* lost as well: too many were waiting for their time */
    uint64_t waiting; /* on their way now */
} network_counts;
network_counts network_count(network *n, int from, int to);

/* As fork(), but the child is in the host, and dies with the thread that called. A child
 * that cannot enter it ends with status 125. */
pid_t network_fork(network *n, int host);

typedef struct network_program {
    const char *const *argv;  /* NULL at the end; found in PATH */
    const char *const *extra; /* more of the environment, "NAME=VALUE"; NULL at the end */
    const char *user;         /* whom root becomes for it; NULL: nobody else */
    const char *log;          /* a file to which its output is added; NULL: the test's */
} network_program;

/* Starts a program in a host. It dies with the thread that called; 127: it was not found.
 * The pid is the caller's to wait for. */
pid_t network_run(network *n, int host, const network_program *program);
/* The same, and waits: its exit status, or 128 + signal. */
int network_do(network *n, int host, const char *const *argv);
/* A socket of a host in the hands of the test: SOCK_STREAM or SOCK_DGRAM of IPv4.
 * Wherever it is used, its packets come from the host. close(). */
int network_socket(network *n, int host, int type);
/* Waits until something listens at a port of the host's address. pid: the child that is
 * to; -1: it has ended (and was waited for), nobody will. */
int network_wait_port(network *n, int host, int port, pid_t pid);

/* A signal to all that runs in a host, as to a machine. SIGKILL returns when nothing runs
 * there any more (children of the test are still to be waited for), SIGSTOP when all
 * stand. Programs that have forked and left their parent are among them. */
void network_signal(network *n, int host, int signal);

/* The command, words and a blank after each, that puts a command which follows into a
 * host, for shell scripts: static, until the next call. Only while the network is open.
 */
const char *network_prefix(network *n, int host);

/* An environment (`extra` of a program) in which the clock of the day is wrong by
 * `seconds`, and every other clock is right. NULL: libfaketime is not installed, and *why
 * (static) says so. It is static; each call has the place of four others. */
const char *const *network_clock(long seconds, const char **why);

#endif

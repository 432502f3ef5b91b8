/* network_inside.h: what network.c and the process of network_wire.c say to each other.
 */
#ifndef SUPPORT_NETWORK_INSIDE_H
#define SUPPORT_NETWORK_INSIDE_H

#include <sys/types.h>

#include "support/network.h"

typedef enum network_word { NETWORK_HOST, NETWORK_FAULT, NETWORK_COUNT } network_word;

typedef struct network_order {
    network_word word;
    int from, to;
    network_fault fault;
} network_order;

typedef struct network_answer {
    char why[200]; /* "": done */
    int own_users; /* 1: the hosts belong to a user namespace, whose descriptor follows */
    network_counts counts;
} network_answer;

/* A network_answer with up to two descriptors: of the host's namespace, and of the
 * users'. network_hear: 0 when the other end is gone; fds[] are -1 where none came. */
void network_say(int control, const network_answer *answer, const int *fds, int count);
int network_hear(int control, network_answer *answer, int fds[2]);

/* The process of the network: answers orders until the other end of `control` or the
 * parent is gone, kills what runs in the hosts, ends. */
_Noreturn void network_wire(int control, uint64_t seed, pid_t parent);

/* The processes in the network namespace with that inode, except `but`: how many, at most
 * `room` of them. */
int network_list(ino_t space, pid_t but, pid_t *pids, int room);

#endif

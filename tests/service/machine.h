/*
 * machine.h: hosts of a network that have files and a name of their own, so that a page
 * for an operator can be followed on them as it stands: /etc, /var, /root, /usr/local.
 *
 * Root is needed, and a kernel with overlayfs. All that runs in a machine, and all its
 * files, are gone when the network is closed; a machine whose host was killed
 * (network_signal) keeps its files.
 */
#ifndef SERVICE_MACHINE_H
#define SERVICE_MACHINE_H

#include "support/network.h"

typedef struct machine {
    network *net;
    int host;
    const char *folder; /* of all machines; the caller's */
    const char *source; /* the source tree */
    pid_t pid;          /* what keeps it; a child of the test */
    int files, name;    /* its namespaces */
} machine;

/* NULL: this system can have machines; else what is missing (static). */
const char *machine_missing(void);
/* Begins to make it on the host of that name. folder, an empty folder that all machines
 * of a test share, and source stay the caller's. */
void machine_open(machine *m, network *n, const char *name, const char *folder,
                  const char *source);
/* Waits until it is there; before anything is run in it. Fails the test when it cannot be
 * made. */
void machine_wait(machine *m);
/* Waits for its end, after the network was closed. */
void machine_close(machine *m);

/* After its host was killed by network_signal(): it is there again, with its files, and
 * nothing runs. */
void machine_boot(machine *m);

/* Starts a script of bash there, as root, which stops at the first command that fails and
 * prints each: in /root, or in the source tree (in_source 1). Its output is added to the
 * file `log`. The pid is the caller's to wait for. */
pid_t machine_run(machine *m, const char *script, int in_source, const char *log);
/* The same, and waits: its exit status, or 128 + signal; 124 if it took over 180 s. */
int machine_do(machine *m, const char *script, int in_source, const char *log);

#endif

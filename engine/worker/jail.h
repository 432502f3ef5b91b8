/* jail.h: what the worker gives up before it runs a script. */
#ifndef WORKER_JAIL_H
#define WORKER_JAIL_H

/* Closes every descriptor but standard input, the socket. */
void jail_close(void);
/* Sets limits and shuts the door: after this only memory, clocks and the socket are left.
 * memory: bytes of address space. 0, or -1: this kernel cannot. */
int jail_shut(unsigned long long memory);

#endif

/* jail.h: what the worker gives up before it runs a script. */
#ifndef WORKER_JAIL_H
#define WORKER_JAIL_H

/* Closes every descriptor except standard input, which is the socket. */
void jail_close(void);
/* Sets resource limits and the system call filter: only memory, clocks and the socket
 * stay usable. memory: bytes of address space. 0, or -1: the kernel does not support it.
 */
int jail_shut(unsigned long long memory);

#endif

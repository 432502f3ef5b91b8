/*
 * main.c: sessile-worker: runs policies for an engine that does not trust them.
 *
 * The engine starts it with a socket as standard input. Started by hand it prints what it
 * is for. It must never open a file, nor run a script before the jail is closed.
 */
#include <locale.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "worker/jail.h"
#include "worker/serve.h"

/* Limit of the address space. A script's own limit is enforced by its allocator; this one
 * covers everything else. */
#define MEMORY (2ULL << 30)

int main(void)
{
    int type;
    socklen_t size = sizeof type;

    if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
        fputs("sessile-worker is started by libsessile for policies with isolation "
              "\"worker\"; it does nothing by itself.\n",
              stderr);
        return 2;
    }
    jail_close();
    /* Initialise now what would open a file or make other system calls at its first use.
     */
    if (base_init() != 0)
        return 3;
    locale_t first = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (first != (locale_t)0)
        freelocale(first);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    /* sanitizers need system calls that the jail forbids */
    if (jail_shut(MEMORY) != 0)
        return 4;
#endif
    return serve(STDIN_FILENO);
}

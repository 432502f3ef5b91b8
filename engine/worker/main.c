/*
 * main.c: sessile-worker: runs policies for an engine that does not trust them.
 *
 * Started by the engine with a socket as its standard input; of no use to people, and it
 * says so. It must never open a file, nor run a script before the jail is shut.
 */
#include <locale.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "worker/jail.h"
#include "worker/serve.h"

/* Address space: the script's own limit is counted by the engine's allocator; this is for
 * what goes around it. */
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
    /* What the first use would open a file or ask the kernel for. */
    if (base_init() != 0)
        return 3;
    locale_t first = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (first != (locale_t)0)
        freelocale(first);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    /* a sanitizer asks the kernel for much that a script never may */
    if (jail_shut(MEMORY) != 0)
        return 4;
#endif
    return serve(STDIN_FILENO);
}

/*
 * jail.c: what a worker gives up before it runs a script.
 *
 * Owns the list of allowed system calls. A script has no way to make a system call; the
 * list limits the damage if there is a bug in the Lua interpreter. It must stay a list of
 * what is allowed, never become one of what is forbidden.
 */
#include "worker/jail.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void jail_close(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 1u, ~0u, 0u) == 0)
        return;
#endif
    struct rlimit files;
    int most = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 65536
                   ? (int)files.rlim_cur
                   : 65536;
    for (int fd = 1; fd < most; fd++)
        close(fd);
}

static int limit(int what, rlim_t n)
{
    struct rlimit r = {n, n};
    return setrlimit(what, &r);
}

#if defined(__x86_64__)
#define JAIL_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define JAIL_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define JAIL_ARCH AUDIT_ARCH_RISCV64
#endif

#ifdef JAIL_ARCH
#define ALLOW(name)                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
/* Allowed unless the third argument asks for executable memory (PROT_EXEC is 4). */
#define ALLOW_DATA(name)                                                            \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4),                          \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])), \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 1, 0),                              \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),                               \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static int filter(void)
{
    static struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, JAIL_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(read),
        ALLOW(write),
        ALLOW(clock_gettime),
        ALLOW(gettimeofday),
        ALLOW(brk),
        ALLOW(munmap),
        ALLOW(mremap),
        ALLOW(madvise),
        ALLOW(futex),
        ALLOW(getrandom),
        ALLOW(rt_sigreturn),
        ALLOW(restart_syscall),
        ALLOW(exit),
        ALLOW(exit_group),
        ALLOW_DATA(mmap),
        ALLOW_DATA(mprotect),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog all = {sizeof program / sizeof program[0], program};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}
#else
static int filter(void)
{
    errno = ENOSYS; /* no list of system calls for this processor yet */
    return -1;
}
#endif

int jail_shut(unsigned long long memory)
{
    /* Not PR_SET_PDEATHSIG: it fires when the thread that started the worker ends, which
     * may be long before the host does. When the host ends, the socket is closed. */
    if (prctl(PR_SET_DUMPABLE, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        limit(RLIMIT_CORE, 0) || limit(RLIMIT_FSIZE, 0) || limit(RLIMIT_NOFILE, 1) ||
        limit(RLIMIT_NPROC, 0) || limit(RLIMIT_AS, (rlim_t)memory))
        return -1;
    return filter();
}

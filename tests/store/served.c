/* served.c: a server of records for tests: sessile-server, which knows no key. */
#include "store/served.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/sessions.h"

struct served {
    char *folder, program[600], store[600], address[64], url[100];
    int says; /* its standard output; -1: it does not run */
    pid_t pid;
};

/* Its configuration, which nobody else may write. Returns 0, or -1. */
static int configure(const served *s, char *path, size_t size)
{
    static const char text[] = "return { serve = { services = { 'records' }, drain = "
                               "'200ms', log = 'error' } }\n";
    snprintf(path, size, "%s/served.lua", s->folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t n = fd >= 0 ? write(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)sizeof text - 1 ? 0 : -1;
}

/* Reads where it listens from the first line that it says. Returns 0, or -1. */
static int learn_address(served *s)
{
    char line[1000];
    size_t used = 0;
    for (ssize_t n; used + 1 < sizeof line && !memchr(line, '\n', used) &&
                    (n = read(s->says, line + used, sizeof line - 1 - used)) > 0;)
        used += (size_t)n;
    line[used] = '\0';
    const char *at = strstr(line, " at 127.0.0.1:");
    if (!at || sscanf(at, " at %63[0-9.:]", s->address) != 1)
        return -1;
    snprintf(s->url, sizeof s->url, "grpc://%s/?timeout=60s", s->address);
    return 0;
}

/* Between fork() and execv() nothing takes a lock, which another thread may hold. */
static int start(served *s)
{
    char config[600];
    int ends[2];
    if (configure(s, config, sizeof config) != 0 || pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    char *const argv[] = {s->program, "--config", config,     "--store", s->store,
                          "serve",    "--listen", s->address, NULL};
    s->pid = fork();
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDOUT_FILENO);
        execv(s->program, argv);
        _exit(127);
    }
    close(ends[1]);
    s->says = ends[0];
    return s->pid > 0 ? learn_address(s) : -1;
}

served *served_start(int sqlite)
{
    served *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    const char *build = getenv("SESSILE_BUILD");
    s->folder = folder_make();
    s->says = -1;
    snprintf(s->program, sizeof s->program, "%s/libexec/sessile-server",
             build ? build : "build");
    snprintf(s->address, sizeof s->address, "127.0.0.1:0");
    snprintf(s->store, sizeof s->store, sqlite ? "sqlite:%s/s.db" : "file:%s/s",
             s->folder);
    if (start(s) == 0)
        return s;
    served_end(s);
    return NULL;
}

static void finish(served *s, int number)
{
    if (s->pid > 0) {
        kill(s->pid, number);
        waitpid(s->pid, NULL, 0);
    }
    if (s->says >= 0)
        close(s->says);
    s->says = -1;
    s->pid = 0;
}

void served_kill(served *s)
{
    finish(s, SIGKILL);
}

void served_restart(served *s)
{
    int started = -1;
    for (int i = 0; started != 0 && i < 100; i++) { /* somebody else may have the port */
        finish(s, SIGTERM);
        started = start(s);
    }
    if (started != 0)
        abort();
}

void served_end(served *s)
{
    finish(s, SIGKILL);
    folder_remove(s->folder);
    free(s);
}

const char *served_url(const served *s)
{
    return s->url;
}

const char *served_folder(const served *s)
{
    return s->folder;
}

int served_pid(const served *s)
{
    return s->pid;
}

/* Stores are opened on several threads at once: it is written by one of them. */
static char library[600];

static void name_library(void)
{
    const char *build = getenv("SESSILE_BUILD");
    snprintf(library, sizeof library, "%s/libexec/libsessile-remote.so",
             build ? build : "build");
}

const char *served_library(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, name_library);
    return library;
}

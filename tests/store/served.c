/* served.c: a server of records for tests: a child that knows no key. */
#include "store/served.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/service.h"
#include "support/sessions.h"

struct served {
    char *folder, store[600], address[64], url[100];
    pid_t pid;
};

static service *running;

static void stop(int number)
{
    (void)number;
    service_stop(running);
}

/* In the child: serves until it is told to end. */
static void serve(const served *s, int ready)
{
    service_settings settings;
    sessile_error err;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    memset(&settings, 0, sizeof settings);
    settings.listen.address = s->address;
    settings.services = SERVICE_RECORDS;
    settings.records.url = s->store;
    settings.ms.drain = 200;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGSEGV, SIG_DFL);
    sessile_store *front = NULL; /* says who calls; it has no records */
    if (sessile_open(&front, "ram:", NULL, &err))
        _exit(1);
    sessile_status status = service_open(&running, front, &settings, &err);
    for (int i = 0; status == SESSILE_EXISTS && i < 100;
         i++) { /* the port is just let go */
        usleep(20000);
        status = service_open(&running, front, &settings, &err);
    }
    if (status) {
        fprintf(stderr, "no server: %s\n", err.message);
        _exit(1);
    }
    signal(SIGTERM, stop);
    const char *address = service_address(running);
    if (write(ready, address, strlen(address)) < 0)
        _exit(1);
    close(ready);
    (void)service_run(running, &err);
    service_close(running);
    _exit(0);
}

static int start(served *s)
{
    char address[64] = "";
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    fflush(NULL);
    s->pid = fork();
    if (s->pid == 0) {
        close(ends[0]);
        serve(s, ends[1]);
    }
    close(ends[1]);
    ssize_t n = s->pid > 0 ? read(ends[0], address, sizeof address - 1) : -1;
    close(ends[0]);
    if (n <= 0)
        return -1;
    snprintf(s->address, sizeof s->address, "%s", address);
    snprintf(s->url, sizeof s->url, "grpc://%s/?timeout=60s", address);
    return 0;
}

served *served_start(int sqlite)
{
    served *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->folder = folder_make();
    snprintf(s->address, sizeof s->address, "127.0.0.1:0");
    snprintf(s->store, sizeof s->store, sqlite ? "sqlite:%s/s.db" : "file:%s/s",
             s->folder);
    if (start(s) == 0)
        return s;
    folder_remove(s->folder);
    free(s);
    return NULL;
}

static void finish(served *s, int number)
{
    if (s->pid > 0) {
        kill(s->pid, number);
        waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
}

void served_kill(served *s)
{
    finish(s, SIGKILL);
}

void served_restart(served *s)
{
    finish(s, SIGTERM);
    if (start(s) != 0)
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

const char *served_library(void)
{
    static char path[600];
    const char *build = getenv("SESSILE_BUILD");
    snprintf(path, sizeof path, "%s/libexec/libsessile-remote.so",
             build ? build : "build");
    return path;
}

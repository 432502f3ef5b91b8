/*
 * peers.c: LangGraph's savers and ADK's session service, each in a process of node that
 * is told what to do.
 */
#include "bench/backends.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct peer {
    FILE *to, *from;
    pid_t node;
};

/* Runs node with its input and output in our hands. */
static peer *start(const char *const *args)
{
    int in[2], out[2];
    peer *p = calloc(1, sizeof *p);
    if (!p || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        broken("pipe");
    p->node = fork();
    if (p->node < 0)
        broken("fork");
    if (p->node == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execvp("node", (char *const *)(size_t)args);
        printf("absent node is not installed\n");
        fflush(stdout);
        _exit(0);
    }
    close(in[0]);
    close(out[1]);
    p->to = fdopen(in[1], "w");
    p->from = fdopen(out[0], "r");
    if (!p->to || !p->from)
        broken("pipe");
    return p;
}

peer *peer_start(const backend *b, const char *name, const char *script)
{
    const char *url = getenv("SESSILE_TEST_POSTGRES");
    const int of_file = b == &backends[SQLITE_BACKEND];
    char path[4200], schema[64], line[1024];
    signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof path, "%s/%s.sqlite", bench_folder, name);
    snprintf(schema, sizeof schema, "bench_peer_%ld", (long)getpid());
    peer *p = start((const char *const[]){"node", script, of_file ? "sqlite" : "postgres",
                                          of_file ? path : url, schema, NULL});
    if (!fgets(line, sizeof line, p->from))
        snprintf(line, sizeof line, "absent it ended without a word");
    line[strcspn(line, "\n")] = '\0';
    int ready = !strncmp(line, "ready ", 6);
    note("%-32s %-10s %s: %s%s", "", b->name, name, ready ? "" : "none, ",
         strchr(line, ' ') ? strchr(line, ' ') + 1 : line);
    if (!ready) {
        peer_stop(p);
        return NULL;
    }
    return p;
}

double peer_do(peer *p, const char *verb, size_t n)
{
    char line[64];
    fprintf(p->to, "%s %zu\n", verb, n);
    fflush(p->to);
    if (!fgets(line, sizeof line, p->from)) {
        fprintf(stderr, "bench: a peer ended at %s %zu\n", verb, n);
        exit(1);
    }
    return atof(line);
}

void peer_stop(peer *p)
{
    if (!p)
        return;
    fputs("end\n", p->to);
    fclose(p->to);
    fclose(p->from);
    waitpid(p->node, NULL, 0);
    free(p);
}

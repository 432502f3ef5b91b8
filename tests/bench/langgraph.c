/*
 * langgraph.c: LangGraph's savers, in a process of node that is told what to do.
 */
#include "bench/backends.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct langgraph {
    FILE *to, *from;
    pid_t node;
};

/* Runs node with its input and output in our hands. */
static langgraph *start(const char *const *args)
{
    int in[2], out[2];
    langgraph *l = calloc(1, sizeof *l);
    if (!l || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        broken("pipe");
    l->node = fork();
    if (l->node < 0)
        broken("fork");
    if (l->node == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execvp("node", (char *const *)(size_t)args);
        printf("absent node is not installed\n");
        fflush(stdout);
        _exit(0);
    }
    close(in[0]);
    close(out[1]);
    l->to = fdopen(in[1], "w");
    l->from = fdopen(out[0], "r");
    if (!l->to || !l->from)
        broken("pipe");
    return l;
}

langgraph *langgraph_start(const backend *b)
{
    static int said[BACKENDS];
    const char *url = getenv("SESSILE_TEST_POSTGRES");
    char path[4200], schema[64], line[1024];
    int which = (int)(b - backends);
    signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof path, "%s/langgraph.sqlite", bench_folder);
    snprintf(schema, sizeof schema, "bench_langgraph_%ld", (long)getpid());
    langgraph *l = start(which == SQLITE_BACKEND
                             ? (const char *const[]){"node", "tests/bench/langgraph.mjs",
                                                     "sqlite", path, NULL}
                             : (const char *const[]){"node", "tests/bench/langgraph.mjs",
                                                     "postgres", url, schema, NULL});
    if (!fgets(line, sizeof line, l->from))
        snprintf(line, sizeof line, "absent it ended without a word");
    line[strcspn(line, "\n")] = '\0';
    int ready = !strncmp(line, "ready ", 6);
    if (!said[which]++)
        note("%-32s %-10s LangGraph: %s%s", "", b->name, ready ? "" : "none, ",
             strchr(line, ' ') ? strchr(line, ' ') + 1 : line);
    if (!ready) {
        langgraph_stop(l);
        return NULL;
    }
    return l;
}

double langgraph_do(langgraph *l, const char *verb, size_t n)
{
    char line[64];
    fprintf(l->to, "%s %zu\n", verb, n);
    fflush(l->to);
    if (!fgets(line, sizeof line, l->from)) {
        fprintf(stderr, "bench: LangGraph ended at %s %zu\n", verb, n);
        exit(1);
    }
    return atof(line);
}

void langgraph_stop(langgraph *l)
{
    if (!l)
        return;
    fputs("end\n", l->to);
    fclose(l->to);
    fclose(l->from);
    waitpid(l->node, NULL, 0);
    free(l);
}

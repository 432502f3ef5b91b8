/*
 * pipe.c: a turn over `sessile rpc`, beside the same turn in a process of its own, by the
 * Lua module (pipe.lua); and beside an echo of lines, which is what a pipe costs.
 */
#include "bench/measure.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURN = 300, PIPED = 100 }; /* bytes of a message; turns that are sent at once */

typedef struct process {
    FILE *to, *from;
    pid_t id;
} process;

static process start(const char *const *words)
{
    process p;
    int in[2], out[2];
    if (pipe(in) || pipe(out))
        broken("pipe");
    p.id = fork();
    if (p.id < 0)
        broken("fork");
    if (p.id == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        execvp(words[0], (char *const *)(size_t)words);
        broken(words[0]);
    }
    close(in[0]);
    close(out[1]);
    p.to = fdopen(in[1], "w");
    p.from = fdopen(out[0], "r");
    if (!p.to || !p.from)
        broken("pipe");
    return p;
}

static void finish(process *p)
{
    int status;
    fclose(p->to);
    if (waitpid(p->id, &status, 0) != p->id || status != 0)
        broken("a process that answers");
    fclose(p->from);
}

static void read_line(process *p, char *line, size_t size, const char *wanted)
{
    if (!fgets(line, (int)size, p->from) || !strstr(line, wanted))
        broken(line);
}

/* The time of one of `count` turns that are sent at once. */
static double by_rpc(process *rpc, int count)
{
    static char text[TURN + 1], line[8192];
    static int id;
    double t = now_us();
    memset(text, 'x', TURN);
    for (int i = 0; i < count; i++)
        fprintf(
            rpc->to,
            "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"session/turn\",\"params\":"
            "{\"session\":\"pipe\",\"messages\":[{\"role\":\"user\",\"content\":\"%s\"},"
            "{\"role\":\"assistant\",\"content\":\"%s\"}]}}\n",
            ++id, text, text);
    fflush(rpc->to);
    for (int i = 0; i < count; i++)
        read_line(rpc, line, sizeof line, "\"completed\"");
    return (now_us() - t) / count;
}

static double in_process(process *lua, int count)
{
    char line[256];
    fprintf(lua->to, "%d\n", count);
    fflush(lua->to);
    read_line(lua, line, sizeof line, ".");
    return strtod(line, NULL);
}

/* The time of a line as long as a turn's that comes back as it is. */
static double echoed(process *echo)
{
    static char text[2 * TURN + 150], line[8192];
    double t = now_us();
    memset(text, 'x', sizeof text - 1);
    fprintf(echo->to, "%s\n", text);
    fflush(echo->to);
    read_line(echo, line, sizeof line, "xx");
    return now_us() - t;
}

static process start_rpc(const char *bin, const char *store, const char *config)
{
    char line[8192];
    process p = start(
        (const char *const[]){bin, "--store", store, "--config", config, "rpc", NULL});
    fputs("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"session/create\",\"params\":"
          "{\"id\":\"pipe\"}}\n",
          p.to);
    fflush(p.to);
    read_line(&p, line, sizeof line, "\"result\"");
    return p;
}

static void bench_turns(const char *bin, const char *durability)
{
    static samples one, here, many, here_many, line, again;
    const int synced = !strcmp(durability, "sync");
    char store[4200], other[4200], config[4200], text[256];
    FILE *file;
    snprintf(store, sizeof store, "%s/rpc-%s", bench_folder, durability);
    snprintf(other, sizeof other, "%s/lua-%s", bench_folder, durability);
    snprintf(config, sizeof config, "%s/%s.lua", bench_folder, durability);
    file = fopen(config, "w");
    if (!file || fprintf(file, "return { durability = \"%s\" }\n", durability) < 0 ||
        fclose(file))
        broken("the configuration");
    process rpc = start_rpc(bin, store, config);
    process lua = start((const char *const[]){bin, "run", "tests/bench/pipe.lua", other,
                                              durability, NULL});
    process echo = start((const char *const[]){bin, "run", "tests/bench/pipe.lua", NULL});
    read_line(&lua, text, sizeof text, "ready");
    for (int i = -20; i < (int)rounds(500); i++) {
        double a = by_rpc(&rpc, 1), b = in_process(&lua, 1), c = echoed(&echo);
        if (i >= 0) {
            sample_round(&one, a, &here, b, NULL, 0);
            sample(&line, c);
        }
    }
    for (int i = -2; i < (int)rounds(50); i++) {
        double a = by_rpc(&rpc, PIPED), b = in_process(&lua, PIPED);
        if (i >= 0) {
            sample_round(&many, a, &here_many, b, NULL, 0);
            sample(&again, a);
        }
    }
    row_print(&(row){synced ? "turn over rpc, durable, one by one"
                            : "turn over rpc, not synced, one by one",
                     &one, &here, NULL, "the turn in process, Lua", synced ? 1.15 : 0,
                     0});
    row_print(&(row){synced ? "turn over rpc, durable, pipelined"
                            : "turn over rpc, not synced, pipelined",
                     &many, &here_many, NULL, "the turn in process, Lua",
                     synced ? 0 : 2.5, 0});
    if (!synced)
        row_print(&(row){"the same", &again, &line, NULL, "an echo of a line, one by one",
                         4, 0});
    line.count = again.count = 0;
    finish(&rpc);
    finish(&lua);
    finish(&echo);
}

int main(int argc, char **argv)
{
    char bin[4200];
    const char *build = getenv("SESSILE_BUILD");
    bench_begin(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    snprintf(bin, sizeof bin, "%s/bin/sessile", build ? build : "build");
    setenv("HOME", bench_folder, 1);
    setenv("SESSILE_KEY", "a secret of the bench, long enough", 1);
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("SESSILE_STORE");
    bench_turns(bin, "sync");
    bench_turns(bin, "none");
    return bench_end();
}

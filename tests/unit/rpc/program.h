/* program.h: programs of others, as peers of what is tested. */
#ifndef UNIT_RPC_PROGRAM_H
#define UNIT_RPC_PROGRAM_H

#include <stddef.h>

/* Runs argv (NULL-terminated, argv[0] a path) and waits. Returns its exit code, with what
 * it said on both channels in out, cut; -1: it could not be started. */
int program_run(const char *const *argv, char *out, size_t size);
/* Fails the test unless it exits with 0. */
void program_ok(const char *const *argv);

/* One that goes on. Its first line is read into line. */
typedef struct program {
    int pid, to, from;
} program;
void program_start(program *p, const char *const *argv, char *line, size_t size);
void program_end(program *p);

/* Skips the test when the program or file is not there, or (python) has no grpc, and says
 * so. */
void program_needed(const char *path, const char *package);
void grpcio_needed(void);
#define PYTHON "/usr/bin/python3"

/* The path of a file beside the tests of rpc/. */
const char *beside(const char *name);

#endif

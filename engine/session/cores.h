/*
 * cores.h: the names of what the handles of the public headers stand for.
 *
 * A handle (sessile_session) is a core (session_core) and who uses it. Below api/ there
 * are only cores: nothing there asks who calls. guard/ alone turns a handle into its
 * core.
 */
#ifndef SESSION_CORES_H
#define SESSION_CORES_H

#include <stddef.h>

typedef struct store_core store_core;
typedef struct session_core session_core;
typedef struct memory_core memory_core;
typedef struct run_core run_core;
typedef struct memory_run_core memory_run_core;
typedef struct entries_core entries_core;
typedef struct search_core search_core;
typedef struct check_core check_core;
typedef struct reseal_core reseal_core;
typedef struct migration_core migration_core;
typedef struct audit_reader_core audit_reader_core;
typedef struct audit_verification_core audit_verification_core;

/* The memories that a call is given: the user's, and the one that the agent keeps for
 * all.
 */
#define MEMORY_CORES_MOST 2
typedef struct memory_cores {
    memory_core *at[MEMORY_CORES_MOST];
    size_t count;
} memory_cores;

#endif

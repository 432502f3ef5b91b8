/*
 * nodes.h: the servers that share a store, as rows that each of them renews.
 *
 * A node is alive while its lease runs, by the clock of the database. Nothing else is
 * decided here: which sessions a node serves, and whether it can be reached, is the
 * service's to find out.
 *
 * Only a PostgreSQL database has nodes. For engine/service/ and engine/admin/.
 */
#ifndef STORE_NODES_H
#define STORE_NODES_H

#include "store/store.h"

enum { NODE_NAME = 64, NODE_ADDRESS = 256, NODE_VERSION = 32, NODES_MOST = 1000 };

/* Its texts are printable ASCII. */
typedef struct store_node {
    char name[NODE_NAME + 1];
    char address[NODE_ADDRESS + 1]; /* where the others connect to it */
    char version[NODE_VERSION + 1];
    uint64_t incarnation; /* a random number, drawn by each start of a node */
    int64_t started_ms;   /* since 1970, by the database's clock */
    int64_t left_ms;      /* of its lease; 0 or less: it ran out so long ago */
    uint64_t sessions;    /* that it keeps open */
    uint64_t calls;       /* that it has served */
} store_node;

/* What a beat found. */
typedef struct store_beat {
    const store_node *others; /* the living but for the one that asks, by name; until the
                                 next beat */
    size_t count;
    int standbys; /* that stream and are waited for by commits; -1: this role may not see
                     them, or nobody asked */
    int64_t now_ms; /* since 1970, by the database's clock */
} store_beat;

/* The connection of one node. One thread at a time. */
typedef struct store_nodes store_nodes;

/* Connects to nothing yet. UNSUPPORTED: the store has no nodes. st must be open as long
 * as it. */
sessile_status store_nodes_open(store_nodes **out, const store *st, sessile_error *err);

/*
 * Renews the lease of a node for lease_ms, and finds the others. The first call makes the
 * table where it is not there. It takes a second at least if the server does not answer,
 * and timeout_ms at most; stop is asked meanwhile. started_ms and left_ms of own are not
 * read. ask_standbys: 1: they are counted.
 *
 * EXISTS: a living node of another incarnation has the name. IO, BUSY: nobody knows
 * whether it was renewed. DENIED: this role may not write to the table, or make it.
 */
sessile_status store_nodes_beat(store_nodes *nodes, const store_node *own, int lease_ms,
                                int timeout_ms, int ask_standbys, store_beat *out,
                                sessile_error *err);
/* Ends a beat that waits, with CANCELLED, and all later ones: any thread. A leave is not
 * ended. */
void store_nodes_stop(store_nodes *nodes);
/* Removes the row of a node, if its incarnation is this one. */
sessile_status store_nodes_leave(store_nodes *nodes, const store_node *own,
                                 int timeout_ms, sessile_error *err);
void store_nodes_close(store_nodes *nodes);

/* Standbys that stream and are waited for by commits; -1: this role may not see them.
 * UNSUPPORTED: the store is in no PostgreSQL database; and the errors of a read. */
sessile_status store_nodes_standbys(const store *st, int *out, sessile_error *err);

/* What a store knows of its database, without asking it. */
typedef struct store_database {
    int busy, idle;    /* connections of the pool */
    uint32_t timeline; /* the newest that was seen; 0: none */
} store_database;
/* All 0 where there is no database. Any thread. */
store_database store_database_look(const store *st);

/* All rows, by name, also of nodes that are not alive; *out is a block for host_free(),
 * NULL: there are none. UNSUPPORTED, and the errors of a read. */
sessile_status store_nodes_list(const store *st, store_node **out, size_t *count,
                                const allocator *a, sessile_error *err);

#endif

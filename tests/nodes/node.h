/*
 * node.h: a process with a store handle and a session of its own, that does what it is
 * asked, one thing at a time. Two of them are asked at once by node_ask() on both before
 * node_answer() on either.
 */
#ifndef NODES_NODE_H
#define NODES_NODE_H

#include <sys/types.h>

#include "nodes/database.h"

typedef enum node_word {
    NODE_OPEN,       /* the store */
    NODE_CREATE,     /* text: id */
    NODE_RESUME,     /* text: id; a session that was open is closed */
    NODE_APPEND,     /* text: content; answer.id */
    NODE_TURN,       /* text: content; number: sessile_on_conflict; answer.id: the head */
    NODE_POLICY,     /* text: path of a policy for the session's turns */
    NODE_HEAD,       /* looks; answer.id */
    NODE_CONTENTS,   /* of the path, "a b c" in answer.text; number: of them */
    NODE_CONTEXT,    /* likewise of the context */
    NODE_LABEL,      /* id, text: name */
    NODE_LABELS,     /* "id:name id:name" */
    NODE_CHECKPOINT, /* text: name; answer.id */
    NODE_CHECKPOINTS, /* "id:name …", newest first */
    NODE_RESTORE,     /* id: the checkpoint */
    NODE_TIMEOUT,     /* number: ms, of the session's calls from now on */
    NODE_WATCH,       /* number: timeout in ms; answer.number: 1 when there was news */
    NODE_SYNC,        /* the session */
    NODE_CLOSE        /* the session */
} node_word;

typedef struct node_order {
    node_word word;
    sessile_id id;
    int number;
    char text[1024];
} node_order;

typedef struct node_reply {
    sessile_status status;
    sessile_id id;
    uint64_t number;
    double ms;       /* how long the engine took */
    double at;       /* when it was done, ms by a clock that all processes share */
    char text[8192]; /* an error's sentence when status is not OK */
} node_reply;

typedef struct node {
    pid_t pid;
    int fd;
} node;

/* A process over `url` (NULL: the database's), which has opened nothing yet. It dies with
 * the test. */
void node_start(node *n, const database *d, const char *url);
/* SIGKILL, and waited for; also of one that is stopped. Again is harmless. */
void node_kill(node *n);

void node_ask(const node *n, node_word word, sessile_id id, int number, const char *text);
/* Fails the test when the node has died. */
node_reply node_answer(const node *n);
/* Both; node_must fails the test unless the answer is OK. */
node_reply node_do(const node *n, node_word word, sessile_id id, int number,
                   const char *text);
node_reply node_must(const node *n, node_word word, sessile_id id, int number,
                     const char *text);

#endif

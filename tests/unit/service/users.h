/*
 * users.h: a service whose store has a guard, and two users of it: "ann", who has the
 * session "s", and "bob".
 */
#ifndef UNIT_SERVICE_USERS_H
#define UNIT_SERVICE_USERS_H

#include "serving.h"

enum { ANN, BOB, USERS };

typedef struct users {
    sessile_store *store; /* in memory */
    serving s;
    char *key[USERS];
    char bearer[USERS][300];
    rpc_header as[USERS][2];
} users;

/* Calls are ann's. */
void users_open(users *u);
/* Whose the calls from now on are; -1: nobody's. */
void users_call_as(users *u, int user);
void users_close(users *u);

#endif

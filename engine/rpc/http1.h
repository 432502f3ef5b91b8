/* http1.h: HTTP/1.1 on one connection, a server's side. */
#ifndef RPC_HTTP1_H
#define RPC_HTTP1_H

#include "rpc/conn.h"

/* Begins on a connection. 0, -1. */
int http1_begin(conn *c);

#endif

/*
 * fake_rpc.h: a call of rpc.h without a connection: what it asks for is in a struct, and
 * what is replied stays there.
 *
 * A test that is linked with fake_rpc.o needs nothing of engine/rpc: what the service
 * calls is found here first.
 */
#ifndef UNIT_SERVICE_FAKE_RPC_H
#define UNIT_SERVICE_FAKE_RPC_H

#include "rpc/rpc.h"

enum { FAKE_SENT = 64, FAKE_TRAILERS = 4 };

struct rpc_call {
    struct {
        const rpc_header *headers; /* ends with a row without a name; NULL: none */
        const char *certificate;
        const char *path;  /* NULL: "" */
        uint64_t deadline; /* 0: none */
    } asked;
    void (*sending)(rpc_call *call); /* called before each message that is sent; may be
                                        NULL */
    int over_after; /* the client goes once it has so many messages; -1: it stays */
    void *own;
    struct {
        struct {
            void *data;
            size_t size;
        } sent[FAKE_SENT];
        size_t count; /* of messages; those beyond FAKE_SENT are counted only */
        int finished; /* how often */
        rpc_code code;
        char message[512];
        struct {
            char name[32], value[64];
        } trailers[FAKE_TRAILERS];
        size_t trailer_count;
    } got;
};

/* Forgets the reply. */
void fake_clear(rpc_call *call);
/* A trailer; "" if there is none. */
const char *fake_trailer(const rpc_call *call, const char *name);

#endif

/* certificates.h: an authority and what it signed, made by the openssl command for a
 * test. */
#ifndef UNIT_RPC_CERTIFICATES_H
#define UNIT_RPC_CERTIFICATES_H

typedef struct certificates {
    char folder[64];
    char names[200]; /* whom the server's is for: "DNS:localhost,IP:127.0.0.1" */
    char ca[96];     /* the authority */
    char server[96], server_key[96];
    char client[96], client_key[96]; /* of "agent-7" */
    char other_ca[96];               /* an authority that signed none of them */
} certificates;

/* Skips the test when there is no openssl command. */
void certificates_make(certificates *c);
/* Makes the server's pair again, for c->names, and for so many days. */
void certificates_renew(certificates *c, int days);
void certificates_remove(certificates *c);

#endif

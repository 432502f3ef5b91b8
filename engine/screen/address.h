/*
 * address.h: IPv4 and IPv6 addresses: read in every spelling that programs accept, and
 * judged by the registries of special-purpose addresses.
 */
#ifndef SCREEN_ADDRESS_H
#define SCREEN_ADDRESS_H

#include <stddef.h>

/* An address in network order: 4 or 16 bytes. */
typedef struct address {
    int family; /* 4 or 6 */
    unsigned char bytes[16];
} address;

/* Why something is refused. Both texts are static. */
typedef struct refusal {
    const char *rule; /* one word, for programs: "loopback"; NULL: it is not refused */
    const char *what; /* the same for people: "a loopback address (127.0.0.0/8)" */
} refusal;

/* Judges an address, and the IPv4 address that is inside an IPv6 address. */
refusal address_judge(const address *a);

/* How numbers that begin with 0 are read: programs do not agree. */
typedef enum ipv4_zeros { IPV4_OCTAL, IPV4_DECIMAL } ipv4_zeros;
/* How a text reads as an IPv4 address. */
typedef enum ipv4_text {
    IPV4_NONE,   /* its last part is no number: it is a name */
    IPV4_BROKEN, /* its last part is a number, but there is no such address */
    IPV4_ADDRESS
} ipv4_text;
/* Reads an IPv4 address as inet_aton and browsers do: one to four parts, the last of
 * which fills the remaining bytes; decimal, hexadecimal with 0x, octal with 0. *parts
 * (may be NULL) is how many parts there are. */
ipv4_text address_read4(const char *text, size_t size, ipv4_zeros zeros, address *out,
                        int *parts);
/* Reads an IPv6 address without brackets; a zone ("%eth0") is left out. 0, or -1: it is
 * none. */
int address_read6(const char *text, size_t size, address *out);

/* The IPv4 address that a mapped one stands for (::ffff:a.b.c.d): 1; 0: it is not mapped.
 */
int address_unmapped(const address *a, address *out);
/* Whether the first `bits` bits of two addresses of one family are equal. */
int address_within(const address *a, const address *network, int bits);

#endif

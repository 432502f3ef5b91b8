/*
 * sessile_guard.h: whether a URL in a text, or an address, leads where it must not.
 *
 * What an agent remembers or passes on may name a machine that only the host can reach:
 * its own services, its private network, the address where a cloud serves credentials.
 * Whoever follows such a URL attacks that machine for somebody else (server-side request
 * forgery). sessile_url_check() finds these URLs in a text, in whatever spelling.
 *
 * It reads names and resolves none: a public name may lead to a private address, and may
 * lead elsewhere when it is asked again. So whoever opens connections also calls
 * sessile_address_check() with the address of the socket, before each connect(), also of
 * those that follow a redirect.
 *
 * The rules of sessile.h hold here. These functions need no store, keep nothing, and may
 * be called by any number of threads.
 */
#ifndef SESSILE_GUARD_H
#define SESSILE_GUARD_H

#include "sessile.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What is allowed. Call sessile_url_options_init(), then fill in; borrowed.
 *
 * An item of `allow` is ASCII, without a scheme or a path, and one of these:
 *
 *   "example.org"      this host; a name in another alphabet as "xn--…"
 *   ".example.org"     this host, and every host below it
 *   "192.168.0.7"      this address, however it is written; IPv6 as "[fd00::7]"
 *   "192.168.0.0/16"   the addresses of a network; IPv6 as "[fd00::]/8"
 *
 * A port may follow a host or an address (".example.org:8443", "[::1]:80"): then only
 * this port is allowed. "localhost" also stands for 127.0.0.1 and ::1.
 */
typedef struct sessile_url_options {
    const sessile_slice *allow; /* allowed, whatever the rules say of it */
    size_t allow_count;
    int only_allowed; /* 1: a URL with any other host is refused, too */
} sessile_url_options;
SESSILE_API void sessile_url_options_init(sessile_url_options *options);

/* The first URL that is refused. */
typedef struct sessile_url_found {
    size_t offset, size; /* bytes of the text: its scheme and its host */
    /* Static; NULL: nothing was refused. One of
     *   scheme        it reads files or speaks another protocol: file:, gopher:, jar:, …
     *   loopback, private, link-local, this-network, multicast, special
     *                 an address of IANA's registries for special purposes
     *   metadata      an address or a name where a cloud serves credentials
     *   local-name    localhost, or a name below .local, .internal, .home.arpa, …
     *   one-label     a name without a dot, which means something on a local network
     *   address-name  a name that carries an address: nip.io, sslip.io, localtest.me, …
     *   not-a-host    neither a name nor an address, but a program may read it as one
     *   no-libidn2    a name that is not ASCII, which only libidn2 can read
     *   not-allowed   another host than those of `allow`, with only_allowed */
    const char *rule;
} sessile_url_found;

/*
 * Looks for URLs in a text and refuses the first one that leads where it must not.
 *
 * The text is what a program would see: of JSON, give the strings without their escapes.
 * It need not be UTF-8. URLs are found by "scheme:" with slashes or backslashes, by
 * "//host" at the beginning of a word, in the query of another URL (%2F%2F), and by
 * "http:" before an address. Where programs disagree about which part of a URL is its
 * host (RFC 3986, WHATWG, and what is known of common libraries), each reading is judged
 * and the worst counts. Numbers are read in each form that inet_aton() takes.
 *
 * options may be NULL: nothing is allowed specially. *found (may be NULL) says what was
 * refused, and is zero after every other result. The time is proportional to the size of
 * the text.
 *
 * OK: no URL in the text is refused; a text without URLs is OK. DENIED: one is; the
 * message says by which rule, and does not quote it: leave the URL out, or allow its
 * host. INVALID: an item of `allow` is none of the above; the message says which.
 */
SESSILE_API sessile_status sessile_url_check(sessile_slice text,
                                             const sessile_url_options *options,
                                             sessile_url_found *found,
                                             sessile_error *err);

/* Families of addresses; AF_INET and AF_INET6 differ between systems. */
#define SESSILE_IPV4 4
#define SESSILE_IPV6 6

/*
 * Judges the address that a socket is about to be connected to. Call it after the name is
 * resolved, with the very address that connect() is given: a name that is resolved again
 * may have another one.
 *
 * bytes: 4 or 16 of them in network order, as in sin_addr and sin6_addr. port: in host
 * order; 0 when it is not known, and then items of `allow` with a port do not count. Of
 * `allow`, the items that are addresses, networks or "localhost" count, and only_allowed
 * is not looked at: the names were judged by sessile_url_check(). options may be NULL.
 *
 * An IPv6 address that carries an IPv4 address (::ffff:127.0.0.1, 64:ff9b::7f00:1, 6to4,
 * ISATAP) is judged by both.
 *
 * OK: the address is public, or allowed. DENIED: do not connect; the message names the
 * block that the address is in. INVALID: the family is neither 4 nor 6, or an item of
 * `allow` is wrong.
 */
SESSILE_API sessile_status sessile_address_check(int family, const void *bytes, int port,
                                                 const sessile_url_options *options,
                                                 sessile_error *err);

#ifdef __cplusplus
}
#endif

#endif

/*
 * sessile_screen.h: what may be written. Screens look at a text before it is written;
 * URLs and addresses that lead inwards are found.
 *
 * Nothing in this header needs a store or a guard.
 */
#ifndef SESSILE_SCREEN_H
#define SESSILE_SCREEN_H

#include "sessile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ screens */

/*
 * A screen looks at a text before it is written and says whether it may be. A list of
 * screens is loaded once and run over items: a message, a title, a value for a memory.
 *
 * A screen is a Lua file with regular expressions (of PCRE2) and, for what expressions
 * cannot decide, a function that runs in the sandbox of policies. It can let the text
 * pass, flag it, remove words from it, or refuse it. It can add none.
 *
 * Not promised: that a text which gives orders to a model is recognized. A screen finds
 * what its expressions say, and words can be chosen so that none matches.
 */

/* What a text is for. Each is a bit, so that they can be combined. */
typedef enum sessile_screen_kind {
    SESSILE_SCREEN_MESSAGE = 1,
    SESSILE_SCREEN_CUSTOM = 2, /* an entry of a kind of the host's own */
    SESSILE_SCREEN_TITLE = 4,
    SESSILE_SCREEN_METADATA = 8,
    SESSILE_SCREEN_SETTINGS = 16,
    SESSILE_SCREEN_STATE = 32, /* of a checkpoint or a suspension */
    SESSILE_SCREEN_MEMORY = 64,
    SESSILE_SCREEN_ANSWER = 128 /* of a model, to a policy */
} sessile_screen_kind;
#define SESSILE_SCREEN_KINDS 255

/* Whose words a text has. */
typedef enum sessile_screen_source {
    SESSILE_SCREEN_BY_HOST = 0,
    SESSILE_SCREEN_BY_USER,
    SESSILE_SCREEN_BY_AGENT,
    SESSILE_SCREEN_BY_TOOL,
    SESSILE_SCREEN_BY_SYSTEM
} sessile_screen_source;

/* What is to be done with a text, in ascending order. */
typedef enum sessile_screen_verdict {
    SESSILE_SCREEN_PASS = 0,
    SESSILE_SCREEN_FLAG,   /* write it, and mark it with the rule */
    SESSILE_SCREEN_REDACT, /* write the text of the outcome instead */
    SESSILE_SCREEN_REFUSE  /* do not write it */
} sessile_screen_verdict;

/* "message", "host", "pass": as in a screen's file. Static; NULL for a value that is
 * none. */
SESSILE_API const char *sessile_screen_kind_name(sessile_screen_kind kind);
SESSILE_API const char *sessile_screen_source_name(sessile_screen_source source);
SESSILE_API const char *sessile_screen_verdict_name(sessile_screen_verdict verdict);

/* A text before it is written. Zero it, then fill in. Borrowed for the call. */
typedef struct sessile_screen_item {
    sessile_screen_kind kind;
    sessile_screen_source source;
    sessile_role role;    /* of a message; else SESSILE_ROLE_NONE */
    sessile_slice author; /* a name; may be empty */
    sessile_slice key;    /* of an entry of a memory; the kind of a custom entry */
    sessile_slice text;   /* UTF-8 */
    /* 1: the text is JSON. Screens see its strings without their escapes, and words are
     * removed from strings only, so that it stays JSON. */
    int is_json;
} sessile_screen_item;

/* A screen of a list. */
typedef struct sessile_screen_step {
    const char *name;    /* no_orders, or a path (with a '/' or ending in ".lua") */
    const char *options; /* JSON object, or NULL */
    unsigned on;         /* SESSILE_SCREEN_… bits; 0: what its file says */
} sessile_screen_step;

/* Items of a kind that are JSON must be valid under a JSON Schema (draft 4 or 7, without
 * references to other documents). */
typedef struct sessile_screen_schema {
    sessile_screen_kind kind; /* one bit; of a memory, the metadata of its entries */
    const char *key;          /* of custom entries: their kind; else NULL */
    sessile_slice schema;     /* JSON */
} sessile_screen_schema;

/* Call sessile_screens_options_init(), then fill in. Borrowed for the call. */
typedef struct sessile_screens_options {
    const char
        *folders; /* where screens are searched by name, separated by ':'; or NULL */
    const sessile_screen_schema *schemas;
    size_t schema_count;
    const char *schema_library; /* NULL: schema.so, where it was installed */
    /* 1: the message of a screen that fails has what it raised, which may be words of the
     * text: for those who write screens. */
    int verbose;
    sessile_alloc alloc; /* NULL: realloc and free */
    void *alloc_ud;
} sessile_screens_options;
SESSILE_API void sessile_screens_options_init(sessile_screens_options *options);

typedef struct sessile_screens sessile_screens;

/*
 * Loads a list of screens, in the order in which they are run. *out: free it with
 * sessile_screens_free(); NULL on failure. A list never changes: many threads may use it.
 * options may be NULL. It needs at least one screen or one schema.
 *
 * NOTFOUND: no such screen; the message names those that exist. DENIED: the file is not
 * regular, or another user than root and this one can write it. POLICY: the file is
 * wrong; the message has the line. INVALID: an option, a pattern or a schema is wrong.
 * UNSUPPORTED: there is a schema, and schema.so was not built. LIMIT: more than 16
 * screens, 64 patterns of one, or 16 schemas. IO, NOMEM.
 */
SESSILE_API sessile_status sessile_screens_load(sessile_screens **out,
                                                const sessile_screen_step *steps,
                                                size_t count,
                                                const sessile_screens_options *options,
                                                sessile_error *err);
SESSILE_API void sessile_screens_free(sessile_screens *screens); /* NULL is ignored */

/* What one screen said, other than PASS. */
typedef struct sessile_screen_finding {
    sessile_screen_verdict verdict;
    const char *screen; /* its name; "schema" */
    const char *rule;   /* a pattern of it, a rule that its file declares, or its name */
    size_t removed;     /* REDACT: places in the text */
    /* Why, if the rule does not say it: a screen that failed; what a schema wants, and
     * where (a JSON pointer). Never has words of the text. May be "". */
    const char *message, *pointer;
} sessile_screen_finding;

/* One block: free it with sessile_free(). */
typedef struct sessile_screen_outcome {
    sessile_screen_verdict verdict; /* the highest of the findings */
    const sessile_screen_finding *findings;
    size_t count;
    sessile_slice text; /* REDACT: the text with "[removed: RULE]" for what was removed;
                           else empty */
} sessile_screen_outcome;

/*
 * Runs a list of screens over an item: schema, then the screens in their order. A screen
 * that is not for the item's kind is left out. The first that refuses ends it. A screen
 * sees what the screens before it left of the text.
 *
 * A screen that fails (an error, 5 million instructions, 50 ms, an expression that tries
 * too much) refuses, or flags if its file says so: what a text can crash is no screen.
 *
 * Returns OK whatever the verdict is; *out is NULL on failure. INVALID: the text is not
 * UTF-8, or not JSON when it should be. NOMEM.
 */
SESSILE_API sessile_status sessile_screen(sessile_screen_outcome **out,
                                          const sessile_screens *screens,
                                          const sessile_screen_item *item,
                                          sessile_error *err);

/* ------------------------------------------------------------------ URLs and addresses
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
 * These functions need no store and no guard, keep nothing, and may be called by any
 * number of threads.
 */

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
    int resolve; /* 1: a name is resolved, and refused if one of its addresses is, or if
                    it has none. The first 16 names of a text, all within 2 s: the others,
                    and what is not answered by then, are refused. It waits so long for
                    servers of names, which learn what is asked. What they say may be
                    different when somebody connects: call sessile_address_check() then,
                    too. Allowed names are not resolved */
} sessile_url_options;
SESSILE_API void sessile_url_options_init(sessile_url_options *options);

/* What a store does with URLs that sessile_url_check() refuses: see sessile_guard.h. */
typedef struct sessile_url_rules {
    unsigned refuse; /* SESSILE_SCREEN_… bits: texts of these kinds are not written */
    unsigned flag;   /* these are written and labelled */
    sessile_url_options options;
} sessile_url_rules;

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
     *   unresolved    with resolve: a name without an address, or none in time
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

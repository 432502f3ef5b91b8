/*
 * url.h: URLs in a text, and whether their hosts are refused.
 *
 * url.c finds URLs and the parts that a program may take for the host; url_host.c judges
 * one such part; url_allow.c is the host's list of what is allowed. sessile_screen.h says
 * what the rules are.
 */
#ifndef SCREEN_URL_H
#define SCREEN_URL_H

#include "base/os.h"
#include "screen/address.h"
#include "screen/idn.h"
#include "sessile_screen.h"

/* ------------------------------------------------------------------ url.c */

/* The check of sessile_url_check(). idn_library: IDN_LIBRARY, or another name in tests.
 * text.data may be NULL when the size is 0. */
sessile_status url_check(sessile_slice text, const sessile_url_options *options,
                         const char *idn_library, sessile_url_found *found,
                         sessile_error *err);

/* The URLs of a text that are written with a scheme, up to white space or a quote: the
 * first `most` of them, into out. Nothing is judged. Returns how many. */
size_t url_list(sessile_slice text, sessile_slice *out, size_t most);

/* ------------------------------------------------------------------ url_resolve.c */

#define URL_NAMES_MOST 16   /* names of one text that are resolved */
#define URL_RESOLVE_MS 2000 /* for all of them */

/* What the names of one text lead to. Zeroed, with os set: none was asked for yet. */
typedef struct url_resolver {
    const os_table *os;
    uint64_t end_us; /* by os->clock_us; 0: not begun */
    uint64_t asked[URL_NAMES_MOST];
    refusal found[URL_NAMES_MOST];
    unsigned count;
} url_resolver;

/* Judges every address of a name (lower case, ASCII). The rule is that of an address, or
 * unresolved: it has none, or not in time, or there were too many names before. */
refusal url_resolve(url_resolver *r, const char *name, int port,
                    const sessile_url_options *options);

/* ------------------------------------------------------------------ url_host.c */

/* How sure it is that a part of a text is a host. */
typedef enum url_doubt {
    URL_HOST, /* it is: anything that is no public host is refused */
    URL_WORD, /* perhaps: it follows "//", as also a comment does */
    URL_OTHER /* some program may take it for one: "user" in "user@example.org" */
} url_doubt;

/* A part of a URL that may be its host, with a port or without. What is in doubt is
 * refused only if it is certainly an address or a name that leads inwards. */
typedef struct url_part {
    const char *text;
    size_t size;
    int port; /* of the scheme: when the part has none; 0: not known */
    url_doubt doubt;
} url_part;

/* Judges a part, by the worst of its readings. */
refusal url_judge(const url_part *part, const sessile_url_options *options, idn *names,
                  url_resolver *resolver);

#define URL_HOST_MOST 1024 /* bytes of a part; a longer one is no host */

/* ------------------------------------------------------------------ url_allow.c */

/* INVALID for an item of the list that cannot be read. */
sessile_status url_allow_check(const sessile_url_options *options, sessile_error *err);
/* The check of sessile_address_check(). */
sessile_status url_address_check(int family, const void *bytes, int port,
                                 const sessile_url_options *options, sessile_error *err);
/* 1 when the list has this host: its name (lower case, ASCII, without a dot at the end;
 * NULL: none) or its address (NULL: none), and the port (0: not known). */
int url_allowed(const sessile_url_options *options, const char *name, const address *at,
                int port);

#endif

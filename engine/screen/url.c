/*
 * url.c: finds URLs in a text, and the parts of each that a program may take for the
 * host.
 *
 * Programs disagree about where the host of a URL is. RFC 3986 ends the authority at '/',
 * '?' and '#'; WHATWG also at '\', leaves out tabs and line breaks, and takes any number
 * of slashes; old libraries look for '@' behind '#'. None of them is right for all
 * callers, so a URL is not parsed here: its authority is cut at each of these bytes. The
 * parts that one of the two standards calls the host must be a public host, the others
 * must not be an address or a name that leads inwards. The rejected choice, one parser
 * that is strict, would refuse what it does not understand, and most of that is prose.
 *
 * The scan goes on behind the slashes, not behind the URL, so that URLs inside of URLs
 * are found. What is looked at for one URL is limited, so the time stays proportional to
 * the size of the text.
 */
#include "screen/url.h"

#include <string.h>

#include "base/error.h"
#include "codec/scan.h"

#define SCHEME_MOST   24   /* bytes of a scheme that means something here, and a NUL */
#define RUN_MOST      1024 /* bytes of an authority */
#define DOUBTFUL_MOST 300  /* of one that is perhaps none */

typedef struct finder {
    const char *begin, *end;
    const sessile_url_options *options;
    idn names;
    url_resolver resolver;
    refusal why;
    const char *from, *to; /* what is refused */
} finder;

/* A URL whose scheme and slashes have been read. */
typedef struct url_begin {
    const char *from;      /* its first byte */
    const char *authority; /* behind the slashes */
    url_doubt doubt;
    int port;
} url_begin;

/* ------------------------------------------------------------------ bytes */

static int is_slash(char c)
{
    return c == '/' || c == '\\';
}

/* What WHATWG removes from a URL. */
static int is_removed(char c)
{
    return c == '\t' || c == '\n' || c == '\r';
}

static int is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* Separates the host from something else, for somebody. */
static int is_separator(char c)
{
    return c == '@' || c == '#' || c == '?' || c == '\\';
}

/* Ends an authority for everybody. */
static int ends_run(char c)
{
    unsigned char u = (unsigned char)c;
    return u <= ' ' || u == 0x7f || c == '/' || c == '"' || c == '<' || c == '>' ||
           c == '`';
}

/* The bytes of a punctuation mark at `at` that is no part of a host; 0: it is none. Marks
 * of other alphabets are those that stand around a URL in a sentence. */
static size_t mark_at(const char *at, const char *end)
{
    const unsigned char *u = (const unsigned char *)at;
    unsigned point;
    if (u[0] < 0x80)
        return !is_alphanumeric(*at) && *at != '.' && *at != '-' && *at != '_' &&
               *at != '%' && *at != ':';
    if (end - at >= 2 && u[0] == 0xc2 && (u[1] == 0xa0 || u[1] == 0xab || u[1] == 0xbb))
        return 2;
    if (end - at < 3 || u[0] >> 4 != 0xe)
        return 0;
    point = (u[0] & 15u) << 12 | (u[1] & 63u) << 6 | (u[2] & 63u);
    return (point >= 0x2013 && point <= 0x201f) || point == 0x2026 || point == 0x3000 ||
                   point == 0x3001 || (point >= 0x3008 && point <= 0x301f) ||
                   (point >= 0xff01 && point <= 0xff0c && point != 0xff05) ||
                   point == 0xff0f || (point >= 0xff1a && point <= 0xff20)
               ? 3
               : 0;
}

/* ------------------------------------------------------------------ schemes */

/* Browsers and libraries find the host of these with any number of slashes. */
static const struct {
    const char *name;
    int port;
} special[] = {
    {"https", 443}, {"http", 80}, {"wss", 443}, {"ws", 80}, {"ftp", 21},
};

/* What they read is no public host, whatever follows. */
static const char *const refused[] = {
    "file",  "gopher", "gophers",       "dict",       "ldap", "ldaps",
    "ldapi", "jar",    "netdoc",        "phar",       "php",  "expect",
    "glob",  "zip",    "rar",           "ogg",        "zlib", "ssh2",
    "tftp",  "unix",   "compress.zlib", "local_file",
};

/* What follows their slashes names no host. */
static const char *const hostless[] = {
    "s3",    "gs",    "az",  "docker", "oci", "vscode",           "chrome",
    "about", "slack", "app", "urn",    "pkg", "chrome-extension", "moz-extension",
};

static int is_one_of(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return 1;
    return 0;
}
#define IS_ONE_OF(name, list) is_one_of(name, list, sizeof(list) / sizeof *(list))

/* Copies the scheme that ends at `end`, in lower case, and returns where it begins.
 * joined: over tabs and line breaks. One that is too long loses its beginning. */
static const char *read_scheme(const finder *f, const char *end, int joined,
                               char out[SCHEME_MOST])
{
    char *to = out + SCHEME_MOST - 1;
    const char *at = end;
    *to = 0;
    for (; at > f->begin && to > out; at--) {
        char c = at[-1];
        if (joined && is_removed(c))
            continue;
        if (!is_alphanumeric(c) && c != '+' && c != '-' && c != '.' && c != '_')
            break;
        *--to = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    memmove(out, to, (size_t)(out + SCHEME_MOST - to));
    return at;
}

/* The port of a special scheme, which may have something before it: text is not always
 * cut where a URL begins. 0: it is not special. */
static int special_port(const char *scheme)
{
    size_t size = strlen(scheme);
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        size_t length = strlen(special[i].name);
        if (size >= length && strcmp(scheme + size - length, special[i].name) == 0)
            return special[i].port;
    }
    return 0;
}

/* ------------------------------------------------------------------ an authority */

/* Judges one part, and what punctuation cuts off from it. */
static void judge_part(finder *f, const char *at, const char *end, int port,
                       url_doubt doubt)
{
    while (at < end && !f->why.rule) {
        const char *from = at;
        size_t mark = 0;
        if (*at == '[') {
            at = memchr(at, ']', (size_t)(end - at));
            at = at ? at + 1 : end;
        }
        while (at < end && (mark = mark_at(at, end)) == 0)
            at++;
        if (at > from) {
            url_part part = {from, (size_t)(at - from), port, doubt};
            f->why = url_judge(&part, f->options, &f->names,
                               f->options->resolve ? &f->resolver : NULL);
            doubt = URL_OTHER;
        }
        if (at < end)
            at += mark;
    }
}

/* Judges an authority and what some take for it: everything up to a '/'. */
static void judge_run(finder *f, const char *begin, const char *end, int port,
                      url_doubt doubt)
{
    const char *rfc = begin, *whatwg = begin, *next;
    int query = 0, backslash = 0;

    for (const char *at = begin; at < end; at++) {
        query = query || *at == '?' || *at == '#';
        backslash = backslash || *at == '\\';
        if (*at == '@' && !query) {
            rfc = at + 1;
            if (!backslash)
                whatwg = at + 1;
        }
    }
    for (const char *at = begin; at < end && !f->why.rule; at = next + 1) {
        for (next = at; next < end && !is_separator(*next); next++)
            ;
        judge_part(f, at, next, port, at == rfc || at == whatwg ? doubt : URL_OTHER);
    }
}

/* The same without what WHATWG removes, and over spaces if asked. */
static void judge_joined(finder *f, const char *at, int port, int spaces)
{
    char joined[RUN_MOST / 2] = {0};
    size_t size = 0;
    for (; at < f->end && size < sizeof joined; at++) {
        if (is_removed(*at) && !spaces)
            continue;
        if (ends_run(*at) && !(spaces && *at == ' '))
            break;
        joined[size++] = *at;
    }
    if (!spaces || memchr(joined, '@', size))
        judge_run(f, joined, joined + size, port, URL_OTHER);
}

/* Whether a text begins with what is at `at`: then all of it may be one URL. */
static int begins_text(const finder *f, const char *at)
{
    while (at > f->begin && (unsigned char)at[-1] <= ' ')
        at--;
    return at == f->begin;
}

/* The end of the authority at `at`; one byte more than `most` if it is longer. */
static const char *run_end(const finder *f, const char *at, size_t most)
{
    const char *end = at;
    while (end < f->end && !ends_run(*end) && (size_t)(end - at) <= most)
        end++;
    return end;
}

/* Returns the end of the authority. */
static const char *judge_url(finder *f, const url_begin *url)
{
    size_t most = url->doubt == URL_HOST ? RUN_MOST : DOUBTFUL_MOST;
    const char *at = url->authority, *end = run_end(f, at, most);

    if ((size_t)(end - at) > most && url->doubt == URL_HOST)
        f->why = (refusal){"not-a-host", "a host that is too long to be one"};
    else
        judge_run(f, at, end, url->port, url->doubt);
    if (end == at && url->port && url->doubt == URL_HOST) {
        while (at < f->end && *at == ' ' && at - end < DOUBTFUL_MOST)
            at++; /* some programs strip the host */
        end = run_end(f, at, DOUBTFUL_MOST);
        judge_run(f, at, end, url->port, URL_OTHER);
    }
    if (!f->why.rule && url->port && end < f->end && is_removed(*end))
        judge_joined(f, at, url->port, 0);
    if (!f->why.rule && url->doubt == URL_HOST && begins_text(f, url->from))
        judge_joined(f, at, url->port, 1);
    f->from = url->from;
    f->to = end;
    return end;
}

/* ------------------------------------------------------------------ finding */

/* "jar:http:": another scheme follows. */
static int scheme_follows(const char *at, const char *end)
{
    const char *from = at;
    while (at < end && at - from < SCHEME_MOST && is_alphanumeric(*at))
        at++;
    return at > from && at < end && *at == ':';
}

/* What is before a colon. */
typedef struct scheme {
    const char *from; /* its first byte */
    int port;         /* of a special one; 0: it is none */
    int refused;
    int doubtful; /* it is no scheme, or what follows names no host */
} scheme;

/* slashes: how many follow; at: what follows them. */
static scheme read_before(const finder *f, const char *colon, int slashes, const char *at)
{
    char name[SCHEME_MOST] = {0}, joined[SCHEME_MOST];
    scheme s = {0};

    s.from = read_scheme(f, colon, 0, name);
    s.port = strcmp(name, "https") == 0 ? 443 : strcmp(name, "http") == 0 ? 80 : 0;
    if (s.port) /* as most are */
        return s;
    read_scheme(f, colon, 1, joined);
    if (slashes || (strcmp(name, "jar") == 0 && scheme_follows(at, f->end)))
        s.refused = IS_ONE_OF(name, refused) || IS_ONE_OF(joined, refused);
    s.port = special_port(name);
    if (!s.port)
        s.port = special_port(joined);
    /* "case 1://", and "C:\\Users" in JSON */
    s.doubtful = !s.port && (strlen(name) < 2 || name[0] < 'a' || slashes > 2 ||
                             IS_ONE_OF(name, hostless));
    return s;
}

/* A colon: what is before it may be a scheme. Returns where to go on. */
static const char *at_colon(finder *f, const char *colon)
{
    const char *at = colon + 1;
    int slashes = 0, gaps = 0;

    for (; at < f->end && (is_slash(*at) || is_removed(*at)); at++) {
        slashes += is_slash(*at);
        gaps += is_removed(*at);
    }
    if (slashes == 0 && (at == f->end || ends_run(*at)))
        return at;
    scheme before = read_before(f, colon, slashes, at);
    if (before.refused) {
        f->why = (refusal){"scheme", "a file, or a protocol that is not for the web"};
        f->from = before.from;
        f->to = at;
    } else if (slashes >= 2 || before.port) {
        int doubtful = before.doubtful || slashes == 0 || (gaps && !before.port);
        judge_url(f, &(url_begin){before.from, at, doubtful ? URL_WORD : URL_HOST,
                                  before.port});
    } else {
        return colon + 1;
    }
    return at;
}

/* Slashes without a scheme. */
static const char *at_slashes(finder *f, const char *at)
{
    url_begin url = {at, at + 1, URL_WORD, 0};
    if (f->end - at < 2 || !is_slash(at[1]))
        return at + 1;
    while (url.authority < f->end && is_slash(*url.authority))
        url.authority++;
    /* Behind a name it is a path. */
    if (at > f->begin &&
        (is_alphanumeric(at[-1]) || at[-1] == '_' || at[-1] == ')' || at[-1] == ']'))
        return url.authority;
    const char *end = judge_url(f, &url);
    /* Everything up to there has been judged, unless another URL begins. */
    return memchr(url.authority, ':', (size_t)(end - url.authority)) ? url.authority
                                                                     : end;
}

/* "%2F" or "%5C" */
static int is_escaped_slash(const char *at, const char *end)
{
    return end - at >= 3 && at[0] == '%' &&
           ((at[1] == '2' && (at[2] | 0x20) == 'f') ||
            (at[1] == '5' && (at[2] | 0x20) == 'c'));
}

/* A URL in the query of another one: its host ends at an escaped slash. */
static const char *at_escape(finder *f, const char *at)
{
    const char *from = at, *end;
    while (is_escaped_slash(at, f->end))
        at += 3;
    if (at - from < 6)
        return from + 1;
    for (end = at; end < f->end && end - at < DOUBTFUL_MOST && !ends_run(*end); end++)
        if (*end == '&' || is_escaped_slash(end, f->end))
            break;
    judge_run(f, at, end, 0, URL_WORD);
    f->from = from;
    f->to = end;
    return at;
}

/* The first ':', '/', '\\' or '%' in at..end, or end. */
static const char *next_mark(const char *at, const char *end)
{
    while (SCAN_WORDS && end - at >= 8) {
        uint64_t word = scan_load(at);
        uint64_t tops = scan_equal(word, ':') | scan_equal(word, '/') |
                        scan_equal(word, '\\') | scan_equal(word, '%');
        if (tops)
            return at + scan_lead(tops);
        at += 8;
    }
    while (at < end && *at != ':' && *at != '/' && *at != '\\' && *at != '%')
        at++;
    return at;
}

static void find(finder *f)
{
    const char *at = f->begin;
    while (!f->why.rule && (at = next_mark(at, f->end)) < f->end)
        if (*at == ':')
            at = at_colon(f, at);
        else
            at = *at == '%' ? at_escape(f, at) : at_slashes(f, at);
}

sessile_status url_check(sessile_slice text, const sessile_url_options *options,
                         const char *idn_library, sessile_url_found *found,
                         sessile_error *err)
{
    finder f = {0};
    sessile_status status = url_allow_check(options, err);

    memset(found, 0, sizeof *found);
    if (status || text.size == 0)
        return status;
    f.begin = text.data;
    f.end = text.data + text.size;
    f.options = options;
    f.names.name = idn_library;
    f.resolver.os = os_current;
    find(&f);
    idn_close(&f.names);
    if (!f.why.rule)
        return SESSILE_OK;
    found->offset = (size_t)(f.from - f.begin);
    found->size = (size_t)(f.to - f.from);
    found->rule = f.why.rule;
    return fail(
        err, SESSILE_DENIED,
        "the URL at byte %zu of the text names %s [%s]: leave it out, or allow its "
        "host",
        found->offset, f.why.what, f.why.rule);
}

/* The URL whose scheme ends at `colon`; size 0: what is there is none. */
static sessile_slice url_around(const finder *f, const char *colon)
{
    static const sessile_slice none = {NULL, 0};
    const char *at = colon + 1, *end;
    int slashes = 0;

    for (; at < f->end && is_slash(*at); at++)
        slashes++;
    if (at == f->end || (unsigned char)*at <= ' ')
        return none;
    scheme before = read_before(f, colon, slashes, at);
    if (!before.refused && (before.doubtful || (slashes < 2 && !before.port) || !slashes))
        return none;
    for (end = at; end < f->end && (is_slash(*end) || !ends_run(*end)); end++)
        ;
    return (sessile_slice){before.from, (size_t)(end - before.from)};
}

size_t url_list(sessile_slice text, sessile_slice *out, size_t most)
{
    finder f = {0};
    size_t count = 0;

    if (!text.size)
        return 0;
    f.begin = text.data;
    f.end = text.data + text.size;
    for (const char *at = f.begin; count < most && (at = next_mark(at, f.end)) < f.end;) {
        sessile_slice found = {NULL, 0};
        if (*at == ':')
            found = url_around(&f, at);
        if (found.size)
            out[count++] = found;
        at = found.size ? found.data + found.size : at + 1;
    }
    return count;
}

/*
 * url_host.c: whether one part of a URL, read as a host, leads where it must not.
 *
 * A host is read as the most liberal program would: escapes are undone until none is
 * left, letters of other alphabets are mapped (IDNA), dots at the end do not count, and
 * an IPv4 address may be any number that inet_aton() takes. A host whose last part is a
 * number and that is no address is refused: browsers refuse it, but others wrap the
 * numbers or cut them.
 */
#include "screen/url.h"

#include <string.h>

/* ------------------------------------------------------------------ names */

#define LOCAL    "local-name", "a name of the local machine or network"
#define METADATA "metadata", "the name under which a cloud serves metadata"
#define CARRIES  "address-name", "a name that stands for an address which is part of it"

/* Each name, and all below it. */
#define NAME(text) text, sizeof(text) - 1
static const struct {
    const char *name;
    size_t size;
    refusal why;
} names_refused[] = {
    {NAME("metadata.google.internal"), {METADATA}},
    {NAME("instance-data.ec2.internal"), {METADATA}},
    {NAME("metadata.goog"), {METADATA}},
    {NAME("metadata.tencentyun.com"), {METADATA}},
    {NAME("metadata.packet.net"), {METADATA}},
    {NAME("metadata.platformequinix.com"), {METADATA}},
    {NAME("localhost"), {LOCAL}},
    {NAME("localdomain"), {LOCAL}},
    {NAME("local"), {LOCAL}},
    {NAME("internal"), {LOCAL}},
    {NAME("intranet"), {LOCAL}},
    {NAME("lan"), {LOCAL}},
    {NAME("home"), {LOCAL}},
    {NAME("corp"), {LOCAL}},
    {NAME("private"), {LOCAL}},
    {NAME("svc"), {LOCAL}},
    {NAME("home.arpa"), {LOCAL}},
    {NAME("nip.io"), {CARRIES}},
    {NAME("sslip.io"), {CARRIES}},
    {NAME("xip.io"), {CARRIES}},
    {NAME("xip.name"), {CARRIES}},
    {NAME("backname.io"), {CARRIES}},
    {NAME("traefik.me"), {CARRIES}},
    {NAME("1u.ms"), {CARRIES}},
    {NAME("rbndr.us"), {CARRIES}},
    {NAME("localtest.me"), {CARRIES}},
    {NAME("lvh.me"), {CARRIES}},
    {NAME("vcap.me"), {CARRIES}},
    {NAME("fuf.me"), {CARRIES}},
    {NAME("local.gd"), {CARRIES}},
    {NAME("localho.st"), {CARRIES}},
    {NAME("lacolhost.com"), {CARRIES}},
};

static const refusal NOTHING = {NULL, NULL};
static const refusal NO_HOST = {"not-a-host",
                                "a host that is neither a name nor an address"};

/* A part while it is judged. */
typedef struct judging {
    const sessile_url_options *options;
    int port;
    url_doubt doubt;
    url_resolver *resolver; /* NULL: names are not resolved */
} judging;

/* What is certainly a host is refused when it cannot be read as one. */
static refusal unreadable(const judging *of)
{
    return of->doubt == URL_HOST ? NO_HOST : NOTHING;
}

/* The verdict on a host, when the caller's list is looked at, too. */
static refusal settle(const judging *of, refusal why, const char *name, const address *at)
{
    int only = of->options->only_allowed && of->doubt != URL_OTHER;
    if ((why.rule || only) && url_allowed(of->options, name, at, of->port))
        return NOTHING;
    if (!why.rule && only)
        return (refusal){"not-allowed", "a host that is not one of those allowed"};
    return why;
}

/* What a name leads to. What may be a comment is not refused because there is no such
 * name. */
static refusal judge_addresses(const judging *of, const char *name)
{
    refusal why;

    if (of->doubt == URL_OTHER || url_allowed(of->options, name, NULL, of->port))
        return NOTHING;
    why = url_resolve(of->resolver, name, of->port, of->options);
    return why.rule && of->doubt == URL_WORD && !strcmp(why.rule, "unresolved") ? NOTHING
                                                                                : why;
}

static refusal judge_name(const judging *of, const char *name, size_t size)
{
    const char *dot = memchr(name, '.', size);
    refusal why = NOTHING;

    for (size_t i = 0; i < sizeof names_refused / sizeof *names_refused && !why.rule;
         i++) {
        size_t length = names_refused[i].size;
        if (size < length || name[size - 1] != names_refused[i].name[length - 1] ||
            memcmp(name + size - length, names_refused[i].name, length))
            continue;
        if (size == length ? of->doubt == URL_HOST || dot || !strcmp(name, "localhost")
                           : name[size - length - 1] == '.')
            why = names_refused[i].why;
    }
    if (!dot && !why.rule) {
        if (of->doubt != URL_HOST)
            return NOTHING; /* a word */
        why = (refusal){"one-label", "a name without a dot, as local networks have"};
    }
    why = settle(of, why, name, NULL);
    return why.rule || !of->resolver ? why : judge_addresses(of, name);
}

/* ------------------------------------------------------------------ addresses */

/* An IPv4 address, by both ways to read a leading zero. */
static refusal judge_ipv4(const judging *of, const char *text, size_t size)
{
    static const ipv4_zeros readings[] = {IPV4_OCTAL, IPV4_DECIMAL};
    int parts, broken = 0;
    refusal why;
    address at;

    for (size_t i = 0; i < 2; i++) {
        if (address_read4(text, size, readings[i], &at, &parts) != IPV4_ADDRESS) {
            broken = 1;
            continue;
        }
        /* Small numbers are also in comments and ports. */
        if (of->doubt != URL_HOST && parts < 4 && at.bytes[0] == 0)
            continue;
        why = settle(of, address_judge(&at), NULL, &at);
        if (why.rule)
            return why;
    }
    return broken ? unreadable(of) : NOTHING;
}

static refusal judge_ipv6(const judging *of, const char *text, size_t size)
{
    address at;
    if (address_read6(text, size, &at))
        return unreadable(of);
    return settle(of, address_judge(&at), NULL, &at);
}

/* ------------------------------------------------------------------ escapes */

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undoes "%41" in place; the new size. */
static size_t unescape(char *text, size_t size)
{
    size_t to = 0;
    for (size_t i = 0; i < size; i++, to++) {
        int high = size - i > 2 && text[i] == '%' ? hex_of(text[i + 1]) : -1;
        int low = high >= 0 ? hex_of(text[i + 2]) : -1;
        if (low >= 0) {
            text[to] = (char)(high << 4 | low);
            i += 2;
        } else {
            text[to] = text[i];
        }
    }
    return to;
}

static int is_ascii(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] >= 0x80)
            return 0;
    return 1;
}

/* What a host may have. */
static int is_host_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_';
}

/* Reads *host of *size bytes, with room for URL_HOST_MOST and a NUL, until it is plain
 * ASCII without escapes. What is refused on the way. */
static refusal make_plain(const judging *of, char *host, size_t *size, idn *names)
{
    char mapped[URL_HOST_MOST + 1];
    for (int pass = 0; pass < 3; pass++) {
        *size = unescape(host, *size);
        host[*size] = 0;
        if (memchr(host, 0, *size)) /* some programs stop there, others go on */
            return unreadable(of);
        if (is_ascii(host, *size)) {
            if (!memchr(host, '%', *size))
                break;
            continue;
        }
        switch (idn_map(names, host, mapped, sizeof mapped)) {
        case IDN_MISSING:
            return (refusal){"no-libidn2",
                             "a host that is not ASCII, which is not read without "
                             "libidn2 (install libidn2-0)"};
        case IDN_REFUSED:
            return unreadable(of);
        case IDN_OK:
            *size = strlen(mapped);
            memcpy(host, mapped, *size + 1);
        }
    }
    return NOTHING;
}

/* ------------------------------------------------------------------ a part */

/* A host without brackets and port. */
static refusal judge_host(const judging *of, const char *text, size_t size, idn *names)
{
    char host[URL_HOST_MOST + 1];
    refusal why;
    size_t good = 0;
    address at;

    memcpy(host, text, size);
    why = make_plain(of, host, &size, names);
    if (why.rule || !is_ascii(host, size))
        return why.rule ? why : unreadable(of);
    for (size_t i = 0; i < size; i++)
        if (host[i] >= 'A' && host[i] <= 'Z')
            host[i] |= 0x20;
    while (good < size && is_host_byte(host[good]))
        good++;
    if (good < size && of->doubt == URL_HOST)
        return NO_HOST;
    while (good > 0 && host[good - 1] == '.')
        good--;
    host[good] = 0;
    if (good == 0)
        return NOTHING;
    if (address_read4(host, good, IPV4_DECIMAL, &at, NULL) == IPV4_NONE)
        return judge_name(of, host, good);
    return judge_ipv4(of, host, good);
}

/* The number behind a colon, or what it was before. */
static int read_port(const char *text, size_t size, int port)
{
    int value = 0;
    for (size_t i = 0; i < size && text[i] >= '0' && text[i] <= '9' && value <= 65535;
         i++)
        value = value * 10 + text[i] - '0';
    return value > 0 ? value : port;
}

refusal url_judge(const url_part *part, const sessile_url_options *options, idn *names,
                  url_resolver *resolver)
{
    const char *end = part->text + part->size;
    const char *stop = part->size ? memchr(part->text, ':', part->size) : NULL;
    judging of = {options, part->port, part->doubt, resolver};
    address at;

    if (part->size == 0)
        return NOTHING;
    if (part->size > URL_HOST_MOST)
        return unreadable(&of);
    if (*part->text == '[') {
        stop = memchr(part->text, ']', part->size);
        if (!stop)
            stop = end;
        else if (end - stop > 1 && stop[1] == ':')
            of.port = read_port(stop + 2, (size_t)(end - stop - 2), of.port);
        return judge_ipv6(&of, part->text + 1, (size_t)(stop - part->text - 1));
    }
    if (stop && memchr(stop + 1, ':', (size_t)(end - stop - 1)) &&
        address_read6(part->text, part->size, &at) == 0)
        return judge_ipv6(&of, part->text, part->size);
    if (stop)
        of.port = read_port(stop + 1, (size_t)(end - stop - 1), of.port);
    else
        stop = end;
    return judge_host(&of, part->text, (size_t)(stop - part->text), names);
}

/*
 * url_allow.c: the hosts, addresses and networks that a caller allows.
 *
 * The list is short and is looked at only for what would be refused, so its items are
 * read each time.
 */
#include "screen/url.h"

#include <string.h>
#include <strings.h>

#include "base/error.h"

typedef struct item {
    const char *name; /* of a host or a domain; NULL: an address or a network */
    size_t size;
    int below; /* of a domain: what is below it is meant, too */
    address at;
    int bits; /* of `at` that count */
    int port; /* 0: every one */
} item;

/* A number of up to five digits that is at most `most`; -1: it is none. */
static int read_number(const char *text, size_t size, int most)
{
    int value = 0;
    if (size == 0 || size > 5)
        return -1;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = value * 10 + text[i] - '0';
    }
    return value <= most ? value : -1;
}

/* What follows the host: nothing, "/bits" or ":port". */
static int read_rest(item *out, const char *text, size_t size)
{
    int value, whole = out->at.family == 4 ? 32 : 128;
    out->bits = whole;
    if (size == 0)
        return 0;
    if (*text == '/' && !out->name) {
        out->bits = read_number(text + 1, size - 1, whole);
        return out->bits < 0 ? -1 : 0;
    }
    value = *text == ':' ? read_number(text + 1, size - 1, 65535) : -1;
    out->port = value;
    return value > 0 ? 0 : -1;
}

static int is_name_byte(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           c == '-' || c == '_' || c == '.';
}

static int read_name(item *out, const char *text, size_t size)
{
    out->below = size > 0 && *text == '.';
    out->name = text + out->below;
    out->size = size - (size_t)out->below;
    if (out->size == 0 || out->size > 253)
        return -1;
    for (size_t i = 0; i < out->size; i++)
        if (!is_name_byte(out->name[i]))
            return -1;
    return 0;
}

/* An IPv4 address or a name of size bytes: 0, or -1. An address that can be read in two
 * ways would allow more than was meant. */
static int read_host(item *out, const char *text, size_t size)
{
    address other;
    switch (address_read4(text, size, IPV4_OCTAL, &out->at, NULL)) {
    case IPV4_ADDRESS:
        return address_read4(text, size, IPV4_DECIMAL, &other, NULL) == IPV4_ADDRESS &&
                       address_within(&other, &out->at, 32)
                   ? 0
                   : -1;
    case IPV4_NONE:
        return read_name(out, text, size);
    case IPV4_BROKEN:
        break;
    }
    return -1;
}

/* Reads an item as it is written: 0, or -1. */
static int read_text(sessile_slice text, item *out)
{
    const char *end = text.data + text.size, *stop;

    memset(out, 0, sizeof *out);
    if (text.size == 0)
        return -1;
    if (*text.data == '[') {
        stop = memchr(text.data, ']', text.size);
        if (!stop ||
            address_read6(text.data + 1, (size_t)(stop - text.data - 1), &out->at))
            return -1;
        return read_rest(out, stop + 1, (size_t)(end - stop - 1));
    }
    if (address_read6(text.data, text.size, &out->at) == 0)
        return read_rest(out, end, 0);
    for (stop = text.data; stop < end && *stop != ':' && *stop != '/'; stop++)
        ;
    if (read_host(out, text.data, (size_t)(stop - text.data)))
        return -1;
    return read_rest(out, stop, (size_t)(end - stop));
}

/* Reads an item: 0, or -1. A mapped IPv4 address is that address. */
static int read_item(sessile_slice text, item *out)
{
    address mapped;
    if (read_text(text, out))
        return -1;
    if (out->bits >= 96 && address_unmapped(&out->at, &mapped)) {
        out->at = mapped;
        out->bits -= 96;
    }
    return 0;
}

sessile_status url_allow_check(const sessile_url_options *options, sessile_error *err)
{
    item one;
    for (size_t i = 0; i < options->allow_count; i++) {
        if (read_item(options->allow[i], &one))
            return fail(err, SESSILE_INVALID,
                        "allow: item %zu is no host, address or network: write it as "
                        "\"example.org:443\", \".example.org\", \"[::1]:80\" or "
                        "\"10.0.0.0/8\"",
                        i + 1);
    }
    return SESSILE_OK;
}

static int same_name(const item *of, const char *name)
{
    size_t size = strlen(name);
    if (size < of->size || strncasecmp(name + size - of->size, of->name, of->size) != 0)
        return 0;
    return size == of->size || (of->below && name[size - of->size - 1] == '.');
}

static int is_localhost(const item *of)
{
    return of->name && of->size == 9 && strncasecmp(of->name, "localhost", 9) == 0;
}

/* Whether an item is about an address. */
static int has_address(const item *of, const address *at)
{
    static const address loopback4 = {4, {127, 0, 0, 1}}, loopback6 = {6, {[15] = 1}};
    address mapped;
    if (address_unmapped(at, &mapped))
        return has_address(of, &mapped);
    if (is_localhost(of))
        return address_within(at, &loopback4, 32) || address_within(at, &loopback6, 128);
    return !of->name && address_within(at, &of->at, of->bits);
}

int url_allowed(const sessile_url_options *options, const char *name, const address *at,
                int port)
{
    item one;
    for (size_t i = 0; i < options->allow_count; i++) {
        if (read_item(options->allow[i], &one) || (one.port && one.port != port))
            continue;
        if (name ? one.name && same_name(&one, name) : has_address(&one, at))
            return 1;
    }
    return 0;
}

sessile_status url_address_check(int family, const void *bytes, int port,
                                 const sessile_url_options *options, sessile_error *err)
{
    address at = {family, {0}};
    sessile_status status = url_allow_check(options, err);
    refusal why;

    if (status)
        return status;
    if (family != SESSILE_IPV4 && family != SESSILE_IPV6)
        return fail(err, SESSILE_INVALID,
                    "an address has the family %d: SESSILE_IPV4 or SESSILE_IPV6 expected",
                    family);
    memcpy(at.bytes, bytes, family == SESSILE_IPV4 ? 4 : 16);
    why = address_judge(&at);
    if (!why.rule || url_allowed(options, NULL, &at, port))
        return SESSILE_OK;
    return fail(err, SESSILE_DENIED,
                "the address is %s [%s]: do not connect, or allow it", why.what,
                why.rule);
}

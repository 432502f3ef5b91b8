/*
 * address.c: which addresses are special, and how addresses are written.
 *
 * Owns the table of special-purpose addresses: IANA's registries for IPv4 and IPv6 (RFC
 * 6890 and its successors), multicast, and the addresses where clouds serve metadata,
 * some of which are public. An entry of a registry is refused also where the registry
 * calls it globally reachable: none of them is a host that an agent has business with.
 *
 * An IPv6 address that carries an IPv4 address is judged by both, since a kernel, a relay
 * or a translator may send the packet to either. What is neither in the table nor in
 * 2000::/3 has not been given to anybody, and is refused.
 */
#include "screen/address.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

/* ------------------------------------------------------------------ the registries */

typedef struct block {
    int family, bits;
    unsigned char prefix[16];
    refusal why;
} block;

#define METADATA  "metadata", "an address where a cloud serves metadata"
#define IETF      "special", "an address of the IETF's protocols"
#define DOCUMENTS "special", "an address for documentation"
#define AS112     "special", "an address of the AS112 project"

/* The first that matches counts, so a block stands before one that contains it. */
static const block blocks[] = {
    {4, 32, {169, 254, 169, 254}, {METADATA " (169.254.169.254)"}},
    {4, 32, {169, 254, 170, 2}, {METADATA " (169.254.170.2)"}},
    {4, 32, {168, 63, 129, 16}, {METADATA " (168.63.129.16)"}},
    {4, 32, {100, 100, 100, 200}, {METADATA " (100.100.100.200)"}},
    {4, 32, {192, 0, 0, 192}, {METADATA " (192.0.0.192)"}},
    {4, 8, {0}, {"this-network", "an address of this network (0.0.0.0/8)"}},
    {4, 8, {10}, {"private", "a private address (10.0.0.0/8)"}},
    {4, 10, {100, 64}, {"private", "a shared address (100.64.0.0/10)"}},
    {4, 8, {127}, {"loopback", "a loopback address (127.0.0.0/8)"}},
    {4, 16, {169, 254}, {"link-local", "a link-local address (169.254.0.0/16)"}},
    {4, 12, {172, 16}, {"private", "a private address (172.16.0.0/12)"}},
    {4, 24, {192, 0, 0}, {IETF " (192.0.0.0/24)"}},
    {4, 24, {192, 0, 2}, {DOCUMENTS " (192.0.2.0/24)"}},
    {4, 24, {192, 31, 196}, {AS112 " (192.31.196.0/24)"}},
    {4, 24, {192, 52, 193}, {"special", "a tunnel's address (192.52.193.0/24)"}},
    {4, 24, {192, 88, 99}, {"special", "an address of 6to4 relays (192.88.99.0/24)"}},
    {4, 16, {192, 168}, {"private", "a private address (192.168.0.0/16)"}},
    {4, 24, {192, 175, 48}, {AS112 " (192.175.48.0/24)"}},
    {4, 15, {198, 18}, {"special", "an address for benchmarks (198.18.0.0/15)"}},
    {4, 24, {198, 51, 100}, {DOCUMENTS " (198.51.100.0/24)"}},
    {4, 24, {203, 0, 113}, {DOCUMENTS " (203.0.113.0/24)"}},
    {4, 4, {224}, {"multicast", "a multicast address (224.0.0.0/4)"}},
    {4, 32, {255, 255, 255, 255}, {"special", "the broadcast address"}},
    {4, 4, {240}, {"special", "a reserved address (240.0.0.0/4)"}},

    {6, 128, {0xfd, 0, 0x0e, 0xc2, [14] = 0x02, 0x54}, {METADATA " (fd00:ec2::254)"}},
    {6, 128, {0xfd, 0x20, 0, 0xce, [14] = 0x02, 0x54}, {METADATA " (fd20:ce::254)"}},
    {6, 128, {0xfd, 0, 0, 0x42, [14] = 0, 0x42}, {METADATA " (fd00:42::42)"}},
    {6, 128, {0}, {"this-network", "the unspecified address (::)"}},
    {6, 128, {[15] = 1}, {"loopback", "the loopback address (::1)"}},
    {6,
     48,
     {0, 0x64, 0xff, 0x9b, 0, 1},
     {"special", "an address of a local translator (64:ff9b:1::/48)"}},
    {6, 32, {0x20, 1, 0, 0}, {"special", "an address of Teredo's tunnels (2001::/32)"}},
    {6, 32, {0x20, 1, 0x0d, 0xb8}, {DOCUMENTS " (2001:db8::/32)"}},
    {6, 23, {0x20, 1}, {IETF " (2001::/23)"}},
    {6, 48, {0x26, 0x20, 0, 0x4f, 0x80}, {AS112 " (2620:4f:8000::/48)"}},
    {6, 20, {0x3f, 0xff}, {DOCUMENTS " (3fff::/20)"}},
    {6, 7, {0xfc}, {"private", "a unique local address (fc00::/7)"}},
    {6, 10, {0xfe, 0x80}, {"link-local", "a link-local address (fe80::/10)"}},
    {6, 10, {0xfe, 0xc0}, {"private", "a site-local address (fec0::/10)"}},
    {6, 8, {0xff}, {"multicast", "a multicast address (ff00::/8)"}},
};

/* Prefixes behind which the next four bytes are an IPv4 address. */
static const struct {
    int bits;
    unsigned char prefix[12];
} carriers[] = {
    {96, {[10] = 0xff, 0xff}},   /* mapped: ::ffff:a.b.c.d */
    {96, {0}},                   /* compatible: ::a.b.c.d */
    {96, {[8] = 0xff, 0xff}},    /* translated: ::ffff:0:a.b.c.d */
    {96, {0, 0x64, 0xff, 0x9b}}, /* NAT64: 64:ff9b::a.b.c.d */
    {16, {0x20, 2}},             /* 6to4: 2002:abcd:: */
};

static int same_bits(const unsigned char *a, const unsigned char *b, int bits)
{
    int whole = bits / 8, rest = bits % 8;
    if (memcmp(a, b, (size_t)whole) != 0)
        return 0;
    return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

int address_within(const address *a, const address *network, int bits)
{
    return a->family == network->family && same_bits(a->bytes, network->bytes, bits);
}

static refusal look_up(const address *a)
{
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (blocks[i].family == a->family &&
            same_bits(a->bytes, blocks[i].prefix, blocks[i].bits))
            return blocks[i].why;
    return (refusal){NULL, NULL};
}

static address ipv4_of(const unsigned char bytes[4])
{
    address a = {4, {0}};
    memcpy(a.bytes, bytes, 4);
    return a;
}

int address_unmapped(const address *a, address *out)
{
    if (a->family != 6 || !same_bits(a->bytes, carriers[0].prefix, carriers[0].bits))
        return 0;
    *out = ipv4_of(a->bytes + 12);
    return 1;
}

refusal address_judge(const address *a)
{
    static const unsigned char isatap[] = {0, 0, 0x5e, 0xfe};
    refusal found = look_up(a);
    address inside;

    if (a->family == 4 || found.rule)
        return found;
    for (size_t i = 0; i < sizeof carriers / sizeof *carriers; i++) {
        if (same_bits(a->bytes, carriers[i].prefix, carriers[i].bits)) {
            inside = ipv4_of(a->bytes + carriers[i].bits / 8);
            return look_up(&inside);
        }
    }
    if (a->bytes[0] >> 5 != 1)
        return (refusal){"special", "an address that is not in use (outside 2000::/3)"};
    /* ISATAP: a bit of the first byte says whether the IPv4 address is unique. */
    if ((a->bytes[8] & ~2) == isatap[0] && !memcmp(a->bytes + 9, isatap + 1, 3)) {
        inside = ipv4_of(a->bytes + 12);
        return look_up(&inside);
    }
    return found;
}

/* ------------------------------------------------------------------ IPv4 as text */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* Reads one part: 0, or -1 when it is no number. A number of more than 32 bits is
 * UINT64_MAX. "0x" alone is 0, as browsers have it. */
static int read_part(const char *text, size_t size, ipv4_zeros zeros, uint64_t *out)
{
    int base = 10;
    *out = 0;
    if (size == 0)
        return -1;
    if (size >= 2 && text[0] == '0' && (text[1] | 0x20) == 'x') {
        base = 16;
        text += 2, size -= 2;
    } else if (size >= 2 && text[0] == '0' && zeros == IPV4_OCTAL) {
        base = 8;
    }
    for (size_t i = 0; i < size; i++) {
        int digit = digit_of(text[i]);
        if (digit >= base)
            return -1;
        if (*out <= UINT32_MAX)
            *out = *out * (uint64_t)base + (uint64_t)digit;
    }
    if (*out > UINT32_MAX)
        *out = UINT64_MAX;
    return 0;
}

/* Whether a part is written as a number, in range or not. "09" is: it is an error then,
 * and no name. */
static int is_number(const char *text, size_t size)
{
    uint64_t value;
    return read_part(text, size, IPV4_DECIMAL, &value) == 0;
}

ipv4_text address_read4(const char *text, size_t size, ipv4_zeros zeros, address *out,
                        int *parts)
{
    uint64_t value[4], whole = 0;
    int count = 0, broken = 0;
    size_t begin = 0, last = 0;

    for (size_t i = 0; i <= size; i++) {
        if (i < size && text[i] != '.')
            continue;
        if (count == 4 || read_part(text + begin, i - begin, zeros, &value[count]))
            broken = 1;
        else
            count++;
        last = begin;
        begin = i + 1;
    }
    if (parts)
        *parts = count;
    if (!is_number(text + last, size - last))
        return IPV4_NONE;
    if (broken)
        return IPV4_BROKEN;
    for (int i = 0; i < count - 1; i++) {
        if (value[i] > 255)
            return IPV4_BROKEN;
        whole |= value[i] << (24 - 8 * i);
    }
    if (value[count - 1] > UINT32_MAX >> (8 * (count - 1)))
        return IPV4_BROKEN;
    whole |= value[count - 1];
    out->family = 4;
    for (int i = 0; i < 4; i++)
        out->bytes[i] = (unsigned char)(whole >> (24 - 8 * i));
    return IPV4_ADDRESS;
}

/* ------------------------------------------------------------------ IPv6 as text */

int address_read6(const char *text, size_t size, address *out)
{
    char whole[INET6_ADDRSTRLEN];
    const char *zone = size ? memchr(text, '%', size) : NULL;
    if (zone)
        size = (size_t)(zone - text);
    if (size == 0 || size >= sizeof whole || memchr(text, 0, size))
        return -1;
    memcpy(whole, text, size);
    whole[size] = 0;
    if (inet_pton(AF_INET6, whole, out->bytes) != 1)
        return -1;
    out->family = 6;
    return 0;
}

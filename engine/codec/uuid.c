/*
 * uuid.c: ids of new sessions.
 *
 * Owns UUIDs of version 7 (RFC 9562: they sort by time) and, with libuuid, version 4.
 * Must never return the same id twice in a process, whatever the clock does.
 *
 * Here version 7 has 48 bits of milliseconds and 74 random bits. When the clock has
 * not advanced since the last id (or was set back), the random bits of the last id
 * grow by a random step of up to 2^32, so that ids still ascend and cannot be guessed.
 * An overflow, one in many millions, uses the next millisecond.
 */
#include "codec/entry.h"

#include <string.h>
#include <uuid/uuid.h>

#include "base/text.h"

static void print(char out[UUID_SIZE], const unsigned char bytes[16])
{
    char hex[33];
    hex_encode(hex, bytes, 16);
    memcpy(out, hex, 8);
    out[8] = '-';
    memcpy(out + 9, hex + 8, 4);
    out[13] = '-';
    memcpy(out + 14, hex + 12, 4);
    out[18] = '-';
    memcpy(out + 19, hex + 16, 4);
    out[23] = '-';
    memcpy(out + 24, hex + 20, 13);
}

static uint64_t get_ms(const unsigned char id[16])
{
    uint64_t ms = 0;
    int i;
    for (i = 0; i < 6; i++)
        ms = ms << 8 | id[i];
    return ms;
}

static void set_ms(unsigned char id[16], uint64_t ms)
{
    int i;
    for (i = 5; i >= 0; i--) {
        id[i] = (unsigned char)ms;
        ms >>= 8;
    }
}

/* The 74 random bits: 12 after the version, 62 after the variant. */
static void set_random(unsigned char id[16], uint16_t high, uint64_t low)
{
    int i;
    id[6] = (unsigned char)(0x70 | (high >> 8 & 15));
    id[7] = (unsigned char)high;
    for (i = 15; i >= 8; i--) {
        id[i] = (unsigned char)low;
        low >>= 8;
    }
    id[8] = (unsigned char)(0x80 | (id[8] & 0x3f));
}

static void get_random(const unsigned char id[16], uint16_t *high, uint64_t *low)
{
    int i;
    *high = (uint16_t)((id[6] & 15) << 8 | id[7]);
    *low = id[8] & 0x3f;
    for (i = 9; i < 16; i++)
        *low = *low << 8 | id[i];
}

void uuid7_print(char out[UUID_SIZE], int64_t now_ms, unsigned char last[16])
{
    const uint64_t low_mask = (UINT64_C(1) << 62) - 1;
    uint64_t ms = now_ms > 0 ? (uint64_t)now_ms & ((UINT64_C(1) << 48) - 1) : 0;
    uint64_t last_ms = get_ms(last), low;
    uint16_t high;
    unsigned char fresh[10];

    random_bytes(fresh, sizeof fresh);
    memcpy(&high, fresh, sizeof high);
    memcpy(&low, fresh + 2, sizeof low);
    high &= 0xfff;
    low &= low_mask;
    if (last[6] != 0 && ms <= last_ms) { /* last[6] holds a version: there was one */
        uint64_t step = (low & UINT32_MAX) + 1;
        ms = last_ms;
        get_random(last, &high, &low);
        low += step;
        high = (uint16_t)(high + (low >> 62));
        low &= low_mask;
        if (high > 0xfff) {
            high = 0;
            ms++;
        }
    }
    set_ms(last, ms);
    set_random(last, high, low);
    print(out, last);
}

void uuid4_print(char out[UUID_SIZE])
{
    uuid_t id;
    uuid_generate_random(id);
    print(out, id);
}

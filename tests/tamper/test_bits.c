/*
 * test_bits.c: no bit of a log can be changed without somebody being told.
 *
 * Owns promise 4, on logs of 64 KB. After each flip, opening refuses and changes nothing,
 * also for a bit of the last write: it was written whole, so it is no torn end. One
 * exception: a byte that becomes 0 where a sector begins looks like a sector that was
 * never written. What was acknowledged is never missing, and never shown as anything else
 * than it was, without being reported.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "support/tamper.h"

enum { LARGE = 64 << 10 };

typedef struct figures {
    unsigned long refused, aside;
} figures;

static void flip(sample *s, size_t at, int bit, figures *f)
{
    verdict v = look_flipped(s, at, bit);
    assert_int_not_equal(v, WHOLE);
    if (v != REFUSED && !(at >= s->last && at % 512 == 0 && s->bytes[at] == 1 << bit))
        print_error("byte %zu, bit %d: taken for a torn end\n", at, bit);
    assert_true(v == REFUSED ||
                (at >= s->last && at % 512 == 0 && s->bytes[at] == 1 << bit));
    f->refused += v == REFUSED;
    f->aside += v == SET_ASIDE;
}

/* Every bit of the first two and the last two lines, and of the others one random bit of
 * each `stride`-th byte; with SESSILE_SOAK every bit. */
static void flip_everywhere(kit_mode mode, size_t stride)
{
    uint64_t seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    int soak = getenv("SESSILE_SOAK") != NULL;
    figures f = {0, 0};
    sample s;
    print_message("%s, seed %llu\n", kit_names[mode], (unsigned long long)seed);
    sample_open_large(&s, mode, "bits", 200, LARGE);
    size_t phase = random_next(&seed) % stride;
    for (size_t at = 0; at < s.size; at++) {
        if (soak || at < s.lines[2] || at >= s.lines[s.line_count - 2])
            for (int bit = 0; bit < 8; bit++)
                flip(&s, at, bit, &f);
        else if (at % stride == phase)
            flip(&s, at, (int)(random_next(&seed) % 8), &f);
    }
    assert_true(f.refused > 0);
    assert_int_equal(look(&s, s.bytes, s.size), WHOLE);
    printf("# figure: flipped bits of a 64 KB log (%s) refused = %lu\n", kit_names[mode],
           f.refused);
    printf("# figure: flipped bits of a 64 KB log (%s) set aside and reported = %lu\n",
           kit_names[mode], f.aside);
    printf("# figure: flipped bits of a 64 KB log (%s) not seen = 0\n", kit_names[mode]);
    sample_close(&s);
}

static kit_mode modes[] = {KIT_PLAIN, KIT_AES, KIT_XCHACHA};

/* XChaCha20 is sampled thinly where AES is there: the code around it is the same. */
static void no_flipped_bit_passes(void **state)
{
    const kit_mode *mode = *state;
    if (!kit_possible(*mode))
        skip();
    flip_everywhere(*mode, *mode == KIT_XCHACHA && kit_possible(KIT_AES) ? 64 : 16);
}

#define OF_LOG(name, i)                                                              \
    {                                                                                \
        "no_flipped_bit_passes: " name, no_flipped_bit_passes, NULL, NULL, &modes[i] \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {OF_LOG("plain", 0), OF_LOG("AES", 1),
                                       OF_LOG("XChaCha20", 2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

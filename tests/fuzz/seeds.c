/* seeds.c: seeds of a fuzzer whose first byte says what is done with the rest. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

void fuzz_give(fuzz_take take, void *arg, int how, const void *data, size_t size)
{
    char *seed = malloc(size + 1);

    FUZZ_CHECK(seed != NULL);
    seed[0] = (char)how;
    if (size > 0)
        memcpy(seed + 1, data, size); /* no data may be NULL */
    take(arg, seed, size + 1);
    free(seed);
}

void fuzz_give_text(fuzz_take take, void *arg, int how, const char *text)
{
    fuzz_give(take, arg, how, text, strlen(text));
}

void fuzz_give_all(fuzz_take take, void *arg, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        take(arg, texts[i], strlen(texts[i]));
}

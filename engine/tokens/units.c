/* units.c: the names of the units in which messages were counted. */
#include "tokens/tokens.h"

#include <string.h>

static const char *const names[TOKEN_UNITS] = {[TOKENS_ESTIMATE] = TOKEN_SOURCE_ESTIMATE,
                                               [TOKENS_CL100K] = "cl100k_base",
                                               [TOKENS_O200K] = "o200k_base",
                                               [TOKENS_ENCODING] = "encoding",
                                               [TOKENS_HOST] = TOKEN_SOURCE_HOST,
                                               [TOKENS_FITTED] = TOKEN_SOURCE_FITTED};

const char *token_unit_name(token_unit unit)
{
    return names[unit < TOKEN_UNITS ? unit : TOKENS_ESTIMATE];
}

token_unit token_unit_of(const char *name, size_t size)
{
    for (int i = 0; i < TOKEN_UNITS; i++)
        if (strlen(names[i]) == size && !memcmp(names[i], name, size))
            return (token_unit)i;
    return TOKENS_ESTIMATE;
}

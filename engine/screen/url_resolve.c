/*
 * url_resolve.c: where a name leads, for stores that ask for it.
 *
 * What a resolver says is true when it says it. A name that is resolved again, by whoever
 * connects, may lead elsewhere, so this refuses what leads inwards already and promises
 * nothing about what will: sessile_address_check() is asked when somebody connects.
 */
#include "screen/url.h"

#include <string.h>

#include "base/text.h"

#define ADDRESSES_MOST 64

static const refusal UNRESOLVED = {
    "unresolved", "a name that has no address, or none that could be found in time"};

static refusal ask(url_resolver *r, const char *name, int port,
                   const sessile_url_options *options)
{
    os_address list[ADDRESSES_MOST];
    uint64_t now = r->os->clock_us(r->os->ud);
    int count;

    if (!r->end_us)
        r->end_us = now + (uint64_t)URL_RESOLVE_MS * 1000;
    if (!r->os->resolve || now >= r->end_us)
        return UNRESOLVED;
    count = r->os->resolve(r->os->ud, name, (int)((r->end_us - now + 999) / 1000), list,
                           ADDRESSES_MOST);
    if (count <= 0)
        return UNRESOLVED;
    for (int i = 0; i < count; i++) {
        address at = {list[i].family, {0}};
        refusal why;
        memcpy(at.bytes, list[i].bytes, sizeof at.bytes);
        why = address_judge(&at);
        if (why.rule && !url_allowed(options, NULL, &at, port))
            return why;
    }
    return (refusal){NULL, NULL};
}

refusal url_resolve(url_resolver *r, const char *name, int port,
                    const sessile_url_options *options)
{
    uint64_t key = hash64(name, strlen(name)) ^ (uint64_t)port;

    for (unsigned i = 0; i < r->count; i++)
        if (r->asked[i] == key)
            return r->found[i];
    if (r->count == URL_NAMES_MOST)
        return UNRESOLVED;
    r->asked[r->count] = key;
    r->found[r->count] = ask(r, name, port, options);
    return r->found[r->count++];
}

/*
 * account.c: the account of a proposal: every message that left, and its disposition.
 *
 * Owns law 8. Must never omit a message: the account answers later why something is not
 * in the context.
 */
#include "context/laws.h"

#include "context/disposition.h"

static sessile_disposition disposition_of(uint8_t disposition)
{
    if (disposition == DISPOSITION_COVERED)
        return SESSILE_COVERED;
    return disposition == DISPOSITION_REPLACED ? SESSILE_REPLACED : SESSILE_LOST;
}

int laws_account(const laws_input *in, sessile_removal **out, size_t *count,
                 size_t *capacity, const allocator *a)
{
    static const sessile_key nobody = {SESSILE_NO_ID, 0};
    const context *before = in->before;
    size_t i, left = 0;
    dispositions places;
    int code = -1;

    dispositions_init(&places, a);
    if (dispositions_find(&places, in))
        goto out;
    for (i = 0; i < before->count; i++)
        left += places.disposition[i] != DISPOSITION_KEPT;
    if (mem_grow(a, (void **)out, capacity, *count + left, sizeof **out))
        goto out;
    for (i = 0; i < before->count; i++) {
        sessile_removal *d;
        if (places.disposition[i] == DISPOSITION_KEPT)
            continue;
        d = *out + (*count)++;
        d->key = before->items[i].key;
        d->disposition = disposition_of(places.disposition[i]);
        d->role = (sessile_role)before->items[i].role;
        d->tokens = before->items[i].tokens;
        d->by = places.place[i] == PLACE_NONE ? nobody
                                              : in->after->items[places.place[i]].key;
    }
    code = 0;

out:
    dispositions_deinit(&places);
    return code;
}

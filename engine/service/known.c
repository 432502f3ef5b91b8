/* known.c: see known.h. A table without chains: of two credentials that hash to one row
 * the later one is remembered. */
#include "service/known.h"

#include <string.h>

enum { ROWS = 131072 };

struct known {
    allocator alloc;
    struct {
        _Atomic uint64_t credential, user, share;
    } rows[ROWS];
};

static uint64_t text_hash(const char *text)
{
    return text ? hash64(text, strlen(text)) : 0;
}

/* What a call is authorized by; 0: nothing. */
static uint64_t credential_of(const rpc_call *rpc)
{
    const char *header = rpc_call_header(rpc, "authorization");
    const char *certificate = header ? NULL : rpc_call_certificate(rpc);
    if (!header && !certificate)
        return 0;
    const uint64_t parts[3] = {text_hash(header), text_hash(certificate),
                               text_hash(rpc_call_header(rpc, "sessile-device"))};
    return hash64(parts, sizeof parts) | 1;
}

void known_learn(known *k, const rpc_call *rpc, const known_caller *who)
{
    const uint64_t key = k ? credential_of(rpc) : 0;
    if (!key)
        return;
    atomic_store(&k->rows[key % ROWS].credential, 0);
    atomic_store(&k->rows[key % ROWS].user, who->user);
    atomic_store(&k->rows[key % ROWS].share, who->share);
    atomic_store(&k->rows[key % ROWS].credential, key);
}

void known_forget(known *k, const rpc_call *rpc)
{
    uint64_t key = k ? credential_of(rpc) : 0;
    if (key)
        atomic_compare_exchange_strong(&k->rows[key % ROWS].credential, &key, 0);
}

int known_find(known *k, const rpc_call *rpc, known_caller *out)
{
    const uint64_t key = k ? credential_of(rpc) : 0;
    if (!key || atomic_load(&k->rows[key % ROWS].credential) != key)
        return 0;
    out->user = atomic_load(&k->rows[key % ROWS].user);
    out->share = atomic_load(&k->rows[key % ROWS].share);
    return atomic_load(&k->rows[key % ROWS].credential) == key;
}

sessile_status known_open(known **out, const allocator *a, sessile_error *err)
{
    known *k = mem_zalloc(a, sizeof *k);
    *out = k;
    if (!k)
        return fail_nomem(err);
    k->alloc = *a;
    return SESSILE_OK;
}

void known_close(known *k)
{
    if (!k)
        return;
    allocator a = k->alloc;
    mem_free(&a, k, sizeof *k);
}

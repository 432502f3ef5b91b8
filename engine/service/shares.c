/* shares.c: see shares.h. A table of the users who hold something now, by hashes of their
 * names; a user who holds nothing has no row. */
#include "service/shares.h"

#include "service/known.h"

enum { TABLE = 1024 };

typedef struct share {
    struct share *same; /* in the table */
    uint64_t user;
    size_t held[SHARE_KINDS];
} share;

struct shares {
    allocator alloc;
    pthread_mutex_t mutex; /* all that follows */
    share *table[TABLE];
};

static const char *const names[SHARE_KINDS] = {"open runs", "watched sessions"};

static share **find(shares *s, uint64_t user)
{
    share **at = &s->table[user % TABLE];
    while (*at && (*at)->user != user)
        at = &(*at)->same;
    return at;
}

static void drop_if_empty(shares *s, share **at)
{
    share *one = *at;
    for (int kind = 0; kind < SHARE_KINDS; kind++)
        if (one->held[kind])
            return;
    *at = one->same;
    mem_free(&s->alloc, one, sizeof *one);
}

sessile_status shares_take(call *c, share_kind kind, size_t n, size_t most,
                           uint64_t *user, sessile_error *err)
{
    shares *s = c->server->shares;
    known_caller caller;
    const size_t own = most / SHARE_OF;
    sessile_status status = SESSILE_OK;
    *user = 0;
    who_is(c, &caller);
    const uint64_t who = s ? caller.share : 0;
    if (!who || n == 0)
        return SESSILE_OK;
    pthread_mutex_lock(&s->mutex);
    share **at = find(s, who);
    if (!*at && (*at = mem_zalloc(&s->alloc, sizeof **at)))
        (*at)->user = who;
    if (!*at) {
        status = fail_nomem(err);
    } else if (n > own || (*at)->held[kind] > own - n) {
        status =
            fail(err, SESSILE_LIMIT,
                 "this server has at most %zu %s for one user, and you hold %zu: end "
                 "some, or ask another server",
                 own, names[kind], (*at)->held[kind]);
        drop_if_empty(s, at);
    } else {
        (*at)->held[kind] += n;
        *user = who;
    }
    pthread_mutex_unlock(&s->mutex);
    return status;
}

void shares_give(shares *s, share_kind kind, size_t n, uint64_t user)
{
    if (!user)
        return;
    pthread_mutex_lock(&s->mutex);
    share **at = find(s, user);
    (*at)->held[kind] -= n;
    drop_if_empty(s, at);
    pthread_mutex_unlock(&s->mutex);
}

sessile_status shares_open(shares **out, const allocator *a, sessile_error *err)
{
    shares *s = mem_zalloc(a, sizeof *s);
    *out = s;
    if (!s)
        return fail_nomem(err);
    s->alloc = *a;
    pthread_mutex_init(&s->mutex, NULL);
    return SESSILE_OK;
}

/* Every call has ended, and given back what it held. */
void shares_close(shares *s)
{
    if (!s)
        return;
    pthread_mutex_destroy(&s->mutex);
    mem_free(&s->alloc, s, sizeof *s);
}

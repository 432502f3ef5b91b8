/*
 * keep.c: the sessions and the memories that are open.
 *
 * A session or a memory is opened once, through the host's handle, and lent to calls;
 * each call makes a handle of its own principal over it. What it has read stays in
 * memory, so that the next call reads only what is new. Those that are idle stand in a
 * list by their last use, from whose end they are closed when there are too many.
 *
 * They are opened outside the mutex, since that takes as long as the store takes. Two
 * calls that open the same one at the same time both do; the second one's is closed.
 */
#include "service/server.h"

#include <string.h>

#include "base/names.h"

enum { TABLE = 8192 };

struct kept {
    kept *same;          /* in the table */
    kept *newer, *older; /* in the list, while idle */
    uint64_t key;
    unsigned users;
    int gone; /* not in the table any more: closed when its last user gives it back */
    sessile_session *session; /* or memory; the other one is NULL */
    sessile_memory *memory;
    size_t size;            /* of this block */
    sessile_slice names[3]; /* id, agent, user: behind the struct; no id: a memory */
};

struct keep {
    allocator alloc;
    const service *server;
    sessile_store *store;
    size_t most;
    pthread_mutex_t mutex; /* all that follows */
    kept *table[TABLE];
    kept *newest, *oldest; /* idle */
    size_t count;
};

sessile_status keep_open(keep **out, const service *server, size_t most,
                         const allocator *a, sessile_error *err)
{
    keep *k = mem_zalloc(a, sizeof *k);
    *out = k;
    if (!k)
        return fail_nomem(err);
    k->alloc = *a;
    k->server = server;
    k->store = server->store;
    k->most = most;
    pthread_mutex_init(&k->mutex, NULL);
    return SESSILE_OK;
}

sessile_session *kept_session(const kept *k)
{
    return k->session;
}

sessile_memory *kept_memory(const kept *k)
{
    return k->memory;
}

size_t keep_count(keep *k)
{
    pthread_mutex_lock(&k->mutex);
    size_t count = k->count;
    pthread_mutex_unlock(&k->mutex);
    return count;
}

size_t keep_bytes(keep *k)
{
    size_t bytes = 0;
    pthread_mutex_lock(&k->mutex);
    for (size_t i = 0; i < TABLE; i++)
        for (const kept *one = k->table[i]; one; one = one->same)
            bytes += sessile_session_memory(one->session);
    pthread_mutex_unlock(&k->mutex);
    return bytes;
}

/* ---------------------------------------------------------------------- names */

static uint64_t key_of(const sessile_session_options *names)
{
    uint64_t parts[3] = {hash64(names->id.data, names->id.size),
                         hash64(names->agent.data, names->agent.size),
                         hash64(names->user.data, names->user.size)};
    return hash64(parts, sizeof parts);
}

static int is_of(const kept *one, const sessile_session_options *names)
{
    return slice_same(one->names[0], names->id) &&
           slice_same(one->names[1], names->agent) &&
           slice_same(one->names[2], names->user);
}

static kept *kept_new(keep *k, const sessile_session_options *names, uint64_t key)
{
    const sessile_slice from[3] = {names->id, names->agent, names->user};
    size_t size = sizeof(kept) + from[0].size + from[1].size + from[2].size;
    kept *one = mem_zalloc(&k->alloc, size);
    if (!one)
        return NULL;
    one->size = size;
    one->key = key;
    char *at = (char *)(one + 1);
    for (int i = 0; i < 3; i++) {
        one->names[i] = (sessile_slice){at, from[i].size};
        if (from[i].size)
            memcpy(at, from[i].data, from[i].size);
        at += from[i].size;
    }
    return one;
}

static void kept_free(keep *k, kept *one)
{
    (void)sessile_session_close(one->session, NULL);
    sessile_memory_close(one->memory);
    mem_free(&k->alloc, one, one->size);
}

/* -------------------------------------------- the table and the list, under the mutex */

static kept *find(keep *k, const sessile_session_options *names, uint64_t key)
{
    kept *one = k->table[key % TABLE];
    while (one && (one->key != key || !is_of(one, names)))
        one = one->same;
    return one;
}

static void leave_table(keep *k, kept *one)
{
    kept **at = &k->table[one->key % TABLE];
    while (*at != one)
        at = &(*at)->same;
    *at = one->same;
    one->gone = 1;
    k->count--;
}

static void leave_list(keep *k, kept *one)
{
    *(one->newer ? &one->newer->older : &k->newest) = one->older;
    *(one->older ? &one->older->newer : &k->oldest) = one->newer;
    one->newer = one->older = NULL;
}

static void enter_list(keep *k, kept *one)
{
    one->older = k->newest;
    *(k->newest ? &k->newest->newer : &k->oldest) = one;
    k->newest = one;
}

/* The sessions that are too many, as a list by `older`. */
static kept *take_oldest(keep *k)
{
    kept *out = NULL;
    while (k->count > k->most && k->oldest) {
        kept *one = k->oldest;
        leave_list(k, one);
        leave_table(k, one);
        one->older = out;
        out = one;
    }
    return out;
}

static void close_all(keep *k, kept *list)
{
    while (list) {
        kept *one = list;
        list = one->older;
        kept_free(k, one);
    }
}

/* ---------------------------------------------------------------------- lending */

static kept *borrow(keep *k, const sessile_session_options *names, uint64_t key)
{
    kept *one = find(k, names, key);
    if (one && one->users++ == 0)
        leave_list(k, one);
    return one;
}

static sessile_status open_one(keep *k, kept *one, const sessile_session_options *names,
                               sessile_error *err)
{
    sessile_memory_options memory;
    if (names->id.size) {
        const service_defaults *configured = service_defaults_of(k->server, names->agent);
        sessile_session_options options = *names;
        if (configured)
            options.config = configured->config;
        return sessile_resume(&one->session, k->store, &options, err);
    }
    sessile_memory_options_init(&memory);
    memory.agent = names->agent;
    memory.user = names->user;
    memory.must_exist = 1;
    return sessile_memory_open(&one->memory, k->store, &memory, err);
}

sessile_status keep_take(keep *k, const sessile_session_options *names, kept **out,
                         int *fresh, sessile_error *err)
{
    uint64_t key = key_of(names);
    *fresh = 0;
    pthread_mutex_lock(&k->mutex);
    *out = borrow(k, names, key);
    pthread_mutex_unlock(&k->mutex);
    if (*out)
        return SESSILE_OK;

    kept *made = kept_new(k, names, key);
    if (!made)
        return fail_nomem(err);
    sessile_status status = open_one(k, made, names, err);
    if (status) {
        kept_free(k, made);
        return status;
    }

    pthread_mutex_lock(&k->mutex);
    *out = borrow(k, names, key);
    if (!*out) {
        made->same = k->table[key % TABLE];
        k->table[key % TABLE] = made;
        made->users = 1;
        k->count++;
        *out = made;
        *fresh = 1;
        made = NULL;
    }
    kept *old = take_oldest(k);
    pthread_mutex_unlock(&k->mutex);
    close_all(k, old);
    if (made)
        kept_free(k, made);
    return SESSILE_OK;
}

void keep_give(keep *k, kept *one, int again)
{
    kept *old = NULL;
    pthread_mutex_lock(&k->mutex);
    if (!again && !one->gone)
        leave_table(k, one);
    if (--one->users == 0) {
        if (one->gone)
            old = one;
        else
            enter_list(k, one);
    }
    if (!old)
        old = take_oldest(k);
    pthread_mutex_unlock(&k->mutex);
    close_all(k, old);
}

void keep_close(keep *k)
{
    if (!k)
        return;
    k->most = 0;
    close_all(k, take_oldest(k));
    pthread_mutex_destroy(&k->mutex);
    mem_free(&k->alloc, k, sizeof *k);
}

/*
 * watch_table.c: the sessions that are watched, by their names.
 *
 * A request may leave out what the store knows, such as the agent, so a session can be in
 * the table under several names; each is opened, and has a row of its own. Whoever knows
 * the session itself, because it was written to, finds all of them by the names that it
 * has.
 */
#include "service/watch.h"

#include <string.h>

#include "base/names.h"

static watched *row_of(watch *w, uint64_t key)
{
    return w->table[key % WATCH_TABLE];
}

watched *watched_find(watch *w, const sessile_session_options *names)
{
    const uint64_t key = hash64(names->id.data, names->id.size);
    watched *one = row_of(w, key);
    while (one && !(one->key == key && slice_same(one->names.id, names->id) &&
                    slice_same(one->names.agent, names->agent) &&
                    slice_same(one->names.user, names->user)))
        one = one->same;
    return one;
}

/* The next one from `one` on that is this session, by the names that it has. */
static watched *find_named(watched *one, const sessile_session_options *names,
                           uint64_t key)
{
    for (; one; one = one->same) {
        const sessile_session *is = one->kept ? kept_session(one->kept) : NULL;
        if (is && one->key == key && slice_same(sessile_session_id(is), names->id) &&
            slice_same(sessile_session_agent(is), names->agent) &&
            slice_same(sessile_session_user(is), names->user))
            break;
    }
    return one;
}

watched *watched_first(watch *w, const sessile_session_options *names)
{
    const uint64_t key = hash64(names->id.data, names->id.size);
    return find_named(row_of(w, key), names, key);
}

watched *watched_next(watched *one, const sessile_session_options *names)
{
    return find_named(one->same, names, one->key);
}

static void copy_name(sessile_slice *name, char **at)
{
    if (name->size)
        memcpy(*at, name->data, name->size);
    name->data = *at;
    *at += name->size;
}

watched *watched_new(watch *w, const sessile_session_options *names, uint64_t lane,
                     void (*run)(job *j))
{
    const size_t size =
        sizeof(watched) + names->agent.size + names->user.size + names->id.size;
    watched *one = mem_zalloc(&w->server->alloc, size);
    if (!one)
        return NULL;
    char *at = (char *)(one + 1);
    one->watch = w;
    one->size = size;
    one->names = *names;
    one->key = hash64(names->id.data, names->id.size);
    one->job.run = run;
    one->job.lane = lane;
    if (names->agent.data)
        copy_name(&one->names.agent, &at);
    if (names->user.data)
        copy_name(&one->names.user, &at);
    copy_name(&one->names.id, &at);
    one->same = row_of(w, one->key);
    w->table[one->key % WATCH_TABLE] = one;
    one->listed = 1;
    w->count++;
    return one;
}

void watched_leave(watch *w, watched *one)
{
    watched **at = &w->table[one->key % WATCH_TABLE];
    if (!one->listed)
        return;
    while (*at != one)
        at = &(*at)->same;
    *at = one->same;
    one->listed = 0;
    w->count--;
}

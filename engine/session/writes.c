/* writes.c: see writes.h. */
#include "session/writes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/names.h"

typedef struct note {
    pthread_t thread;
    int is_open; /* it is being written */
    sessile_id first, count;
    char *text; /* of the names */
    session_names names;
} note;

struct write_notes {
    allocator alloc;
    pthread_mutex_t mutex;
    note *list;
    size_t capacity;
    _Atomic size_t count; /* read without the mutex */
};

write_notes *write_notes_new(const allocator *a)
{
    write_notes *n = mem_zalloc(a, sizeof *n);

    if (!n)
        return NULL;
    n->alloc = *a;
    pthread_mutex_init(&n->mutex, NULL);
    return n;
}

static size_t text_size(const session_names *names)
{
    return names->id.size + names->agent.size + names->user.size + 1;
}

static void note_deinit(write_notes *n, note *one)
{
    mem_free(&n->alloc, one->text, text_size(&one->names));
}

void write_notes_free(write_notes *n)
{
    allocator a;

    if (!n)
        return;
    a = n->alloc;
    for (size_t i = 0; i < n->count; i++)
        note_deinit(n, &n->list[i]);
    mem_free(&a, n->list, n->capacity * sizeof *n->list);
    pthread_mutex_destroy(&n->mutex);
    mem_free(&a, n, sizeof *n);
}

static sessile_slice keep(char **at, sessile_slice text)
{
    sessile_slice kept = {*at, text.size};

    if (text.size)
        memcpy(*at, text.data, text.size);
    *at += text.size;
    return kept;
}

sessile_status write_note(write_notes *n, const session_names *names, sessile_error *err)
{
    note *one;
    char *at;

    if (!n)
        return SESSILE_OK;
    at = mem_alloc(&n->alloc, text_size(names));
    if (!at)
        return fail_nomem(err);
    pthread_mutex_lock(&n->mutex);
    if (mem_grow(&n->alloc, (void **)&n->list, &n->capacity, n->count + 1,
                 sizeof *n->list)) {
        pthread_mutex_unlock(&n->mutex);
        mem_free(&n->alloc, at, text_size(names));
        return fail_nomem(err);
    }
    one = &n->list[n->count++];
    *one = (note){.thread = pthread_self(), .is_open = 1, .text = at};
    one->names.id = keep(&at, names->id);
    one->names.agent = keep(&at, names->agent);
    one->names.user = keep(&at, names->user);
    pthread_mutex_unlock(&n->mutex);
    return SESSILE_OK;
}

/* Removes a note; the order of the others stays. Under the mutex. */
static void drop(write_notes *n, size_t i)
{
    note_deinit(n, &n->list[i]);
    n->count--;
    memmove(&n->list[i], &n->list[i + 1], (n->count - i) * sizeof *n->list);
}

static int is_next(const note *was, const note *one)
{
    return !was->is_open && pthread_equal(was->thread, one->thread) &&
           was->first + was->count == one->first &&
           slice_same(was->names.id, one->names.id) &&
           slice_same(was->names.agent, one->names.agent) &&
           slice_same(was->names.user, one->names.user);
}

void write_noted(write_notes *n, sessile_id first, sessile_id count)
{
    size_t i;

    if (!n)
        return;
    pthread_mutex_lock(&n->mutex);
    for (i = n->count; i-- > 0;)
        if (n->list[i].is_open && pthread_equal(n->list[i].thread, pthread_self()))
            break;
    if (i < n->count) {
        note *one = &n->list[i];
        one->is_open = 0;
        one->first = first;
        one->count = count;
        for (size_t k = 0; count && k < i; k++)
            if (is_next(&n->list[k], one)) {
                n->list[k].count += count;
                one->count = 0;
                break;
            }
        if (!one->count)
            drop(n, i);
    }
    pthread_mutex_unlock(&n->mutex);
}

int write_notes_any(write_notes *n)
{
    int any = 0;

    if (!n || !atomic_load_explicit(&n->count, memory_order_relaxed))
        return 0;
    pthread_mutex_lock(&n->mutex);
    for (size_t i = 0; !any && i < n->count; i++)
        any = pthread_equal(n->list[i].thread, pthread_self()) && !n->list[i].is_open;
    pthread_mutex_unlock(&n->mutex);
    return any;
}

void write_notes_take(write_notes *n, write_visit visit, void *arg)
{
    if (!n || !atomic_load_explicit(&n->count, memory_order_relaxed))
        return;
    pthread_mutex_lock(&n->mutex);
    for (size_t i = 0; i < n->count;) {
        const note *one = &n->list[i];
        if (!pthread_equal(one->thread, pthread_self()) || one->is_open) {
            i++;
            continue;
        }
        if (visit)
            visit(arg, &one->names, one->first, one->first + one->count - 1);
        drop(n, i);
    }
    pthread_mutex_unlock(&n->mutex);
}

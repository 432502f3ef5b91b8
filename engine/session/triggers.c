/* triggers.c: the configured triggers: checked, and copied into one block. */
#include "session/triggers.h"

#include <string.h>

#include "base/text.h"

sessile_status triggers_check(const sessile_triggers *t, sessile_error *err)
{
    if (!t)
        return SESSILE_OK;
    if (t->share > 1000)
        return fail(err, SESSILE_INVALID,
                    "a trigger's share is %u: give parts per thousand of the window, "
                    "1 to 1000 (800 is 80 %%), or 0 for none",
                    t->share);
    if (t->event_count && !t->events)
        return fail(err, SESSILE_INVALID, "a trigger has a count of events and no names");
    for (size_t i = 0; i < t->event_count; i++) {
        const char *name = t->events[i];
        if (!name || !*name || !utf8_valid(name, strlen(name)))
            return fail(err, SESSILE_INVALID,
                        "event %zu of a trigger has no name, or one that is not UTF-8",
                        i + 1);
    }
    return SESSILE_OK;
}

/* Bytes of the copy: the struct, the pointers, the names. 0: too many. */
static size_t block_size(const sessile_triggers *t)
{
    size_t size = sizeof *t;
    if (t->event_count > (SIZE_MAX - size) / sizeof(char *))
        return 0;
    size += t->event_count * sizeof(char *);
    for (size_t i = 0; i < t->event_count; i++) {
        size_t name = strlen(t->events[i]) + 1;
        if (name > SIZE_MAX - size)
            return 0;
        size += name;
    }
    return size;
}

sessile_status triggers_copy(sessile_triggers **out, const sessile_triggers *t,
                             const allocator *a, sessile_error *err)
{
    *out = NULL;
    if (!t)
        return SESSILE_OK;
    size_t size = block_size(t);
    sessile_triggers *copy = size ? mem_alloc(a, size) : NULL;
    if (!copy)
        return fail_nomem(err);
    *copy = *t;
    const char **names = (const char **)(void *)(copy + 1);
    char *at = (char *)(names + t->event_count);
    for (size_t i = 0; i < t->event_count; i++) {
        size_t name = strlen(t->events[i]) + 1;
        memcpy(at, t->events[i], name);
        names[i] = at;
        at += name;
    }
    copy->events = names;
    *out = copy;
    return SESSILE_OK;
}

void triggers_free(sessile_triggers *t, const allocator *a)
{
    if (t)
        mem_free(a, t, block_size(t));
}

int triggers_off(const sessile_triggers *t)
{
    return t && !t->messages && !t->interval_ms && !t->share && !t->overflow &&
           !t->event_count;
}

int triggers_name(const sessile_triggers *t, sessile_slice event)
{
    for (size_t i = 0; event.size && i < t->event_count; i++)
        if (strlen(t->events[i]) == event.size &&
            memcmp(t->events[i], event.data, event.size) == 0)
            return 1;
    return 0;
}

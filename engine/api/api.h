/*
 * api.h: argument checks of the public functions.
 *
 * A public function clears the error, sets its outputs to what they are after a failure,
 * checks its arguments, and calls the floor that does the work:
 *
 *     API_MAKE(out, session);
 *     API_TEXT(name);
 *     return session_find(session, name, out, err);
 */
#ifndef API_API_H
#define API_API_H

#include <string.h>

#include "base/error.h"
#include "guard/enter.h"
#include "sessile_memory.h"

/* INVALID for a pointer that a call needs. */
static inline sessile_status api_missing(sessile_error *err, const char *function,
                                         const char *what)
{
    return fail(err, SESSILE_INVALID, "%s: %s is NULL", function, what);
}

/* 1 when a slice has a size and no data. */
static inline int api_bad(sessile_slice slice)
{
    return slice.size && !slice.data;
}

/* Each returns INVALID from the public function that uses it. `err` is its parameter. */
#define API_REFUSE_IF(bad, what)                     \
    do {                                             \
        if (bad)                                     \
            return api_missing(err, __func__, what); \
    } while (0)

/* A pointer that must not be NULL; with a count: not unless the count is 0. */
#define API_NEED(pointer)           API_REFUSE_IF(!(pointer), #pointer)
#define API_NEED_IF(count, pointer) API_REFUSE_IF((count) && !(pointer), #pointer)
/* A slice that must have data when it has a size; an array of them. */
#define API_TEXT(slice) API_REFUSE_IF(api_bad(slice), #slice ".data")
#define API_TEXTS(slices, count)                                                  \
    do {                                                                          \
        API_NEED_IF(count, slices);                                               \
        for (size_t at_ = 0; at_ < (count); at_++)                                \
            API_REFUSE_IF(api_bad((slices)[at_]), "the data of one of " #slices); \
    } while (0)

/* An output that must not be NULL: set to what it is after a failure. */
#define API_OUT(out, nothing) \
    do {                      \
        API_NEED(out);        \
        *(out) = nothing;     \
    } while (0)
#define API_ZERO(out)                  \
    do {                               \
        API_NEED(out);                 \
        memset(out, 0, sizeof *(out)); \
    } while (0)

/* The first line of a function that uses a handle; that also returns one pointer; that
 * returns an array and its count. */
#define API_USE(handle)   \
    do {                  \
        error_clear(err); \
        API_NEED(handle); \
    } while (0)
#define API_MAKE(out, handle) \
    do {                      \
        error_clear(err);     \
        API_OUT(out, NULL);   \
        API_NEED(handle);     \
    } while (0)
#define API_LIST(out, count, handle) \
    do {                             \
        error_clear(err);            \
        API_OUT(out, NULL);          \
        API_OUT(count, 0);           \
        API_NEED(handle);            \
    } while (0)

/* An output that may be NULL: the floors below always have one to fill. */
#define API_OPTIONAL(type, out, nothing) \
    type out##_unwanted;                 \
    if (!out)                            \
        out = &out##_unwanted;           \
    *out = nothing

/* Options that may be NULL: the ones that init() makes. */
#define API_OPTIONS(type, options)       \
    type options##_default;              \
    if (!options) {                      \
        type##_init(&options##_default); \
        options = &options##_default;    \
    }

/* The cores of the memories that a call is given. writes: 1 if it may write to them,
 * which wants the permission; what an agent keeps for all is left out for those who may
 * only read it. */
#define API_MEMORIES(cores, memories, given, writes)                                  \
    memory_cores cores = {.count = 0};                                                \
    do {                                                                              \
        sessile_status bad_ =                                                         \
            api_memory_cores(&cores, memories, given, writes, &call_, __func__, err); \
        if (bad_)                                                                     \
            return GUARD_LEAVE(bad_);                                                 \
    } while (0)
sessile_status api_memory_cores(memory_cores *cores, sessile_memory *const *memories,
                                size_t count, int writes, const guard_call *call,
                                const char *function, sessile_error *err);

/* Begins reading from a session: reads what others wrote, and locks its mutex. The caller
 * unlocks it; after a failure it is not locked. */
sessile_status api_read_begin(session_core *session, sessile_error *err);

/* What a public function that opens a store returns: the handle of its core, which is
 * closed when there is no memory for one. */
sessile_status api_give_store(sessile_store **out, sessile_status status,
                              store_core *core, sessile_error *err);

/* INVALID for options of a list or of a session that cannot be. */
sessile_status api_check_list(const sessile_list_options *options, sessile_error *err);
sessile_status api_check_memory_entry(const sessile_memory_write_entry *entry,
                                      sessile_error *err);
sessile_status api_check_recall(const sessile_recall_options *options,
                                sessile_error *err);
sessile_status api_check_session(const sessile_session_options *options,
                                 const char *function, sessile_error *err);

#endif

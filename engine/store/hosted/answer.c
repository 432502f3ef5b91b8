/*
 * answer.c: checks what a function of the host returned.
 */
#include "base/names.h"
#include "store/hosted/hosted.h"

sessile_status hosted_answer(const hosted *h, sessile_error *err, sessile_status status,
                             sessile_error *heard, const char *function)
{
    heard->message[sizeof heard->message - 1] = '\0';
    if (!status) {
        error_clear(err);
        return SESSILE_OK;
    }
    if ((int)status < 0 || status > SESSILE_CLOSED || status == SESSILE_NEEDS)
        return fail(err, SESSILE_IO,
                    "the store \"%s\" answered %s with %d, which is no status of a store",
                    h->name, function, (int)status);
    if (!heard->message[0])
        return fail(err, status, "the store \"%s\" answered %s with %s and said no more",
                    h->name, function, status_name(status));
    return fail(err, status, "%s", heard->message);
}

sessile_status hosted_absurd(const hosted *h, sessile_error *err, const char *what)
{
    return fail(err, SESSILE_IO,
                "the store \"%s\" cannot be right: %s. Nothing it said was believed",
                h->name, what);
}

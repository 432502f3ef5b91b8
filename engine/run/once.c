/*
 * once.c: finds the turn that an earlier call of the same name has written.
 *
 * The answer to a call may be lost. Whoever asks again gives the same `once` and the same
 * base. A turn keeps `once` in its entry, so whatever was written before is after the
 * base in the log. The entries after the base are looked through while the log is locked,
 * and an append that meets other entries is built again, so a turn of a name is written
 * once, whoever else writes. No table, no clock and no expiry is needed.
 */
#include "run/run.h"

#include <string.h>

#include "base/text.h"
#include "codec/entry.h"
#include "session/read.h"

static int is_name(sessile_slice name)
{
    for (size_t i = 0; i < name.size; i++)
        if ((unsigned char)name.data[i] < 0x20)
            return 0;
    return name.size <= RUN_ONCE_MOST && utf8_valid(name.data, name.size);
}

sessile_status run_once_check(const sessile_run_options *options, sessile_error *err)
{
    const sessile_slice name = options->once;

    if (!name.size)
        return SESSILE_OK;
    if (!is_name(name))
        return fail(err, SESSILE_INVALID,
                    "once: a name is UTF-8 of 1 to %d bytes, without control characters",
                    RUN_ONCE_MOST);
    if (!options->has_base)
        return fail(err, SESSILE_INVALID,
                    "once: the turn needs a base, after which it is looked for: give the "
                    "head that was read");
    return SESSILE_OK;
}

/* Whether a turn entry has the name; then its ids are in the run. */
static sessile_status look_at(run_core *run, session_core *s, sessile_id id,
                              const char *name, buf *text, sessile_error *err)
{
    const char *first;
    uint64_t count = 0;
    size_t size;
    entry read = {0};
    sessile_status status;

    buf_clear(text);
    status = session_text_locked(s, id, text, err);
    if (!status)
        status = entry_read(&read, text->data, text->size, err);
    if (status || !json_is(json_get(read.data, "once"), name))
        return status;
    run->turn.again = 1;
    run->result.outcome.head = s->tree.head;
    run->turn.first = run->turn.last = id;
    if (!json_uint(json_get(read.data, "count"), &count) && count &&
        json_plain(json_get(read.data, "first"), &first, &size))
        (void)id_parse(first, size, &run->turn.first); /* the fold has read it, too */
    return SESSILE_OK;
}

sessile_status run_once_find_locked(run_core *run, session_core *s,
                                    const sessile_run_options *options,
                                    sessile_error *err)
{
    char name[RUN_ONCE_MOST + 1];
    sessile_status status = SESSILE_OK;
    buf text;

    if (!options->once.size || options->base >= s->tree.node_count)
        return SESSILE_OK;
    memcpy(name, options->once.data, options->once.size);
    name[options->once.size] = 0;
    buf_init(&text, run->alloc);
    for (sessile_id id = options->base + 1;
         !status && !run->turn.again && id < s->tree.node_count; id++) {
        status = session_load_locked(s, id, err);
        if (!status && s->tree.nodes[id].type == ENTRY_TURN)
            status = look_at(run, s, id, name, &text, err);
    }
    buf_deinit(&text);
    return status;
}

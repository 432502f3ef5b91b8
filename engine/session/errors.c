/*
 * errors.c: adds the session to an error: its name, its place in the store, and what to
 * do.
 *
 * Must never read from the log: errors are also made while a log is opened or folded.
 */
#include "session/fold.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The file's folder and name, as far as there are any. */
static void place_of(const session_core *s, char *out, size_t size)
{
    session_names names = session_own_names(s);
    char folder[NAME_SIZE], name[NAME_SIZE];

    names_place(s->store, &names, folder, name);
    if (s->store->backend.table->capabilities & SESSILE_BACKEND_CUTS)
        snprintf(out, size, "agents/%s/%s.jsonl", folder, name);
    else
        snprintf(out, size, "%s/%s", folder, name);
}

sessile_status session_name_error(const session_core *s, sessile_status status,
                                  sessile_error *err)
{
    char shown[NAME_SHOWN];

    if (!err || !status || !strncmp(err->message, "session ", 8))
        return status;
    name_show((sessile_slice){s->identity.id, s->identity.id_size}, shown);
    /* of a log that did not open nothing can be salvaged */
    if ((status == SESSILE_DAMAGED || status == SESSILE_TRUNCATED) && s->identity.id &&
        s->log) {
        sessile_error what = *err;
        char command[SALVAGE_SIZE];
        session_salvage_command(s, command);
        return fail(err, status, "session %s: %s: %s", shown, what.message, command);
    }
    fail_prefix(err, "session %s", shown);
    return status;
}

/* 1 when a shell takes the word as it is. */
static int is_plain_word(const char *text, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._@:+/-";
    if (!size || size > 64 || text[0] == '-')
        return 0;
    for (size_t i = 0; i < size; i++)
        if (!text[i] || !strchr(plain, text[i]))
            return 0;
    return 1;
}

void session_salvage_command(const session_core *s, char out[SALVAGE_SIZE])
{
    const char *agent = s->store->agent;

    if (s->identity.kind || !s->identity.id ||
        !is_plain_word(s->identity.id, s->identity.id_size) ||
        !is_plain_word(s->identity.agent, s->identity.agent_size))
        snprintf(out, SALVAGE_SIZE, "sessile check --salvage");
    else if (strlen(agent) == s->identity.agent_size &&
             !memcmp(agent, s->identity.agent, s->identity.agent_size))
        snprintf(out, SALVAGE_SIZE, "sessile check %s --salvage", s->identity.id);
    else
        snprintf(out, SALVAGE_SIZE, "sessile check %s --agent %s --salvage",
                 s->identity.id, s->identity.agent);
}

sessile_status session_fail_damaged(const session_core *s, sessile_id id,
                                    sessile_error *err, const char *format, ...)
{
    char what[256], shown[NAME_SHOWN], place[2 * NAME_SIZE + 16], command[SALVAGE_SIZE];
    va_list args;

    if (!err)
        return SESSILE_DAMAGED;
    va_start(args, format);
    if (vsnprintf(what, sizeof what, format, args) < 0)
        what[0] = 0;
    va_end(args);
    if (!s->identity.id)
        return fail(err, SESSILE_DAMAGED, "entry %08" PRIx32 ": %s", id, what);
    name_show((sessile_slice){s->identity.id, s->identity.id_size}, shown);
    place_of(s, place, sizeof place);
    if (id) /* of what its header says nothing can be salvaged */
        session_salvage_command(s, command);
    else
        snprintf(command, sizeof command, "bring back a backup");
    return fail(err, SESSILE_DAMAGED,
                "session %s (%s), entry %08" PRIx32 ": %s; nothing was changed: %s",
                shown, place, id, what, command);
}

sessile_status session_fail(const session_core *s, sessile_error *err,
                            sessile_status status, const char *format, ...)
{
    char what[sizeof err->message];
    va_list args;

    va_start(args, format);
    if (vsnprintf(what, sizeof what, format, args) < 0)
        what[0] = 0;
    va_end(args);
    return session_name_error(s, fail(err, status, "%s", what), err);
}

/*
 * tree.c: walking the tree of entries, and naming the place of an error in it.
 *
 * Ids strictly descend towards the root (the fold refuses anything else), so every walk
 * ends. Before a walk its path is reached (reach.c), so that no step can fail. Must never
 * write to the fold, nor read from the log.
 */
#include "session/fold.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ errors */

/* The file's folder and name, as far as there are any. */
static void place_of(const sessile_session *s, char *out, size_t size)
{
    session_names names = {{s->identity.id, s->identity.id_size},
                           {s->identity.agent, s->identity.agent_size},
                           {s->identity.user, s->identity.user_size}};
    char folder[NAME_SIZE], name[NAME_SIZE];

    names_place(s->store, &names, folder, name);
    if (s->store->backend.table->capabilities & SESSILE_BACKEND_CUTS)
        snprintf(out, size, "agents/%s/%s.jsonl", folder, name);
    else
        snprintf(out, size, "%s/%s", folder, name);
}

sessile_status session_named(const sessile_session *s, sessile_status status,
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

void session_salvage_command(const sessile_session *s, char out[SALVAGE_SIZE])
{
    const char *agent = s->store->agent;

    if (!s->identity.id || !is_plain_word(s->identity.id, s->identity.id_size) ||
        !is_plain_word(s->identity.agent, s->identity.agent_size))
        snprintf(out, SALVAGE_SIZE, "sessile check --salvage");
    else if (strlen(agent) == s->identity.agent_size &&
             !memcmp(agent, s->identity.agent, s->identity.agent_size))
        snprintf(out, SALVAGE_SIZE, "sessile check %s --salvage", s->identity.id);
    else
        snprintf(out, SALVAGE_SIZE, "sessile check %s --agent %s --salvage",
                 s->identity.id, s->identity.agent);
}

sessile_status session_damaged(const sessile_session *s, sessile_id id,
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

/* ------------------------------------------------------------------ the tree */

unsigned node_unit(const node *n)
{
    unsigned unit = n->marks / NODE_UNIT;

    return unit < TOKEN_UNITS ? unit : TOKENS_ESTIMATE;
}

int node_is_message(const node *n)
{
    return n->type == ENTRY_MESSAGE || n->type == ENTRY_BRANCH_SUMMARY;
}

int session_is_path_entry(const sessile_session *s, sessile_id id)
{
    if (id >= s->tree.node_count)
        return 0;
    return id == 0 || entry_on_path((entry_type)s->tree.nodes[id].type) ||
           s->tree.nodes[id].type == ENTRY_TOMBSTONE;
}

/* The next entry from id, up or down, that is on a path; SESSILE_NO_ID: none, or it
 * cannot be told. */
static sessile_id next_path_entry(sessile_session *s, sessile_id id, int up)
{
    for (;;) {
        if (up ? id + 1 >= s->tree.node_count : id == 0)
            return SESSILE_NO_ID;
        id = up ? id + 1 : id - 1;
        if (session_reach_locked(s, id, NULL))
            return SESSILE_NO_ID;
        if (session_is_path_entry(s, id))
            return id;
    }
}

static sessile_status not_path_entry(sessile_session *s, sessile_id id,
                                     sessile_error *err)
{
    char shown[NAME_SHOWN], nearest[80] = "", about[40] = "", what[60];
    int there = id < s->tree.node_count;
    sessile_id from = there ? id : (sessile_id)s->tree.node_count;
    sessile_id low = next_path_entry(s, from, 0);
    sessile_id other = there ? next_path_entry(s, from, 1)
                       : low ? next_path_entry(s, low, 0)
                             : SESSILE_NO_ID;

    name_show((sessile_slice){s->identity.id, s->identity.id_size}, shown);
    if (low != SESSILE_NO_ID && other != SESSILE_NO_ID)
        snprintf(nearest, sizeof nearest,
                 ": the nearest that can are %08" PRIx32 " and %08" PRIx32, low, other);
    else if (low != SESSILE_NO_ID)
        snprintf(nearest, sizeof nearest, ": the nearest that can is %08" PRIx32, low);
    if (id == SESSILE_NO_ID)
        snprintf(what, sizeof what, "has no such entry");
    else
        snprintf(what, sizeof what, "has no entry %08" PRIx32, id);
    if (!there)
        return fail(err, SESSILE_NOTFOUND,
                    "session %s %s that a conversation can go on from%s", shown, what,
                    nearest);
    if (s->tree.nodes[id].parent < id)
        snprintf(about, sizeof about, " about %08" PRIx32, s->tree.nodes[id].parent);
    return fail(err, SESSILE_NOTFOUND,
                "entry %08" PRIx32 " of session %s is a %s%s: no conversation goes on "
                "from it%s",
                id, shown, entry_type_name((entry_type)s->tree.nodes[id].type), about,
                nearest);
}

sessile_status session_check_at(sessile_session *s, sessile_id id, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (id < s->tree.node_count)
        status = session_reach_locked(s, id, err);
    return status || session_is_path_entry(s, id) ? status : not_path_entry(s, id, err);
}

int session_descends_locked(const sessile_session *s, sessile_id id, sessile_id ancestor)
{
    if (id >= s->tree.node_count)
        return 0;
    while (id > ancestor)
        id = s->tree.nodes[id].parent;
    return id == ancestor;
}

sessile_status session_check_base_locked(sessile_session *s, sessile_id base, int strict,
                                         sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    sessile_id at = s->tree.head;
    char shown[NAME_SHOWN];

    if (strict) {
        while (!status && at != base && s->tree.nodes[at].type == ENTRY_COMPACTION) {
            at = s->tree.nodes[at].parent;
            if (at != base)
                status = session_reach_locked(s, at, err);
        }
        if (at == base)
            return SESSILE_OK;
    } else {
        status = session_reach_path_locked(s, s->tree.head, base, err);
    }
    if (status)
        return status;
    if (!strict && session_descends_locked(s, s->tree.head, base))
        return SESSILE_OK;
    name_show((sessile_slice){s->identity.id, s->identity.id_size}, shown);
    if (base >= s->tree.node_count)
        return fail(err, SESSILE_CONFLICT,
                    "session %s: the base %08" PRIx32
                    " is no entry of it; its head is %08" PRIx32
                    ": read it again, then retry",
                    shown, base, s->tree.head);
    return fail(err, SESSILE_CONFLICT,
                "session %s: the conversation moved on from %08" PRIx32 " to %08" PRIx32
                ": read it again, then retry",
                shown, base, s->tree.head);
}

/* ------------------------------------------------------------------ paths */

void id_list_deinit(id_list *l)
{
    if (l->at)
        mem_free(l->alloc, l->at, l->capacity * sizeof *l->at);
    l->at = NULL;
    l->count = l->capacity = 0;
}

int path_gather(const sessile_session *s, sessile_id high, sessile_id low, id_list *out)
{
    uint64_t lost = 0;
    sessile_id id;

    for (id = high; id > low; id = s->tree.nodes[id].parent) {
        if (s->tree.nodes[id].type == ENTRY_TOMBSTONE)
            lost++;
        if (!node_is_message(&s->tree.nodes[id]))
            continue;
        if (mem_grow(out->alloc, (void **)&out->at, &out->capacity, out->count + 1,
                     sizeof *out->at))
            return -1;
        out->at[out->count++] = id;
    }
    out->lost += lost;
    return id == low || lost ? 0 : 1;
}

sessile_status session_path_locked(sessile_session *s, sessile_id at, sessile_id **out,
                                   size_t *count, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    sessile_status status = session_check_at(s, at, err);
    size_t left;

    *out = NULL;
    *count = 0;
    if (!status)
        status = session_reach_path_locked(s, at, 0, err);
    if (status)
        return status;
    left = s->tree.nodes[at].messages;
    if (!left)
        return SESSILE_OK;
    *out = mem_alloc(a, left * sizeof **out);
    if (!*out)
        return fail_nomem(err);
    *count = left;
    for (; left && at; at = s->tree.nodes[at].parent)
        if (node_is_message(&s->tree.nodes[at]))
            (*out)[--left] = at;
    if (!left)
        return SESSILE_OK;
    /* Only an index can say so, and only one that was made to lie. */
    mem_free(a, *out, *count * sizeof **out);
    *out = NULL;
    *count = 0;
    return session_damaged(s, at, err, "its index counts messages that are not there");
}

/*
 * check_log.c: one log examined, and salvaged when it is damaged.
 *
 * A log is opened as a session is, with three differences: it is read from its first
 * byte, nothing is healed, and the check continues when the fold refuses an entry. A
 * tombstone then stands in for that entry. So every fault is named, one after the other,
 * and a salvage has something to write. Must never change a byte unless it is to salvage,
 * and then only in a log that is damaged.
 */
#include "admin/check_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int refuse(sessile_check *c, sessile_id id, buf *text)
{
    check_refused *r;

    if (mem_grow(&c->store->alloc, (void **)&c->refused, &c->refused_capacity,
                 c->refused_count + 1, sizeof *c->refused))
        return -1;
    r = &c->refused[c->refused_count++];
    *r = (check_refused){id, c->texts.size, text->size};
    buf_put(&c->texts, text->data, text->size);
    return c->texts.failed ? -1 : 0;
}

/* Folds an entry, or a tombstone where the fold refuses it. The header is not replaced.
 */
static sessile_status visit(void *arg, sessile_id id, const char *text, size_t size,
                            sessile_error *err)
{
    sessile_check *c = arg;
    log_flaw flaw = {LOG_REFUSED, id, id, 0, 0};
    sessile_status status;
    sessile_error why;
    buf stand_in;
    check_row *r;

    c->fold.s = c->s;
    if (id == 0) /* also when another log took the name, and is read from its start */
        c->refused_count = 0;
    status = fold_visit(&c->fold, id, text, size, err);
    if (status != SESSILE_DAMAGED || id == 0)
        return status;
    why = *err;
    error_clear(err);
    r = check_add(c, SESSILE_DAMAGE, SESSILE_DAMAGED);
    if (!r)
        return fail_nomem(err);
    r->f.entry = id;
    snprintf(r->what, sizeof r->what, "%s", why.message);
    session_salvage_command(c->s, r->next);
    if (!c->refused_count)
        c->first = why;
    buf_init(&stand_in, &c->store->alloc);
    status = fold_stand_in(&c->fold, &flaw, id, &stand_in, err);
    if (!status)
        status = fold_visit(&c->fold, id, stand_in.data, stand_in.size, err);
    if (!status && refuse(c, id, &stand_in))
        status = fail_nomem(err);
    buf_deinit(&stand_in);
    return status;
}

/* What is known of lost entries: whether the conversation goes on from one of them. */
static void known_of(const sessile_check *c, const log_flaw *f, char *out, size_t size)
{
    const sessile_session *s = c->s;

    out[0] = 0;
    for (size_t id = (size_t)f->last + 1; id < s->tree.node_count; id++)
        if (s->tree.nodes[id].parent >= f->first && s->tree.nodes[id].parent <= f->last &&
            s->tree.nodes[id].type != ENTRY_TOMBSTONE) {
            snprintf(out, size, "; an entry of type %s followed %08" PRIx32,
                     entry_type_name((entry_type)s->tree.nodes[id].type),
                     s->tree.nodes[id].parent);
            return;
        }
}

static void tell_flaw(sessile_check *c, const log_flaw *f)
{
    check_row *r = check_add(c, f->kind == LOG_UNENDED ? SESSILE_WARNING : SESSILE_DAMAGE,
                             log_damage(c->s->log, NULL));
    char known[96];

    if (!r)
        return;
    r->f.entry = f->first;
    r->f.offset = f->offset;
    r->f.bytes = f->bytes;
    check_suggest_salvage(c, r);
    switch (f->kind) {
    case LOG_LOST:
        known_of(c, f, known, sizeof known);
        if (f->first == f->last)
            snprintf(r->what, sizeof r->what,
                     "entry %08" PRIx32 " is lost: of the %" PRIu64
                     " bytes at byte %" PRIu64 " nothing opens%s",
                     f->first, f->bytes, f->offset, known);
        else
            snprintf(r->what, sizeof r->what,
                     "entries %08" PRIx32 " to %08" PRIx32 " are lost: of the %" PRIu64
                     " bytes at byte %" PRIu64 " nothing opens%s",
                     f->first, f->last, f->bytes, f->offset, known);
        break;
    case LOG_REFUSED:
        snprintf(r->what, sizeof r->what,
                 "entry %08" PRIx32 " at byte %" PRIu64
                 " opens, but has no place in the session",
                 f->first, f->offset);
        break;
    case LOG_ORDER:
        snprintf(r->what, sizeof r->what,
                 "entry %08" PRIx32 " at byte %" PRIu64
                 " does not follow the line before it; it can be read",
                 f->first, f->offset);
        break;
    case LOG_BYTES:
        snprintf(r->what, sizeof r->what,
                 "%" PRIu64 " bytes at byte %" PRIu64
                 " are no line of this log, or a line that is there already",
                 f->bytes, f->offset);
        break;
    case LOG_UNENDED:
        snprintf(
            r->what, sizeof r->what,
            "%" PRIu64 " bytes from byte %" PRIu64
            " on belong to a write that has no end: it was never made, or its end is "
            "what was damaged",
            f->bytes, f->offset);
    }
}

static void tell_damage(sessile_check *c)
{
    const log_flaw *flaws;
    uint64_t left;
    size_t count = log_flaws(c->s->log, &flaws, &left);
    sessile_error why;
    check_row *r;

    if (!log_damage(c->s->log, &why) || (c->refused_count && !count))
        return;
    r = check_add(c, SESSILE_DAMAGE, why.code);
    if (r) {
        snprintf(r->what, sizeof r->what, "%s", why.message);
        check_suggest_salvage(c, r);
        if (count)
            r->f.offset = flaws[0].offset;
    }
    for (size_t i = 0; i < count && !c->failed; i++)
        tell_flaw(c, &flaws[i]);
    if (left && (r = check_add(c, SESSILE_DAMAGE, why.code)))
        snprintf(r->what, sizeof r->what, "and %" PRIu64 " more like these", left);
}

static void tell_tail(sessile_check *c, const log_tail *tail)
{
    check_row *r;

    if (!tail->bytes)
        return;
    r = check_add(c, tail->busy || tail->unlocked ? SESSILE_NOTE : SESSILE_WARNING,
                  SESSILE_OK);
    if (!r)
        return;
    r->f.offset = tail->offset;
    r->f.bytes = tail->bytes;
    if (tail->busy || tail->unlocked)
        snprintf(r->what, sizeof r->what,
                 "%s: %" PRIu64 " bytes from byte %" PRIu64
                 " on may be a write in progress",
                 tail->busy ? "somebody is writing"
                            : "its folder refuses locks, so that nobody can tell whether "
                              "somebody is writing",
                 tail->bytes, tail->offset);
    else
        snprintf(r->what, sizeof r->what,
                 "the last write was cut off: %" PRIu64 " bytes from byte %" PRIu64
                 " on were never acknowledged as safe, or their damage is the last thing "
                 "in the log; opening the session sets them aside",
                 tail->bytes, tail->offset);
}

static int is_wrong(const log_index_about *ix)
{
    return ix->strange || ix->torn || ix->wrong;
}

/* It is only a cache: whatever is wrong with it, the entries are in the log. */
static void tell_index(sessile_check *c, const log_index_about *ix)
{
    static const char again[] =
        "it is only a cache: the log has every entry; it is made anew when a session "
        "meets it, or by a salvage";
    check_row *r;

    if (!is_wrong(ix) || !(r = check_add(c, SESSILE_WARNING, SESSILE_OK)))
        return;
    check_suggest_salvage(c, r);
    r->f.bytes = ix->bytes;
    if (ix->strange)
        snprintf(r->what, sizeof r->what,
                 "nothing opens in the last part of its index of %" PRIu64
                 " bytes: it is another log's, or was spoiled; %s",
                 ix->bytes, again);
    else if (ix->wrong) {
        r->f.entry = (sessile_id)(ix->first * LOG_BLOCK);
        snprintf(r->what, sizeof r->what,
                 "of %" PRIu64 " blocks of its index %" PRIu64
                 " are spoiled or say other than the log, the first of them that of the "
                 "entries from %08" PRIx32 " on; %s",
                 ix->blocks, ix->wrong, r->f.entry, again);
    } else
        snprintf(r->what, sizeof r->what,
                 "the last %" PRIu64
                 " bytes of its index are no block of it: a write was "
                 "cut off; %s",
                 ix->torn, again);
}

static void drop_index(sessile_check *c)
{
    const sessile_store *st = c->store;
    sessile_error err;
    check_row *r;

    error_clear(&err);
    if (log_index_drop(c->s->log, st->config.timeout_ms, &err))
        check_add_error(c, &err);
    else if ((r = check_add(c, SESSILE_NOTE, SESSILE_OK)))
        snprintf(r->what, sizeof r->what,
                 "its index was emptied: the next session that is opened makes it anew");
}

static void tell_names(sessile_check *c, const check_place *p)
{
    sessile_session *s = c->s;
    session_names names = {{s->identity.id, s->identity.id_size},
                           {s->identity.agent, s->identity.agent_size},
                           {s->identity.user, s->identity.user_size}};
    char folder[NAME_SIZE], name[NAME_SIZE], own[FILE_SIZE];
    check_row *r;

    names_place(c->store, &names, folder, name);
    if (!strcmp(folder, p->folder) && !strcmp(name, p->name))
        return;
    check_file_name(c, folder, name, own);
    r = check_add(c, SESSILE_DAMAGE, SESSILE_DAMAGED);
    if (!r)
        return;
    r->f.entry = 0;
    snprintf(r->what, sizeof r->what,
             "its header says that it belongs at %s: it was moved or replaced; move it "
             "there, if nothing is there",
             own);
}

/* The lists of compactions: what they name is there. One that cannot be read is refused
 * like an entry that cannot be folded. */
static sessile_status look_at_lists(sessile_check *c, sessile_error *err)
{
    sessile_session *s = c->s;
    sessile_status status = SESSILE_OK;
    context list;

    context_init(&list, &c->store->alloc);
    for (sessile_id id = 1; !status && id < s->tree.node_count; id++) {
        log_flaw flaw = {LOG_REFUSED, id, id, 0, 0};
        sessile_id upto;
        buf text;
        check_row *r;

        if (!(s->tree.nodes[id].marks & NODE_HAS_CONTEXT))
            continue;
        context_clear(&list);
        status = compaction_list(s, id, &list, &upto, err);
        if (status != SESSILE_DAMAGED)
            continue;
        r = check_add(c, SESSILE_DAMAGE, SESSILE_DAMAGED);
        if (!r) {
            status = fail_nomem(err);
            break;
        }
        r->f.entry = id;
        snprintf(r->what, sizeof r->what, "%s", err->message);
        check_suggest_salvage(c, r);
        c->first = *err;
        status = SESSILE_OK;
        error_clear(err);
        buf_init(&text, &c->store->alloc);
        status = fold_stand_in(&c->fold, &flaw, id, &text, err);
        if (!status)
            status = log_hurt(s->log, &c->first, err);
        if (!status && !log_is_covered(s->log, id))
            status = log_cover(s->log, id, text.data, text.size, err);
        buf_deinit(&text);
    }
    context_deinit(&list);
    return status;
}

static sessile_status cover_refused(sessile_check *c, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (c->refused_count)
        status = log_hurt(c->s->log, &c->first, err);
    for (size_t i = 0; !status && i < c->refused_count; i++)
        if (!log_is_covered(c->s->log, c->refused[i].id))
            status = log_cover(c->s->log, c->refused[i].id,
                               c->texts.data + c->refused[i].at, c->refused[i].size, err);
    return status;
}

static int salvage(sessile_check *c, const check_place *p, const log_index_about *ix)
{
    sessile_session *s = c->s;
    uint64_t lost = log_lost(s->log), count = log_count(s->log);
    char kept[FILE_SIZE];
    sessile_error err;
    check_row *r;

    if (!log_damage(s->log, NULL)) {
        if (is_wrong(ix))
            drop_index(c);
        else if (!c->all && (r = check_add(c, SESSILE_NOTE, SESSILE_OK)))
            snprintf(
                r->what, sizeof r->what,
                "it is not damaged: there is nothing to salvage, nothing was changed");
        return 0;
    }
    error_clear(&err);
    if (count > 1 && lost >= count - 1)
        fail(&err, SESSILE_DAMAGED,
             "nothing but its header opens: the header may be that of another log. "
             "Nothing was changed: bring back a backup");
    /* what is wanted to tell of it is had before it is done */
    r = check_add(c, SESSILE_NOTE, SESSILE_OK);
    if (!r || check_reserve(c))
        return 0;
    if (!err.code)
        (void)log_rewrite(s->log, c->store->keys, p->folder, p->name, kept, sizeof kept,
                          &err);
    if (err.code) {
        c->row_count--;
        check_add_error(c, &err);
        return 0;
    }
    snprintf(r->what, sizeof r->what,
             "salvaged: %" PRIu64 " entries are what and where they were, %" PRIu64
             " are tombstones; the old bytes are kept as %s%s/%s",
             count - lost, lost, check_is_of_files(c) ? "agents/" : "", p->folder, kept);
    return 1;
}

sessile_status check_one_log(sessile_check *c, const check_place *p, sessile_checked *out,
                             sessile_error *err)
{
    sessile_session *made = NULL;
    sessile_error why;
    sessile_status status;
    log_index_about ix;
    log_tail tail;

    memset(&ix, 0, sizeof ix);
    check_file_name(c, p->folder, p->name, c->file);
    error_clear(&why);
    status = session_inspect(&made, c->store, p->folder, p->name, visit, c, &c->s, &tail,
                             &why);
    c->s = made;
    /* before anything stands in for what is lost; where something does already, the index
     * has no say */
    if (!status && !c->refused_count)
        status = log_index_check(c->s->log, c->store->config.timeout_ms, &ix, &why);
    if (!status)
        status = cover_refused(c, &why);
    if (!status)
        status = session_read_past(c->s, &why);
    if (!status) {
        tell_damage(c);
        tell_tail(c, &tail);
        tell_index(c, &ix);
        tell_names(c, p);
        status = look_at_lists(c, &why);
    }
    if (!status) /* a list may have been the first thing that is wrong */
        status = session_read_past(c->s, &why);
    if (status == SESSILE_NOMEM || c->failed)
        return fail_nomem(err);
    if (status == SESSILE_NOTFOUND && c->all)
        return SESSILE_OK; /* deleted meanwhile */
    if (status) {
        check_add_error(c, &why);
    } else {
        out->entries = log_count(c->s->log);
        out->bytes = log_bytes(c->s->log);
        out->lost = log_lost(c->s->log);
        if (c->salvage)
            out->salvaged = salvage(c, p, &ix);
    }
    if (c->s) {
        out->id = (sessile_slice){c->s->identity.id, c->s->identity.id_size};
        out->agent = (sessile_slice){c->s->identity.agent, c->s->identity.agent_size};
    }
    return c->failed ? fail_nomem(err) : SESSILE_OK;
}

/*
 * check_log.c: checks one log, and salvages it if it is damaged.
 *
 * The log is opened as a session is, with three differences: it is read from its first
 * byte, nothing is repaired, and when the fold refuses an entry, the check folds a
 * tombstone in its place and continues. So a check finds all faults, and a salvage knows
 * what to write. Must never change a byte except in a salvage of a damaged log.
 */
#include "admin/check_internal.h"

#include "store/wait.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int refuse(check_core *c, sessile_id id, buf *text)
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

/* What is known of lost entries: whether a later entry follows one of them. */
static void known_of(const check_core *c, const log_flaw *f, char *out, size_t size)
{
    const session_core *s = c->s;

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

static void tell_flaw(check_core *c, const log_flaw *f)
{
    sessile_status status = log_damage(c->s->log, NULL);
    char known[96], which[48];
    check_row *r = NULL;

    switch (f->kind) {
    case LOG_LOST:
        known_of(c, f, known, sizeof known);
        if (f->first == f->last)
            snprintf(which, sizeof which, "entry %08" PRIx32 " is", f->first);
        else
            snprintf(which, sizeof which, "entries %08" PRIx32 " to %08" PRIx32 " are",
                     f->first, f->last);
        r = check_add(c, SESSILE_DAMAGE, status,
                      "%s lost: the %" PRIu64 " bytes at byte %" PRIu64
                      " cannot be opened%s",
                      which, f->bytes, f->offset, known);
        break;
    case LOG_REFUSED:
        r = check_add(c, SESSILE_DAMAGE, status,
                      "entry %08" PRIx32 " at byte %" PRIu64
                      " can be opened, but does not fit into the session",
                      f->first, f->offset);
        break;
    case LOG_ORDER:
        r = check_add(c, SESSILE_DAMAGE, status,
                      "entry %08" PRIx32 " at byte %" PRIu64
                      " does not follow the line before it; it can be read",
                      f->first, f->offset);
        break;
    case LOG_BYTES:
        r = check_add(c, SESSILE_DAMAGE, status,
                      "%" PRIu64 " bytes at byte %" PRIu64
                      " are not a line of this log, or repeat an earlier line",
                      f->bytes, f->offset);
        break;
    case LOG_UNENDED:
        r = check_add(c, SESSILE_WARNING, status,
                      "%" PRIu64 " bytes from byte %" PRIu64
                      " on belong to a commit without an end: it was never finished, or "
                      "its end is damaged",
                      f->bytes, f->offset);
    }
    if (!r)
        return;
    r->f.entry = f->first;
    r->f.offset = f->offset;
    r->f.bytes = f->bytes;
    check_suggest_salvage(c, r);
}

static void tell_damage(check_core *c)
{
    const log_flaw *flaws;
    uint64_t left;
    size_t count = log_flaws(c->s->log, &flaws, &left);
    sessile_error why;
    check_row *r;

    if (!log_damage(c->s->log, &why) || (c->refused_count && !count))
        return;
    r = check_add(c, SESSILE_DAMAGE, why.code, "%s", why.message);
    if (r) {
        check_suggest_salvage(c, r);
        if (count)
            r->f.offset = flaws[0].offset;
    }
    for (size_t i = 0; i < count && !c->failed; i++)
        tell_flaw(c, &flaws[i]);
    if (left)
        check_add(c, SESSILE_DAMAGE, why.code, "and %" PRIu64 " more like these", left);
}

static void tell_tail(check_core *c, const log_tail *tail)
{
    check_row *r;

    if (!tail->bytes)
        return;
    if (tail->busy || tail->unlocked)
        r = check_add(c, SESSILE_NOTE, SESSILE_OK,
                      "%s: %" PRIu64 " bytes from byte %" PRIu64
                      " on may be a write in progress",
                      tail->busy ? "somebody is writing"
                                 : "its folder refuses locks, so it is unknown whether "
                                   "somebody is writing",
                      tail->bytes, tail->offset);
    else
        r = check_add(c, SESSILE_WARNING, SESSILE_OK,
                      "the last write was cut off: %" PRIu64 " bytes from byte %" PRIu64
                      " on were never acknowledged; opening the session sets them aside",
                      tail->bytes, tail->offset);
    if (r) {
        r->f.offset = tail->offset;
        r->f.bytes = tail->bytes;
    }
}

static int is_wrong(const log_index_about *ix)
{
    return ix->strange || ix->torn || ix->wrong;
}

/* It is only a cache: whatever is wrong with it, the entries are in the log. */
static void tell_index(check_core *c, const log_index_about *ix)
{
    static const char again[] =
        "it is only a cache: the log has every entry; it is rebuilt when a session is "
        "opened, or by a salvage";
    sessile_id first = (sessile_id)(ix->first * LOG_BLOCK);
    check_row *r;

    if (!is_wrong(ix))
        return;
    if (ix->strange)
        r = check_add(c, SESSILE_WARNING, SESSILE_OK,
                      "nothing opens in the last part of its index of %" PRIu64
                      " bytes: it is damaged, or belongs to another log; %s",
                      ix->bytes, again);
    else if (ix->wrong)
        r = check_add(c, SESSILE_WARNING, SESSILE_OK,
                      "%" PRIu64 " of the %" PRIu64
                      " blocks of its index are damaged or contradict the log, the first "
                      "of them at entry %08" PRIx32 "; %s",
                      ix->wrong, ix->blocks, first, again);
    else
        r = check_add(c, SESSILE_WARNING, SESSILE_OK,
                      "the last %" PRIu64
                      " bytes of its index are not a block: a write was cut off; %s",
                      ix->torn, again);
    if (!r)
        return;
    check_suggest_salvage(c, r);
    r->f.bytes = ix->bytes;
    if (ix->wrong && !ix->strange)
        r->f.entry = first;
}

static void drop_index(check_core *c)
{
    sessile_error err;

    error_clear(&err);
    if (log_index_drop(c->s->log, c->store->config.timeout_ms, &err))
        check_add_error(c, &err);
    else
        check_add(c, SESSILE_NOTE, SESSILE_OK,
                  "its index was emptied: the next session that is opened rebuilds it");
}

/* Where a log whose name is damaged is found. */
static void where_is(const check_core *c, const check_place *p, char out[96])
{
    uint64_t number;

    out[0] = 0;
    if (store_is_misnamed(p->name, &number) || store_is_misnamed(p->folder, &number))
        snprintf(out, 96,
                 check_is_of_files(c) ? " (inode %" PRIu64 ")"
                                      : " (row %" PRIu64 " of the table sessions)",
                 number);
}

/* Compares the name of the log with its header. 1: it is another one; own: the right
 * place. */
static int tell_names(check_core *c, const check_place *p, check_place *own)
{
    session_core *s = c->s;
    session_names names = session_own_names(s);
    char file[FILE_SIZE], where[96];
    check_row *r;

    names_place(c->store, &names, own->folder, own->name);
    if (!strcmp(own->folder, p->folder) && !strcmp(own->name, p->name))
        return 0;
    check_file_name(c, own->folder, own->name, file);
    where_is(c, p, where);
    r = check_add(
        c, SESSILE_DAMAGE, SESSILE_DAMAGED,
        "its header says that it belongs at %s: its name was damaged, or it was "
        "moved%s",
        file, where);
    if (!r)
        return 1;
    r->f.entry = 0;
    snprintf(r->next, sizeof r->next, "sessile check --salvage");
    return 1;
}

/* Its header, which was authenticated, has the right name. */
static int salvage_name(check_core *c, const check_place *p, const check_place *own)
{
    char file[FILE_SIZE];
    sessile_error err;
    check_row *r;

    error_clear(&err);
    check_file_name(c, own->folder, own->name, file);
    /* memory for the report is allocated before anything is done */
    r = check_add(c, SESSILE_NOTE, SESSILE_OK, "it has its name again: %s%s", file,
                  log_damage(c->s->log, NULL) ? "; salvage it once more for the rest"
                                              : "");
    if (!r || check_reserve(c))
        return 0;
    if (!log_rename(&c->store->backend, p->folder, p->name, own->folder, own->name,
                    c->store->config.timeout_ms, &err))
        return 1;
    c->row_count--;
    if (err.code == SESSILE_EXISTS)
        check_add(c, SESSILE_DAMAGE, err.code,
                  "another log is at %s, so this one was left where it is: export it, or "
                  "remove one of the two",
                  file);
    else
        check_add_error(c, &err);
    return 0;
}

/* Reports an entry that the session cannot contain, and writes the tombstone for it. */
static sessile_status report_refused(check_core *c, sessile_id id, buf *tombstone,
                                     sessile_error *err)
{
    log_flaw flaw = {LOG_REFUSED, id, id, 0, 0};
    check_row *r = check_add(c, SESSILE_DAMAGE, SESSILE_DAMAGED, "%s", err->message);

    if (!r)
        return fail_nomem(err);
    r->f.entry = id;
    session_salvage_command(c->s, r->next);
    error_clear(err);
    return fold_put_tombstone(&c->fold, &flaw, id, tombstone, err);
}

/* A memory's log has another index than a session's. */
static sessile_status visit_memory(check_core *c, sessile_id id, const char *text,
                                   size_t size, sessile_error *err)
{
    sessile_status status;

    if (id == 0) {
        memory_fold_deinit(&c->memory);
        memory_fold_index(&c->memory, NULL);
        c->memory_failed = 0;
    }
    if (c->s->identity.kind != NAMES_MEMORY || c->memory_failed)
        return SESSILE_OK;
    status = memory_fold_visit(&c->memory, id, text, size, NULL);
    c->memory_failed = status != SESSILE_OK;
    return status == SESSILE_NOMEM ? fail_nomem(err) : SESSILE_OK;
}

static sessile_status check_index(check_core *c, log_index_about *ix, sessile_error *err)
{
    if (c->s->identity.kind == NAMES_MEMORY && c->memory_failed)
        return SESSILE_OK;
    if (c->s->identity.kind == NAMES_MEMORY)
        log_set_index_callbacks(c->s->log, memory_index_callbacks(&c->memory, 1));
    return log_index_check(c->s->log, c->store->config.timeout_ms, ix, err);
}

/* Folds an entry, or a tombstone where the fold refuses it. The header is not replaced.
 */
static sessile_status visit(void *arg, sessile_id id, const char *text, size_t size,
                            sessile_error *err)
{
    check_core *c = arg;
    sessile_status status;
    buf tombstone;

    c->fold.s = c->s;
    if (id == 0) /* also when another log took the name, and is read from its start */
        c->refused_count = 0;
    status = fold_visit(&c->fold, id, text, size, err);
    if (!status)
        return visit_memory(c, id, text, size, err);
    if (status != SESSILE_DAMAGED || id == 0)
        return status;
    if (!c->refused_count)
        c->first = *err;
    buf_init(&tombstone, &c->store->alloc);
    status = report_refused(c, id, &tombstone, err);
    if (!status)
        status = fold_visit(&c->fold, id, tombstone.data, tombstone.size, err);
    if (!status && refuse(c, id, &tombstone))
        status = fail_nomem(err);
    buf_deinit(&tombstone);
    return status;
}

/* Puts a tombstone in the place of an entry, unless one is there. */
static sessile_status cover(check_core *c, sessile_id id, const char *text, size_t size,
                            sessile_error *err)
{
    sessile_status status = log_set_damage(c->s->log, &c->first, err);

    if (status || log_has_stand_in(c->s->log, id))
        return status;
    return log_add_stand_in(c->s->log, id, text, size, err);
}

/* The lists of compactions: what they name is there. One that cannot be read is refused
 * like an entry that cannot be folded. */
static sessile_status look_at_lists(check_core *c, sessile_error *err)
{
    session_core *s = c->s;
    sessile_status status = SESSILE_OK;
    context list;

    context_init(&list, &c->store->alloc);
    for (sessile_id id = 1; !status && id < s->tree.node_count; id++) {
        sessile_id upto;
        buf tombstone;

        if (!(s->tree.nodes[id].marks & NODE_HAS_CONTEXT))
            continue;
        context_clear(&list);
        status = compaction_list(s, id, &list, &upto, err);
        if (status != SESSILE_DAMAGED)
            continue;
        c->first = *err;
        buf_init(&tombstone, &c->store->alloc);
        status = report_refused(c, id, &tombstone, err);
        if (!status)
            status = cover(c, id, tombstone.data, tombstone.size, err);
        buf_deinit(&tombstone);
    }
    context_deinit(&list);
    return status;
}

static sessile_status cover_refused(check_core *c, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    for (size_t i = 0; !status && i < c->refused_count; i++) {
        const check_refused *r = &c->refused[i];
        status = cover(c, r->id, c->texts.data + r->at, r->size, err);
    }
    return status;
}

static int salvage(check_core *c, const check_place *p, const log_index_about *ix)
{
    session_core *s = c->s;
    uint64_t lost = log_lost(s->log), count = log_count(s->log);
    char kept[FILE_SIZE];
    sessile_error err;
    check_row *r;

    if (!log_damage(s->log, NULL)) {
        if (is_wrong(ix))
            drop_index(c);
        else if (!c->all)
            check_add(
                c, SESSILE_NOTE, SESSILE_OK,
                "it is not damaged: there is nothing to salvage, nothing was changed");
        return 0;
    }
    error_clear(&err);
    if (count > 1 && lost >= count - 1)
        fail(&err, SESSILE_DAMAGED,
             "only its header can be opened, which may be that of another log. Nothing "
             "was changed: bring back a backup");
    /* memory for the report is allocated before anything is done */
    r = check_add(c, SESSILE_NOTE, SESSILE_OK, "%s", "salvaged");
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
             "salvaged: %" PRIu64 " entries are unchanged, %" PRIu64
             " are tombstones; the old bytes are kept as %s%s/%s",
             count - lost, lost, check_is_of_files(c) ? "agents/" : "", p->folder, kept);
    return 1;
}

sessile_status check_one_log(check_core *c, const check_place *p, sessile_checked *out,
                             sessile_error *err)
{
    session_core *made = NULL;
    sessile_error why;
    sessile_status status;
    log_index_about ix;
    log_tail tail;
    check_place own;
    int misnamed = 0;

    memset(&ix, 0, sizeof ix);
    check_file_name(c, p->folder, p->name, c->file);
    error_clear(&why);
    status = session_inspect(&made, c->store, p->folder, p->name, visit, c, &c->s, &tail,
                             &why);
    c->s = made;
    /* before anything stands in for what is lost; where something does already, the index
     * has no say */
    if (!status && !c->refused_count)
        status = check_index(c, &ix, &why);
    if (!status)
        status = cover_refused(c, &why);
    if (!status)
        status = session_read_damaged(c->s, &why);
    if (!status) {
        tell_damage(c);
        tell_tail(c, &tail);
        tell_index(c, &ix);
        misnamed = tell_names(c, p, &own);
        status = look_at_lists(c, &why);
    }
    if (!status) /* a list may have been the first thing that is wrong */
        status = session_read_damaged(c->s, &why);
    if (status == SESSILE_NOMEM || c->failed)
        return fail_nomem(err);
    if (status == SESSILE_NOTFOUND) /* deleted meanwhile */
        return c->all ? SESSILE_OK
                      : fail(err, status,
                             "%s was removed before it was read: list the "
                             "sessions",
                             c->file);
    if (status) {
        check_add_error(c, &why);
    } else {
        out->entries = log_count(c->s->log);
        out->bytes = log_bytes(c->s->log);
        out->lost = log_lost(c->s->log);
        if (c->salvage)
            out->salvaged = misnamed ? salvage_name(c, p, &own) : salvage(c, p, &ix);
    }
    if (c->s) {
        out->id = (sessile_slice){c->s->identity.id, c->s->identity.id_size};
        out->agent = (sessile_slice){c->s->identity.agent, c->s->identity.agent_size};
    }
    return c->failed ? fail_nomem(err) : SESSILE_OK;
}

/*
 * check.c: a look at everything a store has, and the salvage of what is damaged.
 *
 * Owns the walk over a store's logs and what is said about each. Must never change a byte
 * unless it is to salvage, and then only a log that is damaged; must never let what is
 * wrong with one log keep it from the others.
 *
 * A log is opened as a session is, but for three things: it is read from its first byte,
 * nothing is healed, and an entry that the fold refuses is no reason to stop: a tombstone
 * stands in for it, so that what is wrong is named, one thing after the other, and a
 * salvage has something to write.
 */
#include "admin/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "session/fold.h"
#include "session/compaction.h"

#define WHAT_SIZE 640
#define FILE_SIZE (2 * NAME_SIZE + 64)

typedef struct row {
    sessile_finding f;
    char what[WHAT_SIZE], next[SALVAGE_SIZE], file[FILE_SIZE];
} row;

typedef struct place {
    char folder[NAME_SIZE], name[NAME_SIZE];
} place;

/* An entry that the fold refused, and what stands in for it. */
typedef struct refused {
    sessile_id id;
    size_t at, size; /* of texts */
} refused;

struct sessile_check {
    sessile_store *store;
    int salvage, all;
    place *places;
    size_t count, capacity, next;
    /* of the step */
    sessile_session *s;
    fold fold;
    refused *refused;
    size_t refused_count, refused_capacity;
    buf texts;
    sessile_error first; /* what was refused first */
    row *rows;
    size_t row_count, row_capacity;
    sessile_finding *findings;
    size_t finding_capacity;
    char file[FILE_SIZE];
    sessile_status failed; /* of a visit */
};

/* ------------------------------------------------------------------ findings */

static row *add(sessile_check *c, sessile_severity severity, sessile_status status)
{
    row *r;

    if (mem_grow(&c->store->alloc, (void **)&c->rows, &c->row_capacity, c->row_count + 1,
                 sizeof *c->rows)) {
        c->failed = SESSILE_NOMEM;
        return NULL;
    }
    r = &c->rows[c->row_count++];
    memset(r, 0, sizeof *r);
    r->f.severity = severity;
    r->f.code = status;
    r->f.entry = SESSILE_NO_ID;
    snprintf(r->file, sizeof r->file, "%s", c->file);
    return r;
}

static void tell_error(sessile_check *c, const sessile_error *err)
{
    /* A session whose user was forgotten is what it was meant to be. */
    int forgotten = err->code == SESSILE_SEALED &&
                    strstr(err->message, "of this user was forgotten:");
    row *r = add(c,
                 forgotten                   ? SESSILE_NOTE
                 : err->code == SESSILE_BUSY ? SESSILE_WARNING
                                             : SESSILE_DAMAGE,
                 err->code);

    if (r)
        snprintf(r->what, sizeof r->what, "%s", err->message);
}

static void what_to_type(sessile_check *c, row *r)
{
    if (c->s && c->s->log)
        session_salvage_command(c->s, r->next);
}

/* 1: its logs are files, which can be torn; a database's are rows. */
static int is_of_files(const sessile_check *c)
{
    return (c->store->backend.table->capabilities & SESSILE_BACKEND_CUTS) != 0;
}

static void file_name(const sessile_check *c, const char *folder, const char *name,
                      char out[FILE_SIZE])
{
    int files = is_of_files(c);

    snprintf(out, FILE_SIZE, "%s%s/%s%s", files ? "agents/" : "", folder, name,
             files ? ".jsonl" : "");
}

/* ------------------------------------------------------------------ one log */

static int refuse(sessile_check *c, sessile_id id, buf *text)
{
    refused *r;

    if (mem_grow(&c->store->alloc, (void **)&c->refused, &c->refused_capacity,
                 c->refused_count + 1, sizeof *c->refused))
        return -1;
    r = &c->refused[c->refused_count++];
    *r = (refused){id, c->texts.size, text->size};
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
    row *r;

    c->fold.s = c->s;
    if (id == 0) /* also when another log took the name, and is read from its start */
        c->refused_count = 0;
    status = fold_visit(&c->fold, id, text, size, err);
    if (status != SESSILE_DAMAGED || id == 0)
        return status;
    why = *err;
    error_clear(err);
    r = add(c, SESSILE_DAMAGE, SESSILE_DAMAGED);
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
    row *r = add(c, f->kind == LOG_UNENDED ? SESSILE_WARNING : SESSILE_DAMAGE,
                 log_damage(c->s->log, NULL));
    char known[96];

    if (!r)
        return;
    r->f.entry = f->first;
    r->f.offset = f->offset;
    r->f.bytes = f->bytes;
    what_to_type(c, r);
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
    row *r;

    if (!log_damage(c->s->log, &why) || (c->refused_count && !count))
        return;
    r = add(c, SESSILE_DAMAGE, why.code);
    if (r) {
        snprintf(r->what, sizeof r->what, "%s", why.message);
        what_to_type(c, r);
        if (count)
            r->f.offset = flaws[0].offset;
    }
    for (size_t i = 0; i < count && !c->failed; i++)
        tell_flaw(c, &flaws[i]);
    if (left && (r = add(c, SESSILE_DAMAGE, why.code)))
        snprintf(r->what, sizeof r->what, "and %" PRIu64 " more like these", left);
}

static void tell_tail(sessile_check *c, const log_tail *tail)
{
    row *r;

    if (!tail->bytes)
        return;
    r = add(c, tail->busy || tail->unlocked ? SESSILE_NOTE : SESSILE_WARNING, SESSILE_OK);
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
    row *r;

    if (!is_wrong(ix) || !(r = add(c, SESSILE_WARNING, SESSILE_OK)))
        return;
    what_to_type(c, r);
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
    row *r;

    error_clear(&err);
    if (log_index_drop(c->s->log, st->timeout_ms, &err))
        tell_error(c, &err);
    else if ((r = add(c, SESSILE_NOTE, SESSILE_OK)))
        snprintf(r->what, sizeof r->what,
                 "its index was emptied: the next session that is opened makes it anew");
}

static void tell_names(sessile_check *c, const place *p)
{
    sessile_session *s = c->s;
    session_names names = {{s->identity.id, s->identity.id_size},
                           {s->identity.agent, s->identity.agent_size},
                           {s->identity.user, s->identity.user_size}};
    char folder[NAME_SIZE], name[NAME_SIZE], own[FILE_SIZE];
    row *r;

    names_place(c->store, &names, folder, name);
    if (!strcmp(folder, p->folder) && !strcmp(name, p->name))
        return;
    file_name(c, folder, name, own);
    r = add(c, SESSILE_DAMAGE, SESSILE_DAMAGED);
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
        row *r;

        if (!(s->tree.nodes[id].marks & NODE_HAS_CONTEXT))
            continue;
        context_clear(&list);
        status = compaction_list(s, id, &list, &upto, err);
        if (status != SESSILE_DAMAGED)
            continue;
        r = add(c, SESSILE_DAMAGE, SESSILE_DAMAGED);
        if (!r) {
            status = fail_nomem(err);
            break;
        }
        r->f.entry = id;
        snprintf(r->what, sizeof r->what, "%s", err->message);
        what_to_type(c, r);
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

/* Room for all rows and one more. */
static int reserve_findings(sessile_check *c)
{
    if (!mem_grow(&c->store->alloc, (void **)&c->findings, &c->finding_capacity,
                  c->row_count + 1, sizeof *c->findings))
        return 0;
    c->failed = SESSILE_NOMEM;
    return -1;
}

static int salvage(sessile_check *c, const place *p, const log_index_about *ix)
{
    sessile_session *s = c->s;
    uint64_t lost = log_lost(s->log), count = log_count(s->log);
    char kept[FILE_SIZE];
    sessile_error err;
    row *r;

    if (!log_damage(s->log, NULL)) {
        if (is_wrong(ix))
            drop_index(c);
        else if (!c->all && (r = add(c, SESSILE_NOTE, SESSILE_OK)))
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
    r = add(c, SESSILE_NOTE, SESSILE_OK);
    if (!r || reserve_findings(c))
        return 0;
    if (!err.code)
        (void)log_rewrite(s->log, c->store->keys, p->folder, p->name, kept, sizeof kept,
                          &err);
    if (err.code) {
        c->row_count--;
        tell_error(c, &err);
        return 0;
    }
    snprintf(r->what, sizeof r->what,
             "salvaged: %" PRIu64 " entries are what and where they were, %" PRIu64
             " are tombstones; the old bytes are kept as %s%s/%s",
             count - lost, lost, is_of_files(c) ? "agents/" : "", p->folder, kept);
    return 1;
}

static sessile_status look(sessile_check *c, const place *p, sessile_checked *out,
                           sessile_error *err)
{
    sessile_session *made = NULL;
    sessile_error why;
    sessile_status status;
    log_index_about ix;
    log_tail tail;

    memset(&ix, 0, sizeof ix);
    file_name(c, p->folder, p->name, c->file);
    error_clear(&why);
    status = session_inspect(&made, c->store, p->folder, p->name, visit, c, &c->s, &tail,
                             &why);
    c->s = made;
    /* before anything stands in for what is lost; where something does already, the index
     * has no say */
    if (!status && !c->refused_count)
        status = log_index_check(c->s->log, c->store->timeout_ms, &ix, &why);
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
        tell_error(c, &why);
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

/* ------------------------------------------------------------------ beside the logs */

static int is_part(const char *file, const char *part)
{
    const char *at = strstr(file, part);

    return at && at > file;
}

static int has_log(const sessile_check *c, const char *folder, const char *file,
                   size_t stem)
{
    for (size_t i = 0; i < c->count; i++)
        if (!strcmp(c->places[i].folder, folder) && strlen(c->places[i].name) == stem &&
            !memcmp(c->places[i].name, file, stem))
            return 1;
    return 0;
}

/* What a crash left and nobody is writing; 1: it may go. */
static int visit_leftover(void *arg, const char *folder, const char *file, uint64_t bytes)
{
    sessile_check *c = arg;
    row *r = add(c, c->salvage ? SESSILE_NOTE : SESSILE_WARNING, SESSILE_OK);

    if (!r)
        return 0;
    if (folder)
        snprintf(r->file, sizeof r->file, "agents/%s/%.*s", folder, 128, file);
    else
        snprintf(r->file, sizeof r->file, "%.*s", 128, file);
    r->f.bytes = bytes;
    snprintf(r->what, sizeof r->what,
             c->salvage ? "what a crash left behind, which was no log yet: removed"
                        : "what a crash left behind, which is no log yet; nobody is "
                          "writing it any more");
    if (!c->salvage)
        snprintf(r->next, sizeof r->next, "sessile check --salvage");
    return c->salvage;
}

static int is_told(const sessile_check *c, const char *file)
{
    for (size_t i = 0; i < c->row_count; i++)
        if (!strcmp(c->rows[i].file, file))
            return 1;
    return 0;
}

static int visit_other(void *arg, const char *folder, const char *file, uint64_t bytes)
{
    sessile_check *c = arg;
    size_t size = strlen(file);
    const char *what;
    char path[FILE_SIZE];
    sessile_severity severity = SESSILE_NOTE;
    row *r;

    if (is_part(file, ".torn-")) {
        what = "a torn end that was set aside: no line says that it was written safely";
    } else if (is_part(file, ".replaced-")) {
        what = "the old bytes of a log that was written anew: they are kept until the "
               "session "
               "is deleted";
    } else if (!strncmp(file, ".new-", 5)) {
        what = "a write in progress, or what one that was interrupted left behind less "
               "than an hour ago: it is no log yet";
    } else if (size > 4 && !strcmp(file + size - 4, ".idx")) {
        if (has_log(c, folder, file, size - 4))
            return 0;
        severity = SESSILE_WARNING;
        what = "an index without a log: remove it";
    } else if (file[0] == '.') {
        return 0; /* caches */
    } else {
        severity = SESSILE_WARNING;
        what = "no file of a store: a stranger put it there";
    }
    snprintf(path, sizeof path, "agents/%s/%.*s", folder, 128, file);
    if (is_told(c, path))
        return 0;
    r = add(c, severity, SESSILE_OK);
    if (!r)
        return 1;
    memcpy(r->file, path, sizeof path);
    r->f.bytes = bytes;
    snprintf(r->what, sizeof r->what, "%s", what);
    return 0;
}

static sessile_status look_beside(sessile_check *c, sessile_error *err)
{
    const sessile_backend *table = c->store->backend.table;
    sessile_status status = SESSILE_OK;
    sessile_error why;

    snprintf(c->file, sizeof c->file, "agents");
    error_clear(&why);
    if (table->sweep && table->sweep(c->store->backend.self, visit_leftover, c, &why))
        tell_error(c, &why);
    if (table->list_others)
        status = table->list_others(c->store->backend.self, NULL, visit_other, c, err);
    return c->failed ? fail_nomem(err) : status;
}

/* ------------------------------------------------------------------ the walk */

static int visit_place(void *arg, const char *folder, const char *name)
{
    sessile_check *c = arg;
    place *p;

    if (strlen(folder) >= NAME_SIZE || strlen(name) >= NAME_SIZE)
        return 0;
    if (mem_grow(&c->store->alloc, (void **)&c->places, &c->capacity, c->count + 1,
                 sizeof *c->places)) {
        c->failed = SESSILE_NOMEM;
        return 1;
    }
    p = &c->places[c->count++];
    memcpy(p->folder, folder, strlen(folder) + 1);
    memcpy(p->name, name, strlen(name) + 1);
    return 0;
}

static sessile_status find_places(sessile_check *c, const sessile_session_options *which,
                                  sessile_error *err)
{
    const sessile_backend *table = c->store->backend.table;
    char folder[NAME_SIZE], name[NAME_SIZE], shown[NAME_SHOWN];
    sessile_backend_log *log;
    session_names names;
    sessile_status status;

    if (!which || !which->id.size) {
        c->all = 1;
        if (which && which->agent.size)
            keyring_folder_name(c->store->keys, which->agent, folder);
        return table->list(c->store->backend.self,
                           which && which->agent.size ? folder : NULL, visit_place, c,
                           err);
    }
    status = names_of(&names, c->store, which, 0, err);
    if (status)
        return status;
    names_place(c->store, &names, folder, name);
    status = table->open(c->store->backend.self, folder, name, &log, err);
    if (status == SESSILE_NOTFOUND) {
        name_show(names.id, shown);
        return fail(err, SESSILE_NOTFOUND, "there is no session %s: list them", shown);
    }
    if (!status)
        table->close(log);
    else
        error_clear(err); /* what is wrong with it is found again */
    visit_place(c, folder, name);
    return SESSILE_OK;
}

sessile_status check_open(sessile_check **out, sessile_store *st,
                          const sessile_session_options *which, int wants_salvage,
                          sessile_error *err)
{
    sessile_check *c;
    sessile_status status;

    *out = NULL;
    if (st->over_records)
        return fail(err, SESSILE_UNSUPPORTED,
                    "a store over records keeps none: open a session over its records, "
                    "which looks at each");
    c = mem_zalloc(&st->alloc, sizeof *c);
    if (!c)
        return fail_nomem(err);
    c->store = st;
    c->salvage = wants_salvage;
    buf_init(&c->texts, &st->alloc);
    status = find_places(c, which, err);
    if (c->failed)
        status = fail_nomem(err);
    if (status) {
        check_close(c);
        return status;
    }
    *out = c;
    return SESSILE_OK;
}

static void begin_step(sessile_check *c)
{
    session_drop(c->s);
    c->s = NULL;
    memset(&c->fold, 0, sizeof c->fold);
    c->refused_count = c->row_count = 0;
    c->failed = SESSILE_OK;
    buf_clear(&c->texts);
    error_clear(&c->first);
}

sessile_status check_next(sessile_check *c, sessile_checked *out, sessile_error *err)
{
    size_t steps = c->count + (size_t)c->all;
    sessile_status status;

    memset(out, 0, sizeof *out);
    begin_step(c);
    if (c->next >= steps)
        return SESSILE_OK;
    out->index = c->next;
    out->total = steps;
    status =
        c->next < c->count ? look(c, &c->places[c->next], out, err) : look_beside(c, err);
    if (!status && reserve_findings(c))
        status = fail_nomem(err);
    if (status)
        return status;
    c->next++;
    for (size_t i = 0; i < c->row_count; i++) {
        c->findings[i] = c->rows[i].f;
        c->findings[i].file = c->rows[i].file;
        c->findings[i].what = c->rows[i].what;
        c->findings[i].next = c->rows[i].next;
    }
    out->file = c->file;
    out->findings = c->findings;
    out->count = c->row_count;
    return SESSILE_OK;
}

void check_close(sessile_check *c)
{
    const allocator *a;

    if (!c)
        return;
    a = &c->store->alloc;
    session_drop(c->s);
    buf_deinit(&c->texts);
    mem_free(a, c->places, c->capacity * sizeof *c->places);
    mem_free(a, c->refused, c->refused_capacity * sizeof *c->refused);
    mem_free(a, c->rows, c->row_capacity * sizeof *c->rows);
    mem_free(a, c->findings, c->finding_capacity * sizeof *c->findings);
    mem_free(a, c, sizeof *c);
}

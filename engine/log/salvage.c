/*
 * salvage.c: reads past damage.
 *
 * Finds the lines that open past V, and makes stand-ins for lost entries. Must never
 * change a byte, nor return as an entry what does not open.
 *
 * The problem: after a damaged line there are whole lines that were acknowledged.
 * Refusing the log would lose them all because of one bit. The choice: each line says its
 * id and opens by itself, so every line that opens counts as the entry that its id names,
 * wherever it is. Each id without a line gets a stand-in from the floor above, so that
 * positions, parents and lists of entries still hold. Nothing may be appended to such a
 * log; rewrite.c makes a new one.
 *
 * The lines also say how many entries there were. In a sealed log a line that opens is
 * trusted, because nobody can make one without the key. In a plain log anybody can, so
 * an id is trusted only up to the number of lines that the file has room for, plus some
 * for bytes that may have been cut out. A line that does not open but has the layout of
 * one is trusted for its own id, up to the number of lines that fit before it, and for
 * the entry that it calls durable.
 *
 * Rejected: the order of lines in the file instead of their ids (two swapped lines would
 * cost one), and leaving out lost ids (every later id would change).
 */
#include "log/damage.h"

#include <string.h>

/* At most this many entries more than its bytes can hold may have been cut out of a log.
 */
#define CUT_OUT UINT64_C(65536)
/* ---------------------------------------------------------------------- lines */

/* The next place in text from `from` on where a line may begin: at a `{"id":"` that no
 * value of JSON could begin with, so not behind `,` `[` `:`. */
static size_t next_start(const char *text, size_t size, size_t from)
{
    for (size_t at = from; at < size; at += LINE_START_SIZE) {
        const char *found = memmem(text + at, size - at, LINE_START, LINE_START_SIZE);
        if (!found)
            break;
        at = (size_t)(found - text);
        if (at == 0 ||
            (text[at - 1] != ',' && text[at - 1] != '[' && text[at - 1] != ':'))
            return at;
    }
    return size;
}

/* A line that opens and has no place yet, or fits its place better than what is there. */
static sessile_status take_line(log_t *log, const line *l, uint64_t at, size_t size,
                                sessile_error *err)
{
    log_damage_record *d = log->damage;
    uint64_t index = l->id - d->first;
    if (index >= d->place_count) {
        if (mem_grow(log->alloc, (void **)&d->places, &d->place_capacity,
                     (size_t)index + 1, sizeof *d->places) != 0)
            return fail_nomem(err);
        memset(d->places + d->place_count, 0,
               ((size_t)index + 1 - d->place_count) * sizeof *d->places);
        d->place_count = (size_t)index + 1;
    }
    place *p = &d->places[index];
    if (p->size != 0) {
        const unsigned char *before = index > 0 ? d->places[index - 1].tag : log->end.tag;
        if (log->key.suite == SUITE_NONE || memcmp(p->previous, before, VAULT_TAG) == 0 ||
            memcmp(l->previous, before, VAULT_TAG) != 0)
            return SESSILE_OK;
    }
    p->at = at;
    p->size = (uint32_t)size;
    memcpy(p->previous, l->previous, VAULT_TAG);
    memcpy(p->tag, l->tag, VAULT_TAG);
    if (l->commit != 0 && (uint64_t)l->id + 1 > d->ended)
        d->ended = (uint64_t)l->id + 1;
    d->behind = at + size + 1;
    d->newest = (uint64_t)l->id + 1;
    return SESSILE_OK;
}

/* What a line that does not open says about how many there were. */
static void note_claim(log_t *log, const char *text, size_t size, uint64_t at)
{
    log_damage_record *d = log->damage;
    line l;
    if (!line_claims(&log->key, text, size, &l))
        return;
    uint64_t room = at > d->behind ? (at - d->behind) / LOG_SHORTEST : 0;
    if (l.id < d->most_claimed && l.commit != 0 && l.id <= d->newest + room &&
        (uint64_t)l.id + 1 > d->ended)
        d->ended = (uint64_t)l.id + 1;
    if (l.has_durable && l.durable < d->most_claimed &&
        (uint64_t)l.durable + 1 > d->ended)
        d->ended = (uint64_t)l.durable + 1;
}

/* One that may be a line. *good: it is one of this log. */
static sessile_status try_line(log_t *log, char *text, size_t size, uint64_t at,
                               int *good, sessile_error *err)
{
    log_damage_record *d = log->damage;
    line l;
    buf_clear(&log->buffers.text);
    *good = 0;
    line_verdict verdict =
        line_open(&log->key, log->depth, text, size, 0, &l, &log->buffers.text, err);
    if (verdict == LINE_FAILED && err->code == SESSILE_NOMEM)
        return err->code;
    error_clear(err);
    if (verdict != LINE_GOOD || l.id < d->first || l.id >= d->most)
        return SESSILE_OK;
    uint64_t index = l.id - d->first;
    int there = index < d->place_count && d->places[index].size != 0;
    sessile_status status = take_line(log, &l, at, size, err);
    *good = !status && !there;
    return status;
}

/* Ends the stretch of no line that was being passed, if there is one. */
static sessile_status end_bytes(log_t *log, sessile_error *err)
{
    log_damage_record *d = log->damage;
    sessile_status status = SESSILE_OK;
    if (d->bytes.bytes > 0)
        status = damage_add_flaw(log, d->bytes, err);
    d->bytes.bytes = 0;
    return status;
}

static sessile_status pass_bytes(log_t *log, uint64_t at, uint64_t size,
                                 sessile_error *err)
{
    log_damage_record *d = log->damage;
    sessile_status status = SESSILE_OK;
    if (d->bytes.bytes > 0 && d->bytes.offset + d->bytes.bytes != at)
        status = end_bytes(log, err);
    if (d->bytes.bytes == 0)
        d->bytes = (log_flaw){LOG_BYTES, SESSILE_NO_ID, SESSILE_NO_ID, at, 0};
    d->bytes.bytes += size;
    return status;
}

/* The lines in a stretch of bytes that ends before a newline: usually one. Where a
 * newline was lost or changed into something else there are more. */
static sessile_status take_stretch(log_t *log, char *text, size_t size, uint64_t at,
                                   sessile_error *err)
{
    size_t start = next_start(text, size, 0);
    sessile_status status = SESSILE_OK;
    if (start > 0)
        status = pass_bytes(log, at, start < size ? start : size + 1, err);
    while (start < size && !status) {
        size_t end = next_start(text, size, start + LINE_START_SIZE);
        size_t whole = (end < size ? end : size + 1) - start;
        int good = 0;
        if (end < size)
            status = try_line(log, text + start, whole - 1, at + start, &good, err);
        if (!status && !good)
            status = try_line(log, text + start, end - start, at + start, &good, err);
        if (!status && !good) {
            note_claim(log, text + start, end - start, at + start);
            status = pass_bytes(log, at + start, whole, err);
        }
        start = end;
    }
    return status;
}

/* Finds a place for every line past V that opens. */
static sessile_status collect(log_t *log, sessile_error *err)
{
    log_damage_record *d = log->damage;
    sessile_status status = SESSILE_OK;
    reader r;
    reader_init(&r, log, log->end.bytes, d->size);
    while (!status) {
        char *text;
        size_t size;
        uint64_t at = r.at;
        reader_found found = reader_next(&r, d->first, &text, &size, err);
        if (found == READER_TOO_LONG) {
            found = reader_skip(&r, d->first, err);
            if (found != READER_FAILED)
                status = pass_bytes(log, at, r.at - at, err);
            if (found == READER_LINE)
                continue;
        } else if (found == READER_LINE) {
            status = take_stretch(log, text, size, at, err);
            continue;
        }
        if (found == READER_FAILED)
            status = err->code;
        else if (!status && r.have > r.pos) /* its newline may be another byte now */
            status = take_stretch(log, log->buffers.piece.data + r.pos,
                                  r.have - r.pos - 1, r.at, err);
        break;
    }
    if (!status)
        status = end_bytes(log, err);
    return status;
}

/* Entries at the end of which nothing is left but the store's note of the log's end: as
 * many as the bytes could hold that are missing. */
static sessile_status take_fence(log_t *log, sessile_error *err)
{
    log_damage_record *d = log->damage;
    sessile_log_end kept;
    int has_tag;
    if (!log->st.table->fence)
        return SESSILE_OK;
    sessile_status status = log->st.table->fence(log->handle, &kept, &has_tag, err);
    if (status)
        return status;
    uint64_t room = kept.bytes > d->behind ? (kept.bytes - d->behind) / LOG_SHORTEST : 0;
    if (kept.count > d->ended && kept.count <= d->most_claimed &&
        kept.count <= d->newest + room)
        d->ended = kept.count;
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- flaws */

/* Lost entries between neighbours that were found: where they should stand. */
static log_flaw hole_between(const log_t *log, size_t first, size_t last)
{
    const log_damage_record *d = log->damage;
    uint64_t from = log->end.bytes, to = d->size;
    if (first > 0)
        from = d->places[first - 1].at + d->places[first - 1].size + 1;
    if (last + 1 < d->place_count)
        to = d->places[last + 1].at;
    return (log_flaw){LOG_LOST, (sessile_id)(d->first + first),
                      (sessile_id)(d->first + last), from, to > from ? to - from : 0};
}

/* Bytes of no line that lie where lost entries should be are those entries. */
static int in_a_hole(const log_damage_record *d, size_t holes, const log_flaw *bytes)
{
    for (size_t i = holes; i < d->flaw_count; i++) {
        const log_flaw *h = &d->flaws[i];
        if (h->kind == LOG_LOST && bytes->offset >= h->offset &&
            bytes->offset < h->offset + h->bytes)
            return 1;
    }
    return 0;
}

/* Flaws in the order of ids, then what is left of the bytes. */
static sessile_status find_flaws(log_t *log, sessile_error *err)
{
    log_damage_record *d = log->damage;
    size_t stretches = d->flaw_count, kept = 0;
    sessile_status status = SESSILE_OK;
    for (size_t i = 0; i < d->place_count && !status; i++) {
        const place *p = &d->places[i];
        if (p->size == 0) {
            size_t last = i;
            while (last + 1 < d->place_count && d->places[last + 1].size == 0)
                last++;
            status = damage_add_flaw(log, hole_between(log, i, last), err);
            d->lost += last - i + 1;
            i = last;
            continue;
        }
        const place *before = i > 0 ? &d->places[i - 1] : NULL;
        const unsigned char *tag = before ? before->tag : log->end.tag;
        int known = !before || before->size != 0;
        if ((known && before && p->at < before->at) ||
            (known && log->key.suite != SUITE_NONE &&
             memcmp(p->previous, tag, VAULT_TAG) != 0)) {
            sessile_id id = (sessile_id)(d->first + i);
            status = damage_add_flaw(
                log, (log_flaw){LOG_ORDER, id, id, p->at, (uint64_t)p->size + 1}, err);
        }
    }
    for (size_t i = 0; i < d->flaw_count && !status; i++)
        if (i >= stretches || !in_a_hole(d, stretches, &d->flaws[i]))
            d->flaws[kept++] = d->flaws[i];
    d->flaw_count = kept;
    return status;
}

/* Entries of a write whose end is not there are left out, as at the end of any log. */
static sessile_status leave_unended(log_t *log, sessile_error *err)
{
    log_damage_record *d = log->damage;
    log_flaw out = {LOG_UNENDED, SESSILE_NO_ID, SESSILE_NO_ID, 0, 0};
    while (d->first + d->place_count > d->ended) {
        const place *p = &d->places[--d->place_count];
        if (p->size != 0) {
            out.offset = out.bytes == 0 || p->at < out.offset ? p->at : out.offset;
            out.bytes += (uint64_t)p->size + 1;
        }
    }
    uint64_t missing = d->ended - d->first - d->place_count;
    if (missing > 0) {
        size_t count = (size_t)(d->ended - d->first);
        if (mem_grow(log->alloc, (void **)&d->places, &d->place_capacity, count,
                     sizeof *d->places) != 0)
            return fail_nomem(err);
        memset(d->places + d->place_count, 0, (size_t)missing * sizeof *d->places);
        d->place_count = count;
    }
    return out.bytes > 0 ? damage_add_flaw(log, out, err) : SESSILE_OK;
}

/* ---------------------------------------------------------------------- shown */

/* Entry first + i where it was found, opened into out. */
static sessile_status open_place(log_t *log, size_t i, buf *out, sessile_error *err)
{
    const log_damage_record *d = log->damage;
    const place *p = &d->places[i];
    size_t got = 0, was = out->size;
    line l;
    buf_clear(&log->buffers.piece);
    if (buf_reserve(&log->buffers.piece, p->size) != 0)
        return fail_nomem(err);
    sessile_status status = log->st.table->read(
        log->handle, d->first, p->at, log->buffers.piece.data, p->size, &got, err);
    if (status)
        return status;
    line_verdict verdict = LINE_BAD;
    if (got == p->size) {
        verdict = line_open(&log->key, log->depth, log->buffers.piece.data, p->size, 0,
                            &l, out, err);
    }
    if (verdict == LINE_FAILED)
        return err->code;
    if (verdict == LINE_BAD || l.id != d->first + i) {
        out->size = was;
        return fail(err, SESSILE_DAMAGED,
                    "%s is damaged at byte %llu, entry %08llx: the line there could be "
                    "read a moment ago. Nothing was changed",
                    log->name, (unsigned long long)p->at,
                    (unsigned long long)(d->first + i));
    }
    return SESSILE_OK;
}

static sessile_status show_stand_in(log_t *log, log_flaw lost, sessile_id id,
                                    log_visit visit, log_stand_in make, void *arg,
                                    sessile_error *err)
{
    log_damage_record *d = log->damage;
    size_t at = damage_stand_in_at(d, id);
    buf text;
    buf_init(&text, log->alloc);
    sessile_status status = SESSILE_OK;
    if (at == d->cover_count || d->covers[at].id != id) {
        status = make(arg, &lost, id, &text, err);
        if (!status && text.failed)
            status = fail_nomem(err);
        if (!status)
            status = log_add_stand_in(log, id, text.data, text.size, err);
    }
    if (!status) {
        const stand_in *s = &d->covers[at];
        status = visit(arg, id, d->texts.data + s->at, s->size, err);
    }
    buf_deinit(&text);
    return status;
}

static sessile_status show_places(log_t *log, log_visit visit, log_stand_in make,
                                  void *arg, sessile_error *err)
{
    log_damage_record *d = log->damage;
    log_flaw lost = {LOG_LOST, 0, 0, 0, 0};
    sessile_status status = SESSILE_OK;
    for (size_t i = 0; i < d->place_count && !status; i++) {
        sessile_id id = (sessile_id)(d->first + i);
        const place *p = &d->places[i];
        if (p->size == 0) {
            if (i == 0 || d->places[i - 1].size != 0) {
                size_t last = i;
                while (last + 1 < d->place_count && d->places[last + 1].size == 0)
                    last++;
                lost = hole_between(log, i, last);
            }
            status = show_stand_in(log, lost, id, visit, make, arg, err);
            continue;
        }
        buf_clear(&log->buffers.text);
        if (log_has_stand_in(log, id)) /* refused when this was tried before */
            status = SESSILE_DAMAGED;
        else
            status = open_place(log, i, &log->buffers.text, err);
        if (!status)
            status = visit(arg, id, log->buffers.text.data, log->buffers.text.size, err);
        if (status == SESSILE_DAMAGED) {
            lost = (log_flaw){LOG_REFUSED, id, id, p->at, (uint64_t)p->size + 1};
            error_clear(err);
            status = damage_add_flaw(log, lost, err);
            d->lost += status == SESSILE_OK;
            if (!status)
                status = show_stand_in(log, lost, id, visit, make, arg, err);
        }
    }
    return status;
}

/* Puts into the reason how much there is and how much is not. */
static void describe_loss(log_t *log)
{
    log_damage_record *d = log->damage;
    sessile_error was = d->why;
    fail(&d->why, was.code,
         "%s; of %llu entries %llu can be read and %llu %s lost; nothing can be written "
         "to "
         "it",
         was.message, (unsigned long long)(d->first + d->count),
         (unsigned long long)(d->first + d->count - d->lost), (unsigned long long)d->lost,
         d->lost == 1 ? "is" : "are");
}

sessile_status log_read_damaged(log_t *log, log_visit visit, log_stand_in make, void *arg,
                                sessile_error *err)
{
    sessile_error local = {0};
    log_damage_record *d = log->damage;
    err = err ? err : &local;
    if (!d || d->was_read)
        return SESSILE_OK;
    d->place_count = d->flaw_count = 0;
    d->flaws_left = 0;
    d->lost = damage_stand_in_at(d, d->first); /* what was refused before the damage */
    d->bytes.bytes = 0;
    d->ended = d->first > log->proved ? d->first : log->proved;
    d->behind = log->end.bytes;
    d->newest = d->first;
    sessile_status status = log_size(log, &d->size, err);
    d->most_claimed = d->first + CUT_OUT + d->size / LOG_SHORTEST;
    if (d->most_claimed > SESSILE_NO_ID)
        d->most_claimed = SESSILE_NO_ID;
    d->most = log->key.suite == SUITE_NONE ? d->most_claimed : SESSILE_NO_ID;
    if (d->ended > d->most) /* by an index that anybody could have made */
        d->ended = d->most > d->first ? d->most : d->first;
    if (!status)
        status = collect(log, err);
    if (!status)
        status = take_fence(log, err);
    if (!status)
        status = leave_unended(log, err);
    if (!status)
        status = find_flaws(log, err);
    if (!status)
        status = show_places(log, visit, make, arg, err);
    log_trim(log);
    if (!status) {
        d->count = d->place_count;
        d->was_read = 1;
        describe_loss(log);
    }
    return status;
}

sessile_status log_read_salvaged(log_t *log, sessile_id id, buf *out, int *found,
                                 sessile_error *err)
{
    const log_damage_record *d = log->damage;
    size_t at = damage_stand_in_at(d, id);
    *found = 1;
    if (at < d->cover_count && d->covers[at].id == id) {
        buf_put(out, d->texts.data + d->covers[at].at, d->covers[at].size);
        return out->failed ? fail_nomem(err) : SESSILE_OK;
    }
    if (id >= d->first && id - d->first < d->count)
        return open_place(log, (size_t)(id - d->first), out, err);
    *found = 0;
    return SESSILE_OK;
}

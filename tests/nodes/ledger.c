/* ledger.c: see ledger.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nodes/ledger.h"

typedef struct call {
    uint8_t outcome, found;
} call;
typedef struct life {
    call *calls; /* one more than were reported: the one that was cut short */
    size_t count, capacity;
    int64_t last; /* newest that was found */
} life;
typedef struct writer {
    life *lives;
    size_t count;
} writer;
struct ledger {
    writer *writers;
    size_t count;
};

ledger *ledger_new(size_t writers)
{
    ledger *l = calloc(1, sizeof *l);
    l->writers = calloc(writers, sizeof *l->writers);
    l->count = writers;
    return l;
}

void ledger_free(ledger *l)
{
    for (size_t w = 0; l && w < l->count; w++) {
        for (size_t i = 0; i < l->writers[w].count; i++)
            free(l->writers[w].lives[i].calls);
        free(l->writers[w].lives);
    }
    if (l)
        free(l->writers);
    free(l);
}

unsigned ledger_life(ledger *l, size_t w)
{
    writer *of = &l->writers[w];
    assert_true(w < l->count);
    of->lives = realloc(of->lives, (of->count + 1) * sizeof *of->lives);
    memset(&of->lives[of->count], 0, sizeof *of->lives);
    of->lives[of->count].last = -1;
    return (unsigned)of->count++;
}

static call *call_of(life *in, size_t seq)
{
    if (in->capacity <= seq) {
        size_t more = 2 * seq + 64;
        in->calls = realloc(in->calls, more * sizeof *in->calls);
        memset(in->calls + in->capacity, 0, (more - in->capacity) * sizeof *in->calls);
        in->capacity = more;
    }
    return &in->calls[seq];
}

void ledger_note(ledger *l, size_t w, unsigned number, unsigned seq,
                 ledger_outcome outcome)
{
    assert_true(w < l->count && number < l->writers[w].count);
    life *in = &l->writers[w].lives[number];
    assert_int_equal(seq, in->count);
    call_of(in, seq)->outcome = (uint8_t)outcome;
    in->count++;
}

void ledger_text(char out[64], size_t w, unsigned number, unsigned seq)
{
    snprintf(out, 64, "n.%zu.%u.%u.", w, number, seq);
}

static void found(ledger *l, const char *json, ledger_sum *sum)
{
    size_t w;
    unsigned number, seq;
    const char *at = strstr(json, "\"content\":\"n.");
    sum->there++;
    if (!at || sscanf(at + 11, "n.%zu.%u.%u.", &w, &number, &seq) != 3 || w >= l->count ||
        number >= l->writers[w].count || seq > l->writers[w].lives[number].count) {
        print_error("nobody sent %.200s\n", json);
        sum->invented++;
        return;
    }
    life *in = &l->writers[w].lives[number];
    call *c = call_of(in, seq);
    if (c->found++ > 0) {
        print_error("twice: %.200s\n", json);
        sum->twice++;
        return;
    }
    if (c->outcome == LEDGER_REFUSED) {
        print_error("refused, and there: %.200s\n", json);
        sum->revoked++;
    } else if (c->outcome != LEDGER_ACKNOWLEDGED) {
        sum->unsaid++;
    }
    if ((int64_t)seq < in->last) {
        print_error("after number %lld of its life: %.200s\n", (long long)in->last, json);
        sum->disorder++;
    }
    in->last = (int64_t)seq;
}

/* A server may still be committing for a client that was killed: waits until the path has
 * the same length twice, 100 ms apart. */
static size_t settled_path(sessile_session *session)
{
    size_t before = SIZE_MAX, count;
    sessile_message *path;
    sessile_error err = {0};
    for (;; before = count) {
        assert_int_equal(sessile_messages(session, NULL, &path, &count, &err),
                         SESSILE_OK);
        sessile_free(path);
        if (count == before)
            return count;
        usleep(100 * 1000);
    }
}

ledger_sum ledger_compare(ledger *l, sessile_session *session)
{
    ledger_sum sum;
    sessile_entries *all;
    sessile_error err = {0};
    sessile_id id;
    const char *json;
    size_t size, on_path = settled_path(session);
    memset(&sum, 0, sizeof sum);
    assert_int_equal(sessile_entries_open(&all, session, &err), SESSILE_OK);
    for (;;) {
        sessile_status status = sessile_entries_next(all, &id, &json, &size, &err);
        if (status)
            print_error("%s\n", err.message);
        assert_int_equal(status, SESSILE_OK);
        if (size == 0)
            break;
        if (strstr(json, "\"type\":\"message\""))
            found(l, json, &sum);
    }
    sessile_entries_close(all);
    sum.off_path = sum.there - on_path;
    for (size_t w = 0; w < l->count; w++)
        for (size_t i = 0; i < l->writers[w].count; i++) {
            life *in = &l->writers[w].lives[i];
            for (size_t seq = 0; seq < in->count; seq++) {
                const call *c = &in->calls[seq];
                sum.acknowledged += c->outcome == LEDGER_ACKNOWLEDGED;
                sum.refused += c->outcome == LEDGER_REFUSED;
                sum.unknown += c->outcome == LEDGER_UNKNOWN;
                if (c->outcome == LEDGER_ACKNOWLEDGED && !c->found) {
                    print_error("lost: number %zu of life %zu of writer %zu\n", seq, i,
                                w);
                    sum.lost++;
                }
            }
        }
    return sum;
}

void ledger_check_clean(sessile_store *store, const char *id)
{
    sessile_session_options which;
    sessile_check *check;
    sessile_checked log;
    sessile_error err = {0};
    sessile_session_options_init(&which);
    which.id = sessile_text(id);
    assert_int_equal(sessile_check_open(&check, store, &which, 0, &err), SESSILE_OK);
    for (;;) {
        sessile_status status = sessile_check_next(check, &log, &err);
        if (status)
            print_error("%s\n", err.message);
        assert_int_equal(status, SESSILE_OK);
        if (!log.file)
            break;
        for (size_t i = 0; i < log.count; i++)
            print_error("%s: %s\n", log.file, log.findings[i].what);
        assert_int_equal(log.count, 0);
        assert_int_equal(log.lost, 0);
    }
    sessile_check_close(check);
}

void ledger_check_sum(const ledger_sum *sum)
{
    assert_int_equal(sum->lost, 0);
    assert_int_equal(sum->twice, 0);
    assert_int_equal(sum->revoked, 0);
    assert_int_equal(sum->invented, 0);
    assert_int_equal(sum->disorder, 0);
    assert_int_equal(sum->off_path, 0);
}

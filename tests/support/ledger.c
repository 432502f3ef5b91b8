/* ledger.c: see ledger.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/ledger.h"

typedef struct call {
    uint8_t outcome, found;
    uint32_t session; /* 1 + its place in `sessions`; 0: not said */
    sessile_id entry;
} call;
typedef struct writer {
    call *calls; /* one more than were noted: the one that was cut short */
    size_t count, capacity;
    int says_sent; /* it notes what it is about to send */
    int64_t last;  /* newest that was found in the session that is being read */
} writer;
struct ledger {
    writer *writers;
    size_t count;
    char **sessions;
    size_t session_count;
};

ledger *ledger_new(void)
{
    return calloc(1, sizeof(ledger));
}

void ledger_free(ledger *l)
{
    for (size_t w = 0; l && w < l->count; w++)
        free(l->writers[w].calls);
    for (size_t i = 0; l && i < l->session_count; i++)
        free(l->sessions[i]);
    if (l) {
        free(l->sessions);
        free(l->writers);
    }
    free(l);
}

unsigned ledger_writer(ledger *l)
{
    l->writers = realloc(l->writers, (l->count + 1) * sizeof *l->writers);
    memset(&l->writers[l->count], 0, sizeof *l->writers);
    return (unsigned)l->count++;
}

static call *call_of(writer *w, size_t number)
{
    if (w->capacity <= number) {
        size_t more = 2 * number + 64;
        w->calls = realloc(w->calls, more * sizeof *w->calls);
        memset(w->calls + w->capacity, 0, (more - w->capacity) * sizeof *w->calls);
        w->capacity = more;
    }
    return &w->calls[number];
}

static uint32_t session_number(ledger *l, const char *id)
{
    for (size_t i = l->session_count; i > 0; i--)
        if (strcmp(l->sessions[i - 1], id) == 0)
            return (uint32_t)i;
    l->sessions = realloc(l->sessions, (l->session_count + 1) * sizeof *l->sessions);
    l->sessions[l->session_count++] = strdup(id);
    return (uint32_t)l->session_count;
}

void ledger_sent(ledger *l, unsigned number_of_writer, unsigned number,
                 const char *session)
{
    assert_true(number_of_writer < l->count);
    writer *w = &l->writers[number_of_writer];
    assert_int_equal(number, w->count);
    call_of(w, number)->session = session_number(l, session);
    call_of(w, number)->entry = SESSILE_NO_ID;
    w->says_sent = 1;
    w->count++;
}

void ledger_note(ledger *l, unsigned number_of_writer, unsigned number,
                 ledger_outcome outcome, sessile_id entry)
{
    assert_true(number_of_writer < l->count);
    writer *w = &l->writers[number_of_writer];
    assert_int_equal(number, w->says_sent ? w->count - 1 : w->count);
    call *c = call_of(w, number);
    assert_int_equal(c->outcome, LEDGER_NONE);
    c->outcome = (uint8_t)outcome;
    c->entry = entry;
    w->count += !w->says_sent;
}

void ledger_text(char out[64], unsigned writer, unsigned number)
{
    snprintf(out, 64, "w.%u.%u.", writer, number);
}

/* ------------------------------------------------------------------ journals */

static void broken(const char *what)
{
    fprintf(stderr, "ledger: a journal cannot be %s: %s\n", what, strerror(errno));
    _exit(4);
}

void ledger_journal_open(ledger_journal *j, const char *folder, unsigned writer)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%u", folder, writer);
    *j = (ledger_journal){.writer = writer};
    j->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (j->fd < 0)
        broken("made");
}

void ledger_journal_close(ledger_journal *j)
{
    close(j->fd);
}

static void add_line(ledger_journal *j, const char *line)
{
    if (write(j->fd, line, strlen(line)) != (ssize_t)strlen(line))
        broken("written");
}

unsigned ledger_journal_send(ledger_journal *j, const char *session, char text[64])
{
    char line[600];
    ledger_text(text, j->writer, j->next);
    snprintf(line, sizeof line, "sent %u %s\n", j->next, session);
    add_line(j, line);
    return j->next++;
}

static const char *const words[] = {"sent", "acknowledged", "refused", "unknown"};

void ledger_journal_note(ledger_journal *j, unsigned number, ledger_outcome outcome,
                         sessile_id entry)
{
    char line[80], id[16] = " -";
    if (entry != SESSILE_NO_ID)
        snprintf(id, sizeof id, " %u", entry);
    snprintf(line, sizeof line, "%s %u%s\n", words[outcome], number,
             outcome == LEDGER_ACKNOWLEDGED ? id : "");
    add_line(j, line);
}

/* 0: the line is none of a journal. */
static int take_line(ledger *l, unsigned writer, char *line)
{
    char *word = strtok(line, " \n"), *number = strtok(NULL, " \n"),
         *rest = strtok(NULL, " \n");
    unsigned n = number ? (unsigned)strtoul(number, NULL, 10) : 0;
    sessile_id entry = SESSILE_NO_ID;
    if (!number || (strcmp(word, words[0]) == 0 && !rest))
        return 0;
    if (strcmp(word, words[0]) == 0) {
        ledger_sent(l, writer, n, rest);
        return 1;
    }
    if (rest && strcmp(rest, "-") != 0)
        entry = (sessile_id)strtoul(rest, NULL, 10);
    for (int outcome = LEDGER_ACKNOWLEDGED; outcome <= LEDGER_UNKNOWN; outcome++)
        if (strcmp(word, words[outcome]) == 0) {
            ledger_note(l, writer, n, (ledger_outcome)outcome, entry);
            return 1;
        }
    return 0;
}

ledger *ledger_read(const char *folder)
{
    ledger *l = ledger_new();
    DIR *all = opendir(folder);
    assert_non_null(all);
    for (struct dirent *e; (e = readdir(all));) {
        char path[900], line[600];
        unsigned writer;
        if (sscanf(e->d_name, "%u", &writer) != 1)
            continue;
        while (l->count <= writer)
            ledger_writer(l);
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *in = fopen(path, "re");
        assert_non_null(in);
        while (fgets(line, sizeof line, in))
            if (!take_line(l, writer, line))
                fail_msg("%s has a line that is none: %s", path, line);
        fclose(in);
    }
    closedir(all);
    return l;
}

/* ------------------------------------------------------------------ the judgement */

/* session: 1 + its place in `sessions`. */
static void found(ledger *l, uint32_t session, sessile_id id, const char *json,
                  ledger_sum *sum)
{
    unsigned number_of_writer, number;
    const char *at = strstr(json, "\"content\":\"w.");
    sum->there++;
    if (!at || sscanf(at + 11, "w.%u.%u.", &number_of_writer, &number) != 2 ||
        number_of_writer >= l->count ||
        number >= l->writers[number_of_writer].count +
                      !l->writers[number_of_writer].says_sent) {
        print_error("nobody sent %.200s\n", json);
        sum->invented++;
        return;
    }
    writer *w = &l->writers[number_of_writer];
    call *c = call_of(w, number);
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
    if ((c->session && c->session != session) ||
        (c->outcome == LEDGER_ACKNOWLEDGED && c->entry != SESSILE_NO_ID &&
         c->entry != id)) {
        print_error("entry %u of session %s, which is not where it was said to be: "
                    "%.200s\n",
                    id, l->sessions[session - 1], json);
        sum->astray++;
    }
    if ((int64_t)number < w->last) {
        print_error("after number %lld of its writer: %.200s\n", (long long)w->last,
                    json);
        sum->disorder++;
    }
    w->last = (int64_t)number;
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

static void look(ledger *l, sessile_session *session, ledger_sum *sum)
{
    sessile_entries *all;
    sessile_error err = {0};
    sessile_id id;
    const char *json;
    char name[300];
    size_t size, on_path = settled_path(session);
    unsigned long before = sum->there;
    sessile_slice called = sessile_session_id(session);
    snprintf(name, sizeof name, "%.*s", (int)called.size, (const char *)called.data);
    uint32_t number = session_number(l, name);
    for (size_t w = 0; w < l->count; w++)
        l->writers[w].last = -1;
    assert_int_equal(sessile_entries_open(&all, session, NULL, &err), SESSILE_OK);
    for (;;) {
        sessile_status status = sessile_entries_next(all, &id, &json, &size, &err);
        if (status)
            print_error("%s\n", err.message);
        assert_int_equal(status, SESSILE_OK);
        if (size == 0)
            break;
        if (strstr(json, "\"type\":\"message\""))
            found(l, number, id, json, sum);
    }
    sessile_entries_close(all);
    sum->off_path += sum->there - before - on_path;
}

static ledger_sum sum_begin(ledger *l)
{
    for (size_t w = 0; w < l->count; w++)
        for (size_t i = 0; i < l->writers[w].capacity; i++)
            l->writers[w].calls[i].found = 0;
    return (ledger_sum){.there = 0};
}

static void sum_end(const ledger *l, ledger_sum *sum)
{
    for (size_t w = 0; w < l->count; w++)
        for (size_t i = 0; i < l->writers[w].count; i++) {
            const call *c = &l->writers[w].calls[i];
            sum->acknowledged += c->outcome == LEDGER_ACKNOWLEDGED;
            sum->refused += c->outcome == LEDGER_REFUSED;
            sum->unknown += c->outcome == LEDGER_UNKNOWN;
            if (c->outcome == LEDGER_ACKNOWLEDGED && !c->found) {
                print_error("lost: number %zu of writer %zu, in session %s\n", i, w,
                            c->session ? l->sessions[c->session - 1] : "(not said)");
                sum->lost++;
            }
        }
}

ledger_sum ledger_compare(ledger *l, sessile_session *session)
{
    ledger_sum sum = sum_begin(l);
    look(l, session, &sum);
    sum_end(l, &sum);
    return sum;
}

ledger_sum ledger_compare_all(ledger *l, sessile_store *store)
{
    ledger_sum sum = sum_begin(l);
    sessile_listed *rows;
    size_t count;
    sessile_error err = {0};
    if (sessile_list(store, NULL, &rows, &count, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < count; i++) {
        sessile_session *session;
        sessile_session_options o;
        sessile_session_options_init(&o);
        o.id = rows[i].id;
        o.agent = rows[i].agent;
        o.user = rows[i].user;
        if (sessile_resume(&session, store, &o, &err))
            fail_msg("%s", err.message);
        look(l, session, &sum);
        assert_int_equal(sessile_session_close(session, &err), SESSILE_OK);
    }
    sessile_free(rows);
    sum_end(l, &sum);
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
    assert_int_equal(sum->astray, 0);
    assert_int_equal(sum->disorder, 0);
    assert_int_equal(sum->off_path, 0);
}

/*
 * cases_writers.c: many writers and readers of one log, threads and processes: none is
 * lost, none is doubled, and what was one append is seen whole or not at all.
 *
 * A record here says who wrote it, which of theirs it is, and which of the log it was to
 * be: so a writer who wrote behind an end that it had not seen is found out. Its 16 bytes
 * are its tag too, so that one who comes late can read where the log ends.
 */
#include "store/suite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/backend.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITERS = 6, EACH = 60, RECORD = 16 };

typedef struct writer {
    const sessile_backend *table;
    void *self;
    int number, each;
    int batch;     /* records of an append */
    int impatient; /* waits for nobody */
    unsigned long late, busy;
    pthread_t thread;
    const char *trouble;
    sessile_error err;
} writer;

static sessile_status take(writer *w, sessile_backend_log *log)
{
    int replaced = 0;

    if (!(w->table->capabilities & SESSILE_BACKEND_LOCKS))
        return SESSILE_OK;
    return w->table->lock(log, SESSILE_LOCK_EXCLUSIVE, w->impatient ? 0 : patience(),
                          &replaced, &w->err);
}

static void give_back(writer *w, sessile_backend_log *log)
{
    if (w->table->capabilities & SESSILE_BACKEND_LOCKS)
        w->table->unlock(log);
}

/* One append at the end that is there now. */
static sessile_status append_next(writer *w, sessile_backend_log *log, int from,
                                  char *bytes)
{
    const size_t size = (size_t)w->batch * RECORD;
    const sessile_backend *t = w->table;
    sessile_log_end end = {0, 0, {0}};
    sessile_status status = take(w, log);
    int poisoned = 0;
    int64_t mtime;
    size_t got = 0;

    if (status)
        return status;
    status = t->size(log, &end.bytes, &mtime, &w->err);
    end.count = end.bytes / RECORD;
    if (!status)
        status = t->read(log, end.count - 1, end.bytes - RECORD, end.tag, RECORD, &got,
                         &w->err);
    if (!status && got != RECORD)
        w->trouble = "read";
    for (int j = 0; j < w->batch; j++)
        snprintf(bytes + j * RECORD, RECORD + 1, "%u-%06u-%06u\n",
                 (unsigned)w->number % 10, (unsigned)(from + j) % 1000000,
                 (unsigned)(end.count + (uint64_t)j) % 1000000);
    if (!(t->capabilities & SESSILE_BACKEND_LOCKS))
        usleep(50); /* so that others come in between */
    if (!status && !w->trouble)
        status =
            t->append(log, &end, bytes, size, size / RECORD,
                      (const unsigned char *)bytes + size - RECORD, &poisoned, &w->err);
    if (poisoned)
        w->trouble = "poisoned";
    give_back(w, log);
    return status;
}

/* Appends at the end that it finds, and again where another one found it too. */
static void *write_all(void *arg)
{
    writer *w = arg;
    const int locks = (w->table->capabilities & SESSILE_BACKEND_LOCKS) != 0;
    char *bytes = malloc((size_t)w->batch * RECORD + 1);
    sessile_backend_log *log = NULL;

    if (!bytes || w->table->open(w->self, "main", "log", &log, &w->err)) {
        w->trouble = "open";
        free(bytes);
        return NULL;
    }
    if (w->impatient && w->table->set_timeout)
        w->table->set_timeout(log, 0);
    for (int i = 0; i < w->each && !w->trouble;) {
        sessile_status status = append_next(w, log, i * w->batch, bytes);
        if (!status)
            i++;
        else if (status == SESSILE_CONFLICT && !locks)
            w->late++;
        else if (status == SESSILE_BUSY && w->impatient)
            w->busy++;
        else
            w->trouble = w->trouble ? w->trouble : w->err.message;
    }
    w->table->close(log);
    free(bytes);
    return NULL;
}

static writer writer_of(const opened *o, int number, int each, int batch)
{
    return (writer){.table = o->table,
                    .self = o->self,
                    .number = number,
                    .each = each,
                    .batch = batch};
}

/* Each writer's records are there, in their order, each once, those of an append one
 * after the other. whole 0: the last writes may be missing. */
static void all_there(opened *o, int writers, int each, int batch, int whole)
{
    sessile_backend_log *log = log_of(o, "log");
    int next[WRITERS] = {0};
    size_t size;
    char *read = all(o, log, 100000, &size);

    assert_int_equal(size % RECORD, 0);
    for (size_t at = RECORD; at < size; at += RECORD) {
        int who = atoi(read + at), which = atoi(read + at + 2);
        assert_in_range(who, 0, writers - 1);
        assert_int_equal(which, next[who]);
        assert_int_equal(atoi(read + at + 9), at / RECORD);
        if (which % batch && atoi(read + at - RECORD) != who)
            fail_msg("an append was torn apart at byte %zu", at);
        next[who]++;
    }
    for (int i = 0; i < writers; i++) {
        assert_int_equal(next[i] % batch, 0);
        assert_true(next[i] <= each * batch);
        if (whole)
            assert_int_equal(next[i], each * batch);
    }
    free(read);
    o->table->close(log);
}

static void run_threads(writer *writers, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_all, &writers[i]),
                         0);
    for (int i = 0; i < count; i++)
        pthread_join(writers[i].thread, NULL);
    for (int i = 0; i < count; i++)
        if (writers[i].trouble)
            fail_msg("writer %d: %s", i, writers[i].trouble);
}

static void of_many_writers_none_is_lost_or_doubled(void **state)
{
    opened o = open_site(*state);
    create(&o, "main", "log", "0-000000-000000\n");
    writer writers[WRITERS];

    for (int i = 0; i < WRITERS; i++)
        writers[i] = writer_of(&o, i, EACH, 2);
    run_threads(writers, WRITERS);
    all_there(&o, WRITERS, EACH, 2, 1);
    done(&o);
}

/* Who waits for nobody is told BUSY, or was not in anyone's way; and nothing else. */
static void who_waits_for_nobody_is_BUSY_and_goes_on(void **state)
{
    opened o = open_site(*state);
    create(&o, "main", "log", "0-000000-000000\n");
    writer writers[4];

    for (int i = 0; i < 4; i++) {
        writers[i] = writer_of(&o, i, EACH / 2, 1);
        writers[i].impatient = 1;
    }
    run_threads(writers, 4);
    all_there(&o, 4, EACH / 2, 1, 1);
    done(&o);
}

/* ------------------------------------------------------------------ processes */

/* A process of its own writes: nothing of this store is open in this one meanwhile. */
static pid_t writing_process(const site *g, writer w)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        sessile_error err;
        if (g->kind->backend(g->place, &w.table, &w.self, &err))
            _exit(2);
        write_all(&w);
        if (w.trouble)
            fprintf(stderr, "writer %d: %s\n", w.number, w.trouble);
        if (w.table->free)
            w.table->free(w.self);
        _exit(w.trouble ? 1 : 0);
    }
    return child;
}

static int ended(pid_t child)
{
    int status = -1;

    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static void of_many_processes_none_is_lost_or_doubled(void **state)
{
    const site *g = *state;
    opened o;
    pid_t children[4];

    o = open_site(g);
    create(&o, "main", "log", "0-000000-000000\n");
    done(&o);
    for (int i = 0; i < 4; i++)
        children[i] = writing_process(g, (writer){.number = i, .each = EACH, .batch = 2});
    for (int i = 0; i < 4; i++)
        assert_int_equal(ended(children[i]), 0);
    o = open_site(g);
    all_there(&o, 4, EACH, 2, 1);
    done(&o);
}

/* Where ends may be torn (CUTS), the log floor finds and cuts them: tests/kill. */
static void of_a_killed_writer_each_append_is_whole_or_absent(void **state)
{
    enum { BATCH = 1000 };
    const site *g = *state;
    opened o;

    o = open_site(g);
    create(&o, "main", "log", "0-000000-000000\n");
    done(&o);
    for (int round = 0; round < 3; round++) {
        pid_t child =
            writing_process(g, (writer){.number = round, .each = 300, .batch = BATCH});
        usleep((useconds_t)(40000 + 30000 * round));
        kill(child, SIGKILL);
        ended(child);
        o = open_site(g);
        all_there(&o, round + 1, 300, BATCH, 0);
        done(&o);
    }
}

/* ------------------------------------------------------------------ readers */

typedef struct reader {
    const sessile_backend *table;
    void *self;
    atomic_int *stop;
    pthread_t thread;
    unsigned long looks;
    char trouble[200];
} reader;

/* A reader under a shared lock, where there are locks, as the header has it of `size`. */
static void *look(void *arg)
{
    reader *r = arg;
    const sessile_backend *t = r->table;
    const int locks = (t->capabilities & SESSILE_BACKEND_LOCKS) != 0;
    sessile_backend_log *log = NULL;
    sessile_error err = {0};
    static const size_t batch = (size_t)1000 * RECORD;

    if (t->open(r->self, "main", "log", &log, &err)) {
        snprintf(r->trouble, sizeof r->trouble, "open: %.150s", err.message);
        return NULL;
    }
    while (!*r->stop && !r->trouble[0]) {
        char record[RECORD + 1] = "";
        uint64_t bytes = 0;
        int64_t mtime;
        size_t got = 0;
        int replaced = 0;
        sessile_status status =
            locks ? t->lock(log, SESSILE_LOCK_SHARED, patience(), &replaced, &err)
                  : SESSILE_OK;
        if (!status) {
            status = t->size(log, &bytes, &mtime, &err);
            if (!status && bytes > RECORD)
                status = t->read(log, bytes / RECORD - 1, bytes - RECORD, record, RECORD,
                                 &got, &err);
            if (locks)
                t->unlock(log);
        }
        if (status)
            snprintf(r->trouble, sizeof r->trouble, "%.150s", err.message);
        else if ((bytes - RECORD) % batch)
            snprintf(r->trouble, sizeof r->trouble, "half an append was seen: %llu bytes",
                     (unsigned long long)bytes);
        else if (got && (size_t)atoi(record + 9) != (bytes - RECORD) / RECORD)
            snprintf(r->trouble, sizeof r->trouble, "record %s at byte %llu", record,
                     (unsigned long long)(bytes - RECORD));
        r->looks++;
    }
    t->close(log);
    return NULL;
}

static void an_append_of_a_thousand_is_seen_whole_or_not_at_all(void **state)
{
    enum { BATCH = 1000, APPENDS = 30, READERS = 2 };
    opened o = open_site(*state);
    atomic_int stop = 0;
    reader readers[READERS];
    writer w = writer_of(&o, 0, APPENDS, BATCH);

    create(&o, "main", "log", "0-000000-000000\n");
    memset(readers, 0, sizeof readers);
    for (int i = 0; i < READERS; i++) {
        readers[i].table = o.table;
        readers[i].self = o.self;
        readers[i].stop = &stop;
        assert_int_equal(pthread_create(&readers[i].thread, NULL, look, &readers[i]), 0);
    }
    write_all(&w);
    stop = 1;
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i].thread, NULL);
    if (w.trouble)
        fail_msg("the writer: %s", w.trouble);
    for (int i = 0; i < READERS; i++)
        if (readers[i].trouble[0])
            fail_msg("a reader: %s", readers[i].trouble);
    all_there(&o, 1, APPENDS, BATCH, 1);
    done(&o);
}

/* ------------------------------------------------------------------ one store, many logs
 */

typedef struct user {
    const sessile_backend *table;
    void *self;
    int number;
    pthread_t thread;
    char trouble[200];
} user;

static int nothing(void *arg, const char *folder, const char *name)
{
    (void)folder;
    (void)name;
    ++*(int *)arg;
    return 0;
}

/* Makes logs of its own, reads them back, lists. */
static void *use(void *arg)
{
    user *u = arg;
    const sessile_backend *t = u->table;
    sessile_error err = {0};
    sessile_status status = SESSILE_OK;

    for (int i = 0; i < 20 && !status; i++) {
        sessile_backend_log *log = NULL;
        char name[40], record[48], out[48];
        size_t got = 0;
        int count = 0;
        snprintf(name, sizeof name, "log-%d-%d", u->number, i);
        snprintf(record, sizeof record, "%s\n", name);
        status = t->create(u->self, "main", name, record, strlen(record), &err);
        if (!status)
            status = t->open(u->self, "main", name, &log, &err);
        if (!status)
            status = t->read(log, 0, 0, out, sizeof out, &got, &err);
        if (log)
            t->close(log);
        if (!status && (got != strlen(record) || memcmp(out, record, got) != 0)) {
            snprintf(u->trouble, sizeof u->trouble, "%s holds another one's bytes", name);
            return NULL;
        }
        if (!status && i % 5 == 0)
            status = t->list(u->self, "main", nothing, &count, &err);
    }
    if (status)
        snprintf(u->trouble, sizeof u->trouble, "%.150s", err.message);
    return NULL;
}

static void many_threads_use_one_store(void **state)
{
    enum { USERS = 8 };
    opened o = open_site(*state);
    user users[USERS];
    int count = 0;

    memset(users, 0, sizeof users);
    for (int i = 0; i < USERS; i++) {
        users[i].table = o.table;
        users[i].self = o.self;
        users[i].number = i;
        assert_int_equal(pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < USERS; i++)
        pthread_join(users[i].thread, NULL);
    for (int i = 0; i < USERS; i++)
        if (users[i].trouble[0])
            fail_msg("thread %d: %s", i, users[i].trouble);
    must(o.table->list(o.self, NULL, nothing, &count, &o.err), &o.err);
    assert_int_equal(count, USERS * 20);
    done(&o);
}

/* Of two who make one log, one made it. */
static void *make_one(void *arg)
{
    user *u = arg;
    sessile_error err = {0};
    sessile_status status;

    for (int i = 0; i < 20 && !u->trouble[0]; i++) {
        char name[20];
        snprintf(name, sizeof name, "log%d", i);
        status = u->table->create(u->self, "main", name, "one\n", 4, &err);
        if (!status)
            u->number++;
        else if (status != SESSILE_EXISTS)
            snprintf(u->trouble, sizeof u->trouble, "%.150s", err.message);
    }
    return NULL;
}

static void of_many_who_make_a_log_one_made_it(void **state)
{
    opened o = open_site(*state);
    user users[4];
    int made = 0;

    memset(users, 0, sizeof users);
    for (int i = 0; i < 4; i++) {
        users[i].table = o.table;
        users[i].self = o.self;
        assert_int_equal(pthread_create(&users[i].thread, NULL, make_one, &users[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(users[i].thread, NULL);
    for (int i = 0; i < 4; i++) {
        if (users[i].trouble[0])
            fail_msg("%s", users[i].trouble);
        made += users[i].number;
    }
    assert_int_equal(made, 20);
    log_holds(&o, "main", "log7", "one\n");
    done(&o);
}

static const struct CMUnitTest cases[] = {
    CASE(of_many_writers_none_is_lost_or_doubled),
    CASE(who_waits_for_nobody_is_BUSY_and_goes_on),
    CASE_IF(of_many_processes_none_is_lost_or_doubled, NEEDS_PROCESSES),
    CASE_IF(of_a_killed_writer_each_append_is_whole_or_absent,
            NEEDS_PROCESSES | NEEDS_NO_CUTS),
    CASE(an_append_of_a_thousand_is_seen_whole_or_not_at_all),
    CASE(many_threads_use_one_store),
    CASE(of_many_who_make_a_log_one_made_it),
};

CASES(cases_writers, cases);

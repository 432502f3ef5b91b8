/*
 * test_kill_guard.c: processes that write through views are killed, again and again.
 *
 * Two at a time, each with a session of its own, in one store: a folder, SQLite,
 * PostgreSQL. Each append that was acknowledged has its event in the audit, with the id
 * of its entry.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail
#undef skip

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "guard/guard.h"
#include "support/check.h"
#include "support/events.h"
#include "support/keyed.h"
#include "support/postgres.h"
#include "support/sessions.h"

enum { KILLS = 30, MOST_MS = 60, WRITERS = 2, IDS_MOST = 200000 };

/* One of those that write at the same time. */
typedef struct writer {
    char session[8];
    uint64_t ids[IDS_MOST / 64 + 1]; /* of the entries that it told */
    pid_t pid;
    int from;
} writer;

static sessile_store *guarded(const char *url, sessile_store **view)
{
    const char *editor = "editor";
    sessile_store *store = keyed_open(url, KEYED_OLD);
    sessile_guard_options go;
    sessile_credential c;
    sessile_error err;

    sessile_guard_options_init(&go);
    go.audit.on = 1;
    must(sessile_store_guard(store, &go, &err), &err);
    sessile_credential_init(&c);
    c.user = sessile_text("ann");
    c.roles = &editor;
    c.role_count = 1;
    must(sessile_store_as(view, store, &c, &err), &err);
    return store;
}

/* Tells the ids that were acknowledged, until it is killed. */
static void work(const char *url, const char *session, int to)
{
    sessile_session_options o = named(session);
    sessile_store *view;
    sessile_session *s;
    sessile_error err;
    sessile_id id;

    guarded(url, &view);
    if (sessile_session_open(&s, view, &o, &err))
        _exit(1);
    while (!sessile_append(s, sessile_text("{\"role\":\"user\",\"content\":\"hello\"}"),
                           &id, &err))
        if (write(to, &id, sizeof id) != sizeof id)
            _exit(1);
    _exit(1);
}

static void writer_start(writer *w, const char *url)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    w->pid = fork();
    assert_true(w->pid >= 0);
    if (!w->pid) {
        close(ends[0]);
        work(url, w->session, ends[1]);
    }
    close(ends[1]);
    w->from = ends[0];
}

/* 1: it told an entry. 0: it has ended. */
static int writer_hear(writer *w)
{
    sessile_id id;

    if (read(w->from, &id, sizeof id) != sizeof id)
        return 0;
    assert_true(id < IDS_MOST);
    w->ids[id / 64] |= UINT64_C(1) << id % 64;
    return 1;
}

/* Kills them at any moment after the first answer of each; how many entries they told. */
static unsigned long kill_once(writer *writers, const char *url)
{
    unsigned long told = 0;
    unsigned char ms;

    for (int i = 0; i < WRITERS; i++)
        writer_start(&writers[i], url);
    for (int i = 0; i < WRITERS; i++)
        told += (unsigned long)writer_hear(&writers[i]);
    random_bytes(&ms, 1);
    nanosleep(&(struct timespec){0, (long)(ms % MOST_MS) * 1000000}, NULL);
    for (int i = 0; i < WRITERS; i++)
        kill(writers[i].pid, SIGKILL);
    for (int i = 0; i < WRITERS; i++) {
        while (writer_hear(&writers[i]))
            told++;
        close(writers[i].from);
        waitpid(writers[i].pid, NULL, 0);
    }
    return told;
}

/* Takes what the events name from what was told. */
static void take_named(writer *writers, const events *e)
{
    for (size_t i = 0; i < e->count; i++) {
        const char *at = strstr(e->texts[i], "\"entry\":\"");
        if (!at || !strstr(e->texts[i], "\"operation\":\"append\""))
            continue;
        for (int w = 0; w < WRITERS; w++) {
            char name[40];
            snprintf(name, sizeof name, "\"session\":\"%s\"", writers[w].session);
            unsigned long id = strtoul(at + 9, NULL, 16);
            if (strstr(e->texts[i], name) && id < IDS_MOST)
                writers[w].ids[id / 64] &= ~(UINT64_C(1) << id % 64);
        }
    }
}

static void no_acknowledged_change_loses_its_event(void **state)
{
    const int kills = place_elsewhere() && !getenv("SESSILE_SOAK") ? KILLS / 3 : KILLS;
    char *folder = folder_make(), *url = place_url(folder);
    writer *writers = calloc(WRITERS, sizeof *writers);
    sessile_store *store, *view;
    unsigned long told = 0;
    events e;

    (void)state;
    assert_non_null(writers);
    store = guarded(url, &view); /* there is a keyring before two ask for one */
    sessile_store_close(view);
    sessile_store_close(store);
    for (int i = 0; i < WRITERS; i++)
        snprintf(writers[i].session, sizeof writers[i].session, "s%d", i);
    for (int i = 0; i < kills; i++)
        told += kill_once(writers, url);
    store = guarded(url, &view);
    events_read(&e, store->who->guard, store->core);
    take_named(writers, &e);
    for (int w = 0; w < WRITERS; w++)
        for (size_t i = 0; i < sizeof writers[w].ids / sizeof *writers[w].ids; i++)
            assert_int_equal(writers[w].ids[i], 0);
    printf(
        "# figure: appends acknowledged before %d kills of %d, each with its event (%s) "
        "= %lu\n",
        kills, WRITERS, place_elsewhere() ? place_elsewhere() : "file", told);
    assert_true(told >= (unsigned long)kills);
    events_free(&e);
    sessile_store_close(view);
    sessile_store_close(store);
    free(writers);
    place_url_free(url);
    folder_remove(folder);
}

int main(void)
{
    static const char *const backends[] = {"file", "sqlite", "postgres"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_acknowledged_change_loses_its_event),
    };
    const char *why;
    int failed = 0;

    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        char what[40];
        if (i == 2 && !postgres_shared(&why)) {
            print_message("# without PostgreSQL: %s\n", why);
            continue;
        }
        setenv("TEST_STORE", backends[i], 1);
        snprintf(what, sizeof what, "a guard is killed, %s", backends[i]);
        failed += cmocka_run_group_tests_name(what, tests, NULL, NULL);
    }
    return failed;
}

/*
 * test_kill_guard.c: a process that writes through a view is killed, again and again.
 *
 * Each append that was acknowledged has its event in the audit, with the id of its entry.
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
#include "support/sessions.h"

enum { KILLS = 30, MOST_MS = 60 };

static sessile_store *guarded(const char *path, sessile_store **view)
{
    const char *editor = "editor";
    sessile_store *store = keyed_open(path, KEYED_OLD);
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
static void work(const char *path, int to)
{
    sessile_session_options o = named("s");
    sessile_store *view;
    sessile_session *s;
    sessile_error err;
    sessile_id id;

    guarded(path, &view);
    if (sessile_session_open(&s, view, &o, &err))
        _exit(1);
    while (!sessile_append(s, sessile_text("{\"role\":\"user\",\"content\":\"hello\"}"),
                           &id, &err))
        if (write(to, &id, sizeof id) != sizeof id)
            _exit(1);
    _exit(1);
}

static void no_acknowledged_change_loses_its_event(void **state)
{
    char *folder = folder_make(), path[600];
    uint64_t told = 0, ids[200000 / 64 + 1] = {0};
    sessile_store *store, *view;
    events e;

    (void)state;
    snprintf(path, sizeof path, "%s/store", folder);
    for (int i = 0; i < KILLS; i++) {
        int ends[2];
        sessile_id id;
        unsigned char ms;
        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        if (!pid) {
            close(ends[0]);
            work(path, ends[1]);
        }
        close(ends[1]);
        /* its first answer, and then any moment */
        ssize_t got = read(ends[0], &id, sizeof id);
        random_bytes(&ms, 1);
        nanosleep(&(struct timespec){0, (long)(ms % MOST_MS) * 1000000}, NULL);
        kill(pid, SIGKILL);
        for (; got == sizeof id; got = read(ends[0], &id, sizeof id)) {
            assert_true(id < 200000);
            ids[id / 64] |= UINT64_C(1) << id % 64;
            told++;
        }
        close(ends[0]);
        waitpid(pid, NULL, 0);
    }
    store = guarded(path, &view);
    events_read(&e, store->who->guard, store->core);
    for (size_t i = 0; i < e.count; i++) {
        const char *at = strstr(e.texts[i], "\"entry\":\"");
        if (at && strstr(e.texts[i], "\"operation\":\"append\"")) {
            unsigned long id = strtoul(at + 9, NULL, 16);
            ids[id / 64] &= ~(UINT64_C(1) << id % 64);
        }
    }
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        assert_int_equal(ids[i], 0);
    printf("# figure: appends acknowledged before %d kills, each with its event = %llu\n",
           KILLS, (unsigned long long)told);
    assert_true(told >= KILLS / 2);
    events_free(&e);
    sessile_store_close(view);
    sessile_store_close(store);
    folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_acknowledged_change_loses_its_event),
    };
    return cmocka_run_group_tests_name("a guard is killed", tests, NULL, NULL);
}

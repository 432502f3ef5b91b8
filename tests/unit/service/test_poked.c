/*
 * test_poked.c: who says without end that a session was written to puts off the look at
 * no other one.
 *
 * The store of this test says so itself, whenever the watch asks it about a session:
 * there is always one in doubt when the answer is there.
 */
#include "serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "service/watch.h"
#include "store/minimal.h"

static struct {
    const sessile_backend *under;
    watch *_Atomic watch; /* NULL: nobody pokes yet */
} poker;

static void poke(void)
{
    const sessile_session_options names = {
        .id = sessile_text("poked"), .agent = sessile_text("main"), .user = {"", 0}};
    watch *w = atomic_load(&poker.watch);
    if (w)
        watch_look(w, &names);
}

static sessile_status poking_size(sessile_backend_log *log, uint64_t *bytes,
                                  int64_t *time, sessile_error *err)
{
    sessile_status status = poker.under->size(log, bytes, time, err);
    poke();
    return status;
}

static sessile_store *poking_store(minimal_medium *medium)
{
    static sessile_backend table;
    sessile_store_options options;
    sessile_store *out;
    sessile_error err;
    void *self;
    poker.under = minimal_store(medium, &self);
    table = *poker.under;
    table.size = poking_size;
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_PLAIN;
    if (sessile_open_with(&out, &table, self, &options, &err))
        fail_msg("%s", err.message);
    return out;
}

static sessile_session *open_own(sessile_store *store, const char *id)
{
    sessile_session_options o;
    sessile_session *out;
    sessile_error err;
    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    if (sessile_session_open(&out, store, &o, &err))
        fail_msg("%s", err.message);
    return out;
}

static void begin_watch(serving *s, stream *st, const char *id)
{
    Sessile__V1__EventsRequest r = SESSILE__V1__EVENTS_REQUEST__INIT;
    Sessile__V1__Entry from = SESSILE__V1__ENTRY__INIT;
    r.session = names_of(id);
    r.from = &from;
    stream_begin(s, st, "StreamSessionEvents", &r);
    assert_true(stream_wait(st, 2)); /* its header, and "up to here" */
}

static void pokes_put_off_no_look(void **state)
{
    minimal_medium *medium = minimal_medium_new();
    sessile_store *store = poking_store(medium);
    sessile_session *poked = open_own(store, "poked"), *other = open_own(store, "other");
    stream of_poked, of_other;
    serving s;
    sessile_error err;
    (void)state;
    serving_start(&s, store, NULL);
    begin_watch(&s, &of_poked, "poked");
    begin_watch(&s, &of_other, "other");
    atomic_store(&poker.watch, s.service->watch);
    poke();
    /* By the host's own handle: the look alone finds it. */
    if (sessile_append(other, sessile_text("{\"role\":\"user\",\"content\":\"here\"}"),
                       NULL, &err))
        fail_msg("%s", err.message);
    assert_true(stream_wait(&of_other, 3));
    atomic_store(&poker.watch, NULL);
    stream_done(&of_poked);
    stream_done(&of_other);
    serving_stop(&s);
    (void)sessile_session_close(poked, NULL);
    (void)sessile_session_close(other, NULL);
    sessile_store_close(store);
    minimal_medium_free(medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pokes_put_off_no_look)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

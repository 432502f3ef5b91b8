/*
 * test_records_moved.c: RecordService: a log of a store with locks that is removed after
 * the server opened it and before it has locked it.
 *
 * The one that removes a log overwrites it first. What was overwritten must never be
 * handed out as the log.
 */
#include "serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/os.h"
#include "service/records.pb-c.h"
#include "support/sessions.h"

typedef struct scene {
    char *folder, url[600];
    sessile_store *store; /* of who removes */
    sessile_store *none;  /* what the server has beside it */
    serving serving;
} scene;

/* What the server's next shared lock comes after. */
static struct {
    const os_table *os;
    sessile_store *store; /* NULL: nothing */
    int made_again;
} moved;

static void must(sessile_status status, const sessile_error *err)
{
    if (status)
        fail_msg("%s", err->message);
}

static void make(sessile_store *st)
{
    sessile_session_options named;
    sessile_session *s;
    sessile_error err;
    sessile_session_options_init(&named);
    named.id = (sessile_slice){"one", 3};
    must(sessile_session_open(&s, st, &named, &err), &err);
    must(sessile_session_close(s, &err), &err);
}

static void remove_it(sessile_store *st)
{
    sessile_session_options named;
    sessile_delete_options options;
    sessile_deleted gone;
    sessile_error err;
    sessile_session_options_init(&named);
    named.id = (sessile_slice){"one", 3};
    memset(&options, 0, sizeof options);
    must(sessile_delete(st, &named, &options, &gone, &err), &err);
}

static int lock_late(void *ud, int fd, int mode)
{
    sessile_store *st = mode == OS_LOCK_SHARED ? moved.store : NULL;
    if (st) {
        moved.store = NULL;
        remove_it(st);
        if (moved.made_again)
            make(st);
    }
    return moved.os->lock(ud, fd, mode);
}

static int set_up(void **state)
{
    static os_table hooked;
    scene *at = calloc(1, sizeof *at);
    sessile_store_options options;
    service_settings settings;
    sessile_error err;
    at->folder = folder_make();
    snprintf(at->url, sizeof at->url, "file:%s/store", at->folder);
    sessile_store_options_init(&options);
    must(sessile_open(&at->store, at->url, &options, &err), &err);
    make(at->store);
    must(sessile_open(&at->none, "ram:", NULL, &err), &err);
    moved.os = os_current;
    hooked = *os_current;
    hooked.lock = lock_late;
    os_current = &hooked;
    memset(&settings, 0, sizeof settings);
    settings.services = SERVICE_RECORDS;
    settings.records.url = at->url;
    settings.records.options = &options;
    serving_start(&at->serving, at->none, &settings);
    os_current = moved.os;
    *state = at;
    return 0;
}

static int tear_down(void **state)
{
    scene *at = *state;
    moved.store = NULL;
    serving_stop(&at->serving);
    sessile_store_close(at->none);
    sessile_store_close(at->store);
    folder_remove(at->folder);
    free(at);
    return 0;
}

static void before_the_next_lock(const scene *at, int made_again)
{
    moved.made_again = made_again;
    moved.store = at->store;
}

static Sessile__V1__RecordLog the_log(void)
{
    Sessile__V1__RecordLog log = SESSILE__V1__RECORD_LOG__INIT;
    log.folder = (ProtobufCBinaryData){4, (uint8_t *)"main"};
    log.name = (ProtobufCBinaryData){3, (uint8_t *)"one"};
    return log;
}

static const Sessile__V1__RecordOpened *open_it(scene *at)
{
    Sessile__V1__RecordOpenRequest request = SESSILE__V1__RECORD_OPEN_REQUEST__INIT;
    Sessile__V1__RecordLog log = the_log();
    request.log = &log;
    return serve_ok(&at->serving, "Open", &request);
}

/* ---------------------------------------------------------------------- cases */

static void a_log_that_is_removed_while_it_is_opened_is_not_there(void **state)
{
    scene *at = *state;
    Sessile__V1__RecordOpenRequest request = SESSILE__V1__RECORD_OPEN_REQUEST__INIT;
    Sessile__V1__RecordLog log = the_log();
    char status[32];
    request.log = &log;
    before_the_next_lock(at, 0);
    assert_int_equal(serve_fails(&at->serving, "Open", &request, status), RPC_NOT_FOUND);
    assert_null(moved.store);
}

static void a_log_that_is_made_again_while_it_is_opened_is_the_one_opened(void **state)
{
    scene *at = *state;
    const Sessile__V1__RecordOpened *was = open_it(at), *is, *now;
    before_the_next_lock(at, 1);
    is = open_it(at);
    assert_null(moved.store);
    now = open_it(at);
    assert_memory_not_equal(was->identity.data, is->identity.data, 16);
    assert_memory_equal(is->identity.data, now->identity.data, 16);
    assert_int_equal(is->first.len, is->bytes);
    assert_int_equal(is->first.data[is->first.len - 1], '\n');
    assert_memory_equal(is->first.data, "{\"id\":\"00000000\"", 16);
}

static void a_log_that_is_removed_while_it_is_looked_at_is_not_there(void **state)
{
    for (int made_again = 0; made_again < 2; made_again++) {
        scene *at = *state;
        Sessile__V1__RecordLookRequest request = SESSILE__V1__RECORD_LOOK_REQUEST__INIT;
        Sessile__V1__RecordLog log = the_log();
        log.identity = open_it(at)->identity;
        request.log = &log;
        before_the_next_lock(at, made_again);
        const Sessile__V1__RecordLook *look = serve_ok(&at->serving, "Look", &request);
        assert_null(moved.store);
        assert_false(look->there);
        assert_int_equal(look->replaced, made_again);
        if (!made_again)
            make(at->store);
    }
}

static void a_log_that_is_removed_while_it_is_read_is_not_there(void **state)
{
    scene *at = *state;
    Sessile__V1__RecordReadRequest request = SESSILE__V1__RECORD_READ_REQUEST__INIT;
    Sessile__V1__RecordLog log = the_log();
    char status[32];
    log.identity = open_it(at)->identity;
    request.log = &log;
    request.size = 100;
    before_the_next_lock(at, 0);
    assert_int_equal(serve_fails(&at->serving, "Read", &request, status), RPC_NOT_FOUND);
    assert_null(moved.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_log_that_is_removed_while_it_is_opened_is_not_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_log_that_is_made_again_while_it_is_opened_is_the_one_opened, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            a_log_that_is_removed_while_it_is_looked_at_is_not_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_log_that_is_removed_while_it_is_read_is_not_there, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("records moved", tests, NULL, NULL);
}

/* test_methods.c: the methods as sessile.proto has them; facts and checkpoints. */
#include "direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* ---------------------------------------------------------------------- the tables */

static int is_elsewhere(const char *name)
{
    return strcmp(name, "Run") == 0 || strcmp(name, "StreamSessionEvents") == 0;
}

static void test_each_method_of_the_proto_is_there(void **state)
{
    const ProtobufCServiceDescriptor *service = &sessile__v1__session_service__descriptor;
    (void)state;
    for (unsigned i = 0; i < service->n_methods; i++) {
        char path[128] = "/sessile.v1.SessionService/";
        strncat(path, service->methods[i].name, 64);
        const method *m = method_find(path);
        if (is_elsewhere(service->methods[i].name))
            continue;
        if (!m)
            fail_msg("%s is missing", service->methods[i].name);
        assert_ptr_equal(m->input, service->methods[i].input);
        /* The worker finds the session of a request without unpacking it. */
        const ProtobufCFieldDescriptor *first =
            protobuf_c_message_descriptor_get_field(m->input, 1);
        assert_non_null(first);
        assert_ptr_equal(first->descriptor, &sessile__v1__session__descriptor);
    }
}

static void test_no_method_is_there_that_the_proto_has_not(void **state)
{
    const ProtobufCServiceDescriptor *service = &sessile__v1__session_service__descriptor;
    size_t count = 0;
    (void)state;
    for (const method *m; (m = method_at(count)); count++) {
        assert_non_null(
            protobuf_c_service_descriptor_get_method_by_name(service, m->name));
        for (size_t i = 0; i < count; i++)
            assert_string_not_equal(method_at(i)->name, m->name);
    }
    assert_null(method_find("/sessile.v1.SessionService/Nothing"));
    assert_null(method_find("/sessile.v1.SessionService/"));
    assert_null(method_find("/other.Service/Turn"));
    assert_null(method_find("Turn"));
}

/* ---------------------------------------------------------------------- facts */

static Sessile__V1__Labels *labels_of(Sessile__V1__Session *session)
{
    Sessile__V1__SessionRequest r = SESSILE__V1__SESSION_REQUEST__INIT;
    r.session = session;
    return call_ok("ListLabels", &r);
}

static void test_a_label_is_put_listed_and_removed(void **state)
{
    Sessile__V1__LabelRequest r = SESSILE__V1__LABEL_REQUEST__INIT;
    Sessile__V1__Session *s = session_with("s", 2);
    (void)state;
    r.session = s;
    r.entry = 2;
    r.name = "good";
    call_ok("SetLabel", &r);
    Sessile__V1__Labels *labels = labels_of(s);
    assert_int_equal(labels->n_labels, 1);
    assert_int_equal(labels->labels[0]->entry, 2);
    assert_string_equal(labels->labels[0]->name, "good");
    assert_true(labels->labels[0]->fact > 2);
    assert_true(labels->labels[0]->time_ms > 0);
    r.remove = 1;
    call_ok("SetLabel", &r);
    assert_int_equal(labels_of(s)->n_labels, 0);
    call_fails("SetLabel", &r, RPC_NOT_FOUND, "ENOTFOUND");
    r.remove = 0;
    r.entry = 77;
    call_fails("SetLabel", &r, RPC_NOT_FOUND, "ENOTFOUND");
    r.name = "";
    r.entry = 2;
    call_fails("SetLabel", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.session = asked("nobody");
    call_fails("SetLabel", &r, RPC_NOT_FOUND, "ENOTFOUND");
    r.session = NULL;
    call_fails("SetLabel", &r, RPC_INVALID_ARGUMENT, "EINVALID");
}

static void check_object(const char *name)
{
    Sessile__V1__ObjectRequest r = SESSILE__V1__OBJECT_REQUEST__INIT;
    r.session = session_with(name, 0);
    r.object = json_of_text("{\"a\":1,\"b\":\"x\"}");
    call_ok(name, &r);
    r.object = json_of_text("{\"a\":null,\"c\":1.50}");
    Sessile__V1__Object *object = call_ok(name, &r);
    assert_string_equal(object->object->text, "{\"b\":\"x\",\"c\":1.50}");
    r.object = NULL;
    object = call_ok(name, &r);
    assert_string_equal(object->object->text, "{\"b\":\"x\",\"c\":1.50}");
    r.object = json_of_text("{\"a\":1,\"a\":2}");
    call_fails(name, &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.object = json_of_text("[]");
    call_fails(name, &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.session = asked("nobody");
    call_fails(name, &r, RPC_NOT_FOUND, "ENOTFOUND");
}

static void test_settings_and_metadata_are_changed_member_by_member(void **state)
{
    (void)state;
    check_object("SetSettings");
    check_object("SetMetadata");
}

static void test_a_title_is_set(void **state)
{
    Sessile__V1__TitleRequest r = SESSILE__V1__TITLE_REQUEST__INIT;
    Sessile__V1__SessionRequest again = SESSILE__V1__SESSION_REQUEST__INIT;
    char longest[5000] = {0};
    (void)state;
    r.session = again.session = session_with("s", 0);
    r.title = "Zürich";
    call_ok("SetTitle", &r);
    Sessile__V1__SessionInfo *info = call_ok("ResumeSession", &again);
    assert_string_equal(info->title, "Zürich");
    memset(longest, 'x', sizeof longest - 1);
    r.title = longest;
    call_fails("SetTitle", &r, RPC_RESOURCE_EXHAUSTED, "ELIMIT");
}

static void test_a_life_is_set(void **state)
{
    Sessile__V1__LifeRequest r = SESSILE__V1__LIFE_REQUEST__INIT;
    (void)state;
    r.session = session_with("s", 1);
    call_fails("SetLife", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.change_case = SESSILE__V1__LIFE_REQUEST__CHANGE_ARCHIVED;
    r.archived = 1;
    Sessile__V1__SessionInfo *info = call_ok("SetLife", &r);
    assert_string_equal(info->life, "archived");
    assert_string_equal(info->session->id, "s");
    r.archived = 0;
    info = call_ok("SetLife", &r);
    assert_string_equal(info->life, "active");
    r.change_case = SESSILE__V1__LIFE_REQUEST__CHANGE_TTL_MS;
    r.ttl_ms = 3600000;
    info = call_ok("SetLife", &r);
    assert_int_equal(info->ttl_ms, 3600000);
    assert_true(info->expires_ms >= info->created_ms + 3600000);
    r.ttl_ms = -7;
    call_fails("SetLife", &r, RPC_INVALID_ARGUMENT, "EINVALID");
}

static void test_a_suspended_session_goes_on(void **state)
{
    Sessile__V1__SuspendRequest r = SESSILE__V1__SUSPEND_REQUEST__INIT;
    Sessile__V1__SessionRequest get = SESSILE__V1__SESSION_REQUEST__INIT;
    Sessile__V1__ResumeWithRequest on = SESSILE__V1__RESUME_WITH_REQUEST__INIT;
    Sessile__V1__AppendRequest append = SESSILE__V1__APPEND_REQUEST__INIT;
    Sessile__V1__Json *messages[2] = {
        json_of_text("{\"role\":\"user\",\"content\":\"a\"}"),
        json_of_text("{\"role\":\"assistant\",\"content\":\"b\"}")};
    (void)state;
    r.session = get.session = on.session = append.session = session_with("s", 2);
    r.reason = "approval";
    r.state = json_of_text("{\"step\":3}");
    Sessile__V1__Suspension *now = call_ok("GetSuspension", &get);
    assert_null(now->entry);
    call_fails("ResumeWith", &on, RPC_NOT_FOUND, "ENOTFOUND");
    Sessile__V1__Written *written = call_ok("Suspend", &r);
    now = call_ok("GetSuspension", &get);
    assert_int_equal(now->entry->id, written->entry);
    assert_true(now->time_ms > 0);
    assert_string_equal(now->reason, "approval");
    assert_string_equal(now->state->text, "{\"step\":3}");
    call_fails("Suspend", &r, RPC_FAILED_PRECONDITION, "ESUSPENDED");
    append.message = messages[0];
    call_fails("AppendMessage", &append, RPC_FAILED_PRECONDITION, "ESUSPENDED");
    on.messages = messages;
    on.n_messages = 2;
    Sessile__V1__Appended *first = call_ok("ResumeWith", &on);
    assert_true(first->first->id > written->entry);
    now = call_ok("GetSuspension", &get);
    assert_null(now->entry);
    call_ok("Suspend", &r);
    on.n_messages = 0;
    first = call_ok("ResumeWith", &on);
    assert_null(first->first);
    call_ok("AppendMessage", &append);
}

static void test_a_suspension_is_cancelled(void **state)
{
    Sessile__V1__SuspendRequest r = SESSILE__V1__SUSPEND_REQUEST__INIT;
    Sessile__V1__CancelRequest end = SESSILE__V1__CANCEL_REQUEST__INIT;
    Sessile__V1__SessionRequest get = SESSILE__V1__SESSION_REQUEST__INIT;
    (void)state;
    r.session = end.session = get.session = session_with("s", 1);
    end.reason = "no answer";
    call_fails("Cancel", &end, RPC_NOT_FOUND, "ENOTFOUND");
    call_ok("Suspend", &r);
    call_ok("Cancel", &end);
    Sessile__V1__Suspension *now = call_ok("GetSuspension", &get);
    assert_null(now->entry);
}

/* ---------------------------------------------------------------------- checkpoints */

static Sessile__V1__Checkpoints *checkpoints_of(Sessile__V1__Session *session,
                                                const char *reason)
{
    Sessile__V1__CheckpointsRequest r = SESSILE__V1__CHECKPOINTS_REQUEST__INIT;
    r.session = session;
    r.reason = (char *)reason;
    return call_ok("ListCheckpoints", &r);
}

static void test_checkpoints_are_made_and_listed(void **state)
{
    Sessile__V1__CheckpointRequest r = SESSILE__V1__CHECKPOINT_REQUEST__INIT;
    Sessile__V1__CheckpointsRequest wrong = SESSILE__V1__CHECKPOINTS_REQUEST__INIT;
    (void)state;
    r.session = wrong.session = session_with("s", 3);
    r.name = "before";
    r.state = json_of_text("[1, 2]");
    r.metadata = json_of_text("{\"by\":\"me\"}");
    Sessile__V1__Written *named = call_ok("CreateCheckpoint", &r);
    r.name = "";
    r.event = "deploy";
    Sessile__V1__Written *event = call_ok("CreateCheckpoint", &r);
    Sessile__V1__Checkpoints *all = checkpoints_of(r.session, "");
    assert_int_equal(all->n_checkpoints, 2);
    assert_int_equal(all->checkpoints[0]->entry, event->entry);
    assert_string_equal(all->checkpoints[0]->event, "deploy");
    assert_string_equal(all->checkpoints[0]->reason, "event");
    const Sessile__V1__Checkpoint *row = all->checkpoints[1];
    assert_int_equal(row->entry, named->entry);
    assert_int_equal(row->head->id, 3);
    assert_int_equal(row->messages, 3);
    assert_string_equal(row->name, "before");
    assert_string_equal(row->reason, "manual");
    assert_string_equal(row->metadata->text, "{\"by\":\"me\"}");
    assert_true(row->sound && row->tokens > 0 && row->state_bytes > 0 &&
                row->time_ms > 0);
    all = checkpoints_of(r.session, "manual");
    assert_int_equal(all->n_checkpoints, 1);
    assert_int_equal(all->checkpoints[0]->entry, named->entry);
    wrong.reason = "sometimes";
    call_fails("ListCheckpoints", &wrong, RPC_INVALID_ARGUMENT, "EINVALID");
    r.state = json_of_text("{");
    call_fails("CreateCheckpoint", &r, RPC_INVALID_ARGUMENT, "EINVALID");
}

static void test_a_checkpoint_is_restored_and_deleted(void **state)
{
    Sessile__V1__CheckpointRequest r = SESSILE__V1__CHECKPOINT_REQUEST__INIT;
    Sessile__V1__RestoreRequest back = SESSILE__V1__RESTORE_REQUEST__INIT;
    Sessile__V1__EntryRequest drop = SESSILE__V1__ENTRY_REQUEST__INIT;
    Sessile__V1__AppendRequest append = SESSILE__V1__APPEND_REQUEST__INIT;
    (void)state;
    r.session = back.session = drop.session = append.session = session_with("s", 3);
    r.state = json_of_text("{\"step\":7}");
    Sessile__V1__Written *made = call_ok("CreateCheckpoint", &r);
    append.message = json_of_text("{\"role\":\"user\",\"content\":\"later\"}");
    call_ok("AppendMessage", &append);
    back.checkpoint = drop.entry = made->entry;
    Sessile__V1__Restored *restored = call_ok("RestoreCheckpoint", &back);
    assert_int_equal(restored->checkpoint, made->entry);
    assert_int_equal(restored->head, 3);
    assert_string_equal(restored->state->text, "{\"step\":7}");
    call_ok("DeleteCheckpoint", &drop);
    assert_int_equal(checkpoints_of(r.session, "")->n_checkpoints, 0);
    call_fails("DeleteCheckpoint", &drop, RPC_NOT_FOUND, "ENOTFOUND");
    call_fails("RestoreCheckpoint", &back, RPC_NOT_FOUND, "ENOTFOUND");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_method_of_the_proto_is_there),
        cmocka_unit_test(test_no_method_is_there_that_the_proto_has_not),
        DIRECT(test_a_label_is_put_listed_and_removed),
        DIRECT(test_settings_and_metadata_are_changed_member_by_member),
        DIRECT(test_a_title_is_set),
        DIRECT(test_a_life_is_set),
        DIRECT(test_a_suspended_session_goes_on),
        DIRECT(test_a_suspension_is_cancelled),
        DIRECT(test_checkpoints_are_made_and_listed),
        DIRECT(test_a_checkpoint_is_restored_and_deleted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

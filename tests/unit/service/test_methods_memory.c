/*
 * test_methods_memory.c: memories over the methods: opened, written, read, found, judged,
 * erased.
 */
#include "direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sessile_privacy.h"

/* ---------------------------------------------------------------------- the table */

static int is_memory_or_session(const ProtobufCMessageDescriptor *input)
{
    const ProtobufCFieldDescriptor *first =
        protobuf_c_message_descriptor_get_field(input, 1);
    return first && (first->descriptor == &sessile__v1__memory__descriptor ||
                     first->descriptor == &sessile__v1__session__descriptor);
}

static void test_each_method_of_the_proto_is_there(void **state)
{
    const ProtobufCServiceDescriptor *service = &sessile__v1__memory_service__descriptor;
    const ProtobufCMessageDescriptor *run = &sessile__v1__memory_run_request__descriptor;
    (void)state;
    for (unsigned i = 0; i < service->n_methods; i++) {
        char path[128] = "/sessile.v1.MemoryService/";
        strncat(path, service->methods[i].name, 64);
        const method *m = method_find(path);
        if (!m)
            fail_msg("%s is missing", service->methods[i].name);
        assert_ptr_equal(m->input, service->methods[i].input);
        /* The worker finds what a request is about without unpacking it. */
        assert_true(m->input == run || is_memory_or_session(m->input));
    }
    for (unsigned i = 0; i < 5; i++) /* those that begin a run */
        assert_true(is_memory_or_session(run->fields[i].descriptor));
}

static void test_what_is_no_request_is_refused(void **state)
{
    static const char not_text[] = "\x0a\x03\x12\x01\xff"; /* user */
    const ProtobufCServiceDescriptor *service = &sessile__v1__memory_service__descriptor;
    (void)state;
    for (unsigned i = 0; i < service->n_methods; i++) {
        const char *name = service->methods[i].name;
        if (strcmp(name, "RunMemory") == 0)
            continue;
        call_bytes(name, not_text, sizeof not_text - 1);
        assert_int_equal(direct.rpc.got.code, RPC_INVALID_ARGUMENT);
        call_bytes(name, "", 0); /* it names nothing */
        assert_int_equal(direct.rpc.got.code, RPC_INVALID_ARGUMENT);
        assert_int_equal(direct.rpc.got.count, 0);
    }
}

/* ---------------------------------------------------------------------- helpers */

static const Sessile__V1__MemoryInfo *opened(Sessile__V1__Memory *memory,
                                             const char *consent)
{
    Sessile__V1__OpenMemoryRequest r = SESSILE__V1__OPEN_MEMORY_REQUEST__INIT;
    r.memory = memory;
    r.consent = (char *)consent;
    return call_ok("OpenMemory", &r);
}

static sessile_id wrote(Sessile__V1__Memory *memory, const char *key, const char *value)
{
    Sessile__V1__WriteMemoryRequest r = SESSILE__V1__WRITE_MEMORY_REQUEST__INIT;
    Sessile__V1__MemoryEntry entry = SESSILE__V1__MEMORY_ENTRY__INIT,
                             *entries[] = {&entry};
    r.memory = memory;
    r.entries = entries;
    r.n_entries = 1;
    entry.key = (char *)key;
    entry.value = (char *)value;
    const Sessile__V1__MemoryWritten *written = call_ok("WriteMemory", &r);
    assert_int_equal(written->n_entries, 1);
    return written->entries[0];
}

static const Sessile__V1__MemoryRow *row_of(Sessile__V1__Memory *memory, sessile_id id)
{
    Sessile__V1__MemoryEntryRequest r = SESSILE__V1__MEMORY_ENTRY_REQUEST__INIT;
    r.memory = memory;
    r.entry = id;
    return call_ok("GetMemoryRow", &r);
}

static uint64_t judged(Sessile__V1__Memory *memory, sessile_id id, const char *verdict)
{
    Sessile__V1__VerdictRequest r = SESSILE__V1__VERDICT_REQUEST__INIT;
    r.memory = memory;
    r.entries = &id;
    r.n_entries = 1;
    r.verdict = (char *)verdict;
    const Sessile__V1__MemoryChanged *changed = call_ok("JudgeMemory", &r);
    return changed->entries;
}

/* ---------------------------------------------------------------------- opening */

static void test_a_memory_is_opened_with_consent(void **state)
{
    Sessile__V1__MemoryRequest r = SESSILE__V1__MEMORY_REQUEST__INIT;
    Sessile__V1__OpenMemoryRequest open = SESSILE__V1__OPEN_MEMORY_REQUEST__INIT;
    (void)state;
    r.memory = open.memory = memory_named("ann");
    call_fails("GetMemory", &r, RPC_NOT_FOUND, "ENOTFOUND");
    open.language = "klingon";
    call_fails("OpenMemory", &open, RPC_INVALID_ARGUMENT, "EINVALID");
    const Sessile__V1__MemoryInfo *info = opened(r.memory, "");
    assert_false(info->consented);
    info = opened(r.memory, "I agree");
    assert_true(info->consented);
    assert_string_equal(info->memory->agent, "main");
    assert_string_equal(info->memory->user, "ann");
    assert_false(info->memory->shared);
    assert_string_equal(info->language, "english");
    assert_true(info->created_ms > 0 && info->log_entries > 0 && info->entries == 0);
    assert_null(info->damage);
    wrote(r.memory, "drink", "tea");
    info = call_ok("GetMemory", &r);
    assert_int_equal(info->entries, 1);
    assert_int_equal(info->live, 1);
    assert_int_equal(info->keys, 1);
}

static void test_a_memory_is_named(void **state)
{
    Sessile__V1__MemoryRequest r = SESSILE__V1__MEMORY_REQUEST__INIT;
    Sessile__V1__Raw raw = SESSILE__V1__RAW__INIT;
    (void)state;
    r.memory = memory_named(NULL);
    wrote(r.memory, "", "a rule of the house"); /* makes it */
    const Sessile__V1__MemoryInfo *info = call_ok("GetMemory", &r);
    assert_true(info->memory->shared);
    assert_string_equal(info->memory->user, "");
    r.memory->shared = 0; /* without a guard nobody has an own one */
    info = call_ok("GetMemory", &r);
    assert_int_equal(info->live, 1);
    r.memory = memory_named("ann");
    r.memory->shared = 1;
    call_fails("GetMemory", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.memory = memory_named(NULL);
    r.memory->shared = 0;
    r.memory->raw = &raw;
    raw.user = (ProtobufCBinaryData){2, (uint8_t *)"x\xff"};
    opened(r.memory, "yes");
    info = call_ok("GetMemory", &r);
    assert_memory_equal(info->memory->raw->user.data, "x\xff", 2);
    raw.id = (ProtobufCBinaryData){1, (uint8_t *)"s"};
    call_fails("GetMemory", &r, RPC_INVALID_ARGUMENT, "EINVALID");
}

static void test_consent_is_given_and_withdrawn(void **state)
{
    Sessile__V1__ConsentRequest r = SESSILE__V1__CONSENT_REQUEST__INIT;
    Sessile__V1__WriteMemoryRequest write = SESSILE__V1__WRITE_MEMORY_REQUEST__INIT;
    Sessile__V1__MemoryEntry entry = SESSILE__V1__MEMORY_ENTRY__INIT,
                             *entries[] = {&entry};
    (void)state;
    r.memory = write.memory = memory_named("ann");
    write.entries = entries;
    write.n_entries = 1;
    entry.value = "tea";
    call_fails("SetConsent", &r, RPC_NOT_FOUND, "ENOTFOUND"); /* nothing to withdraw */
    call_fails("WriteMemory", &write, RPC_PERMISSION_DENIED, "EDENIED");
    r.given = 1;
    call_fails("SetConsent", &r, RPC_INVALID_ARGUMENT, "EINVALID"); /* no words */
    r.text = "I agree";
    call_ok("SetConsent", &r);
    call_ok("WriteMemory", &write);
    r.given = 0;
    r.keep = 1;
    const Sessile__V1__MemoryChanged *erased = call_ok("SetConsent", &r);
    assert_int_equal(erased->entries, 0);
    call_fails("WriteMemory", &write, RPC_PERMISSION_DENIED, "EDENIED");
    r.keep = 0;
    erased = call_ok("SetConsent", &r);
    assert_int_equal(erased->entries, 1);
}

/* ---------------------------------------------------------------------- writing */

static void test_entries_are_written_and_read(void **state)
{
    Sessile__V1__WriteMemoryRequest r = SESSILE__V1__WRITE_MEMORY_REQUEST__INIT;
    Sessile__V1__ReadMemoryRequest read = SESSILE__V1__READ_MEMORY_REQUEST__INIT;
    Sessile__V1__MemoryEntryRequest text = SESSILE__V1__MEMORY_ENTRY_REQUEST__INIT;
    Sessile__V1__MemoryEntry entry = SESSILE__V1__MEMORY_ENTRY__INIT,
                             *entries[] = {&entry};
    Sessile__V1__MemoryFrom from = SESSILE__V1__MEMORY_FROM__INIT, *froms[] = {&from};
    Sessile__V1__Was was = SESSILE__V1__WAS__INIT;
    (void)state;
    r.memory = read.memory = text.memory = memory_named("ann");
    opened(r.memory, "yes");
    r.entries = entries;
    r.n_entries = 1;
    read.key = entry.key = "editor";
    entry.value = "prefers vim";
    entry.also = "text editor";
    entry.kind = "procedure";
    entry.source = "agent";
    entry.importance = 0.5;
    entry.metadata = json_of_text("{\"n\":1.0}");
    entry.from = froms;
    entry.n_from = 1;
    entry.pinned = 1;
    from.session = "bug-42";
    from.first = 3;
    from.last = 4;
    entry.was = &was;
    const Sessile__V1__MemoryWritten *written = call_ok("WriteMemory", &r);
    text.entry = written->entries[0];
    const Sessile__V1__MemoryRow *row = call_ok("ReadMemory", &read);
    assert_int_equal(row->id, text.entry);
    assert_string_equal(row->value, "prefers vim");
    assert_string_equal(row->also, "text editor");
    assert_string_equal(row->kind, "procedure");
    assert_string_equal(row->source, "agent");
    assert_string_equal(row->state, "live");
    assert_string_equal(row->metadata->text, "{\"n\":1.0}");
    assert_non_null(strstr(row->from->text, "bug-42"));
    assert_true(row->importance == 0.5 && row->pinned && row->time_ms > 0);
    const Sessile__V1__EntryText *log = call_ok("GetMemoryEntry", &text);
    assert_non_null(strstr(log->json->text, "prefers vim"));
    /* `was` is not so any more */
    call_fails("WriteMemory", &r, RPC_ABORTED, "ECONFLICT");
    was.entry = entry_of(text.entry);
    entry.value = "prefers emacs";
    call_ok("WriteMemory", &r);
    entry.was = NULL;
    assert_string_equal(row_of(r.memory, text.entry)->state, "replaced");
    entry.kind = "opinion";
    call_fails("WriteMemory", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    entry.kind = "fact";
    entry.source = "nobody";
    call_fails("WriteMemory", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    entry.source = "user";
    entry.value = "";
    call_fails("WriteMemory", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    read.key = "shell";
    call_fails("ReadMemory", &read, RPC_NOT_FOUND, "ENOTFOUND");
    text.entry = 999;
    call_fails("GetMemoryRow", &text, RPC_NOT_FOUND, "ENOTFOUND");
    call_fails("GetMemoryEntry", &text, RPC_NOT_FOUND, "ENOTFOUND");
}

static void test_a_change_is_all_or_nothing(void **state)
{
    Sessile__V1__ChangeMemoryRequest r = SESSILE__V1__CHANGE_MEMORY_REQUEST__INIT;
    Sessile__V1__MemoryEntry entry = SESSILE__V1__MEMORY_ENTRY__INIT,
                             *entries[] = {&entry};
    (void)state;
    r.memory = memory_named(NULL);
    sessile_id old = wrote(r.memory, "", "old");
    r.entries = entries;
    r.n_entries = 1;
    entry.value = "new";
    r.ends = &old;
    r.n_ends = 1;
    r.verdict = "rejected";
    r.only_live = 1;
    const Sessile__V1__MemoryWritten *written = call_ok("ChangeMemory", &r);
    assert_string_equal(row_of(r.memory, written->entries[0])->state, "live");
    assert_string_equal(row_of(r.memory, old)->state, "rejected");
    call_fails("ChangeMemory", &r, RPC_ABORTED, "ECONFLICT");
    r.verdict = "forgiven";
    call_fails("ChangeMemory", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    old = 999;
    r.verdict = "";
    r.only_live = 0;
    call_fails("ChangeMemory", &r, RPC_NOT_FOUND, "ENOTFOUND");
}

static void test_verdicts_end_and_restore(void **state)
{
    Sessile__V1__VerdictRequest r = SESSILE__V1__VERDICT_REQUEST__INIT;
    (void)state;
    Sessile__V1__Memory *memory = memory_named(NULL);
    sessile_id id = wrote(memory, "", "tea");
    assert_int_equal(judged(memory, id, ""), 1); /* deleted */
    assert_string_equal(row_of(memory, id)->state, "deleted");
    assert_non_null(row_of(memory, id)->ended_by);
    assert_int_equal(judged(memory, id, "deleted"), 0);
    assert_int_equal(judged(memory, id, "restored"), 1);
    assert_string_equal(row_of(memory, id)->state, "live");
    assert_int_equal(judged(memory, id, "pinned"), 1);
    assert_true(row_of(memory, id)->pinned);
    assert_int_equal(judged(memory, id, "confirmed"), 1);
    assert_int_equal(row_of(memory, id)->confirmed, 1);
    r.memory = memory;
    r.verdict = "gone";
    call_fails("JudgeMemory", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.verdict = "";
    id = 999;
    r.entries = &id;
    r.n_entries = 1;
    call_fails("JudgeMemory", &r, RPC_NOT_FOUND, "ENOTFOUND");
    r.memory = memory_named("nobody");
    call_fails("JudgeMemory", &r, RPC_NOT_FOUND, "ENOTFOUND");
}

static void test_what_came_from_a_session_is_deleted_and_erased(void **state)
{
    Sessile__V1__WriteMemoryRequest write = SESSILE__V1__WRITE_MEMORY_REQUEST__INIT;
    Sessile__V1__MemoryEntry entry = SESSILE__V1__MEMORY_ENTRY__INIT,
                             *entries[] = {&entry};
    Sessile__V1__MemoryFrom from = SESSILE__V1__MEMORY_FROM__INIT, *froms[] = {&from};
    Sessile__V1__DeleteFromRequest gone = SESSILE__V1__DELETE_FROM_REQUEST__INIT;
    Sessile__V1__EraseRequest erase = SESSILE__V1__ERASE_REQUEST__INIT;
    (void)state;
    write.memory = gone.memory = erase.memory = memory_named(NULL);
    write.entries = entries;
    write.n_entries = entry.n_from = 1;
    entry.value = "a secret word";
    entry.from = froms;
    from.session = gone.session = "s";
    from.first = from.last = 1;
    const Sessile__V1__MemoryWritten *written = call_ok("WriteMemory", &write);
    const Sessile__V1__MemoryChanged *changed = call_ok("DeleteMemoryFrom", &gone);
    assert_int_equal(changed->entries, 1);
    assert_string_equal(row_of(erase.memory, written->entries[0])->state, "deleted");
    erase.entries = written->entries;
    erase.n_entries = 1;
    changed = call_ok("EraseMemory", &erase);
    assert_int_equal(changed->entries, 1);
    const Sessile__V1__MemoryRow *row = row_of(erase.memory, written->entries[0]);
    assert_string_equal(row->state, "erased");
    assert_string_equal(row->value, "");
    sessile_id none = 999;
    erase.entries = &none;
    call_fails("EraseMemory", &erase, RPC_NOT_FOUND, "ENOTFOUND");
}

/* ---------------------------------------------------------------------- reading */

static size_t count_of(Sessile__V1__ListMemoryRequest *r)
{
    unsigned char bytes[256];
    size_t count = 0, size = sessile__v1__list_memory_request__pack(r, bytes);
    call_bytes("ListMemory", bytes, size);
    assert_int_equal(direct.rpc.got.code, RPC_OK);
    for (size_t i = 0; i < direct.rpc.got.count; i++) {
        const Sessile__V1__MemoryRows *piece = call_got("ListMemory", i);
        count += piece->n_rows;
    }
    return count;
}

static void test_a_list_is_filtered(void **state)
{
    Sessile__V1__ListMemoryRequest r = SESSILE__V1__LIST_MEMORY_REQUEST__INIT;
    Sessile__V1__MemoryFilter filter = SESSILE__V1__MEMORY_FILTER__INIT;
    char *states[] = {"live", "deleted"}, *kinds[] = {"episode"}, *wrong[] = {"dead"};
    (void)state;
    r.memory = memory_named(NULL);
    wrote(r.memory, "a.one", "first");
    wrote(r.memory, "b.two", "second");
    judged(r.memory, wrote(r.memory, "a.three", "third"), "deleted");
    r.limit = 2;
    const Sessile__V1__MemoryRows *rows = call_ok("ListMemory", &r);
    assert_int_equal(rows->n_rows, 2);
    assert_string_equal(rows->rows[0]->value, "second"); /* newest first */
    r.skip = 1;
    assert_int_equal(count_of(&r), 1);
    r.skip = r.limit = 0;
    r.filter = &filter;
    filter.key_prefix = "a.";
    assert_int_equal(count_of(&r), 1);
    filter.states = states;
    filter.n_states = 2;
    assert_int_equal(count_of(&r), 2);
    filter.states = wrong;
    filter.n_states = 1;
    call_fails("ListMemory", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    filter.n_states = 0;
    filter.kinds = kinds;
    filter.n_kinds = 1;
    assert_int_equal(count_of(&r), 0);
    filter.n_kinds = 0;
    r.limit = 1001;
    call_fails("ListMemory", &r, RPC_RESOURCE_EXHAUSTED, "ELIMIT");
}

static void test_a_large_list_comes_in_pieces(void **state)
{
    enum { COUNT = 40, SIZE = 60000 };
    static char value[SIZE + 1];
    Sessile__V1__ListMemoryRequest r = SESSILE__V1__LIST_MEMORY_REQUEST__INIT;
    (void)state;
    r.memory = memory_named(NULL);
    memset(value, 'x', SIZE);
    for (int i = 0; i < COUNT; i++)
        wrote(r.memory, "", value);
    assert_int_equal(count_of(&r), COUNT);
    assert_int_equal(direct.rpc.got.count, 10);
    for (size_t i = 0; i < 10; i++)
        assert_true(direct.rpc.got.sent[i].size <= 256 * 1024);
}

static void test_the_history_of_a_key(void **state)
{
    Sessile__V1__MemoryHistoryRequest r = SESSILE__V1__MEMORY_HISTORY_REQUEST__INIT;
    (void)state;
    r.memory = memory_named(NULL);
    sessile_id old = wrote(r.memory, "editor", "vim");
    wrote(r.memory, "editor", "emacs");
    r.key = "editor";
    const Sessile__V1__MemoryRows *rows = call_ok("GetMemoryHistory", &r);
    assert_int_equal(rows->n_rows, 2);
    assert_string_equal(rows->rows[0]->value, "emacs");
    assert_int_equal(rows->rows[1]->id, old);
    r.key = "";
    r.entry = old;
    rows = call_ok("GetMemoryHistory", &r);
    assert_int_equal(rows->n_rows, 1);
    r.key = "shell";
    call_fails("GetMemoryHistory", &r, RPC_NOT_FOUND, "ENOTFOUND");
}

static void test_a_search_finds_words(void **state)
{
    Sessile__V1__SearchMemoryRequest r = SESSILE__V1__SEARCH_MEMORY_REQUEST__INIT;
    (void)state;
    r.memory = memory_named(NULL);
    wrote(r.memory, "", "likes green tea");
    wrote(r.memory, "", "lives in Vienna");
    r.question = "which tea?";
    r.explain = 1;
    const Sessile__V1__MemoryRows *rows = call_ok("SearchMemory", &r);
    assert_int_equal(rows->n_rows, 1);
    assert_string_equal(rows->rows[0]->value, "likes green tea");
    assert_true(rows->rows[0]->score > 0);
    assert_non_null(strstr(rows->rows[0]->explain->text, "tea"));
    r.limit = 1001;
    call_fails("SearchMemory", &r, RPC_RESOURCE_EXHAUSTED, "ELIMIT");
    r.limit = 0;
    r.memory = memory_named("nobody");
    call_fails("SearchMemory", &r, RPC_NOT_FOUND, "ENOTFOUND");
}

/* ---------------------------------------------------------------------- what is kept
 * open */

static void test_a_memory_that_was_removed_is_not_kept_open(void **state)
{
    Sessile__V1__MemoryRequest r = SESSILE__V1__MEMORY_REQUEST__INIT;
    Sessile__V1__ReadMemoryRequest read = SESSILE__V1__READ_MEMORY_REQUEST__INIT;
    (void)state;
    r.memory = read.memory = memory_named("ann");
    opened(r.memory, "yes");
    wrote(r.memory, "drink", "tea");
    assert_int_equal(keep_count(direct.service.memories), 1);
    /* a key that is not there is no reason to open the memory again */
    read.key = "food";
    call_fails("ReadMemory", &read, RPC_NOT_FOUND, "ENOTFOUND");
    assert_int_equal(keep_count(direct.service.memories), 1);
    assert_int_equal(
        sessile_user_erase(direct.store, sessile_text("ann"), NULL, NULL, NULL), 0);
    call_fails("GetMemory", &r, RPC_FAILED_PRECONDITION, "ESEALED"); /* forgotten */
    assert_int_equal(keep_count(direct.service.memories), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_method_of_the_proto_is_there),
        DIRECT(test_what_is_no_request_is_refused),
        DIRECT(test_a_memory_is_opened_with_consent),
        DIRECT(test_a_memory_is_named),
        DIRECT_FILES(test_consent_is_given_and_withdrawn),
        DIRECT(test_entries_are_written_and_read),
        DIRECT(test_a_change_is_all_or_nothing),
        DIRECT(test_verdicts_end_and_restore),
        DIRECT_FILES(test_what_came_from_a_session_is_deleted_and_erased),
        DIRECT(test_a_list_is_filtered),
        DIRECT(test_a_large_list_comes_in_pieces),
        DIRECT(test_the_history_of_a_key),
        DIRECT(test_a_search_finds_words),
        DIRECT_FILES(test_a_memory_that_was_removed_is_not_kept_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

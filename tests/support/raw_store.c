/*
 * raw_store.c: a store used through its table.
 */
#include "support/raw_store.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <string.h>

#include "store/file/open.h"
#include "store/ram.h"

void raw_init(raw_store *p)
{
    memset(p, 0, sizeof *p);
    faults_init(&p->os);
    p->alloc = meter_allocator(&p->memory);
    scratch_make(p->folder);
    snprintf(p->root, sizeof p->root, "%s/a/store", p->folder);
}

sessile_status raw_try(raw_store *p, raw_kind kind, sessile_error *err)
{
    if (kind == RAW_RAM)
        return store_ram_open(&p->st, &p->os.table, &p->alloc, err);
    return store_file_open(&p->st, p->root, &p->os.table, &p->alloc, err);
}

void raw_open(raw_store *p, raw_kind kind)
{
    sessile_error err = {0};
    raw_init(p);
    assert_int_equal(raw_try(p, kind, &err), SESSILE_OK);
}

sessile_backend_log *raw_open_log(raw_store *p, raw_kind kind, const char *text)
{
    sessile_error err = {0};
    raw_open(p, kind);
    assert_int_equal(
        p->st.table->create(p->st.self, "main", "log", text, strlen(text), &err),
        SESSILE_OK);
    return raw_log(p, "log");
}

void raw_again(raw_store *p, store *again)
{
    sessile_error err = {0};
    assert_int_equal(store_file_open(again, p->root, &p->os.table, &p->alloc, &err),
                     SESSILE_OK);
}

void raw_close(raw_store *p)
{
    faults_none(&p->os);
    store_close(&p->st);
    assert_int_equal(p->memory.live, 0);
    scratch_remove(p->folder);
}

void raw_close_log(raw_store *p, sessile_backend_log *log)
{
    p->st.table->close(log);
    raw_close(p);
}

int raw_has_logs(raw_store *p)
{
    sessile_error err = {0};
    int found;
    assert_int_equal(p->st.table->has_logs(p->st.self, &found, &err), SESSILE_OK);
    return found;
}

sessile_backend_log *raw_log(raw_store *p, const char *name)
{
    sessile_backend_log *log;
    sessile_error err = {0};
    assert_int_equal(p->st.table->open(p->st.self, "main", name, &log, &err), SESSILE_OK);
    return log;
}

void raw_holds(raw_store *p, sessile_backend_log *log, const char *expected)
{
    char bytes[4096];
    size_t got;
    uint64_t size;
    int64_t mtime;
    sessile_error err = {0};
    assert_int_equal(p->st.table->read(log, 0, 0, bytes, sizeof bytes, &got, &err),
                     SESSILE_OK);
    assert_int_equal(got, strlen(expected));
    assert_memory_equal(bytes, expected, got);
    assert_int_equal(p->st.table->size(log, &size, &mtime, &err), SESSILE_OK);
    assert_int_equal(size, got);
}

int raw_locked(raw_store *p, sessile_backend_log *log)
{
    sessile_error err = {0};
    int replaced;
    assert_int_equal(p->st.table->lock(log, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &err),
                     SESSILE_OK);
    return replaced;
}

void raw_path(const raw_store *p, const char *rest, char out[700])
{
    snprintf(out, 700, "%s%s", p->root, rest);
}

int raw_note(void *arg, const char *folder, const char *name)
{
    raw_names *n = arg;
    snprintf(n->text + strlen(n->text), sizeof n->text - strlen(n->text), "%s/%s ",
             folder, name);
    return --n->left == 0;
}

/* audits.c: see audits.h. The attacker writes logs by the store's own key. */
#include "support/audits.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "session/handle.h"
#include "session/header.h"
#include "support/check.h"

audit_event event_of(const char *operation, const char *user)
{
    audit_event e;

    audit_event_init(&e);
    e.operation.name = sessile_text(operation);
    e.who.user = sessile_text(user);
    return e;
}

void audit_say(audit_log *a, const char *operation)
{
    audit_event e = event_of(operation, NULL);
    sessile_error err;

    must(audit_write(a, AUDIT_WRITE, &e, NULL, &err), &err);
}

audit_log *audit_opened(store_core *st)
{
    audit_log *a;
    sessile_error err;

    must(audit_open(&a, st, NULL, &err), &err);
    return a;
}

void audit_closed(audit_log *a)
{
    sessile_error err;

    must(audit_close(a, &err), &err);
}

sessile_audit_report verdict_of(store_core *st, const char *root)
{
    sessile_audit_report v;
    sessile_error err;

    must(audit_verify(st, root, NULL, &v, &err), &err);
    return v;
}

void assert_holds(store_core *st, const char *root)
{
    sessile_audit_report v = verdict_of(st, root);

    if (!v.holds)
        fail_msg("%s %s", v.where, v.why);
}

void assert_found_out(store_core *st, const char *root, const char *part)
{
    sessile_audit_report v = verdict_of(st, root);

    if (v.holds)
        fail_msg("not found out: %s", part);
    if (!strstr(v.why, part))
        fail_msg("%s has not: %s", v.why, part);
}

static sessile_status take(void *arg, sessile_id id, const char *text, size_t size,
                           sessile_error *err)
{
    stolen *s = arg;

    (void)id;
    (void)err;
    assert_true(s->count < sizeof s->texts / sizeof *s->texts);
    s->texts[s->count] = calloc(1, size + 1);
    memcpy(s->texts[s->count++], text, size);
    return SESSILE_OK;
}

void steal(store_core *st, const char *name, stolen *out)
{
    sessile_error err;
    log_tail tail;
    log_t *log;

    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", name);
    must(log_inspect(&log, &st->backend, st->keys, AUDIT_FOLDER, name,
                     session_read_depth(st), 1000, NULL, take, out, &tail, &st->alloc,
                     &err),
         &err);
    log_close(log);
}

void stolen_free(stolen *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->texts[i]);
    s->count = 0;
}

void log_gone(store_core *st, const char *name)
{
    sessile_error err;
    uint64_t bytes;

    must(log_remove(&st->backend, st->keys, AUDIT_FOLDER, name, NULL, 1000, &bytes, &err),
         &err);
}

static sessile_status pass_over(void *arg, sessile_id id, const char *text, size_t size,
                                sessile_error *err)
{
    (void)arg, (void)id, (void)text, (void)size, (void)err;
    return SESSILE_OK;
}

void forge(store_core *st, const stolen *s, int renumber)
{
    sessile_slice texts[256];
    sessile_error err;
    uint64_t torn;
    log_t *log;

    log_gone(st, s->name);
    for (size_t i = 0; i < s->count; i++) {
        char id[9];
        id_print((sessile_id)i, id);
        if (renumber)
            memcpy(s->texts[i] + 7, id, 8);
        texts[i] = (sessile_slice){s->texts[i], strlen(s->texts[i])};
    }
    must(log_create(&st->backend, st->keys, AUDIT_FOLDER, s->name, texts[0].data,
                    texts[0].size, 1000, &st->alloc, &err),
         &err);
    if (s->count == 1)
        return;
    must(log_open(&log, &st->backend, st->keys, AUDIT_FOLDER, s->name,
                  session_read_depth(st), 1000, pass_over, NULL, &torn, &st->alloc, &err),
         &err);
    must(log_begin(log, pass_over, NULL, &err), &err);
    must(log_append(log, texts + 1, s->count - 1, 0, &err), &err);
    log_end(log);
    log_close(log);
}

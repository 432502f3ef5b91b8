/* indexes.c: sessions opened by their index, compared as one text */
#include "guard/enter.h"
#include "support/indexes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log/copy.h"
#include "log/internal.h"
#include "session/fold.h"
#include "operations/messages.h"
#include "support/check.h"
#include "support/logs.h"
#include "support/sessions.h"

#include <cmocka.h>

long allocations_left = -1; /* allocations until they fail; -1: never */

void *index_filling(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)ud;
    if (!nsize) {
        if (ptr)
            memset(ptr, 0xA5, osize);
        free(ptr);
        return NULL;
    }
    if (allocations_left == 0)
        return NULL;
    if (allocations_left > 0)
        allocations_left--;
    void *grown = malloc(nsize);
    if (!grown)
        return NULL;
    memset(grown, 0xA5, nsize);
    if (ptr) {
        memcpy(grown, ptr, osize < nsize ? osize : nsize);
        memset(ptr, 0xA5, osize);
        free(ptr);
    }
    return grown;
}

sessile_store *index_store_on(const char *folder, store_kind kind)
{
    sessile_store_options o;
    sessile_error err;
    sessile_store *st;
    memset(&o, 0, sizeof o);
    o.config.has_timeout = 1;
    o.config.timeout_ms = 60000;
    o.durability = SESSILE_NONE;
    o.alloc = index_filling;
    o.key_source = kind == STORE_SEALED ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
    o.key = KIT_SECRET;
    must(sessile_open(&st, folder, &o, &err), &err);
    return st;
}

index_bed bed_make(store_kind kind)
{
    index_bed b = {folder_make(), kind, NULL};
    b.st = index_store_on(b.folder, kind);
    return b;
}

void bed_end(index_bed *b)
{
    sessile_store_close(b->st);
    folder_remove(b->folder);
}

const char *bed_path(const index_bed *b, const char *name, const char *suffix)
{
    static char paths[4][600];
    static int n;
    char *path = paths[n++ % 4];
    snprintf(path, 600, "%s/agents/main/%s%s", b->folder, name, suffix);
    return path;
}

void index_settle(sessile_session *s)
{
    sessile_error err;
    must(log_sync(s->core->log, log_count(s->core->log), &err), &err);
    log_index_try(s->core->log);
}

void index_tell(sessile_session *s, size_t count, uint64_t *seed)
{
    sessile_error why;
    pthread_mutex_lock(&s->core->mutex);
    must(session_refresh_locked(s->core, &why), &why);
    s->core->tree.base = s->core->tree.head;
    pthread_mutex_unlock(&s->core->mutex);
    while (log_count(s->core->log) < count) {
        uint64_t r = random_next(seed);
        char text[900], at[9], was[9];
        sessile_id head = s->core->tree.head;
        snprintf(at, sizeof at, "%08x", head);
        snprintf(was, sizeof was, "%08x", head ? (unsigned)(r >> 20) % head : 0);
        switch (r % 16) {
        case 0:
            say_turn(s,
                     (const char *const[]){
                         "{\"role\":\"user\",\"content\":\"look\",\"usage\":{\"input\":1}"
                         "}",
                         "{\"role\":\"assistant\",\"content\":\"\",\"usage\":{\"output\":"
                         "9},\"tool_calls\":[{\"id\":\"c1\",\"name\":\"n\",\"arguments\":"
                         "\"\"},{\"id\":\"c2\",\"name\":\"n\",\"arguments\":\"\"}]}",
                         "{\"role\":\"tool\",\"tool_call_id\":\"c2\",\"content\":\"r\"}",
                         "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"r\"}"},
                     4, r & 256 ? ",\"usage\":{\"input\":30,\"output\":4}" : "");
            break;
        case 1:
            if (!head)
                break;
            snprintf(text, sizeof text,
                     "{\"context\":[\"%08x.1\"],\"upto\":\"%s\",\"inserted\":[{\"n\":1,"
                     "\"message\":{\"role\":\"user\",\"content\":\"so far\"}}]%s}",
                     log_count(s->core->log), at,
                     r & 256 ? ",\"vars\":{\"p\":{\"n\":1}}" : "");
            put_entry(s, "compaction", SESSILE_NO_ID, text);
            break;
        case 2:
            put_entry(s, "custom", SESSILE_NO_ID, "{\"mark\":true}");
            break;
        case 3:
            snprintf(text, sizeof text, "{\"title\":\"secret title %u\"}",
                     (unsigned)(r >> 40));
            put_entry(s, "metadata", SESSILE_NO_ID, text);
            break;
        case 4:
            if (r & 0xf00) /* to the end of some other branch, or of this one */
                break;
            pthread_mutex_lock(&s->core->mutex);
            sessile_id to = (unsigned)(r >> 20) % log_count(s->core->log);
            sessile_error err;
            must(session_load_locked(s->core, to, &err), &err);
            int can = session_is_path_entry(s->core, to);
            pthread_mutex_unlock(&s->core->mutex);
            if (can)
                move_head(s, to);
            break;
        case 5:
            put_entry(s, "refusal", SESSILE_NO_ID, "{\"why\":\"law\"}");
            break;
        case 6:
            say_json(s, "{\"role\":\"assistant\",\"content\":\"alone\",\"usage\":{"
                        "\"input\":3,\"output\":2}}");
            break;
        default:
            snprintf(text, sizeof text, "canary words %u of the story",
                     (unsigned)log_count(s->core->log));
            say(s, r & 256 ? "user" : "assistant", text);
        }
    }
}

void make_story(index_bed *b, const char *name, size_t count, uint64_t seed)
{
    sessile_session *s = session_made(b->st, name);
    index_tell(s, count, &seed);
    session_closed(s);
}

void put_rows(buf *out, const sessile_message *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "%08x.%u r%d t%lld at%lld ", rows[i].key.entry, rows[i].key.n,
                   (int)rows[i].role, (long long)rows[i].tokens,
                   (long long)rows[i].time_ms);
        buf_put(out, rows[i].json.data, rows[i].json.size);
        buf_putc(out, '\n');
    }
}

sessile_status put_context(sessile_session *s, sessile_id leaf, buf *out,
                           sessile_error *err)
{
    const context *c = NULL;
    sessile_message *rows = NULL;
    sessile_context_info info;
    sessile_status status;
    size_t count = 0;
    context at;
    context_init(&at, &s->core->store->alloc);
    if (leaf == SESSILE_NO_ID) {
        status = session_context_locked(s->core, &c, err);
    } else {
        c = &at;
        status = session_context_at_locked(s->core, leaf, &at, err);
    }
    memset(&info, 0, sizeof info);
    if (!status)
        status = render_context(c, (render_text)(void (*)(void))session_message_locked,
                                s->core, s->core, &rows, &count, &info,
                                &s->core->store->alloc, err);
    if (!status) {
        buf_printf(out, "context %x: %zu, %llu orphans\n", leaf, count,
                   (unsigned long long)info.orphans);
        put_rows(out, rows, count);
    }
    sessile_free(rows);
    context_deinit(&at);
    return status;
}

sessile_status put_state(sessile_session *s, buf *out, sessile_error *err)
{
    sessile_messages_options o = {.from = SESSILE_NO_ID, .at = SESSILE_NO_ID};
    sessile_tokens tokens;
    sessile_message *rows = NULL;
    size_t count = 0, total;
    sessile_status status = session_messages(s->core, &o, &rows, &count, err);
    if (status)
        return status;
    buf_printf(
        out,
        "title %.*s head %x usage %lld %lld %lld modified %lld created %lld "
        "count %zu refusal %llx torn %llu\nmessages\n",
        (int)s->core->fold.title_size, s->core->fold.title ? s->core->fold.title : "",
        s->core->tree.head, (long long)s->core->fold.usage.input,
        (long long)s->core->fold.usage.output, (long long)s->core->fold.usage.cache_read,
        (long long)(s->core->fold.written_ms + s->core->fold.said_ms),
        (long long)s->core->header.created_ms, s->core->tree.node_count,
        (unsigned long long)s->core->refusals.last, (unsigned long long)s->core->torn);
    put_rows(out, rows, count);
    sessile_free(rows);
    pthread_mutex_lock(&s->core->mutex);
    total = s->core->tree.node_count;
    status = put_context(s, SESSILE_NO_ID, out, err);
    if (!status)
        status = session_tokens_locked(s->core, &tokens, err);
    if (!status) {
        buf_printf(out, "tokens %lld %s\n", (long long)tokens.tokens, tokens.source);
        status = session_vars_locked(s->core, s->core->tree.head, out, err);
    }
    for (size_t id = 5; !status && id < total; id = id * 3 / 2) {
        status = session_load_locked(s->core, (sessile_id)id, err);
        if (!status && session_is_path_entry(s->core, (sessile_id)id))
            status = put_context(s, (sessile_id)id, out, err);
    }
    for (size_t id = 0; !status && id < total; id++) {
        const node *n;
        status = session_text_locked(s->core, (sessile_id)id, out, err);
        if (!status)
            status = session_load_locked(s->core, (sessile_id)id, err);
        n = &s->core->tree.nodes[id];
        if (!status)
            buf_printf(out, "\n%x %u %u %u %u %u %x %x %u %u %u %u %lld", n->parent,
                       n->tokens, n->turn, n->link_count, n->events, n->messages,
                       n->context_at, n->vars_at, n->type, n->role, n->flags, n->marks,
                       (long long)n->time_ms);
        for (uint32_t k = 0; !status && k < n->link_count; k++)
            buf_printf(out, " %llx/%d",
                       (unsigned long long)s->core->tree.links[n->link + k].id,
                       s->core->tree.links[n->link + k].is_result);
    }
    pthread_mutex_unlock(&s->core->mutex);
    return status;
}

sessile_status state_of(const index_bed *b, const char *name, char **out, int *restored,
                        sessile_error *err)
{
    sessile_store *st = index_store_on(b->folder, b->kind);
    sessile_session_options o;
    sessile_session *s;
    sessile_status status;
    buf text;
    memset(&o, 0, sizeof o);
    o.id = (sessile_slice){name, strlen(name)};
    buf_init(&text, &allocator_default);
    *out = NULL;
    status = sessile_resume(&s, st, &o, err);
    if (!status) {
        if (restored)
            *restored = s->core->index.restored;
        status = put_state(s, &text, err);
        if (!status) /* what is there was shown; nothing may be written */
            status = session_damage_locked(s->core, NULL, err);
        assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
    }
    buf_putc(&text, 0);
    if (!status)
        *out = strdup(text.data);
    buf_deinit(&text);
    sessile_store_close(st);
    return status;
}

char *state_must(const index_bed *b, const char *name, int *restored)
{
    sessile_error err;
    char *out;
    must(state_of(b, name, &out, restored, &err), &err);
    return out;
}

void assert_same_text(const char *a, const char *b, const char *what, size_t n)
{
    size_t at = 0;
    if (!strcmp(a, b))
        return;
    while (a[at] == b[at])
        at++;
    at = at > 100 ? at - 100 : 0;
    fail_msg("%s %zu: %.300s\n--- is not ---\n%.300s", what, n, a + at, b + at);
}

char *truth_of(const index_bed *b, const char *name)
{
    int restored;
    char *out;
    unlink(bed_path(b, name, ".idx"));
    out = state_must(b, name, &restored);
    assert_int_equal(restored, 0);
    unlink(bed_path(b, name, ".idx"));
    return out;
}

index_files take_files(const index_bed *b, const char *name)
{
    index_files f;
    f.log = file_read_all(bed_path(b, name, ".jsonl"), &f.log_size);
    f.idx = file_read_all(bed_path(b, name, ".idx"), &f.idx_size);
    return f;
}

void drop_files(index_files *f)
{
    free(f->log);
    free(f->idx);
}

void log_is(const index_bed *b, const char *name, const index_files *f)
{
    size_t size;
    char *now = file_read_all(bed_path(b, name, ".jsonl"), &size);
    assert_int_equal(size, f->log_size);
    assert_memory_equal(now, f->log, size);
    free(now);
}

void index_shows(const index_bed *b, const char *truth, const index_files *f,
                 const char *what, size_t n)
{
    char *now = state_must(b, "s", NULL);
    assert_same_text(now, truth, what, n);
    log_is(b, "s", f);
    free(now);
}

void put_index(const index_bed *b, const void *data, size_t size)
{
    unlink(bed_path(b, "s", ".idx"));
    file_write_all(bed_path(b, "s", ".idx"), data, size);
}

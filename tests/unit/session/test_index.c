/*
 * test_index.c: opening by the index, and what becomes of an index that is not
 * as it was written.
 *
 * One rule is behind all of it: what a session shows is what its log says, with
 * an index, without one, and with any index at all; or the error is the one
 * that names what is wrong. A whole state is one text here, so that two ways to
 * it can be compared. (One long file, since every fault of an index is held
 * against that one text and the same few logs.)
 */
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
#include "support/logs.h"
#include "support/sessions.h"

#include <cmocka.h>

static int soak(void)
{
    const char *set = getenv("SESSILE_SOAK");
    return set && *set == '1';
}

/* ------------------------------------------------------------------ stores */

/* Fills what it hands out, and what it takes back: a node that was never
 * brought shows. */
static long left = -1; /* allocations until they fail; -1: never */
static void *filling(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)ud;
    if (!nsize) {
        if (ptr)
            memset(ptr, 0xA5, osize);
        free(ptr);
        return NULL;
    }
    if (left == 0)
        return NULL;
    if (left > 0)
        left--;
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

static void must(sessile_status status, const sessile_error *err)
{
    if (status)
        fail_msg("%s: %s", sessile_status_name(status), err->message);
}

static sessile_store *store_on(const char *folder, store_kind kind)
{
    sessile_store_options o;
    sessile_error err;
    sessile_store *st;
    memset(&o, 0, sizeof o);
    o.timeout_ms = 60000;
    o.durability = SESSILE_NONE;
    o.alloc = filling;
    o.key_source = kind == STORE_SEALED ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
    o.key = KIT_SECRET;
    must(store_handle_open(&st, folder, &o, &err), &err);
    return st;
}

typedef struct bed {
    char *folder;
    store_kind kind;
    sessile_store *st;
} bed;

static bed bed_make(store_kind kind)
{
    bed b = {folder_make(), kind, NULL};
    b.st = store_on(b.folder, kind);
    return b;
}

static void bed_end(bed *b)
{
    store_handle_close(b->st);
    folder_remove(b->folder);
}

static const char *path_of(const bed *b, const char *name, const char *suffix)
{
    static char paths[4][600];
    static int n;
    char *path = paths[n++ % 4];
    snprintf(path, 600, "%s/agents/main/%s%s", b->folder, name, suffix);
    return path;
}

static int is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* What is durable is in the index from here on. */
static void settle(sessile_session *s)
{
    sessile_error err;
    must(log_sync(s->log, log_count(s->log), &err), &err);
    log_index_try(s->log);
}

/* ------------------------------------------------------------------ a story */

/* Entries of every kind, different for every seed; count of them or a few more.
 */
static void tell(sessile_session *s, size_t count, uint64_t *seed)
{
    sessile_error why;
    pthread_mutex_lock(&s->mutex);
    must(session_refresh_locked(s, &why), &why);
    s->tree.base = s->tree.head;
    pthread_mutex_unlock(&s->mutex);
    while (log_count(s->log) < count) {
        uint64_t r = random_next(seed);
        char text[900], at[9], was[9];
        sessile_id head = s->tree.head;
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
                     log_count(s->log), at, r & 256 ? ",\"vars\":{\"p\":{\"n\":1}}" : "");
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
            pthread_mutex_lock(&s->mutex);
            sessile_id to = (unsigned)(r >> 20) % log_count(s->log);
            sessile_error err;
            must(session_reach_locked(s, to, &err), &err);
            int can = session_is_path_entry(s, to);
            pthread_mutex_unlock(&s->mutex);
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
                     (unsigned)log_count(s->log));
            say(s, r & 256 ? "user" : "assistant", text);
        }
    }
}

/* An entry of the first block that can be a leaf. */
static sessile_id old_leaf(sessile_session *s)
{
    sessile_error err;
    sessile_id id = 5;
    must(session_reach_locked(s, id, &err), &err);
    while (!session_is_path_entry(s, id))
        id++;
    return id;
}

static void make_story(bed *b, const char *name, size_t count, uint64_t seed)
{
    sessile_session *s = session_made(b->st, name);
    tell(s, count, &seed);
    session_closed(s);
}

/* ------------------------------------------------------------------ a state,
 * as text */

static void put_rows(buf *out, const sessile_message *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "%08x.%u r%d t%lld at%lld ", rows[i].key.entry, rows[i].key.n,
                   (int)rows[i].role, (long long)rows[i].tokens,
                   (long long)rows[i].time_ms);
        buf_put(out, rows[i].json.data, rows[i].json.size);
        buf_putc(out, '\n');
    }
}

static sessile_status put_context(sessile_session *s, sessile_id leaf, buf *out,
                                  sessile_error *err)
{
    const context *c = NULL;
    sessile_message *rows = NULL;
    sessile_context_info info;
    sessile_status status;
    size_t count = 0;
    context at;
    context_init(&at, &s->store->alloc);
    if (leaf == SESSILE_NO_ID) {
        status = session_context_locked(s, &c, err);
    } else {
        c = &at;
        status = session_context_at_locked(s, leaf, &at, err);
    }
    memset(&info, 0, sizeof info);
    if (!status)
        status = render_context(c, (render_text)(void (*)(void))session_message_locked, s,
                                s, &rows, &count, &info, &s->store->alloc, err);
    if (!status) {
        buf_printf(out, "context %x: %zu, %llu orphans\n", leaf, count,
                   (unsigned long long)info.orphans);
        put_rows(out, rows, count);
    }
    sessile_free(rows);
    context_deinit(&at);
    return status;
}

/* Everything that an open handle shows. */
static sessile_status put_state(sessile_session *s, buf *out, sessile_error *err)
{
    sessile_messages_options o = {.from = SESSILE_NO_ID, .at = SESSILE_NO_ID};
    sessile_tokens tokens;
    sessile_message *rows = NULL;
    size_t count = 0, total;
    sessile_status status = session_messages(s, &o, &rows, &count, err);
    if (status)
        return status;
    buf_printf(out,
               "title %.*s head %x usage %lld %lld %lld modified %lld created %lld "
               "count %zu refusal %llx torn %llu\nmessages\n",
               (int)s->fold.title_size, s->fold.title ? s->fold.title : "", s->tree.head,
               (long long)s->fold.usage.input, (long long)s->fold.usage.output,
               (long long)s->fold.usage.cache_read, (long long)s->fold.modified_ms,
               (long long)s->header.created_ms, s->tree.node_count,
               (unsigned long long)s->refusals.last, (unsigned long long)s->torn);
    put_rows(out, rows, count);
    sessile_free(rows);
    pthread_mutex_lock(&s->mutex);
    total = s->tree.node_count;
    status = put_context(s, SESSILE_NO_ID, out, err);
    if (!status)
        status = session_tokens_locked(s, &tokens, err);
    if (!status) {
        buf_printf(out, "tokens %lld %s\n", (long long)tokens.tokens, tokens.source);
        status = session_vars_locked(s, s->tree.head, out, err);
    }
    for (size_t id = 5; !status && id < total; id = id * 3 / 2) {
        status = session_reach_locked(s, (sessile_id)id, err);
        if (!status && session_is_path_entry(s, (sessile_id)id))
            status = put_context(s, (sessile_id)id, out, err);
    }
    for (size_t id = 0; !status && id < total; id++) {
        const node *n;
        status = session_text_locked(s, (sessile_id)id, out, err);
        if (!status)
            status = session_reach_locked(s, (sessile_id)id, err);
        n = &s->tree.nodes[id];
        if (!status)
            buf_printf(out, "\n%x %u %u %u %u %u %x %x %u %u %u %u %lld", n->parent,
                       n->tokens, n->turn, n->link_count, n->events, n->messages,
                       n->context_at, n->vars_at, n->type, n->role, n->flags, n->marks,
                       (long long)n->time_ms);
        for (uint32_t k = 0; !status && k < n->link_count; k++)
            buf_printf(out, " %llx/%d", (unsigned long long)s->tree.links[n->link + k].id,
                       s->tree.links[n->link + k].is_result);
    }
    pthread_mutex_unlock(&s->mutex);
    return status;
}

/* Opens with another store handle; restored says whether the index was used. */
static sessile_status state_of(const bed *b, const char *name, char **out, int *restored,
                               sessile_error *err)
{
    sessile_store *st = store_on(b->folder, b->kind);
    sessile_session_options o;
    sessile_session *s;
    sessile_status status;
    buf text;
    memset(&o, 0, sizeof o);
    o.id = (sessile_slice){name, strlen(name)};
    buf_init(&text, &allocator_default);
    *out = NULL;
    status = session_open(&s, st, &o, err);
    if (!status) {
        if (restored)
            *restored = s->index.restored;
        status = put_state(s, &text, err);
        if (!status) /* what is there was shown; nothing may be written */
            status = session_damage_locked(s, NULL, err);
        assert_int_equal(session_close(s, NULL), SESSILE_OK);
    }
    buf_putc(&text, 0);
    if (!status)
        *out = strdup(text.data);
    buf_deinit(&text);
    store_handle_close(st);
    return status;
}

static char *state_must(const bed *b, const char *name, int *restored)
{
    sessile_error err;
    char *out;
    must(state_of(b, name, &out, restored, &err), &err);
    return out;
}

static void same_text(const char *a, const char *b, const char *what, size_t n)
{
    size_t at = 0;
    if (!strcmp(a, b))
        return;
    while (a[at] == b[at])
        at++;
    at = at > 100 ? at - 100 : 0;
    fail_msg("%s %zu: %.300s\n--- is not ---\n%.300s", what, n, a + at, b + at);
}

/* The state that the lines alone give. Leaves no index. */
static char *truth_of(const bed *b, const char *name)
{
    int restored;
    char *out;
    unlink(path_of(b, name, ".idx"));
    out = state_must(b, name, &restored);
    assert_int_equal(restored, 0);
    unlink(path_of(b, name, ".idx"));
    return out;
}

/* ------------------------------------------------------------------ used at
 * all */

static void opening_by_the_index_shows_what_a_scan_shows(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++)
        for (uint64_t seed = 1; seed <= (soak() ? 200 : 6); seed++) {
            bed b = bed_make((store_kind)kind);
            int restored = 0;
            char *with, *without;
            make_story(&b, "s", 300 + (size_t)(seed * 131) % 900, seed);
            assert_true(is_there(path_of(&b, "s", ".idx")));
            with = state_must(&b, "s", &restored);
            assert_int_equal(restored, 1);
            without = truth_of(&b, "s");
            same_text(with, without, "seed", (size_t)seed);
            free(with);
            /* the scan has made the index again */
            free(state_must(&b, "s", &restored));
            with = state_must(&b, "s", &restored);
            assert_int_equal(restored, 1);
            same_text(with, without, "made again, seed", (size_t)seed);
            free(with);
            free(without);
            bed_end(&b);
        }
}

static void a_lazy_handle_goes_on_as_a_whole_one_would(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++)
        for (uint64_t seed = 1; seed <= (soak() ? 100 : 4); seed++) {
            bed b = bed_make((store_kind)kind);
            sessile_session *s;
            uint64_t more = seed * 77;
            char *with, *without;
            buf text;
            sessile_error err;
            make_story(&b, "s", 800, seed);
            s = session_resumed(b.st, "s");
            assert_true(s->index.absent_count > 0);
            move_head(s, 0);
            tell(s, 850, &more);
            move_head(s, old_leaf(s));
            tell(s, 1100, &more);
            settle(s);
            tell(s, 1150, &more);
            buf_init(&text, &allocator_default);
            must(put_state(s, &text, &err), &err);
            buf_putc(&text, 0);
            session_closed(s);
            with = state_must(&b, "s", NULL);
            without = truth_of(&b, "s");
            same_text(text.data, without, "the handle itself, seed", (size_t)seed);
            same_text(with, without, "opened again, seed", (size_t)seed);
            buf_deinit(&text);
            free(with);
            free(without);
            bed_end(&b);
        }
}

static void one_old_entry_does_not_bring_the_others(void **state)
{
    bed b = bed_make(STORE_SEALED);
    sessile_session *s;
    sessile_error err;
    buf text;
    (void)state;
    make_story(&b, "s", 5000, 3);
    s = session_resumed(b.st, "s");
    assert_int_equal(s->index.absent_blocks, 5000 / 256);
    size_t absent = s->index.absent_count;
    buf_init(&text, &allocator_default);
    must(session_text_locked(s, 5, &text, &err), &err);
    assert_int_equal(s->index.absent_count, absent - 1);
    must(session_text_locked(s, 2600, &text, &err), &err);
    assert_int_equal(s->index.absent_count, absent - 2);
    buf_deinit(&text);
    session_closed(s);
    bed_end(&b);
}

/* ------------------------------------------------------------------ faults of
 * the cache */

typedef struct files {
    char *log, *idx;
    size_t log_size, idx_size;
} files;

static files take_files(const bed *b, const char *name)
{
    files f;
    f.log = file_read_all(path_of(b, name, ".jsonl"), &f.log_size);
    f.idx = file_read_all(path_of(b, name, ".idx"), &f.idx_size);
    return f;
}

static void drop_files(files *f)
{
    free(f->log);
    free(f->idx);
}

static void log_is(const bed *b, const char *name, const files *f)
{
    size_t size;
    char *now = file_read_all(path_of(b, name, ".jsonl"), &size);
    assert_int_equal(size, f->log_size);
    assert_memory_equal(now, f->log, size);
    free(now);
}

static uint64_t le64(const char *at)
{
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | (unsigned char)at[i];
    return n;
}

/* Where the last block begins. */
static size_t last_start(const char *idx, size_t size)
{
    assert_memory_equal(idx + size - 32, "sessidx1", 8);
    return (size_t)le64(idx + size - 32 + 16);
}

static void shows(const bed *b, const char *truth, const files *f, const char *what,
                  size_t n)
{
    char *now = state_must(b, "s", NULL);
    same_text(now, truth, what, n);
    log_is(b, "s", f);
    free(now);
}

static void put_index(const bed *b, const void *data, size_t size)
{
    unlink(path_of(b, "s", ".idx"));
    file_write_all(path_of(b, "s", ".idx"), data, size);
}

static void any_index_shows_what_the_log_says(void **state)
{
    size_t tried = 0;
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        bed b = bed_make((store_kind)kind);
        uint64_t seed = 99;
        int restored;
        char *truth, *bad, *again;
        files f;
        make_story(&b, "s", 900, 11);
        f = take_files(&b, "s");
        truth = truth_of(&b, "s");
        size_t start = last_start(f.idx, f.idx_size), last = f.idx_size - start;
        bad = malloc(f.idx_size);
        assert_non_null(bad);

        shows(&b, truth, &f, "missing", 0);
        put_index(&b, "", 0);
        shows(&b, truth, &f, "empty", 0);
        /* what was missing is there again, and is used */
        again = state_must(&b, "s", &restored);
        assert_int_equal(restored, 1);
        free(again);
        for (size_t cut = 0; cut < last;
             cut += soak() || cut < 8 || cut + 40 > last ? 1 : 397) {
            put_index(&b, f.idx, start + cut);
            shows(&b, truth, &f, "cut", cut);
            tried++;
        }
        for (size_t i = 0; i < (soak() ? last * 8 : 60); i++) {
            size_t bit = start * 8 + (soak() ? i : random_next(&seed) % (last * 8));
            memcpy(bad, f.idx, f.idx_size);
            bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
            put_index(&b, bad, f.idx_size);
            shows(&b, truth, &f, "bit", bit);
            tried++;
        }
        for (size_t i = 0; i < (soak() ? 5000 : 60); i++) {
            size_t bit = random_next(&seed) % (start * 8);
            memcpy(bad, f.idx, f.idx_size);
            bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
            put_index(&b, bad, f.idx_size);
            shows(&b, truth, &f, "bit of an older block", bit);
            tried++;
        }
        for (size_t i = 0; i < 256; i++) { /* the trailer, which is in clear */
            memcpy(bad, f.idx, f.idx_size);
            bad[f.idx_size - 32 + i / 8] ^= (char)(1 << i % 8);
            put_index(&b, bad, f.idx_size);
            if (i % 8 == 0 || soak()) {
                shows(&b, truth, &f, "bit of the trailer", i);
                tried++;
            }
        }
        /* two blocks exchanged, and bytes behind the end */
        size_t first = 0; /* the first block's size: where the second begins */
        for (size_t at = f.idx_size; at > 0; at = (size_t)le64(f.idx + at - 16))
            first = at;
        memcpy(bad, f.idx + start, last < first ? last : first);
        memcpy(bad + first, f.idx + first, f.idx_size - first);
        put_index(&b, bad, f.idx_size);
        shows(&b, truth, &f, "exchanged", 0);
        again = malloc(f.idx_size + 1000);
        memcpy(again, f.idx, f.idx_size);
        memset(again + f.idx_size, 0, 1000);
        put_index(&b, again, f.idx_size + 1000);
        shows(&b, truth, &f, "zeros behind", 1000);
        free(again);
        free(bad);
        free(truth);
        drop_files(&f);
        bed_end(&b);
    }
    print_message("# figure: indexes that were not as written = %zu\n", tried);
}

/* The header's node is there from the beginning, its line's place is not. */
static void the_header_is_read_beside_a_bad_first_block(void **state)
{
    bed b = bed_make(STORE_SEALED);
    sessile_session *s;
    sessile_error err;
    files f;
    buf text;
    (void)state;
    make_story(&b, "s", 900, 11);
    f = take_files(&b, "s");
    f.idx[100] ^= 1;
    put_index(&b, f.idx, f.idx_size);
    s = session_resumed(b.st, "s");
    assert_int_equal(s->index.restored, 1);
    buf_init(&text, &allocator_default);
    must(session_text_locked(s, 0, &text, &err), &err);
    buf_deinit(&text);
    session_closed(s);
    drop_files(&f);
    bed_end(&b);
}

static void an_index_of_another_log_is_passed_over(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        bed b = bed_make((store_kind)kind);
        char *truth;
        files f, other;
        int restored;
        make_story(&b, "s", 700, 1);
        make_story(&b, "other", 1500, 2);
        f = take_files(&b, "s");
        other = take_files(&b, "other");
        truth = truth_of(&b, "s");
        put_index(&b, other.idx, other.idx_size);
        char *now = state_must(&b, "s", &restored);
        assert_int_equal(restored, 0);
        same_text(now, truth, "another's", 0);
        free(now);
        log_is(&b, "s", &f);
        free(truth);
        drop_files(&f);
        drop_files(&other);
        bed_end(&b);
    }
}

static void an_older_index_is_gone_on_with(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        bed b = bed_make((store_kind)kind);
        sessile_session *s;
        uint64_t seed = 5;
        char *truth;
        files old, now;
        make_story(&b, "s", 700, 1);
        old = take_files(&b, "s");
        s = session_resumed(b.st, "s");
        tell(s, 2000, &seed);
        session_closed(s);
        now = take_files(&b, "s");
        truth = truth_of(&b, "s");
        put_index(&b, old.idx, old.idx_size);
        shows(&b, truth, &now, "older", 0);
        shows(&b, truth, &now, "older, then", 1);
        free(truth);
        drop_files(&old);
        drop_files(&now);
        bed_end(&b);
    }
}

static void a_log_older_than_its_index_is_truncated(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        bed b = bed_make((store_kind)kind);
        sessile_session *s;
        uint64_t seed = 5;
        sessile_error err;
        char *out;
        files old, now;
        make_story(&b, "s", 700, 1);
        old = take_files(&b, "s");
        s = session_resumed(b.st, "s");
        tell(s, 2000, &seed);
        session_closed(s);
        now = take_files(&b, "s");
        file_write_all(path_of(&b, "s", ".jsonl"), old.log, old.log_size);
        assert_int_equal(state_of(&b, "s", &out, NULL, &err), SESSILE_TRUNCATED);
        assert_non_null(strstr(err.message, "salvage"));
        log_is(&b, "s", &old);
        /* cut to nothing but its header as well */
        size_t header = (size_t)(strchr(old.log, '\n') - old.log) + 1;
        file_write_all(path_of(&b, "s", ".jsonl"), old.log, header);
        assert_int_equal(state_of(&b, "s", &out, NULL, &err), SESSILE_TRUNCATED);
        drop_files(&old);
        drop_files(&now);
        bed_end(&b);
    }
}

/* An older copy was put back and gone on with: the index tells of entries that are there
 * no more. The log is whole, and so it is what counts. */
static void an_index_of_another_history_is_passed_over(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        bed b = bed_make((store_kind)kind);
        uint64_t one = 5, two = 6;
        int restored = 1;
        char *truth, *now;
        files old, first, second;
        make_story(&b, "s", 700, 1);
        old = take_files(&b, "s");
        sessile_session *s = session_resumed(b.st, "s");
        tell(s, 1200, &one);
        session_closed(s);
        first = take_files(&b, "s");
        file_write_all(path_of(&b, "s", ".jsonl"), old.log, old.log_size);
        unlink(path_of(&b, "s", ".idx"));
        s = session_resumed(b.st, "s");
        tell(s, 2500, &two);
        session_closed(s);
        second = take_files(&b, "s");
        truth = truth_of(&b, "s");
        put_index(&b, first.idx, first.idx_size);
        now = state_must(&b, "s", &restored);
        assert_int_equal(restored, 0);
        same_text(now, truth, "other history", 0);
        log_is(&b, "s", &second);
        free(now);
        free(truth);
        drop_files(&old);
        drop_files(&first);
        drop_files(&second);
        bed_end(&b);
    }
}

/* The same with lines of the same sizes, so that every line stands where it stood. */
static void a_line_in_the_same_place_is_not_the_same_line(void **state)
{
    static const char *const said[] = {
        "{\"role\":\"user\",\"content\":\"a\",\"usage\":{\"input\":10}}",
        "{\"role\":\"user\",\"content\":\"b\",\"usage\":{\"input\":20}}"};
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        bed b = bed_make((store_kind)kind);
        int restored = 1;
        char *truth, *now;
        files old, went[2];
        make_story(&b, "s", 300, 1);
        old = take_files(&b, "s");
        for (int history = 0; history < 2; history++) {
            file_write_all(path_of(&b, "s", ".jsonl"), old.log, old.log_size);
            unlink(path_of(&b, "s", ".idx"));
            sessile_session *s = session_resumed(b.st, "s");
            for (int i = 0; i < 500; i++)
                say_json(s, said[history]);
            session_closed(s);
            went[history] = take_files(&b, "s");
        }
        assert_int_equal(went[0].log_size, went[1].log_size);
        truth = truth_of(&b, "s");
        put_index(&b, went[0].idx, went[0].idx_size);
        now = state_must(&b, "s", &restored);
        assert_int_equal(restored, 0);
        same_text(now, truth, "same place", 0);
        free(now);
        free(truth);
        drop_files(&old);
        drop_files(&went[0]);
        drop_files(&went[1]);
        bed_end(&b);
    }
}

/* A block says that its entries were safe: none is written before they are. */
static void what_is_not_known_to_be_safe_is_not_in_it(void **state)
{
    bed b = bed_make(STORE_SEALED);
    sessile_session *s = session_made(b.st, "s");
    sessile_error err;
    (void)state;
    for (int i = 0; i < 600; i++)
        say(s, "user", "x");
    assert_false(is_there(path_of(&b, "s", ".idx")));
    must(log_sync(s->log, 300, &err), &err);
    assert_false(is_there(path_of(&b, "s", ".idx")));
    say(s, "user", "y");
    assert_true(is_there(path_of(&b, "s", ".idx")));
    session_drop(s);
    bed_end(&b);
}

/* What a refused write brought out of the index stays whole. */
static void a_refused_write_takes_nothing_back_of_old_blocks(void **state)
{
    bed b = bed_make(STORE_SEALED);
    sessile_session *s;
    sessile_error err;
    sessile_id id;
    char *with, *without, data[32];
    buf text;
    (void)state;
    make_story(&b, "s", 1500, 31);
    s = session_resumed(b.st, "s");
    s->store->limits.session = log_bytes(s->log) + 1;
    size_t absent = s->index.absent_count;
    for (unsigned to = 7; s->index.absent_count == absent || to % 200 != 0; to++) {
        snprintf(data, sizeof data, "{\"head\":\"%08x\"}", to);
        assert_int_not_equal(try_entry(s, "head", SESSILE_NO_ID, data, &id, &err),
                             SESSILE_OK);
    }
    assert_true(s->index.absent_count < absent);
    /* the next links must not come to stand where those of the blocks are */
    s->store->limits.session = UINT64_MAX;
    say_turn(s,
             (const char *const[]){"{\"role\":\"assistant\",\"content\":\"\",\"tool_"
                                   "calls\":[{\"id\":\"c7\",\"name\":\"n\","
                                   "\"arguments\":\"\"}]}"},
             1, "");
    buf_init(&text, &allocator_default);
    must(put_state(s, &text, &err), &err);
    buf_putc(&text, 0);
    session_closed(s);
    with = state_must(&b, "s", NULL);
    without = truth_of(&b, "s");
    same_text(text.data, without, "refused", 0);
    same_text(with, without, "refused, opened again", 0);
    buf_deinit(&text);
    free(with);
    free(without);
    bed_end(&b);
}

/* The last thousand bytes before the last block's end are torn: nothing in the
 * log says that they were safe, but the index does. */
static void the_anchor_is_a_witness(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        bed b = bed_make((store_kind)kind);
        sessile_session *s = session_made(b.st, "s");
        sessile_error err;
        char *out;
        files f;
        for (int i = 1; i < 512; i++)
            say(s, "user", "x");
        session_closed(s);
        f = take_files(&b, "s");
        char *torn = malloc(f.log_size);
        memcpy(torn, f.log, f.log_size);
        memset(torn + f.log_size - 200, 0, 200);
        file_write_all(path_of(&b, "s", ".jsonl"), torn, f.log_size);
        assert_int_equal(state_of(&b, "s", &out, NULL, &err), SESSILE_DAMAGED);
        char *now = file_read_all(path_of(&b, "s", ".jsonl"), &f.idx_size);
        assert_memory_equal(now, torn, f.log_size);
        free(now);
        /* without the proof it is a torn end, which heals */
        unlink(path_of(&b, "s", ".idx"));
        must(state_of(&b, "s", &out, NULL, &err), &err);
        free(out);
        free(torn);
        drop_files(&f);
        bed_end(&b);
    }
}

static void what_is_no_file_of_ours_is_left_alone(void **state)
{
    bed b = bed_make(STORE_SEALED);
    const char *idx;
    char *truth, *data;
    size_t size;
    struct stat st;
    files f;
    (void)state;
    make_story(&b, "s", 700, 1);
    f = take_files(&b, "s");
    truth = truth_of(&b, "s");
    idx = path_of(&b, "s", ".idx");

    char away[700];
    snprintf(away, sizeof away, "%s/away", b.folder);
    file_write_all(away, "precious", 8);
    assert_int_equal(symlink(away, idx), 0);
    shows(&b, truth, &f, "link", 0);
    data = file_read_all(away, &size);
    assert_int_equal(size, 8);
    assert_memory_equal(data, "precious", 8);
    free(data);
    unlink(idx);

    assert_int_equal(mkdir(idx, 0700), 0);
    shows(&b, truth, &f, "folder", 0);
    assert_int_equal(rmdir(idx), 0);

    file_write_all(idx, f.idx, f.idx_size);
    assert_int_equal(chmod(idx, 0666), 0);
    shows(&b, truth, &f, "open to others", 0);
    assert_int_equal(stat(idx, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0666);
    assert_int_equal(st.st_size, f.idx_size);

    unlink(idx);
    free(state_must(&b, "s", NULL));
    assert_int_equal(stat(idx, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    free(truth);
    drop_files(&f);
    bed_end(&b);
}

static void no_word_of_a_sealed_session_is_in_its_index(void **state)
{
    static const char *const words[] = {"canary", "title", "call", "sessile-name",
                                        "user"};
    bed b = bed_make(STORE_SEALED);
    size_t size;
    char *idx;
    (void)state;
    make_story(&b, "sessile-name", 1500, 4);
    idx = file_read_all(path_of(&b, "sessile-name", ".idx"), &size);
    assert_true(size > 10000);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_null(memmem(idx, size, words[i], strlen(words[i])));
    free(idx);
    bed_end(&b);
}

/* ------------------------------------------------------------------ inside a
 * write */

static const char *const ten[] = {
    "{\"role\":\"user\",\"content\":\"1\",\"usage\":{\"input\":1}}",
    "{\"role\":\"assistant\",\"content\":\"2\",\"usage\":{\"input\":2}}",
    "{\"role\":\"user\",\"content\":\"3\",\"usage\":{\"input\":4}}",
    "{\"role\":\"assistant\",\"content\":\"4\",\"usage\":{\"input\":8}}",
    "{\"role\":\"user\",\"content\":\"5\",\"usage\":{\"input\":16}}",
    "{\"role\":\"assistant\",\"content\":\"6\",\"usage\":{\"input\":32}}",
    "{\"role\":\"user\",\"content\":\"7\",\"usage\":{\"input\":64}}",
    "{\"role\":\"assistant\",\"content\":\"8\",\"usage\":{\"input\":128}}",
    "{\"role\":\"user\",\"content\":\"9\",\"usage\":{\"input\":256}}"};

static void a_block_may_end_inside_a_write(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++)
        for (int reported = 0; reported < 2; reported++)
            for (int before = 0; before <= 10; before++) {
                bed b = bed_make((store_kind)kind);
                sessile_session *s = session_made(b.st, "s");
                char *with, *without;
                int restored = 0;
                for (int i = 1; i < 256 - before; i++)
                    say_json(s, "{\"role\":\"user\",\"content\":\"x\",\"usage\":{"
                                "\"input\":1000}}");
                say_turn(s, ten, 9, reported ? ",\"usage\":{\"input\":7}" : "");
                if (log_count(s->log) < 256)
                    say(s, "user", "y");
                session_closed(s);
                with = state_must(&b, "s", &restored);
                assert_int_equal(restored, 1);
                without = truth_of(&b, "s");
                same_text(with, without, "lines before the block's end:", (size_t)before);
                free(with);
                free(without);
                bed_end(&b);
            }
}

static void a_write_cut_behind_the_anchor_is_damage(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        bed b = bed_make((store_kind)kind);
        sessile_session *s = session_made(b.st, "s");
        sessile_error err;
        char *out, *at;
        files f;
        for (int i = 1; i < 250; i++)
            say(s, "user", "x");
        say_turn(s, ten, 9, "");
        session_closed(s);
        f = take_files(&b, "s");
        /* the line after the anchor stays, the rest of the write goes */
        at = f.log;
        for (int i = 0; i < 257; i++)
            at = strchr(at, '\n') + 1;
        file_write_all(path_of(&b, "s", ".jsonl"), f.log, (size_t)(at - f.log));
        assert_int_equal(state_of(&b, "s", &out, NULL, &err), SESSILE_DAMAGED);
        drop_files(&f);
        bed_end(&b);
    }
}

/* ------------------------------------------------------------------ others */

static void handles_add_to_it_in_turn(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        bed b = bed_make((store_kind)kind);
        sessile_store *other = store_on(b.folder, b.kind);
        sessile_session *s = session_made(b.st, "s"), *t = session_resumed(other, "s");
        uint64_t seed = 8;
        int restored;
        char *with, *without;
        for (size_t n = 200; n < 3000; n += 200) {
            sessile_session *by = n / 200 % 2 ? s : t;
            tell(by, n, &seed);
            settle(by);
        }
        session_closed(s);
        session_closed(t);
        store_handle_close(other);
        with = state_must(&b, "s", &restored);
        assert_int_equal(restored, 1);
        without = truth_of(&b, "s");
        same_text(with, without, "in turn", 0);
        free(with);
        free(without);
        bed_end(&b);
    }
}

/* Two processes at once; one of them reads along. */
static void processes_add_to_it_at_once(void **state)
{
    bed b = bed_make(STORE_SEALED);
    pid_t pids[2];
    char *with, *without;
    int restored = 0;
    (void)state;
    session_closed(session_made(b.st, "s"));
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            sessile_store *st = store_on(b.folder, b.kind);
            sessile_session *s = session_resumed(st, "s");
            sessile_status bad = SESSILE_OK;
            for (int n = 0; n < 600 && !bad; n++) {
                sessile_id id;
                sessile_error err;
                bad = session_append_message(
                    s, sessile_text("{\"role\":\"user\",\"content\":\"x\"}"), &id, &err);
                if (bad == SESSILE_CONFLICT) { /* the base moved: look again */
                    s->tree.base = s->tree.head;
                    bad = SESSILE_OK;
                }
                if (n % 50 == 49)
                    settle(s);
            }
            session_closed(s);
            store_handle_close(st);
            _exit(bad != SESSILE_OK);
        }
    }
    for (int i = 0; i < 2; i++) {
        int how;
        assert_int_equal(waitpid(pids[i], &how, 0), pids[i]);
        assert_int_equal(how, 0);
    }
    with = state_must(&b, "s", &restored);
    assert_int_equal(restored, 1);
    without = truth_of(&b, "s");
    same_text(with, without, "at once", 0);
    free(with);
    free(without);
    bed_end(&b);
}

/* Another inode with the same lines, as who seals a log anew leaves it. */
static void replace_with(const bed *b, const char *name, const void *data, size_t size)
{
    char away[700];
    snprintf(away, sizeof away, "%s/agents/main/.new", b->folder);
    file_write_all(away, data, size);
    assert_int_equal(rename(away, path_of(b, name, ".jsonl")), 0);
    unlink(path_of(b, name, ".idx"));
}

static void a_log_that_was_replaced_is_opened_again(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        bed b = bed_make((store_kind)kind);
        sessile_session *reader, *writer;
        char *with, *without;
        sessile_error err;
        sessile_id id;
        files f;
        buf text;
        make_story(&b, "s", 700, 21);
        reader = session_resumed(b.st, "s");
        writer = session_resumed(b.st, "s");
        f = take_files(&b, "s");
        replace_with(&b, "s", f.log, f.log_size);
        must(try_say(writer, "{\"role\":\"user\",\"content\":\"after\"}", &id, &err),
             &err);
        buf_init(&text, &allocator_default);
        must(put_state(reader, &text, &err), &err);
        buf_putc(&text, 0);
        without = truth_of(&b, "s");
        same_text(text.data, without, "the reader", 0);
        session_closed(writer);
        with = state_must(&b, "s", NULL);
        same_text(with, without, "opened again", 0);
        buf_deinit(&text);
        session_closed(reader);
        free(with);
        free(without);
        drop_files(&f);
        bed_end(&b);
    }
}

static void a_log_of_other_entries_is_not_taken_for_it(void **state)
{
    bed b = bed_make(STORE_PLAIN);
    sessile_session *s;
    sessile_error err;
    sessile_id id;
    files f;
    char *at;
    (void)state;
    make_story(&b, "s", 400, 21);
    f = take_files(&b, "s");
    s = session_resumed(b.st, "s");
    /* fewer entries */
    at = f.log;
    for (int i = 0; i < 40; i++)
        at = strchr(at, '\n') + 1;
    while (!memmem(at, (size_t)(strchr(at, '\n') - at), ",\"commit\":", 10))
        at = strchr(at, '\n') + 1;
    replace_with(&b, "s", f.log, (size_t)(strchr(at, '\n') + 1 - f.log));
    assert_int_equal(try_say(s, "{\"role\":\"user\",\"content\":\"x\"}", &id, &err),
                     SESSILE_CONFLICT);
    session_closed(s);
    /* none at all, and another session in its place */
    replace_with(&b, "s", f.log, f.log_size);
    s = session_resumed(b.st, "s");
    unlink(path_of(&b, "s", ".jsonl"));
    assert_int_equal(try_say(s, "{\"role\":\"user\",\"content\":\"x\"}", &id, &err),
                     SESSILE_NOTFOUND);
    unlink(path_of(&b, "s", ".idx"));
    usleep(2000);
    session_closed(session_made(b.st, "s"));
    assert_int_equal(try_say(s, "{\"role\":\"user\",\"content\":\"x\"}", &id, &err),
                     SESSILE_NOTFOUND);
    assert_int_equal(session_refresh_locked(s, &err), SESSILE_NOTFOUND);
    session_closed(s);
    drop_files(&f);
    bed_end(&b);
}

static void an_entry_may_have_become_a_tombstone(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        bed b = bed_make((store_kind)kind);
        sessile_session *s = session_made(b.st, "s"), *t;
        sessile_error err;
        sessile_id id;
        buf text;
        for (int i = 0; i < 20; i++)
            say(s, "user", "x");
        t = session_resumed(b.st, "s");
        buf_init(&text, &allocator_default);
        must(log_begin(t->log, NULL, NULL, &err), &err);
        log_copy copy;
        for (sessile_id i = 0; i <= 20; i++) {
            buf_clear(&text);
            must(log_read(t->log, i, &text, &err), &err);
            if (i == 0)
                must(log_copy_begin(&copy, &b.st->backend, b.st->keys, "main", "s", NULL,
                                    text.data, text.size, &b.st->alloc, &err),
                     &err);
            if (i == 7) {
                buf_clear(&text);
                buf_puts(&text, "{\"id\":\"00000007\",\"parent_id\":\"00000006\","
                                "\"timestamp\":\"2026-11-21T20:12:03.123Z\",\"type\":"
                                "\"tombstone\",\"source\":\"system\",\"data\":{}}");
            }
            if (i > 0)
                must(log_copy_entry(&copy, text.data, text.size, 1, &err), &err);
        }
        must(log_copy_finish(&copy, t->log->handle, 0, NULL, 0, &err), &err);
        log_copy_drop(&copy);
        log_end(t->log);
        must(try_say(s, "{\"role\":\"user\",\"content\":\"after\"}", &id, &err), &err);
        assert_int_equal(id, 21);
        assert_int_equal(s->tree.nodes[7].type, ENTRY_TOMBSTONE);
        assert_int_equal(s->tree.nodes[21].messages, 20);
        buf_deinit(&text);
        session_closed(s);
        session_closed(t);
        bed_end(&b);
    }
}

/* ------------------------------------------------------------------ how much
 * is read */

static uint64_t bytes_read;
static int64_t counting_pread(void *ud, int fd, void *out, size_t size, uint64_t offset)
{
    int64_t n = os_posix.pread(ud, fd, out, size, offset);
    bytes_read += n > 0 ? (uint64_t)n : 0;
    return n;
}

/* Bytes that opening and the context take, of a session compacted to a few
 * messages. */
static uint64_t cost_of(size_t count)
{
    os_table counting = os_posix;
    bed b;
    uint64_t cost;
    char data[300];
    sessile_session *s;
    sessile_error err;
    const context *c;
    counting.pread = counting_pread;
    os_current = &counting;
    b = bed_make(STORE_SEALED);
    s = session_made(b.st, "s");
    say(s, "system", "be brief"); /* stays in the context: the oldest block is needed */
    while (log_count(s->log) < count)
        say(s, log_count(s->log) % 2 ? "user" : "assistant", "some words of a message");
    snprintf(data, sizeof data,
             "{\"context\":[\"00000001\",\"%08zx-%08zx\"],\"upto\":\"%08zx\"}",
             count - 100, count - 1, count - 1);
    put_entry(s, "compaction", SESSILE_NO_ID, data);
    session_closed(s);
    bytes_read = 0;
    s = session_resumed(b.st, "s");
    must(session_context_locked(s, &c, &err), &err);
    assert_int_equal(c->count, 101);
    cost = bytes_read;
    assert_int_equal(s->index.restored, 1);
    session_closed(s);
    bed_end(&b);
    os_current = &os_posix;
    return cost;
}

static void opening_reads_no_more_of_a_longer_log(void **state)
{
    uint64_t small = cost_of(10000 - 10000 % 256 + 100),
             large = cost_of(100000 - 100000 % 256 + 100);
    (void)state;
    print_message("# figure: bytes read to open, of 10,000 entries = %llu\n",
                  (unsigned long long)small);
    print_message("# figure: bytes read to open, of 100,000 entries = %llu\n",
                  (unsigned long long)large);
    assert_true(large < small + 4096);
}

/* ------------------------------------------------------------------ want of
 * memory */

static void want_of_memory_leaves_no_trace(void **state)
{
    bed b = bed_make(STORE_PLAIN);
    sessile_session_options o;
    sessile_error err;
    char *truth;
    files f;
    long n;
    (void)state;
    make_story(&b, "s", 900, 17);
    f = take_files(&b, "s");
    truth = truth_of(&b, "s");
    put_index(&b, f.idx, f.idx_size);
    memset(&o, 0, sizeof o);
    o.id = sessile_text("s");
    for (n = 0;; n++) {
        sessile_session *s = NULL;
        const context *c;
        sessile_status status;
        buf text;
        left = n;
        status = session_open(&s, b.st, &o, &err);
        if (!status)
            status = session_context_locked(s, &c, &err);
        if (!status) {
            buf_init(&text, &b.st->alloc);
            status = session_text_locked(s, 5, &text, &err);
            buf_deinit(&text);
        }
        if (!status)
            status = session_reach_path_locked(s, s->tree.head, 0, &err);
        long rest = left;
        left = -1;
        if (status)
            assert_int_equal(status, SESSILE_NOMEM);
        if (s) /* and it goes on when there is memory again */
            must(session_reach_path_locked(s, s->tree.head, 0, &err), &err);
        session_drop(s);
        if (rest > 0)
            break;
    }
    assert_true(n > 20);
    shows(&b, truth, &f, "after want of memory", 0);
    free(truth);
    drop_files(&f);
    bed_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_by_the_index_shows_what_a_scan_shows),
        cmocka_unit_test(a_lazy_handle_goes_on_as_a_whole_one_would),
        cmocka_unit_test(one_old_entry_does_not_bring_the_others),
        cmocka_unit_test(any_index_shows_what_the_log_says),
        cmocka_unit_test(the_header_is_read_beside_a_bad_first_block),
        cmocka_unit_test(an_index_of_another_log_is_passed_over),
        cmocka_unit_test(an_older_index_is_gone_on_with),
        cmocka_unit_test(a_log_older_than_its_index_is_truncated),
        cmocka_unit_test(an_index_of_another_history_is_passed_over),
        cmocka_unit_test(a_line_in_the_same_place_is_not_the_same_line),
        cmocka_unit_test(what_is_not_known_to_be_safe_is_not_in_it),
        cmocka_unit_test(a_refused_write_takes_nothing_back_of_old_blocks),
        cmocka_unit_test(the_anchor_is_a_witness),
        cmocka_unit_test(what_is_no_file_of_ours_is_left_alone),
        cmocka_unit_test(no_word_of_a_sealed_session_is_in_its_index),
        cmocka_unit_test(a_block_may_end_inside_a_write),
        cmocka_unit_test(a_write_cut_behind_the_anchor_is_damage),
        cmocka_unit_test(handles_add_to_it_in_turn),
        cmocka_unit_test(processes_add_to_it_at_once),
        cmocka_unit_test(a_log_that_was_replaced_is_opened_again),
        cmocka_unit_test(a_log_of_other_entries_is_not_taken_for_it),
        cmocka_unit_test(an_entry_may_have_become_a_tombstone),
        cmocka_unit_test(opening_reads_no_more_of_a_longer_log),
        cmocka_unit_test(want_of_memory_leaves_no_trace),
    };
    return cmocka_run_group_tests_name("the index", tests, NULL, NULL);
}

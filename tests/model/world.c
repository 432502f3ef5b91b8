/*
 * world.c: the model of a session, and the stores and handles that it is compared with.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/message.h"
#include "model/model.h"
#include "support/logs.h"
#include "support/sessions.h"
#include "tokens/tokens.h"

unsigned long figure_ops, figure_conflicts, figure_torn;

int wrong(world *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(w->why, sizeof w->why, format, list);
    va_end(list);
    return 1;
}

int said_is_message(const said *e)
{
    return e->type == ENTRY_MESSAGE || e->type == ENTRY_BRANCH_SUMMARY;
}

/* Something that a conversation can go on from. */
int world_is_leaf(const world *w, sessile_id id)
{
    return id == 0 || said_is_message(&w->log[id]) || w->log[id].type == ENTRY_TURN;
}

int world_descends(const world *w, sessile_id id, sessile_id ancestor)
{
    while (id != 0 && id != ancestor)
        id = w->log[id].parent;
    return id == ancestor;
}

/* Ids of the path's messages, oldest first. */
size_t world_path(const world *w, sessile_id leaf, sessile_id out[SAID_MOST])
{
    size_t count = 0;
    for (sessile_id at = leaf; at != 0; at = w->log[at].parent)
        count += said_is_message(&w->log[at]);
    size_t left = count;
    for (sessile_id at = leaf; at != 0; at = w->log[at].parent)
        if (said_is_message(&w->log[at]))
            out[--left] = at;
    return count;
}

/* A new entry; a path entry moves the head. */
said *world_put(world *w, entry_type type, sessile_id parent)
{
    said *e = &w->log[w->count];
    memset(e, 0, sizeof *e);
    e->type = type;
    e->parent = parent;
    if (said_is_message(e) || type == ENTRY_TURN)
        w->head = w->count;
    w->count++;
    return e;
}

void world_put_message(world *w, const char *text, entry_type type)
{
    said *e = world_put(w, type, w->head);
    message m;
    sessile_error err;
    assert_int_equal(
        message_read(&m, text, strlen(text), NULL, NULL, NULL, &allocator_default, &err),
        SESSILE_OK);
    e->text = strdup(text);
    e->role = m.role;
    e->tokens = tokens_of_message(&m);
}

void world_file(const world *w, const char *name, char out[600])
{
    snprintf(out, 600, "%s/agents/main/%s", w->root, name);
}

/* After calls that may have met the torn end and need not. */
void world_check_torn(world *w)
{
    char file[600];
    struct stat st;
    world_file(w, "s.jsonl", file);
    if (w->torn != 0 && stat(file, &st) == 0 && (size_t)st.st_size == w->torn_at)
        w->torn = 0;
}

/* ------------------------------------------------------------------ the engine */

static int open_store(world *w, sessile_store **out)
{
    sessile_store_options o;
    sessile_error err;
    sessile_store_options_init(&o);
    o.key_source = strcmp(w->mode, "sealed") ? SESSILE_KEY_PLAIN : SESSILE_KEY_SECRET;
    o.key = KIT_SECRET;
    o.config.has_timeout = 1;
    o.config.timeout_ms = 2000;
    if (sessile_open(out, w->url, &o, &err))
        return wrong(w, "open: %s", err.message);
    return 0;
}

static int world_resume(world *w, unsigned h)
{
    sessile_session_options o;
    sessile_error err;
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    if (sessile_resume(&w->s[h], w->stores[h / 2], &o, &err))
        return wrong(w, "resume: %s", err.message);
    uint64_t torn = sessile_session_torn(w->s[h]);
    if (torn != w->torn)
        return wrong(w, "resume set %" PRIu64 " bytes aside, %" PRIu64 " are torn", torn,
                     w->torn);
    w->torn = 0;
    w->base[h] = w->head;
    return 0;
}

static int close_one(world *w, unsigned h)
{
    sessile_error err;
    sessile_session *s = w->s[h];
    w->s[h] = NULL;
    if (sessile_session_close(s, &err))
        return wrong(w, "close: %s", err.message);
    return 0;
}

int world_begin(world *w, const char *mode)
{
    sessile_session_options o;
    sessile_error err;
    memset(w, 0, sizeof *w);
    w->mode = mode;
    scratch_make(w->folder);
    snprintf(w->root, sizeof w->root, "%s/store", w->folder);
    w->url = strcmp(mode, "ram") ? place_url(w->root) : strdup("ram:");
    assert_non_null(w->url);
    if (open_store(w, &w->stores[0]))
        return 1;
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    if (sessile_resume(&w->s[0], w->stores[0], &o, &err) != SESSILE_NOTFOUND)
        return wrong(w, "a session that was not made yet opens");
    if (sessile_create(&w->s[0], w->stores[0], &o, &err))
        return wrong(w, "create: %s", err.message);
    if (sessile_create(&w->s[1], w->stores[0], &o, &err) != SESSILE_EXISTS)
        return wrong(w, "a session is made twice");
    world_put(w, ENTRY_SESSION, SESSILE_NO_ID);
    w->stores[1] = w->stores[0];
    if (strcmp(mode, "ram") && open_store(w, &w->stores[1]))
        return 1;
    return world_resume(w, 1) || world_resume(w, 2);
}

void world_end(world *w)
{
    for (unsigned h = 0; h < HANDLES; h++)
        (void)sessile_session_close(w->s[h], NULL);
    if (w->stores[1] != w->stores[0])
        sessile_store_close(w->stores[1]);
    sessile_store_close(w->stores[0]);
    for (sessile_id i = 0; i < w->count; i++)
        free(w->log[i].text);
    place_url_free(w->url);
    scratch_remove(w->folder);
}

/* ------------------------------------------------------------------ caches and torn ends
 */

int do_reopen(world *w, unsigned h)
{
    return close_one(w, h) || world_resume(w, h);
}

int do_reopen_stores(world *w)
{
    if (!strcmp(w->mode, "ram"))
        return 0; /* it lives in its handle */
    for (unsigned h = 0; h < HANDLES; h++)
        if (close_one(w, h))
            return 1;
    for (int i = 0; i < 2; i++) {
        sessile_store_close(w->stores[i]);
        w->stores[i] = NULL;
    }
    if (open_store(w, &w->stores[0]) || open_store(w, &w->stores[1]))
        return 1;
    return world_resume(w, 0) || world_resume(w, 1) || world_resume(w, 2);
}

/* I: a cache is gone; J: a byte of it is wrong, or its end is missing. */
int do_cache(const world *w, uint64_t r, char kind)
{
    char file[600];
    struct stat st;
    world_file(w, random_next(&r) % 2 ? "s.idx" : ".list_cache", file);
    if (!strcmp(w->mode, "ram") || place_elsewhere() || stat(file, &st) != 0 ||
        st.st_size == 0)
        return 0;
    if (kind == 'I') {
        unlink(file);
        return 0;
    }
    off_t at = (off_t)(random_next(&r) % (uint64_t)st.st_size);
    if (random_next(&r) % 4 == 0)
        return truncate(file, at);
    size_t size;
    char *bytes = file_read_all(file, &size);
    bytes[at] = (char)(bytes[at] ^ (1 << random_next(&r) % 8));
    file_write_all(file, bytes, size);
    free(bytes);
    return 0;
}

/* A writer that died in the middle: part of a line, behind the last commit. */
int do_tear(world *w, uint64_t r)
{
    char file[600];
    size_t size;
    if (!strcmp(w->mode, "ram") || place_elsewhere() || w->torn != 0)
        return 0;
    world_file(w, "s.jsonl", file);
    char *bytes = file_read_all(file, &size);
    char *line = memrchr(bytes, '\n', size - 1);
    line = line ? line + 1 : bytes;
    w->torn = 1 + random_next(&r) % ((size_t)(bytes + size - line) - 1);
    w->torn_at = size;
    int fd = open(file, O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, line, w->torn), w->torn);
    close(fd);
    free(bytes);
    figure_torn++;
    return 0;
}

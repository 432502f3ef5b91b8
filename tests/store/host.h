/*
 * host.h: sessions as a host uses them, in the fewest words: each of these fails the case
 * when the engine does not do it.
 *
 * Include it after <cmocka.h>. Through the public interface alone.
 */
#ifndef STORE_HOST_H
#define STORE_HOST_H

#include "store/backend.h"

#include <stdio.h>
#include <string.h>

static inline sessile_session_options named(const char *id)
{
    sessile_session_options o;

    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    return o;
}

static inline sessile_session *session_of(sessile_store *st, const char *id)
{
    sessile_session_options o = named(id);
    sessile_session *s = NULL;
    sessile_error err;

    must(sessile_session_open(&s, st, &o, &err), &err);
    return s;
}

static inline void closed(sessile_session *s)
{
    sessile_error err;

    must(sessile_session_close(s, &err), &err);
}

/* The end of most cases. */
static inline void closed_all(sessile_session *s, sessile_store *st)
{
    closed(s);
    sessile_store_close(st);
}

static inline sessile_status try_say(sessile_session *s, const char *text, sessile_id *id,
                                     sessile_error *err)
{
    char json[200];

    snprintf(json, sizeof json, "{\"role\":\"user\",\"content\":\"%s\"}", text);
    return sessile_append(s, sessile_text(json), id, err);
}

static inline sessile_id say(sessile_session *s, const char *text)
{
    sessile_id id = SESSILE_NO_ID;
    sessile_error err;

    must(try_say(s, text, &id, &err), &err);
    return id;
}

/* How many messages there are on the path; with `last`, that the newest one holds this
 * text. */
static inline size_t messages(sessile_session *s, const char *last)
{
    sessile_message *rows;
    sessile_error err;
    size_t count;

    must(sessile_messages(s, NULL, &rows, &count, &err), &err);
    if (last) {
        assert_true(count > 0);
        assert_non_null(strstr(rows[count - 1].json.data, last));
    }
    sessile_free(rows);
    return count;
}

/* The store closed and opened again, as after a restart; where nothing would be left, it
 * is the same one. */
static inline sessile_store *reopened(sessile_store *st, const site *g)
{
    if (g->kind->vanishes)
        return st;
    sessile_store_close(st);
    return site_store(g);
}

/* Rows that a list of these options has. NULL: all. */
static inline size_t listed(sessile_store *st, const sessile_list_options *options)
{
    sessile_listed *rows;
    sessile_error err;
    size_t count;

    must(sessile_list_with(st, options, &rows, &count, &err), &err);
    sessile_free(rows);
    return count;
}

#endif

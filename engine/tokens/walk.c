/*
 * walk.c: which parts of a message are sent to a model.
 *
 * Owns which fields and blocks are text for the model. Must never count: the caller does.
 */
#include "tokens/walk.h"

#include <string.h>

/* Tokens around a call or result, and of media, which providers count by pixels or pages,
 * not by bytes. */
enum { CALL_OVERHEAD = 24, RESULT_OVERHEAD = 16, MEDIA_TOKENS = 1200 };
/* Limit on blocks in blocks: a result can contain a list of blocks. */
#define MAX_BLOCK_DEPTH 4

int walk_overhead(walk_mark mark)
{
    return mark == WALK_CALL     ? CALL_OVERHEAD
           : mark == WALK_RESULT ? RESULT_OVERHEAD
                                 : MEDIA_TOKENS;
}

static int is_media(json type)
{
    static const char *const names[] = {"image",       "audio",       "file",
                                        "document",    "video",       "image_url",
                                        "input_image", "input_audio", "input_file"};
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (json_is(type, names[i]))
            return 1;
    return 0;
}

/* The fields of a block or call that a model may be sent. */
typedef struct piece {
    json type, text, thinking, name, input, arguments, function, content, output;
} piece;

/* Reads the fields of the current object in any order (the type can come last), and
 * finds its end. */
static void read_piece(piece *out, json_iter *at)
{
    json_iter it = json_enter(at);
    memset(out, 0, sizeof *out);
    while (json_next(&it)) {
        switch (it.key.size > 3 ? it.key.at[2] : 0) { /* the second letter tells */
        case 'a':
            json_fill(&out->name, it.value, it.key, "name");
            break;
        case 'e':
            json_fill(&out->text, it.value, it.key, "text");
            break;
        case 'h':
            json_fill(&out->thinking, it.value, it.key, "thinking");
            break;
        case 'n':
            json_fill(&out->input, it.value, it.key, "input");
            break;
        case 'o':
            json_fill(&out->content, it.value, it.key, "content");
            break;
        case 'r':
            json_fill(&out->arguments, it.value, it.key, "arguments");
            break;
        case 'u':
            json_fill(&out->output, it.value, it.key, "output");
            json_fill(&out->function, it.value, it.key, "function");
            break;
        case 'y':
            json_fill(&out->type, it.value, it.key, "type");
            break;
        default:
            break;
        }
    }
    at->value.size = json_left(at, &it);
}

static void add_blocks(const walk *w, json content, int depth);

/* Text, or blocks. */
static void add_content(const walk *w, json content, int depth)
{
    if (content.type == JSON_ARRAY && depth <= MAX_BLOCK_DEPTH)
        add_blocks(w, content, depth);
    else if (content.type != JSON_NULL)
        w->text(w->arg, content);
}

/* A block of an unknown type: all of its text except what is not for the model. */
static void add_unknown_block(const walk *w, json block)
{
    json_iter it = json_begin(block);
    while (json_next(&it))
        if (!json_is(it.key, "type") && !json_is(it.key, "signature") &&
            !json_is(it.key, "cache_control") && !json_is(it.key, "id"))
            w->text(w->arg, it.value);
}

static void add_block(const walk *w, const piece *p, json block, int depth)
{
    if (json_is(p->type, "text") || (p->type.type == JSON_NONE && p->text.size > 0)) {
        w->text(w->arg, p->text);
    } else if (json_is(p->type, "tool_use")) {
        w->mark(w->arg, WALK_CALL);
        w->text(w->arg, p->name);
        w->text(w->arg, p->input);
    } else if (json_is(p->type, "tool_result")) {
        w->mark(w->arg, WALK_RESULT);
        add_content(w, p->content, depth + 1);
    } else if (json_is(p->type, "thinking")) {
        w->text(w->arg, p->thinking);
    } else if (is_media(p->type)) {
        w->mark(w->arg, WALK_MEDIA);
    } else {
        add_unknown_block(w, block);
    }
}

static void add_blocks(const walk *w, json content, int depth)
{
    json_iter it;
    piece p;
    for (it = json_begin(content); json_step(&it);) {
        if (it.value.type == JSON_OBJECT)
            read_piece(&p, &it);
        json_finish(&it);
        if (it.value.type == JSON_OBJECT)
            add_block(w, &p, it.value, depth);
        else
            w->text(w->arg, it.value);
    }
}

static void add_calls(const walk *w, json calls)
{
    json_iter it;
    piece p;
    for (it = json_begin(calls); json_step(&it); json_finish(&it)) {
        w->mark(w->arg, WALK_CALL);
        if (it.value.type != JSON_OBJECT)
            continue;
        read_piece(&p, &it);
        w->text(w->arg, p.name);
        w->text(w->arg, p.arguments);
        w->text(w->arg, json_get(p.function, "name")); /* the form with one level more */
        w->text(w->arg, json_get(p.function, "arguments"));
        add_content(w, p.output, 1);
    }
}

void message_walk(const message *m, const walk *w)
{
    add_content(w, m->content, 0);
    add_calls(w, m->tool_calls);
    if (m->tool_call_id.type == JSON_STRING)
        w->mark(w->arg, WALK_RESULT);
}

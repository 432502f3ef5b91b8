/* markdown.h: untrusted Markdown as a tree without active content. */
#ifndef COMMAND_MARKDOWN_H
#define COMMAND_MARKDOWN_H

#include <stddef.h>

#include <cmark-gfm.h>
#include <lua.h>

/* What must be freed whatever is raised: a userdata owns it. */
struct markdown {
    cmark_parser *parser;
    cmark_node *document;
    cmark_iter *iter;
    char *text;
    char *out; /* what is written, grown by hand: nothing of Lua's is open meanwhile */
    size_t size, room;
    int failed;
};

/* Pushes a userdata that owns what is made of one text. */
struct markdown *markdown_new(lua_State *L);

/* Parses the text at index 1 into work->document. 0: it is too large or nests too deeply;
 * show it as it is. */
int markdown_parse(lua_State *L, struct markdown *work);

/* Leaves nothing in the tree that a renderer would pass on as it is: HTML becomes text,
 * an image a link to it, a link that is not harmless its text. */
void markdown_make_harmless(struct markdown *work);

/* 1: the URL (or NULL) is http, https or mailto, without spaces and control characters.
 */
int markdown_is_harmless(const char *url);

/* Inserts a node of that type with that text (NULL: empty) before another. */
void markdown_put_text(cmark_node *before, cmark_node_type type, const char *text);

#endif

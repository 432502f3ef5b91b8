/*
 * markdown_tree.c: parses untrusted Markdown, and makes its tree safe.
 *
 * HTML becomes text, an image becomes a link to it, and a link that is not http, https or
 * mailto becomes its text. Text that would take long, or nests deeply, is refused. What a
 * tree takes is owned by a userdata, so an error of Lua leaks nothing.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm-extension_api.h>
#include <cmark-gfm.h>

#include <lauxlib.h>
#include <lua.h>

#include "command/markdown.h"

/* Some of what cmark-gfm does is quadratic: these bound it to some milliseconds. */
enum { MOST_BYTES = 64 * 1024, MOST_CELLS = 50000, MOST_COLUMNS = 200, MOST_DEPTH = 40 };

static int work_gc(lua_State *L)
{
    struct markdown *work = lua_touserdata(L, 1);
    if (work->iter)
        cmark_iter_free(work->iter);
    if (work->parser)
        cmark_parser_free(work->parser);
    if (work->document)
        cmark_node_free(work->document);
    free(work->text);
    free(work->out);
    memset(work, 0, sizeof *work);
    return 0;
}

struct markdown *markdown_new(lua_State *L)
{
    struct markdown *work = lua_newuserdatauv(L, sizeof *work, 0);
    memset(work, 0, sizeof *work);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, work_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    return work;
}

/* ------------------------------------------------------------------ reading */

/* Whether its tables, if it has any, stay small. */
static int tables_are_small(const char *text, size_t size)
{
    size_t lines = 1, columns = 0, most = 0;
    for (size_t i = 0; i < size; i++) {
        columns += text[i] == '|';
        if (columns > most)
            most = columns;
        if (text[i] == '\n') {
            lines++;
            columns = 0;
        }
    }
    return most <= MOST_COLUMNS && most * lines <= MOST_CELLS;
}

static int is_leaf(cmark_node *node)
{
    switch (cmark_node_get_type(node)) {
    case CMARK_NODE_HTML_BLOCK:
    case CMARK_NODE_THEMATIC_BREAK:
    case CMARK_NODE_CODE_BLOCK:
    case CMARK_NODE_TEXT:
    case CMARK_NODE_SOFTBREAK:
    case CMARK_NODE_LINEBREAK:
    case CMARK_NODE_CODE:
    case CMARK_NODE_HTML_INLINE:
        return 1;
    default:
        return 0;
    }
}

static int nests_deeply(struct markdown *work)
{
    size_t depth = 0, most = 0;
    cmark_event_type event;
    work->iter = cmark_iter_new(work->document);
    while ((event = cmark_iter_next(work->iter)) != CMARK_EVENT_DONE)
        if (event == CMARK_EVENT_EXIT)
            depth--;
        else if (!is_leaf(cmark_iter_get_node(work->iter)) && ++depth > most)
            most = depth;
    cmark_iter_free(work->iter);
    work->iter = NULL;
    return most > MOST_DEPTH;
}

/* The tree of the text at index 1; 0 when it is too large or nests too deeply. */
int markdown_parse(lua_State *L, struct markdown *work)
{
    static const char *const names[] = {"table", "strikethrough", "autolink", "tasklist"};
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    if (size > MOST_BYTES)
        return 0;
    cmark_gfm_core_extensions_ensure_registered();
    work->parser = cmark_parser_new(CMARK_OPT_VALIDATE_UTF8);
    for (size_t i = tables_are_small(text, size) ? 0 : 1;
         i < sizeof names / sizeof *names; i++) {
        cmark_syntax_extension *extension = cmark_find_syntax_extension(names[i]);
        if (extension)
            cmark_parser_attach_syntax_extension(work->parser, extension);
    }
    cmark_parser_feed(work->parser, text, size);
    work->document = cmark_parser_finish(work->parser);
    return !nests_deeply(work);
}

/* ------------------------------------------------------------------ making it safe */

/* Whether a URL leads where a reader would expect a link to lead: an address of the web
 * or of a person, without what a browser would skip over. */
int markdown_is_harmless(const char *url)
{
    static const char *const schemes[] = {"http://", "https://", "mailto:"};
    int known = 0;
    for (size_t i = 0; url && i < sizeof schemes / sizeof *schemes; i++)
        known |= strncasecmp(url, schemes[i], strlen(schemes[i])) == 0;
    for (; known && *url; url++)
        if ((unsigned char)*url <= ' ' || *url == 0x7F)
            return 0;
    return known;
}

static int within_link(cmark_node *node)
{
    while ((node = cmark_node_parent(node))) {
        cmark_node_type type = cmark_node_get_type(node);
        if (type == CMARK_NODE_LINK || type == CMARK_NODE_IMAGE)
            return 1;
    }
    return 0;
}

void markdown_put_text(cmark_node *before, cmark_node_type type, const char *text)
{
    cmark_node *node = cmark_node_new(type);
    cmark_node_set_literal(node, text ? text : "");
    cmark_node_insert_before(before, node);
}

/* In the place of an image or a link: a link to the same, or what is inside of it alone.
 */
static void replace_link(cmark_node *node, int image)
{
    const char *url = cmark_node_get_url(node);
    cmark_node *link = NULL, *child;
    if (markdown_is_harmless(url) && !within_link(node)) {
        link = cmark_node_new(CMARK_NODE_LINK);
        cmark_node_set_url(link, url);
        cmark_node_insert_before(node, link);
    }
    if (image)
        markdown_put_text(link ? link : node, CMARK_NODE_TEXT, "image: ");
    if (link && !cmark_node_first_child(node)) {
        cmark_node *text = cmark_node_new(CMARK_NODE_TEXT);
        cmark_node_set_literal(text, url);
        cmark_node_append_child(link, text);
    }
    while ((child = cmark_node_first_child(node))) {
        cmark_node_unlink(child);
        if (link)
            cmark_node_append_child(link, child);
        else
            cmark_node_insert_before(node, child);
    }
    cmark_node_free(node);
}

/* The name of a language, as far as it is one. */
static void name_language(cmark_node *node, char *out, size_t room)
{
    const char *info = cmark_node_get_fence_info(node);
    size_t n = 0;
    while (info && n + 1 < room &&
           ((info[n] >= 'a' && info[n] <= 'z') || (info[n] >= 'A' && info[n] <= 'Z') ||
            (info[n] >= '0' && info[n] <= '9') ||
            (info[n] && strchr("+#-_.", info[n])))) {
        out[n] = info[n];
        n++;
    }
    out[n] = '\0';
}

/* Leaves nothing in the tree that a renderer would pass on as it is. */
void markdown_make_harmless(struct markdown *work)
{
    cmark_event_type event;
    char language[32];
    work->iter = cmark_iter_new(work->document);
    while ((event = cmark_iter_next(work->iter)) != CMARK_EVENT_DONE) {
        cmark_node *node = cmark_iter_get_node(work->iter);
        cmark_node_type type = cmark_node_get_type(node);
        if (type == CMARK_NODE_HTML_INLINE || type == CMARK_NODE_HTML_BLOCK) {
            markdown_put_text(node,
                              type == CMARK_NODE_HTML_INLINE ? CMARK_NODE_TEXT
                                                             : CMARK_NODE_CODE_BLOCK,
                              cmark_node_get_literal(node));
            cmark_node_free(node);
        } else if (type == CMARK_NODE_CODE_BLOCK) {
            name_language(node, language, sizeof language);
            cmark_node_set_fence_info(node, language);
        } else if (event == CMARK_EVENT_EXIT &&
                   (type == CMARK_NODE_LINK || type == CMARK_NODE_IMAGE)) {
            replace_link(node, type == CMARK_NODE_IMAGE);
        }
    }
    cmark_iter_free(work->iter);
    work->iter = NULL;
    cmark_consolidate_text_nodes(work->document);
}

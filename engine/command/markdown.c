/*
 * markdown.c: the module sessile.markdown: untrusted Markdown as HTML or as Markdown,
 * without active content.
 *
 * html(text) and commonmark(text). cmark-gfm parses the text. Then its tree is made safe,
 * once for both (markdown_tree.c). The HTML is written here, from a closed set of
 * elements. The only attributes are href, rel, start, tabindex and class; their values
 * are checked URLs, numbers, or words of ours. For a text that is refused the result is
 * nil, and the caller shows the text as it is.
 *
 * cmark-gfm ends the process when there is no memory, so only the executable uses it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm.h>

#include <lauxlib.h>
#include <lua.h>

#include "command/markdown.h"
#include "command/modules.h"

/* ------------------------------------------------------------------ HTML */

static void add_bytes(struct markdown *work, const char *text, size_t size)
{
    if (work->failed)
        return;
    if (work->room - work->size < size) {
        size_t room = (work->size + size) * 2 + 256;
        char *grown = realloc(work->out, room);
        if (!grown) {
            work->failed = 1;
            return;
        }
        work->out = grown;
        work->room = room;
    }
    memcpy(work->out + work->size, text, size);
    work->size += size;
}

static void add_text(struct markdown *work, const char *text)
{
    add_bytes(work, text, strlen(text));
}

/* Text as HTML has it, in elements and in quoted attributes. */
static void add_escaped(struct markdown *work, const char *text)
{
    const char *from = text ? text : "";
    for (const char *at = from;; at++) {
        const char *put = *at == '&'    ? "&amp;"
                          : *at == '<'  ? "&lt;"
                          : *at == '>'  ? "&gt;"
                          : *at == '"'  ? "&quot;"
                          : *at == '\'' ? "&#39;"
                          : *at && (unsigned char)*at < ' ' && *at != '\n' && *at != '\t'
                              ? "\xEF\xBF\xBD"
                              : NULL;
        if (!put && *at)
            continue;
        add_bytes(work, from, (size_t)(at - from));
        if (!*at)
            return;
        add_text(work, put);
        from = at + 1;
    }
}

static void add_code(struct markdown *work, cmark_node *node)
{
    const char *language = cmark_node_get_fence_info(node);
    if (language && *language) {
        add_text(work, "<p class=\"lang\">");
        add_escaped(work, language);
        add_text(work, "</p>");
    }
    add_text(work, "<pre tabindex=\"0\"><code>");
    add_escaped(work, cmark_node_get_literal(node));
    add_text(work, "</code></pre>\n");
}

static void add_cell(struct markdown *work, cmark_node *node, int enter)
{
    cmark_node *row = cmark_node_parent(node), *cell;
    const char *tag = cmark_gfm_extensions_get_table_row_is_header(row) ? "th" : "td";
    const uint8_t *align =
        cmark_gfm_extensions_get_table_alignments(cmark_node_parent(row));
    size_t column = 0,
           columns = cmark_gfm_extensions_get_table_columns(cmark_node_parent(row));
    for (cell = node; (cell = cmark_node_previous(cell));)
        column++;
    add_text(work, enter ? "<" : "</");
    add_text(work, tag);
    if (enter && align && column < columns && align[column] == 'r')
        add_text(work, " class=\"right\"");
    else if (enter && align && column < columns && align[column] == 'c')
        add_text(work, " class=\"center\"");
    add_text(work, ">");
}

/* What an extension made; 0: nothing that is known here. */
static int add_extension(struct markdown *work, cmark_node *node, int enter)
{
    const char *type = cmark_node_get_type_string(node);
    if (!strcmp(type, "strikethrough")) {
        add_text(work, enter ? "<del>" : "</del>");
    } else if (!strcmp(type, "table")) {
        add_text(work, enter ? "<div class=\"wide\" tabindex=\"0\"><table>\n"
                             : "</table></div>\n");
    } else if (!strcmp(type, "table_header") || !strcmp(type, "table_row")) {
        add_text(work, enter ? "<tr>" : "</tr>\n");
    } else if (!strcmp(type, "table_cell")) {
        add_cell(work, node, enter);
    } else {
        return 0;
    }
    return 1;
}

static void add_list(struct markdown *work, cmark_node *node, int enter)
{
    int ordered = cmark_node_get_list_type(node) == CMARK_ORDERED_LIST;
    char start[48];
    if (enter && ordered && cmark_node_get_list_start(node) != 1) {
        snprintf(start, sizeof start, "<ol start=\"%d\">\n",
                 cmark_node_get_list_start(node));
        add_text(work, start);
    } else {
        add_text(work, enter     ? ordered ? "<ol>\n" : "<ul>\n"
                       : ordered ? "</ol>\n"
                                 : "</ul>\n");
    }
}

static void add_paragraph(struct markdown *work, cmark_node *node, int enter)
{
    cmark_node *above = cmark_node_parent(node);
    cmark_node *list = above ? cmark_node_parent(above) : NULL;
    if (list && cmark_node_get_type(list) == CMARK_NODE_LIST &&
        cmark_node_get_list_tight(list))
        add_text(work, enter ? "" : "\n");
    else
        add_text(work, enter ? "<p>" : "</p>\n");
}

static void add_node(struct markdown *work, cmark_node *node, int enter)
{
    char tag[24];
    switch (cmark_node_get_type(node)) {
    case CMARK_NODE_DOCUMENT:
        break;
    case CMARK_NODE_BLOCK_QUOTE:
        add_text(work, enter ? "<blockquote>\n" : "</blockquote>\n");
        break;
    case CMARK_NODE_LIST:
        add_list(work, node, enter);
        break;
    case CMARK_NODE_ITEM:
        add_text(work, enter ? "<li>" : "</li>\n");
        if (enter && !strcmp(cmark_node_get_type_string(node), "tasklist"))
            add_text(work, cmark_gfm_extensions_get_tasklist_item_checked(node)
                               ? "\u2611 "
                               : "\u2610 ");
        break;
    case CMARK_NODE_CODE_BLOCK:
        add_code(work, node);
        break;
    case CMARK_NODE_PARAGRAPH:
        add_paragraph(work, node, enter);
        break;
    case CMARK_NODE_HEADING: /* below the headings of the page */
        snprintf(tag, sizeof tag, "<%sh%d>%s", enter ? "" : "/",
                 cmark_node_get_heading_level(node) < 4
                     ? cmark_node_get_heading_level(node) + 3
                     : 6,
                 enter ? "" : "\n");
        add_text(work, tag);
        break;
    case CMARK_NODE_THEMATIC_BREAK:
        add_text(work, "<hr>\n");
        break;
    case CMARK_NODE_SOFTBREAK: /* people and models mean the lines that they write */
    case CMARK_NODE_LINEBREAK:
        add_text(work, "<br>\n");
        break;
    case CMARK_NODE_CODE:
        add_text(work, "<code>");
        add_escaped(work, cmark_node_get_literal(node));
        add_text(work, "</code>");
        break;
    case CMARK_NODE_EMPH:
        add_text(work, enter ? "<em>" : "</em>");
        break;
    case CMARK_NODE_STRONG:
        add_text(work, enter ? "<strong>" : "</strong>");
        break;
    case CMARK_NODE_LINK:
        if (!markdown_is_harmless(cmark_node_get_url(node)))
            break;
        if (enter) {
            add_text(work, "<a rel=\"noopener noreferrer nofollow\" href=\"");
            add_escaped(work, cmark_node_get_url(node));
            add_text(work, "\">");
        } else {
            add_text(work, "</a>");
        }
        break;
    default:
        if (!add_extension(work, node, enter))
            add_escaped(work, cmark_node_get_literal(node));
    }
}

/* html(text) -> elements of a closed set; nil: show the text as it is */
static int markdown_html(lua_State *L)
{
    struct markdown *work = markdown_new(L);
    cmark_event_type event;
    if (!markdown_parse(L, work))
        return 0;
    markdown_make_harmless(work);
    work->iter = cmark_iter_new(work->document);
    while ((event = cmark_iter_next(work->iter)) != CMARK_EVENT_DONE)
        add_node(work, cmark_iter_get_node(work->iter), event == CMARK_EVENT_ENTER);
    if (work->failed)
        return luaL_error(L, "not enough memory");
    lua_pushlstring(L, work->out ? work->out : "", work->size);
    return 1;
}

/* ------------------------------------------------------------------ Markdown */

/* The place in a text of what is read as an address though nobody says that it is one:
 * the mark in it that a backslash takes the meaning from; NULL. */
static const char *find_address(const char *text)
{
    for (; *text; text++) {
        if (*text == ':' && (!text[1] || text[1] == '/'))
            return text;
        if (strncasecmp(text, "www.", 4) == 0)
            return text + 3;
    }
    return NULL;
}

/* An address in a text takes the backslash behind it along, and what that was to keep
 * harmless acts. */
static void break_addresses(cmark_node *node)
{
    char *text = strdup(cmark_node_get_literal(node)), mark[3] = "\\";
    const char *from = text, *at;
    while (from && (at = find_address(from))) {
        cmark_node *escaped = cmark_node_new(CMARK_NODE_CUSTOM_INLINE);
        mark[1] = *at;
        text[at - text] = '\0';
        markdown_put_text(node, CMARK_NODE_TEXT, from);
        cmark_node_set_on_enter(escaped, mark);
        cmark_node_insert_before(node, escaped);
        from = at + 1;
    }
    if (from)
        cmark_node_set_literal(node, from);
    free(text);
}

/* An address in angle brackets ends where it says so. */
static void close_address(struct markdown *work, cmark_node *node)
{
    const char *url = cmark_node_get_url(node);
    work->size = 0;
    for (; *url; url++)
        if (*url == '<' || *url == '>' || *url == '\\')
            add_text(work, *url == '<' ? "%3C" : *url == '>' ? "%3E" : "%5C");
        else
            add_bytes(work, url, 1);
    add_bytes(work, "", 1);
    if (!work->failed)
        cmark_node_set_url(node, work->out);
}

static int is_address(cmark_node *node)
{
    cmark_node *link = cmark_node_parent(node);
    const char *url = link && cmark_node_get_type(link) == CMARK_NODE_LINK
                          ? cmark_node_get_url(link)
                          : NULL;
    return url && !strcmp(url, cmark_node_get_literal(node));
}

/* Leaves nothing in the tree that would be more, written as Markdown and read again. */
static void make_plain(struct markdown *work)
{
    cmark_event_type event;
    work->iter = cmark_iter_new(work->document);
    while ((event = cmark_iter_next(work->iter)) != CMARK_EVENT_DONE) {
        cmark_node *node = cmark_iter_get_node(work->iter);
        cmark_node_type type = cmark_node_get_type(node);
        if (event == CMARK_EVENT_ENTER && type == CMARK_NODE_LINK)
            close_address(work, node);
        else if (type == CMARK_NODE_CODE_BLOCK && !*cmark_node_get_fence_info(node))
            /* always in a fence: an indent counts differently within a list of tasks */
            cmark_node_set_fence_info(node, "text");
        else if (type == CMARK_NODE_TEXT && !is_address(node))
            break_addresses(node);
    }
    cmark_iter_free(work->iter);
    work->iter = NULL;
}

/* commonmark(text) -> the same as Markdown: no HTML in it, no images, no definitions of
 * links that hold elsewhere; nil: show it as it stands */
static int markdown_commonmark(lua_State *L)
{
    struct markdown *work = markdown_new(L);
    if (!markdown_parse(L, work))
        return 0;
    markdown_make_harmless(work);
    make_plain(work);
    if (work->failed)
        return luaL_error(L, "not enough memory");
    work->text = cmark_render_commonmark(work->document, CMARK_OPT_DEFAULT, 0);
    lua_pushstring(L, work->text);
    return 1;
}

int luaopen_sessile_markdown(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"html", markdown_html}, {"commonmark", markdown_commonmark}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}

/*
 * markdown.c: the module sessile.markdown: untrusted Markdown as HTML or as Markdown,
 * without active content.
 *
 * html(text) and commonmark(text). cmark-gfm parses the text. Then its tree is made safe,
 * once for both: HTML becomes text, an image becomes a link to it, and a link that is not
 * http, https or mailto becomes its text. The HTML is written here, from a closed set of
 * elements. The only attributes are href, rel, start, tabindex and class; their values
 * are checked URLs, numbers, or words of ours. Text that would take long, or nests
 * deeply, is refused: the result is nil, and the caller shows the text as it is.
 *
 * cmark-gfm ends the process when there is no memory, so only the executable uses it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm-extension_api.h>
#include <cmark-gfm.h>

#include <lauxlib.h>
#include <lua.h>

#include "command/modules.h"

/* Some of what cmark-gfm does is quadratic: these bound it to some milliseconds. */
enum { MOST_BYTES = 64 * 1024, MOST_CELLS = 50000, MOST_COLUMNS = 200, MOST_DEPTH = 40 };

/* What must be freed whatever is raised: a userdata owns it. */
struct work {
    cmark_parser *parser;
    cmark_node *document;
    cmark_iter *iter;
    char *text;
    char *out; /* what is written, grown by hand: nothing of Lua's is open meanwhile */
    size_t size, room;
    int failed;
};

static int work_gc(lua_State *L)
{
    struct work *work = lua_touserdata(L, 1);
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

static struct work *new_work(lua_State *L)
{
    struct work *work = lua_newuserdatauv(L, sizeof *work, 0);
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

static int nests_deeply(struct work *work)
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
static int parse(lua_State *L, struct work *work)
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
static int is_harmless(const char *url)
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

static void put_text(cmark_node *before, cmark_node_type type, const char *text)
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
    if (is_harmless(url) && !within_link(node)) {
        link = cmark_node_new(CMARK_NODE_LINK);
        cmark_node_set_url(link, url);
        cmark_node_insert_before(node, link);
    }
    if (image)
        put_text(link ? link : node, CMARK_NODE_TEXT, "image: ");
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
static void make_harmless(struct work *work)
{
    cmark_event_type event;
    char language[32];
    work->iter = cmark_iter_new(work->document);
    while ((event = cmark_iter_next(work->iter)) != CMARK_EVENT_DONE) {
        cmark_node *node = cmark_iter_get_node(work->iter);
        cmark_node_type type = cmark_node_get_type(node);
        if (type == CMARK_NODE_HTML_INLINE || type == CMARK_NODE_HTML_BLOCK) {
            put_text(node,
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

/* ------------------------------------------------------------------ HTML */

static void add_bytes(struct work *work, const char *text, size_t size)
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

static void add_text(struct work *work, const char *text)
{
    add_bytes(work, text, strlen(text));
}

/* Text as HTML has it, in elements and in quoted attributes. */
static void add_escaped(struct work *work, const char *text)
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

static void add_code(struct work *work, cmark_node *node)
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

static void add_cell(struct work *work, cmark_node *node, int enter)
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
static int add_extension(struct work *work, cmark_node *node, int enter)
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

static void add_list(struct work *work, cmark_node *node, int enter)
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

static void add_paragraph(struct work *work, cmark_node *node, int enter)
{
    cmark_node *above = cmark_node_parent(node);
    cmark_node *list = above ? cmark_node_parent(above) : NULL;
    if (list && cmark_node_get_type(list) == CMARK_NODE_LIST &&
        cmark_node_get_list_tight(list))
        add_text(work, enter ? "" : "\n");
    else
        add_text(work, enter ? "<p>" : "</p>\n");
}

static void add_node(struct work *work, cmark_node *node, int enter)
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
        if (!is_harmless(cmark_node_get_url(node)))
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
    struct work *work = new_work(L);
    cmark_event_type event;
    if (!parse(L, work))
        return 0;
    make_harmless(work);
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
        put_text(node, CMARK_NODE_TEXT, from);
        cmark_node_set_on_enter(escaped, mark);
        cmark_node_insert_before(node, escaped);
        from = at + 1;
    }
    if (from)
        cmark_node_set_literal(node, from);
    free(text);
}

/* An address in angle brackets ends where it says so. */
static void close_address(struct work *work, cmark_node *node)
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
static void make_plain(struct work *work)
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
    struct work *work = new_work(L);
    if (!parse(L, work))
        return 0;
    make_harmless(work);
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

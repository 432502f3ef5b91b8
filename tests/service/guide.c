/* guide.c: see guide.h. */
#include "service/guide.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "db1, db2 and db3" */
static void read_names(guide_block *b, char *names)
{
    int count = 0;
    for (char *word = strtok(names, ", "); word; word = strtok(NULL, ", ")) {
        if (strcmp(word, "and") == 0)
            continue;
        if (count == GUIDE_MACHINES || strlen(word) >= sizeof b->where[0])
            fail_msg("line %d: \"%s\" is no machine", b->line, word);
        strcpy(b->where[count++], word);
    }
    if (count == 0)
        fail_msg("line %d: a block that says no machine", b->line);
}

/* The line that says where. */
static void read_where(guide_block *b, const char *line)
{
    static const char source[] = ", in the source tree";
    char names[200];
    if (strncmp(line, "# on ", 5) != 0 || strlen(line) >= sizeof names)
        fail_msg("line %d: a block begins with \"# on MACHINE\", not with: %s", b->line,
                 line);
    strcpy(names, line + 5);
    char *at = strstr(names, source);
    if (at) {
        b->in_source = 1;
        *at = '\0';
    }
    read_names(b, names);
}

/* What follows ``` */
static void read_fence(guide_block *b, const char *words)
{
    static const char untested[] = "sh no-test: ";
    size_t size = strlen(untested);
    if (strcmp(words, "sh") == 0)
        return;
    if (strncmp(words, untested, size) != 0 || strlen(words) <= size ||
        strlen(words + size) >= sizeof b->reason)
        fail_msg("line %d: ```%s is neither ```sh nor ```sh no-test: REASON", b->line,
                 words);
    strcpy(b->reason, words + size);
}

static void add_line(guide_block *b, const char *line)
{
    size_t had = strlen(b->text), more = strlen(line);
    b->text = realloc(b->text, had + more + 2);
    memcpy(b->text + had, line, more);
    strcpy(b->text + had + more, "\n");
}

/* Reads a block to its end. Returns the number of its last line. */
static int read_block(guide *g, FILE *page, const char *heading, const char *fence,
                      size_t indent, int at)
{
    char line[1000];
    if (g->count == GUIDE_BLOCKS)
        fail_msg("line %d: more than %d blocks", at, GUIDE_BLOCKS);
    guide_block *b = &g->blocks[g->count++];
    *b = (guide_block){.line = at + 1, .text = calloc(1, 1)};
    snprintf(b->heading, sizeof b->heading, "%s", heading);
    read_fence(b, fence);
    for (int lines = 0; fgets(line, sizeof line, page); lines++) {
        at++;
        line[strcspn(line, "\n")] = '\0';
        const char *own =
            line + (strspn(line, " ") < indent ? strspn(line, " ") : indent);
        if (strcmp(own, "```") == 0)
            return at;
        if (lines == 0)
            read_where(b, own);
        else
            add_line(b, own);
    }
    fail_msg("line %d: a block without an end", b->line);
    return at;
}

void guide_open(guide *g, const char *path)
{
    char line[1000], heading[80] = "";
    int at = 0, shown = 0;
    FILE *page = fopen(path, "re");
    memset(g, 0, sizeof *g);
    if (!page)
        fail_msg("%s cannot be read", path);
    while (fgets(line, sizeof line, page)) {
        size_t indent = strspn(line, " ");
        at++;
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line + indent, "```", 3) != 0) {
            if (!shown && strncmp(line, "## ", 3) == 0)
                snprintf(heading, sizeof heading, "%.79s", line + 3);
        } else if (shown || strcmp(line + indent, "```text") == 0)
            shown = !shown;
        else
            at = read_block(g, page, heading, line + indent + 3, indent, at);
    }
    fclose(page);
}

void guide_close(guide *g)
{
    for (int i = 0; i < g->count; i++)
        free(g->blocks[i].text);
}

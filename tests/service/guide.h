/*
 * guide.h: the shell blocks of a page, in their order, as an operator types them.
 *
 * A block is fenced by ```sh, also in a list. Its first line says where it is typed:
 *     # on db1 and db2          names, with commas and "and"
 *     # on admin, in the source tree
 * ```sh no-test: REASON is a block that is shown and not run. No other fence is allowed
 * but ```text, which shows output.
 */
#ifndef SERVICE_GUIDE_H
#define SERVICE_GUIDE_H

enum { GUIDE_BLOCKS = 100, GUIDE_MACHINES = 6 };

typedef struct guide_block {
    int line;                       /* of its first line in the page, from 1 */
    char heading[80];               /* of the chapter that it is in, without "## " */
    char reason[80];                /* why it is not run; "": it is */
    char where[GUIDE_MACHINES][16]; /* machines; "" after the last */
    int in_source;                  /* 1: in the source tree */
    char *text;                     /* without its first line and its indentation */
} guide_block;

typedef struct guide {
    guide_block blocks[GUIDE_BLOCKS];
    int count;
} guide;

/* Reads a page. Fails the test, with the line, for a block that is none of these. */
void guide_open(guide *g, const char *path);
void guide_close(guide *g);

#endif

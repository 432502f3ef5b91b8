/*
 * line.h: builds and parses one line. README.md has the layout.
 *
 * Knows nothing of files, offsets or the order of lines.
 */
#ifndef LOG_LINE_H
#define LOG_LINE_H

#include "vault/vault.h"

/* The longest line that is written or read. More bytes without a newline are not a line,
 * so a hostile file cannot make a reader allocate more. */
#define LINE_LONGEST (UINT64_C(64) << 20)

/* The first bytes of every entry, and so of every line. */
#define LINE_START      "{\"id\":\""
#define LINE_START_SIZE 7

/* What a line says about itself. */
typedef struct line {
    sessile_id id;
    uint64_t commit; /* lines of the write that ends here; 0: not its last line */
    int has_durable;
    sessile_id durable; /* the newest entry known synced when it was written */
    unsigned char previous[VAULT_TAG]; /* sealed: the tag of the line before it */
    unsigned char tag[VAULT_TAG];
} line;

typedef enum line_verdict {
    LINE_GOOD = 0,
    LINE_BAD,   /* not a line of this log, or not as it was written */
    LINE_FAILED /* could not be decided: the error is filled (NOMEM, LIMIT) */
} line_verdict;

/*
 * Checks one line by itself, and on LINE_GOOD appends its entry's text to out. text: the
 * line without its newline; it is changed during the call and restored. is_header: it is
 * the log's first line. k->suite SUITE_NONE: a plain log. The caller compares the id and
 * the previous tag.
 */
line_verdict line_open(const logkey *k, unsigned depth, char *text, size_t size,
                       int is_header, line *l, buf *out, sessile_error *err);

/*
 * Reads the clear fields of a line by its layout: nothing is opened and no checksum is
 * compared. 1: it has the layout of a line other than the header, and its fields agree
 * with each other. Used past the last good line, where a claim prevents a cut but proves
 * nothing else.
 */
int line_claims(const logkey *k, const char *text, size_t size, line *l);

/*
 * Reads the clear fields and the tag of a sealed line without its key. k: only its suite
 * is used. LINE_GOOD: the layout is right; the sealed part was not checked.
 */
line_verdict line_check_layout(const logkey *k, const char *text, size_t size,
                               int is_header, line *l);

/* Sets suite, epoch and user of k from a log's first line (without newline). The key is
 * not opened. UNSUPPORTED: an unknown suite. */
sessile_status line_read_key_info(logkey *k, const char *text, size_t size,
                                  sessile_error *err);

/* The clear members of a line. */
typedef struct line_clear {
    uint64_t commit; /* 0: not the write's last line */
    uint64_t
        durable; /* entries known synced (the newest one's id plus 1); 0: none known */
} line_clear;

/* Appends the line of a checked entry text, newline included. tag_out: its tag. */
sessile_status line_put(const logkey *k, buf *out, const char *text, size_t size,
                        line_clear clear, const unsigned char previous[VAULT_TAG],
                        unsigned char tag_out[VAULT_TAG], buf *scratch,
                        sessile_error *err);

/* Puts the header's line into out, which is empty. If the keyring is sealed, generates
 * the log's key into k, wrapped for a user (as keyring_user_name() returns it; NULL or
 * "": none). tag_out: its tag. */
sessile_status line_put_header(logkey *k, const keyring *keys, const char *user, buf *out,
                               const char *text, size_t size,
                               unsigned char tag_out[VAULT_TAG], buf *scratch,
                               sessile_error *err);

/* Opens the log's key from its first line (without newline). SEALED: the log is plain and
 * the keyring sealed, or the reverse, or the key is another store's. DAMAGED: the line is
 * not a header. */
sessile_status line_key(logkey *k, const keyring *keys, char *text, size_t size,
                        sessile_error *err);

/* 1 if text begins like an entry; sets *id. */
int line_id(const char *text, size_t size, sessile_id *id);

/* 1 if text is one line that begins with this id and ends with a brace. */
int line_is_entry(const char *text, size_t size, uint64_t id);

#endif

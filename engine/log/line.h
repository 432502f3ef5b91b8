/*
 * line.h: the layout of one line: built and taken apart. README.md has the tables.
 *
 * Knows bytes, not logs: no offset, no file, no order of lines.
 */
#ifndef LOG_LINE_H
#define LOG_LINE_H

#include "vault/vault.h"

/* The longest line that is written or believed. What has no newline in that many bytes is
 * no line, so that a hostile file cannot ask for more memory than this. */
#define LINE_LONGEST (UINT64_C(64) << 20)

/* How every entry, and so every candidate for a line, begins. */
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
 * Checks one line (text: without its newline; is_header: it is the log's first) by itself
 * and appends its entry's text to out, on LINE_GOOD only. k->suite SUITE_NONE: plain. The
 * caller compares id and previous tag with what should be there. text is as before on
 * return, but may be written to meanwhile.
 */
line_verdict line_open(const logkey *k, unsigned depth, char *text, size_t size,
                       int is_header, line *l, buf *out, sessile_error *err);

/*
 * Reads what a line says in clear, by its layout alone: nothing is opened and no checksum
 * is compared. 1 when it is the whole layout of a line that is no header, its fields
 * agreeing with each other. For what is past the last good line, where such a claim is a
 * reason not to cut, never a reason to believe.
 */
int line_claims(const logkey *k, const char *text, size_t size, line *l);

/*
 * The same of a sealed line that cannot be opened, for want of a key: its clear fields
 * and its tag are taken as they stand. k: its suite is set. LINE_GOOD: the layout is that
 * of such a line, which says nothing of what is under the seal.
 */
line_verdict line_look(const logkey *k, const char *text, size_t size, int is_header,
                       line *l);

/* What a log's first line (without newline) says of its key, which is not opened: suite,
 * epoch and user are set. UNSUPPORTED: an unknown suite. */
sessile_status line_key_look(logkey *k, const char *text, size_t size,
                             sessile_error *err);

/* What is to be written into a line beside its entry. */
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

/* Puts the header's line into out, which is empty. Draws the log's key (into k) when the
 * keyring is sealed, for the user named by keyring_user_name() (NULL or "": none).
 * tag_out: its tag. */
sessile_status line_put_header(logkey *k, const keyring *keys, const char *user, buf *out,
                               const char *text, size_t size,
                               unsigned char tag_out[VAULT_TAG], buf *scratch,
                               sessile_error *err);

/* Reads the log's key out of its first line (without newline). SEALED: plain where sealed
 * was meant or the reverse, or another store's key. DAMAGED: neither. */
sessile_status line_key(logkey *k, const keyring *keys, char *text, size_t size,
                        sessile_error *err);

/* 1 when text begins like an entry with an id; *id is set. */
int line_id(const char *text, size_t size, sessile_id *id);

/* 1 when text is one line of JSON that begins with this id and ends with a brace. */
int line_is_entry(const char *text, size_t size, uint64_t id);

#endif

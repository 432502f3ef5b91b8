/*
 * encoding.h: exact token counts of a byte-pair encoding.
 *
 * An encoding is read once, from a mapped file or from a vocabulary. After that it is
 * immutable, and any number of threads can count with it.
 */
#ifndef TOKENS_ENCODING_H
#define TOKENS_ENCODING_H

#include <stddef.h>
#include <stdint.h>
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"

typedef struct sessile_encoding encoding;

/* Opens by name ("cl100k_base", "o200k_base"), searched in the folders of `path`
 * (separated by ':'; NULL: where the library was installed). A `name` with a '/' is
 * the path of a `.tiktoken` file, or of a `tokenizer.json` whose model is a byte-level
 * BPE. *out is NULL on failure. NOTFOUND, DENIED, IO: of the file. INVALID: its
 * contents are malformed, and where. UNSUPPORTED: a tokenizer.json of another kind. */
sessile_status encoding_open(encoding **out, const char *name, const char *path,
                             const allocator *alloc, sessile_error *err);
/* The same with the pattern of a `.tiktoken` file, which has none itself: the name of
 * an encoding with that pattern, or a regular expression. NULL: the pattern of a known
 * vocabulary. */
sessile_status encoding_open_with(encoding **out, const char *name, const char *path,
                                  const char *pattern, const allocator *alloc,
                                  sessile_error *err);
/* The same of a file's bytes, which are not kept. */
sessile_status encoding_open_bytes(encoding **out, const char *name, const void *data,
                                   size_t size, const char *pattern,
                                   const allocator *alloc, sessile_error *err);
void encoding_free(encoding *e);
const char *encoding_name(const encoding *e);
const allocator *encoding_allocator(const encoding *e);

/* How many tokens a text has; special tokens count as ordinary text. Linear in size
 * for every text. Invalid UTF-8 counts as what a lossy decoder makes of it. NOMEM;
 * LIMIT: the text is over 2 GiB, or a pattern from a file has too many ways to match
 * it. */
sessile_status encoding_count(const encoding *e, const char *text, size_t size,
                              int64_t *tokens, sessile_error *err);

/* Appends the tokens' ids to out, each a uint32_t. NOMEM; out is then as it was. */
sessile_status encoding_encode(const encoding *e, const char *text, size_t size, buf *out,
                               sessile_error *err);
/* Appends the bytes of these tokens; they need not be UTF-8. INVALID: an id is not a
 * token, and which. NOMEM. */
sessile_status encoding_decode(const encoding *e, const uint32_t *ids, size_t count,
                               buf *out, sessile_error *err);

#endif

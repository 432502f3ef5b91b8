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

/* Opens by name ("cl100k_base", "o200k_base"; looked up in the folders of `path`, ':'
 * between; NULL: where the library was installed) or, when `name` has a '/', by the path
 * of a `.tiktoken` file or of a `tokenizer.json` whose model is a byte-level BPE. *out is
 * NULL on failure. NOTFOUND, DENIED, IO: of the file. INVALID: it is no such file, and
 * where. UNSUPPORTED: a tokenizer.json of another kind. */
sessile_status encoding_open(encoding **out, const char *name, const char *path,
                             const allocator *alloc, sessile_error *err);
/* The same with the pattern of a `.tiktoken` file, which holds none itself: the name of
 * an encoding whose pattern it is, or a regular expression. NULL: of a known vocabulary.
 */
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

/* How many tokens a text is, special tokens counted as ordinary text. Linear in size for
 * every text; the text need not be UTF-8 (what is not counts as what a lossy decoder
 * makes of it). NOMEM; LIMIT: the text is over 2 GiB, or a pattern that came with a file
 * has too many ways to match it. */
sessile_status encoding_count(const encoding *e, const char *text, size_t size,
                              int64_t *tokens, sessile_error *err);

/* Appends the tokens' ids to out, each a uint32_t. NOMEM; out is then as it was. */
sessile_status encoding_encode(const encoding *e, const char *text, size_t size, buf *out,
                               sessile_error *err);
/* Appends the bytes that these tokens stand for; they need not be UTF-8. INVALID: an id
 * that is no token, and which. NOMEM. */
sessile_status encoding_decode(const encoding *e, const uint32_t *ids, size_t count,
                               buf *out, sessile_error *err);

#endif

/*
 * decoded.h: texts that are encoded in a text.
 *
 * A model reads base64 as easily as words. An agent that was given an order in base64
 * repeats it in words, which then have to be found in what the tool said.
 */
#ifndef REMEMBER_DECODED_H
#define REMEMBER_DECODED_H

#include "base/buf.h"
#include "sessile.h"

/*
 * Appends what text has in base64 (also of URLs), in hex, with escapes (\u0041, \x41,
 * %41, &#65;), in characters that are not seen (tags, variation selectors), and its words
 * in Latin letters when they are written with Cyrillic or Greek ones among these. Also
 * what is encoded twice or three times. Each is a line. What does not decode to text is
 * left out.
 */
void decoded_put(buf *out, sessile_slice text);

/* Appends the text with each Latin letter moved on by `by` places: rot13 is 13. */
void decoded_put_rotated(buf *out, sessile_slice text, int by);
/* Appends the text with its characters in the opposite order; text is UTF-8. */
void decoded_put_reversed(buf *out, sessile_slice text);

#endif

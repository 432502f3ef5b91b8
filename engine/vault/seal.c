/*
 * seal.c: one line sealed, one line opened.
 *
 * Owns what stands inside a line's base64: nonce ‖ seal(previous tag ‖ entry), with the
 * commitment and every byte of the line before the base64 as additional data. It must
 * never show a byte of a line that does not open.
 *
 * The previous tag is inside the seal, not in the additional data: there, one flipped bit
 * in a tag would make every later line unreadable and look like a torn tail. Inside, each
 * line opens by itself, and the chain is compared by whoever reads lines in order.
 */
#include <string.h>

#include "base/text.h"
#include "vault/guarded.h"

sessile_status seal_line(const logkey *k, buf *line, size_t line_start,
                         const unsigned char previous[VAULT_TAG], const void *entry,
                         size_t size, unsigned char tag_out[VAULT_TAG], buf *scratch,
                         sessile_error *err)
{
    size_t head = line->size - line_start;
    size_t ad = VAULT_COMMITMENT + head;
    size_t plain = VAULT_TAG + size;
    size_t sealed = suite_nonce_size(k->suite) + plain + VAULT_TAG;
    buf_clear(scratch);
    if (size > SIZE_MAX / 4 || line->failed ||
        buf_reserve(scratch, ad + plain + sealed) != 0 ||
        buf_reserve(line, base64_size(sealed) + 2) != 0)
        return fail_nomem(err);
    unsigned char *at = (unsigned char *)scratch->data;
    memcpy(at, k->commitment, VAULT_COMMITMENT);
    memcpy(at + VAULT_COMMITMENT, line->data + line_start, head);
    memcpy(at + ad, previous, VAULT_TAG);
    memcpy(at + ad + VAULT_TAG, entry, size);
    unsigned char *out = at + ad + plain;
    seal_with(k, at, ad, at + ad, plain, out);
    memcpy(tag_out, out + sealed - VAULT_TAG, VAULT_TAG);
    base64_put(line, out, sealed);
    return line->failed ? fail_nomem(err) : SESSILE_OK;
}

int open_line(const logkey *k, const char *head, size_t head_size, const char *base64,
              size_t base64_size_, buf *out, unsigned char previous_out[VAULT_TAG],
              unsigned char tag_out[VAULT_TAG])
{
    size_t nonce = suite_nonce_size(k->suite);
    size_t room = base64_size_ / 4 * 3;
    size_t ad = VAULT_COMMITMENT + head_size;
    if (base64_size_ % 4 != 0 || room < nonce + 2 * VAULT_TAG)
        return -1;
    /* The work is done behind what out holds already: plain text first, so that only a
     * move over the tag remains. out->failed tells want of memory from a bad line. */
    if (buf_reserve(out, room + room + ad) != 0)
        return -1;
    unsigned char *plain = (unsigned char *)out->data + out->size;
    unsigned char *sealed = plain + room;
    unsigned char *additional = sealed + room;
    memcpy(additional, k->commitment, VAULT_COMMITMENT);
    memcpy(additional + VAULT_COMMITMENT, head, head_size);
    int64_t raw = base64_decode(sealed, base64, base64_size_);
    if (raw < (int64_t)(nonce + 2 * VAULT_TAG) ||
        open_with(k, additional, ad, sealed, (size_t)raw, plain) != 0) {
        out->data[out->size] = '\0';
        return -1;
    }
    size_t size = (size_t)raw - nonce - 2 * VAULT_TAG;
    memcpy(previous_out, plain, VAULT_TAG);
    memcpy(tag_out, sealed + raw - VAULT_TAG, VAULT_TAG);
    memmove(plain, plain + VAULT_TAG, size);
    out->size += size;
    out->data[out->size] = '\0';
    return 0;
}

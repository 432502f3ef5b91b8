/* names.h: the words for statuses, hooks and reasons, slices of text, and the printed
 * form of a key. sessile.h documents each of them under its public name. */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include "sessile.h"

const char *status_name(sessile_status status);
const char *hook_name(sessile_hook hook);
const char *reason_name(sessile_reason reason);
const char *checkpoint_reason_name(sessile_checkpoint_reason reason);

sessile_slice slice_of(const char *text); /* of a NUL-terminated string; NULL: empty */
int slice_same(sessile_slice a, sessile_slice b); /* 1: the same bytes */
void key_print(sessile_key key, char out[SESSILE_KEY_SIZE]);
sessile_status key_parse(sessile_slice text, sessile_key *out);

#endif

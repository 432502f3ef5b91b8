/* forks.h: forks made, and compared with the session that they come from */
#ifndef SUPPORT_FORKS_H
#define SUPPORT_FORKS_H

#include "support/sessions.h"

sessile_session *fork_with(sessile_session *s, sessile_id entry,
                           const sessile_session_options *o);
sessile_session *fork_at(sessile_session *s, sessile_id entry, const char *id);
char *entry_text_of(sessile_session *s, sessile_id id);
/* Entries 1 to last are the same, byte for byte. */
void assert_same_entries(sessile_session *a, sessile_session *b, sessile_id last);
void assert_head(sessile_session *s, sessile_id expected);
/* Contents of the messages, as "a b c". */
void assert_contents(sessile_session *s, const char *expected);
void assert_title(sessile_session *s, const char *expected);
/* Labels as "00000001=a 00000002=b". */
void assert_labels(sessile_session *s, const char *expected);
void put_label(sessile_session *s, sessile_id id, const char *name);
void give_title(sessile_session *s, const char *title);
/* A whole check of the store finds nothing but notes. */
void assert_clean(sessile_store *st);

#endif

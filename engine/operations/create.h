/* create.h: sessions that are made new, with a title and metadata that were screened. */
#ifndef OPERATIONS_CREATE_H
#define OPERATIONS_CREATE_H

#include "screen/write.h"
#include "session/handle.h"

/* As session_create_at(), with what the store's rules leave of title and metadata. What
 * is flagged labels the header, in a commit after it. */
sessile_status session_make(store_core *st, const sessile_session_options *options,
                            const sessile_link *parent, const session_place *at,
                            sessile_error *err, char *new_id);
/* Opens a session, and makes it first when it is not there. */
sessile_status session_open_or_make(session_core **out, store_core *st,
                                    const sessile_session_options *options,
                                    sessile_error *err);

/* Title and metadata that a session is given, checked and screened. */
typedef struct given_texts {
    buf title, metadata; /* title: empty, or what is written instead */
    write_labels labels; /* of text 0 */
} given_texts;
/* title and metadata of options then point into t, as far as they were replaced. Call
 * given_texts_deinit() in any case. */
sessile_status given_texts_screen(given_texts *t, store_core *st,
                                  sessile_session_options *options, sessile_error *err);
void given_texts_deinit(given_texts *t);

#endif

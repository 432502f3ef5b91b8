/*
 * append.h: the small writes: a bare message, a custom entry, a title, a cleared context.
 *
 * Each is one commit, synced before it returns.
 */
#ifndef OPERATIONS_APPEND_H
#define OPERATIONS_APPEND_H

#include "screen/write.h"
#include "session/handle.h"

/* See the functions of these names in sessile.h. Arguments are not NULL. */
sessile_status session_append_message(session_core *s, sessile_slice text,
                                      sessile_id *out, sessile_error *err);
sessile_status session_append_custom(session_core *s, sessile_slice data,
                                     entry_source source, sessile_id *out,
                                     sessile_error *err);
sessile_status session_set_title(session_core *s, sessile_slice title,
                                 sessile_error *err);
sessile_status session_clear(session_core *s, sessile_error *err);

/* Checks and screens a title: *title is what is written, which may be in left, empty
 * before. */
sessile_status session_screen_title(const store_core *st, sessile_slice *title, buf *left,
                                    write_labels *labels, size_t of, sessile_error *err);

/* Checks and screens a message's text into out, which is empty, and sets its columns
 * (spans into out) and tokens. of: the number of its labels. */
sessile_status session_check_message(session_core *s, sessile_slice text, buf *out,
                                     message *columns, token_count *tokens,
                                     write_labels *labels, size_t of, sessile_error *err);

/* The same of the data of a custom entry. */
sessile_status session_check_custom(const session_core *s, sessile_slice data,
                                    entry_source source, buf *out, write_labels *labels,
                                    size_t of, sessile_error *err);

#endif

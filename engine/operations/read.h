/*
 * read.h: what a host reads from a session: context, entries, tokens.
 *
 * The public functions of these names; arguments were checked.
 */
#ifndef OPERATIONS_READ_H
#define OPERATIONS_READ_H

#include "session/handle.h"

sessile_status session_read_context(session_core *s, sessile_id at, sessile_message **out,
                                    size_t *count, sessile_context_info *info,
                                    sessile_error *err);
sessile_status session_entry(session_core *s, sessile_id id, char **out, size_t *size,
                             sessile_error *err);

/* The earlier entry that a member of e's data names; SESSILE_NO_ID: none, or a bad one.
 */
sessile_id read_earlier_id(const entry *e, const char *member);

sessile_status entries_open(entries_core **out, session_core *s,
                            const sessile_entries_options *options, sessile_error *err);
sessile_status entries_next(entries_core *entries, sessile_id *id, const char **json,
                            size_t *size, sessile_error *err);
void entries_close(entries_core *entries);

sessile_status session_count_tokens(session_core *s, const sessile_count_options *options,
                                    sessile_tokens *out, sessile_error *err);
sessile_status store_count_messages(store_core *store,
                                    const sessile_count_options *options,
                                    const sessile_slice *messages, size_t count,
                                    sessile_tokens *each, sessile_tokens *out,
                                    sessile_error *err);

#endif

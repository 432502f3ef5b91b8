/*
 * write.h: the rules of a store: what each of its writes meets, whoever makes it.
 *
 * A guard sets them (sessile_store_guard()), and the store's core holds them until it is
 * closed, so they outlive its sessions, memories and runs. They never change: many
 * threads use them. A writer asks once for each text, after the limits of size and before
 * its entry is built, without holding a lock:
 *
 *     status = write_screen_in(store, &item, &text, 0, &labels, 0, err);
 *     ...
 *     id = batch_message(b, ...);
 *     write_labels_put(&labels, b, 0, id);
 *
 * A store without rules, or without one for the kind, costs one comparison.
 */
#ifndef SCREEN_WRITE_H
#define SCREEN_WRITE_H

#include "screen/screen.h"
#include "session/store_handle.h"
#include "session/write.h"

/* Counted: see base/counted.h. */
typedef struct write_rules write_rules;

/* One reference; NULL when nothing would be looked at. The rules keep a reference to
 * screens (NULL: none) and a copy of urls. INVALID: an item of urls->options.allow, or a
 * kind that there is not. LIMIT. NOMEM. */
sessile_status write_rules_new(write_rules **out, sessile_screens *screens,
                               const sessile_url_rules *urls, const os_table *os,
                               const allocator *a, sessile_error *err);

/* The list that sessile_store_screen() runs; NULL: there are no rules. */
const sessile_screens *write_rules_list(const store_core *st);

/* The labels that the texts of one commit are flagged with. `of` is the writer's number
 * of the text: 0 if it writes one. Zeroed, it is empty. */
typedef struct write_label {
    size_t of;
    char name[SCREEN_LABEL];
} write_label;
typedef struct write_labels {
    write_label *list;
    size_t count, capacity;
} write_labels;
void write_labels_deinit(write_labels *labels, const allocator *a);
/* Adds to a batch a label of entry id for each flag of text `of`. */
void write_labels_put(const write_labels *labels, batch *b, size_t of, sessile_id id);
/* Appends the rules of text `of` as a JSON array. */
void write_labels_json(const write_labels *labels, size_t of, buf *out);

/* 1: texts of this kind are looked at. */
int write_is_screened(const store_core *st, sessile_screen_kind kind);

/*
 * Judges item->text. FLAG: adds to labels (NULL: they have no place). REDACT: *left,
 * which is empty, gets the text to write instead; else it stays empty. left NULL: nothing
 * can be removed from it, so that this is DENIED. DENIED: it is not to be written;
 * err->rule is the rule. NOMEM.
 */
sessile_status write_screen(const store_core *st, const sessile_screen_item *item,
                            buf *left, write_labels *labels, size_t of,
                            sessile_error *err);
/* The same of what a buffer has from `from` on, which is replaced; item->text is not
 * looked at. */
sessile_status write_screen_in(const store_core *st, const sessile_screen_item *item,
                               buf *text, size_t from, write_labels *labels, size_t of,
                               sessile_error *err);
/* The same of a message, checked JSON. */
sessile_status write_screen_message(const store_core *st, buf *text, size_t from,
                                    write_labels *labels, size_t of, sessile_error *err);
/* The same of checked JSON of another kind, which the host states. Empty: nothing. */
sessile_status write_screen_json(const store_core *st, sessile_screen_kind kind,
                                 buf *text, size_t from, write_labels *labels, size_t of,
                                 sessile_error *err);
/* The same of what the host states beside a text: a name, a reason, instructions. Nothing
 * can be removed from it, and it takes no label. what: says which, in the message, and is
 * the item's key. is_json: it is checked JSON, for which there are no schemas. */
sessile_status write_screen_fixed(const store_core *st, sessile_screen_kind kind,
                                  const char *what, sessile_slice text, int is_json,
                                  sessile_error *err);

#endif

/*
 * find.h: searches messages for a text. Escapes are decoded, nothing is copied.
 *
 * The search covers what somebody said or saw: the content in any form, what a model
 * thought, the arguments and results of tools. It skips names of members, ids,
 * signatures, what is encrypted, data that is not text (images, files), and control
 * sequences of terminals. A match never spans two values.
 */
#ifndef CODEC_FIND_H
#define CODEC_FIND_H

#include "codec/json.h"

/* A prepared query. */
typedef struct find_query {
    char *text; /* folded, unless exact */
    uint32_t *back;
    size_t size;
    unsigned char fold[256];
    const allocator *alloc;
} find_query;

/* text: UTF-8, not empty, less than 4 GiB. exact 0: ignores the case of ASCII letters.
 * 0 or -1: no memory. Call find_deinit() in any case. */
int find_init(find_query *q, sessile_slice text, int exact, const allocator *a);
void find_deinit(find_query *q);

/* 1 when it occurs in text (UTF-8), first at byte *at. The time is linear in the text,
 * for every query. */
int find_in_text(const find_query *q, const char *text, size_t size, size_t *at);
/* The same in the decoded text of a JSON string without control sequences (*at is a byte
 * of that), or in the text of a number. */
int find_in_value(const find_query *q, json value, size_t *at);

/* Removes the control sequences of terminals; returns the size that is left. */
size_t find_strip(char *text, size_t size);

/* Where in a message. */
typedef struct find_place {
    const char *field; /* of the message: "content", "tool_calls", …; static */
    json value;        /* the string or number */
    size_t at;         /* in what it says */
} find_place;
/* The first occurrence in a message (checked text of an object): 1 or 0. */
int find_in_message(const find_query *q, json message, find_place *out);

/* The part of text around size bytes at `at`: at most that many bytes before and
 * after, cut at whole characters. */
typedef struct find_part {
    size_t from, to;
} find_part;
find_part find_around(const char *text, size_t text_size, size_t at, size_t size,
                      size_t before, size_t after);

#endif

/*
 * records.h: splits a write into its records, for backends with one row per record.
 *
 * A record is a line with its newline. The log floor knows what it contains.
 */
#ifndef STORE_RECORDS_H
#define STORE_RECORDS_H

#include <stddef.h>
#include <string.h>

/* The first record of data: its size, newline included; 0: data is empty. What is left
 * without a newline is one record too. */
static inline size_t record_size(const char *data, size_t size)
{
    const char *newline = size > 0 ? memchr(data, '\n', size) : NULL;
    return newline ? (size_t)(newline - data) + 1 : size;
}

/* How many records there are in data. */
static inline size_t record_count(const char *data, size_t size)
{
    size_t count = 0;
    for (size_t at = 0; at < size; count++)
        at += record_size(data + at, size - at);
    return count;
}

#endif

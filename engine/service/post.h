/*
 * post.h: the one door to libcurl in the service: a body goes to a URL, an answer comes
 * back.
 *
 * http and https only; no redirects, no proxies of the environment, no .netrc; TLS 1.2 or
 * newer, always verified.
 */
#ifndef SERVICE_POST_H
#define SERVICE_POST_H

#include "base/buf.h"

/* 0: an http or https URL with a host and without a user; else -1. */
int post_url_check(const char *url);

/* A client whose connections stay open between two requests. For one thread. */
typedef struct poster poster;
poster *poster_new(const allocator *a); /* NULL: no memory */
void poster_free(poster *p);            /* NULL is ignored */

typedef struct post_request {
    const char *url, *content_type;
    const buf *headers;    /* "Name: value" and a NUL, each */
    const char *authority; /* a file of authorities; NULL: those of the system */
    const void *body;
    size_t size;
    int timeout_ms; /* for all of it */
    /* Asked now and then while waiting: 1 ends the request. */
    int (*stop)(void *ud);
    void *stop_ud;
} post_request;

typedef struct post_answer {
    int status;         /* of HTTP; 0: none came, and why says what happened */
    int retry_after_ms; /* what the receiver asks for; -1: nothing */
    buf body;           /* at most POST_BODY_LIMIT bytes; what is past them is not kept */
    char why[256];      /* a sentence without URL and credentials */
} post_answer;
#define POST_BODY_LIMIT 65536

/* Sends one request and waits. The caller frees out->body. */
void post_send(poster *p, const post_request *r, post_answer *out);

#endif

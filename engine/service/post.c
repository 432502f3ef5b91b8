/*
 * post.c: one POST by libcurl.
 */
#include "service/post.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <curl/curl.h>

struct poster {
    const allocator *alloc;
    CURL *easy;
};

int post_url_check(const char *url)
{
    CURLU *u = curl_url();
    char *scheme = NULL, *host = NULL;
    int good = u && !curl_url_set(u, CURLUPART_URL, url, CURLU_DISALLOW_USER) &&
               !curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) &&
               !curl_url_get(u, CURLUPART_HOST, &host, 0) && *host &&
               (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    curl_free(scheme);
    curl_free(host);
    curl_url_cleanup(u);
    return good ? 0 : -1;
}

poster *poster_new(const allocator *a)
{
    poster *p = mem_zalloc(a, sizeof *p);
    if (!p)
        return NULL;
    p->alloc = a;
    /* counted by libcurl, and safe under threads since 7.84 */
    if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
        mem_free(a, p, sizeof *p);
        return NULL;
    }
    p->easy = curl_easy_init();
    if (!p->easy) {
        poster_free(p);
        return NULL;
    }
    return p;
}

void poster_free(poster *p)
{
    if (!p)
        return;
    curl_easy_cleanup(p->easy);
    curl_global_cleanup();
    mem_free(p->alloc, p, sizeof *p);
}

static size_t take_body(char *data, size_t size, size_t count, void *ud)
{
    buf *body = ud;
    size_t room = POST_BODY_LIMIT - body->size;
    buf_put(body, data, size * count < room ? size * count : room);
    return size * count;
}

static int ask_stop(void *ud, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const post_request *r = ud;
    (void)a, (void)b, (void)c, (void)d;
    return r->stop && r->stop(r->stop_ud);
}

/* NULL: no memory. */
static struct curl_slist *headers_of(const post_request *r)
{
    char type[100];
    snprintf(type, sizeof type, "Content-Type: %s", r->content_type);
    struct curl_slist *list = curl_slist_append(NULL, type), *longer = list;
    /* no "Expect: 100-continue": a receiver that ignores it costs a second */
    if (longer)
        longer = curl_slist_append(list, "Expect:");
    for (size_t at = 0; longer && at < r->headers->size;
         at += strlen(r->headers->data + at) + 1)
        longer = curl_slist_append(list, r->headers->data + at);
    if (!longer) {
        curl_slist_free_all(list);
        return NULL;
    }
    return list;
}

static CURLcode set_up(CURL *easy, const post_request *r, struct curl_slist *headers,
                       buf *body)
{
    CURLcode made = CURLE_OK;
#define SET(option, value) made = made ? made : curl_easy_setopt(easy, option, value)
    curl_easy_reset(easy); /* connections stay */
    SET(CURLOPT_URL, r->url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (r->authority)
        SET(CURLOPT_CAINFO, r->authority);
    SET(CURLOPT_USERAGENT, "sessile-server/" SESSILE_VERSION);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->size);
    SET(CURLOPT_POSTFIELDS, r->body);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L);
    SET(CURLOPT_TIMEOUT_MS, (long)r->timeout_ms);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, body);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, ask_stop);
    SET(CURLOPT_XFERINFODATA, r);
#undef SET
    return made;
}

void post_send(poster *p, const post_request *r, post_answer *out)
{
    long status = 0;
    curl_off_t after = 0;

    *out = (post_answer){.retry_after_ms = -1};
    buf_init(&out->body, p->alloc);
    struct curl_slist *headers = headers_of(r);
    CURLcode made =
        headers ? set_up(p->easy, r, headers, &out->body) : CURLE_OUT_OF_MEMORY;
    if (!made)
        made = curl_easy_perform(p->easy);
    if (made) {
        snprintf(out->why, sizeof out->why, "%s", curl_easy_strerror(made));
    } else if (!curl_easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status)) {
        out->status = (int)status;
        snprintf(out->why, sizeof out->why, "HTTP status %ld", status);
        if (!curl_easy_getinfo(p->easy, CURLINFO_RETRY_AFTER, &after) && after > 0)
            out->retry_after_ms = after < INT_MAX / 1000 ? (int)after * 1000 : INT_MAX;
    }
    curl_easy_reset(p->easy); /* nothing of the caller's is kept */
    curl_slist_free_all(headers);
}

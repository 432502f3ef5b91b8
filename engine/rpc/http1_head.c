/*
 * http1_head.c: the head of an HTTP/1.1 request, read strictly.
 *
 * Request smuggling lives from two programs that find different ends of one request. So
 * there is one way to write a request here, and everything else is refused, also what
 * RFC 9112 lets a server forgive: a bare line feed, folded lines, white space before a
 * colon, a second Content-Length even of the same value, Transfer-Encoding of any kind,
 * an absolute target, an empty line before the request, bytes outside of ASCII. After a
 * refusal the connection ends.
 */
#include "rpc/http1_head.h"

#include <string.h>

enum { HEADERS_MAX = 100, METHOD_MAX = 16 };

typedef struct reader {
    char *at, *end; /* what is left */
    http1_head *head;
    size_t body_limit;
    unsigned hosts, lengths, codings;
    int needs_length; /* by its method */
    const char *why;
    int (*visit)(void *arg, const char *name, size_t name_size, const char *value,
                 size_t value_size);
    void *arg;
} reader;

size_t http1_head_size(const char *data, size_t size)
{
    const char *end = memmem(data, size, "\r\n\r\n", 4);
    return end ? (size_t)(end - data) + 4 : 0;
}

static int refuse(reader *r, int status, const char *why)
{
    r->why = why;
    return status;
}

/* Of RFC 9110, 5.6.2. */
static int is_token(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The line without its CRLF, which is skipped. NULL: there is a bare CR or LF, or none.
 */
static char *line(reader *r, size_t *size)
{
    char *start = r->at, *c;
    for (c = start; c + 1 < r->end; c++) {
        if (*c == '\n')
            return NULL;
        if (*c != '\r')
            continue;
        if (c[1] != '\n')
            return NULL;
        *size = (size_t)(c - start);
        r->at = c + 2;
        return start;
    }
    return NULL;
}

static int known(const char *method, size_t size)
{
    static const char *const methods[] = {"GET",    "HEAD",    "POST", "PUT",
                                          "DELETE", "OPTIONS", "PATCH"};
    size_t i;
    for (i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strlen(methods[i]) == size && !memcmp(methods[i], method, size))
            return 1;
    return 0;
}

static int request_line(reader *r)
{
    static const char version[] = " HTTP/1.1";
    size_t size, method, target, i;
    char *text = line(r, &size);

    if (!text)
        return refuse(r, 400, "a line does not end with CR LF");
    for (method = 0; method < size && is_token((unsigned char)text[method]); method++)
        ;
    if (!method || method > METHOD_MAX || method == size || text[method] != ' ')
        return refuse(r, 400, "the request does not begin with a method and one space");
    if (size < method + 1 + sizeof version)
        return refuse(r, 400, "the request line is not METHOD /path HTTP/1.1");
    target = size - method - 1 - (sizeof version - 1);
    if (memcmp(text + size - (sizeof version - 1), version, sizeof version - 1)) {
        if (!memcmp(text + size - (sizeof version - 1), " HTTP/1.0", sizeof version - 1))
            return refuse(r, 505, "the version of HTTP must be 1.1 or 2");
        return refuse(r, 400, "the request line is not METHOD /path HTTP/1.1");
    }
    if (!known(text, method))
        return refuse(r, 501, "there is no such method");
    text[method] = 0;
    if (text[method + 1] != '/')
        return refuse(r, 400, "the target of the request does not begin with a slash");
    for (i = 0; i < target; i++)
        if (text[method + 1 + i] <= ' ' || text[method + 1 + i] > '~' ||
            text[method + 1 + i] == '#')
            return refuse(r, 400, "the target of the request has a byte that it may not");
    r->needs_length =
        !strcmp(text, "POST") || !strcmp(text, "PUT") || !strcmp(text, "PATCH");
    if (r->visit(r->arg, ":method", 7, text, method) ||
        r->visit(r->arg, ":path", 5, text + method + 1, target))
        return refuse(r, 503, "the server is out of memory");
    return 0;
}

static int content_length(reader *r, const char *value, size_t size)
{
    size_t i, n = 0;
    if (r->lengths++)
        return refuse(r, 400, "there is more than one Content-Length");
    if (!size || size > 19)
        return refuse(r, 400, "the Content-Length is no number");
    for (i = 0; i < size; i++) {
        if (value[i] < '0' || value[i] > '9')
            return refuse(r, 400, "the Content-Length is no number");
        n = n * 10 + (size_t)(value[i] - '0');
    }
    if (n > r->body_limit)
        return refuse(r, 413, "the body is larger than the server takes");
    r->head->body = n;
    return 0;
}

/* 1: it is the word, in any case. */
static int same_word(const char *value, size_t size, const char *word)
{
    size_t i;
    for (i = 0; i < size && word[i] && lower(value[i]) == word[i]; i++)
        ;
    return i == size && !word[i];
}

/* 1: the list has the word. */
static int lists(const char *value, size_t size, const char *word)
{
    size_t i = 0, n;
    while (i < size) {
        while (i < size && (value[i] == ' ' || value[i] == ','))
            i++;
        for (n = 0; i + n < size && value[i + n] != ',' && value[i + n] != ' '; n++)
            ;
        if (same_word(value + i, n, word))
            return 1;
        i += n;
    }
    return 0;
}

/* What a header means for where the request ends. */
static int meaning(reader *r, const char *name, size_t size, const char *value,
                   size_t value_size)
{
#define IS(text) (size == sizeof text - 1 && !memcmp(name, text, size))
    if (IS("content-length"))
        return content_length(r, value, value_size);
    if (IS("transfer-encoding"))
        r->codings++;
    else if (IS("host")) {
        if (r->hosts++)
            return refuse(r, 400, "there is more than one Host");
    } else if (IS("connection"))
        r->head->close |= lists(value, value_size, "close");
    else if (IS("expect")) {
        if (r->head->expects || !same_word(value, value_size, "100-continue"))
            return refuse(r, 417, "the only expectation is 100-continue");
        r->head->expects = 1;
    }
    return 0;
#undef IS
}

static int header(reader *r)
{
    size_t size, name, end, i;
    char *text = line(r, &size);
    int refused;

    if (!text)
        return refuse(r, 400, "a line does not end with CR LF");
    for (name = 0; name < size && is_token((unsigned char)text[name]); name++)
        text[name] = lower(text[name]);
    if (!name || name == size || text[name] != ':')
        return refuse(r, 400, "a header is not Name: value on one line");
    for (i = name + 1; i < size && (text[i] == ' ' || text[i] == '\t'); i++)
        ;
    for (end = size; end > i && (text[end - 1] == ' ' || text[end - 1] == '\t'); end--)
        ;
    for (size = i; size < end; size++)
        if (text[size] < ' ' || text[size] > '~')
            return refuse(r, 400, "a header has a byte that is no printable ASCII");
    refused = meaning(r, text, name, text + i, end - i);
    if (refused)
        return refused;
    if (r->visit(r->arg, text, name, text + i, end - i))
        return refuse(r, 503, "the server is out of memory");
    return 0;
}

int http1_head_read(http1_head *head, char *data, size_t size, size_t body_limit,
                    int (*visit)(void *arg, const char *name, size_t name_size,
                                 const char *value, size_t value_size),
                    void *arg, const char **why)
{
    reader r;
    int n, refused;

    memset(&r, 0, sizeof r);
    memset(head, 0, sizeof *head);
    r.at = data;
    r.end = data + size - 2; /* the empty line */
    r.head = head;
    r.body_limit = body_limit;
    r.visit = visit;
    r.arg = arg;
    refused = request_line(&r);
    for (n = 0; !refused && r.at < r.end; n++)
        refused = n < HEADERS_MAX ? header(&r) : refuse(&r, 431, "too many headers");
    if (!refused && r.codings)
        refused = r.lengths ? refuse(&r, 400, "Content-Length and Transfer-Encoding")
                            : refuse(&r, 411,
                                     "send a Content-Length: bodies in chunks "
                                     "are not taken");
    if (!refused && !r.hosts)
        refused = refuse(&r, 400, "there is no Host");
    if (!refused && r.needs_length && !r.lengths)
        refused = refuse(&r, 411, "send a Content-Length");
    *why = r.why;
    return refused;
}

const char *http1_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } list[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {499, "Client Closed Request"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    size_t i;
    for (i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].status == status)
            return list[i].reason;
    return "Status";
}

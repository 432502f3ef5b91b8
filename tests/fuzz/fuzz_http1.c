/*
 * fuzz_http1.c: the head of an HTTP/1.1 request.
 *
 * Holds: a head that is accepted has one known method, a path that begins with a slash,
 * one Host, no Transfer-Encoding, at most one Content-Length, which is the size of the
 * body; names are lower-case tokens, values printable. Written again from what was read,
 * it reads the same, and no shorter head is found in it. A refusal has a status of HTTP
 * and a sentence.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "rpc/http1_head.h"

static const char *const words[] = {"GET ",
                                    "POST ",
                                    " HTTP/1.1\r\n",
                                    "Host: x\r\n",
                                    "Content-Length: ",
                                    "\r\n\r\n",
                                    "\r\n",
                                    "\n",
                                    "Transfer-Encoding: chunked\r\n",
                                    "Connection: close\r\n",
                                    "Expect: 100-continue\r\n",
                                    ": ",
                                    " :",
                                    "\t",
                                    NULL};

const fuzz_about fuzz_this = {"http1", 200000, 4096, words};

static const char *const seeds[] = {
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST /a?b=c HTTP/1.1\r\nhost:x\r\nContent-Length: 5\r\nConnection: a, "
    "close\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
};

void fuzz_seeds(fuzz_take take, void *arg)
{
    fuzz_give_all(take, arg, seeds, sizeof seeds / sizeof *seeds);
}

typedef struct seen {
    buf text; /* the head, written again */
    unsigned hosts, lengths, pseudo;
    unsigned long long length;
} seen;

static int visit(void *arg, const char *name, size_t name_size, const char *value,
                 size_t value_size)
{
    seen *s = arg;
    size_t i;

    for (i = 0; i < value_size; i++)
        FUZZ_CHECK(value[i] >= ' ' && value[i] <= '~');
    if (name[0] == ':') {
        s->pseudo++;
        if (s->pseudo == 1)
            FUZZ_CHECK(name_size == 7 && value_size >= 3 && value_size <= 7);
        else
            FUZZ_CHECK(s->pseudo == 2 && name_size == 5 && value[0] == '/');
        buf_put(&s->text, value, value_size);
        buf_puts(&s->text, s->pseudo == 1 ? " " : " HTTP/1.1\r\n");
        return 0;
    }
    FUZZ_CHECK(s->pseudo == 2 && name_size > 0);
    for (i = 0; i < name_size; i++)
        FUZZ_CHECK(name[i] > ' ' && name[i] <= '~' && name[i] != ':' &&
                   !(name[i] >= 'A' && name[i] <= 'Z'));
    FUZZ_CHECK(!value_size || (value[0] != ' ' && value[value_size - 1] != ' '));
    FUZZ_CHECK(name_size != 17 || memcmp(name, "transfer-encoding", 17) != 0);
    s->hosts += name_size == 4 && !memcmp(name, "host", 4);
    if (name_size == 14 && !memcmp(name, "content-length", 14)) {
        char number[32];
        FUZZ_CHECK(value_size < sizeof number);
        memcpy(number, value, value_size);
        number[value_size] = 0;
        s->lengths++;
        s->length = strtoull(number, NULL, 10);
    }
    buf_put(&s->text, name, name_size);
    buf_puts(&s->text, ": ");
    buf_put(&s->text, value, value_size);
    buf_puts(&s->text, "\r\n");
    return 0;
}

/* A transfer coding may be seen before it is refused. */
static int look(void *arg, const char *name, size_t name_size, const char *value,
                size_t value_size)
{
    (void)arg;
    (void)name;
    (void)name_size;
    (void)value;
    (void)value_size;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t whole = http1_head_size((const char *)data, size);
    char *copy;
    const char *why = NULL;
    http1_head head, again;
    seen a, b;
    int status;

    if (!whole)
        return 0;
    FUZZ_CHECK(whole >= 4 && whole <= size);
    copy = fuzz_copy(data, whole);
    status = http1_head_read(&head, copy, whole, 1000000, look, NULL, &why);
    free(copy);
    if (status) {
        FUZZ_CHECK(status >= 400 && status <= 599 && why && *why);
        return 0;
    }
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    buf_init(&a.text, &allocator_default);
    buf_init(&b.text, &allocator_default);
    copy = fuzz_copy(data, whole);
    FUZZ_CHECK(!http1_head_read(&head, copy, whole, 1000000, visit, &a, &why));
    free(copy);
    FUZZ_CHECK(a.hosts == 1 && a.lengths <= 1 && a.pseudo == 2);
    FUZZ_CHECK(head.body == a.length && head.body <= 1000000);
    buf_puts(&a.text, "\r\n");
    FUZZ_CHECK(http1_head_size(a.text.data, a.text.size) == a.text.size);
    copy = fuzz_copy(a.text.data, a.text.size);
    FUZZ_CHECK(!http1_head_read(&again, copy, a.text.size, 1000000, visit, &b, &why));
    free(copy);
    buf_puts(&b.text, "\r\n");
    FUZZ_CHECK(again.body == head.body && again.close == head.close);
    FUZZ_CHECK(b.text.size == a.text.size &&
               !memcmp(a.text.data, b.text.data, b.text.size));
    buf_deinit(&a.text);
    buf_deinit(&b.text);
    return 0;
}

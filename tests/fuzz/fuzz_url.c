/*
 * fuzz_url.c: URLs in any text, any host, any item of the list of allowed hosts.
 *
 * Holds: what is refused lies in the text and stays refused in a longer one; a host that
 * inet_aton() reads is judged as the address that it gives; an address is judged alike as
 * bytes and in a URL; what is allowed by its address is allowed in a URL.
 */
#include "fuzz/fuzz.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "screen/url.h"
#include "sessile_screen.h"
#include "support/urls.h"

static const char *const words[] = {"http:",
                                    "https://",
                                    "//",
                                    "\\\\",
                                    "@",
                                    "#",
                                    "?",
                                    ":80",
                                    "[::1]",
                                    "[",
                                    "]",
                                    "%31",
                                    "%2F",
                                    "%2F%2F",
                                    "0x7f",
                                    "0177",
                                    "127.1",
                                    ".",
                                    "\t",
                                    "\n",
                                    "file",
                                    "jar:",
                                    "127.0.0.1",
                                    "::ffff:",
                                    "localhost",
                                    ".internal",
                                    "10.0.0.0/8",
                                    "\xe2\x91\xa0",
                                    "\xe3\x80\x82",
                                    NULL};

const fuzz_about fuzz_this = {"url", 100000, 1 << 10, words};

static sessile_status check(const char *text, size_t size, sessile_url_found *found)
{
    sessile_error err;
    sessile_status status =
        sessile_url_check((sessile_slice){text, size}, NULL, found, &err);
    FUZZ_CHECK(status == SESSILE_OK || status == SESSILE_DENIED);
    FUZZ_CHECK((status == SESSILE_DENIED) == (found->rule != NULL));
    FUZZ_CHECK(found->offset <= size && found->size <= size - found->offset);
    FUZZ_CHECK(err.code == status);
    return status;
}

static void texts(const char *text, size_t size)
{
    sessile_url_found found, again;
    sessile_status status = check(text, size, &found);
    char *longer = malloc(size + 6);

    FUZZ_CHECK(longer != NULL);
    memcpy(longer, text, size);
    memcpy(longer + size, " more", 6);
    if (status == SESSILE_DENIED) {
        FUZZ_CHECK(check(longer, size + 5, &again) == SESSILE_DENIED);
        FUZZ_CHECK(again.offset == found.offset && again.rule == found.rule);
    }
    free(longer);
}

/* The text as the host of a URL, beside the C library's reading of it. */
static void host(const char *text, size_t size)
{
    char url[1200], plain[1100];
    sessile_url_found found;
    struct in_addr at;
    int length;

    if (size == 0 || size >= sizeof plain || memchr(text, 0, size))
        return;
    memcpy(plain, text, size);
    plain[size] = 0;
    if (!inet_aton(plain, &at))
        return;
    length = snprintf(url, sizeof url, "http://%s/", plain);
    if (sessile_address_check(SESSILE_IPV4, &at, 0, NULL, NULL) == SESSILE_DENIED)
        FUZZ_CHECK(check(url, (size_t)length, &found) == SESSILE_DENIED);
}

/* The first bytes as an address. */
static void addresses(const uint8_t *data, size_t size)
{
    char printed[INET6_ADDRSTRLEN + 4], url[80], item[64];
    sessile_url_options options;
    sessile_url_found found;
    int family = size % 2 && size >= 16 ? SESSILE_IPV6 : SESSILE_IPV4, length;

    if (size < 4)
        return;
    FUZZ_CHECK(inet_ntop(family == SESSILE_IPV6 ? AF_INET6 : AF_INET, data, printed,
                         sizeof printed) != NULL);
    snprintf(item, sizeof item, family == SESSILE_IPV6 ? "[%s]" : "%s", printed);
    length = snprintf(url, sizeof url, "https://%s/", item);
    FUZZ_CHECK(check(url, (size_t)length, &found) ==
               sessile_address_check(family, data, 443, NULL, NULL));
    sessile_url_options_init(&options);
    sessile_slice allow = sessile_text(item);
    options.allow = &allow;
    options.allow_count = options.only_allowed = 1;
    FUZZ_CHECK(!sessile_address_check(family, data, 443, &options, NULL));
    FUZZ_CHECK(
        !sessile_url_check((sessile_slice){url, (size_t)length}, &options, NULL, NULL));
}

/* The first half as an item of the list, the second as a text. */
static void allowed(const char *text, size_t size)
{
    sessile_slice item = {text, size / 2};
    sessile_url_options options = {.allow = &item, .allow_count = 1};
    sessile_slice rest = {text + size / 2, size - size / 2};
    sessile_error err;
    sessile_status status = sessile_url_check(rest, &options, NULL, &err);
    FUZZ_CHECK(status == SESSILE_OK || status == SESSILE_DENIED ||
               status == SESSILE_INVALID);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = fuzz_copy(data, size);
    texts(text, size);
    host(text, size);
    addresses(data, size);
    allowed(text, size);
    free((void *)text);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const hosts[] = {"127.1",           "0x7f000001",
                                        "017700000001",    "2130706433",
                                        "0251.0376.43518", "8.8.8.8",
                                        "1.65793",         "0xa9fea9fe",
                                        "127.0.0.1:80a",   "10.0.0.0/8http://10.1.2.3"};
    fuzz_give_all(take, arg, hosts, sizeof hosts / sizeof *hosts);
    fuzz_give_all(take, arg, url_ordinary, url_ordinary_count);
    for (size_t i = 0; i < url_attack_count; i++)
        fuzz_give_all(take, arg, &url_attacks[i].text, 1);
}

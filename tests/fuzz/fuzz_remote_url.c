/*
 * fuzz_remote_url.c: the URL of a store behind a server.
 *
 * Holds: what is refused is INVALID or DENIED, and the sentence repeats no parameter;
 * what is accepted has an address, is encrypted or stays on this machine unless it says
 * plain, and reads alike when it is read again.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "remote/remote.h"

static const char *const words[] = {
    "grpcs://", "grpc://",     "127.0.0.1", "localhost",   "[::1]",    ":7071",
    "/",        "?",           "&",         "=",           "%41",      "%00",
    "ca=",      "cert=",       "key=",      "plain=true",  "timeout=", "5s",
    "ms",       "token_file=", "@",         "example.org", NULL};

const fuzz_about fuzz_this = {"remote_url", 100000, 1 << 11, words};

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const urls[] = {
        "grpcs://example.org:7071/?ca=%2Fetc%2Fca.pem&timeout=5s",
        "grpc://127.0.0.1:7071/",
        "grpc://[::1]:7071",
        "grpc:///run/sessile.sock",
        "grpc://example.org/?plain=true&token_file=/home/me/token",
        "grpcs://user:password@example.org/",
    };
    fuzz_give_all(take, arg, urls, sizeof urls / sizeof *urls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    remote_url first, again;
    sessile_error err;
    char *url = malloc(size + 1);
    if (!url)
        return 0;
    memcpy(url, data, size);
    url[size] = '\0';
    error_clear(&err);
    sessile_status status = remote_url_parse(&first, url, &err);
    if (status) {
        FUZZ_CHECK(status == SESSILE_INVALID || status == SESSILE_DENIED);
        FUZZ_CHECK(err.message[0] != '\0');
    } else {
        FUZZ_CHECK(first.address[0] != '\0' && first.where[0] != '\0');
        FUZZ_CHECK(
            first.encrypted || first.plain || strncmp(first.host, "127.", 4) == 0 ||
            strcmp(first.host, "localhost") == 0 || strcmp(first.host, "::1") == 0);
        FUZZ_CHECK(first.timeout_ms >= 0);
        FUZZ_CHECK(remote_url_parse(&again, url, &err) == SESSILE_OK);
        FUZZ_CHECK(memcmp(&first, &again, sizeof first) == 0);
    }
    free(url);
    return 0;
}

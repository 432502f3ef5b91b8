/*
 * jws.c: a token verified for the first time, beside OpenSSL's EVP_DigestVerify (for
 * HS256 libsodium's HMAC) of the same bytes; and shown again, beside the BLAKE2b of it.
 */
#include "bench/measure.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "support/signer.h"
#include "vault/jws.h"

#define PAYLOAD                                                                 \
    "{\"iss\":\"https://id.example\",\"aud\":[\"sessile\",\"other\"],\"sub\":"  \
    "\"5c8e4a2e-71f5-4c5e-9d0e-3d8a7f3f2c11\",\"exp\":%lld,\"iat\":%lld,"       \
    "\"jti\":\"%08x\",\"roles\":[\"viewer\",\"editor\"],\"agents\":[\"coder\"," \
    "\"doc*\"],\"act\":{\"sub\":\"gateway\"},\"email\":\"ann@example.com\"}"

static char *new_token(const signer *s, signer_key key, unsigned number)
{
    char header[64], payload[512];
    long long now = os_posix.now_ms(NULL) / 1000;
    snprintf(header, sizeof header, "{\"alg\":\"%s\",\"kid\":\"%s\",\"typ\":\"JWT\"}",
             signer_algorithm(key), signer_kid(key));
    snprintf(payload, sizeof payload, PAYLOAD, now + 3600, now, number);
    return signer_token(s, key, header, payload);
}

static void accept(jws_verifier *v, const char *token)
{
    const jws_claims *claims;
    jws_refusal refusal;
    sessile_error err;
    must(jws_verify(v, (sessile_slice){token, strlen(token)}, &claims, &refusal, &err),
         &err);
    jws_release(v, claims);
}

static double timed_floor(const signer_floor *f, const char *token)
{
    static const unsigned char key[32];
    unsigned char mac[32];
    double t = now_us();
    if (f) {
        if (!signer_floor_verify(f))
            broken("the floor");
    } else {
        crypto_auth_hmacsha256(mac, (const unsigned char *)token, strlen(token), key);
    }
    return now_us() - t;
}

static void bench_first(jws_verifier *v, const signer *s, signer_key key)
{
    static samples ours, floor;
    char label[64];
    for (int i = -20; i < (int)rounds(500); i++) {
        char *token = new_token(s, key, (unsigned)i);
        signer_floor *f = key == SIGNER_SECRET ? NULL : signer_floor_new(s, key, token);
        double below = i & 1 ? timed_floor(f, token) : 0, t = now_us();
        accept(v, token);
        t = now_us() - t;
        if (!(i & 1))
            below = timed_floor(f, token);
        if (i >= 0) {
            sample(&ours, t);
            sample(&floor, below);
        }
        if (f)
            signer_floor_free(f);
        free(token);
    }
    snprintf(label, sizeof label, "token, first, %s", signer_algorithm(key));
    row_print(&(row){label, &ours, &floor, NULL,
                     key == SIGNER_SECRET ? "HMAC" : "EVP_DigestVerify",
                     key == SIGNER_ED25519 ? 1.3 : 0, 0});
}

static void bench_again(jws_verifier *v, const signer *s)
{
    enum { BATCH = 64 };
    static samples ours, floor;
    unsigned char hash[32];
    char *token = new_token(s, SIGNER_ED25519, 0);
    for (int i = 0; i < (int)rounds(500); i++) {
        double t = now_us(), between;
        for (int n = 0; n < BATCH; n++)
            accept(v, token);
        between = now_us();
        for (int n = 0; n < BATCH; n++)
            hash256(hash, token, strlen(token), NULL, 0);
        sample(&ours, (between - t) / BATCH);
        sample(&floor, (now_us() - between) / BATCH);
    }
    free(token);
    row_print(&(row){"token, again", &ours, &floor, NULL, "BLAKE2b of it", 2, 0});
}

int main(int argc, char **argv)
{
    static const signer_key keys[] = {SIGNER_ED25519, SIGNER_P256,   SIGNER_RSA,
                                      SIGNER_PSS,     SIGNER_SECRET, SIGNER_KEYS};
    char path[4400];
    sessile_error err;
    jws_verifier *v;
    bench_begin(argc, argv);
    signer *s = signer_new();
    snprintf(path, sizeof path, "%s/jwks.json", bench_folder);
    char *text = signer_jwks(s, keys);
    FILE *f = fopen(path, "wb");
    if (!f || chmod(path, 0600) != 0 || fputs(text, f) < 0 || fclose(f) != 0)
        broken(path);
    free(text);
    const jws_options options = {
        .keys = path, .issuer = "https://id.example", .audience = "sessile"};
    must(jws_open(&v, &options, &os_posix, &allocator_default, &err), &err);
    for (size_t i = 0; keys[i] != SIGNER_KEYS; i++)
        bench_first(v, s, keys[i]);
    bench_again(v, s);
    jws_close(v);
    signer_free(s);
    remove(path);
    return bench_end();
}

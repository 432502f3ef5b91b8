/*
 * floor.c: a file of sealed lines, and what reading it costs when nothing else is done:
 * pread, base64, AEAD. The layout is ours, so that the bytes are as many.
 */
#include "bench/measure.h"

#include <fcntl.h>
#include <modp_b64.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NONCE 12
#define TAG   16
#define ENTRY (MESSAGE + 180) /* a message and what an entry says beside it */
#define CLEAR "{\"id\":\"00000000\",\"commit\":1,\"durable\":\"00000000\",\"s\":\""

static unsigned char key[32] = {1};
static crypto_aead_aes256gcm_state prepared;

static size_t line_size(void)
{
    size_t raw = NONCE + 16 + ENTRY + TAG;
    return strlen(CLEAR) + (raw + 2) / 3 * 4 + 3;
}

void floor_log_make(const char *name, size_t lines)
{
    static unsigned char plain[16 + ENTRY], sealed[NONCE + 16 + ENTRY + TAG];
    size_t size = line_size(), head = strlen(CLEAR);
    char *line = malloc(size + 4);
    int fd = floor_open(name);
    if (sodium_init() < 0 || !line || !crypto_aead_aes256gcm_is_available())
        broken("this bench wants a CPU with AES");
    crypto_aead_aes256gcm_beforenm(&prepared, key);
    memset(plain, 'x', sizeof plain);
    memcpy(line, CLEAR, head);
    for (size_t i = 0; i < lines; i++) {
        randombytes_buf(sealed, NONCE);
        crypto_aead_aes256gcm_encrypt_afternm(
            sealed + NONCE, NULL, plain, sizeof plain, (unsigned char *)line, head, NULL,
            sealed, (const crypto_aead_aes256gcm_state *)&prepared);
        modp_b64_encode(line + head, (char *)sealed, sizeof sealed);
        memcpy(line + size - 3, "\"}\n", 3);
        if (write(fd, line, size) != (ssize_t)size)
            broken(name);
    }
    free(line);
    close(fd);
}

double floor_log_read(const char *name, size_t count)
{
    static char piece[256 << 10];
    static unsigned char sealed[2 * (NONCE + 16 + ENTRY + TAG)];
    size_t size = line_size(), head = strlen(CLEAR), per = sizeof piece / size;
    char path[4200];
    unsigned char *out = malloc(count * (16 + ENTRY));
    if (!out)
        broken("floor");
    snprintf(path, sizeof path, "%s/%s", bench_folder, name);
    double t = now_us();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t end = lseek(fd, 0, SEEK_END), at = end - (off_t)(count * size);
    unsigned char *to = out;
    for (; at < end; at += (off_t)(per * size)) {
        size_t want = (size_t)(end - at) < per * size ? (size_t)(end - at) : per * size;
        if (pread(fd, piece, want, at) != (ssize_t)want)
            broken(path);
        for (char *line = piece; line < piece + want; line += size) {
            unsigned long long plain_size;
            size_t raw = modp_b64_decode((char *)sealed, line + head, size - head - 3);
            if (crypto_aead_aes256gcm_decrypt_afternm(
                    to, &plain_size, NULL, sealed + NONCE, raw - NONCE,
                    (unsigned char *)line, head, sealed,
                    (const crypto_aead_aes256gcm_state *)&prepared))
                broken("floor");
            to += plain_size;
        }
    }
    close(fd);
    t = now_us() - t;
    free(out);
    return t;
}

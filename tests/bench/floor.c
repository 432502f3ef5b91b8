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

static void prepare(void)
{
    if (sodium_init() < 0 || !crypto_aead_aes256gcm_is_available())
        broken("this bench wants a CPU with AES");
    crypto_aead_aes256gcm_beforenm(&prepared, key);
}

char *floor_lines(size_t count, size_t *size_of_one)
{
    static unsigned char plain[16 + ENTRY], sealed[NONCE + 16 + ENTRY + TAG];
    size_t size = line_size(), head = strlen(CLEAR);
    char *lines = malloc(count * size + 4); /* libmodpbase64 writes a NUL */
    if (!lines)
        broken("floor");
    prepare();
    memset(plain, 'x', sizeof plain);
    for (size_t i = 0; i < count; i++) {
        char *line = lines + i * size;
        memcpy(line, CLEAR, head);
        randombytes_buf(sealed, NONCE);
        crypto_aead_aes256gcm_encrypt_afternm(
            sealed + NONCE, NULL, plain, sizeof plain, (unsigned char *)line, head, NULL,
            sealed, (const crypto_aead_aes256gcm_state *)&prepared);
        modp_b64_encode(line + head, (char *)sealed, sizeof sealed);
        memcpy(line + size - 3, "\"}\n", 3);
    }
    *size_of_one = size;
    return lines;
}

size_t floor_line_open(const char *line, size_t size, unsigned char *out)
{
    static _Thread_local unsigned char sealed[2 * (NONCE + 16 + ENTRY + TAG)];
    size_t head = strlen(CLEAR);
    unsigned long long plain;
    size_t raw = modp_b64_decode((char *)sealed, line + head, size - head - 3);
    if (crypto_aead_aes256gcm_decrypt_afternm(
            out, &plain, NULL, sealed + NONCE, raw - NONCE, (const unsigned char *)line,
            head, sealed, (const crypto_aead_aes256gcm_state *)&prepared))
        broken("floor");
    return (size_t)plain;
}

void floor_log_make(const char *name, size_t lines)
{
    size_t size;
    char *all = floor_lines(lines, &size);
    int fd = floor_open(name);
    if (write(fd, all, lines * size) != (ssize_t)(lines * size))
        broken(name);
    free(all);
    close(fd);
}

double floor_log_read(const char *name, size_t count)
{
    static char piece[256 << 10];
    size_t size = line_size(), per = sizeof piece / size;
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
        for (char *line = piece; line < piece + want; line += size)
            to += floor_line_open(line, size, to);
    }
    close(fd);
    t = now_us() - t;
    free(out);
    return t;
}

double floor_log_copy(const char *name, size_t count, const char *copy)
{
    static char piece[256 << 10], lines[256 << 10];
    static unsigned char sealed[2 * (NONCE + 16 + ENTRY + TAG)], plain[16 + ENTRY];
    size_t size = line_size(), head = strlen(CLEAR), per = sizeof piece / size;
    char from[4200], temporary[4200], to[4200];
    snprintf(from, sizeof from, "%s/%s", bench_folder, name);
    snprintf(temporary, sizeof temporary, "%s/.%s", bench_folder, copy);
    snprintf(to, sizeof to, "%s/%s", bench_folder, copy);
    int dir = open(bench_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    double t = now_us();
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    off_t end = (off_t)(count * size);
    for (off_t at = 0; at < end; at += (off_t)(per * size)) {
        size_t want = (size_t)(end - at) < per * size ? (size_t)(end - at) : per * size;
        if (pread(fd, piece, want, at) != (ssize_t)want)
            broken(from);
        for (size_t line = 0; line < want; line += size) {
            unsigned long long plain_size;
            size_t raw =
                modp_b64_decode((char *)sealed, piece + line + head, size - head - 3);
            if (crypto_aead_aes256gcm_decrypt_afternm(
                    plain, &plain_size, NULL, sealed + NONCE, raw - NONCE,
                    (unsigned char *)piece + line, head, sealed,
                    (const crypto_aead_aes256gcm_state *)&prepared))
                broken("floor");
            randombytes_buf(sealed, NONCE);
            memcpy(lines + line, CLEAR, head);
            crypto_aead_aes256gcm_encrypt_afternm(
                sealed + NONCE, NULL, plain, plain_size, (unsigned char *)lines + line,
                head, NULL, sealed, (const crypto_aead_aes256gcm_state *)&prepared);
            modp_b64_encode(lines + line + head, (char *)sealed, raw);
            memcpy(lines + line + size - 3, "\"}\n", 3);
        }
        if (write(out, lines, want) != (ssize_t)want)
            broken(to);
    }
    int bad = fsync(out) || close(out) || rename(temporary, to) || fsync(dir);
    t = now_us() - t;
    close(fd);
    close(dir);
    if (bad)
        broken(to);
    unlink(to);
    return t;
}

/* ---------------------------------------------------------------------- pieces */

void floor_pieces_make(floor_pieces *f, const char *name, size_t count, size_t plain,
                       int base64)
{
    size_t sealed = NONCE + plain + TAG;
    unsigned char *from = calloc(1, plain + 1);

    prepare();
    *f = (floor_pieces){.count = count, .plain = plain, .base64 = base64};
    f->stored = base64 ? (sealed + 2) / 3 * 4 : sealed;
    f->sealed = malloc(sealed + 4); /* libmodpbase64 writes a NUL */
    f->read = malloc(f->stored + 4);
    if (!from || !f->sealed || !f->read)
        broken(name);
    f->fd = floor_open(name);
    for (size_t i = 0; i < count; i++) {
        const void *out = base64 ? (void *)f->read : f->sealed;
        randombytes_buf(f->sealed, NONCE);
        crypto_aead_aes256gcm_encrypt_afternm(
            f->sealed + NONCE, NULL, from, plain, NULL, 0, NULL, f->sealed,
            (const crypto_aead_aes256gcm_state *)&prepared);
        if (base64)
            modp_b64_encode(f->read, (char *)f->sealed, sealed);
        if (write(f->fd, out, f->stored) != (ssize_t)f->stored)
            broken(name);
    }
    free(from);
}

void floor_pieces_read(const floor_pieces *f, size_t i, unsigned char *out)
{
    size_t sealed = NONCE + f->plain + TAG;
    char *to = f->base64 ? f->read : (char *)f->sealed;
    unsigned long long plain;

    if (pread(f->fd, to, f->stored, (off_t)(i * f->stored)) != (ssize_t)f->stored ||
        (f->base64 && modp_b64_decode((char *)f->sealed, f->read, f->stored) != sealed) ||
        crypto_aead_aes256gcm_decrypt_afternm(
            out, &plain, NULL, f->sealed + NONCE, sealed - NONCE, NULL, 0, f->sealed,
            (const crypto_aead_aes256gcm_state *)&prepared))
        broken("floor");
}

void floor_pieces_close(floor_pieces *f)
{
    close(f->fd);
    free(f->sealed);
    free(f->read);
}

/*
 * make_encoding.c: the program of the build that makes a vocabulary a file to be mapped:
 *
 *     make-encoding NAME NAME.zst NAME.bpe
 *
 * Runs on the machine that builds, and is not installed. The file takes its name when it
 * is whole, so that one which is mapped already stays as it is.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "base/text.h"
#include "codec/compress.h"
#include "tokens/encoding_image.h"

/* What the packed tokens of an encoding may come to. */
#define PACKED_MAX (UINT64_C(1) << 28)

static sessile_status read_packed(const char *path, buf *out, sessile_error *err)
{
    buf packed;
    os_stat_info info;
    uint64_t size;
    sessile_status status;
    int fd = os_posix.open_at(NULL, -1, path, OS_READ | OS_FOLLOW);

    if (fd < 0 || os_posix.stat_fd(NULL, fd, &info))
        return fail_errno(err, errno, "opening %s", path);
    buf_init(&packed, &allocator_default);
    if (buf_reserve(&packed, (size_t)info.size))
        return fail_nomem(err);
    packed.size = (size_t)os_read_full(&os_posix, fd, packed.data, (size_t)info.size, 0);
    os_posix.close(NULL, fd);
    size = compress_raw_size(packed.data, packed.size);
    if (packed.size != info.size || size == 0 || size > PACKED_MAX)
        return fail(err, SESSILE_DAMAGED, "%s is not what zstd writes", path);
    status = compress_read(out, packed.data, packed.size, (size_t)size, err);
    buf_deinit(&packed);
    return status;
}

static sessile_status make(const char *name, const char *from, buf *out,
                           sessile_error *err)
{
    vocabulary v;
    buf packed;
    image made;
    sessile_status status;

    vocabulary_init(&v, &allocator_default);
    buf_init(&packed, &allocator_default);
    status = read_packed(from, &packed, err);
    if (!status)
        status = vocabulary_read_packed(&v, packed.data, packed.size, err);
    if (!status && (strlen(name) >= sizeof v.name || vocabulary_known(&v, name)))
        status = fail(err, SESSILE_INVALID, "there is no encoding '%s'", name);
    if (!status) {
        memcpy(v.name, name, strlen(name));
        status = image_build(out, &v, err);
    }
    if (!status)
        status = image_open(&made, out->data, out->size, err);
    buf_deinit(&packed);
    vocabulary_deinit(&v);
    return status;
}

static int write_file(const char *path, const buf *data)
{
    char fresh[4096];
    FILE *file;
    int bad;

    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh)
        return -1;
    file = fopen(fresh, "wb");
    if (!file)
        return -1;
    bad = fwrite(data->data, 1, data->size, file) != data->size;
    bad |= fclose(file) != 0;
    return bad ? -1 : rename(fresh, path);
}

int main(int argc, char **argv)
{
    sessile_error err = {0};
    buf out;
    int result = 1;

    buf_init(&out, &allocator_default);
    if (argc != 4)
        fputs("make-encoding NAME NAME.zst NAME.bpe\n", stderr);
    else if (base_init() || make(argv[1], argv[2], &out, &err))
        fprintf(stderr, "make-encoding: %s\n", err.message);
    else if (write_file(argv[3], &out))
        fprintf(stderr, "make-encoding: %s: %s\n", argv[3], strerror(errno));
    else
        result = 0;
    buf_deinit(&out);
    return result;
}

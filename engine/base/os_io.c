/*
 * os_io.c: complete reads and writes over the table of system calls.
 *
 * Owns the loops around EINTR and short counts. Must never call the system except
 * through the table.
 */
#include "base/os.h"

#include <errno.h>

const os_table *os_current = &os_posix;

int64_t os_read_full(const os_table *os, int fd, void *out, size_t size, uint64_t offset)
{
    char *to = out;
    size_t done = 0;

    while (done < size) {
        int64_t n = os->pread(os->ud, fd, to + done, size - done, offset + done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (int64_t)done;
}

int os_write_full(const os_table *os, int fd, const void *data, size_t size,
                  uint64_t offset, size_t *written)
{
    const char *from = data;
    size_t done = 0;
    int result = 0;

    while (done < size) {
        int64_t n = os->pwrite(os->ud, fd, from + done, size - done, offset + done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            /* A device that accepts nothing and reports no error would block forever. */
            if (n == 0)
                errno = EIO;
            result = -1;
            break;
        }
        done += (size_t)n;
    }
    if (written)
        *written = done;
    return result;
}

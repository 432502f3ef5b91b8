/*
 * piece.c: copies the torn end of a log to NAME.torn-OFFSET before it is cut.
 *
 * No torn byte is ever lost. An existing piece is never overwritten; it is accepted when
 * it holds the same bytes.
 */
#include "store/file/file.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"

/* 1 when the piece of this name holds just the log's bytes from offset: an earlier run
 * was interrupted between its rename and its cut. 0: other bytes. -1 and errno. */
static int same_piece(file_store *fs, int dir, int from, const char *piece,
                      uint64_t offset, uint64_t size)
{
    const os_table *os = fs->os;
    char ours[4096], theirs[4096];
    os_stat_info st;
    int fd = os->open_at(os->ud, dir, piece, OS_READ);
    if (fd < 0)
        return errno == ELOOP ? 0 : -1;
    int same = os->stat_fd(os->ud, fd, &st) == 0 && st.is_regular && st.size == size;
    for (uint64_t at = 0; same == 1 && at < size;) {
        size_t want = size - at < sizeof ours ? (size_t)(size - at) : sizeof ours;
        int64_t a = os_read_full(os, from, ours, want, offset + at);
        int64_t b = os_read_full(os, fd, theirs, want, at);
        if (a < 0 || b < 0)
            same = -1;
        else if (a != (int64_t)want || b != a || memcmp(ours, theirs, want) != 0)
            same = 0;
        at += want;
    }
    int error = errno;
    os->close(os->ud, fd);
    errno = error;
    return same;
}

static sessile_status copy_piece(file_store *fs, int from, const char *log, int fd,
                                 uint64_t offset, uint64_t size, sessile_error *err)
{
    const os_table *os = fs->os;
    enum { PIECE = 1 << 16 };
    sessile_status status = SESSILE_OK;
    char *bytes = mem_alloc(&fs->alloc, PIECE);
    if (!bytes)
        return fail_nomem(err);
    for (uint64_t at = 0; at < size && !status;) {
        size_t want = size - at < PIECE ? (size_t)(size - at) : PIECE;
        size_t written = 0;
        int64_t got = os_read_full(os, from, bytes, want, offset + at);
        if (got != (int64_t)want)
            status = fail_errno(err, got < 0 ? errno : EIO, "cannot read %s", log);
        else if (os_write_full(os, fd, bytes, want, at, &written) != 0)
            status = fail_errno(err, errno, "cannot set aside the torn end of %s", log);
        at += want;
    }
    mem_free(&fs->alloc, bytes, PIECE);
    return status;
}

/* Puts the bytes into a piece: NAME.torn-OFFSET, or NAME.torn-OFFSET-2 and so on when
 * there are others of that name, since no torn byte is ever dropped. */
sessile_status file_set_piece(file_store *fs, int dir, int from, const char *log,
                              uint64_t offset, uint64_t size, sessile_error *err)
{
    const os_table *os = fs->os;
    char temporary[FILE_TEMPORARY], piece[FILE_NAME_SIZE + 40];
    os_stat_info st;
    int fd = -1;
    buf name;
    buf_init(&name, &fs->alloc);
    sessile_status status = SESSILE_OK;
    for (unsigned n = 1;; n++) {
        buf_clear(&name);
        buf_put(&name, log, strlen(log) - strlen(FILE_SUFFIX));
        buf_printf(&name, ".torn-%llu", (unsigned long long)offset);
        if (n > 1)
            buf_printf(&name, "-%u", n);
        if (name.failed || name.size >= sizeof piece) {
            status = fail_nomem(err);
            goto out;
        }
        memcpy(piece, name.data, name.size + 1);
        if (os->stat_at(os->ud, dir, piece, &st) != 0) {
            if (errno == ENOENT)
                break;
            status = fail_errno(err, errno, "cannot look at %s", piece);
            goto out;
        }
        int same = same_piece(fs, dir, from, piece, offset, size);
        if (same < 0) {
            status = fail_errno(err, errno, "cannot read %s", piece);
            goto out;
        }
        if (same == 1) {
            if (os->sync_all(os->ud, dir) != 0)
                status = fail_errno(err, errno, "cannot sync the folder of %s", piece);
            goto out;
        }
    }
    status = file_temporary(fs, dir, temporary, &fd, err);
    if (status)
        goto out;
    status = copy_piece(fs, from, log, fd, offset, size, err);
    if (status) {
        file_discard(fs, dir, temporary, &fd);
        goto out;
    }
    status = file_publish(fs, dir, temporary, &fd, piece, err);
out:
    buf_deinit(&name);
    return status;
}

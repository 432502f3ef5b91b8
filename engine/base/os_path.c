/*
 * os_path.c: creates folders durably.
 *
 * Owns the creation of a path with all missing folders above it. The name of a folder is
 * stored in its parent, so the parent is synced before the path counts as created. Must
 * never sync the contents of a folder, or decide whose folders may be used: callers do.
 */
#include "base/os.h"

#include <errno.h>
#include <string.h>

int os_sync_parent(const os_table *os, const allocator *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    int fd;
    if (!slash) {
        fd = os->open_at(os->ud, -1, ".", OS_READ | OS_DIRECTORY);
    } else if (slash == path) {
        fd = os->open_at(os->ud, -1, "/", OS_READ | OS_DIRECTORY);
    } else {
        /* the last dot: a parent may be a link, and only the last name is not followed */
        size_t size = (size_t)(slash - path);
        char *dotted = mem_alloc(a, size + 3);
        if (!dotted) {
            errno = ENOMEM;
            return -1;
        }
        memcpy(dotted, path, size);
        memcpy(dotted + size, "/.", 3);
        fd = os->open_at(os->ud, -1, dotted, OS_READ | OS_DIRECTORY);
        int error = errno;
        mem_free(a, dotted, size + 3);
        errno = error;
    }
    if (fd < 0)
        return -1;
    int result = os->sync_all(os->ud, fd);
    int error = errno;
    os->close(os->ud, fd);
    errno = error;
    return result;
}

int os_make_path(const os_table *os, const allocator *a, char *path)
{
    int result = os->mkdir_at(os->ud, -1, path);
    if (result != 0 && errno == ENOENT) {
        char *slash = strrchr(path, '/');
        if (!slash || slash == path)
            return -1;
        *slash = '\0';
        result = os_make_path(os, a, path);
        *slash = '/';
        if (result == 0)
            result = os->mkdir_at(os->ud, -1, path);
    }
    if (result == 0)
        return os_sync_parent(os, a, path);
    if (errno != EEXIST)
        return -1;
    /* Another process may have created it without having synced it yet. If we may not
     * list a folder, none of our processes has just created something in it. */
    return os_sync_parent(os, a, path) == 0 || errno == EACCES ? 0 : -1;
}

int os_stays_below(const os_table *os, const char *folder, char *path)
{
    int fd = os->open_at(os->ud, -1, folder, OS_READ | OS_DIRECTORY);
    while (fd >= 0 && *path) {
        size_t size = strcspn(path, "/");
        char end = path[size];
        int next, error;
        if (size == 0) {
            path++;
            continue;
        }
        path[size] = '\0';
        next = os->open_at(os->ud, fd, path, OS_READ | OS_DIRECTORY);
        error = errno;
        path[size] = end;
        path += size;
        os->close(os->ud, fd);
        errno = error;
        if (next < 0 && error == ENOENT)
            return 0; /* nor is anything below it */
        fd = next;
    }
    if (fd < 0)
        return -1;
    os->close(os->ud, fd);
    return 0;
}

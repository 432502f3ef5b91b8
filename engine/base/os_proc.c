/*
 * os_proc.c: what Linux knows about processes and file systems, for errors and refusals.
 *
 * It answers three questions: which process holds the lock of a file, is a file on a
 * network file system, and which start of the machine is this? The first is asked after
 * another failure, the second once for each folder, the third once for each handle. Both
 * can remain without an answer. Must never block, follow what others may have placed
 * outside /proc, or change anything.
 *
 * To find the holder of an open-file-description lock: /proc/locks names no process for
 * it, because the lock belongs to an open file, which several processes can share. But
 * the fdinfo of each descriptor lists the locks of its open file. So this file looks at
 * every visible descriptor, keeps those of the same device and inode, and reads their
 * fdinfo.
 */
#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/text.h"

/* ---------------------------------------------------------------------- small files */

/* The start of a file of /proc as text. 0, or -1 and errno. */
static int read_text(int dir, const char *path, char *out, size_t size)
{
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    size_t have = 0;
    if (fd < 0)
        return -1;
    while (have + 1 < size) {
        ssize_t n = read(fd, out + have, size - 1 - have);
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    out[have] = '\0';
    close(fd);
    return 0;
}

uint64_t os_proc_boot(void *ud)
{
    char text[64], *to = text;
    uint64_t boot;
    (void)ud;
    if (read_text(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof text) != 0)
        return 0;
    for (const char *at = text; *at; at++) /* a UUID: its hexadecimal digits alone */
        if (*at != '-')
            *to++ = *at;
    *to = '\0';
    return to - text >= 16 && hex_decode(&boot, text, sizeof boot) == 0 ? boot : 0;
}

static int is_number(const char *name)
{
    return name[0] != '\0' && strspn(name, "0123456789") == strlen(name);
}

static DIR *open_folder(int dir, const char *path)
{
    int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream && fd >= 0)
        close(fd);
    return stream;
}

/* ---------------------------------------------------------------------- lock holders */

/* 1 when the descriptor's open file holds a lock of its own kind. */
static int holds_lock(int process, const char *descriptor)
{
    char path[32], text[2048];
    if (snprintf(path, sizeof path, "fdinfo/%s", descriptor) >= (int)sizeof path ||
        read_text(process, path, text, sizeof text) != 0)
        return 0;
    const char *line = strstr(text, "lock:");
    return line && strstr(line, "OFDLCK");
}

/* 1 when a descriptor of the process other than `except` holds a lock of the file. */
static int process_holds(int process, const struct stat *file, int except)
{
    DIR *stream = open_folder(process, "fd");
    struct dirent *found;
    int holds = 0;
    if (!stream)
        return 0;
    while (!holds && (found = readdir(stream))) {
        struct stat st;
        if (!is_number(found->d_name) || atoi(found->d_name) == except)
            continue;
        holds = fstatat(dirfd(stream), found->d_name, &st, 0) == 0 &&
                st.st_dev == file->st_dev && st.st_ino == file->st_ino &&
                holds_lock(process, found->d_name);
    }
    closedir(stream);
    return holds;
}

/* Name and state of a process, as far as they are known. */
static void describe(int process, const char *pid, os_holder *out)
{
    char stat[512];
    memset(out, 0, sizeof *out);
    out->pid = (uint32_t)strtoul(pid, NULL, 10);
    if (read_text(process, "comm", out->program, sizeof out->program) == 0)
        out->program[strcspn(out->program, "\n")] = '\0';
    if (read_text(process, "stat", stat, sizeof stat) == 0) {
        /* "pid (name) state …", and the name may hold any byte */
        const char *end = strrchr(stat, ')');
        out->stopped = end && end[1] == ' ' && (end[2] == 'T' || end[2] == 't');
    }
}

static int look_at(int proc, const char *pid, const struct stat *file, int except,
                   os_holder *out)
{
    int process = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (process < 0)
        return 0;
    int found = process_holds(process, file, except);
    if (found)
        describe(process, pid, out);
    close(process);
    return found;
}

int os_proc_lock_holder(void *ud, int fd, os_holder *out)
{
    struct stat file;
    struct dirent *found;
    int error = ESRCH;
    (void)ud;
    memset(out, 0, sizeof *out);
    if (fstat(fd, &file) != 0)
        return -1;
    DIR *proc = open_folder(AT_FDCWD, "/proc");
    if (!proc) {
        errno = ENOSYS;
        return -1;
    }
    /* This process first: if it shares a lock with a child, it is the one to report. */
    if (look_at(dirfd(proc), "self", &file, fd, out)) {
        out->own = 1;
        out->pid = (uint32_t)getpid();
        error = 0;
    } else if (faccessat(dirfd(proc), "self/fdinfo", R_OK, 0) != 0) {
        error = ENOSYS; /* a /proc that is none */
    }
    while (error == ESRCH && (found = readdir(proc)))
        if (is_number(found->d_name) && strtol(found->d_name, NULL, 10) != getpid() &&
            look_at(dirfd(proc), found->d_name, &file, -1, out))
            error = 0;
    closedir(proc);
    errno = error;
    return error ? -1 : 0;
}

/* ---------------------------------------------------------------------- file systems */

typedef struct magic_name {
    uint64_t magic;
    const char *name;
} magic_name;

/* Magic numbers of statfs; <linux/magic.h> has only some of them. */
static const magic_name network_magics[] = {
    {0x6969, "NFS"},        {0x517B, "SMB"},          {0xFF534D42, "CIFS"},
    {0xFE534D42, "SMB"},    {0x564C, "NCP"},          {0x5346414F, "AFS"},
    {0x6B414653, "AFS"},    {0x73757245, "Coda"},     {0x00C36400, "Ceph"},
    {0x01021997, "9P"},     {0x0BD00BD0, "Lustre"},   {0x01161970, "GFS2"},
    {0x7461636F, "OCFS2"},  {0x47504653, "GPFS"},     {0x19830326, "BeeGFS"},
    {0xAAD7AAEA, "PanFS"},  {0x20030528, "OrangeFS"}, {0x786F4256, "vboxsf"},
    {0xBACBACBC, "vmhgfs"},
};
#define FUSE_MAGIC UINT64_C(0x65735546)

/* Types of FUSE for which the data is on another machine; virtiofs: on the host of
 * this one. */
static const char *const network_fuses[] = {
    "sshfs",    "glusterfs", "s3fs",      "rclone",      "curlftpfs", "davfs",
    "davfs2",   "ceph",      "ceph-fuse", "cephfs",      "gcsfuse",   "goofys",
    "juicefs",  "seaweedfs", "weed",      "mfs",         "moosefs",   "lizardfs",
    "saunafs",  "hdfs",      "blobfuse",  "blobfuse2",   "afs",       "gvfsd-fuse",
    "smbnetfs", "nfs",       "beegfs",    "vmhgfs-fuse", "mount-s3",  "mountpoint-s3",
    "virtiofs", "grpcfuse",  "osxfs",
};

const char *os_network_name(uint64_t magic, const char *type, const char *source)
{
    for (size_t i = 0; i < sizeof network_magics / sizeof *network_magics; i++)
        if (network_magics[i].magic == magic)
            return network_magics[i].name;
    if (magic != FUSE_MAGIC)
        return NULL;
    if (strncmp(type, "fuse.", 5) == 0)
        type += 5;
    for (size_t i = 0; i < sizeof network_fuses / sizeof *network_fuses; i++)
        if (strcmp(type, network_fuses[i]) == 0)
            return network_fuses[i];
    /* an unknown type whose source names a machine: host:/path, //host/path,
     * scheme://host */
    if (strncmp(source, "//", 2) == 0 || strstr(source, ":/"))
        return "FUSE";
    return NULL;
}

/* Type and source of the mount that has this device, from mountinfo: "id parent
 * major:minor root point options [fields] - type source options". Octal escapes in them
 * stay as they are. */
static void find_mount(dev_t device, char *type, char *source, size_t size)
{
    char wanted[32], line[4096];
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    type[0] = source[0] = '\0';
    if (!mounts)
        return;
    snprintf(wanted, sizeof wanted, "%u:%u", major(device), minor(device));
    while (!type[0] && fgets(line, sizeof line, mounts)) {
        char number[32];
        const char *rest = strstr(line, " - ");
        if (!rest || sscanf(line, "%*s %*s %31s", number) != 1 || strcmp(number, wanted))
            continue;
        rest += 3;
        size_t n = strcspn(rest, " \n");
        snprintf(type, size, "%.*s", (int)n, rest);
        rest += n + (rest[n] == ' ');
        snprintf(source, size, "%.*s", (int)strcspn(rest, " \n"), rest);
    }
    fclose(mounts);
}

int os_proc_network(void *ud, int fd, char *name, size_t size)
{
    struct statfs fs;
    struct stat st;
    char type[128] = "", source[128] = "";
    (void)ud;
    name[0] = '\0';
    if (fstatfs(fd, &fs) != 0)
        return -1;
    uint64_t magic = (uint64_t)fs.f_type & UINT32_MAX;
    if (magic == FUSE_MAGIC && fstat(fd, &st) == 0)
        find_mount(st.st_dev, type, source, sizeof type);
    const char *found = os_network_name(magic, type, source);
    if (found)
        snprintf(name, size, "%s", found);
    return found != NULL;
}

char *os_proc_real_path(const char *path)
{
    return realpath(path, NULL);
}

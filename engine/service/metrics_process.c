/*
 * metrics_process.c: what the system says of this process: CPU time, memory, descriptors.
 *
 * Read when somebody asks for the metrics, from /proc. What cannot be read stays 0.
 */
#include "service/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/os.h"

/* The number behind a name in /proc/self/status, in kB; 0: not there. */
static int64_t status_kb(const os_table *os, const char *name)
{
    char text[4096];
    int fd = os->open_at(os->ud, -1, "/proc/self/status", OS_READ);
    if (fd < 0)
        return 0;
    int64_t size = os_read_full(os, fd, text, sizeof text - 1, 0);
    os->close(os->ud, fd);
    text[size > 0 ? size : 0] = 0;
    const char *at = strstr(text, name);
    return at ? strtoll(at + strlen(name), NULL, 10) : 0;
}

static int count_name(void *arg, const char *name)
{
    (void)name;
    ++*(int64_t *)arg;
    return 0;
}

/* Open descriptors. The two that list them, the folder's and list()'s own, do not count.
 */
static int64_t descriptors(const os_table *os)
{
    int64_t count = 0;
    int fd = os->open_at(os->ud, -1, "/proc/self/fd", OS_READ | OS_DIRECTORY | OS_FOLLOW);
    if (fd < 0)
        return 0;
    os->list(os->ud, fd, count_name, &count);
    os->close(os->ud, fd);
    return count > 2 ? count - 2 : 0;
}

void metrics_take_process(metrics *m)
{
    const os_table *os = os_current;
    if (!m)
        return;
    metrics_set(m, METRIC_PROCESS_CPU, 0,
                (int64_t)os->process_cpu_us(os->ud, os->pid(os->ud)) * 1000);
    metrics_set(m, METRIC_PROCESS_RESIDENT, 0, status_kb(os, "\nVmRSS:") * 1024);
    metrics_set(m, METRIC_PROCESS_FDS, 0, descriptors(os));
}

/*
 * os_process.h: the calls of the os table that concern other processes. For os_posix.c.
 */
#ifndef BASE_OS_PROCESS_H
#define BASE_OS_PROCESS_H

#include <stddef.h>
#include <stdint.h>

int os_posix_spawn(void *ud, const char *path, uint32_t *pid);
int64_t os_posix_receive(void *ud, int fd, void *out, size_t size, int timeout_ms);
int64_t os_posix_send(void *ud, int fd, const void *data, size_t size, int timeout_ms);
uint64_t os_posix_process_cpu_us(void *ud, uint32_t pid);
void os_posix_kill(void *ud, uint32_t pid);

#endif

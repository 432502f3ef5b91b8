/* telemetry_list.h: lists in variables of the environment: "name=value,name=value". */
#ifndef SERVICE_TELEMETRY_LIST_H
#define SERVICE_TELEMETRY_LIST_H

#include "base/buf.h"

/*
 * Reads a list as OTEL_RESOURCE_ATTRIBUTES and OTEL_EXPORTER_OTLP_HEADERS have it: names
 * are tokens of HTTP, values are percent-encoded UTF-8; spaces around both, and empty
 * items, do not count. Each pair is handed to visit, which returns 0 to continue; both
 * texts end with a NUL and live until it returns.
 *
 * Returns 0; -1: the text is no list (no '=', an odd name, a broken '%', a control
 * character, no UTF-8), or visit said so; -2: no memory. Pairs before that were handed
 * over.
 */
int telemetry_list_read(const char *text, const allocator *a,
                        int (*visit)(void *arg, const char *name, const char *value),
                        void *arg);

#endif

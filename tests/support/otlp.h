/*
 * otlp.h: a receiver of OTLP in a process of its own, which decodes by protobuf what it
 * is sent and answers as it is told.
 */
#ifndef SUPPORT_OTLP_H
#define SUPPORT_OTLP_H

#include <stdio.h>
#include <sys/types.h>

struct cJSON;

typedef struct otlp_receiver {
    pid_t pid;
    int port;
    char url[64]; /* without a path */
    FILE *said;
} otlp_receiver;

/* Starts one and waits until it listens. port 0: any. answers: otlp_receiver.py. Skips
 * the test where there is no python3-protobuf or no protoc. */
otlp_receiver *otlp_receiver_needed(int port, const char *answers);
void otlp_receiver_free(otlp_receiver *r);
/* Waits for the next request, which must have been decoded. The caller deletes it. */
struct cJSON *otlp_receiver_next(otlp_receiver *r);
/* A value within, by a path such as "decoded.resourceSpans.0.scopeSpans"; fails the test
 * when it is not there. */
struct cJSON *otlp_at(struct cJSON *value, const char *path);
/* The value of an attribute in a list of them, as text ("7", "true"); "": there is none.
 */
const char *otlp_attribute(struct cJSON *attributes, const char *name);

#endif

/* otlp.c: see otlp.h. */
#include "support/otlp.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

/* Debian's, since its python3-protobuf is what is asked for. */
#define PYTHON "/usr/bin/python3"

otlp_receiver *otlp_receiver_needed(int port, const char *answers)
{
    const char *root = getenv("SESSILE_ROOT");
    char program[400], number[16];
    int out[2];
    pid_t parent = getpid();
    if (system(
            PYTHON
            " -c 'import google.protobuf' 2>/dev/null && command -v protoc >/dev/null") !=
        0) {
        print_message("# there is no decoder: apt-get install python3-protobuf "
                      "protobuf-compiler\n");
        skip();
    }
    otlp_receiver *r = calloc(1, sizeof *r);
    snprintf(program, sizeof program, "%s/tests/support/otlp_receiver.py",
             root ? root : ".");
    snprintf(number, sizeof number, "%d", port);
    assert_int_equal(pipe(out), 0);
    r->pid = fork();
    if (r->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        unsetenv("LD_PRELOAD"); /* what a sanitizer preloads is not for it */
        dup2(out[1], 1);
        close(out[0]);
        if (getppid() == parent)
            execl(PYTHON, PYTHON, program, number, answers, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    r->said = fdopen(out[0], "r");
    assert_non_null(fgets(number, sizeof number, r->said));
    r->port = atoi(number);
    snprintf(r->url, sizeof r->url, "http://127.0.0.1:%d", r->port);
    return r;
}

void otlp_receiver_free(otlp_receiver *r)
{
    kill(r->pid, SIGKILL);
    waitpid(r->pid, NULL, 0);
    fclose(r->said);
    free(r);
}

cJSON *otlp_receiver_next(otlp_receiver *r)
{
    char *line = NULL;
    size_t room = 0;
    if (getline(&line, &room, r->said) < 0)
        fail_msg("the receiver ended");
    cJSON *said = cJSON_Parse(line);
    free(line);
    assert_non_null(said);
    const cJSON *error = cJSON_GetObjectItem(said, "error");
    if (error)
        fail_msg("not decoded: %s", error->valuestring);
    return said;
}

cJSON *otlp_at(cJSON *value, const char *path)
{
    char copy[200], *rest = copy;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *part = strsep(&rest, "."); part && value; part = strsep(&rest, "."))
        value = cJSON_IsArray(value) ? cJSON_GetArrayItem(value, atoi(part))
                                     : cJSON_GetObjectItemCaseSensitive(value, part);
    if (!value)
        fail_msg("there is no %s", path);
    return value;
}

const char *otlp_attribute(cJSON *attributes, const char *name)
{
    cJSON *one;
    cJSON_ArrayForEach(one, attributes)
    {
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(one, "key")), name) != 0)
            continue;
        const cJSON *value = cJSON_GetObjectItem(one, "value")->child;
        return cJSON_IsBool(value) ? (cJSON_IsTrue(value) ? "true" : "false")
                                   : cJSON_GetStringValue(value);
    }
    return "";
}

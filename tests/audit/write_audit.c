/*
 * write_audit.c: writes events into the audit of a store, for specs.
 *
 *     write_audit STORE KEY [PART_BYTES] < EVENTS
 *
 * KEY: a secret, or "plain". Each line of EVENTS is an operation and words NAME=VALUE,
 * where %XX in a value is a byte; or `seal`. Prints the root key.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "codec/entry.h"
#include "guard/enter.h"

static void must(sessile_status status, const sessile_error *err)
{
    if (!status)
        return;
    fprintf(stderr, "write_audit: %s\n", err->message);
    exit(1);
}

/* Decodes in place. */
static sessile_slice decoded(char *text)
{
    char *to = text, *from = text;
    unsigned byte;

    while (*from)
        if (*from == '%' && sscanf(from + 1, "%2x", &byte) == 1) {
            *to++ = (char)byte;
            from += 3;
        } else {
            *to++ = *from++;
        }
    return (sessile_slice){text, (size_t)(to - text)};
}

static audit_outcome outcome_of(sessile_slice name)
{
    int is = audit_outcome_of(name);

    return is < 0 ? AUDIT_UNKNOWN : (audit_outcome)is;
}

static sessile_status status_of(sessile_slice name)
{
    for (int i = 0; i <= SESSILE_CLOSED; i++)
        if (!strcmp(sessile_status_name((sessile_status)i), name.data))
            return (sessile_status)i;
    return SESSILE_INVALID;
}

static void set(audit_event *e, const char *name, sessile_slice value)
{
    struct {
        const char *name;
        sessile_slice *to;
    } texts[] = {{"user", &e->who.user},
                 {"actor", &e->who.actor},
                 {"agent", &e->who.agent},
                 {"role", &e->who.role},
                 {"method", &e->who.method},
                 {"key", &e->who.key},
                 {"session", &e->operation.session},
                 {"permission", &e->operation.permission},
                 {"rule", &e->outcome.rule},
                 {"request", &e->from.request},
                 {"source", &e->from.source},
                 {"details", &e->details}};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(texts[i].name, name))
            *texts[i].to = value;
    if (!strcmp(name, "outcome"))
        e->outcome.is = outcome_of(value);
    else if (!strcmp(name, "code"))
        e->outcome.status = status_of(value);
    else if (!strcmp(name, "entry"))
        (void)id_parse(value.data, value.size, &e->operation.entry);
}

static void write_line(audit_log *a, char *line)
{
    char *rest, *word = strtok_r(line, " \n", &rest);
    sessile_error err;
    audit_event e;

    if (!word)
        return;
    if (!strcmp(word, "seal")) {
        must(audit_seal(a, &err), &err);
        return;
    }
    audit_event_init(&e);
    e.operation.name = sessile_text(word);
    while ((word = strtok_r(NULL, " \n", &rest))) {
        char *equals = strchr(word, '=');
        if (!equals)
            continue;
        *equals = 0;
        set(&e, word, decoded(equals + 1));
    }
    must(audit_write(a, AUDIT_WRITE, &e, NULL, &err), &err);
}

int main(int argc, char **argv)
{
    sessile_store_options o;
    audit_options part = {.part_bytes = argc > 3 ? strtoull(argv[3], NULL, 10) : 0};
    char line[4096], root[SEAL_HEX];
    sessile_store *store;
    sessile_error err;
    audit_log *a;

    if (argc < 3)
        return 2;
    sessile_store_options_init(&o);
    o.key_source = strcmp(argv[2], "plain") ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
    o.key = argv[2];
    if (!strncmp(argv[2], "file:", 5)) {
        o.key_source = SESSILE_KEY_FILE;
        o.key = argv[2] + 5;
    }
    must(sessile_open(&store, argv[1], &o, &err), &err);
    must(audit_open(&a, store->core, &part, &err), &err);
    while (fgets(line, sizeof line, stdin))
        write_line(a, line);
    must(audit_root(a, root, &err), &err);
    must(audit_close(a, &err), &err);
    sessile_store_close(store);
    puts(root);
    return 0;
}

/* certificates.c: an authority and what it signed, made by the openssl command. */
#include "unit/rpc/certificates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "unit/rpc/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void shell(const char *folder, const char *script)
{
    static char text[4096];
    const char *argv[] = {"/bin/sh", "-e", "-c", text, NULL};
    snprintf(text, sizeof text, "cd %s; umask 077; %s", folder, script);
    program_ok(argv);
}

#define NEW_KEY "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -sha256 "

static void sign(certificates *c, const char *name, const char *subject,
                 const char *extra, int days)
{
    char script[2048];
    snprintf(script, sizeof script,
             NEW_KEY
             "-keyout %s.key -subj /CN=%s -out %s.csr 2>&1; "
             "printf '%s' > ext; "
             "openssl x509 -req -in %s.csr -CA ca.pem -CAkey ca.key -CAcreateserial "
             "-days %d -sha256 -extfile ext -out %s.pem 2>&1",
             name, subject, name, extra, name, days, name);
    shell(c->folder, script);
}

void certificates_renew(certificates *c, int days)
{
    char names[240];
    snprintf(names, sizeof names, "subjectAltName=%s", c->names);
    sign(c, "server", "server", names, days);
}

void certificates_make(certificates *c)
{
    program_needed("/usr/bin/openssl", "openssl");
    snprintf(c->folder, sizeof c->folder, "/tmp/rpc-tls-XXXXXX");
    assert_non_null(mkdtemp(c->folder));
    shell(c->folder,
          NEW_KEY "-x509 -keyout ca.key -subj /CN=authority -days 30 -out ca.pem "
                  "2>&1; " NEW_KEY "-x509 -keyout other.key -subj /CN=other "
                  "-days 30 -out other.pem 2>&1");
    snprintf(c->names, sizeof c->names, "DNS:localhost,IP:127.0.0.1");
    certificates_renew(c, 30);
    sign(c, "client", "agent-7", "subjectAltName=DNS:agent.example", 30);
    snprintf(c->ca, sizeof c->ca, "%s/ca.pem", c->folder);
    snprintf(c->other_ca, sizeof c->other_ca, "%s/other.pem", c->folder);
    snprintf(c->server, sizeof c->server, "%s/server.pem", c->folder);
    snprintf(c->server_key, sizeof c->server_key, "%s/server.key", c->folder);
    snprintf(c->client, sizeof c->client, "%s/client.pem", c->folder);
    snprintf(c->client_key, sizeof c->client_key, "%s/client.key", c->folder);
}

void certificates_remove(certificates *c)
{
    const char *argv[] = {"/bin/rm", "-rf", c->folder, NULL};
    program_ok(argv);
}

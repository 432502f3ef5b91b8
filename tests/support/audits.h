/* audits.h: audits of a store for tests, and an attacker who has every key of it. */
#ifndef SUPPORT_AUDITS_H
#define SUPPORT_AUDITS_H

#include "audit/audit.h"
#include "guard/enter.h"
#include "audit/lane.h"
#include "audit/verify.h"

/* An event of that operation; user may be NULL. */
audit_event event_of(const char *operation, const char *user);
/* Writes it, of class AUDIT_WRITE. These fail the test when the engine refuses. */
void audit_say(audit_log *a, const char *operation);
audit_log *audit_opened(store_core *st);
void audit_closed(audit_log *a);
/* Whether the audit verifies; what: of the message, "" if it does. */
sessile_audit_report verdict_of(store_core *st, const char *root);
void assert_holds(store_core *st, const char *root);
/* It does not, and the reason has this part. */
void assert_found_out(store_core *st, const char *root, const char *part);

/* The texts of a log of the audit, in order. */
typedef struct stolen {
    char name[LANE_NAME];
    char *texts[256];
    size_t count;
} stolen;
void steal(store_core *st, const char *name, stolen *out);
void stolen_free(stolen *s);
/* Puts a log with these entries in the place of the one of that name. Each gets the id of
 * its place, if renumber is 1. */
void forge(store_core *st, const stolen *s, int renumber);
void log_gone(store_core *st, const char *name);

#endif

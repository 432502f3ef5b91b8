/*
 * screen.h: what may be written: a list of screens, run over a text before it becomes an
 * entry.
 *
 * A writer calls screens_run() once for each text that it is about to write, after the
 * limits of size and before the entry is built:
 *
 *     screen_result result;
 *     sessile_status status = screens_run(list, &item, &result, err);
 *     if (!status)
 *         status = screen_refusal(&result, err);     DENIED when it is refused
 *     ...  write result.text if it is redacted, else item.text, and a label for each
 *          finding that screen_label() has one for
 *     screen_result_deinit(&result);
 *
 * The order is: schema, URLs, then the screens of the list; of a screen, its expressions,
 * then its function. The first that refuses ends it. A list without screens costs one
 * comparison.
 *
 * This folder knows no Lua: the function of a screen is handed down as a pointer and two
 * functions, and the check of URLs as a pointer and one.
 */
#ifndef SCREEN_SCREEN_H
#define SCREEN_SCREEN_H

#include "base/buf.h"
#include "base/counted.h"
#include "base/os.h"
#include "screen/pattern.h"
#include "screen/schema.h"
#include "screen/view.h"
#include "sessile_screen.h"

#define SCREENS_MOST    16
#define SCREEN_SCHEMAS  16
#define SCREEN_NAME_MAX PATTERN_NAME_MAX
#define SCREEN_RULE_MAX PATTERN_NAME_MAX
#define SCREEN_RULES    64
#define SCREEN_URLS     64                    /* URLs that a function is shown */
#define SCREEN_LABEL    (SCREEN_RULE_MAX + 8) /* "screen:RULE" and a NUL */

/* What a function is shown. Borrowed for the call. */
typedef struct screen_sight {
    const sessile_screen_item *item;
    sessile_slice text; /* the item's, as far as earlier screens left it, decoded */
    const pattern_set *patterns;
    const pattern_hits *hits; /* places in text */
    const sessile_slice *urls;
    size_t url_count;
} screen_sight;

/* What a function says. */
typedef struct screen_answer {
    sessile_screen_verdict verdict;
    char rule[SCREEN_RULE_MAX + 1]; /* "": of the first expression that matched */
    int has_spans;    /* 0: REDACT removes what the rule's expression matched */
    view_spans spans; /* places in the text that was shown */
} screen_answer;

/* The function of a screen; run NULL: it has none. Anything but OK and NOMEM: it failed,
 * and err says why without a word of the text. It may be run by many threads. */
typedef struct screen_function {
    void *ref;
    sessile_status (*run)(void *ref, const screen_sight *sight, screen_answer *answer,
                          sessile_error *err);
    void (*release)(void *ref);
} screen_function;

/* A screen. */
typedef struct screen {
    char name[SCREEN_NAME_MAX + 1];
    unsigned kinds;                  /* SESSILE_SCREEN_… bits */
    unsigned roles;                  /* of messages: bits 1u << role; 0: all */
    pattern_set *patterns;           /* or NULL; owned */
    sessile_screen_verdict action;   /* of a match, when there is no function */
    sessile_screen_verdict on_error; /* REFUSE or FLAG */
    int always; /* the function is also run when no expression matched */
    screen_function function;
    char rules[SCREEN_RULES][SCREEN_RULE_MAX + 1]; /* besides the patterns' names */
    size_t rule_count;
} screen;

/* What is said of the URLs of a text, decoded: PASS, or another verdict and its rule. */
typedef struct screen_urls {
    sessile_screen_verdict verdict;
    char rule[SCREEN_RULE_MAX + 1];
} screen_urls;
typedef sessile_status (*screen_url_check)(void *arg, const sessile_screen_item *item,
                                           sessile_slice text, screen_urls *out,
                                           sessile_error *err);

/* ------------------------------------------------------------------ lists */

/* An empty list with one reference; see base/counted.h. */
sessile_status screens_new(sessile_screens **out, const os_table *os, const allocator *a,
                           sessile_error *err);
/* Another list with the screens and schemas of one (NULL: none), which it keeps a
 * reference to: for a check of URLs of its own. It takes no more of them. */
sessile_status screens_new_over(sessile_screens **out, sessile_screens *of,
                                const os_table *os, const allocator *a,
                                sessile_error *err);
void screens_retain(sessile_screens *list);
void screens_release(sessile_screens *list); /* NULL is ignored */
const allocator *screens_allocator(const sessile_screens *list);

/* Adds a screen, a copy; the list then owns its patterns and its function. LIMIT. On
 * failure they are still the caller's. */
sessile_status screens_add(sessile_screens *list, const screen *s, sessile_error *err);
/* Adds a schema for the texts of a kind (with that key: custom entries); it is then the
 * list's. LIMIT. */
sessile_status screens_add_schema(sessile_screens *list, sessile_screen_kind kind,
                                  const char *key, schema *s, sessile_error *err);
/* Sets the check of URLs; arg is borrowed by the list. */
void screens_set_urls(sessile_screens *list, screen_url_check check, void *arg);

/* The kinds of texts that a screen or a schema of the list is for: SESSILE_SCREEN_…
 * bits. */
unsigned screens_kinds(const sessile_screens *list);

/* Whether the screen has this rule: its name, a pattern, or one it declares. */
int screen_has_rule(const screen *s, const char *rule);

/* ------------------------------------------------------------------ running */

typedef struct screen_finding {
    sessile_screen_verdict verdict;
    char screen[SCREEN_NAME_MAX + 1], rule[SCREEN_RULE_MAX + 1];
    size_t removed;
    char message[160], pointer[256];
} screen_finding;

typedef struct screen_result {
    sessile_screen_verdict verdict;
    screen_finding findings[SCREENS_MOST + 2];
    size_t count;
    buf text; /* REDACT: what is written instead */
} screen_result;

/* Runs the list over an item, whose JSON is valid. The result is to be deinit'ed, after a
 * failure too. INVALID: the text is not UTF-8; NOMEM. list may be NULL. */
sessile_status screens_run(const sessile_screens *list, const sessile_screen_item *item,
                           screen_result *result, sessile_error *err);
void screen_result_deinit(screen_result *result);

/* DENIED, with the rule in err->rule and the screen in the message, when the result is
 * REFUSE; else OK. */
sessile_status screen_refusal(const screen_result *result, sessile_error *err);
/* The label that an entry gets for a finding, "screen:RULE"; 0: none. */
int screen_label(const screen_finding *finding, char out[SCREEN_LABEL]);
/* Whether a label is one of those, or looks like one. */
int screen_is_label(sessile_slice name);

const char *screen_kind_name(sessile_screen_kind kind);
const char *screen_source_name(sessile_screen_source source);
const char *screen_verdict_name(sessile_screen_verdict verdict);
/* The values of these names; 0 and -1: there is none. */
sessile_screen_kind screen_kind_of(const char *name);
int screen_verdict_of(const char *name);

#endif

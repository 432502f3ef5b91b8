/*
 * test_doors.c: every public function that touches a store goes through the guard's door.
 *
 * Each row of operations.def has a call here; a row without one does not link. Each call
 * is made by somebody who may nothing: DENIED, and the store is as it was. Then by
 * somebody who has the row's permissions and no other: whatever it answers, not DENIED.
 *
 * It is long because it has one call for each function of the public headers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard/guard.h"
#include "session/store_handle.h"
#include "sessile_access.h"
#include "sessile_memory.h"
#include "sessile_privacy.h"
#include "support/audits.h"
#include "support/events.h"
#include "support/sessions.h"

#include <cmocka.h>

typedef struct world {
    sessile_store *store, *other; /* the host's */
    sessile_store *view;          /* of the caller */
    sessile_session *s, *child;
    sessile_memory *m;
    sessile_run *run;
    sessile_memory_run *memory_run;
    sessile_search *search;
    sessile_check *check;
    sessile_audit_reader *audit;
    sessile_audit_verification *verification;
    sessile_entries *entries;
    sessile_reseal *reseal;
    sessile_migration *migration;
    char *folders[2];
    sessile_error err;
    /* what calls fill */
    void *block;
    char *text;
    const char *line;
    size_t count;
    uint64_t u64;
    sessile_id id;
} world;

#define HELLO sessile_text("{\"role\":\"user\",\"content\":\"hello there\"}")
#define KEY   "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define ERR   (&w->err)

/* ------------------------------------------------------------------ the calls */

#define DOOR(name, ...)                         \
    static sessile_status call_##name(world *w) \
    {                                           \
        __VA_ARGS__                             \
    }
#define GIVES_BLOCK(name, type, call)                                             \
    DOOR(name, type *out = NULL; sessile_status status = call; sessile_free(out); \
         return status;)
#define GIVES_SESSION(name, call)                                         \
    DOOR(name, sessile_session *out = NULL; sessile_status status = call; \
         if (out) sessile_session_close(out, NULL); return status;)

/* Two without a status: a call that was refused has set nothing. */
static sessile_status set_by(world *w, void (*set)(sessile_store *, sessile_policy *),
                             sessile_policy *const *set_there)
{
    sessile_policy_step step = {.name = "of the host", .hooks = 1};
    sessile_policy *policy;
    assert_int_equal(sessile_policy_load(&policy, w->store, &step, 1, ERR), SESSILE_OK);
    set(w->view, policy);
    sessile_status status = *set_there == policy ? SESSILE_OK : SESSILE_DENIED;
    set(w->store, policy); /* the host's own call has set it */
    assert_ptr_equal(*set_there, policy);
    set(w->store, NULL);
    sessile_policy_free(policy);
    return status;
}

DOOR(store_set_policy,
     return set_by(w, sessile_store_set_policy, &w->store->core->policies.policy);)
DOOR(store_set_fallback,
     return set_by(w, sessile_store_set_fallback, &w->store->core->policies.fallback);)
GIVES_BLOCK(list_with, sessile_listed,
            sessile_list_with(w->view, NULL, &out, &w->count, ERR))
GIVES_BLOCK(list, sessile_listed, sessile_list(w->view, NULL, &out, &w->count, ERR))
DOOR(store_clock, int64_t ahead; return sessile_store_clock(w->view, &ahead, NULL, ERR);)
DOOR(keys_rotate, return sessile_keys_rotate(w->view, NULL, &w->u64, ERR);)
GIVES_BLOCK(keys_status, sessile_keys, sessile_keys_status(w->view, &out, ERR))
DOOR(reseal_begin, sessile_reseal *out;
     sessile_status status = sessile_reseal_begin(&out, w->view, NULL, ERR);
     sessile_reseal_free(out); return status;)
DOOR(reseal_step, return sessile_reseal_step(w->reseal, NULL, ERR);)
DOOR(forget, return sessile_forget(w->view, sessile_text("zoe"), &w->u64, ERR);)
DOOR(migrate_begin, sessile_migration *out; sessile_place from = {.store = w->view};
     sessile_place to = {.store = w->other};
     sessile_status status = sessile_migrate_begin(&out, &from, &to, NULL, ERR);
     sessile_migrate_free(out); return status;)
DOOR(migrate_step, return sessile_migrate_step(w->migration, NULL, ERR);)
GIVES_SESSION(create, sessile_create(&out, w->view, &(sessile_session_options){0}, ERR))
GIVES_SESSION(resume,
              (w->err.code = 0,
               sessile_resume(&out, w->view,
                              &(sessile_session_options){.id = sessile_text("s")}, ERR)))
GIVES_SESSION(session_open,
              sessile_session_open(&out, w->view,
                                   &(sessile_session_options){.id = sessile_text("s")},
                                   ERR))
GIVES_SESSION(session_as, sessile_session_as(&out, w->s, w->view, ERR))
DOOR(delete, sessile_session_options o = named("none");
     return sessile_delete(w->view, &o, NULL, NULL, ERR);)
DOOR(undelete, sessile_session_options o = named("none");
     return sessile_undelete(w->view, &o, sessile_text(NULL), ERR);)
GIVES_BLOCK(deletions, sessile_deletion, sessile_deletions(w->view, &out, &w->count, ERR))
DOOR(standbys, int n; return sessile_standbys(w->view, &n, ERR);)
GIVES_BLOCK(nodes, sessile_store_node, sessile_nodes(w->view, &out, &w->count, ERR))
GIVES_BLOCK(purge, sessile_listed, sessile_purge(w->view, NULL, &out, &w->count, ERR))
DOOR(purge_forgotten, uint64_t bytes;
     return sessile_purge_forgotten(w->view, sessile_text(NULL), 0, &w->u64, &bytes,
                                    ERR);)
DOOR(consent, sessile_consent_options o = {.user = w->view->who->user,
                                           .given = 1,
                                           .text = sessile_text("yes")};
     return sessile_consent(w->view, &o, NULL, ERR);)
GIVES_BLOCK(consents, sessile_consent_row,
            sessile_consents(w->view, sessile_text(NULL), &out, &w->count, ERR))
DOOR(hold, sessile_hold_options o = {.agent = sessile_text("x")};
     return sessile_hold(w->view, &o, &w->id, ERR);)
GIVES_BLOCK(holds, sessile_hold_row, sessile_holds(w->view, &out, &w->count, ERR))
DOOR(hold_release, return sessile_hold_release(w->view, 7, sessile_text(NULL), ERR);)
DOOR(purge_retention, sessile_retention_options o = {.count = 0};
     return sessile_purge_retention(w->view, &o, NULL, ERR);)
DOOR(user_erase,
     return sessile_user_erase(w->view, sessile_text("zoe"), NULL, NULL, ERR);)
DOOR(session_life, sessile_life_info out; return sessile_session_life(w->s, &out, ERR);)
DOOR(set_ttl, return sessile_set_ttl(w->s, 1000000, ERR);)
DOOR(set_archived, return sessile_set_archived(w->s, 0, ERR);)
GIVES_SESSION(fork, sessile_fork(&out, w->s, 1, NULL, ERR))
GIVES_SESSION(put,
              sessile_put(&out, w->view, w->s,
                          &(sessile_session_options){.id = sessile_text("put")}, ERR))
GIVES_SESSION(child, sessile_child(&out, w->s, 0, NULL, ERR))
DOOR(child_merged, return sessile_child_merged(w->s, w->child, HELLO, NULL, ERR);)
DOOR(child_discarded,
     return sessile_child_discarded(w->s, w->child, sessile_text("x"), ERR);)
GIVES_BLOCK(subsessions, sessile_subsession,
            sessile_subsessions(w->s, &out, &w->count, ERR))
DOOR(changed, unsigned char changed;
     return sessile_changed(w->view, &w->s, 1, &changed, ERR);)
DOOR(session_watch, int changed;
     return sessile_session_watch(w->s, NULL, 0, &changed, ERR);)
DOOR(session_damage, return sessile_session_damage(w->s, NULL, ERR);)
DOOR(head, return sessile_head(w->s, &w->id, ERR);)
DOOR(clear, return sessile_clear(w->s, ERR);)
GIVES_BLOCK(title, char, sessile_title(w->s, &out, &w->count, ERR))
DOOR(set_title, return sessile_set_title(w->s, sessile_text("t"), ERR);)
DOOR(event_count, return sessile_event_count(w->s, &w->u64, ERR);)
DOOR(total_usage, sessile_usage out; return sessile_total_usage(w->s, &out, ERR);)
GIVES_BLOCK(usage_groups, sessile_usage_group,
            sessile_usage_groups(w->s, SESSILE_USAGE_BY_DAY, &out, &w->count, ERR))
DOOR(count_tokens, sessile_tokens out; return sessile_count_tokens(w->s, &out, ERR);)
DOOR(count_tokens_with, sessile_tokens out;
     return sessile_count_tokens_with(w->s, NULL, &out, ERR);)
GIVES_SESSION(records_open,
              sessile_records_open(&out, w->view,
                                   &(sessile_session_options){.id = sessile_text("r")},
                                   &(sessile_slice){"{}", 2}, 1, ERR))
GIVES_BLOCK(records_read, sessile_slice,
            sessile_records_read(w->s, 0, &out, &w->count, ERR))
DOOR(append, return sessile_append(w->s, HELLO, NULL, ERR);)
DOOR(append_custom,
     return sessile_append_custom(w->s, sessile_text("{}"), NULL, NULL, ERR);)
DOOR(write, sessile_write_entry e = {HELLO, 0, NULL};
     return sessile_write(w->s, &e, 1, SESSILE_NO_ID, NULL, ERR);)
DOOR(label, return sessile_label(w->s, 1, sessile_text("l"), ERR);)
DOOR(unlabel, return sessile_unlabel(w->s, 1, sessile_text("l"), ERR);)
GIVES_BLOCK(labels, sessile_label_row, sessile_labels(w->s, &out, &w->count, ERR))
DOOR(set_settings, return sessile_set_settings(w->s, sessile_text("{\"a\":1}"), ERR);)
GIVES_BLOCK(settings, char, sessile_settings(w->s, &out, &w->count, ERR))
DOOR(set_metadata, return sessile_set_metadata(w->s, sessile_text("{\"a\":1}"), ERR);)
GIVES_BLOCK(metadata, char, sessile_metadata(w->s, &out, &w->count, ERR))
DOOR(checkpoint, return sessile_checkpoint(w->s, NULL, NULL, ERR);)
GIVES_BLOCK(checkpoints, sessile_checkpoint_row,
            sessile_checkpoints(w->s, NULL, &out, &w->count, ERR))
GIVES_BLOCK(restore, sessile_restored, sessile_restore(w->s, 1, 0, &out, ERR))
DOOR(checkpoint_delete, return sessile_checkpoint_delete(w->s, 1, ERR);)
DOOR(suspend,
     return sessile_suspend(w->s, sessile_text("x"), sessile_text(NULL), NULL, ERR);)
GIVES_BLOCK(suspended, sessile_suspension, sessile_suspended(w->s, &out, ERR))
DOOR(resume_with, sessile_slice hello = HELLO;
     return sessile_resume_with(w->s, &hello, 1, NULL, ERR);)
DOOR(cancel, return sessile_cancel(w->s, sessile_text("x"), ERR);)
GIVES_BLOCK(messages, sessile_message, sessile_messages(w->s, NULL, &out, &w->count, ERR))
GIVES_BLOCK(context, sessile_message,
            sessile_context(w->s, SESSILE_NO_ID, &out, &w->count, NULL, ERR))
GIVES_BLOCK(entry, char, sessile_entry(w->s, 1, &out, &w->count, ERR))
GIVES_BLOCK(path, sessile_id, sessile_path(w->s, 1, &out, &w->count, ERR))
GIVES_BLOCK(children, sessile_id, sessile_children(w->s, 1, &out, &w->count, ERR))
GIVES_BLOCK(siblings, sessile_id, sessile_siblings(w->s, 1, &out, &w->count, ERR))
DOOR(common_ancestor, return sessile_common_ancestor(w->s, 1, 1, &w->id, ERR);)
GIVES_BLOCK(leaves, sessile_id, sessile_leaves(w->s, &out, &w->count, ERR))
GIVES_BLOCK(tree, sessile_node, sessile_tree(w->s, NULL, &out, &w->count, ERR))
DOOR(entries_open, sessile_entries *out;
     sessile_status status = sessile_entries_open(&out, w->s, NULL, ERR);
     sessile_entries_close(out); return status;)
DOOR(entries_next,
     return sessile_entries_next(w->entries, NULL, &w->line, &w->count, ERR);)
DOOR(search_open, sessile_search *out; sessile_search_options o;
     sessile_search_options_init(&o); o.text = sessile_text("hello");
     sessile_status status = sessile_search_open(&out, w->view, &o, ERR);
     sessile_search_close(out); return status;)
DOOR(search_next, sessile_found out; return sessile_search_next(w->search, &out, ERR);)
DOOR(check_open, sessile_check *out;
     sessile_status status = sessile_check_open(&out, w->view, NULL, 0, ERR);
     sessile_check_close(out); return status;)
DOOR(check_next, sessile_checked out; return sessile_check_next(w->check, &out, ERR);)
#define ROOT "0000000000000000000000000000000000000000000000000000000000000000"
DOOR(audit_open, sessile_audit_reader *out;
     sessile_status status = sessile_audit_open(&out, w->view, NULL, ERR);
     sessile_audit_close(out); return status;)
DOOR(audit_next, sessile_audit_event out; return sessile_audit_next(w->audit, &out, ERR);)
DOOR(audit_wait, return sessile_audit_wait(w->audit, 0, NULL, ERR);)
GIVES_BLOCK(audit_cursor, char, sessile_audit_cursor(w->audit, &out, ERR))
DOOR(audit_verify_begin, sessile_audit_verification *out;
     sessile_status status = sessile_audit_verify_begin(&out, w->view, ROOT, NULL, ERR);
     sessile_audit_verify_free(out); return status;)
DOOR(audit_verify_step, sessile_audit_report out;
     return sessile_audit_verify_step(w->verification, &out, ERR);)
DOOR(audit_root, char out[SESSILE_AUDIT_KEY];
     return sessile_audit_root(w->view, out, ERR);)
GIVES_BLOCK(audit_head, sessile_audit_anchor,
            sessile_audit_head(w->view, ROOT, 0, &out, &w->count, ERR))
DOOR(audit_seal, return sessile_audit_seal(w->view, ERR);)
GIVES_BLOCK(audit_prove, char,
            sessile_audit_prove(w->view, "00-000/00000001", &out, NULL, ERR))
DOOR(policy_load, sessile_policy *out; sessile_policy_step step = {.name = "none"};
     sessile_status status = sessile_policy_load(&out, w->view, &step, 1, ERR);
     sessile_policy_free(out); return status;)

#define GIVES_RUN(name, call)                                         \
    DOOR(name, sessile_run *out = NULL; sessile_status status = call; \
         sessile_run_free(out); return status;)
GIVES_RUN(turn_begin,
          sessile_turn_begin(&out, w->s, &(sessile_slice){"{}", 0}, 0, NULL, ERR))
GIVES_RUN(compact_begin, sessile_compact_begin(&out, w->s, NULL, ERR))
GIVES_RUN(plan_begin, sessile_plan_begin(&out, w->s, NULL, ERR))
GIVES_RUN(branch_begin, sessile_branch_begin(&out, w->s, 1, NULL, ERR))
DOOR(branch, return sessile_branch(w->s, 1, sessile_text(NULL), NULL, ERR);)
GIVES_BLOCK(pop, sessile_message,
            sessile_pop(w->s, 1, SESSILE_NO_ID, &out, &w->count, ERR))
DOOR(run_step, sessile_need need; return sessile_run_step(w->run, &need, ERR);)
DOOR(run_reply, sessile_answer a = {.text = sessile_text("x")};
     return sessile_run_reply(w->run, &a, ERR);)
DOOR(run_outcome, sessile_outcome out; return sessile_run_outcome(w->run, &out, ERR);)
GIVES_BLOCK(run_context, sessile_message,
            sessile_run_context(w->run, &out, &w->count, ERR))
DOOR(run_defer, return sessile_run_defer(w->run, NULL, ERR);)
GIVES_BLOCK(pending_runs, sessile_pending_run,
            sessile_pending_runs(w->s, &out, &w->count, ERR))
GIVES_RUN(answer_begin, sessile_answer_begin(&out, w->s, SESSILE_NO_ID, NULL, NULL, ERR))
GIVES_BLOCK(compactions, sessile_compaction,
            sessile_compactions(w->s, &out, &w->count, ERR))
GIVES_BLOCK(why, sessile_explanation,
            sessile_why(w->s, (sessile_key){.entry = 1}, &out, ERR))
GIVES_BLOCK(uncompact, sessile_uncompacted,
            sessile_uncompact(w->s, SESSILE_NO_ID, 0, &out, ERR))

DOOR(memory_open, sessile_memory *out;
     sessile_status status = sessile_memory_open(&out, w->view, NULL, ERR);
     sessile_memory_close(out); return status;)
DOOR(memory_as, sessile_memory *out;
     sessile_status status = sessile_memory_as(&out, w->m, w->view, ERR);
     sessile_memory_close(out); return status;)
DOOR(memory_damage, return sessile_memory_damage(w->m, ERR);)
DOOR(memory_write, sessile_memory_write_entry e; sessile_memory_write_init(&e);
     e.value = sessile_text("v"); return sessile_memory_write(w->m, &e, 1, NULL, ERR);)
DOOR(memory_apply, sessile_memory_write_entry e; sessile_memory_write_init(&e);
     e.value = sessile_text("v");
     sessile_memory_change change = {.entries = &e, .count = 1};
     return sessile_memory_apply(w->m, &change, NULL, ERR);)
DOOR(memory_verdict, sessile_id id = 1;
     return sessile_memory_verdict(w->m, &id, 1, SESSILE_MEMORY_PIN, sessile_text(NULL),
                                   sessile_text(NULL), NULL, ERR);)
DOOR(memory_consent,
     return sessile_memory_consent(w->m, 1, sessile_text(NULL), sessile_text("yes"),
                                   sessile_text(NULL), ERR);)
DOOR(memory_embed, sessile_id id = 1; float v[2] = {1, 0};
     return sessile_memory_embed(w->m, sessile_text("m"), 2, &id, v, 1, ERR);)
DOOR(memory_delete_from,
     return sessile_memory_delete_from(w->m, sessile_text("main"), sessile_text("none"),
                                       sessile_text(NULL), NULL, ERR);)
DOOR(memory_erase, sessile_memory_erase_options o; memset(&o, 0, sizeof o);
     o.session = sessile_text("none"); return sessile_memory_erase(w->m, &o, NULL, ERR);)
GIVES_BLOCK(memory_read, sessile_memory_row,
            sessile_memory_read(w->m, sessile_text("k"), &out, ERR))
GIVES_BLOCK(memory_get, sessile_memory_row, sessile_memory_get(w->m, 1, &out, ERR))
GIVES_BLOCK(memory_entry, char, sessile_memory_entry(w->m, 1, &out, &w->count, ERR))
GIVES_BLOCK(memory_list, sessile_memory_row,
            sessile_memory_list(w->m, NULL, &out, &w->count, ERR))
GIVES_BLOCK(memory_history, sessile_memory_row,
            sessile_memory_history(w->m, sessile_text("k"), 1, &out, &w->count, ERR))
GIVES_BLOCK(memory_search, sessile_memory_row,
            sessile_memory_search(w->m, sessile_text("v"), NULL, &out, &w->count, ERR))
DOOR(memory_watch, int changed;
     return sessile_memory_watch(w->m, NULL, 0, &changed, ERR);)
DOOR(memory_get_stats, sessile_memory_stats out;
     return sessile_memory_get_stats(w->m, &out, ERR);)
GIVES_BLOCK(memory_models, sessile_memory_model,
            sessile_memory_models(w->m, &out, &w->count, ERR))
GIVES_BLOCK(recall_find, sessile_memory_row,
            sessile_recall_find(w->s, &w->m, 1, NULL, &out, &w->count, ERR))
DOOR(recall, sessile_recall_outcome out;
     return sessile_recall(w->s, &w->m, 1, NULL, &out, ERR);)

#define GIVES_MEMORY_RUN(name, call)                                         \
    DOOR(name, sessile_memory_run *out = NULL; sessile_status status = call; \
         sessile_memory_run_free(out); return status;)
GIVES_MEMORY_RUN(remember_begin, sessile_remember_begin(&out, w->s, &w->m, 1, NULL, ERR))
GIVES_MEMORY_RUN(tidy_begin, sessile_tidy_begin(&out, w->m, NULL, ERR))
DOOR(memory_agent_source, sessile_memory_write_entry e; sessile_memory_source out;
     sessile_memory_write_init(&e); e.value = sessile_text("v");
     return sessile_memory_agent_source(w->s, w->m, &e, sessile_text(NULL), &out, ERR);)
GIVES_MEMORY_RUN(admit_begin, sessile_admit_begin(&out, w->m, NULL, 0, NULL, ERR))
GIVES_MEMORY_RUN(recall_begin,
                 sessile_recall_begin(&out, w->s, &w->m, 1, NULL, NULL, ERR))
GIVES_MEMORY_RUN(embed_begin, sessile_embed_begin(&out, w->m, NULL, ERR))
DOOR(memory_run_step, sessile_need need;
     return sessile_memory_run_step(w->memory_run, &need, ERR);)
DOOR(memory_run_reply, sessile_answer a = {.text = sessile_text("x")};
     return sessile_memory_run_reply(w->memory_run, &a, ERR);)
DOOR(memory_run_reply_vectors, float v[2] = {1, 0};
     return sessile_memory_run_reply_vectors(w->memory_run, v, 1, 2, ERR);)
DOOR(memory_run_outcome, sessile_memory_outcome out;
     return sessile_memory_run_outcome(w->memory_run, &out, ERR);)

DOOR(grant, sessile_grant_options o; sessile_grant_options_init(&o); o.role = "none";
     o.user = sessile_text("ann"); return sessile_grant(w->view, &o, &w->id, ERR);)
GIVES_BLOCK(grants, sessile_grant_row, sessile_grants(w->view, &out, &w->count, ERR))
DOOR(grant_end, return sessile_grant_end(w->view, 7, ERR);)
DOOR(access_key, sessile_access_key_options o; sessile_access_key_options_init(&o);
     sessile_status status = sessile_access_key(w->view, &o, &w->text, ERR);
     sessile_free(w->text); return status;)
GIVES_BLOCK(access_keys, sessile_access_key_row,
            sessile_access_keys(w->view, &out, &w->count, ERR))
DOOR(access_key_revoke,
     return sessile_access_key_revoke(w->view, sessile_text("none"), ERR);)
DOOR(access_lock,
     return sessile_access_lock(w->view, sessile_text("zoe"), sessile_text(NULL),
                                sessile_text(NULL), ERR);)
DOOR(access_unlock,
     return sessile_access_unlock(w->view, sessile_text("bob"), sessile_text(NULL), ERR);)
GIVES_BLOCK(access_locks, sessile_access_lock_row,
            sessile_access_locks(w->view, &out, &w->count, ERR))

/* ------------------------------------------------------------------ the rows */

typedef struct door {
    const char *name;
    sessile_status (*call)(world *w);
    int is_step, is_host;
    const char *permission, *also;
    const char *either; /* opens it as well */
    const char *event;
    limit_rule limit;
    const char *object;
} door;

#define ROW_NOTHING(name, ...)
#define ROW_KEY(name, ...)
#define ROW_STEP(name, also, event, limit, object) \
    {#name, call_##name, 1, 0, NULL, NULL, NULL, #event, LIMIT_NONE, #object},
#define ROW_HOST(name, also, event, limit, object) \
    {#name, call_##name, 0, 1, NULL, NULL, NULL, #event, LIMIT_NONE, #object},
#define ROW(name, permission, also, event, limit, object)          \
    {#name,  call_##name,   0,      0, #permission, #also, "NONE", \
     #event, LIMIT_##limit, #object},
#define ROW_VIEW_SESSION(name, also, event, limit, object) \
    ROW(name, VIEW_SESSION, also, event, limit, object)
#define ROW_MODIFY_SESSION(name, also, event, limit, object) \
    ROW(name, MODIFY_SESSION, also, event, limit, object)
#define ROW_CREATE_SESSION(name, also, event, limit, object) \
    ROW(name, CREATE_SESSION, also, event, limit, object)
#define ROW_DELETE_SESSION(name, also, event, limit, object) \
    ROW(name, DELETE_SESSION, also, event, limit, object)
#define ROW_CREATE_CHECKPOINT(name, also, event, limit, object) \
    ROW(name, CREATE_CHECKPOINT, also, event, limit, object)
#define ROW_READ_MEMORY(name, also, event, limit, object) \
    ROW(name, READ_MEMORY, also, event, limit, object)
#define ROW_WRITE_MEMORY(name, also, event, limit, object) \
    ROW(name, WRITE_MEMORY, also, event, limit, object)
#define ROW_CHECK_STORE(name, also, event, limit, object) \
    ROW(name, CHECK_STORE, also, event, limit, object)
#define ROW_MOVE_STORE(name, also, event, limit, object) \
    ROW(name, MOVE_STORE, also, event, limit, object)
#define ROW_MANAGE_KEYS(name, also, event, limit, object) \
    ROW(name, MANAGE_KEYS, also, event, limit, object)
#define ROW_MANAGE_PRIVACY(name, also, event, limit, object) \
    ROW(name, MANAGE_PRIVACY, also, event, limit, object)
#define ROW_MANAGE_ACCESS(name, also, event, limit, object) \
    ROW(name, MANAGE_ACCESS, also, event, limit, object)
#define ROW_ERASE_USER(name, also, event, limit, object) \
    ROW(name, ERASE_USER, also, event, limit, object)
#define ROW_READ_AUDIT(name, also, event, limit, object) \
    ROW(name, READ_AUDIT, also, event, limit, object)
#define ROW_CHECK_AUDIT(name, also, event, limit, object)                  \
    {#name,  call_##name,   0,      0, "READ_AUDIT", #also, "CHECK_STORE", \
     #event, LIMIT_##limit, #object},
#define OPERATION(name, permission, also, limit, event, screens, object) \
    ROW_##permission(name, also, event, limit, object)
static const door doors[] = {
#include "guard/operations.def"
};
#undef OPERATION
#define DOORS (sizeof doors / sizeof *doors)

static permissions bit(const char *name)
{
    char lower[40];
    size_t size = strlen(name);
    if (!name[0] || !strcmp(name, "NONE"))
        return 0;
    for (size_t i = 0; i <= size; i++)
        lower[i] =
            name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
    sessile_permission p = permission_of(lower, size);
    assert_int_not_equal(p, SESSILE_PERMISSION_COUNT);
    return (permissions)1 << p;
}

/* ------------------------------------------------------------------ the world */

static sessile_store *open_store(const char *folder, sessile_error *err)
{
    sessile_store_options o;
    sessile_store *st;
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_SECRET;
    o.key = KEY;
    assert_int_equal(sessile_open(&st, folder, &o, err), SESSILE_OK);
    return st;
}

/* Every kind of handle, made by somebody who may everything. Whose they are is set for
 * each call. */
static int open_world(void **state)
{
    world *w = calloc(1, sizeof *w);
    const char *admin = "admin";
    sessile_session_options o = named("s");
    sessile_memory_options mo;
    sessile_memory_write_entry e;
    sessile_memory_run_options ro;
    sessile_search_options so;
    sessile_credential c;
    char root[SEAL_HEX];

    assert_non_null(w);
    w->folders[0] = folder_make();
    w->folders[1] = folder_make();
    w->store = open_store(w->folders[0], ERR);
    w->other = open_store(w->folders[1], ERR);
    sessile_guard_options go;
    sessile_guard_options_init(&go);
    go.audit.on = 1;
    assert_int_equal(sessile_store_guard(w->store, &go, ERR), SESSILE_OK);
    sessile_credential_init(&c);
    c.roles = &admin;
    c.role_count = 1;
    assert_int_equal(sessile_store_as(&w->view, w->store, &c, ERR), SESSILE_OK);
    assert_int_equal(sessile_create(&w->s, w->view, &o, ERR), SESSILE_OK);
    assert_int_equal(sessile_append(w->s, HELLO, NULL, ERR), SESSILE_OK);
    o = named("child");
    assert_int_equal(sessile_child(&w->child, w->s, 0, &o, ERR), SESSILE_OK);
    sessile_memory_options_init(&mo);
    assert_int_equal(sessile_memory_open(&w->m, w->view, &mo, ERR), SESSILE_OK);
    sessile_memory_write_init(&e);
    e.value = sessile_text("value");
    assert_int_equal(sessile_memory_write(w->m, &e, 1, NULL, ERR), SESSILE_OK);
    assert_int_equal(sessile_entries_open(&w->entries, w->s, NULL, ERR), SESSILE_OK);
    sessile_search_options_init(&so);
    so.text = sessile_text("hello");
    assert_int_equal(sessile_search_open(&w->search, w->view, &so, ERR), SESSILE_OK);
    assert_int_equal(sessile_check_open(&w->check, w->view, NULL, 0, ERR), SESSILE_OK);
    audit_log *audit = audit_opened(w->store->core);
    audit_say(audit, "open");
    assert_int_equal(audit_root(audit, root, ERR), SESSILE_OK);
    audit_closed(audit);
    assert_int_equal(sessile_audit_open(&w->audit, w->view, NULL, ERR), SESSILE_OK);
    assert_int_equal(
        sessile_audit_verify_begin(&w->verification, w->view, root, NULL, ERR),
        SESSILE_OK);
    assert_int_equal(sessile_turn_begin(&w->run, w->s, NULL, 0, NULL, ERR), SESSILE_OK);
    sessile_memory_run_options_init(&ro);
    ro.embed_model = sessile_text("model");
    ro.embed_dims = 2;
    assert_int_equal(sessile_embed_begin(&w->memory_run, w->m, &ro, ERR), SESSILE_OK);
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    world *w = *state;
    sessile_memory_run_free(w->memory_run);
    sessile_run_free(w->run);
    sessile_check_close(w->check);
    sessile_audit_close(w->audit);
    sessile_audit_verify_free(w->verification);
    sessile_search_close(w->search);
    sessile_entries_close(w->entries);
    sessile_reseal_free(w->reseal);
    sessile_migrate_free(w->migration);
    sessile_memory_close(w->m);
    sessile_session_close(w->child, NULL);
    sessile_session_close(w->s, NULL);
    sessile_store_close(w->view);
    sessile_store_close(w->other);
    sessile_store_close(w->store);
    folder_remove(w->folders[0]);
    folder_remove(w->folders[1]);
    free(w);
    return 0;
}

/* What is in the store, as the host sees it: a change of it would be seen. */
static void look(world *w, char out[200])
{
    sessile_listed *rows;
    sessile_memory_stats stats;
    size_t count;
    uint64_t entries = 0;
    principal *who = w->m->who;

    assert_int_equal(sessile_list(w->store, NULL, &rows, &count, ERR), SESSILE_OK);
    for (size_t i = 0; i < count; i++)
        entries += rows[i].entries;
    sessile_free(rows);
    w->m->who = w->store->who;
    assert_int_equal(sessile_memory_get_stats(w->m, &stats, ERR), SESSILE_OK);
    w->m->who = who;
    snprintf(out, 200, "%zu sessions, %llu entries, %llu of memory", count,
             (unsigned long long)entries, (unsigned long long)stats.log_entries);
}

/* All handles are of the view's principal, which may these. */
static void become(world *w, permissions may)
{
    w->view->who->base = may;
    w->view->who->may = may;
}

static size_t look_at_events(world *w, events *e)
{
    events_read(e, w->store->who->guard, w->store->core);
    return e->count;
}

/* The last call left one event of failure, and no other that is not of reading. */
static void assert_refused_once(world *w, size_t before, const char *event)
{
    char member[64];
    events e;

    look_at_events(w, &e);
    event_member(member, event);
    assert_events(&e, before, 1, "\"outcome\":\"failure\"", "\"code\":\"DENIED\"");
    assert_events(&e, before, 1, "\"outcome\":\"failure\"", member);
    assert_events(&e, before, 0, "\"outcome\":\"unknown\"", NULL);
    events_free(&e);
}

static void nobody_gets_through_a_door(void **state)
{
    world *w = *state;
    char before[200], after[200];
    events e;

    look(w, before);
    for (size_t i = 0; i < DOORS; i++) {
        const door *d = &doors[i];
        if (d->is_step)
            continue;
        become(w, 0);
        size_t events_before = look_at_events(w, &e);
        events_free(&e);
        sessile_status status = d->call(w);
        if (status != SESSILE_DENIED)
            fail_msg("sessile_%s() of nobody: %s %s", d->name,
                     sessile_status_name(status), w->err.message);
        assert_refused_once(w, events_before, d->event);
        look(w, after);
        if (strcmp(before, after) != 0)
            fail_msg("sessile_%s() was DENIED and changed the store: %s, %s", d->name,
                     before, after);
    }
}

/* The event of its row, with its outcome. What cannot be undone has one before it, too.
 * Only a run that was freed is not known to have ended. */
static void assert_recorded(world *w, size_t before, const door *d, sessile_status status)
{
    char member[64];
    char class = d->event[strlen(d->event) - 1];
    events e;

    look_at_events(w, &e);
    event_member(member, d->event);
    /* what is there is resumed */
    if (!strcmp(d->name, "session_open") || !strcmp(d->name, "records_open"))
        event_member(member, "RESUME_W");
    assert_true(events_with(&e, before, member, NULL) > 0);
    if (class == 'M')
        assert_events(&e, before, 1, member, "\"outcome\":\"intent\"");
    if (status)
        assert_events(&e, before, 1, member, "\"outcome\":\"failure\"");
    if (!strstr(d->name, "_begin"))
        assert_events(&e, before, 0, "\"outcome\":\"unknown\"", NULL);
    if (!status && !strstr(d->name, "_begin"))
        assert_true(events_with(&e, before, "\"outcome\":\"success\"", NULL) > 0);
    events_free(&e);
}

static void its_permission_alone_opens_each_door(void **state)
{
    events e;

    (void)state;
    for (size_t i = 0; i < DOORS; i++) {
        const door *d = &doors[i];
        void *made;
        if (d->is_step || d->is_host)
            continue;
        open_world(&made);
        world *w = made;
        become(w, bit(d->permission) | bit(d->also));
        size_t before = look_at_events(w, &e);
        events_free(&e);
        sessile_status status = d->call(w);
        if (status == SESSILE_DENIED)
            fail_msg("sessile_%s() with %s and %s: %s", d->name, d->permission, d->also,
                     w->err.message);
        assert_recorded(w, before, d, status);
        /* and each other permission together does not */
        become(w, PERMISSIONS_ALL & ~bit(d->permission) & ~bit(d->either));
        status = d->call(w);
        if (status != SESSILE_DENIED)
            fail_msg("sessile_%s() without %s: %s", d->name, d->permission,
                     sessile_status_name(status));
        become(w, PERMISSIONS_ALL);
        close_world(&made);
    }
}

static void refuse_all(void *ref, const authorize_question *question,
                       authorize_answer *answer)
{
    ++*(int *)ref;
    assert_true(question->need != 0 && question->operation.size != 0);
    strcpy(answer->name, "nothing");
}

/* A row whose names follow, and whose function does not go on with them, would not be
 * asked about. */
static void a_rule_of_the_hosts_closes_each_door(void **state)
{
    world *w = *state;
    char before[200], after[200];
    int asked;

    look(w, before);
    w->store->who->guard->authorize = (authorize_rule){&asked, refuse_all, NULL};
    for (size_t i = 0; i < DOORS; i++) {
        const door *d = &doors[i];
        events e;
        if (d->is_step || d->is_host)
            continue;
        become(w, PERMISSIONS_ALL);
        size_t events_before = look_at_events(w, &e);
        events_free(&e);
        asked = 0;
        if (d->call(w) != SESSILE_DENIED || strcmp(w->err.rule, "authorize:nothing") != 0)
            fail_msg("sessile_%s(): %s %s", d->name, w->err.rule, w->err.message);
        assert_int_equal(asked, 1);
        assert_refused_once(w, events_before, d->event);
        look(w, after);
        assert_string_equal(before, after);
    }
    w->store->who->guard->authorize = (authorize_rule){NULL, NULL, NULL};
}

/* The second call of a minute, where one is allowed. */
static void each_door_with_a_rule_is_counted(void **state)
{
    limit_options once;

    (void)state;
    limit_options_init(&once);
    for (int i = LIMIT_NONE + 1; i < LIMIT_RULES; i++)
        once.rates[i] = (limit_rate){1, 60000};
    for (size_t i = 0; i < DOORS; i++) {
        const door *d = &doors[i];
        void *made;
        events e;
        /* what is there is opened without end */
        if (d->limit == LIMIT_NONE || !strcmp(d->name, "session_open") ||
            !strcmp(d->name, "records_open"))
            continue;
        open_world(&made);
        world *w = made;
        assert_int_equal(
            limiter_open(&w->store->who->guard->limiter, w->store->core, &once, ERR),
            SESSILE_OK);
        sessile_status first = d->call(w);
        if (first == SESSILE_LIMIT)
            fail_msg("sessile_%s(): %s", d->name, w->err.message);
        if (d->call(w) != SESSILE_LIMIT || w->err.retry_ms <= 0)
            fail_msg("sessile_%s() a second time: %s", d->name, w->err.message);
        assert_string_equal(w->err.rule, limit_rule_name(d->limit));
        look_at_events(w, &e);
        assert_events(&e, 0, 1, "\"code\":\"LIMIT\"", limit_rule_name(d->limit));
        events_free(&e);
        close_world(&made);
    }
}

/* 1: sessile_can() says that the view may what the column names, on the object of these
 * calls: session "s" of nobody, or the memory that the agent keeps for all. */
static int can(const world *w, const char *column, const char *object)
{
    const sessile_slice nobody = {"", 0}, none = sessile_text(NULL);
    const permissions need = bit(column);

    for (int p = 0; p < SESSILE_PERMISSION_COUNT; p++)
        if (need >> p & 1)
            return sessile_can(w->view, p, none, nobody,
                               strcmp(object, "MEMORY") ? sessile_text("s") : none);
    return 1;
}

/* What is filtered is not refused; what a grant is on is looked at later; these concern
 * the whole store, and their permission does not; a consent is of a user. */
static int is_asked_otherwise(const door *d)
{
    static const char *const names[] = {"grant",          "grant_end", "grants",
                                        "deletions",      "purge",     "consent",
                                        "purge_forgotten"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(d->name, names[i]))
            return 1;
    return d->is_step || d->is_host || !strcmp(d->object, "ROWS");
}

/* For each door, and views that may it, or other things, or of one's own alone, or with
 * some agents: sessile_can() says no exactly where the call is DENIED. */
static void can_says_what_each_door_answers(void **state)
{
    static sessile_slice other = {"other", 5}, main_alone = {"main", 4};

    (void)state;
    for (size_t i = 0; i < DOORS; i++) {
        const door *d = &doors[i];
        void *made;
        if (is_asked_otherwise(d))
            continue;
        const permissions need = bit(d->permission) | bit(d->also) | bit(d->either);
        open_world(&made);
        world *w = made;
        principal *p = w->view->who;
        for (int kind = 0; kind < 5; kind++) { /* those that are refused come first */
            become(w, kind == 0 ? PERMISSIONS_ALL & ~need : need);
            p->base_all = p->all = kind != 1;
            p->agents = kind == 2 ? &other : kind == 3 ? &main_alone : NULL;
            p->agent_count = p->agents != NULL;
            int says = can(w, d->permission, d->object) && can(w, d->also, d->object);
            if (bit(d->either))
                says |= can(w, d->either, d->object);
            sessile_status status = d->call(w);
            p->agents = NULL;
            p->agent_count = 0;
            if (says == (status == SESSILE_DENIED))
                fail_msg("sessile_%s(), kind %d: can() says %d, the call %s: %s", d->name,
                         kind, says, sessile_status_name(status), w->err.message);
        }
        become(w, PERMISSIONS_ALL);
        close_world(&made);
    }
}

static void the_host_alone_opens_its_own(void **state)
{
    world *w = *state;
    for (size_t i = 0; i < DOORS; i++) {
        events e;
        if (!doors[i].is_host)
            continue;
        become(w, PERMISSIONS_ALL);
        size_t before = look_at_events(w, &e);
        events_free(&e);
        assert_int_equal(doors[i].call(w), SESSILE_DENIED);
        assert_refused_once(w, before, doors[i].event);
    }
}

/* Expiry ends nothing that goes on; revocation does. What reads needs its permission at
 * each step; a run that writes ends under those that it began with. */
static void a_step_is_refused_once_the_view_is_revoked(void **state)
{
    world *w = *state;

    assert_int_equal(sessile_reseal_begin(&w->reseal, w->view, NULL, ERR), SESSILE_OK);
    sessile_place from = {.store = w->view}, to = {.store = w->other};
    assert_int_equal(sessile_migrate_begin(&w->migration, &from, &to, NULL, ERR),
                     SESSILE_OK);
    become(w, 0);
    assert_int_equal(call_entries_next(w), SESSILE_DENIED);
    assert_int_not_equal(call_run_step(w), SESSILE_DENIED);
    become(w, PERMISSIONS_ALL);
    atomic_store(&w->view->who->expires_ms, 1);
    for (int revoked = 0; revoked < 2; revoked++) {
        for (size_t i = 0; i < DOORS; i++) {
            const door *d = &doors[i];
            if (!d->is_step)
                continue;
            sessile_status status = d->call(w);
            if ((status == SESSILE_DENIED) != revoked)
                fail_msg("sessile_%s(), revoked %d: %s %s", d->name, revoked,
                         sessile_status_name(status), w->err.message);
        }
        assert_int_equal(sessile_store_revoke(w->view, ERR), SESSILE_OK);
    }
}

/* Of a session whose handle may not read it nobody learns by asking for many; those who
 * ask for others are not refused because of it. */
static void a_session_that_may_not_be_read_counts_as_changed(void **state)
{
    world *w = *state;
    unsigned char changed[2];

    become(w, PERMISSIONS_ALL);
    assert_int_equal(sessile_changed(w->store, &w->s, 1, changed, ERR), SESSILE_OK);
    assert_int_equal(changed[0], 0);
    become(w, 0);
    sessile_session *s[2] = {w->s, NULL};
    sessile_session_options o = named("other");
    assert_int_equal(sessile_session_open(&s[1], w->store, &o, ERR), SESSILE_OK);
    assert_int_equal(sessile_changed(w->store, s, 2, changed, ERR), SESSILE_OK);
    assert_int_equal(changed[0], 1);
    assert_int_equal(changed[1], 0);
    sessile_session_close(s[1], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nobody_gets_through_a_door, open_world,
                                        close_world),
        cmocka_unit_test(its_permission_alone_opens_each_door),
        cmocka_unit_test_setup_teardown(a_rule_of_the_hosts_closes_each_door, open_world,
                                        close_world),
        cmocka_unit_test(each_door_with_a_rule_is_counted),
        cmocka_unit_test(can_says_what_each_door_answers),
        cmocka_unit_test_setup_teardown(the_host_alone_opens_its_own, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(a_step_is_refused_once_the_view_is_revoked,
                                        open_world, close_world),
        cmocka_unit_test_setup_teardown(a_session_that_may_not_be_read_counts_as_changed,
                                        open_world, close_world),
    };
    return cmocka_run_group_tests_name("doors", tests, NULL, NULL);
}

/*
 * test_policy_require.c: policies that require others: what they get, what they share,
 * what the hash covers, and what is refused.
 */
#include "support/policies.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/chain.h"

/* What a truncate logs on a small list; it must succeed. */
static const char *logged(const char *name, const char *options)
{
    static ran r;
    r = policies_run(name, options, SESSILE_HOOK_TRUNCATE, "s u a u a");
    if (r.status)
        fail_msg("status %d: %s", r.status, r.err.message);
    return r.log;
}

static void refused(const char *name, sessile_status expected, const char *says)
{
    sessile_policy *p;
    sessile_error err;
    sessile_status status = policies_load(&p, name, NULL, NULL, &err);
    if (status != expected || !strstr(err.message, says))
        fail_msg("status %d: %s", status, err.message);
    assert_null(p);
}

static void hash_of(const char *name, char out[65])
{
    sessile_policy *p = policies_must_load(name, NULL);
    memcpy(out, policy_step_get(p, 0)->hash, 65);
    policy_release(p);
}

/* ------------------------------------------------------------------ what it gets */

static void test_its_hooks_are_functions_with_the_options_of_the_requirer(void **state)
{
    ran r;
    (void)state;
    policies_write("last",
                   "return { options = { n = { type = 'integer', default = 1 } },\n"
                   "  truncate = function(state, ctx)\n"
                   "    ctx.log(ctx.options.n) state:keep_last(ctx.options.n, "
                   "'messages') end }");
    policies_write("mine",
                   "local last = require 'last'\n"
                   "return { options = { n = { type = 'integer', default = 2 } },\n"
                   "  truncate = function(state, ctx) return last.truncate(state, "
                   "ctx) end }");
    r = policies_run("mine", "{\"n\":3}", SESSILE_HOOK_TRUNCATE, "s u a u a u a");
    assert_int_equal(r.status, SESSILE_OK);
    assert_string_equal(r.log, "3\n");
    assert_string_equal(r.keys, "1 6 7");
    assert_string_equal(logged("mine", NULL), "2\n");
}

static void test_a_file_is_loaded_once_and_shared_within_a_step(void **state)
{
    (void)state;
    policies_write("shared", "count = 0\nreturn { add = function() count = count + 1 "
                             "return count end }");
    policies_write("left", "return { add = require('shared').add }");
    policies_write("right", "local s = require './shared.lua'\nreturn { add = s.add }");
    policies_write("top", "local left, right = require 'left', require 'right'\n"
                          "return { truncate = function(state, ctx)\n"
                          "  ctx.log(left.add(), right.add(), require('left') == left, "
                          "count) end }");
    assert_string_equal(logged("top", NULL), "1 2 true nil\n");
    assert_string_equal(logged("top", NULL), "1 2 true nil\n"); /* nothing lives on */
}

static void test_a_hook_gets_only_what_the_file_required(void **state)
{
    ran r;
    (void)state;
    policies_write("last", "return {}");
    policies_write("late", "return { truncate = function() require 'last' end }");
    r = policies_run("late", NULL, SESSILE_HOOK_TRUNCATE, "s u a");
    assert_int_equal(r.status, SESSILE_POLICY);
    assert_string_equal(r.err.message,
                        "late.lua:1: 'last' was not required while the file was loaded: "
                        "require it at the top of the file");
}

static void test_its_errors_name_its_file_and_line(void **state)
{
    ran r;
    (void)state;
    policies_write("broken", "return { go = function()\n  error 'no luck' end }");
    policies_write("mine", "local b = require 'broken'\n"
                           "return { truncate = function() b.go() end }");
    r = policies_run("mine", NULL, SESSILE_HOOK_TRUNCATE, "s u a");
    assert_int_equal(r.status, SESSILE_POLICY);
    assert_string_equal(r.err.message, "broken.lua:2: no luck");
    policies_write("loud", "error 'at once'");
    policies_write("asks", "return { truncate = require('loud').truncate }");
    refused("asks", SESSILE_POLICY, "asks.lua: loud.lua:1: at once");
    policies_write("syntax", "return {");
    policies_write("asks", "pcall(require, 'syntax') return {}");
    refused("asks", SESSILE_POLICY,
            "asks.lua: syntax.lua:1: unexpected symbol near <eof>");
    policies_write("number", "return 7");
    policies_write("asks", "require 'number' return {}");
    refused("asks", SESSILE_POLICY,
            "asks.lua: number.lua: a policy's file returns its table");
}

/* ------------------------------------------------------------------ the hash */

static void test_the_hash_covers_all_that_is_required(void **state)
{
    char alone[65], before[65], after[65], again[65];
    (void)state;
    policies_write("c", "return { n = 1 }");
    policies_write("b", "return { c = require 'c' }");
    policies_write("d", "return {}");
    policies_write("a", "require 'b' require 'd' return {}");
    policies_write("e", "return {}");
    hash_of("a", before);
    hash_of("a", again);
    assert_string_equal(before, again);
    hash_of("e", alone);
    policies_write("c", "return { n = 2 }");
    hash_of("a", after);
    assert_string_not_equal(before, after);
    policies_write("c", "return { n = 1 }");
    hash_of("a", again);
    assert_string_equal(before, again);
    /* the same files, one in the place of the other */
    policies_write("b", "return {}");
    policies_write("d", "return { c = require 'c' }");
    hash_of("a", after);
    assert_string_not_equal(before, after);
    hash_of("e", again);
    assert_string_equal(alone, again);
}

/* What was loaded before in the same chain makes no difference. */
static void test_the_hash_does_not_depend_on_the_rest_of_the_chain(void **state)
{
    sessile_policy_step steps[2] = {{"x", NULL, 0}, {"a", NULL, 0}};
    char alone[65];
    sessile_policy *p;
    (void)state;
    policies_write("c", "return {}");
    policies_write("b", "require 'c' return {}");
    policies_write("x", "require 'c' return {}");
    policies_write("a", "require 'b' require 'c' return {}");
    hash_of("a", alone);
    assert_int_equal(policy_load(&p, steps, 2, policies_folder(), NULL, NULL, &os_posix,
                                 &allocator_default, NULL),
                     SESSILE_OK);
    assert_string_equal(policy_step_get(p, 1)->hash, alone);
    policy_release(p);
}

/* ------------------------------------------------------------------ what is refused */

static void test_circles_are_refused(void **state)
{
    (void)state;
    policies_write("self", "require 'self' return {}");
    refused("self", SESSILE_POLICY,
            "self.lua -> self.lua: a policy cannot require itself");
    policies_write("self", "pcall(require, './self.lua') return {}");
    refused("self", SESSILE_POLICY,
            "self.lua -> self.lua: a policy cannot require itself");
    policies_write("one", "require 'two' return {}");
    policies_write("two", "require 'three' return {}");
    policies_write("three", "require 'one' return {}");
    refused("one", SESSILE_POLICY,
            "one.lua -> two.lua -> three.lua -> one.lua: a policy cannot require itself");
}

static void test_paths_that_lead_away_are_refused(void **state)
{
    static const char *const names[] = {"../other",   "/etc/passwd", "a/../b",
                                        "./../b.lua", "a//b",        "a/./b",
                                        "./",         "../../x.lua", "a/.."};
    char source[100];
    size_t i;
    (void)state;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(source, sizeof source, "pcall(require, '%s') return {}", names[i]);
        policies_write("mine", source);
        refused("mine", SESSILE_DENIED, "a policy requires what lies in its own folder");
    }
    policies_write("mine", "pcall(require, 'a\\nb') return {}");
    refused("mine", SESSILE_POLICY, "control characters");
    policies_write("mine", "pcall(require, '\\xff') return {}");
    refused("mine", SESSILE_POLICY, "UTF-8");
    policies_write("mine", "require(('x'):rep(256)) return {}");
    refused("mine", SESSILE_POLICY, "a name is 1 to 255 bytes of text");
    policies_write("mine", "require 'a\\0b' return {}");
    refused("mine", SESSILE_POLICY, "a name is 1 to 255 bytes of text");
    policies_write("mine", "require {} return {}");
    refused("mine", SESSILE_POLICY, "a policy's name expected, got table");
    policies_write("mine", "require 'nothing' return {}");
    refused("mine", SESSILE_NOTFOUND, "mine.lua: there is no policy 'nothing'");
}

static void test_a_file_is_judged_as_any_policy(void **state)
{
    char path[700], target[700];
    (void)state;
    policies_write("mine", "require 'link' return {}");
    snprintf(path, sizeof path, "%s/link.lua", policies_folder());
    snprintf(target, sizeof target, "%s/mine.lua", policies_folder());
    assert_int_equal(symlink(target, path), 0);
    refused("mine", SESSILE_DENIED, "link.lua");
    unlink(path);
    policies_write_bytes("link", "\x1bLua", 4);
    refused("mine", SESSILE_POLICY, "a policy is source, never bytecode");
    policies_write("link", "return {}");
    chmod(path, 0666);
    refused("mine", SESSILE_DENIED, "can be written by others");
}

/* Writes n files, each of which requires the next. */
static void write_row(int n)
{
    char name[20], source[64];
    int i;
    for (i = 1; i <= n; i++) {
        snprintf(name, sizeof name, "r%d", i);
        snprintf(source, sizeof source, i < n ? "require 'r%d' return {}" : "return {}",
                 i + 1);
        policies_write(name, source);
    }
}

static void test_depth_number_and_size_are_bounded(void **state)
{
    char name[20], *source = calloc(1, 200000), *at;
    sessile_policy *p;
    int i;
    (void)state;
    write_row(CHAIN_REQUIRE_DEPTH + 1);
    p = policies_must_load("r1", NULL);
    policy_release(p);
    write_row(1000);
    refused("r1", SESSILE_LIMIT,
            "r8.lua -> r9.lua: policies require each other deeper than 8");
    for (i = 1; i <= CHAIN_REQUIRED + 1; i++) {
        snprintf(name, sizeof name, "w%d", i);
        policies_write(name, "return {}");
    }
    policies_write("wide", "for i = 1, 16 do require('w' .. i) end return {}");
    p = policies_must_load("wide", NULL);
    policy_release(p);
    policies_write("wide", "for i = 1, 17 do require('w' .. i) end return {}");
    refused("wide", SESSILE_LIMIT, "at most 16 files");
    policies_write("many",
                   "for i = 1, 70 do require(('./'):rep(0) .. 'w' .. i % 8 + 1) end\n"
                   "return {}");
    p = policies_must_load("many", NULL); /* the same name again costs nothing */
    policy_release(p);
    at = source + sprintf(source, "return {} --");
    memset(at, 'x', 190000);
    for (i = 1; i <= 3; i++) {
        snprintf(name, sizeof name, "w%d", i);
        policies_write(name, source);
    }
    policies_write("wide", "for i = 1, 3 do require('w' .. i) end return {}");
    refused("wide", SESSILE_LIMIT, "larger than 524288 bytes");
    free(source);
}

static void test_looking_has_one_budget_for_all_files(void **state)
{
    (void)state;
    policies_write("loop", "while true do end");
    policies_write("mine", "pcall(require, 'loop') return {}");
    refused("mine", SESSILE_POLICY, "it spent its budget");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_its_hooks_are_functions_with_the_options_of_the_requirer,
            policies_set_up, policies_tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_file_is_loaded_once_and_shared_within_a_step, policies_set_up,
            policies_tear_down),
        cmocka_unit_test_setup_teardown(test_a_hook_gets_only_what_the_file_required,
                                        policies_set_up, policies_tear_down),
        cmocka_unit_test_setup_teardown(test_its_errors_name_its_file_and_line,
                                        policies_set_up, policies_tear_down),
        cmocka_unit_test_setup_teardown(test_the_hash_covers_all_that_is_required,
                                        policies_set_up, policies_tear_down),
        cmocka_unit_test_setup_teardown(
            test_the_hash_does_not_depend_on_the_rest_of_the_chain, policies_set_up,
            policies_tear_down),
        cmocka_unit_test_setup_teardown(test_circles_are_refused, policies_set_up,
                                        policies_tear_down),
        cmocka_unit_test_setup_teardown(test_paths_that_lead_away_are_refused,
                                        policies_set_up, policies_tear_down),
        cmocka_unit_test_setup_teardown(test_a_file_is_judged_as_any_policy,
                                        policies_set_up, policies_tear_down),
        cmocka_unit_test_setup_teardown(test_depth_number_and_size_are_bounded,
                                        policies_set_up, policies_tear_down),
        cmocka_unit_test_setup_teardown(test_looking_has_one_budget_for_all_files,
                                        policies_set_up, policies_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

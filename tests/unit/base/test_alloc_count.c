/*
 * test_alloc_count.c: an allocator that knows what it has given.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc_count.h"
#include "base/buf.h"

#include <cmocka.h>

/* Gives nothing while it is told so. */
static void *maybe(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)osize;
    if (nsize == 0) {
        free(ptr);
        return NULL;
    }
    return *(const int *)ud ? NULL : realloc(ptr, nsize);
}

static void what_is_given_and_taken_back_is_counted(void **state)
{
    alloc_count c;
    (void)state;
    alloc_count_init(&c, &allocator_default);
    assert_int_equal(alloc_count_bytes(&c), 0);
    char *a = mem_alloc(&c.alloc, 100), *b = mem_dup(&c.alloc, "text", 4);
    assert_int_equal(alloc_count_bytes(&c), 105);
    a = mem_realloc(&c.alloc, a, 100, 1000);
    assert_int_equal(alloc_count_bytes(&c), 1005);
    a = mem_realloc(&c.alloc, a, 1000, 10);
    assert_int_equal(alloc_count_bytes(&c), 15);
    mem_free(&c.alloc, b, 5);
    mem_free(&c.alloc, NULL, 7);
    assert_int_equal(alloc_count_bytes(&c), 10);
    mem_free(&c.alloc, a, 10);
    assert_int_equal(alloc_count_bytes(&c), 0);
}

static void a_buffer_that_grows_is_counted_at_its_capacity(void **state)
{
    alloc_count c;
    buf b;
    (void)state;
    alloc_count_init(&c, &allocator_default);
    buf_init(&b, &c.alloc);
    for (int i = 0; i < 1000; i++)
        buf_puts(&b, "0123456789");
    assert_false(b.failed);
    assert_int_equal(alloc_count_bytes(&c), b.capacity);
    buf_deinit(&b);
    assert_int_equal(alloc_count_bytes(&c), 0);
}

static void what_is_refused_is_not_counted(void **state)
{
    int refuses = 0;
    allocator under = {maybe, &refuses};
    alloc_count c;
    (void)state;
    alloc_count_init(&c, &under);
    char *a = mem_alloc(&c.alloc, 50);
    assert_non_null(a);
    refuses = 1;
    assert_null(mem_alloc(&c.alloc, 70));
    assert_null(mem_realloc(&c.alloc, a, 50, 5000));
    assert_int_equal(alloc_count_bytes(&c), 50);
    mem_free(&c.alloc, a, 50);
    assert_int_equal(alloc_count_bytes(&c), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_given_and_taken_back_is_counted),
        cmocka_unit_test(a_buffer_that_grows_is_counted_at_its_capacity),
        cmocka_unit_test(what_is_refused_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

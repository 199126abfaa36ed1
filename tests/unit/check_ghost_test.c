/* SPDX-License-Identifier: Apache-2.0 */
/* The checker is checked: it accepts a true ledger and refuses each kind of false or missing row.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chaos/check/ghost.h"

static struct record make(uint16_t origin, uint64_t seq, uint64_t hlc, const char *item)
{
    return (struct record){.key = bytes_literal("k"),
                           .kind = RECORD_PUT,
                           .version = {hlc, origin, seq},
                           .item = bytes_text(item)};
}

static void the_last_version_is_expected(void **state)
{
    (void)state;
    struct ghost *ghost = ghost_new();
    struct record a = make(1, 1, 10, "a"), b = make(2, 1, 10, "b");
    ghost_add(ghost, &a, 7);
    ghost_add(ghost, &b, 8);
    ghost_add(ghost, &a, 7);
    assert_int_equal(ghost_key_count(ghost), 1);
    assert_true(bytes_is(ghost_last(ghost, a.key)->record.item, "b"));
    assert_int_equal(ghost_find_writer(ghost, 7)->record.version.origin, 1);
    assert_null(ghost_find_writer(ghost, 9));
    ghost_free(ghost);
}

static void a_lost_write_must_be_named(void **state)
{
    (void)state;
    struct ghost *ghost = ghost_new();
    struct record a = make(1, 1, 10, "a"), b = make(2, 1, 11, "b");
    ghost_add(ghost, &a, 1);
    ghost_add(ghost, &b, 2);
    assert_int_equal(ghost_unaccounted(ghost, true)->writer, 1);
    assert_int_equal(ghost_unaccounted(ghost, false)->writer, 1);
    assert_null(ghost_ledger(ghost, a.key, &b, &a));
    assert_null(ghost_unaccounted(ghost, true));
    assert_null(ghost_unaccounted(ghost, false));
    ghost_free(ghost);
}

/* What only a lost disk had is not expected, unless it turns up again; a deletion that was let go
 * of is, whoever loses what. */
static void a_lost_disk_takes_its_writes(void **state)
{
    (void)state;
    struct ghost *ghost = ghost_new();
    struct record a = make(1, 1, 10, "a"), b = make(2, 1, 11, "b"), c = make(1, 2, 12, "");
    ghost_hold(ghost, &a, 1, 0);
    ghost_hold(ghost, &a, 1, 1);
    ghost_hold(ghost, &b, 2, 0);
    assert_int_equal(ghost_lose(ghost, 0), 1);
    assert_int_equal(ghost_last(ghost, a.key)->writer, 1);
    assert_null(ghost_unaccounted(ghost, false)); /* b is lost, not beaten */
    ghost_hold(ghost, &b, 2, 2);
    assert_int_equal(ghost_last(ghost, a.key)->writer, 2);
    assert_int_equal(ghost_lose(ghost, 1), 1);
    assert_int_equal(ghost_lose(ghost, 2), 1);
    assert_null(ghost_last(ghost, a.key));
    c.kind = RECORD_DELETE;
    ghost_hold(ghost, &c, 0, 1);
    ghost_settle(ghost, c.key, 0); /* which does not have it */
    assert_int_equal(ghost_lose(ghost, 1), 1);
    ghost_hold(ghost, &c, 0, 1);
    ghost_settle(ghost, c.key, 1);
    assert_int_equal(ghost_lose(ghost, 1), 0);
    assert_int_equal(ghost_last(ghost, a.key)->record.version.seq, 2);
    assert_true(ghost_has(ghost, a.key, b.version));
    ghost_forget(ghost, a.key);
    assert_false(ghost_has(ghost, a.key, b.version));
    ghost_free(ghost);
}

static void false_rows_are_refused(void **state)
{
    (void)state;
    struct ghost *ghost = ghost_new();
    struct record a = make(1, 1, 10, "a"), b = make(2, 1, 11, "b"), c = make(1, 2, 12, "c");
    assert_true(vv_raise(&c.dep, 2, 1)); /* c's writer had seen b */
    ghost_add(ghost, &a, 1);
    ghost_add(ghost, &b, 2);
    ghost_add(ghost, &c, 3);
    struct record forged = b;
    forged.item = bytes_literal("x");
    struct record stranger = make(3, 9, 9, "s");
    assert_non_null(ghost_ledger(ghost, a.key, &a, &b));
    assert_non_null(ghost_ledger(ghost, a.key, &forged, &a));
    assert_non_null(ghost_ledger(ghost, a.key, &c, &stranger));
    assert_non_null(ghost_ledger(ghost, a.key, &c, &b));
    assert_null(ghost_ledger(ghost, a.key, &b, &a));
    assert_null(ghost_unaccounted(ghost, true));
    ghost_free(ghost);
}

static void a_write_that_was_built_upon_is_not_lost(void **state)
{
    (void)state;
    struct ghost *ghost = ghost_new();
    struct record a = make(1, 1, 10, "a"), b = make(2, 1, 11, "b");
    assert_true(vv_raise(&b.dep, 1, 1));
    ghost_add(ghost, &a, 1);
    ghost_add(ghost, &b, 2);
    assert_null(ghost_unaccounted(ghost, true));
    assert_null(ghost_unaccounted(ghost, false));
    ghost_free(ghost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_version_is_expected),
        cmocka_unit_test(a_lost_write_must_be_named),
        cmocka_unit_test(a_lost_disk_takes_its_writes),
        cmocka_unit_test(false_rows_are_refused),
        cmocka_unit_test(a_write_that_was_built_upon_is_not_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

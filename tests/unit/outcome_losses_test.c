/* SPDX-License-Identifier: Apache-2.0 */
/* Losses of disks are noted once, each with the time of the death that had the data last. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "chaos/run/outcome.h"

static struct scenario scenario;
static struct outcome outcome;

static int begin(void **state)
{
    (void)state;
    scenario_init(&scenario);
    outcome_init(&outcome, &scenario);
    return 0;
}

static int end(void **state)
{
    (void)state;
    outcome_deinit(&outcome);
    scenario_deinit(&scenario);
    return 0;
}

static void happens(uint64_t at_ns, uint8_t region, const char *kind)
{
    outcome_event(&outcome, at_ns, region, kind, "%s", "");
}

/* A start that is refused ends a process, too, but not one that served. */
static void test_death(void **state)
{
    (void)state;
    assert_int_equal(outcome_death_ns(&outcome, 1, 5), 5);
    happens(10, 1, "down");
    happens(11, 0, "up");
    assert_int_equal(outcome_death_ns(&outcome, 1, 90), 10);
    happens(20, 1, "down");
    happens(30, 1, "note");
    assert_int_equal(outcome_death_ns(&outcome, 1, 90), 10);
    happens(40, 1, "up");
    assert_int_equal(outcome_death_ns(&outcome, 1, 90), 90); /* it lives */
    happens(50, 1, "down");
    assert_int_equal(outcome_death_ns(&outcome, 1, 90), 50);
    assert_int_equal(outcome_death_ns(&outcome, 0, 90), 90);
}

static void test_losses(void **state)
{
    (void)state;
    assert_int_equal(outcome.lost_ns, RPO_NEVER);
    outcome_lost(&outcome, 50, 1, OUTCOME_LOSS_WIPED, true);
    outcome_lost(&outcome, 40, 2, OUTCOME_LOSS_DISCARDED, true);
    outcome_lost(&outcome, 50, 1, OUTCOME_LOSS_WIPED, true); /* again */
    assert_int_equal(outcome.disk_loss_count, 2);
    assert_int_equal(outcome.lost_regions, 6);
    assert_int_equal(outcome.lost_ns, 50);
    assert_true(outcome.disk_losses[0].kept && outcome.disk_losses[1].kept);
    /* What is kept of a Region is one: the last. */
    outcome_lost(&outcome, 70, 1, OUTCOME_LOSS_WIPED, true);
    assert_false(outcome.disk_losses[0].kept);
    assert_true(outcome.disk_losses[1].kept && outcome.disk_losses[2].kept);
    outcome_lost(&outcome, 80, 1, OUTCOME_LOSS_UNSYNCED, false);
    assert_true(outcome.disk_losses[2].kept);
    assert_int_equal(outcome.lost_ns, 80);
    for (int why = 0; why < OUTCOME_LOSS_WHY_COUNT; why++)
        assert_true(*outcome_loss_text((enum outcome_loss_why)why) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_death, begin, end),
        cmocka_unit_test_setup_teardown(test_losses, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

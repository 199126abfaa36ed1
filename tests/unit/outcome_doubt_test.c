/* SPDX-License-Identifier: Apache-2.0 */
/* What nobody can tell is told so, and what is lost as a whole is lost, not an error of the
 * harness: the verdict never has a number that was not measured. */

#include "tests/lib/outcome_make.h"

#include "chaos/run/measure.h"
#include "conflict/base/check.h"

/* A value that an unanswered deletion may have taken, or a lost update. */
static void test_lost_updates_in_doubt(void **state)
{
    (void)state;
    static const struct {
        const char *expect;
        enum outcome_exit exit;
        const char *part;
    } cases[] = {
        {"{lost_updates: 0}", OUTCOME_UNKNOWN,
         "unknown: expected lost_updates 0, and of 1 nobody can tell (RPO 0 writes, 0 lost "
         "updates, 1 not judged"},
        {"{lost_updates: '<=1'}", OUTCOME_PASS, ", 0 lost updates, 1 not judged"},
        {"{lost_updates: '>1'}", OUTCOME_WRONG, "expected lost_updates >1, 0"},
        {"{ledger_complete: true}", OUTCOME_UNKNOWN,
         "expected ledger_complete true, and not all of what the ledgers tell can be judged"},
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        struct made made;
        make_run(&made, "eventual", LWW, cases[i].expect);
        struct history *history = &made.outcome.history;
        put(history, 0, 0, 1, 2, 1, 0);
        struct history_op deletion = make_op(HISTORY_DELETE, 0, 3, NO_ANSWER);
        add(history, &deletion);
        put(history, 1, 0, 10, 11, 2, 0);
        last_look(history, 0, 0, 11 * SECOND_NS, 2);
        judge(&made);
        expect_exit(&made, cases[i].exit, cases[i].part);
        free_run(&made);
    }
}

/* ---- Everything lost ---- */

static void test_table_gone(void **state)
{
    (void)state;
    for (int strong = 0; strong < 2; strong++) {
        struct made made;
        make_run(&made, strong ? "strong" : "eventual", SWAP, "{rpo_count: '>0'}");
        put(&made.outcome.history, 0, 0, 1 * SECOND_NS, 1 * SECOND_NS + 1, 1, 0);
        put(&made.outcome.history, 1, 0, 2 * SECOND_NS, 2 * SECOND_NS + 1, 2, 1);
        made.outcome.gone_regions = (UINT64_C(1) << made.outcome.scenario->cluster.data_count) - 1;
        made.outcome.lost_ns = 5 * SECOND_NS;
        made.outcome.lost_regions = 1;
        judge(&made);
        expect_exit(&made, OUTCOME_WRONG, "wrong: tables: the table itself is gone in us-east-1, ");
        expect_exit(&made, OUTCOME_WRONG, ": everything that was acknowledged is lost (RPO 2 ");
        assert_true(actual(&made, 0) == 2);
        free_run(&made);
    }
    struct made made; /* of sums no checker knows the writes */
    make_run(&made, "eventual", "{kind: counter, keys: 4}", "{rpo_count: '>0'}");
    struct history_op op = make_op(HISTORY_ADD, 0, 1 * SECOND_NS, 1 * SECOND_NS + 1);
    op.written = op.value = 1;
    op.saw = HISTORY_SAW_VALUE;
    add(&made.outcome.history, &op);
    made.outcome.gone_regions = (UINT64_C(1) << made.outcome.scenario->cluster.data_count) - 1;
    judge(&made);
    expect_exit(&made, OUTCOME_WRONG, "RPO 1 write");
    free_run(&made);
}

/* No number that nobody has measured, however the run ended. */
static void test_rpo_unknown(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct made made;
        make_run(&made, "eventual", i == 0 ? SWAP : "{kind: exec, exec: [x]}", "{rpo_count: 0}");
        if (i == 0)
            put(&made.outcome.history, 0, 0, 1 * SECOND_NS, 1 * SECOND_NS + 1, 1, 0);
        if (i < 2)
            made.outcome.harness = "interrupted by SIGINT";
        else
            made.outcome.lost_regions = 3;
        if (i == 2)
            made.outcome.region_rpo_why = "not counted: several losses";
        judge(&made);
        expect_exit(&made, i < 2 ? OUTCOME_HARNESS : OUTCOME_UNKNOWN,
                    i < 2 ? "interrupted by SIGINT (RPO unknown" : "not counted: several losses");
        assert_null(strstr(made.outcome.verdict, "RPO 0"));
        assert_false(made.outcome.expects[0].known);
        free_run(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lost_updates_in_doubt),
                                       cmocka_unit_test(test_table_gone),
                                       cmocka_unit_test(test_rpo_unknown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

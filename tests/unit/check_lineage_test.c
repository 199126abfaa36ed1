/* SPDX-License-Identifier: Apache-2.0 */
/* Who stood on whom, who prevails and what is left of the others; against walks from child to
 * parent on random trees. */

#include "tests/lib/check/history_make.h"

#include "chaos/check/lineage.h"

enum { WRITES = 30, ROUNDS = 3000 };

static bool is_ancestor(const struct history *history, const uint32_t *op_of, uint64_t a,
                        uint64_t b)
{
    while (b && b != a)
        b = history->ops[op_of[b]].saw == HISTORY_SAW_NOTHING ? 0 : history->ops[op_of[b]].value;
    return b == a;
}

static void test_random_trees(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 8);
    for (int round = 0; round < ROUNDS; round++) {
        struct history history = new_history();
        uint32_t op_of[WRITES + 1] = {0};
        uint64_t count = rng_between(&rng, 1, WRITES);
        for (uint64_t value = 1; value <= count; value++) {
            op_of[value] = put(&history, (uint8_t)rng_below(&rng, 3), 0, 10 * value, 10 * value + 5,
                               value, rng_below(&rng, value));
            if (rng_one_in(&rng, 8))
                history.ops[op_of[value]].saw = HISTORY_SAW_NOTHING;
        }
        uint64_t final = rng_between(&rng, 1, count);
        last_look(&history, 0, 0, 1000, final);
        struct lineage lineage;
        lineage_init(&lineage, &history);
        const struct lineage_item *item = lineage_find(&lineage, 0, 0);
        assert_null(item->fault);
        assert_int_equal(item->final, op_of[final]);
        for (uint64_t a = 1; a <= count; a++) {
            const struct lineage_node *node = &lineage.nodes[op_of[a]];
            for (uint64_t b = 1; b <= count; b++)
                assert_int_equal(lineage_descends(&lineage, op_of[a], op_of[b]),
                                 is_ancestor(&history, op_of, a, b));
            if (node->tree == lineage.nodes[op_of[final]].tree)
                assert_int_equal(node->prevails, is_ancestor(&history, op_of, a, final));
            uint32_t anchor = op_of[a];
            while (anchor < LINEAGE_ABSENT && !lineage.nodes[anchor].prevails)
                anchor = lineage.nodes[anchor].parent;
            assert_int_equal(node->anchor, anchor);
            bool elsewhere = false; /* read by none but the last look, of region 0 */
            uint8_t region = history.ops[op_of[a]].region;
            for (uint64_t b = a; b <= count; b++)
                elsewhere = elsewhere || (b != a && is_ancestor(&history, op_of, a, b) &&
                                          history.ops[op_of[b]].region != region);
            elsewhere = elsewhere || (region != 0 && is_ancestor(&history, op_of, a, final));
            assert_int_equal(lineage_seen_elsewhere(&lineage, op_of[a]), elsewhere);
        }
        lineage_deinit(&lineage);
        history_deinit(&history);
    }
}

static void test_roles(void **state)
{
    (void)state;
    struct history history = new_history();
    uint32_t unseen = put(&history, 0, 0, 1, NO_ANSWER, 1, 0);
    uint32_t chained = put(&history, 0, 0, 1, NO_ANSWER, 2, 0);
    struct history_op op = make_op(HISTORY_PUT_IF, 0, 2, NO_ANSWER);
    op.written = 3;
    op.expected = 2;
    uint32_t seen = add(&history, &op);
    uint32_t read = get(&history, 0, 0, 5, 6, 3);
    struct lineage lineage;
    lineage_init(&lineage, &history);
    assert_int_equal(lineage.nodes[unseen].role, LINEAGE_OUT);
    assert_int_equal(lineage.nodes[seen].role, LINEAGE_WRITE);
    assert_int_equal(lineage.nodes[seen].parent, chained);
    assert_int_equal(lineage.nodes[chained].role, LINEAGE_WRITE);
    assert_int_equal(lineage.nodes[chained].parent, LINEAGE_UNKNOWN);
    assert_int_equal(lineage.nodes[read].role, LINEAGE_READ);
    assert_null(lineage_find(&lineage, 0, 1));
    lineage_deinit(&lineage);
    history_deinit(&history);
}

/* Two of three last looks agree. */
static void test_vote(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, 2, 1, 0);
    uint32_t winner = put(&history, 0, 0, 3, 4, 2, 1);
    last_look(&history, 0, 0, 9, 1);
    last_look(&history, 1, 0, 9, 2);
    last_look(&history, 2, 0, 9, 2);
    struct lineage lineage;
    lineage_init(&lineage, &history);
    assert_int_equal(lineage.item_array[0].final, winner);
    lineage_deinit(&lineage);
    history_deinit(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_trees),
                                       cmocka_unit_test(test_roles), cmocka_unit_test(test_vote)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Trees that come and go in any order, of pieces small and large, with texts put in anew: none may
 * overwrite another, and what is given back is used again. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "conflict/base/rng.h"
#include "region/json_memory.h"

enum { TREES = 12, ROUNDS = 4000, TEXT_MAX = 40000 };

static char text[TEXT_MAX];

/* An array of texts, empty as yet. */
static json_t *tree_new(struct rng *rng)
{
    json_t *tree = json_array();
    for (uint64_t i = rng_between(rng, 1, 40); i > 0; i--)
        assert_int_equal(json_array_append_new(tree, json_string("")), 0);
    return tree;
}

static size_t length(struct rng *rng)
{
    return rng_between(rng, 0, rng_one_in(rng, 50) ? TEXT_MAX : 300);
}

static void fill(struct rng *rng, json_t *tree, char letter)
{
    size_t i;
    json_t *node;
    memset(text, letter, sizeof(text));
    json_array_foreach(tree, i, node)
    {
        assert_int_equal(json_string_setn_nocheck(node, text, length(rng)), 0);
    }
}

static void check_tree(json_t *tree, char letter)
{
    size_t i;
    json_t *node;
    memset(text, letter, sizeof(text));
    json_array_foreach(tree, i, node)
    {
        assert_memory_equal(json_string_value(node), text, json_string_length(node));
    }
}

static void trees_do_not_meet(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    json_t *trees[TREES] = {NULL};
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t i = rng_between(&rng, 0, TREES - 1);
        char letter = (char)('a' + (int)i);
        if (trees[i])
            check_tree(trees[i], letter);
        if (trees[i] && rng_one_in(&rng, 2)) {
            json_decref(trees[i]);
            trees[i] = NULL;
            continue;
        }
        if (!trees[i])
            trees[i] = tree_new(&rng);
        fill(&rng, trees[i], letter);
    }
    for (uint32_t i = 0; i < TREES; i++)
        json_decref(trees[i]);
}

static void memory_is_used_again(void **state)
{
    (void)state;
    json_t *kept = json_string("kept");
    const char *first = NULL;
    bool again = false;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        json_t *tree = json_string("a text of some length, so that chunks fill up");
        again = again || json_string_value(tree) == first;
        if (i == ROUNDS / 2) /* by now not where `kept` is */
            first = json_string_value(tree);
        json_decref(tree);
    }
    assert_true(again);
    assert_string_equal(json_string_value(kept), "kept");
    json_decref(kept);
}

int main(void)
{
    json_memory_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_do_not_meet),
        cmocka_unit_test(memory_is_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
